//! How far the policies are from the best known, cell by cell.

mod case;

use super::sizes::has_feedback;
use super::{Scope, Study, curve_of};
use crate::Mode;
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::known::{EPISODES, Known, SEED};
use crate::oracle::Oracle;
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{
    Matrix, RGBColor, Reference, Series, Square, Sweep, SweepPanel, line, matrix_panels,
    sweep_panels,
};
use agent_sim::table::number;
use case::{Case, cases};
use problem::Problem;

/// Errors over the least known ones.
pub struct Regret;

/// The regret that most cells have to keep, the share of cells that most are, and what all have to.
const MOST: f64 = 1.5;
const SHARE: f64 = 0.8;
const ALL: f64 = 3.0;

/// Over the error without control: smaller errors count as this. Nobody needs them, and between two
/// of them a ratio says nothing.
const FLOOR: f64 = 1e-5;

/// Who stands for the best known where no known policy is better.
const THIS: &str = "this policy";

/// How much larger an error is than the best one, where those below `floor` count as that.
fn regret(error: f64, best: f64, floor: f64) -> f64 {
    match error <= best {
        // Also where nobody is known to hold the field: both are infinite then.
        true => 1.0,
        false => error.max(floor) / best.max(floor),
    }
}

/// The least error that is known of a cell, and who reached it.
fn best<'a>(case: &Case, policy: f64, known: &'a [Known]) -> (f64, &'a str) {
    let here = known.iter().filter(|known| {
        let (problem, agents) = (known.problem, known.agents);
        (problem, agents, known.loss, known.noise)
            == (case.problem.name, case.agents, case.loss.name, case.noise())
    });
    let others = here.map(|known| (known.error, known.by));
    // The first of equals stays.
    [(policy, THIS)]
        .into_iter()
        .chain(others)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("this policy is among them")
}

/// A cell with all that is known of it.
struct Judged<'a> {
    case: Case,
    nobody: Figure,
    policy: Figure,
    feedback: Option<Figure>,
    best: f64,
    by: &'a str,
    bound: Option<&'a Oracle>,
    regret: f64,
}

impl<'a> Judged<'a> {
    fn new(
        case: Case,
        outcomes: &Outcomes,
        known: &'a [Known],
        plans: &'a [Oracle],
    ) -> anyhow::Result<Self> {
        let figure =
            |name: String| -> anyhow::Result<Figure> { Ok(outcomes.of(&name)?.figure("headline")) };
        let nobody = figure(alone(case.problem))?;
        let policy = figure(name(&case, "policy"))?;
        let feedback = match has_feedback(case.problem, case.agents) {
            true => Some(figure(name(&case, "proportional"))?),
            false => None,
        };
        let (best, by) = best(&case, policy.mean, known);
        Ok(Self {
            case,
            nobody,
            policy,
            feedback,
            best,
            by,
            bound: case.bound(plans),
            regret: regret(policy.mean, best, FLOOR * nobody.mean),
        })
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.case.agents.to_string(),
            format!("{:.2}×", self.case.multiple()),
            self.case.trouble(),
            self.policy.text(),
            self.feedback.map_or("–".to_owned(), |figure| figure.text()),
            number(self.best),
            self.by.to_owned(),
            self.bound.map_or("–".to_owned(), |plan| {
                let foreseen = if plan.foreseen { ", foreseen" } else { "" };
                format!("{}{foreseen}", number(plan.error))
            }),
            match self.regret <= MOST {
                true => times(self.regret),
                false => format!("**{}**", times(self.regret)),
            },
        ]
    }

    fn record(&self, findings: &mut Findings) {
        let labels = self.case.labels();
        let [regret, best] = [self.regret, self.best].map(|value| format!("{value:e}"));
        let bound = self.bound.map(|plan| format!("{:e}", plan.error));
        let bound = bound.unwrap_or_default();
        let mut add = |controller: &str, regret: &str, best: &str, bound: &str, figure: &Figure| {
            let [problem, agents, loss, noise] = &labels;
            let labels = [
                problem, agents, loss, noise, controller, regret, best, bound,
            ];
            findings.csv_row(&labels, figure);
        };
        add("policy", &regret, &best, &bound, &self.policy);
        if let Some(feedback) = &self.feedback {
            add("proportional", "", "", "", feedback);
        }
    }
}

