//! `trainer oracle`.

use super::use_threads;
use crate::entry::Entries;
use crate::oracle::{Crash, Search, plan};
use anyhow::{Result, bail};
use problem::test_set::EpisodeSet;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer oracle heat-1d
  trainer oracle density-2d --iterations 1000 --episodes 8
  trainer oracle heat-2d --crash 0.3
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
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    episodes: Option<u32>,
    /// Seed of fresh episodes and of crashes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Agents [default: the problem's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    agents: Option<u32>,
    /// Share of the agents that fall silent at half of the episode; plans know beforehand who.
    #[arg(long, value_name = "SHARE")]
    crash: Option<f64>,
    /// Steps of the search per episode.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Learning rate of the search, on actions before their saturation.
    #[arg(long, default_value_t = 0.05)]
    rate: f64,
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
        eprintln!("note: {set}: {resampled}");
    }
    let episodes = set.episodes(&problem, arguments.seed, count)?;
    let agents = arguments.agents.map_or(problem.agents, |n| n as usize);
    let search = Search {
        iterations: arguments.iterations as usize,
        rate: arguments.rate,
    };
    if let Some(share) = arguments.crash.filter(|share| !(0.0..=1.0).contains(share)) {
        bail!("--crash {share} is not a share from 0 to 1; try 0.3");
    }
    let crash = arguments.crash.map(|share| Crash {
        share,
        seed: arguments.seed,
    });
    let found = plan(entry, &problem, agents, &episodes, crash, search)?;
    let count = found.len() as f64;
    let mean =
        |value: fn(&crate::oracle::Found) -> f64| found.iter().map(value).sum::<f64>() / count;
    let (idle, best) = (mean(|f| f.idle), mean(|f| f.best));
    let variance = found.iter().map(|f| (f.best - best).powi(2)).sum::<f64>() / count;
    if arguments.json {
        let report = serde_json::json!({
            "problem": problem.name, "variant": arguments.variant, "set": set.to_string(),
            "episodes": found.len(), "agents": agents, "iterations": arguments.iterations,
            "crash": arguments.crash, "no_control": idle, "oracle": best, "oracle_sd": variance.sqrt(),
        });
        println!("{report}");
        return Ok(());
    }
    let silent = match arguments.crash {
        Some(share) => format!(", {:.0} % of them silent from half way", 100.0 * share),
        None => String::new(),
    };
    println!(
        "{}, {} episodes ({}), {agents} agents{silent}, {} iterations each",
        problem.name,
        found.len(),
        set,
        arguments.iterations
    );
    println!("  no control {idle:>10.3e}");
    println!(
        "  oracle     {best:>10.3e} ± {:.1e} (2 sd over episodes)",
        2.0 * variance.sqrt()
    );
    Ok(())
}
