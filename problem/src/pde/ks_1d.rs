//! The Kuramoto–Sivashinsky equation on a circle, in Fourier space.

use super::Stepper;
use super::exponential::Etdrk4;
use super::lanes::{Real, narrow};
use super::real_line::RealLine;
use num_complex::Complex;
use std::f64::consts::PI;

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
///
/// That is the published scheme, at any speed. With [`Ks1d::minding_speed`] it is used as long as the
/// field is slow enough for it; a field that actuators drive faster is stepped by ETDRK4, in as many
/// pieces as its speed asks for.
#[derive(Clone)]
pub struct Ks1d<T> {
    points: usize,
    length: f64,
    dt: f64,
    substeps: usize,
    /// For substeps that begin too fast for the scheme above; none to use it all the same.
    fast: Option<Fast<T>>,
    /// What one substep multiplies û by.
    linear: Vec<T>,
    /// Imaginary part of what it multiplies F(u²) by (the real part is zero) …
    advection: Vec<T>,
    /// … and F(f); both with the 1/N that the transforms leave out.
    forcing: Vec<T>,
    circle: RealLine<T>,
    /// û, with the 1/N.
    modes: Vec<Complex<T>>,
    /// What one substep adds for the force.
    push: Vec<Complex<T>>,
    /// u²
    squares: Vec<T>,
    /// F(u²), or the modes of a stage.
    spectrum: Vec<Complex<T>>,
}

impl<T: Real> Ks1d<T> {
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
        let t = narrow::<T>;
        let circle = RealLine::new(points);
        let count = circle.modes();
        let none = vec![Complex::new(T::zero(), T::zero()); count];
        let wavenumbers = || (0..count).map(|n| 2.0 * PI * n as f64 / length);
        let half_growth = |k: f64| 0.5 * dt * (k.powi(2) - k.powi(4));
        let share = dt / points as f64;
        Self {
            points,
            length,
            dt,
            substeps,
            fast: None,
            linear: wavenumbers()
                .map(|k| t((1.0 + half_growth(k)) / (1.0 - half_growth(k))))
                .collect(),
            advection: wavenumbers()
                .map(|k| t(-0.5 * k * share / (1.0 - half_growth(k))))
                .collect(),
            forcing: wavenumbers()
                .map(|k| t(share / (1.0 - half_growth(k))))
                .collect(),
            circle,
            modes: none.clone(),
            push: none.clone(),
            squares: vec![T::zero(); points],
            spectrum: none,
        }
    }

    /// The same, but a substep that begins with a field too fast for explicit Euler, U² Δt above
    /// [`CALM`], is made by ETDRK4 instead. Up to there nothing changes, to the last bit.
    ///
    /// U is the largest |u|, with what the force can add to it in the substep. ETDRK4 is of fourth
    /// order and solves the linear part exactly, so what is left to mind is how far the field carries
    /// itself: the substep is halved until U Δt is 0.25 at most.
    pub fn minding_speed(mut self) -> Self {
        let none = vec![Complex::new(T::zero(), T::zero()); self.modes.len()];
        self.fast = Some(Fast {
            schemes: vec![None; MOST_HALVINGS + 1],
            force: none.clone(),
            first: none.clone(),
            end: none.clone(),
            slope: none,
        });
        self
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

    /// Makes `spectrum` the modes of u², not normalised.
    fn square(&mut self, field: &[T]) {
        for (square, &u) in self.squares.iter_mut().zip(field) {
            *square = u * u;
        }
        self.circle.analyse(&self.squares, &mut self.spectrum);
    }

    /// How often to halve a substep for ETDRK4; none if the published scheme will do (or if the field
    /// is lost).
    fn halvings(&self, field: &[T], strongest: f64) -> Option<usize> {
        self.fast.as_ref()?;
        let speed = top_speed(field) + self.dt * strongest;
        let too_fast = speed * speed * self.dt > CALM;
        too_fast.then(|| {
            let pieces = (speed * self.dt / CARRIED).max(1.0);
            (libm::log2(pieces).ceil() as usize).min(MOST_HALVINGS)
        })
    }

    /// One substep by ETDRK4, in 2^`halvings` pieces.
    fn fast_substep(&mut self, field: &mut [T], halvings: usize) {
        let Some(mut fast) = self.fast.take() else {
            return;
        };
        let (length, dt) = (self.length, self.dt / (1 << halvings) as f64);
        let (count, points) = (self.modes.len(), self.points);
        let scheme =
            fast.schemes[halvings].get_or_insert_with(|| Scheme::new(count, points, length, dt));
        for stage in (0..1 << halvings).flat_map(|_| 0..4) {
            self.square(field);
            for n in 0..count {
                let mode = &scheme.modes[n];
                let (squared, advection) = (self.spectrum[n], mode.advection);
                let rate =
                    fast.force[n] + Complex::new(-(advection * squared.im), advection * squared.re);
                let start = self.modes[n];
                // The names are those of `Etdrk4`.
                self.spectrum[n] = match stage {
                    0 => {
                        fast.slope[n] = rate;
                        fast.end[n] = start.scale(mode.whole) + rate.scale(mode.weights[0]);
                        fast.first[n] = start.scale(mode.half) + rate.scale(mode.h);
                        fast.first[n]
                    }
                    1 => {
                        fast.end[n] = fast.end[n] + rate.scale(mode.weights[1]);
                        start.scale(mode.half) + rate.scale(mode.h)
                    }
                    2 => {
                        fast.end[n] = fast.end[n] + rate.scale(mode.weights[1]);
                        fast.first[n].scale(mode.half) + (rate + rate - fast.slope[n]).scale(mode.h)
                    }
                    _ => {
                        self.modes[n] = fast.end[n] + rate.scale(mode.weights[2]);
                        self.modes[n]
                    }
                };
            }
            self.circle.synthesise(&self.spectrum, field);
        }
        self.fast = Some(fast);
    }

    fn substep(&mut self, field: &mut [T]) {
        self.square(field);
        for n in 0..self.modes.len() {
            let (u, squared, push) = (self.modes[n], self.spectrum[n], self.push[n]);
            let (linear, advection) = (self.linear[n], self.advection[n]);
            self.modes[n] = Complex::new(
                linear * u.re - advection * squared.im + push.re,
                linear * u.im + advection * squared.re + push.im,
            );
        }
        self.circle.synthesise(&self.modes, field);
    }
}

