//! The settings each problem is trained with.

use crate::learn::{Hardening, Schedule, TrainConfig};
use crate::loss::{self, TERMS, Term};
use crate::policy::{PolicyConfig, Sight};
use agent_sim::problem::{Problem, Records};

/// Everything that makes a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The network.
    pub policy: PolicyConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// Optimiser steps.
    pub steps: u64,
}

/// What a recipe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The policies that ship.
    Full,
    /// A usable policy in about a minute on two cores.
    Quick,
}

/// The recipe of the shipped policy.
pub fn of(problem: &Problem) -> Recipe {
    preset(problem, Preset::Full)
}

/// The recipe of a problem for a purpose.
pub fn preset(problem: &Problem, _preset: Preset) -> Recipe {
    let sight = Sight {
        window: problem.sensing.window,
        error_gain: 1.0,
        slope_gain: 10.0,
        wide: None,
        wide_gain: 0.0,
    };
    Recipe {
        policy: PolicyConfig::new(problem, sight),
        train: published(problem),
        steps: 500,
    }
}

/// The published settings, except that every step draws fresh episodes.
fn published(problem: &Problem) -> TrainConfig {
    TrainConfig {
        seed: 0,
        batch: if problem.grid.axes == 1 { 32 } else { 16 },
        horizon: scored_steps(problem),
        schedule: Schedule::Decay {
            rate: 1e-3,
            half_life: 2000.0,
        },
        clip: 1.0,
        weights: loss::weights(&problem.loss),
        hardening: Hardening::none(problem),
        validate_every: 100,
        validation_episodes: 64,
        patience: 0,
        retreats: 3,
    }
}

/// Actions until the last state that is scored.
fn scored_steps(problem: &Problem) -> usize {
    match problem.scoring.records {
        Records::AfterAction => problem.horizon,
        Records::BeforeAction => problem.horizon - 1,
    }
}

/// Puts another weight on a term.
pub fn set_weight(weights: &mut [f64; TERMS], term: Term, weight: f64) {
    weights[term as usize] = weight;
}
