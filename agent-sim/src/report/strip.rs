//! A run on a plane as a strip of tiles: its field at a few times beside the target, the error below.

use super::agents::{draw_legend, looks_in};
use super::axis::{BELOW, BESIDE, Frame, power};
use super::bar::draw_colour_bar;
use super::colour::{Scale, error_name};
use super::plane::{Plane, Tile};
use super::svg::{self, DrawError, FINE, Inlay, Surface};
use super::{PROVENANCE, Shown, font, footed, spread};
use crate::trajectory::Trajectory;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::{Episode, Problem};

/// Times that are shown.
const TIMES: usize = 5;
/// Agents up to which they are shown on top of the error too.
const MAX_ON_ERROR: usize = 128;

const WIDTH: i32 = 1400 * FINE as i32;
const BAR: i32 = 104 * FINE as i32;
const GAP: i32 = 14 * FINE as i32;
/// Gap before the colour bar.
const BEFORE_BAR: i32 = 16 * FINE as i32;
/// Above the first row, and above each row.
const HEADING: i32 = 36 * FINE as i32;
const TITLE: i32 = 24 * FINE as i32;

/// Where the tiles of a strip stand.
struct Layout {
    tile: i32,
    height: i32,
    rows: i32,
}

impl Layout {
    fn new(plane: &Plane<'_>, columns: usize, rows: i32) -> Self {
        let columns = columns as i32;
        let room = WIDTH - BESIDE - BEFORE_BAR - BAR - GAP * (columns - 1);
        // Tall planes get narrower tiles, so that a strip stays a strip.
        let tile = f64::from(room / columns) / plane.aspect().max(1.0).sqrt();
        Self {
            tile: tile as i32,
            height: (tile * plane.aspect()) as i32,
            rows,
        }
    }

    fn size(&self) -> (u32, u32) {
        let height = HEADING + self.rows * (TITLE + self.height) + BELOW;
        let height = height as u32 / FINE + 8 + PROVENANCE;
        (WIDTH as u32 / FINE, height)
    }

    fn across(&self, column: usize) -> (i32, i32) {
        let left = BESIDE + column as i32 * (self.tile + GAP);
        (left, left + self.tile)
    }

    fn top(&self, row: i32) -> i32 {
        HEADING + TITLE + row * (TITLE + self.height)
    }
}

/// The field of a run on a plane at a few times, and its error likewise.
pub fn strip_picture(
    problem: &Problem,
    episode: &Episode,
    run: &Shown<'_>,
    provenance: &str,
) -> Result<String, DrawError> {
    let trajectory = run.trajectory;
    let plane = Plane::new(problem, &trajectory.grid);
    let columns = TIMES + usize::from(problem.tracking);
    let layout = Layout::new(&plane, columns, 1 + i32::from(problem.tracking));
    let frames = frames_of(trajectory);
    svg::render(layout.size(), |surface, inlay| {
        let area = footed(surface, provenance)?;
        let heading = format!("{}: {}", run.name, problem.quantity);
        let middle = (layout.across(0).0 + layout.across(columns - 1).1) / 2;
        let style = font(15.0).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(heading, (middle, 8 * FINE as i32), style))?;
        let strip = Strip {
            problem,
            trajectory,
            plane,
            layout: &layout,
            frames: &frames,
        };
        let scale = Scale::of_field(problem, episode, &[trajectory]);
        strip.draw_fields(&area, inlay, scale)?;
        if problem.tracking {
            strip.draw_errors(&area, inlay, Scale::of_error(problem, episode))?;
        }
        let (_, height) = surface.dim_in_pixel();
        let foot = (BESIDE, (height - PROVENANCE * FINE) as i32);
        let looks = looks_in(trajectory, &frames);
        draw_legend(surface, inlay, &looks, !problem.keep_out.is_empty(), foot)
    })
}

/// The frames that are shown: start, end, and evenly between.
fn frames_of(trajectory: &Trajectory) -> Vec<usize> {
    let all = trajectory.fields.len();
    let shown = all.min(TIMES);
    (0..shown).map(|k| spread(k, shown, all)).collect()
}

struct Strip<'a> {
    problem: &'a Problem,
    trajectory: &'a Trajectory,
    plane: Plane<'a>,
    layout: &'a Layout,
    frames: &'a [usize],
}

