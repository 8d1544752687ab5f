//! The Kuramoto–Sivashinsky equation on a torus, by exponential time differencing.

use super::Stepper;
use super::fourier::{
    Columns, Plans, RealField, Resolution, Rows, for_each, narrow, wave_number, worth_sharing,
};
use num_traits::{Float, Zero};
use rustfft::FftNum;
use rustfft::num_complex::Complex;

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
/// Steps of larger grids use all threads unless the caller already runs in rayon's pool; the
/// result is the same to the last bit.
pub struct Ks2d<T> {
    plans: Plans<T>,
    real: RealField<T>,
    spectrum: Vec<Complex<T>>,
    groups: Vec<Group<T>>,
    rows: Vec<Rows<T>>,
    substeps: usize,
}

/// A group of columns with the modes that stand in them, column by column.
struct Group<T> {
    columns: Columns<T>,
    /// Wave number along axis 1, of each column.
    across: Vec<T>,
    /// Wave number along axis 0, along a column.
    along: Vec<T>,
    coefficients: Vec<Coefficients<T>>,
    /// The field at the beginning of the substep.
    start: Vec<Complex<T>>,
    /// The field at the first stage, a.
    first: Vec<Complex<T>>,
    /// The field at the stage that is being evaluated.
    stage: Vec<Complex<T>>,
    /// The field at the end of the substep, as far as known.
    end: Vec<Complex<T>>,
    /// N(v).
    slope: Vec<Complex<T>>,
    force: Vec<Complex<T>>,
}

/// Of one mode; the names are those of the scheme above.
#[derive(Debug, Clone, Copy)]
struct Coefficients<T> {
    whole: T,
    half: T,
    h: T,
    weights: [T; 3],
    /// −½ and the normalisation of the transform; 0 for the mean.
    product: T,
}

/// φ₁, φ₂ and φ₃ at `c`: φ_n(c) = Σ_j c^j / (j + n)!.
///
/// The closed forms cancel for small |c|, so the series is summed there; at |c| < 1 its terms fall
/// below 1e-18 before the twentieth.
fn phi(c: f64) -> [f64; 3] {
    if c.abs() < 1.0 {
        [1, 2, 3].map(|n| {
            let mut term = 1.0 / [1.0, 2.0, 6.0][n - 1];
            let mut sum = 0.0;
            for j in 1..=20 {
                sum += term;
                term *= c / (j + n) as f64;
            }
            sum
        })
    } else {
        let first = c.exp_m1() / c;
        let second = (first - 1.0) / c;
        [first, second, (second - 0.5) / c]
    }
}

impl Coefficients<f64> {
    fn new(square: f64, dt: f64, stages: Stages, points: usize) -> Self {
        let c = (square - square * square) * dt;
        let [p1, p2, p3] = phi(c);
        let stage = match stages {
            Stages::Proper => phi(0.5 * c)[0],
            Stages::AsPublished => p1,
        };
        Self {
            whole: c.exp(),
            half: (0.5 * c).exp(),
            h: 0.5 * dt * stage,
            weights: [
                dt * (p1 - 3.0 * p2 + 4.0 * p3),
                dt * (2.0 * p2 - 4.0 * p3),
                dt * (4.0 * p3 - p2),
            ],
            product: if square > 0.0 {
                -0.5 / points as f64
            } else {
                0.0
            },
        }
    }

    fn narrow<T: FftNum>(self) -> Coefficients<T> {
        Coefficients {
            whole: narrow(self.whole),
            half: narrow(self.half),
            h: narrow(self.h),
            weights: self.weights.map(narrow),
            product: narrow(self.product),
        }
    }
}

