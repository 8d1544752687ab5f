//! The trainer, started, watched and stopped from Python. It runs on threads of its own that know nothing of
//! the interpreter: here are settings on their way in and curves on their way out.

use crate::policy::PyPolicy;
use crate::problem::PyProblem;
use crate::words::{exception, in_keywords};
use agent_sim::scenario::Scenario;
use artifacts::output::write_whole;
use artifacts::policy_file::PolicyFile;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trainer::background::{self, Background, Ended, View};
use trainer::checkpoint::Checkpoint;
use trainer::entry::{Entries, Entry};
use trainer::export;
use trainer::recipe::Preset;
use trainer::run::{Existing, Outcome};
use trainer::training::{Options, choice, weight};

/// Time between two looks at signals, and at progress.
const LOOK: Duration = Duration::from_millis(100);
/// For how long a training that is interrupted, or whose interpreter ends, is waited for: far longer than a
/// step and a checkpoint usually take.
const FAREWELL: Duration = Duration::from_secs(30);

/// A training on threads of its own, as :func:`fieldswarm.train` starts it.
///
/// Keep it: one that nobody holds any more stops, with its state on disk.
#[pyclass(module = "fieldswarm", frozen)]
pub struct Training {
    background: Background,
    entry: &'static Entry,
}

/// Train a policy, on threads of its own.
///
/// Comes back as soon as the training has begun; what stands against it is raised here. Settings that are
/// left out are those of the preset. What is learnt depends on the settings alone, not on where the training
/// was started: ``trainer train`` with the same ones ends with the same bits.
///
/// Args:
///     problem: A :class:`Problem`, the name of a published one, or the path of a file that describes one.
///     preset: ``"quick"`` (a minute on two cores), ``"full"`` (as the shipped policies) or ``"published"``.
///     steps: Optimiser steps in all.
///     batch: Episodes per step.
///     seed: Seed of the initial weights and of all episodes.
///     agents: Swarm sizes, each episode drawing one: a number, a range as ``"3..64"``, or a list of these.
///     out: Folder of runs; this one is kept in ``out/<problem>``.
///     resume: Go on with the run that is there.
///     overwrite: Replace the run that is there.
///     lr: Highest learning rate.
///     window: Cells along each axis of the window that agents see.
///     memory: Numbers that every agent remembers from step to step.
///     rests: Agents do nothing, by construction, where they see no error and remember none.
///     physics: Coefficients of the equation, ``{"nu": 0.004}`` or ``{"nu": (0.0025, 0.01)}`` to draw them.
///     weight: Weights of terms of the loss, ``{"effort": 1e-3}``.
///     scatter: Agents start up to this far from their place along each axis.
///     deadly_episodes: Share of the episodes in which agents die.
///     deaths: Largest share of the agents that die in such an episode.
///     deaths_by: They die within this first share of an episode.
///     sensor_noise: Largest standard deviation of sensor noise.
///     actuator_noise: Largest standard deviation of actuator noise.
///     delay: Most steps by which actions come late.
///     hard: Path of a scenario in which a swarm was found to fail, to be trained with; or several.
///     hard_share: Share of the episodes that are such scenarios.
///     patience: Stop after so many validations without a better one; 0 for never.
///     retreats: How often to go back to the last good state when the loss stops being a number.
///     from_policy: Path of a policy (f32) to begin with instead of random weights.
///     backend: ``"flex"``, the CPU; wheels are built without others.
///     threads: Threads; 0 for one per core.
///
/// Returns:
///     The training, under way.
///
/// Raises:
///     ValueError: A setting is not usable.
///     TypeError: A setting is not of its type, or there is none of that name.
///     FileExistsError: There is a run in the folder, and neither ``resume`` nor ``overwrite`` is given.
///     OSError: The folder cannot be written to, or another training writes there.
///
/// Example:
///     >>> import fieldswarm, tempfile
///     >>> training = fieldswarm.train("heat-1d", steps=3, batch=1, agents=2, out=tempfile.mkdtemp())
///     >>> training.wait(progress=False).outcome
///     'finished'
///     >>> training.losses.shape
///     (3, 2)
#[pyfunction]
#[pyo3(
    signature = (problem, **settings),
    text_signature = "(problem, *, preset='quick', steps=None, batch=None, seed=None, agents=None, \
        out='runs', resume=False, overwrite=False, lr=None, window=None, memory=None, rests=False, \
        physics=None, weight=None, scatter=None, deadly_episodes=None, deaths=None, deaths_by=None, \
        sensor_noise=None, actuator_noise=None, delay=None, hard=None, hard_share=None, patience=None, retreats=None, \
        from_policy=None, backend=None, threads=0)"
)]
pub fn train(
    py: Python<'_>,
    problem: &Bound<'_, PyAny>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Training> {
    let entry = entry(problem)?;
    let mut asked = Asked::default();
    for (name, value) in settings.into_iter().flatten() {
        if !value.is_none() {
            asked.set(&name.extract::<String>()?, &value)?;
        }
    }
    stop_at_exit(py)?;
    let refused = |error: &anyhow::Error| exception(error, PyValueError::new_err);
    let existing = Existing::asked(asked.resume, asked.overwrite).map_err(|e| refused(&e))?;
    let background = Background::start(entry, asked.options, asked.out, existing, asked.threads)
        .map_err(|e| refused(&e))?;
    let training = Training { background, entry };
    // Some fields take minutes to spin up.
    loop {
        match py.detach(|| training.background.opened(LOOK)) {
            Some(opened) => {
                opened.map_err(|error| refused(&error))?;
                return Ok(training);
            }
            None => py.check_signals()?,
        }
    }
}

