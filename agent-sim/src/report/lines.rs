//! Many thin lines, several of which may be of one name: courses of trainings, one a seed.

use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::curves::{draw_names, draw_title, room_for};
use super::svg::{self, DrawError, FINE, Surface};
use super::sweep::draw_reference;
use super::{FLOOR, RGBColor, Reference, footed};
use plotters::prelude::*;

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Stands once beside all lines of that name.
    pub name: String,
    /// Its colour.
    pub colour: RGBColor,
    /// From left to right; what is not above zero cannot be shown.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common quantity, both spanning decades.
#[derive(Debug, Clone, Default)]
pub struct Lines<'a> {
    /// Stands above them.
    pub title: &'a str,
    /// What they go along, with its unit.
    pub x_label: &'a str,
    /// What they are, with its unit.
    pub y_label: &'a str,
    /// The lines; the first comes out on top.
    pub lines: &'a [Line],
    /// Dashed horizontal lines.
    pub references: &'a [Reference],
}

/// Several such pictures in one, two to a row.
pub fn lines_panels(panels: &[Lines<'_>], provenance: &str) -> Result<String, DrawError> {
    let rows = panels.len().div_ceil(2).max(1);
    svg::render((1200, 360 * rows as u32 + 30), |surface, _| {
        let area = footed(surface, provenance)?;
        for (panel, area) in panels.iter().zip(area.split_evenly((rows, 2))) {
            draw(&area, panel)?;
        }
        Ok(())
    })
}

fn shown(line: &Line) -> impl DoubleEndedIterator<Item = (f64, f64)> {
    let fits = |value: f64| value.is_finite() && value > 0.0;
    let points = line.points.iter().copied();
    points.filter(move |(x, y)| fits(*x) && fits(*y))
}

fn draw(area: &Surface<'_>, panel: &Lines<'_>) -> Result<(), DrawError> {
    let (width, height) = area.dim_in_pixel();
    let points = || panel.lines.iter().flat_map(shown);
    let (low, high) = points().fold((f64::INFINITY, 0.0f64), |(low, high), (x, _)| {
        (low.min(x), high.max(x))
    });
    let levels = panel.references.iter().map(|reference| reference.y);
    let names = panel.lines.iter().map(|line| line.name.as_str());
    let frame = Frame {
        x: Axis::logarithmic(panel.x_label, low / 1.2, high * 1.2),
        y: Axis::decades(panel.y_label, points().map(|(_, y)| y).chain(levels), FLOOR),
        across: (BESIDE + 14 * FINE as i32, width as i32 - room_for(names)),
        down: (34 * FINE as i32, height as i32 - BELOW),
    };
    draw_title(area, &frame, panel.title)?;
    frame.draw_grid(area)?;
    for line in panel.lines.iter().rev() {
        let places: Vec<(i32, i32)> = shown(line).map(|(x, y)| frame.place(x, y)).collect();
        let style = line.colour.mix(0.85).stroke_width(FINE);
        area.draw(&PathElement::new(places, style))?;
    }
    for reference in panel.references {
        draw_reference(area, &frame, reference)?;
    }
    frame.draw_outline(area)?;
    frame.draw_x(area)?;
    frame.draw_y(area)?;
    // Beside the first of a name: those of others end near it.
    let mut ends: Vec<(&str, RGBColor, i32)> = Vec::new();
    for line in panel.lines {
        let Some((x, y)) = shown(line).next_back() else {
            continue;
        };
        if ends.iter().all(|(name, ..)| *name != line.name) {
            ends.push((&line.name, line.colour, frame.place(x, y).1));
        }
    }
    draw_names(area, &frame, &ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::line;

    #[test]
    fn lines_of_one_name_are_named_once_and_what_cannot_be_shown_is_left_out() {
        let line = |name: &str, factor: f64| Line {
            name: name.into(),
            colour: line::GREEN,
            points: vec![
                (0.0, 1.0),
                (1.0, factor),
                (10.0, f64::INFINITY),
                (100.0, 0.1 * factor),
            ],
        };
        let lines = [
            line("PPO & co", 1.0),
            line("PPO & co", 2.0),
            line("other", 3.0),
        ];
        let panel = Lines {
            title: "falls",
            lines: &lines,
            references: &[Reference {
                name: "feedback".into(),
                y: 0.3,
            }],
            ..Lines::default()
        };
        let draw = || lines_panels(&[panel.clone(), panel.clone()], "here").unwrap();
        let text = draw();
        assert_eq!(text.matches("PPO &amp; co").count(), 2);
        assert_eq!(text.matches("feedback").count(), 2);
        assert_eq!(text, draw(), "same input, same bytes");
        assert!(
            lines_panels(&[Lines::default()], "")
                .unwrap()
                .contains("</svg>")
        );
        assert!(lines_panels(&[], "").unwrap().contains("</svg>"));
    }
}
