//! One policy on circles of many lengths.

use super::{Scope, Study, counted, curve_of};
use crate::cell::{Cell, Outcome, Outcomes, Work};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::plot::PALETTE;
use crate::shelf::{Draw, Shelf};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Reference, Sweep, line, sweep_picture};
use agent_sim::table::number;
use problem::published::ks_1d::{CONTROL_INTERVAL, LENGTH, PROBLEM};

/// Energy over time on long circles.
pub struct MultiScale;

/// Circumference, grid points of the truth and agents (paper).
const CIRCLES: [(f64, usize, usize); 3] = [(64.0, 256, 30), (200.0, 512, 80), (500.0, 1024, 200)];
/// Control steps that are shown (paper).
const STEPS: usize = 400;
/// The mean square that counts as rest, and the time within which it is to be reached (paper).
const REST: f64 = 1e-4;
const WITHIN: f64 = 5.0;
/// Steps between two points of a curve.
const EVERY: usize = 5;

/// A trial whose figures are the field's mean squares over time, one every [`EVERY`] steps.
struct Course(SwarmWork);

impl Work for Course {
    fn key(&self) -> serde_json::Value {
        serde_json::json!({ "course": self.0.key(), "every": EVERY })
    }

    fn pieces(&self) -> usize {
        self.0.pieces()
    }

    fn cost(&self) -> u64 {
        self.0.cost()
    }

    fn figures(&self) -> Vec<String> {
        (0..=self.0.steps).step_by(EVERY).map(moment).collect()
    }

    fn draw(&self) -> Option<Draw> {
        self.0.draw()
    }

    fn run(&self, piece: usize, shelf: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let mut energies = Vec::new();
        let score = self.0.watched(piece, shelf, &mut |snapshot| {
            if snapshot.step.is_multiple_of(EVERY) {
                energies.push(snapshot.error);
            }
        })?;
        Ok(score.map(|_| energies))
    }
}

/// The name of the figure of a step.
fn moment(step: usize) -> String {
    format!("step {step}")
}

/// Time and mean over the episodes of the energy.
fn means(outcome: &Outcome) -> Vec<(f64, f64)> {
    let steps = (0..=STEPS).step_by(EVERY);
    steps
        .map(|step| {
            let time = step as f64 * CONTROL_INTERVAL;
            (time, outcome.figure(&moment(step)).mean)
        })
        .collect()
}

/// The first time from which on the energy stays below the limit; none if it does not.
fn settled(course: &[(f64, f64)], limit: f64) -> Option<f64> {
    let below = course
        .iter()
        .rev()
        .take_while(|(_, energy)| *energy < limit);
    below.last().map(|(time, _)| *time)
}

fn name(length: f64, controls: &Controls) -> String {
    format!("{length}, {}", controls.name())
}

fn circles(scope: &Scope) -> &'static [(f64, usize, usize)] {
    &CIRCLES[..scope.pick(2, CIRCLES.len())]
}

/// The longest circle takes seconds to spin up.
fn episodes(scope: &Scope) -> usize {
    scope.pick(1, 20)
}

fn controls(scope: &Scope) -> anyhow::Result<[Controls; 3]> {
    Ok([
        Controls::Policy(scope.policy(&PROBLEM)?),
        Controls::Proportional,
        Controls::Nobody,
    ])
}

