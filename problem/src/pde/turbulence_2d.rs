//! Two-dimensional turbulence: the vorticity equation on the unit torus, pseudo-spectrally.

use super::Stepper;
use super::fourier::{Columns, Plans, Resolution, fast_size, wave_number};
use super::lanes::{Real, Table, Wide, WideComplex, narrow};
use super::spectral::{Driver, Equation, Group, Square};
use pulp::Simd;
use std::f64::consts::PI;
use std::ops::Range;

/// What the advection term is multiplied by in the authors' code: on the way to the padded grid
/// of 3/2 · 3/2 as many points, spectra are not rescaled, which weakens both factors of the product
/// by (2/3)². Their published figures rest on it.
pub const AS_PUBLISHED_ADVECTION: f64 = 16.0 / 81.0;

/// Steps the vorticity equation
///
/// ```text
/// ω_t = −a (u ω_x + v ω_y) + ν Δω + f,   u = ψ_y,   v = −ψ_x,   Δψ = ω
/// ```
///
/// on the unit torus, x along axis 1 of the field and y along axis 0. The factor a is 1 for
/// turbulence ([`AS_PUBLISHED_ADVECTION`] for the authors' version of it). The sign of the stream
/// function is the authors' too: it turns every vortex the other way round than textbooks do, which
/// is the same as ω → −ω.
///
/// In space: Fourier modes, with products on a grid of 3/2 as many points, where they have no
/// aliases. Velocity is free of divergence, so that advection needs only products of velocities:
///
/// ```text
/// u ω_x + v ω_y = −(∂_xx − ∂_yy)(u v) − ∂_xy (v² − u²)
/// ```
///
/// With z = u + iv both products stand in z² = (u² − v²) + 2i u v: one complex transform each way.
/// With K = k_x + i k_y, A the modes of z² and B(k) = conj A(−k), the velocity is z = −K ω/|K|² and
/// advection is (i/4)(K̄² A − K² B). Nyquist modes have no signed wave number: they only diffuse.
///
/// In time: the classical Runge–Kutta scheme of fourth order, diffusion included; see
/// [`largest_stable_dt`].
///
/// The driver, with its threads, is the one of all steppers on tori.
pub struct Turbulence2d<T: Real>(Driver<T, Scheme<T>>);

impl<T: Real> Turbulence2d<T> {
    /// A stepper for fields of `points` values along each axis whose control interval is
    /// `substeps` steps of `dt`. `advection` multiplies the advection term; it is 1 in nature.
    ///
    /// # Panics
    /// If an axis has fewer than two points, or a coefficient is negative or not finite.
    pub fn new(
        points: [usize; 2],
        viscosity: f64,
        dt: f64,
        substeps: usize,
        advection: f64,
    ) -> Self {
        assert!(points.iter().all(|&n| n >= 2), "{points:?} points");
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        assert!(
            [viscosity, dt, advection].into_iter().all(usable),
            "viscosity {viscosity}, dt {dt}, advection {advection}"
        );
        let resolution = Resolution {
            points,
            grid: points.map(|n| fast_size(3 * n / 2)),
            // All but the Nyquist modes, which only even numbers of points have.
            carried: points.map(|n| (n - 1) / 2),
        };
        let padded = (resolution.grid[0] * resolution.grid[1]) as f64;
        let dt: T = narrow(dt);
        let [half, third, sixth] = [2.0, 3.0, 6.0].map(|n: f64| dt * narrow(n.recip()));
        let stages = [(half, sixth), (half, third), (dt, third), (dt, sixth)];
        let scheme = Scheme {
            points,
            viscosity: narrow(viscosity),
            advection: narrow(0.25 * advection / padded),
            stages: stages.map(|(reach, weight)| Stage { reach, weight }),
        };
        Self(Driver::new(scheme, resolution, substeps))
    }
}

impl<T: Real> Stepper<T> for Turbulence2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        self.0.step(field, force);
    }
}

/// The equation and its scheme in numbers.
struct Scheme<T> {
    points: [usize; 2],
    viscosity: T,
    /// a / 4, and 1 / (points of the padded grid) for the transform.
    advection: T,
    stages: [Stage<T>; 4],
}

/// One of the four evaluations of a substep.
#[derive(Clone, Copy)]
struct Stage<T> {
    /// Time from the beginning of the substep to the next evaluation.
    reach: T,
    /// Weight of this evaluation in the substep.
    weight: T,
}

