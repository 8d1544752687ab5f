//! `trainer bench`: seconds per training step, by itself, beside JAX or beside the same problem as a file.

use super::ranks::together;
use super::{scaling, use_threads};
use crate::adjoint::physics::{Batch, Gradients, Interval};
use crate::backend::Backend;
use crate::engine::Engine;
use crate::entry::{Entries, Entry};
use crate::learn::{Hardening, Trainer};
use crate::ranks::{PATIENCE, Ranks};
use crate::recipe::Preset;
use crate::swarm::Size;
use anyhow::{Context, Result, bail};
use artifacts::say;
use clap::ValueEnum;
use problem::Problem;
use problem::random_field::episode_rng;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Most turns, and steps of a turn: every timing is kept.
const MOST_TURNS: i64 = 10_000;

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
  trainer bench --against-jax --python .venv/bin/python
  trainer bench --against-files examples/fields/published --backend gpu
  mpirun -n 2 trainer bench fkpp-1d --ranks             (built with --features mpi)")]
pub struct Arguments {
    /// The control problems [default: all].
    problems: Vec<String>,
    /// Time the problems that files in this folder describe too, by turns, in training and simulation.
    #[arg(long, value_name = "FOLDER", conflicts_with = "against_jax")]
    against_files: Option<PathBuf>,
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
    /// Under mpirun: time steps of 1, 2, 4, … of the processes, beside a model.
    #[arg(long, conflicts_with_all = ["against_jax", "against_files"])]
    ranks: bool,
    /// Turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MOST_TURNS))]
    rounds: u32,
    /// Timed steps per turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=MOST_TURNS))]
    reps: u32,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Times training steps and prints the table.
pub fn run(arguments: Arguments, entries: &Entries) -> Result<()> {
    if arguments.ranks {
        return together(PATIENCE.as_secs(), |ranks, cores| {
            scaling(&arguments, entries, ranks, cores)
        });
    }
    use_threads(arguments.threads)?;
    let chosen = chosen(&arguments, entries)?;
    if let Some(folder) = &arguments.against_files {
        return against_files(&chosen, folder, entries, &arguments);
    }
    say!(
        "seconds per training step, median of {} × {} steps; net: ours with the published window, which JAX (same net) \
         has too; the shipped policy's net; JAX with the published convolutions on planes",
        arguments.rounds,
        arguments.reps
    )?;
    say!(
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
    )?;
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

fn chosen(arguments: &Arguments, entries: &Entries) -> Result<Vec<&'static Entry>> {
    match arguments.problems.as_slice() {
        [] => Ok(entries.iter().collect()),
        names => Ok(names
            .iter()
            .map(|name| entries.by_name(name))
            .collect::<Result<_, _>>()?),
    }
}

/// Each problem on more and more of the processes that were started.
fn scaling(arguments: &Arguments, entries: &Entries, ranks: Ranks, cores: usize) -> Result<()> {
    let threads = match arguments.threads {
        0 => cores,
        threads => threads,
    };
    use_threads(threads)?;
    let each = arguments.backend.open_nth(ranks.local())?;
    for entry in chosen(arguments, entries)? {
        let times = [arguments.rounds, arguments.reps];
        let threads = rayon::current_num_threads();
        scaling::run(entry, Sizes::of(entry), &each, ranks, threads, times)?;
    }
    Ok(())
}

/// The shapes of a training step.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub batch: usize,
    pub agents: usize,
    pub horizon: usize,
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
    let mut ours = stepper(entry, entry, Preset::Published, sizes, arguments)?;
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
    let mut shipped = stepper(entry, entry, Preset::Full, sizes, arguments)?;
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
    say!(
        "{:<15}{batch:>6}{agents:>7}{horizon:>6}{own:>11.4}{shipped:>11.4}{}{}{:>11}",
        problem.name,
        beside(same),
        beside(conv),
        peak_memory().map_or("–".to_owned(), |mib| format!("{mib:.0} MiB"))
    )?;
    Ok(())
}

