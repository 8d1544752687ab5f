//! Space–time pictures: the field over position and time, the agents' paths on top.

use super::colour::diverging;
use super::svg::{Bitmaps, DrawError, FINE, Surface};
use super::{MAX_POINTS, font, label, spread};
use crate::problem::Problem;
use crate::trajectory::{Path, Trajectory};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Most columns and rows of a field's bitmap.
const MAX_PIXELS: usize = 200;

const TOP: u32 = 34 * FINE;
const BOTTOM: u32 = 42 * FINE;
const LEFT: u32 = 58 * FINE;
const MARGIN: u32 = 8 * FINE;
const STRIP: u32 = 18 * FINE;
const GAP: u32 = 5 * FINE;

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
    /// The value of the deepest colours.
    pub scale: f64,
}

impl Panel<'_> {
    /// Draws the panel, with the target as a strip to the right of a field.
    pub fn draw(&self, area: &Surface<'_>, bitmaps: &Bitmaps) -> Result<(), DrawError> {
        let (width, height) = area.dim_in_pixel();
        let strip = match self.quantity {
            Quantity::Field => STRIP + GAP,
            Quantity::Error => 0,
        };
        let right_margin = 16 * FINE;
        let plot_width = width - strip - right_margin;
        let plot = area.clone().shrink((0, 0), (plot_width, height));
        let (low, high) = (self.trajectory.grid.low[0], self.trajectory.grid.high[0]);
        let steps = self.trajectory.steps.last().copied().unwrap_or(0).max(1);
        let end = steps as f64 * self.problem.control_interval;

        area.draw(&Text::new(
            self.title.to_owned(),
            ((LEFT + (plot_width - LEFT) / 2) as i32, 8 * FINE as i32),
            label(15.0).pos(Pos::new(HPos::Center, VPos::Top)),
        ))?;
        let mut chart = ChartBuilder::on(&plot)
            .margin_top(TOP)
            .x_label_area_size(BOTTOM)
            .margin_left(MARGIN)
            .y_label_area_size(LEFT - MARGIN)
            .build_cartesian_2d(0.0..end, low..high)?;
        let corners = [(0.0, high), (end, low)];
        let history = Rectangle::new(corners, self.history(bitmaps)?);
        chart.draw_series(std::iter::once(history))?;
        for path in &self.trajectory.paths {
            self.draw_path(&mut chart, path, end)?;
        }
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("time")
            .y_desc("position x")
            .x_labels(4)
            .y_labels(5)
            .x_label_formatter(&|t| format!("{t:.1}"))
            .y_label_formatter(&|x| format!("{x:.1}"))
            .label_style(font(12.0))
            .axis_desc_style(font(13.0))
            .draw()?;
        if self.quantity == Quantity::Field {
            let x = (plot_width + GAP) as i32;
            let y = (TOP as i32, (height - BOTTOM) as i32);
            self.draw_target(area, bitmaps, x, y)?;
        }
        Ok(())
    }

    /// The history as a bitmap: time to the right, position upwards.
    fn history(&self, bitmaps: &Bitmaps) -> Result<ShapeStyle, DrawError> {
        let fields = &self.trajectory.fields;
        let points = self.trajectory.grid.len();
        let (columns, rows) = (fields.len().min(MAX_PIXELS), points.min(MAX_PIXELS));
        let mut rgb = Vec::with_capacity(3 * columns * rows);
        for row in (0..rows).rev() {
            let j = spread(row, rows, points);
            for column in 0..columns {
                let field = &fields[spread(column, columns, fields.len())];
                let value = match self.quantity {
                    Quantity::Field => field[j],
                    Quantity::Error => field[j] - self.trajectory.target[j],
                };
                rgb.extend(diverging(f64::from(value) / self.scale));
            }
        }
        bitmaps.fill((columns as u32, rows as u32), &rgb)
    }

    fn draw_path<'c, DB: DrawingBackend + 'c>(
        &self,
        chart: &mut ChartContext<'c, DB, impl_coord::Plane>,
        path: &Path,
        end: f64,
    ) -> Result<(), DrawError>
    where
        DB::ErrorType: 'static,
    {
        let dt = self.problem.control_interval;
        let silent = path.silent_from();
        let alive = silent.unwrap_or(path.positions.len()).max(1);
        let strokes = Strokes::among(self.trajectory.paths.len());
        let shown = alive.min(strokes.points);
        let points: Vec<(f64, f64)> = (0..shown)
            .map(|k| spread(k, shown, alive))
            .map(|frame| {
                let time = self.trajectory.steps[frame] as f64 * dt;
                (time, path.positions[frame][0])
            })
            .collect();
        let last = points.last().copied();
        for (colour, width) in strokes.path {
            let style = colour.stroke_width(width);
            chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        }
        if let (Some(_), Some(death)) = (silent, last) {
            for (colour, width) in strokes.dead {
                let style = colour.stroke_width(width);
                chart.draw_series(LineSeries::new([death, (end, death.1)], style))?;
            }
            for (colour, width) in strokes.cross {
                let style = colour.stroke_width(width);
                let cross = Cross::new(death, strokes.cross_size, style);
                chart.draw_series(std::iter::once(cross))?;
            }
        }
        Ok(())
    }

    /// The target as a strip between heights `y`, at `x`.
    fn draw_target(
        &self,
        area: &Surface<'_>,
        bitmaps: &Bitmaps,
        x: i32,
        y: (i32, i32),
    ) -> Result<(), DrawError> {
        let (left, right) = (x, x + STRIP as i32);
        let rgb: Vec<u8> = self
            .trajectory
            .target
            .iter()
            .rev()
            .flat_map(|&t| diverging(f64::from(t) / self.scale))
            .collect();
        draw_strip(area, bitmaps, [(left, y.0), (right, y.1)], &rgb)?;
        area.draw(&Text::new(
            "target",
            ((left + right) / 2, y.0 - 4 * FINE as i32),
            label(12.0).pos(Pos::new(HPos::Center, VPos::Bottom)),
        ))?;
        Ok(())
    }
}