/// A problem that can be trained on, by name, path or as a :class:`Problem`.
fn entry(problem: &Bound<'_, PyAny>) -> PyResult<&'static Entry> {
    let name = if let Ok(given) = problem.cast::<PyProblem>() {
        as_it_is(given.get().scenario())?
    } else if let Ok(path) = problem.extract::<PathBuf>() {
        path.display().to_string()
    } else {
        return Err(PyTypeError::new_err(format!(
            "problem is a Problem, a name such as \"heat-1d\" or the path of a file, not {}",
            of_type(problem)
        )));
    };
    let entries = Entries::new(trainer::published::ENTRIES).expect("names that differ");
    entries
        .by_name(&name)
        .map_err(|error| exception(&error.into(), PyValueError::new_err))
}

/// The name of a problem that has nothing changed: what else trainings change, they are told themselves.
fn as_it_is(given: Scenario) -> PyResult<String> {
    let plain = Scenario {
        problem: given.problem.clone(),
        set: given.set.clone(),
        ..Scenario::default()
    };
    if given != plain {
        return Err(PyValueError::new_err(format!(
            "{} is not as it was published or described, and trainings begin from that; give coefficients to \
             train() by physics",
            given.problem
        )));
    }
    Ok(given.problem)
}

/// What was asked for.
struct Asked {
    options: Options,
    out: PathBuf,
    resume: bool,
    overwrite: bool,
    threads: usize,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            options: Options {
                preset: Preset::Quick,
                ..Options::default()
            },
            out: "runs".into(),
            resume: false,
            overwrite: false,
            threads: 0,
        }
    }
}

impl Asked {
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = &mut self.options;
        let given = Given { name, value };
        match name {
            "preset" => options.preset = given.wrong(choice("preset", &given.text()?))?,
            "backend" => options.backend = given.wrong(choice("backend", &given.text()?))?,
            "from_policy" => options.from = Some(given.path()?),
            "steps" => options.steps = Some(given.count()?),
            "batch" => options.batch = Some(given.count()?),
            "seed" => options.seed = Some(given.count()?),
            "window" => options.window = Some(given.count()?),
            "memory" => options.memory = Some(given.count()?),
            "rests" => options.rests = given.flag()?,
            "lr" => options.lr = Some(given.number()?),
            "agents" => options.agents = given.several(|text| text.parse())?,
            "physics" => options.physics = given.several(|text| text.parse())?,
            "weight" => options.weights = given.several(weight)?,
            "scatter" => options.scatter = Some(given.number()?),
            "deadly_episodes" => options.deadly_episodes = Some(given.number()?),
            "deaths" => options.deaths = Some(given.number()?),
            "deaths_by" => options.deaths_by = Some(given.number()?),
            "sensor_noise" => options.sensor_noise = Some(given.number()?),
            "actuator_noise" => options.actuator_noise = Some(given.number()?),
            "delay" => options.delay = Some(given.count()?),
            "hard" => options.hard = given.several(|text| text.parse())?,
            "hard_share" => options.hard_share = Some(given.number()?),
            "patience" => options.patience = Some(given.count()?),
            "retreats" => options.retreats = Some(given.count()?),
            "out" => self.out = given.path()?,
            "resume" => self.resume = given.flag()?,
            "overwrite" => self.overwrite = given.flag()?,
            "threads" => self.threads = given.count()?,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "train() has no argument '{name}'; help(fieldswarm.train) lists them"
                )));
            }
        }
        Ok(())
    }
}

