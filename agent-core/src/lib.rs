#![doc = include_str!("../README.md")]
//!
//! # The crate in the order data takes through it
//!
//! 1. [`message`]: what crosses a link. An observation comes in as a frame of bytes, an action goes
//!    out as one. Nothing in it tells how many agents there are.
//! 2. [`policy`]: the blob. [`Policy::parse`](policy::Policy::parse) checks every size, limit and
//!    weight once, and that no sum of the network can leave the finite numbers; what it returns can
//!    be run without failing. Weights are never copied.
//! 3. [`observe`]: a patch of field and target, and for some policies a coarse picture of the whole
//!    domain, become the features the network was trained on.
//! 4. [`net`]: dense layers, soft normalisation, Fourier features, tanh; beside it convolutions, of
//!    which a few rows exist at a time, and layers with 8-bit weights. All sums run in an order
//!    written in the code and all functions are our own, so the same bits come out of an x86-64 and
//!    of a Cortex-M4F.
//! 5. [`agent`]: the control step and the state machine around it: waiting, active, holding,
//!    failed safe. A governor eases off what overshoots, and the last stage keeps every action within the blob's limits and rates, and the
//!    agent in its domain and out of the places it must not enter. An agent starts with the
//!    self-test that its policy carries.
//!
//! [`together`] is for hosts that step many agents: several at a time ([`value`]), to the same bits.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod agent;
mod conv;
mod governor;
mod int8;
mod keep_out;
pub mod message;
pub mod net;
pub mod observe;
pub mod policy;
mod stuffing;
pub mod together;
pub mod value;
