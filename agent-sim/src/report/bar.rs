//! Colour bars.

use super::axis::{Axis, draw_upwards};
use super::colour::Scale;
use super::font;
use super::svg::{DrawError, FINE, Inlay, Surface};
use super::text_width;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of a colour bar and of a target beside a field, in drawing units.
pub const STRIP: i32 = 18 * FINE as i32;

/// A framed column of colours, from the top.
pub fn draw_strip(
    area: &Surface<'_>,
    inlay: &Inlay,
    corners: [(i32, i32); 2],
    rgb: &[u8],
) -> Result<(), DrawError> {
    // Two equal columns: viewers fade a single one out towards its sides.
    let rows = rgb.len() as u32 / 3;
    let doubled: Vec<u8> = rgb.chunks(3).flat_map(|p| [p, p].concat()).collect();
    area.draw(&Rectangle::new(corners, inlay.fill((2, rows), &doubled)?))?;
    area.draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
    Ok(())
}

/// A colour bar of that quantity, with its left side at `left` between two heights.
pub fn draw_colour_bar(
    area: &Surface<'_>,
    inlay: &Inlay,
    scale: &Scale,
    quantity: &str,
    left: i32,
    (top, bottom): (i32, i32),
) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let right = left + STRIP;
    let rgb: Vec<u8> = (0..=100)
        .rev()
        .flat_map(|k| scale.at(f64::from(k) / 100.0))
        .collect();
    draw_strip(area, inlay, [(left, top), (right, bottom)], &rgb)?;
    let axis = Axis::linear("", scale.low(), scale.high());
    let mut widest = 0;
    for (value, text) in axis.ticks(7) {
        let y = f64::from(bottom) + axis.share(value) * f64::from(top - bottom);
        let y = y.round() as i32;
        let tick = [(right, y), (right + 3 * fine, y)];
        area.draw(&PathElement::new(tick, BLACK.stroke_width(1)))?;
        widest = widest.max(text_width(&text, 12.0));
        let style = font(12.0).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(text, (right + 6 * fine, y), style))?;
    }
    let place = (right + 28 * fine + widest, (top + bottom) / 2);
    draw_upwards(area, quantity, place)
}
