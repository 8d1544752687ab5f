//! Pictures of runs, as SVG files. The same run gives the same bytes.

mod colour;
mod curves;
mod space_time;
mod svg;

pub use colour::line;
pub use curves::{Curve, Event};
pub use plotters::style::RGBColor;
pub use svg::DrawError;

use crate::problem::{Episode, Problem};
use crate::trajectory::Trajectory;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use space_time::{Panel, Quantity, draw_colour_bar};
use svg::{FINE, Surface};

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
const PROVENANCE: u32 = 26;
/// Most points of a line: more cannot be seen and make long runs' files long.
const MAX_POINTS: usize = 300;

fn font(size: f64) -> TextStyle<'static> {
    // plotters' SVG text comes out 1.24 times smaller than asked for.
    (FONT, size * 1.24 * f64::from(FINE)).into_text_style(&(1, 1))
}

fn label(size: f64) -> TextStyle<'static> {
    font(size)
}

/// A run for pictures.
pub struct Shown<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What happened.
    pub trajectory: &'a Trajectory,
    /// The colour of its curve.
    pub colour: RGBColor,
}

/// The field over space and time with the agents' paths, and the error likewise.
pub fn field_picture(
    problem: &Problem,
    episode: &Episode,
    run: &Shown<'_>,
    provenance: &str,
) -> Result<String, DrawError> {
    svg::render((1200, 420), |surface, bitmaps| {
        let area = footed(surface, provenance)?;
        let (left, rest) = area.split_horizontally(520 * FINE);
        let (left_bar, rest) = rest.split_horizontally(80 * FINE);
        let (right, right_bar) = rest.split_horizontally(510 * FINE);
        let scale = scale_of(episode);
        let gaps = episode.initial.iter().zip(&episode.target);
        let gap = round_up(gaps.fold(0.0, |m, (a, b)| f64::from(a - b).abs().max(m)));
        for (area, bar, quantity, scale, title, short) in [
            (
                &left,
                &left_bar,
                Quantity::Field,
                scale,
                format!("{}: the field", run.name),
                "z",
            ),
            (
                &right,
                &right_bar,
                Quantity::Error,
                gap,
                format!("{}: the error", run.name),
                "z − target",
            ),
        ] {
            let panel = Panel {
                title: &title,
                problem,
                trajectory: run.trajectory,
                quantity,
                scale,
            };
            panel.draw(area, bitmaps)?;
            draw_colour_bar(bar, bitmaps, scale, short)?;
        }
        Ok(())
    })
}

/// Errors over time of several runs of the same episode.
pub fn error_picture(
    problem: &Problem,
    runs: &[Shown<'_>],
    events: &[Event],
    provenance: &str,
) -> Result<String, DrawError> {
    svg::render((900, 440), |surface, _| {
        let area = footed(surface, provenance)?;
        let title = format!("{}: error to the target", problem.name);
        curves::draw_curves(&area, problem, &title, &curves_of(runs), events)
    })
}

/// Several runs side by side over their errors: one picture that tells the story.
///
/// The first three runs get a panel; all get a curve.
pub fn story_picture(
    problem: &Problem,
    episode: &Episode,
    runs: &[Shown<'_>],
    events: &[Event],
    provenance: &str,
) -> Result<String, DrawError> {
    const WIDTH: u32 = 1280;
    const BAR: u32 = 70;
    svg::render((WIDTH, 720), |surface, bitmaps| {
        let area = footed(surface, provenance)?;
        let (panels, below) = area.split_vertically(370 * FINE);
        let (panels, bar) = panels.split_horizontally((WIDTH - BAR) * FINE);
        let scale = scale_of(episode);
        let shown = runs.len().min(3);
        for (run, area) in runs.iter().zip(panels.split_evenly((1, shown))) {
            let panel = Panel {
                title: run.name,
                problem,
                trajectory: run.trajectory,
                quantity: Quantity::Field,
                scale,
            };
            panel.draw(&area, bitmaps)?;
        }
        draw_colour_bar(&bar, bitmaps, scale, "field z")?;
        let title = "how far the field is from its target";
        curves::draw_curves(&below, problem, title, &curves_of(runs), events)
    })
}

fn curves_of<'a>(runs: &[Shown<'a>]) -> Vec<Curve<'a>> {
    runs.iter()
        .map(|run| Curve {
            name: run.name,
            colour: run.colour,
            errors: &run.trajectory.errors,
        })
        .collect()
}

/// Writes where the picture comes from along its foot and returns the rest of the surface.
fn footed<'s>(surface: &Surface<'s>, provenance: &str) -> Result<Surface<'s>, DrawError> {
    let (width, height) = surface.dim_in_pixel();
    let (area, foot) = surface.split_vertically(height - PROVENANCE * FINE);
    foot.draw(&Text::new(
        provenance.to_owned(),
        ((width - 12 * FINE) as i32, 4 * FINE as i32),
        label(10.0)
            .color(&BLACK.mix(0.55))
            .pos(Pos::new(HPos::Right, VPos::Top)),
    ))?;
    Ok(area)
}

/// A symmetric colour scale that holds the initial field and the target.
fn scale_of(episode: &Episode) -> f64 {
    let values = episode.initial.iter().chain(&episode.target);
    round_up(values.fold(0.0, |most, v| f64::from(v.abs()).max(most)))
}

/// The next multiple of 0.2, so that the colour bar's labels are round.
fn round_up(value: f64) -> f64 {
    ((value / 0.2).ceil() * 0.2).max(0.2)
}

/// Index `k` of `count` places spread evenly over `len` items, ends included.
fn spread(k: usize, count: usize, len: usize) -> usize {
    if count < 2 {
        return 0;
    }
    (k * (len - 1) + (count - 1) / 2) / (count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_over_all_items() {
        let places = |count, len| {
            (0..count)
                .map(|k| spread(k, count, len))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(4, 4), [0, 1, 2, 3]);
        assert_eq!(places(3, 301), [0, 150, 300]);
        assert_eq!(places(1, 5), [0]);
    }
}
