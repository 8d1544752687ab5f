//! One closed-loop run: the field, the swarm, and the clock that drives both.

use crate::centre::{Desk, Whole};
use crate::link::Link;
use crate::plant::{BuiltIn, Plant, PlantError, Start};
use crate::swarm::{Cost, Deed, Swarm};
use problem::metrics::{Score, mean_squared_error};
use problem::resample::{Sampler, on_grid};
use problem::resolution::TooCoarse;
use problem::{Change, Course, Episode, Problem, Records};

/// Parts of a control interval in which agents with clocks of their own are looked after: their
/// ticks fall between the host's steps, and this is how finely the host sees when.
pub const PARTS: usize = 8;

/// Every how many steps the field is looked at for waves that the grid is too coarse for. A field that
/// blows up is rough at its end whatever the reason, so this is to be known before.
const LOOK_EVERY: usize = 10;

/// A field and a swarm: observe, act, let the field evolve, move.
pub struct ClosedLoop<L> {
    problem: Problem,
    plant: Box<dyn Plant>,
    /// How many times in a control interval the above happens.
    parts: usize,
    /// All fields, one after the other.
    state: Vec<f64>,
    /// The same before the last step.
    before: Vec<f64>,
    /// What sensors could see of the field.
    seen: Vec<f32>,
    sampler: Sampler,
    /// What all fields should be, and what sensors know of it.
    target: Vec<f32>,
    target_seen: Vec<f32>,
    /// The episode on the grid, if its target does not stay.
    wandering: Option<Episode>,
    /// What acts on the field besides the swarm, on the grid, with how much of it when.
    pushes: Vec<(Vec<f64>, Course)>,
    weights: Option<Vec<f64>>,
    force: Vec<f64>,
    swarm: Swarm<L>,
    /// Who decides for the swarm, if it does not do so itself.
    desk: Option<Desk>,
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

/// A place in words.
pub(crate) fn place_text(place: &[f64]) -> String {
    let places: Vec<String> = place.iter().map(|x| format!("{x:.3}")).collect();
    match places.len() {
        1 => format!("x = {}", places[0]),
        _ => format!("({})", places.join(", ")),
    }
}

/// A plant from elsewhere did not go on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}, {source}", when(*step))]
pub struct PlantFailed {
    /// The step in which it happened, counted from 1; 0 when the episode was begun.
    pub step: usize,
    /// What happened.
    pub source: PlantError,
    /// The field that agents see before that step.
    pub last_finite: Vec<f64>,
}

fn when(step: usize) -> String {
    match step {
        0 => "at the start of the episode".to_owned(),
        step => format!("in step {step}"),
    }
}

/// Why a run ended before its time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The field left the range of numbers.
    #[error(transparent)]
    BlownUp(#[from] BlownUp),
    /// What computes the field failed.
    #[error(transparent)]
    Plant(#[from] Box<PlantFailed>),
}

impl RunError {
    /// The field that agents see before the step in which it happened.
    pub fn last_finite(&self) -> &[f64] {
        match self {
            Self::BlownUp(blown) => &blown.last_finite,
            Self::Plant(failed) => &failed.last_finite,
        }
    }

    /// Whether the grid was too coarse for the field before, when it was last looked at.
    pub fn too_coarse(&self) -> Option<&TooCoarse> {
        match self {
            Self::BlownUp(blown) => blown.too_coarse.as_deref(),
            Self::Plant(_) => None,
        }
    }
}

/// The state of a run between two steps.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Steps taken so far.
    pub step: usize,
    /// The field that agents see.
    pub field: &'a [f64],
    /// What it should be.
    pub target: &'a [f32],
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
        let plant = Box::new(BuiltIn::default());
        Self::with_plant(problem, episode, swarm, plant, 0).expect("the built-in solver begins")
    }

