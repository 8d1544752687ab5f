//! The closed loop on the host: episodes and the gradient of their terms, as two plain functions.
//!
//! Episodes are cut into groups of a few dozen agents; a group runs through all its time steps on
//! one thread, with the network evaluated for all its agents at once. The cut does not depend on
//! the number of threads and sums over groups are taken in order, so results do not either.

use crate::adjoint::actuate::{Actuators, Kernels};
use crate::adjoint::motion::Motion;
use crate::adjoint::network::{self, Activations, Network, Workspace};
use crate::adjoint::observe::{Eyes, Scene};
use crate::adjoint::physics::{FieldStep, Gradients, Interval};
use crate::adjoint::real::Real;
use crate::loss::{Score, TERMS};
use crate::policy::{PolicyConfig, Shape};
use crate::rollout::{Rollout, RolloutError, Terms};
use crate::trial::{Trial, noise};
use problem::{Drives, NotImplemented, Problem};
use rayon::prelude::*;
use std::sync::Mutex;

/// Agents that share a matrix product.
const GROUP_ROWS: usize = 32;

/// A closed loop on the host: problem, swarm size, horizon and the shape of the network in it.
#[derive(Debug)]
pub struct HostLoop<T: Real = f32> {
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
    field: Box<dyn FieldStep<T>>,
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
    /// [horizon, episodes · the field's own]
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
    field: Vec<T>,
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

/// What [`HostLoop::forward`] keeps for [`HostLoop::backward`].
#[derive(Debug)]
pub struct Tape<T> {
    pilot: Pilot<T>,
    targets: Vec<Vec<T>>,
    groups: Vec<Trace<T>>,
}

impl<T: Real> HostLoop<T> {
    /// Episodes of `problem`, whose field takes the steps of `field`, with `agents` agents and
    /// `horizon` steps under the network of `config`. Refuses a truth on another grid than the
    /// sensors': agents are shown the field that is stepped.
    pub fn new(
        problem: &Problem,
        field: Box<dyn FieldStep<T>>,
        agents: usize,
        horizon: usize,
        config: &PolicyConfig,
    ) -> Result<Self, NotImplemented> {
        assert!(agents > 0 && horizon > 0);
        if problem.grid != problem.sensors {
            return Err(NotImplemented {
                part: "the trainer",
                form: problem.described(),
                remedy: "train on the published grid; agents see the same on any",
            });
        }
        Ok(Self {
            problem: *problem,
            agents,
            horizon,
            shape: config.shape.clone(),
            eyes: Eyes::new(problem, &config.sight),
            motion: Motion::new(problem),
            actuators: Actuators::new(problem),
            field,
            score: Score::new(problem, agents, horizon),
            spare: Mutex::default(),
        })
    }

    fn episodes_per_group(&self) -> usize {
        (GROUP_ROWS / self.agents).max(1)
    }

    /// Runs the episodes; returns their terms, [episodes][term], and what the adjoint needs.
    pub fn forward(&self, parameters: &[f32], trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
        let network = Network::new(&self.shape, parameters);
        self.fly(Pilot::Policy(Box::new(network)), trials)
    }

    /// Runs the episodes with a plan for each, [horizon, agents, actions] before tanh, instead of a
    /// policy.
    pub fn forward_plans(&self, plans: Vec<Vec<T>>, trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
        assert_eq!(plans.len(), trials.len());
        self.fly(Pilot::Plans(plans), trials)
    }

