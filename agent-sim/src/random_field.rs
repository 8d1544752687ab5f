//! Gaussian random fields with a squared-exponential covariance.

use nalgebra::{DMatrix, DVector};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Added to the covariance's diagonal so that its Cholesky factor exists; fields get grid-scale
/// noise of 1e-5, far below anything a run resolves.
const JITTER: f64 = 1e-10;

/// Draws zero-mean, unit-variance fields on `linspace(0, 1)`, minus the straight line through
/// their end values, so that they vanish at both walls.
pub struct RandomField {
    factor: DMatrix<f64>,
}

impl RandomField {
    /// Fields on `points` grid points with correlation length `length`.
    pub fn pinned_line(points: usize, length: f64) -> Self {
        let covariance = DMatrix::from_fn(points, points, |i, j| {
            let gap = (i as f64 - j as f64) / (points - 1) as f64 / length;
            (-0.5 * gap * gap).exp() + if i == j { JITTER } else { 0.0 }
        });
        let factor = covariance
            .cholesky()
            .expect("a squared-exponential covariance with jitter is positive definite")
            .unpack();
        Self { factor }
    }

    /// One field.
    pub fn draw(&self, rng: &mut impl Rng) -> Vec<f32> {
        let n = self.factor.nrows();
        let noise = DVector::from_fn(n, |_, _| StandardNormal.sample(rng));
        let field: DVector<f64> = &self.factor * noise;
        let (first, last) = (field[0], field[n - 1]);
        let line = |j: usize| first + (last - first) * j as f64 / (n - 1) as f64;
        (0..n).map(|j| (field[j] - line(j)) as f32).collect()
    }
}

/// The random stream of episode `index` of a run with `seed`: the same whatever else was drawn.
pub fn episode_rng(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}
