//! Products of periodic fields, by Fourier transforms that skip what is known to be zero.
//!
//! Both two-dimensional steppers spend their time in the same round trip: from Fourier modes to
//! two real fields on the grid, a product there, and back. The two fields travel as the real and
//! imaginary part of one complex field z. The way down is
//!
//! 1. an inverse transform along axis 0 of each *column* of modes (one wave number along axis 1)
//!    that is carried: the modes beyond [`Resolution::carried`] are zero and are never touched;
//! 2. an inverse transform along axis 1 of each *row*;
//!
//! and the way up is the reverse. Every transform runs over contiguous memory. Rows are handled in
//! groups ([`Rows`]) and so are columns ([`Columns`]); a group writes only its own tile, which holds
//! its lines side by side, so that the other direction reads it in runs of a cache line. Groups of
//! one kind depend only on the tiles of the other kind: they can run on any number of threads
//! ([`for_each`]) and give the same bits.
//!
//! A real field has conjugate modes at opposite wave numbers, so a stepper keeps only the columns
//! with wave number m ≥ 0 along axis 1. The complex field z has no such symmetry: columns come in
//! pairs, the *plus* column Z(m, ·) and the *minus* column. The latter is kept as
//! conj Z(−m, −·), whose transform along axis 0 is the conjugate of that of Z(−m, ·): conjugating
//! at the tile then saves reversing the column.

use num_traits::{Float, Zero};
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Columns in a group. With their mirror images they fill one or two cache lines.
const COLUMNS: usize = 4;
/// Rows in a group; even, because real products travel in pairs of rows.
const ROWS: usize = 8;
/// Below this many grid points the round trip is over before another thread has woken up.
const WORTH_SHARING: usize = 64 * 64;

/// Signed number of the j-th of `n` modes in the order of Fourier transforms.
pub(super) fn mode_number(j: usize, n: usize) -> f64 {
    if 2 * j < n {
        j as f64
    } else {
        j as f64 - n as f64
    }
}

/// The j-th of `n` wave numbers on a circle of circumference `length`.
pub(super) fn wave_number(j: usize, n: usize, length: f64) -> f64 {
    TAU / length * mode_number(j, n)
}

/// The number in the precision of the field.
pub(super) fn narrow<T: FftNum>(value: f64) -> T {
    T::from_f64(value).expect("floats convert to floats")
}

/// The smallest even number ≥ `n` without prime factors above 5: its transforms are fast.
pub(super) fn fast_size(n: usize) -> usize {
    let smooth = |n: usize| {
        [2, 3, 5].into_iter().fold(n, |mut rest, prime| {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
            rest
        }) == 1
    };
    (n.next_multiple_of(2)..)
        .step_by(2)
        .find(|&n| smooth(n))
        .expect("powers of two are fast")
}

/// Runs `work` on every item, on all threads if `shared`; the order does not matter to callers.
pub(super) fn for_each<A: Send>(
    items: &mut [A],
    shared: bool,
    work: impl Fn(&mut A) + Send + Sync,
) {
    if shared {
        let portion = items.len().div_ceil(rayon::current_num_threads());
        items
            .par_iter_mut()
            .with_min_len(portion.div_ceil(2))
            .for_each(work);
    } else {
        items.iter_mut().for_each(work);
    }
}

/// Whether to share the work on `points` grid points among the threads of the global pool.
///
/// Not when the caller is in the pool already: it then has episodes to run side by side, which
/// shares out better than the pieces of one step.
pub(super) fn worth_sharing(points: usize) -> bool {
    points >= WORTH_SHARING
        && rayon::current_thread_index().is_none()
        && rayon::current_num_threads() > 1
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
}

/// The planned transforms of a round trip.
pub(super) struct Plans<T> {
    pub resolution: Resolution,
    /// Inverse (to the grid) and forward transform along each axis.
    inverse: [Arc<dyn Fft<T>>; 2],
    forward: [Arc<dyn Fft<T>>; 2],
}

