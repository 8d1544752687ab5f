//! What went wrong, as Python says it.

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use std::error::Error;
use std::io;

/// An error of the engine that the caller can mend: files that cannot be read are an `OSError`, all else
/// is a `ValueError`.
pub fn bad_input(error: impl Error) -> PyErr {
    let text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<io::Error>() {
            return PyOSError::new_err(text);
        }
        cause = error.source();
    }
    PyValueError::new_err(text)
}

/// An error of a run that had begun.
pub fn failed(error: impl Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