/// A regret for people.
fn times(regret: f64) -> String {
    match regret {
        r if r < 100.0 => format!("{r:.2}"),
        r if r < 1e4 => format!("{r:.0}"),
        r => format!("{r:.0e}"),
    }
}

fn name(case: &Case, controls: &str) -> String {
    format!("{}, {controls}", case.labels().join(", "))
}

fn alone(problem: &Problem) -> String {
    format!("{}, no control", problem.name)
}

impl Study for Regret {
    fn name(&self) -> &'static str {
        "regret"
    }

    fn title(&self) -> &'static str {
        "How far the policies are from the best known, cell by cell"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let trial = |controls| SwarmWork::fresh(scope, Setting::of(problem), controls);
            cells.push(Cell::new(alone(problem), trial(Controls::Nobody)));
            let policy = Controls::Policy(scope.policy(problem)?);
            for case in cases(scope, problem) {
                let mut both = vec![policy.clone()];
                both.extend(has_feedback(problem, case.agents).then_some(Controls::Proportional));
                cells.extend(both.into_iter().map(|controls| {
                    let name = name(&case, controls.name());
                    let swarm = SwarmWork {
                        agents: case.agents,
                        faults: case.faults(),
                        ..trial(controls)
                    };
                    Cell::new(name, swarm)
                }));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let (known, plans) = (Known::all()?, Oracle::all()?);
        let mut findings = Findings {
            about: vec![
                format!(
                    "A cell is a problem with a number of agents, a loss half way and perhaps noise; \
                     {} fresh episodes each, the figure of the results table. On lines all sizes up to \
                     16 times the published one go with all losses and with noise, elsewhere sizes, \
                     losses and noise are tried one at a time, noise at half, once and four times the \
                     size. Shares of agents are of those that there are, rounded, at least one. Noise \
                     is the lowest of the paper's, see [noise](noise.md); where the paper has none, \
                     that of `fkpp-1d`.",
                    scope.episodes()
                ),
                format!(
                    "Regret is the policy's error over the least one that is known of the cell: its own \
                     or that of another policy in `studies/data/known.csv`, which may be made for that \
                     cell alone. Errors below {FLOOR:e} of the one without control count as that. \
                     Proportional feedback is told the number of agents, so it is shown and does not \
                     count. Nor do bounds: they are errors of plans that know the episode, on the first \
                     few published ones (last table); where agents crash, \"foreseen\" says that the plan \
                     knows from the start who will."
                ),
            ],
            ..Findings::default()
        };
        let labels = ["problem", "agents", "loss", "noise", "controller"];
        findings.csv_head(&[&labels[..], &["regret", "best", "bound"]].concat());
        let mut all: Vec<Vec<Judged<'_>>> = Vec::new();
        for problem in problem::published::measured() {
            let cases = cases(scope, problem).into_iter();
            let judged = cases.map(|case| Judged::new(case, outcomes, &known, &plans));
            all.push(judged.collect::<anyhow::Result<_>>()?);
        }
        findings.bars = bars(scope, &all);
        findings.tables.push(overview(&all));
        for cells in &all {
            for cell in cells {
                cell.record(&mut findings);
            }
            findings.tables.push(table(cells));
        }
        findings.tables.push(bounds(&plans));
        findings.pictures.push(squares(scope, &all)?);
        findings.pictures.push(frontier(scope, &all)?);
        Ok(findings)
    }
}

