//! The control problems: what the field does, what agents can do to it and see of it, how
//! episodes are drawn and how they are scored. Constants live here and nowhere else; the trainer
//! reads them from here.

pub mod heat_1d;
pub mod ks_2d;
pub mod turbulence_2d;

use crate::pde::Stepper;
use rand_chacha::ChaCha8Rng;

/// Everything about a problem that is a number or a name.
#[derive(Debug)]
pub struct Problem {
    /// The name on the command line and in policy blobs.
    pub name: &'static str,
    /// One line for `--help` and reports.
    pub summary: &'static str,
    /// Grid points along the domain, ends included.
    pub grid: usize,
    /// The lowest and highest coordinate an agent can take.
    pub domain: [f64; 2],
    /// Grid spacing used by the scheme.
    pub dx: f64,
    /// Time between two actions, in time units of the equation (read as seconds by agents).
    pub control_interval: f64,
    /// Actions in one episode.
    pub horizon: usize,
    /// Agents in the published experiment.
    pub agents: usize,
    /// What one agent does to the field.
    pub actuation: Actuation,
    /// What one agent sees of the field.
    pub sensing: Sensing,
    /// Terms of the training loss.
    pub loss: LossWeights,
    /// Where `agents` agents start.
    pub placement: fn(agents: usize) -> Vec<f64>,
    /// Draws the initial field and the target of one episode.
    pub draw: fn(&mut ChaCha8Rng) -> Episode,
    /// File in `testsets/` with the published test episodes.
    pub test_set: &'static str,
    /// The bytes of that file, built in so that the program needs nothing beside itself.
    pub table: fn() -> &'static [u8],
    /// Builds the solver that is the truth of this problem.
    pub stepper: fn(&Problem) -> Box<dyn Stepper<f64>>,
    /// The feedback that every result is shown beside, tuned for the published number of agents.
    pub baseline: Proportional,
}

/// Gaussian actuators, peak 1, summed over agents.
#[derive(Debug, Clone, Copy)]
pub struct Actuation {
    /// Standard deviation of the kernel.
    pub width: f64,
    /// Largest |force|.
    pub force_max: f64,
    /// Largest |velocity| of a mobile agent.
    pub velocity_max: f64,
}

/// Saturated proportional feedback from agents that stay where they are: `u = clip(−gain · e)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportional {
    /// Force per unit of error.
    pub gain: f64,
    /// Which error e each agent goes by.
    pub sensing: ErrorSensing,
}

/// The error a proportional agent goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSensing {
    /// The error in the agent's grid cell.
    Point,
    /// The mean error around the agent, weighted by its own actuation kernel.
    Kernel,
}

/// The window of the field around an agent.
#[derive(Debug, Clone, Copy)]
pub struct Sensing {
    /// Grid points in the window; it covers `c - window/2 .. c + window/2` around the agent's cell `c`.
    pub window: usize,
}

/// Weights of the tracking loss; every term is a mean over time and space or agents.
#[derive(Debug, Clone, Copy)]
pub struct LossWeights {
    /// Squared error to the target, over steps 1..=T.
    pub track: f64,
    /// Mean u² + `velocity_effort` · mean |v|².
    pub effort: f64,
    /// Share of |v|² in the effort.
    pub velocity_effort: f64,
    /// Squared excess beyond `margin` from the walls.
    pub bound: f64,
    /// Width of the band along the walls that `bound` keeps free.
    pub margin: f64,
    /// Squared shortfall of the distance between two agents below `safe_distance`, over all ordered pairs.
    pub collision: f64,
    /// Distance that `collision` asks for.
    pub safe_distance: f64,
    /// Squared change of velocity from one step to the next.
    pub acceleration: f64,
}

/// One control task: from this field to that one.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// The field at time 0.
    pub initial: Vec<f32>,
    /// The field to reach and keep.
    pub target: Vec<f32>,
}

/// All problems, in the order of the results table.
pub static ALL: [&Problem; 1] = [&heat_1d::PROBLEM];

/// The first `agents` cell centres of the smallest square lattice that holds so many, on a square
/// with sides of `length`; axis 1 runs faster.
fn square_lattice(agents: usize, length: f64) -> Vec<[f64; 2]> {
    let side = (0..).find(|side| side * side >= agents).unwrap_or(0);
    (0..agents)
        .map(|i| [i / side, i % side].map(|cell| (cell as f64 + 0.5) / side as f64 * length))
        .collect()
}

/// The problem of that name.
pub fn by_name(name: &str) -> Result<&'static Problem, UnknownProblem> {
    ALL.into_iter()
        .find(|p| p.name == name)
        .ok_or_else(|| UnknownProblem(name.to_owned()))
}

/// A name that no problem has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no problem called '{0}'; choose one of: {known}", known = ALL.map(|p| p.name).join(", "))]
pub struct UnknownProblem(pub String);

impl Problem {
    /// Grid index of the cell that holds coordinate `x`: floor(clip(x) · (N − 1)), as published.
    ///
    /// In f32, like an agent's position: all implementations must cut the same window.
    pub fn cell_of(&self, x: f32) -> usize {
        let [low, high] = self.domain.map(|v| v as f32);
        let unit = ((x - low) / (high - low)).clamp(0.0, 1.0);
        (unit * (self.grid - 1) as f32) as usize
    }

    /// The tuned feedback for a swarm of another size than the published one: more agents overlap
    /// more, so each pushes less. (A designer may count them; an agent may not.)
    pub fn baseline_for(&self, agents: usize) -> Proportional {
        let share = self.agents as f64 / agents.max(1) as f64;
        Proportional {
            gain: self.baseline.gain * share.min(1.0),
            ..self.baseline
        }
    }

    /// Coordinate of grid point `j`.
    pub fn coordinate(&self, j: usize) -> f64 {
        let [low, high] = self.domain;
        low + (high - low) * j as f64 / (self.grid - 1) as f64
    }
}
