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
use super::lanes::{Lines, Numbers, Real, Wide, WideComplex, lanes, narrow, transpose, width};
use num_traits::Zero;
use pulp::Simd;
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;
use transforms::{Complex, ComplexToReal, Fft, RealToComplex};

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

/// Calls `$function` with the lanes of a vector as its last type argument.
macro_rules! with_lanes {
    ($T:ty, $S:ty, $object:ident.$method:ident($($argument:expr),*)) => {
        match width::<$T, $S>() {
            1 => $object.$method::<1>($($argument),*),
            2 => $object.$method::<2>($($argument),*),
            4 => $object.$method::<4>($($argument),*),
            8 => $object.$method::<8>($($argument),*),
            16 => $object.$method::<16>($($argument),*),
            lanes => unreachable!("vectors of {lanes} lanes"),
        }
    };
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
        }
    }

    /// Fills `plus` and `minus` with the modes of a complex product, not normalised.
    #[inline(always)]
    pub fn receive<'a, S: Simd>(
        &mut self,
        simd: S,
        rows: impl Iterator<Item = &'a Rows<T>>,
        plans: &Plans<T>,
    ) {
        with_lanes!(T, S, self.gather(rows, plans.resolution.grid[1]));
        plans.forward[0].run(simd, &mut self.plus, &mut self.spare);
        plans.forward[0].run(simd, &mut self.minus, &mut self.spare);
    }

    #[inline(always)]
    fn gather<'a, const L: usize>(
        &mut self,
        rows: impl Iterator<Item = &'a Rows<T>>,
        length: usize,
    ) {
        let (first, carried) = (self.first, self.carried);
        for group in rows {
            let line = group.line.numbers::<L>();
            let mut columns = [[[T::zero(); L]; 2]; L];
            transpose(
                some(line, first, carried, &mut columns),
                group.place(&mut self.plus),
            );
            for (c, column) in columns.iter_mut().enumerate().take(carried) {
                *column = conjugate(&line[(length - first - c) % length]);
            }
            transpose(&columns, group.place(&mut self.minus));
        }
    }

    /// Fills `plus` with the modes of a real product in all columns, not normalised.
    #[inline(always)]
    pub fn receive_real<'a, S: Simd>(
        &mut self,
        simd: S,
        rows: impl Iterator<Item = &'a Rows<T>>,
        plans: &Plans<T>,
    ) {
        with_lanes!(T, S, self.gather_real(rows));
        plans.forward[0].run(simd, &mut self.plus, &mut self.spare);
    }

    #[inline(always)]
    fn gather_real<'a, const L: usize>(&mut self, rows: impl Iterator<Item = &'a Rows<T>>) {
        let (first, width) = (self.first, self.width);
        for group in rows {
            let line = group.line.numbers::<L>();
            let mut columns = [[[T::zero(); L]; 2]; L];
            transpose(
                some(line, first, width, &mut columns),
                group.place(&mut self.plus),
            );
        }
    }

    /// Copies the group's columns out of a half spectrum whose columns are contiguous.
    pub fn pick(&self, spectrum: &[Complex<T>], length: usize, lines: &mut Lines<T>) {
        for lane in 0..self.width {
            let column = &spectrum[(self.first + lane) * length..][..length];
            for (j, value) in column.iter().enumerate() {
                lines.set(j, lane, *value);
            }
        }
    }

    /// Copies the group's columns back into a half spectrum.
    pub fn put(&self, spectrum: &mut [Complex<T>], length: usize, lines: &Lines<T>) {
        for lane in 0..self.width {
            let column = &mut spectrum[(self.first + lane) * length..][..length];
            for (j, value) in column.iter_mut().enumerate() {
                *value = lines.get(j, lane);
            }
        }
    }
}

/// A group of rows of the grid, along axis 1.
pub(super) struct Rows<T> {
    /// The first row.
    pub first: usize,
    /// Values of z, then modes of its product.
    pub line: Lines<T>,
    spare: Lines<T>,
}

impl<T: Real> Rows<T> {
    /// All rows of the grid in an even number of groups, of which the last may lie beyond it.
    pub fn all(plans: &Plans<T>) -> Vec<Self> {
        (0..plans.padded_rows())
            .step_by(lanes::<T>())
            .map(|first| Self {
                first,
                line: Lines::zeros(plans.resolution.grid[1]),
                spare: Lines::zeros(plans.resolution.grid[1]),
            })
            .collect()
    }

