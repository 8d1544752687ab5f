//! What a closed loop on a GPU is made of.

use crate::policy::{Shape, Sight};
use problem::Problem;

/// A closed loop: problem, sizes and network.
#[derive(Debug, Clone)]
pub struct LoopSpec {
    /// The control problem.
    pub problem: Problem,
    /// Agents per episode.
    pub agents: usize,
    /// Steps per episode.
    pub horizon: usize,
    /// Most episodes in one call.
    pub batch: usize,
    /// The network.
    pub shape: Shape,
    /// What it reads.
    pub sight: Sight,
    /// Threads of a workgroup; 0 leaves it to the loop.
    pub threads: usize,
}

impl LoopSpec {
    /// Space dimensions.
    pub fn axes(&self) -> usize {
        self.problem.grid.axes
    }

    /// Force outputs: one, or none for agents without force.
    pub fn forces(&self) -> usize {
        usize::from(self.problem.actuation.force_max > 0.0)
    }

    /// Velocity outputs: one per axis, or none for agents that stay where they are.
    pub fn directions(&self) -> usize {
        self.shape.actions - self.forces()
    }
}
