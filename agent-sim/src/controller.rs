//! Who commands the actuators: nobody, proportional feedback, or a policy.

use crate::episode::{BlownUp, ClosedLoop, Snapshot};
use crate::fault::{Fault, Plan, Run};
use crate::link::{InProcess, Link};
use crate::proportional::{Law, ProportionalAgent};
use crate::readings::sensed;
use crate::rig::Rig;
use crate::sense::View;
use crate::swarm::Swarm;
use agent_core::policy::Policy;
use problem::metrics::Score;
use problem::{Episode, Problem, Proportional};

/// A way to control a field.
#[derive(Clone, Copy)]
pub enum Controller<'p> {
    /// No agents at all: what the field does by itself.
    None,
    /// Agents that push against the error they see.
    Proportional(Proportional),
    /// Agents that run a policy.
    Policy(&'p Policy<'p>),
}

/// A run to be made.
#[derive(Clone, Copy)]
pub struct Experiment<'p> {
    /// What is controlled.
    pub problem: &'p Problem,
    /// By whom.
    pub controller: Controller<'p>,
    /// How many of them.
    pub agents: usize,
    /// For how long.
    pub steps: usize,
    /// What goes wrong on the way; each has passed [`Fault::check`].
    pub faults: &'p [Fault],
    /// Decides what the faults leave to chance.
    pub seed: u64,
}

impl Experiment<'_> {
    /// Runs one episode. `watch` sees the state before the first step and after each.
    pub fn run(
        &self,
        episode: &Episode,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        self.run_on(None, episode, watch)
    }

    /// The same with the first agents of a policy on the rig's boards, and at the rig's pace.
    pub fn run_on(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        match self.controller {
            Controller::None => {
                let unseen = View {
                    window: 0,
                    target: false,
                    wide: None,
                };
                let none = |_| unreachable!("no agents");
                self.drive::<InProcess>(rig, episode, unseen, 0, none, watch)
            }
            Controller::Proportional(law) => {
                let law = Law::new(self.problem, law);
                let link = |agent| ProportionalAgent::new(&law, agent);
                self.drive(rig, episode, law.view(), self.agents, link, watch)
            }
            Controller::Policy(policy) => {
                let view = View::of(policy);
                let inside = |_| InProcess::new(policy);
                match rig.filter(|rig| !rig.is_empty()) {
                    None => self.drive(rig, episode, view, self.agents, inside, watch),
                    Some(boards) => {
                        let link = |agent| -> Box<dyn Link + '_> {
                            match boards.link(agent) {
                                Some(link) => Box::new(link),
                                None => Box::new(inside(agent)),
                            }
                        };
                        self.drive(rig, episode, view, self.agents, link, watch)
                    }
                }
            }
        }
    }

    /// Puts agents at the ends of their links, faults in between, and runs the episode.
    fn drive<L: Link>(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        view: View,
        agents: usize,
        link: impl Fn(usize) -> L + Copy + Send,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        let problem = self.problem;
        let positions = (problem.placement)(problem, agents);
        let sensor = problem.kit.map(|kit| kit.sensor);
        let sensor = sensor.filter(|sensor| sensor.noise > 0.0 || !sensor.is_faithful());
        if self.faults.is_empty() && sensor.is_none() || agents == 0 {
            let links = (0..agents).map(link).collect();
            let swarm = Swarm::new(problem, view, links, positions);
            return self.steer(rig, episode, swarm, watch);
        }
        let plan = Plan::new(
            self.faults,
            Run {
                grid: &problem.grid,
                places: &positions,
                steps: self.steps,
                interval_us: problem.control_interval * 1e6,
                seed: self.seed,
            },
        );
        let links = (0..agents)
            .map(|agent| match sensor {
                None => plan.stack(agent, move || link(agent)),
                Some(sensor) => sensed(&plan, agent, sensor, move || link(agent)),
            })
            .collect();
        let mut swarm = Swarm::new(problem, view, links, positions);
        if plan.has_clocks() {
            swarm = swarm.with_clocks((0..agents).map(|agent| plan.clock(agent)).collect());
        }
        self.steer(rig, episode, swarm, watch)
    }

    fn steer<L: Link>(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        swarm: Swarm<L>,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        let mut run = ClosedLoop::new(self.problem, episode, swarm);
        watch(&run.snapshot());
        for step in 0..self.steps {
            if let Some(rig) = rig {
                rig.before(step);
            }
            run.advance()?;
            if let Some(rig) = rig {
                rig.after(step);
            }
            watch(&run.snapshot());
        }
        Ok(run.score())
    }
}