    /// The group's rows in a group of columns.
    #[inline(always)]
    fn place<'a, const L: usize>(&self, lines: &'a mut Lines<T>) -> &'a mut [Numbers<T, L>; L] {
        let rows = &mut lines.numbers_mut::<L>()[self.first..];
        rows.first_chunk_mut().expect("columns have padded rows")
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
                transpose(rows(&group.plus, self.first), columns);
            } else {
                transpose(rows(&group.plus, self.first), &mut columns);
                line[first..first + carried].copy_from_slice(&columns[..carried]);
            }
            transpose(rows(&group.minus, self.first), &mut columns);
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

/// The rows from `first` on in a group of columns.
#[inline(always)]
fn rows<T: Real, const L: usize>(lines: &Lines<T>, first: usize) -> &[Numbers<T, L>; L] {
    let rows = lines.numbers::<L>()[first..].first_chunk();
    rows.expect("columns have padded rows")
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

/// Real fields to and from their half spectrum, whose columns (along axis 0) are contiguous:
/// field(x) = Σ_k spectrum(k) exp(i k x).
pub(super) struct RealField<T> {
    points: [usize; 2],
    to_modes: Arc<dyn RealToComplex<T>>,
    to_values: Arc<dyn ComplexToReal<T>>,
    forward: Arc<dyn Fft<T>>,
    inverse: Arc<dyn Fft<T>>,
    /// The half spectrum of each row.
    rows: Vec<Complex<T>>,
    values: Vec<T>,
    scratch: Vec<Complex<T>>,
}

impl<T: Real> RealField<T> {
    pub fn new(points: [usize; 2]) -> Self {
        let (to_modes, to_values) = (T::real_forward(points[1]), T::real_inverse(points[1]));
        let (forward, inverse) = (T::forward(points[0]), T::inverse(points[0]));
        let longest = [
            to_modes.get_scratch_len(),
            to_values.get_scratch_len(),
            forward.get_inplace_scratch_len(),
            inverse.get_inplace_scratch_len(),
        ];
        Self {
            points,
            to_modes,
            to_values,
            forward,
            inverse,
            rows: vec![Complex::zero(); points[0] * (points[1] / 2 + 1)],
            values: vec![T::zero(); points[1]],
            scratch: vec![Complex::zero(); longest.into_iter().fold(0, usize::max)],
        }
    }

    /// Modes in a half spectrum.
    pub fn modes(&self) -> usize {
        self.rows.len()
    }

    pub fn analyse(&mut self, field: &[T], spectrum: &mut [Complex<T>]) {
        let [n0, n1] = self.points;
        let norm = narrow::<T>(1.0 / (n0 * n1) as f64);
        let columns = n1 / 2 + 1;
        for (j, row) in field.chunks_exact(n1).enumerate() {
            for (value, &z) in self.values.iter_mut().zip(row) {
                *value = z * norm;
            }
            let modes = &mut self.rows[j * columns..][..columns];
            self.to_modes
                .process_with_scratch(&mut self.values, modes, &mut self.scratch)
                .expect("lengths were planned");
        }
        transpose_plane(&self.rows, columns, spectrum, n0);
        self.forward
            .process_with_scratch(spectrum, &mut self.scratch);
    }

    /// Overwrites the spectrum.
    pub fn synthesise(&mut self, spectrum: &mut [Complex<T>], field: &mut [T]) {
        let [n0, n1] = self.points;
        let columns = n1 / 2 + 1;
        self.inverse
            .process_with_scratch(spectrum, &mut self.scratch);
        transpose_plane(spectrum, n0, &mut self.rows, columns);
        for (row, modes) in field
            .chunks_exact_mut(n1)
            .zip(self.rows.chunks_exact_mut(columns))
        {
            // Real up to rounding, for a real field.
            modes[0].im = T::zero();
            if n1.is_multiple_of(2) {
                modes[columns - 1].im = T::zero();
            }
            self.to_values
                .process_with_scratch(modes, row, &mut self.scratch)
                .expect("lengths were planned, and the end modes are real");
        }
    }
}

/// `to[c][r] = from[r][c]`, in tiles that fit the cache.
fn transpose_plane<A: Copy>(from: &[A], columns: usize, to: &mut [A], rows: usize) {
    const TILE: usize = 8;
    for first in (0..rows).step_by(TILE) {
        for (c, line) in to.chunks_exact_mut(rows).enumerate() {
            for (r, entry) in line.iter_mut().enumerate().skip(first).take(TILE) {
                *entry = from[r * columns + c];
            }
        }
    }
}
