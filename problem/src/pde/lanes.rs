//! Arithmetic on as many numbers at once as the machine's vectors hold.
//!
//! A *lane* is one of several lines of a field (rows, or columns of modes) that are worked on side by
//! side. [`Lines`] stores them interleaved: for each position along the lines, the real parts of
//! all lanes and then the imaginary parts. One operation on a [`Wide`] is one instruction for all
//! lanes (8 doubles with AVX-512, 4 with AVX2, 2 with NEON), and no lane ever meets another.
//!
//! There are sums, differences and products, each rounded by itself: a machine that could add to a
//! product before it is rounded does not, so that all machines compute the same bits.

use num_complex::Complex;
use num_traits::{Float, FromPrimitive};
use pulp::{Arch, Simd};
use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

/// The precision of a field: `f32` or `f64`.
pub trait Real: Float + FromPrimitive + Debug + Send + Sync + 'static {
    #[doc(hidden)]
    type Vector<S: Simd>: Copy;
    #[doc(hidden)]
    fn vectors<S: Simd>(values: &[Self]) -> &[Self::Vector<S>];
    #[doc(hidden)]
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];
    #[doc(hidden)]
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    #[doc(hidden)]
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    #[doc(hidden)]
    fn difference<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    #[doc(hidden)]
    fn product<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! real {
    ($float:ty: $vector:ident, $view:ident, $view_mut:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident) => {
        impl Real for $float {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn vectors<S: Simd>(values: &[Self]) -> &[S::$vector] {
                S::$view(values).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [S::$vector] {
                S::$view_mut(values).0
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn difference<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn product<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }
        }
    };
}
real!(f32: f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, add_f32s, sub_f32s, mul_f32s);
real!(f64: f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, add_f64s, sub_f64s, mul_f64s);

/// The number in the precision of the field.
pub(super) fn narrow<T: Real>(value: f64) -> T {
    T::from_f64(value).expect("floats convert to floats")
}

/// Lanes in one vector of `S`.
pub(super) const fn width<T: Real, S: Simd>() -> usize {
    size_of::<T::Vector<S>>() / size_of::<T>()
}

/// The widest vectors of this machine.
#[inline(always)]
pub(super) fn arch() -> Arch {
    #[cfg(test)]
    if let Some(arch) = tests::CHOSEN.get() {
        return arch;
    }
    Arch::new()
}

/// Lanes in one vector of this machine.
pub(super) fn lanes<T: Real>() -> usize {
    struct Ask<T>(std::marker::PhantomData<T>);
    impl<T: Real> pulp::WithSimd for Ask<T> {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            width::<T, S>()
        }
    }
    arch().dispatch(Ask::<T>(std::marker::PhantomData))
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
pub(super) use with_lanes;

/// One real number per lane.
pub(super) struct Wide<T: Real, S: Simd> {
    simd: S,
    vector: T::Vector<S>,
}

impl<T: Real, S: Simd> Clone for Wide<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Real, S: Simd> Copy for Wide<T, S> {}

impl<T: Real, S: Simd> Wide<T, S> {
    #[inline(always)]
    pub fn load(simd: S, vector: T::Vector<S>) -> Self {
        Self { simd, vector }
    }

    /// The same number in all lanes.
    #[inline(always)]
    pub fn splat(simd: S, value: T) -> Self {
        Self::load(simd, T::splat(simd, value))
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $with:ident) => {
        impl<T: Real, S: Simd> $trait for Wide<T, S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::load(self.simd, T::$with(self.simd, self.vector, other.vector))
            }
        }
    };
}
operator!(Add, add, sum);
operator!(Sub, sub, difference);
operator!(Mul, mul, product);

/// One complex number per lane, as it stands in memory.
pub(super) type Stored<T, S> = [<T as Real>::Vector<S>; 2];

/// One complex number per lane.
pub(super) struct WideComplex<T: Real, S: Simd> {
    pub re: Wide<T, S>,
    pub im: Wide<T, S>,
}

impl<T: Real, S: Simd> Clone for WideComplex<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Real, S: Simd> Copy for WideComplex<T, S> {}

impl<T: Real, S: Simd> WideComplex<T, S> {
    #[inline(always)]
    pub fn new(re: Wide<T, S>, im: Wide<T, S>) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    pub fn load(simd: S, [re, im]: Stored<T, S>) -> Self {
        Self::new(Wide::load(simd, re), Wide::load(simd, im))
    }

    #[inline(always)]
    pub fn stored(self) -> Stored<T, S> {
        [self.re.vector, self.im.vector]
    }

    /// `self ± i other`.
    #[inline(always)]
    pub fn plus_minus_i(self, other: Self) -> [Self; 2] {
        [
            Self::new(self.re - other.im, self.im + other.re),
            Self::new(self.re + other.im, self.im - other.re),
        ]
    }
}