    /// The same with the field computed by `plant`, whose chance `seed` decides.
    ///
    /// # Panics
    /// If the episode's fields do not have the problem's published grid.
    pub fn with_plant(
        problem: &Problem,
        episode: &Episode,
        swarm: Swarm<L>,
        mut plant: Box<dyn Plant>,
        seed: u64,
    ) -> Result<Self, RunError> {
        let (grid, sensors) = (&problem.grid, &problem.sensors);
        let values = problem.fields() * sensors.len();
        assert_eq!(episode.initial.len(), values);
        assert_eq!(episode.target.len(), values);
        let parts = if swarm.is_unsynchronised() { PARTS } else { 1 };
        let on_grid = |state: &[f32]| on_grid(problem, state);
        let wide = |state: Vec<f32>| -> Vec<f64> { state.into_iter().map(f64::from).collect() };
        let mut state = wide(on_grid(&episode.initial));
        let asked = state.clone();
        let start = Start {
            problem,
            parts,
            seed,
        };
        plant.reset(&start, &mut state).map_err(|source| {
            Box::new(PlantFailed {
                step: 0,
                source,
                last_finite: problem.seen(&asked).to_vec(),
            })
        })?;
        let target = on_grid(&episode.target);
        let weights = problem.weights();
        let error = mean_squared_error(&state, &target, weights.as_deref());
        let push = |change: &Change| (wide(on_grid(&change.field)), change.course.clone());
        let wandering = (!episode.has_one_target()).then(|| episode.mapped(on_grid));
        Ok(Self {
            problem: *problem,
            plant,
            parts,
            before: state.clone(),
            state,
            seen: problem
                .all_seen(&episode.initial)
                .collect::<Vec<_>>()
                .concat(),
            sampler: Sampler::new(grid, sensors),
            target,
            target_seen: problem
                .all_seen(&episode.target)
                .collect::<Vec<_>>()
                .concat(),
            wandering,
            pushes: episode.pushes.iter().map(push).collect(),
            weights,
            force: vec![0.0; problem.components() * grid.len()],
            swarm,
            desk: None,
            step: 0,
            error,
            recorded: error,
            error_sum: 0.0,
            cost: Cost::default(),
            last_cost: Cost::default(),
            too_coarse: None,
        })
    }

    /// The same with agents who are told what to do by somebody at a desk, whose radio they hear.
    pub fn led_by(&mut self, desk: Option<Desk>) {
        self.desk = desk;
    }

    /// One control interval.
    pub fn advance(&mut self) -> Result<(), RunError> {
        for part in 0..self.parts {
            self.show(part);
            self.let_go_on(part)?;
        }
        self.conclude()
    }

    /// Shows the agents what there is to see at the beginning of a control interval. Together with
    /// [`proceed`](Self::proceed) this is [`advance`](Self::advance), for agents that are told what to
    /// do in between.
    ///
    /// # Panics
    /// If agents act by clocks of their own, which tick within the interval.
    pub fn reveal(&mut self) {
        assert_eq!(self.parts, 1, "agents act by a common clock");
        self.show(0);
    }

    /// The rest of the interval.
    ///
    /// # Panics
    /// As [`reveal`](Self::reveal).
    pub fn proceed(&mut self) -> Result<(), RunError> {
        assert_eq!(self.parts, 1, "agents act by a common clock");
        self.let_go_on(0)?;
        self.conclude()
    }

    /// The time at which a part of the interval begins.
    fn now_us(&self, part: usize) -> u64 {
        time_us(
            &self.problem,
            self.step as f64 + part as f64 / self.parts as f64,
        )
    }

    fn show(&mut self, part: usize) {
        self.aim(self.step);
        let sensed = self.seen.chunks_exact_mut(self.problem.sensors.len());
        for (field, seen) in self.problem.all_seen(&self.state).zip(sensed) {
            self.sampler.read(field, seen);
        }
        if part == 0
            && let Some(desk) = &mut self.desk
        {
            desk.decide(&Whole {
                step: self.step,
                state: &self.state,
                target: &self.target,
                positions: self.swarm.positions(),
            });
        }
        let now_us = self.now_us(part);
        self.swarm.show(&self.seen, &self.target_seen, now_us);
    }

    /// Hears the agents, lets the field evolve for a part of the interval, and moves them.
    fn let_go_on(&mut self, part: usize) -> Result<(), RunError> {
        if part == 0 {
            self.before.copy_from_slice(&self.state);
            if self.step.is_multiple_of(LOOK_EVERY) {
                self.too_coarse = self.problem.too_coarse(self.problem.seen(&self.state));
            }
            self.last_cost = Cost::default();
        }
        self.swarm.hear(self.now_us(part), &mut self.force);
        for (push, course) in &self.pushes {
            let strength = course.at(self.step);
            for (force, push) in self.force.iter_mut().zip(push) {
                *force += strength * push;
            }
        }
        let dt = self.problem.control_interval / self.parts as f64;
        let stepped = self.plant.step(&self.force, dt, &mut self.state);
        stepped.map_err(|source| {
            Box::new(PlantFailed {
                step: self.step + 1,
                source,
                last_finite: self.problem.seen(&self.before).to_vec(),
            })
        })?;
        let (cost, part) = (&mut self.last_cost, self.swarm.travel(dt));
        cost.squared_effort += part.squared_effort / self.parts as f64;
        cost.path += part.path;
        cost.intruders = cost.intruders.max(part.intruders);
        Ok(())
    }

