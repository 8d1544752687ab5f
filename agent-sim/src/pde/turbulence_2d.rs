//! Two-dimensional turbulence: the vorticity equation on the unit torus, pseudo-spectrally.

use super::Stepper;
use super::fourier::{
    Columns, Plans, RealField, Resolution, Rows, fast_size, for_each, narrow, wave_number,
    worth_sharing,
};
use num_traits::{Float, Zero};
use rustfft::FftNum;
use rustfft::num_complex::Complex;

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
/// Steps of larger grids use all threads unless the caller already runs in rayon's pool; the
/// result is the same to the last bit.
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
    kx: Vec<T>,
    /// k_y along a column.
    ky: Vec<T>,
    /// 1 / |K|², and 0 for the mean; column by column, like the modes below.
    inverse_square: Vec<T>,
    /// Vorticity at the beginning of the substep.
    start: Vec<Complex<T>>,
    /// Vorticity at the stage that is being evaluated.
    stage: Vec<Complex<T>>,
    /// Vorticity at the end of the substep, as far as known.
    end: Vec<Complex<T>>,
    force: Vec<Complex<T>>,
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

impl<T: Float + FftNum> Turbulence2d<T> {
    /// A stepper for fields of `points` values along each axis whose control interval is
    /// `substeps` steps of `dt`. `advection` multiplies the advection term; it is 1 in nature.
    ///
    /// # Panics
    /// If an axis has an odd number of points or none, or a coefficient is negative or not finite.
    pub fn new(
        points: [usize; 2],
        viscosity: f64,
        dt: f64,
        substeps: usize,
        advection: f64,
    ) -> Self {
        assert!(
            points.iter().all(|&n| n >= 2 && n % 2 == 0),
            "{points:?} points"
        );
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        assert!(
            [viscosity, dt, advection].into_iter().all(usable),
            "viscosity {viscosity}, dt {dt}, advection {advection}"
        );
        let resolution = Resolution {
            points,
            grid: points.map(|n| fast_size(3 * n / 2)),
            carried: points.map(|n| n / 2 - 1),
        };
        let plans = Plans::new(resolution);
        let real = RealField::new(points);
        let [n0, n1] = points;
        let groups = Columns::all(&plans)
            .into_iter()
            .map(|columns| {
                let kx: Vec<f64> = (columns.first..columns.first + columns.width)
                    .map(|m| wave_number(m, n1, 1.0))
                    .collect();
                let ky: Vec<f64> = (0..n0).map(|m| wave_number(m, n0, 1.0)).collect();
                let inverse_square = kx
                    .iter()
                    .flat_map(|kx| ky.iter().map(move |ky| kx * kx + ky * ky))
                    .map(|square| narrow(if square > 0.0 { square.recip() } else { 0.0 }))
                    .collect();
                let zeros = vec![Complex::zero(); columns.width * n0];
                Group {
                    columns,
                    kx: kx.into_iter().map(narrow).collect(),
                    ky: ky.into_iter().map(narrow).collect(),
                    inverse_square,
                    start: zeros.clone(),
                    stage: zeros.clone(),
                    end: zeros.clone(),
                    force: zeros,
                }
            })
            .collect();
        let padded = (resolution.grid[0] * resolution.grid[1]) as f64;
        Self {
            rows: Rows::all(&plans),
            spectrum: vec![Complex::zero(); real.modes()],
            plans,
            real,
            groups,
            constants: Constants {
                viscosity: narrow(viscosity),
                advection: narrow(0.25 * advection / padded),
                dt: narrow(dt),
            },
            substeps,
        }
    }

