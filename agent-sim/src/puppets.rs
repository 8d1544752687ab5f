//! Agents that are told from outside what to do: the closed loop, opened where a person's own
//! controller goes.
//!
//! A puppet is a link like any other, so sensors and faults lie between it and the field as they do
//! for agents that decide by themselves.

use crate::controller::{Controller, Experiment, places};
use crate::episode::{ClosedLoop, RunError, Snapshot};
use crate::fault::Fault;
use crate::link::{Link, LinkError};
use crate::plant::Plant;
use crate::scenario::run_memory;
use crate::sense::{HALO, View};
use crate::swarm::Swarm;
use agent_core::agent::{Action, Mode};
use agent_core::message::{Observation, Samples, Span};
use artifacts::observation::OwnedObservation;
use problem::limit::{self, NoRoom, TooMany};
use problem::metrics::Score;
use problem::{BadProblem, Episode, Problem};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes what a branch is to read of what an agent saw: field minus target in the window of so many cells along
/// each axis, without the halo, as agents make it of what they see (for a cell beyond the domain stands the
/// nearest inside).
#[inline]
pub fn errors(sight: &OwnedObservation, window: usize, errors: &mut [f32]) {
    let side = window + 2 * HALO;
    let within = |span: Span, k: usize| {
        (k + HALO).clamp(span.first.into(), usize::from(span.last).min(side - 1))
    };
    let [rows, columns] = sight.inside;
    // On a line the only axis is the first.
    let plane = sight.field.len() > side;
    let is_whole =
        |span: Span| within(span, 0) == HALO && within(span, window - 1) + 1 == side - HALO;
    if !plane && is_whole(rows) && sight.target.len() == side {
        let seen = sight.field[HALO..].iter().zip(&sight.target[HALO..]);
        for (error, (field, target)) in errors.iter_mut().zip(seen) {
            *error = field - target;
        }
        return;
    }
    for (k, error) in errors.iter_mut().enumerate() {
        let cell = match plane {
            true => within(rows, k / window) * side + within(columns, k % window),
            false => within(rows, k),
        };
        *error = sight.field[cell] - sight.target.get(cell).copied().unwrap_or(0.0);
    }
}

/// Writes what a trunk is to read of a position: sin(π f s) for the frequencies f, axis after axis, and then
/// cos(π f s), with s the position as a share of the way between two corners.
pub fn waves(position: &[f32], frequencies: &[f32], [low, high]: [[f64; 2]; 2], waves: &mut [f32]) {
    let (sines, cosines) = waves.split_at_mut(waves.len() / 2);
    let angles = position.iter().enumerate().flat_map(|(axis, x)| {
        let share = (f64::from(*x) - low[axis]) / (high[axis] - low[axis]);
        let angle = move |f: &f32| std::f32::consts::PI * f * share as f32;
        frequencies.iter().map(angle)
    });
    for (angle, (sine, cosine)) in angles.zip(sines.iter_mut().zip(cosines)) {
        (*sine, *cosine) = libm::sincosf(angle);
    }
}

/// What a puppet last saw, and what it is told. Its own link: nobody is at the other end.
#[derive(Debug)]
struct Puppet {
    sight: OwnedObservation,
    action: Action,
    /// Killed agents hear and say nothing for the rest of the run.
    killed: bool,
}

impl Puppet {
    fn told(order: Order) -> Action {
        Action {
            force: order.force,
            velocity: order.velocity,
            mode: Mode::Active,
        }
    }
}

impl Link for Puppet {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if self.killed {
            return Ok(());
        }
        let (sight, patch) = (&mut self.sight, &observation.patch);
        sight.now_us = observation.now_us;
        sight.position = observation.position;
        sight.inside = patch.inside;
        copy(patch.field, &mut sight.field);
        copy(patch.target, &mut sight.target);
        copy(patch.wide.field, &mut sight.wide_field);
        copy(patch.wide.target, &mut sight.wide_target);
        Ok(())
    }

    fn receive(&mut self, _: u64) -> Result<Option<Action>, LinkError> {
        Ok((!self.killed).then_some(self.action))
    }
}

/// A puppet behind sensors and faults, held by who leads it too.
#[derive(Clone)]
struct Held(Arc<Mutex<Puppet>>);

impl Held {
    fn puppet(&self) -> MutexGuard<'_, Puppet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for Held {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.puppet().send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.puppet().receive(now_us)
    }
}

fn copy(samples: Samples<'_>, to: &mut [f32]) {
    for (to, sample) in to.iter_mut().zip(samples.iter()) {
        *to = sample;
    }
}

/// What an agent is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Order {
    /// Strength of the force.
    pub force: f32,
    /// Speed along each axis.
    pub velocity: [f32; 2],
}

