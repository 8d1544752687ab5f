//! The agents' bodies: where they are, what they were told to do, and what that does to the field.

use crate::episode::PARTS;
use crate::fault::Clock;
use crate::link::{Link, LinkError};
use crate::sense::{Eye, Panorama, View};
use agent_core::agent::{Action, Mode};
use agent_core::message::Observation;
use problem::actuate::Kernel;
use problem::grid::Edge;
use problem::{Drives, Problem};
use rayon::prelude::*;

/// Most groups the agents are split into.
///
/// Forces are summed agent by agent inside a group and group by group at the end. The split depends
/// on the number of agents only, never on the number of threads, so neither do the sums' last bits.
const MAX_GROUPS: usize = 64;
/// Most components of what acts on the field.
const MOST_COMPONENTS: usize = problem::kit::MOST_FIELDS;
/// Agents that are not worth splitting.
const MIN_GROUP: usize = 256;

/// What an agent's actuator does during one control interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Deed {
    /// Strength of the force.
    pub force: f32,
    /// Speed along each axis.
    pub velocity: [f32; 2],
    /// The state the agent says it is in; none if it did not answer. A silent one does nothing.
    pub mode: Option<Mode>,
}

impl Deed {
    /// What an actuator of this problem makes of a command: it saturates at its limits, whatever it
    /// is told, and does nothing when told no number.
    #[inline]
    fn of(action: &Action, problem: &Problem) -> Self {
        let within = |value: f32, limit: f64| match value.is_nan() {
            true => 0.0,
            false => value.clamp(-limit as f32, limit as f32),
        };
        let actuation = &problem.actuation;
        let mut velocity = action.velocity.map(|v| within(v, actuation.velocity_max));
        if actuation.drives == Drives::Flow {
            // Stirrers are limited by their speed, not along each axis.
            let speed = libm::hypotf(velocity[0], velocity[1]);
            let limit = actuation.velocity_max as f32;
            if speed > limit {
                velocity = velocity.map(|v| v * (limit / speed));
            }
        }
        Self {
            force: within(action.force, actuation.force_max),
            velocity,
            mode: Some(action.mode),
        }
    }

    /// Whether the agent answered at all.
    pub fn heard(&self) -> bool {
        self.mode.is_some()
    }

    /// What the agent's kernel carries into the field; other components are 0.
    #[inline]
    fn amplitudes(&self, problem: &Problem) -> [f64; MOST_COMPONENTS] {
        let mut amplitudes = [0.0; MOST_COMPONENTS];
        match problem.actuation.drives {
            Drives::Source => amplitudes[problem.driven_field()] = f64::from(self.force),
            Drives::Flow => amplitudes[..2].copy_from_slice(&self.velocity.map(f64::from)),
        }
        amplitudes
    }
}

/// When an agent looks and acts: at the beginning of each period of its own clock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Schedule {
    clock: Clock,
    ticks: u64,
}

impl Schedule {
    /// Whether a period has begun since the last time that one had.
    fn is_due(&mut self, now_us: u64, period_us: f64) -> bool {
        let due = self.clock.has_begun(self.ticks, now_us, period_us);
        self.ticks += u64::from(due);
        due
    }
}

/// Agents on a field, each at the end of its link.
pub struct Swarm<L> {
    problem: Problem,
    links: Vec<L>,
    positions: Vec<[f64; 2]>,
    deeds: Vec<Deed>,
    /// The forces that actuators were last told; those in `deeds` are on their way there.
    told: Vec<f32>,
    /// None: all agents act together, at the start of every control interval.
    schedules: Option<Vec<Schedule>>,
    panorama: Panorama,
    groups: Vec<Group>,
    group_size: usize,
    lost: Vec<(usize, LinkError)>,
}

/// Buffers of one group of agents.
struct Group {
    eye: Eye,
    kernel: Kernel,
    force: Vec<f64>,
    /// Which agents look and act in this step; empty if all do.
    due: Vec<bool>,
    cost: Cost,
    lost: Vec<(usize, LinkError)>,
}

/// What a step cost, summed over agents.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Σ u², or Σ |v|² where agents stir.
    pub squared_effort: f64,
    /// Σ of the ways that the agents moved.
    pub path: f64,
    /// Number of agents inside a keep-out zone.
    pub intruders: usize,
}

impl<L: Link> Swarm<L> {
    /// A swarm with one link per agent; agent `i` starts at `positions[i]`.
    ///
    /// # Panics
    /// If there are not as many positions as links.
    pub fn new(problem: &Problem, view: View, links: Vec<L>, positions: Vec<[f64; 2]>) -> Self {
        assert_eq!(links.len(), positions.len(), "one position per link");
        let group_size = links.len().div_ceil(MAX_GROUPS).max(MIN_GROUP);
        let cells = problem.components() * problem.grid.len();
        let groups = (0..links.len().div_ceil(group_size))
            .map(|_| Group {
                eye: Eye::new(view, problem),
                kernel: Kernel::new(problem),
                force: vec![0.0; cells],
                due: Vec::new(),
                cost: Cost::default(),
                lost: Vec::new(),
            })
            .collect();
        Self {
            problem: *problem,
            deeds: vec![Deed::default(); links.len()],
            told: vec![0.0; links.len()],
            links,
            positions,
            schedules: None,
            panorama: Panorama::new(view, problem),
            groups,
            group_size,
            lost: Vec::new(),
        }
    }