impl<T: FftNum> Plans<T> {
    pub fn new(resolution: Resolution) -> Self {
        let mut planner = FftPlanner::new();
        let grid = resolution.grid;
        Self {
            resolution,
            inverse: grid.map(|n| planner.plan_fft_inverse(n)),
            forward: grid.map(|n| planner.plan_fft_forward(n)),
        }
    }

    fn scratch(&self, axis: usize) -> Vec<Complex<T>> {
        let plans = [&self.inverse[axis], &self.forward[axis]];
        let longest = plans.map(|plan| plan.get_outofplace_scratch_len());
        vec![Complex::zero(); longest[0].max(longest[1])]
    }
}

/// A group of columns of the half spectrum, transformed along axis 0.
pub(super) struct Columns<T> {
    /// Wave number of the first column along axis 1.
    pub first: usize,
    /// Columns in the group.
    pub width: usize,
    /// How many of them enter products: the first ones.
    pub carried: usize,
    /// Modes in a column.
    length: usize,
    /// Modes along axis 0 on the way down, spectra of products on the way up; grid length.
    pub plus: Vec<Complex<T>>,
    /// The mirror column, as described at the top.
    pub minus: Vec<Complex<T>>,
    spare: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
    /// For each row, the plus columns and, in descending order, the minus columns.
    tile: Vec<[Complex<T>; 2 * COLUMNS]>,
}

impl<T: FftNum> Columns<T> {
    /// All columns of the half spectrum, in groups.
    pub fn all(plans: &Plans<T>) -> Vec<Self> {
        let count = plans.resolution.columns();
        let rows = plans.resolution.grid[0];
        (0..count)
            .step_by(COLUMNS)
            .map(|first| Self {
                first,
                width: COLUMNS.min(count - first),
                carried: COLUMNS.min((plans.resolution.carried[1] + 1).saturating_sub(first)),
                length: plans.resolution.points[0],
                plus: vec![Complex::zero(); rows],
                minus: vec![Complex::zero(); rows],
                spare: vec![Complex::zero(); rows],
                scratch: plans.scratch(0),
                tile: vec![[Complex::zero(); 2 * COLUMNS]; rows],
            })
            .collect()
    }

    /// Where the group's modes stand in the half spectrum.
    pub fn modes(&self) -> std::ops::Range<usize> {
        self.first * self.length..(self.first + self.width) * self.length
    }

    /// Where each of `n` modes of a column stands in `plus` and `minus`: first those with wave
    /// numbers 0 ..= carried, then those with −carried .. 0; all others are zero.
    pub fn carried_modes(plans: &Plans<T>) -> [(std::ops::Range<usize>, usize); 2] {
        let Resolution {
            points,
            grid,
            carried,
        } = plans.resolution;
        let negative = points[0] - carried[0];
        [
            (0..carried[0] + 1, 0),
            (negative..points[0], grid[0] - carried[0]),
        ]
    }

    /// Passes on `plus` and `minus`, which hold the carried modes of the group's column `column`.
    pub fn send(&mut self, column: usize, plans: &Plans<T>) {
        let rows = plans.resolution.grid[0];
        let carried = plans.resolution.carried[0];
        let gap = carried + 1..rows - carried;
        self.plus[gap.clone()].fill(Complex::zero());
        let plan = &plans.inverse[0];
        plan.process_outofplace_with_scratch(&mut self.plus, &mut self.spare, &mut self.scratch);
        for (row, value) in self.tile.iter_mut().zip(&self.spare) {
            row[column] = *value;
        }
        if self.first + column > 0 {
            self.minus[gap].fill(Complex::zero());
            plan.process_outofplace_with_scratch(
                &mut self.minus,
                &mut self.spare,
                &mut self.scratch,
            );
            for (row, value) in self.tile.iter_mut().zip(&self.spare) {
                row[2 * COLUMNS - 1 - column] = value.conj();
            }
        }
    }

