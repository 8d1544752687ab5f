//! The command line: [`main`] for a list of problems, a module for each command. Those that take a controller
//! for a whole run are open to programs that [bring](crate::centre::Bring) some of their own.

mod agents;
mod bench;
mod campaign;
mod check;
mod configure;
mod demo;
mod eval;
mod fields;
mod hunt;
mod key;
mod list;
mod live;
mod network_args;
mod new;
mod nodes;
mod odds;
mod origin;
mod place_file;
mod plant_args;
mod progress;
mod replay;
mod rig_args;
mod rows;
mod run;
mod scenario_args;
mod sweep;
mod tape;
mod target;
mod tune;

pub use eval::{EvalArgs, eval};
pub use replay::{ReplayArgs, replay};
pub use run::{RunArgs, run};

use crate::scenario::{Scenario, Team};
use anyhow::{anyhow, bail};
use artifacts::output::{self, tell};
use artifacts::policy_file::{PolicyFile, off_beat};
use clap::{Parser, Subcommand};
use problem::test_set::Resampled;
use problem::{Listed, Problem, Problems, limit};
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs swarms of agents against a PDE, breaks them, and scores them.
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
  agent-sim problems                                     what can be controlled
  agent-sim new my-plate                                 a file that describes a field of your own, which
                                                         every command takes in place of a problem's name
  agent-sim run heat-1d --agents 16 --seed 7             one run, with a report
  agent-sim run turbulence-2d --agents 256 --fault crash,fraction=0.3,at=0.5 --fault delay,steps=2
  agent-sim run heat-1d --link qemu=8 --fault kill,count=2,at=0.5
                                                         real firmware on emulated boards; two die
  agent-sim live heat-2d                                 a run in the browser, with hands on it
  agent-sim replay out/run-turbulence-2d                 the same again, bit for bit
  agent-sim eval ks-1d --set table                       score on the published test set
  agent-sim sweep fkpp-1d --agents 5..320 --episodes 50  error against the number of agents
  agent-sim campaign mine.toml                           thousands of broken swarms, held to what you require
  agent-sim hunt mine.toml --budget 10m                  the worst of them, as small as it gets";

