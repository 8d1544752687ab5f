//! `agent-sim eval`: many episodes, statistics of the scores.

use super::origin::origin;
use super::progress::Progress;
use super::rows::Rows;
use super::run::aside;
use super::scenario_args::ScenarioArgs;
use super::{VERSION, print, provenance, say_beforehand, use_threads};
use crate::controller::{Controller, Experiment};
use crate::episode::RunError;
use crate::scenario::{ControllerKind, Scenario, Team, fault_seed};
use crate::table::{number, table};
use agent_core::policy::Encoding;
use artifacts::policy_file;
use clap::Args;
use problem::metrics::{Score, Summary};
use problem::resolution::TooCoarse;
use problem::test_set::Resampled;
use problem::{
    Actuation, Drives, Episode, ErrorSensing, Headline, Problem, Problems, Proportional, Records,
};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Args)]
pub struct EvalArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of agents [default: as published]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Episodes: table (published), fresh (drawn by --seed) or the path of a .npy file, resampled if
    /// it is on another grid
    #[arg(long, default_value = "table", value_name = "SET")]
    set: String,
    /// Number of episodes [default: all of a set, 50 fresh ones]
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Store the policy's weights in this way first, f32 or int8, and say what that costs
    #[arg(long, value_name = "FORM", value_parser = policy_file::encoding)]
    weights: Option<Encoding>,
    /// Write the score of each episode too, by the name of the file as CSV (.csv) or as one JSON
    /// object a line (.jsonl); of all controllers that are shown
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
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
    /// If the set came on another grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    resampled: Option<&'a Resampled>,
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
    let resampled = scenario.resampled(&team)?;
    if args.weights.is_some() && team.policy.is_none() {
        anyhow::bail!("--weights belongs to --controller policy");
    }
    let rows = args.rows.as_deref().map(Rows::create).transpose()?;
    say_beforehand(&scenario, &team, resampled.as_ref());

    let mut results = Vec::new();
    let mut recoding = None;
    if let (Some(weights), Some(file)) = (args.weights, team.policy.clone()) {
        let policy = team.parsed_policy();
        let experiment = team.experiment(policy.as_ref());
        let before = Evaluated::new(&team, &experiment, &episodes, AS_IT_IS)?;
        let recoded = file.recoded(weights)?;
        recoding = Some(Recoding {
            weights: policy_file::name(weights),
            before: headline(&team.problem, &before.summary()),
            after: f64::NAN,
            ratio: f64::NAN,
            bytes_before: file.bytes().len(),
            bytes_after: recoded.bytes().len(),
        });
        results.push(before);
        team.policy = Some(recoded);
    }
    let policy = team.parsed_policy();
    let experiment = team.experiment(policy.as_ref());
    let asked = Evaluated::new(&team, &experiment, &episodes, "episodes")?;
    let summary = asked.summary();
    results.push(asked);
    if let Some(recoding) = &mut recoding {
        recoding.after = headline(&team.problem, &summary);
        recoding.ratio = recoding.after / recoding.before;
        let [before, after] = &mut results[..] else {
            unreachable!("two were run");
        };
        before.weights = Some(AS_IT_IS);
        after.weights = Some(recoding.weights);
    }
    if !args.json {
        results.extend(yardsticks(&team, &experiment, &episodes)?);
        results.extend(variants(&scenario, problems, &episodes)?);
    }
    let mut wrote = String::new();
    if let Some(mut rows) = rows {
        for result in &results {
            let mut origin = origin(&scenario, &team, resampled.as_ref());
            for (name, value) in &mut origin {
                match *name {
                    "substeps" => *value = json!(result.substeps),
                    "gain" => *value = json!(result.gain),
                    "policy_hash" => *value = json!(result.policy_hash),
                    _ => {}
                }
            }
            let name = vec![
                ("controller", json!(result.kind.name())),
                ("variant", json!(result.variant)),
                ("weights", json!(result.weights)),
            ];
            rows.add(&name, &origin, &result.scores, team.problem.scoring)?;
        }
        wrote = format!("\n  wrote {}\n", rows.finish()?.display());
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
            resampled: resampled.as_ref(),
            faults: team.faults.iter().map(ToString::to_string).collect(),
            version: VERSION,
            headline: headline_name(&team.problem),
            summary,
            recoding,
        };
        return print(&(serde_json::to_string_pretty(&evaluation)? + "\n"));
    }
    let shown: Vec<(String, Summary)> = results
        .iter()
        .map(|result| (result.name(&scenario), result.summary()))
        .collect();
    print(&format!(
        "{} · {} agents · {} episodes of the {} set{}\n\n{}\n{}{wrote}",
        provenance(&team.problem, scenario.seed, team.policy.as_ref()),
        team.agents,
        episodes.len(),
        scenario.set,
        aside(resampled.as_ref()),
        summary_table(&team.problem, &shown),
        cost(&team.problem, recoding.as_ref()) + &notes(&team.problem, team.agents),
    ))
}

/// Weights that were not stored in another way.
const AS_IT_IS: &str = "as it is";

/// A controller and its scores.
struct Evaluated {
    kind: ControllerKind,
    /// The problem's form.
    variant: Option<&'static str>,
    substeps: usize,
    /// How weights are stored, with `--weights`.
    weights: Option<&'static str>,
    gain: Option<f64>,
    policy_hash: Option<String>,
    scores: Vec<Score>,
}

