//! `agent-sim bench`: how fast things are on this machine, and how their cost grows.

use super::progress::Progress;
use super::{VERSION, print, use_threads};
use crate::bench::{
    Effort, Growth, Machine, Speed, episodes, growth_with_agents, growth_with_points, speed,
};
use crate::table::{number, table};
use anyhow::{Context, bail};
use artifacts::output::OutputFolder;
use clap::Args;
use problem::{Problem, Problems, limit};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct BenchArgs {
    /// Which problem [default: all; the cost of large swarms on the first]
    problem: Option<String>,
    /// A few seconds in all, small swarms only: to see that it works, not to be quoted
    #[arg(long)]
    quick: bool,
    /// Only time so many whole episodes, one after the other
    #[arg(long, value_name = "N", requires = "problem")]
    episodes: Option<usize>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Write every timing to this file too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Benchmark {
    version: &'static str,
    machine: Machine,
    quick: bool,
    speeds: Vec<Speed>,
    growths: Vec<Growth>,
}

/// What `--episodes --json` prints.
#[derive(Serialize)]
struct Episodes {
    version: &'static str,
    machine: Machine,
    problem: &'static str,
    agents: usize,
    steps: usize,
    seconds: Vec<f64>,
}

pub fn bench(args: &BenchArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let problems: Vec<&Problem> = match &args.problem {
        Some(name) => vec![problems.by_name(name)?],
        None => problems.iter().collect(),
    };
    if let Some(count) = args.episodes {
        return time_episodes(problems[0], count, args.json);
    }
    let effort = match args.quick {
        true => Effort::QUICK,
        false => Effort::FULL,
    };
    let progress = Progress::new(2 * problems.len() + 1, "measurements");
    let mut benchmark = Benchmark {
        version: VERSION,
        machine: Machine::here(),
        quick: args.quick,
        speeds: Vec::new(),
        growths: Vec::new(),
    };
    benchmark
        .growths
        .push(growth_with_agents(problems[0], &effort)?);
    progress.tick();
    for problem in problems {
        benchmark.speeds.push(speed(problem, &effort)?);
        progress.tick();
        benchmark
            .growths
            .push(growth_with_points(problem, &effort)?);
        progress.tick();
    }
    drop(progress);
    if let Some(path) = &args.csv {
        write_csv(path, &benchmark)?;
    }
    print(&match args.json {
        true => serde_json::to_string_pretty(&benchmark)? + "\n",
        false => text(&benchmark),
    })
}

fn time_episodes(problem: &Problem, count: usize, json: bool) -> anyhow::Result<()> {
    if count == 0 {
        bail!("--episodes 0 leaves nothing to time; give 1 or more");
    }
    limit::EPISODES.check(count)?;
    let times = Episodes {
        version: VERSION,
        machine: Machine::here(),
        problem: problem.name,
        agents: problem.agents,
        steps: problem.horizon,
        seconds: episodes(problem, count)?,
    };
    if json {
        return print(&(serde_json::to_string(&times)? + "\n"));
    }
    let mut sorted = times.seconds;
    sorted.sort_by(f64::total_cmp);
    print(&format!(
        "{}, {} agents, {} steps: {:.3} ms at best, {:.3} ms in the median of {count} episodes\n",
        times.problem,
        times.agents,
        times.steps,
        1e3 * sorted[0],
        1e3 * sorted[sorted.len() / 2],
    ))
}

fn text(benchmark: &Benchmark) -> String {
    let head = [
        "problem",
        "grid",
        "agents",
        "controller",
        "PDE steps/s",
        "agent steps/s",
        "framing µs",
        "control steps/s",
        "ms per episode",
    ];
    let mut speeds = vec![head.map(String::from).to_vec()];
    for s in &benchmark.speeds {
        speeds.push(vec![
            s.problem.to_owned(),
            s.grid.clone(),
            s.agents.to_string(),
            s.controller.to_owned(),
            number(s.pde_steps_per_s),
            number(s.agent_steps_per_s),
            s.framing_us.map_or("–".to_owned(), number),
            number(s.control_steps_per_s),
            number(1e3 * s.episode_s),
        ]);
    }
    let head = ["cost", "of one", "sizes", "exponent", "bar", ""];
    let mut growths = vec![head.map(String::from).to_vec()];
    for g in &benchmark.growths {
        let sizes = g.costs.iter().map(|c| c.size).filter(|s| *s >= g.from);
        let (least, most) = (sizes.clone().min(), sizes.max());
        growths.push(vec![
            format!("{}, by {}", g.problem, g.with),
            match g.with {
                "agents" => "control step",
                _ => "solver step",
            }
            .to_owned(),
            format!("{}..{}", least.unwrap_or(0), most.unwrap_or(0)),
            format!("{:.3}", g.exponent),
            format!("≤ {}", g.bar),
            g.verdict().to_owned(),
        ]);
    }
    format!(
        "agent-sim {} · {}\n\n{}\n{}",
        benchmark.version,
        benchmark.machine,
        table(&speeds),
        table(&growths)
    )
}

/// One line per timing.
fn write_csv(path: &Path, benchmark: &Benchmark) -> anyhow::Result<()> {
    let mut lines = String::from("problem,what,size,seconds\n");
    let mut line = |problem: &str, what: &str, size: usize, seconds: f64| {
        lines += &format!("{problem},{what},{size},{seconds:e}\n");
    };
    for s in &benchmark.speeds {
        line(s.problem, "PDE step", 1, 1.0 / s.pde_steps_per_s);
        line(s.problem, "agent step", 1, 1.0 / s.agent_steps_per_s);
        line(
            s.problem,
            "control step",
            s.agents,
            1.0 / s.control_steps_per_s,
        );
    }
    for g in &benchmark.growths {
        for cost in &g.costs {
            line(
                g.problem,
                &format!("by {}", g.with),
                cost.size,
                cost.seconds,
            );
        }
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("--csv {} names no file", path.display()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    OutputFolder::prepare(folder)?.write(name, lines.as_bytes())?;
    Ok(())
}
