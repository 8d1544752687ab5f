//! The closed loop on the host: episodes and the gradient of their terms, as two plain functions.
//!
//! Episodes are cut into groups of a few dozen agents; a group runs through all its time steps on
//! one thread, with the network evaluated for all its agents at once. The cut does not depend on
//! the number of threads and sums over groups are taken in order, so results do not either. Every
//! episode has as many agents as its trial says; those of a group stand one after the other, in *rows*.
//! Where one network decides for all agents of an episode, it is evaluated once for each episode instead, and
//! what comes out for all of them is what would have come out for one agent after the other.

use crate::adjoint::actuate::{Actuators, Kernels};
use crate::adjoint::motion::Motion;
use crate::adjoint::network::{self, Activations, Network, Workspace};
use crate::adjoint::observe::{Eyes, Scene};
use crate::adjoint::physics::mixed::{MakeStep, Mixed, Steps};
use crate::adjoint::physics::{FieldStep, Gradients, Interval};
use crate::adjoint::real::Real;
use crate::adjoint::standing::Stands;
use crate::loss::{Score, TERMS, means, shares};
use crate::policy::{GAIN, LEAK, PolicyConfig, Shape};
use crate::rollout::{Rollout, RolloutError, Terms};
use crate::trial::{OtherNoise, Trial, noise};
use problem::kit::sensor::Sensor;
use problem::{Change, Course, Drives, Episode, NotImplemented, Problem};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Most actions of an agent: a force, and a velocity along each axis.
const MOST_ACTIONS: usize = 3;
/// Agents that share a matrix product.
const GROUP_ROWS: usize = 32;
/// Episodes that do, where one network decides for all agents, at most: its weights do not stay in the nearest cache,
/// so the more share them the better …
const GROUP_EPISODES: usize = 8;
/// … but where fields have so many points, most of the time is theirs, and threads share episodes by groups.
const GROUP_POINTS: usize = 8192;

/// A closed loop on the host: problem, horizon and the shape of the network in it.
#[derive(Debug)]
pub struct HostLoop<T: Real = f32> {
    /// The control problem.
    pub problem: Problem,
    /// Steps per episode.
    pub horizon: usize,
    /// The network.
    pub shape: Shape,
    eyes: Eyes,
    motion: Motion<T>,
    actuators: Actuators<T>,
    field: Steps<T>,
    score: Score<T>,
    /// What agents read fields with, each where that is not the field itself.
    sensors: Vec<Option<Sensor>>,
    /// Standard deviations of the noise on other fields that are seen.
    noises: Vec<OtherNoise>,
    /// Largest change of a force in a step, where actuators are slow.
    change: Option<T>,
    /// Where agents stand, if there are episodes in which they see by themselves.
    stands: Option<Stands>,
    /// Traces of finished backward passes, to be written again.
    spare: Mutex<Vec<Trace<T>>>,
}

/// Whose rows are whose in a group: agents of an episode beside each other, episode after episode.
#[derive(Debug, Clone)]
struct Rows(Vec<usize>);

impl Rows {
    fn of(trials: &[Trial]) -> Self {
        let ends = trials.iter().scan(0, |end, trial| {
            *end += trial.agents();
            Some(*end)
        });
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// All of them.
    fn all(&self) -> usize {
        self.0[self.0.len() - 1]
    }

    fn episodes(&self) -> usize {
        self.0.len() - 1
    }

    /// Agents of each episode.
    fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// The values of an episode's agents, of `width` each.
    fn of_episode(&self, episode: usize, width: usize) -> Range<usize> {
        self.0[episode] * width..self.0[episode + 1] * width
    }

    /// Every row with its episode and which of its agents it is.
    fn people(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let episodes = self.0.windows(2).enumerate();
        episodes.flat_map(|(e, ends)| {
            (ends[0]..ends[1])
                .enumerate()
                .map(move |(a, row)| (row, e, a))
        })
    }
}

/// Episodes that run together.
struct Group<'a, T> {
    trials: &'a [Trial],
    scripts: &'a [Script<T>],
    rows: Rows,
}

impl<'a, T> Group<'a, T> {
    fn new(which: &Range<usize>, trials: &'a [Trial], scripts: &'a [Script<T>]) -> Self {
        let trials = &trials[which.clone()];
        Self {
            trials,
            scripts: &scripts[which.clone()],
            rows: Rows::of(trials),
        }
    }
}

/// What an episode holds for its swarm: the target, and what acts on the field besides.
#[derive(Debug)]
struct Script<T> {
    target: Vec<T>,
    /// Where it goes, one after the other.
    goals: Vec<(Vec<T>, Course)>,
    pushes: Vec<(Vec<T>, Course)>,
}

impl<T: Real> Script<T> {
    fn of(episode: &Episode) -> Self {
        let change = |change: &Change| (cast(&change.field), change.course.clone());
        Self {
            target: cast(&episode.target),
            goals: episode.goals.iter().map(change).collect(),
            pushes: episode.pushes.iter().map(change).collect(),
        }
    }

    /// The target after so many steps; `room` is overwritten where it has to be made.
    fn target<'a>(&'a self, step: usize, room: &'a mut Vec<T>) -> &'a [T] {
        if self.goals.is_empty() {
            return &self.target;
        }
        room.clone_from(&self.target);
        for (goal, course) in &self.goals {
            let share = T::of(course.at(step));
            for (target, &to) in room.iter_mut().zip(goal) {
                *target = share.fused(to - *target, *target);
            }
        }
        room
    }

    /// Adds what acts on the field in a step.
    fn push(&self, step: usize, forcing: &mut [T]) {
        for (push, course) in &self.pushes {
            let strength = T::of(course.at(step));
            for (force, &push) in forcing.iter_mut().zip(push) {
                *force = strength.fused(push, *force);
            }
        }
    }
}

/// Cuts episodes into groups that fill so many rows as well as they go, in order.
fn groups(trials: &[Trial], most: usize) -> Vec<Range<usize>> {
    let (mut groups, mut first, mut rows) = (Vec::new(), 0, 0);
    for (k, trial) in trials.iter().enumerate() {
        if k > first && rows + trial.agents() > most {
            groups.push(first..k);
            (first, rows) = (k, 0);
        }
        rows += trial.agents();
    }
    if first < trials.len() {
        groups.push(first..trials.len());
    }
    groups
}