impl<T: Float + FftNum> Ks2d<T> {
    /// A stepper for fields of `points` values along each axis of a torus that is `length` long
    /// both ways; a control interval is `substeps` steps of `dt`.
    ///
    /// # Panics
    /// If an axis has an odd number of points or none, or `length` or `dt` is not positive.
    pub fn new(points: [usize; 2], length: f64, dt: f64, substeps: usize, stages: Stages) -> Self {
        assert!(
            points.iter().all(|&n| n >= 2 && n % 2 == 0),
            "{points:?} points"
        );
        assert!(
            length > 0.0 && dt > 0.0 && (length * dt).is_finite(),
            "length {length}, dt {dt}"
        );
        let resolution = Resolution {
            points,
            grid: points,
            carried: points.map(|n| (n - 1) / 3), // the largest integer below 2/3 · n/2
        };
        let plans = Plans::new(resolution);
        let real = RealField::new(points);
        let [n0, n1] = points;
        let groups = Columns::all(&plans)
            .into_iter()
            .map(|columns| {
                let across: Vec<f64> = (columns.first..columns.first + columns.width)
                    .map(|m| wave_number(m, n1, length))
                    .collect();
                let along: Vec<f64> = (0..n0).map(|m| wave_number(m, n0, length)).collect();
                let coefficients = (across.iter())
                    .flat_map(|x| along.iter().map(move |y| x * x + y * y))
                    .map(|square| Coefficients::new(square, dt, stages, n0 * n1).narrow())
                    .collect();
                let zeros = vec![Complex::zero(); columns.width * n0];
                Group {
                    columns,
                    across: across.into_iter().map(narrow).collect(),
                    along: along.into_iter().map(narrow).collect(),
                    coefficients,
                    start: zeros.clone(),
                    first: zeros.clone(),
                    stage: zeros.clone(),
                    end: zeros.clone(),
                    slope: zeros.clone(),
                    force: zeros,
                }
            })
            .collect();
        Self {
            rows: Rows::all(&plans),
            spectrum: vec![Complex::zero(); real.modes()],
            plans,
            real,
            groups,
            substeps,
        }
    }

    fn advance(&mut self, shared: bool) {
        let Self {
            plans,
            groups,
            rows,
            substeps,
            ..
        } = self;
        for_each(groups, shared, |group| group.depart(plans));
        for _ in 0..*substeps {
            for stage in 0..4 {
                for_each(rows, shared, |rows| square_modulus(rows, groups, plans));
                for_each(groups, shared, |group| group.evaluate(stage, rows, plans));
            }
        }
    }

    fn step_on(&mut self, field: &mut [T], force: &[T], shared: bool) {
        let [n0, n1] = self.plans.resolution.points;
        let points = n0 * n1;
        assert!(
            field.len() == points && force.len() == points,
            "{n0} × {n1} grid points"
        );
        self.real.analyse(force, &mut self.spectrum);
        for group in &mut self.groups {
            let modes = &self.spectrum[group.columns.modes()];
            group.force.copy_from_slice(modes);
        }
        self.real.analyse(field, &mut self.spectrum);
        for group in &mut self.groups {
            let modes = &self.spectrum[group.columns.modes()];
            group.start.copy_from_slice(modes);
        }
        if shared {
            // One trip into the pool instead of one for every phase of every stage.
            rayon::scope(|_| self.advance(true));
        } else {
            self.advance(false);
        }
        for group in &self.groups {
            self.spectrum[group.columns.modes()].copy_from_slice(&group.start);
        }
        self.real.synthesise(&mut self.spectrum, field);
    }
}

impl<T: Float + FftNum> Stepper<T> for Ks2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let [n0, n1] = self.plans.resolution.grid;
        self.step_on(field, force, worth_sharing(n0 * n1));
    }
}

/// z → |z|² on a group of rows, two at a time.
fn square_modulus<T: FftNum>(rows: &mut Rows<T>, groups: &[Group<T>], plans: &Plans<T>) {
    for row in (0..rows.height).step_by(2) {
        rows.load(row, groups.iter().map(|group| &group.columns), plans);
        for (pair, z) in rows.pair.iter_mut().zip(&rows.line) {
            pair.re = z.re * z.re + z.im * z.im;
        }
        rows.load(row + 1, groups.iter().map(|group| &group.columns), plans);
        for (pair, z) in rows.pair.iter_mut().zip(&rows.line) {
            pair.im = z.re * z.re + z.im * z.im;
        }
        rows.store_real_pair(row, plans);
    }
}