#[derive(Subcommand)]
enum Command {
    /// The shipped policy with and without losses, beside no control and proportional feedback
    #[command(after_help = "Example:\n  agent-sim demo --out out/demo")]
    Demo(demo::DemoArgs),
    /// One episode: scores, a report with pictures, and a record to replay
    #[command(after_help = "\
Examples:
  agent-sim run heat-1d --policy my.policy --agents 16 --seed 7
  agent-sim run heat-1d --fault crash,fraction=0.3,at=0.5    a third of the agents dies half way
  agent-sim run heat-1d --set table --episode 12             an episode of the published test set
  agent-sim run ks-1d --controller proportional --gain 5 --gif
  agent-sim run fkpp-1d --physics nu=0.001,rho=5             under other physics
  agent-sim run heat-2d --fields heat.npy                    all steps for numpy, with heat.json
  agent-sim run heat-1d --link qemu=4 --live                 watched in the browser
  agent-sim run heat-2d --mcap heat.mcap                     all steps for Foxglove
  agent-sim run turbulence-2d --agents 256 --fault crash,fraction=0.3,at=0.5 --fault delay,steps=2
  agent-sim run --scenario out/run-turbulence-2d/scenario.toml --seed 2
  agent-sim run heat-2d --agents 64 --link qemu=6 --link serial=/dev/ttyACM0    mixed with boards
  agent-sim run heat-1d --link qemu=8 --fault kill,count=2,at=0.5 --fault hang,count=1,at=0.5
  agent-sim run heat-1d --link qemu=4 --realtime 0.01 --node-log                a hundredth of real time
  agent-sim run heat-2d --link 'zenoh=lab/plate/*' --zenoh-listen tcp/10.0.0.7:7447    hosts on a network
  agent-sim run my-plate.toml --plant 'python my_solver.py'  the field computed by another program
  agent-sim run heat-2d --plant tcp=10.0.0.7:4242            or by one that listens (docs/plants.md)")]
    Run(run::RunArgs),
    /// A run in the browser: watch the field, click an agent, kill it; what was done by hand can be saved
    #[command(after_help = "\
Examples:
  agent-sim live heat-2d                                     opens a page on this machine
  agent-sim live turbulence-2d --agents 256 --fault crash,fraction=0.3,at=0.5
  agent-sim live --scenario mine.toml                        what run and hunt write, or what was saved here
  agent-sim live --replay out/run-heat-1d                    a recorded run, from its first step
  agent-sim live heat-1d --link qemu=4                       emulated boards: kill, hang, cut and restart them
  agent-sim live heat-2d --listen 0.0.0.0 --no-open          for others too, with a token")]
    Live(live::LiveArgs),
    /// Many episodes: statistics of the scores
    #[command(after_help = "\
Examples:
  agent-sim eval heat-1d                                 the shipped policy on the published test set
  agent-sim eval heat-1d --policy my.policy --json       one JSON object and nothing else
  agent-sim eval heat-1d --set fresh --episodes 200 --seed 1
  agent-sim eval turbulence-2d --as-published            the authors' numerics only; without: both
  agent-sim eval heat-1d --rows scores.csv               a line an episode; .jsonl: a JSON object
  agent-sim eval heat-1d --set mine.npy                  float32 or float64, [samples, 2, points]
  agent-sim eval heat-1d --controller coverage --fault crash,fraction=0.3,at=0.5
                                                         another yardstick, when a third is lost
  agent-sim eval ks-1d --plant 'python -m fieldswarm.plants.exponax_ks'
                                                         on another solver, beside the built-in one")]
    Eval(eval::EvalArgs),
    /// Error against the number of agents or the share of broken ones; resumable
    #[command(after_help = "\
Examples:
  agent-sim sweep fkpp-1d --agents 5..320 --episodes 50 --out out/fkpp-sweep
  agent-sim sweep ks-1d --fault-fraction 0,0.1,0.3,0.5   that share of the agents is dead
  agent-sim sweep heat-1d --fault noise,std=0.1 --fault-fraction 0,0.5,1 --agents 8,16
  agent-sim sweep fkpp-1d --agents 5..320 --shard 3/16   a sixteenth of the points")]
    Sweep(sweep::SweepArgs),
    /// Thousands of runs of a space of scenarios, held to what is required; resumable
    #[command(after_help = "\
Examples:
  agent-sim campaign examples/campaigns/heat-1d.toml     margins, failure probability, the worst ten
  agent-sim campaign mine.toml --runs 10000 --out out/mine
  agent-sim campaign mine.toml --shard 3/16              a sixteenth of the runs; when all are there, the same
                                                         without --shard writes the results
The exit code is 1 where more runs fail than the file tolerates, but 0 of a shard that is done; junit.xml is for test reports.")]
    Campaign(campaign::CampaignArgs),
    /// The worst scenario of a space, made as small as it can be, told in words
    #[command(after_help = "\
Examples:
  agent-sim hunt examples/campaigns/heat-1d.toml --budget 10m
  agent-sim hunt mine.toml --first --budget 1h           stop at the first failure
The exit code is 1 where something was found that fails.")]
    Hunt(hunt::HuntArgs),
    /// Agents, and boards at links, for runs elsewhere on a Zenoh network
    #[command(after_help = "\
Examples:
  agent-sim agents heat-2d --agents 16 --zenoh lab/plate/room-1 --zenoh-connect tcp/10.0.0.7:7447
  agent-sim agents --link serial=/dev/ttyACM0 --zenoh lab/plate/room-2 --zenoh-listen tcp/0.0.0.0:7447
It takes a build with --features zenoh (docs/scale-zenoh.md).")]
    Agents(agents::AgentsArgs),
    /// Give a policy to boards, while they run
    #[command(after_help = "\
Examples:
  agent-sim flash my.policy --link serial=/dev/ttyACM0
  agent-sim flash my.policy --link serial=/dev/ttyACM0 --key secret.key    signed
  agent-sim flash my.policy --link serial=/dev/ttyACM0 --link-key link.key to a node that obeys nobody else
  agent-sim flash my.policy --link qemu=4 --flash-dir out/boards           emulated, kept for later runs")]
    Flash(nodes::FlashArgs),
    /// Say where boards are that sense and act by themselves, and with what sensors
    #[command(after_help = "\
Examples:
  agent-sim configure node.toml --link serial=/dev/ttyACM0
  agent-sim configure node.toml --link serial=/dev/ttyACM0 --key secret.key   signed
  agent-sim configure --fed --link serial=/dev/ttyACM0                        act on what a host shows again
What stands in the file: docs/deploy.md.")]
    Configure(configure::ConfigureArgs),
    /// Say what the field should be where boards sense and act by themselves, until they start again
    #[command(after_help = "\
Examples:
  agent-sim target 0.7 --link serial=/dev/ttyACM0
  agent-sim target 0.7 --link serial=/dev/ttyACM0 --link-key operator.key    to a node that obeys nobody else
  agent-sim target --as-placed --link serial=/dev/ttyACM0                    what its place says again")]
    Target(target::TargetArgs),
    /// How boards are: policy slots, resets, watchdog bites, frames
    #[command(after_help = "Example:\n  agent-sim nodes --link serial=/dev/ttyACM0")]
    Nodes(nodes::NodesArgs),
    /// A new key: one that signs policies, the key of a link, or a host's key made from that
    #[command(after_help = "\
Examples:
  agent-sim key secret.key                               prints the public key for the image:
  POLICY_KEY=<public key> cargo xtask firmware build     such a node takes signed policies only
  agent-sim key link.key --link                          LINK_KEY=$(cat link.key) cargo xtask firmware build:
                                                         such a node obeys only hosts with a key made from it
  agent-sim key operator.key --grant observe --from link.key")]
    Key(key::KeyArgs),
    /// Say with a key that nodes may run a policy: which, for whom, how new
    #[command(after_help = "\
Examples:
  agent-sim sign my.policy --key secret.key --fleet plant-7 -o my.manifest
  agent-sim flash my.policy --manifest my.manifest --link serial=/dev/ttyACM0
  agent-sim sign old.policy --key secret.key -o back.manifest              to go back: a new manifest
  agent-sim sign my.policy --key new.key --revoke 1a2b3c4d -o my.manifest  and trust the old key no more")]
    Sign(key::SignArgs),
    /// A recorded run again, checked bit for bit
    #[command(after_help = "\
Examples:
  agent-sim replay out/run-heat-1d
  agent-sim replay out/run-heat-2d --run-plant           a run on a plant, which must be exact to pass")]
    Replay(replay::ReplayArgs),
    /// Find the best gain of proportional or coverage feedback
    #[command(after_help = "\
Examples:
  agent-sim tune heat-1d --episodes 200 --seed 1
  agent-sim tune heat-1d --controller coverage")]
    Tune(tune::TuneArgs),
    /// A file that describes a field of one's own, to begin with
    #[command(after_help = "\
Examples:
  agent-sim new my-plate                                 a plate with a hole
  agent-sim new my-tissue --like excitable               or reaction, channel, heat-2d")]
    New(new::NewArgs),
    /// Whether a described field is sound: sizes in words, a picture, resolution, rules of deployment
    #[command(after_help = "Example:\n  agent-sim check my-plate.toml")]
    Check(check::CheckArgs),
    /// How fast it is on this machine, and how cost grows with agents and grid points
    #[command(after_help = "\
Examples:
  agent-sim bench                                        every problem; some minutes
  agent-sim bench heat-1d --csv timings.csv
  agent-sim bench --quick                                seconds: does it work at all
  agent-sim bench heat-1d --episodes 50 --threads 1      whole episodes, nothing else")]
    Bench(bench::BenchArgs),
    /// The problems, their variants and what can be changed about their physics
    #[command(after_help = "Example:\n  agent-sim problems")]
    Problems,
    /// What can be required of a run
    #[command(after_help = "Example:\n  agent-sim requirements")]
    Requirements,
    /// The faults and their parameters
    #[command(after_help = "Example:\n  agent-sim faults")]
    Faults,
}

