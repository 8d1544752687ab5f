//! What the crates below say, in the words of Python: exceptions of fitting types, and keyword arguments
//! where the command line has flags.

use artifacts::output::ClaimError;
use pyo3::PyErr;
use pyo3::exceptions::{PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError};
use std::io;
use trainer::run::Held;

/// The exception for an error: one of files where it is about files, else `otherwise`.
pub fn exception(error: &anyhow::Error, otherwise: fn(String) -> PyErr) -> PyErr {
    let said = in_keywords(&format!("{error:#}"));
    let kind = (error.chain())
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    if error.chain().any(|cause| cause.is::<Held>()) {
        return PyFileExistsError::new_err(said);
    }
    match kind {
        Some(io::ErrorKind::NotFound) => PyFileNotFoundError::new_err(said),
        Some(io::ErrorKind::PermissionDenied) => PyPermissionError::new_err(said),
        Some(_) => PyOSError::new_err(said),
        None if error.chain().any(|cause| cause.is::<ClaimError>()) => PyOSError::new_err(said),
        None => otherwise(said),
    }
}

/// Flags that are keyword arguments here, and their names.
const KEYWORDS: [(&str, &str); 26] = [
    ("actuator-noise", "actuator_noise"),
    ("agents", "agents"),
    ("backend", "backend"),
    ("batch", "batch"),
    ("deadly-episodes", "deadly_episodes"),
    ("deaths", "deaths"),
    ("deaths-by", "deaths_by"),
    ("delay", "delay"),
    ("from", "from_policy"),
    ("hard", "hard"),
    ("hard-share", "hard_share"),
    ("lr", "lr"),
    ("memory", "memory"),
    ("out", "out"),
    ("overwrite", "overwrite=True"),
    ("physics", "physics"),
    ("policy", "policy"),
    ("rests", "rests=True"),
    ("resume", "resume=True"),
    ("retreats", "retreats"),
    ("seed", "seed"),
    ("sensor-noise", "sensor_noise"),
    ("steps", "steps"),
    ("threads", "threads"),
    ("weight", "weight"),
    ("window", "window"),
];

/// A sentence of the command line with keyword arguments instead of flags.
pub fn in_keywords(said: &str) -> String {
    let mut parts = said.split("--");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_lowercase() && c != '-')
            .unwrap_or(part.len());
        match KEYWORDS.iter().find(|(flag, _)| *flag == &part[..end]) {
            Some((_, keyword)) => {
                words += keyword;
                words += &part[end..];
            }
            None => {
                words += "--";
                words += part;
            }
        }
    }
    words
}
