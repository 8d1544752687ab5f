//! Closed-loop episodes and the gradient of their terms, as two plain functions.
//!
//! Episodes are cut into groups of a few dozen agents; a group runs through all its time steps on
//! one thread, with the network evaluated for all its agents at once. The cut does not depend on
//! the number of threads and sums over groups are taken in order, so results do not either.

use crate::adjoint::actuate::{Actuators, Kernels};
use crate::adjoint::motion::Motion;
use crate::adjoint::network::{self, Network, Workspace};
use crate::adjoint::observe::{Eyes, Scene};
use crate::adjoint::physics::{self, Gradients, Interval, Physics};
use crate::adjoint::real::Real;
use crate::loss::{Score, TERMS};
use crate::policy::{PolicyConfig, Shape};
use crate::trial::{Trial, noise};
use problem::{Drives, Problem};
use rayon::prelude::*;
use std::sync::Mutex;

/// Agents that share a matrix product.
const GROUP_ROWS: usize = 32;

/// A closed loop: problem, swarm size, horizon and the shape of the network in it.
#[derive(Debug)]
pub struct ClosedLoop<T: Real = f32> {
    /// The control problem.
    pub problem: Problem,
    /// Agents per episode.
    pub agents: usize,
    /// Steps per episode.
    pub horizon: usize,
    /// The network.
    pub shape: Shape,
    eyes: Eyes,
    motion: Motion<T>,
    actuators: Actuators<T>,
    physics: Box<dyn Physics<T>>,
    score: Score<T>,
    /// Traces of finished backward passes, to be written again.
    spare: Mutex<Vec<Trace<T>>>,
}

/// What the forward pass of one group leaves for the backward pass.
#[derive(Debug)]
struct Trace<T> {
    episodes: usize,
    /// [horizon + 1, episodes, grid]
    fields: Vec<T>,
    /// [horizon + 1, rows, axes]
    positions: Vec<T>,
    /// [horizon, rows · activation width]
    activations: Vec<T>,
    /// [horizon, rows · place width]; one step of it where agents stay.
    places: Vec<T>,
    /// What agents did: [horizon, rows, actions].
    applied: Vec<T>,
    /// [horizon, episodes · physics' own]
    tape: Vec<T>,
    scratch: Scratch<T>,
}

/// Buffers of one time step.
#[derive(Debug)]
struct Scratch<T> {
    scene: Scene<T>,
    g_scene: Scene<T>,
    scaled: Vec<T>,
    kernels: Vec<Kernels<T>>,
    /// What each agent spreads, [rows, components], and its gradient.
    amplitudes: Vec<T>,
    g_amplitudes: Vec<T>,
    forcing: Vec<T>,
    physics: Vec<T>,
    g_field: Vec<T>,
    g_next: Vec<T>,
    g_forcing: Vec<T>,
    g_positions: Vec<T>,
    g_scaled: Vec<T>,
    g_offer: Vec<T>,
    /// [horizon, rows, actions]: actions take effect after a delay, gradients come back before it.
    g_outputs: Vec<T>,
    g_applied: Vec<T>,
    /// Gradient of the later step's change of velocity, [rows, axes].
    g_change: Vec<T>,
    g_window: Vec<T>,
    network: Workspace<T>,
}

/// Who decides what agents do.
#[derive(Debug)]
enum Pilot<T> {
    /// The shared network, from what each agent sees.
    Policy(Box<Network<T>>),
    /// A plan for each episode, [horizon, agents, actions], before tanh.
    Plans(Vec<Vec<T>>),
}

/// What [`ClosedLoop::forward`] keeps for [`ClosedLoop::backward`].
#[derive(Debug)]
pub struct Tape<T> {
    pilot: Pilot<T>,
    targets: Vec<Vec<T>>,
    groups: Vec<Trace<T>>,
}

impl<T: Real> ClosedLoop<T> {
    /// Episodes of `problem` with `agents` agents and `horizon` steps under the network of `config`.
    pub fn new(problem: &Problem, agents: usize, horizon: usize, config: &PolicyConfig) -> Self {
        assert!(agents > 0 && horizon > 0);
        Self {
            problem: *problem,
            agents,
            horizon,
            shape: config.shape.clone(),
            eyes: Eyes::new(problem, &config.sight),
            motion: Motion::new(problem),
            actuators: Actuators::new(problem),
            physics: physics::of(problem),
            score: Score::new(problem, agents, horizon),
            spare: Mutex::default(),
        }
    }