    /// Fills `plus` with the spectrum of the product in the group's column `column`, not
    /// normalised.
    pub fn receive_plus(&mut self, column: usize, rows: &[Rows<T>], plans: &Plans<T>) {
        let slot = self.first + column;
        gather(&mut self.spare, slot, rows);
        plans.forward[0].process_outofplace_with_scratch(
            &mut self.spare,
            &mut self.plus,
            &mut self.scratch,
        );
    }

    /// Fills `minus` likewise. The column 0 has no mirror image but itself and is left alone.
    pub fn receive_minus(&mut self, column: usize, rows: &[Rows<T>], plans: &Plans<T>) {
        let slot = plans.resolution.carried[1] + 1 + self.first + column;
        gather(&mut self.spare, slot, rows);
        plans.forward[0].process_outofplace_with_scratch(
            &mut self.spare,
            &mut self.minus,
            &mut self.scratch,
        );
    }
}

/// Reads one column from the tiles of all rows.
fn gather<T: FftNum>(line: &mut [Complex<T>], slot: usize, rows: &[Rows<T>]) {
    let (whole, rest) = line.as_chunks_mut::<ROWS>();
    let rows = rows.iter().map(|group| &group.tile[slot]);
    for (part, values) in whole.iter_mut().zip(rows.clone()) {
        *part = *values;
    }
    for (entry, value) in rest.iter_mut().zip(rows.last().into_iter().flatten()) {
        *entry = *value;
    }
}

/// Copies the beginning of a slice.
#[inline]
fn copy<A: Copy>(to: &mut [A], from: &[A]) {
    let to = to.first_chunk_mut::<COLUMNS>().expect("room for a group");
    *to = *from.first_chunk().expect("a whole group");
}

/// A group of rows of the grid, transformed along axis 1.
pub(super) struct Rows<T> {
    /// The first row.
    first: usize,
    /// Rows in the group.
    pub height: usize,
    /// One row of the complex field z.
    pub line: Vec<Complex<T>>,
    /// Two rows of a real product, as real and imaginary part.
    pub pair: Vec<Complex<T>>,
    spectrum: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
    /// For each column (first all plus, then all minus columns), the rows of the group.
    tile: Vec<[Complex<T>; ROWS]>,
}

impl<T: FftNum> Rows<T> {
    /// All rows of the grid, in groups.
    pub fn all(plans: &Plans<T>) -> Vec<Self> {
        let Resolution { grid, carried, .. } = plans.resolution;
        let columns = plans.resolution.columns().max(2 * (carried[1] + 1));
        (0..grid[0])
            .step_by(ROWS)
            .map(|first| Self {
                first,
                height: ROWS.min(grid[0] - first),
                line: vec![Complex::zero(); grid[1]],
                pair: vec![Complex::zero(); grid[1]],
                spectrum: vec![Complex::zero(); grid[1]],
                scratch: plans.scratch(1),
                tile: vec![[Complex::zero(); ROWS]; columns],
            })
            .collect()
    }