/// What the forward pass of one group leaves for the backward pass.
#[derive(Debug)]
struct Trace<T> {
    /// [horizon + 1, episodes, grid]
    fields: Vec<T>,
    /// [horizon + 1, rows, axes]
    positions: Vec<T>,
    /// What agents remember: [horizon + 1, rows, memory].
    memories: Vec<T>,
    /// [horizon, rows · activation width]
    activations: Vec<T>,
    /// [horizon, rows · place width]; one step of it where agents stay.
    places: Vec<T>,
    /// What agents did: [horizon, rows, actions].
    applied: Vec<T>,
    /// [horizon, episodes · the field's own]
    tape: Vec<T>,
    /// What sensors read, where agents see by themselves: [horizon, episodes, sensors].
    readings: Vec<T>,
    /// The step from which on each agent sees enough to act.
    wakes: Vec<usize>,
    /// What each episode's field does in a step.
    steps: Mixed<T>,
    scratch: Scratch<T>,
}

/// Buffers of one time step.
#[derive(Debug)]
struct Scratch<T> {
    scene: Scene<T>,
    g_scene: Scene<T>,
    /// A target that changes, as it is in the step at hand.
    target: Vec<T>,
    /// An episode's errors, as they count.
    error: Vec<T>,
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
    /// Gradient of what sensors read, by all who saw it later.
    g_readings: Vec<T>,
    /// [horizon, rows, outputs]: actions take effect after a delay, gradients come back before it.
    g_outputs: Vec<T>,
    g_applied: Vec<T>,
    /// Gradient of the force that a slow actuator goes on from, [rows].
    g_force: Vec<T>,
    /// Gradient of the later step's change of velocity, [rows, axes].
    g_change: Vec<T>,
    g_input: Vec<T>,
    /// Gradient of what agents remember after the step at hand, then of what they did before it.
    g_memory: Vec<T>,
    network: Workspace<T>,
}

/// Who decides what agents do: plans as far as they go, then the network.
#[derive(Debug)]
struct Pilot<T> {
    /// The shared network, from what each agent sees.
    network: Option<Box<Network<T>>>,
    /// Plans for the first steps of each episode, or for all: [steps, agents, actions] before tanh.
    plans: Vec<Vec<T>>,
}

/// What [`HostLoop::forward`] keeps for [`HostLoop::backward`].
#[derive(Debug)]
pub struct Tape<T> {
    pilot: Pilot<T>,
    scripts: Vec<Script<T>>,
    groups: Vec<(Range<usize>, Trace<T>)>,
}

impl<T: Real> HostLoop<T> {
    /// Episodes of `problem`, whose field takes the steps of `field`, with `horizon` steps under the
    /// network of `config`. Refuses a truth on another grid than the sensors': agents are shown the
    /// field that is stepped.
    pub fn new(
        problem: &Problem,
        field: Box<dyn FieldStep<T>>,
        horizon: usize,
        config: &PolicyConfig,
    ) -> Result<Self, NotImplemented> {
        assert!(horizon > 0);
        if problem.grid != problem.sensors {
            return Err(NotImplemented {
                part: "the trainer",
                form: problem.described(),
                remedy: "train on the published grid; agents see the same on any",
            });
        }
        let stands = match problem.kit.is_some_and(|kit| kit.training.by_themselves()) {
            true => Some(Stands::new(problem, &config.sight)?),
            false => None,
        };
        Ok(Self {
            problem: *problem,
            horizon,
            stands,
            shape: config.shape.clone(),
            eyes: Eyes::new(problem, &config.sight),
            motion: Motion::new(problem),
            actuators: Actuators::new(problem),
            field: Steps::new(problem, field),
            score: Score::new(problem, horizon),
            change: Some(problem.force_change())
                .filter(|change| change.is_finite())
                .map(T::of),
            sensors: match problem.kit {
                None => vec![None],
                Some(kit) => (kit.sensors.iter().copied())
                    .map(|sensor| Some(sensor).filter(|sensor| !sensor.is_faithful()))
                    .collect(),
            },
            noises: OtherNoise::of(problem),
            spare: Mutex::default(),
        })
    }

    /// The same for episodes whose coefficients are not the problem's, with the steps that `make` makes.
    pub fn for_family(mut self, make: Box<MakeStep<T>>) -> Self {
        self.field.others(make);
        self
    }

    /// Runs the episodes; returns their terms, `[episodes][term]`, and what the adjoint needs.
    pub fn forward(&self, parameters: &[f32], trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
        let pilot = Pilot {
            network: Some(Box::new(Network::new(&self.shape, parameters))),
            plans: Vec::new(),
        };
        self.fly(pilot, trials)
    }

    /// Runs the episodes with a plan for each, [horizon, agents, actions] before tanh, instead of a
    /// policy.
    pub fn forward_plans(&self, plans: Vec<Vec<T>>, trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
        assert_eq!(plans.len(), trials.len());
        let network = None;
        self.fly(Pilot { network, plans }, trials)
    }

    /// Runs one episode in which a plan, [steps, agents, actions] before tanh, is followed to its end and
    /// then a policy, which has seen all of it; returns its terms and what was decided in all its steps,
    /// [horizon, agents, actions], after tanh.
    pub fn relay(&self, begun: Vec<T>, parameters: &[f32], trial: &Trial) -> (Terms, Vec<T>) {
        let pilot = Pilot {
            network: Some(Box::new(Network::new(&self.shape, parameters))),
            plans: vec![begun],
        };
        let (terms, tape) = self.fly(pilot, std::slice::from_ref(trial));
        let (rows, trace) = (trial.agents(), &tape.groups[0].1);
        let slabs = (trace.activations).chunks_exact(self.slab(rows));
        let decided = slabs.flat_map(|slab| {
            let output = network::activations(&self.shape, self.asked(rows), slab).output;
            (0..rows).flat_map(move |row| self.decided(output, row).iter().copied())
        });
        let decided = decided.collect();
        self.recycle(tape);
        (terms[0], decided)
    }

    /// What a network decides for each agent of an episode, [agents, actions], when the episode has come to
    /// where the trial begins.
    pub fn decisions(&self, network: &Network<T>, trial: &Trial) -> Vec<T> {
        let scripts = [Script::of(&trial.episode)];
        let group = Group::new(&(0..1), std::slice::from_ref(trial), &scripts);
        let mut trace = self.trace(&group.rows);
        self.begin(&group, &mut trace);
        let Trace {
            fields,
            positions,
            memories,
            activations,
            places,
            readings,
            scratch: s,
            ..
        } = &mut trace;
        let rows = group.rows.all();
        let field = &fields[..self.problem.state_len()];
        let position = &positions[..rows * self.shape.axes];
        let slab = &mut activations[..self.slab(rows)];
        let mut now = network::activations_mut(&self.shape, self.asked(rows), slab);
        self.recall(&memories[..rows * self.shape.memory], &mut now);
        self.observe(&group, 0, (field, position), readings, &mut now, s);
        self.decide(network, 0, position, places, &mut now, s);
        let decided = (0..rows).flat_map(|row| self.decided(now.output, row).iter().copied());
        let decided = decided.collect();
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        spare.push(trace);
        decided
    }