    fn episodes_per_group(&self) -> usize {
        (GROUP_ROWS / self.agents).max(1)
    }

    /// Runs the episodes; returns their terms, [episodes][term], and what the adjoint needs.
    pub fn forward(&self, parameters: &[f32], trials: &[Trial]) -> (Vec<[f64; TERMS]>, Tape<T>) {
        let network = Network::new(&self.shape, parameters);
        self.fly(Pilot::Policy(Box::new(network)), trials)
    }

    /// Runs the episodes with a plan for each, [horizon, agents, actions] before tanh, instead of a
    /// policy.
    pub fn forward_plans(
        &self,
        plans: Vec<Vec<T>>,
        trials: &[Trial],
    ) -> (Vec<[f64; TERMS]>, Tape<T>) {
        assert_eq!(plans.len(), trials.len());
        self.fly(Pilot::Plans(plans), trials)
    }

    fn fly(&self, pilot: Pilot<T>, trials: &[Trial]) -> (Vec<[f64; TERMS]>, Tape<T>) {
        let targets: Vec<Vec<T>> = trials.iter().map(|t| cast(&t.episode.target)).collect();
        let size = self.episodes_per_group();
        let (terms, groups): (Vec<_>, Vec<_>) = trials
            .par_chunks(size)
            .zip(targets.par_chunks(size))
            .enumerate()
            .map(|(group, (trials, targets))| {
                let mut trace = self.trace(trials.len());
                let terms = self.forward_group(&pilot, group * size, trials, targets, &mut trace);
                (terms, trace)
            })
            .unzip();
        let tape = Tape {
            pilot,
            targets,
            groups,
        };
        (terms.concat(), tape)
    }

    /// The gradient of Σ g · terms with respect to the parameters; `trials` are those that the tape
    /// was recorded on.
    pub fn backward(&self, tape: Tape<T>, trials: &[Trial], g_terms: &[[f64; TERMS]]) -> Vec<T> {
        let mut sum = vec![T::ZERO; self.shape.parameters()];
        for gradient in self.gradients(tape, trials, g_terms) {
            for (sum, g) in sum.iter_mut().zip(gradient) {
                *sum += g;
            }
        }
        sum
    }

    /// The gradient with respect to the plans of [`Self::forward_plans`], one after the other.
    pub fn backward_plans(
        &self,
        tape: Tape<T>,
        trials: &[Trial],
        g_terms: &[[f64; TERMS]],
    ) -> Vec<T> {
        self.gradients(tape, trials, g_terms).concat()
    }

    /// The gradient of each group of episodes.
    fn gradients(
        &self,
        mut tape: Tape<T>,
        trials: &[Trial],
        g_terms: &[[f64; TERMS]],
    ) -> Vec<Vec<T>> {
        let size = self.episodes_per_group();
        let pilot = &tape.pilot;
        let gradients = tape
            .groups
            .par_iter_mut()
            .zip(tape.targets.par_chunks(size))
            .zip(trials.par_chunks(size).zip(g_terms.par_chunks(size)))
            .map(|((trace, targets), (trials, g))| {
                self.backward_group(pilot, trials, targets, g, trace)
            })
            .collect();
        self.recycle(tape);
        gradients
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
        let (n, axes, actions) = (self.problem.grid.len(), self.shape.axes, self.shape.actions);
        let components = self.problem.actuation.drives.components();
        let (rows, horizon) = (episodes * self.agents, self.horizon);
        let of = |size: usize| vec![T::ZERO; size];
        Trace {
            episodes,
            fields: of((horizon + 1) * episodes * n),
            positions: of((horizon + 1) * rows * axes),
            activations: of(horizon * rows * network::activation_width(&self.shape)),
            places: of(self.places_kept() * rows * network::place_width(&self.shape)),
            applied: of(horizon * rows * actions),
            tape: of(horizon * episodes * self.physics.tape_len()),
            scratch: Scratch {
                scene: self.eyes.scene(),
                g_scene: self.eyes.scene(),
                scaled: of(rows * axes),
                kernels: vec![self.actuators.kernels(self.agents); episodes],
                amplitudes: of(rows * components),
                g_amplitudes: of(rows * components),
                forcing: of(episodes * components * n),
                physics: of(episodes * self.physics.scratch_len()),
                g_field: of(episodes * n),
                g_next: of(episodes * n),
                g_forcing: of(episodes * components * n),
                g_positions: of(rows * axes),
                g_scaled: of(rows * axes),
                g_offer: of(rows * network::offer_width(&self.shape)),
                g_outputs: of(horizon * rows * actions),
                g_applied: of(rows * actions),
                g_change: of(rows * axes),
                g_window: of(rows * self.shape.features),
                network: Workspace::new(&self.shape, rows),
            },
        }
    }

