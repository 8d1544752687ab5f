//! `trainer bench`: seconds per training step, by itself or beside JAX.

use super::backend::Backend;
use super::use_threads;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use problem::Problem;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use trainer::learn::{Hardening, Trainer};
use trainer::recipe::{self, Preset};

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
    /// The control problems [default: all but heat-2d-obstacles, whose step is heat-2d's].
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
pub fn run(arguments: Arguments) -> Result<()> {
    use_threads(arguments.threads)?;
    let problems: Vec<&'static Problem> = match arguments.problems.as_slice() {
        [] => (problem::published::ALL.into_iter())
            .filter(|p| p.name != "heat-2d-obstacles")
            .collect(),
        names => names
            .iter()
            .map(|n| problem::published::by_name(n))
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
    for problem in problems {
        bench(problem, &arguments)?;
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
    fn of(problem: &Problem) -> Self {
        Self {
            batch: recipe::preset(problem, Preset::Published).train.batch,
            agents: match problem.name {
                "density-2d" => 16,
                _ => problem.agents,
            },
            horizon: match problem.name {
                "heat-2d" | "heat-2d-obstacles" => 300,
                _ => problem.horizon,
            },
        }
    }
}

fn bench(problem: &'static Problem, arguments: &Arguments) -> Result<()> {
    let sizes = Sizes::of(problem);
    let plane = problem.grid.axes == 2;
    let mut ours = stepper(problem, Preset::Published, sizes, arguments)?;
    let (mut own, mut same, mut conv) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        own.extend(time(&mut ours, arguments.reps)?);
        if !arguments.against_jax {
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
    let mut shipped = stepper(problem, Preset::Full, sizes, arguments)?;
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
    problem: &'static Problem,
    preset: Preset,
    sizes: Sizes,
    arguments: &Arguments,
) -> Result<Trainer> {
    let mut recipe = recipe::preset(problem, preset);
    recipe.train.batch = sizes.batch;
    recipe.train.horizon = sizes.horizon;
    recipe.train.pool = recipe.train.pool.min(sizes.batch);
    recipe.train.validation_episodes = 0;
    recipe.train.hardening = Hardening {
        agents: vec![sizes.agents],
        ..Hardening::none(problem)
    };
    let device = arguments.backend.open()?;
    #[allow(unused_mut)]
    let mut trainer = Trainer::new(problem, recipe.train, recipe.policy, &device)?;
    #[cfg(feature = "gpu")]
    if let Some(gpu) = arguments.backend.gpu()? {
        trainer.use_gpu(&gpu)?;
    }
    Ok(trainer)
}

/// Seconds of each step; the first, which pays for buffers, is not counted.
fn time(trainer: &mut Trainer, reps: u32) -> Result<Vec<f64>> {
    let batch = trainer.draw();
    trainer.learn(batch.clone())?;
    (0..reps)
        .map(|_| {
            let began = Instant::now();
            trainer.learn(batch.clone())?;
            Ok(began.elapsed().as_secs_f64())
        })
        .collect()
}

/// The reference's median.
fn jax(problem: &Problem, sizes: Sizes, arguments: &Arguments, dense: bool) -> Result<f64> {
    let mut command = Command::new(&arguments.python);
    command
        .arg(&arguments.script)
        .arg(problem.name)
        .arg("--json");
    for (flag, value) in [
        ("--reps", arguments.reps as usize),
        ("--batch", sizes.batch),
        ("--agents", sizes.agents),
        ("--horizon", sizes.horizon),
    ] {
        command.args([flag, &value.to_string()]);
    }
    if dense {
        command.arg("--dense");
    }
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
    let report: Value = serde_json::from_slice(&output.stdout)
        .context("the reference did not print one JSON object")?;
    report["median_s"]
        .as_f64()
        .context("the reference's report has no median_s")
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
