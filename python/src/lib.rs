//! Fieldswarm in Python: the engine's own types, handed on. What decides anything stands in the crates
//! below; here are conversions, and exceptions with the facts in them.

#![warn(missing_docs)]

mod batch;
mod plant;
mod policy;
mod problem;
mod recording;
mod refusal;
mod training;
mod words;

use pyo3::prelude::*;

/// The engine.
#[pymodule]
mod _native {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::policy::{PyAgents, PyPolicy, blank_header};
    #[pymodule_export]
    use crate::problem::{PyProblem, problems};
    #[pymodule_export]
    use crate::recording::{Recording, run};
    #[pymodule_export]
    use crate::training::{Training, train};
}
