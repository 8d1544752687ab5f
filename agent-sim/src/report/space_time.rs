//! Space–time pictures: the field over position and time, the agents' paths on top.

use super::agents::Look;
use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::bar::{STRIP, draw_strip};
use super::colour::{AMBER, Scale};
use super::svg::{DrawError, FINE, Inlay, Surface};
use super::{MAX_POINTS, TIME, font, spread, wraps};
use crate::trajectory::{Path, Trajectory};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::Problem;

/// Most columns and rows of a field's bitmap.
const MAX_PIXELS: usize = 200;
/// Most paths in a panel: more would hide the field.
const MAX_PATHS: usize = 64;

const TOP: i32 = 34 * FINE as i32;
const GAP: i32 = 5 * FINE as i32;
const RIGHT: i32 = 16 * FINE as i32;

/// What a panel shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The field.
    Field,
    /// The field minus its target.
    Error,
}

/// One space–time panel.
pub struct Panel<'a> {
    /// Stands above it.
    pub title: &'a str,
    /// For the axes.
    pub problem: &'a Problem,
    /// What happened.
    pub trajectory: &'a Trajectory,
    /// What is shown.
    pub quantity: Quantity,
    /// In which colours.
    pub scale: Scale,
}

/// Upper and lower side of panels in an area of that height.
pub fn sides(height: u32) -> (i32, i32) {
    (TOP, height as i32 - BELOW)
}

impl Panel<'_> {
    /// Draws the panel, with the target as a strip to the right of a field that has one.
    pub fn draw(&self, area: &Surface<'_>, inlay: &Inlay) -> Result<(), DrawError> {
        let (width, height) = area.dim_in_pixel();
        let target = self.quantity == Quantity::Field && self.problem.tracking;
        let right = width as i32 - RIGHT - if target { STRIP + GAP } else { 0 };
        let grid = &self.trajectory.grid;
        let steps = self.trajectory.steps.last().copied().unwrap_or(0).max(1);
        let end = steps as f64 * self.problem.control_interval;
        let place = format!("position {}", self.problem.axis_names[0]);
        let paths = &self.trajectory.paths;
        let shown = paths.len().min(MAX_PATHS);
        let time = match shown < paths.len() {
            true => format!("{TIME}, with the paths of {shown} agents"),
            false => TIME.into(),
        };
        let frame = Frame {
            x: Axis::linear(time, 0.0, end),
            y: Axis::linear(place, grid.low[0], grid.high[0]),
            across: (BESIDE, right),
            down: sides(height),
        };
        area.draw(&Text::new(
            self.title.to_owned(),
            ((BESIDE + right) / 2, 8 * FINE as i32),
            font(15.0).pos(Pos::new(HPos::Center, VPos::Top)),
        ))?;
        if !self.trajectory.fields.is_empty() {
            let history = Rectangle::new(frame.corners(), self.history(inlay)?);
            area.draw(&history)?;
        }
        for k in 0..shown {
            let path = &paths[spread(k, shown, paths.len())];
            self.draw_path(area, &frame, path, &Strokes::among(shown))?;
        }
        frame.draw_outline(area)?;
        frame.draw_x(area)?;
        frame.draw_y(area)?;
        if target {
            self.draw_target(area, inlay, right + GAP, frame.down)?;
        }
        Ok(())
    }

    /// The history as a bitmap: time to the right, position upwards.
    fn history(&self, inlay: &Inlay) -> Result<ShapeStyle, DrawError> {
        let fields = &self.trajectory.fields;
        let points = fields[0].len();
        let (columns, rows) = (fields.len().min(MAX_PIXELS), points.min(MAX_PIXELS));
        let targets: Vec<_> = (0..fields.len())
            .map(|frame| self.trajectory.target_in(frame))
            .collect();
        let mut rgb = Vec::with_capacity(3 * columns * rows);
        for row in (0..rows).rev() {
            let j = spread(row, rows, points);
            for column in 0..columns {
                let frame = spread(column, columns, fields.len());
                let value = match self.quantity {
                    Quantity::Field => fields[frame][j],
                    Quantity::Error => fields[frame][j] - targets[frame][j],
                };
                rgb.extend(self.scale.colour(value));
            }
        }
        inlay.fill((columns as u32, rows as u32), &rgb)
    }

    fn draw_path(
        &self,
        area: &Surface<'_>,
        frame: &Frame,
        path: &Path,
        strokes: &Strokes,
    ) -> Result<(), DrawError> {
        let dt = self.problem.control_interval;
        let time = |frame: usize| self.trajectory.steps[frame] as f64 * dt;
        let silent = path.silent_from();
        let alive = silent.unwrap_or(path.positions.len()).max(1);
        let shown = alive.min(strokes.points);
        let frames: Vec<usize> = (0..shown).map(|k| spread(k, shown, alive)).collect();
        let pieces = self.pieces(path, &frames);
        // All casings first: they must not cut through the next piece.
        for layer in 0..2 {
            for (look, frames) in &pieces {
                let (colour, width) = match look {
                    Look::Acting => strokes.path[layer],
                    Look::Holding => strokes.holding[layer],
                    Look::Silent => strokes.silent[layer],
                };
                let points = frames.iter();
                let points = points.map(|&f| frame.place(time(f), path.positions[f][0]));
                let points: Vec<(i32, i32)> = points.collect();
                area.draw(&PathElement::new(points, colour.stroke_width(width)))?;
            }
        }
        let (Some(_), Some(&last)) = (silent, frames.last()) else {
            return Ok(());
        };
        let death = frame.place(time(last), path.positions[last][0]);
        for (colour, width) in strokes.silent {
            let rest = [death, (frame.across.1, death.1)];
            area.draw(&PathElement::new(rest, colour.stroke_width(width)))?;
        }
        for (colour, width) in strokes.cross {
            let style = colour.stroke_width(width);
            area.draw(&Cross::new(death, strokes.cross_size, style))?;
        }
        Ok(())
    }

    /// Frames of a path in pieces of one look each, cut where the agent goes around a torus.
    fn pieces(&self, path: &Path, frames: &[usize]) -> Vec<(Look, Vec<usize>)> {
        let mut pieces: Vec<(Look, Vec<usize>)> = Vec::new();
        for &frame in frames {
            let look = Look::of(path.modes[frame]);
            let place = path.positions[frame];
            match pieces.last_mut() {
                Some((its, piece)) => {
                    let before = piece[piece.len() - 1];
                    let cut = wraps(&self.trajectory.grid, path.positions[before], place);
                    if cut {
                        pieces.push((look, vec![frame]));
                    } else if *its == look {
                        piece.push(frame);
                    } else {
                        pieces.push((look, vec![before, frame]));
                    }
                }
                None => pieces.push((look, vec![frame])),
            }
        }
        pieces.retain(|(_, piece)| piece.len() > 1);
        pieces
    }

    /// The target as a strip between heights `y`, at `x`.
    fn draw_target(
        &self,
        area: &Surface<'_>,
        inlay: &Inlay,
        x: i32,
        y: (i32, i32),
    ) -> Result<(), DrawError> {
        let target = self.trajectory.target.iter().rev();
        let rgb: Vec<u8> = target.flat_map(|&t| self.scale.colour(t)).collect();
        draw_strip(area, inlay, [(x, y.0), (x + STRIP, y.1)], &rgb)?;
        area.draw(&Text::new(
            "target",
            (x + STRIP / 2, y.0 - 4 * FINE as i32),
            font(12.0).pos(Pos::new(HPos::Center, VPos::Bottom)),
        ))?;
        Ok(())
    }
}