/// Of a group of columns.
struct Modes<T> {
    /// k_x of each column.
    kx: Table<T>,
    /// k_y along the columns.
    ky: Vec<T>,
    /// 1 / |K|², and 0 for the mean.
    inverse_square: Table<T>,
}

impl<T: Real> Equation<T> for Scheme<T> {
    type Product = Square<T>;
    type Modes = Modes<T>;

    fn modes(&self, columns: &Columns<T>) -> Modes<T> {
        let [n0, n1] = self.points;
        let kx = |lane: usize| wave_number(columns.first + lane, n1, 1.0);
        let ky = |j: usize| wave_number(j, n0, 1.0);
        let inverse_square = |j: usize, lane: usize| {
            let square = kx(lane).powi(2) + ky(j).powi(2);
            if square > 0.0 { square.recip() } else { 0.0 }
        };
        Modes {
            kx: Table::new(1, |_, lane| kx(lane)),
            ky: (0..n0).map(|j| narrow(ky(j))).collect(),
            inverse_square: Table::new(n0, inverse_square),
        }
    }

    /// The end is summed up from the beginning on.
    #[inline(always)]
    fn depart<S: Simd>(&self, group: &mut Group<T, Modes<T>>) {
        let Group { start, end, .. } = group;
        end.wide_mut::<S>().copy_from_slice(start.wide::<S>());
    }

    /// The velocity.
    #[inline(always)]
    fn send<S: Simd>(&self, simd: S, group: &mut Group<T, Modes<T>>, plans: &Plans<T>) {
        let Group {
            columns,
            stage,
            modes:
                Modes {
                    kx,
                    ky,
                    inverse_square,
                },
            ..
        } = group;
        if columns.carried == 0 {
            return;
        }
        let kx = Wide::load(simd, kx.wide::<S>()[0]);
        for (modes, at) in plans.resolution.carried_modes() {
            let inverse_square = &inverse_square.wide::<S>()[modes.clone()];
            let vorticity = &stage.wide::<S>()[modes.clone()];
            let ky = &ky[modes];
            let plus = &mut columns.plus.wide_mut::<S>()[at..][..ky.len()];
            let minus = &mut columns.minus.wide_mut::<S>()[at..][..ky.len()];
            for j in 0..ky.len() {
                let stream =
                    WideComplex::load(simd, vorticity[j]) * Wide::load(simd, inverse_square[j]);
                let (x, y) = (stream * kx, stream * Wide::splat(simd, ky[j]));
                // −(k_x + i k_y) and (k_x − i k_y) times the vorticity over |K|².
                let zero = Wide::splat(simd, T::zero());
                plus[j] = WideComplex::new(y.im - x.re, zero - (x.im + y.re)).stored();
                minus[j] = WideComplex::new(x.re + y.im, x.im - y.re).stored();
            }
        }
        columns.send(simd, plans);
    }

    #[inline(always)]
    fn advance<S: Simd>(
        &self,
        simd: S,
        group: &mut Group<T, Modes<T>>,
        number: usize,
        plans: &Plans<T>,
    ) {
        let [low, high] = plans.resolution.carried_modes();
        if group.columns.carried == 0 {
            return self.update(simd, group, 0..high.0.end, None, number);
        }
        let nyquist = low.0.end..high.0.start;
        self.update(simd, group, nyquist, None, number);
        for (modes, at) in [low, high] {
            self.update(simd, group, modes, Some(at), number);
        }
    }
}

