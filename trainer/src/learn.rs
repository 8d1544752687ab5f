//! The training loop: draw fresh episodes, roll them out, follow the gradient.

use crate::adjoint::standing::sensors_each;
use crate::checkpoint::Checkpoint;
use crate::engine::{Engine, Plan};
use crate::entry::{Entries, Entry};
use crate::family::{Family, Spread};
use crate::hunted::{self, Hunted};
use crate::loss::{TERMS, Term};
use crate::policy::{PolicyConfig, PolicyModule};
use crate::rollout::{Rollout, Terms};
use crate::swarm::Size;
use crate::trial::Trial;
use anyhow::{Context, Result, bail, ensure};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Bytes, Device, Tensor};
use indicatif::{ProgressBar, ProgressStyle};
use problem::coefficient::Coefficients;
use problem::random_field::episode_rng;
use problem::{Episode, Headline, Problem};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Seed of the initial weights and of every episode.
    pub seed: u64,
    /// Episodes per step.
    pub batch: usize,
    /// Episodes that are drawn once and then used again, each time moved along the ring or torus by
    /// another distance; 0 to draw anew every time. For fields that take long to spin up.
    pub pool: usize,
    /// Solver steps per control interval.
    pub substeps: usize,
    /// Control steps per episode.
    pub horizon: usize,
    /// Learning rate over the steps.
    pub schedule: Schedule,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weights of [`Term::ALL`] in the loss.
    pub weights: [f64; TERMS],
    /// What training episodes have beyond the published experiment.
    pub hardening: Hardening,
    /// Steps between two validations.
    pub validate_every: u64,
    /// Episodes of a validation.
    pub validation_episodes: usize,
    /// Validations without a better score after which training ends; 0 for never.
    pub patience: u64,
    /// Times that training goes back to the last good state, with half the learning rate, when the
    /// loss stops being a number.
    pub retreats: u32,
}

/// Learning rate over the steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    /// From `rate` on, halving every `half_life` steps.
    Decay {
        /// Rate of the first step.
        rate: f64,
        /// Steps in which it halves.
        half_life: f64,
    },
    /// Up to `rate` over `warm_up` steps, then down half a cosine to a hundredth of it at `steps`.
    Cosine {
        /// Highest rate.
        rate: f64,
        /// Steps until then.
        warm_up: u64,
        /// Steps until the end.
        steps: u64,
    },
}

impl Schedule {
    /// The learning rate of step `step`.
    pub fn at(&self, step: u64) -> f64 {
        match *self {
            Self::Decay { rate, half_life } => rate * 0.5f64.powf(step as f64 / half_life),
            Self::Cosine { rate, warm_up, .. } if step < warm_up => {
                rate * (step + 1) as f64 / warm_up as f64
            }
            Self::Cosine {
                rate,
                warm_up,
                steps,
            } => {
                let done = (step - warm_up) as f64 / steps.saturating_sub(warm_up).max(1) as f64;
                let share = 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos());
                rate * (0.01 + 0.99 * share)
            }
        }
    }

    /// The rate of step `step` as a share of the highest.
    fn share(&self, step: u64) -> f64 {
        let highest = match *self {
            Self::Decay { rate, .. } | Self::Cosine { rate, .. } => rate,
        };
        self.at(step) / highest
    }

    /// The highest rate.
    pub fn rate_mut(&mut self) -> &mut f64 {
        match self {
            Self::Decay { rate, .. } | Self::Cosine { rate, .. } => rate,
        }
    }
}