/// How paths are drawn: black on a white casing, or thin where there are many.
struct Strokes {
    points: usize,
    path: [(RGBAColor, u32); 2],
    holding: [(RGBAColor, u32); 2],
    silent: [(RGBAColor, u32); 2],
    cross: [(RGBAColor, u32); 2],
    cross_size: i32,
}

impl Strokes {
    /// For a picture with this many paths.
    fn among(paths: usize) -> Self {
        let (white, black, none) = (
            |share| WHITE.mix(share),
            |share| BLACK.mix(share),
            TRANSPARENT,
        );
        let [r, g, b] = AMBER;
        let amber = RGBColor(r, g, b).mix(1.0);
        match paths {
            0..=24 => Self {
                points: MAX_POINTS,
                path: [(white(0.75), 7), (black(1.0), 3)],
                holding: [(black(0.9), 8), (amber, 5)],
                silent: [(white(0.5), 3), (black(0.5), 1)],
                cross: [(white(1.0), 7), (black(1.0), 4)],
                cross_size: 5 * FINE as i32,
            },
            _ => Self {
                points: MAX_POINTS / 3,
                path: [(none, 1), (black(0.8), 2)],
                holding: [(black(0.8), 5), (amber, 3)],
                silent: [(none, 1), (black(0.25), 1)],
                cross: [(white(0.8), 5), (black(1.0), 3)],
                cross_size: 3 * FINE as i32,
            },
        }
    }
}
