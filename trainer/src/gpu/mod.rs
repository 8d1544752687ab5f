//! The closed loop on a GPU: forward and adjoint as a handful of hand-written compute kernels.
//!
//! A training step sends the parameters and the episodes up once and gets the terms and the
//! gradient back once. In between one workgroup per episode runs all time steps of the closed loop,
//! first forward, then backward, with the field and the network's activations in memory that the
//! workgroup shares ([`wgsl/loop.wgsl`](./wgsl/loop.wgsl) is the place to start reading). The backward
//! pass leaves the gradients before every activation in memory; with the activations themselves they
//! make the parameters' gradient, one large matrix product at the end that all of the GPU works on.
//!
//! - [`device`]: finding a GPU;
//! - [`spec`]: what a loop is made of;
//! - [`tables`]: matrices of the physics, computed on the host in double precision;
//! - [`shader`]: the kernels' source for one loop: sizes become constants;
//! - [`closed_loop`]: buffers, pipelines and the two calls, [`GpuLoop::terms`] and
//!   [`GpuLoop::gradient`];
//! - [`loops`]: all closed loops of a training.
//!
//! Sums are taken in a fixed order: the same inputs give the same bits on the same GPU.

pub mod closed_loop;
pub mod device;
pub mod loops;
pub mod shader;
pub mod spec;
pub mod tables;
#[cfg(test)]
mod tests;

pub use closed_loop::GpuLoop;
pub use device::{Gpu, GpuError};
pub use loops::GpuLoops;
pub use spec::LoopSpec;
