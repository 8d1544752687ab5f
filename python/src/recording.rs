//! Whole episodes, with the agents inside.

use crate::plant::PyPlant;
use crate::problem::{PyProblem, shaped};
use crate::refusal::{bad_input, failed};
use agent_sim::controller::{ControllerKind, Experiment};
use agent_sim::fault::Fault;
use agent_sim::plant::Shared;
use agent_sim::recording::Recording as Run;
use agent_sim::scenario::Scenario;
use artifacts::policy_file::PolicyFile;
use numpy::PyArrayDyn;
use problem::Problems;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Faults as they are written on the command line.
pub fn faults(texts: &[String]) -> PyResult<Vec<Fault>> {
    let parse = |text: &String| {
        let bad =
            |error| PyValueError::new_err(format!("the fault '{text}' is impossible: {error}"));
        text.parse::<Fault>().map_err(bad)
    };
    texts.iter().map(parse).collect()
}

/// One run: what it looked like and its figures. Long or large ones are thinned out.
#[pyclass(module = "fieldswarm", frozen)]
pub struct Recording {
    run: Run,
    headline: f64,
    axes: usize,
}

/// Runs an episode with agents that decide by themselves: those of `policy` (a blob's bytes), or
/// proportional feedback, or nobody. `plant`, a `fieldswarm.plant.InProcess`, computes the field.
#[pyfunction]
#[pyo3(signature = (problem, *, policy=None, controller=None, gain=None, agents=None, steps=None, seed=0, episode=0, set="fresh", faults=Vec::new(), plant=None))]
#[expect(clippy::too_many_arguments)]
pub fn run(
    py: Python<'_>,
    problem: &PyProblem,
    policy: Option<&[u8]>,
    controller: Option<&str>,
    gain: Option<f64>,
    agents: Option<usize>,
    steps: Option<usize>,
    seed: u64,
    episode: usize,
    set: &str,
    faults: Vec<String>,
    plant: Option<Py<PyAny>>,
) -> PyResult<Recording> {
    let kind = controller.map(kind).transpose()?;
    let scenario = Scenario {
        controller: match policy {
            // The policy is not a file that a scenario could name: it is put in below.
            Some(_) => Some(ControllerKind::NONE),
            None => kind,
        },
        gain,
        agents,
        steps,
        seed,
        episode,
        set: set.to_owned(),
        faults: self::faults(&faults)?,
        ..problem.scenario()
    };
    let mut team = scenario.team(&Problems::published()).map_err(bad_input)?;
    if let Some(bytes) = policy {
        if kind.is_some_and(|kind| kind != ControllerKind::POLICY) {
            return Err(PyValueError::new_err(
                "give a policy or another controller, not both",
            ));
        }
        let file = PolicyFile::new(bytes, "that was given".to_owned());
        file.policy(&team.problem).map_err(bad_input)?;
        team.kind = ControllerKind::POLICY;
        team.policy = Some(file);
    }
    let episode = scenario.episode(&team).map_err(bad_input)?;
    let plant = plant.map(|plant| Shared::new("given", PyPlant::new(plant)));
    let made = py.detach(|| {
        let policy = team.parsed_policy();
        let experiment = Experiment {
            plant: plant.as_ref(),
            ..team.experiment(policy.as_ref())
        };
        Run::make(&experiment, None, &episode, || ())
    });
    let run = made.map_err(failed)?;
    Ok(Recording {
        headline: run.score.headline(team.problem.scoring),
        axes: team.problem.grid.axes,
        run,
    })
}

fn kind(name: &str) -> PyResult<ControllerKind> {
    ControllerKind::named(name).ok_or_else(|| {
        let names = ControllerKind::names();
        PyValueError::new_err(format!(
            "there is no controller '{name}'; choose one of: {names}"
        ))
    })
}

#[pymethods]
impl Recording {
    /// The run's figures: final_error, time_mean_error, effort, travel, intrusion and headline, the one
    /// that the problem is judged by.
    #[getter]
    fn score(&self) -> BTreeMap<&'static str, f64> {
        figures(&self.run.score, self.headline)
    }

    /// Mean squared error to the target after 0, 1, … steps.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let errors = self.run.trajectory.errors.clone();
        let shape = vec![errors.len()];
        shaped(py, errors, shape)
    }

    /// Mean squared force, or speed where agents stir, in steps 1, 2, …
    #[getter]
    fn efforts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let efforts = self.run.trajectory.efforts.clone();
        let shape = vec![efforts.len()];
        shaped(py, efforts, shape)
    }

    /// Agents that answered in steps 1, 2, …
    #[getter]
    fn heard<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
        let heard: Vec<u64> = self
            .run
            .trajectory
            .heard
            .iter()
            .map(|n| *n as u64)
            .collect();
        let shape = vec![heard.len()];
        shaped(py, heard, shape)
    }

    /// The step of each frame.
    #[getter]
    fn frames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
        let steps: Vec<u64> = self
            .run
            .trajectory
            .steps
            .iter()
            .map(|n| *n as u64)
            .collect();
        let shape = vec![steps.len()];
        shaped(py, steps, shape)
    }

    /// The field in each frame: (frames, *grid).
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let trajectory = &self.run.trajectory;
        let shape = [trajectory.fields.len()].into_iter();
        let shape = shape.chain(trajectory.grid.shape().to_vec()).collect();
        shaped(py, trajectory.fields.concat(), shape)
    }

    /// What the field should be in the end, on the same grid.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let trajectory = &self.run.trajectory;
        shaped(
            py,
            trajectory.target.clone(),
            trajectory.grid.shape().to_vec(),
        )
    }

    /// Where agents are in each frame: (frames, agents, axes); at most 1024 of them, spread evenly.
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (trajectory, axes) = (&self.run.trajectory, self.axes);
        let frames = trajectory.steps.len();
        let all = (0..frames).flat_map(|frame| {
            let places = trajectory
                .paths
                .iter()
                .map(move |path| path.positions[frame]);
            places.flat_map(|place| place.into_iter().take(axes))
        });
        shaped(
            py,
            all.collect(),
            vec![frames, trajectory.paths.len(), axes],
        )
    }

    /// Every step in figures, with a fingerprint of all bits, as `agent-sim run` writes it.
    fn csv(&self) -> String {
        self.run.csv()
    }

    fn __repr__(&self) -> String {
        let steps = self.run.trajectory.errors.len().saturating_sub(1);
        format!("<Recording of {steps} steps, score {:.3e}>", self.headline)
    }
}

/// A score by the names of its figures.
pub fn figures(score: &problem::metrics::Score, headline: f64) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([
        ("final_error", score.final_error),
        ("time_mean_error", score.time_mean_error),
        ("effort", score.effort),
        ("travel", score.travel),
        ("intrusion", score.intrusion),
        ("headline", headline),
    ])
}
