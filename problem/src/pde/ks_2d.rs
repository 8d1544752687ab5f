//! The Kuramoto–Sivashinsky equation on a torus, by exponential time differencing.

use super::Stepper;
use super::exponential::{Etdrk4, phi};
use super::fourier::{Columns, Plans, Resolution, wave_number};
use super::lanes::{Lines, Real, Table, Wide, WideComplex, lanes};
use super::spectral::{Driver, Equation, Group, SquareModulus};
use pulp::Simd;

/// The largest time step that was seen to stay bounded: four test episodes on 64 × 64 points of a
/// torus of length 32 kept their mean square for 100 time units with steps of 1, and blew up at once
/// with steps of 2.
///
/// There is no stiff bound, because the scheme solves the linear part exactly; what is left is the
/// nonlinear term, whose rate |∇u||k| is a few units on the attractor among the modes that are not
/// damped away. Accuracy asks for less: after one time unit the largest error is 6e-9 with steps of
/// 0.005, 1e-6 with 0.02 and 3e-4 with 0.1, in fields of size 10.
pub const LARGEST_STABLE_DT: f64 = 1.0;

/// How the inner stages of a substep treat the linear part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stages {
    /// ETDRK4 of Cox and Matthews: a half step weighs the nonlinear term with Δt/2 φ₁(c/2).
    /// Fourth order.
    Proper,
    /// The authors' code takes φ₁ of the whole step, φ₁(c), instead: second order. The difference
    /// shows where |c| is not small, in modes that are damped strongly anyway.
    AsPublished,
}

/// Steps the Kuramoto–Sivashinsky equation
///
/// ```text
/// u_t = −Δu − Δ²u − ½|∇u|² + f
/// ```
///
/// on a square torus. The mean of the nonlinear term is left out, as published, so that only the
/// force moves the mean of u (which nothing else depends on).
///
/// In space: Fourier modes. Modes beyond 2/3 of the largest wave number along either axis do not
/// enter the gradient, so that its square has no aliases among those that do; they are driven by
/// it all the same. With z = u_x + i u_y the nonlinear term is −½|z|²: one complex transform down
/// and a real one up.
///
/// In time: ETDRK4, which solves the stiff linear part exactly (c = (q − q²)Δt, q = |k|²) and the
/// rest to fourth order:
///
/// ```text
/// a = E₂ v + h N(v)            E = exp c,  E₂ = exp(c/2),  h = Δt/2 φ₁(c/2)
/// b = E₂ v + h N(a)
/// d = E₂ a + h (2 N(b) − N(v))
/// v⁺ = E v + Δt [(φ₁ − 3φ₂ + 4φ₃) N(v) + (2φ₂ − 4φ₃)(N(a) + N(b)) + (4φ₃ − φ₂) N(d)]
/// ```
///
/// The step is bounded by the nonlinear term alone, see [`LARGEST_STABLE_DT`].
///
/// The driver, with its threads, is the one of all steppers on tori.
pub struct Ks2d<T: Real>(Driver<T, Scheme>);

impl<T: Real> Ks2d<T> {
    /// A stepper for fields of `points` values along each axis of a torus that is `length` long
    /// both ways; a control interval is `substeps` steps of `dt`.
    ///
    /// # Panics
    /// If an axis has fewer than two points, or `length` or `dt` is not positive.
    pub fn new(points: [usize; 2], length: f64, dt: f64, substeps: usize, stages: Stages) -> Self {
        assert!(points.iter().all(|&n| n >= 2), "{points:?} points");
        assert!(
            length > 0.0 && dt > 0.0 && (length * dt).is_finite(),
            "length {length}, dt {dt}"
        );
        let resolution = Resolution {
            points,
            grid: points,
            carried: points.map(|n| (n - 1) / 3), // the largest integer below 2/3 · n/2
        };
        let scheme = Scheme {
            points,
            length,
            dt,
            stages,
        };
        Self(Driver::new(scheme, resolution, substeps))
    }
}

impl<T: Real> Stepper<T> for Ks2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        self.0.step(field, force);
    }
}

/// The equation and its scheme in numbers.
struct Scheme {
    points: [usize; 2],
    length: f64,
    dt: f64,
    stages: Stages,
}