/// What training episodes have beyond the published experiment, so that one policy serves other
/// swarms, other fields, and swarms in which something goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hardening {
    /// Swarm sizes; each episode draws one of them, and a size named twice is drawn twice as often.
    pub agents: Vec<Size>,
    /// Forms of the problem, each step drawing one; an empty name is the problem as it is.
    pub variants: Vec<String>,
    /// Coefficients of the equation that are not the published ones, or drawn by every episode.
    pub physics: Vec<Spread>,
    /// Agents start up to this far from their place along each axis.
    pub scatter: f64,
    /// Share of the episodes in which agents die.
    pub deadly_episodes: f64,
    /// Largest share of the agents that die in one, at random times.
    pub deaths: f64,
    /// The share of the episode in which they do: what dies at the very end cannot be made good.
    #[serde(default = "whole_episode")]
    pub deaths_by: f64,
    /// Largest standard deviation of sensor noise; every episode draws its own.
    pub sensor_noise: f64,
    /// Largest standard deviation of actuator noise; every episode draws its own.
    pub actuator_noise: f64,
    /// Most steps by which actions come late; every episode draws its own.
    pub delay: usize,
    /// Share of the episodes in which agents in the plane see by themselves: their own cell, and what
    /// neighbours say.
    #[serde(default)]
    pub neighbours: f64,
    /// Share of these, or on a line of all, in which sensors fail, at random times, some of them for good;
    /// and largest share of the sensors that do.
    #[serde(default)]
    pub missing: [f64; 2],
    /// Scenarios in which a swarm was found to fail, as `agent-sim` writes them.
    pub hunted: Vec<String>,
    /// Share of the episodes that are one of these.
    pub hunted_share: f64,
}

/// The usual share of the episodes that are hunted ones, where there are any.
pub const HUNTED_SHARE: f64 = 0.25;

/// What runs of before there was a choice did.
fn whole_episode() -> f64 {
    1.0
}

impl Hardening {
    /// The published experiment and nothing else.
    pub fn none(problem: &Problem) -> Self {
        Self {
            agents: vec![Size::of(problem.agents)],
            variants: vec![String::new()],
            physics: Vec::new(),
            scatter: 0.0,
            deadly_episodes: 0.0,
            deaths: 0.0,
            deaths_by: whole_episode(),
            sensor_noise: 0.0,
            actuator_noise: 0.0,
            delay: 0,
            neighbours: 0.0,
            missing: [0.0; 2],
            hunted: Vec::new(),
            hunted_share: HUNTED_SHARE,
        }
    }

    /// Whether anything befalls agents.
    fn disturbs(&self) -> bool {
        let chances = [
            self.scatter,
            self.deadly_episodes * self.deaths,
            self.sensor_noise,
            self.actuator_noise,
            self.neighbours,
            self.missing[0] * self.missing[1],
        ];
        chances.iter().any(|&chance| chance > 0.0) || self.delay > 0
    }

    /// Draws the conditions of one episode of `horizon` steps, of agents with so many sensors each.
    fn draw(
        &self,
        family: &Family,
        (horizon, sensors_each): (usize, usize),
        episode: Episode,
        rng: &mut ChaCha8Rng,
    ) -> Trial {
        let problem = &family.usual;
        let size = self.agents[rng.random_range(0..self.agents.len())];
        let agents = size.draw(problem.grid.axes, rng);
        let mut trial = Trial::plain(problem, agents, episode);
        let [low, high] = problem.reach;
        if self.scatter > 0.0 {
            for place in &mut trial.start {
                for axis in 0..problem.grid.axes {
                    let off = rng.random_range(-self.scatter..=self.scatter);
                    place[axis] = (place[axis] + off).clamp(low[axis], high[axis]);
                }
            }
        }
        if rng.random_bool(self.deadly_episodes) {
            let share = rng.random_range(0.0..=self.deaths);
            let last = ((self.deaths_by * horizon as f64) as usize).max(1);
            for dies_at in &mut trial.dies_at {
                if rng.random_bool(share) {
                    *dies_at = rng.random_range(0..last);
                }
            }
        }
        let level = |rng: &mut ChaCha8Rng, most: f64| most * rng.random_range(0.0..=1.0);
        trial.sensor_noise = level(rng, self.sensor_noise);
        trial.actuator_noise = level(rng, self.actuator_noise);
        trial.delay = rng.random_range(0..=self.delay);
        trial.noise_seed = rng.random();
        // Last, so that trainings that draw none have the episodes they always had.
        trial.physics = family.draw(rng);
        self.draw_sight(&mut trial, (horizon, sensors_each), rng);
        trial
    }