    /// Steps for which the trunk is evaluated.
    fn places_kept(&self) -> usize {
        if self.motion.moves() { self.horizon } else { 1 }
    }

    /// Puts every agent's kernel where the agent is.
    fn place(&self, positions: &[T], kernels: &mut [Kernels<T>]) {
        let agents = self.agents * self.shape.axes;
        for (kernels, positions) in kernels.iter_mut().zip(positions.chunks_exact(agents)) {
            self.actuators.place(positions, kernels);
        }
    }

    /// What agents spread: forces, or velocities where they stir.
    fn amplitudes(&self, applied: &[T], amplitudes: &mut [T]) {
        let actions = applied.chunks_exact(self.shape.actions);
        match self.problem.actuation.drives {
            Drives::Source => {
                for (amplitude, action) in amplitudes.iter_mut().zip(actions) {
                    *amplitude = action[0];
                }
            }
            Drives::Flow => amplitudes.copy_from_slice(applied),
        }
    }

    /// The forcing on each episode's field.
    fn force(&self, s: &mut Scratch<T>) {
        let components = self.problem.actuation.drives.components();
        let (n, m) = (
            components * self.problem.grid.len(),
            components * self.agents,
        );
        let episodes = s
            .forcing
            .chunks_exact_mut(n)
            .zip(s.amplitudes.chunks_exact(m));
        for ((forcing, amplitudes), kernels) in episodes.zip(&mut s.kernels) {
            self.actuators.spread(amplitudes, kernels, forcing);
        }
    }

