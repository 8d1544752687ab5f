//! One closed-loop run: the field, the swarm, and the clock that drives both.

use crate::link::Link;
use crate::metrics::{Score, mean_squared_error};
use crate::pde::Stepper;
use crate::problem::{Episode, Problem};
use crate::swarm::{Cost, Deed, Swarm};

/// A field and a swarm in lock-step: observe, act, let the field evolve, move.
pub struct ClosedLoop<L> {
    problem: &'static Problem,
    stepper: Box<dyn Stepper<f64>>,
    field: Vec<f64>,
    /// The field in the precision that agents work in.
    seen: Vec<f32>,
    target: Vec<f32>,
    force: Vec<f64>,
    swarm: Swarm<L>,
    step: usize,
    error_sum: f64,
    cost: Cost,
}

/// The field left the range of numbers.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the field of {problem} blew up at step {step}, at x = {x:.3}: its value there is {value}")]
pub struct BlownUp {
    /// Name of the problem.
    pub problem: &'static str,
    /// The step after which it was seen.
    pub step: usize,
    /// Where.
    pub x: f64,
    /// NaN or an infinity.
    pub value: f64,
}

/// The state of a run between two steps.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Steps taken so far.
    pub step: usize,
    /// The field.
    pub field: &'a [f64],
    /// Its mean squared error to the target.
    pub error: f64,
    /// Where the agents are.
    pub positions: &'a [[f64; 2]],
    /// What they did in the last step; all at rest before the first.
    pub deeds: &'a [Deed],
}

impl<L: Link> ClosedLoop<L> {
    /// `swarm` at the start of `episode`.
    ///
    /// # Panics
    /// If the episode's fields do not have the problem's grid.
    pub fn new(problem: &'static Problem, episode: &Episode, swarm: Swarm<L>) -> Self {
        assert_eq!(episode.initial.len(), problem.grid);
        assert_eq!(episode.target.len(), problem.grid);
        Self {
            problem,
            stepper: (problem.stepper)(problem),
            field: episode.initial.iter().map(|&z| f64::from(z)).collect(),
            seen: episode.initial.clone(),
            target: episode.target.clone(),
            force: vec![0.0; problem.grid],
            swarm,
            step: 0,
            error_sum: 0.0,
            cost: Cost::default(),
        }
    }

    /// One control interval.
    pub fn advance(&mut self) -> Result<(), BlownUp> {
        for (narrow, wide) in self.seen.iter_mut().zip(&self.field) {
            *narrow = *wide as f32;
        }
        let now_us = time_us(self.problem, self.step);
        self.swarm
            .act(&self.seen, &self.target, now_us, &mut self.force);
        self.stepper.step(&mut self.field, &self.force);
        let cost = self.swarm.travel();
        self.cost.squared_force += cost.squared_force;
        self.cost.path += cost.path;
        self.step += 1;
        if let Some(j) = self.field.iter().position(|z| !z.is_finite()) {
            return Err(BlownUp {
                problem: self.problem.name,
                step: self.step,
                x: self.problem.coordinate(j),
                value: self.field[j],
            });
        }
        self.error_sum += self.error();
        Ok(())
    }

    /// Mean squared error of the field to its target, now.
    pub fn error(&self) -> f64 {
        mean_squared_error(&self.field, &self.target)
    }

    /// The run so far, judged.
    pub fn score(&self) -> Score {
        let agents = self.swarm.len().max(1) as f64;
        let steps = self.step.max(1) as f64;
        Score {
            final_error: self.error(),
            time_mean_error: self.error_sum / steps,
            effort: self.cost.squared_force / (agents * steps),
            travel: self.cost.path / agents,
        }
    }

    /// The state, to be looked at.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            step: self.step,
            field: &self.field,
            error: self.error(),
            positions: self.swarm.positions(),
            deeds: self.swarm.deeds(),
        }
    }

    /// The agents.
    pub fn swarm(&self) -> &Swarm<L> {
        &self.swarm
    }
}

/// The time of `step` in microseconds, one time unit of the equation being one second.
pub fn time_us(problem: &Problem, step: usize) -> u64 {
    (step as f64 * problem.control_interval * 1e6).round() as u64
}

/// What a run looked like, kept for pictures.
#[derive(Debug, Clone, Default)]
pub struct Trajectory {
    /// The field after 0, 1, … steps.
    pub fields: Vec<Vec<f32>>,
    /// Its mean squared error at the same times.
    pub errors: Vec<f64>,
    /// Paths of some of the agents.
    pub paths: Vec<Path>,
}

/// Where one agent went.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The agent.
    pub agent: usize,
    /// Its position after 0, 1, … steps.
    pub positions: Vec<[f64; 2]>,
    /// The step from which on it was silent.
    pub silent_from: Option<usize>,
}

/// Most paths that a trajectory keeps, spread evenly over the swarm: more cannot be told apart in a
/// picture, and a million would not fit in memory.
const MAX_PATHS: usize = 64;

impl Trajectory {
    /// Adds the state after a step.
    pub fn push(&mut self, snapshot: &Snapshot<'_>) {
        let narrow = snapshot.field.iter().map(|&z| z as f32).collect();
        self.fields.push(narrow);
        self.errors.push(snapshot.error);
        if self.paths.is_empty() {
            let stride = snapshot.positions.len().div_ceil(MAX_PATHS).max(1);
            self.paths = (0..snapshot.positions.len())
                .step_by(stride)
                .map(|agent| Path {
                    agent,
                    positions: Vec::new(),
                    silent_from: None,
                })
                .collect();
        }
        for path in &mut self.paths {
            path.positions.push(snapshot.positions[path.agent]);
            if snapshot.step > 0 && path.silent_from.is_none() && !snapshot.deeds[path.agent].heard
            {
                path.silent_from = Some(snapshot.step - 1);
            }
        }
    }
}