    /// Looks at what became of the field and of the agents, and counts it.
    fn conclude(&mut self) -> Result<(), RunError> {
        self.step += 1;
        // Sensors work in single precision: what they cannot show is as good as infinite.
        let beyond = |z: &f64| !(*z as f32).is_finite();
        // Without a way out of the loop, which is then done with vectors.
        let is_beyond = self.state.iter().fold(false, |any, z| any | beyond(z));
        if is_beyond && let Some(j) = self.state.iter().position(beyond) {
            let place = self.problem.grid.place(j % self.problem.grid.len());
            let blown = BlownUp {
                problem: self.problem.name,
                step: self.step,
                place: place[..self.problem.grid.axes].to_vec(),
                value: self.state[j],
                last_finite: self.problem.seen(&self.before).to_vec(),
                too_coarse: self.too_coarse.take().map(Box::new),
            };
            // What can still be looked at is the last state that was one.
            self.state.copy_from_slice(&self.before);
            self.step -= 1;
            return Err(blown.into());
        }
        // What the step led to is held to what the target is then.
        self.aim(self.step);
        let after = mean_squared_error(&self.state, &self.target, self.weights.as_deref());
        self.recorded = match self.problem.scoring.records {
            Records::AfterAction => after,
            Records::BeforeAction => self.error,
        };
        self.error = after;
        if self.step > self.problem.scoring.from {
            self.error_sum += self.recorded;
        }
        let cost = self.last_cost;
        self.cost.squared_effort += cost.squared_effort;
        self.cost.path += cost.path;
        self.cost.intruders += cost.intruders;
        Ok(())
    }

    /// Puts the target where it is at a step.
    fn aim(&mut self, step: usize) {
        let Some(episode) = &self.wandering else {
            return;
        };
        self.target = episode.target_at(step);
        let sensed = self
            .target_seen
            .chunks_exact_mut(self.problem.sensors.len());
        for (target, seen) in self.problem.all_seen(&self.target).zip(sensed) {
            let target: Vec<f64> = target.iter().map(|t| f64::from(*t)).collect();
            self.sampler.read(&target, seen);
        }
    }

    /// The error that was recorded last.
    pub fn recorded(&self) -> f64 {
        self.recorded
    }

    /// The run so far, judged.
    pub fn score(&self) -> Score {
        let agents = self.swarm.len().max(1) as f64;
        let steps = self.step.max(1) as f64;
        Score {
            final_error: self.recorded,
            time_mean_error: self.error_sum / self.scored().max(1) as f64,
            effort: self.cost.squared_effort / (agents * steps),
            travel: self.cost.path / agents,
            intrusion: self.cost.intruders as f64 / (agents * steps),
        }
    }

    /// Records that count in means over time.
    fn scored(&self) -> usize {
        self.step.saturating_sub(self.problem.scoring.from)
    }

    /// The state, to be looked at.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            step: self.step,
            field: self.problem.seen(&self.state),
            target: self.problem.seen(&self.target),
            error: self.error,
            positions: self.swarm.positions(),
            deeds: self.swarm.deeds(),
            cost: self.last_cost,
        }
    }

    /// What all fields should be now, on the grid.
    pub fn target(&self) -> &[f32] {
        &self.target
    }

    /// All fields, on the grid.
    pub fn state(&self) -> &[f64] {
        &self.state
    }

    /// The agents.
    pub fn swarm(&self) -> &Swarm<L> {
        &self.swarm
    }

    /// Their links.
    pub fn links_mut(&mut self) -> &mut [L] {
        self.swarm.links_mut()
    }
}

/// The time of `step` in microseconds, one time unit of the equation being one second.
pub fn time_us(problem: &Problem, step: f64) -> u64 {
    (step * problem.control_interval * 1e6).round() as u64
}
