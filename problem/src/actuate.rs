//! What agents do to the field: Gaussian bumps, summed.

use crate::Problem;
use crate::grid::{Edge, Grid};

/// The actuation kernel on a problem's grid: adds `a exp(−|x − ξ|² / 2σ²)` at every grid point.
///
/// Along periodic axes distances go the shorter way round.
#[derive(Debug, Clone)]
pub struct Kernel {
    grid: Grid,
    /// 1 / 2σ².
    falloff: f64,
    /// How the ratio of neighbouring values changes from cell to cell, per axis: exp(−h²/σ²).
    ratio_of_ratios: [f64; 2],
    peak_on_grid: bool,
    /// The kernel's factor along each axis, for the agent at work.
    factors: [Vec<f64>; 2],
    /// What each agent does instead, where that was measured.
    maps: Option<Vec<Vec<f64>>>,
}

impl Kernel {
    /// The kernel of a problem's agents.
    pub fn new(problem: &Problem) -> Self {
        let grid = problem.grid;
        let falloff = 0.5 / problem.actuation.width.powi(2);
        Self {
            grid,
            falloff,
            ratio_of_ratios: [0, 1]
                .map(|axis| libm::exp(-2.0 * falloff * grid.spacing(axis).powi(2))),
            peak_on_grid: problem.actuation.peak_on_grid,
            factors: grid.points.map(|points| vec![1.0; points]),
            maps: problem.kit.and_then(|kit| kit.influence(problem)),
        }
    }

    /// Adds what agent number `agent` does to each component of `force`, one amplitude per component: its
    /// bump, or what its map says.
    pub fn act(&mut self, force: &mut [f64], agent: usize, position: [f64; 2], amplitudes: &[f64]) {
        let Some(maps) = &self.maps else {
            return self.add(force, position, amplitudes);
        };
        let components = force.chunks_exact_mut(self.grid.len()).zip(amplitudes);
        for (component, &amplitude) in components.filter(|(_, amplitude)| **amplitude != 0.0) {
            for (sum, effect) in component.iter_mut().zip(&maps[agent]) {
                *sum += amplitude * effect;
            }
        }
    }

    /// Adds a bump to each component of `force`, one amplitude per component.
    pub fn add(&mut self, force: &mut [f64], position: [f64; 2], amplitudes: &[f64]) {
        for (axis, &x) in position.iter().enumerate().take(self.grid.axes) {
            self.fill_factor(axis, x);
        }
        let [down, along] = &self.factors;
        let cells = self.grid.len();
        for (component, &amplitude) in force.chunks_exact_mut(cells).zip(amplitudes) {
            if amplitude == 0.0 {
                continue;
            }
            if self.grid.axes == 1 {
                for (sum, factor) in component.iter_mut().zip(down) {
                    *sum += amplitude * factor;
                }
                continue;
            }
            for (row, factor) in component.chunks_exact_mut(along.len()).zip(down) {
                let height = amplitude * factor;
                for (sum, factor) in row.iter_mut().zip(along) {
                    *sum += height * factor;
                }
            }
        }
    }