    /// What a decision, after tanh, tells an agent: a force, and a velocity along each axis.
    pub fn order(&self, decided: &[T]) -> (T, [T; 2]) {
        let mut action = [T::ZERO; MOST_ACTIONS];
        let actions = self.shape.actions;
        self.motion.saturate(decided, &mut action[..actions]);
        let mut velocity = [T::ZERO; 2];
        for (to, from) in velocity
            .iter_mut()
            .zip(&action[self.motion.velocity_at()..actions])
        {
            *to = *from;
        }
        match self.motion.has_force() {
            true => (action[0], velocity),
            false => (T::ZERO, velocity),
        }
    }

    fn fly(&self, pilot: Pilot<T>, trials: &[Trial]) -> (Vec<Terms>, Tape<T>) {
        let scripts: Vec<Script<T>> = trials.iter().map(|t| Script::of(&t.episode)).collect();
        let most = match self.shape.seats {
            None => GROUP_ROWS,
            Some(seats) => {
                seats * (GROUP_POINTS / self.problem.state_len()).clamp(1, GROUP_EPISODES)
            }
        };
        let seated = |trial: &Trial| self.shape.seats.is_none_or(|n| n == trial.agents());
        assert!(
            trials.iter().all(seated),
            "a network for so many agents decides for no others"
        );
        let (terms, groups): (Vec<_>, Vec<_>) = groups(trials, most)
            .into_par_iter()
            .map(|which| {
                let group = Group::new(&which, trials, &scripts);
                let mut trace = self.trace(&group.rows);
                let terms = self.forward_group(&pilot, which.start, &group, &mut trace);
                (terms, (which, trace))
            })
            .unzip();
        let tape = Tape {
            pilot,
            scripts,
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
        let (pilot, scripts) = (&tape.pilot, &tape.scripts);
        let gradients = tape
            .groups
            .par_iter_mut()
            .map(|(which, trace)| {
                let group = Group::new(which, trials, scripts);
                self.backward_group(pilot, &group, &g_terms[which.clone()], trace)
            })
            .collect();
        self.recycle(tape);
        gradients
    }

    /// Keeps the buffers of a tape that needs no backward pass, unless it overflowed: zero times what is
    /// no number is none.
    pub fn recycle(&self, tape: Tape<T>) {
        let traces = tape.groups.into_iter().map(|(_, trace)| trace);
        let traces = traces.filter(|trace| {
            let last = trace.fields.len() / (self.horizon + 1) * self.horizon;
            trace.fields[last..].iter().all(|z| z.wide().is_finite())
        });
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        spare.extend(traces);
    }

    /// Room for a group, in the smallest trace that is not needed any more and large enough.
    fn trace(&self, group: &Rows) -> Trace<T> {
        let rows = group.all();
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        let by_room = |&(_, trace): &(usize, &Trace<T>)| {
            let room = trace.positions.capacity();
            (room < (self.horizon + 1) * rows * self.shape.axes, room)
        };
        let found = spare.iter().enumerate().min_by_key(by_room).map(|(k, _)| k);
        let found = found.map(|k| spare.swap_remove(k));
        drop(spare);
        let mut trace = found.unwrap_or_else(|| Trace::new(&self.eyes));
        self.fit(&mut trace, group);
        trace
    }

    /// Gives every part of a trace the size that a group needs.
    fn fit(&self, trace: &mut Trace<T>, group: &Rows) {
        let (episodes, rows, horizon) = (group.episodes(), group.all(), self.horizon);
        let asked = self.asked(rows);
        let (n, axes, actions) = (
            self.problem.state_len(),
            self.shape.axes,
            self.shape.actions,
        );
        let components = self.problem.components();
        let forcing = episodes * components * self.problem.grid.len();
        let s = &mut trace.scratch;
        for (part, size) in [
            (&mut trace.fields, (horizon + 1) * episodes * n),
            (&mut trace.positions, (horizon + 1) * rows * axes),
            (
                &mut trace.memories,
                (horizon + 1) * rows * self.shape.memory,
            ),
            (&mut trace.activations, horizon * self.slab(rows)),
            (
                &mut trace.places,
                self.places_kept() * asked * network::place_width(&self.shape),
            ),
            (&mut trace.applied, horizon * rows * actions),
            (&mut trace.tape, horizon * episodes * self.field.tape_len()),
            (&mut trace.readings, horizon * episodes * self.sensed()),
            (&mut s.g_readings, horizon * episodes * self.sensed()),
            (&mut s.error, n),
            (&mut s.scaled, rows * axes),
            (&mut s.amplitudes, rows * components),
            (&mut s.g_amplitudes, rows * components),
            (&mut s.forcing, forcing),
            (&mut s.field, episodes * self.field.scratch_len()),
            (&mut s.g_field, episodes * n),
            (&mut s.g_next, episodes * n),
            (&mut s.g_forcing, forcing),
            (&mut s.g_positions, rows * axes),
            (&mut s.g_scaled, rows * axes),
            (&mut s.g_offer, asked * network::offer_width(&self.shape)),
            (&mut s.g_outputs, horizon * asked * self.shape.outputs()),
            (&mut s.g_applied, rows * actions),
            (&mut s.g_force, rows),
            (&mut s.g_change, rows * axes),
            (&mut s.g_input, asked * self.shape.inputs()),
            (&mut s.g_memory, rows * self.shape.memory),
        ] {
            part.resize(size, T::ZERO);
        }
        s.network.fit(&self.shape, asked);
        s.kernels.resize_with(episodes, Kernels::default);
        for (kernels, agents) in s.kernels.iter_mut().zip(group.sizes()) {
            self.actuators.fit(kernels, agents);
        }
    }

    /// How often a network is evaluated in a step for so many agents.
    fn asked(&self, agents: usize) -> usize {
        agents / self.shape.decides_for()
    }

    /// Values that these evaluations leave.
    fn slab(&self, agents: usize) -> usize {
        self.asked(agents) * network::activation_width(&self.shape)
    }

    /// The values of the evaluations for an episode, of `width` each.
    fn asked_in(&self, rows: &Rows, episode: usize, width: usize) -> Range<usize> {
        let Range { start, end } = rows.of_episode(episode, 1);
        self.asked(start) * width..self.asked(end) * width
    }

    /// Steps for which the trunk is evaluated.
    fn places_kept(&self) -> usize {
        if self.motion.moves() { self.horizon } else { 1 }
    }

    /// Puts every agent's kernel where the agent is.
    fn place(&self, rows: &Rows, positions: &[T], kernels: &mut [Kernels<T>]) {
        for (e, kernels) in kernels.iter_mut().enumerate() {
            let agents = rows.of_episode(e, self.shape.axes);
            self.actuators.place(&positions[agents], kernels);
        }
    }

    /// What agents spread: forces, or velocities where they stir.
    fn amplitudes(&self, applied: &[T], amplitudes: &mut [T]) {
        let actions = applied.chunks_exact(self.shape.actions);
        match self.problem.actuation.drives {
            Drives::Source => {
                let each = amplitudes.chunks_exact_mut(self.problem.components());
                for (amplitude, action) in each.zip(actions) {
                    amplitude.fill(T::ZERO);
                    amplitude[self.problem.driven_field()] = action[0];
                }
            }
            Drives::Flow => amplitudes.copy_from_slice(applied),
        }
    }

    /// The forcing on each episode's field.
    fn force(&self, group: &Group<T>, step: usize, s: &mut Scratch<T>) {
        let components = self.problem.components();
        let fields = s
            .forcing
            .chunks_exact_mut(components * self.problem.grid.len());
        for (e, (forcing, kernels)) in fields.zip(&mut s.kernels).enumerate() {
            let agents = group.rows.of_episode(e, components);
            self.actuators
                .spread(&s.amplitudes[agents], kernels, forcing);
            group.scripts[e].push(step, forcing);
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

    /// Runs a group of the episodes; returns their terms and leaves the way in the trace.
    fn forward_group(
        &self,
        pilot: &Pilot<T>,
        first: usize,
        group: &Group<T>,
        trace: &mut Trace<T>,
    ) -> Vec<Terms> {
        let (count, crew) = (group.trials.len(), &group.rows);
        let (n, rows) = (count * self.problem.state_len(), crew.all());
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let mut sums = vec![[0.0; TERMS]; count];
        self.begin(group, trace);
        let Trace {
            fields,
            positions,
            memories,
            activations,
            places,
            applied,
            tape,
            readings,
            wakes,
            steps,
            scratch: s,
            ..
        } = trace;
        let slab = self.slab(rows);
        let taped = count * self.field.tape_len();
        for step in 0..self.horizon {
            let (field, next_field) = around(fields, step, n);
            let (position, next_position) = around(positions, step, rows * axes);
            let (before, now) = activations.split_at_mut(step * slab);
            let asked = self.asked(rows);
            let mut now = network::activations_mut(&self.shape, asked, &mut now[..slab]);
            if let Some(network) = &pilot.network {
                let (memory, next_memory) = around(memories, step, rows * self.shape.memory);
                self.recall(memory, &mut now);
                self.observe(group, step, (field, position), readings, &mut now, s);
                self.decide(network, step, position, places, &mut now, s);
                self.remember(memory, &*now.output, next_memory);
                // Who sees too little is not asked.
                for (row, _) in asleep(wakes, step) {
                    let own = row * self.shape.memory..(row + 1) * self.shape.memory;
                    next_memory[own.clone()].copy_from_slice(&memory[own]);
                }
            }
            if let Some(plans) = pilot.plans.get(first..first + count) {
                self.follow(crew, plans, step, &mut now);
            }
            let (done, doing) = applied.split_at_mut(step * rows * actions);
            let doing = &mut doing[..rows * actions];
            self.act(group, step, wakes, (before, &*now.output), (done, doing));

            self.amplitudes(doing, &mut s.amplitudes);
            self.force(group, step, s);
            let tape = &mut tape[step * taped..][..taped];
            steps.advance(step, field, &s.forcing, next_field, tape, &mut s.field);
            self.travel(crew, position, doing, next_position, s);
            let old = step.checked_sub(1).map(|old| &done[old * rows * actions..]);
            let reached = Reached {
                fields: next_field,
                positions: next_position,
                actions: doing,
                actions_before: old,
            };
            self.add_scores(group, step, reached, s, &mut sums);
        }
        sums.iter()
            .zip(self.shares(crew))
            .map(|(sums, shares)| means(sums, &shares))
            .collect()
    }

    /// The shares of each episode's terms.
    fn shares(&self, rows: &Rows) -> impl Iterator<Item = Terms> {
        let sizes = rows.sizes();
        sizes.map(|agents| shares(&self.problem, agents, self.horizon))
    }

    /// Puts fields and agents where the episodes begin.
    fn begin(&self, group: &Group<T>, trace: &mut Trace<T>) {
        let (n, axes, rows) = (self.problem.state_len(), self.shape.axes, &group.rows);
        let physics = group.trials.iter().map(|trial| trial.physics);
        trace.steps = self.field.of(physics);
        for (e, trial) in group.trials.iter().enumerate() {
            trace.fields[e * n..][..n].copy_from_slice(&cast::<T>(&trial.episode.initial));
            let start = trace.positions[rows.of_episode(e, axes)].chunks_exact_mut(axes);
            for (to, from) in start.zip(&trial.start) {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = T::of(from);
                }
            }
        }
        trace.memories[..rows.all() * self.shape.memory].fill(T::ZERO);
        let wakes = rows.people().map(|(_, e, agent)| {
            let trial = &group.trials[e];
            let alone = trial.by_themselves.is_some();
            alone.then(|| self.stands().wakes(trial, agent, self.horizon))
        });
        trace.wakes.clear();
        trace.wakes.extend(wakes.map(Option::unwrap_or_default));
        self.place(rows, &trace.positions, &mut trace.scratch.kernels);
    }

    /// What agents remember is part of what the network reads.
    fn recall(&self, memory: &[T], now: &mut Activations<&mut [T]>) {
        let Shape {
            features,
            memory: size,
            ..
        } = self.shape;
        if size > 0 {
            let inputs = now.input.chunks_exact_mut(self.shape.inputs());
            for (input, memory) in inputs.zip(memory.chunks_exact(size)) {
                input[features..].copy_from_slice(memory);
            }
        }
    }

    /// What agents remember after a step that gave these outputs.
    fn remember(&self, memory: &[T], output: &[T], next: &mut [T]) {
        let size = self.shape.memory;
        if size > 0 {
            let outputs = output.chunks_exact(self.shape.outputs());
            let memories = memory.chunks_exact(size).zip(next.chunks_exact_mut(size));
            for (output, (memory, next)) in outputs.zip(memories) {
                let (pushes, gates) = output.split_at(size);
                for k in 0..size {
                    next[k] = kept(memory[k], pushes[k], gates[k]).within(-T::ONE, T::ONE);
                }
            }
        }
    }

    /// Back through what agents remember: from the memory after a step to the step's pushes and gates,
    /// and, as far as it was kept, to the memory before it.
    fn memory_adjoint(
        &self,
        step: usize,
        wakes: &[usize],
        memory: &[T],
        output: &[T],
        s: &mut Scratch<T>,
    ) {
        let (size, width) = (self.shape.memory, self.shape.outputs());
        if size == 0 {
            return;
        }
        let g_outputs = &mut s.g_outputs[step * output.len()..][..output.len()];
        for (row, _) in wakes
            .iter()
            .enumerate()
            .filter(|(_, wakes)| step >= **wakes)
        {
            let (pushes, gates) = output[row * width..].split_at(size);
            let g_output = &mut g_outputs[row * width..][..width];
            for k in 0..size {
                let (m, g) = (memory[row * size + k], &mut s.g_memory[row * size + k]);
                let whole = kept(m, pushes[k], gates[k]);
                if whole != whole.within(-T::ONE, T::ONE) {
                    *g = T::ZERO;
                }
                g_output[k] = T::of(f64::from(GAIN)) * *g;
                g_output[size + k] = T::of(f64::from(-LEAK)) * m * *g;
                *g = kept(*g, T::ZERO, gates[k]);
            }
        }
    }

    /// What every agent sees of its field.
    fn observe(
        &self,
        group: &Group<T>,
        step: usize,
        (field, position): (&[T], &[T]),
        readings: &mut [T],
        now: &mut Activations<&mut [T]>,
        s: &mut Scratch<T>,
    ) {
        let Group {
            trials,
            scripts,
            rows,
        } = group;
        let n = self.problem.state_len();
        let (axes, features, inputs) = (self.shape.axes, self.shape.features, self.shape.inputs());
        let told = self.shape.coordinates();
        for (e, trial) in trials.iter().enumerate() {
            let (state, aim) = (&field[e * n..][..n], scripts[e].target(step, &mut s.target));
            let (seen, target) = (self.problem.seen(state), self.problem.seen(aim));
            if trial.by_themselves.is_some() {
                let stands = self.stands();
                let at = |(step, sensor): (usize, usize)| {
                    (step * trials.len() + e) * stands.sensors() + sensor
                };
                for sensor in 0..stands.sensors() {
                    let (value, _) = self.reading(trial, step, seen, sensor);
                    readings[at((step, sensor))] = value;
                }
                let inputs = now.input[rows.of_episode(e, inputs)].chunks_exact_mut(inputs);
                for (agent, input) in inputs.enumerate() {
                    let read = |reading| readings[at(reading)];
                    stands.observe((trial, agent, step), read, target, &mut input[..features]);
                }
                continue;
            }
            difference(seen, target, &mut s.scene.error);
            disturb(trial, trial.sensor_noise, step, &mut s.scene.error);
            self.eyes.survey(&mut s.scene);
            self.eyes.means(target, &mut s.scene.aim);
            if let Some(sensor) = &self.sensors[0] {
                // The coarse view's cells are readings as the window's are, of means.
                read(sensor, &s.scene.aim, &mut s.scene.coarse);
                read(sensor, target, &mut s.scene.error);
            }
            self.others(trial, step, state, aim, &mut s.scene.others);
            for (cells, sensor, target) in self.other_sensors(aim) {
                read(sensor, target, &mut s.scene.others[cells]);
            }
            self.eyes.slopes(&mut s.scene);
            let seen = now.input[self.asked_in(rows, e, inputs)].chunks_exact_mut(inputs);
            let agents = position[rows.of_episode(e, axes)].chunks_exact(told);
            for (at, seen) in agents.zip(seen) {
                let cell = self.cell(&at[..axes]);
                self.eyes.observe(&s.scene, cell, &mut seen[..features]);
            }
        }
    }

    /// Where agents stand.
    fn stands(&self) -> &Stands {
        let stands = self.stands.as_ref();
        stands.expect("episodes in which agents see by themselves are drawn where a file says so")
    }

    /// Sensors of an episode in which they do.
    fn sensed(&self) -> usize {
        self.stands.as_ref().map_or(0, Stands::sensors)
    }

    /// What a sensor of an agent by itself reads of the field that is seen, with the noise that all who see
    /// its grid point have in that step; and whether it goes along with the field.
    fn reading(&self, trial: &Trial, step: usize, seen: &[T], sensor: usize) -> (T, bool) {
        let point = self.stands().points()[sensor];
        let mut value = seen[point];
        if trial.sensor_noise > 0.0 {
            let index = (step * seen.len() + point) as u64;
            value += T::of(trial.sensor_noise * noise(trial.noise_seed, index));
        }
        match &self.sensors[0] {
            None => (value, true),
            Some(sensor) => {
                let wide = value.wide();
                (T::of(sensor.reading(wide)), sensor.follows(wide))
            }
        }
    }

    /// What reaches the sensors of the fields that agents see besides.
    fn others(&self, trial: &Trial, step: usize, state: &[T], aim: &[T], others: &mut [T]) {
        let n = self.problem.grid.len();
        let fields = self.problem.also_seen().iter().zip(&self.noises);
        let errors = others.chunks_exact_mut(n);
        for (k, ((field, noise), error)) in fields.zip(errors).enumerate() {
            let at = field * n;
            difference(&state[at..][..n], &aim[at..][..n], error);
            // Behind the numbers that the first field's noise is made of.
            disturb(
                trial,
                noise.in_trial(trial),
                (k + 1) * self.horizon + step,
                error,
            );
        }
    }

    /// Those of them that sensors do not show as they are: where they stand, and what they should be.
    fn other_sensors<'a>(
        &'a self,
        aim: &'a [T],
    ) -> impl Iterator<Item = (Range<usize>, &'a Sensor, &'a [T])> {
        let n = self.problem.grid.len();
        let sensors = self.sensors[1..].iter().zip(self.problem.also_seen());
        sensors.enumerate().filter_map(move |(k, (sensor, field))| {
            Some((k * n..(k + 1) * n, sensor.as_ref()?, &aim[field * n..][..n]))
        })
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
        let rows = position.len() / self.shape.coordinates();
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

    /// What the plans say instead, where they say something.
    fn follow(&self, rows: &Rows, plans: &[Vec<T>], step: usize, now: &mut Activations<&mut [T]>) {
        let actions = self.shape.actions;
        for (row, e, agent) in rows.people() {
            let at = (step * rows.of_episode(e, 1).len() + agent) * actions;
            let planned = &mut now.output[self.deed(row)..][..actions];
            for (to, from) in planned.iter_mut().zip(plans[e].iter().skip(at)) {
                *to = from.squash();
            }
        }
    }

    /// What agents do: what they decided now, or some steps ago, within their limits; nothing after
    /// their end.
    fn act(
        &self,
        group: &Group<T>,
        step: usize,
        wakes: &[usize],
        (before, decided): (&[T], &[T]),
        (done, doing): (&[T], &mut [T]),
    ) {
        let crew = &group.rows;
        let (rows, actions) = (crew.all(), self.shape.actions);
        let (slab, asked) = (self.slab(rows), self.asked(rows));
        for (row, e, agent) in crew.people() {
            let (trial, action) = (&group.trials[e], &mut doing[row * actions..][..actions]);
            action.fill(T::ZERO);
            if wakes[row].saturating_add(trial.delay) > step || step >= trial.dies_at[agent] {
                continue;
            }
            let output = match trial.delay {
                0 => decided,
                delay => {
                    network::activations(&self.shape, asked, &before[(step - delay) * slab..])
                        .output
                }
            };
            self.command(trial, (step, agent), self.decided(output, row), action);
            if let Some(change) = self.change {
                let reached = self.reached(done, step, row);
                action[0] = moved(reached, action[0], change);
            }
        }
    }

    /// What an actuator is told.
    fn command(
        &self,
        trial: &Trial,
        (step, agent): (usize, usize),
        decided: &[T],
        action: &mut [T],
    ) {
        self.motion.saturate(decided, action);
        if trial.actuator_noise > 0.0 && self.motion.has_force() {
            let index = (step * trial.agents() + agent) as u64;
            let off = trial.actuator_noise * noise(!trial.noise_seed, index);
            action[0] += T::of(off);
        }
    }

    /// The force before a step, of what was done in all steps so far.
    fn reached(&self, done: &[T], step: usize, row: usize) -> T {
        let actions = self.shape.actions;
        match step.checked_sub(1) {
            None => T::ZERO,
            Some(last) => {
                let rows = done.len() / step;
                done[last * rows + row * actions]
            }
        }
    }

    /// The actions among what came out for a row.
    fn decided<'a>(&self, outputs: &'a [T], row: usize) -> &'a [T] {
        &outputs[self.deed(row)..][..self.shape.actions]
    }

