//! Closed-loop episodes and the gradient of their terms, as two plain functions.
//!
//! Episodes are cut into groups of a few dozen agents; a group runs through all its time steps on
//! one thread, with the network evaluated for all its agents at once. The cut does not depend on
//! the number of threads and sums over groups are taken in order, so results do not either.

use crate::adjoint::network::{self, Network, Workspace};
use crate::adjoint::observe::{Window, slope, slope_adjoint};
use crate::adjoint::physics::Heat;
use crate::adjoint::real::Real;
use crate::loss::{Score, TERMS};
use crate::policy::Shape;
use agent_sim::problem::{Episode, Problem};
use rayon::prelude::*;
use std::sync::Mutex;

/// Agents that share a matrix product.
const GROUP_ROWS: usize = 32;

/// A closed loop: problem, swarm size, horizon and the shape of the network in it.
#[derive(Debug)]
pub struct ClosedLoop<T = f32> {
    /// The control problem.
    pub problem: &'static Problem,
    /// Agents per episode.
    pub agents: usize,
    /// Steps per episode.
    pub horizon: usize,
    /// The network.
    pub shape: Shape,
    window: Window,
    heat: Heat<T>,
    score: Score<T>,
    force_max: T,
    velocity_max: T,
    start: Vec<T>,
    /// Traces of finished backward passes, to be written again.
    spare: Mutex<Vec<Trace<T>>>,
}

/// What the forward pass of one group leaves for the backward pass.
#[derive(Debug)]
struct Trace<T> {
    episodes: usize,
    /// [horizon + 1, episodes, grid]
    fields: Vec<T>,
    /// [horizon + 1, rows]
    positions: Vec<T>,
    /// [horizon, rows · activation width]
    activations: Vec<T>,
    scratch: Scratch<T>,
}

/// Buffers of one time step.
#[derive(Debug)]
struct Scratch<T> {
    error: Vec<T>,
    slope: Vec<T>,
    forces: Vec<T>,
    forcing: Vec<T>,
    explicit: Vec<T>,
    g_field: Vec<T>,
    g_next: Vec<T>,
    g_forcing: Vec<T>,
    g_positions: Vec<T>,
    g_forces: Vec<T>,
    g_action: Vec<T>,
    g_change: Vec<T>,
    g_window: Vec<T>,
    g_slope: Vec<T>,
    network: Workspace<T>,
}

/// What [`ClosedLoop::forward`] keeps for [`ClosedLoop::backward`].
#[derive(Debug)]
pub struct Tape<T> {
    network: Network<T>,
    targets: Vec<Vec<T>>,
    groups: Vec<Trace<T>>,
}

impl<T: Real> ClosedLoop<T> {
    /// The published experiment with `agents` agents and `horizon` steps; `gains` multiply the two
    /// channels that agents see.
    pub fn new(
        problem: &'static Problem,
        agents: usize,
        horizon: usize,
        shape: Shape,
        gains: [f64; 2],
    ) -> Self {
        let window = Window::new(problem, gains);
        assert_eq!(
            window.features(),
            shape.window,
            "the network must read the problem's window"
        );
        assert!(agents > 0 && horizon > 0);
        Self {
            problem,
            agents,
            horizon,
            shape,
            window,
            heat: Heat::new(problem),
            score: Score::new(problem, agents, horizon),
            force_max: T::of(problem.actuation.force_max),
            velocity_max: T::of(problem.actuation.velocity_max),
            start: (problem.placement)(agents)
                .into_iter()
                .map(|[x, _]| T::of(x))
                .collect(),
            spare: Mutex::default(),
        }
    }

    fn episodes_per_group(&self) -> usize {
        (GROUP_ROWS / self.agents).max(1)
    }

    /// Runs the episodes; returns their terms, [episodes][term], and what the adjoint needs.
    pub fn forward(
        &self,
        parameters: &[f32],
        episodes: &[Episode],
    ) -> (Vec<[f64; TERMS]>, Tape<T>) {
        let network = Network::new(&self.shape, parameters);
        let targets: Vec<Vec<T>> = episodes.iter().map(|e| cast(&e.target)).collect();
        let size = self.episodes_per_group();
        let (terms, groups): (Vec<_>, Vec<_>) = episodes
            .par_chunks(size)
            .zip(targets.par_chunks(size))
            .map(|(episodes, targets)| {
                let mut trace = self.trace(episodes.len());
                let terms = self.forward_group(&network, episodes, targets, &mut trace);
                (terms, trace)
            })
            .unzip();
        (
            terms.concat(),
            Tape {
                network,
                targets,
                groups,
            },
        )
    }

