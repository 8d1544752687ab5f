//! The driver of pseudo-spectral steppers on tori: all that does not depend on the equation.
//!
//! A stepper keeps a field as Fourier modes, in groups of columns, and takes it through substeps of
//! several stages. At each stage it sends a complex field z that it makes of the modes to the grid, where
//! z is multiplied by itself, and gets the modes of the product back: the nonlinear term, of which it
//! makes the next stage. What z is, which product, and how stages follow each other is the
//! [`Equation`]'s; transforms are those of [`fourier`](super::fourier).
//!
//! Grids from 128 × 128 points on use all threads unless the caller already runs in rayon's pool; the
//! result is the same to the last bit. (On smaller ones, moving the data to another core takes as long
//! as working on it.)

use super::Stepper;
use super::fourier::{Columns, Plans, RealField, Resolution, Rows, for_each, portions};
use super::lanes::{Lines, Real, WideComplex};
use num_traits::Zero;
use pulp::{Arch, Simd, WithSimd};
use transforms::Complex;

/// What one equation adds to the driver.
pub(super) trait Equation<T: Real>: Send + Sync {
    /// The product that its nonlinear term is made of.
    type Product: Product<T>;
    /// Coefficients of the modes of a group of columns, and what is kept of them between stages.
    type Modes: Send + Sync;

    /// For a group of columns.
    fn modes(&self, columns: &Columns<T>) -> Self::Modes;

    /// Prepares for the first stage of the first substep, at which `stage` is `start`.
    #[inline(always)]
    fn depart<S: Simd>(&self, _: &mut Group<T, Self::Modes>) {}

    /// Makes the modes of z, in the columns, of those of `stage`, and sends them to the grid.
    fn send<S: Simd>(&self, simd: S, group: &mut Group<T, Self::Modes>, plans: &Plans<T>);

    /// Moves on from the stage of that number, one of four, whose product stands in the columns: sets
    /// `stage`, and after the last one `start` too.
    fn advance<S: Simd>(
        &self,
        simd: S,
        group: &mut Group<T, Self::Modes>,
        number: usize,
        plans: &Plans<T>,
    );
}

/// A group of columns with the modes that stand in them.
pub(super) struct Group<T, M> {
    pub columns: Columns<T>,
    /// The field at the beginning of the substep.
    pub start: Lines<T>,
    /// The field at the stage that is being evaluated.
    pub stage: Lines<T>,
    /// The field at the end of the substep, as far as known.
    pub end: Lines<T>,
    pub force: Lines<T>,
    /// The equation's own.
    pub modes: M,
}

/// What is done to z on the grid, on groups of rows.
pub(super) trait Product<T: Real>: Send + Sync + Sized {
    /// Whether the product is real, and wanted in all modes; complex ones are wanted in those that are
    /// carried.
    const REAL: bool;

    /// All rows of the grid.
    fn all(plans: &Plans<T>) -> Vec<Self>;

    /// Brings z from its columns to the grid, multiplies it, and transforms along the rows.
    fn multiply<'a, S: Simd>(
        &mut self,
        simd: S,
        columns: impl Iterator<Item = &'a Columns<T>> + Clone,
        plans: &Plans<T>,
    ) where
        T: 'a;

    /// Fills columns with the modes of the product, not normalised.
    fn receive<S: Simd>(simd: S, columns: &mut Columns<T>, rows: &[Self], plans: &Plans<T>);
}

/// z².
pub(super) struct Square<T>(Rows<T>);

impl<T: Real> Product<T> for Square<T> {
    const REAL: bool = false;

    fn all(plans: &Plans<T>) -> Vec<Self> {
        let mut rows = Rows::all(plans);
        rows.retain(|group| group.first < plans.resolution.grid[0]);
        rows.into_iter().map(Self).collect()
    }

    #[inline(always)]
    fn multiply<'a, S: Simd>(
        &mut self,
        simd: S,
        columns: impl Iterator<Item = &'a Columns<T>> + Clone,
        plans: &Plans<T>,
    ) where
        T: 'a,
    {
        let Self(rows) = self;
        rows.load(simd, columns, plans);
        for value in rows.line.wide_mut::<S>() {
            let z = WideComplex::<T, S>::load(simd, *value);
            let cross = z.re * z.im;
            *value = WideComplex::new(z.re * z.re - z.im * z.im, cross + cross).stored();
        }
        rows.transform(simd, plans);
    }

    #[inline(always)]
    fn receive<S: Simd>(simd: S, columns: &mut Columns<T>, rows: &[Self], plans: &Plans<T>) {
        if columns.carried > 0 {
            columns.receive(simd, rows.iter().map(|Self(rows)| rows), plans);
        }
    }
}

/// |z|², of two groups of rows: real products travel in pairs.
pub(super) struct SquareModulus<T>([Rows<T>; 2]);

impl<T: Real> Product<T> for SquareModulus<T> {
    const REAL: bool = true;

    fn all(plans: &Plans<T>) -> Vec<Self> {
        let mut rows = Rows::all(plans).into_iter();
        let pair = || Some(Self([rows.next()?, rows.next()?]));
        std::iter::from_fn(pair).collect()
    }

