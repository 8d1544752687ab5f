//! The paper's ablation: its network trained by MARL, in swarms of other sizes than it was trained for.

use super::entry::{Evidence, Found, together};
use super::method::{ABLATED, Condition, METHODS, Method};
use super::{ablated, csv_row, work};
use crate::Scope;
use crate::cell::{Cell, Outcomes};
use crate::findings::{Findings, Picture, Table, share};
use crate::study::curve_of;
use crate::swarm_work::SwarmWork;
use agent_sim::report::{Reference, Series, Sweep, sweep_picture};

/// Numbers of agents that the paper's picture spans, squares.
const COUNTS: [usize; 6] = [64, 144, 256, 400, 676, 1024];
/// Who of the study's own runs beside them.
const BESIDE: [&str; 2] = ["ours", "proportional"];

fn name(method: &Method, agents: usize) -> String {
    format!("{ABLATED}, {}, among {agents}", method.label)
}

/// Those of a full run, and those that trainings were scored with.
fn counts(scope: &Scope, evidence: &Evidence) -> Vec<usize> {
    let scored = evidence.trained.iter();
    let scored = scored.filter(|it| it.condition == Condition::Agents && it.row == ABLATED);
    let full = COUNTS.into_iter().chain(scored.map(|it| it.agents));
    let mut counts = scope.pick(vec![64, 256], full.collect());
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// What the study runs for it.
pub fn cells(scope: &Scope, evidence: &Evidence) -> anyhow::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for method in BESIDE {
        let method = Method::named(method)?;
        for agents in counts(scope, evidence) {
            let work = SwarmWork {
                agents,
                ..work(scope, ablated()?, method, Condition::Agents)?
            };
            cells.push(Cell::new(name(method, agents), work));
        }
    }
    Ok(cells)
}

/// Errors by the number of agents.
pub struct Curves {
    counts: Vec<usize>,
    /// One figure a number.
    of: Vec<(&'static Method, Vec<Option<Found>>)>,
    nobody: f64,
}

impl Curves {
    /// Of us, of feedback, and of those that MARL trained.
    pub fn new(scope: &Scope, evidence: &Evidence, outcomes: &Outcomes) -> anyhow::Result<Self> {
        let counts = counts(scope, evidence);
        let mut of = Vec::new();
        for method in BESIDE {
            let method = Method::named(method)?;
            let figure = |agents: &usize| -> anyhow::Result<Option<Found>> {
                let outcome = outcomes.of(&name(method, *agents))?;
                Ok(Some(Found::new(outcome.figure("headline"))))
            };
            let figures: anyhow::Result<Vec<_>> = counts.iter().map(figure).collect();
            of.push((method, figures?));
        }
        for method in METHODS.iter().filter(|method| method.is_ablation()) {
            let figures = counts
                .iter()
                .map(|agents| trained(evidence, method, *agents));
            of.push((method, figures.collect()));
        }
        let nobody = super::cell(ablated()?, Method::named("none")?, Condition::Table);
        Ok(Self {
            counts,
            of,
            nobody: outcomes.of(&nobody)?.figure("headline").mean,
        })
    }

    /// Errors, each also over that among the number of training.
    pub fn table(&self) -> Table {
        let mut head = vec!["agents"];
        for (method, _) in &self.of {
            head.extend([method.label, "over the first"]);
        }
        let row = |(k, agents): (usize, &usize)| {
            let mut row = vec![agents.to_string()];
            for (_, figures) in &self.of {
                let [first, here] = [&figures[0], &figures[k]];
                row.push(here.as_ref().map_or("not run".to_owned(), Found::short));
                let ratio = here.as_ref().zip(first.as_ref());
                row.push(ratio.map_or("–".to_owned(), |(here, first)| {
                    share(here.figure.mean / first.figure.mean)
                }));
            }
            row
        };
        let rows = self.counts.iter().enumerate().map(row).collect();
        let title = "`turbulence-2d`: a policy trained among 64 agents, in larger swarms";
        Table::new(title, &head, rows)
    }

    /// The same as a picture.
    pub fn picture(&self, scope: &Scope) -> anyhow::Result<Picture> {
        let curve = |(method, figures): &(&'static Method, Vec<Option<Found>>)| {
            let points = self.counts.iter().zip(figures);
            let points = points
                .filter_map(|(agents, found)| Some((*agents as f64, found.as_ref()?.figure.mean)));
            curve_of(method.label, method.colour, points)
        };
        let mut series: Vec<Series> = self.of.iter().map(curve).collect();
        series.retain(|series| !series.points.is_empty());
        let sweep = Sweep {
            title: "turbulence-2d: a policy trained among 64 agents, in larger swarms",
            x_label: "agents",
            y_label: "error",
            series: &series,
            references: &[Reference {
                name: "no control".to_owned(),
                y: self.nobody,
            }],
            log_x: true,
        };
        Ok(Picture {
            name: "deeponet".to_owned(),
            caption:
                "Error against the number of agents: trained through the equation, and by MARL"
                    .to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        })
    }

    /// All of it.
    pub fn csv(&self, findings: &mut Findings) {
        for (method, figures) in &self.of {
            for (agents, found) in self.counts.iter().zip(figures) {
                let Some(found) = found else { continue };
                let labels = [ABLATED, method.name, Condition::Agents.name()];
                csv_row(findings, labels, *agents, found, "");
            }
        }
    }
}

/// Trainings scored with so many agents, under whichever condition has that many and nothing else.
fn trained(evidence: &Evidence, method: &Method, agents: usize) -> Option<Found> {
    let plain = [Condition::Agents, Condition::Table, Condition::Fourfold];
    plain.into_iter().find_map(|condition| {
        let rows = evidence.trainings(ABLATED, method, condition);
        let rows: Vec<_> = rows.into_iter().filter(|it| it.agents == agents).collect();
        together(&rows)
    })
}
