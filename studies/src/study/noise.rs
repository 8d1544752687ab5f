//! Noisy sensors and actuators in swarms of several sizes.

use super::{Scope, Study, curve_of};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::fault::{Fault, actuator::ACTUATOR_NOISE, sensor::NOISE};
use agent_sim::report::{Sweep, SweepPanel, line, sweep_panels};
use problem::Problem;

/// Error against the number of agents, with the paper's levels of noise.
pub struct Noise;

/// What the paper disturbs, with its levels.
struct Disturbed {
    problem: &'static str,
    /// As many times the published number as the paper's 20 to 100 agents are of its 20.
    agents: [usize; 6],
    /// Standard deviations on forces and on sensed cells.
    levels: [(&'static str, f64, f64); 3],
}

const DISTURBED: [Disturbed; 2] = [
    Disturbed {
        problem: "fkpp-1d",
        agents: [20, 30, 40, 60, 80, 100],
        levels: [("low", 0.02, 0.01), ("mid", 0.1, 0.05), ("high", 0.5, 0.25)],
    },
    Disturbed {
        problem: "ks-1d",
        agents: [8, 12, 16, 24, 32, 40],
        levels: [
            ("low", 0.05, 0.025),
            ("mid", 0.1, 0.05),
            ("high", 0.5, 0.25),
        ],
    },
];

/// The swarm that the bar is about, and the least error under low noise that was known of it when the
/// bar was set: a ratio to the error without noise would punish small ones.
const JUDGED: usize = 100;
const LIMIT: f64 = 8.4e-6;

fn name(problem: &str, controls: &str, level: &str, agents: usize) -> String {
    format!("{problem}, {controls}, {level}, {agents}")
}

impl Disturbed {
    fn agents(&self, scope: &Scope) -> Vec<usize> {
        let all = &self.agents;
        scope.pick(vec![all[0], all[5]], all.to_vec())
    }

    /// No noise, then the paper's levels.
    fn levels(&self) -> Vec<(&'static str, Vec<Fault>)> {
        let mut levels = vec![("none", Vec::new())];
        levels.extend(
            self.levels
                .iter()
                .map(|&(name, force, cell)| (name, on(force, cell))),
        );
        levels
    }
}

/// Noise of these standard deviations on forces and on sensed cells.
fn on(force: f64, cell: f64) -> Vec<Fault> {
    let on_cells = Fault::new(NOISE.with("std", cell));
    let on_forces = Fault::new(ACTUATOR_NOISE.with("std", force));
    vec![on_cells, on_forces]
}

/// The paper's lowest level for a problem; where it has none, that of `fkpp-1d`, the lowest of all.
pub(super) fn low(problem: &Problem) -> Vec<Fault> {
    let own = DISTURBED.iter().find(|d| d.problem == problem.name);
    let (_, force, cell) = own.unwrap_or(&DISTURBED[0]).levels[0];
    on(force, cell)
}

impl Study for Noise {
    fn name(&self) -> &'static str {
        "noise"
    }

    fn title(&self) -> &'static str {
        "Noise on sensors and actuators"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for disturbed in &DISTURBED {
            let problem = problem::published::by_name(disturbed.problem)?;
            for agents in disturbed.agents(scope) {
                for (level, faults) in disturbed.levels() {
                    for controls in contestants(scope, problem)? {
                        let trial = SwarmWork {
                            agents,
                            faults: faults.clone(),
                            ..SwarmWork::fresh(scope, Setting::of(problem), controls)
                        };
                        let name = name(problem.name, trial.controls.name(), level, agents);
                        cells.push(Cell::new(name, trial));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![format!(
                "Gaussian noise on every sensed cell and on every force, drawn anew in each step, for \
                 all agents; {} fresh episodes each. The paper's policies were trained anew for each \
                 level; these are the shipped ones.",
                scope.episodes()
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "controller", "level", "agents"]);
        let mut curves = Vec::new();
        for disturbed in &DISTURBED {
            let problem = disturbed.problem;
            let figure = |controls: &str, level: &str, agents| -> anyhow::Result<Figure> {
                let outcome = outcomes.of(&name(problem, controls, level, agents))?;
                Ok(outcome.figure("headline"))
            };
            let mut series = Vec::new();
            let mut rows = Vec::new();
            for (level, _) in disturbed.levels() {
                let mut curve = Vec::new();
                for agents in disturbed.agents(scope) {
                    for controls in ["policy", "proportional"] {
                        let figure = figure(controls, level, agents)?;
                        findings.csv_row(&[problem, controls, level, &agents.to_string()], &figure);
                    }
                    curve.push((agents as f64, figure("policy", level, agents)?.mean));
                }
                series.push(curve_of(level, colour(level), curve));
            }
            for agents in disturbed.agents(scope) {
                let mut row = vec![agents.to_string()];
                for (level, _) in disturbed.levels() {
                    row.push(figure("policy", level, agents)?.text());
                }
                for (level, _) in disturbed.levels() {
                    row.push(figure("proportional", level, agents)?.text());
                }
                rows.push(row);
            }
            let levels = disturbed.levels.iter();
            let levels: Vec<String> = levels
                .map(|(name, force, cell)| format!("{name}: {cell} on cells, {force} on forces"))
                .collect();
            let head = [
                "agents",
                "no noise",
                "low",
                "mid",
                "high",
                "feedback, no noise",
                "low",
                "mid",
                "high",
            ];
            let title = format!(
                "{problem}: the policy, and proportional feedback ({})",
                levels.join("; ")
            );
            findings.tables.push(Table::new(title, &head, rows));
            curves.push((problem, series));
        }
        let judged = outcomes.of(&name("fkpp-1d", "policy", "low", JUDGED))?;
        let what = format!("`fkpp-1d`, {JUDGED} agents, low noise");
        let error = judged.figure("headline").mean;
        findings.bars.push(Bar::at_most(what, error, LIMIT));
        let panels: Vec<SweepPanel<'_>> = curves
            .iter()
            .map(|(problem, series)| SweepPanel {
                sweep: Sweep {
                    title: problem,
                    x_label: "agents",
                    y_label: "mean squared error",
                    series,
                    log_x: true,
                    ..Sweep::default()
                },
                shaded: None,
            })
            .collect();
        findings.pictures.push(Picture {
            name: "agents".to_owned(),
            caption: "Error against the number of agents, with the paper's levels of noise"
                .to_owned(),
            svg: sweep_panels(&panels, &scope.foot())?,
        });
        Ok(findings)
    }
}

fn contestants(scope: &Scope, problem: &Problem) -> anyhow::Result<[Controls; 2]> {
    let policy = Controls::Policy(scope.policy(problem)?);
    Ok([policy, Controls::Proportional])
}

fn colour(level: &str) -> agent_sim::report::RGBColor {
    match level {
        "none" => line::BLUE,
        "low" => line::GREEN,
        "mid" => line::ORANGE,
        _ => line::VERMILION,
    }
}