    /// The kernel's values along one axis for an agent at `position`.
    ///
    /// Starting at the nearest grid point and walking outwards, each value of a Gaussian on an even
    /// grid is its neighbour's times a ratio that itself shrinks by a constant factor: three
    /// exponentials per agent in place of one per grid point, exact to about 1e-13 of the peak.
    fn fill_factor(&mut self, axis: usize, position: f64) {
        let (points, h) = (self.grid.points[axis], self.grid.spacing(axis));
        let s = (position - self.grid.low[axis]) / h;
        let nearest = match self.grid.edges[axis] {
            Edge::Wall => (s.round().max(0.0) as usize).min(points - 1),
            Edge::Periodic => s.round().rem_euclid(points as f64) as usize % points,
        };
        let mut d = self.grid.coordinate(axis, nearest) - position;
        if self.grid.edges[axis] == Edge::Periodic {
            let length = self.grid.extent(axis);
            d -= length * (d / length).round();
        }
        let falloff = self.falloff;
        let peak = match self.peak_on_grid {
            true => 1.0,
            false => libm::exp(-falloff * d * d),
        };
        let ratio = |toward: f64| libm::exp(-falloff * h * (2.0 * d * toward + h));
        let change = self.ratio_of_ratios[axis];
        let factor = &mut self.factors[axis];
        match self.grid.edges[axis] {
            Edge::Wall => {
                let (left, right) = factor.split_at_mut(nearest);
                right[0] = peak;
                walk(right[1..].iter_mut(), peak, ratio(1.0), change);
                walk(left.iter_mut().rev(), peak, ratio(-1.0), change);
            }
            Edge::Periodic => {
                // Half the other points lie to each side; the one opposite belongs to the nearer.
                let to_right = if d > 0.0 {
                    (points - 1) / 2
                } else {
                    points / 2
                };
                // Rotated so that the nearest point comes first and the left side last.
                factor.rotate_left(nearest);
                factor[0] = peak;
                let (right, left) = factor[1..].split_at_mut(to_right);
                walk(right.iter_mut(), peak, ratio(1.0), change);
                walk(left.iter_mut().rev(), peak, ratio(-1.0), change);
                factor.rotate_right(nearest);
            }
        }
    }
}

fn walk<'a>(
    cells: impl Iterator<Item = &'a mut f64>,
    mut value: f64,
    mut ratio: f64,
    ratio_of_ratios: f64,
) {
    for cell in cells {
        value *= ratio;
        ratio *= ratio_of_ratios;
        *cell = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::heat_1d::PROBLEM;
    use proptest::prelude::*;

    fn on(grid: Grid, width: f64) -> Problem {
        let mut problem = PROBLEM;
        problem.grid = grid;
        problem.actuation.width = width;
        problem
    }

    /// By definition, distances going the shorter way round on a torus.
    fn bump(grid: &Grid, index: usize, position: [f64; 2], width: f64) -> f64 {
        let place = grid.place(index);
        let squared: f64 = (0..grid.axes)
            .map(|axis| {
                let mut d = (place[axis] - position[axis]).abs();
                if grid.edges[axis] == Edge::Periodic {
                    d = d.min(grid.extent(axis) - d);
                }
                d * d
            })
            .sum();
        (-squared / (2.0 * width * width)).exp()
    }

    proptest! {
        #[test]
        fn the_recurrence_is_the_gaussian(
            x in 0.0..1.0f64,
            y in 0.0..1.0f64,
            u in -40.0..40.0f64,
            width in 0.05..0.2f64,
        ) {
            for grid in [
                Grid::line(100, 1.0, Edge::Wall),
                Grid::line(33, 1.0, Edge::Periodic),
                Grid::plane([20, 31], [1.0, 1.25], Edge::Wall),
                Grid::plane([24, 17], [1.0, 1.0], Edge::Periodic),
                Grid {
                    edges: [Edge::Wall, Edge::Periodic],
                    ..Grid::plane([18, 21], [1.0, 1.5], Edge::Wall)
                },
            ] {
                let mut kernel = Kernel::new(&on(grid, width));
                let mut force = vec![0.0; 2 * grid.len()];
                kernel.add(&mut force, [x, y], &[u, -1.0]);
                for j in 0..grid.len() {
                    let exact = bump(&grid, j, [x, y], width);
                    prop_assert!((force[j] - u * exact).abs() <= 1e-12 * u.abs(), "{grid:?} {j}");
                    prop_assert!((force[grid.len() + j] + exact).abs() <= 1e-12);
                }
            }
        }

        #[test]
        fn a_peak_on_the_grid_is_one(x in 0.0..1.0f64, y in 0.0..1.0f64) {
            let mut problem = on(Grid::plane([16, 16], [1.0, 1.0], Edge::Periodic), 0.05);
            problem.actuation.peak_on_grid = true;
            let mut force = vec![0.0; 256];
            Kernel::new(&problem).add(&mut force, [x, y], &[1.0]);
            let peak = force.iter().copied().fold(0.0, f64::max);
            prop_assert!((peak - 1.0).abs() < 1e-12, "{peak}");
        }
    }
}