/// The largest |value|; values that are none do not count.
fn top_speed<T: Real>(values: &[T]) -> f64 {
    let size = |z: &T| z.abs().to_f64().unwrap_or(f64::NAN);
    values.iter().map(size).fold(0.0, f64::max)
}

/// The largest U² Δt for explicit Euler where speed is minded. It adds a growth of ½ U² Δt k² (see
/// [`Ks1d::largest_stable_dt`], whose bound this is 0.275 of), which must stay a fault that nobody
/// sees. In the published step of 0.05 this is U = 3.3: chaos, which stays below 3.2, is left as
/// published, and the mean square of a field that is pushed on from there stays within 0.8 % of that
/// of short steps.
pub const CALM: f64 = 0.55;

/// How far, U Δt, a field may carry itself in a step of ETDRK4; its fastest growing waves are 8.9
/// long. With twice that, the mean squares of fields that are driven to |u| = 370 are still within
/// 3e-6 of those with shorter steps, and with four times that they blow up.
const CARRIED: f64 = 0.25;

/// A substep is halved no more often: at the published 0.05 it is enough for |u| = 5,000.
const MOST_HALVINGS: usize = 10;

/// ETDRK4 for a field too fast for explicit Euler: coefficients and what is kept between its stages.
#[derive(Clone)]
struct Fast<T> {
    /// By the number of halvings of a substep; made when they are first needed.
    schemes: Vec<Option<Scheme<T>>>,
    /// Modes of the force, with the 1/N.
    force: Vec<Complex<T>>,
    /// The field at the first stage, a.
    first: Vec<Complex<T>>,
    /// The field at the end, as far as known.
    end: Vec<Complex<T>>,
    /// N(v).
    slope: Vec<Complex<T>>,
}

/// Steps of one length.
#[derive(Clone)]
struct Scheme<T> {
    modes: Vec<FastMode<T>>,
}

/// [`Etdrk4`] for one mode.
#[derive(Clone)]
struct FastMode<T> {
    whole: T,
    half: T,
    h: T,
    weights: [T; 3],
    /// Imaginary part of what F(u²) is multiplied by, with the 1/N.
    advection: T,
}

impl<T: Real> Scheme<T> {
    fn new(count: usize, points: usize, length: f64, dt: f64) -> Self {
        let t = narrow::<T>;
        let mode = |n: usize| {
            let k = 2.0 * PI * n as f64 / length;
            let etd = Etdrk4::new(dt * (k.powi(2) - k.powi(4)), dt);
            FastMode {
                whole: t(etd.whole),
                half: t(etd.half),
                h: t(etd.h),
                weights: etd.weights.map(t),
                advection: t(-0.5 * k / points as f64),
            }
        };
        Self {
            modes: (0..count).map(mode).collect(),
        }
    }
}

