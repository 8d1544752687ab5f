//! Products of periodic fields, by Fourier transforms that skip what is known to be zero.
//!
//! Both two-dimensional steppers spend their time in the same round trip: from Fourier modes to
//! two real fields on the grid, a product there, and back. The two fields travel as the real and
//! imaginary part of one complex field z. The way down is
//!
//! 1. an inverse transform along axis 0 of each *column* of modes (one wave number along axis 1)
//!    that is carried: the columns beyond [`Resolution::carried`] are zero and are never touched;
//! 2. an inverse transform along axis 1 of each *row*;
//!
//! and the way up is the reverse. Rows are handled in groups ([`Rows`]) and so are columns
//! ([`Columns`]), one line per vector lane; where one kind takes over from the other, lanes and
//! positions change places. A group writes to itself only and reads only groups of the other kind,
//! so groups of one kind can run on any number of threads ([`for_each`]) and give the same bits.
//!
//! A real field has conjugate modes at opposite wave numbers, so a stepper keeps only the columns
//! with wave number m ≥ 0 along axis 1. The complex field z has no such symmetry: columns come in
//! pairs, the *plus* column Z(m, ·) and the *minus* column. The latter is kept as
//! conj Z(−m, −·), whose transform along axis 0 is the conjugate of that of Z(−m, ·): conjugating
//! on the way then saves reversing the column.

use super::batch_fft::Plan;
use super::lanes::{
    Lines, Numbers, Real, Wide, WideComplex, arch, lanes, narrow, width, with_lanes,
};
use pulp::{Simd, WithSimd};
use std::f64::consts::TAU;
use std::ops::Range;

/// Below this many grid points, another thread takes longer to wake up and to fetch the data from the
/// first one's cache than it saves.
const WORTH_SHARING: usize = 128 * 128;

/// The j-th of `n` wave numbers on a circle of circumference `length`, in the order of Fourier
/// transforms: first 0 and the positive, then the negative ones.
pub(super) fn wave_number(j: usize, n: usize, length: f64) -> f64 {
    let number = if 2 * j < n {
        j as f64
    } else {
        j as f64 - n as f64
    };
    TAU / length * number
}

/// The smallest even number ≥ `n` without prime factors above 3: its transforms are fast.
pub(super) fn fast_size(n: usize) -> usize {
    let smooth = |n: usize| {
        let mut odd = n >> n.trailing_zeros();
        while odd.is_multiple_of(3) {
            odd /= 3;
        }
        odd == 1
    };
    (n.next_multiple_of(2)..)
        .step_by(2)
        .find(|&n| smooth(n))
        .expect("powers of two are fast")
}

/// Runs `work` on every item, in `portions` that other threads may take over.
pub(super) fn for_each<A: Send>(items: &mut [A], portions: usize, work: &(impl Fn(&mut A) + Sync)) {
    if portions < 2 || items.len() < 2 {
        return items.iter_mut().for_each(work);
    }
    // The last items have the least to do, so the odd one goes there.
    let (left, right) = items.split_at_mut(items.len() / 2);
    let half = portions / 2;
    rayon::join(
        || for_each(left, half, work),
        || for_each(right, portions - half, work),
    );
}

/// Into how many portions to divide the work on `points` grid points: one per thread of the
/// global pool, or a single one.
///
/// The latter when the caller is in the pool already: it then has episodes to run side by side,
/// which shares out better than the pieces of one step.
pub(super) fn portions(points: usize) -> usize {
    if points < WORTH_SHARING || rayon::current_thread_index().is_some() {
        1
    } else {
        rayon::current_num_threads()
    }
}

/// Sizes of a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolution {
    /// Modes of the field along each axis (= its grid points).
    pub points: [usize; 2],
    /// Grid points along each axis on which products are formed.
    pub grid: [usize; 2],
    /// The largest wave number along each axis that enters products; `2 · carried < points`.
    pub carried: [usize; 2],
}

