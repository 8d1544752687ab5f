//! Two-dimensional turbulence: the vorticity equation on the unit torus, pseudo-spectrally.

use super::Stepper;
use super::fourier::{
    Columns, Plans, RealField, Resolution, Rows, fast_size, for_each, portions, wave_number,
};
use super::lanes::{Lines, Real, Table, Wide, WideComplex, narrow};
use num_traits::Zero;
use pulp::{Arch, Simd, WithSimd};
use rustfft::num_complex::Complex;
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
/// Grids from 128 × 128 points on use all threads unless the caller already runs in rayon's pool;
/// the result is the same to the last bit. (On smaller ones, moving the data to another core takes
/// as long as working on it.)
///
/// Fields are real because each step begins with one; within a step, rounding errors that are not
/// grow like any perturbation. Long runs should therefore be made of many steps, not of one with
/// many substeps.
pub struct Turbulence2d<T> {
    plans: Plans<T>,
    real: RealField<T>,
    spectrum: Vec<Complex<T>>,
    groups: Vec<Group<T>>,
    rows: Vec<Rows<T>>,
    constants: Constants<T>,
    substeps: usize,
}

#[derive(Clone, Copy)]
struct Constants<T> {
    viscosity: T,
    /// a / 4, and 1 / (points of the padded grid) for the transform.
    advection: T,
    dt: T,
}

/// A group of columns with the modes that stand in them.
struct Group<T> {
    columns: Columns<T>,
    /// k_x of each column.
    kx: Table<T>,
    /// k_y along the columns.
    ky: Vec<T>,
    /// 1 / |K|², and 0 for the mean.
    inverse_square: Table<T>,
    /// Vorticity at the beginning of the substep.
    start: Lines<T>,
    /// Vorticity at the stage that is being evaluated.
    stage: Lines<T>,
    /// Vorticity at the end of the substep, as far as known.
    end: Lines<T>,
    force: Lines<T>,
}

/// One of the four evaluations of a substep.
#[derive(Clone, Copy)]
struct Stage<T> {
    /// Time from the beginning of the substep to the next evaluation.
    reach: T,
    /// Weight of this evaluation in the substep.
    weight: T,
    last: bool,
}

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
        let plans = Plans::new(resolution, false);
        let real = RealField::new(points);
        let mut rows = Rows::all(&plans);
        rows.retain(|group| group.first < resolution.grid[0]);
        let padded = (resolution.grid[0] * resolution.grid[1]) as f64;
        Self {
            groups: Columns::all(&plans)
                .into_iter()
                .map(|columns| Group::new(columns, points))
                .collect(),
            rows,
            spectrum: vec![Complex::zero(); real.modes()],
            plans,
            real,
            constants: Constants {
                viscosity: narrow(viscosity),
                advection: narrow(0.25 * advection / padded),
                dt: narrow(dt),
            },
            substeps,
        }
    }

    fn advance(&mut self, portions: usize) {
        let Self {
            plans,
            groups,
            rows,
            constants,
            ..
        } = self;
        let (arch, dt) = (Arch::new(), constants.dt);
        let [half, third, sixth] = [2.0, 3.0, 6.0].map(|n: f64| dt * narrow(n.recip()));
        let stages = [(half, sixth), (half, third), (dt, third), (dt, sixth)];
        for_each(groups, portions, &|group| {
            arch.dispatch(Depart { group, plans })
        });
        for _ in 0..self.substeps {
            for (number, (reach, weight)) in stages.into_iter().enumerate() {
                let stage = Stage {
                    reach,
                    weight,
                    last: number == 3,
                };
                for_each(rows, portions, &|rows| {
                    arch.dispatch(Square {
                        rows,
                        groups,
                        plans,
                    });
                });
                for_each(groups, portions, &|group| {
                    arch.dispatch(Evaluate {
                        group,
                        stage,
                        constants,
                        rows,
                        plans,
                    });
                });
            }
        }
    }

    fn step_on(&mut self, field: &mut [T], force: &[T], portions: usize) {
        let [n0, n1] = self.plans.resolution.points;
        let points = n0 * n1;
        assert!(
            field.len() == points && force.len() == points,
            "{n0} × {n1} grid points"
        );
        self.real.analyse(force, &mut self.spectrum);
        for Group { columns, force, .. } in &mut self.groups {
            columns.pick(&self.spectrum, n0, force);
        }
        self.real.analyse(field, &mut self.spectrum);
        for Group { columns, start, .. } in &mut self.groups {
            columns.pick(&self.spectrum, n0, start);
        }
        if portions > 1 {
            // One trip into the pool instead of one for every phase of every stage.
            rayon::scope(|_| self.advance(portions));
        } else {
            self.advance(1);
        }
        for Group { columns, start, .. } in &self.groups {
            columns.put(&mut self.spectrum, n0, start);
        }
        self.real.synthesise(&mut self.spectrum, field);
    }
}

impl<T: Real> Stepper<T> for Turbulence2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let [n0, n1] = self.plans.resolution.grid;
        self.step_on(field, force, portions(n0 * n1));
    }
}

impl<T: Real> Group<T> {
    fn new(columns: Columns<T>, [n0, n1]: [usize; 2]) -> Self {
        let kx = |lane: usize| wave_number(columns.first + lane, n1, 1.0);
        let ky = |j: usize| wave_number(j, n0, 1.0);
        let inverse_square = |j: usize, lane: usize| {
            let square = kx(lane).powi(2) + ky(j).powi(2);
            if square > 0.0 { square.recip() } else { 0.0 }
        };
        Self {
            kx: Table::new(1, |_, lane| kx(lane)),
            ky: (0..n0).map(|j| narrow(ky(j))).collect(),
            inverse_square: Table::new(n0, inverse_square),
            start: Lines::zeros(n0),
            stage: Lines::zeros(n0),
            end: Lines::zeros(n0),
            force: Lines::zeros(n0),
            columns,
        }
    }

