//! Where episodes come from: the published test set, a file, or a seed.

use crate::grid::Grid;
use crate::input;
use crate::limit::{self, NoRoom, TooMany};
use crate::npy::{self, NpyError, Shape};
use crate::random_field::episode_rng;
use crate::resample::resample;
use crate::{Episode, Problem};
use serde::Serialize;
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
    /// An `.npy` file of the test sets' shape, or of the same shape on another grid.
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

/// Fewest points along an axis that a field can be resampled from: a cubic has four coefficients.
const FEWEST_POINTS: usize = 4;

/// A set that came on another grid of the problem's domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resampled {
    /// Points along each axis in the file.
    pub from: Vec<usize>,
    /// Points along each axis that the episodes have now: the sensors'.
    pub to: Vec<usize>,
}

impl fmt::Display for Resampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = |shape: &[usize]| {
            let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
            sizes.join("x")
        };
        let (from, to) = (points(&self.from), points(&self.to));
        write!(f, "resampled from {from} to {to} points")
    }
}

/// Why there are no episodes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// More episodes than programs take.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// Episodes that would not fit into memory.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// An episode that no set has.
    #[error(
        "there is no episode {index}: they are numbered from 0 to {}; choose another, or another --seed",
        limit::EPISODES.most - 1
    )]
    NoSuch {
        /// The number asked for.
        index: usize,
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
            limit::EPISODES.check(count)?;
            // Initial field and target.
            let each = 2 * problem.fields() * problem.sensors.len() * size_of::<f32>();
            limit::check_memory(
                (count * each) as u64,
                || format!("{count} episodes of {}", problem.name),
                "give fewer",
            )?;
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
        if index >= limit::EPISODES.most {
            return Err(TestSetError::NoSuch { index });
        }
        let Some(mut all) = self.stored(problem)? else {
            return Ok(fresh(problem, seed, index));
        };
        if index >= all.len() {
            return Err(self.too_few(all.len(), format!("episode {index}")));
        }
        Ok(all.swap_remove(index))
    }

    /// What was done to the fields of a file that has them on another grid; `None` for any other
    /// set. Reads the file's beginning only.
    pub fn resampled(&self, problem: &Problem) -> Result<Option<Resampled>, TestSetError> {
        let Self::File(path) = self else {
            return Ok(None);
        };
        let beginning = input::read_beginning(path, input::EPISODES, npy::LONGEST_HEADER)
            .map_err(|source| unreadable(path, source))?;
        let origin = origin(path);
        let shape = npy::shape(&beginning).map_err(|source| not_npy(&origin, source))?;
        let grid = grid_of(&shape, problem, &origin, true)?;
        let changed = grid.points != problem.sensors.points;
        Ok(changed.then(|| Resampled {
            from: grid.shape().to_vec(),
            to: problem.sensors.shape().to_vec(),
        }))
    }

    /// All episodes of a table or file; `None` for a fresh set.
    fn stored(&self, problem: &Problem) -> Result<Option<Vec<Episode>>, TestSetError> {
        match self {
            Self::Fresh => Ok(None),
            Self::Table => {
                let set = problem.test_set.ok_or(TestSetError::NoTable {
                    problem: problem.name,
                })?;
                // On a longer domain these fields would be stretched, and be those of another problem.
                from_npy(set.bytes, problem, set.origin).map(Some)
            }
            Self::File(path) => {
                let bytes = input::read(path, input::EPISODES)
                    .map_err(|source| unreadable(path, source))?;
                read(&bytes, problem, &origin(path), true).map(Some)
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

fn unreadable(path: &Path, source: std::io::Error) -> TestSetError {
    TestSetError::Io {
        path: path.to_owned(),
        source,
    }
}

fn not_npy(origin: &str, source: NpyError) -> TestSetError {
    TestSetError::Npy {
        origin: origin.to_owned(),
        source,
    }
}

/// Episodes from the bytes of an `.npy` file of shape [samples, 2, points…] or [samples, points…],
/// on the sensors' grid.
pub fn from_npy(
    bytes: &[u8],
    problem: &Problem,
    origin: &str,
) -> Result<Vec<Episode>, TestSetError> {
    read(bytes, problem, origin, false)
}

/// The same, with fields from other grids of the domain resampled if `any_grid`.
fn read(
    bytes: &[u8],
    problem: &Problem,
    origin: &str,
    any_grid: bool,
) -> Result<Vec<Episode>, TestSetError> {
    let array = npy::parse(bytes).map_err(|source| not_npy(origin, source))?;
    let grid = grid_of(&array.shape, problem, origin, any_grid)?;
    let field = |values: &[f32]| resample(values, &grid, &problem.sensors);
    let points = grid.len();
    // Tracking problems have initial field and target, the others an initial field only.
    let state = problem.fields() * points;
    let each = if problem.tracking { 2 * state } else { state };
    let field = |values: &[f32]| values.chunks_exact(points).flat_map(field).collect();
    Ok(array
        .values
        .chunks_exact(each)
        .map(|fields| Episode {
            initial: field(&fields[..state]),
            target: match problem.tracking {
                true => field(&fields[state..]),
                false => vec![0.0; problem.fields() * problem.sensors.len()],
            },
            ..Episode::default()
        })
        .collect())
}

/// The grid of the fields in an array of this shape: the sensors', or if `any_grid` another one of
/// the same domain.
fn grid_of(
    shape: &[usize],
    problem: &Problem,
    origin: &str,
    any_grid: bool,
) -> Result<Grid, TestSetError> {
    let sensors = &problem.sensors;
    // Initial field and target, and the fields where there are several.
    let mut before = Vec::new();
    before.extend(problem.tracking.then_some(2));
    before.extend((problem.fields() > 1).then_some(problem.fields()));
    let points = match shape {
        [0, ..] | [] => &[],
        [_, rest @ ..] => rest.strip_prefix(&before[..]).unwrap_or(&[]),
    };
    let mut grid = *sensors;
    if points.len() == sensors.axes {
        grid.points[..sensors.axes].copy_from_slice(points);
    }
    let usable = match any_grid {
        true => points.iter().all(|n| *n >= FEWEST_POINTS) || points == sensors.shape(),
        false => points == sensors.shape(),
    };
    if points.len() == sensors.axes && usable {
        return Ok(grid);
    }
    let sizes: Vec<String> = sensors.shape().iter().map(usize::to_string).collect();
    let pair: String = before.iter().map(|n| format!("{n}, ")).collect();
    let pairs = match problem.tracking {
        true => " (axis 1: initial field, target)",
        false => "",
    };
    let others = match (any_grid, sensors.axes) {
        (false, _) => String::new(),
        (true, 1) => format!(", or another number of points, at least {FEWEST_POINTS}"),
        (true, _) => format!(", or other numbers of points, at least {FEWEST_POINTS} each way"),
    };
    Err(TestSetError::Shape {
        origin: origin.to_owned(),
        found: Shape(shape.to_vec()),
        problem: problem.name,
        needed: format!("[samples, {pair}{}]{pairs}{others}", sizes.join(", ")),
    })
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

    /// A file of this shape, with values that are those of a smooth field.
    fn saved(folder: &str, shape: &[usize], value: impl Fn(usize) -> f32) -> EpisodeSet {
        let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
        let name = format!("{folder}-{}-{shape:?}.npy", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, npy::encode(shape, &values)).unwrap();
        EpisodeSet::File(path)
    }

    fn gone(set: &EpisodeSet) {
        if let EpisodeSet::File(path) = set {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn fields_from_other_grids_are_resampled_and_it_is_said() {
        // Parabolas between walls, x² and its negative, on 64 points.
        let set = saved("parabolas", &[1, 2, 64], |i| {
            let x = (i % 64) as f32 / 63.0;
            if i < 64 { x * x } else { -x * x }
        });
        let episode = set.episode(&PROBLEM, 0, 0).unwrap();
        for (j, (a, b)) in episode.initial.iter().zip(&episode.target).enumerate() {
            let x = j as f32 / 99.0;
            assert!((a - x * x).abs() < 1e-6 && (b + x * x).abs() < 1e-6, "{j}");
        }
        let said = set.resampled(&PROBLEM).unwrap().unwrap().to_string();
        assert_eq!(said, "resampled from 64 to 100 points");
        gone(&set);

        // A wave of a torus, on finer and uneven points.
        let torus = crate::published::turbulence_2d::PROBLEM;
        let set = saved("wave", &[1, 80, 96], |i| {
            (std::f32::consts::TAU * (i % 96) as f32 / 96.0).sin()
        });
        let episode = set.episode(&torus, 0, 0).unwrap();
        let columns = torus.sensors.points[1];
        for (j, value) in episode.initial.iter().enumerate() {
            let turn = (j % columns) as f32 / columns as f32;
            assert!((value - (std::f32::consts::TAU * turn).sin()).abs() < 1e-5);
        }
        let said = set.resampled(&torus).unwrap().unwrap().to_string();
        assert_eq!(said, "resampled from 80x96 to 64x64 points");
        gone(&set);
    }

    #[test]
    fn sets_on_the_sensors_grid_are_taken_as_they_are() {
        let set = saved("plain", &[2, 2, 100], |i| i as f32);
        assert_eq!(set.resampled(&PROBLEM).unwrap(), None);
        let episodes = set.episodes(&PROBLEM, 0, None).unwrap();
        assert_eq!((episodes.len(), episodes[1].target[99]), (2, 399.0));
        gone(&set);
        assert_eq!(EpisodeSet::Table.resampled(&PROBLEM).unwrap(), None);
        assert_eq!(EpisodeSet::Fresh.resampled(&PROBLEM).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_resampled_is_refused_with_what_can() {
        let torus = crate::published::turbulence_2d::PROBLEM;
        let cases: [(&Problem, &[usize], &str); 8] = [
            (&PROBLEM, &[3, 100], "[samples, 2, 100] (axis 1: initial"),
            (&PROBLEM, &[3, 1, 100], "[3, 1, 100]"),
            (
                &PROBLEM,
                &[3, 2, 3],
                "or another number of points, at least 4;",
            ),
            (&PROBLEM, &[3, 2, 10, 10], "[3, 2, 10, 10]"),
            (&PROBLEM, &[0, 2, 64], "[0, 2, 64]"),
            (&PROBLEM, &[], "[]"),
            (&torus, &[3, 2, 64], "at least 4 each way"),
            (&torus, &[3, 2, 64, 64], "needs [samples, 64, 64], or"),
        ];
        for (problem, shape, fact) in cases {
            let set = saved("odd", shape, |_| 0.0);
            for error in [
                set.episodes(problem, 0, None).unwrap_err(),
                set.resampled(problem).unwrap_err(),
            ] {
                assert!(error.to_string().contains(fact), "{error}");
            }
            gone(&set);
        }
    }

    #[test]
    fn the_published_table_is_never_stretched_to_another_domain() {
        let front = &crate::published::ks_1d::PROBLEM;
        let longer = front.with_physics([("length", 44.0)]).unwrap();
        let error = EpisodeSet::Table.episodes(&longer, 0, None).unwrap_err();
        assert!(
            error.to_string().contains("needs [samples, 256];"),
            "{error}"
        );
    }
}
