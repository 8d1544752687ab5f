//! Gaussian random fields with a squared-exponential covariance.
//!
//! Normal numbers come from `rand_distr`, which passes the rarest, one in four thousand, through the
//! system's logarithm: the last bit of these may be another one on another system. Fields that are
//! rounded to single precision do not show it. Fresh episodes that chaos grows from such numbers in
//! double precision (`ks-1d`, `ks-2d`, `turbulence-2d`) may: to take the same ones everywhere, take
//! those of a file or of the test set.

use crate::grid::{Edge, Grid};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// Added to the covariance's diagonal so that its Cholesky factor exists; fields get grid-scale
/// noise of 1e-5, far below anything a run resolves.
const JITTER: f64 = 1e-10;

/// Draws zero-mean, unit-variance fields on `linspace(0, 1)`, minus the straight line through
/// their end values, so that they vanish at both walls.
pub struct RandomField {
    /// Rows of the covariance's Cholesky factor, each up to its diagonal.
    factor: Vec<Vec<f64>>,
}

impl RandomField {
    /// Fields on `points` grid points with correlation length `length`.
    pub fn pinned_line(points: usize, length: f64) -> Self {
        let covariance = |i: usize, j: usize| {
            let gap = (i as f64 - j as f64) / (points - 1) as f64 / length;
            libm::exp(-0.5 * gap * gap) + if i == j { JITTER } else { 0.0 }
        };
        Self {
            factor: cholesky(points, covariance),
        }
    }

    /// One field.
    pub fn draw(&self, rng: &mut impl Rng) -> Vec<f32> {
        let n = self.factor.len();
        let noise: Vec<f64> = (0..n).map(|_| StandardNormal.sample(rng)).collect();
        let field: Vec<f64> = self.factor.iter().map(|row| dot(row, &noise)).collect();
        let (first, last) = (field[0], field[n - 1]);
        let line = |j: usize| {
            let share = j as f64 / (n - 1) as f64;
            (1.0 - share) * first + share * last // exact at both ends
        };
        (0..n).map(|j| (field[j] - line(j)) as f32).collect()
    }
}

/// Draws zero-mean, unit-variance fields on the unit square, minus the Coons surface through their
/// edges, so that they vanish on all four of them.
///
/// The covariance is a product over the axes, so a field is `A Z Bᵀ`: white noise `Z` between the
/// Cholesky factors of the two axes. And subtracting the Coons surface is subtracting straight lines
/// through the ends along one axis and then along the other (`1 − (P + Q − PQ) = (1 − P)(1 − Q)`), so
/// it is done to the factors, once.
pub struct RandomField2d {
    /// The factor along each axis, minus its lines: full rows, those of the edges zero.
    factors: [Vec<Vec<f64>>; 2],
}

impl RandomField2d {
    /// Fields on `points[0]` rows of `points[1]` values, edges included, with correlation length
    /// `length`.
    pub fn pinned_square(points: [usize; 2], length: f64) -> Self {
        let pinned = |n: usize| {
            let mut rows = RandomField::pinned_line(n, length).factor;
            rows.iter_mut().for_each(|row| row.resize(n, 0.0));
            let (first, last) = (rows[0].clone(), rows[n - 1].clone());
            for (j, row) in rows.iter_mut().enumerate() {
                let share = j as f64 / (n - 1) as f64;
                for ((value, first), last) in row.iter_mut().zip(&first).zip(&last) {
                    *value -= (1.0 - share) * first + share * last; // exact at both ends
                }
            }
            rows
        };
        Self {
            factors: points.map(pinned),
        }
    }

    /// One field, row-major.
    pub fn draw(&self, rng: &mut impl Rng) -> Vec<f32> {
        let field = product(&self.factors, rng).into_iter();
        field.map(|z| z as f32).collect()
    }
}

/// Draws zero-mean fields of about unit variance on any grid; they vanish at the ends of the box that are
/// asked for.
#[derive(Debug, Clone)]
pub struct Smooth {
    /// The covariance's factor along each axis, full rows.
    factors: [Vec<Vec<f64>>; 2],
}

impl Smooth {
    /// Fields on `grid` with this correlation length, pinned to zero at the low and high end of each axis
    /// where `pinned`.
    pub fn new(grid: &Grid, length: f64, pinned: [[bool; 2]; 2]) -> Self {
        let factors = [0, 1].map(|axis| match axis < grid.axes {
            true => axis_factor(grid, axis, length, pinned[axis]),
            false => vec![vec![1.0]],
        });
        Self { factors }
    }

    /// One field, row-major.
    pub fn draw(&self, rng: &mut impl Rng) -> Vec<f64> {
        product(&self.factors, rng)
    }
}

