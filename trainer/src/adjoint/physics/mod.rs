//! What fields do in one control interval, with an adjoint beside each.
//!
//! Written anew for gradients; the simulator's steppers are the truth that tests hold these to.

#[cfg(test)]
pub(crate) mod agreement;
pub mod density_2d;
pub mod diffusion;
pub mod fkpp_1d;
pub mod heat_1d;
pub mod heat_2d;
pub mod ks_1d;
pub mod ks_2d;
mod spectral;
pub mod turbulence_2d;

use super::real::Real;
use problem::Problem;
use std::fmt::Debug;

/// The physics of a problem, in the form that its variant says.
pub fn of<T: Real>(problem: &Problem) -> Box<dyn Physics<T>> {
    match problem.name {
        "heat-1d" => Box::new(heat_1d::Heat1d::new(problem)),
        "fkpp-1d" => Box::new(fkpp_1d::Fkpp1d::new(problem)),
        "heat-2d" | "heat-2d-obstacles" => Box::new(heat_2d::Heat2d::new(problem)),
        "density-2d" => Box::new(density_2d::Density2d::new(problem)),
        "ks-1d" => Box::new(ks_1d::Ks1d::new(problem)),
        "ks-2d" => Box::new(ks_2d::Ks2d::new(problem)),
        "turbulence-2d" => Box::new(turbulence_2d::Turbulence2d::new(problem)),
        other => unreachable!("no physics for {other}"),
    }
}

/// One control interval of a few episodes at once.
///
/// All arrays are row-major with the episode first: fields are `[episodes, grid]`, forcings
/// `[episodes, components, grid]`, where agents that stir the medium have one component per axis.
pub trait Physics<T>: Debug + Send + Sync {
    /// Values per episode that [`advance`](Self::advance) leaves for [`adjoint`](Self::adjoint).
    fn tape_len(&self) -> usize {
        0
    }

    /// Values per episode of room that either may overwrite.
    fn scratch_len(&self) -> usize;

    /// Fields at the end of the interval, from those at its start and the forcing held over it.
    fn advance(
        &self,
        episodes: usize,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    );

    /// Sets the gradients of `fields` and `forcing` from that of the fields at the interval's end.
    fn adjoint(&self, episodes: usize, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]);
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
    /// What [`Physics::advance`] left.
    pub tape: &'a [T],
}

impl<'a, T> Interval<'a, T> {
    /// Fields after `step` of `substeps` solver steps, where the tape holds those that are neither
    /// the first nor the last: `[substeps − 1, episodes, grid]`.
    fn state(&self, step: usize, substeps: usize) -> &'a [T] {
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
