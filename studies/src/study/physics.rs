//! Fields that obey other coefficients than the published ones.

use super::{Scope, Study};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::plot::{PALETTE, banded};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Series, Sweep, line, sweep_picture};
use problem::Problem;
use problem::published::{fkpp_1d, turbulence_2d};

/// Error under other physics.
pub struct OtherPhysics;

/// Diffusivities ν and growth rates ρ of `fkpp-1d`; each is varied with the other as published, as in
/// the paper, and the last is the hardest corner.
const POPULATIONS: [(f64, f64); 8] = [
    (0.001, 3.0),
    (0.0025, 3.0),
    (0.005, 3.0),
    (0.01, 3.0),
    (0.005, 1.5),
    (0.005, 5.0),
    (0.005, 8.0),
    (0.001, 8.0),
];
/// Viscosities ν of `turbulence-2d` (paper).
const VISCOSITIES: [f64; 4] = [2e-4, 3e-4, 4e-4, 5e-4];

/// One field and the swarms on it.
struct Field {
    setting: Setting,
    agents: Vec<usize>,
    /// Values of the coefficients.
    values: Vec<(&'static str, f64)>,
}

impl Field {
    fn name(&self, controls: &str, agents: usize) -> String {
        let values: Vec<String> = self
            .values
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        let problem = self.setting.problem.name;
        format!("{problem}, {}, {controls}, {agents}", values.join(" "))
    }

    fn value(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(n, _)| *n == name);
        found.map_or(f64::NAN, |(_, value)| *value)
    }
}

fn fields(scope: &Scope) -> anyhow::Result<Vec<Field>> {
    let few = |all: usize, quick: usize| scope.pick(quick, all);
    let mut fields = Vec::new();
    let populations = scope.pick(vec![(0.001, 3.0), (0.005, 8.0)], POPULATIONS.to_vec());
    for (nu, rho) in populations {
        let values = vec![("nu", nu), ("rho", rho)];
        fields.push(Field {
            setting: Setting::of(&fkpp_1d::PROBLEM).physics(&values)?,
            agents: [20, 60][..few(2, 1)].to_vec(),
            values,
        });
    }
    for nu in VISCOSITIES[..few(4, 1)].iter().copied() {
        let values = vec![("nu", nu)];
        fields.push(Field {
            setting: Setting::of(&turbulence_2d::PROBLEM).physics(&values)?,
            agents: [64, 144, 256, 1024][..few(4, 2)].to_vec(),
            values,
        });
    }
    Ok(fields)
}

/// Episodes a cell: turbulence takes longer.
fn episodes(scope: &Scope, problem: &Problem) -> usize {
    match problem.grid.axes {
        1 => scope.episodes(),
        _ => scope.pick(scope.episodes(), 20),
    }
}