/// A setting by its name.
struct Given<'a, 'py> {
    name: &'a str,
    value: &'a Bound<'py, PyAny>,
}

impl Given<'_, '_> {
    fn no(&self, what: &str) -> PyErr {
        let (name, kind) = (self.name, of_type(self.value));
        PyTypeError::new_err(format!("{name} is {what}, not {kind}"))
    }

    fn wrong<T, E: Display>(&self, result: Result<T, E>) -> PyResult<T> {
        result
            .map_err(|error| PyValueError::new_err(in_keywords(&format!("{}: {error}", self.name))))
    }

    fn count<T: TryFrom<u64>>(&self) -> PyResult<T> {
        let what = "a whole number";
        // Whole numbers of any size, and no truth values: `steps=True` is a slip.
        let index = self.value.call_method0("__index__");
        let whole = index.map_err(|_| self.no(what))?;
        if self.value.is_instance_of::<pyo3::types::PyBool>() {
            return Err(self.no(what));
        }
        let fits = whole
            .extract::<u64>()
            .ok()
            .and_then(|n| T::try_from(n).ok());
        fits.ok_or_else(|| {
            let name = self.name;
            PyValueError::new_err(format!(
                "{name} {whole} is not usable; give a whole number that is not below 0 and not as large"
            ))
        })
    }

    fn number(&self) -> PyResult<f64> {
        self.value.extract().map_err(|_| self.no("a number"))
    }

    fn flag(&self) -> PyResult<bool> {
        self.value.extract().map_err(|_| self.no("True or False"))
    }

    fn text(&self) -> PyResult<String> {
        self.value.extract().map_err(|_| self.no("a name"))
    }

    fn path(&self) -> PyResult<PathBuf> {
        self.value.extract().map_err(|_| self.no("a path"))
    }

    /// One or several, each as the command line writes it: `8`, `3..64`, `nu=0.1..0.4`.
    fn several<T, E: Display>(&self, parse: impl Fn(&str) -> Result<T, E>) -> PyResult<Vec<T>> {
        let value = self.value;
        let texts: Vec<String> = if let Ok(text) = value.cast::<PyString>() {
            text.to_cow()?.split(',').map(str::to_owned).collect()
        } else if let Ok(named) = value.cast::<PyMapping>() {
            let items = named.items()?;
            let texts = items.iter().map(|item| {
                let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
                let value = match value.extract::<(f64, f64)>() {
                    Ok((least, most)) => format!("{least}..{most}"),
                    Err(_) => value
                        .extract::<f64>()
                        .map_err(|_| self.no(NAMED))?
                        .to_string(),
                };
                Ok(format!("{name}={value}"))
            });
            texts.collect::<PyResult<_>>()?
        } else if let Ok(items) = value.try_iter() {
            let texts = items.map(|item| Ok(item?.str()?.to_string()));
            texts.collect::<PyResult<_>>()?
        } else {
            vec![value.str()?.to_string()]
        };
        texts
            .iter()
            .map(|text| self.wrong(parse(text.trim())))
            .collect()
    }
}

/// What a mapping may hold.
const NAMED: &str = "a dict of names and numbers";

fn of_type(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map_or_else(|_| "something else".to_owned(), |name| name.to_string())
}

