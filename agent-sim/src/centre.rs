//! Controllers that decide in one place for all agents: a [`Centre`] is told the whole field and where
//! everybody is, and every agent hears its order over its link.
//!
//! That is what no agent with a policy has, and what yardsticks are allowed: they say what could be done by
//! those who know more. Faults stay what they are, wrappers over links: a crashed agent carries out no
//! order, a delayed one carries it out late, and a centre is told of neither.

use crate::controller::ControllerKind;
use crate::held::Held;
use crate::link::{Link, LinkError};
use crate::scenario::{BadScenario, Team};
use crate::sense::View;
use agent_core::agent::{Action, Mode, project};
use agent_core::message::Observation;
use agent_core::policy::Limits;
use artifacts::fitting;
use problem::Problem;
use serde::Serialize;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// What a centre is told at the beginning of a control interval.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// Steps taken so far.
    pub step: usize,
    /// All fields on the grid, one after the other, as they truly are.
    pub state: &'a [f64],
    /// What they should be now.
    pub target: &'a [f32],
    /// Where every agent is: those also that are dead or have yet to come.
    pub positions: &'a [[f64; 2]],
}

/// What an agent is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Order {
    /// Strength of the force.
    pub force: f32,
    /// Speed along each axis.
    pub velocity: [f32; 2],
}

/// Who decides for all agents of a run.
pub trait Centre: Send {
    /// Writes what every agent is to do from now on; before the first call all orders are to do nothing.
    fn decide(&mut self, whole: &Whole<'_>, orders: &mut [Order]);
}

/// A controller that decides in one place.
pub trait Guide: Debug + Send + Sync {
    /// Which.
    fn kind(&self) -> ControllerKind;

    /// What is controlled.
    fn problem(&self) -> &Problem;

    /// The gain of its feedback, if it has one.
    fn gain(&self) -> Option<f64> {
        None
    }

    /// What agents see for themselves.
    fn view(&self) -> View {
        View::NOTHING
    }

    /// Who decides in a run of so many agents.
    fn centre(&self, agents: usize) -> Box<dyn Centre>;

    /// An agent at the end of its link: one that does as it is told.
    fn agent<'g>(&'g self, agent: usize, radio: Radio) -> Box<dyn Link + 'g> {
        Box::new(Obedient {
            axes: self.problem().grid.axes,
            period_s: self.problem().control_interval as f32,
            limits: fitting::header(self.problem(), 0).limits,
            held: Held::new(self.problem()),
            agent,
            radio,
        })
    }

    /// How long its decisions took so far, where they take long enough to be worth knowing.
    fn decisions(&self) -> Option<Decisions> {
        None
    }
}

/// Makes controllers that this crate lacks, for programs that have what they take.
pub trait Bring: Sync {
    /// Which.
    fn kind(&self) -> ControllerKind;

    /// That of a team whose problem and settings were checked.
    fn bring(&self, team: &Team) -> Result<Arc<dyn Guide>, BadScenario>;
}

/// How long decisions took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Decisions {
    /// How many there were.
    pub count: usize,
    /// Milliseconds, on average and at most.
    pub mean_ms: f64,
    /// See [`mean_ms`](Self::mean_ms).
    pub worst_ms: f64,
}

/// Tells how long decisions take, of all centres that a guide makes.
#[derive(Debug, Default)]
pub struct Stopwatch(Mutex<Decisions>);

impl Stopwatch {
    /// Lets somebody decide.
    pub fn time<R>(&self, decide: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let decided = decide();
        let ms = 1e3 * began.elapsed().as_secs_f64();
        let mut took = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        took.count += 1;
        took.mean_ms += (ms - took.mean_ms) / took.count as f64;
        took.worst_ms = took.worst_ms.max(ms);
        decided
    }

    /// How long they took so far.
    pub fn read(&self) -> Decisions {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where orders are given: every agent hears its own when it is shown its patch.
#[derive(Debug, Clone)]
pub struct Radio(Arc<RwLock<Vec<Order>>>);

impl Radio {
    /// On which so many agents are told to do nothing.
    pub fn new(agents: usize) -> Self {
        Self(Arc::new(RwLock::new(vec![Order::default(); agents])))
    }

    /// What an agent is told.
    pub fn order(&self, agent: usize) -> Order {
        self.0.read().unwrap_or_else(PoisonError::into_inner)[agent]
    }
}

/// A centre at work in a run, and the radio that it speaks on.
pub struct Desk {
    centre: Box<dyn Centre>,
    radio: Radio,
}

impl Desk {
    /// The centre of a guide for so many agents.
    pub fn new(guide: &dyn Guide, agents: usize) -> Self {
        Self::of(guide.centre(agents), agents)
    }

    /// A centre for so many agents.
    pub fn of(centre: Box<dyn Centre>, agents: usize) -> Self {
        Self {
            centre,
            radio: Radio::new(agents),
        }
    }

    /// What agents hear.
    pub fn radio(&self) -> Radio {
        self.radio.clone()
    }

    /// Lets the centre decide.
    pub(crate) fn decide(&mut self, whole: &Whole<'_>) {
        let mut orders = self.radio.0.write().unwrap_or_else(PoisonError::into_inner);
        self.centre.decide(whole, &mut orders);
    }
}

/// An agent that does as it is told, but leaves no domain and enters no keep-out disc, and like others holds its last command, fading, when it hears nothing.
#[derive(Debug)]
struct Obedient {
    axes: usize,
    period_s: f32,
    limits: Limits,
    held: Held,
    agent: usize,
    radio: Radio,
}

impl Link for Obedient {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let Order { force, velocity } = self.radio.order(self.agent);
        let action = Action {
            force,
            velocity: project(
                &self.limits,
                self.axes,
                self.period_s,
                observation.position,
                velocity,
            ),
            mode: Mode::Active,
        };
        self.held.take(action, observation.now_us);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        Ok(Some(self.held.answer(now_us)))
    }
}