    /// The gradient of Σ g · terms with respect to the parameters.
    pub fn backward(&self, mut tape: Tape<T>, g_terms: &[[f64; TERMS]]) -> Vec<T> {
        let size = self.episodes_per_group();
        let network = &tape.network;
        let gradients: Vec<Vec<T>> = tape
            .groups
            .par_iter_mut()
            .zip(tape.targets.par_chunks(size))
            .zip(g_terms.par_chunks(size))
            .map(|((trace, targets), g)| self.backward_group(network, targets, g, trace))
            .collect();
        self.spare
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .append(&mut tape.groups);
        let mut sum = vec![T::ZERO; self.shape.parameters()];
        for gradient in gradients {
            for (sum, g) in sum.iter_mut().zip(gradient) {
                *sum += g;
            }
        }
        sum
    }

    /// Keeps the buffers of a tape that needs no backward pass.
    pub fn recycle(&self, mut tape: Tape<T>) {
        self.spare
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .append(&mut tape.groups);
    }

    fn trace(&self, episodes: usize) -> Trace<T> {
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = spare.iter().position(|t| t.episodes == episodes) {
            return spare.swap_remove(found);
        }
        drop(spare);
        let (n, padded) = (self.problem.grid.len(), self.heat.padded);
        let rows = episodes * self.agents;
        let of = |size: usize| vec![T::ZERO; size];
        Trace {
            episodes,
            fields: of((self.horizon + 1) * episodes * n),
            positions: of((self.horizon + 1) * rows),
            activations: of(self.horizon * rows * network::activation_width(&self.shape)),
            scratch: Scratch {
                error: of(n),
                slope: of(n),
                forces: of(rows),
                forcing: of(episodes * padded),
                explicit: of(episodes * n),
                g_field: of(episodes * n),
                g_next: of(episodes * n),
                g_forcing: of(episodes * padded),
                g_positions: of(rows),
                g_forces: of(rows),
                g_action: of(rows * Shape::ACTIONS),
                g_change: of(rows),
                g_window: of(rows * self.shape.window),
                g_slope: of(n),
                network: Workspace::new(&self.shape, rows),
            },
        }
    }

    fn forward_group(
        &self,
        network: &Network<T>,
        episodes: &[Episode],
        targets: &[Vec<T>],
        trace: &mut Trace<T>,
    ) -> Vec<[f64; TERMS]> {
        let (n, m, count) = (self.problem.grid.len(), self.agents, episodes.len());
        let (rows, features) = (count * m, self.shape.window);
        let mut terms = vec![[0.0; TERMS]; count];
        let Trace {
            fields,
            positions,
            activations,
            scratch: s,
            ..
        } = trace;
        for (e, episode) in episodes.iter().enumerate() {
            fields[e * n..][..n].copy_from_slice(&cast::<T>(&episode.initial));
            positions[e * m..][..m].copy_from_slice(&self.start);
        }
        let slab = rows * network::activation_width(&self.shape);
        for step in 0..self.horizon {
            let (past, future) = fields.split_at_mut((step + 1) * count * n);
            let (field, next_field) = (&past[step * count * n..], &mut future[..count * n]);
            let (past, future) = positions.split_at_mut((step + 1) * rows);
            let (position, next_position) = (&past[step * rows..], &mut future[..rows]);
            let (before, now) = activations.split_at_mut(step * slab);
            let mut a = network::activations_mut(&self.shape, rows, &mut now[..slab]);

            for e in 0..count {
                difference(&field[e * n..][..n], &targets[e], &mut s.error);
                slope(&s.error, &mut s.slope);
                let windows = a.window[e * m * features..].chunks_exact_mut(features);
                for (x, seen) in position[e * m..][..m].iter().zip(windows) {
                    let cell = self.problem.cell_of([x.narrow(), 0.0])[0];
                    self.window.observe(&s.error, &s.slope, cell, seen);
                }
            }
            network.forward(position, &mut a, &mut s.network);

            let action: &[T] = a.action;
            for (force, action) in s.forces.iter_mut().zip(action.chunks_exact(Shape::ACTIONS)) {
                *force = self.force_max * action[0];
            }
            for (e, forcing) in s.forcing.chunks_exact_mut(self.heat.padded).enumerate() {
                let agents = e * m..(e + 1) * m;
                self.heat
                    .actuate(&position[agents.clone()], &s.forces[agents], forcing);
            }
            self.heat
                .diffuse(field, &s.forcing, &mut s.explicit, next_field);
            self.heat
                .travel(position, self.velocities(action), next_position);

            let before = step.checked_sub(1).map(|previous| {
                network::activations(&self.shape, rows, &before[previous * slab..]).action
            });
            for (e, terms) in terms.iter_mut().enumerate() {
                difference(&next_field[e * n..][..n], &targets[e], &mut s.error);
                self.score.field(&s.error, step + 1 == self.horizon, terms);
                self.score.positions(&next_position[e * m..][..m], terms);
                let of_episode = e * m * Shape::ACTIONS..(e + 1) * m * Shape::ACTIONS;
                let action = &action[of_episode.clone()];
                let forces = s.forces[e * m..][..m].iter().copied();
                self.score
                    .actions(forces.zip(self.velocities(action)), terms);
                if let Some(before) = before {
                    let before = self.velocities(&before[of_episode]);
                    self.score.change(
                        self.velocities(action).zip(before).map(|(v, w)| v - w),
                        terms,
                    );
                }
            }
        }
        terms
    }