    /// Draws whether agents see by themselves, and which of their sensors fail when.
    fn draw_sight(
        &self,
        trial: &mut Trial,
        (horizon, sensors_each): (usize, usize),
        rng: &mut ChaCha8Rng,
    ) {
        let [episodes, sensors] = self.missing;
        let hear = self.neighbours > 0.0;
        if hear && !rng.random_bool(self.neighbours) {
            return;
        }
        let fail = episodes * sensors > 0.0 && rng.random_bool(episodes);
        if !hear && !fail {
            return;
        }
        // Nobody waits for who was never heard: before its third step nobody dies and nothing fails.
        let first = 2;
        for dies_at in &mut trial.dies_at {
            *dies_at = (*dies_at).max(first);
        }
        let mut outages = vec![0..0; trial.agents() * sensors_each];
        let last = horizon.max(first + 1);
        if fail {
            let share = rng.random_range(0.0..=sensors);
            for outage in &mut outages {
                if rng.random_bool(share) {
                    let begins = rng.random_range(first..last);
                    let ends = match rng.random_bool(0.5) {
                        true => usize::MAX,
                        false => rng.random_range(begins..last) + 1,
                    };
                    *outage = begins..ends;
                }
            }
        }
        trial.by_themselves = Some(outages);
    }
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
    /// The figure that the published table shows for a problem.
    pub fn score(&self, headline: Headline) -> f64 {
        match headline {
            Headline::Final => self.terms[Term::Final as usize],
            Headline::TimeMean => self.terms[Term::Track as usize],
        }
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
    pub fn best(&self, headline: Headline) -> Option<&Validation> {
        (self.validations.iter()).min_by(|a, b| a.score(headline).total_cmp(&b.score(headline)))
    }

    /// Validations since the best one.
    pub fn since_best(&self, headline: Headline) -> u64 {
        let best = self.best(headline).map_or(0, |best| best.step);
        self.validations.iter().filter(|v| v.step > best).count() as u64
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
    /// The control problem and what is known about it.
    pub entry: &'static Entry,
    /// Settings.
    pub config: TrainConfig,
    /// The network's description.
    pub policy_config: PolicyConfig,
    /// Steps done.
    pub step: u64,
    /// How it went.
    pub history: History,
    /// How often it had to go back.
    pub retreats: u32,
    device: Device,
    policy: PolicyModule,
    optimiser: ModuleOptimizer,
    /// Where to go back to: policy and optimiser as they last were when all was well.
    good: (PolicyModule, ModuleOptimizer),
    /// One for each form of the problem.
    closed_loops: Vec<Box<dyn Rollout>>,
    /// The coefficients that each one's episodes have.
    families: Vec<Family>,
    /// The hunted episodes of each one.
    hunted: Vec<Vec<Trial>>,
    pool: Vec<Episode>,
    validation: Vec<Episode>,
}

/// Validation episodes come from the streams of this seed, flipped: never seen in training.
const VALIDATION_SEED: u64 = 0x7661_6c69_6461_7465;
/// The pool comes from the streams of this seed, flipped.
const POOL_SEED: u64 = 0x706f_6f6c_706f_6f6c;
/// Forms of the problem come from the streams of this seed, flipped.
const FORM_SEED: u64 = 0x7377_6172_6d73_697a;
/// Which episodes are hunted ones comes from the streams of this seed, flipped.
const HUNTED_SEED: u64 = 0x6875_6e74_6564_2121;
/// What befalls agents comes from the streams of this seed, flipped.
const HARDENING_SEED: u64 = 0x6861_7264_656e_696e;

impl Trainer {
    /// A training that has not begun.
    pub fn new(
        entry: &'static Entry,
        config: TrainConfig,
        policy_config: PolicyConfig,
        engine: &Engine,
    ) -> Result<Self> {
        let problem = entry.problem;
        let device = engine.device().autodiff();
        let policy = policy_config.init(config.seed, &device);
        let optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        let sizes = &config.hardening.agents;
        for size in sizes {
            size.check(problem.grid.axes).context("--agents")?;
            for agents in size.telling(problem.grid.axes, problem.agents) {
                problem.check_agents(agents)?;
            }
        }
        let seats = policy_config.shape.seats;
        ensure!(
            seats.is_none_or(|agents| *sizes == [Size::of(agents)]),
            "a network that decides for all agents is trained with as many as it decides for"
        );
        let Hardening {
            neighbours,
            missing,
            scatter,
            ..
        } = config.hardening;
        let stays = scatter == 0.0 && sizes.iter().all(|size| *size == Size::of(problem.agents));
        ensure!(
            stays || neighbours == 0.0 && missing[0] == 0.0,
            "agents that see by themselves ([training] neighbours, missing) are trained where they are mounted: \
             leave out --agents and --scatter, or these"
        );
        let known = hunted::read_all(&config.hardening.hunted, problem)?;
        let most = sizes.iter().map(|size| size.most()).max();
        let agents = most.context("a training needs a swarm size")?;
        let agents = known.iter().map(Hunted::agents).fold(agents, usize::max);
        let (mut closed_loops, mut families) = (Vec::new(), Vec::new());
        let mut hunted = Vec::new();
        for variant in &config.hardening.variants {
            let problem = match variant.as_str() {
                "" => *problem,
                name => problem.with_variant(name)?,
            };
            let problem = problem.with_substeps(config.substeps)?;
            let family = Family::new(&problem, &config.hardening.physics).context("--physics")?;
            let plan = Plan {
                problem: &family.usual,
                corners: &family.corners,
                agents,
                horizon: config.horizon,
                policy: &policy_config,
                batch: config.batch,
            };
            closed_loops.push(engine.rollout(entry, plan)?);
            let of_form = known.iter().filter(|hunted| hunted.variant == *variant);
            let trials = of_form.map(|hunted| hunted.trial(&family, &config.hardening.physics));
            hunted.push(trials.collect::<Result<Vec<Trial>>>().context("--hard")?);
            families.push(family);
        }
        let forms = &config.hardening.variants;
        if let Some(other) = known.iter().find(|hunted| !forms.contains(&hunted.variant)) {
            bail!(
                "--hard: a scenario is about the variant '{}', which is not trained",
                other.variant
            );
        }
        ensure!(
            !closed_loops.is_empty(),
            "a training needs a form of the problem"
        );
        ensure!(
            config.pool == 0 || problem.grid.is_closed(),
            "a pool of episodes is for fields without walls; train {} with a pool of 0",
            problem.name
        );
        let pool = draw_episodes(problem, config.seed ^ POOL_SEED, config.pool, "training");
        let validation = draw_episodes(
            problem,
            config.seed ^ VALIDATION_SEED,
            config.validation_episodes,
            "validation",
        );
        Ok(Self {
            entry,
            config,
            policy_config,
            step: 0,
            history: History::default(),
            retreats: 0,
            device,
            good: (policy.clone(), optimiser.clone()),
            policy,
            optimiser,
            closed_loops,
            families,
            hunted,
            pool,
            validation,
        })
    }

    /// Begins with these parameters instead of random ones.
    pub fn begin_with(&mut self, parameters: &[f32]) {
        self.policy = self.policy_config.with_parameters(parameters, &self.device);
        self.good = (self.policy.clone(), self.optimiser.clone());
    }

    /// The training a checkpoint was taken from, to the bit.
    pub fn resume(checkpoint: Checkpoint, entries: &Entries, engine: &Engine) -> Result<Self> {
        let entry = entries.by_name(&checkpoint.problem)?;
        let policy = checkpoint.network(&engine.device().autodiff())?;
        let mut trainer = Self::new(entry, checkpoint.config, checkpoint.policy, engine)?;
        trainer.policy = policy;
        let state = Bytes::from_bytes_vec(checkpoint.optimiser);
        let unreadable = "the checkpoint's network or optimiser state cannot be read";
        trainer.optimiser = trainer.optimiser.from_bytes(state).context(unreadable)?;
        trainer.good = (trainer.policy.clone(), trainer.optimiser.clone());
        trainer.step = checkpoint.step;
        trainer.history = checkpoint.history;
        trainer.retreats = checkpoint.retreats;
        Ok(trainer)
    }

    /// Freezes the training; `seconds` is the time it took so far.
    pub fn checkpoint(&self, seconds: f64) -> Result<Checkpoint> {
        Ok(Checkpoint {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            problem: self.problem().address(),
            config: self.config.clone(),
            policy: self.policy_config.clone(),
            step: self.step,
            retreats: self.retreats,
            history: self.history.clone(),
            seconds,
            model: self.policy.clone().into_record().into_bytes()?.to_vec(),
            optimiser: self.optimiser.into_bytes()?.to_vec(),
        })
    }

    /// The control problem.
    pub fn problem(&self) -> &'static Problem {
        self.entry.problem
    }

    /// The policy as it is.
    pub fn policy(&self) -> &PolicyModule {
        &self.policy
    }

    /// The figure by which policies of this problem are compared.
    pub fn headline(&self) -> Headline {
        self.problem().scoring.headline
    }

    /// Learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        self.config.schedule.at(self.step) * 0.5f64.powi(self.retreats as i32)
    }

