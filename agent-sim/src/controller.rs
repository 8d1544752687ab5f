//! Who commands the actuators: nobody, proportional feedback, or a policy.

use crate::episode::{BlownUp, ClosedLoop, Snapshot, time_us};
use crate::fault::{Crash, Kill};
use crate::link::{InProcess, Link, LinkError};
use crate::metrics::Score;
use crate::problem::{Episode, ErrorSensing, Problem, Proportional};
use crate::sense::{HALO, View};
use crate::swarm::Swarm;
use agent_core::agent::{Action, Mode};
use agent_core::message::Observation;
use agent_core::policy::Policy;

/// Kernel-averaged sensing reaches this many kernel widths to each side; beyond, weights are below
/// 0.02 and the mean no longer changes.
const KERNEL_REACH: f64 = 3.0;

/// Control intervals without an observation over which an agent's last command fades, as in the
/// policies that are shipped.
const FAIL_SAFE_INTERVALS: f64 = 20.0;

/// A way to control a field.
#[derive(Clone, Copy)]
pub enum Controller<'p> {
    /// No agents at all: what the field does by itself.
    None,
    /// Agents that stay put and push against the error they see.
    Proportional(Proportional),
    /// Agents that run a policy.
    Policy(&'p Policy<'p>),
}

/// A run to be made.
#[derive(Clone, Copy)]
pub struct Experiment<'p> {
    /// What is controlled.
    pub problem: &'static Problem,
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
        let problem = self.problem;
        match self.controller {
            Controller::None => {
                let unseen = View {
                    window: 0,
                    target: false,
                };
                self.drive::<InProcess>(episode, unseen, 0, || unreachable!("no agents"), watch)
            }
            Controller::Proportional(law) => {
                let agent = ProportionalAgent::new(problem, law);
                let view = View {
                    window: agent.window(),
                    target: true,
                };
                self.drive(episode, view, self.agents, || agent.clone(), watch)
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
            let at = time_us(self.problem, kill.step(self.steps));
            for victim in kill.victims(agents, self.seed) {
                deaths[victim] = Some(at);
            }
        }
        let links = (deaths.into_iter())
            .map(|at| Crash::new(link(), at))
            .collect();
        let positions = (self.problem.placement)(agents)
            .into_iter()
            .map(|x| [x, 0.0])
            .collect();
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

/// An agent that needs no policy: `u = clip(−gain · error)`, and it stays where it is.
#[derive(Debug, Clone)]
pub struct ProportionalAgent {
    problem: &'static Problem,
    law: Proportional,
    pending: Option<Action>,
    /// The last command from an observation, and when that came.
    held: Option<(Action, u64)>,
}

impl ProportionalAgent {
    /// An agent with this law.
    pub fn new(problem: &'static Problem, law: Proportional) -> Self {
        Self {
            problem,
            law,
            pending: None,
            held: None,
        }
    }

    /// Cells it must see.
    pub fn window(&self) -> usize {
        match self.law.sensing {
            ErrorSensing::Point => self.problem.sensing.window,
            ErrorSensing::Kernel => {
                let spacing = self.problem.coordinate(1) - self.problem.coordinate(0);
                2 * (KERNEL_REACH * self.problem.actuation.width / spacing).ceil() as usize
            }
        }
    }

    /// The error this agent goes by.
    fn error(&self, observation: &Observation<'_>) -> f64 {
        let patch = &observation.patch;
        let errors = patch
            .field
            .iter()
            .zip(patch.target.iter())
            .map(|(z, t)| f64::from(z - t));
        // The agent's own cell stands half a window and the halo into the patch.
        let own = self.window() / 2 + HALO;
        match self.law.sensing {
            ErrorSensing::Point => errors.into_iter().nth(own).unwrap_or(0.0),
            ErrorSensing::Kernel => {
                let cell = self.problem.cell_of(observation.position[0]) as f64;
                let [low, high] = self.problem.domain;
                let spacing = (high - low) / (self.problem.grid - 1) as f64;
                let inside = patch.inside[0];
                let (mut sum, mut weights) = (0.0, 0.0);
                for (k, error) in errors.enumerate() {
                    if !(usize::from(inside.first)..=usize::from(inside.last)).contains(&k) {
                        continue;
                    }
                    let x = low + spacing * (cell + k as f64 - own as f64);
                    let d = (x - f64::from(observation.position[0])) / self.problem.actuation.width;
                    let weight = (-0.5 * d * d).exp();
                    sum += weight * error;
                    weights += weight;
                }
                sum / weights
            }
        }
    }
}

impl Link for ProportionalAgent {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let limit = self.problem.actuation.force_max;
        let force = (-self.law.gain * self.error(observation)).clamp(-limit, limit);
        if force.is_nan() {
            return Ok(()); // a sensor that says it is dead is as good as none
        }
        let action = Action {
            force: force as f32,
            velocity: [0.0; 2],
            mode: Mode::Active,
        };
        self.pending = Some(action);
        self.held = Some((action, observation.now_us));
        Ok(())
    }

    /// Without an observation the last command fades to nothing, as it does on a node.
    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        if let Some(action) = self.pending.take() {
            return Ok(Some(action));
        }
        let Some((held, seen_us)) = self.held else {
            return Ok(Some(Action::none(Mode::Waiting)));
        };
        let fail_safe_us = FAIL_SAFE_INTERVALS * self.problem.control_interval * 1e6;
        let fade = 1.0 - now_us.saturating_sub(seen_us) as f64 / fail_safe_us;
        if fade <= 0.0 {
            return Ok(Some(Action::none(Mode::FailedSafe)));
        }
        Ok(Some(Action {
            force: (f64::from(held.force) * fade) as f32,
            mode: Mode::Holding,
            ..held
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::heat_1d::PROBLEM;
    use crate::sense::Eye;

    /// With an error of −0.04 and gain 100 the command is 4; heat-1d's interval is 1000 µs, so it
    /// has faded after 20,000 µs.
    #[test]
    fn a_blind_proportional_agent_fades_and_rests() {
        let law = Proportional {
            gain: 100.0,
            sensing: ErrorSensing::Point,
        };
        let mut agent = ProportionalAgent::new(&PROBLEM, law);
        let mut answer = |now_us, error: Option<f32>| {
            if let Some(error) = error {
                let view = View {
                    window: 8,
                    target: true,
                };
                let (field, target) = ([error; 100], [0.0; 100]);
                let observation = Observation {
                    now_us,
                    position: [0.5, 0.0],
                    patch: Eye::new(view).look(&PROBLEM, &field, &target, 0.5),
                };
                agent.send(&observation).unwrap();
            }
            let action = agent.receive(now_us).unwrap().unwrap();
            (action.force, action.mode)
        };
        assert_eq!(answer(0, None), (0.0, Mode::Waiting));
        assert_eq!(answer(1_000, Some(-0.04)), (4.0, Mode::Active));
        assert_eq!(answer(6_000, None), (3.0, Mode::Holding));
        assert_eq!(answer(11_000, Some(f32::NAN)), (2.0, Mode::Holding));
        assert_eq!(answer(21_000, None), (0.0, Mode::FailedSafe));
        assert_eq!(answer(22_000, Some(0.04)), (-4.0, Mode::Active));
    }
}
