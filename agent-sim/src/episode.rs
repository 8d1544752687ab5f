//! One closed-loop run: the field, the swarm, and the clock that drives both.

use crate::link::Link;
use crate::swarm::{Cost, Deed, Swarm};
use problem::metrics::{Score, mean_squared_error};
use problem::pde::Stepper;
use problem::resample::{Sampler, resample};
use problem::resolution::TooCoarse;
use problem::{Episode, Problem, Records};

/// Parts of a control interval in which agents with clocks of their own are looked after: their
/// ticks fall between the host's steps, and this is how finely the host sees when.
pub const PARTS: usize = 8;

/// Every how many steps the field is looked at for waves that the grid is too coarse for. A field that
/// blows up is rough at its end whatever the reason, so this is to be known before.
const LOOK_EVERY: usize = 10;

/// A field and a swarm: observe, act, let the field evolve, move.
pub struct ClosedLoop<L> {
    problem: Problem,
    stepper: Box<dyn Stepper<f64>>,
    /// How many times in a control interval the above happens.
    parts: usize,
    field: Vec<f64>,
    /// The field before the last step.
    before: Vec<f64>,
    /// What sensors could see of the field.
    seen: Vec<f32>,
    sampler: Sampler,
    target: Vec<f32>,
    target_seen: Vec<f32>,
    force: Vec<f64>,
    swarm: Swarm<L>,
    step: usize,
    error: f64,
    recorded: f64,
    error_sum: f64,
    cost: Cost,
    last_cost: Cost,
    too_coarse: Option<TooCoarse>,
}

/// The field left the range of numbers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "the field of {problem} blew up in step {step}, at {}: its value there is {value}",
    place_text(place)
)]
pub struct BlownUp {
    /// Name of the problem.
    pub problem: &'static str,
    /// The step in which it happened, counted from 1.
    pub step: usize,
    /// Where.
    pub place: Vec<f64>,
    /// NaN, an infinity, or too large for a sensor.
    pub value: f64,
    /// The field before that step.
    pub last_finite: Vec<f64>,
    /// Whether the grid was too coarse for the field before, when it was last looked at.
    pub too_coarse: Option<Box<TooCoarse>>,
}

fn place_text(place: &[f64]) -> String {
    let places: Vec<String> = place.iter().map(|x| format!("{x:.3}")).collect();
    match places.len() {
        1 => format!("x = {}", places[0]),
        _ => format!("({})", places.join(", ")),
    }
}

/// The state of a run between two steps.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Steps taken so far.
    pub step: usize,
    /// The field.
    pub field: &'a [f64],
    /// Its mean squared error to the target.
    pub error: f64,
    /// Where the agents are.
    pub positions: &'a [[f64; 2]],
    /// What they did in the last step; all at rest before the first.
    pub deeds: &'a [Deed],
    /// What the last step cost.
    pub cost: Cost,
}

impl<L: Link> ClosedLoop<L> {
    /// `swarm` at the start of `episode`.
    ///
    /// # Panics
    /// If the episode's fields do not have the problem's published grid.
    pub fn new(problem: &Problem, episode: &Episode, swarm: Swarm<L>) -> Self {
        let (grid, sensors) = (&problem.grid, &problem.sensors);
        assert_eq!(episode.initial.len(), sensors.len());
        assert_eq!(episode.target.len(), sensors.len());
        let parts = if swarm.is_unsynchronised() { PARTS } else { 1 };
        let initial = resample(&episode.initial, sensors, grid);
        let field: Vec<f64> = initial.into_iter().map(f64::from).collect();
        let target = resample(&episode.target, sensors, grid);
        let error = mean_squared_error(&field, &target);
        Self {
            problem: *problem,
            stepper: (problem.stepper)(problem, parts),
            parts,
            before: field.clone(),
            field,
            seen: episode.initial.clone(),
            sampler: Sampler::new(grid, sensors),
            target,
            target_seen: episode.target.clone(),
            force: vec![0.0; problem.actuation.drives.components() * grid.len()],
            swarm,
            step: 0,
            error,
            recorded: error,
            error_sum: 0.0,
            cost: Cost::default(),
            last_cost: Cost::default(),
            too_coarse: None,
        }
    }

    /// One control interval.
    pub fn advance(&mut self) -> Result<(), BlownUp> {
        self.before.copy_from_slice(&self.field);
        if self.step.is_multiple_of(LOOK_EVERY) {
            self.too_coarse = self.problem.too_coarse(&self.field);
        }
        let dt = self.problem.control_interval / self.parts as f64;
        let mut cost = Cost::default();
        for part in 0..self.parts {
            self.sampler.read(&self.field, &mut self.seen);
            let now_us = time_us(
                &self.problem,
                self.step as f64 + part as f64 / self.parts as f64,
            );
            self.swarm
                .act(&self.seen, &self.target_seen, now_us, &mut self.force);
            self.stepper.step(&mut self.field, &self.force);
            let part = self.swarm.travel(dt);
            cost.squared_effort += part.squared_effort / self.parts as f64;
            cost.path += part.path;
            cost.intruders = cost.intruders.max(part.intruders);
        }
        self.step += 1;
        // Sensors work in single precision: what they cannot show is as good as infinite.
        let beyond = |z: &f64| !(*z as f32).is_finite();
        if let Some(j) = self.field.iter().position(beyond) {
            let place = self.problem.grid.place(j);
            let blown = BlownUp {
                problem: self.problem.name,
                step: self.step,
                place: place[..self.problem.grid.axes].to_vec(),
                value: self.field[j],
                last_finite: std::mem::take(&mut self.before),
                too_coarse: self.too_coarse.take().map(Box::new),
            };
            return Err(blown);
        }
        let after = mean_squared_error(&self.field, &self.target);
        self.recorded = match self.problem.scoring.records {
            Records::AfterAction => after,
            Records::BeforeAction => self.error,
        };
        self.error = after;
        self.error_sum += self.recorded;
        self.last_cost = cost;
        self.cost.squared_effort += cost.squared_effort;
        self.cost.path += cost.path;
        self.cost.intruders += cost.intruders;
        Ok(())
    }

    /// The run so far, judged.
    pub fn score(&self) -> Score {
        let agents = self.swarm.len().max(1) as f64;
        let steps = self.step.max(1) as f64;
        Score {
            final_error: self.recorded,
            time_mean_error: self.error_sum / steps,
            effort: self.cost.squared_effort / (agents * steps),
            travel: self.cost.path / agents,
            intrusion: self.cost.intruders as f64 / (agents * steps),
        }
    }

    /// The state, to be looked at.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            step: self.step,
            field: &self.field,
            error: self.error,
            positions: self.swarm.positions(),
            deeds: self.swarm.deeds(),
            cost: self.last_cost,
        }
    }

    /// The agents.
    pub fn swarm(&self) -> &Swarm<L> {
        &self.swarm
    }
}

/// The time of `step` in microseconds, one time unit of the equation being one second.
pub fn time_us(problem: &Problem, step: f64) -> u64 {
    (step * problem.control_interval * 1e6).round() as u64
}