    /// The velocities among actions, component after component.
    fn velocities<'a>(&self, actions: &'a [T]) -> impl Iterator<Item = T> + use<'a, T> {
        let (from, width) = (self.motion.velocity_at(), self.shape.actions);
        actions
            .chunks_exact(width)
            .flat_map(move |a| a[from..].iter().copied())
    }

    /// The cell an agent is in.
    fn cell(&self, position: &[T]) -> [usize; 2] {
        let mut narrow = [0.0; 2];
        for (to, from) in narrow.iter_mut().zip(position) {
            *to = from.narrow();
        }
        self.problem.cell_of(narrow)
    }

    fn forward_group(
        &self,
        pilot: &Pilot<T>,
        first: usize,
        trials: &[Trial],
        targets: &[Vec<T>],
        trace: &mut Trace<T>,
    ) -> Vec<[f64; TERMS]> {
        let (n, m, count) = (self.problem.grid.len(), self.agents, trials.len());
        let (axes, actions, features) = (self.shape.axes, self.shape.actions, self.shape.features);
        let rows = count * m;
        let mut terms = vec![[0.0; TERMS]; count];
        let Trace {
            fields,
            positions,
            activations,
            places,
            applied,
            tape,
            scratch: s,
            ..
        } = trace;
        for (e, trial) in trials.iter().enumerate() {
            fields[e * n..][..n].copy_from_slice(&cast::<T>(&trial.episode.initial));
            let start = positions[e * m * axes..][..m * axes].chunks_exact_mut(axes);
            for (to, from) in start.zip(&trial.start) {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = T::of(from);
                }
            }
        }
        self.place(&positions[..rows * axes], &mut s.kernels);
        let slab = rows * network::activation_width(&self.shape);
        let taped = count * self.physics.tape_len();
        let (kept, stand) = (self.places_kept(), rows * network::place_width(&self.shape));
        for step in 0..self.horizon {
            let (past, future) = fields.split_at_mut((step + 1) * count * n);
            let (field, next_field) = (&past[step * count * n..], &mut future[..count * n]);
            let (past, future) = positions.split_at_mut((step + 1) * rows * axes);
            let (position, next_position) =
                (&past[step * rows * axes..], &mut future[..rows * axes]);
            let (before, now) = activations.split_at_mut(step * slab);
            let mut a = network::activations_mut(&self.shape, rows, &mut now[..slab]);

            match pilot {
                Pilot::Policy(network) => {
                    for (e, trial) in trials.iter().enumerate() {
                        difference(&field[e * n..][..n], &targets[e], &mut s.scene.error);
                        disturb(trial, step, &mut s.scene.error);
                        self.eyes.prepare(&mut s.scene);
                        let windows = a.window[e * m * features..].chunks_exact_mut(features);
                        let agents = position[e * m * axes..].chunks_exact(axes).take(m);
                        for (at, seen) in agents.zip(windows) {
                            self.eyes.observe(&s.scene, self.cell(at), seen);
                        }
                    }
                    let placed = &mut places[step.min(kept - 1) * stand..][..stand];
                    if step < kept {
                        self.motion.scale(position, &mut s.scaled);
                        let mut places = network::places_mut(&self.shape, rows, placed);
                        network.place(&s.scaled, &mut places);
                    }
                    let places = network::places(&self.shape, rows, placed);
                    network.forward(&places, &mut a, &mut s.network);
                }
                Pilot::Plans(plans) => {
                    let planned = a.action.chunks_exact_mut(m * actions);
                    for (plan, planned) in plans[first..].iter().zip(planned) {
                        let now = &plan[step * m * actions..];
                        for (to, from) in planned.iter_mut().zip(now) {
                            *to = from.squash();
                        }
                    }
                }
            }

            let (done, doing) = applied.split_at_mut(step * rows * actions);
            let doing = &mut doing[..rows * actions];
            for (row, action) in doing.chunks_exact_mut(actions).enumerate() {
                let (trial, agent) = (&trials[row / m], row % m);
                action.fill(T::ZERO);
                if trial.delay > step || step >= trial.dies_at[agent] {
                    continue;
                }
                let output = if trial.delay == 0 {
                    &a.action[row * actions..][..actions]
                } else {
                    let then = &before[(step - trial.delay) * slab..];
                    let then = network::activations(&self.shape, rows, then);
                    &then.action[row * actions..][..actions]
                };
                self.motion.saturate(output, action);
                if trial.actuator_noise > 0.0 && self.motion.has_force() {
                    let index = (step * m + agent) as u64;
                    let off = trial.actuator_noise * noise(!trial.noise_seed, index);
                    action[0] += T::of(off);
                }
            }
            let doing: &[T] = doing;
            self.amplitudes(doing, &mut s.amplitudes);
            self.force(s);
            let tape = &mut tape[step * taped..][..taped];
            self.physics
                .advance(count, field, &s.forcing, next_field, tape, &mut s.physics);
            next_position.copy_from_slice(position);
            if self.motion.moves() {
                let agents = position.chunks_exact(axes).zip(doing.chunks_exact(actions));
                for ((from, action), to) in agents.zip(next_position.chunks_exact_mut(axes)) {
                    let velocity = &action[self.motion.velocity_at()..];
                    to.copy_from_slice(&self.motion.travel(from, velocity).0[..axes]);
                }
                self.place(next_position, &mut s.kernels);
            }

            for (e, terms) in terms.iter_mut().enumerate() {
                difference(&next_field[e * n..][..n], &targets[e], &mut s.scene.error);
                self.score.field(&s.scene.error, &targets[e], step, terms);
                let agents = e * m * actions..(e + 1) * m * actions;
                let forces = doing[agents.clone()].chunks_exact(actions).map(|a| a[0]);
                let forces = forces.take(if self.motion.has_force() { m } else { 0 });
                let velocities = self.velocities(&doing[agents.clone()]);
                self.score.actions(forces, velocities, terms);
                if !self.motion.moves() {
                    continue;
                }
                self.score
                    .positions(&next_position[e * m * axes..][..m * axes], terms);
                if step > 0 {
                    let before = &done[(step - 1) * rows * actions..][agents.clone()];
                    let pairs = self.velocities(&doing[agents]).zip(self.velocities(before));
                    self.score.change(pairs.map(|(v, w)| v - w), terms);
                }
            }
        }
        terms
    }

    fn backward_group(
        &self,
        pilot: &Pilot<T>,
        trials: &[Trial],
        targets: &[Vec<T>],
        g_terms: &[[f64; TERMS]],
        trace: &mut Trace<T>,
    ) -> Vec<T> {
        let (n, m, count) = (self.problem.grid.len(), self.agents, trace.episodes);
        let (axes, actions, features) = (self.shape.axes, self.shape.actions, self.shape.features);
        let components = self.problem.actuation.drives.components();
        let rows = count * m;
        let mut gradient = match pilot {
            Pilot::Policy(_) => vec![T::ZERO; self.shape.parameters()],
            Pilot::Plans(_) => vec![T::ZERO; self.horizon * rows * actions],
        };
        let Trace {
            fields,
            positions,
            activations,
            places,
            applied,
            tape,
            scratch: s,
            ..
        } = trace;
        let slab = rows * network::activation_width(&self.shape);
        let taped = count * self.physics.tape_len();
        let (kept, stand) = (self.places_kept(), rows * network::place_width(&self.shape));
        let moves = self.motion.moves();
        let velocity_at = self.motion.velocity_at();
        s.g_next.fill(T::ZERO);
        s.g_positions.fill(T::ZERO);
        s.g_change.fill(T::ZERO);
        s.g_outputs.fill(T::ZERO);
        s.g_offer.fill(T::ZERO);
        if !moves {
            self.place(&positions[..rows * axes], &mut s.kernels);
        }
        for step in (0..self.horizon).rev() {
            let field = &fields[step * count * n..][..count * n];
            let next_field = &fields[(step + 1) * count * n..][..count * n];
            let position = &positions[step * rows * axes..][..rows * axes];
            let next_position = &positions[(step + 1) * rows * axes..][..rows * axes];
            let a = network::activations(&self.shape, rows, &activations[step * slab..]);
            let doing = &applied[step * rows * actions..][..rows * actions];
            let before = (step.checked_sub(1))
                .map(|previous| &applied[previous * rows * actions..][..rows * actions]);

            // The score of the state that this step led to.
            for (e, g) in g_terms.iter().enumerate() {
                difference(&next_field[e * n..][..n], &targets[e], &mut s.scene.error);
                let g_next = &mut s.g_next[e * n..][..n];
                self.score
                    .field_adjoint(&s.scene.error, &targets[e], step, g, g_next);
                if moves {
                    let agents = e * m * axes..(e + 1) * m * axes;
                    let g_positions = &mut s.g_positions[agents.clone()];
                    self.score
                        .positions_adjoint(&next_position[agents], g, g_positions);
                }
            }
            // The agents' own score, and how they moved.
            for row in 0..rows {
                let (force_pull, velocity_pull) = self.score.action_pulls(&g_terms[row / m]);
                let action = &doing[row * actions..][..actions];
                let g = &mut s.g_applied[row * actions..][..actions];
                if self.motion.has_force() {
                    g[0] = force_pull * action[0];
                }
                if !moves {
                    continue;
                }
                let change_pull = self.score.change_pull(&g_terms[row / m]);
                for axis in 0..axes {
                    let k = velocity_at + axis;
                    g[k] = velocity_pull * action[k];
                    // It came down from the later step, where this velocity is the old one.
                    let g_change = &mut s.g_change[row * axes + axis];
                    g[k] -= *g_change;
                    *g_change = match before {
                        Some(before) => change_pull * (action[k] - before[row * actions + k]),
                        None => T::ZERO,
                    };
                    g[k] += *g_change;
                }
                let at = row * axes..(row + 1) * axes;
                self.motion.travel_adjoint(
                    &position[at.clone()],
                    &action[velocity_at..],
                    &mut s.g_positions[at],
                    &mut g[velocity_at..],
                );
            }
            // The field.
            if moves {
                self.place(position, &mut s.kernels);
            }
            self.amplitudes(doing, &mut s.amplitudes);
            self.force(s);
            let at = Interval {
                fields: field,
                forcing: &s.forcing,
                next: next_field,
                tape: &tape[step * taped..][..taped],
            };
            let g = Gradients {
                next: &s.g_next,
                fields: &mut s.g_field,
                forcing: &mut s.g_forcing,
            };
            self.physics.adjoint(count, at, g, &mut s.physics);
            for (e, kernels) in s.kernels.iter_mut().enumerate() {
                let spread = e * m * components..(e + 1) * m * components;
                let g_positions = &mut s.g_positions[e * m * axes..][..m * axes];
                self.actuators.spread_adjoint(
                    &s.g_forcing[e * components * n..][..components * n],
                    &s.amplitudes[spread.clone()],
                    kernels,
                    &mut s.g_amplitudes[spread],
                    moves.then_some(g_positions),
                );
            }
            let pulls = s.g_amplitudes.chunks_exact(components);
            for (g, pull) in s.g_applied.chunks_exact_mut(actions).zip(pulls) {
                for (g, &pull) in g.iter_mut().zip(pull) {
                    *g += pull;
                }
            }
            // What was done now was decided now or some steps ago.
            for (row, g) in s.g_applied.chunks_exact_mut(actions).enumerate() {
                let trial = &trials[row / m];
                if trial.delay > step || step >= trial.dies_at[row % m] {
                    continue;
                }
                let then = step - trial.delay;
                let decided = network::activations(&self.shape, rows, &activations[then * slab..]);
                let output = &decided.action[row * actions..][..actions];
                self.motion.saturate_adjoint(output, g);
                s.g_outputs[(then * rows + row) * actions..][..actions].copy_from_slice(g);
            }
            // The agents' decision and what they saw.
            let g_outputs = &s.g_outputs[step * rows * actions..][..rows * actions];
            let Pilot::Policy(network) = pilot else {
                for (row, (&g, &y)) in g_outputs.iter().zip(a.action).enumerate() {
                    let (e, k) = (row / (m * actions), row % (m * actions));
                    let at = (e * self.horizon + step) * m * actions + k;
                    gradient[at] = g * (-y).fused(y, T::ONE);
                }
                std::mem::swap(&mut s.g_next, &mut s.g_field);
                continue;
            };
            let placed = &places[step.min(kept - 1) * stand..][..stand];
            let placed = network::places(&self.shape, rows, placed);
            network.backward(
                g_outputs,
                (&placed, &a),
                &mut s.network,
                &mut gradient,
                &mut s.g_offer,
                &mut s.g_window,
            );
            if step < kept {
                s.g_scaled.fill(T::ZERO);
                network.place_adjoint(
                    &s.g_offer,
                    &placed,
                    &mut s.network,
                    &mut gradient,
                    &mut s.g_scaled,
                );
                s.g_offer.fill(T::ZERO);
                self.motion.scale_adjoint(&s.g_scaled, &mut s.g_positions);
            }
            for e in 0..count {
                s.g_scene.clear();
                let agents = position[e * m * axes..].chunks_exact(axes).take(m);
                let windows = s.g_window[e * m * features..].chunks_exact(features);
                for (at, g_seen) in agents.zip(windows) {
                    self.eyes
                        .observe_adjoint(g_seen, self.cell(at), &mut s.g_scene);
                }
                self.eyes.prepare_adjoint(&mut s.g_scene);
                for (g, &seen) in s.g_field[e * n..][..n].iter_mut().zip(&s.g_scene.error) {
                    *g += seen;
                }
            }
            std::mem::swap(&mut s.g_next, &mut s.g_field);
        }
        gradient
    }
}

/// Adds sensor noise to what agents see.
fn disturb<T: Real>(trial: &Trial, step: usize, error: &mut [T]) {
    if trial.sensor_noise > 0.0 {
        let first = (step * error.len()) as u64;
        for (index, error) in (first..).zip(error) {
            *error += T::of(trial.sensor_noise * noise(trial.noise_seed, index));
        }
    }
}

fn cast<T: Real>(values: &[f32]) -> Vec<T> {
    values.iter().map(|&v| T::of(f64::from(v))).collect()
}

fn difference<T: Real>(field: &[T], target: &[T], error: &mut [T]) {
    for ((e, &z), &t) in error.iter_mut().zip(field).zip(target) {
        *e = z - t;
    }
}
