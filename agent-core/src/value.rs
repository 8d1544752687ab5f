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
    /// A dense layer; see [`net::dense`].
    fn dense(packed: &[f32], input: &[Self], output: &mut [Self]);
}

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

    #[inline(always)]
    fn dense(packed: &[f32], input: &[Self], output: &mut [Self]) {
        net::dense_pack(packed, input, output);
    }
}
