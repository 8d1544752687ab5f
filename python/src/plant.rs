//! A solver in Python as the field.

use agent_sim::plant::{LastWords, Plant, PlantError, Start, described};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// A `fieldswarm.plant.InProcess`. Its methods check what the solver returns.
pub struct PyPlant(Py<PyAny>);

impl PyPlant {
    pub fn new(plant: Py<PyAny>) -> Self {
        Self(plant)
    }
}

/// An exception of the solver, in words.
fn refused(py: Python<'_>, error: &PyErr) -> PlantError {
    let kind = error.get_type(py).name().map(|name| name.to_string());
    PlantError::Refused {
        plant: "given".to_owned(),
        why: format!("{}: {}", kind.unwrap_or_default(), error.value(py)),
        said: LastWords::default(),
    }
}

/// Takes over the field that the solver returned.
fn take(answer: &Bound<'_, PyAny>, state: &mut [f64]) -> PyResult<()> {
    let field: PyReadonlyArray1<'_, f64> = answer.extract()?;
    let field = field.as_slice()?;
    if field.len() != state.len() {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "the field has {} values, not {}",
            field.len(),
            state.len()
        )));
    }
    state.copy_from_slice(field);
    Ok(())
}

impl Plant for PyPlant {
    fn reset(&mut self, start: &Start<'_>, state: &mut [f64]) -> Result<(), PlantError> {
        let (hello, volumes) = described(start.problem);
        let dt = start.problem.control_interval / start.parts as f64;
        Python::attach(|py| {
            let initial = PyArray1::from_slice(py, state);
            let volumes = PyArray1::from_vec(py, volumes);
            let arguments = (hello, volumes, initial, dt, start.seed);
            let answer = self.0.bind(py).call_method1("reset", arguments);
            let taken = answer.and_then(|answer| take(&answer, state));
            taken.map_err(|error| refused(py, &error))
        })
    }

    fn step(&mut self, forcing: &[f64], dt: f64, state: &mut [f64]) -> Result<(), PlantError> {
        Python::attach(|py| {
            let forcing = PyArray1::from_slice(py, forcing);
            let answer = self.0.bind(py).call_method1("step", (forcing, dt));
            let taken = answer.and_then(|answer| take(&answer, state));
            taken.map_err(|error| refused(py, &error))
        })
    }
}
