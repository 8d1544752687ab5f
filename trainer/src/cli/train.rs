//! `trainer train`.

use super::backend::Backend;
use super::use_threads;
use crate::entry::{Entries, Entry};
use crate::export;
use crate::family::{Family, Spread};
use crate::learn::TrainConfig;
use crate::loss::Term;
use crate::policy::PolicyConfig;
use crate::recipe::{self, Recipe};
use crate::run::{Existing, Outcome, TrainingRun};
use crate::swarm::Size;
use agent_core::policy::MAX_MEMORY;
use anyhow::{Context, Result, bail};
use artifacts::policy_file::PolicyFile;
use artifacts::say;
use clap::ValueEnum;
use problem::input;
use problem::limit::{BATCH, STEPS, TRAINING_STEPS};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The settings start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Those of the shipped policies.
    Full,
    /// A usable policy in about a minute on two cores.
    Quick,
    /// The published window, loss and schedule.
    Published,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer train heat-1d
  trainer train heat-1d --preset quick
  trainer train heat-1d --steps 500 --seed 3 --out runs/short
  trainer train heat-1d --agents 3..64 --deadly-episodes 0.5 --deaths 0.5
  trainer train fkpp-1d --physics nu=0.0025..0.01,rho=1.5..6   one policy for a family of fields
  trainer train heat-1d --resume --steps 20000       train a finished run further
  trainer train heat-1d --overwrite                  start over
  trainer train heat-1d --from my.policy --lr 2e-4   train an exported policy further
  trainer train --all --resume                       all problems; goes on where it stopped")]
pub struct Arguments {
    /// The control problem, e.g. heat-1d.
    #[arg(required_unless_present = "all")]
    problem: Option<String>,
    /// Train every problem, one after the other.
    #[arg(long, conflicts_with = "problem")]
    all: bool,
    /// Which settings to start from; the flags below change them.
    #[arg(long, value_enum, default_value_t = Preset::Full)]
    preset: Preset,
    /// Where rollouts run.
    #[arg(long, value_enum, default_value_t = Backend::default())]
    backend: Backend,
    /// Begin with the weights of this policy (f32) instead of random ones, be it another problem's; a
    /// smaller --lr keeps more of what it can.
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["all", "resume"])]
    from: Option<PathBuf>,
    /// Optimiser steps in all [default: the preset's].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=TRAINING_STEPS.most as u64))]
    steps: Option<u64>,
    /// Episodes per step [default: the preset's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=BATCH.most as i64))]
    batch: Option<u32>,
    /// Seed of the initial weights and of all episodes [default: 0].
    #[arg(long)]
    seed: Option<u64>,
    /// Cells along each axis of the window that agents see [default: the preset's].
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u16).range(1..=64))]
    window: Option<u16>,
    /// Numbers that every agent remembers from step to step, at most 16 [default: the preset's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=MAX_MEMORY as i64))]
    memory: Option<u8>,
    /// Agents do nothing where they see no error and remember none, by construction; what they do where they
    /// see one is then as much the opposite where they see its opposite.
    #[arg(long)]
    rests: bool,
    /// Highest learning rate [default: the preset's].
    #[arg(long, allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Swarm sizes to train with, each episode drawing one: numbers and ranges, such as 8 or 3..64; one
    /// named twice is drawn twice as often [default: the preset's].
    #[arg(long, value_delimiter = ',', value_name = "N|N..M,…")]
    agents: Vec<Size>,
    /// Coefficients of the equation, each a value or a range of which every episode draws its own, evenly on
    /// a logarithmic scale, e.g. nu=0.004 or nu=0.0025..0.01,rho=1.5..6 [default: as published; agent-sim
    /// problems lists them].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=VALUE|NAME=LEAST..MOST,…",
        conflicts_with = "all"
    )]
    physics: Vec<Spread>,
    /// Weight of a term of the loss, e.g. effort=1e-3; may be given several times. Terms: track,
    /// effort, bound, collision, acceleration, final, obstacle, centroid, late, order.
    #[arg(long = "weight", value_name = "TERM=WEIGHT")]
    weights: Vec<String>,
    /// Agents start up to this far from their place along each axis.
    #[arg(long, value_name = "LENGTH")]
    scatter: Option<f64>,
    /// Share of the episodes in which agents die.
    #[arg(long, value_name = "SHARE")]
    deadly_episodes: Option<f64>,
    /// Largest share of the agents that die in such an episode.
    #[arg(long, value_name = "SHARE")]
    deaths: Option<f64>,
    /// They die within this first share of an episode.
    #[arg(long, value_name = "SHARE")]
    deaths_by: Option<f64>,
    /// Largest standard deviation of sensor noise.
    #[arg(long, value_name = "SD")]
    sensor_noise: Option<f64>,
    /// Largest standard deviation of actuator noise.
    #[arg(long, value_name = "SD")]
    actuator_noise: Option<f64>,
    /// Most steps by which actions come late.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(0..=STEPS.most as i64))]
    delay: Option<u32>,
    /// Stop after so many validations without a better one; 0 for never [default: 0].
    #[arg(long, value_name = "N")]
    patience: Option<u64>,
    /// How often to go back to the last good state, with half the learning rate, when the loss stops
    /// being a number; then training stops [default: 3].
    #[arg(long, value_name = "N")]
    retreats: Option<u32>,
    /// Folder of runs.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Continue the run in the folder; with --all, begin those that have not begun.
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Replace the run in the folder.
    #[arg(long)]
    overwrite: bool,
    /// Threads; 0 for one per core. Results do not depend on it.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

