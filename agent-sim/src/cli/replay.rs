//! `agent-sim replay`: a recorded run again, bit for bit.

use super::plant_args::PlantArgs;
use super::progress::Progress;
use super::{print, use_threads};
use crate::centre::Bring;
use crate::controller::Experiment;
use crate::fault::Fault;
use crate::recording::{Recording, fingerprints};
use crate::scenario::Scenario;
use anyhow::{anyhow, bail};
use clap::Args;
use problem::test_set;
use problem::{Episode, Problem, Problems, input};
use std::path::{Path, PathBuf};

/// Files of a recorded run.
pub const SCENARIO: &str = "scenario.toml";
/// The episode, so that a replay does not depend on where it came from.
pub const EPISODE: &str = "episode.npy";
/// The policy, likewise.
pub const POLICY: &str = "agents.policy";
/// The network of a controller that decides for all agents, likewise.
pub const NETWORK: &str = "agents.network";
/// Figures and fingerprint of every step.
pub const STEPS: &str = "steps.csv";

/// What `replay` takes.
#[derive(Args)]
pub struct ReplayArgs {
    /// The folder that `agent-sim run` wrote
    folder: PathBuf,
    #[command(flatten)]
    plant: PlantArgs,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs the command, also with controllers that others bring.
pub fn replay(
    args: &ReplayArgs,
    problems: &Problems,
    brought: &[&dyn Bring],
) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let folder = &args.folder;
    let (mut scenario, episode) = recorded(folder, problems)?;
    args.plant.settle(&mut scenario)?;
    let on_boards = |fault: &Fault| fault.on_board().is_some();
    if scenario.realtime.is_some() || scenario.faults.iter().any(on_boards) {
        bail!(
            "what boards did in real time or under faults of their own happened once; run it again \
             with agent-sim run --scenario {}",
            folder.join(SCENARIO).display()
        );
    }
    // Only the bits are looked at here.
    scenario.requirements.clear();
    let csv = read(folder, STEPS)?;
    let Some(recorded) = fingerprints(&csv) else {
        bail!(
            "{} is not the log of a run; run it again",
            folder.join(STEPS).display()
        );
    };
    let team = scenario.team_with(problems, brought)?;
    let episode = scenario.touched(&team, episode);
    let policy = team.parsed_policy();
    let plant = args.plant.open(&scenario, &team.problem)?;
    let experiment = Experiment {
        plant: plant.as_ref(),
        ..team.experiment(policy.as_ref())
    };
    let progress = Progress::new(team.steps, "steps");
    let again = Recording::make(&experiment, None, &episode, || progress.tick())?;
    drop(progress);

    let found = again.log.iter().map(|line| line.fingerprint.as_str());
    let differing = recorded.iter().zip(found).position(|(a, b)| *a != b);
    if let Some(step) = differing {
        bail!(
            "step {step} of {} is not the recorded one: the program, its numerics or the files have \
             changed since the run{}",
            folder.display(),
            match plant {
                None => "",
                Some(_) => ", or the plant does not do the same twice",
            }
        );
    }
    if recorded.len() != again.log.len() {
        bail!(
            "{} has {} steps and the scenario {}: the log was cut",
            folder.join(STEPS).display(),
            recorded.len().saturating_sub(1),
            team.steps
        );
    }
    print(&format!(
        "{}: {} steps of {} with {} agents, the same bit for bit\n",
        folder.display(),
        team.steps,
        team.problem.name,
        team.agents
    ))
}

/// A run that was recorded: its scenario with the policy that it had, and its episode as it was before
/// anything was done by hand. In lock-step an agent on a board does what it does in this process.
pub fn recorded(folder: &Path, problems: &Problems) -> anyhow::Result<(Scenario, Episode)> {
    let mut scenario = Scenario::from_toml(&read(folder, SCENARIO)?)?;
    let policy = folder.join(POLICY);
    if policy.exists() {
        scenario.policy = Some(policy);
    }
    let network = folder.join(NETWORK);
    if network.exists() {
        scenario.network = Some(network);
    }
    scenario.links.clear();
    let problem = scenario.solved(problems)?;
    let episode = match problem.kit {
        // What happens in a described episode is more than its fields: it is drawn again.
        Some(_) => scenario.drawn(&problem)?,
        None => episode(folder, &problem)?,
    };
    Ok((scenario, episode))
}

fn read(folder: &Path, name: &str) -> anyhow::Result<String> {
    let path = folder.join(name);
    let kind = if name == SCENARIO {
        input::SCENARIO
    } else {
        input::LOG
    };
    input::read_text(&path, kind).map_err(|error| unreadable(&path, &error))
}

fn episode(folder: &Path, problem: &Problem) -> anyhow::Result<Episode> {
    let path = folder.join(EPISODE);
    let bytes = input::read(&path, input::EPISODES).map_err(|error| unreadable(&path, &error))?;
    let mut episodes = test_set::from_npy(&bytes, problem, &path.display().to_string())?;
    Ok(episodes.swap_remove(0))
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    anyhow!(
        "cannot read {}: {error}; give the folder that agent-sim run wrote",
        path.display()
    )
}
