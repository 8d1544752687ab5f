//! Fisher's equation (with Kolmogorov, Petrovsky and Piskunov) on a line, zero at both walls.

use super::{Stepper, Tridiagonal};
use num_traits::{Float, clamp};

/// Steps `z_t = ν z_xx + ρ z (1 − z) + f` with `z = 0` at both ends and `0 ≤ z ≤ 1` everywhere.
///
/// Reaction and forcing go forward explicitly, then diffusion implicitly (backward Euler), then the
/// density is cut to its range. With `r = ν Δt / Δx²`,
///
/// ```text
/// e_j = z_j + Δt (ρ z_j (1 − z_j) + f_j)
/// (1 + 2r) z⁺_j − r (z⁺_{j−1} + z⁺_{j+1}) = e_j,   then z⁺ ← clip(z⁺, 0, 1)
/// ```
///
/// on the interior; the end values are zero. First order in time, second in space. Diffusion limits
/// no step; for the reaction see [`Fkpp1d::largest_stable_dt`].
#[derive(Debug, Clone)]
pub struct Fkpp1d<T> {
    implicit: Tridiagonal<T>,
    growth: T,
    dt: T,
    substeps: usize,
}

impl<T: Float> Fkpp1d<T> {
    /// A stepper for fields of `points` values, both walls included, spaced `dx`. A control interval
    /// is `substeps` steps of `dt` each.
    ///
    /// # Panics
    /// If a coefficient is not positive and finite.
    pub fn new(
        points: usize,
        diffusivity: f64,
        growth: f64,
        dx: f64,
        dt: f64,
        substeps: usize,
    ) -> Self {
        let r = diffusivity * dt / (dx * dx);
        assert!(r > 0.0 && r.is_finite() && dt > 0.0, "r = {r}, dt = {dt}");
        assert!(growth > 0.0 && growth.is_finite(), "growth = {growth}");
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        Self {
            implicit: Tridiagonal::constant(points.saturating_sub(2), t(-r), t(1.0 + 2.0 * r))
                .expect("1 + 2r > 2r: diagonally dominant"),
            growth: t(growth),
            dt: t(dt),
            substeps,
        }
    }

    /// The longest step that the explicit reaction bears: `2 / ρ`.
    ///
    /// Near the saturated state `z = 1` a deviation is multiplied by `1 − Δt ρ` per step; beyond
    /// `2 / ρ` it grows from step to step with alternating sign until the cut stops it.
    pub fn largest_stable_dt(growth: f64) -> f64 {
        2.0 / growth
    }

    /// Grid points, walls included (at least 2).
    pub fn points(&self) -> usize {
        self.implicit.rows() + 2
    }

    fn substep(&self, field: &mut [T], force: &[T]) {
        let last = self.points() - 1;
        let interior = &mut field[1..last];
        for (z, &f) in interior.iter_mut().zip(&force[1..last]) {
            *z = *z + self.dt * (self.growth * *z * (T::one() - *z) + f);
        }
        self.implicit.solve(interior);
        for z in interior {
            *z = clamp(*z, T::zero(), T::one()); // keeps a NaN, which a run must see
        }
        field[0] = T::zero();
        field[last] = T::zero();
    }
}

impl<T: Float + Send> Stepper<T> for Fkpp1d<T> {
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

    /// Value at time 0.5 in the middle of a field that starts at 0.2 everywhere, ρ = 3, and is so
    /// weakly diffusive (√(νt) = 7e-4 of the width) that the walls are not felt there.
    fn uniform_after_half_a_unit(steps: usize) -> f64 {
        let n = 101;
        let mut field = vec![0.2; n];
        let dt = 0.5 / steps as f64;
        Fkpp1d::new(n, 1e-6, 3.0, 0.01, dt, steps).step(&mut field, &vec![0.0; n]);
        field[n / 2]
    }

