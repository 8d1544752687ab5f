//! The heat equation on a line, zero at both walls, by Crank–Nicolson.

use super::{Stepper, Tridiagonal};
use num_traits::Float;

/// Steps `z_t = ν z_xx + f` with `z = 0` at both ends.
///
/// With `r = ν Δt / Δx²`, the new interior values solve
///
/// ```text
/// (1 + r) z⁺_j − (r/2)(z⁺_{j−1} + z⁺_{j+1}) = z_j + (r/2)(z_{j−1} − 2 z_j + z_{j+1}) + Δt f_j
/// ```
///
/// and the end values are zero. Second order in time and space; stable for any step, though only
/// weakly damping for rough fields when `r` is large (the published grid has `r = 2`).
#[derive(Debug, Clone)]
pub struct Heat1d<T> {
    implicit: Tridiagonal<T>,
    half_r: T,
    dt: T,
    substeps: usize,
}

impl<T: Float> Heat1d<T> {
    /// A stepper for fields of `points` values, both walls included, spaced `dx`. A control interval is
    /// `substeps` steps of `dt` each.
    ///
    /// # Panics
    /// If a coefficient is not positive and finite.
    pub fn new(points: usize, diffusivity: f64, dx: f64, dt: f64, substeps: usize) -> Self {
        let r = diffusivity * dt / (dx * dx);
        assert!(r > 0.0 && r.is_finite() && dt > 0.0, "r = {r}, dt = {dt}");
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        Self {
            implicit: Tridiagonal::constant(points.saturating_sub(2), t(-0.5 * r), t(1.0 + r))
                .expect("1 + r > r: diagonally dominant"),
            half_r: t(0.5 * r),
            dt: t(dt),
            substeps,
        }
    }

    /// Grid points, walls included (at least 2).
    pub fn points(&self) -> usize {
        self.implicit.rows() + 2
    }

    fn substep(&self, field: &mut [T], force: &[T]) {
        let n = self.points();
        // Every row waits for the one before: its right-hand side is made meanwhile. `left` keeps the old
        // value of the neighbour that has already been overwritten.
        let (mut left, mut previous) = (field[0], T::zero());
        for j in 1..n - 1 {
            let here = field[j];
            let curvature = left - (here + here) + field[j + 1];
            let rhs = here + self.half_r * curvature + self.dt * force[j];
            previous = self.implicit.eliminated(j - 1, rhs, previous);
            field[j] = previous;
            left = here;
        }
        field[0] = T::zero();
        field[n - 1] = T::zero();
        self.implicit.substitute(&mut field[1..n - 1]);
    }
}

