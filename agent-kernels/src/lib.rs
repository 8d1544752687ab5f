#![doc = include_str!("../README.md")]
//!
//! # Two forms
//!
//! Each function is defined by its portable form, in [`portable`], which is what every target runs
//! but one: for a Cortex-M4F the same sums are written out in its instructions, because no compiler
//! was found to load several weights with one instruction there, nor to use the instructions that
//! multiply two pairs of 16-bit numbers at once. The bits are the same: additions and multiplications
//! of floats in the same order, never fused, and integers, whose order does not matter.

#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(cortex_m4f)]
mod cortex_m4f;
pub mod portable;

#[cfg(cortex_m4f)]
pub use cortex_m4f::{dense, dense_int8, sqrt};
#[cfg(not(cortex_m4f))]
pub use portable::{dense, dense_int8, sqrt};

/// Outputs of a dense layer computed side by side, and the block size of packed weights: x86-64
/// keeps them in vector registers, a Cortex-M4F in 8 of its 32 scalar ones.
pub const LANES: usize = 8;

/// Outputs and inputs in one block of packed int8 weights.
pub const QUAD: usize = 4;

/// Int8 weights of [`QUAD`] outputs for [`QUAD`] inputs.
///
/// Word `2 j + k` is for inputs `2 j` (low half) and `2 j + 1` (high half) and outputs `2 k` and
/// `2 k + 1`: each half is `256 · w[2 k] + w[2 k + 1]` as a 16-bit number. A core that multiplies
/// pairs of halves gets both outputs' sums with two instructions and one to unpack: the sum over
/// whole halves, and that over their low bytes, which taken from the first leaves 256 times the
/// other output's.
pub type Tile = [u32; QUAD];

/// Largest magnitude that a sum of [`dense_int8`] can have: what is left of 32 bits for the output
/// that comes out 256 times as large.
pub const SUM_LIMIT: u32 = (1 << 23) - 1;
