//! Who commands the actuators: nobody, feedback, a policy, or a centre. What is said about each is its [`Kind`].

mod kind;

pub use kind::{ControllerKind, Kind, MadeGuide, Takes, YARDSTICKS};

use crate::centre::{Decisions, Desk, Guide};
use crate::episode::{ClosedLoop, RunError, Snapshot};
use crate::fault::life::JOIN;
use crate::fault::{Clock, Fault, Ids, Plan, Run, Who};
use crate::link::{InProcess, Link};
use crate::plant::{BuiltIn, Plant, Shared};
use crate::proportional::{Law, ProportionalAgent};
use crate::readings::sensed;
use crate::rig::Rig;
use crate::sense::View;
use crate::standing::{Bell, Hall, Standing, stands};
use crate::swarm::Swarm;
use agent_core::policy::Policy;
use problem::kit::sensor::Sensor;
use problem::metrics::Score;
use problem::{Arrival, Episode, Problem, Proportional};

/// A way to control a field.
#[derive(Clone, Copy)]
pub enum Controller<'p> {
    /// No agents at all: what the field does by itself.
    None,
    /// Agents that push against the error they see.
    Proportional(Proportional),
    /// Agents that run a policy.
    Policy(&'p Policy<'p>),
    /// Agents that run a policy and [sense](crate::standing) by themselves, for which the episode was checked.
    Standing {
        /// What they run.
        policy: &'p Policy<'p>,
        /// How many seconds one of the policy's takes at their places.
        second: f64,
    },
    /// Agents for whom is decided in one place.
    Guided(&'p dyn Guide),
}

/// The agents of a run: what they are shown, how many there are from the beginning, what is at the ends of
/// their links, and who decides for them.
struct Crew<F> {
    view: View,
    agents: usize,
    link: F,
    desk: Option<Desk>,
}

impl<F> Crew<F> {
    fn new(view: View, agents: usize, link: F) -> Self {
        Self {
            view,
            agents,
            link,
            desk: None,
        }
    }

    fn with(self, desk: Desk) -> Self {
        Self {
            desk: Some(desk),
            ..self
        }
    }
}

impl Controller<'_> {
    /// What it is called and what it takes.
    pub fn kind(&self) -> ControllerKind {
        match self {
            Self::None => ControllerKind::NONE,
            Self::Proportional(_) => ControllerKind::PROPORTIONAL,
            Self::Policy(_) | Self::Standing { .. } => ControllerKind::POLICY,
            Self::Guided(guide) => guide.kind(),
        }
    }

    /// How long it took to decide so far, where that is worth knowing.
    pub fn decisions(&self) -> Option<Decisions> {
        match self {
            Self::Guided(guide) => guide.decisions(),
            Self::None | Self::Policy(_) | Self::Standing { .. } | Self::Proportional(_) => None,
        }
    }

    /// The gain of its feedback.
    pub fn gain(&self) -> Option<f64> {
        match self {
            Self::Proportional(law) => Some(law.gain),
            Self::Guided(guide) => guide.gain(),
            Self::None | Self::Policy(_) | Self::Standing { .. } => None,
        }
    }
}

/// A run to be made.
#[derive(Clone, Copy)]
pub struct Experiment<'p> {
    /// What is controlled.
    pub problem: &'p Problem,
    /// By whom.
    pub controller: Controller<'p>,
    /// How many of them; those that come on the way are the episode's.
    pub agents: usize,
    /// For how long.
    pub steps: usize,
    /// What goes wrong on the way; each has passed [`Fault::check`].
    pub faults: &'p [Fault],
    /// Decides what the faults leave to chance.
    pub seed: u64,
    /// What computes the field; the problem's own solver if there is none. Runs on one plant are made
    /// one after the other.
    pub plant: Option<&'p Shared>,
}

/// Where agents start: those of the beginning as the problem places them, then those that come.
pub fn places(problem: &Problem, at_first: usize, arrivals: &[Arrival]) -> Vec<[f64; 2]> {
    let mut places = (problem.placement)(problem, at_first);
    places.extend(arrivals.iter().map(|arrival| arrival.place));
    places
}

