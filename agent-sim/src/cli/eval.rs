//! `agent-sim eval`: many episodes, statistics of the scores.

use super::origin::origin;
use super::plant_args::{PlantArgs, on_plant};
use super::progress::Progress;
use super::rows::Rows;
use super::run::aside;
use super::scenario_args::ScenarioArgs;
use super::{VERSION, print, provenance, say_beforehand, use_threads};
use crate::centre::{Bring, Decisions};
use crate::controller::{ControllerKind, Experiment, YARDSTICKS};
use crate::episode::RunError;
use crate::plant::Shared;
use crate::scenario::{Scenario, Team, fault_seed};
use crate::table::{number, table};
use agent_core::policy::{Encoding, Policy};
use anyhow::bail;
use artifacts::output::tell;
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

/// What `eval` takes.
#[derive(Args)]
pub struct EvalArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    plant: PlantArgs,
    /// Number of agents [default: as published]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Episodes: table (published), fresh (drawn by --seed) or the path of a .npy file, resampled if
    /// it is on another grid
    #[arg(long, default_value = "table", value_name = "SET")]
    set: String,
    /// The step from which on errors count in means over time, e.g. 350 for the last 50 of 400
    /// [default: as published]
    #[arg(long, value_name = "T")]
    from: Option<usize>,
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

impl EvalArgs {
    /// Lets means over time begin where they are asked to.
    fn count_from(&self, team: &mut Team) -> anyhow::Result<()> {
        let Some(from) = self.from else {
            return Ok(());
        };
        if from >= team.steps {
            let last = team.steps - 1;
            bail!(
                "--from {from} leaves none of {} steps; give 0 to {last}",
                team.steps
            );
        }
        team.problem.scoring.from = from;
        Ok(())
    }
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
    /// What computed the field, where the problem's own solver did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    plant: Option<&'a str>,
    agents: usize,
    steps: usize,
    /// The step from which on errors count in means over time.
    from: usize,
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
    /// How long a controller that plans took to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<Decisions>,
    /// With `--weights`.
    #[serde(skip_serializing_if = "Option::is_none")]
    recoding: Option<Recoding>,
}

/// Runs the command, also with controllers that others bring.
pub fn eval(args: &EvalArgs, problems: &Problems, brought: &[&dyn Bring]) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let mut scenario = args.scenario.scenario()?;
    scenario.agents = args.agents.or(scenario.agents);
    scenario.set.clone_from(&args.set);
    args.plant.settle(&mut scenario)?;
    let mut team = scenario.team_with(problems, brought)?;
    args.count_from(&mut team)?;
    let episodes = scenario.episodes(&team, args.episodes)?;
    let resampled = scenario.resampled(&team)?;
    if args.weights.is_some() && team.policy.is_none() {
        bail!("--weights belongs to --controller policy");
    }
    let rows = args.rows.as_deref().map(Rows::create).transpose()?;
    let write = |mut rows: Rows, team: &Team, results: &[Evaluated]| -> anyhow::Result<String> {
        for result in results {
            let mut origin = origin(&scenario, team, resampled.as_ref(), None);
            for (name, value) in &mut origin {
                match *name {
                    "substeps" => *value = json!(result.substeps),
                    "gain" => *value = json!(result.gain),
                    "policy_hash" => *value = json!(result.policy_hash),
                    "plant" => *value = json!(result.plant),
                    _ => {}
                }
            }
            let name = vec![
                ("controller", json!(result.kind.name)),
                ("variant", json!(result.variant)),
                ("weights", json!(result.weights)),
            ];
            rows.add(&name, &origin, &result.scores, team.problem.scoring)?;
        }
        Ok(format!("  wrote {}\n", rows.finish()?.display()))
    };
    say_beforehand(&scenario, &team, resampled.as_ref());
    let plant = args.plant.open(&scenario, &team.problem)?;

    let mut results = Vec::new();
    let contest = Contest {
        args,
        scenario: &scenario,
        problems,
        brought,
        episodes: &episodes,
        plant: plant.as_ref(),
    };
    let recoding = match contest.hold(&mut team, &mut results) {
        Ok(recoding) => recoding,
        // A plant may not do the same again: scores that there are already are kept.
        Err(ended) if ended.is::<PlantGaveUp>() => match rows {
            Some(rows) => bail!("{ended}\n{}", write(rows, &team, &results)?.trim_end()),
            None => return Err(ended),
        },
        Err(ended) => return Err(ended),
    };
    let result = &results[usize::from(recoding.is_some())];
    let (summary, asked_for) = (result.summary(), result.decisions);
    let mut wrote = String::new();
    if let Some(rows) = rows {
        wrote = format!("\n{}", write(rows, &team, &results)?);
    }
    if args.json {
        let evaluation = Evaluation {
            problem: team.problem.name,
            variant: scenario.variant.as_deref(),
            physics: team.problem.changed_physics().collect(),
            controller: team.kind.name,
            policy_hash: team.policy.as_ref().map(|f| f.hash()),
            plant: plant.as_ref().map(Shared::name),
            agents: team.agents,
            steps: team.steps,
            from: team.problem.scoring.from,
            episodes: episodes.len(),
            seed: scenario.seed,
            set: &scenario.set,
            resampled: resampled.as_ref(),
            faults: team.faults.iter().map(ToString::to_string).collect(),
            version: VERSION,
            headline: headline_name(&team.problem),
            summary,
            decisions: asked_for,
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
        provenance(&team.problem, scenario.seed, team.policy.as_ref()) + &on_plant(plant.as_ref()),
        team.agents,
        episodes.len(),
        scenario.set,
        aside(resampled.as_ref()),
        summary_table(&team.problem, &shown),
        asked_for.map_or(String::new(), thought)
            + &cost(&team.problem, recoding.as_ref())
            + &notes(&team.problem, team.agents),
    ))
}