impl<T: Real, S: Simd> Add for WideComplex<T, S> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl<T: Real, S: Simd> Sub for WideComplex<T, S> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl<T: Real, S: Simd> Mul<Wide<T, S>> for WideComplex<T, S> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, factor: Wide<T, S>) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }
}

impl<T: Real, S: Simd> Mul for WideComplex<T, S> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}

/// Numbers that begin on a cache line, so that no vector straddles two. (Those of a clone may: that
/// costs time, nothing else.)
#[derive(Clone)]
pub(super) struct Aligned<T> {
    values: Vec<T>,
    start: usize,
}

impl<T: Real> Aligned<T> {
    const CACHE_LINE: usize = 64;

    pub fn zeros(count: usize) -> Self {
        let mut values = vec![T::zero(); count + Self::CACHE_LINE / size_of::<T>()];
        let start = values.as_ptr().align_offset(Self::CACHE_LINE);
        values.truncate(start + count);
        Self { values, start }
    }

    #[inline(always)]
    pub fn values(&self) -> &[T] {
        &self.values[self.start..]
    }

    #[inline(always)]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..]
    }
}

/// A real number per lane and position.
pub(super) struct Table<T>(Aligned<T>);

impl<T: Real> Table<T> {
    /// `value(position, lane)`, narrowed.
    pub fn new(length: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let lanes = lanes::<T>();
        let mut table = Aligned::zeros(length * lanes);
        for (j, entry) in table.values_mut().iter_mut().enumerate() {
            *entry = narrow(value(j / lanes, j % lanes));
        }
        Self(table)
    }

    #[inline(always)]
    pub fn wide<S: Simd>(&self) -> &[T::Vector<S>] {
        T::vectors::<S>(self.0.values())
    }
}

/// Complex lines of some length, one per lane.
#[derive(Clone)]
pub(super) struct Lines<T> {
    values: Aligned<T>,
    lanes: usize,
}

impl<T: Real> Lines<T> {
    pub fn zeros(length: usize) -> Self {
        Self::of_lanes(lanes::<T>(), length)
    }

    /// A single line, for vectors of one lane.
    pub fn single(length: usize) -> Self {
        Self::of_lanes(1, length)
    }

    fn of_lanes(lanes: usize, length: usize) -> Self {
        Self {
            values: Aligned::zeros(length * 2 * lanes),
            lanes,
        }
    }

    #[inline(always)]
    pub fn wide<S: Simd>(&self) -> &[Stored<T, S>] {
        T::vectors::<S>(self.values.values()).as_chunks().0
    }

    #[inline(always)]
    pub fn wide_mut<S: Simd>(&mut self) -> &mut [Stored<T, S>] {
        T::vectors_mut::<S>(self.values.values_mut())
            .as_chunks_mut()
            .0
    }

    /// The same as numbers: \[position]\[real or imaginary]\[lane]. `L` is the number of lanes.
    #[inline(always)]
    pub fn numbers<const L: usize>(&self) -> &[Numbers<T, L>] {
        self.values.values().as_chunks::<L>().0.as_chunks().0
    }

    #[inline(always)]
    pub fn numbers_mut<const L: usize>(&mut self) -> &mut [Numbers<T, L>] {
        let (vectors, _) = self.values.values_mut().as_chunks_mut::<L>();
        vectors.as_chunks_mut().0
    }

    pub fn get(&self, position: usize, lane: usize) -> Complex<T> {
        let at = &self.values.values()[2 * self.lanes * position + lane..];
        Complex::new(at[0], at[self.lanes])
    }

    pub fn set(&mut self, position: usize, lane: usize, value: Complex<T>) {
        let at = &mut self.values.values_mut()[2 * self.lanes * position + lane..];
        (at[0], at[self.lanes]) = (value.re, value.im);
    }

    /// Takes over all positions that `other` has too.
    pub fn copy_from(&mut self, other: &Self) {
        for (to, from) in (self.values.values_mut().iter_mut()).zip(other.values.values()) {
            *to = *from;
        }
    }

    #[inline(always)]
    pub fn clear(&mut self, positions: std::ops::Range<usize>) {
        let range = 2 * self.lanes * positions.start..2 * self.lanes * positions.end;
        self.values.values_mut()[range].fill(T::zero());
    }
}

/// One complex number per position and lane: \[real or imaginary]\[lane].
pub(super) type Numbers<T, const L: usize> = [[T; L]; 2];

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// Vectors to use instead of the widest.
        pub static CHOSEN: Cell<Option<Arch>> = const { Cell::new(None) };
    }

    /// What `work` gives with each kind of vectors that this machine has, the widest first.
    pub fn with_all_vectors<A>(work: impl Fn() -> A) -> Vec<A> {
        let mut kinds = vec![Arch::new(), Arch::Scalar];
        #[cfg(target_arch = "x86_64")]
        kinds.extend(pulp::x86::V3::try_new().map(Arch::V3));
        let with = |arch| {
            CHOSEN.set(Some(arch));
            work()
        };
        let all = kinds.into_iter().map(with).collect();
        CHOSEN.set(None);
        all
    }
}