impl Resolution {
    /// Columns of the half spectrum of a real field: wave numbers 0 ..= n/2.
    pub fn columns(&self) -> usize {
        self.points[1] / 2 + 1
    }

    /// The carried modes of a column and where they begin on the grid's column: first wave numbers
    /// 0 ..= carried, then −carried .. 0.
    pub fn carried_modes(&self) -> [(Range<usize>, usize); 2] {
        let (points, carried) = (self.points[0], self.carried[0]);
        [
            (0..carried + 1, 0),
            (points - carried..points, self.grid[0] - carried),
        ]
    }
}

/// The planned transforms of a round trip, along each axis.
pub(super) struct Plans<T> {
    pub resolution: Resolution,
    inverse: [Plan<T>; 2],
    forward: [Plan<T>; 2],
}

impl<T: Real> Plans<T> {
    /// Real products are wanted in all modes, complex ones in those that are carried.
    pub fn new(resolution: Resolution, real_products: bool) -> Self {
        let plan = |axis: usize, inverse: bool| {
            let carried = if real_products && !inverse {
                resolution.grid[axis]
            } else {
                resolution.carried[axis]
            };
            Plan::new(resolution.grid[axis], inverse, carried)
        };
        Self {
            resolution,
            inverse: [0, 1].map(|axis| plan(axis, true)),
            forward: [0, 1].map(|axis| plan(axis, false)),
        }
    }

    /// Rows that an even number of groups holds; those beyond the grid are zero.
    fn padded_rows(&self) -> usize {
        self.resolution.grid[0].next_multiple_of(2 * lanes::<T>())
    }
}

/// A group of columns of the half spectrum, along axis 0.
pub(super) struct Columns<T> {
    /// Wave number of the first column along axis 1.
    pub first: usize,
    /// Columns in the group; lanes beyond it are zero.
    pub width: usize,
    /// How many of them enter products: the first ones.
    pub carried: usize,
    /// Modes of z on the way down, then its values on the rows; modes of products on the way up.
    pub plus: Lines<T>,
    /// The mirror column, as described at the top.
    pub minus: Lines<T>,
    spare: Lines<T>,
}

impl<T: Real> Columns<T> {
    /// All columns of the half spectrum, in groups.
    pub fn all(plans: &Plans<T>) -> Vec<Self> {
        let (count, lanes) = (plans.resolution.columns(), lanes::<T>());
        let lines = || Lines::zeros(plans.padded_rows());
        (0..count)
            .step_by(lanes)
            .map(|first| Self {
                first,
                width: lanes.min(count - first),
                carried: lanes.min((plans.resolution.carried[1] + 1).saturating_sub(first)),
                plus: lines(),
                minus: lines(),
                spare: lines(),
            })
            .collect()
    }

    /// Brings `plus` and `minus` from modes, of which the carried ones are set, to values on the
    /// rows.
    #[inline(always)]
    pub fn send<S: Simd>(&mut self, simd: S, plans: &Plans<T>) {
        let (plan, carried) = (&plans.inverse[0], plans.resolution.carried[0]);
        for lines in [&mut self.plus, &mut self.minus] {
            plan.clear_beyond(carried, lines);
            plan.run(simd, lines, &mut self.spare);
            lines.clear(plans.resolution.grid[0]..plans.padded_rows());
        }
    }