    /// Weights of the next step. The centroid only shows the way: it fades with the learning rate, so
    /// that the end is left to the score.
    fn weights(&self) -> [f64; TERMS] {
        let mut weights = self.config.weights;
        weights[Term::Centroid as usize] *= self.config.schedule.share(self.step);
        weights
    }

    /// The closed loop of the next step: a draw that depends on the seed and the step alone, so
    /// that a resumed run goes on as if it had never stopped.
    fn draw_loop(&self) -> usize {
        let mut rng = episode_rng(self.config.seed ^ FORM_SEED, self.step);
        rng.random_range(0..self.closed_loops.len())
    }

    /// Sensors of each agent that sees by itself.
    fn sensors_each(&self) -> usize {
        sensors_each(self.problem(), self.policy_config.sight.window)
    }

    /// Fresh episodes and what befalls the swarm in them.
    fn draw_trials(&self, which: usize) -> Vec<Trial> {
        let (seed, first, problem) = (self.config.seed, self.step << 24, self.problem());
        let (family, horizon) = (&self.families[which], self.config.horizon);
        let each = self.sensors_each();
        (0..self.config.batch as u64)
            .into_par_iter()
            .map(|k| {
                let mut rng = episode_rng(seed, first | k);
                let episode = match self.pool.len() {
                    0 => (problem.draw)(problem, &mut rng),
                    pool => {
                        let shift = problem.grid.points.map(|n| rng.random_range(0..n));
                        let state = &self.pool[rng.random_range(0..pool)];
                        moved(state, problem.grid.points, shift)
                    }
                };
                let mut rng = episode_rng(seed ^ HARDENING_SEED, first | k);
                let hardening = &self.config.hardening;
                let usual = hardening.draw(family, (horizon, each), episode, &mut rng);
                self.or_hunted(
                    which,
                    usual,
                    &mut episode_rng(seed ^ HUNTED_SEED, first | k),
                )
            })
            .collect()
    }

