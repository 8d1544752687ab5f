//! The simulator.
#![forbid(unsafe_code)]

pub mod problem;
pub mod random_field;
