//! `agent-sim eval`: many episodes, statistics of the scores.

use super::progress::Progress;
use super::table::{number, table};
use super::{ControlArgs, Kind, VERSION, print, provenance};
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::BlownUp;
use agent_sim::metrics::{Score, Summary};
use agent_sim::problem::{Episode, Problem};
use agent_sim::test_set::EpisodeSet;
use anyhow::bail;
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

#[derive(Args)]
pub struct EvalArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Episodes: table (published), fresh (drawn by --seed) or the path of a .npy file
    #[arg(long, default_value = "table", value_name = "SET")]
    set: EpisodeSet,
    /// Number of episodes [default: all of a set, 50 fresh ones]
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Seed of fresh episodes
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Evaluation<'a> {
    problem: &'a str,
    controller: &'a str,
    policy_hash: Option<String>,
    agents: usize,
    episodes: usize,
    seed: u64,
    set: String,
    version: &'a str,
    #[serde(flatten)]
    summary: Summary,
}

pub fn eval(args: &EvalArgs) -> anyhow::Result<()> {
    let problem = args.control.problem()?;
    let agents = args.control.agents(problem)?;
    if args.episodes == Some(0) {
        bail!("there is nothing to learn from 0 episodes; give --episodes 1 or more");
    }
    args.control.use_threads()?;
    let file = args.control.policy_file(problem)?;
    let policy = file.as_ref().map(|f| f.policy(problem)).transpose()?;
    let controller = args.control.controller(problem, agents, policy.as_ref())?;
    let episodes = args.set.episodes(problem, args.seed, args.episodes)?;
    let experiment = Experiment {
        problem,
        controller,
        agents,
        steps: problem.horizon,
        kill: None,
        seed: args.seed,
    };
    let summary = evaluate(&experiment, &episodes, "episodes")?;
    if args.json {
        let evaluation = Evaluation {
            problem: problem.name,
            controller: args.control.controller.name(),
            policy_hash: file.as_ref().map(|f| f.hash()),
            agents,
            episodes: episodes.len(),
            seed: args.seed,
            set: args.set.to_string(),
            version: VERSION,
            summary,
        };
        return print(&(serde_json::to_string_pretty(&evaluation)? + "\n"));
    }

    let mut rows = vec![(args.control.controller.name(), summary)];
    let yardsticks = [
        (Kind::None, Controller::None),
        (
            Kind::Proportional,
            Controller::Proportional(problem.baseline_for(agents)),
        ),
    ];
    for (kind, controller) in yardsticks {
        if kind != args.control.controller {
            let experiment = Experiment {
                controller,
                ..experiment
            };
            rows.push((kind.name(), evaluate(&experiment, &episodes, "yardstick")?));
        }
    }
    print(&format!(
        "{} · {agents} agents · {} episodes of the {} set\n\n{}\n  {}\n",
        provenance(problem, args.seed, file.as_ref()),
        episodes.len(),
        args.set,
        summary_table(&rows),
        baseline_note(problem, agents),
    ))
}

/// Runs all episodes, in parallel, and summarises their scores in order.
pub fn evaluate(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Summary, BlownUp> {
    let progress = Progress::new(episodes.len(), what);
    let scores: Result<Vec<Score>, BlownUp> = episodes
        .par_iter()
        .map(|episode| {
            let score = experiment.run(episode, &mut |_| {});
            progress.tick();
            score
        })
        .collect();
    Ok(Summary::of(&scores?))
}

/// One row per controller.
fn summary_table(rows: &[(&str, Summary)]) -> String {
    let head = [
        "controller",
        "final error",
        "std",
        "median",
        "p95",
        "worst",
        "time-mean",
        "std",
        "effort",
        "travel",
    ];
    let mut cells = vec![head.map(String::from).to_vec()];
    for (name, s) in rows {
        let mut row = vec![(*name).to_owned()];
        let f = &s.final_error;
        row.extend([f.mean, f.std, f.median, f.p95, f.worst].map(number));
        row.extend(
            [
                s.time_mean.mean,
                s.time_mean.std,
                s.effort.mean,
                s.travel.mean,
            ]
            .map(number),
        );
        cells.push(row);
    }
    table(&cells)
}

/// What the proportional yardstick is.
pub fn baseline_note(problem: &Problem, agents: usize) -> String {
    let law = problem.baseline_for(agents);
    format!(
        "Errors are mean squared; effort is mean u², travel the mean path length. \
         Proportional: fixed agents,\n  u = clip(−{:.0}·error, ±{:.0}) on the {} error, \
         gain tuned on fresh episodes (agent-sim tune).",
        law.gain,
        problem.actuation.force_max,
        match law.sensing {
            agent_sim::problem::ErrorSensing::Point => "point",
            agent_sim::problem::ErrorSensing::Kernel => "kernel-averaged",
        }
    )
}
