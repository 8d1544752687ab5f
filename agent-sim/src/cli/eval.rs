//! `agent-sim eval`: many episodes, statistics of the scores.

use super::progress::Progress;
use super::scenario_args::ScenarioArgs;
use super::{VERSION, print, provenance, use_threads};
use crate::controller::{Controller, Experiment};
use crate::episode::BlownUp;
use crate::scenario::{ControllerKind, Scenario, Team, fault_seed};
use crate::table::{number, table};
use agent_core::policy::Encoding;
use artifacts::policy_file;
use clap::Args;
use problem::metrics::{Score, Summary};
use problem::{
    Actuation, Drives, Episode, ErrorSensing, Headline, Problem, Problems, Proportional, Records,
};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Args)]
pub struct EvalArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of agents [default: as published]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Episodes: table (published), fresh (drawn by --seed) or the path of a .npy file
    #[arg(long, default_value = "table", value_name = "SET")]
    set: String,
    /// Number of episodes [default: all of a set, 50 fresh ones]
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Store the policy's weights in this way first, f32 or int8, and say what that costs
    #[arg(long, value_name = "FORM", value_parser = policy_file::encoding)]
    weights: Option<Encoding>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What storing weights in another way costs, on the same episodes.
#[derive(Serialize)]
struct Recoding {
    weights: &'static str,
    /// The headline figure with the weights as they were, and as they are now.
    before: f64,
    after: f64,
    /// Of these two.
    ratio: f64,
    bytes_before: usize,
    bytes_after: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Evaluation<'a> {
    problem: &'a str,
    variant: Option<&'a str>,
    /// Coefficients that are not the published ones.
    physics: BTreeMap<&'a str, f64>,
    controller: &'a str,
    policy_hash: Option<String>,
    agents: usize,
    steps: usize,
    episodes: usize,
    seed: u64,
    set: &'a str,
    faults: Vec<String>,
    version: &'a str,
    /// Which of the figures the published table shows.
    headline: &'a str,
    #[serde(flatten)]
    summary: Summary,
    /// With `--weights`.
    #[serde(skip_serializing_if = "Option::is_none")]
    recoding: Option<Recoding>,
}

pub fn eval(args: &EvalArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let mut scenario = args.scenario.scenario()?;
    scenario.agents = args.agents.or(scenario.agents);
    scenario.set.clone_from(&args.set);
    let mut team = scenario.team(problems)?;
    let episodes = scenario.episodes(&team, args.episodes)?;
    let before = match args.weights {
        None => None,
        Some(_) => {
            let policy = team.parsed_policy();
            let experiment = team.experiment(policy.as_ref());
            Some(evaluate(&experiment, &episodes, "as it is")?)
        }
    };
    let mut recoding = None;
    if let (Some(weights), Some(before)) = (args.weights, &before) {
        let Some(file) = &team.policy else {
            anyhow::bail!("--weights belongs to --controller policy");
        };
        let recoded = file.recoded(weights)?;
        recoding = Some(Recoding {
            weights: policy_file::name(weights),
            before: headline(&team.problem, before),
            after: f64::NAN,
            ratio: f64::NAN,
            bytes_before: file.bytes().len(),
            bytes_after: recoded.bytes().len(),
        });
        team.policy = Some(recoded);
    }
    let policy = team.parsed_policy();
    let experiment = team.experiment(policy.as_ref());
    let summary = evaluate(&experiment, &episodes, "episodes")?;
    if let Some(recoding) = &mut recoding {
        recoding.after = headline(&team.problem, &summary);
        recoding.ratio = recoding.after / recoding.before;
    }
    if args.json {
        let evaluation = Evaluation {
            problem: team.problem.name,
            variant: scenario.variant.as_deref(),
            physics: team.problem.changed_physics().collect(),
            controller: team.kind.name(),
            policy_hash: team.policy.as_ref().map(|f| f.hash()),
            agents: team.agents,
            steps: team.steps,
            episodes: episodes.len(),
            seed: scenario.seed,
            set: &scenario.set,
            faults: team.faults.iter().map(ToString::to_string).collect(),
            version: VERSION,
            headline: headline_name(&team.problem),
            summary,
            recoding,
        };
        return print(&(serde_json::to_string_pretty(&evaluation)? + "\n"));
    }
    let mut rows = Vec::new();
    let mut name = team.kind.name().to_owned();
    if let (Some(recoding), Some(before)) = (&recoding, before) {
        rows.push((format!("{name} as it is"), before));
        name += &format!(", {} weights", recoding.weights);
    }
    rows.push((name, summary));
    rows.extend(yardsticks(&team, &experiment, &episodes)?);
    rows.extend(variants(&scenario, problems, &episodes)?);
    print(&format!(
        "{} · {} agents · {} episodes of the {} set\n\n{}\n{}",
        provenance(&team.problem, scenario.seed, team.policy.as_ref()),
        team.agents,
        episodes.len(),
        scenario.set,
        summary_table(&team.problem, &rows),
        cost(&team.problem, recoding.as_ref()) + &notes(&team.problem, team.agents),
    ))
}

/// The figure that the published table shows.
fn headline(problem: &Problem, summary: &Summary) -> f64 {
    match problem.scoring.headline {
        Headline::Final => summary.final_error.mean,
        Headline::TimeMean => summary.time_mean.mean,
    }
}

/// What other weights cost, in a sentence.
fn cost(problem: &Problem, recoding: Option<&Recoding>) -> String {
    let Some(r) = recoding else {
        return String::new();
    };
    let figure = match problem.scoring.headline {
        Headline::Final => "final error",
        Headline::TimeMean => "time-mean error",
    };
    format!(
        "  {} weights: {figure} {} instead of {}, {:.3} times; {} bytes instead of {}, {:.3} times.\n",
        r.weights,
        number(r.after),
        number(r.before),
        r.ratio,
        r.bytes_after,
        r.bytes_before,
        r.bytes_after as f64 / r.bytes_before as f64,
    )
}