    /// Without diffusion the equation is the logistic one: z = z₀ eᵖ / (1 − z₀ + z₀ eᵖ), p = ρ t.
    #[test]
    fn a_uniform_field_grows_logistically_to_first_order_in_time() {
        let growth = 1.5f64.exp();
        let exact = 0.2 * growth / (0.8 + 0.2 * growth);
        let error = |steps| (uniform_after_half_a_unit(steps) - exact).abs();
        assert!(error(1000) < 1e-3);
        let order = (error(100) / error(200)).log2();
        assert!((order - 1.0).abs() < 0.05, "observed order {order}");
    }

    /// Ablowitz and Zeppetella's wave, z = (1 + exp(s))⁻², s = √(ρ/6ν) (x − 5 √(ρν/6) t), runs to
    /// the right at fixed shape. What the left wall does to its plateau dies out like
    /// exp(−x √(ρ/ν)) = exp(−x/0.04): below 1e-12 where the error is measured.
    fn travelling_wave_error(n: usize) -> f64 {
        let (diffusivity, growth, length, time): (f64, f64, f64, f64) = (0.005, 3.0, 3.0, 0.3);
        let wave = |x: f64, t: f64| {
            let speed = 5.0 * (growth * diffusivity / 6.0).sqrt();
            let s = (growth / (6.0 * diffusivity)).sqrt() * (x - 1.5 - speed * t);
            (1.0 + s.exp()).powi(-2)
        };
        let dx = length / (n - 1) as f64;
        let steps = 80_000;
        let mut field: Vec<f64> = (0..n).map(|j| wave(j as f64 * dx, 0.0)).collect();
        let mut fkpp = Fkpp1d::new(n, diffusivity, growth, dx, time / steps as f64, steps);
        fkpp.step(&mut field, &vec![0.0; n]);
        (field.iter().enumerate())
            .map(|(j, z)| (j as f64 * dx, z))
            .filter(|(x, _)| (1.2..2.2).contains(x))
            .fold(0.0, |worst, (x, z)| worst.max((z - wave(x, time)).abs()))
    }

