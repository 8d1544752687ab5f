//! Pictures of fields on a plane: what it looked like at a few times, with the agents on top.

use super::agents::{Look, draw_agents, draw_zone};
use super::axis::{Axis, Frame};
use super::colour::Scale;
use super::svg::{DrawError, FINE, Inlay, Surface};
use super::{font, spread, wraps};
use crate::trajectory::{Path, Trajectory};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use problem::Problem;
use problem::grid::{Edge, Grid};

/// Most columns and rows of a field's bitmap.
const MAX_PIXELS: usize = 128;
/// Agents up to which their ways since the last tile are shown.
const MAX_TRAILS: usize = 64;

/// A plane as pictures show it: x to the right.
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    grid: &'a Grid,
    /// The array axis that runs to the right; the other runs upwards.
    right: usize,
}

impl<'a> Plane<'a> {
    /// Fields of this problem on that grid.
    pub fn new(problem: &Problem, grid: &'a Grid) -> Self {
        let right = problem.axis_names.iter().position(|name| *name == "x");
        Self {
            grid,
            right: right.unwrap_or(0),
        }
    }

    fn up(&self) -> usize {
        1 - self.right
    }

    /// Extent to the right, in the problem's units.
    pub fn width(&self) -> f64 {
        self.grid.extent(self.right)
    }

    /// Height over width.
    pub fn aspect(&self) -> f64 {
        self.grid.extent(self.up()) / self.width()
    }

    /// A place's coordinates to the right and upwards, as shares of the plane's sides.
    pub fn share(&self, place: [f64; 2]) -> (f64, f64) {
        let share = |axis: usize| (place[axis] - self.grid.low[axis]) / self.grid.extent(axis);
        (share(self.right), share(self.up()))
    }

    /// The field between its grid points, at shares of the plane's sides.
    fn value(&self, field: &[f32], share: (f64, f64)) -> f32 {
        let mut cells = [(0, 0, 0.0); 2];
        for (axis, share) in [(self.right, share.0), (self.up(), share.1)] {
            let points = self.grid.points[axis];
            let s = share * self.grid.extent(axis) / self.grid.spacing(axis);
            let last = points - 1;
            let cell = (s.max(0.0) as usize).min(last);
            let next = match self.grid.edges[axis] {
                Edge::Wall => (cell + 1).min(last),
                Edge::Periodic => (cell + 1) % points,
            };
            cells[axis] = (cell, next, (s - cell as f64).clamp(0.0, 1.0) as f32);
        }
        let [(i, i1, a), (j, j1, b)] = cells;
        let at = |i: usize, j: usize| field[i * self.grid.points[1] + j];
        let row = |i| at(i, j) + b * (at(i, j1) - at(i, j));
        row(i) + a * (row(i1) - row(i))
    }

    /// The field as a bitmap of values, row by row from the top.
    pub fn raster(&self, field: &[f32], (width, height): (usize, usize)) -> Vec<f32> {
        let middle = |pixel: usize, pixels: usize| (pixel as f64 + 0.5) / pixels as f64;
        (0..height)
            .flat_map(|row| (0..width).map(move |column| (column, row)))
            .map(|(column, row)| {
                let share = (middle(column, width), 1.0 - middle(row, height));
                self.value(field, share)
            })
            .collect()
    }

    /// Pixels of a bitmap that shows all that the grid has.
    fn pixels(&self) -> (usize, usize) {
        let pixels = |axis: usize| (2 * self.grid.points[axis]).clamp(2, MAX_PIXELS);
        (pixels(self.right), pixels(self.up()))
    }

    /// The frame of a picture between these sides.
    pub fn frame(&self, problem: &Problem, across: (i32, i32), top: i32) -> Frame {
        let axis = |axis: usize| {
            let name = problem.axis_names[axis];
            Axis::linear(name, self.grid.low[axis], self.grid.high[axis])
        };
        let height = (f64::from(across.1 - across.0) * self.aspect()).round() as i32;
        Frame {
            x: axis(self.right),
            y: axis(self.up()),
            across,
            down: (top, top + height),
        }
    }
}

/// One picture of a plane.
pub struct Tile<'a> {
    /// Stands above it.
    pub title: String,
    /// For axes and keep-out zones.
    pub problem: &'a Problem,
    /// The plane.
    pub plane: Plane<'a>,
    /// What is shown.
    pub values: &'a [f32],
    /// In which colours.
    pub scale: Scale,
    /// The run and its frames whose agents are shown: from one, where their trails begin, to another.
    pub agents: Option<(&'a Trajectory, usize, usize)>,
}