    #[inline(always)]
    fn multiply<'a, S: Simd>(
        &mut self,
        simd: S,
        columns: impl Iterator<Item = &'a Columns<T>> + Clone,
        plans: &Plans<T>,
    ) where
        T: 'a,
    {
        let Self(pair) = self;
        for rows in pair.iter_mut() {
            rows.load(simd, columns.clone(), plans);
        }
        let [a, b] = &mut *pair;
        for (first, second) in (a.line.wide_mut::<S>().iter_mut()).zip(b.line.wide::<S>()) {
            let z = WideComplex::<T, S>::load(simd, *first);
            let w = WideComplex::<T, S>::load(simd, *second);
            let square = WideComplex::new(z.re * z.re + z.im * z.im, w.re * w.re + w.im * w.im);
            *first = square.stored();
        }
        Rows::transform_real_pair(pair, simd, plans);
    }

    #[inline(always)]
    fn receive<S: Simd>(simd: S, columns: &mut Columns<T>, rows: &[Self], plans: &Plans<T>) {
        columns.receive_real(simd, rows.iter().flat_map(|Self(pair)| pair), plans);
    }
}

/// Steps fields of an equation.
///
/// Fields are real because each step begins with one; within a step, rounding errors that are not grow
/// like any perturbation. Long runs should therefore be made of many steps, not of one with many
/// substeps.
pub(super) struct Driver<T: Real, E: Equation<T>> {
    pub equation: E,
    plans: Plans<T>,
    real: RealField<T>,
    spectrum: Vec<Complex<T>>,
    groups: Vec<Group<T, E::Modes>>,
    rows: Vec<E::Product>,
    substeps: usize,
}

impl<T: Real, E: Equation<T>> Driver<T, E> {
    pub fn new(equation: E, resolution: Resolution, substeps: usize) -> Self {
        let plans = Plans::new(resolution, E::Product::REAL);
        let real = RealField::new(resolution.points);
        let lines = || Lines::zeros(resolution.points[0]);
        let group = |columns: Columns<T>| Group {
            modes: equation.modes(&columns),
            columns,
            start: lines(),
            stage: lines(),
            end: lines(),
            force: lines(),
        };
        Self {
            groups: Columns::all(&plans).into_iter().map(group).collect(),
            rows: E::Product::all(&plans),
            spectrum: vec![Complex::zero(); real.modes()],
            plans,
            real,
            equation,
            substeps,
        }
    }

    /// One step, in `portions` that other threads may take over.
    pub fn step_on(&mut self, field: &mut [T], force: &[T], portions: usize) {
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
            rayon::scope(|_| self.substeps(portions));
        } else {
            self.substeps(1);
        }
        self.put(field, |group| &group.start);
    }

    fn substeps(&mut self, portions: usize) {
        self.depart(portions);
        for _ in 0..self.substeps {
            for number in 0..4 {
                self.stage(number, portions);
            }
        }
    }

    /// Sends z of `start` to the grid.
    pub fn depart(&mut self, portions: usize) {
        let Self {
            equation,
            plans,
            groups,
            ..
        } = self;
        let arch = Arch::new();
        for_each(groups, portions, &|group| {
            arch.dispatch(Depart {
                equation,
                group,
                plans,
            });
        });
    }

    /// One stage: the product, and on to the next.
    pub fn stage(&mut self, number: usize, portions: usize) {
        let Self {
            equation,
            plans,
            groups,
            rows,
            ..
        } = self;
        let arch = Arch::new();
        for_each(rows, portions, &|rows| {
            arch.dispatch(Multiply {
                rows,
                groups,
                plans,
            });
        });
        for_each(groups, portions, &|group| {
            arch.dispatch(Evaluate {
                equation,
                group,
                number,
                rows,
                plans,
            });
        });
    }

    /// Brings some of the groups' modes to the grid.
    pub fn put(&mut self, field: &mut [T], of: impl Fn(&Group<T, E::Modes>) -> &Lines<T>) {
        let [n0, _] = self.plans.resolution.points;
        for group in &self.groups {
            group.columns.put(&mut self.spectrum, n0, of(group));
        }
        self.real.synthesise(&mut self.spectrum, field);
    }
}

impl<T: Real, E: Equation<T>> Stepper<T> for Driver<T, E> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let [n0, n1] = self.plans.resolution.grid;
        self.step_on(field, force, portions(n0 * n1));
    }
}

struct Depart<'a, T: Real, E: Equation<T>> {
    equation: &'a E,
    group: &'a mut Group<T, E::Modes>,
    plans: &'a Plans<T>,
}

impl<T: Real, E: Equation<T>> WithSimd for Depart<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Group { start, stage, .. } = self.group;
        stage.wide_mut::<S>().copy_from_slice(start.wide::<S>());
        self.equation.depart::<S>(self.group);
        self.equation.send(simd, self.group, self.plans);
    }
}

struct Multiply<'a, T, P, M> {
    rows: &'a mut P,
    groups: &'a [Group<T, M>],
    plans: &'a Plans<T>,
}

impl<T: Real, P: Product<T>, M> WithSimd for Multiply<'_, T, P, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = self.groups.iter().map(|group| &group.columns);
        self.rows.multiply(simd, columns, self.plans);
    }
}

/// Takes the product, moves on to the next stage and sends its z.
struct Evaluate<'a, T: Real, E: Equation<T>> {
    equation: &'a E,
    group: &'a mut Group<T, E::Modes>,
    number: usize,
    rows: &'a [E::Product],
    plans: &'a Plans<T>,
}

impl<T: Real, E: Equation<T>> WithSimd for Evaluate<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            equation,
            group,
            number,
            rows,
            plans,
        } = self;
        E::Product::receive(simd, &mut group.columns, rows, plans);
        equation.advance(simd, group, number, plans);
        equation.send(simd, group, plans);
    }
}