/// Why a swarm cannot be led from outside.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLead {
    /// Too many of something, or no such swarm.
    #[error(transparent)]
    Problem(#[from] BadProblem),
    /// More of something than programs take.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// It would not fit into memory.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The plant did not begin.
    #[error(transparent)]
    Plant(#[from] RunError),
    /// Nobody to lead.
    #[error("a swarm of 0 agents cannot be told anything; give 1 or more")]
    Nobody,
    /// A run without steps.
    #[error("an episode of 0 steps shows nothing; give 1 or more")]
    NoSteps,
    /// A fault that makes no sense.
    #[error("the fault '{fault}' is impossible: {why}")]
    Fault {
        /// As it was given.
        fault: String,
        /// What is wrong with it.
        why: String,
    },
    /// More cells than the field has.
    #[error(
        "agents cannot see {window} cells along an axis of {points} points; give {most} or fewer"
    )]
    Window {
        /// Cells asked for.
        window: usize,
        /// Points along the shortest axis.
        points: usize,
        /// The most there can be.
        most: usize,
    },
    /// Something else in place of the windows on the other fields that agents see.
    #[error(
        "agents of {problem} see several fields, which {shown:?} values of each observation show; {asked:?} are none of them"
    )]
    Others {
        /// Name of the problem.
        problem: &'static str,
        /// Rows and columns of what is shown.
        shown: [usize; 2],
        /// What was asked for.
        asked: [usize; 2],
    },
    /// A coarse picture that does not divide the sensors' grid.
    #[error(
        "a coarse picture of {asked:?} cells does not divide the sensors' grid of {points:?} points evenly"
    )]
    Wide {
        /// Cells asked for along each axis.
        asked: [usize; 2],
        /// Points of the sensors' grid.
        points: [usize; 2],
    },
}

/// A run whose agents are led from outside.
pub struct Puppets(Stand);

/// Where the puppets are: in the swarm itself, if nothing lies between them and the field. A lock and a call
/// through a box take longer than all that is done with an agent of a small field.
enum Stand {
    InReach(ClosedLoop<Puppet>),
    Behind(ClosedLoop<Box<dyn Link>>, Vec<Held>),
}

/// The run, of whatever links.
macro_rules! run {
    ($puppets:expr, $run:ident => $then:expr) => {
        match $puppets {
            Puppets(Stand::InReach($run)) => $then,
            Puppets(Stand::Behind($run, _)) => $then,
        }
    };
}

/// What a run of puppets is made of.
#[derive(Debug, Clone)]
pub struct Stage<'a> {
    /// What is controlled.
    pub problem: &'a Problem,
    /// What agents are shown.
    pub view: View,
    /// How many there are.
    pub agents: usize,
    /// Over how many steps the times of faults are shares.
    pub steps: usize,
    /// What goes wrong.
    pub faults: &'a [Fault],
    /// Decides what faults leave to chance.
    pub seed: u64,
}

impl Stage<'_> {
    /// Whether there can be so many such runs side by side on this machine.
    pub fn check_batch(&self, runs: usize) -> Result<(), BadLead> {
        self.check()?;
        limit::ENVIRONMENTS.check(runs)?;
        let each = run_memory(self.problem, self.agents, self.steps, self.faults.len());
        limit::check_memory(
            runs as u64 * each,
            || {
                let grid = &self.problem.grid;
                format!("{runs} runs of {} agents on a grid of {grid}", self.agents)
            },
            "take less of it",
        )?;
        Ok(())
    }

    /// Whether there can be such a run.
    pub fn check(&self) -> Result<(), BadLead> {
        let problem = self.problem;
        if self.agents == 0 {
            return Err(BadLead::Nobody);
        }
        if self.steps == 0 {
            return Err(BadLead::NoSteps);
        }
        problem.check_agents(self.agents)?;
        limit::STEPS.check(self.steps)?;
        limit::FAULTS.check(self.faults.len())?;
        let sensors = &problem.sensors;
        let points = sensors.points[..sensors.axes].iter().min();
        let points = points.copied().unwrap_or(0);
        let most = problem.sensing.widest(points);
        if self.view.window == 0 || self.view.window > most {
            let window = self.view.window;
            return Err(BadLead::Window {
                window,
                points,
                most,
            });
        }
        if let Some(shown) = problem.other_windows(self.view.window) {
            if let Some(asked) = self.view.wide.filter(|asked| *asked != shown) {
                let problem = problem.name;
                return Err(BadLead::Others {
                    problem,
                    shown,
                    asked,
                });
            }
        } else if let Some(asked) = self.view.wide {
            let points = sensors.points;
            let divides = |axis: usize| {
                let (cells, points) = (asked[axis], points[axis]);
                cells > 0 && points.is_multiple_of(cells)
            };
            if !(divides(0) && divides(1)) {
                return Err(BadLead::Wide { asked, points });
            }
        }
        let grid = &problem.grid;
        for fault in self.faults {
            let bad = |why: String| BadLead::Fault {
                fault: fault.to_string(),
                why,
            };
            (fault.check(self.agents, grid.axes, grid.low, grid.high))
                .map_err(|error| bad(error.to_string()))?;
            if fault.on_board().is_some() {
                return Err(bad(
                    "agents that are led from outside are no boards".to_owned()
                ));
            }
            if fault.is_of_standing() {
                let why = "agents that are led from outside do not sense by themselves";
                return Err(bad(why.to_owned()));
            }
            if fault.is_of_clocks() {
                let why = "agents that are led from outside act at the start of every step, by no clock of their own";
                return Err(bad(why.to_owned()));
            }
        }
        Ok(())
    }
}

