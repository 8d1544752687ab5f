//! Gaussian random fields with a squared-exponential covariance.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

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
            (-0.5 * gap * gap).exp() + if i == j { JITTER } else { 0.0 }
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

    /// With k(d) the covariance at distance d, the variance of g(x) − (1−x) g(0) − x g(1) is
    /// 1 + (1−x)² + x² + 2x(1−x) k(1) − 2(1−x) k(x) − 2x k(1−x). Means over 4,000 fields scatter by
    /// less than 2 %; three times that is allowed.
    #[test]
    fn fields_have_the_variance_of_a_pinned_process_and_vanish_at_the_walls() {
        for length in [0.2, 0.4] {
            let k = |d: f64| (-0.5 * (d / length).powi(2)).exp();
            let variance = |x: f64| {
                let y = 1.0 - x;
                1.0 + y * y + x * x + 2.0 * x * y * k(1.0) - 2.0 * y * k(x) - 2.0 * x * k(y)
            };
            let expected: f64 = (0..100).map(|j| variance(j as f64 / 99.0)).sum::<f64>() / 100.0;
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