    /// The same swarm with a clock per agent in place of a common step.
    ///
    /// # Panics
    /// If there are not as many clocks as agents.
    pub fn with_clocks(mut self, clocks: Vec<Clock>) -> Self {
        assert_eq!(clocks.len(), self.links.len(), "one clock per agent");
        let schedule = |clock| Schedule { clock, ticks: 0 };
        self.schedules = Some(clocks.into_iter().map(schedule).collect());
        self
    }

    /// Whether agents act by their own clocks.
    pub fn is_unsynchronised(&self) -> bool {
        self.schedules.is_some()
    }

    /// Both of what follows: [`show`](Self::show), then [`hear`](Self::hear).
    pub fn act(&mut self, field: &[f32], target: &[f32], now_us: u64, force: &mut [f64]) {
        self.show(field, target, now_us);
        self.hear(now_us, force);
    }

    /// Shows every agent that is due its patch.
    ///
    /// `field` and `target` are the whole truth in the precision and at the spacing that agents'
    /// sensors have, of all fields that they see; each agent gets its own patch of them, a coarse picture
    /// of the whole if its policy asks for one, and nothing else.
    pub fn show(&mut self, field: &[f32], target: &[f32], now_us: u64) {
        let (problem, size, count) = (&self.problem, self.group_size, self.groups.len());
        let period_us = problem.control_interval * 1e6;
        self.panorama.take(&problem.sensors, field, target);
        let panorama = &self.panorama;
        let mut common = Vec::new();
        let schedules = self.schedules.as_mut().unwrap_or(&mut common);
        let schedules = schedules.chunks_mut(size);
        let groups = self
            .groups
            .iter_mut()
            .zip(self.links.chunks_mut(size))
            .zip(self.positions.chunks(size))
            .zip(schedules.chain(std::iter::repeat_with(Default::default)))
            .enumerate();
        side_by_side(
            count,
            groups,
            |(index, (((group, links), positions), schedules))| {
                group.due.clear();
                let due = schedules.iter_mut().map(|s| s.is_due(now_us, period_us));
                group.due.extend(due);
                // Sent to all before any is heard: nodes at the end of a wire work at the same time.
                for i in (0..positions.len()).filter(|i| is_due(&group.due, *i)) {
                    let place = positions[i].map(|x| x as f32);
                    let patch = group.eye.look(problem, field, target, place);
                    let observation = Observation {
                        now_us,
                        position: place,
                        patch: panorama.beside(patch),
                    };
                    if let Err(error) = links[i].send(&observation) {
                        group.lost.push((index * size + i, error));
                    }
                }
            },
        );
    }

    /// Hears what every agent that was [shown](Self::show) its patch decides, and writes the sum of all
    /// agents' kernels to `force`. An agent that is not due goes on with what it did.
    pub fn hear(&mut self, now_us: u64, force: &mut [f64]) {
        let (problem, size, count) = (&self.problem, self.group_size, self.groups.len());
        let parts = if self.schedules.is_some() { PARTS } else { 1 };
        let change = (problem.force_change() / parts as f64) as f32;
        let groups = self
            .groups
            .iter_mut()
            .zip(self.links.chunks_mut(size))
            .zip(self.deeds.chunks_mut(size).zip(self.told.chunks_mut(size)))
            .zip(self.positions.chunks(size))
            .enumerate();
        side_by_side(
            count,
            groups,
            |(index, (((group, links), (deeds, told)), positions))| {
                group.force.fill(0.0);
                group.cost = Cost::default();
                for i in (0..positions.len()).filter(|i| is_due(&group.due, *i)) {
                    let action = links[i].receive(now_us).unwrap_or_else(|error| {
                        group.lost.push((index * size + i, error));
                        None
                    });
                    let reached = deeds[i].force;
                    deeds[i] = action.map_or_else(Deed::default, |a| Deed::of(&a, problem));
                    told[i] = std::mem::replace(&mut deeds[i].force, reached);
                }
                for (i, (position, deed)) in positions.iter().zip(deeds).enumerate() {
                    deed.force = match deed.heard() {
                        true => moved(deed.force, told[i], change),
                        // Nobody holds a dead agent's actuator, slow as it may be.
                        false => 0.0,
                    };
                    let amplitudes = deed.amplitudes(problem);
                    if amplitudes != [0.0; MOST_COMPONENTS] {
                        group.cost.squared_effort += amplitudes.iter().map(|a| a * a).sum::<f64>();
                        let agent = index * size + i;
                        group
                            .kernel
                            .act(&mut group.force, agent, *position, &amplitudes);
                    }
                }
            },
        );
        match self.groups.first() {
            Some(group) => force.copy_from_slice(&group.force),
            None => force.fill(0.0),
        }
        for group in self.groups.iter().skip(1) {
            for (total, part) in force.iter_mut().zip(&group.force) {
                *total += part;
            }
        }
        for group in &mut self.groups {
            self.lost.append(&mut group.lost);
        }
    }