/// No control and proportional feedback, on the same episodes with the same faults.
fn yardsticks(
    team: &Team,
    experiment: &Experiment<'_>,
    episodes: &[Episode],
) -> anyhow::Result<Vec<(String, Summary)>> {
    let tuned = team.problem.baseline_for(team.agents);
    let feedback = tuned.map(Controller::Proportional);
    let feedback = feedback.map(|law| (ControllerKind::Proportional, law));
    let mut rows = Vec::new();
    for (kind, controller) in [(ControllerKind::None, Controller::None)]
        .into_iter()
        .chain(feedback)
    {
        if kind != team.kind {
            let experiment = Experiment {
                controller,
                ..*experiment
            };
            let summary = evaluate(&experiment, episodes, "yardstick")?;
            rows.push((kind.name().to_owned(), summary));
        }
    }
    Ok(rows)
}

/// The same under the problem's other forms, unless one was asked for.
fn variants(
    scenario: &Scenario,
    problems: &Problems,
    episodes: &[Episode],
) -> anyhow::Result<Vec<(String, Summary)>> {
    let mut rows = Vec::new();
    if scenario.variant.is_some() {
        return Ok(rows);
    }
    for variant in scenario.team(problems)?.problem.variants {
        let other = Scenario {
            variant: Some(variant.name.to_owned()),
            ..scenario.clone()
        };
        let team = other.team(problems)?;
        let policy = team.parsed_policy();
        let experiment = team.experiment(policy.as_ref());
        let name = |kind: &str| format!("{kind}, {}", variant.name);
        let summary = evaluate(&experiment, episodes, variant.name)?;
        rows.push((name(team.kind.name()), summary));
        let more = yardsticks(&team, &experiment, episodes)?;
        rows.extend(
            more.into_iter()
                .map(|(kind, summary)| (name(&kind), summary)),
        );
    }
    Ok(rows)
}

/// An episode of a set that blew up.
#[derive(Debug, thiserror::Error)]
#[error(
    "episode {episode}: {source}; agent-sim run --episode {episode} saves its last finite state"
)]
pub struct EpisodeBlownUp {
    episode: usize,
    source: BlownUp,
}

/// Runs all episodes, in parallel, and summarises their scores in order.
pub fn evaluate(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Summary, EpisodeBlownUp> {
    let progress = Progress::new(episodes.len(), what);
    let scores: Result<Vec<Score>, EpisodeBlownUp> = episodes
        .par_iter()
        .enumerate()
        .map(|(index, episode)| {
            let experiment = Experiment {
                seed: fault_seed(experiment.seed, index),
                ..*experiment
            };
            let score = experiment.run(episode, &mut |_| {});
            progress.tick();
            score.map_err(|source| EpisodeBlownUp {
                episode: index,
                source,
            })
        })
        .collect();
    Ok(Summary::of(&scores?))
}

/// One row per controller.
fn summary_table(problem: &Problem, rows: &[(String, Summary)]) -> String {
    let mut head = vec![
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
    if !problem.keep_out.is_empty() {
        head.push("in keep-out zones");
    }
    let mut cells = vec![
        head.iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    ];
    for (name, s) in rows {
        let mut row = vec![name.clone()];
        let f = &s.final_error;
        let mut figures = vec![f.mean, f.std, f.median, f.p95, f.worst];
        figures.extend([
            s.time_mean.mean,
            s.time_mean.std,
            s.effort.mean,
            s.travel.mean,
        ]);
        figures.push(s.intrusion.mean);
        row.extend(figures.iter().take(head.len() - 1).map(|f| number(*f)));
        cells.push(row);
    }
    table(&cells)
}

/// Name of the figure that the published table shows, as in the JSON output.
pub fn headline_name(problem: &Problem) -> &'static str {
    match problem.scoring.headline {
        Headline::Final => "final",
        Headline::TimeMean => "time_mean",
    }
}

/// What the figures mean and what the proportional yardstick is.
pub fn notes(problem: &Problem, agents: usize) -> String {
    let mut text = String::from("  Errors are mean squared");
    if !problem.tracking {
        text += " (of the field: the target is zero)";
    }
    text += match problem.scoring.headline {
        Headline::Final => "; the paper's table shows the final one",
        Headline::TimeMean => "; the paper's table shows the time mean",
    };
    if problem.scoring.records == Records::BeforeAction {
        text += ", recorded before each action";
    }
    let effort = match problem.actuation.drives {
        Drives::Source => "u²",
        Drives::Flow => "|v|²",
    };
    text += &format!(".\n  Effort is mean {effort}, travel the mean path length.");
    if let Some(law) = problem.baseline_for(agents) {
        text += &format!(" Proportional: {},\n  ", rule(problem, law));
        text += &format!(
            "gain tuned on fresh episodes (agent-sim tune {}).",
            problem.name
        );
    }
    text + "\n"
}

/// A feedback law, for people.
fn rule(problem: &Problem, law: Proportional) -> String {
    let sensing = match law.sensing {
        ErrorSensing::Point => "point",
        ErrorSensing::Kernel => "kernel-averaged",
    };
    // Gains of other numbers of agents are fractions.
    let gain = (1e3 * law.gain).round() / 1e3;
    let Actuation {
        force_max,
        velocity_max,
        ..
    } = problem.actuation;
    let law = match problem.actuation.drives {
        Drives::Source => format!("u = clip(−{gain}·error, ±{force_max})"),
        Drives::Flow => format!("v = clip({gain}·error·∇z, {velocity_max})"),
    };
    format!("{law} on the {sensing} error")
}
