//! Thousands of broken swarms a problem: how often they fail what is required of them, and the worst of them.

use super::{Scope, Study};
use crate::cell::{Cell, Outcome, Outcomes, Work};
use crate::findings::{Findings, Table};
use crate::shelf::Shelf;
use agent_sim::campaign::{Points, Settings, Space, Tally};
use agent_sim::hunt::{Method, search, shrink, story};
use agent_sim::requirement::{Requirement, Verdict};
use agent_sim::scenario::{Scenario, Team};
use agent_sim::table::number;
use anyhow::Context;
use artifacts::policy_file::PolicyFile;
use problem::{Episode, Problems};
use rayon::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Campaigns and hunts with the shipped policies.
pub struct Campaigns;

/// A space of scenarios, and what is made of it.
struct Field {
    /// A file of `examples/campaigns`.
    text: &'static str,
    /// Runs of the hunt: about ten minutes of one core.
    hunt: usize,
    /// About how long a run takes, in milliseconds.
    cost: u64,
}

macro_rules! field {
    ($name:literal, $hunt:literal, $cost:literal) => {
        Field {
            text: include_str!(concat!("../../../examples/campaigns/", $name, ".toml")),
            hunt: $hunt,
            cost: $cost,
        }
    };
}

const FIELDS: [Field; 8] = [
    field!("heat-1d", 40_000, 15),
    field!("fkpp-1d", 14_000, 43),
    field!("heat-2d", 20_000, 31),
    field!("heat-2d-obstacles", 18_000, 34),
    field!("ks-1d", 26_000, 23),
    field!("ks-2d", 1_600, 380),
    field!("turbulence-2d", 1_600, 410),
    field!("density-2d", 11_000, 55),
];

/// What is written in place of a margin that has no bottom.
const BOTTOMLESS: f64 = -1e300;

/// Runs that a scenario may take to be made smaller, in quick runs and in full ones.
const SHRINKING: [usize; 2] = [4, 200];

/// The space of a field, with the policy that is held to it.
#[derive(Clone)]
struct Court {
    text: &'static str,
    space: Arc<Space>,
    policy: Arc<PolicyFile>,
    requirements: Vec<Requirement>,
}

impl Court {
    fn new(field: &Field, scope: &Scope) -> anyhow::Result<Self> {
        let problems = Problems::published();
        let space = Space::read(field.text, &problems)?;
        let space = space.searched(Settings {
            runs: scope.pick(2, space.settings.runs),
            ..space.settings.clone()
        });
        let team = space.scenario(&space.middle())?.team(&problems)?;
        Ok(Self {
            text: field.text,
            policy: scope.policy(&team.problem)?,
            requirements: team.requirements,
            space: Arc::new(space),
        })
    }

    /// The name of the problem.
    fn problem(&self) -> anyhow::Result<String> {
        Ok(self.space.scenario(&self.space.middle())?.problem)
    }

    fn set_up(&self, scenario: &Scenario) -> anyhow::Result<(Team, Episode)> {
        let mut team = scenario.team(&Problems::published())?;
        team.policy = Some((*self.policy).clone());
        let episode = scenario.episode(&team)?;
        Ok((team, episode))
    }

    fn judge(&self, scenario: &Scenario) -> anyhow::Result<Verdict> {
        let (team, episode) = self.set_up(scenario)?;
        Ok(team.judged(&episode, None, &mut |_| {}).1)
    }

    fn key(&self) -> serde_json::Value {
        json!({ "space": self.text, "policy": self.policy.hash() })
    }
}

/// The runs of a campaign; their figures are the margins of what is required.
struct Runs {
    court: Court,
    points: Vec<Vec<f64>>,
    cost: u64,
}

impl Work for Runs {
    fn key(&self) -> serde_json::Value {
        json!({ "campaign": self.court.key(), "runs": self.points.len() })
    }

    fn pieces(&self) -> usize {
        self.points.len()
    }

    fn cost(&self) -> u64 {
        self.cost * 1_000_000
    }

    fn figures(&self) -> Vec<String> {
        let required = self.court.requirements.iter();
        required.map(ToString::to_string).collect()
    }

