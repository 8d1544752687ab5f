//! What a training is asked to be, and how it is begun: one way for the command line, for Python and for
//! programs of one's own.

use crate::backend::Backend;
use crate::entry::Entry;
use crate::export;
use crate::family::{Family, Spread};
use crate::learn::TrainConfig;
use crate::loss::Term;
use crate::policy::PolicyConfig;
use crate::ranks::Ranks;
use crate::recipe::{Preset, Recipe};
use crate::run::{Existing, TrainingRun};
use crate::swarm::Size;
use agent_core::policy::{MAX_MEMORY, MAX_WIDTH};
use anyhow::{Context, Result, bail, ensure};
use artifacts::policy_file::PolicyFile;
use clap::ValueEnum;
use problem::Problem;
use problem::input;
use problem::limit::{BATCH, STEPS, TRAINING_STEPS};
use std::path::{Path, PathBuf};

/// Most cells along an axis of a window.
const MAX_WINDOW: usize = 64;

/// The settings of a training: a preset and what is to be different from it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Train one network that is told the whole field and where all agents are, and decides for all of them: a
    /// yardstick, no policy for agents. It is kept in PROBLEM-centralised.
    #[arg(long)]
    pub centralised: bool,
    /// Which settings to start from; the flags below change them.
    #[arg(long, value_enum, default_value_t = Preset::default())]
    pub preset: Preset,
    /// Where rollouts run.
    #[arg(long, value_enum, default_value_t = Backend::default())]
    pub backend: Backend,
    /// Begin with the weights of this policy (f32) instead of random ones, be it another problem's; a
    /// smaller --lr keeps more of what it can.
    #[arg(long, value_name = "POLICY")]
    pub from: Option<PathBuf>,
    /// Optimiser steps in all [default: the preset's].
    #[arg(long)]
    pub steps: Option<usize>,
    /// Episodes per step [default: the preset's].
    #[arg(long)]
    pub batch: Option<usize>,
    /// Seed of the initial weights and of all episodes [default: 0].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Cells along each axis of the window that agents see [default: the preset's].
    #[arg(long, value_name = "CELLS")]
    pub window: Option<usize>,
    /// Numbers that every agent remembers from step to step, at most 16 [default: the preset's].
    #[arg(long, value_name = "N")]
    pub memory: Option<usize>,
    /// Agents do nothing where they see no error and remember none, by construction; what they do where they
    /// see one is then as much the opposite where they see its opposite.
    #[arg(long)]
    pub rests: bool,
    /// Highest learning rate [default: the preset's].
    #[arg(long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// Swarm sizes to train with, each episode drawing one: numbers and ranges, such as 8 or 3..64; one
    /// named twice is drawn twice as often [default: the preset's].
    #[arg(long, value_delimiter = ',', value_name = "N|N..M,…")]
    pub agents: Vec<Size>,
    /// Coefficients of the equation, each a value or a range of which every episode draws its own, evenly on
    /// a logarithmic scale, e.g. nu=0.004 or nu=0.0025..0.01,rho=1.5..6 [default: as published; agent-sim
    /// problems lists them].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=VALUE|NAME=LEAST..MOST,…"
    )]
    pub physics: Vec<Spread>,
    /// Weight of a term of the loss, e.g. effort=1e-3; may be given several times. Terms: track,
    /// effort, bound, collision, acceleration, final, obstacle, centroid, late, order.
    #[arg(long = "weight", value_name = "TERM=WEIGHT", value_parser = weight)]
    pub weights: Vec<(Term, f64)>,
    /// Agents start up to this far from their place along each axis.
    #[arg(long, value_name = "LENGTH")]
    pub scatter: Option<f64>,
    /// Share of the episodes in which agents die.
    #[arg(long, value_name = "SHARE")]
    pub deadly_episodes: Option<f64>,
    /// Largest share of the agents that die in such an episode.
    #[arg(long, value_name = "SHARE")]
    pub deaths: Option<f64>,
    /// They die within this first share of an episode.
    #[arg(long, value_name = "SHARE")]
    pub deaths_by: Option<f64>,
    /// Largest standard deviation of sensor noise.
    #[arg(long, value_name = "SD")]
    pub sensor_noise: Option<f64>,
    /// Largest standard deviation of actuator noise.
    #[arg(long, value_name = "SD")]
    pub actuator_noise: Option<f64>,
    /// Most steps by which actions come late.
    #[arg(long, value_name = "STEPS")]
    pub delay: Option<usize>,
    /// Train with this scenario too, in which a swarm was found to fail (found.toml of agent-sim hunt); may be
    /// given several times.
    #[arg(long, value_name = "SCENARIO")]
    pub hard: Vec<PathBuf>,
    /// Share of the episodes that are such scenarios [default: 0.25].
    #[arg(long, value_name = "SHARE", requires = "hard")]
    pub hard_share: Option<f64>,
    /// Stop after so many validations without a better one; 0 for never [default: 0].
    #[arg(long, value_name = "N")]
    pub patience: Option<u64>,
    /// How often to go back to the last good state, with half the learning rate, when the loss stops
    /// being a number; then training stops [default: 3].
    #[arg(long, value_name = "N")]
    pub retreats: Option<u32>,
}

