//! Viscous Burgers' equation on a ring, as a problem of one's own:
//!
//! ```text
//! u_t + u u_x = ν u_xx + Σ_i a_i exp(−d(x, ξ_i)² / 2σ²),   u periodic, d the shorter way round
//! ```
//!
//! Waves steepen into fronts that viscosity holds together; a ring of fixed actuators is to turn one
//! random wave into another and keep it there.
//!
//! - [`equation`]: the problem, and the solver that is its truth;
//! - [`adjoint`]: the same step for training, with its adjoint written by hand;
//! - [`tensors`]: once more, in tensor operations, whose adjoint is Burn's.
//!
//! One of the last two is enough: the first is fast, the second is short.
#![forbid(unsafe_code)]

pub mod adjoint;
pub mod equation;
pub mod tensors;

use adjoint::Burgers;
use trainer::entry::{Entry, Physics};
use trainer::recipe::{Quick, Settings};

/// All that programs need to know.
pub static ENTRY: Entry = Entry {
    problem: &equation::PROBLEM,
    physics: Physics::by_hand::<Burgers<f32>, Burgers<f64>>().and_in_tensors(tensors::step),
    recipe: RECIPE,
    kernels: None,
};

/// The same without the adjoint that was written by hand: for comparison, and for those who do not
/// want to write one.
pub static EASY: Entry = Entry {
    problem: &equation::EASY,
    physics: Physics::in_tensors(tensors::step),
    recipe: RECIPE,
    kernels: None,
};

/// How it is trained: what is not said is as for the published problems.
const RECIPE: Settings = Settings {
    window: 12,
    steps: 400,
    quick: Quick {
        steps: 120,
        batch: 16,
    },
    ..Settings::COMMON
};

/// What both command lines are given.
pub static ENTRIES: &[&Entry] = &[&ENTRY, &EASY];
