//! A policy trained on a coarse solver, on a fine one.

use super::{Scope, Study, counted};
use crate::cell::{Cell, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table};
use crate::plot::{PALETTE, banded};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Reference, Sweep, line, sweep_picture};
use agent_sim::table::number;
use problem::published::ks_2d::{GRID, PROBLEM};

/// Energy on finer grids.
pub struct Fidelity;

/// The highest energy at the end that counts as calm.
const CALM: f64 = 0.3;
/// Energies of the paper: 64², 512², 512² without control; one episode.
const PUBLISHED: [f64; 3] = [0.83, 0.15, 11.43];

/// Grid points along each axis.
fn grids(scope: &Scope) -> Vec<usize> {
    scope.pick(vec![GRID, 2 * GRID], vec![GRID, 4 * GRID, 8 * GRID])
}

/// A step at 512² takes a second on a core.
fn episodes(scope: &Scope) -> usize {
    scope.pick(1, 2)
}

fn controls(scope: &Scope) -> anyhow::Result<[Controls; 3]> {
    Ok([
        Controls::Policy(scope.policy(&PROBLEM)?),
        Controls::Proportional,
        Controls::Nobody,
    ])
}

fn name(controls: &Controls, points: usize) -> String {
    format!("{}, {points}", controls.name())
}

impl Study for Fidelity {
    fn name(&self) -> &'static str {
        "fidelity"
    }

    fn title(&self) -> &'static str {
        "A policy trained on a coarse solver, on a fine one"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for points in grids(scope) {
            for controls in controls(scope)? {
                let name = name(&controls, points);
                let trial = SwarmWork {
                    episodes: episodes(scope),
                    ..SwarmWork::fresh(scope, Setting::of(&PROBLEM).grid(points)?, controls)
                };
                cells.push(Cell::new(name, trial));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let [coarse, fine, alone] = PUBLISHED;
        let mut findings = Findings {
            about: vec![
                format!(
                    "`ks-2d`, the shipped policy, trained on {GRID} × {GRID} points, with the truth \
                     computed on finer grids; {} agents, {}, mean square of the field at the \
                     end. Episodes are drawn on {GRID} × {GRID} points and continued to finer grids by \
                     their Fourier series, so that all grids start from the same field. Sensors keep \
                     the published spacing on every grid.",
                    PROBLEM.agents,
                    counted(episodes(scope), "episode")
                ),
                format!(
                    "The paper has {coarse} at 64², {fine} at 512² and {alone} without control, from \
                     one episode drawn at 512²."
                ),
            ],
            ..Findings::default()
        };
        findings.csv_head(&["grid", "controller"]);
        let controls = controls(scope)?;
        let mut rows = Vec::new();
        let mut curves = vec![Vec::new(); controls.len()];
        for points in grids(scope) {
            let mut row = vec![format!("{points} × {points}")];
            for (controls, curve) in controls.iter().zip(&mut curves) {
                let figure = outcomes.of(&name(controls, points))?.figure("final");
                findings.csv_row(&[&points.to_string(), controls.name()], &figure);
                row.push(figure.text());
                if let Controls::Policy(_) = controls {
                    let what = format!("energy at the end, {points} × {points}");
                    findings.bars.push(Bar::at_most(what, figure.mean, CALM));
                    row.push(number(figure.worst));
                }
                curve.push((points as f64, figure));
            }
            rows.push(row);
        }
        let head = [
            "truth",
            "policy",
            "its worst",
            "proportional feedback",
            "no control",
        ];
        findings
            .tables
            .push(Table::new("Energy at the end", &head, rows));
        let colours = [PALETTE[0], line::ORANGE, line::GREY];
        let curves = curves.into_iter().zip(&controls).zip(colours);
        let series: Vec<_> = curves
            .map(|((curve, controls), colour)| banded(controls.name(), colour, curve))
            .collect();
        let sweep = Sweep {
            title: "ks-2d: energy at the end against the truth's grid",
            x_label: "grid points along each axis",
            y_label: "mean square of the field, with one standard deviation",
            series: &series,
            references: &[Reference {
                name: "calm".to_owned(),
                y: CALM,
            }],
            log_x: true,
        };
        findings.pictures.push(Picture {
            name: "energy".to_owned(),
            caption: "Energy at the end against the truth's grid".to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}