/// A run that has all the steps that were asked for.
#[derive(Debug, thiserror::Error)]
#[error("the run in '{}' already has {steps} steps; give more with --steps", folder.display())]
pub struct AlreadyTrained {
    folder: PathBuf,
    /// How many those are.
    pub steps: u64,
}

/// A training that can begin.
pub struct Opened {
    /// It, and where it is kept.
    pub run: TrainingRun,
    /// Optimiser steps in all.
    pub steps: u64,
    /// Where its rollouts run.
    pub engine: String,
}

impl Options {
    /// Refuses numbers that no training can use.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("--steps", self.steps, 1..=TRAINING_STEPS.most),
            ("--batch", self.batch, 1..=BATCH.most),
            ("--window", self.window, 1..=MAX_WINDOW),
            ("--memory", self.memory, 0..=MAX_MEMORY),
            ("--delay", self.delay, 0..=STEPS.most),
        ];
        for (flag, value, range) in counts {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                let (least, most) = (range.start(), range.end());
                bail!("{flag} {value} is not usable; give a number from {least} to {most}");
            }
        }
        let least =
            |flag, value: Option<f64>, least: f64, example| (flag, value, least..f64::MAX, example);
        let share = |flag, value| (flag, value, 0.0..1.0 + f64::EPSILON, 0.3);
        let numbers = [
            least("--lr", self.lr, f64::MIN_POSITIVE, 0.001),
            least("--scatter", self.scatter, 0.0, 0.05),
            least("--sensor-noise", self.sensor_noise, 0.0, 0.01),
            least("--actuator-noise", self.actuator_noise, 0.0, 0.02),
            share("--deadly-episodes", self.deadly_episodes),
            share("--deaths", self.deaths),
            share("--deaths-by", self.deaths_by),
            share("--hard-share", self.hard_share),
        ];
        for (flag, value, range, example) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                bail!("{flag} {value} is not usable; try {example}");
            }
        }
        Ok(())
    }

    /// Refuses what belongs to agents that each carry a policy.
    fn check_centralised(&self, problem: &Problem) -> Result<()> {
        let given = [
            ("--window", self.window.is_some()),
            ("--memory", self.memory.is_some()),
            ("--rests", self.rests),
            ("--from", self.from.is_some()),
            ("--hard", !self.hard.is_empty()),
        ];
        for (flag, given) in given {
            ensure!(
                !given,
                "{flag} is for policies, which agents carry; with --centralised one network decides for all: leave it out"
            );
        }
        ensure!(
            self.backend != Backend::Gpu,
            "--backend gpu has kernels for policies alone; train with --centralised on the CPU: leave it out"
        );
        ensure!(
            self.agents.len() < 2 && self.agents.iter().all(|size| size.is_one_number()),
            "--centralised is for one number of agents, which is built into the network; give --agents {}",
            problem.agents
        );
        ensure!(
            problem.kit.is_none(),
            "--centralised is for fields written in Rust; {} is described by a file, whose sensors, edges and actuators it is \
             not told: train a policy, or compare with --controller proportional",
            problem.name
        );
        Ok(())
    }

    /// Opens the training of an entry that these ask for, in the folder of runs `out`.
    pub fn open(&self, entry: &'static Entry, out: &Path, existing: Existing) -> Result<Opened> {
        self.open_with(Ranks::ALONE, entry, out, existing)
    }

    /// The same for a training that several processes share, each of which opens it.
    pub fn open_with(
        &self,
        ranks: Ranks,
        entry: &'static Entry,
        out: &Path,
        existing: Existing,
    ) -> Result<Opened> {
        self.check()?;
        if self.centralised {
            self.check_centralised(entry.problem)?;
        }
        ensure!(
            self.from.is_none() || existing != Existing::Resume,
            "--from begins a training anew and --resume goes on with one; give one of them"
        );
        let engine = self.backend.open_for(ranks)?;
        let recipe = self.recipe(entry)?;
        let steps = recipe.steps;
        let hunted = self.hunted()?;
        let change = |config: &mut TrainConfig| self.change(config, &hunted);
        if ranks.of() > 1 {
            let mut config = recipe.train.clone();
            change(&mut config);
            let asked = (&config, &recipe.policy, steps, &recipe.start);
            let place = (out, self.backend);
            ranks.agree(&[
                (
                    "program",
                    format!("{} {}", env!("CARGO_PKG_VERSION"), export::REVISION),
                ),
                ("problem", described(entry)?),
                ("settings", serde_json::to_string(&asked)?),
                ("folder or backend", format!("{place:?}")),
            ])?;
        }
        let run = TrainingRun::open(entry, out, existing, recipe, change, &engine)?;
        self.same_network(&run.trainer().policy_config, run.folder())?;
        if run.trainer().step >= steps {
            bail!(AlreadyTrained {
                folder: run.folder().to_owned(),
                steps: run.trainer().step,
            });
        }
        Ok(Opened {
            run,
            steps,
            engine: engine.name(),
        })
    }

    /// Refuses to resume a training of another network than was asked for.
    fn same_network(&self, of: &PolicyConfig, folder: &Path) -> Result<()> {
        let folder = folder.display();
        let asked = [
            ("--window", self.window, of.sight.window),
            ("--memory", self.memory, of.shape.memory),
        ];
        for (flag, asked, has) in asked {
            if let Some(asked) = asked.filter(|asked| *asked != has) {
                bail!(
                    "the run in '{folder}' has {flag} {has}, not {asked}; resume it without {flag}, or start over \
                     with --overwrite"
                );
            }
        }
        if self.rests && !of.shape.rests {
            bail!(
                "the run in '{folder}' was begun without --rests; resume it without, or start over with --overwrite"
            );
        }
        Ok(())
    }

    /// Changes a preset's settings to those asked for.
    fn change(&self, config: &mut TrainConfig, hunted: &[String]) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        set(&mut config.seed, &self.seed);
        set(&mut config.batch, &self.batch);
        set(config.schedule.rate_mut(), &self.lr);
        set(&mut config.patience, &self.patience);
        set(&mut config.retreats, &self.retreats);
        let hardening = &mut config.hardening;
        set(&mut hardening.scatter, &self.scatter);
        set(&mut hardening.deadly_episodes, &self.deadly_episodes);
        set(&mut hardening.deaths, &self.deaths);
        set(&mut hardening.deaths_by, &self.deaths_by);
        set(&mut hardening.sensor_noise, &self.sensor_noise);
        set(&mut hardening.actuator_noise, &self.actuator_noise);
        set(&mut hardening.delay, &self.delay);
        set(&mut hardening.hunted_share, &self.hard_share);
        if !hunted.is_empty() {
            hardening.hunted = hunted.to_vec();
        }
        if !self.agents.is_empty() {
            hardening.agents = self.agents.clone();
        }
        if !self.physics.is_empty() {
            hardening.physics = self.physics.clone();
        }
        for &(term, weight) in &self.weights {
            config.weights[term as usize] = weight;
        }
    }

    /// The texts of hunted scenarios.
    fn hunted(&self) -> Result<Vec<String>> {
        let read = |path: &PathBuf| {
            input::read_text(path, input::SCENARIO).with_context(|| {
                format!(
                    "cannot read '{}'; give --hard the found.toml of agent-sim hunt",
                    path.display()
                )
            })
        };
        self.hard.iter().map(read).collect()
    }

    fn recipe(&self, entry: &Entry) -> Result<Recipe> {
        let problem = entry.problem;
        Family::new(problem, &self.physics).context("--physics")?;
        let mut recipe = match self.centralised {
            false => entry.recipe.preset(problem, self.preset),
            true => {
                let agents = self
                    .agents
                    .first()
                    .map_or(problem.agents, |size| size.most());
                entry.recipe.centralised(problem, self.preset, agents)
            }
        };
        if let Some(steps) = self.steps {
            recipe.set_steps(steps as u64);
        }
        let PolicyConfig { shape, sight } = &mut recipe.policy;
        if let Some(window) = self.window {
            sight.window = window;
            shape.features = sight.features(shape.axes);
        }
        if let Some(memory) = self.memory {
            shape.memory = memory;
        }
        let inputs = shape.inputs();
        ensure!(
            inputs <= MAX_WIDTH || self.centralised,
            "agents with a window of {} cells would read {inputs} values, more than the {MAX_WIDTH} that a policy can; \
             give a smaller --window",
            sight.window
        );
        if self.rests {
            *shape = shape.clone().resting();
        }
        if let Some(path) = &self.from {
            let shown = path.display().to_string();
            let bytes = input::read(path, input::POLICY).with_context(|| {
                format!("cannot read policy '{shown}'; give --from the path of an exported policy")
            })?;
            let file = PolicyFile::new(&bytes, shown.clone());
            let start = export::thaw(&file.parse()?, problem, &recipe.policy);
            let start = start.with_context(|| format!("cannot train '{shown}' further"))?;
            recipe.start = Some(start);
        }
        Ok(recipe)
    }
}

