//! Environments side by side: swarms that are led from outside, stepped in parallel, with what agents see
//! written into arrays that stay where they are.

use crate::plant::PyPlant;
use crate::problem::{PyProblem, shaped, state_shape};
use crate::recording::{faults, figures};
use crate::refusal::bad_input;
use agent_sim::plant::{BuiltIn, Plant};
use agent_sim::puppets::{Order, Puppets, Stage, errors, waves};
use agent_sim::scenario::fault_seed;
use agent_sim::sense::{HALO, View};
use artifacts::observation::OwnedObservation;
use numpy::ndarray::{ArrayView2, ArrayView3, Axis};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Several environments of one problem with swarms that are led from outside.
///
/// Arrays are written in place by `reset` and `step`: copy what is to be kept.
#[pyclass(module = "fieldswarm._native")]
pub struct Batch {
    problem: Problem,
    view: View,
    /// Room for so many agents in each.
    agents: usize,
    steps: usize,
    look: Look,
    /// None before the first reset.
    /// Behind a lock that is never waited for: Python may hold on to this from any thread.
    runs: Mutex<Vec<Option<Run>>>,
    /// How many.
    envs: usize,
    arrays: Arrays,
}

struct Run {
    puppets: Puppets,
    agents: usize,
    /// Why it does not go on, if it does not.
    failure: Option<String>,
}

/// What is seen and known of all environments, one after the other.
struct Arrays {
    seen: Py<PyArrayDyn<f32>>,
    field: Py<PyArrayDyn<f32>>,
    target: Py<PyArrayDyn<f32>>,
    inside: Py<PyArrayDyn<u16>>,
    position: Py<PyArrayDyn<f32>>,
    wide_field: Py<PyArrayDyn<f32>>,
    wide_target: Py<PyArrayDyn<f32>>,
    heard: Py<PyArrayDyn<bool>>,
    error: Py<PyArrayDyn<f64>>,
    recorded: Py<PyArrayDyn<f64>>,
}

/// The part of the arrays that belongs to some environments, one after the other.
struct Rows<'a> {
    seen: &'a mut [f32],
    field: &'a mut [f32],
    target: &'a mut [f32],
    inside: &'a mut [u16],
    position: &'a mut [f32],
    wide_field: &'a mut [f32],
    wide_target: &'a mut [f32],
    heard: &'a mut [bool],
    error: &'a mut [f64],
    recorded: &'a mut [f64],
}

/// Does something with every array: `$each!(name, …)`.
macro_rules! all_arrays {
    ($each:ident) => {
        $each!(
            seen,
            field,
            target,
            inside,
            position,
            wide_field,
            wide_target,
            heard,
            error,
            recorded
        )
    };
}

impl<'a> Rows<'a> {
    /// How many environments they belong to.
    fn envs(&self) -> usize {
        self.error.len()
    }