impl Study for MultiScale {
    fn name(&self) -> &'static str {
        "multiscale"
    }

    fn title(&self) -> &'static str {
        "One policy on flame fronts of 3 to 23 times the length"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for &(length, points, agents) in circles(scope) {
            let setting = Setting::of(&PROBLEM).physics(&[("length", length)])?;
            for controls in controls(scope)? {
                let name = name(length, &controls);
                let trial = SwarmWork {
                    agents,
                    steps: STEPS,
                    episodes: episodes(scope),
                    ..SwarmWork::fresh(scope, setting.grid(points)?, controls)
                };
                cells.push(Cell::new(name, Course(trial)));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let spacing = PROBLEM.sensors.spacing(0);
        let mut findings = Findings {
            about: vec![format!(
                "`ks-1d`: the one shipped policy, trained on a circumference of {LENGTH}, on longer \
                 circles with the paper's grids and numbers of agents; {} each, spun up at \
                 their length. Sensors keep the published spacing of {spacing:.3}, read from \
                 the truth's grid by interpolation, so that the policy's window covers the same stretch \
                 of the front. A position beyond {LENGTH} is the end of its own circle to \
                 this policy. The paper trained a \
                 policy for each length, and shows one episode each. At rest means that the mean over \
                 the episodes of the field's mean square stays below {REST:e} to the end, at {} time \
                 units.",
                counted(episodes(scope), "episode"),
                STEPS as f64 * CONTROL_INTERVAL
            )],
            ..Findings::default()
        };
        let head = [
            "length",
            "grid",
            "agents",
            "controller",
            "time",
            "mean_energy",
            "episodes",
        ];
        findings.csv.push(head.map(String::from).to_vec());
        let mut rows = Vec::new();
        let mut series = Vec::new();
        for (index, &(length, points, agents)) in circles(scope).iter().enumerate() {
            let mut row = vec![format!("{length}"), points.to_string(), agents.to_string()];
            for controls in controls(scope)? {
                let course = means(outcomes.of(&name(length, &controls))?);
                for (time, energy) in &course {
                    findings.csv.push(vec![
                        format!("{length}"),
                        points.to_string(),
                        agents.to_string(),
                        controls.name().to_owned(),
                        format!("{time:.2}"),
                        format!("{energy:e}"),
                        episodes(scope).to_string(),
                    ]);
                }
                let settled = settled(&course, REST);
                let text = settled.map_or("never".to_owned(), |time| format!("{time:.2}"));
                let end = course.last().map_or(f64::NAN, |(_, energy)| *energy);
                match controls {
                    Controls::Policy(_) => {
                        let verdict = match settled {
                            Some(time) if time <= WITHIN => Verdict::Met,
                            Some(time) => Verdict::Missed(format!(
                                "missed by {:.2} time units",
                                time - WITHIN
                            )),
                            None => Verdict::Missed(format!("missed: {} at the end", number(end))),
                        };
                        let bar = format!("below {REST:e} within {WITHIN}");
                        let what = format!("circumference {length}, {agents} agents");
                        findings
                            .bars
                            .push(Bar::holds(what, bar, format!("at {text}"), verdict));
                        row.extend([text, number(end)]);
                        series.push(curve_of(&format!("L = {length}"), PALETTE[index], course));
                    }
                    Controls::Proportional | Controls::Coverage => {
                        row.extend([text, number(end)]);
                    }
                    Controls::Nobody => {
                        row.push(number(end));
                        series.push(curve_of(&format!("{length}, alone"), line::GREY, course));
                    }
                }
            }
            rows.push(row);
        }
        let head = [
            "circumference",
            "grid",
            "agents",
            "policy: at rest from",
            "energy at the end",
            "proportional: from",
            "at the end",
            "no control",
        ];
        findings
            .tables
            .push(Table::new("When the front is at rest", &head, rows));
        let sweep = Sweep {
            title: "ks-1d: energy over time, one policy",
            x_label: "time",
            y_label: "mean square of the field",
            series: &series,
            references: &[Reference {
                name: "rest".to_owned(),
                y: REST,
            }],
            log_x: false,
        };
        findings.pictures.push(Picture {
            name: "energy".to_owned(),
            caption: "Energy over time on circles of several lengths, with one policy".to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_rest_is_what_stays_below() {
        let course = [(0.0, 1.0), (1.0, 0.1), (2.0, 0.5), (3.0, 0.1), (4.0, 0.1)];
        assert_eq!(settled(&course, 0.2), Some(3.0));
        assert_eq!(settled(&course, 2.0), Some(0.0));
        assert_eq!(settled(&course, 0.1), None);
        assert_eq!(settled(&[(0.0, f64::INFINITY)], 1.0), None);
    }
}
