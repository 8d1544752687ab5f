//! Whole episodes forwards and backwards, wherever that is computed.

use crate::loss::TERMS;
use crate::ranks::RankError;
use crate::trial::Trial;
use problem::{NotImplemented, Problem};

/// The terms of an episode, unweighted.
pub type Terms = [f64; TERMS];

/// A closed loop (problem, horizon, network) that episodes can be run in, each with its own agents.
pub trait Rollout: Send + Sync {
    /// The control problem.
    fn problem(&self) -> &Problem;

    /// Steps per episode.
    fn horizon(&self) -> usize;

    /// Runs the episodes; returns their terms.
    fn terms(&mut self, parameters: &[f32], trials: &[Trial]) -> Result<Vec<Terms>, RolloutError>;

    /// Runs the episodes forward and backward; returns their terms and the gradient, by the
    /// parameters, of the weighted terms' sum in the mean over episodes.
    fn gradient(
        &mut self,
        parameters: &[f32],
        trials: &[Trial],
        weights: &Terms,
    ) -> Result<(Vec<Terms>, Vec<f32>), RolloutError>;
}

/// Why there is no rollout, or why it stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RolloutError {
    /// A form of the problem that this place has no implementation of.
    #[error(transparent)]
    NotImplemented(#[from] NotImplemented),
    /// Another process that shares the episodes.
    #[error(transparent)]
    Ranks(#[from] RankError),
    /// The GPU.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] crate::gpu::GpuError),
}