/// What the general solver of files costs beside those written for one problem.
fn against_files(
    chosen: &[&'static Entry],
    folder: &Path,
    entries: &Entries,
    arguments: &Arguments,
) -> Result<()> {
    say!(
        "built in, and as a file: seconds per training step, microseconds of its field's part on the CPU (a step \
         forwards and back) and per simulated step; medians of {} × {}",
        arguments.rounds,
        arguments.reps
    )?;
    say!(
        "{:<20}{:>6}{:>7}{:>6}{:>11}{:>11}{:>8}{:>11}{:>11}{:>8}{:>11}{:>11}{:>8}",
        "problem",
        "batch",
        "agents",
        "steps",
        "training",
        "file",
        "ratio",
        "field",
        "file",
        "ratio",
        "simulation",
        "file",
        "ratio"
    )?;
    let mut found = false;
    for &entry in chosen {
        let path = folder.join(format!("{}.toml", entry.problem.name));
        if !path.exists() {
            continue;
        }
        found = true;
        let both = [entry, entries.by_name(&path.to_string_lossy())?];
        let sizes = Sizes::of(entry);
        let mut trainers = Vec::new();
        for of in both {
            trainers.push(stepper(of, entry, Preset::Published, sizes, arguments)?);
        }
        let [mut training, mut fields, mut simulation] = [(); 3].map(|()| [vec![], vec![]]);
        for _ in 0..arguments.rounds {
            for (which, trainer) in trainers.iter_mut().enumerate() {
                training[which].extend(time(trainer, arguments.reps)?);
                fields[which].extend(field_steps(both[which], arguments.reps)?);
                simulation[which].extend(simulate(both[which].problem, arguments.reps));
            }
        }
        let [ours, file] = training.map(median);
        let [ours_alone, file_alone] = fields.map(|times| 1e6 * median(times));
        let [truth, described] = simulation.map(|times| 1e6 * median(times));
        let Sizes {
            batch,
            agents,
            horizon,
        } = sizes;
        say!(
            "{:<20}{batch:>6}{agents:>7}{horizon:>6}{ours:>11.4}{file:>11.4}{:>8.2}{ours_alone:>11.2}{file_alone:>11.2}{:>8.2}{truth:>11.2}{described:>11.2}{:>8.2}",
            entry.problem.name,
            file / ours,
            file_alone / ours_alone,
            described / truth
        )?;
    }
    match found {
        true => Ok(()),
        false => bail!(
            "no file in {} has the name of a problem; name a folder with heat-1d.toml or others",
            folder.display()
        ),
    }
}

/// Seconds of one episode's step in training, forwards and back, without agents; each as the mean over an
/// episode.
fn field_steps(entry: &Entry, reps: u32) -> Result<Vec<f64>> {
    let problem = entry.problem;
    let Some(step) = entry.physics.step_by_hand::<f32>(problem) else {
        bail!("{} has no step by hand", problem.name);
    };
    let step = step?;
    let values = problem.state_len();
    let episode = (problem.draw)(problem, &mut episode_rng(0, 0));
    let forcing = vec![0.01 * problem.actuation.force_max as f32; values];
    let pull = vec![1.0; values];
    let [mut fields, mut next] = [episode.initial.clone(), vec![0.0; values]];
    let [mut g_fields, mut g_forcing] = [vec![0.0; values], vec![0.0; values]];
    let mut tape = vec![0.0; step.tape_len()];
    let mut scratch = vec![0.0; step.scratch_len()];
    let mut run = || {
        fields.copy_from_slice(&episode.initial);
        let began = Instant::now();
        for number in 0..problem.horizon {
            let batch = Batch {
                episodes: 1,
                step: number,
            };
            step.advance(batch, &fields, &forcing, &mut next, &mut tape, &mut scratch);
            let at = Interval {
                fields: &fields,
                forcing: &forcing,
                next: &next,
                tape: &tape,
            };
            let g = Gradients {
                next: &pull,
                fields: &mut g_fields,
                forcing: &mut g_forcing,
            };
            step.adjoint(batch, at, g, &mut scratch);
            std::mem::swap(&mut fields, &mut next);
        }
        began.elapsed().as_secs_f64() / problem.horizon as f64
    };
    Ok((0..10 * reps).map(|_| run()).collect())
}

/// Seconds of the truth's step, each as the mean over an episode.
fn simulate(problem: &Problem, reps: u32) -> Vec<f64> {
    let episode = (problem.draw)(problem, &mut episode_rng(0, 0));
    let mut stepper = (problem.stepper)(problem, 1);
    let force = vec![0.01 * problem.actuation.force_max; problem.state_len()];
    let mut run = || {
        let mut state: Vec<f64> = episode.initial.iter().map(|&z| f64::from(z)).collect();
        let began = Instant::now();
        for _ in 0..problem.horizon {
            stepper.step(&mut state, &force);
        }
        began.elapsed().as_secs_f64() / problem.horizon as f64
    };
    (0..10 * reps).map(|_| run()).collect()
}

/// A training whose steps take the reference's shapes, as the recipe of another entry has it.
fn stepper(
    entry: &'static Entry,
    like: &'static Entry,
    preset: Preset,
    sizes: Sizes,
    arguments: &Arguments,
) -> Result<Trainer> {
    stepper_as(&arguments.backend.open()?, entry, like, preset, sizes)
}

/// A training with the published settings, somewhere.
pub fn stepper_on(engine: &Engine, entry: &'static Entry, sizes: Sizes) -> Result<Trainer> {
    stepper_as(engine, entry, entry, Preset::Published, sizes)
}

fn stepper_as(
    engine: &Engine,
    entry: &'static Entry,
    like: &'static Entry,
    preset: Preset,
    sizes: Sizes,
) -> Result<Trainer> {
    let problem = entry.problem;
    let mut recipe = like.recipe.preset(like.problem, preset);
    recipe.train.batch = sizes.batch;
    recipe.train.horizon = sizes.horizon;
    recipe.train.pool = recipe.train.pool.min(sizes.batch);
    recipe.train.validation_episodes = 0;
    recipe.train.hardening = Hardening {
        agents: vec![Size::of(sizes.agents)],
        ..Hardening::none(problem)
    };
    Trainer::new(entry, recipe.train, recipe.policy, engine)
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