impl<T: Float + Send> Stepper<T> for Heat1d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.points();
        assert!(field.len() == n && force.len() == n, "{n} grid points");
        for _ in 0..self.substeps {
            self.substep(field, force);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    /// sin(kπx) on `n` points, exactly zero at the walls.
    fn mode(n: usize, k: usize) -> Vec<f64> {
        let mut field: Vec<f64> = (0..n)
            .map(|j| (k as f64 * PI * j as f64 / (n - 1) as f64).sin())
            .collect();
        field[n - 1] = 0.0;
        field
    }

    /// A sine mode is an eigenvector of the second difference with eigenvalue −4 sin²(kπ/2(N−1)),
    /// so one step multiplies it by (1 − 2 r s) / (1 + 2 r s), s = sin²(kπ / 2(N−1)).
    #[test]
    fn sine_modes_decay_by_the_discrete_factor() {
        let (n, steps) = (100, 300);
        for k in [1, 2, 7, 30, 98] {
            let r = 2.0; // 0.2 · 1e-3 / 0.01²
            let s = (k as f64 * PI / (2.0 * (n - 1) as f64)).sin().powi(2);
            let factor = ((1.0 - 2.0 * r * s) / (1.0 + 2.0 * r * s)).powi(steps);
            let start = mode(n, k);
            let mut field = start.clone();
            let mut heat = Heat1d::new(n, 0.2, 0.01, 1e-3, 1);
            (0..steps).for_each(|_| heat.step(&mut field, &vec![0.0; n]));
            for (now, before) in field.iter().zip(&start) {
                assert!((now - factor * before).abs() < 1e-12, "mode {k}");
            }
        }
    }

    /// Largest error at `t = 0.1` against exp(−π²νt) sin πx, and sin 3πx likewise.
    fn error_against_analytic(n: usize, steps: usize) -> f64 {
        let (diffusivity, time) = (0.2, 0.1);
        let dx = 1.0 / (n - 1) as f64;
        let mut heat = Heat1d::new(n, diffusivity, dx, time / steps as f64, 1);
        let mut field: Vec<f64> = mode(n, 1)
            .iter()
            .zip(mode(n, 3))
            .map(|(a, b)| a + b)
            .collect();
        (0..steps).for_each(|_| heat.step(&mut field, &vec![0.0; n]));
        let decay = |k: f64| (-(k * PI).powi(2) * diffusivity * time).exp();
        let exact = mode(n, 1)
            .iter()
            .zip(mode(n, 3))
            .map(|(a, b)| decay(1.0) * a + decay(3.0) * b)
            .collect::<Vec<_>>();
        (field.iter().zip(exact)).fold(0.0, |worst, (a, b)| worst.max((a - b).abs()))
    }

    #[test]
    fn second_order_in_time() {
        // A grid so fine that its error (about 1e-7) does not show.
        let order = (error_against_analytic(4001, 10) / error_against_analytic(4001, 20)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    #[test]
    fn second_order_in_space() {
        let order = (error_against_analytic(21, 4000) / error_against_analytic(41, 4000)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    /// A steady force balances diffusion: z = sin(πx) f₀ / (ν λ), λ the discrete eigenvalue.
    #[test]
    fn a_steady_force_holds_a_steady_field() {
        let (n, dx) = (64, 1.0 / 63.0);
        let lambda = 4.0 * (PI * dx / 2.0).sin().powi(2) / (dx * dx);
        let steady = mode(n, 1);
        let force: Vec<f64> = steady.iter().map(|z| 0.2 * lambda * z).collect();
        let mut field = vec![0.0; n];
        let mut heat = Heat1d::new(n, 0.2, dx, 0.01, 1);
        (0..5000).for_each(|_| heat.step(&mut field, &force));
        for (z, expected) in field.iter().zip(&steady) {
            assert!((z - expected).abs() < 1e-10);
        }
    }

    #[test]
    fn single_precision_follows_double() {
        let n = 100;
        let mut wide = mode(n, 3);
        let mut narrow: Vec<f32> = wide.iter().map(|&v| v as f32).collect();
        let (mut heat64, mut heat32) = (
            Heat1d::<f64>::new(n, 0.2, 0.01, 1e-3, 1),
            Heat1d::<f32>::new(n, 0.2, 0.01, 1e-3, 1),
        );
        for _ in 0..300 {
            heat64.step(&mut wide, &vec![1.0; n]);
            heat32.step(&mut narrow, &vec![1.0; n]);
        }
        for (a, b) in wide.iter().zip(&narrow) {
            assert!((a - f64::from(*b)).abs() < 1e-5);
        }
    }

    #[test]
    fn substeps_are_steps_under_the_same_force() {
        let (mut once, mut often) = (mode(20, 2), mode(20, 2));
        Heat1d::new(20, 0.2, 0.05, 1e-3, 3).step(&mut once, &[1.0; 20]);
        let mut single = Heat1d::new(20, 0.2, 0.05, 1e-3, 1);
        (0..3).for_each(|_| single.step(&mut often, &[1.0; 20]));
        assert_eq!(once, often);
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for n in [2, 3] {
            let mut field = vec![1.0; n];
            Heat1d::new(n, 0.2, 0.1, 1e-3, 1).step(&mut field, &vec![1.0; n]);
            assert_eq!((field[0], field[n - 1]), (0.0, 0.0));
        }
    }

    proptest! {
        #[test]
        fn steps_are_linear(
            a in prop::collection::vec(-5.0..5.0f64, 40),
            b in prop::collection::vec(-5.0..5.0f64, 40),
            weight in -3.0..3.0f64,
        ) {
            let n = a.len();
            let step = |field: &[f64], force: &[f64]| {
                let mut field = field.to_vec();
                Heat1d::new(n, 0.2, 0.01, 1e-3, 1).step(&mut field, force);
                field
            };
            let mixed: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + weight * y).collect();
            let together = step(&mixed, &mixed);
            let apart = step(&a, &a).into_iter().zip(step(&b, &b)).map(|(x, y)| x + weight * y);
            for (x, y) in together.into_iter().zip(apart) {
                prop_assert!((x - y).abs() < 1e-11);
            }
        }

        /// Every mode's factor lies in (−1, 1): without forcing the mean square cannot grow.
        #[test]
        fn energy_decays_without_forcing(
            start in prop::collection::vec(-5.0..5.0f64, 3..80),
            r in 0.01..50.0f64,
        ) {
            let mut field = start;
            let n = field.len();
            (field[0], field[n - 1]) = (0.0, 0.0);
            let mut heat = Heat1d::new(n, r, 1.0, 1.0, 1);
            let energy = |f: &[f64]| f.iter().map(|z| z * z).sum::<f64>();
            for _ in 0..5 {
                let before = energy(&field);
                heat.step(&mut field, &vec![0.0; n]);
                prop_assert!(energy(&field) <= before * (1.0 + 1e-12));
            }
        }

        /// For r ≤ 1 both halves of the scheme have non-negative entries: no new extremes appear.
        #[test]
        fn no_new_extremes_for_small_steps(
            start in prop::collection::vec(-5.0..5.0f64, 3..80),
            r in 0.01..1.0f64,
        ) {
            let mut field = start;
            let n = field.len();
            (field[0], field[n - 1]) = (0.0, 0.0);
            let low = field.iter().copied().fold(0.0, f64::min);
            let high = field.iter().copied().fold(0.0, f64::max);
            Heat1d::new(n, r, 1.0, 1.0, 1).step(&mut field, &vec![0.0; n]);
            prop_assert!(field.iter().all(|z| (low - 1e-12..=high + 1e-12).contains(z)));
        }
    }
}
