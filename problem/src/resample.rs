//! Fields from one grid to another: episodes are stored on the published grid, the truth may be
//! computed on any, and sensors keep the published spacing.

use crate::Problem;
use crate::grid::{Edge, Grid};

/// A field on another grid of the same rectangle.
///
/// Between walls by cubic convolution (exact for quadratics), along periodic axes by its Fourier series
/// (exact for what both grids resolve). The same grid gives the same numbers.
pub fn resample(field: &[f32], from: &Grid, to: &Grid) -> Vec<f32> {
    if from.points == to.points {
        return field.to_vec();
    }
    let [rows, columns] = from.points;
    let [new_rows, new_columns] = to.points;
    // One new point's weights at a time: all of them would be more than a large field itself.
    let mut weights = vec![0.0; rows];
    let mut tall = vec![0.0; new_rows * columns];
    for (i, row) in tall.chunks_exact_mut(columns).enumerate() {
        weigh(&mut weights, from.edges[0], i, new_rows);
        for (old, weight) in field.chunks_exact(columns).zip(&weights) {
            for (sum, value) in row.iter_mut().zip(old) {
                *sum += weight * f64::from(*value);
            }
        }
    }
    weights.resize(columns, 0.0);
    let mut new = vec![0.0; to.len()];
    for i in 0..new_columns {
        weigh(&mut weights, from.edges[1], i, new_columns);
        let column = new.iter_mut().skip(i).step_by(new_columns);
        for (value, row) in column.zip(tall.chunks_exact(columns)) {
            let sum: f64 = row.iter().zip(&weights).map(|(v, w)| v * w).sum();
            *value = sum as f32;
        }
    }
    new
}

/// All fields of a state, from a problem's sensors to the grid that the truth is computed on.
pub fn on_grid(problem: &Problem, state: &[f32]) -> Vec<f32> {
    let (sensors, grid) = (&problem.sensors, &problem.grid);
    let fields = state.chunks_exact(sensors.len());
    fields.flat_map(|f| resample(f, sensors, grid)).collect()
}

/// What point `i` of `to` new ones takes from each old one.
fn weigh(weights: &mut [f64], edge: Edge, i: usize, to: usize) {
    let from = weights.len();
    weights.fill(0.0);
    match edge {
        _ if from == to => weights[i] = 1.0,
        Edge::Wall => cubic(
            weights,
            i as f64 * (from - 1) as f64 / (to - 1).max(1) as f64,
        ),
        Edge::Periodic => {
            // Modes that both grids have; the lone highest mode of an even grid is left out.
            let modes = (from.min(to) - 1) / 2;
            for (j, weight) in weights.iter_mut().enumerate() {
                let turn = i as f64 / to as f64 - j as f64 / from as f64;
                let half = std::f64::consts::PI * turn;
                let waves = (2 * modes + 1) as f64;
                // 1 + 2 Σ cos(2πk·turn) over the modes, and its limit where points coincide.
                let sum = match libm::sin(half) {
                    sine if sine.abs() < 1e-12 => waves,
                    sine => libm::sin(waves * half) / sine,
                };
                *weight = sum / from as f64;
            }
        }
    }
}

/// Keys' cubic convolution at position `s` in units of the old spacing; beyond a wall the field is
/// continued by the parabola through its last three values.
fn cubic(row: &mut [f64], s: f64) {
    let last = row.len() as isize - 1;
    if last < 3 {
        // Too few points for a cubic.
        let cell = (s.floor() as usize).min(row.len().saturating_sub(2));
        row[cell] += 1.0 - (s - cell as f64);
        if let Some(next) = row.get_mut(cell + 1) {
            *next += s - cell as f64;
        }
        return;
    }
    let cell = (s.floor() as isize).min(last - 1);
    let t = s - cell as f64;
    let shares = [
        0.5 * t * (-1.0 + t * (2.0 - t)),
        0.5 * (2.0 + t * t * (-5.0 + 3.0 * t)),
        0.5 * t * (1.0 + t * (4.0 - 3.0 * t)),
        0.5 * t * t * (t - 1.0),
    ];
    for (offset, share) in (-1..).zip(shares) {
        let j = cell + offset;
        // Beyond the wall: 3 f₀ − 3 f₁ + f₂.
        let (wall, inward) = match j {
            j if j < 0 => (0, 1),
            j if j > last => (last, -1),
            _ => {
                row[j as usize] += share;
                continue;
            }
        };
        for (k, factor) in [3.0, -3.0, 1.0].into_iter().enumerate() {
            row[(wall + inward * k as isize) as usize] += factor * share;
        }
    }
}

/// Reads a field at the points of another, usually coarser grid, every step: linear between
/// neighbours, exact where points coincide.
#[derive(Debug, Clone)]
pub struct Sampler {
    axes: [Vec<(usize, usize, f64)>; 2],
    columns: usize,
    same: bool,
}