impl Experiment<'_> {
    /// Runs one episode. `watch` sees the state before the first step and after each.
    pub fn run(
        &self,
        episode: &Episode,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, RunError> {
        self.run_on(None, episode, watch)
    }

    /// The same with the first agents of a policy on the rig's boards, and at the rig's pace.
    pub fn run_on(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, RunError> {
        match self.controller {
            Controller::None => {
                let none = |_| unreachable!("no agents");
                self.drive::<InProcess>(rig, episode, Crew::new(View::NOTHING, 0, none), watch)
            }
            Controller::Proportional(law) => {
                let law = Law::new(self.problem, law);
                let link = |agent| ProportionalAgent::new(&law, agent);
                let crew = Crew::new(law.view(), self.agents, link);
                self.drive(rig, episode, crew, watch)
            }
            Controller::Guided(guide) => {
                let desk = Desk::new(guide, self.agents + episode.arrivals.len());
                let radio = desk.radio();
                let link = |agent| guide.agent(agent, radio.clone());
                let crew = Crew::new(guide.view(), self.agents, &link);
                self.drive(rig, episode, crew.with(desk), watch)
            }
            Controller::Policy(policy) => {
                let view = View::of(policy);
                let inside = |_| InProcess::new(policy);
                match rig.filter(|rig| !rig.is_empty()) {
                    None => {
                        let crew = Crew::new(view, self.agents, inside);
                        self.drive(rig, episode, crew, watch)
                    }
                    Some(boards) => {
                        let link = |agent| -> Box<dyn Link + '_> {
                            match boards.link(agent) {
                                Some(link) => Box::new(link),
                                None => Box::new(inside(agent)),
                            }
                        };
                        let crew = Crew::new(view, self.agents, link);
                        self.drive(rig, episode, crew, watch)
                    }
                }
            }
            Controller::Standing { policy, second } => {
                let positions = places(self.problem, self.agents, &[]);
                let stands = stands(self.problem, policy, &positions, episode, second)
                    .expect("checked when set up");
                let hall = Hall::new(self.agents);
                let link = |agent: usize| -> Box<dyn Link + '_> {
                    match rig.and_then(|rig| rig.link(agent)) {
                        Some(link) => Box::new(link),
                        None => {
                            let stand = stands[agent].clone();
                            Box::new(Standing::new(InProcess::new(policy), stand, policy, &hall))
                        }
                    }
                };
                let desk = Desk::of(Box::new(Bell(hall.clone())), self.agents);
                let crew = Crew::new(View::of(policy), self.agents, &link);
                self.drive(rig, episode, crew.with(desk), watch)
            }
        }
    }

    /// Runs the episode with agents at the ends of these links.
    fn drive<L: Link>(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        crew: Crew<impl Fn(usize) -> L + Clone + Send>,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, RunError> {
        let Crew {
            view,
            agents,
            link,
            desk,
        } = crew;
        let problem = self.problem;
        let arrivals = &episode.arrivals[..];
        if agents > 0 && (self.is_disturbed() || !arrivals.is_empty()) {
            let boards = match self.controller {
                Controller::Standing { .. } => rig.map_or(0, Rig::len),
                _ => 0,
            };
            let swarm = self.swarm_with_boards(boards, view, agents, arrivals, link);
            return self.steer(rig, episode, (swarm, desk), watch);
        }
        let links = (0..agents).map(link).collect();
        let swarm = Swarm::new(problem, view, links, (problem.placement)(problem, agents));
        self.steer(rig, episode, (swarm, desk), watch)
    }

    /// The agents' sensors, if they do anything to what they read.
    fn sensors(&self) -> Option<&'static [Sensor]> {
        let sensors = self.problem.kit.map(|kit| &kit.sensors[..]);
        sensors.filter(|sensors| sensors.iter().any(|sensor| *sensor != Sensor::PLAIN))
    }

    /// Whether anything lies between the field and the agents.
    pub(crate) fn is_disturbed(&self) -> bool {
        !self.faults.is_empty() || self.sensors().is_some()
    }

    /// Agents at the ends of their links, with sensors and faults in between: so many from the beginning,
    /// and those that come on the way.
    pub fn swarm<'l, L: Link + 'l>(
        &self,
        view: View,
        at_first: usize,
        arrivals: &[Arrival],
        link: impl Fn(usize) -> L + Clone + Send + 'l,
    ) -> Swarm<Box<dyn Link + 'l>> {
        self.swarm_with_boards(0, view, at_first, arrivals, link)
    }

    /// The same with so many of the first on boards that keep their own time.
    fn swarm_with_boards<'l, L: Link + 'l>(
        &self,
        boards: usize,
        view: View,
        at_first: usize,
        arrivals: &[Arrival],
        link: impl Fn(usize) -> L + Clone + Send + 'l,
    ) -> Swarm<Box<dyn Link + 'l>> {
        let problem = self.problem;
        let positions = places(problem, at_first, arrivals);
        let agents = positions.len();
        let mut faults = self.faults.to_vec();
        faults.extend(
            arrivals
                .iter()
                .zip(at_first..)
                .map(|(arrival, agent)| Fault {
                    who: Who::Ids(Ids::from_iter([agent])),
                    at: arrival.at,
                    ..Fault::new(&JOIN)
                }),
        );
        let plan = Plan::new(
            &faults,
            Run {
                grid: &problem.grid,
                places: &positions,
                at_first,
                steps: self.steps,
                interval_us: problem.control_interval * 1e6,
                seed: self.seed,
            },
        )
        .with_boards(boards);
        let links = (0..agents)
            .map(|agent| {
                let link = link.clone();
                let fresh = move || link(agent);
                match self.sensors() {
                    None => plan.stack(agent, fresh),
                    Some(sensors) => sensed(&plan, agent, sensors, fresh),
                }
            })
            .collect();
        let swarm = Swarm::new(problem, view, links, positions);
        if !plan.has_clocks() || boards >= agents {
            return swarm;
        }
        let clock = |agent| match agent < boards {
            true => Clock::EXACT,
            false => plan.clock(agent),
        };
        swarm.with_clocks((0..agents).map(clock).collect())
    }

    fn steer<L: Link>(
        &self,
        rig: Option<&Rig>,
        episode: &Episode,
        (swarm, desk): (Swarm<L>, Option<Desk>),
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<Score, RunError> {
        let plant: Box<dyn Plant> = match self.plant {
            None => Box::new(BuiltIn::default()),
            Some(shared) => shared.lend(),
        };
        let mut run = ClosedLoop::with_plant(self.problem, episode, swarm, plant, self.seed)?;
        run.led_by(desk);
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
