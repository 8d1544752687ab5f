//! The training loop: draw fresh episodes, roll them out, follow the gradient.

use crate::checkpoint::Checkpoint;
use crate::loss::{self, TERMS, Term};
use crate::operation::{Batch, rollout};
use crate::policy::{Policy, PolicyConfig};
use crate::reference;
use crate::rollout::ClosedLoop;
use agent_sim::problem::{self, Episode, Problem};
use agent_sim::random_field::episode_rng;
use anyhow::{Context, Result, ensure};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device, Tensor};
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Seed of the initial weights and of every episode.
    pub seed: u64,
    /// Episodes per step.
    pub batch: usize,
    /// Swarm sizes; each step draws one of them, and a size named twice is drawn twice as often.
    pub agents: Vec<usize>,
    /// Control steps per episode.
    pub horizon: usize,
    /// Learning rate of the first step.
    pub learning_rate: f64,
    /// Steps in which the learning rate halves.
    pub half_life: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weight of the effort in the loss.
    pub effort_weight: f64,
    /// Weight of the error after the last step, besides the published terms.
    pub final_weight: f64,
    /// Steps between two validations.
    pub validate_every: u64,
    /// Episodes of a validation.
    pub validation_episodes: usize,
}

impl TrainConfig {
    /// The published settings of a problem, except that every step draws fresh episodes.
    pub fn of(problem: &Problem) -> Self {
        Self {
            seed: 0,
            batch: 32,
            agents: vec![problem.agents],
            horizon: problem.horizon,
            learning_rate: 1e-3,
            half_life: 2000.0,
            clip: 1.0,
            effort_weight: problem.loss.effort,
            final_weight: 0.0,
            validate_every: 100,
            validation_episodes: 128,
        }
    }
}

/// How the loop is differentiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Differentiation {
    /// One operation with a hand-written adjoint; CPU backends.
    Fused,
    /// Tensor operations; any backend.
    Plain,
}

/// Mean terms over a stretch of training steps.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// Last step of the stretch.
    pub step: u64,
    /// Steps averaged.
    pub count: u64,
    /// Weighted sum of the terms.
    pub loss: f64,
    /// Unweighted terms.
    pub terms: [f64; TERMS],
}

/// Mean score on the validation episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Step after which it was taken.
    pub step: u64,
    /// Unweighted terms.
    pub terms: [f64; TERMS],
}

impl Validation {
    /// Mean squared error after the last control step.
    pub fn final_error(&self) -> f64 {
        self.terms[Term::Final as usize]
    }
}

/// How a run went so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    /// Finished stretches of [`STRETCH`] steps.
    pub stretches: Vec<Stretch>,
    /// The stretch under way.
    pub current: Stretch,
    /// All validations.
    pub validations: Vec<Validation>,
}

/// Steps averaged into one point of the loss curve.
pub const STRETCH: u64 = 20;

impl History {
    fn add(&mut self, step: u64, loss: f64, terms: [f64; TERMS]) {
        let current = &mut self.current;
        current.step = step;
        current.count += 1;
        let share = 1.0 / current.count as f64;
        current.loss += (loss - current.loss) * share;
        for (mean, term) in current.terms.iter_mut().zip(terms) {
            *mean += (term - *mean) * share;
        }
        if current.count == STRETCH {
            self.stretches.push(std::mem::take(current));
        }
    }

    /// The best validation.
    pub fn best(&self) -> Option<&Validation> {
        self.validations
            .iter()
            .min_by(|a, b| a.final_error().total_cmp(&b.final_error()))
    }
}

/// What one step did.
#[derive(Debug, Clone, Copy)]
pub struct StepReport {
    /// Steps done, this one included.
    pub step: u64,
    /// Weighted sum of the terms.
    pub loss: f64,
    /// Unweighted terms, mean over the batch.
    pub terms: [f64; TERMS],
    /// Length of the gradient before clipping.
    pub gradient: f64,
}

/// A training between two steps.
pub struct Trainer {
    /// The control problem.
    pub problem: &'static Problem,
    /// Settings.
    pub config: TrainConfig,
    /// The network's description.
    pub policy_config: PolicyConfig,
    /// Steps done.
    pub step: u64,
    /// How it went.
    pub history: History,
    differentiation: Differentiation,
    device: Device,
    policy: Policy,
    optimiser: ModuleOptimizer,
    /// One for each entry of `config.agents`.
    closed_loops: Vec<Arc<ClosedLoop>>,
    validation: Arc<[Episode]>,
}

