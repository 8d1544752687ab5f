//! The trainer's command line.
#![forbid(unsafe_code)]

use agent_sim::problem;
use anyhow::{Context, Result, bail};
use burn::tensor::Device;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trainer::checkpoint::Checkpoint;
use trainer::export;
use trainer::learn;
use trainer::loss::Term;
use trainer::run::{Existing, Outcome, Run};
use trainer::store::write_atomically;

/// Learns one shared policy for a swarm by differentiating through the field it controls.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  trainer train heat-1d                              train with the published settings
  trainer train heat-1d --resume                     go on after an interruption
  trainer export runs/heat-1d/best -o my.policy      freeze the best policy for agents
  trainer inspect my.policy                          what is in it"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a policy; checkpoints, report.json and loss.svg go to <OUT>/<PROBLEM>/.
    #[command(after_help = "\
Examples:
  trainer train heat-1d
  trainer train heat-1d --steps 500 --seed 3 --out runs/short
  trainer train heat-1d --resume --steps 20000       train a finished run further
  trainer train heat-1d --overwrite                  start over")]
    Train(TrainArguments),
    /// Freeze the policy of a checkpoint into a blob for agents.
    #[command(after_help = "Example:\n  trainer export runs/heat-1d/best -o my.policy")]
    Export {
        /// A run's `best` or `latest` file.
        checkpoint: PathBuf,
        /// The blob to write.
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Print what a policy blob holds.
    #[command(after_help = "Example:\n  trainer inspect my.policy")]
    Inspect {
        /// The blob.
        policy: PathBuf,
    },
}

#[derive(clap::Args)]
struct TrainArguments {
    /// The control problem, e.g. heat-1d.
    problem: String,
    /// Where tensors live.
    #[arg(long, value_enum, default_value_t = Backend::default())]
    backend: Backend,
    /// Optimiser steps in all.
    #[arg(long, default_value_t = DEFAULT_STEPS, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Episodes per step [default: 32].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65536))]
    batch: Option<u32>,
    /// Seed of the initial weights and of all episodes [default: 0].
    #[arg(long)]
    seed: Option<u64>,
    /// Learning rate of the first step [default: 0.001].
    #[arg(long, allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Swarm sizes to train with, each step drawing one; a size named twice is drawn twice as
    /// often [default: the problem's].
    #[arg(long, value_delimiter = ',', value_name = "N,N,…", value_parser = clap::value_parser!(u32).range(1..=4096))]
    agents: Vec<u32>,
    /// Weight of the effort in the loss [default: the problem's].
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    effort_weight: Option<f64>,
    /// Weight of the error after the last step, besides the published terms [default: 0].
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    final_weight: Option<f64>,
    /// Folder of runs.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Continue the run in the folder.
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Replace the run in the folder.
    #[arg(long)]
    overwrite: bool,
    /// Threads; 0 for one per core. Results do not depend on it.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// As published; about a minute on two cores.
const DEFAULT_STEPS: u64 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Backend {
    /// Burn's CPU backend.
    #[cfg_attr(feature = "flex", default)]
    Flex,
    /// Burn's older CPU backend.
    #[cfg_attr(all(feature = "ndarray", not(feature = "flex")), default)]
    Ndarray,
    /// A GPU, through wgpu; plain tensor operations, not the fused rollout.
    #[cfg_attr(not(any(feature = "ndarray", feature = "flex")), default)]
    Wgpu,
}

impl Backend {
    fn open(self) -> Result<Device> {
        match self {
            #[cfg(feature = "flex")]
            Backend::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated)]
            Backend::Ndarray => Ok(Device::ndarray()),
                learn::Differentiation::Plain,
            )),
            #[allow(unreachable_patterns)]
            missing => {
                let name = missing
                    .to_possible_value()
                    .map_or_else(String::new, |v| v.get_name().to_owned());
                bail!(
                    "this trainer was built without the {name} backend; build it with --features {name}, or choose another --backend"
                )
            }
        }
    }
}

fn train(arguments: TrainArguments) -> Result<()> {
    let problem = problem::by_name(&arguments.problem)?;
    let numbers = [
        ("--lr", arguments.lr, 0.001, f64::MIN_POSITIVE),
        ("--effort-weight", arguments.effort_weight, 0.001, 0.0),
        ("--final-weight", arguments.final_weight, 1.0, 0.0),
    ];
    for (flag, value, example, least) in numbers {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= least)) {
            bail!("{flag} {value} is not usable; try {example}");
        }
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads)
        .build_global()?;
    let device = arguments.backend.open()?;
    let existing = match (arguments.resume, arguments.overwrite) {
        (true, _) => Existing::Resume,
        (_, true) => Existing::Overwrite,
        _ => Existing::Keep,
    };
    let change = |config: &mut learn::TrainConfig| {
        config.seed = arguments.seed.unwrap_or(config.seed);
        config.batch = arguments.batch.map_or(config.batch, |b| b as usize);
        if let Some(lr) = arguments.lr {
            *config.schedule.rate_mut() = lr;
        }
        for (term, weight) in [
            (Term::Effort, arguments.effort_weight),
            (Term::Final, arguments.final_weight),
        ] {
            if let Some(weight) = weight {
                config.weights[term as usize] = weight;
            }
        }
        if !arguments.agents.is_empty() {
            config.hardening.agents = arguments.agents.iter().map(|&n| n as usize).collect();
        }
    };
    let recipe = trainer::recipe::of(problem);
    let mut run = Run::open(
        problem,
        &arguments.out,
        existing,
        recipe,
        change,
        &device,
    )?;
    let (folder, begun) = (run.folder().display().to_string(), run.trainer().step);
    if begun >= arguments.steps {
        bail!("the run in '{folder}' already has {begun} steps; give more with --steps");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("cannot listen for interrupts")?;
    eprintln!(
        "training {} on {:?}: {} parameters, steps {begun} to {}, into {folder}",
        problem.name,
        arguments.backend,
        run.trainer().policy_config.shape.parameters(),
        arguments.steps
    );
    let outcome = run.train(arguments.steps, &stop)?;
    let step = run.trainer().step;
    if outcome == Outcome::Interrupted {
        bail!("stopped at step {step}; the state is in '{folder}/latest', continue with --resume");
    }
    let headline = run.trainer().headline();
    if let Some(best) = run.trainer().history.best(headline) {
        println!(
            "best validation: {:.3e} at step {}",
            best.score(headline),
            best.step
        );
    }
    println!(
        "policy: {folder}/best    loss curve: {folder}/loss.svg    report: {folder}/report.json"
    );
    println!("next: trainer export {folder}/best -o my.policy");
    Ok(())
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Train(arguments) => train(arguments),
        Command::Export { checkpoint, output } => {
            let loaded = Checkpoint::load(&checkpoint)?;
            let device = Backend::default().open()?;
            let blob = export::from_checkpoint(loaded, &device)
                .with_context(|| format!("cannot export '{}'", checkpoint.display()))?;
            write_atomically(&output, &blob)?;
            println!(
                "{}: {} bytes; look inside with: trainer inspect {0}",
                output.display(),
                blob.len()
            );
            Ok(())
        }
        Command::Inspect { policy } => {
            let shown = policy.display();
            let blob = std::fs::read(&policy).with_context(|| {
                format!("cannot read policy '{shown}'; give the path of an exported policy")
            })?;
            let text = export::describe(&blob).with_context(|| {
                format!("'{shown}' is not a policy this trainer can read; export it again")
            })?;
            print!("{text}");
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