    /// Where they begin among what came out for all rows.
    fn deed(&self, row: usize) -> usize {
        let Shape {
            memory, actions, ..
        } = self.shape;
        let (asked, seat) = (self.asked(row), row % self.shape.decides_for());
        asked * self.shape.outputs() + 2 * memory + seat * actions
    }

    /// Where agents go, and their kernels with them.
    fn travel(&self, rows: &Rows, from: &[T], doing: &[T], to: &mut [T], s: &mut Scratch<T>) {
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        to.copy_from_slice(from);
        if !self.motion.moves() {
            return;
        }
        let agents = from.chunks_exact(axes).zip(doing.chunks_exact(actions));
        for ((from, action), to) in agents.zip(to.chunks_exact_mut(axes)) {
            let velocity = &action[self.motion.velocity_at()..];
            to.copy_from_slice(&self.motion.travel(from, velocity).to[..axes]);
        }
        self.place(rows, to, &mut s.kernels);
    }

    /// Adds to the episodes' sums what a step led to and cost.
    fn add_scores(
        &self,
        group: &Group<T>,
        step: usize,
        reached: Reached<T>,
        s: &mut Scratch<T>,
        sums: &mut [Terms],
    ) {
        let Group { scripts, rows, .. } = group;
        let n = self.problem.state_len();
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        for (e, sums) in sums.iter_mut().enumerate() {
            let target = scripts[e].target(step + 1, &mut s.target);
            let state = &reached.fields[e * n..][..n];
            self.score.errors(state, target, &mut s.error);
            self.score.field(&s.error, target, step, sums);
            let agents = rows.of_episode(e, actions);
            let doing = &reached.actions[agents.clone()];
            let forces = doing.chunks_exact(actions).map(|a| a[0]);
            let forces = forces.filter(|_| self.motion.has_force());
            self.score.actions(forces, self.velocities(doing), sums);
            if !self.motion.moves() {
                continue;
            }
            self.score
                .positions(&reached.positions[rows.of_episode(e, axes)], sums);
            if let Some(before) = reached.actions_before {
                let pairs = self.velocities(doing).zip(self.velocities(&before[agents]));
                self.score.change(pairs.map(|(v, w)| v - w), sums);
            }
        }
    }