    /// Brings the group's row `row` of z to the grid, into `line`.
    pub fn load<'a>(
        &mut self,
        row: usize,
        columns: impl Iterator<Item = &'a Columns<T>>,
        plans: &Plans<T>,
    ) {
        let length = self.spectrum.len();
        let carried = plans.resolution.carried[1];
        self.spectrum[carried + 1..length - carried].fill(Complex::zero());
        for group in columns {
            let (first, count) = (group.first, group.carried);
            let values = &group.tile[self.first + row];
            let (plus, minus) = values.split_at(COLUMNS);
            let start = length + 1 - first - count;
            if count == COLUMNS && first > 0 {
                // The same as below, in copies of a size that the compiler knows.
                copy(&mut self.spectrum[first..], plus);
                copy(&mut self.spectrum[start..], minus);
            } else {
                self.spectrum[first..first + count].copy_from_slice(&plus[..count]);
                // The minus column of wave number 0 is the plus column: left out.
                let minus = &minus[COLUMNS - count..COLUMNS - usize::from(first == 0)];
                self.spectrum[start..start + minus.len()].copy_from_slice(minus);
            }
        }
        plans.inverse[1].process_outofplace_with_scratch(
            &mut self.spectrum,
            &mut self.line,
            &mut self.scratch,
        );
    }

    /// Takes `line` back as the group's row `row` of a complex product.
    pub fn store(&mut self, row: usize, plans: &Plans<T>) {
        plans.forward[1].process_outofplace_with_scratch(
            &mut self.line,
            &mut self.spectrum,
            &mut self.scratch,
        );
        let carried = plans.resolution.carried[1];
        let (plus, minus) = self.tile.split_at_mut(carried + 1);
        for (slot, value) in plus.iter_mut().zip(&self.spectrum) {
            slot[row] = *value;
        }
        for (slot, value) in minus[1..].iter_mut().zip(self.spectrum.iter().rev()) {
            slot[row] = value.conj();
        }
    }

    /// Takes `pair` back as the group's rows `row` and `row + 1` of a real product. Each has half
    /// the sum or difference of opposite modes.
    pub fn store_real_pair(&mut self, row: usize, plans: &Plans<T>) {
        plans.forward[1].process_outofplace_with_scratch(
            &mut self.pair,
            &mut self.spectrum,
            &mut self.scratch,
        );
        let half = narrow::<T>(0.5);
        let mirrored = std::iter::once(&self.spectrum[0]).chain(self.spectrum.iter().rev());
        let columns = plans.resolution.columns();
        for ((slot, a), b) in (self.tile[..columns].iter_mut())
            .zip(&self.spectrum)
            .zip(mirrored)
        {
            slot[row] = Complex::new((a.re + b.re) * half, (a.im - b.im) * half);
            slot[row + 1] = Complex::new((a.im + b.im) * half, (b.re - a.re) * half);
        }
    }
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

impl<T: Float + FftNum> RealField<T> {
    pub fn new(points: [usize; 2]) -> Self {
        let mut real = RealFftPlanner::new();
        let (to_modes, to_values) = (
            real.plan_fft_forward(points[1]),
            real.plan_fft_inverse(points[1]),
        );
        let mut complex = FftPlanner::new();
        let (forward, inverse) = (
            complex.plan_fft_forward(points[0]),
            complex.plan_fft_inverse(points[0]),
        );
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
        transpose(&self.rows, columns, spectrum, n0);
        self.forward
            .process_with_scratch(spectrum, &mut self.scratch);
    }

    /// Overwrites the spectrum.
    pub fn synthesise(&mut self, spectrum: &mut [Complex<T>], field: &mut [T]) {
        let [n0, n1] = self.points;
        let columns = n1 / 2 + 1;
        self.inverse
            .process_with_scratch(spectrum, &mut self.scratch);
        transpose(spectrum, n0, &mut self.rows, columns);
        for (row, modes) in field
            .chunks_exact_mut(n1)
            .zip(self.rows.chunks_exact_mut(columns))
        {
            // Real up to rounding, for a real field.
            modes[0].im = T::zero();
            modes[columns - 1].im = T::zero();
            self.to_values
                .process_with_scratch(modes, row, &mut self.scratch)
                .expect("lengths were planned, and the end modes are real");
        }
    }
}

/// `to[c][r] = from[r][c]`, in tiles that fit the cache.
fn transpose<A: Copy>(from: &[A], columns: usize, to: &mut [A], rows: usize) {
    const TILE: usize = 8;
    for first in (0..rows).step_by(TILE) {
        for (c, line) in to.chunks_exact_mut(rows).enumerate() {
            for (r, entry) in line.iter_mut().enumerate().skip(first).take(TILE) {
                *entry = from[r * columns + c];
            }
        }
    }
}
