//! What a closed loop on a GPU is made of, as plain numbers.

use crate::loss::TERMS;
use agent_sim::problem::{Drives, Problem};

/// A closed loop: problem, sizes, network and the weights of its terms.
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
    /// Outputs of the branch's two layers.
    pub branch: [usize; 2],
    /// Outputs of the trunk's two layers.
    pub trunk: [usize; 2],
    /// Outputs of the fusion layer.
    pub fuse: usize,
    /// The trunk reads sin(πfs) and cos(πfs) for these f, s being the position in units of the
    /// agents' reach.
    pub frequencies: Vec<f64>,
    /// Constant factors of what agents see: the error, its slope (on a line) and its overview (where
    /// agents get one).
    pub gains: [f64; 3],
    /// Weights of the terms in what [`gradient`](super::GpuLoop::gradient) differentiates.
    pub weights: [f64; TERMS],
    /// Threads of a workgroup; 0 leaves it to the loop.
    pub threads: usize,
}

/// Cells along each side of a block of the overview.
pub const OVERVIEW_BLOCK: usize = 8;

impl LoopSpec {
    /// Space dimensions.
    pub fn axes(&self) -> usize {
        self.problem.grid.axes
    }

    /// Whether agents see the error averaged over blocks of the whole field besides their window.
    pub fn has_overview(&self) -> bool {
        self.problem.actuation.drives == Drives::Flow
    }

    /// Values that one agent sees.
    pub fn features(&self) -> usize {
        let window = self.problem.sensing.window;
        let overview = match self.has_overview() {
            true => self.problem.grid.len() / (OVERVIEW_BLOCK * OVERVIEW_BLOCK),
            false => 0,
        };
        match self.axes() {
            1 => 2 * window,
            _ => window * window + overview,
        }
    }

    /// Position features.
    pub fn fourier(&self) -> usize {
        2 * self.axes() * self.frequencies.len()
    }

    /// Force outputs: one, or none for agents without force.
    pub fn forces(&self) -> usize {
        usize::from(self.problem.actuation.force_max > 0.0)
    }

    /// Velocity outputs: one per axis, or none for agents that stay where they are.
    pub fn directions(&self) -> usize {
        match self.problem.actuation.velocity_max > 0.0 {
            true => self.axes(),
            false => 0,
        }
    }

    /// Outputs of the network.
    pub fn actions(&self) -> usize {
        self.forces() + self.directions()
    }

    /// [inputs, outputs] of the dense layers: branch 1 and 2, trunk 1 and 2, fusion, head.
    pub fn layers(&self) -> [[usize; 2]; 6] {
        let ([b1, b2], [t1, t2]) = (self.branch, self.trunk);
        [
            [self.features(), b1],
            [b1, b2],
            [self.fourier(), t1],
            [t1, t2],
            [b2 + t2, self.fuse],
            [self.fuse, self.actions()],
        ]
    }

    /// Weights and biases.
    pub fn parameters(&self) -> usize {
        self.layers().iter().map(|[i, o]| i * o + o).sum()
    }
}

/// One episode, as the loop needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeInput {
    /// The field at time 0.
    pub initial: Vec<f32>,
    /// The field to reach.
    pub target: Vec<f32>,
    /// Where each agent starts.
    pub start: Vec<[f32; 2]>,
    /// The step from which on each agent does nothing; the horizon or more for those that live.
    pub dies_at: Vec<u32>,
}
