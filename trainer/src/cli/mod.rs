//! The command line: [`main`] for a list of entries, a module for each command.

mod bench;
mod check;
mod import;
mod oracle;
mod progress;
mod ranks;
mod scaling;
mod step;
mod train;

use crate::checkpoint::Checkpoint;
use crate::dpc::Networks;
use crate::entry::{Entries, Entry};
use crate::nmpc::Planners;
use crate::{export, inspect};
use agent_core::policy::{Encoding, Governor, MAGIC};
use agent_sim::centre::Bring;
use anyhow::{Context, Result};
use artifacts::output::{print, tell, write_whole};
use artifacts::policy_file::{self, PolicyFile};
use artifacts::say;
use clap::{Parser, Subcommand};
use problem::{input, limit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Learns one shared policy for a swarm by differentiating through the field it controls.
#[derive(Parser)]
#[command(
    name = "trainer",
    version,
    after_help = "\
Examples:
  trainer train heat-1d --preset quick               a usable policy in about a minute
  trainer train heat-1d                              train as for the shipped policy
  trainer train heat-1d --resume                     go on after an interruption
  trainer train --all                                train every problem
  trainer train my-plate.toml                        a field of your own (agent-sim new writes one)
  trainer check my-plate.toml                        its gradient, expected time and size
  trainer export runs/heat-1d/best -o my.policy      freeze the best policy for agents
  trainer export my.policy --weights int8 -o small.policy   a third of the size
  trainer import net.onnx --problem heat-1d -o my.policy   a network that was trained elsewhere
  trainer inspect my.policy                          what is in it
  trainer step my.policy                             what it makes of its own probe
  trainer oracle heat-1d                             what could be reached at best
  trainer eval ks-1d --controller nmpc               a planner that sees everything, on the test episodes
  trainer train heat-1d --centralised                one network that sees everything and decides for all agents
  trainer bench heat-1d --against-jax                seconds per step, beside JAX"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a policy; checkpoints, report.json and loss.svg go to <OUT>/<PROBLEM>/.
    Train(Box<train::Arguments>),
    /// Freeze the policy of a checkpoint into a blob for agents, or write a blob anew.
    #[command(
        after_help = "Examples:\n  trainer export runs/heat-1d/best -o my.policy\n  \
        trainer export my.policy --weights int8 -o my-int8.policy\n  \
        trainer export my.policy --governor off -o bare.policy"
    )]
    Export {
        /// A run's `best` or `latest` file, or a policy with f32 weights.
        source: PathBuf,
        /// The blob to write.
        #[arg(short, long)]
        output: PathBuf,
        /// How weights are stored, f32 or int8; agent-sim eval --weights int8 tells what int8 costs.
        #[arg(long, value_name = "FORM", default_value = "f32", value_parser = policy_file::encoding)]
        weights: Encoding,
        /// Ease off outputs that overshoot, as they do in larger swarms than were trained: by what the
        /// ease grows back with every step (1 to 2), and the share of the limit against which outputs
        /// may change sign and hardly count (0 to 1, 0 unless given), or off. Without this flag 1.01 for
        /// checkpoints, off for those of described fields, and for policies what they have.
        #[arg(long, value_name = "GROWTH[,BAND]|off", value_parser = governing)]
        governor: Option<Governing>,
    },
    /// Make a policy of a network that was trained elsewhere: ONNX or safetensors.
    Import(import::Arguments),
    /// Print what a policy blob holds.
    #[command(after_help = "Example:\n  trainer inspect my.policy")]
    Inspect {
        /// The blob.
        policy: PathBuf,
    },
    /// Print what a policy makes of one observation: features, outputs, action.
    Step(step::Arguments),
    /// Seek the best actions for known episodes: what is possible with full knowledge.
    Oracle(oracle::Arguments),
    /// One episode, as agent-sim run makes it, also under controllers that plan through the adjoint or were trained
    /// to decide for all agents.
    #[command(
        after_help = "Examples:\n  trainer run ks-1d --controller nmpc --plan 20 --replan 1\n  \
        trainer run heat-1d --controller nmpc --fault crash,fraction=0.3,at=0.5\n  \
        trainer run heat-1d --controller dpc --network runs/heat-1d-centralised/best"
    )]
    Run(Box<agent_sim::cli::RunArgs>),
    /// Many episodes, as agent-sim eval scores them, also under controllers that plan through the adjoint or were
    /// trained to decide for all agents.
    #[command(after_help = "Examples:\n  trainer eval ks-1d --controller nmpc\n  \
        trainer eval heat-1d --controller dpc --network runs/heat-1d-centralised/best\n  \
        trainer eval ks-1d --controller nmpc --plan 20 --replan 1 --set fresh --episodes 10 --steps 400 --from 350")]
    Eval(Box<agent_sim::cli::EvalArgs>),
    /// A run that was recorded, checked bit for bit.
    #[command(after_help = "Example:\n  trainer replay out/run-ks-1d")]
    Replay(agent_sim::cli::ReplayArgs),
    /// Whether a field can be trained on: gradient, expected time, size of the policy.
    Check(check::Arguments),
    /// Time training steps.
    Bench(bench::Arguments),
}