/// Validation episodes come from the streams of this seed, flipped: never seen in training.
const VALIDATION_SEED: u64 = 0x7661_6c69_6461_7465;
/// Swarm sizes come from the streams of this seed, flipped.
const SIZE_SEED: u64 = 0x7377_6172_6d73_697a;

impl Trainer {
    /// A training that has not begun.
    pub fn new(
        problem: &'static Problem,
        config: TrainConfig,
        policy_config: PolicyConfig,
        differentiation: Differentiation,
        device: &Device,
    ) -> Self {
        let device = device.clone().autodiff();
        let policy = policy_config.init(config.seed, &device);
        let optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        let mut by_size: BTreeMap<usize, Arc<ClosedLoop>> = BTreeMap::new();
        let closed_loops = (config.agents.iter())
            .map(|&agents| {
                let closed_loop = by_size.entry(agents).or_insert_with(|| {
                    let PolicyConfig { shape, gains } = policy_config.clone();
                    Arc::new(ClosedLoop::new(
                        problem,
                        agents,
                        config.horizon,
                        shape,
                        gains,
                    ))
                });
                closed_loop.clone()
            })
            .collect();
        let validation = (0..config.validation_episodes as u64)
            .into_par_iter()
            .map(|k| (problem.draw)(&mut episode_rng(config.seed ^ VALIDATION_SEED, k)))
            .collect::<Vec<_>>()
            .into();
        Self {
            problem,
            config,
            policy_config,
            step: 0,
            history: History::default(),
            differentiation,
            device,
            policy,
            optimiser,
            closed_loops,
            validation,
        }
    }

    /// The training a checkpoint was taken from, to the bit.
    pub fn resume(
        checkpoint: Checkpoint,
        differentiation: Differentiation,
        device: &Device,
    ) -> Result<Self> {
        let problem = problem::by_name(&checkpoint.problem)?;
        let mut trainer = Self::new(
            problem,
            checkpoint.config,
            checkpoint.policy,
            differentiation,
            device,
        );
        let fault = "the checkpoint's network or optimiser state cannot be read";
        let record =
            ModuleRecord::from_bytes(Bytes::from_bytes_vec(checkpoint.model)).context(fault)?;
        trainer.policy = trainer.policy.load_record(record);
        let state = Bytes::from_bytes_vec(checkpoint.optimiser);
        trainer.optimiser = trainer.optimiser.from_bytes(state).context(fault)?;
        trainer.step = checkpoint.step;
        trainer.history = checkpoint.history;
        Ok(trainer)
    }

    /// Freezes the training; `seconds` is the time it took so far.
    pub fn checkpoint(&self, seconds: f64) -> Result<Checkpoint> {
        Ok(Checkpoint {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            problem: self.problem.name.to_owned(),
            config: self.config.clone(),
            policy: self.policy_config.clone(),
            step: self.step,
            history: self.history.clone(),
            seconds,
            model: self.policy.clone().into_record().into_bytes()?.to_vec(),
            optimiser: self.optimiser.into_bytes()?.to_vec(),
        })
    }

