//! Who commands the actuators: nobody, proportional feedback, or a policy.

use crate::episode::{BlownUp, ClosedLoop, Snapshot, time_us};
use crate::fault::{Crash, Kill};
use crate::link::{InProcess, Link};
use crate::metrics::Score;
use crate::problem::{Episode, Problem, Proportional};
use crate::proportional::{Law, ProportionalAgent};
use crate::sense::View;
use crate::swarm::Swarm;
use agent_core::policy::Policy;

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
    /// Who dies on the way.
    pub kill: Option<Kill>,
    /// Decides who that is.
    pub seed: u64,
}

impl Experiment<'_> {
    /// Runs one episode. `watch` sees the state before the first step and after each.
    pub fn run(
        &self,
        episode: &Episode,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        match self.controller {
            Controller::None => {
                let unseen = View {
                    window: 0,
                    target: false,
                };
                self.drive::<InProcess>(episode, unseen, 0, || unreachable!("no agents"), watch)
            }
            Controller::Proportional(law) => {
                let law = Law::new(self.problem, law);
                let agent = ProportionalAgent::new(&law);
                self.drive(episode, law.view(), self.agents, || agent.clone(), watch)
            }
            Controller::Policy(policy) => {
                let sensing = &policy.header().sensing;
                let view = View {
                    window: usize::from(sensing.window),
                    target: sensing.target,
                };
                self.drive(episode, view, self.agents, || InProcess::new(policy), watch)
            }
        }
    }

    fn drive<L: Link>(
        &self,
        episode: &Episode,
        view: View,
        agents: usize,
        link: impl Fn() -> L,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, BlownUp> {
        let mut deaths = vec![None; agents];
        if let Some(kill) = self.kill {
            let at = time_us(self.problem, kill.step(self.steps) as f64);
            for victim in kill.victims(agents, self.seed) {
                deaths[victim] = Some(at);
            }
        }
        let links = (deaths.into_iter())
            .map(|at| Crash::new(link(), at))
            .collect();
        let positions = (self.problem.placement)(agents);
        let swarm = Swarm::new(self.problem, view, links, positions);
        let mut run = ClosedLoop::new(self.problem, episode, swarm);
        watch(&run.snapshot());
        for _ in 0..self.steps {
            run.advance()?;
            watch(&run.snapshot());
        }
        Ok(run.score())
    }
}
