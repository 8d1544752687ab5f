//! `agent-sim hunt`: the worst scenario of a space, as small as it can be.

use super::campaign::{Court, folder_for, read_space};
use super::progress::Waiting;
use super::rig_args::RigArgs;
use super::run::listing;
use super::{VERSION, print, provenance, use_threads};
use crate::hunt::{Method, Trail, search, shrink, story};
use crate::requirement::Verdict;
use crate::scenario::Scenario;
use crate::table::number;
use anyhow::bail;
use artifacts::output::{OutputFolder, tell};
use clap::Args;
use problem::Problems;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct HuntArgs {
    /// File (TOML): a scenario with ranges in place of values, and what is required (docs/campaigns.md)
    file: PathBuf,
    #[command(flatten)]
    rig: RigArgs,
    /// How long to search: 90s, 10m, 2h
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = time)]
    budget: Duration,
    /// Runs to make at most, however long they take
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Stop at the first run that fails, instead of looking for a worse one
    #[arg(long)]
    first: bool,
    /// Search by chance alone, to compare with
    #[arg(long)]
    random: bool,
    /// Seed of the search
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// Folder for what comes out [default: out/hunt-<file>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Reads a time.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time; write 90s, 10m or 2h");
    let (number, unit) = text.split_at(
        text.find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len()),
    );
    let seconds = match unit {
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match number > 0.0 && number * seconds <= 30.0 * 24.0 * 3600.0 {
        true => Ok(Duration::from_secs_f64(number * seconds)),
        false => Err(format!(
            "'{text}' is no time to search for; give more than 0s and at most 720h"
        )),
    }
}

/// The least time that a scenario gets to be made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

pub fn hunt(args: &HuntArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let (space, _) = read_space(&args.file, problems, &args.rig)?;
    let court = Court::new(&space, problems, &args.rig)?;
    let middle = court.scenario(&space.middle())?;
    let team = middle.team(problems)?;
    let source = provenance(&team.problem, args.seed, team.policy.as_ref());
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| folder_for("hunt", &args.file));
    let folder = OutputFolder::claim(&folder)?;

    let begun = Instant::now();
    let waiting = Waiting::new(args.budget);
    // A run that cannot be made is no failure of the swarm: the search ends, and says why.
    let refused: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let run = |point: &[f64]| {
        let judged = court
            .scenario(point)
            .and_then(|scenario| court.judge(&scenario));
        judged.map_or_else(
            |error| {
                if let Ok(mut refused) = refused.lock() {
                    refused.get_or_insert(error);
                }
                f64::INFINITY
            },
            |verdict| verdict.margin(),
        )
    };
    let mut go_on = |trail: &Trail| {
        let worst = trail.worst().map_or(f64::INFINITY, |(_, margin)| margin);
        waiting.show(&format!(
            "{} runs, worst margin {}",
            trail.runs,
            number(worst)
        ));
        begun.elapsed() < args.budget
            && args.runs.is_none_or(|most| trail.runs < most)
            && !(args.first && trail.failed > 0)
            && refused.lock().is_ok_and(|refused| refused.is_none())
    };
    let method = if args.random {
        Method::Random
    } else {
        Method::Portfolio
    };
    let trail = search(&space, method, args.seed, &mut go_on, &run);
    drop(waiting);
    if let Some(error) = refused.into_inner().ok().flatten() {
        bail!(
            "a scenario of {} cannot be run: {error}",
            args.file.display()
        );
    }
    let searched = begun.elapsed();
    let Some((point, margin)) = trail.worst() else {
        bail!("there was no time for a single run; give --budget more");
    };
    let worst = court.scenario(point)?;
    let mut written = vec![folder.write("worst.toml", worst.to_toml().as_bytes())?];
    written.push(folder.write("trail.csv", csv(&trail).as_bytes())?);
    let verdict = court.judge(&worst)?;
    let (smallest, shrinking) = match verdict.holds() {
        true => (worst.clone(), 0),
        false => smaller(args, &court, &worst, &verdict)?,
    };
    let told = tell_of(&court, &smallest, verdict.worst())?;
    if !verdict.holds() {
        written.push(folder.write("found.toml", smallest.to_toml().as_bytes())?);
    }
    let summary = json!({
        "version": VERSION,
        "file": args.file.display().to_string(),
        "problem": team.problem.name,
        "policy_hash": team.policy.as_ref().map(|file| file.hash()),
        "seed": args.seed,
        "method": if args.random { "random" } else { "portfolio" },
        "seconds": searched.as_secs_f64(),
        "runs": trail.runs,
        "failed": trail.failed,
        "first_failure": trail.first_failure,
        "worst_margin": verdict.cut.is_none().then_some(margin),
        "cut": verdict.cut,
        "runs_to_shrink": shrinking,
        "story": told,
        "scenario": smallest.to_toml(),
    });
    let text = serde_json::to_string_pretty(&summary)? + "\n";
    written.push(folder.write("hunt.json", text.as_bytes())?);
    if args.json {
        print(&text)?;
    } else {
        let found = match verdict.holds() {
            true => format!(
                "Nothing fails. The worst of them has a margin of {}:\n  {told}",
                number(margin)
            ),
            false => format!(
                "Found, and made as small as it gets with {shrinking} more runs:\n  {told}\n\n{}",
                indented(&smallest.to_toml())
            ),
        };
        print(&format!(
            "{source} · {} runs in {:.0} s, {} of them fail\n\n{found}\n\n{}",
            trail.runs,
            searched.as_secs_f64(),
            trail.failed,
            listing(&written)
        ))?;
    }
    match verdict.holds() {
        true => Ok(()),
        false => bail!(
            "a scenario fails; again: agent-sim run --scenario {}",
            folder.path().join("found.toml").display()
        ),
    }
}