    /// The policy as it is.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        self.config.learning_rate * 0.5f64.powf(self.step as f64 / self.config.half_life)
    }

    fn weights(&self) -> [f64; TERMS] {
        let mut weights = loss::weights(&self.problem.loss);
        weights[Term::Effort as usize] = self.config.effort_weight;
        weights[Term::Final as usize] = self.config.final_weight;
        weights
    }

    /// Terms of the episodes, [episodes, terms], differentiable.
    fn rollout(&self, closed_loop: &Arc<ClosedLoop>, episodes: Arc<[Episode]>) -> Tensor<2> {
        match self.differentiation {
            Differentiation::Fused => rollout(
                self.policy.flat(),
                Batch {
                    closed_loop: closed_loop.clone(),
                    episodes,
                },
            ),
            Differentiation::Plain => reference::rollout(
                &self.policy,
                &self.policy_config,
                self.problem,
                closed_loop.agents,
                self.config.horizon,
                &episodes,
                &self.device,
            ),
        }
    }

    /// The swarm size of the next step: a draw that depends on the seed and the step alone, so
    /// that a resumed run goes on as if it had never stopped.
    fn draw_size(&self) -> Arc<ClosedLoop> {
        let mut rng = episode_rng(self.config.seed ^ SIZE_SEED, self.step);
        let index = rng.random_range(0..self.closed_loops.len());
        self.closed_loops[index].clone()
    }

    /// One optimiser step on fresh episodes.
    pub fn step(&mut self) -> Result<StepReport> {
        let draw = self.problem.draw;
        let (seed, first) = (self.config.seed, self.step << 24);
        let episodes: Vec<Episode> = (0..self.config.batch as u64)
            .into_par_iter()
            .map(|k| draw(&mut episode_rng(seed, first | k)))
            .collect();
        let weights = self.weights();
        let terms = self.rollout(&self.draw_size(), episodes.into()).mean_dim(0);
        let weighted = terms.clone()
            * Tensor::<1>::from_floats(weights.map(|w| w as f32), &self.device).reshape([1, TERMS]);
        let gradients = GradientsParams::from_grads(weighted.sum().backward(), &self.policy);
        let (gradients, length) = clip(gradients, &self.policy, self.config.clip);

        let means = host(terms);
        let terms: [f64; TERMS] = std::array::from_fn(|k| f64::from(means[k]));
        let loss = terms.iter().zip(weights).map(|(t, w)| t * w).sum::<f64>();
        ensure!(
            loss.is_finite() && length.is_finite(),
            "the loss stopped being a number at step {}; start again with a smaller --lr",
            self.step
        );
        self.policy = self
            .optimiser
            .step(self.learning_rate(), self.policy.clone(), gradients);
        self.step += 1;
        self.history.add(self.step, loss, terms);
        Ok(StepReport {
            step: self.step,
            loss,
            terms,
            gradient: length,
        })
    }

    /// Scores the policy on the validation episodes and remembers the score; true if it is the
    /// best so far.
    ///
    /// Several swarm sizes count alike: terms are geometric means over them, so that the best
    /// policy is not merely the best one for the smallest swarm, whose errors are the largest.
    pub fn validate(&mut self) -> bool {
        let mut sizes = self.closed_loops.clone();
        sizes.sort_by_key(|closed_loop| closed_loop.agents);
        sizes.dedup_by_key(|closed_loop| closed_loop.agents);
        let by_size: Vec<[f64; TERMS]> = sizes.iter().map(|s| self.mean_terms(s)).collect();
        let count = by_size.len() as f64;
        let terms = match by_size[..] {
            [only] => only,
            _ => std::array::from_fn(|k| {
                (by_size.iter().map(|t| t[k].ln()).sum::<f64>() / count).exp()
            }),
        };
        let validation = Validation {
            step: self.step,
            terms,
        };
        let best = self
            .history
            .best()
            .is_none_or(|b| validation.final_error() < b.final_error());
        self.history.validations.push(validation);
        best
    }

    /// Mean terms of the validation episodes with one swarm size.
    fn mean_terms(&self, closed_loop: &Arc<ClosedLoop>) -> [f64; TERMS] {
        match self.differentiation {
            Differentiation::Fused => {
                let parameters = self.policy.parameters();
                let mut sums = [0.0; TERMS];
                // In portions as large as a training batch: their traces are there already.
                for episodes in self.validation.chunks(self.config.batch) {
                    let (terms, tape) = closed_loop.forward(&parameters, episodes);
                    closed_loop.recycle(tape);
                    for terms in terms {
                        for (sum, term) in sums.iter_mut().zip(terms) {
                            *sum += term;
                        }
                    }
                }
                sums.map(|sum| sum / self.validation.len() as f64)
            }
            Differentiation::Plain => {
                let terms = self.rollout(closed_loop, self.validation.clone());
                let means = host(terms.mean_dim(0));
                std::array::from_fn(|k| f64::from(means[k]))
            }
        }
    }
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .into_data()
        .convert::<f32>()
        .try_into_vec()
        .expect("just converted to f32")
}

/// Shortens the gradient of all parameters together to `limit`; also returns its length before.
fn clip(gradients: GradientsParams, policy: &Policy, limit: f64) -> (GradientsParams, f64) {
    struct Length<'a>(&'a GradientsParams, f64);
    impl ModuleVisitor for Length<'_> {
        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(parameter.id) {
                self.1 += host(gradient)
                    .into_iter()
                    .map(|g| f64::from(g).powi(2))
                    .sum::<f64>();
            }
        }
    }
    struct Scale(GradientsParams, GradientsParams, f64);
    impl ModuleVisitor for Scale {
        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.remove::<D>(parameter.id) {
                self.1.register(parameter.id, gradient * self.2);
            }
        }
    }
    let mut length = Length(&gradients, 0.0);
    policy.visit(&mut length);
    let length = length.1.sqrt();
    if length <= limit {
        return (gradients, length);
    }
    let mut scale = Scale(gradients, GradientsParams::new(), limit / length);
    policy.visit(&mut scale);
    (scale.1, length)
}