    /// The gradient of Σ g · terms of a group by the network's parameters, or by its plans.
    fn backward_group(
        &self,
        pilot: &Pilot<T>,
        group: &Group<T>,
        g_terms: &[Terms],
        trace: &mut Trace<T>,
    ) -> Vec<T> {
        let (count, crew) = (group.trials.len(), &group.rows);
        let (n, rows) = (count * self.problem.state_len(), crew.all());
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let pulls: Vec<Terms> = (g_terms.iter().zip(self.shares(crew)))
            .map(|(g, shares)| std::array::from_fn(|k| g[k] * shares[k]))
            .collect();
        let mut gradient = match pilot.network {
            Some(_) => vec![T::ZERO; self.shape.parameters()],
            None => vec![T::ZERO; self.horizon * rows * actions],
        };
        let Trace {
            fields,
            positions,
            memories,
            activations,
            places,
            applied,
            tape,
            wakes,
            steps,
            scratch: s,
            ..
        } = trace;
        let slab = self.slab(rows);
        let taped = count * self.field.tape_len();
        s.clear_gradients();
        if !self.motion.moves() {
            self.place(crew, &positions[..rows * axes], &mut s.kernels);
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
            let asked = self.asked(rows);
            let now = network::activations(&self.shape, asked, &activations[step * slab..]);

            self.scores_adjoint(group, step, &pulls, &reached, s);
            self.actions_adjoint(crew, &pulls, &reached, position, s);
            let interval = Interval {
                fields: field,
                forcing: &[],
                next: reached.fields,
                tape: &tape[step * taped..][..taped],
            };
            self.field_adjoint(
                group,
                step,
                (steps, interval),
                (position, reached.actions),
                s,
            );
            self.decisions_adjoint(group, step, wakes, activations, applied, s);
            match &pilot.network {
                Some(network) => {
                    let memory = &memories[step * rows * self.shape.memory..];
                    self.memory_adjoint(step, wakes, memory, now.output, s);
                    self.network_adjoint(network, step, places, &now, s, &mut gradient);
                    self.sight_adjoint(group, step, (field, position), s);
                }
                None => self.plans_adjoint(crew, step, now.output, s, &mut gradient),
            }
            std::mem::swap(&mut s.g_next, &mut s.g_field);
        }
        gradient
    }