    /// Takes those of the first `envs` environments away.
    fn take(&mut self, envs: usize) -> Rows<'a> {
        let all = self.envs();
        macro_rules! first {
            ($($name:ident),*) => {
                Rows { $($name: first(&mut self.$name, envs, all)),* }
            };
        }
        all_arrays!(first)
    }

    /// Writes down what there is to see and to know of the only environment. What follows from a place alone stands
    /// there since the agent came to it, unless everything is `new`.
    fn write(&mut self, run: &Run, look: &Look, new: bool) {
        let room = self.heard.len();
        let [each_seen, each_place] = [self.seen.len(), self.position.len()].map(|all| all / room);
        for agent in 0..run.agents {
            run.puppets.sight(agent, |sight| {
                let seen = &mut self.seen[agent * each_seen..][..each_seen];
                let (seen_errors, rest) = seen.split_at_mut(look.cells);
                let (others, seen_waves) = rest.split_at_mut(look.others);
                errors(sight, look.window, seen_errors);
                for (k, error) in others.iter_mut().enumerate() {
                    let target = sight.wide_target.get(k).copied().unwrap_or(0.0);
                    *error = sight.wide_field[k] - target;
                }
                let (here, there) = (
                    &sight.position[..look.axes],
                    &mut self.position[agent * each_place..][..each_place],
                );
                if new || here != there {
                    there.copy_from_slice(here);
                    waves(here, &look.frequencies, look.corners, seen_waves);
                }
                if !self.field.is_empty() {
                    self.show(agent, room, look.axes, sight);
                }
            });
        }
        let snapshot = run.puppets.snapshot();
        self.heard.fill(false);
        for (heard, deed) in self.heard.iter_mut().zip(snapshot.deeds) {
            // Before the first step nobody has been asked.
            *heard = snapshot.step == 0 || deed.heard();
        }
        self.error.fill(snapshot.error);
        self.recorded.fill(run.puppets.recorded());
    }

    /// Writes all that an agent saw, as it is.
    fn show(&mut self, agent: usize, room: usize, axes: usize, sight: &OwnedObservation) {
        own(self.field, agent, room).copy_from_slice(&sight.field);
        own(self.target, agent, room).copy_from_slice(&sight.target);
        own(self.wide_field, agent, room).copy_from_slice(&sight.wide_field);
        own(self.wide_target, agent, room).copy_from_slice(&sight.wide_target);
        let spans = sight.inside.map(|span| [span.first, span.last]);
        own(self.inside, agent, room).copy_from_slice(spans[..axes].as_flattened());
    }
}

/// How agents look at the field.
#[derive(Clone)]
struct Look {
    window: usize,
    /// Of the window, along all axes.
    cells: usize,
    /// Of the windows on other fields.
    others: usize,
    axes: usize,
    frequencies: Vec<f32>,
    corners: [[f64; 2]; 2],
}

/// What belongs to one agent among as many as there is room for.
fn own<T>(all: &mut [T], agent: usize, room: usize) -> &mut [T] {
    let length = all.len() / room;
    &mut all[agent * length..][..length]
}

/// An array of zeros that the engine writes to.
fn room<T: Element>(py: Python<'_>, shape: &[usize]) -> Py<PyArrayDyn<T>> {
    PyArrayDyn::zeros(py, shape, false).unbind()
}

/// Takes what belongs to the first `count` of `all` away from a slice.
fn first<'a, T>(slice: &mut &'a mut [T], count: usize, all: usize) -> &'a mut [T] {
    let whole = std::mem::take(slice);
    if whole.is_empty() {
        return whole;
    }
    let (first, rest) = whole.split_at_mut(whole.len() / all * count);
    *slice = rest;
    first
}

/// Works on every environment with its rows, in parallel; what comes of it is in order.
fn each<R: Send>(
    runs: &mut [Option<Run>],
    mut rows: Rows<'_>,
    work: impl Fn(usize, &mut Option<Run>, Rows<'_>) -> Option<R> + Sync,
) -> Vec<R> {
    let share = runs.len().div_ceil(threads());
    let shares = (runs.chunks_mut(share).enumerate())
        .map(|(index, runs)| (index * share, rows.take(runs.len()), runs))
        .collect();
    let outcomes = shared_out(shares, |(first, mut rows, runs)| -> Vec<R> {
        let runs = runs.iter_mut().zip(first..);
        runs.filter_map(|(run, env)| work(env, run, rows.take(1)))
            .collect()
    });
    outcomes.into_iter().flatten().collect()
}

/// Does a job on each thread: the first on this one, the others on those of the pool. What `work` returns
/// comes back in order.
///
/// A step of small environments takes less time than waking a thread or fetching what another core has in
/// its cache. So each thread has the same job every time, those of the pool stay awake for the next call,
/// and this one does not go to sleep before they end.
fn shared_out<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let Some(pool) = HELPERS.as_ref().filter(|_| jobs.len() > 1) else {
        return jobs.into_iter().map(work).collect();
    };
    CALLS.fetch_add(1, Ordering::Relaxed);
    let mut jobs = jobs.into_iter();
    let own = jobs.next();
    let others: Vec<_> = jobs.map(|job| Mutex::new((Some(job), None))).collect();
    let done = AtomicUsize::new(0);
    let own = pool.in_place_scope(|scope| {
        scope.spawn_broadcast(|_, thread| {
            if let Some(other) = others.get(thread.index()) {
                let (job, outcome) = &mut *locked(other);
                *outcome = job.take().map(&work);
                done.fetch_add(1, Ordering::Release);
            }
        });
        let outcome = own.map(&work);
        spin_until(|| done.load(Ordering::Acquire) == others.len());
        outcome
    });
    let call = CALLS.load(Ordering::Relaxed);
    pool.spawn_broadcast(move |_| spin_until(|| CALLS.load(Ordering::Relaxed) != call));
    let others = others.iter().filter_map(|other| locked(other).1.take());
    own.into_iter().chain(others).collect()
}

