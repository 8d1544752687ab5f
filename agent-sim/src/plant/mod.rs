//! The field, wherever it is computed: by the problem's own solver, or by anything else that can say
//! what a field becomes under a forcing.
//!
//! The closed loop hands a [`Plant`] what acts on the field and takes what becomes of it. Agents,
//! faults, boards and scores know nothing of where that was computed.
//!
//! A plant can be a type of one's own in Rust, [`Shared`] by the runs of a program; [`BuiltIn`]; or
//! another program behind a pipe or a socket, which [`open()`] finds by its [`Address`] and which speaks
//! the protocol of docs/plants.md (`message`), over a `line` on which
//! every wait has a deadline, to a `child` that ends when we do.

mod address;
#[cfg(not(target_family = "wasm"))]
mod child;
mod error;
#[cfg(not(target_family = "wasm"))]
mod line;
#[cfg(not(target_family = "wasm"))]
mod message;
#[cfg(not(target_family = "wasm"))]
mod remote;
mod shared;

pub use address::{Address, BadAddress};
pub use error::{LastWords, PlantError};
#[cfg(not(target_family = "wasm"))]
pub use remote::{PATIENCE, open};
pub use shared::Shared;

use problem::Problem;
use problem::pde::Stepper;

/// A field that can be put to a start and pushed on from there.
///
/// States hold all fields of a problem on its grid, one after the other, row-major. A state may be
/// anything that a sensor can show; the closed loop ends a run whose field is more than that.
pub trait Plant: Send {
    /// Begins an episode. `state` is the field that it is to begin with; what is left there is what
    /// the plant did begin with.
    fn reset(&mut self, start: &Start<'_>, state: &mut [f64]) -> Result<(), PlantError>;

    /// Replaces `state` by what the field is `dt` later, under a `forcing` that is held constant until
    /// then: values on the grid for each field, or the components of the wind that carries it.
    ///
    /// Called after [`reset`](Self::reset), with what the plant itself left in `state` last.
    fn step(&mut self, forcing: &[f64], dt: f64, state: &mut [f64]) -> Result<(), PlantError>;
}

/// What a plant is told of an episode, beside the field.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The equation, its grid and its coefficients.
    pub problem: &'a Problem,
    /// Steps in a control interval: several where agents have clocks of their own.
    pub parts: usize,
    /// Decides what the plant leaves to chance.
    pub seed: u64,
}

/// What a plant must know of a problem, for one that is reached in another way than by [`open()`]: the
/// header of a hello, as JSON, and the array that follows it.
#[cfg(not(target_family = "wasm"))]
pub fn described(problem: &Problem) -> (String, Vec<f64>) {
    (message::facts(problem), message::volumes(problem))
}

/// The problem's own solver.
#[derive(Default)]
pub struct BuiltIn {
    /// None before the first episode.
    stepper: Option<Box<dyn Stepper<f64>>>,
}

impl Plant for BuiltIn {
    fn reset(&mut self, start: &Start<'_>, _: &mut [f64]) -> Result<(), PlantError> {
        self.stepper = Some((start.problem.stepper)(start.problem, start.parts));
        Ok(())
    }

    /// # Panics
    /// Before the first [`reset`](Plant::reset).
    fn step(&mut self, forcing: &[f64], _: f64, state: &mut [f64]) -> Result<(), PlantError> {
        let stepper = self.stepper.as_mut().expect("reset before the first step");
        stepper.step(state, forcing);
        Ok(())
    }
}
