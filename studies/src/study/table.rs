//! The results table: the published test episodes of all problems.

use super::{Scope, Study};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Table as Rows, Verdict};
use crate::oracle::{Oracle, plan};
use crate::paper::{Figures, ROWS, Row};
use crate::swarm_work::{Controls, SwarmWork};
use agent_sim::table::number;
use problem::Headline;

/// All problems on the published test episodes.
pub struct Table;

/// What the shipped policy's mean has to reach.
enum Limit {
    Figure(f64),
    /// The mean of tuned proportional feedback on the same episodes.
    Proportional,
}

/// The bar of a row.
fn limit(row: &Row) -> Limit {
    match (row.problem, row.variant) {
        ("heat-1d", _) => Limit::Figure(7.9e-5),
        ("fkpp-1d", _) => Limit::Figure(4.0e-5),
        ("heat-2d", _) => Limit::Figure(1.5e-4),
        ("heat-2d-obstacles", _) => Limit::Figure(1.2e-4),
        ("ks-1d", _) => Limit::Figure(0.1268),
        ("ks-2d", _) => Limit::Figure(0.226),
        ("turbulence-2d", Some(_)) => Limit::Figure(3.23),
        ("density-2d", _) => Limit::Figure(0.002),
        _ => Limit::Proportional,
    }
}

/// The final error that `ks-1d` has to reach besides.
const KS_1D_FINAL: f64 = 7e-5;

fn cell(row: &Row, controls: &str) -> String {
    format!("{}, {controls}", row.name())
}

impl Study for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn title(&self) -> &'static str {
        "The results table: published test episodes"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for row in &ROWS {
            let setting = row.setting()?;
            let policy = scope.policy(&setting.problem)?;
            for controls in [
                Controls::Nobody,
                Controls::Proportional,
                Controls::Policy(policy),
            ] {
                let name = cell(row, controls.name());
                cells.push(Cell::new(
                    name,
                    SwarmWork::table(scope, setting.clone(), controls)?,
                ));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, _: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings::default();
        findings.csv_head(&["problem", "controller", "figure"]);
        let oracles = Oracle::all()?;
        let mut commands = Vec::new();
        let mut rows = Vec::new();
        for row in &ROWS {
            let problem = problem::published::by_name(row.problem)?;
            let figure = |controls: &str, name: &str| -> anyhow::Result<Figure> {
                Ok(outcomes.of(&cell(row, controls))?.figure(name))
            };
            let spread = |controls: &str| -> anyhow::Result<String> {
                let figure = figure(controls, "headline")?;
                Ok(match figure.blown {
                    0 => format!("{} ± {}", number(figure.mean), number(2.0 * figure.std)),
                    _ => figure.text(),
                })
            };
            for controls in ["no control", "proportional", "policy"] {
                for name in [
                    "headline",
                    "final",
                    "time_mean",
                    "effort",
                    "travel",
                    "intrusion",
                ] {
                    let labels = [&row.name(), controls, name];
                    findings.csv_row(&labels, &figure(controls, name)?);
                }
            }
            let ours = figure("policy", "headline")?;
            let known = match row.variant {
                None => plan(&oracles, row.problem, problem.agents, None),
                Some(_) => None,
            };
            let cited = |text: &dyn Fn(&Figures) -> String| {
                let figures = row.figures.as_ref();
                figures.map_or("–".to_owned(), text)
            };
            commands.extend(known.map(|oracle| format!("`{}`", oracle.command)));
            rows.push(vec![
                format!("`{}`", row.name()),
                match problem.scoring.headline {
                    Headline::Final => "final",
                    Headline::TimeMean => "time mean",
                }
                .to_owned(),
                ours.pieces.to_string(),
                spread("no control")?,
                spread("proportional")?,
                format!("**{}**", spread("policy")?),
                known.map_or("–".to_owned(), Oracle::text),
                cited(&|figures| figures.dpc.text()),
                cited(&|figures| figures.best_rl()),
                cited(&|figures| figures.cinoc.text()),
            ]);
            let (limit, what) = match limit(row) {
                Limit::Figure(limit) => (limit, format!("`{}`", row.name())),
                Limit::Proportional => (
                    figure("proportional", "headline")?.mean,
                    format!("`{}`, against proportional feedback", row.name()),
                ),
            };
            findings.bars.push(Bar::at_most(what, ours.mean, limit));
            if row.problem == "ks-1d" {
                let last = figure("policy", "final")?.mean;
                findings
                    .bars
                    .push(Bar::at_most("`ks-1d`, final", last, KS_1D_FINAL));
            }
            if !problem.keep_out.is_empty() {
                let inside = figure("policy", "intrusion")?.worst;
                let verdict = match inside == 0.0 {
                    true => Verdict::Met,
                    false => Verdict::Missed("missed: agents enter".to_owned()),
                };
                findings.bars.push(Bar::holds(
                    format!("`{}`, agents' steps in keep-out zones", row.name()),
                    "none",
                    number(inside),
                    verdict,
                ));
            }
        }
        findings.about = vec![
            "Mean squared errors on the published test episodes, ± two standard deviations over the \
             episodes, as the paper has it. The paper's columns (DPC, the best of its four RL methods, \
             CINOC) are cited from its Table 1; its turbulence is that of the authors' solver, whose \
             advection is too weak (`as-published`)."
                .to_owned(),
            format!(
                "The oracle optimises all actions of each known episode; it stands here as measured by \
                 {} (studies/data/oracle.csv), on the first n episodes. Where it did not converge, a \
                 policy can be better.",
                commands.join(", ")
            ),
        ];
        let head = [
            "",
            "error",
            "episodes",
            "no control",
            "proportional",
            "this policy",
            "oracle",
            "DPC",
            "best RL",
            "CINOC",
        ];
        findings.tables.push(Rows::new("Errors", &head, rows));
        Ok(findings)
    }
}
