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
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Seed of the initial weights and of every episode.
    pub seed: u64,
    /// Episodes per step.
    pub batch: usize,
    /// Agents per episode.
    pub agents: usize,
    /// Control steps per episode.
    pub horizon: usize,
    /// Learning rate of the first step.
    pub learning_rate: f64,
    /// Steps in which the learning rate halves.
    pub half_life: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
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
            agents: problem.agents,
            horizon: problem.horizon,
            learning_rate: 1e-3,
            half_life: 2000.0,
            clip: 1.0,
            final_weight: 0.0,
            validate_every: 100,
            validation_episodes: 128,
        }
    }
}

/// How the loop is differentiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
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
    path: Path,
    device: Device,
    policy: Policy,
    optimiser: ModuleOptimizer,
    closed_loop: Arc<ClosedLoop>,
    validation: Arc<[Episode]>,
}

/// Validation episodes come from the streams of this seed, flipped: never seen in training.
const VALIDATION_SEED: u64 = 0x7661_6c69_6461_7465;

impl Trainer {
    /// A training that has not begun.
    pub fn new(
        problem: &'static Problem,
        config: TrainConfig,
        policy_config: PolicyConfig,
        path: Path,
        device: &Device,
    ) -> Self {
        let device = device.clone().autodiff();
        let policy = policy_config.init(config.seed, &device);
        let optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        let closed_loop = Arc::new(ClosedLoop::new(
            problem,
            config.agents,
            config.horizon,
            policy_config.shape.clone(),
            policy_config.gains,
        ));
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
            path,
            device,
            policy,
            optimiser,
            closed_loop,
            validation,
        }
    }

    /// The training a checkpoint was taken from, to the bit.
    pub fn resume(checkpoint: Checkpoint, path: Path, device: &Device) -> Result<Self> {
        let problem = problem::by_name(&checkpoint.problem)?;
        let mut trainer = Self::new(problem, checkpoint.config, checkpoint.policy, path, device);
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
        weights[Term::Final as usize] = self.config.final_weight;
        weights
    }

    /// Terms of the episodes, [episodes, terms], differentiable.
    fn rollout(&self, episodes: Arc<[Episode]>) -> Tensor<2> {
        match self.path {
            Path::Fused => {
                let closed_loop = self.closed_loop.clone();
                rollout(
                    self.policy.flat(),
                    Batch {
                        closed_loop,
                        episodes,
                    },
                )
            }
            Path::Plain => reference::rollout(
                &self.policy,
                &self.policy_config,
                self.problem,
                self.config.agents,
                self.config.horizon,
                &episodes,
                &self.device,
            ),
        }
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
        let terms = self.rollout(episodes.into()).mean_dim(0);
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
    pub fn validate(&mut self) -> bool {
        let means = match self.path {
            Path::Fused => {
                let (terms, tape) = self
                    .closed_loop
                    .forward(&self.policy.parameters(), &self.validation);
                self.closed_loop.recycle(tape);
                let count = terms.len() as f64;
                std::array::from_fn(|k| terms.iter().map(|t| t[k]).sum::<f64>() / count)
            }
            Path::Plain => {
                let means = host(self.rollout(self.validation.clone()).mean_dim(0));
                std::array::from_fn(|k| f64::from(means[k]))
            }
        };
        let validation = Validation {
            step: self.step,
            terms: means,
        };
        let best = self
            .history
            .best()
            .is_none_or(|b| validation.final_error() < b.final_error());
        self.history.validations.push(validation);
        best
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