    /// Fills `plus` and `minus` with the modes of a complex product, not normalised.
    #[inline(always)]
    pub fn receive<'a, S: Simd>(
        &mut self,
        simd: S,
        rows: impl Iterator<Item = &'a Rows<T, 1>>,
        plans: &Plans<T>,
    ) {
        with_lanes!(T, S, self.gather(rows, plans.resolution.grid[1]));
        plans.forward[0].run(simd, &mut self.plus, &mut self.spare);
        plans.forward[0].run(simd, &mut self.minus, &mut self.spare);
    }

    #[inline(always)]
    fn gather<'a, const L: usize>(
        &mut self,
        rows: impl Iterator<Item = &'a Rows<T, 1>>,
        length: usize,
    ) {
        let (first, carried) = (self.first, self.carried);
        for group in rows {
            let line = group.line.numbers::<L>();
            let mut columns = [[[T::zero(); L]; 2]; L];
            group
                .place
                .put(some(line, first, carried, &mut columns), &mut self.plus);
            for (c, column) in columns.iter_mut().enumerate().take(carried) {
                *column = conjugate(&line[(length - first - c) % length]);
            }
            group.place.put(&columns, &mut self.minus);
        }
    }

    /// Fills `plus` with the modes of a real product in all columns, not normalised.
    #[inline(always)]
    pub fn receive_real<'a, S: Simd>(
        &mut self,
        simd: S,
        rows: impl Iterator<Item = &'a Rows<T, 2>>,
        plans: &Plans<T>,
    ) {
        with_lanes!(T, S, self.gather_real(rows));
        plans.forward[0].run(simd, &mut self.plus, &mut self.spare);
    }

    #[inline(always)]
    fn gather_real<'a, const L: usize>(&mut self, rows: impl Iterator<Item = &'a Rows<T, 2>>) {
        for group in rows {
            group.hand_over::<L>(self.first, self.width, &mut self.plus);
        }
    }
}

/// Which rows of the grid a group holds: every `STEP`-th of as many as it takes, from `offset` on.
#[derive(Clone, Copy)]
struct Place<const STEP: usize> {
    first: usize,
    offset: usize,
}

impl<const STEP: usize> Place<STEP> {
    /// Copies the group's rows out of a group of columns. Lanes and positions change places: lane r
    /// of result c is lane c of row r.
    ///
    /// From memory to memory, which compilers turn into shuffles of whole vectors.
    #[inline(always)]
    fn take<T: Real, const L: usize>(self, columns: &Lines<T>, to: &mut [Numbers<T, L>; L]) {
        let (blocks, _) = columns.numbers::<L>()[self.first..].as_chunks::<STEP>();
        let rows: &[_; L] = blocks.first_chunk().expect("columns have padded rows");
        for part in 0..2 {
            for r in 0..L {
                for c in 0..L {
                    to[c][part][r] = rows[r][self.offset][part][c];
                }
            }
        }
    }

    /// Copies columns to where the group's rows are in a group of them, the way back.
    #[inline(always)]
    fn put<T: Real, const L: usize>(self, from: &[Numbers<T, L>; L], columns: &mut Lines<T>) {
        let (blocks, _) = columns.numbers_mut::<L>()[self.first..].as_chunks_mut::<STEP>();
        let rows: &mut [_; L] = blocks.first_chunk_mut().expect("columns have padded rows");
        for part in 0..2 {
            for c in 0..L {
                for r in 0..L {
                    rows[r][self.offset][part][c] = from[c][part][r];
                }
            }
        }
    }
}

/// A group of rows of the grid, along axis 1.
pub(super) struct Rows<T, const STEP: usize> {
    place: Place<STEP>,
    /// Values of z, then modes of its product.
    pub line: Lines<T>,
    spare: Lines<T>,
}

impl<T: Real, const STEP: usize> Rows<T, STEP> {
    /// All rows of the grid. Groups whose rows take turns are together; the last of these may lie
    /// beyond it.
    pub fn all(plans: &Plans<T>) -> Vec<[Self; STEP]> {
        (0..plans.resolution.grid[0])
            .step_by(STEP * lanes::<T>())
            .map(|first| Self::from(first, plans))
            .collect()
    }

    fn from(first: usize, plans: &Plans<T>) -> [Self; STEP] {
        std::array::from_fn(|offset| Self {
            place: Place { first, offset },
            line: Lines::zeros(plans.resolution.grid[1]),
            spare: Lines::zeros(plans.resolution.grid[1]),
        })
    }