impl Strip<'_> {
    fn draw_fields(
        &self,
        area: &Surface<'_>,
        inlay: &Inlay,
        scale: Scale,
    ) -> Result<(), DrawError> {
        let mut before = 0;
        for (column, &frame) in self.frames.iter().enumerate() {
            let time = self.trajectory.steps[frame] as f64 * self.problem.control_interval;
            let unit = if column == 0 { " time units" } else { "" };
            let tile = Tile {
                title: format!("t = {}{unit}", short(time)),
                problem: self.problem,
                plane: self.plane,
                values: &self.trajectory.fields[frame],
                scale,
                agents: Some((self.trajectory, before, frame)),
            };
            self.draw_tile(area, inlay, &tile, (column, 0))?;
            before = frame;
        }
        if self.problem.tracking {
            let tile = Tile {
                title: "target".into(),
                problem: self.problem,
                plane: self.plane,
                values: &self.trajectory.target,
                scale,
                agents: None,
            };
            self.draw_tile(area, inlay, &tile, (TIMES, 0))?;
        }
        self.draw_bar(area, inlay, scale, self.problem.quantity, 0)
    }

    fn draw_errors(
        &self,
        area: &Surface<'_>,
        inlay: &Inlay,
        scale: Scale,
    ) -> Result<(), DrawError> {
        let few = self.trajectory.paths.len() <= MAX_ON_ERROR;
        for (column, &frame) in self.frames.iter().enumerate() {
            let field = &self.trajectory.fields[frame];
            let target = self.trajectory.target_in(frame);
            let error: Vec<f32> = field.iter().zip(&*target).map(|(z, t)| z - t).collect();
            let square = self.trajectory.errors[self.trajectory.steps[frame]];
            let tile = Tile {
                title: format!("mean square {}", short(square)),
                problem: self.problem,
                plane: self.plane,
                values: &error,
                scale,
                agents: few.then_some((self.trajectory, frame, frame)),
            };
            self.draw_tile(area, inlay, &tile, (column, 1))?;
        }
        self.draw_bar(area, inlay, scale, &error_name(self.problem), 1)
    }

    fn draw_tile(
        &self,
        area: &Surface<'_>,
        inlay: &Inlay,
        tile: &Tile<'_>,
        (column, row): (usize, i32),
    ) -> Result<(), DrawError> {
        let across = self.layout.across(column);
        let frame: Frame = self.plane.frame(self.problem, across, self.layout.top(row));
        tile.draw(area, inlay, &frame)?;
        if column == 0 {
            frame.draw_y(area)?;
        }
        // The target has nothing below it.
        if row + 1 == self.layout.rows || column == TIMES {
            frame.draw_x(area)?;
        }
        Ok(())
    }

    fn draw_bar(
        &self,
        area: &Surface<'_>,
        inlay: &Inlay,
        scale: Scale,
        quantity: &str,
        row: i32,
    ) -> Result<(), DrawError> {
        let columns = TIMES + usize::from(self.problem.tracking && row == 0);
        let left = self.layout.across(columns - 1).1 + BEFORE_BAR;
        let top = self.layout.top(row);
        let sides = (top, top + self.layout.height);
        draw_colour_bar(area, inlay, &scale, quantity, left, sides)
    }
}

/// A number in three digits or fewer.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if !(1e-3..1000.0).contains(&size) => power(value),
        size => {
            let places = (2.0 - size.log10().floor()).clamp(0.0, 5.0) as usize;
            let text = format!("{value:.places$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

/// The ends of several runs on a plane side by side, with the target.
pub fn draw_ends(
    area: &Surface<'_>,
    inlay: &Inlay,
    problem: &Problem,
    runs: &[Shown<'_>],
    scale: Scale,
) -> Result<(), DrawError> {
    let Some(first) = runs.first() else {
        return Ok(());
    };
    let plane = Plane::new(problem, &first.trajectory.grid);
    let (width, height) = area.dim_in_pixel();
    let columns = runs.len() as i32 + i32::from(problem.tracking);
    let wide = (width as i32 - BESIDE - BEFORE_BAR - BAR - GAP * (columns - 1)) / columns;
    let high = height as i32 - HEADING - BELOW;
    let wide = wide.min((f64::from(high) / plane.aspect()) as i32);
    let across = |column: i32| {
        let left = BESIDE + column * (wide + GAP);
        (left, left + wide)
    };
    let ends = runs.iter().filter_map(|run| {
        let frame = run.trajectory.fields.len().checked_sub(1)?;
        Some(Tile {
            title: format!("{}, at the end", run.name),
            problem,
            plane,
            values: &run.trajectory.fields[frame],
            scale,
            agents: Some((run.trajectory, frame, frame)),
        })
    });
    let target = problem.tracking.then(|| Tile {
        title: "target".into(),
        problem,
        plane,
        values: &first.trajectory.target,
        scale,
        agents: None,
    });
    for (column, tile) in (0..).zip(ends.chain(target)) {
        let frame = plane.frame(problem, across(column), HEADING);
        tile.draw(area, inlay, &frame)?;
        frame.draw_x(area)?;
        if column == 0 {
            frame.draw_y(area)?;
        }
    }
    let left = across(columns - 1).1 + BEFORE_BAR;
    let sides = plane.frame(problem, across(0), HEADING).down;
    draw_colour_bar(area, inlay, &scale, problem.quantity, left, sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.3, 0.075, 12.34, 500.0, 2.04e-4, 86.0].map(short);
        assert_eq!(texts, ["0", "0.3", "0.075", "12.3", "500", "2·10⁻⁴", "86"]);
    }
}