impl Evaluated {
    /// Runs a team's controller.
    fn new(
        team: &Team,
        experiment: &Experiment<'_>,
        episodes: &[Episode],
        what: &'static str,
    ) -> Result<Self, EpisodeEnded> {
        let gain = match experiment.controller {
            Controller::Proportional(law) => Some(law.gain),
            _ => None,
        };
        let (kind, policy) = match experiment.controller {
            Controller::None => (ControllerKind::None, None),
            Controller::Proportional(_) => (ControllerKind::Proportional, None),
            Controller::Policy(_) => (ControllerKind::Policy, team.policy.as_ref()),
        };
        Ok(Self {
            kind,
            variant: team.problem.form,
            substeps: team.problem.substeps,
            weights: None,
            gain,
            policy_hash: policy.map(|file| file.hash()),
            scores: scores(experiment, episodes, what)?,
        })
    }

    fn summary(&self) -> Summary {
        Summary::of(&self.scores)
    }

    /// In a table: what tells it from the others.
    fn name(&self, scenario: &Scenario) -> String {
        let kind = self.kind.name();
        match (self.weights, self.variant) {
            (Some(AS_IT_IS), _) => format!("{kind} {AS_IT_IS}"),
            (Some(weights), _) => format!("{kind}, {weights} weights"),
            (None, Some(form)) if scenario.variant.is_none() => format!("{kind}, {form}"),
            _ => kind.to_owned(),
        }
    }
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
) -> Result<Vec<Evaluated>, EpisodeEnded> {
    let tuned = team.problem.baseline_for(team.agents);
    let feedback = tuned.map(Controller::Proportional);
    let feedback = feedback.map(|law| (ControllerKind::Proportional, law));
    let mut results = Vec::new();
    for (kind, controller) in [(ControllerKind::None, Controller::None)]
        .into_iter()
        .chain(feedback)
    {
        if kind != team.kind {
            let experiment = Experiment {
                controller,
                ..*experiment
            };
            results.push(Evaluated::new(team, &experiment, episodes, "yardstick")?);
        }
    }
    Ok(results)
}

/// The same under the problem's other forms, unless one was asked for.
fn variants(
    scenario: &Scenario,
    problems: &Problems,
    episodes: &[Episode],
) -> anyhow::Result<Vec<Evaluated>> {
    let mut results = Vec::new();
    if scenario.variant.is_some() {
        return Ok(results);
    }
    for variant in scenario.team(problems)?.problem.variants {
        let other = Scenario {
            variant: Some(variant.name.to_owned()),
            ..scenario.clone()
        };
        let team = other.team(problems)?;
        let policy = team.parsed_policy();
        let experiment = team.experiment(policy.as_ref());
        results.push(Evaluated::new(&team, &experiment, episodes, variant.name)?);
        results.extend(yardsticks(&team, &experiment, episodes)?);
    }
    Ok(results)
}

/// An episode of a set that ended before its time.
#[derive(Debug, thiserror::Error)]
#[error(
    "episode {episode}: {source}; agent-sim run --episode {episode} saves its last finite state{}",
    source.too_coarse().map_or(String::new(), |coarse| format!(". Before, {coarse}"))
)]
pub struct EpisodeEnded {
    episode: usize,
    source: RunError,
}

impl EpisodeEnded {
    /// Whether the field blew up, which says something of who controlled it.
    pub fn is_blown_up(&self) -> bool {
        matches!(self.source, RunError::BlownUp(_))
    }
}

/// Runs all episodes, in parallel, and summarises their scores.
pub fn evaluate(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Summary, EpisodeEnded> {
    Ok(Summary::of(&scores(experiment, episodes, what)?))
}

/// Runs all episodes, in parallel; the scores are in their order.
fn scores(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Vec<Score>, EpisodeEnded> {
    let progress = Progress::new(episodes.len(), what);
    let ends: Result<Vec<(Score, Option<TooCoarse>)>, EpisodeEnded> = episodes
        .par_iter()
        .enumerate()
        .map(|(index, episode)| {
            let experiment = Experiment {
                seed: fault_seed(experiment.seed, index),
                ..*experiment
            };
            let mut too_coarse = None;
            let score = experiment.run(episode, &mut |snapshot| {
                if snapshot.step == experiment.steps {
                    too_coarse = experiment.problem.too_coarse(snapshot.field);
                }
            });
            progress.tick();
            let end = score.map(|score| (score, too_coarse));
            end.map_err(|source| EpisodeEnded {
                episode: index,
                source,
            })
        })
        .collect();
    let (scores, too_coarse): (Vec<Score>, Vec<_>) = ends?.into_iter().unzip();
    let coarse = too_coarse.iter().flatten();
    if let Some(worst) = coarse.max_by(|a, b| a.share.total_cmp(&b.share)) {
        let of = too_coarse.iter().flatten().count();
        let all = episodes.len();
        eprintln!("warning: {what}, {of} of {all} episodes: {worst}");
    }
    Ok(scores)
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
    text += match problem.kit {
        None => "; the paper's table shows the ",
        Some(_) => "; the file goes by the ",
    };
    text += match problem.scoring.headline {
        Headline::Final => "final one",
        Headline::TimeMean => "time mean",
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
