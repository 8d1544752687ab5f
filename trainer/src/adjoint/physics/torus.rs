//! The driver of every equation on a torus: fields to modes, solver steps, modes to fields, and the same
//! backwards. An equation says what its modes do in one solver step ([`Evolution`]).

use super::super::real::Real;
use super::spectral::{Circle, Of, Transform, fold, parts, unfold};
use super::{Batch, FieldStep, Gradients, Interval};
use std::fmt::Debug;

/// What modes do in one solver step, and its adjoint.
pub trait Evolution<T>: Debug + Send + Sync {
    /// Values that a step leaves for its adjoint.
    fn kept_len(&self) -> usize;

    /// Values of room that either may overwrite.
    fn room_len(&self) -> usize;

    /// Advances `modes` under the modes of the force.
    fn step(&self, modes: &mut [T], push: &[T], kept: &mut [T], room: &mut [T]);

    /// Turns the gradient of the modes at the step's end into that at its start, and adds to that of
    /// the force's.
    fn step_adjoint(&self, g: &mut [T], g_push: &mut [T], kept: &[T], room: &mut [T]);
}

/// An equation on a torus.
#[derive(Debug, Clone)]
pub struct OnTorus<T, E> {
    columns: usize,
    substeps: usize,
    /// Between modes and fields.
    whole: Transform<T>,
    evolution: E,
}

impl<T: Real, E: Evolution<T>> OnTorus<T, E> {
    /// `substeps` steps of `evolution` per control interval.
    pub(super) fn driven(torus: [Circle; 2], substeps: usize, evolution: E) -> Self {
        Self {
            columns: torus[1].points,
            substeps,
            whole: Transform::new(torus, [Of::Values; 2]),
            evolution,
        }
    }

    /// Modes of a field.
    fn analyse(&self, field: &[T], modes: &mut [T], room: &mut [T]) {
        let (tiles, halfway) = room.split_at_mut(field.len());
        fold(field, self.columns, tiles);
        modes.fill(T::ZERO);
        self.whole.to_modes(tiles, halfway, modes);
    }

    /// The field of modes: both the inverse of [`Self::analyse`] and its adjoint.
    fn synthesise(&self, modes: &[T], field: &mut [T], room: &mut [T]) {
        let (tiles, halfway) = room.split_at_mut(field.len());
        self.whole.to_grid(modes, halfway, tiles);
        unfold(tiles, self.columns, field);
    }

    fn advance_one(
        &self,
        [field, force]: [&[T]; 2],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let ([modes, push], room) = parts(scratch, self.whole.modes_len());
        self.analyse(field, modes, room);
        self.analyse(force, push, room);
        for kept in tape.chunks_exact_mut(self.evolution.kept_len()) {
            self.evolution.step(modes, push, kept, room);
        }
        self.synthesise(modes, next, room);
    }

    fn adjoint_one(
        &self,
        tape: &[T],
        g_next: &[T],
        [g_field, g_force]: [&mut [T]; 2],
        scratch: &mut [T],
    ) {
        let ([g, g_push], room) = parts(scratch, self.whole.modes_len());
        self.analyse(g_next, g, room);
        g_push.fill(T::ZERO);
        for kept in tape.chunks_exact(self.evolution.kept_len()).rev() {
            self.evolution.step_adjoint(g, g_push, kept, room);
        }
        self.synthesise(g, g_field, room);
        self.synthesise(g_push, g_force, room);
    }
}

impl<T: Real, E: Evolution<T>> FieldStep<T> for OnTorus<T, E> {
    fn tape_len(&self) -> usize {
        self.substeps * self.evolution.kept_len()
    }

    fn scratch_len(&self) -> usize {
        let transforms = self.whole.grid_len() + self.whole.halfway_len();
        2 * self.whole.modes_len() + self.evolution.room_len().max(transforms)
    }

    /// One episode after the other: their fields stay in the cache, and the products are tall enough.
    fn advance(
        &self,
        _: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let n = self.whole.grid_len();
        let inputs = fields.chunks_exact(n).zip(forcing.chunks_exact(n));
        let outputs = next
            .chunks_exact_mut(n)
            .zip(tape.chunks_exact_mut(self.tape_len()));
        for ((field, force), (next, tape)) in inputs.zip(outputs) {
            self.advance_one([field, force], next, tape, scratch);
        }
    }

    fn adjoint(&self, _: Batch, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]) {
        let n = self.whole.grid_len();
        let inputs = (at.tape.chunks_exact(self.tape_len())).zip(g.next.chunks_exact(n));
        let outputs = g
            .fields
            .chunks_exact_mut(n)
            .zip(g.forcing.chunks_exact_mut(n));
        for ((tape, g_next), (g_field, g_force)) in inputs.zip(outputs) {
            self.adjoint_one(tape, g_next, [g_field, g_force], scratch);
        }
    }
}