    /// Copies `width` positions of the line from `first` on to a group of columns.
    #[inline(always)]
    fn hand_over<const L: usize>(&self, first: usize, width: usize, columns: &mut Lines<T>) {
        let mut room = [[[T::zero(); L]; 2]; L];
        let positions = some(self.line.numbers(), first, width, &mut room);
        self.place.put(positions, columns);
    }

    /// Brings z from its columns to the grid.
    #[inline(always)]
    pub fn load<'a, S: Simd>(
        &mut self,
        simd: S,
        columns: impl Iterator<Item = &'a Columns<T>>,
        plans: &Plans<T>,
    ) {
        let (length, carried) = (plans.resolution.grid[1], plans.resolution.carried[1]);
        plans.inverse[1].clear_beyond(carried, &mut self.line);
        with_lanes!(T, S, self.gather(columns, length));
        plans.inverse[1].run(simd, &mut self.line, &mut self.spare);
    }

    #[inline(always)]
    fn gather<'a, const L: usize>(
        &mut self,
        columns: impl Iterator<Item = &'a Columns<T>>,
        length: usize,
    ) {
        for group in columns.filter(|group| group.carried > 0) {
            let (first, carried) = (group.first, group.carried);
            let mut columns = [[[T::zero(); L]; 2]; L];
            let line = self.line.numbers_mut::<L>();
            if carried == L {
                let columns = line[first..].first_chunk_mut().expect("carried columns");
                self.place.take(&group.plus, columns);
            } else {
                self.place.take(&group.plus, &mut columns);
                line[first..first + carried].copy_from_slice(&columns[..carried]);
            }
            self.place.take(&group.minus, &mut columns);
            // The minus column of wave number 0 is the plus column: left out.
            for c in usize::from(first == 0)..carried {
                line[length - first - c] = conjugate(&columns[c]);
            }
        }
    }

    /// Brings a product in `line` to its modes.
    #[inline(always)]
    pub fn transform<S: Simd>(&mut self, simd: S, plans: &Plans<T>) {
        plans.forward[1].run(simd, &mut self.line, &mut self.spare);
    }

    /// Makes `line` of two groups the modes of two real products, which stand in the first one as
    /// real and imaginary part: half the sum and the difference of opposite modes.
    ///
    /// Each gets some of the other's rounding. So that this does not depend on the number of lanes,
    /// it is always neighbours that travel together: even rows are in one group, odd ones in the other.
    #[inline(always)]
    pub fn transform_real_pair<S: Simd>(groups: &mut [Self; 2], simd: S, plans: &Plans<T>) {
        let length = plans.resolution.grid[1];
        let [a, b] = groups;
        a.transform(simd, plans);
        std::mem::swap(&mut a.line, &mut a.spare);
        let both = &a.spare.wide::<S>()[..length];
        let first = a.line.wide_mut::<S>();
        let second = b.line.wide_mut::<S>();
        let half = Wide::<T, S>::splat(simd, narrow(0.5));
        for m in 0..=length / 2 {
            let here = WideComplex::load(simd, both[m]) * half;
            let there = WideComplex::load(simd, both[(length - m) % length]) * half;
            first[m] = WideComplex::new(here.re + there.re, here.im - there.im).stored();
            second[m] = WideComplex::new(here.im + there.im, there.re - here.re).stored();
        }
    }
}

/// `count` positions of a line from `first` on, and zeros for the rest of the group.
#[inline(always)]
fn some<'a, T: Real, const L: usize>(
    line: &'a [Numbers<T, L>],
    first: usize,
    count: usize,
    filled: &'a mut [Numbers<T, L>; L],
) -> &'a [Numbers<T, L>; L] {
    if count == L {
        return line[first..].first_chunk().expect("as many columns");
    }
    filled[..count].copy_from_slice(&line[first..first + count]);
    filled
}

