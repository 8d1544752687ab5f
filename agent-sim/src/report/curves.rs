//! Quantities over time.

use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::svg::{DrawError, FINE, Surface};
use super::{MAX_POINTS, TIME, font, spread, text_width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::Problem;

/// Height of the title, and of a row of events' names below it.
const TOP: i32 = 34 * FINE as i32;
const ROW: i32 = 17 * FINE as i32;

/// One run's values.
pub struct Curve<'a> {
    /// Stands at its end.
    pub name: &'a str,
    /// Its colour.
    pub colour: RGBColor,
    /// One after another, step by step.
    pub values: Vec<f64>,
    /// The step of the first.
    pub first: usize,
}

/// Something that happened at a step.
pub struct Event {
    /// When.
    pub step: usize,
    /// What.
    pub name: String,
}

/// Curves over a common time.
pub struct Chart<'a> {
    /// Stands above it.
    pub title: &'a str,
    /// What the curves are.
    pub y: Axis,
    /// The curves; the first comes out on top.
    pub curves: &'a [Curve<'a>],
    /// Vertical lines.
    pub events: &'a [Event],
    /// Width of the column for the curves' names: charts above each other share it.
    pub names: i32,
}

impl Chart<'_> {
    /// Draws the chart over all of an area.
    pub fn draw(&self, area: &Surface<'_>, problem: &Problem) -> Result<(), DrawError> {
        let dt = problem.control_interval;
        let ends = self.curves.iter().map(|c| c.first + c.values.len());
        let steps = ends.max().unwrap_or(0).saturating_sub(1).max(1);
        let (width, height) = area.dim_in_pixel();
        let mut frame = Frame {
            x: Axis::linear(TIME, 0.0, steps as f64 * dt),
            y: self.y.clone(),
            across: (BESIDE + 14 * FINE as i32, width as i32 - self.names),
            down: (TOP, height as i32 - BELOW),
        };
        let flags = flags(&frame, self.events, dt);
        let rows = flags.iter().map(|flag| flag.row + 1).max().unwrap_or(0);
        frame.down.0 += rows * ROW;
        draw_title(area, &frame, self.title)?;
        frame.draw_grid(area)?;
        frame.draw_outline(area)?;
        frame.draw_x(area)?;
        frame.draw_y(area)?;
        // Runs that are the same up to an event coincide until then.
        for curve in self.curves.iter().rev() {
            let count = curve.values.len();
            let shown = count.min(MAX_POINTS);
            let points: Vec<(i32, i32)> = (0..shown)
                .map(|k| spread(k, shown, count))
                .map(|k| frame.place((curve.first + k) as f64 * dt, curve.values[k]))
                .collect();
            let style = curve.colour.stroke_width(2 * FINE);
            area.draw(&PathElement::new(points, style))?;
        }
        for (event, flag) in self.events.iter().zip(&flags) {
            flag.draw(area, &event.name, frame.down.1)?;
        }
        let ends = self.curves.iter().filter_map(|curve| {
            let last = curve.values.last()?;
            Some((curve.name, curve.colour, frame.place(0.0, *last).1))
        });
        draw_names(area, &frame, &ends.collect::<Vec<_>>())
    }
}

/// A title in the middle above a frame.
pub fn draw_title(area: &Surface<'_>, frame: &Frame, title: &str) -> Result<(), DrawError> {
    let middle = (frame.across.0 + frame.across.1) / 2;
    let style = font(15.0).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw(&Text::new(
        title.to_owned(),
        (middle, 8 * FINE as i32),
        style,
    ))?;
    Ok(())
}

/// Where an event's name stands above a frame: its line reaches up to it.
#[derive(Debug, PartialEq, Eq)]
struct Flag {
    /// Of the line.
    x: i32,
    /// Of the name.
    left: i32,
    row: i32,
}

/// A place for each event's name, in the first row where it does not run into another.
fn flags(frame: &Frame, events: &[Event], dt: f64) -> Vec<Flag> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&k| events[k].step);
    let mut ends: Vec<i32> = Vec::new();
    let mut flags: Vec<(usize, Flag)> = Vec::new();
    for k in order {
        let (x, _) = frame.place(events[k].step as f64 * dt, f64::INFINITY);
        let long = text_width(&events[k].name, 12.0) + 10 * FINE as i32;
        // The last ones stand to the left of their lines.
        let left = match x + long > frame.across.1 && x - long > frame.across.0 {
            true => x - long,
            false => x,
        };
        let row = match events[k].name.is_empty() {
            true => -1,
            false => {
                let free = ends.iter().position(|end| *end <= left);
                let row = free.unwrap_or(ends.len());
                ends.resize(ends.len().max(row + 1), 0);
                ends[row] = left + long;
                row as i32
            }
        };
        flags.push((k, Flag { x, left, row }));
    }
    flags.sort_by_key(|(k, _)| *k);
    flags.into_iter().map(|(_, flag)| flag).collect()
}