/// Threads that jobs can be on.
fn threads() -> usize {
    1 + HELPERS.as_ref().map_or(0, ThreadPool::current_num_threads)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads beside the one that calls; none where there is one core, or no thread can be had.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let beside = rayon::current_num_threads() - 1;
    let pool = ThreadPoolBuilder::new().num_threads(beside);
    (beside > 0).then(|| pool.build().ok()).flatten()
});

/// How often work was shared out.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Waits without sleeping, for a while: what takes longer is worth a sleep.
fn spin_until(over: impl Fn() -> bool) {
    const A_WHILE: Duration = Duration::from_micros(200);
    let begun = Instant::now();
    while !over() && begun.elapsed() < A_WHILE {
        std::hint::spin_loop();
    }
}

/// One beginning of an episode.
struct Beginning {
    agents: usize,
    seed: u64,
    faults: Vec<agent_sim::fault::Fault>,
    episode: Episode,
    plant: Box<dyn Plant>,
}

impl Batch {
    /// The runs, while somebody looks at them.
    fn runs(&self) -> MutexGuard<'_, Vec<Option<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets every environment with its rows of the arrays be worked on, in parallel and without the
    /// interpreter; what `work` returns comes back in order, but for nothing.
    fn side_by_side<R: Send>(
        &mut self,
        py: Python<'_>,
        work: impl Fn(usize, &mut Option<Run>, Rows<'_>) -> Option<R> + Sync + Send,
    ) -> PyResult<Vec<R>> {
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        macro_rules! all_of_them {
            ($($name:ident),*) => {{
                $(let mut $name = self.arrays.$name.bind(py).try_readwrite().map_err(in_use)?;)*
                let rows = Rows { $($name: $name.as_slice_mut()?),* };
                Ok(py.detach(|| each(runs, rows, work)))
            }};
        }
        all_arrays!(all_of_them)
    }

    /// What there is to know of an environment.
    fn of<T>(&self, env: usize, ask: impl FnOnce(&mut Run) -> PyResult<T>) -> PyResult<T> {
        let mut runs = self.runs();
        let there = runs.get_mut(env).ok_or_else(|| {
            PyIndexError::new_err(format!("there is no environment {env} among {}", self.envs))
        })?;
        let run = there.as_mut().ok_or_else(|| {
            PyValueError::new_err(format!("environment {env} has no episode; reset it first"))
        })?;
        ask(run)
    }

    /// Numbers in an order: force, then velocities, of those that agents have.
    fn order_len(&self) -> usize {
        let actuation = &self.problem.actuation;
        usize::from(actuation.force_max > 0.0) + self.problem.grid.axes * self.moves()
    }

    /// What a 1 in an order stands for: all that actuators can do where orders are `shares` of it. What agents
    /// do not have is 0.
    fn full_order(&self, shares: bool) -> Order {
        let actuation = &self.problem.actuation;
        let full = |most: f64| match shares || most == 0.0 {
            true => most as f32,
            false => 1.0,
        };
        Order {
            force: full(actuation.force_max),
            velocity: [full(actuation.velocity_max); 2],
        }
    }

    /// Whether the orders of all agents that there are are numbers.
    fn check_finite(&self, given: ArrayView3<'_, f32>) -> PyResult<()> {
        let agents: Vec<usize> = (self.runs().iter())
            .map(|run| run.as_ref().map_or(0, |run| run.agents))
            .collect();
        let bad = |&((env, agent, _), value): &((usize, usize, usize), &f32)| {
            !value.is_finite() && agent < agents[env]
        };
        match given.indexed_iter().find(bad) {
            None => Ok(()),
            Some(((env, agent, number), value)) => Err(PyValueError::new_err(format!(
                "orders must be finite: number {number} of agent {agent} in environment {env} is {value}"
            ))),
        }
    }

    fn moves(&self) -> usize {
        usize::from(self.problem.actuation.velocity_max > 0.0)
    }

    /// All fields of all environments that run, written by `of`.
    fn states<'py, T: Element + Copy + Default>(
        &self,
        py: Python<'py>,
        of: impl Fn(&Puppets, &mut [T]),
    ) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let problem = &self.problem;
        let mut values = vec![T::default(); self.envs * problem.state_len()];
        for (run, to) in self
            .runs()
            .iter()
            .zip(values.chunks_mut(problem.state_len()))
        {
            if let Some(run) = run {
                of(&run.puppets, to);
            }
        }
        let shape = [self.envs]
            .into_iter()
            .chain(state_shape(problem, &problem.grid));
        shaped(py, values, shape.collect())
    }
}