#[inline(always)]
fn conjugate<T: Real, const L: usize>([re, im]: &Numbers<T, L>) -> Numbers<T, L> {
    let mut minus = *im;
    for value in &mut minus {
        *value = -*value;
    }
    [*re, minus]
}

/// Real fields to and from their half spectrum: field(x) = Σ_k spectrum(k) exp(i k x).
pub(super) struct RealField<T> {
    plans: Plans<T>,
    /// The half spectrum, in the groups that [`Columns`] come in.
    pub columns: Vec<Lines<T>>,
    spare: Lines<T>,
    /// Two groups of rows at a time travel as one.
    pair: [Rows<T, 2>; 2],
}

impl<T: Real> RealField<T> {
    pub fn new(points: [usize; 2]) -> Self {
        let resolution = Resolution {
            points,
            grid: points,
            carried: points, // no mode is left out
        };
        let plans = Plans::new(resolution, true);
        let column = || Lines::zeros(plans.padded_rows());
        let groups = resolution.columns().div_ceil(lanes::<T>());
        Self {
            columns: (0..groups).map(|_| column()).collect(),
            spare: column(),
            pair: Rows::from(0, &plans),
            plans,
        }
    }

    /// Makes `columns` the modes of a field.
    pub fn analyse(&mut self, field: &[T]) {
        arch().dispatch(Analyse { real: self, field });
    }

    /// Makes a field of its modes in `columns`, and leaves something else there.
    pub fn synthesise(&mut self, field: &mut [T]) {
        arch().dispatch(Synthesise { real: self, field });
    }

    /// First column and number of columns of each group.
    fn groups(&self) -> impl Iterator<Item = (usize, usize)> + Clone + use<T> {
        let (count, lanes) = (self.plans.resolution.columns(), lanes::<T>());
        (0..count)
            .step_by(lanes)
            .map(move |first| (first, lanes.min(count - first)))
    }

    /// The first row of each pair of groups.
    fn pairs(&self) -> impl Iterator<Item = usize> + use<T> {
        (0..self.plans.resolution.points[0]).step_by(2 * lanes::<T>())
    }

    /// Reads the rows of a pair, normalised; those beyond the grid are zero.
    #[inline(always)]
    fn read<const L: usize>(&mut self, field: &[T], first: usize) {
        let [rows, length] = self.plans.resolution.points;
        let norm = narrow::<T>(1.0 / (rows * length) as f64);
        let line = self.pair[0].line.numbers_mut::<L>();
        for r in 0..2 * L {
            let cells = line.iter_mut().map(|at| &mut at[r % 2][r / 2]);
            let start = (first + r) * length;
            match field.get(start..start + length) {
                Some(row) => cells.zip(row).for_each(|(cell, &z)| *cell = z * norm),
                None => cells.for_each(|cell| *cell = T::zero()),
            }
        }
    }

    /// Copies the modes of a pair to the columns.
    #[inline(always)]
    fn scatter<const L: usize>(&mut self, first: usize) {
        let groups = self.groups();
        for rows in &mut self.pair {
            rows.place.first = first;
            for ((column, width), columns) in groups.clone().zip(&mut self.columns) {
                rows.hand_over::<L>(column, width, columns);
            }
        }
    }

