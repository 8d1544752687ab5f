//! Problems: the published ones, and those that files describe.

use crate::refusal::bad_input;
use agent_sim::scenario::Scenario;
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use problem::grid::{Edge, Grid, Points};
use problem::test_set::EpisodeSet;
use problem::{Drives, Headline, Problem, Problems, Records};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Names of the published problems.
#[pyfunction]
pub fn problems() -> Vec<&'static str> {
    Problems::published()
        .iter()
        .map(|problem| problem.name)
        .collect()
}

/// A control problem: a field, what agents can do to it and see of it, and how runs are scored.
#[pyclass(name = "Problem", module = "fieldswarm", frozen)]
#[derive(Clone)]
pub struct PyProblem {
    pub problem: Problem,
    scenario: Scenario,
}

impl PyProblem {
    /// What a run of it is written down as, to be filled in.
    pub fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }
}

/// Numbers along the axes that there are.
fn along(grid: &Grid, values: [f64; 2]) -> Vec<f64> {
    values[..grid.axes].to_vec()
}

fn points(given: &Bound<'_, PyAny>) -> PyResult<Points> {
    if let Ok(first) = given.extract::<usize>() {
        return Ok(first.into());
    }
    match given.extract::<Vec<usize>>() {
        Ok(each) if each.len() == 1 => Ok(each[0].into()),
        Ok(each) if each.len() == 2 => Ok([each[0], each[1]].into()),
        _ => Err(PyTypeError::new_err(
            "grid must be a number of points along the first axis or one for each axis, such as 96 or (48, 80)",
        )),
    }
}

#[pymethods]
impl PyProblem {
    #[new]
    #[pyo3(signature = (name, *, variant=None, physics=None, grid=None, substeps=None))]
    fn new(
        name: &str,
        variant: Option<String>,
        physics: Option<BTreeMap<String, f64>>,
        grid: Option<&Bound<'_, PyAny>>,
        substeps: Option<usize>,
    ) -> PyResult<Self> {
        let scenario = Scenario {
            problem: name.to_owned(),
            variant,
            physics: physics.unwrap_or_default(),
            grid: grid.map(points).transpose()?,
            substeps,
            set: EpisodeSet::Fresh.to_string(),
            ..Scenario::default()
        };
        let problem = scenario.solved(&Problems::published()).map_err(bad_input)?;
        Ok(Self { problem, scenario })
    }