impl<T: Real> Stepper<T> for Ks1d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.points;
        assert!(field.len() == n && force.len() == n, "{n} grid points");
        self.circle.analyse(force, &mut self.spectrum);
        for ((push, f), &factor) in (self.push.iter_mut().zip(&self.spectrum)).zip(&self.forcing) {
            *push = f.scale(factor);
        }
        let normal = T::one() / T::from_usize(n).expect("grids have countable points");
        if let Some(fast) = &mut self.fast {
            for (mode, f) in fast.force.iter_mut().zip(&self.spectrum) {
                *mode = f.scale(normal);
            }
        }
        let strongest = top_speed(force);
        self.circle.analyse(field, &mut self.spectrum);
        for (mode, u) in self.modes.iter_mut().zip(&self.spectrum) {
            *mode = u.scale(normal);
        }
        for _ in 0..self.substeps {
            match self.halvings(field, strongest) {
                None => self.substep(field),
                Some(halvings) => self.fast_substep(field, halvings),
            }
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

    #[test]
    fn slow_fields_keep_the_published_bits() {
        let (mut published, mut minding) = (swell(128), swell(128));
        let force: Vec<f64> = wave(128, 0.2, 2, 0.3).collect();
        let scheme = Ks1d::new(128, LENGTH, 0.05, 1);
        let mut mind = scheme.clone().minding_speed();
        let mut keep = scheme;
        for _ in 0..40 {
            keep.step(&mut published, &force);
            mind.step(&mut minding, &force);
            assert!(largest(published.iter().copied()) < 3.2);
        }
        assert_eq!(published, minding);
    }

    /// A uniform flow U carries every wave along: seen from it, the field evolves as at rest. Modes
    /// n of the two differ by the phase k U t alone.
    #[test]
    fn a_fast_flow_carries_the_field_along_unchanged() {
        let (points, time) = (128, 1.0);
        let rest = evolved(swell(points), time / 20_000.0, 20_000);
        // At 506 it goes round 23 times, by when the waves lag by a thousandth of the circle.
        for (speed, tolerance) in [(5.0, 2e-3), (50.0, 2e-3), (500.0, 2e-2)] {
            // A whole number of rounds, so that the field comes back to where it was.
            let speed = (speed * time / LENGTH).ceil() * LENGTH / time;
            let mut field: Vec<f64> = swell(points).iter().map(|u| u + speed).collect();
            let mut ks = Ks1d::new(points, LENGTH, 0.05, 1).minding_speed();
            (0..20).for_each(|_| ks.step(&mut field, &vec![0.0; points]));
            let off = largest(field.iter().zip(&rest).map(|(u, r)| u - speed - r));
            // The reference is of first order: 1e-4 of fields of size 2.
            assert!(off < tolerance, "{speed}: {off}");
        }
    }

    /// Fourth order, once Euler is left behind: with twice the substeps the difference falls 16-fold.
    #[test]
    fn fast_fields_are_stepped_to_fourth_order() {
        let at = |substeps: usize| {
            let mut field: Vec<f64> = swell(64).iter().map(|u| u + 8.0).collect();
            let mut ks = Ks1d::new(64, LENGTH, 0.2 / substeps as f64, substeps).minding_speed();
            (0..5).for_each(|_| ks.step(&mut field, &[0.0; 64]));
            field
        };
        // From 8 substeps on none is halved: 10.5 · 0.2 / 8 = 0.26; and 10.5² · 0.2 / 32 = 0.69.
        let (coarse, middle, fine) = (at(9), at(18), at(36));
        let order = (distance(&coarse, &middle) / distance(&middle, &fine)).log2();
        assert!((order - 4.0).abs() < 0.3, "observed order {order}");
    }

    #[test]
    fn a_lost_field_is_not_minded() {
        let mut field = [0.0; 16];
        field[3] = f64::NAN;
        let mut ks = Ks1d::new(16, LENGTH, 0.05, 2).minding_speed();
        ks.step(&mut field, &[0.0; 16]);
        assert!(field[0].is_nan());
        let mut field = [1e200; 16];
        field[0] = -1e200;
        ks.step(&mut field, &[0.0; 16]);
        assert!(field.iter().any(|u| !u.is_finite()));
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