    /// Back through the score of the state that a step led to.
    fn scores_adjoint(
        &self,
        group: &Group<T>,
        step: usize,
        pulls: &[Terms],
        reached: &Reached<T>,
        s: &mut Scratch<T>,
    ) {
        let Group { scripts, rows, .. } = group;
        let (n, axes) = (self.problem.state_len(), self.shape.axes);
        for (e, pulls) in pulls.iter().enumerate() {
            let target = scripts[e].target(step + 1, &mut s.target);
            let state = &reached.fields[e * n..][..n];
            self.score.errors(state, target, &mut s.error);
            let g_next = &mut s.g_next[e * n..][..n];
            self.score
                .field_adjoint(&s.error, target, step, pulls, g_next);
            if self.motion.moves() {
                let agents = rows.of_episode(e, axes);
                let g_positions = &mut s.g_positions[agents.clone()];
                self.score
                    .positions_adjoint(&reached.positions[agents], pulls, g_positions);
            }
        }
    }

    /// Back through the agents' own score, and how they moved.
    fn actions_adjoint(
        &self,
        rows: &Rows,
        pulls: &[Terms],
        reached: &Reached<T>,
        position: &[T],
        s: &mut Scratch<T>,
    ) {
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let velocity_at = self.motion.velocity_at();
        for (row, e, _) in rows.people() {
            let (force_pull, velocity_pull) = self.score.action_pulls(&pulls[e]);
            let action = &reached.actions[row * actions..][..actions];
            let g = &mut s.g_applied[row * actions..][..actions];
            if self.motion.has_force() {
                g[0] = force_pull * action[0];
            }
            if !self.motion.moves() {
                continue;
            }
            let change_pull = self.score.change_pull(&pulls[e]);
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
        group: &Group<T>,
        step: usize,
        (steps, interval): (&Mixed<T>, Interval<T>),
        (position, doing): (&[T], &[T]),
        s: &mut Scratch<T>,
    ) {
        let (n, rows) = (self.problem.grid.len(), &group.rows);
        let (axes, actions) = (self.shape.axes, self.shape.actions);
        let components = self.problem.components();
        if self.motion.moves() {
            self.place(rows, position, &mut s.kernels);
        }
        self.amplitudes(doing, &mut s.amplitudes);
        self.force(group, step, s);
        let at = Interval {
            forcing: &s.forcing,
            ..interval
        };
        let g = Gradients {
            next: &s.g_next,
            fields: &mut s.g_field,
            forcing: &mut s.g_forcing,
        };
        steps.adjoint(step, at, g, &mut s.field);
        for (e, kernels) in s.kernels.iter_mut().enumerate() {
            let spread = rows.of_episode(e, components);
            let g_positions = &mut s.g_positions[rows.of_episode(e, axes)];
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
            match self.problem.actuation.drives {
                Drives::Source => g[0] += pull[self.problem.driven_field()],
                Drives::Flow => g.iter_mut().zip(pull).for_each(|(g, &pull)| *g += pull),
            }
        }
    }

    /// Back to the decisions: what was done now was decided now or some steps ago.
    fn decisions_adjoint(
        &self,
        group: &Group<T>,
        step: usize,
        wakes: &[usize],
        activations: &[T],
        applied: &[T],
        s: &mut Scratch<T>,
    ) {
        let crew = &group.rows;
        let (rows, actions) = (crew.all(), self.shape.actions);
        let (slab, asked) = (self.slab(rows), self.asked(rows));
        for (row, e, agent) in crew.people() {
            let (trial, g) = (
                &group.trials[e],
                &mut s.g_applied[row * actions..][..actions],
            );
            let later = std::mem::take(&mut s.g_force[row]);
            if wakes[row].saturating_add(trial.delay) > step || step >= trial.dies_at[agent] {
                continue;
            }
            let then = step - trial.delay;
            let decided = network::activations(&self.shape, asked, &activations[then * slab..]);
            let output = self.decided(decided.output, row);
            if let Some(change) = self.change {
                // The later step went on from this force.
                g[0] += later;
                let done = &applied[..step * rows * actions];
                let reached = self.reached(done, step, row);
                let mut told = [T::ZERO; MOST_ACTIONS];
                self.command(trial, (step, agent), output, &mut told[..actions]);
                if moved(reached, told[0], change) != told[0] {
                    // It stands where it could get to, whatever it was told.
                    s.g_force[row] = std::mem::replace(&mut g[0], T::ZERO);
                }
            }
            self.motion.saturate_adjoint(output, g);
            let at = then * asked * self.shape.outputs() + self.deed(row);
            s.g_outputs[at..][..actions].copy_from_slice(g);
        }
    }

    /// The gradient of the plans, which stand for decisions before their tanh; plan after plan.
    fn plans_adjoint(
        &self,
        rows: &Rows,
        step: usize,
        decided: &[T],
        s: &Scratch<T>,
        gradient: &mut [T],
    ) {
        let actions = self.shape.actions;
        let size = self.asked(rows.all()) * self.shape.outputs();
        let g_outputs = &s.g_outputs[step * size..][..size];
        for (row, e, agent) in rows.people() {
            let agents = rows.of_episode(e, actions);
            let at = self.horizon * agents.start + step * agents.len() + agent * actions;
            let outputs = self
                .decided(g_outputs, row)
                .iter()
                .zip(self.decided(decided, row));
            for (to, (&g, &y)) in gradient[at..].iter_mut().zip(outputs) {
                *to = g * (-y).fused(y, T::ONE);
            }
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
        let size = now.output.len();
        let rows = size / self.shape.outputs();
        let (kept, stand) = (self.places_kept(), rows * network::place_width(&self.shape));
        let placed = &places[step.min(kept - 1) * stand..][..stand];
        let placed = network::places(&self.shape, rows, placed);
        network.backward(
            &s.g_outputs[step * size..][..size],
            (&placed, now),
            &mut s.network,
            gradient,
            &mut s.g_offer,
            &mut s.g_input,
        );
        let Shape {
            features, memory, ..
        } = self.shape;
        if memory > 0 {
            let inputs = s.g_input.chunks_exact(self.shape.inputs());
            for (g, input) in s.g_memory.chunks_exact_mut(memory).zip(inputs) {
                g.iter_mut()
                    .zip(&input[features..])
                    .for_each(|(g, &i)| *g += i);
            }
        }
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
    fn sight_adjoint(
        &self,
        group: &Group<T>,
        step: usize,
        (field, position): (&[T], &[T]),
        s: &mut Scratch<T>,
    ) {
        let (n, rows) = (self.problem.state_len(), &group.rows);
        let (axes, features, inputs) = (self.shape.axes, self.shape.features, self.shape.inputs());
        let told = self.shape.coordinates();
        for e in 0..rows.episodes() {
            if group.trials[e].by_themselves.is_some() {
                self.standing_adjoint(group, e, step, &field[e * n..][..n], s);
                continue;
            }
            s.g_scene.clear();
            let agents = position[rows.of_episode(e, axes)].chunks_exact(told);
            let seen = s.g_input[self.asked_in(rows, e, inputs)].chunks_exact(inputs);
            for (at, g_seen) in agents.zip(seen) {
                let cell = self.cell(&at[..axes]);
                self.eyes
                    .observe_adjoint(&g_seen[..features], cell, &mut s.g_scene);
            }
            self.eyes.slopes_adjoint(&mut s.g_scene);
            let (trial, state) = (&group.trials[e], &field[e * n..][..n]);
            let aim = group.scripts[e].target(step, &mut s.target);
            if let Some(sensor) = &self.sensors[0] {
                let (seen, target) = (self.problem.seen(state), self.problem.seen(aim));
                difference(seen, target, &mut s.scene.error);
                disturb(trial, trial.sensor_noise, step, &mut s.scene.error);
                self.eyes.survey(&mut s.scene);
                self.eyes.means(target, &mut s.scene.aim);
                let (seen, g) = (&s.scene, &mut s.g_scene);
                read_adjoint(sensor, &seen.aim, &seen.coarse, &mut g.coarse);
                read_adjoint(sensor, target, &seen.error, &mut g.error);
            }
            self.others(trial, step, state, aim, &mut s.scene.others);
            for (cells, sensor, target) in self.other_sensors(aim) {
                let seen = &s.scene.others[cells.clone()];
                read_adjoint(sensor, target, seen, &mut s.g_scene.others[cells]);
            }
            self.eyes.survey_adjoint(&mut s.g_scene);
            let cells = self.problem.grid.len();
            let pulls = std::iter::once(&s.g_scene.error[..]);
            let pulls = pulls.chain(s.g_scene.others.chunks_exact(cells));
            let fields = std::iter::once(self.problem.seen_field());
            let fields = fields.chain(self.problem.also_seen().iter().copied());
            for (field, pull) in fields.zip(pulls) {
                let g_field = &mut s.g_field[e * n + field * cells..];
                for (g, &seen) in g_field.iter_mut().zip(pull) {
                    *g += seen;
                }
            }
        }
    }

    /// Back through what agents of an episode saw by themselves: to what was read in this step and before,
    /// and, all that see a reading of this step having told, to the field.
    fn standing_adjoint(
        &self,
        group: &Group<T>,
        e: usize,
        step: usize,
        state: &[T],
        s: &mut Scratch<T>,
    ) {
        let (stands, trial) = (self.stands(), &group.trials[e]);
        let (features, inputs) = (self.shape.features, self.shape.inputs());
        let at = |(step, sensor): (usize, usize)| {
            (step * group.trials.len() + e) * stands.sensors() + sensor
        };
        let seen = s.g_input[group.rows.of_episode(e, inputs)].chunks_exact(inputs);
        let g_readings = &mut s.g_readings;
        for (agent, g_seen) in seen.enumerate() {
            let pull = |reading, g| g_readings[at(reading)] += g;
            stands.observe_adjoint((trial, agent, step), &g_seen[..features], pull);
        }
        let first = e * state.len() + self.problem.seen_field() * self.problem.grid.len();
        let seen = self.problem.seen(state);
        for (sensor, &point) in stands.points().iter().enumerate() {
            let (_, follows) = self.reading(trial, step, seen, sensor);
            if follows {
                s.g_field[first + point] += g_readings[at((step, sensor))];
            }
        }
    }
}

impl<T: Real> Trace<T> {
    /// One without room.
    fn new(eyes: &Eyes) -> Self {
        Self {
            fields: Vec::new(),
            positions: Vec::new(),
            memories: Vec::new(),
            activations: Vec::new(),
            places: Vec::new(),
            applied: Vec::new(),
            tape: Vec::new(),
            readings: Vec::new(),
            wakes: Vec::new(),
            steps: Mixed::none(),
            scratch: Scratch {
                scene: eyes.scene(),
                g_scene: eyes.scene(),
                target: Vec::new(),
                error: Vec::new(),
                scaled: Vec::new(),
                kernels: Vec::new(),
                amplitudes: Vec::new(),
                g_amplitudes: Vec::new(),
                forcing: Vec::new(),
                field: Vec::new(),
                g_field: Vec::new(),
                g_next: Vec::new(),
                g_forcing: Vec::new(),
                g_positions: Vec::new(),
                g_scaled: Vec::new(),
                g_offer: Vec::new(),
                g_readings: Vec::new(),
                g_outputs: Vec::new(),
                g_applied: Vec::new(),
                g_force: Vec::new(),
                g_change: Vec::new(),
                g_input: Vec::new(),
                g_memory: Vec::new(),
                network: Workspace::default(),
            },
        }
    }
}

impl<T: Real> Scratch<T> {
    fn clear_gradients(&mut self) {
        for carried in [
            &mut self.g_next,
            &mut self.g_positions,
            &mut self.g_change,
            &mut self.g_force,
            &mut self.g_outputs,
            &mut self.g_readings,
            &mut self.g_memory,
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

/// What becomes of a number that is remembered, before it is cut to ±1. In the push and in the memory
/// it is linear.
fn kept<T: Real>(memory: T, push: T, gate: T) -> T {
    let leak = T::of(f64::from(LEAK)) * (T::ONE + gate);
    T::of(f64::from(GAIN)).fused(push, memory - leak * memory)
}

/// The agents that see too little in a step to act.
fn asleep(wakes: &[usize], step: usize) -> impl Iterator<Item = (usize, &usize)> {
    let all = wakes.iter().enumerate();
    all.filter(move |(_, wakes)| step < **wakes)
}

/// Where a force that can change by so much is next on its way to another.
fn moved<T: Real>(from: T, to: T, change: T) -> T {
    match to - from {
        up if up > change => from + change,
        down if down < -change => from - change,
        _ => to,
    }
}

/// Adds sensor noise of a standard deviation to what agents see of a field; every step has its own.
fn disturb<T: Real>(trial: &Trial, deviation: f64, step: usize, error: &mut [T]) {
    if deviation > 0.0 {
        let first = (step * error.len()) as u64;
        for (index, error) in (first..).zip(error) {
            *error += T::of(deviation * noise(trial.noise_seed, index));
        }
    }
}

/// Makes readings of what reaches the sensors; both are told by how far they are from the target.
fn read<T: Real>(sensor: &Sensor, target: &[T], error: &mut [T]) {
    for (error, &target) in error.iter_mut().zip(target) {
        *error = T::of(sensor.reading((*error + target).wide())) - target;
    }
}

/// Back to what reached the sensors, of which `error` tells: a reading at the end of the range stays there.
/// Rounding passes on what comes back as if there were none, because its own slope is none anywhere.
fn read_adjoint<T: Real>(sensor: &Sensor, target: &[T], error: &[T], g: &mut [T]) {
    for ((g, &error), &target) in g.iter_mut().zip(error).zip(target) {
        if !sensor.follows((error + target).wide()) {
            *g = T::ZERO;
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
