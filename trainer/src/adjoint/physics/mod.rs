//! What fields do in one control interval, with an adjoint beside each.
//!
//! Written anew for gradients; the simulator's steppers are the truth that tests hold these to.

#[cfg(test)]
pub(crate) mod agreement;
pub mod density_2d;
pub mod described;
pub mod diffusion;
pub mod fkpp_1d;
pub mod heat_1d;
pub mod heat_2d;
mod hyperdiffusion;
pub mod ks_1d;
pub mod ks_2d;
pub mod mixed;
mod spectral;
pub mod torus;
pub mod turbulence_2d;

use problem::{NotImplemented, Problem};
use std::fmt::Debug;

/// Steps that are made from what a problem says, and refuse by name what they cannot do.
pub trait Differentiable<T>: FieldStep<T> + Sized + 'static {
    /// The step of this form of the problem.
    fn new(problem: &Problem) -> Result<Self, NotImplemented>;
}

/// That this form of a problem has no hand-written adjoint.
pub fn not_implemented(problem: &Problem) -> NotImplemented {
    NotImplemented {
        part: "the trainer's solver",
        form: problem.described(),
        remedy: "train on the problem as it is, or bring a step in tensor operations (docs/new-problem.md)",
    }
}

/// One control interval of a few episodes at once.
///
/// All arrays are row-major with the episode first: fields are `[episodes, grid]`, forcings
/// `[episodes, components, grid]`, where agents that stir the medium have one component per axis.
pub trait FieldStep<T>: Debug + Send + Sync {
    /// Values per episode that [`advance`](Self::advance) leaves for [`adjoint`](Self::adjoint).
    fn tape_len(&self) -> usize {
        0
    }

    /// Values per episode of room that either may overwrite.
    fn scratch_len(&self) -> usize;

    /// Fields at the end of the interval, from those at its start and the forcing held over it.
    fn advance(
        &self,
        batch: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    );

    /// Sets the gradients of `fields` and `forcing` from that of the fields at the interval's end.
    fn adjoint(&self, batch: Batch, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]);
}

/// Which episodes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How many side by side.
    pub episodes: usize,
    /// The control step that the interval begins with.
    pub step: usize,
}

/// The interval that an adjoint goes back through.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a, T> {
    /// Fields at its start.
    pub fields: &'a [T],
    /// The forcing held over it.
    pub forcing: &'a [T],
    /// Fields at its end.
    pub next: &'a [T],
    /// What [`FieldStep::advance`] left.
    pub tape: &'a [T],
}

impl<'a, T> Interval<'a, T> {
    /// Fields after `step` of `substeps` solver steps, where the tape holds those that are neither
    /// the first nor the last: `[substeps − 1, episodes, grid]`.
    pub fn state(&self, step: usize, substeps: usize) -> &'a [T] {
        let all = self.fields.len();
        match step {
            0 => self.fields,
            last if last == substeps => self.next,
            between => &self.tape[(between - 1) * all..between * all],
        }
    }
}

/// Gradients on either side of an interval.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// Of the fields at its end; given.
    pub next: &'a [T],
    /// Of the fields at its start; set.
    pub fields: &'a mut [T],
    /// Of the forcing; set.
    pub forcing: &'a mut [T],
}
