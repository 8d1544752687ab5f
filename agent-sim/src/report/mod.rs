//! Pictures, films and pages about runs. The same run gives the same bytes.
//!
//! | what | shows |
//! | --- | --- |
//! | [`field_picture`] | the field over space and time on a line, at a few times on a plane |
//! | [`error_picture`], [`effort_picture`] | how well several runs did, and what it took |
//! | [`story_picture`] | several runs side by side over their errors |
//! | [`sweep_picture`], [`sweep_panels`] | scores against what was varied |
//! | [`lines_panels`] | many thin lines, such as courses of trainings |
//! | [`dots_panels`] | several figures of each of a few things |
//! | [`matrix_panels`] | numbers in coloured squares, where two things were varied |
//! | [`margins_picture`], [`coverage_picture`] | how far runs were from failing, and against what was varied |
//! | [`nodes_picture`] | what became of each board, below the field's error |
//! | [`film`](film::film) | the field and the agents as they move |
//! | [`html::Page`] | all of it on one page |

mod agents;
mod axis;
mod bar;
mod canvas;
mod colour;
mod curves;
mod dots;
pub mod film;
pub mod html;
mod lines;
mod margins;
mod matrix;
mod nodes;
mod plane;
mod space_time;
mod strip;
mod svg;
mod sweep;

pub use colour::line;
pub use curves::Event;
pub use dots::{Dots, Dotted, Mark, dots_panels};
pub use lines::{Line, Lines, lines_panels};
pub use margins::{Against, coverage_picture, margins_picture};
pub use matrix::{Matrix, Square, matrix_panels};
pub use nodes::{Row, nodes_picture};
pub use plotters::style::RGBColor;
pub use svg::DrawError;
pub use sweep::{
    Panel as SweepPanel, Reference, Scored, Series, Sweep, sweep_panels, sweep_picture,
};

use crate::trajectory::Trajectory;
use agents::{Look, draw_legend, looks_in};
use axis::{Axis, BESIDE};
use bar::draw_colour_bar;
pub(crate) use colour::Scale;
use colour::error_name;
use curves::{Chart, Curve, room_for};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::grid::{Edge, Grid};
use problem::{Drives, Episode, Problem};
use space_time::{Panel, Quantity, sides};
use svg::{FINE, Surface};

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
/// Height of a picture's foot, in displayed pixels.
const PROVENANCE: u32 = 26;
/// Most points of a line: more cannot be seen and make long runs' files long.
const MAX_POINTS: usize = 300;
/// The title of time axes.
const TIME: &str = "time (time units)";
/// Smallest error that scales go down to.
const FLOOR: f64 = 1e-12;

fn font(size: f64) -> TextStyle<'static> {
    // plotters' SVG text comes out 1.24 times smaller than asked for.
    (FONT, size * 1.24 * f64::from(FINE)).into_text_style(&(1, 1))
}

/// About how wide a text is, in drawing units: fonts are the viewer's business.
fn text_width(text: &str, size: f64) -> i32 {
    (0.58 * size * f64::from(FINE) * text.chars().count() as f64) as i32
}

/// A run for pictures.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What happened.
    pub trajectory: &'a Trajectory,
    /// The colour of its curve.
    pub colour: RGBColor,
}