impl Puppets {
    /// The beginning of an episode on a plant, with everything shown that there is to see.
    ///
    /// # Panics
    /// If the episode's fields do not have the problem's published grid.
    pub fn new(
        stage: &Stage<'_>,
        episode: &Episode,
        plant: Box<dyn Plant>,
    ) -> Result<Self, BadLead> {
        stage.check()?;
        let (problem, view) = (stage.problem, stage.view);
        let side = view.window + 2 * HALO;
        let cells = side.pow(problem.sensors.axes as u32);
        let wide = view.wide.map_or(0, |[rows, columns]| rows * columns);
        let shown = |cells| if view.target { cells } else { 0 };
        let puppet = || Puppet {
            sight: OwnedObservation {
                now_us: 0,
                position: [0.0; 2],
                field: vec![0.0; cells],
                target: vec![0.0; shown(cells)],
                inside: [Span::default(); 2],
                wide_field: vec![0.0; wide],
                wide_target: vec![0.0; shown(wide)],
            },
            action: Puppet::told(Order::default()),
            killed: false,
        };
        let experiment = Experiment {
            problem,
            controller: Controller::None,
            agents: stage.agents,
            steps: stage.steps,
            faults: stage.faults,
            seed: stage.seed,
            plant: None,
        };
        let puppets = (0..stage.agents).map(|_| puppet());
        let mut puppets = Self(if experiment.is_disturbed() {
            let held: Vec<Held> = puppets.map(|p| Held(Arc::new(Mutex::new(p)))).collect();
            let links: Arc<[Held]> = held.clone().into();
            let link = move |agent: usize| links[agent].clone();
            let swarm = experiment.swarm(view, stage.agents, &[], link);
            let run = ClosedLoop::with_plant(problem, episode, swarm, plant, stage.seed)?;
            Stand::Behind(run, held)
        } else {
            let places = places(problem, stage.agents, &[]);
            let swarm = Swarm::new(problem, view, puppets.collect(), places);
            let run = ClosedLoop::with_plant(problem, episode, swarm, plant, stage.seed)?;
            Stand::InReach(run)
        });
        run!(&mut puppets, run => run.reveal());
        Ok(puppets)
    }

    /// One control interval in which agents do as they are told, and what they see after it. Orders are
    /// cut to what actuators can do; who got none rests.
    pub fn step(&mut self, orders: impl IntoIterator<Item = Order>) -> Result<(), RunError> {
        let rest = std::iter::repeat(Order::default());
        let actions = orders.into_iter().chain(rest).map(Puppet::told);
        match &mut self.0 {
            Stand::InReach(run) => {
                for (puppet, action) in run.links_mut().iter_mut().zip(actions) {
                    puppet.action = action;
                }
            }
            Stand::Behind(_, held) => {
                for (held, action) in held.iter().zip(actions) {
                    held.puppet().action = action;
                }
            }
        }
        run!(self, run => {
            run.proceed()?;
            run.reveal();
        });
        Ok(())
    }

    /// What an agent last saw; that of one that hears nothing is old.
    pub fn sight<T>(&self, agent: usize, look: impl FnOnce(&OwnedObservation) -> T) -> Option<T> {
        match &self.0 {
            Stand::InReach(run) => Some(look(&run.swarm().links().get(agent)?.sight)),
            Stand::Behind(_, held) => Some(look(&held.get(agent)?.puppet().sight)),
        }
    }

    /// Ends an agent: it neither hears nor says anything from now on.
    pub fn kill(&mut self, agent: usize) {
        match &mut self.0 {
            Stand::InReach(run) => {
                if let Some(puppet) = run.links_mut().get_mut(agent) {
                    puppet.killed = true;
                }
            }
            Stand::Behind(_, held) => {
                if let Some(held) = held.get(agent) {
                    held.puppet().killed = true;
                }
            }
        }
    }

    /// The state, to be looked at.
    pub fn snapshot(&self) -> Snapshot<'_> {
        run!(self, run => run.snapshot())
    }

    /// All fields, on their grid, one after the other.
    pub fn state(&self) -> &[f64] {
        run!(self, run => run.state())
    }

    /// What the field should be now, on its grid, all fields one after the other.
    pub fn target(&self) -> &[f32] {
        run!(self, run => run.target())
    }

    /// The error that was recorded last.
    pub fn recorded(&self) -> f64 {
        run!(self, run => run.recorded())
    }

    /// The run so far, judged.
    pub fn score(&self) -> Score {
        run!(self, run => run.score())
    }
}
