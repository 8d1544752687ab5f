//! Commands and their arguments.

mod demo;
mod eval;
mod progress;
mod run;
mod table;
mod tune;

use agent_core::policy::Policy;
use agent_sim::controller::Controller;
use agent_sim::policy_file::{PolicyFile, PolicyFileError};
use agent_sim::problem::{self, Problem};
use anyhow::bail;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs swarms of agents against a PDE and scores them.
///
/// Without a command: the demo.
#[derive(Parser)]
#[command(name = "agent-sim", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  agent-sim                                              the demo: a swarm and its losses
  agent-sim run heat-1d --agents 16 --seed 7             one run, with pictures
  agent-sim run heat-1d --kill 1/3@0.5 --out out/killed  the same with losses half way
  agent-sim eval heat-1d --set table                     score on the published test set
  agent-sim eval heat-1d --set fresh --episodes 200 --seed 1 --json";

#[derive(Subcommand)]
enum Command {
    /// The shipped policy with and without losses, beside no control and proportional feedback
    #[command(after_help = "Example:\n  agent-sim demo --out out/demo")]
    Demo(demo::DemoArgs),
    /// One episode: scores and pictures
    #[command(after_help = "\
Examples:
  agent-sim run heat-1d --policy my.policy --agents 16 --seed 7
  agent-sim run heat-1d --kill 1/3@0.5                   a third of the agents dies half way
  agent-sim run heat-1d --set table --episode 12         an episode of the published test set
  agent-sim run heat-1d --controller proportional --gain 50")]
    Run(run::RunArgs),
    /// Many episodes: statistics of the scores
    #[command(after_help = "\
Examples:
  agent-sim eval heat-1d                                 the shipped policy on the published test set
  agent-sim eval heat-1d --policy my.policy --json       one JSON object and nothing else
  agent-sim eval heat-1d --set fresh --episodes 200 --seed 1
  agent-sim eval heat-1d --set mine.npy                  float32, [samples, 2, points]")]
    Eval(eval::EvalArgs),
    /// Find the best gain of proportional feedback
    #[command(after_help = "Example:\n  agent-sim tune heat-1d --episodes 200 --seed 1")]
    Tune(tune::TuneArgs),
}

/// Runs the command line.
pub fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        None => demo::demo(&demo::DemoArgs::default()),
        Some(Command::Demo(args)) => demo::demo(&args),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Eval(args)) => eval::eval(&args),
        Some(Command::Tune(args)) => tune::tune(&args),
    }
}

/// Who controls, and how many.
#[derive(Args)]
struct ControlArgs {
    /// The problem, e.g. heat-1d
    problem: String,
    /// Policy blob [default: the one shipped for the problem]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Who commands the actuators
    #[arg(long, value_enum, default_value_t = Kind::Policy)]
    controller: Kind,
    /// Gain of proportional feedback [default: tuned for the problem]
    #[arg(long, value_name = "K")]
    gain: Option<f64>,
    /// Number of agents [default: as published]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A trained policy
    Policy,
    /// Nobody: what the field does by itself
    None,
    /// Fixed agents that push against the error they see
    Proportional,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::None => "none",
            Self::Proportional => "proportional",
        }
    }
}

impl ControlArgs {
    fn problem(&self) -> anyhow::Result<&'static Problem> {
        Ok(problem::by_name(&self.problem)?)
    }

    fn agents(&self, problem: &Problem) -> anyhow::Result<usize> {
        match self.agents {
            Some(0) => bail!(
                "a swarm of 0 agents controls nothing; give --agents 1 or more, or --controller none"
            ),
            given => Ok(given.unwrap_or(problem.agents)),
        }
    }

    /// The blob, where one is needed.
    fn policy_file(&self, problem: &Problem) -> Result<Option<PolicyFile>, PolicyFileError> {
        match (self.controller, &self.policy) {
            (Kind::Policy, Some(path)) => PolicyFile::read(path).map(Some),
            (Kind::Policy, None) => PolicyFile::shipped(problem).map(Some),
            _ => Ok(None),
        }
    }

    /// The controller, given the policy if it is one.
    fn controller<'p>(
        &self,
        problem: &Problem,
        agents: usize,
        policy: Option<&'p Policy<'p>>,
    ) -> anyhow::Result<Controller<'p>> {
        if self.gain.is_some() && self.controller != Kind::Proportional {
            bail!("--gain belongs to --controller proportional");
        }
        if self.policy.is_some() && self.controller != Kind::Policy {
            bail!("--policy belongs to --controller policy");
        }
        let mut law = problem.baseline_for(agents);
        if let Some(gain) = self.gain {
            if !(gain.is_finite() && gain >= 0.0) {
                bail!("--gain {gain} is not a number of at least 0");
            }
            law.gain = gain;
        }
        Ok(match (self.controller, policy) {
            (Kind::Policy, Some(policy)) => Controller::Policy(policy),
            (Kind::Proportional, _) => Controller::Proportional(law),
            _ => Controller::None,
        })
    }

    fn use_threads(&self) -> anyhow::Result<()> {
        use_threads(self.threads)
    }
}

fn use_threads(threads: Option<usize>) -> anyhow::Result<()> {
    match threads {
        None => Ok(()),
        Some(0) => bail!("--threads 0 leaves nobody to work; give 1 or more"),
        Some(count) => Ok(rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .build_global()?),
    }
}

/// What every output names: problem, seed, policy and version.
fn provenance(problem: &Problem, seed: u64, policy: Option<&PolicyFile>) -> String {
    let policy = match policy {
        Some(file) => format!("policy {}", &file.hash()[..12]),
        None => "no policy".to_owned(),
    };
    format!(
        "agent-sim {VERSION} · {} · seed {seed} · {policy}",
        problem.name
    )
}

/// Prints a result. A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