    fn advance(&mut self, shared: bool) {
        let Self {
            plans,
            groups,
            rows,
            constants,
            ..
        } = self;
        let Constants { dt, .. } = *constants;
        let [half, third, sixth] = [2.0, 3.0, 6.0].map(|n: f64| dt * narrow(n.recip()));
        let stages = [(half, sixth), (half, third), (dt, third), (dt, sixth)];
        for_each(groups, shared, |group| group.depart(plans));
        for _ in 0..self.substeps {
            for (number, (reach, weight)) in stages.into_iter().enumerate() {
                let last = number == 3;
                let stage = Stage {
                    reach,
                    weight,
                    last,
                };
                for_each(rows, shared, |rows| square(rows, groups, plans));
                for_each(groups, shared, |group| {
                    group.evaluate(stage, constants, rows, plans);
                });
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
            group
                .force
                .copy_from_slice(&self.spectrum[group.columns.modes()]);
        }
        self.real.analyse(field, &mut self.spectrum);
        for group in &mut self.groups {
            group
                .start
                .copy_from_slice(&self.spectrum[group.columns.modes()]);
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

impl<T: Float + FftNum> Stepper<T> for Turbulence2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let [n0, n1] = self.plans.resolution.grid;
        self.step_on(field, force, worth_sharing(n0 * n1));
    }
}

/// z → z² on a group of rows.
fn square<T: FftNum>(rows: &mut Rows<T>, groups: &[Group<T>], plans: &Plans<T>) {
    for row in 0..rows.height {
        rows.load(row, groups.iter().map(|group| &group.columns), plans);
        for z in &mut rows.line {
            let cross = z.re * z.im;
            *z = Complex::new(z.re * z.re - z.im * z.im, cross + cross);
        }
        rows.store(row, plans);
    }
}

impl<T: FftNum> Group<T> {
    /// Sends the velocity of `start` to the grid.
    fn depart(&mut self, plans: &Plans<T>) {
        self.stage.copy_from_slice(&self.start);
        self.end.copy_from_slice(&self.start);
        for column in 0..self.columns.carried {
            self.send_velocity(column, plans);
        }
    }

    /// Takes the rate of change of `stage`, moves on to the next stage and sends its velocity.
    fn evaluate(
        &mut self,
        stage: Stage<T>,
        constants: &Constants<T>,
        rows: &[Rows<T>],
        plans: &Plans<T>,
    ) {
        let n0 = self.ky.len();
        for column in 0..self.columns.width {
            let carried = column < self.columns.carried;
            if carried {
                self.columns.receive_plus(column, rows, plans);
                if self.columns.first + column > 0 {
                    self.columns.receive_minus(column, rows, plans);
                } else {
                    mirror(&self.columns.plus, &mut self.columns.minus);
                }
            }
            let [low, high] = Columns::carried_modes(plans);
            let nyquist = low.0.end..high.0.start;
            if carried {
                for (modes, at) in [low, high] {
                    self.advect(column, modes, at, stage, constants);
                }
                self.diffuse(column, nyquist, stage, constants);
                self.send_velocity(column, plans);
            } else {
                self.diffuse(column, 0..n0, stage, constants);
            }
        }
    }

    /// Updates the modes `modes` of a column whose products stand in `plus` and `minus` from `at`
    /// on.
    #[inline]
    fn advect(
        &mut self,
        column: usize,
        modes: std::ops::Range<usize>,
        at: usize,
        stage: Stage<T>,
        constants: &Constants<T>,
    ) {
        let (n0, count) = (self.ky.len(), modes.len());
        let kx = self.kx[column];
        let ky = &self.ky[modes.clone()];
        let here = column * n0 + modes.start..column * n0 + modes.end;
        let plus = &self.columns.plus[at..at + count];
        let minus = &self.columns.minus[at..at + count];
        let force = &self.force[here.clone()];
        let starts = &mut self.start[here.clone()];
        let ends = &mut self.end[here.clone()];
        let stages = &mut self.stage[here];
        for j in 0..count {
            let (ky, a, b) = (ky[j], plus[j], minus[j]);
            let (difference, cross) = (kx * kx - ky * ky, kx * ky);
            let cross = cross + cross;
            let advection = Complex::new(
                cross * (a.re + b.re) - difference * (a.im - b.im),
                cross * (a.im + b.im) + difference * (a.re - b.re),
            );
            let damping = constants.viscosity * (kx * kx + ky * ky);
            let rate = advection * constants.advection - stages[j] * damping + force[j];
            update(stage, rate, &mut starts[j], &mut ends[j], &mut stages[j]);
        }
    }

    /// Updates modes without advection.
    fn diffuse(
        &mut self,
        column: usize,
        modes: std::ops::Range<usize>,
        stage: Stage<T>,
        constants: &Constants<T>,
    ) {
        let kx = self.kx[column];
        for m in modes {
            let (j, ky) = (column * self.ky.len() + m, self.ky[m]);
            let damping = constants.viscosity * (kx * kx + ky * ky);
            let rate = self.force[j] - self.stage[j] * damping;
            update(
                stage,
                rate,
                &mut self.start[j],
                &mut self.end[j],
                &mut self.stage[j],
            );
        }
    }

    /// Passes the velocity z of `stage` on to the rows.
    fn send_velocity(&mut self, column: usize, plans: &Plans<T>) {
        let n0 = self.ky.len();
        let kx = self.kx[column];
        for (modes, at) in Columns::carried_modes(plans) {
            let count = modes.len();
            let ky = &self.ky[modes.clone()];
            let here = column * n0 + modes.start..column * n0 + modes.end;
            let inverse_square = &self.inverse_square[here.clone()];
            let vorticity = &self.stage[here];
            let plus = &mut self.columns.plus[at..at + count];
            let minus = &mut self.columns.minus[at..at + count];
            for j in 0..count {
                let stream = vorticity[j] * inverse_square[j];
                let (x, y) = (stream * kx, stream * ky[j]);
                plus[j] = Complex::new(y.im - x.re, -y.re - x.im);
                minus[j] = Complex::new(x.re + y.im, x.im - y.re);
            }
        }
        self.columns.send(column, plans);
    }
}

/// One stage of the Runge–Kutta scheme for one mode.
#[inline(always)]
fn update<T: FftNum>(
    stage: Stage<T>,
    rate: Complex<T>,
    start: &mut Complex<T>,
    end: &mut Complex<T>,
    now: &mut Complex<T>,
) {
    *end = *end + rate * stage.weight;
    if stage.last {
        *start = *end;
        *now = *end;
    } else {
        *now = *start + rate * stage.reach;
    }
}

/// The column 0 as its own mirror image: conj Z(0, −·).
fn mirror<T: FftNum>(plus: &[Complex<T>], minus: &mut [Complex<T>]) {
    minus[0] = plus[0].conj();
    for (to, from) in minus[1..].iter_mut().zip(plus.iter().rev()) {
        *to = from.conj();
    }
}