/// Weights that were not stored in another way.
const AS_IT_IS: &str = "as it is";

/// All that one call of the command runs.
struct Contest<'a> {
    args: &'a EvalArgs,
    scenario: &'a Scenario,
    problems: &'a Problems,
    brought: &'a [&'a dyn Bring],
    episodes: &'a [Episode],
    plant: Option<&'a Shared>,
}

impl Contest<'_> {
    /// Runs everybody; `results` has those who are done, also if another is not. With `--weights` the team
    /// has the policy in its new form afterwards, and what that costs comes back.
    fn hold(
        &self,
        team: &mut Team,
        results: &mut Vec<Evaluated>,
    ) -> anyhow::Result<Option<Recoding>> {
        let mut recoding = None;
        if let (Some(weights), Some(file)) = (self.args.weights, team.policy.clone()) {
            let policy = team.parsed_policy();
            let experiment = self.experiment(team, policy.as_ref());
            self.enter(team, &experiment, AS_IT_IS, results)?;
            let recoded = file.recoded(weights)?;
            recoding = Some(Recoding {
                weights: policy_file::name(weights),
                before: headline(&team.problem, &results[0].summary()),
                after: f64::NAN,
                ratio: f64::NAN,
                bytes_before: file.bytes().len(),
                bytes_after: recoded.bytes().len(),
            });
            team.policy = Some(recoded);
        }
        let policy = team.parsed_policy();
        let experiment = self.experiment(team, policy.as_ref());
        self.enter(team, &experiment, "episodes", results)?;
        if let Some(recoding) = &mut recoding {
            let [before, after] = &mut results[..] else {
                unreachable!("two were run");
            };
            recoding.after = headline(&team.problem, &after.summary());
            recoding.ratio = recoding.after / recoding.before;
            before.weights = Some(AS_IT_IS);
            after.weights = Some(recoding.weights);
        }
        if self.args.json {
            return Ok(recoding);
        }
        self.yardsticks(team, &experiment, results)?;
        match self.plant {
            None => self.variants(results)?,
            // What the problem's own solver makes of it; its forms are no matter of the plant's.
            Some(_) => {
                let experiment = Experiment {
                    plant: None,
                    ..experiment
                };
                self.enter(team, &experiment, "built-in field", results)?;
            }
        }
        Ok(recoding)
    }

    fn experiment<'p>(&'p self, team: &'p Team, policy: Option<&'p Policy<'p>>) -> Experiment<'p> {
        Experiment {
            plant: self.plant,
            ..team.experiment(policy)
        }
    }

    /// Runs a team's controller.
    fn enter(
        &self,
        team: &Team,
        experiment: &Experiment<'_>,
        what: &'static str,
        results: &mut Vec<Evaluated>,
    ) -> anyhow::Result<()> {
        let run = scores(experiment, self.episodes, what);
        let (scores, ended) = match run {
            Ok(scores) => (scores, None),
            Err((ended, _)) if ended.is_blown_up() => return Err(ended.into()),
            Err((ended, scores)) => (scores, Some(PlantGaveUp(ended))),
        };
        results.push(Evaluated::new(team, experiment, scores));
        ended.map_or(Ok(()), |ended| Err(ended.into()))
    }

    /// No control and proportional feedback, on the same episodes with the same faults.
    fn yardsticks(
        &self,
        team: &Team,
        experiment: &Experiment<'_>,
        results: &mut Vec<Evaluated>,
    ) -> anyhow::Result<()> {
        for kind in YARDSTICKS.into_iter().filter(|kind| *kind != team.kind) {
            if let Some(controller) = (kind.yardstick)(&team.problem, team.agents) {
                let experiment = Experiment {
                    controller,
                    ..*experiment
                };
                self.enter(team, &experiment, "yardstick", results)?;
            }
        }
        Ok(())
    }

    /// The same under the problem's other forms, unless one was asked for.
    fn variants(&self, results: &mut Vec<Evaluated>) -> anyhow::Result<()> {
        if self.scenario.variant.is_some() {
            return Ok(());
        }
        for variant in self
            .scenario
            .team_with(self.problems, self.brought)?
            .problem
            .variants
        {
            let other = Scenario {
                variant: Some(variant.name.to_owned()),
                ..self.scenario.clone()
            };
            let mut team = other.team_with(self.problems, self.brought)?;
            self.args.count_from(&mut team)?;
            let policy = team.parsed_policy();
            let experiment = team.experiment(policy.as_ref());
            self.enter(&team, &experiment, variant.name, results)?;
            self.yardsticks(&team, &experiment, results)?;
        }
        Ok(())
    }
}

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
    /// What computed the field; the problem's own solver if there is none.
    plant: Option<String>,
    /// How long it took to decide, where that is worth knowing.
    decisions: Option<Decisions>,
    scores: Vec<Score>,
}

