//! No common clock, late observations, lost messages.

use super::{Scope, Study, figures, problems_picture};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Table, share_within};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::fault::{
    Fault,
    clock::CLOCK,
    line::{DELAY, LOSS},
};
use agent_sim::report::{Reference, Sweep};
use problem::Problem;

/// Error against drifting clocks, delay and loss.
pub struct Asynchrony;

/// Clocks run fast or slow by up to this share, and begin anywhere in a period.
const RATES: [f64; 3] = [0.05, 0.1, 0.2];
/// Observations come so many steps late.
const DELAYS: [u32; 5] = [1, 2, 3, 4, 5];
/// So many of them get lost.
const LOSSES: [f64; 4] = [0.01, 0.05, 0.1, 0.2];

/// What the bar is about, and its limit over the error without faults.
const JUDGED: (f64, f64) = (0.2, 0.05);
const LIMIT: f64 = 1.5;

/// One thing that is varied.
struct Axis {
    name: &'static str,
    title: &'static str,
    x_label: &'static str,
    /// How strong, and the faults.
    points: Vec<(f64, Vec<Fault>)>,
}

fn clock(rate: f64) -> Fault {
    Fault::new(CLOCK.with("rate", rate).with("phase", 1))
}

fn loss(p: f64) -> Fault {
    Fault::new(LOSS.with("p", p))
}

fn axes(scope: &Scope) -> Vec<Axis> {
    let few = |all: Vec<(f64, Vec<Fault>)>| {
        let last = all[all.len() - 1].clone();
        scope.pick(vec![last], all)
    };
    let delay = |steps: u32| Fault::new(DELAY.with("steps", steps));
    vec![
        Axis {
            name: "clocks",
            title: "Clocks fast or slow by up to a share, beginning anywhere in a period",
            x_label: "share that clocks are off by at most",
            points: few(RATES.map(|rate| (rate, vec![clock(rate)])).to_vec()),
        },
        Axis {
            name: "delay",
            title: "Observations that come some steps late",
            x_label: "steps late",
            points: few(DELAYS
                .map(|steps| (f64::from(steps), vec![delay(steps)]))
                .to_vec()),
        },
        Axis {
            name: "loss",
            title: "A share of the observations gets lost",
            x_label: "share lost",
            points: few(LOSSES.map(|p| (p, vec![loss(p)])).to_vec()),
        },
    ]
}

fn name(problem: &Problem, axis: &str, strength: f64) -> String {
    format!("{}, {axis}, {strength}", problem.name)
}

fn plain(problem: &Problem) -> String {
    problem.name.to_owned()
}

fn together(problem: &Problem) -> String {
    format!("{}, clocks and loss", problem.name)
}

impl Study for Asynchrony {
    fn name(&self) -> &'static str {
        "asynchrony"
    }

    fn title(&self) -> &'static str {
        "Clocks of their own, delays and lost messages"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let policy = scope.policy(problem)?;
            let mut add = |name, faults: Vec<Fault>| {
                let controls = Controls::Policy(policy.clone());
                let trial = SwarmWork {
                    faults,
                    ..SwarmWork::fresh(scope, Setting::of(problem), controls)
                };
                cells.push(Cell::new(name, trial));
            };
            add(plain(problem), Vec::new());
            let (rate, p) = JUDGED;
            add(together(problem), vec![clock(rate), loss(p)]);
            for axis in axes(scope) {
                for (strength, faults) in axis.points {
                    add(name(problem, axis.name, strength), faults);
                }
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let figure =
            |name: &str| -> anyhow::Result<Figure> { Ok(outcomes.of(name)?.figure("headline")) };
        let mut findings = Findings {
            about: vec![format!(
                "Every agent acts when its own clock begins a period, and the host looks after it \
                 eight times per control interval; observations come late or not at all, and an \
                 agent that gets none goes on as agent-core's fail-safe does. {} fresh episodes \
                 each. Errors are shown in per cent of those of the same swarm without faults.",
                scope.episodes()
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "figure", "what", "strength"]);
        for problem in problem::published::measured() {
            let (without, both) = (figure(&plain(problem))?, figure(&together(problem))?);
            findings.csv_row(&[problem.name, "headline", "none", "0"], &without);
            let labels = [problem.name, "headline", "clocks and loss", "0.2 and 0.05"];
            findings.csv_row(&labels, &both);
            let what = format!("`{}`, clocks ± 20 % and 5 % loss", problem.name);
            let bar = Bar::at_most_share(what, both.mean / without.mean, LIMIT);
            findings.bars.push(bar);
        }
        for axis in axes(scope) {
            let mut rows = Vec::new();
            let mut curves = Vec::new();
            for (problem, which, label) in figures() {
                let figure =
                    |name: &str| -> anyhow::Result<Figure> { Ok(outcomes.of(name)?.figure(which)) };
                let without = figure(&plain(problem))?;
                let mut row = vec![label, without.text()];
                let mut curve = vec![(0.0, 1.0)];
                for (strength, _) in &axis.points {
                    let hit = figure(&name(problem, axis.name, *strength))?;
                    let labels = [problem.name, which, axis.name, &strength.to_string()];
                    findings.csv_row(&labels, &hit);
                    row.push(share_within(hit.mean / without.mean, LIMIT));
                    curve.push((*strength, hit.mean / without.mean));
                }
                rows.push(row);
                if which == "headline" {
                    curves.push((problem.name, curve));
                }
            }
            let mut head = vec![String::new(), "error without faults".to_owned()];
            head.extend(axis.points.iter().map(|(strength, _)| strength.to_string()));
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            findings.tables.push(Table::new(axis.title, &head, rows));
            let sweep = Sweep {
                title: axis.title,
                x_label: axis.x_label,
                y_label: "error, over that without faults",
                references: &[Reference {
                    name: format!("{:.0} %", 100.0 * LIMIT),
                    y: LIMIT,
                }],
                ..Sweep::default()
            };
            let picture = problems_picture(scope, axis.name, &sweep, &curves)?;
            findings.pictures.push(picture);
        }
        Ok(findings)
    }
}
