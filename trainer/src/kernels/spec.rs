//! What a closed loop in kernels is made of.

use crate::engine::Plan;
use crate::policy::{Shape, Sight};
use problem::Problem;

/// A closed loop: problem, sizes and network.
#[derive(Debug, Clone)]
pub struct LoopSpec {
    /// The control problem.
    pub problem: Problem,
    /// The outermost forms that episodes may have instead, with other coefficients; none where they have
    /// the problem's, which then are constants.
    pub corners: Vec<Problem>,
    /// Most agents in one episode.
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
    /// Of a loop that is to be built.
    pub fn of(plan: Plan) -> Self {
        Self {
            problem: *plan.problem,
            corners: plan.corners.to_vec(),
            agents: plan.agents,
            horizon: plan.horizon,
            batch: plan.batch,
            shape: plan.policy.shape.clone(),
            sight: plan.policy.sight.clone(),
            threads: 0,
        }
    }

    /// Space dimensions.
    pub fn axes(&self) -> usize {
        self.problem.grid.axes
    }

    /// Most changes of the target in an episode.
    pub fn goals(&self) -> usize {
        self.problem.kit.map_or(0, |kit| kit.goals())
    }

    /// Most pushes in an episode from others than agents.
    pub fn pushes(&self) -> usize {
        self.problem.kit.map_or(0, |kit| kit.pushed().count())
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