    fn run(&self, piece: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let scenario = self.court.space.scenario(&self.points[piece])?;
        let verdict = self.court.judge(&scenario)?;
        if verdict.cut.is_some() {
            return Ok(None);
        }
        let margins = verdict.judged.iter();
        Ok(Some(margins.map(|j| j.margin.max(BOTTOMLESS)).collect()))
    }
}

/// A search for the worst run; its figures say how it went, and where in the space the worst is.
struct Hunt {
    court: Court,
    runs: usize,
    cost: u64,
}

const TRAIL: [&str; 3] = ["runs", "failed", "margin"];

impl Work for Hunt {
    fn key(&self) -> serde_json::Value {
        json!({ "hunt": self.court.key(), "runs": self.runs })
    }

    fn pieces(&self) -> usize {
        1
    }

    fn cost(&self) -> u64 {
        self.cost * 1_000_000 * self.runs as u64
    }

    fn figures(&self) -> Vec<String> {
        let place = (0..self.court.space.coordinates).map(coordinate);
        TRAIL.map(String::from).into_iter().chain(place).collect()
    }

    fn run(&self, _: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let court = &self.court;
        let run = |point: &[f64]| {
            let scenario = court.space.scenario(point).map_err(anyhow::Error::from);
            let verdict = scenario.and_then(|scenario| court.judge(&scenario));
            // All scenarios of a space that was read can be run.
            verdict.map_or(f64::INFINITY, |verdict| verdict.margin())
        };
        let mut go_on = |trail: &agent_sim::hunt::Trail| trail.runs < self.runs;
        let seed = court.space.settings.seed;
        let trail = search(&court.space, Method::Portfolio, seed, &mut go_on, &run);
        let (point, margin) = trail.worst().context("a hunt makes runs")?;
        let went = [
            trail.runs as f64,
            trail.failed as f64,
            margin.max(BOTTOMLESS),
        ];
        Ok(Some([&went, point].concat()))
    }
}

fn coordinate(k: usize) -> String {
    format!("x{k}")
}

/// The worst run that a hunt found, as small as it gets, in words.
fn tell(scope: &Scope, court: &Court, hunt: &Outcome) -> anyhow::Result<String> {
    let only = |name: &str| hunt.figure(name).mean;
    let coordinates = 0..court.space.coordinates;
    let point: Vec<f64> = coordinates.map(|k| only(&coordinate(k))).collect();
    let worst = court.space.scenario(&point)?;
    let verdict = court.judge(&worst)?;
    let lost = verdict.worst();
    let mut scenario = worst.clone();
    if !verdict.holds() {
        let required = court.requirements.get(lost);
        let [quick, full] = SHRINKING;
        let mut left = scope.pick(quick, full);
        let mut go_on = || {
            left = left.saturating_sub(1);
            left > 0
        };
        let mut fails = |smaller: &Scenario| {
            let now = court.judge(smaller);
            now.is_ok_and(|now| now.fails_like(&verdict))
        };
        let required = required.filter(|_| verdict.cut.is_none());
        let problems = Problems::published();
        scenario = shrink(&worst, &problems, required, &mut go_on, &mut fails).scenario;
    }
    let bare = scenario.without_faults();
    let (team, episode) = court.set_up(&scenario)?;
    let (now, without) = (court.judge(&scenario)?, court.judge(&bare).ok());
    Ok(story(&team, &episode, &now, lost, without.as_ref()))
}