/// As small as it gets while the same requirement fails.
fn smaller(
    args: &HuntArgs,
    court: &Court<'_>,
    worst: &Scenario,
    verdict: &Verdict,
) -> anyhow::Result<(Scenario, usize)> {
    let (begun, allowed) = (Instant::now(), (args.budget / 2).max(SHRINKING));
    let waiting = Waiting::new(allowed);
    let mut refused = None;
    let mut runs = 0;
    let mut fails = |scenario: &Scenario| {
        runs += 1;
        waiting.show(&format!(
            "making it smaller: {runs} runs, {} faults left",
            scenario.faults.len()
        ));
        match court.judge(scenario) {
            Ok(now) => now.fails_like(verdict),
            Err(error) => {
                refused.get_or_insert(error);
                false
            }
        }
    };
    let team = worst.team(court.problems)?;
    // A field that blows up does so whenever the run would have ended.
    let lost = team
        .requirements
        .get(verdict.worst())
        .filter(|_| verdict.cut.is_none());
    let smaller = shrink(
        worst,
        court.problems,
        lost,
        &mut || begun.elapsed() < allowed,
        &mut fails,
    );
    if let Some(error) = refused {
        tell(&format!(
            "note: some smaller scenarios could not be run: {error}"
        ));
    }
    Ok((smaller.scenario, smaller.runs))
}

/// What happens in a scenario.
fn tell_of(court: &Court<'_>, scenario: &Scenario, lost: usize) -> anyhow::Result<String> {
    let verdict = court.judge(scenario)?;
    // What is required of faults cannot be required without them.
    let without = court.judge(&scenario.without_faults()).ok();
    let team = scenario.team(court.problems)?;
    let episode = scenario.episode(&team)?;
    Ok(story(&team, &episode, &verdict, lost, without.as_ref()))
}

/// Every point that was worse than all before.
fn csv(trail: &Trail) -> String {
    let mut text = String::from("run,margin\n");
    for (run, margin, _) in &trail.worse {
        text += &format!("{run},{margin:?}\n");
    }
    text
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_refused() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for text in ["", "m", "-1s", "0s", "10 minutes", "1e9h", "nans"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
