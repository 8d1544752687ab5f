//! How a plant can fail.

use crate::episode::place_text;
use std::fmt;
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
    #[error("the plant {plant} stopped: {why}{said}")]
    Stopped {
        /// Its name.
        plant: String,
        /// In words.
        why: String,
        /// What it wrote besides.
        said: LastWords,
    },
    /// It did not answer in time.
    #[error(
        "the plant {plant} stalled: {why} within {} s; give --plant-patience more seconds if it needs \
         them{said}",
        patience.as_secs_f64()
    )]
    Stalled {
        /// Its name.
        plant: String,
        /// What did not happen, in words.
        why: String,
        /// How long was waited for it.
        patience: Duration,
        /// What it wrote besides.
        said: LastWords,
    },
    /// It said itself that it cannot.
    #[error("the plant {plant} refuses: {why}{said}")]
    Refused {
        /// Its name.
        plant: String,
        /// In its words.
        why: String,
        /// What it wrote besides.
        said: LastWords,
    },
    /// Its answer is none: another protocol, another shape, too much of it.
    #[error("the plant {plant} gave no answer that can be used: {why}{said}")]
    Malformed {
        /// Its name.
        plant: String,
        /// In words.
        why: String,
        /// What it wrote besides.
        said: LastWords,
    },
    /// Its field is more than sensors can show.
    #[error(
        "the plant {plant} answered with {value} for the field at {}; sensors show numbers below 3.4e38",
        place_text(place)
    )]
    NotFinite {
        /// Its name.
        plant: String,
        /// Where, the first of the places.
        place: Vec<f64>,
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

/// The last lines that a plant wrote to its standard error, in characters that can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastWords(pub Vec<String>);

/// Nothing, or a clause and the lines below it.
impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, "; its last words:")?;
        }
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}
