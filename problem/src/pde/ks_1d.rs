//! The Kuramoto–Sivashinsky equation on a circle, in Fourier space.

use super::Stepper;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftNum, RealFftPlanner, RealToComplex};
use std::f64::consts::PI;
use std::sync::Arc;

/// Steps `u_t + u u_x + u_xx + u_xxxx = f`, periodic.
///
/// Per wavenumber `k`, with `l = k² − k⁴` the growth rate of a faint mode, the linear part goes
/// forward by Crank–Nicolson and everything else by explicit Euler:
///
/// ```text
/// û⁺ = [(1 + Δt l/2) û + Δt (f̂ − ½ i k F(u²))] / (1 − Δt l/2)
/// ```
///
/// Products are not dealiased, as published: the fourth-order damping leaves nothing to alias on
/// grids that reach wavenumbers of 9 or so. First order in time, spectrally accurate in space. For
/// the longest step see [`Ks1d::largest_stable_dt`].
#[derive(Clone)]
pub struct Ks1d<T> {
    points: usize,
    substeps: usize,
    /// What one substep multiplies û by.
    linear: Vec<T>,
    /// Imaginary part of what it multiplies F(u²) by (the real part is zero) …
    advection: Vec<T>,
    /// … and F(f); both with the 1/N that the transforms leave out.
    forcing: Vec<T>,
    forward: Arc<dyn RealToComplex<T>>,
    inverse: Arc<dyn ComplexToReal<T>>,
    /// û, with the 1/N.
    modes: Vec<Complex<T>>,
    /// What one substep adds for the force.
    push: Vec<Complex<T>>,
    /// Transforms destroy what they read: copies to be destroyed, and their scratch space.
    values: Vec<T>,
    spectrum: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: FftNum> Ks1d<T> {
    /// A stepper for fields of `points` values on a circle of circumference `length`. A control
    /// interval is `substeps` steps of `dt` each.
    ///
    /// # Panics
    /// If there are no points, `length` is not positive, or `dt` is not between 0 and 8 (where the
    /// implicit half of the fastest-growing mode, `1 − Δt/8`, would vanish).
    pub fn new(points: usize, length: f64, dt: f64, substeps: usize) -> Self {
        assert!(points > 0, "a circle has points");
        assert!(length > 0.0 && length.is_finite(), "length = {length}");
        assert!(dt > 0.0 && dt < 8.0, "dt = {dt}");
        let t = |value: f64| T::from_f64(value).expect("floats convert to floats");
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(points);
        let inverse = planner.plan_fft_inverse(points);
        let count = forward.complex_len();
        let wavenumbers = || (0..count).map(|n| 2.0 * PI * n as f64 / length);
        let half_growth = |k: f64| 0.5 * dt * (k.powi(2) - k.powi(4));
        let share = dt / points as f64;
        Self {
            points,
            substeps,
            linear: wavenumbers()
                .map(|k| t((1.0 + half_growth(k)) / (1.0 - half_growth(k))))
                .collect(),
            advection: wavenumbers()
                .map(|k| t(-0.5 * k * share / (1.0 - half_growth(k))))
                .collect(),
            forcing: wavenumbers()
                .map(|k| t(share / (1.0 - half_growth(k))))
                .collect(),
            modes: forward.make_output_vec(),
            push: forward.make_output_vec(),
            values: forward.make_input_vec(),
            spectrum: forward.make_output_vec(),
            scratch: vec![
                Complex::new(T::zero(), T::zero());
                forward.get_scratch_len().max(inverse.get_scratch_len())
            ],
            forward,
            inverse,
        }
    }

    /// The longest step for fields whose values, which are also speeds, stay below `speed`:
    /// `2 / speed²`.
    ///
    /// On a uniform flow `U` one step multiplies the energy of mode `k` by
    /// `[(1 + Δt l/2)² + (k U Δt)²] / (1 − Δt l/2)²`, as if explicit Euler added a growth of
    /// `½ U² Δt k²` to `l = k² − k⁴`. Modes decay from `k² = 1 + ½ U² Δt` on, in place of `k² = 1`.
    /// No step is so short that the band of growing modes does not widen, and the equation itself
    /// has one; the bound is where the scheme's own growth reaches the equation's. Chaotic states
    /// on long circles have |u| < 4, for which this gives 0.125; there, runs blow up from about
    /// 0.3 on.
    pub fn largest_stable_dt(speed: f64) -> f64 {
        2.0 / (speed * speed)
    }

    /// Grid points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Transforms `values` into `spectrum`.
    fn transform(&mut self) {
        self.forward
            .process_with_scratch(&mut self.values, &mut self.spectrum, &mut self.scratch)
            .expect("buffers of the planned length");
    }

    fn substep(&mut self, field: &mut [T]) {
        for (square, &u) in self.values.iter_mut().zip(field.iter()) {
            *square = u * u;
        }
        self.transform();
        for n in 0..self.modes.len() {
            let (u, squared, push) = (self.modes[n], self.spectrum[n], self.push[n]);
            let (linear, advection) = (self.linear[n], self.advection[n]);
            self.modes[n] = Complex::new(
                linear * u.re - advection * squared.im + push.re,
                linear * u.im + advection * squared.re + push.im,
            );
        }
        // These two waves have no sine on the grid.
        self.modes[0].im = T::zero();
        if self.points.is_multiple_of(2) {
            self.modes[self.points / 2].im = T::zero();
        }
        self.spectrum.copy_from_slice(&self.modes);
        self.inverse
            .process_with_scratch(&mut self.spectrum, field, &mut self.scratch)
            .expect("buffers of the planned length");
    }
}

impl<T: FftNum> Stepper<T> for Ks1d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.points;
        assert!(field.len() == n && force.len() == n, "{n} grid points");
        self.values.copy_from_slice(force);
        self.transform();
        for ((push, f), &factor) in (self.push.iter_mut().zip(&self.spectrum)).zip(&self.forcing) {
            *push = f.scale(factor);
        }
        self.values.copy_from_slice(field);
        self.transform();
        let normal = T::one() / T::from_usize(n).expect("grids have countable points");
        for (mode, u) in self.modes.iter_mut().zip(&self.spectrum) {
            *mode = u.scale(normal);
        }
        for _ in 0..self.substeps {
            self.substep(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: f64 = 22.0;

    fn wave(points: usize, amplitude: f64, n: usize, phase: f64) -> impl Iterator<Item = f64> {
        let angle = 2.0 * PI * n as f64 / points as f64;
        (0..points).map(move |j| amplitude * (angle * j as f64 + phase).cos())
    }

    /// A smooth state of the size that chaotic states have.
    fn swell(points: usize) -> Vec<f64> {
        (wave(points, 1.0, 1, 0.0).zip(wave(points, 1.5, 3, 1.0)))
            .map(|(a, b)| a + b)
            .collect()
    }

    fn evolved(mut field: Vec<f64>, dt: f64, steps: usize) -> Vec<f64> {
        let n = field.len();
        Ks1d::new(n, LENGTH, dt, steps).step(&mut field, &vec![0.0; n]);
        field
    }

    fn largest(values: impl Iterator<Item = f64>) -> f64 {
        values.fold(0.0, |worst, v| worst.max(v.abs()))
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        largest(a.iter().zip(b).map(|(a, b)| a - b))
    }

    /// Modes too faint to advect grow or decay by (1 + Δt l/2) / (1 − Δt l/2) per step.
    #[test]
    fn faint_modes_grow_by_the_discrete_factor() {
        for points in [128, 101] {
            for n in [1, 2, 3, 4, 12] {
                let k = 2.0 * PI * n as f64 / LENGTH;
                let half = 0.025 * (k.powi(2) - k.powi(4));
                let factor = ((1.0 + half) / (1.0 - half)).powi(40);
                let start: Vec<f64> = wave(points, 1e-9, n, 0.4).collect();
                let field = evolved(start.clone(), 0.05, 40);
                let off = largest(field.iter().zip(&start).map(|(u, s)| u - factor * s));
                assert!(off < 1e-16, "{points} points, mode {n}: {off}");
            }
        }
    }

    /// Crank–Nicolson's rate of growth approaches k² − k⁴ with an error of Δt² l³ / 12.
    #[test]
    fn faint_modes_grow_to_second_order_in_time() {
        let k = 2.0 * PI * 5.0 / LENGTH;
        let rate = k.powi(2) - k.powi(4); // −2.1
        let error = |steps: usize| {
            let start: Vec<f64> = wave(64, 1e-9, 5, 0.0).collect();
            let field = evolved(start, 1.0 / steps as f64, steps);
            (field[0] / 1e-9 - rate.exp()).abs()
        };
        let order = (error(20) / error(40)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    /// The advection is explicit Euler, so whole states converge to first order.
    #[test]
    fn first_order_in_time() {
        let at = |steps: usize| evolved(swell(64), 2.0 / steps as f64, steps);
        let (coarse, middle, fine) = (at(400), at(800), at(1600));
        let order = (distance(&coarse, &middle) / distance(&middle, &fine)).log2();
        assert!((order - 1.0).abs() < 0.05, "observed order {order}");
    }

    /// Doubling the grid gains not a factor but digits: from 16 to 32 points at least four, and then
    /// rounding is reached.
    #[test]
    fn spectrally_accurate_in_space() {
        let reference = evolved(swell(256), 0.01, 200);
        let error = |points: usize| {
            let field = evolved(swell(points), 0.01, 200);
            let stride = 256 / points;
            largest((0..points).map(|j| field[j] - reference[j * stride]))
        };
        let (coarse, fine, finest) = (error(16), error(32), error(64));
        assert!(coarse > 1e-3 && fine < 1e-4 * coarse, "{coarse}, {fine}");
        assert!(finest < 1e-11, "{finest}");
    }

    /// A uniform flow is a solution, and faint waves on it have the factor that the bound on the
    /// step is derived from; k = 4 · 2π/22 = 1.14, where k² = 1.305.
    #[test]
    fn explicit_advection_feeds_waves_on_a_fast_flow() {
        let (points, n, speed) = (64, 4, 4.0);
        let k = 2.0 * PI * n as f64 / LENGTH;
        let (growth, mut grown) = (k.powi(2) - k.powi(4), Vec::new());
        for dt in [0.01, 0.125] {
            let gain = ((1.0 + 0.5 * dt * growth).powi(2) + (k * speed * dt).powi(2)).sqrt()
                / (1.0 - 0.5 * dt * growth);
            let start = wave(points, 1e-6, n, 0.0).map(|w| speed + w).collect();
            let field = evolved(start, dt, 10);
            // Amplitude of the wave, whatever its phase: √2 times its root mean square.
            let square: f64 = field.iter().map(|u| (u - speed).powi(2)).sum();
            let amplitude = (2.0 * square / points as f64).sqrt();
            let expected = 1e-6 * gain.powi(10);
            assert!((amplitude / expected - 1.0).abs() < 1e-4, "{amplitude}");
            grown.push(gain);
        }
        // 1 + ½ U² Δt = 1.08 < 1.305 at the short step and 2 > 1.305 at the bound.
        assert!(grown[0] < 1.0 && grown[1] > 1.0, "{grown:?}");
    }

    /// Chaos on a long circle for 200 time units, from the same faint noise.
    fn largest_speed_of_chaos(dt: f64) -> f64 {
        let n = 512;
        let mut field: Vec<f64> = (0..n)
            .map(|j| 0.1 * ((j * j) as f64 * 0.37).sin() * (j as f64 * 1.7).cos())
            .collect();
        let mut ks = Ks1d::new(n, 200.0, dt, 10);
        let mut speed = 0.0;
        for _ in 0..(20.0 / dt) as usize {
            ks.step(&mut field, &vec![0.0; n]);
            speed = largest(field.iter().copied()).max(speed);
            if field.iter().any(|u| !u.is_finite()) {
                return f64::INFINITY;
            }
        }
        speed
    }

    #[test]
    fn chaos_is_stable_at_the_bound_and_blows_up_far_beyond_it() {
        let bound = Ks1d::<f64>::largest_stable_dt(4.0);
        let speed = largest_speed_of_chaos(bound);
        assert!((2.0..5.0).contains(&speed), "{speed}");
        let beyond = largest_speed_of_chaos(4.0 * bound);
        assert!(beyond > 1e6, "{beyond}");
    }

    /// Only the force moves the mean, by Δt f̄ per step.
    #[test]
    fn the_mean_follows_the_mean_force() {
        for points in [128, 101] {
            let mut field = swell(points);
            let force: Vec<f64> = wave(points, 1.0, 2, 0.0).map(|w| 0.3 + w).collect();
            let mean = |f: &[f64]| f.iter().sum::<f64>() / points as f64;
            let before = mean(&field);
            Ks1d::new(points, LENGTH, 0.05, 40).step(&mut field, &force);
            assert!((mean(&field) - before - 0.6).abs() < 1e-12); // 40 · 0.05 · 0.3
        }
    }

    /// From rest, one step under a faint wave of force gives Δt f / (1 − Δt l/2): the implicit half
    /// acts on the force too.
    #[test]
    fn a_force_meets_the_implicit_half() {
        let k = 2.0 * PI * 7.0 / LENGTH;
        let half = 0.025 * (k.powi(2) - k.powi(4)); // −0.3
        let force: Vec<f64> = wave(128, 1e-3, 7, 0.2).collect();
        let mut field = [0.0; 128];
        Ks1d::new(128, LENGTH, 0.05, 1).step(&mut field, &force);
        for (u, f) in field.iter().zip(&force) {
            assert!((u - 0.05 * f / (1.0 - half)).abs() < 1e-17);
        }
    }

    #[test]
    fn single_precision_follows_double() {
        let mut wide = swell(128);
        let mut narrow: Vec<f32> = wide.iter().map(|&u| u as f32).collect();
        Ks1d::<f64>::new(128, LENGTH, 0.05, 100).step(&mut wide, &[0.1; 128]);
        Ks1d::<f32>::new(128, LENGTH, 0.05, 100).step(&mut narrow, &[0.1; 128]);
        for (a, b) in wide.iter().zip(&narrow) {
            assert!((a - f64::from(*b)).abs() < 1e-4, "{a} vs {b}");
        }
    }

    #[test]
    fn substeps_are_steps_under_the_same_force() {
        let (mut once, mut often) = (swell(32), swell(32));
        Ks1d::new(32, LENGTH, 0.05, 3).step(&mut once, &[0.5; 32]);
        let mut single = Ks1d::new(32, LENGTH, 0.05, 1);
        (0..3).for_each(|_| single.step(&mut often, &[0.5; 32]));
        assert!(distance(&once, &often) < 1e-14);
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for n in 1..5 {
            let mut field = vec![1.0; n];
            Ks1d::new(n, LENGTH, 0.05, 1).step(&mut field, &vec![1.0; n]);
            assert!(
                field.iter().all(|u| (u - 1.05f64).abs() < 1e-14),
                "{field:?}"
            );
        }
    }

    #[test]
    fn a_lost_field_stays_lost_without_a_panic() {
        let mut field = [0.0; 16];
        field[3] = f64::NAN;
        Ks1d::new(16, LENGTH, 0.05, 2).step(&mut field, &[0.0; 16]);
        assert!(field[0].is_nan());
    }

    fn stepped(field: &[f64], force: &[f64]) -> Vec<f64> {
        let mut field = field.to_vec();
        Ks1d::new(field.len(), LENGTH, 0.05, 5).step(&mut field, force);
        field
    }

    fn state() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        prop::collection::vec((-2.0..2.0f64, -1.0..1.0f64), 30..34)
            .prop_map(|pairs| pairs.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn a_rotated_start_gives_the_rotated_field((field, force) in state(), by in 0usize..30) {
            let rotated = |v: &[f64]| {
                let mut v = v.to_vec();
                v.rotate_left(by);
                v
            };
            let ahead = rotated(&stepped(&field, &force));
            let turned = stepped(&rotated(&field), &rotated(&force));
            prop_assert!(distance(&ahead, &turned) < 1e-12);
        }

        /// u(x) → −u(−x) maps solutions to solutions.
        #[test]
        fn a_reflected_start_gives_the_reflected_field((field, force) in state()) {
            let reflected = |v: &[f64]| v.iter().rev().map(|u| -u).collect::<Vec<_>>();
            let ahead = reflected(&stepped(&field, &force));
            let back = stepped(&reflected(&field), &reflected(&force));
            prop_assert!(distance(&ahead, &back) < 1e-12);
        }

        #[test]
        fn the_mean_is_conserved_without_force((field, _) in state()) {
            let n = field.len();
            let after = stepped(&field, &vec![0.0; n]);
            let drift = after.iter().sum::<f64>() - field.iter().sum::<f64>();
            prop_assert!(drift.abs() < 1e-12 * n as f64);
        }
    }
}