    #[test]
    fn a_travelling_wave_keeps_its_shape_to_second_order_in_space() {
        // 80,000 steps leave an error of 1e-6 (found on a grid of 1601), the finer grid's is 7e-5.
        let (coarse, fine) = (travelling_wave_error(101), travelling_wave_error(201));
        let order = (coarse / fine).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    /// A small sine mode neither saturates nor leaves [0, 1]: the reaction multiplies it by 1 + Δt ρ
    /// and the implicit diffusion divides it by 1 + 4 r sin²(π / 2(N−1)), up to its square.
    #[test]
    fn a_faint_sine_grows_by_the_discrete_factor() {
        let (n, r) = (100, 0.05); // 0.005 · 1e-3 / 0.01²
        let s = (PI / (2.0 * (n - 1) as f64)).sin().powi(2);
        let factor = ((1.0 + 3e-3) / (1.0 + 4.0 * r * s)).powi(100);
        let start: Vec<f64> = (0..n)
            .map(|j| 1e-9 * (PI * j as f64 / (n - 1) as f64).sin())
            .collect();
        let mut field = start.clone();
        Fkpp1d::new(n, 0.005, 3.0, 0.01, 1e-3, 100).step(&mut field, &vec![0.0; n]);
        for j in 1..n - 1 {
            assert!((field[j] / (factor * start[j]) - 1.0).abs() < 1e-8, "{j}");
        }
    }

    /// Against a weak sink, f = −0.03, the field rests where z (1 − z) = 0.01, at z = 0.9899, and
    /// deviations are multiplied by 1 − 0.98 Δt ρ: −0.76 at 90 % of the bound, −1.16 at 110 %.
    #[test]
    fn the_reaction_is_stable_up_to_its_bound() {
        let last_change = |share: f64| {
            let dt = share * Fkpp1d::<f64>::largest_stable_dt(3.0);
            let mut field = [0.9; 41];
            let mut fkpp = Fkpp1d::new(41, 1e-9, 3.0, 0.1, dt, 1);
            (0..200).for_each(|_| fkpp.step(&mut field, &[-0.03; 41]));
            let before = field[20];
            fkpp.step(&mut field, &[-0.03; 41]);
            (field[20] - before).abs()
        };
        assert!(last_change(0.9) < 1e-9);
        assert!(last_change(1.1) > 1e-2);
    }

    #[test]
    fn a_steady_force_fills_the_line_and_the_walls_stay_empty() {
        let n = 30;
        let mut field = vec![0.0; n];
        Fkpp1d::new(n, 0.005, 3.0, 0.03, 1e-3, 2000).step(&mut field, &vec![40.0; n]);
        assert_eq!((field[0], field[n - 1]), (0.0, 0.0));
        assert!(field[1..n - 1].iter().all(|z| (0.8..=1.0).contains(z)));
    }

    #[test]
    fn single_precision_follows_double() {
        let n = 100;
        let mut wide: Vec<f64> = (0..n).map(|j| (j as f64 * 0.1).sin().powi(2)).collect();
        let mut narrow: Vec<f32> = wide.iter().map(|&v| v as f32).collect();
        Fkpp1d::<f64>::new(n, 0.005, 3.0, 0.01, 1e-3, 300).step(&mut wide, &vec![0.1; n]);
        Fkpp1d::<f32>::new(n, 0.005, 3.0, 0.01, 1e-3, 300).step(&mut narrow, &vec![0.1; n]);
        for (a, b) in wide.iter().zip(&narrow) {
            assert!((a - f64::from(*b)).abs() < 1e-5);
        }
    }

    #[test]
    fn substeps_are_steps_under_the_same_force() {
        let (mut once, mut often) = ([0.3; 20], [0.3; 20]);
        Fkpp1d::new(20, 0.005, 3.0, 0.05, 1e-3, 3).step(&mut once, &[1.0; 20]);
        let mut single = Fkpp1d::new(20, 0.005, 3.0, 0.05, 1e-3, 1);
        (0..3).for_each(|_| single.step(&mut often, &[1.0; 20]));
        assert_eq!(once, often);
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for n in [2, 3] {
            let mut field = vec![1.0; n];
            Fkpp1d::new(n, 0.005, 3.0, 0.1, 1e-3, 1).step(&mut field, &vec![1.0; n]);
            assert_eq!((field[0], field[n - 1]), (0.0, 0.0));
        }
    }

    proptest! {
        #[test]
        fn densities_stay_between_zero_and_one(
            start in prop::collection::vec(0.0..=1.0f64, 50),
            force in prop::collection::vec(-400.0..400.0f64, 50),
        ) {
            let mut field = start;
            let mut fkpp = Fkpp1d::new(50, 0.005, 3.0, 0.02, 1e-3, 1);
            for _ in 0..20 {
                fkpp.step(&mut field, &force);
                prop_assert!(field.iter().all(|z| (0.0..=1.0).contains(z)));
            }
        }

        /// Diffusion and (for Δt ρ ≤ 1) reaction are both monotone: more now is more later.
        #[test]
        fn a_denser_start_stays_denser(
            low in prop::collection::vec(0.0..=1.0f64, 50),
            added in prop::collection::vec(0.0..=1.0f64, 50),
        ) {
            let mut fkpp = Fkpp1d::new(50, 0.005, 3.0, 0.02, 1e-3, 10);
            let mut high: Vec<f64> = low.iter().zip(&added).map(|(l, a)| l + a * (1.0 - l)).collect();
            let mut low = low;
            fkpp.step(&mut low, &[0.0; 50]);
            fkpp.step(&mut high, &[0.0; 50]);
            prop_assert!(low.iter().zip(&high).all(|(l, h)| *l <= h + 1e-14));
        }

        #[test]
        fn a_mirrored_start_gives_the_mirrored_field(
            mut left in prop::collection::vec((0.0..=1.0f64, -9.0..9.0f64), 3..60),
        ) {
            let n = left.len();
            let mut run = || {
                let (mut field, force): (Vec<f64>, Vec<f64>) = left.iter().copied().unzip();
                Fkpp1d::new(n, 0.005, 3.0, 0.02, 1e-3, 10).step(&mut field, &force);
                left.reverse();
                field
            };
            let (ahead, back) = (run(), run());
            for (a, b) in ahead.iter().zip(back.iter().rev()) {
                prop_assert!((a - b).abs() < 1e-13);
            }
        }
    }
}
