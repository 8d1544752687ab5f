//! The two float types the hand-written pieces are compiled for: f32 trains, f64 is what plans are
//! made in and what tests difference numerically.

use super::physics::FieldStep;
use super::physics::described::Evaluates;
use crate::entry::ByHand;
use problem::{NotImplemented, Problem};
use pulp::Simd;
use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A float with vector registers and the few functions a closed loop needs.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Evaluates
    + 'static
{
    /// A vector register of instruction set `S`.
    type Vector<S: Simd>: Copy;

    /// The step with a hand-written adjoint in this precision.
    fn step_by_hand(
        made: &ByHand,
        problem: &Problem,
    ) -> Result<Box<dyn FieldStep<Self>>, NotImplemented>;
    /// Nearest value of this type.
    fn of(value: f64) -> Self;
    /// The value as f64.
    fn wide(self) -> f64;
    /// The value as an agent's position, which is f32.
    fn narrow(self) -> f32;
    /// `self · a + b`, rounded once.
    fn fused(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn root(self) -> Self;
    /// Absolute value.
    fn magnitude(self) -> Self;
    /// Sine and cosine.
    fn sine_cosine(self) -> (Self, Self);
    /// Hyperbolic tangent, branch-free so that loops over it vectorise.
    fn squash(self) -> Self;
    /// e^x for x ≤ 0, branch-free so that loops over it vectorise.
    fn decay(self) -> Self;

    /// Elements in a register.
    fn lanes<S: Simd>() -> usize;
    /// A register of equal values.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// The first elements of `from`; zeros where it ends.
    fn load<S: Simd>(simd: S, from: &[Self]) -> Self::Vector<S>;
    /// Stores as many elements as `to` holds.
    fn store<S: Simd>(simd: S, to: &mut [Self], value: Self::Vector<S>);
    /// `a · b + c`, rounded once.
    fn fused_vector<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;

    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The value within `low` and `high`.
    #[inline(always)]
    fn within(self, low: Self, high: Self) -> Self {
        let raised = if self < low { low } else { self };
        if raised > high { high } else { raised }
    }
}

macro_rules! vector_methods {
    ($vector:ident, $simd_slice:ident, $simd_slice_mut:ident, $splat:ident, $partial_load:ident, $partial_store:ident, $fused:ident, $lanes:ident) => {
        type Vector<S: Simd> = S::$vector;
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;

        #[inline(always)]
        fn lanes<S: Simd>() -> usize {
            S::$lanes
        }
        #[inline(always)]
        fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S> {
            simd.$splat(value)
        }
        #[inline(always)]
        fn load<S: Simd>(simd: S, from: &[Self]) -> Self::Vector<S> {
            match S::$simd_slice(from).0 {
                [first, ..] => *first,
                [] => simd.$partial_load(from),
            }
        }
        #[inline(always)]
        fn store<S: Simd>(simd: S, to: &mut [Self], value: Self::Vector<S>) {
            match S::$simd_slice_mut(to).0 {
                [first, ..] => *first = value,
                [] => simd.$partial_store(to, value),
            }
        }
        #[inline(always)]
        fn fused_vector<S: Simd>(
            simd: S,
            a: Self::Vector<S>,
            b: Self::Vector<S>,
            c: Self::Vector<S>,
        ) -> Self::Vector<S> {
            simd.$fused(a, b, c)
        }
        #[inline(always)]
        fn fused(self, a: Self, b: Self) -> Self {
            self.mul_add(a, b)
        }
        #[inline(always)]
        fn root(self) -> Self {
            self.sqrt()
        }
        #[inline(always)]
        fn magnitude(self) -> Self {
            self.abs()
        }
        #[inline(always)]
        fn sine_cosine(self) -> (Self, Self) {
            self.sin_cos()
        }
    };
}

impl Real for f32 {
    vector_methods!(
        f32s,
        as_simd_f32s,
        as_mut_simd_f32s,
        splat_f32s,
        partial_load_f32s,
        partial_store_f32s,
        mul_add_f32s,
        F32_LANES
    );

    fn step_by_hand(
        made: &ByHand,
        problem: &Problem,
    ) -> Result<Box<dyn FieldStep<Self>>, NotImplemented> {
        (made.single)(problem)
    }
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn narrow(self) -> f32 {
        self
    }

    /// Lambert's fraction for tanh(x/4), whose error is below 1e-9 up to |x| = 9, then the
    /// doubling formula twice on numerator and denominator, so that one division is enough.
    /// tanh(9) is 1 in f32.
    #[inline(always)]
    fn squash(self) -> Self {
        let y = 0.25 * self.within(-9.0, 9.0);
        let s = y * y;
        // Both polynomials are divided by 135135 to keep their fourth powers in range.
        let p = y * s.mul_add(
            s.mul_add(
                s.mul_add(1.0 / 135135.0, 378.0 / 135135.0),
                17325.0 / 135135.0,
            ),
            1.0,
        );
        let q = s.mul_add(
            s.mul_add(
                s.mul_add(28.0 / 135135.0, 3150.0 / 135135.0),
                62370.0 / 135135.0,
            ),
            1.0,
        );
        let (p, q) = (2.0 * p * q, p.mul_add(p, q * q));
        2.0 * p * q / p.mul_add(p, q * q)
    }

    /// 2^n · e^r with |r| ≤ ln2/2: a Taylor polynomial of degree 7 (error 1e-8 there).
    #[inline(always)]
    fn decay(self) -> Self {
        // Adding 1.5 · 2^23 rounds to an integer and leaves it in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let x = self.within(-87.0, 0.0);
        let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        // ln 2 in two parts, the first exact in few bits.
        let r = n.mul_add(-0.693_359_4, x);
        let r = n.mul_add(2.121_944_4e-4, r);
        let e = r.mul_add(1.0 / 5040.0, 1.0 / 720.0);
        let e = r.mul_add(e, 1.0 / 120.0);
        let e = r.mul_add(e, 1.0 / 24.0);
        let e = r.mul_add(e, 1.0 / 6.0);
        let e = r.mul_add(e, 0.5);
        let e = r.mul_add(e, 1.0);
        let e = r.mul_add(e, 1.0);
        let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
        e * scale
    }
}

impl Real for f64 {
    vector_methods!(
        f64s,
        as_simd_f64s,
        as_mut_simd_f64s,
        splat_f64s,
        partial_load_f64s,
        partial_store_f64s,
        mul_add_f64s,
        F64_LANES
    );

    fn step_by_hand(
        made: &ByHand,
        problem: &Problem,
    ) -> Result<Box<dyn FieldStep<Self>>, NotImplemented> {
        (made.double)(problem)
    }
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn squash(self) -> Self {
        self.tanh()
    }
    #[inline(always)]
    fn decay(self) -> Self {
        self.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squash_is_tanh_to_eight_units_in_the_last_place() {
        for k in -40_000..=40_000 {
            let x = k as f32 * 3e-4;
            let exact = f64::from(x).tanh();
            let error = (f64::from(x.squash()) - exact).abs();
            assert!(
                error <= 8.0 * 6e-8 * exact.abs(),
                "tanh({x}): off by {error}"
            );
        }
        assert_eq!(f32::INFINITY.squash(), 1.0);
        assert!(f32::NAN.squash().is_nan());
    }

    #[test]
    fn decay_is_exp_to_three_units_in_the_last_place() {
        for k in 0..=80_000 {
            let x = -(k as f32) * 1e-3;
            let exact = f64::from(x).exp();
            let error = (f64::from(x.decay()) - exact).abs();
            assert!(error <= 3.0 * 6e-8 * exact, "exp({x}): off by {error}");
        }
        assert_eq!(0f32.decay(), 1.0);
    }
}