impl Arguments {
    /// Refuses to resume a training of another network than was asked for.
    fn same_network(&self, of: &PolicyConfig, folder: &str) -> Result<()> {
        let asked = [
            ("--window", self.window.map(usize::from), of.sight.window),
            ("--memory", self.memory.map(usize::from), of.shape.memory),
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

    /// Refuses numbers that no training can use.
    fn check(&self) -> Result<()> {
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
        ];
        for (flag, value, range, example) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                bail!("{flag} {value} is not usable; try {example}");
            }
        }
        Ok(())
    }

    /// The terms and weights given.
    fn weights(&self) -> Result<Vec<(Term, f64)>> {
        let parse = |text: &String| {
            let (name, weight) = text.split_once('=')?;
            let term = Term::ALL.into_iter().find(|t| t.name() == name)?;
            let weight: f64 = weight.parse().ok()?;
            (weight.is_finite() && weight >= 0.0).then_some((term, weight))
        };
        let known = || Term::ALL.map(Term::name).join(", ");
        (self.weights.iter())
            .map(|text| {
                parse(text).with_context(|| {
                    format!(
                        "--weight {text} is not usable; give TERM=NUMBER with one of: {}",
                        known()
                    )
                })
            })
            .collect()
    }

    /// Changes a preset's settings to those asked for.
    fn change(&self, config: &mut TrainConfig, weights: &[(Term, f64)]) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        set(&mut config.seed, &self.seed);
        set(&mut config.batch, &self.batch.map(|b| b as usize));
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
        set(
            &mut hardening.delay,
            &self.delay.map(|steps| steps as usize),
        );
        if !self.agents.is_empty() {
            hardening.agents = self.agents.clone();
        }
        if !self.physics.is_empty() {
            hardening.physics = self.physics.clone();
        }
        for &(term, weight) in weights {
            config.weights[term as usize] = weight;
        }
    }

    fn recipe(&self, entry: &Entry) -> Result<Recipe> {
        let problem = entry.problem;
        Family::new(problem, &self.physics).context("--physics")?;
        let preset = match self.preset {
            Preset::Full => recipe::Preset::Full,
            Preset::Quick => recipe::Preset::Quick,
            Preset::Published => recipe::Preset::Published,
        };
        let mut recipe = entry.recipe.preset(problem, preset);
        if let Some(steps) = self.steps {
            recipe.set_steps(steps);
        }
        let PolicyConfig { shape, sight } = &mut recipe.policy;
        if let Some(window) = self.window {
            sight.window = usize::from(window);
            shape.features = sight.features(shape.axes);
        }
        if let Some(memory) = self.memory {
            shape.memory = usize::from(memory);
        }
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

/// Trains what was asked for.
pub fn run(arguments: Arguments, entries: &Entries) -> Result<()> {
    arguments.check()?;
    let chosen = match &arguments.problem {
        Some(name) => vec![entries.by_name(name)?],
        None => entries.iter().collect(),
    };
    use_threads(arguments.threads)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("cannot listen for interrupts")?;
    for entry in chosen {
        train(entry, &arguments, &stop).with_context(|| entry.problem.name)?;
    }
    Ok(())
}

fn train(entry: &'static Entry, arguments: &Arguments, stop: &AtomicBool) -> Result<()> {
    let problem = entry.problem;
    let engine = arguments.backend.open()?;
    let begun = arguments.out.join(problem.name).join("latest").exists();
    let existing = match (arguments.resume, arguments.overwrite) {
        (true, _) if begun || !arguments.all => Existing::Resume,
        (_, true) => Existing::Overwrite,
        _ => Existing::Keep,
    };
    let weights = arguments.weights()?;
    let recipe = arguments.recipe(entry)?;
    let steps = recipe.steps;
    let change = |config: &mut TrainConfig| arguments.change(config, &weights);
    let mut run = TrainingRun::open(entry, &arguments.out, existing, recipe, change, &engine)?;
    let (folder, begun) = (run.folder().display().to_string(), run.trainer().step);
    arguments.same_network(&run.trainer().policy_config, &folder)?;
    if begun >= steps {
        if arguments.all {
            eprintln!("{}: already trained for {begun} steps", problem.name);
            return Ok(());
        }
        bail!("the run in '{folder}' already has {begun} steps; give more with --steps");
    }
    eprintln!(
        "training {} on {}: {} parameters, steps {begun} to {steps}, into {folder}",
        problem.name,
        engine.name(),
        run.trainer().policy_config.shape.parameters(),
    );
    let outcome = run.train(steps, stop)?;
    let (step, headline) = (run.trainer().step, run.trainer().headline());
    match outcome {
        Outcome::Finished => {}
        Outcome::Stale => eprintln!("stopped at step {step}: no better validation for a while"),
        Outcome::Interrupted => bail!(
            "stopped at step {step}; the state is in '{folder}/latest', continue with --resume"
        ),
    }
    if let Some(best) = run.trainer().history.best(headline) {
        say!(
            "{}: best validation {:.3e} at step {}",
            problem.name,
            best.score(headline),
            best.step
        )?;
    }
    say!("policy: {folder}/best    loss curve: {folder}/loss.svg    report: {folder}/report.json")?;
    say!("next: trainer export {folder}/best -o my.policy")?;
    Ok(())
}