impl Flag {
    /// Draws the line down to `bottom` and the name.
    fn draw(&self, area: &Surface<'_>, name: &str, bottom: i32) -> Result<(), DrawError> {
        let fine = FINE as i32;
        let top = TOP + self.row.max(0) * ROW;
        let (dash, gap) = (6 * fine, 4 * fine);
        for from in (top..bottom).step_by((dash + gap) as usize) {
            let ends = [(self.x, from), (self.x, (from + dash).min(bottom))];
            area.draw(&PathElement::new(ends, BLACK.mix(0.6).stroke_width(2)))?;
        }
        area.draw(&Text::new(
            name.to_owned(),
            (self.left + 5 * fine, top),
            font(12.0).pos(Pos::new(HPos::Left, VPos::Top)),
        ))?;
        Ok(())
    }
}

/// Width of a column for names at the curves' ends.
pub fn room_for<'n>(names: impl Iterator<Item = &'n str>) -> i32 {
    let widest = names.map(|name| text_width(name, 13.0)).max().unwrap_or(0);
    widest + 22 * FINE as i32
}

/// Names in their colours to the right of a frame, near the given heights.
pub fn draw_names(
    area: &Surface<'_>,
    frame: &Frame,
    names: &[(&str, RGBColor, i32)],
) -> Result<(), DrawError> {
    let heights: Vec<i32> = names.iter().map(|(_, _, y)| *y).collect();
    let placed = apart(&heights, 17 * FINE as i32, frame.down);
    for ((name, colour, _), y) in names.iter().zip(placed) {
        let style = font(13.0).color(colour);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        let place = (frame.across.1 + 8 * FINE as i32, y);
        area.draw(&Text::new((*name).to_owned(), place, style))?;
    }
    Ok(())
}

/// Heights near the given ones, at least `gap` from each other, in the same order, between `top` and
/// `bottom` where there is room.
fn apart(heights: &[i32], gap: i32, (top, bottom): (i32, i32)) -> Vec<i32> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by_key(|&i| heights[i]);
    let mut placed = heights.to_vec();
    for _ in 0..100 {
        for pair in order.windows(2) {
            let overlap = gap - (placed[pair[1]] - placed[pair[0]]);
            if overlap > 0 {
                placed[pair[0]] -= overlap / 2;
                placed[pair[1]] += overlap - overlap / 2;
            }
        }
    }
    let lowest = order.last().map_or(0, |&i| placed[i]);
    let highest = order.first().map_or(0, |&i| placed[i]);
    let up = (bottom - lowest).min(0);
    let shift = up + (top - highest - up).max(0);
    placed.iter().map(|y| y + shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_overlap() {
        let placed = apart(&[100, 101, 300, 102], 20, (0, 400));
        assert!(placed[1] - placed[0] >= 20 && placed[3] - placed[1] >= 20);
        assert_eq!(placed[2], 300);
    }

    #[test]
    fn names_of_events_do_not_run_into_each_other() {
        let frame = Frame {
            x: Axis::linear("", 0.0, 10.0),
            y: Axis::linear("", 0.0, 1.0),
            across: (0, 1000),
            down: (0, 100),
        };
        let event = |step, name: &str| Event {
            step,
            name: name.into(),
        };
        let name = "ten letter"; // 10 · 12 · 0.58 · 2 + 20 = 159 wide
        let events = [event(9, name), event(1, name), event(2, name), event(5, "")];
        let flag = |x, left, row| Flag { x, left, row };
        assert_eq!(
            flags(&frame, &events, 1.0),
            [
                flag(900, 741, 0),
                flag(100, 100, 0),
                flag(200, 200, 1),
                flag(500, 500, -1)
            ]
        );
    }

    #[test]
    fn names_stay_beside_the_frame() {
        assert_eq!(apart(&[400, 400], 20, (0, 400)), [380, 400]);
        assert_eq!(apart(&[0, 0], 20, (0, 400)), [0, 20]);
    }
}
