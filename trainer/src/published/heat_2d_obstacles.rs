//! Training on the plate with places that agents must not enter.

use super::heat_2d;
use crate::entry::Entry;
use crate::kernels::{Kernels, plate};
use problem::published::heat_2d_obstacles::PROBLEM;

/// The plate's physics and recipe; only what agents may do differs.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: heat_2d::PHYSICS,
    recipe: heat_2d::RECIPE,
    kernels: Some(Kernels(plate::heat)),
};