/// The factor along an axis, minus straight lines from its ends where these are pinned.
fn axis_factor(grid: &Grid, axis: usize, length: f64, [low, high]: [bool; 2]) -> Vec<Vec<f64>> {
    let (n, extent) = (grid.points[axis], grid.extent(axis));
    let bell = |gap: f64| libm::exp(-0.5 * (gap / length).powi(2));
    let covariance = |i: usize, j: usize| {
        let gap = (i as f64 - j as f64) * grid.spacing(axis);
        let value = match grid.edges[axis] {
            Edge::Wall => bell(gap),
            // All images: what is wound around a circle stays a covariance.
            Edge::Periodic if length < 0.5 * extent => {
                (-8..=8).map(|k| bell(gap + f64::from(k) * extent)).sum()
            }
            // Too many to count; their sum's Fourier series has three waves left, by Poisson's formula.
            Edge::Periodic => (-3..=3)
                .map(|k| TAU * f64::from(k) / extent)
                .map(|wave| libm::exp(-0.5 * (wave * length).powi(2)) * libm::cos(wave * gap))
                .sum(),
        };
        value + if i == j { JITTER } else { 0.0 }
    };
    let variance = covariance(0, 0);
    let mut rows = cholesky(n, |i, j| {
        covariance(i, j) / variance + if i == j { JITTER } else { 0.0 }
    });
    rows.iter_mut().for_each(|row| row.resize(n, 0.0));
    let (first, last) = (rows[0].clone(), rows[n - 1].clone());
    for (j, row) in rows.iter_mut().enumerate() {
        let share = j as f64 / (n - 1) as f64;
        let (a, b) = match (low, high) {
            (true, true) => (1.0 - share, share),
            (true, false) => (1.0 - share, 0.0),
            (false, true) => (0.0, share),
            (false, false) => (0.0, 0.0),
        };
        for ((value, first), last) in row.iter_mut().zip(&first).zip(&last) {
            *value -= a * first + b * last; // exact at both ends
        }
    }
    rows
}

/// `A Z Bᵀ` with white noise `Z`, row-major.
fn product([rows, columns]: &[Vec<Vec<f64>>; 2], rng: &mut impl Rng) -> Vec<f64> {
    // Z Bᵀ, one row of noise after the other, transposed so that A meets it row by row.
    let mut smooth = vec![vec![0.0; rows.len()]; columns.len()];
    let mut noise = vec![0.0; columns.len()];
    for i in 0..rows.len() {
        noise.fill_with(|| StandardNormal.sample(rng));
        for (column, factor) in smooth.iter_mut().zip(columns) {
            column[i] = dot(factor, &noise);
        }
    }
    (rows.iter())
        .flat_map(|row| smooth.iter().map(|column| dot(row, column)))
        .collect()
}

/// Over the shorter of the two.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The lower triangle L of a positive definite matrix A = L Lᵀ, row by row.
fn cholesky(size: usize, matrix: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(size);
    for i in 0..size {
        let mut row = Vec::with_capacity(i + 1);
        for (j, above) in rows.iter().enumerate() {
            row.push((matrix(i, j) - dot(&row, above)) / above[j]);
        }
        let pivot = matrix(i, i) - dot(&row, &row);
        assert!(pivot > 0.0, "a covariance with jitter is positive definite");
        row.push(pivot.sqrt());
        rows.push(row);
    }
    rows
}

