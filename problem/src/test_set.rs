//! Where episodes come from: the published test set, a file, or a seed.

use crate::npy::{self, NpyError, Shape};
use crate::random_field::episode_rng;
use crate::{Episode, Problem};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// First random stream of evaluation episodes.
///
/// Training draws from streams counted from 0 with seeds of its own; starting half-way up makes
/// sure that no evaluation episode was ever trained on, whatever the two seeds are.
const EVALUATION_STREAM: u64 = 1 << 63;

/// A source of episodes, as named on the command line: `table`, `fresh` or the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpisodeSet {
    /// The published test episodes, built into the program.
    Table,
    /// New draws from the problem's distribution, numbered from 0 under one seed.
    Fresh,
    /// An `.npy` file of the test sets' shape.
    File(PathBuf),
}

impl FromStr for EpisodeSet {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "table" => Self::Table,
            "fresh" => Self::Fresh,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for EpisodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("table"),
            Self::Fresh => f.write_str("fresh"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why there are no episodes.
#[derive(Debug, thiserror::Error)]
pub enum TestSetError {
    /// The file cannot be read.
    #[error("cannot read the test set {}: {source}; give --set table, --set fresh or the path of a .npy file", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The problem has no published episodes.
    #[error(
        "{problem} comes without a table of test episodes; give --set fresh or the path of a .npy file"
    )]
    NoTable {
        /// Name of the problem.
        problem: &'static str,
    },
    /// The file is not an array of the right kind.
    #[error("cannot use the test set {origin}: {source}")]
    Npy {
        /// The file.
        origin: String,
        /// What is wrong with it.
        source: NpyError,
    },
    /// An array of another shape.
    #[error(
        "cannot use the test set {origin}: its shape is {found} but {problem} needs {needed}; --set fresh draws such"
    )]
    Shape {
        /// The file.
        origin: String,
        /// Its shape.
        found: Shape,
        /// Name of the problem.
        problem: &'static str,
        /// What it should be.
        needed: String,
    },
    /// Fewer episodes in the set than asked for.
    #[error(
        "the test set {origin} has {available} episodes, numbered from 0; {asked} cannot be taken from it"
    )]
    TooFew {
        /// The set.
        origin: String,
        /// Episodes in it.
        available: usize,
        /// What was asked for, as `episode 60` or `60 episodes`.
        asked: String,
    },
}

impl EpisodeSet {
    /// The first `count` episodes; all of a table or file when `count` is `None`, 50 of a fresh set.
    pub fn episodes(
        &self,
        problem: &Problem,
        seed: u64,
        count: Option<usize>,
    ) -> Result<Vec<Episode>, TestSetError> {
        let Some(mut all) = self.stored(problem)? else {
            let count = count.unwrap_or(50);
            return Ok((0..count).map(|i| fresh(problem, seed, i)).collect());
        };
        let count = count.unwrap_or(all.len());
        if count > all.len() {
            return Err(self.too_few(all.len(), format!("{count} episodes")));
        }
        all.truncate(count);
        Ok(all)
    }

    /// Episode number `index`.
    pub fn episode(
        &self,
        problem: &Problem,
        seed: u64,
        index: usize,
    ) -> Result<Episode, TestSetError> {
        let Some(mut all) = self.stored(problem)? else {
            return Ok(fresh(problem, seed, index));
        };
        if index >= all.len() {
            return Err(self.too_few(all.len(), format!("episode {index}")));
        }
        Ok(all.swap_remove(index))
    }

    /// All episodes of a table or file; `None` for a fresh set.
    fn stored(&self, problem: &Problem) -> Result<Option<Vec<Episode>>, TestSetError> {
        match self {
            Self::Fresh => Ok(None),
            Self::Table => {
                let set = problem.test_set.ok_or(TestSetError::NoTable {
                    problem: problem.name,
                })?;
                from_npy(set.bytes, problem, set.origin).map(Some)
            }
            Self::File(path) => {
                let bytes = std::fs::read(path).map_err(|source| TestSetError::Io {
                    path: path.clone(),
                    source,
                })?;
                from_npy(&bytes, problem, &origin(path)).map(Some)
            }
        }
    }

    fn too_few(&self, available: usize, asked: String) -> TestSetError {
        TestSetError::TooFew {
            origin: self.to_string(),
            available,
            asked,
        }
    }
}

fn origin(path: &Path) -> String {
    path.display().to_string()
}

/// Episode `index` of a fresh set.
fn fresh(problem: &Problem, seed: u64, index: usize) -> Episode {
    (problem.draw)(
        problem,
        &mut episode_rng(seed, EVALUATION_STREAM + index as u64),
    )
}

/// Episodes from the bytes of an `.npy` file of shape [samples, 2, points…] or [samples, points…].
pub fn from_npy(
    bytes: &[u8],
    problem: &Problem,
    origin: &str,
) -> Result<Vec<Episode>, TestSetError> {
    let array = npy::parse(bytes).map_err(|source| TestSetError::Npy {
        origin: origin.to_owned(),
        source,
    })?;
    // Tracking problems have initial field and target, the others an initial field only.
    let points = problem.sensors.len();
    let mut shape = problem.sensors.shape().to_vec();
    if problem.tracking {
        shape.insert(0, 2);
    }
    if array.shape.first().is_none_or(|&n| n == 0) || array.shape[1..] != shape {
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        let pairs = match problem.tracking {
            true => " (axis 1: initial field, target)",
            false => "",
        };
        return Err(TestSetError::Shape {
            origin: origin.to_owned(),
            found: Shape(array.shape),
            problem: problem.name,
            needed: format!("[samples, {}]{pairs}", sizes.join(", ")),
        });
    }
    let each = shape.iter().product();
    Ok(array
        .values
        .chunks_exact(each)
        .map(|fields| Episode {
            initial: fields[..points].to_vec(),
            target: match problem.tracking {
                true => fields[points..].to_vec(),
                false => vec![0.0; points],
            },
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::heat_1d::PROBLEM;

    #[test]
    fn the_table_has_the_published_episodes() {
        let episodes = EpisodeSet::Table.episodes(&PROBLEM, 0, None).unwrap();
        assert_eq!(episodes.len(), 50);
        // "Heat 1D initial MSE to target 0.9609" (test sets' README).
        let mse = |e: &Episode| {
            let pairs = e.initial.iter().zip(&e.target);
            pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 100.0
        };
        let mean = episodes.iter().map(mse).sum::<f64>() / 50.0;
        assert!((mean - 0.9609).abs() < 1e-4, "{mean}");
    }

    #[test]
    fn a_fresh_episode_depends_on_its_seed_and_number_only() {
        let three = EpisodeSet::Fresh.episodes(&PROBLEM, 7, Some(3)).unwrap();
        assert_eq!(three[2], EpisodeSet::Fresh.episode(&PROBLEM, 7, 2).unwrap());
        assert_ne!(three[2], EpisodeSet::Fresh.episode(&PROBLEM, 8, 2).unwrap());
        assert_ne!(three[2], three[1]);
    }

    #[test]
    fn evaluation_never_meets_a_training_stream() {
        let trained = (PROBLEM.draw)(&PROBLEM, &mut episode_rng(7, 0));
        assert_ne!(trained, EpisodeSet::Fresh.episode(&PROBLEM, 7, 0).unwrap());
    }

    #[test]
    fn asking_for_too_many_says_how_many_there_are() {
        let error = EpisodeSet::Table.episode(&PROBLEM, 0, 50).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("50 episodes, numbered from 0; episode 50")
        );
    }
}
