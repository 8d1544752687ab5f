//! The closed loop in plain Rust, each piece a function with its adjoint beside it.
//!
//! One time step is: [`observe`] the error field around every agent, or what it sees by itself
//! ([`standing`]), evaluate the shared
//! [`network`], limit and carry out what it says ([`motion`], [`actuate`]), let the field go on
//! ([`physics`]), score it ([`crate::loss`]). [`crate::rollout`] composes them forwards and
//! backwards.
//!
//! Everything is generic over [`real::Real`]: f32 to train, f64 to compare with finite
//! differences.

pub mod actuate;
pub mod elementwise;
pub mod matrix;
pub mod motion;
pub mod network;
pub mod observe;
pub mod physics;
pub mod real;
pub mod standing;

#[cfg(test)]
pub(crate) mod check;
