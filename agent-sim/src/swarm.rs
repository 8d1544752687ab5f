//! The agents' bodies: where they are, what they were told to do, and what that does to the field.

use crate::actuate::Kernel;
use crate::link::{Link, LinkError};
use crate::problem::Problem;
use crate::sense::{Eye, View};
use agent_core::agent::Action;
use agent_core::message::Observation;
use rayon::prelude::*;

/// Most groups the agents are split into.
///
/// Forces are summed agent by agent inside a group and group by group at the end. The split depends
/// on the number of agents only, never on the number of threads, so neither do the sums' last bits.
const MAX_GROUPS: usize = 64;
/// Agents that are not worth splitting.
const MIN_GROUP: usize = 256;

/// What an agent's actuator does during one control interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Deed {
    /// Strength of the force.
    pub force: f32,
    /// Speed along each axis.
    pub velocity: [f32; 2],
    /// Whether the agent answered at all; a silent one does nothing.
    pub heard: bool,
}

impl Deed {
    /// What an actuator of this problem makes of a command: it saturates at its limits, whatever it
    /// is told, and does nothing when told no number.
    fn of(action: &Action, problem: &Problem) -> Self {
        let within = |value: f32, limit: f64| match value.is_nan() {
            true => 0.0,
            false => value.clamp(-limit as f32, limit as f32),
        };
        let actuation = &problem.actuation;
        Self {
            force: within(action.force, actuation.force_max),
            velocity: action.velocity.map(|v| within(v, actuation.velocity_max)),
            heard: true,
        }
    }
}

/// Agents on a field, each at the end of its link.
pub struct Swarm<L> {
    problem: &'static Problem,
    kernel: Kernel,
    links: Vec<L>,
    positions: Vec<[f64; 2]>,
    deeds: Vec<Deed>,
    groups: Vec<Group>,
    group_size: usize,
    lost: Vec<(usize, LinkError)>,
}

/// Buffers of one group of agents.
struct Group {
    eye: Eye,
    force: Vec<f64>,
    squared_force: f64,
    path: f64,
    lost: Vec<(usize, LinkError)>,
}

/// What a step cost, summed over agents.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Σ u².
    pub squared_force: f64,
    /// Σ of the ways that the agents moved.
    pub path: f64,
}

impl<L: Link> Swarm<L> {
    /// A swarm with one link per agent; agent `i` starts at `positions[i]`.
    ///
    /// # Panics
    /// If there are not as many positions as links.
    pub fn new(
        problem: &'static Problem,
        view: View,
        links: Vec<L>,
        positions: Vec<[f64; 2]>,
    ) -> Self {
        assert_eq!(links.len(), positions.len(), "one position per link");
        let group_size = links.len().div_ceil(MAX_GROUPS).max(MIN_GROUP);
        let groups = (0..links.len().div_ceil(group_size))
            .map(|_| Group {
                eye: Eye::new(view),
                force: vec![0.0; problem.grid],
                squared_force: 0.0,
                path: 0.0,
                lost: Vec::new(),
            })
            .collect();
        Self {
            problem,
            kernel: Kernel::new(problem),
            deeds: vec![Deed::default(); links.len()],
            links,
            positions,
            groups,
            group_size,
            lost: Vec::new(),
        }
    }

    /// Shows every agent its patch, lets it decide, and writes the sum of all forces to `force`.
    ///
    /// `field` and `target` are the whole truth in the precision agents work in; each agent gets
    /// its own patch of them and nothing else.
    pub fn act(&mut self, field: &[f32], target: &[f32], now_us: u64, force: &mut [f64]) {
        let (problem, kernel, size) = (self.problem, self.kernel, self.group_size);
        self.groups
            .par_iter_mut()
            .zip(self.links.par_chunks_mut(size))
            .zip(self.deeds.par_chunks_mut(size))
            .zip(self.positions.par_chunks(size))
            .enumerate()
            .for_each(|(index, (((group, links), deeds), positions))| {
                group.force.fill(0.0);
                group.squared_force = 0.0;
                for (i, position) in positions.iter().enumerate() {
                    let place = position.map(|x| x as f32);
                    let observation = Observation {
                        now_us,
                        position: place,
                        patch: group.eye.look(problem, field, target, place[0]),
                    };
                    if let Err(error) = links[i].send(&observation) {
                        group.lost.push((index * size + i, error));
                    }
                }
                for (i, position) in positions.iter().enumerate() {
                    let action = links[i].receive(now_us).unwrap_or_else(|error| {
                        group.lost.push((index * size + i, error));
                        None
                    });
                    deeds[i] = action.map_or_else(Deed::default, |a| Deed::of(&a, problem));
                    let u = f64::from(deeds[i].force);
                    group.squared_force += u * u;
                    if u != 0.0 {
                        kernel.add(&mut group.force, position[0], u);
                    }
                }
            });
        force.fill(0.0);
        for group in &mut self.groups {
            for (total, part) in force.iter_mut().zip(&group.force) {
                *total += part;
            }
            self.lost.append(&mut group.lost);
        }
    }

    /// Moves every agent along its velocity for one control interval, but not through a wall, and
    /// returns what the step cost.
    pub fn travel(&mut self) -> Cost {
        let dt = self.problem.control_interval;
        let [low, high] = self.problem.domain;
        let size = self.group_size;
        self.groups
            .par_iter_mut()
            .zip(self.positions.par_chunks_mut(size))
            .zip(self.deeds.par_chunks(size))
            .for_each(|((group, positions), deeds)| {
                group.path = 0.0;
                for (position, deed) in positions.iter_mut().zip(deeds) {
                    let before = position[0];
                    position[0] = (before + dt * f64::from(deed.velocity[0])).clamp(low, high);
                    group.path += (position[0] - before).abs();
                }
            });
        self.groups.iter().fold(Cost::default(), |sum, group| Cost {
            squared_force: sum.squared_force + group.squared_force,
            path: sum.path + group.path,
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

    /// Failures of links so far, by agent. The rest of the swarm goes on.
    pub fn lost(&self) -> &[(usize, LinkError)] {
        &self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::heat_1d::PROBLEM;
    use agent_core::agent::Mode;

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
}