impl<T: Real> Scheme<T> {
    /// Moves `modes` on to the next stage. Their products stand in the columns from `at` on; those
    /// without any only diffuse.
    #[inline(always)]
    fn update<S: Simd>(
        &self,
        simd: S,
        group: &mut Group<T, Modes<T>>,
        modes: Range<usize>,
        at: Option<usize>,
        number: usize,
    ) {
        let (count, last) = (modes.len(), number == 3);
        let kx = Wide::<T, S>::load(simd, group.modes.kx.wide::<S>()[0]);
        let [viscosity, factor, weight, reach] = [
            Wide::splat(simd, self.viscosity),
            Wide::splat(simd, self.advection),
            Wide::splat(simd, self.stages[number].weight),
            Wide::splat(simd, self.stages[number].reach),
        ];
        let ky = &group.modes.ky[modes.clone()];
        let force = &group.force.wide::<S>()[modes.clone()];
        let start = &mut group.start.wide_mut::<S>()[modes.clone()];
        let end = &mut group.end.wide_mut::<S>()[modes.clone()];
        let now = &mut group.stage.wide_mut::<S>()[modes];
        let products = at.map(|at| {
            let plus = &group.columns.plus.wide::<S>()[at..][..count];
            (plus, &group.columns.minus.wide::<S>()[at..][..count])
        });
        for j in 0..count {
            let ky = Wide::splat(simd, ky[j]);
            let (xx, yy) = (kx * kx, ky * ky);
            let damping = (xx + yy) * viscosity;
            let mut rate =
                WideComplex::load(simd, force[j]) - WideComplex::load(simd, now[j]) * damping;
            if let Some((plus, minus)) = products {
                // (i/4)(K̄² A − K² B), the constants in `factor`.
                let a = WideComplex::load(simd, plus[j]);
                let b = WideComplex::load(simd, minus[j]);
                let cross = kx * ky;
                let (cross, squares) = ((cross + cross) * factor, (xx - yy) * factor);
                rate = rate
                    + WideComplex::new(
                        cross * (a.re + b.re) - squares * (a.im - b.im),
                        cross * (a.im + b.im) + squares * (a.re - b.re),
                    );
            }
            let sum = WideComplex::load(simd, end[j]) + rate * weight;
            end[j] = sum.stored();
            if last {
                start[j] = sum.stored();
                now[j] = sum.stored();
            } else {
                now[j] = (WideComplex::load(simd, start[j]) + rate * reach).stored();
            }
        }
    }
}