/// Of a group of columns.
struct Modes<T> {
    /// Wave number along axis 1, of each column.
    across: Table<T>,
    /// Wave number along axis 0, along the columns; the same in all lanes.
    along: Table<T>,
    coefficients: Coefficients<T>,
    /// The field at the first stage, a.
    first: Lines<T>,
    /// N(v).
    slope: Lines<T>,
}

/// Of each mode; the names are those of the scheme above.
struct Coefficients<T> {
    whole: Table<T>,
    half: Table<T>,
    h: Table<T>,
    weights: [Table<T>; 3],
    /// −½ and the normalisation of the transform; 0 for the mean.
    product: Table<T>,
}

impl<T: Real> Coefficients<T> {
    /// For `length` modes along each column with |k|² = `square(position, lane)`.
    fn new(
        length: usize,
        square: impl Fn(usize, usize) -> f64,
        dt: f64,
        stages: Stages,
        points: usize,
    ) -> Self {
        let lanes = lanes::<T>();
        let growth = |j: usize, lane: usize| {
            let q = square(j, lane);
            (q - q * q) * dt
        };
        let modes: Vec<Etdrk4> = (0..length * lanes)
            .map(|at| Etdrk4::new(growth(at / lanes, at % lanes), dt))
            .collect();
        let table = |of: &dyn Fn(&Etdrk4) -> f64| {
            Table::new(length, |j, lane| of(&modes[j * lanes + lane]))
        };
        Self {
            whole: table(&|mode| mode.whole),
            half: table(&|mode| mode.half),
            h: match stages {
                Stages::Proper => table(&|mode| mode.h),
                Stages::AsPublished => {
                    Table::new(length, |j, lane| 0.5 * dt * phi(growth(j, lane))[0])
                }
            },
            weights: [0, 1, 2].map(|n| table(&|mode| mode.weights[n])),
            product: Table::new(length, |j, lane| {
                if square(j, lane) > 0.0 {
                    -0.5 / points as f64
                } else {
                    0.0
                }
            }),
        }
    }
}

impl<T: Real> Equation<T> for Scheme {
    type Product = SquareModulus<T>;
    type Modes = Modes<T>;

    fn modes(&self, columns: &Columns<T>) -> Modes<T> {
        let [n0, n1] = self.points;
        let across = |lane: usize| wave_number(columns.first + lane, n1, self.length);
        let along = |j: usize| wave_number(j, n0, self.length);
        let square = |j: usize, lane: usize| across(lane).powi(2) + along(j).powi(2);
        Modes {
            across: Table::new(1, |_, lane| across(lane)),
            along: Table::new(n0, |j, _| along(j)),
            coefficients: Coefficients::new(n0, square, self.dt, self.stages, n0 * n1),
            first: Lines::zeros(n0),
            slope: Lines::zeros(n0),
        }
    }