    /// Its name, as policies have it.
    #[getter]
    fn name(&self) -> &'static str {
        self.problem.name
    }

    /// One line about it.
    #[getter]
    fn summary(&self) -> &'static str {
        self.problem.summary
    }

    /// What the field is.
    #[getter]
    fn quantity(&self) -> &'static str {
        self.problem.quantity
    }

    /// Space dimensions: 1 or 2.
    #[getter]
    fn axes(&self) -> usize {
        self.problem.grid.axes
    }

    /// Points of the grid that the field is computed on.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.problem.grid.shape().to_vec()
    }

    /// Points of the grid that sensors and episodes have.
    #[getter]
    fn sensor_shape(&self) -> Vec<usize> {
        self.problem.sensors.shape().to_vec()
    }

    /// Lowest coordinate along each axis.
    #[getter]
    fn low(&self) -> Vec<f64> {
        along(&self.problem.grid, self.problem.grid.low)
    }

    /// Highest coordinate along each axis.
    #[getter]
    fn high(&self) -> Vec<f64> {
        along(&self.problem.grid, self.problem.grid.high)
    }

    /// Whether each axis is periodic.
    #[getter]
    fn periodic(&self) -> Vec<bool> {
        let grid = &self.problem.grid;
        let edges = grid.edges[..grid.axes].iter();
        edges.map(|edge| *edge == Edge::Periodic).collect()
    }

    /// Number of fields; agents see one of them.
    #[getter]
    fn fields(&self) -> usize {
        self.problem.fields()
    }

    /// Agents in the published experiment.
    #[getter]
    fn agents(&self) -> usize {
        self.problem.agents
    }

    /// Control steps of an episode.
    #[getter]
    fn horizon(&self) -> usize {
        self.problem.horizon
    }

    /// Time between two actions.
    #[getter]
    fn interval(&self) -> f64 {
        self.problem.control_interval
    }

    /// Cells of an agent's window along each axis, as published.
    #[getter]
    fn window(&self) -> usize {
        self.problem.sensing.window
    }

    /// Largest force of an agent; 0 for agents without one.
    #[getter]
    fn force_max(&self) -> f64 {
        self.problem.actuation.force_max
    }

    /// Largest velocity of an agent along an axis; 0 for agents that stay.
    #[getter]
    fn velocity_max(&self) -> f64 {
        self.problem.actuation.velocity_max
    }

    /// Whether agents stir the medium with their velocity, rather than force the field.
    #[getter]
    fn stirs(&self) -> bool {
        self.problem.actuation.drives == Drives::Flow
    }

    /// Whether there is a target field; otherwise it is zero.
    #[getter]
    fn tracking(&self) -> bool {
        self.problem.tracking
    }

    /// The figure that runs are judged by: "final_error" or "time_mean_error".
    #[getter]
    fn headline(&self) -> &'static str {
        match self.problem.scoring.headline {
            Headline::Final => "final_error",
            Headline::TimeMean => "time_mean_error",
        }
    }

    /// Whether the states before each action are scored, rather than those after it.
    #[getter]
    fn scores_before_action(&self) -> bool {
        self.problem.scoring.records == Records::BeforeAction
    }

    /// The step from which on states count in means over time.
    #[getter]
    fn scored_from(&self) -> usize {
        self.problem.scoring.from
    }

    /// Values of the equation's coefficients.
    #[getter]
    fn physics(&self) -> BTreeMap<&'static str, f64> {
        let coefficients = self.problem.coefficients.iter();
        let named = coefficients.map(|c| (c.name, self.problem.coefficient(c.name)));
        named.collect()
    }

    /// The policy that ships with it, as bytes; None where there is none.
    #[getter]
    fn shipped_policy(&self) -> Option<&'static [u8]> {
        self.problem.policy
    }

    /// Where `agents` agents start: an array (agents, axes).
    #[pyo3(signature = (agents=None))]
    fn placement<'py>(
        &self,
        py: Python<'py>,
        agents: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let problem = &self.problem;
        let agents = agents.unwrap_or(problem.agents);
        problem.check_agents(agents).map_err(bad_input)?;
        let axes = problem.grid.axes;
        let places = (problem.placement)(problem, agents);
        let flat: Vec<f64> = places.iter().flat_map(|p| p[..axes].to_vec()).collect();
        shaped(py, flat, vec![agents, axes])
    }

    /// The initial field and the target of an episode, on the sensors' grid: two arrays, with an axis
    /// for the fields in front where there are several.
    #[pyo3(signature = (seed=0, index=0, *, set="fresh"))]
    #[expect(clippy::type_complexity)]
    fn episode<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        index: usize,
        set: &str,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyArrayDyn<f32>>)> {
        let set: EpisodeSet = set.parse().unwrap_or_else(|never| match never {});
        let episode = set.episode(&self.problem, seed, index).map_err(bad_input)?;
        let shape = state_shape(&self.problem, &self.problem.sensors);
        let initial = shaped(py, episode.initial, shape.clone())?;
        Ok((initial, shaped(py, episode.target, shape)?))
    }

    /// Episodes of a stored set: "table" or the path of a `.npy` file.
    fn stored_episodes(&self, set: &str) -> PyResult<usize> {
        let set: EpisodeSet = set.parse().unwrap_or_else(|never| match never {});
        let all = set.episodes(&self.problem, 0, None).map_err(bad_input)?;
        Ok(all.len())
    }

    fn __repr__(&self) -> String {
        format!("<Problem {}: {}>", self.problem.name, self.problem.summary)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<u8>,))> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((restore, (self.scenario.to_toml().into_bytes(),)))
    }

    /// What `pickle` wrote, read.
    #[staticmethod]
    fn _restore(written: Vec<u8>) -> PyResult<Self> {
        let text = String::from_utf8_lossy(&written);
        let scenario = Scenario::from_toml(&text).map_err(bad_input)?;
        let problem = scenario.solved(&Problems::published()).map_err(bad_input)?;
        Ok(Self { problem, scenario })
    }
}

/// The shape of a state on a grid: an axis for the fields comes first where there are several.
pub fn state_shape(problem: &Problem, grid: &Grid) -> Vec<usize> {
    let fields = Some(problem.fields()).filter(|fields| *fields > 1);
    fields.into_iter().chain(grid.shape().to_vec()).collect()
}

/// Values as an array of a shape that they fill.
pub fn shaped<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: Vec<usize>,
) -> PyResult<Bound<'_, PyArrayDyn<T>>> {
    values.into_pyarray(py).reshape(shape)
}