    /// Moves `modes` on to the next stage. Their products stand in the columns from `at` on; those
    /// without any only diffuse.
    #[inline(always)]
    fn update<S: Simd>(
        &mut self,
        simd: S,
        modes: Range<usize>,
        at: Option<usize>,
        stage: Stage<T>,
        constants: &Constants<T>,
    ) {
        let count = modes.len();
        let kx = Wide::<T, S>::load(simd, self.kx.wide::<S>()[0]);
        let [viscosity, factor, weight, reach] = [
            Wide::splat(simd, constants.viscosity),
            Wide::splat(simd, constants.advection),
            Wide::splat(simd, stage.weight),
            Wide::splat(simd, stage.reach),
        ];
        let ky = &self.ky[modes.clone()];
        let force = &self.force.wide::<S>()[modes.clone()];
        let start = &mut self.start.wide_mut::<S>()[modes.clone()];
        let end = &mut self.end.wide_mut::<S>()[modes.clone()];
        let now = &mut self.stage.wide_mut::<S>()[modes];
        let products = at.map(|at| {
            let plus = &self.columns.plus.wide::<S>()[at..][..count];
            (plus, &self.columns.minus.wide::<S>()[at..][..count])
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
            if stage.last {
                start[j] = sum.stored();
                now[j] = sum.stored();
            } else {
                now[j] = (WideComplex::load(simd, start[j]) + rate * reach).stored();
            }
        }
    }

    /// Passes the velocity z of `stage` on to the rows.
    #[inline(always)]
    fn send_velocity<S: Simd>(&mut self, simd: S, plans: &Plans<T>) {
        if self.columns.carried == 0 {
            return;
        }
        let kx = Wide::load(simd, self.kx.wide::<S>()[0]);
        for (modes, at) in plans.resolution.carried_modes() {
            let inverse_square = &self.inverse_square.wide::<S>()[modes.clone()];
            let vorticity = &self.stage.wide::<S>()[modes.clone()];
            let ky = &self.ky[modes];
            let plus = &mut self.columns.plus.wide_mut::<S>()[at..][..ky.len()];
            let minus = &mut self.columns.minus.wide_mut::<S>()[at..][..ky.len()];
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
        self.columns.send(simd, plans);
    }
}

/// Sends the velocity of `start` to the grid.
struct Depart<'a, T> {
    group: &'a mut Group<T>,
    plans: &'a Plans<T>,
}

impl<T: Real> WithSimd for Depart<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Group {
            start, stage, end, ..
        } = self.group;
        stage.wide_mut::<S>().copy_from_slice(start.wide::<S>());
        end.wide_mut::<S>().copy_from_slice(start.wide::<S>());
        self.group.send_velocity(simd, self.plans);
    }
}

/// z → z² on a group of rows.
struct Square<'a, T> {
    rows: &'a mut Rows<T>,
    groups: &'a [Group<T>],
    plans: &'a Plans<T>,
}

impl<T: Real> WithSimd for Square<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = self.groups.iter().map(|group| &group.columns);
        self.rows.load(simd, columns, self.plans);
        for value in self.rows.line.wide_mut::<S>() {
            let z = WideComplex::<T, S>::load(simd, *value);
            let cross = z.re * z.im;
            *value = WideComplex::new(z.re * z.re - z.im * z.im, cross + cross).stored();
        }
        self.rows.transform(simd, self.plans);
    }
}

/// Takes the rate of change of `stage`, moves on to the next stage and sends its velocity.
struct Evaluate<'a, T> {
    group: &'a mut Group<T>,
    stage: Stage<T>,
    constants: &'a Constants<T>,
    rows: &'a [Rows<T>],
    plans: &'a Plans<T>,
}

impl<T: Real> WithSimd for Evaluate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            group,
            stage,
            constants,
            rows,
            plans,
        } = self;
        let [low, high] = plans.resolution.carried_modes();
        if group.columns.carried == 0 {
            return group.update(simd, 0..high.0.end, None, stage, constants);
        }
        group.columns.receive(simd, rows.iter(), plans);
        let nyquist = low.0.end..high.0.start;
        group.update(simd, nyquist, None, stage, constants);
        for (modes, at) in [low, high] {
            group.update(simd, modes, Some(at), stage, constants);
        }
        group.send_velocity(simd, plans);
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
        let mut stepper = Turbulence2d::<f64>::new(points, viscosity, 0.0, 0, 1.0);
        stepper.step(&mut field.to_vec(), &vec![0.0; field.len()]);
        let Turbulence2d {
            plans,
            real,
            spectrum,
            groups,
            rows,
            constants,
            ..
        } = &mut stepper;
        let whole = Stage {
            reach: 1.0,
            weight: 0.0,
            last: false,
        };
        let arch = Arch::new();
        for group in groups.iter_mut() {
            arch.dispatch(Depart { group, plans });
        }
        for rows in rows.iter_mut() {
            arch.dispatch(Square {
                rows,
                groups,
                plans,
            });
        }
        for group in groups.iter_mut() {
            arch.dispatch(Evaluate {
                group,
                stage: whole,
                constants,
                rows,
                plans,
            });
            for lane in 0..group.columns.width {
                for j in 0..points[0] {
                    spectrum[(group.columns.first + lane) * points[0] + j] =
                        group.stage.get(j, lane) - group.start.get(j, lane);
                }
            }
        }
        let mut rate = vec![0.0; field.len()];
        real.synthesise(spectrum, &mut rate);
        rate
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
                stepper.step_on(&mut field, &force, portions);
                stepper.step_on(&mut field, &force, portions);
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