    /// Makes modes of a pair of what stands in the columns: those of even rows plus i times those of
    /// odd rows.
    #[inline(always)]
    fn gather<const L: usize>(&mut self, first: usize) {
        let groups = self.groups();
        for rows in &mut self.pair {
            rows.place.first = first;
            let line = rows.line.numbers_mut::<L>();
            for ((column, width), columns) in groups.clone().zip(&self.columns) {
                let mut room = [[[T::zero(); L]; 2]; L];
                rows.place.take(columns, &mut room);
                line[column..column + width].copy_from_slice(&room[..width]);
            }
        }
        let length = self.plans.resolution.points[1];
        let [a, b] = &mut self.pair;
        let (line, other) = (a.line.numbers_mut::<L>(), b.line.numbers::<L>());
        for m in 0..=length / 2 {
            let opposite = (length - m) % length;
            let ([even, mut even_im], [odd, mut odd_im]) = (line[m], other[m]);
            if m == opposite {
                // Real up to rounding, for a real field.
                [even_im, odd_im] = [[T::zero(); L]; 2];
            }
            for l in 0..L {
                // Opposite modes of a real row are conjugate.
                line[opposite][0][l] = even[l] + odd_im[l];
                line[opposite][1][l] = odd[l] - even_im[l];
                line[m][0][l] = even[l] - odd_im[l];
                line[m][1][l] = odd[l] + even_im[l];
            }
        }
    }

    /// Writes the rows of a pair.
    #[inline(always)]
    fn write<const L: usize>(&self, field: &mut [T], first: usize) {
        let length = self.plans.resolution.points[1];
        let line = self.pair[0].line.numbers::<L>();
        let rows = field[first * length..].chunks_exact_mut(length);
        for (r, row) in rows.enumerate().take(2 * L) {
            for (value, at) in row.iter_mut().zip(line) {
                *value = at[r % 2][r / 2];
            }
        }
    }
}

struct Analyse<'a, T> {
    real: &'a mut RealField<T>,
    field: &'a [T],
}

impl<T: Real> WithSimd for Analyse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { real, field } = self;
        for first in real.pairs() {
            with_lanes!(T, S, real.read(field, first));
            Rows::transform_real_pair(&mut real.pair, simd, &real.plans);
            with_lanes!(T, S, real.scatter(first));
        }
        for columns in &mut real.columns {
            real.plans.forward[0].run(simd, columns, &mut real.spare);
        }
    }
}

struct Synthesise<'a, T> {
    real: &'a mut RealField<T>,
    field: &'a mut [T],
}

impl<T: Real> WithSimd for Synthesise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { real, field } = self;
        let beyond = real.plans.resolution.points[0]..real.plans.padded_rows();
        for columns in &mut real.columns {
            real.plans.inverse[0].run(simd, columns, &mut real.spare);
            columns.clear(beyond.clone());
        }
        for first in real.pairs() {
            with_lanes!(T, S, real.gather(first));
            let [pair, _] = &mut real.pair;
            real.plans.inverse[1].run(simd, &mut pair.line, &mut pair.spare);
            with_lanes!(T, S, real.write(field, first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn real_fields_have_the_modes_of_the_definition_and_come_back() {
        for points in [
            [1, 1],
            [2, 2],
            [3, 5],
            [5, 1],
            [1, 6],
            [15, 14],
            [16, 17],
            [37, 6],
        ] {
            let [n0, n1] = points;
            let value = |j: usize| (12.9898 * j as f64).sin();
            let mut field: Vec<f64> = (0..n0 * n1).map(value).collect();
            let mut real = RealField::new(points);
            real.analyse(&field);
            for (k, m) in (0..n0).flat_map(|k| (0..=n1 / 2).map(move |m| (k, m))) {
                let turn = |j: usize| {
                    let shares = [j / n1 * k % n0, j % n1 * m % n1].map(|at| at as f64);
                    Complex::cis(-TAU * (shares[0] / n0 as f64 + shares[1] / n1 as f64))
                };
                let sum: Complex<f64> = (0..n0 * n1).map(|j| turn(j) * value(j)).sum();
                let columns = &real.columns[m / lanes::<f64>()];
                let found = columns.get(k, m % lanes::<f64>());
                let off = (found - sum / (n0 * n1) as f64).norm();
                assert!(off < 1e-14, "mode {k}, {m} of {points:?}: {off}");
            }
            field.fill(0.0);
            real.synthesise(&mut field);
            for (j, back) in field.iter().enumerate() {
                assert!((value(j) - back).abs() < 1e-14, "{points:?}");
            }
        }
    }
}
