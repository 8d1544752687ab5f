//! Films of runs: animated GIFs that loop for ever.
//!
//! On a plane each run is the field with its agents; on a line it is the profile over the target,
//! with the agents along the foot. A strip at the bottom fills up as time goes by.

use super::agents::Look;
use super::canvas::Canvas;
use super::colour::{AMBER, Scale};
use super::plane::{Plane, radius_among};
use super::{RGBColor, Shown, spread};
use crate::trajectory::Trajectory;
use gif::{DisposalMethod, Encoder, Frame, Repeat};
use problem::{Episode, Problem};
use rayon::prelude::*;

/// Most runs in a film.
const MAX_RUNS: usize = 4;
/// Hundredths of a second per frame, and for the last before it starts again.
const DELAY: u16 = 5;
const LAST_DELAY: u16 = 150;
/// Colours of the map and frames, from the finest down until the film is small enough. An odd number
/// of colours has one for zero.
const QUALITIES: [(usize, usize); 6] = [
    (129, 120),
    (65, 120),
    (41, 100),
    (25, 80),
    (25, 50),
    (17, 40),
];
/// Bytes that a film may have.
const MAX_BYTES: usize = 7 << 19;

/// Width of a film of one run, and of one of several.
const WIDTH: usize = 480;
const WIDE: usize = 960;
/// Between panes, and height of the stripe in a run's colour above its pane.
const GAP: usize = 8;
const STRIPE: usize = 6;
/// Height of the strip that shows time.
const PROGRESS: usize = 8;

// Colours after those of the map.
const BLACK: usize = 0;
const WHITE: usize = 1;
const GREY: usize = 2;
const LIGHT: usize = 3;
const HOLDING: usize = 4;
const RUNS: usize = 5;
const UNCHANGED: usize = RUNS + MAX_RUNS;
const EXTRA: usize = UNCHANGED + 1;

/// A film could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilmError {
    /// Nothing to show.
    #[error("a film needs a run with at least one frame")]
    Empty,
    /// More than find room side by side.
    #[error("a film shows at most {MAX_RUNS} runs, not {0}")]
    TooMany(usize),
    /// The encoder refused.
    #[error("a film could not be written: {0}")]
    Encoding(#[from] gif::EncodingError),
}