    /// An episode, or in its place a hunted one: as often on the field it was found on as on the fresh one.
    fn or_hunted(&self, which: usize, usual: Trial, rng: &mut ChaCha8Rng) -> Trial {
        let hunted = &self.hunted[which];
        if hunted.is_empty() || !rng.random_bool(self.config.hardening.hunted_share) {
            return usual;
        }
        let known = hunted[rng.random_range(0..hunted.len())].clone();
        let episode = match rng.random_bool(0.5) {
            true => known.episode,
            false => usual.episode,
        };
        Trial {
            episode,
            noise_seed: usual.noise_seed,
            ..known
        }
    }

    /// Fresh episodes for the next step.
    pub fn draw(&self) -> Batch {
        let which = self.draw_loop();
        Batch {
            which,
            trials: self.draw_trials(which),
        }
    }

    /// One optimiser step on fresh episodes.
    pub fn step(&mut self) -> Result<StepReport> {
        self.learn(&self.draw())
    }

    /// One optimiser step on these episodes.
    pub fn learn(&mut self, batch: &Batch) -> Result<StepReport> {
        let weights = self.weights();
        let (terms, gradients) = self.differentiate(batch, &weights)?;
        let (gradients, length) = clip(gradients, &self.policy, self.config.clip);
        let loss = terms.iter().zip(weights).map(|(t, w)| t * w).sum::<f64>();
        if loss.is_finite() && length.is_finite() {
            let rate = self.learning_rate();
            self.policy = self.optimiser.step(rate, self.policy.clone(), gradients);
            self.history.add(self.step + 1, loss, terms);
        } else {
            ensure!(
                self.retreats < self.config.retreats,
                "the loss stopped being a number at step {}; the last good state is kept; go on \
                 from it with a smaller --lr, or allow more --retreats",
                self.step
            );
            self.retreats += 1;
            (self.policy, self.optimiser) = self.good.clone();
        }
        self.step += 1;
        Ok(StepReport {
            step: self.step,
            loss,
            terms,
            gradient: length,
        })
    }

