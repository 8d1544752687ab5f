//! Several figures of each of a few things, as marks on a line each.

use super::axis::{Axis, BELOW, Frame};
use super::curves::draw_title;
use super::svg::{self, DrawError, FINE, Surface};
use super::{FLOOR, RGBColor, font, footed, text_width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Height of a thing's line.
const ROW: i32 = 19 * FINE as i32;
/// Above the lines: a title.
const HEAD: i32 = 34 * FINE as i32;
/// Above all: what marks mean.
const LEGEND: i32 = 30 * FINE as i32;

/// Figures below so small a part of the largest are as good as nothing, and stand at the left end.
const REACH: f64 = 1e-8;

/// What stands for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Full.
    Disc,
    /// Empty.
    Ring,
    /// Four strokes from a middle.
    Cross,
    /// Empty, with corners.
    Square,
}

/// A thing with its figures.
#[derive(Debug, Clone)]
pub struct Dotted {
    /// Stands beside its line.
    pub name: String,
    /// Of its marks.
    pub colour: RGBColor,
    /// Its figures; those that are not above zero cannot be shown.
    pub marks: Vec<(Mark, f64)>,
}

/// Things to compare.
#[derive(Debug, Clone, Default)]
pub struct Dots {
    /// Stands above them.
    pub title: String,
    /// What their figures are, which may span decades.
    pub x_label: String,
    /// From above to below.
    pub rows: Vec<Dotted>,
}

/// Several comparisons in one picture, two to a row, below what their marks mean.
pub fn dots_panels(
    panels: &[Dots],
    legend: &[(Mark, &str)],
    provenance: &str,
) -> Result<String, DrawError> {
    let heights: Vec<i32> = panels
        .chunks(2)
        .map(|pair| {
            let rows = pair.iter().map(|panel| panel.rows.len()).max();
            HEAD + rows.unwrap_or(0).max(1) as i32 * ROW + BELOW
        })
        .collect();
    let height = (LEGEND + heights.iter().sum::<i32>()) as u32 / FINE;
    svg::render((1200, height + super::PROVENANCE), |surface, _| {
        let area = footed(surface, provenance)?;
        draw_legend(&area, legend)?;
        let (_, mut rest) = area.split_vertically(LEGEND as u32);
        for (pair, height) in panels.chunks(2).zip(heights) {
            let (row, below) = rest.split_vertically(height as u32);
            for (panel, area) in pair.iter().zip(row.split_evenly((1, 2))) {
                draw(&area, panel)?;
            }
            rest = below;
        }
        Ok(())
    })
}

fn draw_legend(area: &Surface<'_>, legend: &[(Mark, &str)]) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let (mut x, y) = (24 * fine, LEGEND / 2);
    for (mark, name) in legend {
        draw_mark(area, *mark, (x, y), BLACK.mix(0.8))?;
        x += 12 * fine;
        write(area, name, (x, y), HPos::Left, &BLACK)?;
        x += text_width(name, 12.0) + 24 * fine;
    }
    Ok(())
}

fn draw(area: &Surface<'_>, panel: &Dots) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let names = panel.rows.iter().map(|row| text_width(&row.name, 12.0));
    let figures = panel.rows.iter().flat_map(|row| &row.marks);
    let figures = figures.map(|(_, figure)| *figure);
    let figures = figures.filter(|f| f.is_finite() && *f > 0.0);
    let floor = REACH * figures.clone().fold(0.0, f64::max);
    let frame = Frame {
        x: Axis::decades(&panel.x_label, figures, floor.max(FLOOR)),
        // Lines are counted from above.
        y: Axis::linear("", -(panel.rows.len().max(1) as f64), 0.0),
        across: (
            names.max().unwrap_or(0) + 24 * fine,
            area.dim_in_pixel().0 as i32 - 24 * fine,
        ),
        down: (HEAD, HEAD + panel.rows.len().max(1) as i32 * ROW),
    };
    draw_title(area, &frame, &panel.title)?;
    frame.draw_upright_grid(area)?;
    for (k, row) in panel.rows.iter().enumerate() {
        let level = |x| frame.place(x, -(k as f64) - 0.5);
        let (_, y) = level(1.0);
        let ends = [(frame.across.0, y), (frame.across.1, y)];
        area.draw(&PathElement::new(ends, BLACK.mix(0.08).stroke_width(1)))?;
        let beside = (frame.across.0 - 8 * fine, y);
        write(area, &row.name, beside, HPos::Right, &row.colour)?;
        let shown = row.marks.iter();
        for (mark, figure) in shown.filter(|(_, f)| f.is_finite() && *f > 0.0) {
            draw_mark(area, *mark, level(*figure), row.colour.mix(1.0))?;
        }
    }
    frame.draw_outline(area)?;
    frame.draw_x(area)
}

fn draw_mark(
    area: &Surface<'_>,
    mark: Mark,
    (x, y): (i32, i32),
    colour: RGBAColor,
) -> Result<(), DrawError> {
    let half = 4 * FINE as i32;
    let stroke = colour.stroke_width(FINE + 1);
    match mark {
        Mark::Disc => area.draw(&Circle::new((x, y), half, colour.filled()))?,
        Mark::Ring => area.draw(&Circle::new((x, y), half, stroke))?,
        Mark::Cross => {
            for side in [1, -1] {
                let ends = [(x - half, y - side * half), (x + half, y + side * half)];
                area.draw(&PathElement::new(ends, stroke))?;
            }
        }
        Mark::Square => {
            let [left, right, above, below] = [x - half, x + half, y - half, y + half];
            let corners = [(left, above), (right, above), (right, below), (left, below)];
            let around = corners.into_iter().chain([corners[0], corners[1]]);
            area.draw(&PathElement::new(around.collect::<Vec<_>>(), stroke))?;
        }
    }
    Ok(())
}

fn write(
    area: &Surface<'_>,
    text: &str,
    place: (i32, i32),
    side: HPos,
    colour: &RGBColor,
) -> Result<(), DrawError> {
    let style = font(12.0).color(colour).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), place, style))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_mark() {
        let dotted = |name: &str, marks: &[(Mark, f64)]| Dotted {
            name: name.into(),
            colour: RGBColor(0x12, 0x34, 0x56),
            marks: marks.to_vec(),
        };
        let panel = Dots {
            title: "errors".into(),
            x_label: "mean".into(),
            rows: vec![
                dotted("a <b>", &[(Mark::Disc, 1e-3), (Mark::Ring, 2e-3)]),
                dotted("lost", &[(Mark::Disc, f64::INFINITY), (Mark::Ring, 0.0)]),
                dotted("c", &[(Mark::Cross, 0.5), (Mark::Square, 5.0)]),
            ],
        };
        let legend = [(Mark::Disc, "measured"), (Mark::Ring, "cited")];
        let draw = || dots_panels(&vec![panel.clone(); 3], &legend, "here").unwrap();
        let text = draw();
        assert_eq!(text.matches("<circle").count(), 2 + 3 * 2);
        assert!(
            ["a &lt;b&gt;", "lost", "cited"]
                .iter()
                .all(|t| text.contains(t))
        );
        assert_eq!(text, draw(), "same input, same bytes");
        let empty = dots_panels(&[Dots::default()], &[], "").unwrap();
        assert!(empty.contains("</svg>"));
    }
}