/// What `--governor` asks for.
#[derive(Clone, Copy)]
struct Governing(Option<Governor>);

fn governing(text: &str) -> Result<Governing, &'static str> {
    if text == "off" {
        return Ok(Governing(None));
    }
    let (growth, band) = text.split_once(',').unwrap_or((text, "0"));
    match (growth.parse(), band.parse::<f32>()) {
        (Ok(growth), Ok(band)) if (1.0..=2.0).contains(&growth) && (0.0..=1.0).contains(&band) => {
            Ok(Governing(Some(export::governor(growth, band))))
        }
        _ => Err(
            "give a growth from 1 to 2 and perhaps a band from 0 to 1, like 1.01 or 1.005,0.2, or off",
        ),
    }
}

/// Runs the program's command line for the entries of a list: the published ones, or a user's own.
pub fn main(entries: &[&'static Entry]) -> ExitCode {
    let outcome = Entries::new(entries).map_err(anyhow::Error::from);
    match outcome.and_then(|entries| carry_out(Arguments::parse().command, &entries)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether a word is one of the trainer's commands, for programs that have the simulator's besides.
pub fn knows(word: &str) -> bool {
    Command::has_subcommand(word)
}

fn carry_out(command: Command, entries: &Entries) -> Result<()> {
    let problems = entries.problems();
    let brought: &[&dyn Bring] = &[&Planners(entries), &Networks(entries)];
    match command {
        Command::Train(arguments) => train::run(&arguments, entries),
        Command::Import(arguments) => import::run(&arguments, entries),
        Command::Step(arguments) => step::run(&arguments),
        Command::Oracle(arguments) => oracle::run(arguments, entries),
        Command::Run(arguments) => agent_sim::cli::run(&arguments, &problems, brought),
        Command::Eval(arguments) => agent_sim::cli::eval(&arguments, &problems, brought),
        Command::Replay(arguments) => agent_sim::cli::replay(&arguments, &problems, brought),
        Command::Check(arguments) => check::run(&arguments, entries),
        Command::Bench(arguments) => bench::run(arguments, entries),
        Command::Export {
            source,
            output,
            weights,
            governor,
        } => {
            let origin = source.display().to_string();
            let mut file = match input::read(&source, input::CHECKPOINT) {
                Ok(bytes) if bytes.starts_with(&MAGIC) => PolicyFile::new(&bytes, origin),
                _ => export::usual(Checkpoint::load(&source)?, entries, origin)?,
            };
            if let Some(Governing(governor)) = governor {
                file = file.governed(governor)?;
            }
            let file = file.recoded(weights)?;
            let blob = file.bytes();
            write_whole(&output, blob)?;
            say!(
                "{}: {} bytes; look inside with: trainer inspect {0}",
                output.display(),
                blob.len()
            )?;
            Ok(())
        }
        Command::Inspect { policy } => {
            let file = opened(&policy)?;
            let text = inspect::describe(&file, entries).with_context(|| unreadable(&policy))?;
            Ok(print(&text)?)
        }
    }
}

/// The bytes of a policy.
fn opened(path: &Path) -> Result<PolicyFile> {
    let shown = path.display();
    let blob = input::read(path, input::POLICY).with_context(|| {
        format!("cannot read policy '{shown}'; give the path of an exported policy")
    })?;
    Ok(PolicyFile::new(&blob, shown.to_string()))
}

fn unreadable(path: &Path) -> String {
    let shown = path.display();
    format!("'{shown}' is not a policy this trainer can read; export it again")
}

/// One thread per core, or as many as asked for; results do not depend on it.
fn use_threads(threads: usize) -> Result<()> {
    limit::THREADS.check(threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .with_context(|| format!("cannot start {threads} threads; give --threads fewer"))
}