    fn fly(&self, pilot: Pilot<T>, trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
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
    pub fn backward(&self, tape: Tape<T>, trials: &[Trial], g_terms: &[Terms]) -> Vec<T> {
        let mut sum = vec![T::ZERO; self.shape.parameters()];
        for gradient in self.gradients(tape, trials, g_terms) {
            for (sum, g) in sum.iter_mut().zip(gradient) {
                *sum += g;
            }
        }
        sum
    }

    /// The gradient with respect to the plans of [`Self::forward_plans`], one after the other.
    pub fn backward_plans(&self, tape: Tape<T>, trials: &[Trial], g_terms: &[Terms]) -> Vec<T> {
        self.gradients(tape, trials, g_terms).concat()
    }

    /// The gradient of each group of episodes.
    fn gradients(&self, mut tape: Tape<T>, trials: &[Trial], g_terms: &[Terms]) -> Vec<Vec<T>> {
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
            tape: of(horizon * episodes * self.field.tape_len()),
            scratch: Scratch {
                scene: self.eyes.scene(),
                g_scene: self.eyes.scene(),
                scaled: of(rows * axes),
                kernels: vec![self.actuators.kernels(self.agents); episodes],
                amplitudes: of(rows * components),
                g_amplitudes: of(rows * components),
                forcing: of(episodes * components * n),
                field: of(episodes * self.field.scratch_len()),
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

    /// Runs a group of episodes; returns their terms and leaves the way in the trace.
    fn forward_group(
        &self,
        pilot: &Pilot<T>,
        first: usize,
        trials: &[Trial],
        targets: &[Vec<T>],
        trace: &mut Trace<T>,
    ) -> Vec<Terms> {
        let count = trials.len();
        let (n, rows) = (count * self.problem.grid.len(), count * self.agents);
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let mut terms = vec![[0.0; TERMS]; count];
        self.begin(trials, trace);
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
        let taped = count * self.field.tape_len();
        for step in 0..self.horizon {
            let (field, next_field) = around(fields, step, n);
            let (position, next_position) = around(positions, step, rows * axes);
            let (before, now) = activations.split_at_mut(step * slab);
            let mut now = network::activations_mut(&self.shape, rows, &mut now[..slab]);
            match pilot {
                Pilot::Policy(network) => {
                    self.observe(step, trials, targets, (field, position), &mut now, s);
                    self.decide(network, step, position, places, &mut now, s);
                }
                Pilot::Plans(plans) => self.follow(&plans[first..], step, &mut now),
            }
            let (done, doing) = applied.split_at_mut(step * rows * actions);
            let doing = &mut doing[..rows * actions];
            self.act(step, trials, (before, &*now.action), doing);

            self.amplitudes(doing, &mut s.amplitudes);
            self.force(s);
            let tape = &mut tape[step * taped..][..taped];
            self.field
                .advance(count, field, &s.forcing, next_field, tape, &mut s.field);
            self.travel(position, doing, next_position, s);
            let old = step.checked_sub(1).map(|old| &done[old * rows * actions..]);
            let reached = Reached {
                fields: next_field,
                positions: next_position,
                actions: doing,
                actions_before: old,
            };
            self.add_scores(step, targets, reached, &mut s.scene, &mut terms);
        }
        terms
    }

    /// Puts fields and agents where the episodes begin.
    fn begin(&self, trials: &[Trial], trace: &mut Trace<T>) {
        let (n, m, axes) = (self.problem.grid.len(), self.agents, self.shape.axes);
        for (e, trial) in trials.iter().enumerate() {
            trace.fields[e * n..][..n].copy_from_slice(&cast::<T>(&trial.episode.initial));
            let start = trace.positions[e * m * axes..][..m * axes].chunks_exact_mut(axes);
            for (to, from) in start.zip(&trial.start) {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = T::of(from);
                }
            }
        }
        let rows = trials.len() * m;
        self.place(&trace.positions[..rows * axes], &mut trace.scratch.kernels);
    }

    /// What every agent sees of its field.
    fn observe(
        &self,
        step: usize,
        trials: &[Trial],
        targets: &[Vec<T>],
        (field, position): (&[T], &[T]),
        now: &mut Activations<&mut [T]>,
        s: &mut Scratch<T>,
    ) {
        let (n, m) = (self.problem.grid.len(), self.agents);
        let (axes, features) = (self.shape.axes, self.shape.features);
        for (e, trial) in trials.iter().enumerate() {
            difference(&field[e * n..][..n], &targets[e], &mut s.scene.error);
            disturb(trial, step, &mut s.scene.error);
            self.eyes.prepare(&mut s.scene);
            let windows = now.window[e * m * features..].chunks_exact_mut(features);
            let agents = position[e * m * axes..].chunks_exact(axes).take(m);
            for (at, seen) in agents.zip(windows) {
                self.eyes.observe(&s.scene, self.cell(at), seen);
            }
        }
    }

    /// What the network makes of it.
    fn decide(
        &self,
        network: &Network<T>,
        step: usize,
        position: &[T],
        places: &mut [T],
        now: &mut Activations<&mut [T]>,
        s: &mut Scratch<T>,
    ) {
        let rows = position.len() / self.shape.axes;
        let (kept, stand) = (self.places_kept(), rows * network::place_width(&self.shape));
        let placed = &mut places[step.min(kept - 1) * stand..][..stand];
        if step < kept {
            self.motion.scale(position, &mut s.scaled);
            let mut places = network::places_mut(&self.shape, rows, placed);
            network.place(&s.scaled, &mut places);
        }
        let places = network::places(&self.shape, rows, placed);
        network.forward(&places, now, &mut s.network);
    }

    /// What the plans say instead.
    fn follow(&self, plans: &[Vec<T>], step: usize, now: &mut Activations<&mut [T]>) {
        let each = self.agents * self.shape.actions;
        for (plan, planned) in plans.iter().zip(now.action.chunks_exact_mut(each)) {
            for (to, from) in planned.iter_mut().zip(&plan[step * each..]) {
                *to = from.squash();
            }
        }
    }

    /// What agents do: what they decided now, or some steps ago, within their limits; nothing after
    /// their end.
    fn act(&self, step: usize, trials: &[Trial], (before, decided): (&[T], &[T]), doing: &mut [T]) {
        let (m, actions) = (self.agents, self.shape.actions);
        let rows = trials.len() * m;
        let slab = rows * network::activation_width(&self.shape);
        for (row, action) in doing.chunks_exact_mut(actions).enumerate() {
            let (trial, agent) = (&trials[row / m], row % m);
            action.fill(T::ZERO);
            if trial.delay > step || step >= trial.dies_at[agent] {
                continue;
            }
            let output = match trial.delay {
                0 => decided,
                delay => {
                    network::activations(&self.shape, rows, &before[(step - delay) * slab..]).action
                }
            };
            self.motion
                .saturate(&output[row * actions..][..actions], action);
            if trial.actuator_noise > 0.0 && self.motion.has_force() {
                let index = (step * m + agent) as u64;
                let off = trial.actuator_noise * noise(!trial.noise_seed, index);
                action[0] += T::of(off);
            }
        }
    }

    /// Where agents go, and their kernels with them.
    fn travel(&self, from: &[T], doing: &[T], to: &mut [T], s: &mut Scratch<T>) {
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        to.copy_from_slice(from);
        if !self.motion.moves() {
            return;
        }
        let agents = from.chunks_exact(axes).zip(doing.chunks_exact(actions));
        for ((from, action), to) in agents.zip(to.chunks_exact_mut(axes)) {
            let velocity = &action[self.motion.velocity_at()..];
            to.copy_from_slice(&self.motion.travel(from, velocity).0[..axes]);
        }
        self.place(to, &mut s.kernels);
    }

    /// Adds to the episodes' terms what a step led to and cost.
    fn add_scores(
        &self,
        step: usize,
        targets: &[Vec<T>],
        reached: Reached<T>,
        scene: &mut Scene<T>,
        terms: &mut [Terms],
    ) {
        let (n, m) = (self.problem.grid.len(), self.agents);
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        for (e, terms) in terms.iter_mut().enumerate() {
            difference(&reached.fields[e * n..][..n], &targets[e], &mut scene.error);
            self.score.field(&scene.error, &targets[e], step, terms);
            let agents = e * m * actions..(e + 1) * m * actions;
            let doing = &reached.actions[agents.clone()];
            let forces = doing.chunks_exact(actions).map(|a| a[0]);
            let forces = forces.take(if self.motion.has_force() { m } else { 0 });
            self.score.actions(forces, self.velocities(doing), terms);
            if !self.motion.moves() {
                continue;
            }
            self.score
                .positions(&reached.positions[e * m * axes..][..m * axes], terms);
            if let Some(before) = reached.actions_before {
                let pairs = self.velocities(doing).zip(self.velocities(&before[agents]));
                self.score.change(pairs.map(|(v, w)| v - w), terms);
            }
        }
    }

    /// The gradient of Σ g · terms of a group by the network's parameters, or by its plans.
    fn backward_group(
        &self,
        pilot: &Pilot<T>,
        trials: &[Trial],
        targets: &[Vec<T>],
        g_terms: &[Terms],
        trace: &mut Trace<T>,
    ) -> Vec<T> {
        let count = trace.episodes;
        let (n, rows) = (count * self.problem.grid.len(), count * self.agents);
        let (axes, actions) = (self.shape.axes, self.shape.actions);
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
        let taped = count * self.field.tape_len();
        s.clear_gradients();
        if !self.motion.moves() {
            self.place(&positions[..rows * axes], &mut s.kernels);
        }
        for step in (0..self.horizon).rev() {
            let field = &fields[step * n..][..n];
            let position = &positions[step * rows * axes..][..rows * axes];
            let done = |step: usize| &applied[step * rows * actions..][..rows * actions];
            let reached = Reached {
                fields: &fields[(step + 1) * n..][..n],
                positions: &positions[(step + 1) * rows * axes..][..rows * axes],
                actions: done(step),
                actions_before: step.checked_sub(1).map(done),
            };
            let now = network::activations(&self.shape, rows, &activations[step * slab..]);

            self.scores_adjoint(step, targets, g_terms, &reached, s);
            self.actions_adjoint(g_terms, &reached, position, s);
            let interval = Interval {
                fields: field,
                forcing: &[],
                next: reached.fields,
                tape: &tape[step * taped..][..taped],
            };
            self.field_adjoint(count, interval, position, reached.actions, s);
            self.decisions_adjoint(step, trials, activations, s);
            match pilot {
                Pilot::Policy(network) => {
                    self.network_adjoint(network, step, places, &now, s, &mut gradient);
                    self.sight_adjoint(count, position, s);
                }
                Pilot::Plans(_) => self.plans_adjoint(step, rows, now.action, s, &mut gradient),
            }
            std::mem::swap(&mut s.g_next, &mut s.g_field);
        }
        gradient
    }

    /// Back through the score of the state that a step led to.
    fn scores_adjoint(
        &self,
        step: usize,
        targets: &[Vec<T>],
        g_terms: &[Terms],
        reached: &Reached<T>,
        s: &mut Scratch<T>,
    ) {
        let (n, m, axes) = (self.problem.grid.len(), self.agents, self.shape.axes);
        for (e, g) in g_terms.iter().enumerate() {
            difference(
                &reached.fields[e * n..][..n],
                &targets[e],
                &mut s.scene.error,
            );
            let g_next = &mut s.g_next[e * n..][..n];
            self.score
                .field_adjoint(&s.scene.error, &targets[e], step, g, g_next);
            if self.motion.moves() {
                let agents = e * m * axes..(e + 1) * m * axes;
                let g_positions = &mut s.g_positions[agents.clone()];
                self.score
                    .positions_adjoint(&reached.positions[agents], g, g_positions);
            }
        }
    }

    /// Back through the agents' own score, and how they moved.
    fn actions_adjoint(
        &self,
        g_terms: &[Terms],
        reached: &Reached<T>,
        position: &[T],
        s: &mut Scratch<T>,
    ) {
        let (m, axes, actions) = (self.agents, self.shape.axes, self.shape.actions);
        let velocity_at = self.motion.velocity_at();
        for row in 0..position.len() / axes {
            let (force_pull, velocity_pull) = self.score.action_pulls(&g_terms[row / m]);
            let action = &reached.actions[row * actions..][..actions];
            let g = &mut s.g_applied[row * actions..][..actions];
            if self.motion.has_force() {
                g[0] = force_pull * action[0];
            }
            if !self.motion.moves() {
                continue;
            }
            let change_pull = self.score.change_pull(&g_terms[row / m]);
            for axis in 0..axes {
                let k = velocity_at + axis;
                g[k] = velocity_pull * action[k];
                // It came down from the later step, where this velocity is the old one.
                let g_change = &mut s.g_change[row * axes + axis];
                g[k] -= *g_change;
                *g_change = match reached.actions_before {
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
    }

    /// Back through the field's interval, to the field before it and to what agents did.
    fn field_adjoint(
        &self,
        count: usize,
        interval: Interval<T>,
        position: &[T],
        doing: &[T],
        s: &mut Scratch<T>,
    ) {
        let (n, m) = (self.problem.grid.len(), self.agents);
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let components = self.problem.actuation.drives.components();
        if self.motion.moves() {
            self.place(position, &mut s.kernels);
        }
        self.amplitudes(doing, &mut s.amplitudes);
        self.force(s);
        let at = Interval {
            forcing: &s.forcing,
            ..interval
        };
        let g = Gradients {
            next: &s.g_next,
            fields: &mut s.g_field,
            forcing: &mut s.g_forcing,
        };
        self.field.adjoint(count, at, g, &mut s.field);
        for (e, kernels) in s.kernels.iter_mut().enumerate() {
            let spread = e * m * components..(e + 1) * m * components;
            let g_positions = &mut s.g_positions[e * m * axes..][..m * axes];
            self.actuators.spread_adjoint(
                &s.g_forcing[e * components * n..][..components * n],
                &s.amplitudes[spread.clone()],
                kernels,
                &mut s.g_amplitudes[spread],
                self.motion.moves().then_some(g_positions),
            );
        }
        let pulls = s.g_amplitudes.chunks_exact(components);
        for (g, pull) in s.g_applied.chunks_exact_mut(actions).zip(pulls) {
            for (g, &pull) in g.iter_mut().zip(pull) {
                *g += pull;
            }
        }
    }

    /// Back to the decisions: what was done now was decided now or some steps ago.
    fn decisions_adjoint(
        &self,
        step: usize,
        trials: &[Trial],
        activations: &[T],
        s: &mut Scratch<T>,
    ) {
        let (m, actions) = (self.agents, self.shape.actions);
        let rows = trials.len() * m;
        let slab = rows * network::activation_width(&self.shape);
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
    }

    /// The gradient of the plans, which stand for decisions before their tanh.
    fn plans_adjoint(
        &self,
        step: usize,
        rows: usize,
        decided: &[T],
        s: &Scratch<T>,
        gradient: &mut [T],
    ) {
        let each = self.agents * self.shape.actions;
        let size = rows * self.shape.actions;
        let g_outputs = &s.g_outputs[step * size..][..size];
        for (k, (&g, &y)) in g_outputs.iter().zip(decided).enumerate() {
            let at = (k / each * self.horizon + step) * each + k % each;
            gradient[at] = g * (-y).fused(y, T::ONE);
        }
    }

    /// Back through the network, to its parameters, to what agents saw and to where they stood.
    fn network_adjoint(
        &self,
        network: &Network<T>,
        step: usize,
        places: &[T],
        now: &Activations<&[T]>,
        s: &mut Scratch<T>,
        gradient: &mut [T],
    ) {
        let size = now.action.len();
        let rows = size / self.shape.actions;
        let (kept, stand) = (self.places_kept(), rows * network::place_width(&self.shape));
        let placed = &places[step.min(kept - 1) * stand..][..stand];
        let placed = network::places(&self.shape, rows, placed);
        network.backward(
            &s.g_outputs[step * size..][..size],
            (&placed, now),
            &mut s.network,
            gradient,
            &mut s.g_offer,
            &mut s.g_window,
        );
        if step < kept {
            s.g_scaled.fill(T::ZERO);
            network.place_adjoint(
                &s.g_offer,
                &placed,
                &mut s.network,
                gradient,
                &mut s.g_scaled,
            );
            s.g_offer.fill(T::ZERO);
            self.motion.scale_adjoint(&s.g_scaled, &mut s.g_positions);
        }
    }

    /// Back through what agents saw of the fields.
    fn sight_adjoint(&self, count: usize, position: &[T], s: &mut Scratch<T>) {
        let (n, m) = (self.problem.grid.len(), self.agents);
        let (axes, features) = (self.shape.axes, self.shape.features);
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
    }
}

impl<T: Real> Scratch<T> {
    fn clear_gradients(&mut self) {
        for carried in [
            &mut self.g_next,
            &mut self.g_positions,
            &mut self.g_change,
            &mut self.g_outputs,
            &mut self.g_offer,
        ] {
            carried.fill(T::ZERO);
        }
    }
}

/// What a step led to, for all episodes of a group.
struct Reached<'a, T> {
    fields: &'a [T],
    positions: &'a [T],
    actions: &'a [T],
    /// What was done one step earlier, if there was one.
    actions_before: Option<&'a [T]>,
}

impl Rollout for HostLoop<f32> {
    fn problem(&self) -> &Problem {
        &self.problem
    }

    fn agents(&self) -> usize {
        self.agents
    }

    fn horizon(&self) -> usize {
        self.horizon
    }

    fn terms(&mut self, parameters: &[f32], trials: &[Trial]) -> Result<Vec<Terms>, RolloutError> {
        let (terms, tape) = self.forward(parameters, trials);
        self.recycle(tape);
        Ok(terms)
    }

    fn gradient(
        &mut self,
        parameters: &[f32],
        trials: &[Trial],
        weights: &Terms,
    ) -> Result<(Vec<Terms>, Vec<f32>), RolloutError> {
        let (terms, tape) = self.forward(parameters, trials);
        let share = weights.map(|weight| weight / trials.len() as f64);
        let gradient = self.backward(tape, trials, &vec![share; trials.len()]);
        Ok((terms, gradient))
    }
}

/// The values of a step and, to be written, those of the next, of `size` each.
fn around<T>(values: &mut [T], step: usize, size: usize) -> (&[T], &mut [T]) {
    let (past, future) = values.split_at_mut((step + 1) * size);
    (&past[step * size..], &mut future[..size])
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