/// A framed column of colours.
fn draw_strip(
    area: &Surface<'_>,
    bitmaps: &Bitmaps,
    corners: [(i32, i32); 2],
    rgb: &[u8],
) -> Result<(), DrawError> {
    // Two equal columns: viewers fade a single one out towards its sides.
    let rows = rgb.len() as u32 / 3;
    let doubled: Vec<u8> = rgb.chunks(3).flat_map(|p| [p, p].concat()).collect();
    area.draw(&Rectangle::new(corners, bitmaps.fill((2, rows), &doubled)?))?;
    area.draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
    Ok(())
}

/// A colour bar from −scale to scale, as high as the panels beside it.
pub fn draw_colour_bar(
    area: &Surface<'_>,
    bitmaps: &Bitmaps,
    scale: f64,
    title: &str,
) -> Result<(), DrawError> {
    let (_, height) = area.dim_in_pixel();
    let (top, bottom) = (TOP as i32, (height - BOTTOM) as i32);
    let (left, right) = (4 * FINE as i32, (4 * FINE + STRIP) as i32);
    let rgb: Vec<u8> = (0..=100)
        .rev()
        .flat_map(|k| diverging(f64::from(k) / 50.0 - 1.0))
        .collect();
    draw_strip(area, bitmaps, [(left, top), (right, bottom)], &rgb)?;
    for share in [-1.0, -0.5, 0.0, 0.5, 1.0] {
        let y = f64::from(bottom) + (share + 1.0) / 2.0 * f64::from(top - bottom);
        let y = y.round() as i32;
        area.draw(&PathElement::new(
            [(right, y), (right + 3 * FINE as i32, y)],
            BLACK.stroke_width(1),
        ))?;
        area.draw(&Text::new(
            format!("{:.1}", share * scale).replace('-', "−"),
            (right + 6 * FINE as i32, y),
            label(12.0).pos(Pos::new(HPos::Left, VPos::Center)),
        ))?;
    }
    area.draw(&Text::new(
        title.to_owned(),
        (left, 10 * FINE as i32),
        label(13.0).pos(Pos::new(HPos::Left, VPos::Top)),
    ))?;
    Ok(())
}

/// How paths are drawn: black on a white casing, or thin where there are many.
struct Strokes {
    points: usize,
    path: [(RGBAColor, u32); 2],
    dead: [(RGBAColor, u32); 2],
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
        match paths {
            0..=24 => Self {
                points: MAX_POINTS,
                path: [(white(0.75), 7), (black(1.0), 3)],
                dead: [(white(0.5), 3), (black(0.5), 1)],
                cross: [(white(1.0), 7), (black(1.0), 4)],
                cross_size: 5 * FINE as i32,
            },
            _ => Self {
                points: MAX_POINTS / 3,
                path: [(none, 1), (black(0.8), 2)],
                dead: [(none, 1), (black(0.25), 1)],
                cross: [(none, 1), (black(1.0), 2)],
                cross_size: 2 * FINE as i32,
            },
        }
    }
}

/// Names the type of a plane's coordinates once.
mod impl_coord {
    use plotters::coord::types::RangedCoordf64;
    use plotters::prelude::Cartesian2d;

    pub type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
}