/// An animated GIF of runs of the same episode: side by side on a plane, each under a stripe in its
/// colour and the target last; as curves in their colours on a line, with the first run's agents.
pub fn film(
    problem: &Problem,
    episode: &Episode,
    runs: &[Shown<'_>],
) -> Result<Vec<u8>, FilmError> {
    if runs.len() > MAX_RUNS {
        return Err(FilmError::TooMany(runs.len()));
    }
    let count = runs.iter().map(|run| run.trajectory.fields.len()).min();
    let count = count.filter(|count| *count > 0).ok_or(FilmError::Empty)?;
    let trajectories: Vec<&Trajectory> = runs.iter().map(|run| run.trajectory).collect();
    let scale = Scale::of_field(problem, episode, &trajectories);
    let mut bytes = Vec::new();
    for (levels, frames) in QUALITIES {
        let studio = Studio {
            problem,
            runs,
            scale,
            levels,
            count,
            shown: count.min(frames),
        };
        let coarsest = (levels, frames) == QUALITIES[QUALITIES.len() - 1];
        if studio.guess() > MAX_BYTES && !coarsest {
            continue;
        }
        bytes = studio.shoot()?;
        if bytes.len() <= MAX_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// What all frames of a film have in common.
struct Studio<'a> {
    problem: &'a Problem,
    runs: &'a [Shown<'a>],
    scale: Scale,
    /// Colours of the map.
    levels: usize,
    /// Frames of the runs, and how many of them are shown.
    count: usize,
    shown: usize,
}

impl Studio<'_> {
    /// The film.
    fn shoot(&self) -> Result<Vec<u8>, FilmError> {
        let still = self.backdrop();
        let frames: Vec<usize> = (0..self.shown).collect();
        let canvases: Vec<Canvas> = frames.par_iter().map(|k| self.paint(&still, *k)).collect();
        let images: Vec<Frame<'_>> = frames
            .par_iter()
            .map(|&k| {
                let mut image = match k {
                    0 => self.whole(&canvases[0]),
                    _ => self.changes(&canvases[k - 1], &canvases[k]),
                };
                image.delay = if k + 1 == self.shown {
                    LAST_DELAY
                } else {
                    DELAY
                };
                image.make_lzw_pre_encoded();
                image
            })
            .collect();
        let mut bytes = Vec::new();
        let (width, height) = still.size();
        {
            let size = (width as u16, height as u16);
            let mut encoder = Encoder::new(&mut bytes, size.0, size.1, &self.palette())?;
            encoder.set_repeat(Repeat::Infinite)?;
            for image in &images {
                encoder.write_lzw_pre_encoded_frame(image)?;
            }
        }
        Ok(bytes)
    }

    /// About how many bytes the film will have, from a few of its frames.
    fn guess(&self) -> usize {
        const SAMPLES: usize = 6;
        let still = self.backdrop();
        if self.shown <= 2 * SAMPLES {
            return 0;
        }
        let bytes: usize = (0..SAMPLES)
            .into_par_iter()
            .map(|k| {
                let k = spread(k, SAMPLES, self.shown - 1);
                let (before, after) = (self.paint(&still, k), self.paint(&still, k + 1));
                let mut image = self.changes(&before, &after);
                image.make_lzw_pre_encoded();
                image.buffer.len()
            })
            .sum();
        bytes * self.shown / SAMPLES
    }

    /// Frame `k` of the film.
    fn paint(&self, still: &Canvas, k: usize) -> Canvas {
        let mut canvas = still.clone();
        let frame = spread(k, self.shown, self.count);
        match self.problem.grid.axes {
            2 => self.paint_planes(&mut canvas, frame),
            _ => self.paint_profiles(&mut canvas, frame),
        }
        let (width, height) = canvas.size();
        let done = (width * (k + 1) / self.shown, height);
        canvas.fill((0, height - PROGRESS), done, self.extra(GREY));
        canvas
    }

    fn extra(&self, colour: usize) -> u8 {
        (self.levels + colour) as u8
    }

    /// The map's colours, then the others.
    fn palette(&self) -> Vec<u8> {
        let last = (self.levels - 1) as f64;
        let map = (0..self.levels).map(|k| self.scale.at(k as f64 / last));
        let mut others = [[0; 3]; EXTRA];
        others[WHITE] = [0xff; 3];
        others[GREY] = [0x7a; 3];
        others[LIGHT] = [0xdd; 3];
        others[HOLDING] = AMBER;
        for (run, colour) in self.runs.iter().zip(&mut others[RUNS..]) {
            let RGBColor(r, g, b) = run.colour;
            *colour = [r, g, b];
        }
        map.chain(others).flatten().collect()
    }

    fn whole(&self, canvas: &Canvas) -> Frame<'static> {
        self.image((0, 0), canvas.size(), canvas.pixels.clone())
    }

    /// The smallest image that turns one frame into the next.
    fn changes(&self, before: &Canvas, canvas: &Canvas) -> Frame<'static> {
        let (width, height) = canvas.size();
        let differ = |i: usize| before.pixels[i] != canvas.pixels[i];
        let changed: Vec<usize> = (0..width * height).filter(|&i| differ(i)).collect();
        let columns = || changed.iter().map(|i| i % width);
        let (left, right) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
        let rows = || changed.iter().map(|i| i / width);
        let (top, bottom) = (rows().min().unwrap_or(0), rows().max().unwrap_or(0));
        let pixels = (top..=bottom)
            .flat_map(|y| (left..=right).map(move |x| y * width + x))
            .map(|i| match differ(i) {
                true => canvas.pixels[i],
                false => self.extra(UNCHANGED),
            })
            .collect();
        self.image((left, top), (right + 1 - left, bottom + 1 - top), pixels)
    }

    fn image(
        &self,
        (left, top): (usize, usize),
        (width, height): (usize, usize),
        pixels: Vec<u8>,
    ) -> Frame<'static> {
        Frame {
            left: left as u16,
            top: top as u16,
            width: width as u16,
            height: height as u16,
            dispose: DisposalMethod::Keep,
            transparent: Some(self.extra(UNCHANGED)),
            buffer: pixels.into(),
            ..Frame::default()
        }
    }

    /// Runs, and the target of a plane that has one.
    fn panes(&self) -> usize {
        self.runs.len() + usize::from(self.problem.tracking)
    }

    /// Columns and rows of one pane of a plane.
    fn pane(&self) -> (usize, usize) {
        let panes = self.panes();
        let width = match panes {
            1 => WIDTH,
            _ => ((WIDE - GAP * (panes - 1)) / panes).min(WIDTH),
        };
        let plane = Plane::new(self.problem, &self.runs[0].trajectory.grid);
        let height = (width as f64 * plane.aspect()).round() as usize;
        // Tall planes are made narrower.
        match height > 2 * WIDTH {
            true => (width * 2 * WIDTH / height, 2 * WIDTH),
            false => (width, height.max(1)),
        }
    }

    /// What does not move.
    fn backdrop(&self) -> Canvas {
        let (width, height) = match self.problem.grid.axes {
            2 => {
                let (width, height) = self.pane();
                let panes = self.panes();
                (panes * width + GAP * (panes - 1), STRIPE + height)
            }
            _ => (640, 400),
        };
        let total = height + PROGRESS + 2;
        let mut canvas = Canvas::new(width, total, self.extra(WHITE));
        let strip = (0, total - PROGRESS);
        canvas.fill(strip, (width, total), self.extra(LIGHT));
        if self.problem.grid.axes == 2 {
            let (width, _) = self.pane();
            for run in 0..self.panes() {
                let left = run * (width + GAP);
                let colour = match run < self.runs.len() {
                    true => self.extra(RUNS + run),
                    false => self.extra(LIGHT),
                };
                canvas.fill((left, 0), (left + width, STRIPE - 2), colour);
            }
            if self.problem.tracking {
                let target = &self.runs[0].trajectory.target;
                self.paint_plane(&mut canvas, self.runs.len(), target);
            }
        }
        canvas
    }

    fn paint_plane(&self, canvas: &mut Canvas, pane: usize, field: &[f32]) {
        let size = self.pane();
        let plane = Plane::new(self.problem, &self.runs[0].trajectory.grid);
        let last = (self.levels - 1) as f64;
        let raster = plane.raster(field, size);
        let pixels: Vec<u8> = raster
            .iter()
            .map(|v| (self.scale.share(*v) * last).round() as u8)
            .collect();
        canvas.paste((pane * (size.0 + GAP), STRIPE), size.0, &pixels);
        for zone in self.problem.keep_out {
            let radius = zone.radius / plane.width() * size.0 as f64;
            let place = self.on_canvas(&plane, pane, zone.centre);
            canvas.circle(place, radius, 1.6, self.extra(WHITE));
            canvas.dashed_circle(place, radius, 1.1, self.extra(BLACK));
        }
    }

    fn on_canvas(&self, plane: &Plane<'_>, pane: usize, place: [f64; 2]) -> (f64, f64) {
        let (width, height) = self.pane();
        let (right, up) = plane.share(place);
        (
            (pane * (width + GAP)) as f64 + right * width as f64,
            STRIPE as f64 + (1.0 - up) * height as f64,
        )
    }

    fn paint_planes(&self, canvas: &mut Canvas, frame: usize) {
        for (pane, run) in self.runs.iter().enumerate() {
            let trajectory = run.trajectory;
            self.paint_plane(canvas, pane, &trajectory.fields[frame]);
            let plane = Plane::new(self.problem, &trajectory.grid);
            let radius = radius_among(trajectory.paths.len(), self.pane().0 as f64).max(2.2);
            let place = |place| self.on_canvas(&plane, pane, place);
            self.paint_agents(canvas, trajectory, frame, place, radius);
        }
    }

    /// The silent on top: they must not be overlooked.
    fn paint_agents(
        &self,
        canvas: &mut Canvas,
        run: &Trajectory,
        frame: usize,
        on_canvas: impl Fn([f64; 2]) -> (f64, f64),
        radius: f64,
    ) {
        for silent in [false, true] {
            for path in &run.paths {
                let look = Look::of(path.modes[frame]);
                if (look == Look::Silent) == silent {
                    self.paint_agent(canvas, on_canvas(path.positions[frame]), look, radius);
                }
            }
        }
    }

    fn paint_agent(&self, canvas: &mut Canvas, place: (f64, f64), look: Look, radius: f64) {
        let fill = match look {
            Look::Acting => WHITE,
            Look::Holding => HOLDING,
            Look::Silent => {
                let width = (0.3 * radius).max(0.8);
                canvas.cross(place, radius, width + 1.0, self.extra(WHITE));
                return canvas.cross(place, radius, width, self.extra(BLACK));
            }
        };
        canvas.disc(place, radius + 1.0, self.extra(BLACK));
        canvas.disc(place, radius, self.extra(fill));
    }

    /// Profiles over the target, the zero line and the first run's agents along the foot.
    fn paint_profiles(&self, canvas: &mut Canvas, frame: usize) {
        let (width, height) = canvas.size();
        let grid = &self.runs[0].trajectory.grid;
        let (left, right) = (12.0, width as f64 - 12.0);
        let (top, bottom) = (12.0, (height - PROGRESS) as f64 - 46.0);
        let foot = (height - PROGRESS) as f64 - 20.0;
        let across = |x: f64| left + (x - grid.low[0]) / grid.extent(0) * (right - left);
        let up = |value: f32| bottom + self.scale.share(value) * (top - bottom);
        let light = self.extra(LIGHT);
        canvas.line((left, up(0.0)), (right, up(0.0)), 0.6, light);
        canvas.line((left, foot), (right, foot), 0.6, self.extra(GREY));
        let profile = |field: &[f32]| -> Vec<(f64, f64)> {
            let values = field.iter().enumerate();
            values
                .map(|(j, v)| (across(grid.coordinate(0, j)), up(*v)))
                .collect()
        };
        if self.problem.tracking {
            let points = profile(&self.runs[0].trajectory.target_in(frame));
            dashed(canvas, &points, self.extra(GREY));
        }
        // The first run comes out on top.
        for (run, shown) in self.runs.iter().enumerate().rev() {
            let points = profile(&shown.trajectory.fields[frame]);
            for pair in points.windows(2) {
                canvas.line(pair[0], pair[1], 1.6, self.extra(RUNS + run));
            }
        }
        let trajectory = self.runs[0].trajectory;
        let apart = (right - left) / trajectory.paths.len().max(1) as f64;
        let place = |place: [f64; 2]| (across(place[0]), foot);
        let radius = (0.3 * apart).clamp(2.5, 7.0);
        self.paint_agents(canvas, trajectory, frame, place, radius);
    }
}

/// A polyline in dashes of ten pixels.
fn dashed(canvas: &mut Canvas, points: &[(f64, f64)], colour: u8) {
    let mut gone = 0.0;
    for pair in points.windows(2) {
        let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        let length = dx.hypot(dy);
        let parts = length.ceil().max(1.0) as usize;
        for k in 0..parts {
            let share = |k: usize| k as f64 / parts as f64;
            let at = |s: f64| (pair[0].0 + s * dx, pair[0].1 + s * dy);
            if (gone + share(k) * length) % 16.0 < 10.0 {
                canvas.line(at(share(k)), at(share(k + 1)), 1.1, colour);
            }
        }
        gone += length;
    }
}