impl<T: FftNum> Group<T> {
    /// Sends the gradient of `start` to the grid.
    fn depart(&mut self, plans: &Plans<T>) {
        self.stage.copy_from_slice(&self.start);
        for column in 0..self.columns.carried {
            self.send_gradient(column, plans);
        }
    }

    /// Takes N at `stage`, the `number`-th of four, moves on to the next stage and sends its
    /// gradient.
    fn evaluate(&mut self, number: usize, rows: &[Rows<T>], plans: &Plans<T>) {
        for column in 0..self.columns.width {
            self.columns.receive_plus(column, rows, plans);
            match number {
                0 => self.update(column, |m, c, n| {
                    *m.slope = n;
                    *m.first = *m.start * c.half + n * c.h;
                    *m.end = *m.start * c.whole + n * c.weights[0];
                    *m.first
                }),
                1 => self.update(column, |m, c, n| {
                    *m.end = *m.end + n * c.weights[1];
                    *m.start * c.half + n * c.h
                }),
                2 => self.update(column, |m, c, n| {
                    *m.end = *m.end + n * c.weights[1];
                    *m.first * c.half + (n + n - *m.slope) * c.h
                }),
                _ => self.update(column, |m, c, n| {
                    *m.start = *m.end + n * c.weights[2];
                    *m.start
                }),
            }
            if column < self.columns.carried {
                self.send_gradient(column, plans);
            }
        }
    }

    /// Calls `next` with each mode of a column, its coefficients and N, for the next stage.
    #[inline(always)]
    fn update(
        &mut self,
        column: usize,
        next: impl Fn(Mode<'_, T>, &Coefficients<T>, Complex<T>) -> Complex<T>,
    ) {
        let n0 = self.along.len();
        let here = column * n0..(column + 1) * n0;
        let products = &self.columns.plus[..n0];
        let coefficients = &self.coefficients[here.clone()];
        let force = &self.force[here.clone()];
        let start = &mut self.start[here.clone()];
        let first = &mut self.first[here.clone()];
        let end = &mut self.end[here.clone()];
        let slope = &mut self.slope[here.clone()];
        let stage = &mut self.stage[here];
        for j in 0..n0 {
            let mode = Mode {
                start: &mut start[j],
                first: &mut first[j],
                end: &mut end[j],
                slope: &mut slope[j],
            };
            let c = &coefficients[j];
            stage[j] = next(mode, c, products[j] * c.product + force[j]);
        }
    }

    /// Passes the gradient z of `stage` on to the rows.
    fn send_gradient(&mut self, column: usize, plans: &Plans<T>) {
        let n0 = self.along.len();
        let across = self.across[column];
        for (modes, at) in Columns::carried_modes(plans) {
            let count = modes.len();
            let along = &self.along[modes.clone()];
            let field = &self.stage[column * n0 + modes.start..column * n0 + modes.end];
            let plus = &mut self.columns.plus[at..at + count];
            let minus = &mut self.columns.minus[at..at + count];
            for j in 0..count {
                let (x, y) = (field[j] * across, field[j] * along[j]);
                plus[j] = Complex::new(-x.re - y.im, y.re - x.im);
                minus[j] = Complex::new(x.re - y.im, x.im + y.re);
            }
        }
        self.columns.send(column, plans);
    }
}

/// What is kept of one mode from stage to stage.
struct Mode<'a, T> {
    start: &'a mut Complex<T>,
    first: &'a mut Complex<T>,
    end: &'a mut Complex<T>,
    slope: &'a mut Complex<T>,
}
