//! The closed loop on a GPU: forward and adjoint as a handful of hand-written compute kernels.
//!
//! A training step sends the parameters and the episodes up once and gets the terms and the
//! gradient back once. In between every episode runs through all time steps of the closed loop, first
//! forward, then backward ([`crate::kernels`] has the source): in one workgroup, with the field and the
//! network's activations in memory that it shares, or, where a field is too large for one, in several, which
//! share the agents in one dispatch of a step and the field in the next. The terms are taken from what all
//! steps left behind. The backward
//! pass leaves the gradients before every activation in memory; with the activations themselves they
//! make the parameters' gradient, one large matrix product at the end that all of the GPU works on.
//!
//! - [`device`]: finding a GPU;
//! - [`closed_loop`]: buffers, pipelines and the two calls of a [`Rollout`](crate::rollout::Rollout).
//!
//! The kernels' source is made by [`crate::kernels`].
//!
//! Sums are taken in a fixed order: the same inputs give the same bits on the same GPU.

pub mod closed_loop;
pub mod device;
#[cfg(test)]
mod tests;

pub use closed_loop::GpuLoop;
pub use device::{Gpu, GpuError};