    /// The gradient.
    #[inline(always)]
    fn send<S: Simd>(&self, simd: S, group: &mut Group<T, Modes<T>>, plans: &Plans<T>) {
        let Group {
            columns,
            stage,
            modes: Modes { across, along, .. },
            ..
        } = group;
        if columns.carried == 0 {
            return;
        }
        let across = Wide::load(simd, across.wide::<S>()[0]);
        let zero = Wide::splat(simd, T::zero());
        for (modes, at) in plans.resolution.carried_modes() {
            let along = &along.wide::<S>()[modes.clone()];
            let field = &stage.wide::<S>()[modes];
            let plus = &mut columns.plus.wide_mut::<S>()[at..][..along.len()];
            let minus = &mut columns.minus.wide_mut::<S>()[at..][..along.len()];
            for j in 0..along.len() {
                let value = WideComplex::load(simd, field[j]);
                let (x, y) = (value * across, value * Wide::load(simd, along[j]));
                // With k along axis 0 and l along axis 1: (ik − l) and (ik + l) times the field.
                plus[j] = WideComplex::new(zero - (x.re + y.im), y.re - x.im).stored();
                minus[j] = WideComplex::new(x.re - y.im, x.im + y.re).stored();
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
        _: &Plans<T>,
    ) {
        match number {
            0 => update(
                simd,
                group,
                #[inline(always)]
                |mode, n| {
                    mode.slope = n;
                    mode.first = mode.start * mode.half + n * mode.h;
                    mode.end = mode.start * mode.whole + n * mode.w0;
                    mode.first
                },
            ),
            1 => update(
                simd,
                group,
                #[inline(always)]
                |mode, n| {
                    mode.end = mode.end + n * mode.w1;
                    mode.start * mode.half + n * mode.h
                },
            ),
            2 => update(
                simd,
                group,
                #[inline(always)]
                |mode, n| {
                    mode.end = mode.end + n * mode.w1;
                    mode.first * mode.half + (n + n - mode.slope) * mode.h
                },
            ),
            _ => update(
                simd,
                group,
                #[inline(always)]
                |mode, n| {
                    mode.start = mode.end + n * mode.w2;
                    mode.start
                },
            ),
        }
    }
}

/// Calls `next` with each mode, its coefficients and N, for the next stage.
#[inline(always)]
fn update<T: Real, S: Simd>(
    simd: S,
    group: &mut Group<T, Modes<T>>,
    next: impl Fn(&mut Mode<T, S>, WideComplex<T, S>) -> WideComplex<T, S>,
) {
    let Modes {
        along,
        coefficients: c,
        first,
        slope,
        ..
    } = &mut group.modes;
    let n0 = along.wide::<S>().len();
    let whole = &c.whole.wide::<S>()[..n0];
    let half = &c.half.wide::<S>()[..n0];
    let h = &c.h.wide::<S>()[..n0];
    let w0 = &c.weights[0].wide::<S>()[..n0];
    let w1 = &c.weights[1].wide::<S>()[..n0];
    let w2 = &c.weights[2].wide::<S>()[..n0];
    let factors = &c.product.wide::<S>()[..n0];
    let products = &group.columns.plus.wide::<S>()[..n0];
    let force = &group.force.wide::<S>()[..n0];
    let start = &mut group.start.wide_mut::<S>()[..n0];
    let first = &mut first.wide_mut::<S>()[..n0];
    let end = &mut group.end.wide_mut::<S>()[..n0];
    let slope = &mut slope.wide_mut::<S>()[..n0];
    let stage = &mut group.stage.wide_mut::<S>()[..n0];
    for j in 0..n0 {
        let mut mode = Mode {
            whole: Wide::load(simd, whole[j]),
            half: Wide::load(simd, half[j]),
            h: Wide::load(simd, h[j]),
            w0: Wide::load(simd, w0[j]),
            w1: Wide::load(simd, w1[j]),
            w2: Wide::load(simd, w2[j]),
            start: WideComplex::load(simd, start[j]),
            first: WideComplex::load(simd, first[j]),
            end: WideComplex::load(simd, end[j]),
            slope: WideComplex::load(simd, slope[j]),
        };
        let product = WideComplex::load(simd, products[j]) * Wide::load(simd, factors[j]);
        let n = product + WideComplex::load(simd, force[j]);
        stage[j] = next(&mut mode, n).stored();
        start[j] = mode.start.stored();
        first[j] = mode.first.stored();
        end[j] = mode.end.stored();
        slope[j] = mode.slope.stored();
    }
}

/// The coefficients of one mode per lane and what is kept of it from stage to stage.
struct Mode<T: Real, S: Simd> {
    whole: Wide<T, S>,
    half: Wide<T, S>,
    h: Wide<T, S>,
    w0: Wide<T, S>,
    w1: Wide<T, S>,
    w2: Wide<T, S>,
    start: WideComplex<T, S>,
    first: WideComplex<T, S>,
    end: WideComplex<T, S>,
    slope: WideComplex<T, S>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::TAU;

    const LENGTH: f64 = 32.0;

    /// Values of `f(x, y)` on the grid, x along axis 0, both as shares of the length.
    fn field([n0, n1]: [usize; 2], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let at = |j: usize| f((j / n1) as f64 / n0 as f64, (j % n1) as f64 / n1 as f64);
        (0..n0 * n1).map(at).collect()
    }

    /// As smooth and as large as fields on the attractor.
    fn waves(points: [usize; 2]) -> Vec<f64> {
        field(points, |x, y| {
            4.0 * (TAU * 2.0 * x + 1.0).cos() * (TAU * y).sin()
                + 3.0 * (TAU * (3.0 * y - x) + 2.0).sin()
        })
    }

    fn run(
        points: [usize; 2],
        time: f64,
        substeps: usize,
        stages: Stages,
        start: &[f64],
    ) -> Vec<f64> {
        let mut field = start.to_vec();
        let dt = time / substeps as f64;
        Ks2d::new(points, LENGTH, dt, substeps, stages).step(&mut field, &vec![0.0; start.len()]);
        field
    }

    fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        (a.iter().zip(b)).fold(0.0, |worst, (a, b)| f64::max(worst, (a - b).abs()))
    }

    fn mean(field: &[f64]) -> f64 {
        field.iter().sum::<f64>() / field.len() as f64
    }

    /// Against values of the defining series, to twenty terms in exact fractions for c = −1 and
    /// to their limits for large −c: φ₁ → −1/c, φ₂ → −1/c, φ₃ → −1/2c.
    #[test]
    fn phi_has_no_cancellation() {
        let e = (-1.0f64).exp();
        let exact = [1.0 - e, e, 0.5 - e];
        for (c, tolerance) in [(-1.0, 1e-15), (-1.0 + 1e-9, 2e-9)] {
            for (found, exact) in phi(c).into_iter().zip(exact) {
                assert!((found - exact).abs() < tolerance, "{c}: {found} {exact}");
            }
        }
        assert_eq!(phi(0.0), [1.0, 0.5, 1.0 / 6.0]);
        let [first, second, third] = phi(-1e8);
        for (found, exact) in [(first, 1e-8), (second, 1e-8), (third, 0.5e-8)] {
            assert!((found / exact - 1.0).abs() < 1e-7);
        }
    }

    /// A small mode grows like exp((q − q²)t), q = |k|², whatever the step; its square, 1e-18, is
    /// lost.
    #[test]
    fn small_modes_grow_or_decay_at_their_linear_rate() {
        for (m, n) in [(1.0, 0.0), (0.0, 3.0), (3.0, 2.0), (5.0, 6.0)] {
            let q = (TAU / LENGTH).powi(2) * (m * m + n * n);
            let start = field([32, 32], |x, y| 1e-9 * (TAU * (m * x + n * y)).cos());
            let growth = ((q - q * q) * 2.0).exp();
            let exact: Vec<f64> = start.iter().map(|u| growth * u).collect();
            for stages in [Stages::Proper, Stages::AsPublished] {
                let found = run([32, 32], 2.0, 10, stages, &start);
                assert!(largest_gap(&found, &exact) < 1e-8 * 1e-9 * growth.max(1.0));
            }
        }
    }

    /// −½|∇u|² of a single wave A cos(k·x) is −½A²k² sin²(k·x) = −¼A²k² (1 − cos 2k·x), and the mean
    /// is dropped. After a short time t the field is that of the linear equation plus t times this.
    #[test]
    fn the_nonlinear_term_is_half_the_squared_slope() {
        for points in [[32, 24], [31, 25], [32, 25]] {
            half_the_squared_slope_on(points);
        }
    }

    fn half_the_squared_slope_on(points: [usize; 2]) {
        let wave = |m: f64| field(points, |x, y| (TAU * m * (2.0 * x + y)).cos());
        let (size, time) = (3.0, 1e-6);
        let q = (TAU / LENGTH).powi(2) * 5.0;
        let start: Vec<f64> = wave(1.0).iter().map(|u| size * u).collect();
        let found = run(points, time, 1, Stages::Proper, &start);
        let exact: Vec<f64> = (start.iter().zip(wave(2.0)))
            .map(|(u, double)| u + time * ((q - q * q) * u + 0.25 * size * size * q * double))
            .collect();
        assert!(largest_gap(&found, &exact) < 1e-10); // the next terms are of order t² = 1e-12
    }

    /// Errors at `t = 0.5` with 20 and with 40 substeps, as an order.
    fn observed_order(stages: Stages) -> f64 {
        let points = [24, 24];
        let start = waves(points);
        let exact = run(points, 0.5, 1280, Stages::Proper, &start);
        let error = |substeps| largest_gap(&run(points, 0.5, substeps, stages, &start), &exact);
        (error(20) / error(40)).log2()
    }

    #[test]
    fn proper_stages_are_of_fourth_order() {
        let order = observed_order(Stages::Proper);
        assert!((order - 4.0).abs() < 0.2, "observed order {order}");
    }

    #[test]
    fn the_published_stages_are_of_second_order() {
        let order = observed_order(Stages::AsPublished);
        assert!((order - 2.0).abs() < 0.2, "observed order {order}");
    }

    /// An error that falls like exp(−αn) has twice the observed order when n doubles; an error that
    /// falls like a power of n has the same one. The limit is half-way between.
    #[test]
    fn spectral_accuracy_in_space() {
        let at = |n: usize| {
            let fine = run([n, n], 1.0, 20, Stages::Proper, &waves([n, n]));
            let every = n / 12;
            (0..144)
                .map(|j| fine[(j / 12 * n + j % 12) * every])
                .collect::<Vec<_>>()
        };
        let exact = at(96);
        let [coarse, medium, fine] = [12, 24, 48].map(|n| largest_gap(&at(n), &exact));
        let orders = [(coarse / medium).log2(), (medium / fine).log2()];
        assert!(orders[1] > 1.5 * orders[0], "{orders:?}, {fine}");
    }

    #[test]
    fn only_the_force_moves_the_mean() {
        let points = [16, 20];
        let mut field: Vec<f64> = waves(points).iter().map(|u| u + 1.0).collect();
        let before = mean(&field);
        let mut stepper = Ks2d::new(points, LENGTH, 0.005, 20, Stages::Proper);
        stepper.step(&mut field, &vec![0.0; 320]);
        assert!((mean(&field) - before).abs() < 1e-13);
        let force: Vec<f64> = field.iter().map(|u| 1.0 + u * u).collect();
        let expected = mean(&field) + 0.1 * mean(&force);
        stepper.step(&mut field, &force);
        assert!((mean(&field) - expected).abs() < 1e-12);
    }

    /// Weak force on a mode: u = f (exp(λt) − 1) / λ, λ = q − q².
    #[test]
    fn a_weak_force_acts_on_its_mode() {
        let points = [32, 32];
        let force = field(points, |x, _| 1e-9 * (TAU * 5.0 * x).sin());
        let mut found = vec![0.0; 1024];
        Ks2d::new(points, LENGTH, 0.1, 10, Stages::Proper).step(&mut found, &force);
        let q = (TAU / LENGTH * 5.0).powi(2);
        let rate = q - q * q;
        let exact: Vec<f64> = force.iter().map(|f| f * rate.exp_m1() / rate).collect();
        assert!(largest_gap(&found, &exact) < 1e-17);
    }

    #[test]
    fn single_precision_follows_double() {
        let points = [64, 64];
        let mut wide = waves(points);
        let mut narrow: Vec<f32> = wide.iter().map(|&u| u as f32).collect();
        let mut wide_stepper = Ks2d::<f64>::new(points, LENGTH, 0.005, 20, Stages::Proper);
        let mut narrow_stepper = Ks2d::<f32>::new(points, LENGTH, 0.005, 20, Stages::Proper);
        for _ in 0..3 {
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
            let force = field(points, |x, y| (TAU * x).sin() + y);
            let run = |portions| {
                let mut stepper = Ks2d::<f64>::new(points, LENGTH, 0.005, 2, Stages::Proper);
                let mut field = waves(points);
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

    #[test]
    fn grids_of_any_size_work() {
        for points in [
            [2, 2],
            [2, 4],
            [4, 2],
            [6, 14],
            [22, 10],
            [2, 64],
            [3, 3],
            [15, 14],
        ] {
            for stages in [Stages::Proper, Stages::AsPublished] {
                let found = run(points, 0.1, 5, stages, &waves(points));
                assert!(found.iter().all(|u| u.is_finite()), "{points:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "points")]
    fn a_line_is_no_torus() {
        Ks2d::<f64>::new([8, 1], LENGTH, 0.005, 20, Stages::Proper);
    }

    fn noise() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-5.0..5.0f64, 12 * 12)
    }

    fn short(start: &[f64]) -> Vec<f64> {
        run([12, 12], 0.05, 3, Stages::Proper, start)
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
            prop_assert!(gap < 1e-12, "{gap}");
        }

        /// Neither has it a preferred axis.
        #[test]
        fn swapping_the_axes_swaps_the_result(start in noise()) {
            let swapped = |f: &[f64]| -> Vec<f64> {
                (0..144).map(|at| f[at % 12 * 12 + at / 12]).collect()
            };
            let gap = largest_gap(&swapped(&short(&start)), &short(&swapped(&start)));
            prop_assert!(gap < 1e-12, "{gap}");
        }
    }
}