fn in_use(error: numpy::BorrowError) -> PyErr {
    PyValueError::new_err(format!(
        "an array of the batch is in use elsewhere: {error}"
    ))
}

/// What each agent of an environment is told: so much of what `full` is 1 of.
fn orders(given: ArrayView2<'_, f32>, full: Order) -> impl Iterator<Item = Order> {
    let forces = usize::from(full.force > 0.0);
    (0..given.nrows()).map(move |agent| {
        let row = given.row(agent);
        let number = |k: usize| {
            let found = row.to_slice().map_or_else(|| row.get(k), |row| row.get(k));
            found.copied().unwrap_or(0.0)
        };
        let [along, across] = full.velocity;
        Order {
            force: if forces == 1 {
                full.force * number(0)
            } else {
                0.0
            },
            velocity: [along * number(forces), across * number(forces + 1)],
        }
    })
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (problem, envs, agents, *, steps=None, window=None, wide=None, frequencies=Vec::new(), patches=true))]
    #[expect(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        problem: &PyProblem,
        envs: usize,
        agents: usize,
        steps: Option<usize>,
        window: Option<usize>,
        wide: Option<[usize; 2]>,
        frequencies: Vec<f32>,
        patches: bool,
    ) -> PyResult<Self> {
        let problem = problem.problem;
        if envs == 0 {
            return Err(PyValueError::new_err(
                "a batch of 0 environments shows nothing; give 1 or more",
            ));
        }
        let window = window.unwrap_or(problem.sensing.window);
        let view = View {
            window,
            target: problem.tracking,
            wide: wide.or_else(|| problem.other_windows(window)),
        };
        let steps = steps.unwrap_or(problem.horizon);
        let stage = Stage {
            problem: &problem,
            view,
            agents,
            steps,
            faults: &[],
            seed: 0,
        };
        stage.check_batch(envs).map_err(bad_input)?;
        if let Some(bad) = frequencies.iter().find(|f| !f.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "frequencies must be finite, not {bad}"
            )));
        }
        let axes = problem.grid.axes;
        let side = view.window + 2 * HALO;
        let cells = view.window.pow(axes as u32);
        let others = problem.other_windows(window);
        let others = others.map_or(0, |[rows, columns]| rows * columns);
        let features = cells + others + 2 * axes * frequencies.len();
        // What nobody asked for takes no room, and no time to be written.
        let shape = |shown: bool, rest: &[usize]| match shown && patches {
            true => [&[envs, agents][..], rest].concat(),
            false => vec![envs, agents, 0],
        };
        let patch = vec![side; axes];
        let wide = view.wide.map_or(vec![0], |cells| cells[..axes].to_vec());
        let arrays = Arrays {
            seen: room(py, &[envs, agents, features]),
            field: room(py, &shape(true, &patch)),
            target: room(py, &shape(view.target, &patch)),
            wide_field: room(py, &shape(true, &wide)),
            wide_target: room(py, &shape(view.target, &wide)),
            inside: room(py, &shape(true, &[axes, 2])),
            position: room(py, &[envs, agents, axes]),
            heard: room(py, &[envs, agents]),
            error: room(py, &[envs]),
            recorded: room(py, &[envs]),
        };
        let look = Look {
            window: view.window,
            cells,
            others,
            axes,
            frequencies,
            corners: problem.reach,
        };
        Ok(Self {
            problem,
            view,
            agents,
            steps,
            look,
            runs: Mutex::new((0..envs).map(|_| None).collect()),
            envs,
            arrays,
        })
    }

    /// Begins episodes in the environments `envs`: `seeds`, `indices`, `agents` and `faults` have one for
    /// each of them. `plant`, a `fieldswarm.plant.InProcess`, computes the field of the only one.
    #[pyo3(signature = (envs, seeds, indices, agents, faults, *, set="fresh", plant=None))]
    #[expect(clippy::too_many_arguments)]
    fn reset(
        &mut self,
        py: Python<'_>,
        envs: Vec<usize>,
        seeds: Vec<u64>,
        indices: Vec<usize>,
        agents: Vec<usize>,
        faults: Vec<Vec<String>>,
        set: &str,
        plant: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let count = envs.len();
        if plant.is_some() && count > 1 {
            return Err(PyValueError::new_err(
                "a plant has one field: give every environment a plant of its own",
            ));
        }
        let mut plant = plant.map(PyPlant::new);
        let counts = [seeds.len(), indices.len(), agents.len(), faults.len()];
        if counts != [count; 4] {
            return Err(PyValueError::new_err(format!(
                "{count} environments need as many seeds, indices, agents and faults, not {counts:?}"
            )));
        }
        let set: EpisodeSet = set.parse().unwrap_or_else(|never| match never {});
        let mut beginnings: Vec<Option<Beginning>> = (0..self.envs).map(|_| None).collect();
        for (k, (env, faults)) in envs.into_iter().zip(&faults).enumerate() {
            if agents[k] > self.agents {
                return Err(PyValueError::new_err(format!(
                    "the batch has room for {} agents in an environment, not {}",
                    self.agents, agents[k]
                )));
            }
            let total = self.envs;
            let beginning = beginnings.get_mut(env).ok_or_else(|| {
                PyIndexError::new_err(format!("there is no environment {env} among {total}"))
            })?;
            *beginning = Some(Beginning {
                agents: agents[k],
                seed: fault_seed(seeds[k], indices[k]),
                faults: self::faults(faults)?,
                episode: set
                    .episode(&self.problem, seeds[k], indices[k])
                    .map_err(bad_input)?,
                plant: match plant.take() {
                    Some(plant) => Box::new(plant),
                    None => Box::new(BuiltIn::default()),
                },
            });
        }
        self.begin(py, beginnings)
    }

    /// One control interval of every environment that runs. `orders` is a float32 array (envs, agents,
    /// numbers): the force, then velocities, of what agents have, or `shares` of what they can do. Returns (environment, reason) of those
    /// whose field blew up or whose plant failed; they stay as they were until they are reset, and are not reported again.
    #[pyo3(signature = (orders, *, shares=false))]
    fn step(
        &mut self,
        py: Python<'_>,
        orders: &Bound<'_, PyAny>,
        shares: bool,
    ) -> PyResult<Vec<(usize, String)>> {
        let shape = [self.envs, self.agents, self.order_len()];
        let given: PyReadonlyArray3<'_, f32> = orders.extract().map_err(|_| {
            let what = describe(orders);
            PyTypeError::new_err(format!(
                "orders must be a float32 array of shape {shape:?}, not {what}"
            ))
        })?;
        if given.shape() != shape {
            return Err(PyValueError::new_err(format!(
                "orders must have the shape {shape:?} (environments, agents, numbers of an order), not {:?}",
                given.shape()
            )));
        }
        let given = given.as_array();
        // In whatever order they lie in memory, and without a way out: many at once.
        let all_finite = match given.as_slice_memory_order() {
            Some(numbers) => numbers.iter().fold(true, |all, n| all & n.is_finite()),
            None => given.iter().all(|value| value.is_finite()),
        };
        if !all_finite {
            self.check_finite(given)?;
        }
        let full = self.full_order(shares);
        let look = self.look.clone();
        self.side_by_side(py, |env, run, mut row| {
            let there = run.as_mut().filter(|run| run.failure.is_none())?;
            let given = given.index_axis(Axis(0), env);
            match there.puppets.step(self::orders(given, full)) {
                Ok(()) => {
                    row.write(there, &look, false);
                    None
                }
                Err(error) => {
                    let why = error.to_string();
                    there.failure = Some(why.clone());
                    Some((env, why))
                }
            }
        })
    }

    /// Ends an agent for the rest of its episode.
    fn kill(&self, env: usize, agent: usize) -> PyResult<()> {
        self.of(env, |run| {
            if agent >= run.agents {
                let agents = run.agents;
                return Err(PyIndexError::new_err(format!(
                    "there is no agent {agent} among {agents}"
                )));
            }
            run.puppets.kill(agent);
            Ok(())
        })
    }

    /// The fields of all environments: float64, (envs, *grid), with an axis for the fields before the
    /// grid's where there are several.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.states(py, |puppets, to: &mut [f64]| {
            to.copy_from_slice(puppets.state())
        })
    }

    /// What the fields should be now, likewise.
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        self.states(py, |puppets, to: &mut [f32]| {
            to.copy_from_slice(puppets.target())
        })
    }

    /// The figures of an environment's run so far.
    fn score(&self, env: usize) -> PyResult<BTreeMap<&'static str, f64>> {
        let score = self.of(env, |run| Ok(run.puppets.score()))?;
        Ok(figures(&score, score.headline(self.problem.scoring)))
    }

    /// Why an environment does not go on until it is reset; None if it does.
    fn failure(&self, env: usize) -> PyResult<Option<String>> {
        self.of(env, |run| Ok(run.failure.clone()))
    }

    /// Steps taken in an environment.
    fn steps_taken(&self, env: usize) -> PyResult<usize> {
        self.of(env, |run| Ok(run.puppets.snapshot().step))
    }

    /// What the agents of an environment did in the last step: (agents, 1 + axes), force first.
    fn deeds<'py>(&self, py: Python<'py>, env: usize) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let axes = self.problem.grid.axes;
        let deeds: Vec<f32> = self.of(env, |run| {
            let snapshot = run.puppets.snapshot();
            let numbers = snapshot.deeds.iter().flat_map(|deed| {
                let velocity = deed.velocity.into_iter().take(axes);
                [deed.force].into_iter().chain(velocity)
            });
            Ok(numbers.collect())
        })?;
        let agents = deeds.len() / (1 + axes);
        shaped(py, deeds, vec![agents, 1 + axes])
    }

    /// Seconds that `steps` steps of all environments take in which agents are told nothing: what the
    /// engine does where nobody looks.
    fn bench(&mut self, py: Python<'_>, steps: usize) -> f64 {
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        py.detach(|| {
            let begun = Instant::now();
            runs.par_iter_mut().flatten().for_each(|run| {
                for _ in 0..steps {
                    if run.puppets.step([]).is_err() {
                        return;
                    }
                }
            });
            begun.elapsed().as_secs_f64()
        })
    }

    /// Number of environments.
    #[getter]
    fn envs(&self) -> usize {
        self.envs
    }

    /// Room for agents in each.
    #[getter]
    fn agents(&self) -> usize {
        self.agents
    }

    /// Steps of an episode.
    #[getter]
    fn steps(&self) -> usize {
        self.steps
    }

    /// Cells of the window along an axis, without its halo.
    #[getter]
    fn window(&self) -> usize {
        self.view.window
    }

    /// Numbers in an order.
    #[getter]
    fn order_size(&self) -> usize {
        self.order_len()
    }

    /// What a network reads: field minus target in agents' windows, as they make it of what they see, of
    /// several fields one after the other, and behind that sin(π f s), axis after axis, and cos(π f s) for the frequencies, with s the position scaled
    /// to 0..1: (envs, agents, features).
    #[getter]
    fn seen<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.seen.bind(py).clone()
    }

    /// Patches of the field, halo included: (envs, agents, side[, side]).
    #[getter]
    fn field<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.field.bind(py).clone()
    }

    /// What they should be; empty where agents are not shown it.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.target.bind(py).clone()
    }

    /// First and last cell of the patch inside the domain: (envs, agents, axes, 2).
    #[getter]
    fn inside<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<u16>> {
        self.arrays.inside.bind(py).clone()
    }

    /// Where agents are: (envs, agents, axes).
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.position.bind(py).clone()
    }

    /// The coarse picture of the whole field, or where agents see several fields the others' windows, one
    /// after the other: (envs, agents, rows[, columns]); empty without either.
    #[getter]
    fn wide_field<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.wide_field.bind(py).clone()
    }

    /// What that should be.
    #[getter]
    fn wide_target<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.arrays.wide_target.bind(py).clone()
    }

    /// Which agents answered in the last step: (envs, agents).
    #[getter]
    fn heard<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<bool>> {
        self.arrays.heard.bind(py).clone()
    }

    /// Whether all of those did.
    #[getter]
    fn all_heard(&self, py: Python<'_>) -> PyResult<bool> {
        let heard = self.arrays.heard.bind(py).try_readonly().map_err(in_use)?;
        Ok(heard.as_slice()?.iter().all(|heard| *heard))
    }

    /// Mean squared errors to the targets: (envs,).
    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f64>> {
        self.arrays.error.bind(py).clone()
    }

    /// The errors that the last step adds to the score: those before it where a problem scores those,
    /// else those after it: (envs,).
    #[getter]
    fn recorded<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f64>> {
        self.arrays.recorded.bind(py).clone()
    }
}