impl Study for Campaigns {
    fn name(&self) -> &'static str {
        "campaigns"
    }

    fn title(&self) -> &'static str {
        "Campaigns: how often broken swarms fail, and the worst of them"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for field in &FIELDS {
            let court = Court::new(field, scope)?;
            let problem = court.problem()?;
            let hunt = Hunt {
                court: court.clone(),
                runs: scope.pick(2, field.hunt),
                cost: field.cost,
            };
            cells.push(Cell::new(format!("{problem}, hunt"), hunt));
            let runs = Runs {
                points: Points::from(&court.space, 0).collect(),
                court,
                cost: field.cost,
            };
            cells.push(Cell::new(format!("{problem}, campaign"), runs));
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![
                "The spaces of scenarios of `examples/campaigns`: swarms of several sizes on fresh fields, in \
                 which agents crash, sensors are noisy and observations come late, all at once. A run \
                 fails where one of its requirements does not hold; margins are the distance from that, as \
                 a share of the bound. Probabilities are Wilson's bounds, 95 %, for scenarios drawn as these \
                 were. Hunts search the same spaces for the worst run, for about ten minutes of one core; \
                 `agent-sim hunt examples/campaigns/PROBLEM.toml` does it again, and \
                 [campaigns.md](../campaigns.md) says how."
                    .to_owned(),
            ],
            ..Findings::default()
        };
        findings.csv.push(
            [
                "problem", "required", "runs", "failed", "low", "high", "worst", "median",
            ]
            .map(String::from)
            .to_vec(),
        );
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        let mut courts = Vec::new();
        for field in &FIELDS {
            let court = Court::new(field, scope)?;
            let problem = court.problem()?;
            let runs = outcomes.of(&format!("{problem}, campaign"))?;
            let hunt = outcomes.of(&format!("{problem}, hunt"))?;
            let margins: Vec<Vec<f64>> = (runs.rows.iter())
                .map(|row| {
                    let cut = vec![BOTTOMLESS; court.requirements.len()];
                    row.clone().unwrap_or(cut)
                })
                .collect();
            let smallest = |row: &Vec<f64>| row.iter().copied().fold(f64::INFINITY, f64::min);
            let margins_of = |k: usize| margins.iter().map(|row| row[k]).collect::<Vec<f64>>();
            let all = Tally::of(
                "all".to_owned(),
                &margins.iter().map(smallest).collect::<Vec<f64>>(),
            );
            findings.csv.push(csv_row(&problem, &all));
            let each = court.requirements.iter().enumerate();
            let each: Vec<Tally> = each
                .map(|(k, requirement)| Tally::of(requirement.to_string(), &margins_of(k)))
                .collect();
            findings
                .csv
                .extend(each.iter().map(|tally| csv_row(&problem, tally)));
            let most = each.iter().max_by_key(|tally| tally.failed);
            let most = most.filter(|tally| tally.failed > 0);
            let hunted = |name| hunt.figure(name).mean;
            rows.push(vec![
                format!("`{problem}`"),
                all.runs.to_string(),
                all.failed.to_string(),
                percent(all.probability),
                margin_text(all.worst_margin),
                most.map_or("–".to_owned(), |tally| format!("`{}`", tally.requirement)),
                format!("{}", hunted("runs")),
                format!("{}", hunted("failed")),
                margin_text(hunted("margin")),
            ]);
            courts.push((problem, court, hunt));
        }
        let told: Vec<anyhow::Result<String>> = (courts.par_iter())
            .map(|(_, court, hunt)| tell(scope, court, hunt))
            .collect();
        for ((problem, ..), told) in courts.iter().zip(told) {
            found.push(vec![format!("`{problem}`"), told?]);
        }
        let head = [
            "",
            "runs",
            "fail",
            "probability",
            "worst margin",
            "what fails most",
            "runs of the hunt",
            "fail",
            "worst margin",
        ];
        findings
            .tables
            .push(Table::new("Campaigns, and hunts", &head, rows));
        let title = "The worst run of each hunt, made as small as it gets";
        findings
            .tables
            .push(Table::new(title, &["", "what happens"], found));
        Ok(findings)
    }
}

fn csv_row(problem: &str, tally: &Tally) -> Vec<String> {
    let [low, high] = tally.probability;
    let mut row = vec![problem.to_owned(), tally.requirement.clone()];
    row.extend([tally.runs, tally.failed].map(|count| count.to_string()));
    let figures = [low, high, tally.worst_margin, tally.median_margin];
    row.extend(figures.map(|figure| format!("{figure:e}")));
    row
}

fn percent([low, high]: [f64; 2]) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

fn margin_text(margin: f64) -> String {
    match margin <= BOTTOMLESS {
        true => "the field blows up".to_owned(),
        false => number(margin),
    }
}
