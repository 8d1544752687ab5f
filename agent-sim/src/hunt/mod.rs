//! The worst of a space of scenarios: found, made as small as it can be, and told.
//!
//! 1. [`search`] looks for the smallest margin: by an even covering of the space, by CMA-ES, and by
//!    small changes of the worst that are known, in turns.
//! 2. [`shrink`] takes away from a scenario that fails all that it does not need to fail.
//! 3. [`story`] tells what then happens.

mod search;
mod shrink;
mod story;

pub use search::{Method, Trail, search};
pub use shrink::{Smaller, shrink};
pub use story::story;