fn bars(scope: &Scope, all: &[Vec<Judged<'_>>]) -> Vec<Bar> {
    let cells = || all.iter().flatten();
    let count = cells().count();
    let kept = cells().filter(|cell| cell.regret <= MOST).count();
    let share = kept as f64 / count as f64;
    let verdict = match share >= SHARE {
        true => Verdict::Met,
        false => Verdict::Missed(format!(
            "missed by {} cells",
            (SHARE * count as f64).ceil() as usize - kept
        )),
    };
    let most = Bar::holds(
        format!("cells with a regret of at most {MOST}"),
        format!("≥ {:.0} %", 100.0 * SHARE),
        format!("{kept} of {count} ({:.1} %)", 100.0 * share),
        verdict,
    );
    let worst = cells().map(|cell| cell.regret).fold(1.0, f64::max);
    let mut bars = vec![
        most,
        Bar::at_most("largest regret of all cells", worst, ALL),
    ];
    if scope.mode == Mode::Quick || scope.seed != SEED {
        for bar in &mut bars {
            let why = format!("errors are known of {EPISODES} episodes of seed {SEED}");
            bar.verdict = Verdict::LeftOut(why);
        }
    }
    bars
}

/// The problem of some cells, of which there are always some.
fn problem_of(cells: &[Judged<'_>]) -> &'static Problem {
    cells[0].case.problem
}

fn overview(all: &[Vec<Judged<'_>>]) -> Table {
    let row = |cells: &Vec<Judged<'_>>| {
        let kept = |limit: f64| cells.iter().filter(|cell| cell.regret <= limit).count();
        let worst = cells.iter().max_by(|a, b| a.regret.total_cmp(&b.regret));
        let worst = worst.expect("every problem has cells");
        vec![
            format!("`{}`", problem_of(cells).name),
            cells.len().to_string(),
            kept(1.0).to_string(),
            kept(MOST).to_string(),
            kept(ALL).to_string(),
            times(worst.regret),
            match worst.regret > 1.0 {
                true => format!("{} agents, {}", worst.case.agents, worst.case.trouble()),
                false => "–".to_owned(),
            },
        ]
    };
    let most = format!("at most {MOST}");
    let limit = format!("at most {ALL}");
    let head = ["", "cells", "best known", &most, &limit, "worst", "where"];
    Table::new("Regrets", &head, all.iter().map(row).collect())
}

fn table(cells: &[Judged<'_>]) -> Table {
    let nobody = cells[0].nobody;
    let title = format!(
        "`{}`: errors; without control {}, so that those below {} count as that",
        problem_of(cells).name,
        nobody.text(),
        number(FLOOR * nobody.mean)
    );
    let head = [
        "agents",
        "",
        "",
        "policy",
        "proportional feedback",
        "best known",
        "by",
        "bound",
        "regret",
    ];
    Table::new(title, &head, cells.iter().map(Judged::row).collect())
}

fn bounds(plans: &[Oracle]) -> Table {
    let row = |plan: &Oracle| {
        let foreseen = if plan.foreseen { ", foreseen" } else { "" };
        vec![
            format!("`{}`", plan.problem),
            plan.agents.to_string(),
            plan.crash.map_or("no loss".to_owned(), |share| {
                format!("{:.0} % crash{foreseen}", 100.0 * share)
            }),
            plan.text(),
            plan.policy.to_owned(),
            plan.set.to_owned(),
            format!("`{}`", plan.command),
        ]
    };
    let head = ["", "agents", "", "bound", "policy", "set", "measured by"];
    let title =
        "Bounds: plans for the first n episodes of a set; one that did not converge can be beaten";
    Table::new(title, &head, plans.iter().map(row).collect())
}

/// What a regret is called in the picture of squares, up to which one, and its colour there.
const CLASSES: [(&str, f64, RGBColor); 4] = [
    ("best known", 1.0, RGBColor(0xa8, 0xdd, 0xc8)),
    ("regret at most 1.5", MOST, RGBColor(0xdd, 0xf0, 0xc4)),
    ("at most 3", ALL, RGBColor(0xfa, 0xd9, 0x8a)),
    ("more", f64::INFINITY, RGBColor(0xf2, 0x9a, 0x76)),
];

fn square(cell: &Judged<'_>) -> Square {
    let class = CLASSES.iter().find(|(_, limit, _)| cell.regret <= *limit);
    let (_, _, colour) = class.unwrap_or(&CLASSES[3]);
    Square {
        text: times(cell.regret),
        colour: *colour,
    }
}

/// The regret of every cell: sizes across, troubles down.
fn squares(scope: &Scope, all: &[Vec<Judged<'_>>]) -> anyhow::Result<Picture> {
    let matrix = |cells: &Vec<Judged<'_>>| {
        let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.case.agents).collect();
        sizes.dedup();
        let mut rows: Vec<(String, Vec<Option<Square>>)> = Vec::new();
        // At the published size every trouble occurs, in the order of rows.
        let home = cells
            .iter()
            .filter(|c| c.case.agents == c.case.problem.agents);
        for trouble in home.map(|cell| cell.case.trouble()) {
            let at = |size: &usize| {
                let mut cells = cells.iter();
                let found = cells.find(|c| c.case.agents == *size && c.case.trouble() == trouble);
                found.map(square)
            };
            let row = sizes.iter().map(at).collect();
            rows.push((trouble, row));
        }
        Matrix {
            title: format!("{}, by number of agents", problem_of(cells).name),
            columns: sizes.iter().map(ToString::to_string).collect(),
            rows,
        }
    };
    let matrices: Vec<Matrix> = all.iter().map(matrix).collect();
    let legend = CLASSES.map(|(name, _, colour)| (name, colour));
    Ok(Picture {
        name: "cells".to_owned(),
        caption: "Regret of every cell".to_owned(),
        svg: matrix_panels(&matrices, &legend, &scope.foot())?,
    })
}

/// Errors against the number of agents, with no loss and no noise.
fn frontier(scope: &Scope, all: &[Vec<Judged<'_>>]) -> anyhow::Result<Picture> {
    let panel = |cells: &Vec<Judged<'_>>| {
        let plain = cells.iter().filter(|cell| cell.case.faults().is_empty());
        let plain: Vec<&Judged<'_>> = plain.collect();
        let curve = |name, colour, error: &dyn Fn(&Judged<'_>) -> Option<f64>| {
            let points = plain.iter();
            let points = points.filter_map(|cell| Some((cell.case.multiple(), error(cell)?)));
            curve_of(name, colour, points)
        };
        let mut series = vec![
            curve("policy", line::BLUE, &|cell| Some(cell.policy.mean)),
            curve("best known", line::GREEN, &|cell| Some(cell.best)),
            curve("proportional", line::ORANGE, &|cell| {
                Some(cell.feedback?.mean)
            }),
            curve("bound", line::PURPLE, &|cell| Some(cell.bound?.error)),
        ];
        series.retain(|series| !series.points.is_empty());
        let references = [Reference {
            name: "no control".to_owned(),
            y: cells[0].nobody.mean,
        }];
        (problem_of(cells).name, series, references)
    };
    let panels: Vec<(&str, Vec<Series>, [Reference; 1])> = all.iter().map(panel).collect();
    let panels = panels.iter().map(|(title, series, references)| SweepPanel {
        sweep: Sweep {
            title,
            x_label: "agents, over the published number",
            y_label: "error",
            series,
            references,
            log_x: true,
        },
        shaded: None,
    });
    let panels: Vec<SweepPanel<'_>> = panels.collect();
    Ok(Picture {
        name: "frontier".to_owned(),
        caption:
            "Error against the number of agents, with no loss and no noise: the policy, the best \
                  known, feedback that is told the number, and bounds"
                .to_owned(),
        svg: sweep_panels(&panels, &scope.foot())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regret_is_over_the_best_and_nothing_counts_below_the_floor() {
        assert_eq!(regret(3e-3, 2e-3, 1e-5), 1.5);
        assert_eq!(regret(2e-3, 2e-3, 1e-5), 1.0);
        // Both below: equal. One below: over the floor.
        assert_eq!(regret(9e-6, 1e-9, 1e-5), 1.0);
        assert_eq!(regret(4e-5, 1e-9, 1e-5), 4.0);
        // Lost where somebody holds the field, and where nobody does.
        assert_eq!(regret(f64::INFINITY, 1e-3, 1e-5), f64::INFINITY);
        assert_eq!(regret(f64::INFINITY, f64::INFINITY, 1e-5), 1.0);
    }

    /// An hour on two cores, for whoever adds a size.
    #[test]
    fn a_full_run_is_not_too_long() {
        let scope = Scope::new(Mode::Full, 1, None, String::new());
        let cells = Regret.cells(&scope).unwrap();
        let costs = cells
            .iter()
            .map(|cell| cell.work.cost() * cell.work.pieces() as u64);
        let seconds = costs.sum::<u64>() / 1_000_000_000;
        assert!(seconds < 7200, "{seconds} s");
    }

    #[test]
    fn the_best_is_the_least_of_the_same_cell() {
        let case = Case {
            problem: problem::published::by_name("heat-1d").unwrap(),
            agents: 8,
            loss: case::LOSSES[0],
            noisy: false,
        };
        let known = |agents, noise, error, by| Known {
            problem: "heat-1d",
            agents,
            loss: "none",
            noise,
            error,
            by,
        };
        let rows = [
            known(8, "none", 2.0, "a"),
            known(8, "none", 1.0, "b"),
            known(8, "low", 0.1, "of noise"),
            known(16, "none", 0.1, "of another size"),
        ];
        assert_eq!(best(&case, 3.0, &rows), (1.0, "b"));
        assert_eq!(best(&case, 1.0, &rows), (1.0, THIS));
        assert_eq!(best(&case, f64::INFINITY, &[]), (f64::INFINITY, THIS));
    }
}