impl Tile<'_> {
    /// Draws the tile into its frame, without the axes' numbers.
    pub fn draw(&self, area: &Surface<'_>, inlay: &Inlay, frame: &Frame) -> Result<(), DrawError> {
        let fine = FINE as i32;
        let (width, height) = self.plane.pixels();
        let values = self.plane.raster(self.values, (width, height));
        let rgb: Vec<u8> = values.iter().flat_map(|v| self.scale.colour(*v)).collect();
        let fill = inlay.fill((width as u32, height as u32), &rgb)?;
        area.draw(&Rectangle::new(frame.corners(), fill))?;
        frame.draw_outline(area)?;
        let style = font(13.0).pos(Pos::new(HPos::Center, VPos::Bottom));
        let middle = (frame.across.0 + frame.across.1) / 2;
        let place = (middle, frame.down.0 - 5 * fine);
        area.draw(&Text::new(self.title.clone(), place, style))?;

        let corner = area.get_base_pixel();
        let side = f64::from(frame.across.1 - frame.across.0);
        let on_surface = |place: [f64; 2]| {
            let (right, up) = self.plane.share(place);
            (
                f64::from(corner.0 + frame.across.0) + right * side,
                f64::from(corner.1 + frame.down.1) + up * f64::from(frame.down.0 - frame.down.1),
            )
        };
        for zone in self.problem.keep_out {
            let (x, y) = on_surface(zone.centre);
            let radius = zone.radius / self.plane.width() * side;
            draw_zone(inlay, (x.round() as i32, y.round() as i32), radius);
        }
        if let Some((run, first, last)) = self.agents {
            if run.paths.len() <= MAX_TRAILS {
                for path in &run.paths {
                    self.draw_trail(inlay, path, (first, last), &on_surface);
                }
            }
            let agents: Vec<_> = run
                .paths
                .iter()
                .map(|p| (on_surface(p.positions[last]), Look::of(p.modes[last])))
                .collect();
            draw_agents(inlay, &agents, radius_among(agents.len(), side));
        }
        Ok(())
    }

    /// The way of an agent, cut where it leaves a torus on one side and comes back on the other.
    fn draw_trail(
        &self,
        inlay: &Inlay,
        path: &Path,
        (first, last): (usize, usize),
        on_surface: &impl Fn([f64; 2]) -> (f64, f64),
    ) {
        let way = &path.positions[first..=last];
        let shown = way.len().min(40);
        let mut line = String::new();
        let mut before: Option<[f64; 2]> = None;
        for k in 0..shown {
            let place = way[spread(k, shown, way.len())];
            let (x, y) = on_surface(place);
            let pen = match before {
                Some(before) if !wraps(self.plane.grid, before, place) => 'L',
                _ => 'M',
            };
            line += &format!("{pen}{x:.1} {y:.1}");
            before = Some(place);
        }
        if way.iter().any(|place| *place != way[0]) {
            for (colour, width) in [("#fff\" stroke-opacity=\"0.6", 4), ("#000", 2)] {
                inlay.mark(&format!(
                    "<path class=\"trail\" d=\"{line}\" fill=\"none\" stroke=\"{colour}\" \
                     stroke-width=\"{width}\"/>"
                ));
            }
        }
    }
}

/// A seventh of the distance between agents that are spread evenly over a plane of that width.
pub fn radius_among(agents: usize, width: f64) -> f64 {
    let apart = width / (agents.max(1) as f64).sqrt();
    (apart / 7.0).clamp(width / 170.0, width / 42.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    /// A field that is its own coordinate along array axis 0, on 5 × 3 points of a 4 × 1 plane.
    fn ramp(edge: Edge, names: [&'static str; 2]) -> Vec<f32> {
        let grid = Grid::plane([5, 3], [4.0, 1.0], edge);
        let mut problem = PROBLEM;
        problem.axis_names = names;
        let field: Vec<f32> = (0..15).map(|i| grid.place(i)[0] as f32).collect();
        Plane::new(&problem, &grid).raster(&field, (2, 2))
    }

    #[test]
    fn x_runs_to_the_right_whichever_array_axis_it_is() {
        // Pixel centres are a quarter and three quarters along: 1 and 3 of 4.
        assert_eq!(ramp(Edge::Wall, ["x", "y"]), [1.0, 3.0, 1.0, 3.0]);
        assert_eq!(ramp(Edge::Wall, ["y", "x"]), [3.0, 3.0, 1.0, 1.0]);
    }

    #[test]
    fn a_torus_is_interpolated_across_its_seam() {
        // Points stand 0.8 apart from 0 to 3.2; at 3.9 it is an eighth down from 0 to 3.2 again.
        let grid = Grid::plane([5, 3], [4.0, 1.0], Edge::Periodic);
        let field: Vec<f32> = (0..15).map(|i| grid.place(i)[0] as f32).collect();
        let mut problem = PROBLEM;
        problem.axis_names = ["x", "y"];
        let value = Plane::new(&problem, &grid).value(&field, (0.975, 0.0));
        assert!((value - 0.4).abs() < 1e-6, "{value}");
    }

    #[test]
    fn dots_shrink_with_the_number_of_agents_but_stay_visible() {
        assert_eq!(radius_among(64, 560.0), 10.0);
        assert!(radius_among(4, 400.0) < 10.0);
        assert!(radius_among(1024, 400.0) > 2.0);
    }
}