#[pymethods]
impl Training {
    /// The problem's name.
    #[getter]
    fn problem(&self) -> &'static str {
        self.entry.problem.name
    }

    /// Folder of the run: ``latest``, ``best``, ``report.json`` and ``loss.svg``.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.background.look(|view| view.folder.clone())
    }

    /// Numbers that are learnt.
    #[getter]
    fn parameters(&self) -> usize {
        self.background.look(|view| view.parameters)
    }

    /// Optimiser steps done.
    #[getter]
    fn step(&self) -> u64 {
        self.background.look(|view| view.step)
    }

    /// Optimiser steps in all.
    #[getter]
    fn steps(&self) -> u64 {
        self.background.look(|view| view.steps)
    }

    /// Steps and losses so far, an array of two columns: every step of this session, and of those before it
    /// means of twenty steps each, as checkpoints keep them. ``plt.semilogy(*training.losses.T)`` draws it.
    #[getter]
    fn losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        columns(py, self.background.look(|view| flat(&view.losses)))
    }

    /// Steps and the scores of the policies after them on the validation episodes, an array of two columns.
    #[getter]
    fn validations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        columns(py, self.background.look(|view| flat(&view.validations)))
    }

    /// The last step's loss; None before there is one.
    #[getter]
    fn loss(&self) -> Option<f64> {
        self.background
            .look(|view| view.losses.last().map(|(_, loss)| *loss))
    }

    /// The best validation score; None before there is one.
    #[getter]
    fn best(&self) -> Option<f64> {
        self.background.look(|view| view.best())
    }

    /// Whether it trains.
    #[getter]
    fn running(&self) -> bool {
        self.background.ended(Duration::ZERO).is_none()
    }

    /// How it ended: ``"finished"``, ``"stale"`` (no better validation for as long as ``patience`` allows),
    /// ``"stopped"`` or ``"failed"``; None while it trains.
    #[getter]
    fn outcome(&self) -> Option<&'static str> {
        Some(match self.background.ended(Duration::ZERO)? {
            Ok(Outcome::Finished) => "finished",
            Ok(Outcome::Stale) => "stale",
            Ok(Outcome::Interrupted) => "stopped",
            Err(_) => "failed",
        })
    }

    /// Wait until the training has ended.
    ///
    /// Ctrl-C, or interrupting the notebook's kernel, stops the training after the step that it is at, with
    /// its state on disk, and then raises ``KeyboardInterrupt``.
    ///
    /// Args:
    ///     timeout: Seconds after which to come back, ended or not; look at ``running``.
    ///     progress: Show how far it is: with tqdm where that is installed, else as a line on stderr.
    ///
    /// Returns:
    ///     The training itself.
    ///
    /// Raises:
    ///     RuntimeError: The training failed, for instance because its loss stopped being a number.
    ///     OSError: Its files could not be written.
    #[pyo3(signature = (timeout=None, progress=true))]
    fn wait<'py>(
        slf: Bound<'py, Self>,
        timeout: Option<f64>,
        progress: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let until = timeout.map(deadline).transpose()?;
        let shown = match progress {
            true => Some(progress_of(&slf)?),
            false => None,
        };
        let ended = this.follow(py, until, shown.as_ref());
        if let Some(shown) = shown {
            shown.call_method0("close")?;
        }
        match ended {
            Ok(Some(Err(error))) => Err(exception(&error, PyRuntimeError::new_err)),
            Ok(_) => Ok(slf),
            Err(interrupt) => {
                this.background.stop();
                // A second interrupt ends the waiting too.
                this.follow(py, Some(Instant::now() + FAREWELL), None).ok();
                Err(interrupt)
            }
        }
    }

    /// Stop after the step that it is at, and wait until the state is on disk; ``fieldswarm.train`` with
    /// ``resume=True`` goes on from there, to the same bits as if it had not stopped. A training that has
    /// ended stays as it is.
    ///
    /// Args:
    ///     timeout: Seconds to wait at most.
    ///
    /// Returns:
    ///     The training itself.
    ///
    /// Raises:
    ///     TimeoutError: It takes longer; it will stop all the same.
    #[pyo3(signature = (timeout=60.0))]
    fn stop<'py>(slf: Bound<'py, Self>, timeout: f64) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let until = deadline(timeout)?;
        this.background.stop();
        match this.follow(slf.py(), Some(until), None)? {
            Some(Err(error)) => Err(exception(&error, PyRuntimeError::new_err)),
            Some(Ok(_)) => Ok(slf),
            None => Err(PyTimeoutError::new_err(format!(
                "the training is still at step {} after {timeout} s; it will stop after it",
                this.step() + 1
            ))),
        }
    }

    /// The policy, to run it or to take its arrays.
    ///
    /// Args:
    ///     which: ``"best"``, that of the best validation, or ``"latest"``, that of the last checkpoint.
    #[pyo3(signature = (which="best"))]
    fn policy(&self, py: Python<'_>, which: &str) -> PyResult<PyPolicy> {
        PyPolicy::new(self.frozen(py, which)?)
    }

    /// The policy as agents read it: a blob, bit for bit that of ``trainer export``.
    ///
    /// Args:
    ///     which: ``"best"``, that of the best validation, or ``"latest"``, that of the last checkpoint.
    #[pyo3(signature = (which="best"))]
    fn blob<'py>(&self, py: Python<'py>, which: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.frozen(py, which)?.bytes()))
    }

    /// Write the policy to a file, bit for bit as ``trainer export`` does.
    ///
    /// Args:
    ///     path: The file.
    ///     which: ``"best"``, that of the best validation, or ``"latest"``, that of the last checkpoint.
    ///
    /// Returns:
    ///     The path.
    #[pyo3(signature = (path, which="best"))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        path: Bound<'py, PyAny>,
        which: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (name, value) = ("path", &path);
        let file = Given { name, value }.path()?;
        let policy = self.frozen(py, which)?;
        py.detach(|| write_whole(&file, policy.bytes()))
            .map_err(|error| exception(&error.of("path").into(), PyRuntimeError::new_err))?;
        Ok(path)
    }

    fn __repr__(&self) -> String {
        let state = self.outcome().unwrap_or("running");
        self.background.look(|view| {
            let View { step, steps, .. } = view;
            let (problem, folder) = (self.problem(), view.folder.display());
            let best = view.best();
            let best =
                best.map_or_else(String::new, |best| format!(", best validation {best:.3e}"));
            format!("<Training of {problem}: step {step} of {steps}, {state}{best}, in '{folder}'>")
        })
    }
}