    /// Mean terms of the episodes and the gradient of their weighted sum.
    fn differentiate(
        &mut self,
        batch: &Batch,
        weights: &Terms,
    ) -> Result<(Terms, GradientsParams)> {
        let parameters = self.policy.parameters();
        let closed_loop = &mut self.closed_loops[batch.which];
        let (terms, mut gradient) = closed_loop.gradient(&parameters, &batch.trials, weights)?;
        for held in self.policy_config.shape.held() {
            gradient[held].fill(0.0);
        }
        // A product whose gradient is the rollout's: autodiff hands it on to the layers.
        let gradient = Tensor::<1>::from_floats(gradient.as_slice(), &self.device);
        let product = (self.policy.flat() * gradient).sum();
        Ok((
            mean(&terms),
            GradientsParams::from_grads(product.backward(), &self.policy),
        ))
    }

    /// Scores the policy on the validation episodes and remembers the score; true if it is the
    /// best so far.
    ///
    /// Policies are compared at the sizes they are trained for, undisturbed, at both ends of the family of
    /// fields that they are trained on, once more under all that befalls them in training, and on hunted
    /// episodes; these conditions count alike, by the geometric mean, and so do several forms of the problem.
    pub fn validate(&mut self) -> Result<bool> {
        let parameters = self.policy.parameters();
        let forms = self.families.iter().zip(&self.hunted);
        let conditions = forms.map(|(family, hunted)| {
            let mut conditions = self.conditions(family);
            conditions.extend((!hunted.is_empty()).then(|| hunted.clone()));
            conditions
        });
        let conditions: Vec<Vec<Vec<Trial>>> = conditions.collect();
        let mut logs: Terms = [0.0; TERMS];
        let count = conditions.iter().map(Vec::len).sum::<usize>() as f64;
        for (closed_loop, conditions) in self.closed_loops.iter_mut().zip(&conditions) {
            for trials in conditions {
                let mut all = Vec::new();
                // In portions as large as a training batch: their traces are there already.
                for portion in trials.chunks(self.config.batch) {
                    all.extend(closed_loop.terms(&parameters, portion)?);
                }
                for (log, term) in logs.iter_mut().zip(mean(&all)) {
                    *log += term.ln() / count;
                }
            }
        }
        let terms = logs.map(f64::exp);
        let validation = Validation {
            step: self.step,
            terms,
        };
        let (headline, score) = (self.headline(), validation.score(self.headline()));
        let best = score.is_finite()
            && (self.history.best(headline)).is_none_or(|b| score < b.score(headline));
        self.history.validations.push(validation);
        if score.is_finite() {
            self.good = (self.policy.clone(), self.optimiser.clone());
        }
        Ok(best)
    }