/// The random stream of episode `index` of a run with `seed`: the same whatever else was drawn.
pub fn episode_rng(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_squares_to_the_covariance() {
        let field = RandomField::pinned_line(100, 0.4);
        for (i, row) in field.factor.iter().enumerate() {
            for (j, other) in field.factor.iter().enumerate().take(i + 1) {
                let gap = (i - j) as f64 / 99.0 / 0.4;
                let covariance = (-0.5 * gap * gap).exp();
                assert!((dot(row, other) - covariance).abs() < 1e-9, "{i}, {j}");
            }
        }
    }

    /// Whatever the length: images are summed one by one or, where they are too many, wave by wave, which is
    /// the same where the two meet.
    #[test]
    fn fields_on_a_ring_may_be_longer_than_it() {
        let grid = Grid::line(24, 2.0, Edge::Periodic);
        let correlation = |length: f64| {
            let factor = axis_factor(&grid, 0, length, [false; 2]);
            let row: Vec<f64> = factor.iter().map(|row| dot(row, &factor[0])).collect();
            // The same from every point.
            for (j, other) in factor.iter().enumerate() {
                assert!((dot(&factor[5], other) - row[(j + 19) % 24]).abs() < 1e-8);
            }
            row
        };
        let (below, above) = (correlation(0.999_999), correlation(1.0));
        for (a, b) in below.iter().zip(&above) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        for length in [0.1, 3.0, 1e6] {
            assert!((correlation(length)[0] - 1.0).abs() < 1e-8);
        }
    }

    /// Variance at `x` of g(x) − (1−x) g(0) − x g(1), with k(d) the covariance at distance d:
    /// 1 + (1−x)² + x² + 2x(1−x) k(1) − 2(1−x) k(x) − 2x k(1−x).
    fn pinned_variance(x: f64, length: f64) -> f64 {
        let k = |d: f64| (-0.5 * (d / length).powi(2)).exp();
        let y = 1.0 - x;
        1.0 + y * y + x * x + 2.0 * x * y * k(1.0) - 2.0 * y * k(x) - 2.0 * x * k(y)
    }

    /// The variance of a field on the square is the product of the two axes': pinning acts on each
    /// axis by itself. Over 4,000 fields of length 0.25 a point's mean square scatters by
    /// √(2/4000) = 2.2 % of itself; four times that is allowed at each of 12 points.
    #[test]
    fn square_fields_have_the_variance_of_a_pinned_process_and_vanish_on_the_edges() {
        let (n0, n1) = (20, 16);
        let field = RandomField2d::pinned_square([n0, n1], 0.25);
        let mut rng = episode_rng(4, 0);
        let mut squares = vec![0.0; n0 * n1];
        for _ in 0..4000 {
            for (at, z) in field.draw(&mut rng).into_iter().enumerate() {
                let (i, j) = (at / n1, at % n1);
                if i == 0 || i == n0 - 1 || j == 0 || j == n1 - 1 {
                    assert_eq!(z, 0.0, "at {i}, {j}");
                }
                squares[at] += f64::from(z * z) / 4000.0;
            }
        }
        for (i, j) in [2, 6, 10, 17]
            .into_iter()
            .flat_map(|i| [3, 8, 14].map(|j| (i, j)))
        {
            let expected =
                pinned_variance(i as f64 / 19.0, 0.25) * pinned_variance(j as f64 / 15.0, 0.25);
            let found = squares[i * n1 + j];
            assert!(
                (found / expected - 1.0).abs() < 0.09,
                "{found} vs {expected} at {i}, {j}"
            );
        }
    }

    /// Neighbours at a distance correlate as the kernel says, along either axis and diagonally.
    #[test]
    fn square_fields_are_smooth_over_their_length() {
        let n = 17;
        let field = RandomField2d::pinned_square([n, n], 0.4);
        // Covariance between two points is what the factors' rows give, axis by axis.
        let covariance = |a: [usize; 2], b: [usize; 2]| -> f64 {
            (0..2)
                .map(|axis| dot(&field.factors[axis][a[axis]], &field.factors[axis][b[axis]]))
                .product()
        };
        let k = |d: f64| (-0.5 * (d / 0.4f64).powi(2)).exp();
        // Of g(x) − (1−x) g(0) − x g(1) with the same at x', term by term.
        let pinned = |x: f64, y: f64| {
            let line = |p: f64, q: f64| (1.0 - p) * k(q) + p * k(1.0 - q);
            let ends = (1.0 - x) * (1.0 - y) + x * y + (x * (1.0 - y) + y * (1.0 - x)) * k(1.0);
            k(x - y) - line(x, y) - line(y, x) + ends
        };
        for (a, b) in [
            ([4, 4], [4, 9]),
            ([4, 4], [9, 4]),
            ([4, 12], [9, 6]),
            ([8, 8], [8, 8]),
        ] {
            let [x, y] = [0, 1].map(|axis| pinned(a[axis] as f64 / 16.0, b[axis] as f64 / 16.0));
            assert!((covariance(a, b) - x * y).abs() < 1e-8, "{a:?}, {b:?}");
        }
    }

    /// Means over 4,000 fields scatter by less than 2 %; three times that is allowed.
    #[test]
    fn fields_have_the_variance_of_a_pinned_process_and_vanish_at_the_walls() {
        for length in [0.2, 0.4] {
            let variance = |j: usize| pinned_variance(j as f64 / 99.0, length);
            let expected: f64 = (0..100).map(variance).sum::<f64>() / 100.0;
            let field = RandomField::pinned_line(100, length);
            let mut rng = episode_rng(3, 0);
            let mut sum = 0.0;
            for _ in 0..4000 {
                let z = field.draw(&mut rng);
                assert_eq!((z[0], z[99]), (0.0, 0.0));
                sum += z.iter().map(|v| f64::from(v * v)).sum::<f64>() / 100.0;
            }
            let found = sum / 4000.0;
            assert!(
                (found / expected - 1.0).abs() < 0.06,
                "{found} vs {expected}"
            );
        }
    }
}