    fn velocities<'a>(&self, action: &'a [T]) -> impl Iterator<Item = T> + use<'a, T> {
        let scale = self.velocity_max;
        action
            .chunks_exact(Shape::ACTIONS)
            .map(move |action| scale * action[1])
    }

    fn backward_group(
        &self,
        network: &Network<T>,
        targets: &[Vec<T>],
        g_terms: &[[f64; TERMS]],
        trace: &mut Trace<T>,
    ) -> Vec<T> {
        let (n, m, count) = (self.problem.grid.len(), self.agents, trace.episodes);
        let (rows, features) = (count * m, self.shape.window);
        let mut g_parameters = vec![T::ZERO; self.shape.parameters()];
        let Trace {
            fields,
            positions,
            activations,
            scratch: s,
            ..
        } = trace;
        let slab = rows * network::activation_width(&self.shape);
        s.g_next.fill(T::ZERO);
        s.g_positions.fill(T::ZERO);
        s.g_change.fill(T::ZERO);
        for step in (0..self.horizon).rev() {
            let next_field = &fields[(step + 1) * count * n..][..count * n];
            let position = &positions[step * rows..][..rows];
            let next_position = &positions[(step + 1) * rows..][..rows];
            let a = network::activations(&self.shape, rows, &activations[step * slab..]);
            let before = step.checked_sub(1).map(|previous| {
                network::activations(&self.shape, rows, &activations[previous * slab..]).action
            });

            // The score of the state that this step led to.
            for (e, g) in g_terms.iter().enumerate() {
                difference(&next_field[e * n..][..n], &targets[e], &mut s.error);
                let last = step + 1 == self.horizon;
                self.score
                    .field_adjoint(&s.error, last, g, &mut s.g_next[e * n..][..n]);
                let agents = e * m..(e + 1) * m;
                self.score.positions_adjoint(
                    &next_position[agents.clone()],
                    g,
                    &mut s.g_positions[agents],
                );
            }
            // The agents' own score, and how they moved.
            for row in 0..rows {
                let g = &g_terms[row / m];
                let force = self.force_max * a.action[row * Shape::ACTIONS];
                let velocity = self.velocity_max * a.action[row * Shape::ACTIONS + 1];
                let (g_force, mut g_velocity) = self.score.action_adjoint(force, velocity, g);
                // `g_change` came down from the later step, where this velocity is the old one.
                g_velocity -= s.g_change[row];
                s.g_change[row] = match before {
                    Some(before) => {
                        let old = self.velocity_max * before[row * Shape::ACTIONS + 1];
                        self.score.change_adjoint(velocity - old, g)
                    }
                    None => T::ZERO,
                };
                g_velocity += s.g_change[row];
                g_velocity +=
                    self.heat
                        .travel_adjoint(position[row], velocity, &mut s.g_positions[row]);
                s.forces[row] = force;
                s.g_forces[row] = g_force;
                s.g_action[row * Shape::ACTIONS + 1] = self.velocity_max * g_velocity;
            }
            // The field.
            self.heat
                .diffuse_adjoint(&s.g_next, &mut s.explicit, &mut s.g_field, &mut s.g_forcing);
            for (e, g_forcing) in s.g_forcing.chunks_exact(self.heat.padded).enumerate() {
                let agents = e * m..(e + 1) * m;
                self.heat.actuate_adjoint(
                    g_forcing,
                    &position[agents.clone()],
                    &s.forces[agents.clone()],
                    &mut s.g_positions[agents.clone()],
                    &mut s.g_forces[agents],
                );
            }
            for (g_action, &g_force) in s.g_action.chunks_exact_mut(Shape::ACTIONS).zip(&s.g_forces)
            {
                g_action[0] = self.force_max * g_force;
            }
            // The agents' decision and what they saw.
            network.backward(
                &s.g_action,
                &a,
                &mut s.network,
                &mut g_parameters,
                &mut s.g_positions,
                &mut s.g_window,
            );
            for e in 0..count {
                s.g_slope.fill(T::ZERO);
                let g_error = &mut s.g_field[e * n..][..n];
                let g_windows = s.g_window[e * m * features..].chunks_exact(features);
                for (x, g_seen) in position[e * m..][..m].iter().zip(g_windows) {
                    let cell = self.problem.cell_of([x.narrow(), 0.0])[0];
                    self.window
                        .observe_adjoint(g_seen, cell, g_error, &mut s.g_slope);
                }
                slope_adjoint(&s.g_slope, g_error);
            }
            std::mem::swap(&mut s.g_field, &mut s.g_next);
        }
        g_parameters
    }
}

fn difference<T: Real>(field: &[T], target: &[T], out: &mut [T]) {
    for ((out, &z), &target) in out.iter_mut().zip(field).zip(target) {
        *out = z - target;
    }
}

fn cast<T: Real>(values: &[f32]) -> Vec<T> {
    values.iter().map(|&v| T::of(f64::from(v))).collect()
}