    /// The validation episodes under every condition that policies are compared in.
    fn conditions(&self, family: &Family) -> Vec<Vec<Trial>> {
        let (problem, hardening) = (&family.usual, &self.config.hardening);
        let telling = |size: &Size| size.telling(problem.grid.axes, problem.agents);
        let sizes: BTreeSet<usize> = hardening.agents.iter().flat_map(telling).collect();
        let plain = |agents: usize, physics: Coefficients| -> Vec<Trial> {
            let trial = |episode: &Episode| Trial {
                physics,
                ..Trial::plain(problem, agents, episode.clone())
            };
            self.validation.iter().map(trial).collect()
        };
        let usual = |&agents: &usize| plain(agents, problem.physics);
        let mut all: Vec<Vec<Trial>> = sizes.iter().map(usual).collect();
        let size = match sizes.contains(&problem.agents) {
            true => problem.agents,
            false => *sizes.last().expect("a training has a swarm size"),
        };
        let ends = family.ends().into_iter();
        all.extend(ends.map(|physics| plain(size, physics)));
        if hardening.disturbs() {
            let seed = self.config.seed ^ HARDENING_SEED ^ VALIDATION_SEED;
            let disturbed = self.validation.iter().enumerate().map(|(k, episode)| {
                let mut rng = episode_rng(seed, k as u64);
                let steps = self.config.horizon;
                hardening.draw(
                    family,
                    (steps, self.sensors_each()),
                    episode.clone(),
                    &mut rng,
                )
            });
            all.push(disturbed.collect());
        }
        all
    }

    /// Whether validation has not become better for so long that it is not worth going on.
    pub fn is_stale(&self) -> bool {
        let patience = self.config.patience;
        patience > 0 && self.history.since_best(self.headline()) >= patience
    }
}

/// Fresh episodes of one form of the problem.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The loop, by its number.
    which: usize,
    /// The episodes and what befalls them.
    pub trials: Vec<Trial>,
}

fn mean(episodes: &[Terms]) -> Terms {
    let count = episodes.len() as f64;
    std::array::from_fn(|k| episodes.iter().map(|terms| terms[k]).sum::<f64>() / count)
}

/// Draws episodes, with a bar where that takes long.
fn draw_episodes(problem: &Problem, seed: u64, count: usize, what: &str) -> Vec<Episode> {
    let bar = ProgressBar::new(count as u64);
    let style =
        ProgressStyle::with_template("drawing {msg} episodes {bar:30} {pos}/{len} eta {eta}");
    bar.set_style(style.expect("a valid template"));
    bar.set_message(what.to_owned());
    let episodes = (0..count as u64)
        .into_par_iter()
        .map(|k| {
            let episode = (problem.draw)(problem, &mut episode_rng(seed, k));
            bar.inc(1);
            episode
        })
        .collect();
    bar.finish_and_clear();
    episodes
}