impl Training {
    /// Waits for the end, with an eye on signals.
    fn follow(
        &self,
        py: Python<'_>,
        until: Option<Instant>,
        shown: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Ended>> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let a_while = left.map_or(LOOK, |left| left.min(LOOK));
            let ended = py.detach(|| self.background.ended(a_while));
            if let Some(shown) = shown {
                shown.call_method0("update")?;
            }
            if ended.is_some() || left.is_some_and(|left| left.is_zero()) {
                return Ok(ended);
            }
            py.check_signals()?;
        }
    }

    fn frozen(&self, py: Python<'_>, which: &str) -> PyResult<PolicyFile> {
        if !["best", "latest"].contains(&which) {
            return Err(PyValueError::new_err(format!(
                "there is no '{which}' policy; which is \"best\" or \"latest\""
            )));
        }
        let (file, validated_at) =
            (self.background).look(|view| (view.folder.join(which), view.validated_at));
        if which == "best" && !file.exists() {
            return Err(PyRuntimeError::new_err(format!(
                "there is no best policy yet: the first validation comes after step {validated_at}; wait, or \
                 give which=\"latest\""
            )));
        }
        let frozen = py.detach(|| {
            let entries = Entries::new(std::slice::from_ref(&self.entry))?;
            let checkpoint = Checkpoint::load(&file)?;
            export::usual(checkpoint, &entries, file.display().to_string())
        });
        frozen.map_err(|error| exception(&error, PyRuntimeError::new_err))
    }
}

fn deadline(seconds: f64) -> PyResult<Instant> {
    let wait = Duration::try_from_secs_f64(seconds).ok();
    let until = wait.and_then(|wait| Instant::now().checked_add(wait));
    until.ok_or_else(|| {
        PyValueError::new_err(format!(
            "timeout {seconds} is not usable; give seconds, not below 0"
        ))
    })
}

/// What shows a training in this terminal or notebook.
fn progress_of<'py>(training: &Bound<'py, Training>) -> PyResult<Bound<'py, PyAny>> {
    let module = training.py().import("fieldswarm.progress")?;
    module.getattr("Progress")?.call1((training,))
}

fn flat(points: &[(u64, f64)]) -> Vec<f64> {
    (points.iter())
        .flat_map(|&(step, value)| [step as f64, value])
        .collect()
}

fn columns(py: Python<'_>, flat: Vec<f64>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let rows = flat.len() / 2;
    PyArray1::from_vec(py, flat).reshape([rows, 2])
}

/// Trainings must not outlive the interpreter: they stop with their state on disk, or are left to their last
/// checkpoint if that takes too long.
#[pyfunction]
fn stop_trainings(py: Python<'_>) {
    py.detach(|| background::stop_all(FAREWELL));
}

fn stop_at_exit(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let stop = wrap_pyfunction!(stop_trainings, py)?;
        py.import("atexit")?.call_method1("register", (stop,))?;
        Ok::<(), PyErr>(())
    })?;
    Ok(())
}
