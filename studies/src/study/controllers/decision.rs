//! How long it takes to decide, on this machine.

use crate::Scope;
use crate::cell::Work;
use crate::provenance::machine;
use crate::shelf::Shelf;
use crate::swarm_work::Controls;
use agent_sim::bench::{Effort, link_step};
use agent_sim::centre::{Guide, Order, Whole};
use agent_sim::coverage::Coverage;
use agent_sim::link::InProcess;
use agent_sim::proportional::{Law, ProportionalAgent};
use agent_sim::sense::View;
use anyhow::{Context, bail};
use problem::Problem;
use problem::resample::on_grid;
use problem::test_set::EpisodeSet;
use serde_json::json;
use std::hint::black_box;

/// Timings of which the median is taken.
const TIMINGS: usize = 101;
/// How long each lasts: less than what a busy system gives a program at a time, so that most are of nothing
/// else, though other cells are computed meanwhile.
const SECONDS: f64 = 3e-4;

/// One decision: of an agent that decides for itself, of all where one place does.
pub struct Decision {
    problem: &'static Problem,
    controls: Controls,
    effort: Effort,
}

impl Decision {
    /// Of the published swarm.
    pub fn new(scope: &Scope, problem: &'static Problem, controls: Controls) -> Self {
        Self {
            problem,
            controls,
            effort: Effort {
                repeats: scope.pick(3, TIMINGS),
                seconds: SECONDS,
                ..Effort::QUICK
            },
        }
    }

    fn seconds(&self) -> anyhow::Result<f64> {
        let (problem, effort) = (self.problem, &self.effort);
        let untuned = "all published problems have tuned feedback";
        Ok(match &self.controls {
            Controls::Nobody => bail!("nobody decides nothing"),
            Controls::Proportional => {
                let tuned = problem.baseline_for(problem.agents).context(untuned)?;
                let law = Law::new(problem, tuned);
                let link = ProportionalAgent::new(&law, 0);
                link_step(problem, law.view(), link, effort)
            }
            Controls::Coverage => {
                let tuned = problem.coverage_for(problem.agents).context(untuned)?;
                let coverage = Coverage::new(problem, tuned).context("agents stir")?;
                let mut centre = coverage.centre(problem.agents);
                let episode = EpisodeSet::Table.episode(problem, 0, 0)?;
                let state: Vec<f64> = on_grid(problem, &episode.initial)
                    .into_iter()
                    .map(f64::from)
                    .collect();
                let whole = Whole {
                    step: 0,
                    state: &state,
                    target: &on_grid(problem, &episode.target),
                    positions: &(problem.placement)(problem, problem.agents),
                };
                let mut orders = vec![Order::default(); problem.agents];
                effort.time(|| centre.decide(black_box(&whole), &mut orders))
            }
            Controls::Policy(file) => {
                let policy = file.policy(problem)?;
                let link = InProcess::new(&policy);
                link_step(problem, View::of(&policy), link, effort)
            }
        })
    }
}

impl Work for Decision {
    fn key(&self) -> serde_json::Value {
        json!({
            "decision": self.controls.name(),
            "problem": self.problem.name,
            "policy": match &self.controls {
                Controls::Policy(file) => Some(file.hash()),
                _ => None,
            },
            "timings": self.effort.repeats,
            "machine": machine(),
        })
    }

    fn pieces(&self) -> usize {
        1
    }

    fn cost(&self) -> u64 {
        (1e9 * self.effort.seconds) as u64 * self.effort.repeats as u64
    }

    fn figures(&self) -> Vec<String> {
        vec!["microseconds".to_owned()]
    }

    fn run(&self, _: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        Ok(Some(vec![1e6 * self.seconds()?]))
    }
}
