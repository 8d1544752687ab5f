//! Fieldswarm in Python: the engine's own types, handed on. What decides anything stands in the crates
//! below; here are conversions, and exceptions with the facts in them.

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