/// The largest substep that is stable for fields on `points` grid points whose velocity does not
/// exceed `speed`.
///
/// A mode of wave number k that is carried along and diffused follows y' = (−νk² ± i|u|k) y. The
/// classical Runge–Kutta scheme damps it if −νk²Δt lies above −2.78 (no flow) or |u|kΔt below 2.82
/// (no diffusion), and on the straight line between these two points. The bound is that line at
/// the largest wave number of the grid; the smaller ones lie inside. For the published grid,
/// ν = 5e-4 and a speed of 2.2, which no test episode starts above, it is 0.0042.
pub fn largest_stable_dt(points: [usize; 2], viscosity: f64, speed: f64) -> f64 {
    let k = PI * points.map(|n| (n * n) as f64).iter().sum::<f64>().sqrt();
    (viscosity * k * k / 2.78 + speed * k / 2.82).recip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;
    use proptest::prelude::*;
    use std::f64::consts::TAU;

    /// Values of `f(x, y)` on the grid.
    fn field([n0, n1]: [usize; 2], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let at = |j: usize| f((j % n1) as f64 / n1 as f64, (j / n1) as f64 / n0 as f64);
        (0..n0 * n1).map(at).collect()
    }

    /// A few vortices that advect each other.
    fn vortices(points: [usize; 2]) -> Vec<f64> {
        field(points, |x, y| {
            8.0 * (TAU * x).cos() * (TAU * y).sin()
                + 5.0 * (TAU * (2.0 * y - x) + 1.0).sin()
                + 3.0 * (TAU * (x + y) + 2.0).cos()
        })
    }

    fn run(
        points: [usize; 2],
        viscosity: f64,
        time: f64,
        substeps: usize,
        start: &[f64],
    ) -> Vec<f64> {
        let mut field = start.to_vec();
        let dt = time / substeps as f64;
        Turbulence2d::new(points, viscosity, dt, substeps, 1.0)
            .step(&mut field, &vec![0.0; start.len()]);
        field
    }

    fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        (a.iter().zip(b)).fold(0.0, |worst, (a, b)| f64::max(worst, (a - b).abs()))
    }

    /// dω/dt, taken from the first stage of a substep without touching the rest of it.
    fn rate(points: [usize; 2], viscosity: f64, field: &[f64]) -> Vec<f64> {
        let Turbulence2d(mut driver) = Turbulence2d::<f64>::new(points, viscosity, 0.0, 0, 1.0);
        driver.step(&mut field.to_vec(), &vec![0.0; field.len()]);
        driver.equation.stages[0] = Stage {
            reach: 1.0,
            weight: 0.0,
        };
        driver.depart(1);
        driver.stage(0, 1);
        let mut rate = vec![0.0; field.len()];
        driver.put(&mut rate, |group| &group.stage);
        rate.iter().zip(field).map(|(after, w)| after - w).collect()
    }

    /// All modes of cos(2πmx) cos(2πny) have one |k|: the flow follows the lines of equal
    /// vorticity, and only diffusion is left, with exp(−νk²t), k² = 4π²(m² + n²).
    #[test]
    fn taylor_green_vortices_decay_exponentially() {
        for (points, m, n) in [
            ([32, 32], 1.0, 1.0),
            ([64, 48], 3.0, 5.0),
            ([31, 45], 3.0, 5.0),
        ] {
            let start = field(points, |x, y| {
                20.0 * (TAU * m * x).cos() * (TAU * n * y).cos()
            });
            let (viscosity, time) = (5e-3, 0.5);
            let decay = (-viscosity * TAU * TAU * (m * m + n * n) * time).exp();
            let exact: Vec<f64> = start.iter().map(|w| decay * w).collect();
            let found = run(points, viscosity, time, 250, &start);
            assert!(largest_gap(&found, &exact) < 1e-7, "{points:?}");
        }
    }

    /// Advection by the plain sum over all pairs of modes. With ω = Σ ω_p exp(ip·x), the velocity
    /// is (−i p_y, i p_x) ω_p / p², so that the rate of mode p + q is −(p_y q_x − p_x q_y) ω_p ω_q / p².
    #[test]
    fn advection_is_the_sum_over_pairs_of_modes() {
        for [n0, n1] in [[8, 8], [6, 10], [4, 12], [10, 2], [7, 9], [8, 5], [11, 4]] {
            let points = [n0, n1];
            let noise = |x: f64, y: f64| ((12.9898 * x + 78.233 * y).sin() * 43758.5453).fract();
            let start = field(points, noise);
            let numbers = |n: usize| -(n as i32 - 1) / 2..=(n as i32 - 1) / 2;
            let modes: Vec<(f64, f64, Complex<f64>)> = numbers(n0)
                .flat_map(|py| numbers(n1).map(move |px| (TAU * px as f64, TAU * py as f64)))
                .map(|(px, py)| {
                    let wave = field(points, |x, y| px * x + py * y);
                    let amplitude = (start.iter().zip(wave))
                        .map(|(w, phase)| Complex::from_polar(*w, -phase))
                        .sum::<Complex<f64>>()
                        / (n0 * n1) as f64;
                    (px, py, amplitude)
                })
                .collect();
            let limit = |n: usize| TAU * (n as f64 / 2.0 - 0.25);
            let mut expected = vec![0.0; n0 * n1];
            for (px, py, p) in modes.iter().filter(|mode| mode.0 != 0.0 || mode.1 != 0.0) {
                for (qx, qy, q) in &modes {
                    let (kx, ky) = (px + qx, py + qy);
                    if kx.abs() < limit(n1) && ky.abs() < limit(n0) {
                        let rate = p * q * -(py * qx - px * qy) / (px * px + py * py);
                        let wave = field(points, |x, y| {
                            (rate * Complex::from_polar(1.0, kx * x + ky * y)).re
                        });
                        expected.iter_mut().zip(wave).for_each(|(e, w)| *e += w);
                    }
                }
            }
            let found = rate(points, 0.0, &start);
            assert!(largest_gap(&found, &expected) < 1e-12, "{points:?}");
        }
    }

    /// ∫ω (u·∇)ω = 0 and ∫ψ (u·∇)ω = 0: advection moves energy and enstrophy about but makes
    /// none, and the product without aliases keeps that to rounding. The size of single terms is
    /// that of ‖ω‖‖rate‖.
    #[test]
    fn advection_conserves_energy_and_enstrophy() {
        let points = [32, 32];
        let start = vortices(points);
        let change = rate(points, 0.0, &start);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let size = (dot(&start, &start) * dot(&change, &change)).sqrt();
        assert!(dot(&change, &change) > 1.0, "something moves");
        assert!(dot(&start, &change).abs() < 1e-14 * size);
        // ψ solves Δψ = ω, mode by mode: its k² are 2, 5 and 2 times 4π².
        let stream = field(points, |x, y| {
            -8.0 / 2.0 * (TAU * x).cos() * (TAU * y).sin()
                - 5.0 / 5.0 * (TAU * (2.0 * y - x) + 1.0).sin()
                - 3.0 / 2.0 * (TAU * (x + y) + 2.0).cos()
        });
        assert!(dot(&stream, &change).abs() < 1e-14 * size);
    }

    #[test]
    fn fourth_order_in_time() {
        let points = [16, 16];
        let start = vortices(points);
        let exact = run(points, 2e-3, 0.2, 640, &start);
        let error = |substeps| largest_gap(&run(points, 2e-3, 0.2, substeps, &start), &exact);
        let order = (error(20) / error(40)).log2();
        assert!((order - 4.0).abs() < 0.15, "observed order {order}");
    }

    /// An error that falls like exp(−αn) has twice the observed order when n doubles; an error that
    /// falls like a power of n has the same one. The limit is half-way between.
    #[test]
    fn spectral_accuracy_in_space() {
        let at = |n: usize| {
            let fine = run([n, n], 5e-3, 0.2, 100, &vortices([n, n]));
            let every = n / 8;
            (0..64)
                .map(|j| fine[(j / 8 * n + j % 8) * every])
                .collect::<Vec<_>>()
        };
        let exact = at(64);
        let [coarse, medium, fine] = [8, 16, 32].map(|n| largest_gap(&at(n), &exact));
        let orders = [(coarse / medium).log2(), (medium / fine).log2()];
        assert!(orders[1] > 1.5 * orders[0], "{orders:?}, {fine}");
    }

    #[test]
    fn only_the_force_moves_the_mean() {
        let points = [16, 24];
        let mut field = vortices(points);
        let force: Vec<f64> = field.iter().map(|w| w * w).collect();
        let mean = |f: &[f64]| f.iter().sum::<f64>() / f.len() as f64;
        let expected = mean(&field) + 0.01 * mean(&force);
        Turbulence2d::new(points, 5e-4, 0.002, 5, 1.0).step(&mut field, &force);
        assert!((mean(&field) - expected).abs() < 1e-13);
    }

    /// A steady force against diffusion of one mode: ω = f / (νk²).
    #[test]
    fn a_steady_force_holds_a_steady_vortex() {
        let points = [16, 16];
        let mut field = field(points, |x, y| (TAU * x).sin() * (TAU * y).sin());
        let steady = field.clone();
        let force: Vec<f64> = steady.iter().map(|w| w * 0.01 * 2.0 * TAU * TAU).collect();
        let mut stepper = Turbulence2d::new(points, 0.01, 0.01, 10, 1.0);
        (0..20).for_each(|_| stepper.step(&mut field, &force));
        assert!(largest_gap(&field, &steady) < 1e-13);
    }

    #[test]
    fn the_published_advection_is_slower_by_its_factor() {
        // Without diffusion and force, a times the advection is the same flow in a times the time.
        let points = [16, 16];
        let mut slow = vortices(points);
        let fast = run(points, 0.0, 0.1 * AS_PUBLISHED_ADVECTION, 20, &slow);
        Turbulence2d::new(points, 0.0, 0.005, 20, AS_PUBLISHED_ADVECTION)
            .step(&mut slow, &vec![0.0; 256]);
        assert!(largest_gap(&slow, &fast) < 1e-12);
    }

    #[test]
    fn single_precision_follows_double() {
        let points = [64, 64];
        let mut wide = vortices(points);
        let mut narrow: Vec<f32> = wide.iter().map(|&w| w as f32).collect();
        let mut wide_stepper = Turbulence2d::<f64>::new(points, 5e-4, 0.002, 5, 1.0);
        let mut narrow_stepper = Turbulence2d::<f32>::new(points, 5e-4, 0.002, 5, 1.0);
        for _ in 0..5 {
            wide_stepper.step(&mut wide, &vec![1.0; 4096]);
            narrow_stepper.step(&mut narrow, &vec![1.0; 4096]);
        }
        let narrow: Vec<f64> = narrow.into_iter().map(f64::from).collect();
        let gap = largest_gap(&wide, &narrow);
        assert!(gap < 1e-4, "{gap}"); // fields are of size 10: 1e-5 of that
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        for points in [[64, 64], [48, 80]] {
            let start = vortices(points);
            let force = field(points, |x, y| (TAU * x).sin() + y);
            let run = |portions| {
                let mut stepper = Turbulence2d::<f64>::new(points, 5e-4, 0.002, 2, 1.0);
                let mut field = start.clone();
                stepper.0.step_on(&mut field, &force, portions);
                stepper.0.step_on(&mut field, &force, portions);
                field
            };
            let alone = run(1);
            for threads in [2, 3, 7, 16] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                assert!(pool.install(|| run(threads)) == alone, "{threads} threads");
            }
        }
    }

    /// Two points per axis hold nothing but the mean and Nyquist modes (k² = 4π² each way), which
    /// diffuse.
    #[test]
    fn the_smallest_grid_diffuses() {
        let start = vec![1.0, 2.0, 4.0, 9.0];
        let found = run([2, 2], 0.01, 0.1, 10, &start);
        let decay = |k2: f64| (-0.01 * TAU * TAU * k2 * 0.1).exp();
        // Mean 4, half-differences along x −1.5, along y −2.5, and along both 1.
        let exact = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
            .map(|[x, y]| 4.0 - 1.5 * x * decay(1.0) - 2.5 * y * decay(1.0) + x * y * decay(2.0));
        assert!(largest_gap(&found, &exact) < 1e-9, "{found:?} {exact:?}");
    }

    #[test]
    fn grids_of_any_size_work() {
        for points in [
            [2, 4],
            [4, 2],
            [6, 14],
            [22, 10],
            [2, 64],
            [3, 3],
            [15, 14],
            [33, 35],
        ] {
            let found = run(points, 5e-4, 0.01, 5, &vortices(points));
            assert!(found.iter().all(|w| w.is_finite()), "{points:?}");
        }
    }

    #[test]
    #[should_panic(expected = "points")]
    fn a_line_is_no_torus() {
        Turbulence2d::<f64>::new([1, 8], 5e-4, 0.002, 5, 1.0);
    }

    /// |1 + z + z²/2 + z³/6 + z⁴/24| ≤ 1 along the line that the bound stands for.
    #[test]
    fn the_bound_lies_in_the_stability_region() {
        for share in (0..=100).map(|percent| f64::from(percent) / 100.0) {
            let z = Complex::new(-2.78 * share, 2.82 * (1.0 - share));
            let growth = 1.0 + z * (1.0 + z / 2.0 * (1.0 + z / 3.0 * (1.0 + z / 4.0)));
            assert!(growth.norm() <= 1.0, "{share}");
        }
    }

    #[test]
    fn the_published_substep_is_within_the_bound() {
        // k = π √(2 · 64²) = 284.3; 1 / (5e-4 k² / 2.78 + 2.2 k / 2.82) = 1 / (14.5 + 221.8).
        let limit = largest_stable_dt([64, 64], 5e-4, 2.2);
        assert!((limit - 1.0 / 236.3).abs() < 1e-5, "{limit}");
        assert!(limit > 0.002);
    }

    #[test]
    fn steps_beyond_the_bound_blow_up_and_those_within_do_not() {
        // Grid noise in fluid at rest: its fastest mode decays at νk², k² = π²(16² + 16²).
        let points = [16, 16];
        let start = field(points, |x, y| 1e-6 * (TAU * 8.0 * (x + y)).cos());
        let limit = largest_stable_dt(points, 0.01, 0.0);
        for (dt, stable) in [(0.99 * limit, true), (1.02 * limit, false)] {
            let found = run(points, 0.01, 500.0 * dt, 500, &start);
            let size = largest_gap(&found, &vec![0.0; 256]);
            assert_eq!(size <= 1e-6, stable, "{size} at {dt}");
        }
    }

    fn noise() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-10.0..10.0f64, 12 * 12)
    }

    fn short(start: &[f64]) -> Vec<f64> {
        run([12, 12], 5e-4, 0.01, 3, start)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The torus has no origin.
        #[test]
        fn shifting_by_whole_cells_shifts_the_result(start in noise(), i in 0..12usize, j in 0..12usize) {
            let shifted = |f: &[f64]| -> Vec<f64> {
                (0..144).map(|at| f[(at / 12 + i) % 12 * 12 + (at % 12 + j) % 12]).collect()
            };
            let gap = largest_gap(&shifted(&short(&start)), &short(&shifted(&start)));
            prop_assert!(gap < 1e-11, "{gap}");
        }

        /// In a mirror, x and y change places and vortices turn the other way.
        #[test]
        fn mirrored_vortices_turn_the_other_way(start in noise()) {
            let mirrored = |f: &[f64]| -> Vec<f64> {
                (0..144).map(|at| -f[at % 12 * 12 + at / 12]).collect()
            };
            let gap = largest_gap(&mirrored(&short(&start)), &short(&mirrored(&start)));
            prop_assert!(gap < 1e-11, "{gap}");
        }
    }
}