impl Batch {
    fn begin(&mut self, py: Python<'_>, beginnings: Vec<Option<Beginning>>) -> PyResult<()> {
        let (problem, view, steps) = (self.problem, self.view, self.steps);
        let look = self.look.clone();
        let beginnings: Vec<Mutex<Option<Beginning>>> =
            beginnings.into_iter().map(Mutex::new).collect();
        let refused = self.side_by_side(py, |env, run, mut row| {
            let beginning = locked(&beginnings[env]).take()?;
            let stage = Stage {
                problem: &problem,
                view,
                agents: beginning.agents,
                steps,
                faults: &beginning.faults,
                seed: beginning.seed,
            };
            let puppets = match Puppets::new(&stage, &beginning.episode, beginning.plant) {
                Ok(puppets) => puppets,
                Err(refusal) => return Some(refusal),
            };
            let begun = Run {
                puppets,
                agents: beginning.agents,
                failure: None,
            };
            row.write(&begun, &look, true);
            *run = Some(begun);
            None
        })?;
        refused
            .into_iter()
            .next()
            .map_or(Ok(()), |refusal| Err(bad_input(refusal)))
    }
}

/// What was given in place of an array.
fn describe(given: &Bound<'_, PyAny>) -> String {
    match given.cast::<numpy::PyUntypedArray>() {
        Ok(array) => format!("one of {} of shape {:?}", array.dtype(), array.shape()),
        Err(_) => format!("a {}", given.get_type()),
    }
}
