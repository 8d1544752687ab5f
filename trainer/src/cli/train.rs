//! `trainer train`.

use super::progress::Progress;
use super::ranks::together;
use super::use_threads;
use crate::entry::{Entries, Entry};
use crate::ranks::{PATIENCE, Ranks};
use crate::run::{Existing, Outcome, folder};
use crate::training::{AlreadyTrained, Opened, Options};
use anyhow::{Context, Result, bail};
use artifacts::output::tell;
use artifacts::say;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
  trainer train heat-1d --from my.policy --lr 2e-4 --hard out/hunt-heat-1d/found.toml
                                                     with what a hunt has found
  trainer train heat-1d --centralised                one network that sees everything and decides for all agents
  trainer train --all --resume                       all problems; goes on where it stopped
  mpirun -n 4 trainer train fkpp-1d                  shared by four processes (built with --features mpi)")]
pub struct Arguments {
    /// The control problem, e.g. heat-1d.
    #[arg(required_unless_present = "all")]
    problem: Option<String>,
    /// Train every problem, one after the other.
    #[arg(long, conflicts_with_all = ["problem", "from", "physics", "hard"])]
    all: bool,
    #[command(flatten)]
    options: Options,
    /// Folder of runs.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Continue the run in the folder; with --all, begin those that have not begun.
    #[arg(long, conflicts_with_all = ["overwrite", "from"])]
    resume: bool,
    /// Replace the run in the folder.
    #[arg(long)]
    overwrite: bool,
    /// Threads; 0 for one per core, or a rank's share of them. Results do not depend on it.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Under mpirun: seconds after which ranks that do not answer end the training.
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    rank_patience: u64,
}

/// Trains what was asked for, alone or as one of several processes.
pub fn run(arguments: &Arguments, entries: &Entries) -> Result<()> {
    together(arguments.rank_patience, |ranks, threads| {
        run_with(ranks, threads, arguments, entries)
    })
}

fn run_with(ranks: Ranks, cores: usize, arguments: &Arguments, entries: &Entries) -> Result<()> {
    arguments.options.check()?;
    let chosen = match &arguments.problem {
        Some(name) => vec![entries.by_name(name)?],
        None => entries.iter().collect(),
    };
    use_threads(match arguments.threads {
        0 => cores,
        threads => threads,
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("cannot listen for interrupts")?;
    for entry in chosen {
        train(ranks, entry, arguments, &stop).with_context(|| entry.problem.name)?;
    }
    Ok(())
}

fn train(
    ranks: Ranks,
    entry: &'static Entry,
    arguments: &Arguments,
    stop: &AtomicBool,
) -> Result<()> {
    let name = entry.problem.name;
    let centralised = arguments.options.centralised;
    let begun = folder(&arguments.out, entry.problem, centralised);
    let begun = begun.join("latest").exists();
    let resume = arguments.resume && (begun || !arguments.all);
    let existing = Existing::asked(resume, arguments.overwrite)?;
    let opened = match arguments
        .options
        .open_with(ranks, entry, &arguments.out, existing)
    {
        Err(error) if arguments.all => match error.downcast_ref::<AlreadyTrained>() {
            Some(done) => {
                tell(&format!("{name}: already trained for {} steps", done.steps));
                return Ok(());
            }
            None => return Err(error),
        },
        opened => opened?,
    };
    let Opened {
        mut run,
        steps,
        engine,
    } = opened;
    let (folder, begun) = (run.folder().display().to_string(), run.trainer().step);
    let parameters = run.trainer().policy_config.shape.parameters();
    if !ranks.leads() {
        return run.train(steps, stop, |_, _| {}).map(drop);
    }
    tell(&format!(
        "training {name} on {engine}: {parameters} parameters, steps {begun} to {steps}, into {folder}"
    ));
    let mut progress = Progress::new(begun, steps);
    let outcome = run.train(steps, stop, |trainer, report| {
        progress.show(trainer, report);
    });
    progress.finish();
    let outcome = outcome?;
    let (step, headline) = (run.trainer().step, run.trainer().headline());
    match outcome {
        Outcome::Finished => {}
        Outcome::Stale => tell(&format!(
            "stopped at step {step}: no better validation for a while"
        )),
        Outcome::Interrupted => bail!(
            "stopped at step {step}; the state is in '{folder}/latest', continue with --resume"
        ),
    }
    if let Some(best) = run.trainer().history.best(headline) {
        say!(
            "{name}: best validation {:.3e} at step {}",
            best.score(headline),
            best.step
        )?;
    }
    let (what, next) = match centralised {
        false => ("policy", format!("export {folder}/best -o my.policy")),
        true => (
            "network",
            format!("eval {name} --controller dpc --network {folder}/best"),
        ),
    };
    say!("{what}: {folder}/best    loss curve: {folder}/loss.svg    report: {folder}/report.json")?;
    say!("next: trainer {next}")?;
    Ok(())
}
