//! How a plant can fail.

use std::time::Duration;

/// Why a plant did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlantError {
    /// There is nobody there.
    #[error("the plant {plant} cannot be reached: {why}")]
    Unreachable {
        /// Its name.
        plant: String,
        /// In words.
        why: String,
    },
    /// It ended, or closed the line.
    #[error("the plant {plant} stopped: {why}")]
    Stopped {
        /// Its name.
        plant: String,
        /// In words.
        why: String,
    },
    /// It did not answer in time.
    #[error(
        "the plant {plant} stalled: {why} in {:.3} s; give --plant-patience more seconds if it needs them",
        patience.as_secs_f64()
    )]
    Stalled {
        /// Its name.
        plant: String,
        /// What did not come, in words.
        why: String,
        /// How long was waited for it.
        patience: Duration,
    },
    /// It said itself that it cannot.
    #[error("the plant {plant} refuses: {why}")]
    Refused {
        /// Its name.
        plant: String,
        /// In its words.
        why: String,
    },
    /// Its answer is none: another protocol, another shape, too much of it.
    #[error("the plant {plant} gave no answer that can be used: {why}")]
    Malformed {
        /// Its name.
        plant: String,
        /// In words.
        why: String,
    },
    /// Its field is more than sensors can show.
    #[error(
        "the plant {plant} answered with {value} for the field at point {index}; every value must be a \
         number below 3.4e38"
    )]
    NotFinite {
        /// Its name.
        plant: String,
        /// Which of the state's values, the first of them.
        index: usize,
        /// NaN, an infinity, or too large.
        value: f64,
    },
    /// Another run took it in between.
    #[error(
        "the plant {plant} was given to another run before this one ended; one plant has one field: \
         make runs on it one after the other"
    )]
    Taken {
        /// Its name.
        plant: String,
    },
}
