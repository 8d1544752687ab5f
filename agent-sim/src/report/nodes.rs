//! What became of the boards of a run, below the error of its field.

use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::curves::{Event, draw_title, room_for};
use super::svg::{self, DrawError, FINE, Surface};
use super::{PROVENANCE, Shown, TIME, draw_errors, font, footed, line, text_width};
use crate::rig::{Diary, State};
use agent_core::agent::Mode;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::Problem;

/// Most boards that get a row.
const MOST: usize = 64;
const ROW: i32 = 17 * FINE as i32;
const BAR: i32 = 11 * FINE as i32;
/// Above the rows: a title and the legend.
const HEAD: i32 = 62 * FINE as i32;
const ERRORS: u32 = 400;

/// A board's name and its diary.
pub type Row<'a> = (&'a str, &'a Diary);

const STATES: [State; 6] = [
    State::Answered(Mode::Active),
    State::Answered(Mode::Waiting),
    State::Answered(Mode::Holding),
    State::Answered(Mode::FailedSafe),
    State::Late,
    State::Silent,
];

fn colour(state: State) -> RGBColor {
    match state {
        State::Answered(Mode::Active) => line::GREEN,
        State::Answered(Mode::Waiting) => line::BLUE,
        State::Answered(Mode::Holding) => line::ORANGE,
        State::Answered(Mode::FailedSafe) => line::VERMILION,
        State::Late => line::PURPLE,
        State::Silent => RGBColor(0xd0, 0xd0, 0xd0),
    }
}

/// The error of several runs over time, and below it each board's state in the first of them.
pub fn nodes_picture(
    problem: &Problem,
    runs: &[Shown<'_>],
    events: &[Event],
    nodes: &[Row<'_>],
    provenance: &str,
) -> Result<String, DrawError> {
    let nodes = &nodes[..nodes.len().min(MOST)];
    let rows = (HEAD + nodes.len() as i32 * ROW + BELOW) as u32 / FINE;
    svg::render((900, ERRORS + rows + PROVENANCE), |surface, _| {
        let area = footed(surface, provenance)?;
        let (above, below) = area.split_vertically(ERRORS * FINE);
        draw_errors(
            &above,
            problem,
            "the field under the boards' control",
            runs,
            events,
        )?;
        let names = room_for(runs.iter().map(|run| run.name));
        draw_nodes(&below, problem, nodes, names)
    })
}

/// `margin` is what the curves above leave free for their names.
fn draw_nodes(
    area: &Surface<'_>,
    problem: &Problem,
    nodes: &[Row<'_>],
    margin: i32,
) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let steps = nodes.iter().map(|(_, diary)| diary.states.len()).max();
    let steps = steps.unwrap_or(0).max(1);
    let dt = problem.control_interval;
    let names = nodes.iter().map(|(name, _)| text_width(name, 12.0)).max();
    let frame = Frame {
        x: Axis::linear(TIME, 0.0, steps as f64 * dt),
        y: Axis::linear("", 0.0, 1.0),
        across: (
            (BESIDE + 14 * fine).max(names.unwrap_or(0) + 16 * fine),
            area.dim_in_pixel().0 as i32 - margin,
        ),
        down: (HEAD, HEAD + nodes.len() as i32 * ROW),
    };
    draw_title(
        area,
        &frame,
        "the boards; a mark is an event of the report's list",
    )?;
    draw_legend(area, &frame, nodes)?;
    frame.draw_outline(area)?;
    frame.draw_x(area)?;
    for (row, (name, diary)) in (0..).zip(nodes) {
        let middle = frame.down.0 + row * ROW + ROW / 2;
        let style = font(12.0).pos(Pos::new(HPos::Right, VPos::Center));
        let place = (frame.across.0 - 8 * fine, middle);
        area.draw(&Text::new((*name).to_owned(), place, style))?;
        for (state, first, last) in diary.stretches() {
            let (left, _) = frame.place(first as f64 * dt, 0.0);
            let (right, _) = frame.place((last + 1) as f64 * dt, 0.0);
            let corners = [(left, middle - BAR / 2), (right, middle + BAR / 2)];
            area.draw(&Rectangle::new(corners, colour(state).filled()))?;
        }
        for event in &diary.events {
            let (x, _) = frame.place(event.step as f64 * dt, 0.0);
            let ends = [(x, middle - ROW / 2 + fine), (x, middle + ROW / 2 - fine)];
            area.draw(&PathElement::new(ends, BLACK.stroke_width(FINE)))?;
        }
    }
    Ok(())
}

/// The states that occur, in a row above the boards.
fn draw_legend(area: &Surface<'_>, frame: &Frame, nodes: &[Row<'_>]) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let occurs = |state: &&State| nodes.iter().any(|(_, diary)| diary.states.contains(state));
    let mut x = frame.across.0;
    let y = HEAD - 16 * fine;
    for state in STATES.iter().filter(occurs) {
        let corners = [(x, y - BAR / 2), (x + 18 * fine, y + BAR / 2)];
        area.draw(&Rectangle::new(corners, colour(*state).filled()))?;
        x += 24 * fine;
        let style = font(12.0).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(state.name(), (x, y), style))?;
        x += text_width(state.name(), 12.0) + 18 * fine;
    }
    Ok(())
}
