#![doc = include_str!("../README.md")]
//!
//! # Reading order
//!
//! 1. [`Problem`]: everything about one that is a fact, on a [`grid`]: what the field does, what
//!    agents can do to it ([`actuate`]) and see of it, where they start ([`placement`]), how episodes
//!    are drawn ([`random_field`]) and scored ([`metrics`]). [`coefficient`]s of its equation can be
//!    changed, and it can have other forms.
//! 2. [`pde`]: the solvers that are the truth. [`resolution`]: whether their grid is fine enough.
//! 3. [`test_set`]: which episodes, from the published table, a file ([`npy`]) or a seed, on any grid
//!    ([`resample`]).
//! 4. [`kit`]: problems that a TOML file describes. [`input`]: files that can be read at all, and
//!    [`limit`]: how large things may be, for all programs.
//! 5. [`mod@published`]: the eight problems of the paper, a file each. [`Problems`]: those that a program
//!    knows, the published ones or a user's own.
//!
//! Simulator and trainer, kernels and studies read these values and have none of their own. What one
//! of them cannot do is refused by name ([`NotImplemented`]), never replaced.

#![forbid(unsafe_code)]

pub mod actuate;
pub mod coefficient;
pub mod grid;
pub mod input;
pub mod kit;
pub mod limit;
pub mod metrics;
pub mod npy;
pub mod pde;
pub mod placement;
pub mod published;
pub mod random_field;
mod registry;
pub mod resample;
pub mod resolution;
mod spec;
pub mod test_set;

pub use coefficient::Coefficient;
pub use registry::{Listed, NoProblem, Problems, SameName};
pub use spec::*;