impl Evaluated {
    fn new(team: &Team, experiment: &Experiment<'_>, scores: Vec<Score>) -> Self {
        let kind = experiment.controller.kind();
        let policy = team.policy.as_ref().filter(|_| kind == team.kind);
        Self {
            kind,
            variant: team.problem.form,
            substeps: team.problem.substeps,
            weights: None,
            gain: experiment.controller.gain(),
            policy_hash: policy.map(|file| file.hash()),
            plant: experiment.plant.map(|plant| plant.name().to_owned()),
            decisions: experiment.controller.decisions(),
            scores,
        }
    }

    fn summary(&self) -> Summary {
        Summary::of(&self.scores)
    }

    /// In a table: what tells it from the others.
    fn name(&self, scenario: &Scenario) -> String {
        let kind = self.kind.name;
        match (self.weights, self.variant) {
            _ if scenario.plant.is_some() && self.plant.is_none() => {
                format!("{kind}, built-in field")
            }
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

/// How long decisions took, in a sentence.
pub fn thought(decisions: Decisions) -> String {
    let Decisions {
        count,
        mean_ms,
        worst_ms,
    } = decisions;
    format!("  {count} decisions took {mean_ms:.1} ms each, {worst_ms:.1} ms at most.\n")
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

/// An episode of a set that ended before its time.
#[derive(Debug, thiserror::Error)]
#[error("episode {episode}: {source}{}", advice(*episode, source))]
pub struct EpisodeEnded {
    episode: usize,
    source: RunError,
}

/// What else there is to know of a field that blew up.
fn advice(episode: usize, error: &RunError) -> String {
    let RunError::BlownUp(blown) = error else {
        return String::new();
    };
    let coarse = blown.too_coarse.as_ref();
    format!(
        "; agent-sim run --episode {episode} saves its last finite state{}",
        coarse.map_or(String::new(), |coarse| format!(". Before, {coarse}"))
    )
}

impl EpisodeEnded {
    /// Whether the field blew up, which says something of who controlled it.
    pub fn is_blown_up(&self) -> bool {
        matches!(self.source, RunError::BlownUp(_))
    }
}

/// The plant failed, which says nothing of who controlled it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct PlantGaveUp(EpisodeEnded);

/// Runs all episodes and summarises their scores.
pub fn evaluate(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Summary, EpisodeEnded> {
    match scores(experiment, episodes, what) {
        Ok(scores) => Ok(Summary::of(&scores)),
        Err((ended, _)) => Err(ended),
    }
}

/// Runs all episodes, in parallel, or one after the other where there is one plant for all; the scores
/// are in their order. If an episode ends before its time, there are those before it.
fn scores(
    experiment: &Experiment<'_>,
    episodes: &[Episode],
    what: &'static str,
) -> Result<Vec<Score>, (EpisodeEnded, Vec<Score>)> {
    let progress = Progress::new(episodes.len(), what);
    let run = |(index, episode): (usize, &Episode)| {
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
    };
    let (mut scores, mut coarse) = (Vec::new(), Vec::new());
    let mut take = |(score, too_coarse): (Score, Option<TooCoarse>)| {
        scores.push(score);
        coarse.extend(too_coarse);
    };
    let ended = match experiment.plant {
        None => {
            let ends: Result<Vec<_>, _> = episodes.par_iter().enumerate().map(run).collect();
            ends.map(|ends| ends.into_iter().for_each(&mut take))
        }
        Some(_) => {
            (episodes.iter().enumerate()).try_for_each(|episode| run(episode).map(&mut take))
        }
    };
    if let Err(ended) = ended {
        return Err((ended, scores));
    }
    if let Some(worst) = coarse.iter().max_by(|a, b| a.share.total_cmp(&b.share)) {
        let (of, all) = (coarse.len(), episodes.len());
        tell(&format!("warning: {what}, {of} of {all} episodes: {worst}"));
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
