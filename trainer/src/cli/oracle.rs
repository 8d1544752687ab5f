//! `trainer oracle`.

use super::use_threads;
use crate::entry::Entries;
use crate::oracle::{Crash, Found, Task};
use crate::swarm;
use anyhow::{Result, bail};
use artifacts::output::tell;
use artifacts::policy_file::PolicyFile;
use artifacts::say;
use problem::Problem;
use problem::limit::EPISODES;
use problem::test_set::EpisodeSet;
use std::path::PathBuf;

/// Most runs of an episode: beyond, a plan gains nothing.
const MOST_RUNS: i64 = 1_000_000;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer oracle heat-1d
  trainer oracle density-2d --policy my.policy --runs 200 --episodes 4
  trainer oracle heat-2d --crash 0.3                 losses that plans know beforehand
  trainer oracle heat-2d --crash 0.3 --unforeseen    and losses that they do not
  trainer oracle turbulence-2d --variant as-published")]
pub struct Arguments {
    /// The control problem, e.g. heat-1d.
    problem: String,
    /// A form of the problem, see `agent-sim problems`.
    #[arg(long)]
    variant: Option<String>,
    /// Which episodes: `table`, `fresh` or a .npy file [default: the table if there is one].
    #[arg(long)]
    set: Option<EpisodeSet>,
    /// How many of them [default: all of a table, 50 fresh ones].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=EPISODES.most as i64))]
    episodes: Option<u32>,
    /// Seed of fresh episodes and of crashes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Agents [default: the problem's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=swarm::MOST as i64))]
    agents: Option<u32>,
    /// What plans begin with: a policy (f32), or `none` for agents that do nothing [default: the shipped
    /// policy if there is one].
    #[arg(long, value_name = "FILE|none")]
    policy: Option<PathBuf>,
    /// Share of the agents that fall silent at half of the episode; plans know beforehand who.
    #[arg(long, value_name = "SHARE")]
    crash: Option<f64>,
    /// Plans do not know who: they are made for all, and half way anew for those that are left.
    #[arg(long, requires = "crash")]
    unforeseen: bool,
    /// Most times an episode is run, forwards and backwards, for one plan.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=MOST_RUNS))]
    runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Plans the episodes and prints what that reaches.
pub fn run(arguments: Arguments, entries: &Entries) -> Result<()> {
    use_threads(arguments.threads)?;
    let entry = entries.by_name(&arguments.problem)?;
    let problem = entry.problem;
    let problem = match &arguments.variant {
        Some(name) => problem.with_variant(name)?,
        None => *problem,
    };
    let count = arguments.episodes.map(|n| n as usize);
    let set = match (&arguments.set, problem.test_set) {
        (Some(set), _) => set.clone(),
        (None, Some(_)) => EpisodeSet::Table,
        (None, None) => EpisodeSet::Fresh,
    };
    if let Some(resampled) = set.resampled(&problem)? {
        tell(&format!("note: {set}: {resampled}"));
    }
    let episodes = set.episodes(&problem, arguments.seed, count)?;
    let agents = arguments.agents.map_or(problem.agents, |n| n as usize);
    problem.check_agents(agents)?;
    if let Some(share) = arguments.crash.filter(|share| !(0.0..=1.0).contains(share)) {
        bail!("--crash {share} is not a share from 0 to 1; try 0.3");
    }
    let crash = arguments.crash.map(|share| Crash {
        share,
        seed: arguments.seed,
        foreseen: !arguments.unforeseen,
    });
    let file = start(&arguments, &problem)?;
    let policy = file
        .as_ref()
        .map(|file| file.policy(&problem))
        .transpose()?;
    let task = Task {
        entry,
        problem: &problem,
        agents,
        episodes: &episodes,
        crash,
        policy: policy.as_ref(),
        runs: arguments.runs as usize,
    };
    let found = task.plan()?;
    let mean = |value: fn(&Found) -> f64| found.iter().map(value).sum::<f64>() / found.len() as f64;
    let (idle, best) = (mean(|f| f.idle), mean(|f| f.best));
    let (began, runs) = (
        mean(|f| f.policy.unwrap_or(f64::NAN)),
        mean(|f| f.runs as f64),
    );
    let squares = found.iter().map(|f| (f.best - best).powi(2));
    let deviation = (squares.sum::<f64>() / found.len() as f64).sqrt();
    let converged = found.iter().filter(|f| f.converged).count();
    if arguments.json {
        let report = serde_json::json!({
            "problem": problem.name, "variant": arguments.variant, "set": set.to_string(),
            "episodes": found.len(), "agents": agents, "crash": arguments.crash,
            "foreseen": crash.map(|crash| crash.foreseen), "policy": began, "oracle": best,
            "oracle_sd": deviation, "converged": converged, "runs": runs, "no_control": idle,
        });
        say!("{report}")?;
        return Ok(());
    }
    let silent = match crash {
        Some(Crash {
            share, foreseen, ..
        }) => format!(
            ", {:.0} % of them silent from half way, {}",
            100.0 * share,
            if foreseen { "foreseen" } else { "unforeseen" }
        ),
        None => String::new(),
    };
    say!(
        "{}, {} episodes ({set}), {agents} agents{silent}",
        problem.name,
        found.len(),
    )?;
    say!("  no control {idle:>10.3e}")?;
    if let Some(file) = &file {
        say!("  policy     {began:>10.3e}   {}", file.origin())?;
    }
    say!(
        "  oracle     {best:>10.3e} ± {:.1e} (2 sd over episodes)",
        2.0 * deviation
    )?;
    say!(
        "  {converged} of {} converged, after {runs:.0} runs each",
        found.len()
    )?;
    Ok(())
}

/// The policy that plans begin with.
fn start(arguments: &Arguments, problem: &Problem) -> Result<Option<PolicyFile>> {
    Ok(match &arguments.policy {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) => Some(PolicyFile::read(path)?),
        None if problem.policy.is_none() => None,
        None => Some(PolicyFile::shipped(problem)?),
    })
}