impl Study for OtherPhysics {
    fn name(&self) -> &'static str {
        "physics"
    }

    fn title(&self) -> &'static str {
        "Other physics than the published"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for field in fields(scope)? {
            let problem = &field.setting.problem;
            let policy = scope.policy(problem)?;
            let trial = |controls, agents| SwarmWork {
                agents,
                episodes: episodes(scope, problem),
                ..SwarmWork::fresh(scope, field.setting.clone(), controls)
            };
            cells.push(Cell::new(
                field.name("no control", 0),
                trial(Controls::Nobody, 0),
            ));
            for &agents in &field.agents {
                let ours = trial(Controls::Policy(policy.clone()), agents);
                cells.push(Cell::new(field.name("policy", agents), ours));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![format!(
                "The shipped policies on fields with other coefficients than the published ν = {} and ρ = {} \
                 (`fkpp-1d`, trained from half of these to twice as much) and ν = {:e} (`turbulence-2d`, \
                 trained with that alone): {} and {} fresh episodes \
                 a cell, the figure of the results table. Flows are warmed up at the viscosity that \
                 they are then controlled at. Stable means: no episode's field leaves the range of \
                 numbers, and the mean error is below that without control.",
                fkpp_1d::DIFFUSIVITY,
                fkpp_1d::GROWTH,
                turbulence_2d::VISCOSITY,
                episodes(scope, &fkpp_1d::PROBLEM),
                episodes(scope, &turbulence_2d::PROBLEM),
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "nu", "rho", "controller", "agents"]);
        let fields = fields(scope)?;
        for problem in [&fkpp_1d::PROBLEM, &turbulence_2d::PROBLEM] {
            let mine = fields
                .iter()
                .filter(|f| f.setting.problem.name == problem.name);
            let mine: Vec<&Field> = mine.collect();
            let mut rows = Vec::new();
            let (mut cells, mut unstable) = (0, Vec::new());
            for field in &mine {
                let alone = outcomes
                    .of(&field.name("no control", 0))?
                    .figure("headline");
                let mut row: Vec<String> =
                    field.values.iter().map(|(_, v)| v.to_string()).collect();
                row.push(alone.text());
                let mut record = |controller: &str, agents: usize, figure: &Figure| {
                    let rho = field.value("rho");
                    let rho = if rho.is_nan() {
                        String::new()
                    } else {
                        rho.to_string()
                    };
                    let (nu, agents) = (field.value("nu").to_string(), agents.to_string());
                    findings.csv_row(&[problem.name, &nu, &rho, controller, &agents], figure);
                };
                record("no control", 0, &alone);
                for &agents in &field.agents {
                    let name = field.name("policy", agents);
                    let figure = outcomes.of(&name)?.figure("headline");
                    record("policy", agents, &figure);
                    let stable = figure.mean < alone.mean;
                    cells += 1;
                    row.push(match stable {
                        true => figure.text(),
                        false => format!("**{}**", figure.text()),
                    });
                    if !stable {
                        unstable.push(name);
                    }
                }
                rows.push(row);
            }
            let verdict = match unstable.is_empty() {
                true => Verdict::Met,
                false => Verdict::Missed(format!("missed: {}", unstable.join("; "))),
            };
            let stable = format!("{} of {cells} cells", cells - unstable.len());
            findings.bars.push(Bar::holds(
                problem.name,
                "stable in all cells",
                stable,
                verdict,
            ));
            let agents = mine.first().map_or(&[][..], |field| &field.agents);
            let mut head: Vec<String> =
                problem.coefficients.iter().map(|c| c.name.into()).collect();
            head.push("no control".into());
            head.extend(agents.iter().map(|n| format!("{n} agents")));
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            findings
                .tables
                .push(Table::new(format!("`{}`", problem.name), &head, rows));
        }
        for (problem, vary, hold) in [
            (&fkpp_1d::PROBLEM, "nu", Some(("rho", fkpp_1d::GROWTH))),
            (&fkpp_1d::PROBLEM, "rho", Some(("nu", fkpp_1d::DIFFUSIVITY))),
            (&turbulence_2d::PROBLEM, "nu", None),
        ] {
            let shown = fields.iter().filter(|f| {
                f.setting.problem.name == problem.name
                    && hold.is_none_or(|(name, value)| f.value(name) == value)
            });
            let mut shown: Vec<&Field> = shown.collect();
            shown.sort_by(|a, b| a.value(vary).total_cmp(&b.value(vary)));
            let series = series(&shown, vary, outcomes)?;
            let meaning = problem.coefficients.iter().find(|c| c.name == vary);
            let meaning = meaning.map_or(vary, |c| c.meaning);
            let title = format!("{}: error against {meaning}", problem.name);
            let sweep = Sweep {
                title: &title,
                x_label: meaning,
                y_label: "error, with one standard deviation",
                series: &series,
                references: &[],
                log_x: true,
            };
            findings.pictures.push(Picture {
                name: format!("{}-{vary}", problem.name),
                caption: title.clone(),
                svg: sweep_picture(&sweep, &scope.foot())?,
            });
        }
        Ok(findings)
    }
}

/// No control, and a curve for each number of agents.
fn series(fields: &[&Field], vary: &str, outcomes: &Outcomes) -> anyhow::Result<Vec<Series>> {
    let curve = |controls: &str, agents: usize| -> anyhow::Result<Vec<(f64, Figure)>> {
        let figure = |field: &&Field| -> anyhow::Result<(f64, Figure)> {
            let outcome = outcomes.of(&field.name(controls, agents))?;
            Ok((field.value(vary), outcome.figure("headline")))
        };
        fields.iter().map(figure).collect()
    };
    let mut series = vec![banded("no control", line::GREY, curve("no control", 0)?)];
    let agents = fields.first().map_or(&[][..], |field| &field.agents);
    for (index, &agents) in agents.iter().enumerate() {
        let points = curve("policy", agents)?;
        series.push(banded(format!("{agents} agents"), PALETTE[index], points));
    }
    Ok(series)
}
