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
use super::lanes::{Lines, Real, WideComplex, arch};
use pulp::{Simd, WithSimd};

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
pub(super) struct Square<T>(Rows<T, 1>);

impl<T: Real> Product<T> for Square<T> {
    const REAL: bool = false;

    fn all(plans: &Plans<T>) -> Vec<Self> {
        let groups = Rows::all(plans).into_iter();
        groups.map(|[rows]| Self(rows)).collect()
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

/// |z|², of two groups of rows: real products travel in pairs of neighbours.
pub(super) struct SquareModulus<T>([Rows<T, 2>; 2]);

impl<T: Real> Product<T> for SquareModulus<T> {
    const REAL: bool = true;

    fn all(plans: &Plans<T>) -> Vec<Self> {
        Rows::all(plans).into_iter().map(Self).collect()
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
        self.real.analyse(force);
        for (group, modes) in self.groups.iter_mut().zip(&self.real.columns) {
            group.force.copy_from(modes);
        }
        self.real.analyse(field);
        for (group, modes) in self.groups.iter_mut().zip(&self.real.columns) {
            group.start.copy_from(modes);
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
        let arch = arch();
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
        let arch = arch();
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
        for (group, modes) in self.groups.iter().zip(&mut self.real.columns) {
            modes.copy_from(of(group));
        }
        self.real.synthesise(field);
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

#[cfg(test)]
mod tests {
    use super::super::lanes::tests::with_all_vectors;
    use super::super::{Ks2d, Real, Stepper, Turbulence2d, ks_2d::Stages};

    /// Two steps of a rough field, widened, which keeps its bits apart.
    fn stepped<T: Real>(points: [usize; 2], mut stepper: impl Stepper<T>) -> Vec<u64> {
        let noise = |j: usize| T::from_usize((j + 1) * (j + 7) % 101).unwrap().sqrt();
        let mut field: Vec<T> = (0..points[0] * points[1]).map(noise).collect();
        let force: Vec<T> = field.iter().rev().copied().collect();
        (0..2).for_each(|_| stepper.step(&mut field, &force));
        (field.iter())
            .map(|z| z.to_f64().unwrap())
            .inspect(|z| assert!(z.is_finite()))
            .map(f64::to_bits)
            .collect()
    }

    fn same_bits<T: Real>(points: [usize; 2], substeps: usize) {
        let flow = || stepped::<T>(points, Turbulence2d::new(points, 5e-4, 1e-3, substeps, 1.0));
        let flame = || {
            let stepper = Ks2d::new(points, 8.0, 1e-3, substeps, Stages::Proper);
            stepped::<T>(points, stepper)
        };
        for found in [with_all_vectors(flow), with_all_vectors(flame)] {
            assert!(found.iter().all(|bits| *bits == found[0]), "{points:?}");
        }
    }

    /// Without substeps, those of the transforms alone.
    #[test]
    fn vectors_of_any_width_give_the_same_bits() {
        for points in [[64, 64], [24, 18], [15, 14], [7, 33], [2, 3]] {
            for substeps in [0, 2] {
                same_bits::<f64>(points, substeps);
                same_bits::<f32>(points, substeps);
            }
        }
    }
}