impl Sampler {
    /// From the points of one grid to those of another.
    pub fn new(from: &Grid, to: &Grid) -> Self {
        let axis = |axis: usize| {
            let points = from.points[axis];
            (0..to.points[axis])
                .map(|i| {
                    // An axis that is not there has no spacing.
                    let spacing = from.spacing(axis).max(f64::MIN_POSITIVE);
                    let s = (to.coordinate(axis, i) - from.low[axis]) / spacing;
                    // Coordinates carry rounding; a point that coincides is taken as it is.
                    let s = if (s - s.round()).abs() < 1e-9 {
                        s.round()
                    } else {
                        s
                    };
                    let cell = (s as usize).min(points - 1);
                    let next = match from.edges[axis] {
                        Edge::Periodic => (cell + 1) % points,
                        Edge::Wall => (cell + 1).min(points - 1),
                    };
                    (cell, next, s - cell as f64)
                })
                .collect()
        };
        Self {
            axes: [axis(0), axis(1)],
            columns: from.points[1],
            same: from.points == to.points,
        }
    }

    /// Writes the samples of `field` in single precision.
    pub fn read(&self, field: &[f64], out: &mut [f32]) {
        if self.same {
            for (narrow, wide) in out.iter_mut().zip(field) {
                *narrow = *wide as f32;
            }
            return;
        }
        let [down, along] = &self.axes;
        for (row, &(a, b, t)) in out.chunks_exact_mut(along.len()).zip(down) {
            let upper = &field[a * self.columns..][..self.columns];
            let lower = &field[b * self.columns..][..self.columns];
            for (value, &(c, d, s)) in row.iter_mut().zip(along) {
                let left = upper[c] + t * (lower[c] - upper[c]);
                let right = upper[d] + t * (lower[d] - upper[d]);
                *value = (left + s * (right - left)) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(grid: &Grid, f: impl Fn([f64; 2]) -> f64) -> Vec<f32> {
        (0..grid.len()).map(|i| f(grid.place(i)) as f32).collect()
    }

    fn differ(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).fold(0.0, |m, (x, y)| m.max((x - y).abs()))
    }

    #[test]
    fn parabolas_survive_any_change_of_grid_between_walls() {
        let f = |[x, y]: [f64; 2]| 1.0 + x * x - 2.0 * x * y + 0.5 * y * y;
        let from = Grid::plane([10, 14], [1.0, 2.0], Edge::Wall);
        for points in [[7, 9], [23, 14], [64, 80]] {
            let to = Grid { points, ..from };
            let found = resample(&sampled(&from, f), &from, &to);
            assert!(differ(&found, &sampled(&to, f)) < 1e-5, "{points:?}");
        }
    }

    #[test]
    fn resolved_waves_survive_any_change_of_grid_on_a_torus() {
        let tau = std::f64::consts::TAU;
        let f = |[x, y]: [f64; 2]| (3.0 * tau * x / 22.0).sin() + (2.0 * tau * y / 5.0).cos();
        let from = Grid::plane([16, 15], [22.0, 5.0], Edge::Periodic);
        for points in [[9, 11], [64, 48], [16, 30]] {
            let to = Grid { points, ..from };
            let found = resample(&sampled(&from, f), &from, &to);
            assert!(differ(&found, &sampled(&to, f)) < 1e-5, "{points:?}");
        }
    }

    #[test]
    fn sensors_read_coinciding_points_exactly_and_the_same_grid_unchanged() {
        let f = |[x, y]: [f64; 2]| (7.0 * x).sin() * (3.0 * y).cos();
        let coarse = Grid::plane([8, 6], [1.0, 1.0], Edge::Periodic);
        for points in [[8, 6], [32, 12]] {
            let fine = Grid { points, ..coarse };
            let truth: Vec<f64> = (0..fine.len()).map(|i| f(fine.place(i))).collect();
            let mut seen = vec![0.0; coarse.len()];
            Sampler::new(&fine, &coarse).read(&truth, &mut seen);
            assert!(differ(&seen, &sampled(&coarse, f)) < 1e-6);
        }
    }

    #[test]
    fn sensors_interpolate_straight_lines_exactly() {
        let fine = Grid::line(33, 1.0, Edge::Wall);
        let coarse = Grid::line(100, 1.0, Edge::Wall);
        let truth: Vec<f64> = (0..33).map(|j| 2.0 - fine.coordinate(0, j)).collect();
        let mut seen = vec![0.0; 100];
        Sampler::new(&fine, &coarse).read(&truth, &mut seen);
        assert!(differ(&seen, &sampled(&coarse, |[x, _]| 2.0 - x)) < 1e-6);
    }
}