/// The field of a run with its agents, and the error likewise where there is a target: over space
/// and time on a line, at a few times on a plane.
pub fn field_picture(
    problem: &Problem,
    episode: &Episode,
    run: &Shown<'_>,
    provenance: &str,
) -> Result<String, DrawError> {
    if run.trajectory.grid.axes == 2 {
        return strip::strip_picture(problem, episode, run, provenance);
    }
    let field = format!("{}: the field", run.name);
    let error = format!("{}: the error", run.name);
    let field = (
        field,
        Quantity::Field,
        Scale::of_field(problem, episode, &[run.trajectory]),
    );
    let error = (error, Quantity::Error, Scale::of_error(problem, episode));
    let panels = match problem.tracking {
        true => vec![field, error],
        // Where the field is to vanish, it is the error.
        false => vec![field],
    };
    const BAR: u32 = 96 * FINE;
    svg::render((1200, 420), |surface, inlay| {
        let area = footed(surface, provenance)?;
        for ((title, quantity, scale), area) in
            panels.iter().zip(area.split_evenly((1, panels.len())))
        {
            let (width, height) = area.dim_in_pixel();
            let (left, bar) = area.split_horizontally(width - BAR);
            let panel = Panel {
                title,
                problem,
                trajectory: run.trajectory,
                quantity: *quantity,
                scale: *scale,
            };
            panel.draw(&left, inlay)?;
            let name = match quantity {
                Quantity::Field => problem.quantity.to_owned(),
                Quantity::Error => error_name(problem),
            };
            draw_colour_bar(&bar, inlay, scale, &name, 0, sides(height))?;
        }
        let frames: Vec<usize> = (0..run.trajectory.steps.len()).collect();
        let mut looks = looks_in(run.trajectory, &frames);
        // Paths of healthy agents explain themselves.
        looks.retain(|look| *look != Look::Acting);
        let foot = (BESIDE, area.dim_in_pixel().1 as i32 + 8 * FINE as i32);
        draw_legend(surface, inlay, &looks, false, foot)
    })
}