/// Runs the program's command line for the problems of a list: the published ones, or a user's own.
pub fn main(entries: &[impl Listed]) -> ExitCode {
    let outcome = Problems::new(entries).map_err(anyhow::Error::from);
    match outcome.and_then(|problems| carry_out(Cli::parse().command, &problems)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn carry_out(command: Option<Command>, problems: &Problems) -> anyhow::Result<()> {
    match command {
        None => demo::demo(&demo::DemoArgs::default()),
        Some(Command::Demo(args)) => demo::demo(&args),
        Some(Command::Run(args)) => run::run(&args, problems, &[]),
        Some(Command::Live(args)) => live::live(&args, problems),
        Some(Command::Eval(args)) => eval::eval(&args, problems, &[]),
        Some(Command::Sweep(args)) => sweep::sweep(&args, problems),
        Some(Command::Campaign(args)) => campaign::campaign(&args, problems),
        Some(Command::Hunt(args)) => hunt::hunt(&args, problems),
        Some(Command::Agents(args)) => agents::agents(&args, problems),
        Some(Command::Flash(args)) => nodes::flash(&args),
        Some(Command::Configure(args)) => configure::configure(&args),
        Some(Command::Target(args)) => target::target(&args),
        Some(Command::Nodes(args)) => nodes::nodes(&args),
        Some(Command::Key(args)) => key::key(&args),
        Some(Command::Sign(args)) => key::sign(&args),
        Some(Command::Replay(args)) => replay::replay(&args, problems, &[]),
        Some(Command::Tune(args)) => tune::tune(&args, problems),
        Some(Command::New(args)) => new::new(&args),
        Some(Command::Check(args)) => check::check(&args),
        Some(Command::Bench(args)) => bench::bench(&args, problems),
        Some(Command::Problems) => list::problems(problems),
        Some(Command::Requirements) => list::requirements(),
        Some(Command::Faults) => list::faults(),
    }
}

fn use_threads(threads: Option<usize>) -> anyhow::Result<()> {
    match threads {
        None => Ok(()),
        Some(0) => bail!("--threads 0 leaves nobody to work; give 1 or more"),
        Some(count) => {
            limit::THREADS.check(count)?;
            let threads = rayon::ThreadPoolBuilder::new().num_threads(count);
            threads
                .build_global()
                .map_err(|e| anyhow!("cannot start {count} threads: {e}; give --threads fewer"))
        }
    }
}

/// What must be known before a run is believed.
fn say_beforehand(scenario: &Scenario, team: &Team, resampled: Option<&Resampled>) {
    if let Some(resampled) = resampled {
        tell(&format!("note: {}: {resampled}", scenario.set));
    }
    let policy = team.parsed_policy();
    if let Some(off_beat) = policy.and_then(|policy| off_beat(&policy, &team.problem)) {
        tell(&format!("warning: {off_beat}"));
    }
}

/// What every output names: problem, seed, policy and version.
fn provenance(problem: &Problem, seed: u64, policy: Option<&PolicyFile>) -> String {
    let policy = match policy {
        Some(file) => format!("policy {}", &file.hash()[..12]),
        None => "no policy".to_owned(),
    };
    format!(
        "Fieldswarm {VERSION} · {} · seed {seed} · {policy}",
        problem.title()
    )
}

/// Prints a result.
fn print(text: &str) -> anyhow::Result<()> {
    Ok(output::print(text)?)
}