/// The same task elsewhere on a ring or torus.
fn moved(episode: &Episode, [rows, columns]: [usize; 2], [down, right]: [usize; 2]) -> Episode {
    let roll = |field: &[f32]| {
        (0..rows * columns)
            .map(|k| {
                let (i, j) = ((k / columns + down) % rows, (k % columns + right) % columns);
                field[i * columns + j]
            })
            .collect()
    };
    Episode {
        initial: roll(&episode.initial),
        target: roll(&episode.target),
        ..Episode::default()
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
fn clip(gradients: GradientsParams, policy: &PolicyModule, limit: f64) -> (GradientsParams, f64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schedules_go_where_they_should() {
        let decay = Schedule::Decay {
            rate: 1e-3,
            half_life: 2000.0,
        };
        assert_eq!((decay.at(0), decay.at(2000)), (1e-3, 5e-4));
        let cosine = Schedule::Cosine {
            rate: 1e-3,
            warm_up: 50,
            steps: 500,
        };
        assert_eq!(
            (cosine.at(0), cosine.at(49), cosine.at(50)),
            (2e-5, 1e-3, 1e-3)
        );
        // Half-way down the cosine: (0.01 + 0.99/2) of the rate.
        assert!((cosine.at(275) - 5.05e-4).abs() < 1e-9);
        assert!((cosine.at(500) - 1e-5).abs() < 1e-12 && cosine.at(900) == cosine.at(500));
    }

    #[test]
    fn a_moved_episode_is_the_same_one_elsewhere() {
        let episode = Episode {
            initial: (0..6).map(|k| k as f32).collect(),
            target: vec![0.0; 6],
            ..Episode::default()
        };
        let moved = moved(&episode, [2, 3], [1, 2]);
        // Row 1 first, column 2 first.
        assert_eq!(moved.initial, [5.0, 3.0, 4.0, 2.0, 0.0, 1.0]);
    }

    #[test]
    fn agents_by_themselves_are_heard_before_anything_fails_and_as_often_as_asked() {
        let problem = crate::published::fkpp_1d::ENTRY.problem;
        let family = Family::new(problem, &[]).unwrap();
        let hardening = Hardening {
            neighbours: 0.5,
            missing: [0.5, 0.4],
            deadly_episodes: 1.0,
            deaths: 1.0,
            ..Hardening::none(problem)
        };
        let draw = |hardening: &Hardening, k: u64| {
            let mut rng = episode_rng(1, k);
            hardening.draw(&family, (6, 3), Episode::default(), &mut rng)
        };
        let (mut alone, mut failing, mut for_good) = (0, 0, 0);
        for k in 0..400 {
            let trial = draw(&hardening, k);
            let Some(outages) = trial.by_themselves else {
                continue;
            };
            assert_eq!(outages.len(), 3 * trial.dies_at.len());
            assert!(trial.dies_at.iter().all(|step| *step >= 2));
            let fail: Vec<_> = outages.iter().filter(|outage| !outage.is_empty()).collect();
            assert!(fail.iter().all(|outage| (2..6).contains(&outage.start)));
            alone += 1;
            failing += usize::from(!fail.is_empty());
            for_good += usize::from(fail.iter().any(|outage| outage.end == usize::MAX));
        }
        // Half of 400 within four standard deviations of 10, and about half of those.
        assert!((160..=240).contains(&alone), "{alone}");
        assert!((60..=130).contains(&failing), "{failing}");
        assert!(0 < for_good && for_good <= failing, "{for_good}");
        // On a line without neighbours, only episodes in which something fails are others.
        let line = Hardening {
            neighbours: 0.0,
            ..hardening
        };
        let seen = (0..400).filter(|k| draw(&line, *k).by_themselves.is_some());
        assert!((160..=240).contains(&seen.count()));
    }

    /// A training on a family of Fisher's equation, of swarms that never have the published size.
    #[test]
    fn every_episode_has_coefficients_of_its_own_and_validation_those_of_the_ends() {
        let entry = &crate::published::fkpp_1d::ENTRY;
        let mut recipe = entry.recipe.full(entry.problem);
        recipe.train.batch = 32;
        recipe.train.validation_episodes = 2;
        recipe.train.hardening = Hardening {
            agents: vec![Size::between(2, 3)],
            physics: vec!["nu=0.0025..0.01".parse().unwrap(), "rho=2".parse().unwrap()],
            ..Hardening::none(entry.problem)
        };
        let engine = Engine::Host(Device::default());
        let trainer = Trainer::new(entry, recipe.train, recipe.policy, &engine).unwrap();
        let Batch { trials, .. } = trainer.draw();
        let mut drawn: Vec<u64> = trials.iter().map(|t| t.physics[0].to_bits()).collect();
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 32);
        let inside = |t: &Trial| (0.0025..=0.01).contains(&t.physics[0]) && t.physics[1] == 2.0;
        assert!(trials.iter().all(inside));
        let conditions = trainer.conditions(&trainer.families[0]);
        let told: Vec<_> = (conditions.iter())
            .map(|trials| {
                (
                    trials[1].agents(),
                    trials[1].physics[0],
                    trials[1].physics[1],
                )
            })
            .collect();
        let published = entry.problem.physics[0];
        assert_eq!(
            told,
            [
                (2, published, 2.0),
                (3, published, 2.0),
                (3, 0.0025, 2.0),
                (3, 0.01, 2.0)
            ]
        );
    }
}