/// Errors over time of several runs of the same episode.
pub fn error_picture(
    problem: &Problem,
    runs: &[Shown<'_>],
    events: &[Event],
    provenance: &str,
) -> Result<String, DrawError> {
    let title = match problem.tracking {
        true => format!("{}: error to the target", problem.name),
        false => format!("{}: how far the field is from zero", problem.name),
    };
    svg::render((900, 440), |surface, _| {
        let area = footed(surface, provenance)?;
        draw_errors(&area, problem, &title, runs, events)
    })
}

/// What the agents spend over time in several runs, and how many of them are heard where that
/// changes. Runs that spend nothing are left out.
pub fn effort_picture(
    problem: &Problem,
    runs: &[Shown<'_>],
    events: &[Event],
    provenance: &str,
) -> Result<String, DrawError> {
    let spending: Vec<Curve<'_>> = runs
        .iter()
        .filter(|run| run.trajectory.efforts.iter().any(|e| *e > 0.0))
        .map(|run| curve(run, run.trajectory.efforts.clone(), 1))
        .collect();
    let (name, title) = match problem.actuation.drives {
        Drives::Source => ("mean u²", "effort of the agents' forces"),
        Drives::Flow => ("mean |v|²", "effort of the agents' motion"),
    };
    let values = || spending.iter().flat_map(|c| c.values.iter().copied());
    // Six decades say all; an agent that rests would stretch the scale without end.
    let most = values().filter(|v| v.is_finite()).fold(FLOOR, f64::max);
    let efforts = Axis::decades(name, values(), most * 1e-6);
    let heard: Vec<Curve<'_>> = runs
        .iter()
        .filter(|run| {
            run.trajectory
                .heard
                .windows(2)
                .any(|pair| pair[0] != pair[1])
        })
        .map(|run| {
            let heard = run.trajectory.heard.iter().map(|&n| n as f64);
            curve(run, heard.collect(), 1)
        })
        .collect();
    let swarm = heard.iter().flat_map(|c| c.values.iter().copied());
    let swarm = Axis::linear("agents heard", 0.0, 1.05 * swarm.fold(1.0, f64::max));
    let title = format!("{}: {title}", problem.name);
    let names = room_for(runs.iter().map(|run| run.name));
    // They are named above.
    let unnamed = events.iter().map(|event| Event {
        step: event.step,
        name: String::new(),
    });
    let unnamed: Vec<Event> = unnamed.collect();
    let height = if heard.is_empty() { 440 } else { 660 };
    svg::render((900, height), |surface, _| {
        let area = footed(surface, provenance)?;
        let (above, below) = area.split_vertically((440 - PROVENANCE) * FINE);
        let chart = Chart {
            title: &title,
            y: efforts,
            curves: &spending,
            events,
            names,
        };
        chart.draw(&above, problem)?;
        if !heard.is_empty() {
            let chart = Chart {
                title: "agents that are heard",
                y: swarm,
                curves: &heard,
                events: &unnamed,
                names,
            };
            chart.draw(&below, problem)?;
        }
        Ok(())
    })
}

/// Several runs side by side over their errors: one picture that tells the story.
///
/// The first three runs get a panel, on a plane their ends; all get a curve.
pub fn story_picture(
    problem: &Problem,
    episode: &Episode,
    runs: &[Shown<'_>],
    events: &[Event],
    provenance: &str,
) -> Result<String, DrawError> {
    const WIDTH: u32 = 1280;
    const BAR: u32 = 86;
    let first = &runs[..runs.len().min(3)];
    let trajectories: Vec<&Trajectory> = first.iter().map(|run| run.trajectory).collect();
    let scale = Scale::of_field(problem, episode, &trajectories);
    svg::render((WIDTH, 720), |surface, inlay| {
        let area = footed(surface, provenance)?;
        let (panels, below) = area.split_vertically(370 * FINE);
        if problem.grid.axes == 2 {
            strip::draw_ends(&panels, inlay, problem, first, scale)?;
        } else {
            let (panels, bar) = panels.split_horizontally((WIDTH - BAR) * FINE);
            for (run, area) in first
                .iter()
                .zip(panels.split_evenly((1, first.len().max(1))))
            {
                let panel = Panel {
                    title: run.name,
                    problem,
                    trajectory: run.trajectory,
                    quantity: Quantity::Field,
                    scale,
                };
                panel.draw(&area, inlay)?;
            }
            let sides = sides(bar.dim_in_pixel().1);
            draw_colour_bar(&bar, inlay, &scale, problem.quantity, 0, sides)?;
        }
        let title = match problem.tracking {
            true => "how far the field is from its target",
            false => "how far the field is from zero",
        };
        draw_errors(&below, problem, title, runs, events)
    })
}

fn draw_errors(
    area: &Surface<'_>,
    problem: &Problem,
    title: &str,
    runs: &[Shown<'_>],
    events: &[Event],
) -> Result<(), DrawError> {
    let errors = |run: &Shown<'_>| run.trajectory.errors.clone();
    let curves: Vec<Curve<'_>> = runs.iter().map(|run| curve(run, errors(run), 0)).collect();
    let values = curves.iter().flat_map(|c| c.values.iter().copied());
    let name = match problem.tracking {
        true => "mean squared error",
        false => "mean square",
    };
    let chart = Chart {
        title,
        y: Axis::decades(name, values, FLOOR),
        curves: &curves,
        events,
        names: room_for(runs.iter().map(|run| run.name)),
    };
    chart.draw(area, problem)
}

fn curve<'a>(run: &Shown<'a>, values: Vec<f64>, first: usize) -> Curve<'a> {
    Curve {
        name: run.name,
        colour: run.colour,
        values,
        first,
    }
}

/// Writes where the picture comes from along its foot and returns the rest of the surface.
fn footed<'s>(surface: &Surface<'s>, provenance: &str) -> Result<Surface<'s>, DrawError> {
    let (width, height) = surface.dim_in_pixel();
    let (area, foot) = surface.split_vertically(height - PROVENANCE * FINE);
    foot.draw(&Text::new(
        provenance.to_owned(),
        ((width - 12 * FINE) as i32, 4 * FINE as i32),
        font(10.0)
            .color(&BLACK.mix(0.55))
            .pos(Pos::new(HPos::Right, VPos::Top)),
    ))?;
    Ok(area)
}

/// Whether a step from one place to the next leaves a periodic domain on one side and enters it on another.
fn wraps(grid: &Grid, from: [f64; 2], to: [f64; 2]) -> bool {
    let far = |axis: usize| (to[axis] - from[axis]).abs() > 0.5 * grid.extent(axis);
    (0..grid.axes).any(|axis| grid.edges[axis] == Edge::Periodic && far(axis))
}

/// Index `k` of `count` places spread evenly over `len` items, ends included.
fn spread(k: usize, count: usize, len: usize) -> usize {
    if count < 2 {
        return 0;
    }
    (k * (len - 1) + (count - 1) / 2) / (count - 1)
}

#[cfg(test)]
mod tests;