    /// Moves every agent along its velocity for a time `dt`, but not through a wall, and returns
    /// what the step cost.
    pub fn travel(&mut self, dt: f64) -> Cost {
        let (problem, size, count) = (&self.problem, self.group_size, self.groups.len());
        let groups = self
            .groups
            .iter_mut()
            .zip(self.positions.chunks_mut(size))
            .zip(self.deeds.chunks(size));
        side_by_side(count, groups, |((group, positions), deeds)| {
            for (position, deed) in positions.iter_mut().zip(deeds) {
                let before = *position;
                let mut squared = 0.0;
                for axis in 0..problem.grid.axes {
                    let way = dt * f64::from(deed.velocity[axis]);
                    position[axis] = confined(problem, axis, before[axis] + way);
                    squared += match problem.grid.edges[axis] {
                        Edge::Wall => position[axis] - before[axis],
                        Edge::Periodic => way,
                    }
                    .powi(2);
                }
                group.cost.path += squared.sqrt();
                let intrudes = problem.keep_out.iter().any(|zone| zone.contains(*position));
                group.cost.intruders += usize::from(intrudes);
            }
        });
        self.groups.iter().fold(Cost::default(), |sum, group| Cost {
            squared_effort: sum.squared_effort + group.cost.squared_effort,
            path: sum.path + group.cost.path,
            intruders: sum.intruders + group.cost.intruders,
        })
    }

    /// Number of agents. The simulator knows it; no agent does.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there are no agents.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Where the agents are.
    pub fn positions(&self) -> &[[f64; 2]] {
        &self.positions
    }

    /// What the agents' actuators did in the last step.
    pub fn deeds(&self) -> &[Deed] {
        &self.deeds
    }

    /// The agents' links.
    pub fn links(&self) -> &[L] {
        &self.links
    }

    /// The same, to be told something in another way.
    pub fn links_mut(&mut self) -> &mut [L] {
        &mut self.links
    }

    /// Failures of links so far, by agent. The rest of the swarm goes on.
    pub fn lost(&self) -> &[(usize, LinkError)] {
        &self.lost
    }
}

/// Whether an agent of a group looks and acts in this step.
fn is_due(due: &[bool], agent: usize) -> bool {
    due.get(agent).copied().unwrap_or(true)
}

/// Works on all `count` groups, on several threads unless there is but one: waking a thread takes longer
/// than a control step of a small swarm.
fn side_by_side<G: Send>(
    count: usize,
    groups: impl Iterator<Item = G>,
    work: impl Fn(G) + Sync + Send,
) {
    match count {
        1 => groups.for_each(work),
        _ => groups.collect::<Vec<_>>().into_par_iter().for_each(work),
    }
}

/// Where a force that can change by so much is next on its way to another.
fn moved(from: f32, to: f32, change: f32) -> f32 {
    match (to - from).abs() <= change {
        true => to,
        false => from + change.copysign(to - from),
    }
}

/// A coordinate that an agent can have.
fn confined(problem: &Problem, axis: usize, x: f64) -> f64 {
    let [low, high] = problem.reach.map(|corner| corner[axis]);
    match problem.grid.edges[axis] {
        Edge::Wall => x.clamp(low, high),
        Edge::Periodic => low + (x - low).rem_euclid(high - low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    #[test]
    fn actuators_saturate_whatever_they_are_told() {
        let action = Action {
            force: f32::NEG_INFINITY,
            velocity: [3.0, f32::NAN],
            mode: Mode::Active,
        };
        let deed = Deed::of(&action, &PROBLEM);
        assert_eq!((deed.force, deed.velocity), (-40.0, [2.0, 0.0]));
    }

    #[test]
    fn slow_actuators_get_there_in_steps_and_not_beyond() {
        let way = |to: f32| move |from: &f32| Some(moved(*from, to, 0.4));
        let up: Vec<f32> = std::iter::successors(Some(0.0), way(1.0)).take(5).collect();
        assert_eq!(up, [0.0, 0.4, 0.8, 1.0, 1.0]);
        assert_eq!(moved(1.0, -1.0, 0.5), 0.5);
        assert_eq!(moved(0.3, -1.0, f32::INFINITY), -1.0);
    }

    #[test]
    fn stirrers_are_limited_by_their_speed() {
        let mut problem = PROBLEM;
        problem.actuation.drives = Drives::Flow;
        let action = Action {
            force: 1.0,
            velocity: [2.0, -2.0],
            mode: Mode::Active,
        };
        let deed = Deed::of(&action, &problem);
        let expected = 2.0 / 2f32.sqrt();
        assert!(
            (deed.velocity[0] - expected).abs() < 1e-6 && deed.velocity[1] == -deed.velocity[0]
        );
    }
}