/// All that a problem's name does not say.
fn described(entry: &Entry) -> Result<String> {
    let problem = entry.problem;
    let Some(kit) = problem.kit else {
        return Ok(problem.name.to_owned());
    };
    let path = kit.path.display();
    let text = input::read_text(&kit.path, input::DESCRIPTION);
    let text = text.with_context(|| format!("cannot read '{path}'"))?;
    // Maps stand in files of their own.
    Ok(format!("{text}{kit:?}"))
}

/// A term of the loss and its weight, as `TERM=NUMBER`.
pub fn weight(text: &str) -> Result<(Term, f64), String> {
    let parse = || {
        let (name, weight) = text.split_once('=')?;
        let term = Term::ALL.into_iter().find(|t| t.name() == name)?;
        let weight: f64 = weight.parse().ok()?;
        (weight.is_finite() && weight >= 0.0).then_some((term, weight))
    };
    parse().ok_or_else(|| {
        format!(
            "'{text}' is no weight; give TERM=NUMBER with one of: {}",
            Term::ALL.map(Term::name).join(", ")
        )
    })
}

/// The choice of that name: a preset, a backend.
pub fn choice<T: ValueEnum>(what: &str, name: &str) -> Result<T, String> {
    T::from_str(name, false).map_err(|_| {
        let known = T::value_variants().iter().filter_map(T::to_possible_value);
        let known: Vec<_> = known.map(|choice| choice.get_name().to_owned()).collect();
        format!(
            "there is no {what} '{name}'; choose one of: {}",
            known.join(", ")
        )
    })
}
