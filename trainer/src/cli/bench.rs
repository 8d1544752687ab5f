//! `trainer bench`: seconds per training step, by itself or beside JAX.

use super::backend::Backend;
use super::use_threads;
use crate::entry::{Entries, Entry};
use crate::learn::{Hardening, Trainer};
use crate::recipe::Preset;
use crate::swarm::Size;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use problem::Problem;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Networks of the reference on planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JaxNet {
    /// Ours.
    Same,
    /// The published convolutions.
    Published,
    /// Each in its turn.
    Both,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer bench
  trainer bench heat-1d ks-2d --against-jax
  trainer bench --against-jax --python .venv/bin/python")]
pub struct Arguments {
    /// The control problems [default: all].
    problems: Vec<String>,
    /// Also run bench/jax_reference.py, by turns with ours.
    #[arg(long)]
    against_jax: bool,
    /// Which networks JAX has on planes.
    #[arg(long, value_enum, default_value_t = JaxNet::Both)]
    jax_net: JaxNet,
    /// The Python that has JAX.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The JAX program.
    #[arg(long, default_value = "bench/jax_reference.py")]
    script: PathBuf,
    /// Where rollouts run.
    #[arg(long, value_enum, default_value_t = Backend::default())]
    backend: Backend,
    /// Turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Timed steps per turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    reps: u32,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Times training steps and prints the table.
pub fn run(arguments: Arguments, entries: &Entries) -> Result<()> {
    use_threads(arguments.threads)?;
    let chosen: Vec<&'static Entry> = match arguments.problems.as_slice() {
        [] => entries.iter().collect(),
        names => names
            .iter()
            .map(|name| entries.by_name(name))
            .collect::<Result<_, _>>()?,
    };
    println!(
        "seconds per training step, median of {} × {} steps; net: ours with the published window, which JAX (same net) \
         has too; the shipped policy's net; JAX with the published convolutions on planes",
        arguments.rounds, arguments.reps
    );
    println!(
        "{:<15}{:>6}{:>7}{:>6}{:>11}{:>11}{:>11}{:>8}{:>11}{:>8}{:>11}",
        "problem",
        "batch",
        "agents",
        "steps",
        "ours",
        "shipped",
        "JAX same",
        "ratio",
        "JAX conv",
        "ratio",
        "our memory"
    );
    // The reference has the published equations: not those of users, and obstacles cost it nothing.
    let compared = match arguments.against_jax {
        true => reference(&arguments, &["--list"])?,
        false => String::new(),
    };
    for entry in chosen {
        let known = compared.lines().any(|name| name == entry.problem.name);
        bench(entry, &arguments, known)?;
    }
    Ok(())
}

/// The shapes of a training step.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    agents: usize,
    horizon: usize,
}

impl Sizes {
    /// The reference's, which are those of the authors' training.
    fn of(entry: &Entry) -> Self {
        let (problem, authors) = (entry.problem, entry.recipe.authors);
        Self {
            batch: authors.batch,
            agents: authors.agents.unwrap_or(problem.agents),
            horizon: authors.horizon.unwrap_or(problem.horizon),
        }
    }
}

fn bench(entry: &'static Entry, arguments: &Arguments, compared: bool) -> Result<()> {
    let (problem, sizes) = (entry.problem, Sizes::of(entry));
    let plane = problem.grid.axes == 2;
    let mut ours = stepper(entry, Preset::Published, sizes, arguments)?;
    let (mut own, mut same, mut conv) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        own.extend(time(&mut ours, arguments.reps)?);
        if !compared {
            continue;
        }
        if !plane || arguments.jax_net != JaxNet::Published {
            same.push(jax(problem, sizes, arguments, plane)?);
        }
        if plane && arguments.jax_net != JaxNet::Same {
            conv.push(jax(problem, sizes, arguments, false)?);
        }
    }
    drop(ours);
    let mut shipped = stepper(entry, Preset::Full, sizes, arguments)?;
    let shipped = median(time(&mut shipped, arguments.reps)?);
    let own = median(own);
    let beside = |theirs: Vec<f64>| match theirs.is_empty() {
        true => format!("{:>11}{:>8}", "–", "–"),
        false => {
            let theirs = median(theirs);
            format!("{theirs:>11.4}{:>8.2}", own / theirs)
        }
    };
    let Sizes {
        batch,
        agents,
        horizon,
    } = sizes;
    println!(
        "{:<15}{batch:>6}{agents:>7}{horizon:>6}{own:>11.4}{shipped:>11.4}{}{}{:>11}",
        problem.name,
        beside(same),
        beside(conv),
        peak_memory().map_or("–".to_owned(), |mib| format!("{mib:.0} MiB"))
    );
    Ok(())
}

/// A training whose steps take the reference's shapes.
fn stepper(
    entry: &'static Entry,
    preset: Preset,
    sizes: Sizes,
    arguments: &Arguments,
) -> Result<Trainer> {
    let problem = entry.problem;
    let mut recipe = entry.recipe.preset(problem, preset);
    recipe.train.batch = sizes.batch;
    recipe.train.horizon = sizes.horizon;
    recipe.train.pool = recipe.train.pool.min(sizes.batch);
    recipe.train.validation_episodes = 0;
    recipe.train.hardening = Hardening {
        agents: vec![Size::of(sizes.agents)],
        ..Hardening::none(problem)
    };
    let engine = arguments.backend.open()?;
    Trainer::new(entry, recipe.train, recipe.policy, &engine)
}

/// Seconds of each step; the first, which pays for buffers, is not counted.
fn time(trainer: &mut Trainer, reps: u32) -> Result<Vec<f64>> {
    let batch = trainer.draw();
    trainer.learn(&batch)?;
    (0..reps)
        .map(|_| {
            let began = Instant::now();
            trainer.learn(&batch)?;
            Ok(began.elapsed().as_secs_f64())
        })
        .collect()
}

/// The reference's median.
fn jax(problem: &Problem, sizes: Sizes, arguments: &Arguments, dense: bool) -> Result<f64> {
    let numbers = [
        ("--reps", arguments.reps as usize),
        ("--batch", sizes.batch),
        ("--agents", sizes.agents),
        ("--horizon", sizes.horizon),
    ];
    let numbers = numbers.map(|(flag, value)| format!("{flag}={value}"));
    let mut words = vec![problem.name, "--json"];
    words.extend(numbers.iter().map(String::as_str));
    words.extend(dense.then_some("--dense"));
    let report: Value = serde_json::from_str(&reference(arguments, &words)?)
        .context("the reference did not print one JSON object")?;
    report["median_s"]
        .as_f64()
        .context("the reference's report has no median_s")
}

/// What the reference prints.
fn reference(arguments: &Arguments, words: &[&str]) -> Result<String> {
    let mut command = Command::new(&arguments.python);
    command.arg(&arguments.script).args(words);
    let shown = arguments.python.display();
    let output = (command.output()).with_context(|| {
        format!("cannot start '{shown}'; give a Python that has JAX with --python")
    })?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("no message");
        bail!(
            "'{shown} {}' failed: {last}; it needs jax and numpy (pip install jax)",
            arguments.script.display()
        );
    }
    String::from_utf8(output.stdout).context("the reference did not print text")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The most memory this process has had, in MiB.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
