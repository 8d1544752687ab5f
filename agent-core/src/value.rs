//! What the network computes with: one agent's number, or those of several agents side by side.

use crate::net;
use core::ops::{Add, Div, Mul, Sub};

/// A number, or one for each of several agents that compute in lockstep: what happens to one lane
/// does not depend on the others, and is what happens to a number alone, bit for bit.
pub trait Value:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The same number for all.
    fn splat(x: f32) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Function of each number.
    fn map(self, f: impl Fn(f32) -> f32) -> Self;
    /// Functions of each number, two at once.
    fn map_pair(self, f: impl Fn(f32) -> (f32, f32)) -> (Self, Self);
    /// Finite numbers cut to ±8, and to multiples of 2⁻²⁸ towards zero.
    fn cut(self) -> Self;
    /// A dense layer; see [`net::dense`].
    fn dense(packed: &[f32], input: &[Self], output: &mut [Self]);
}

/// 2²⁸: eight times this is the largest integer.
const ONE: f32 = 268_435_456.0;

impl Value for f32 {
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn splat(x: f32) -> Self {
        x
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn sqrt(self) -> Self {
        agent_kernels::sqrt(self)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        f(self)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn map_pair(self, f: impl Fn(f32) -> (f32, f32)) -> (Self, Self) {
        f(self)
    }

    /// The way to an integer and back cuts: one instruction each way on a Cortex-M4F, whose
    /// comparisons of floats take four.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn cut(self) -> Self {
        (self * ONE) as i32 as f32 * (1.0 / ONE)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn dense(packed: &[f32], input: &[Self], output: &mut [Self]) {
        net::dense(packed, input, output);
    }
}

/// Agents that a [`Pack`] holds.
pub const PACK: usize = 16;

/// One number for each of [`PACK`] agents: what a host computes with that steps many.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub struct Pack(pub [f32; PACK]);

impl Pack {
    /// One agent's number.
    #[inline(always)]
    pub(crate) fn get(&self, lane: usize) -> f32 {
        self.0.get(lane).copied().unwrap_or(0.0)
    }

    /// Changes one agent's number.
    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, x: f32) {
        if let Some(to) = self.0.get_mut(lane) {
            *to = x;
        }
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self;
        for (a, b) in result.0.iter_mut().zip(other.0) {
            *a = f(*a, b);
        }
        result
    }
}

impl Add for Pack {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Pack {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

impl Mul for Pack {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
}

impl Div for Pack {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
}

impl Value for Pack {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; PACK])
    }

    /// Never inlined, for the same reason as [`agent_kernels::sqrt`].
    #[inline(never)]
    fn sqrt(self) -> Self {
        self.map(agent_kernels::sqrt)
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        let mut result = self;
        for x in &mut result.0 {
            *x = f(*x);
        }
        result
    }

    #[inline(always)]
    fn map_pair(self, f: impl Fn(f32) -> (f32, f32)) -> (Self, Self) {
        let (mut a, mut b) = (self, self);
        for (a, b) in a.0.iter_mut().zip(&mut b.0) {
            (*a, *b) = f(*a);
        }
        (a, b)
    }

    /// The same numbers as one by one, by comparisons, which x86-64 does for a whole vector: between
    /// 2²³ and its negative a sum with 2²³ rounds to the nearest integer, and beyond all floats are
    /// integers.
    #[inline(always)]
    fn cut(self) -> Self {
        const WHOLE: f32 = 8_388_608.0;
        self.map(|x| {
            let z = x * ONE;
            let size = if z < 0.0 { -z } else { z };
            let near = (size + WHOLE) - WHOLE;
            let below = if near > size { near - 1.0 } else { near };
            let whole = if size < WHOLE { below } else { size };
            let whole = if whole > 8.0 * ONE { 8.0 * ONE } else { whole };
            let signed = if z < 0.0 { 0.0 - whole } else { whole };
            signed * (1.0 / ONE)
        })
    }

    #[inline(always)]
    fn dense(packed: &[f32], input: &[Self], output: &mut [Self]) {
        net::dense_pack(packed, input, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_cut_as_its_numbers_are() {
        let bits = (0..=u32::MAX).step_by(if cfg!(miri) { 40_000_003 } else { 2_003 });
        let mut checked = 0;
        for x in bits.map(f32::from_bits).filter(|x| x.is_finite()) {
            let cut = x.cut();
            assert_eq!(Pack::splat(x).cut().get(3).to_bits(), cut.to_bits(), "{x}");
            checked += 1;
        }
        assert!(checked > 50);
        assert_eq!(
            [9.0, -9.0, 1e-9, -1e-9].map(f32::cut),
            [8.0, -8.0, 0.0, 0.0]
        );
    }
}
