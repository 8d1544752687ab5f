//! Several processes that train together, each a part of the episodes of every step.
//!
//! They are started by `mpirun`, know their number, and agree on everything by one operation: each says
//! something, and all hear what everybody said, in the order of their numbers ([`Ranks::exchange`]). A rank
//! that fails says that instead, so that none waits for it. Nothing that is computed depends on who hears it
//! first.

use crate::rollout::{Rollout, RolloutError, Terms};
use crate::trial::Trial;
use artifacts::seal::checksum;
use problem::Problem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

#[cfg(feature = "mpi")]
mod world;
#[cfg(feature = "mpi")]
pub use world::{GRACE, World};

/// How long a rank waits for the others, unless it is told otherwise.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The ranks of a training, as one of them sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// Its number, from 0 on.
    own: usize,
    /// How many there are.
    of: usize,
    /// So many of them compute; the others only listen.
    busy: usize,
    /// Its number among those on its machine.
    local: usize,
    /// How long it waits for the others.
    patience: Duration,
}

/// Why ranks cannot go on together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// One of them cannot go on.
    #[error("rank {rank} of {of}: {said}")]
    Failed {
        /// Which.
        rank: usize,
        /// How many there are.
        of: usize,
        /// What stands in its way.
        said: String,
    },
    /// Not all of them answer.
    #[error(
        "of {of} ranks not all have answered in {} s: one hangs, or its machine is gone; end them and go on with \
         --resume", .patience.as_secs()
    )]
    Silent {
        /// How many there are.
        of: usize,
        /// How long they were waited for.
        patience: Duration,
    },
    /// They were not asked for the same.
    #[error(
        "rank {rank} and rank 0 do not have the same {what}; start all of them with the same program, files and options"
    )]
    Differ {
        /// The first that differs.
        rank: usize,
        /// In what.
        what: &'static str,
    },
    /// Something that no rank of this program says.
    #[error(
        "rank {rank} says something that cannot be read; start all of them with the same program"
    )]
    Gibberish {
        /// Who.
        rank: usize,
    },
}

impl RankError {
    /// Whether all ranks know of it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Differ { .. })
    }
}

/// What a rank tells the others: something, or why it cannot.
#[derive(Serialize, Deserialize)]
enum Told<T> {
    This(T),
    Failed(String),
}

impl Ranks {
    /// A process without others.
    pub const ALONE: Self = Self {
        own: 0,
        of: 1,
        busy: 1,
        local: 0,
        patience: PATIENCE,
    };

    /// Its number, from 0 on.
    pub fn own(self) -> usize {
        self.own
    }

    /// How many there are.
    pub fn of(self) -> usize {
        self.of
    }

    /// Its number among those on its machine, from 0 on.
    pub fn local(self) -> usize {
        self.local
    }

    /// Whether this one keeps what comes of the training and speaks of it.
    pub fn leads(self) -> bool {
        self.own == 0
    }

    /// The same ranks, of which only the first so many compute.
    pub fn first(self, busy: usize) -> Self {
        Self {
            busy: busy.clamp(1, self.of),
            ..self
        }
    }

    /// Which of so many episodes are this rank's.
    pub fn part(self, episodes: usize) -> Range<usize> {
        let from = |rank: usize| rank.min(self.busy) * episodes / self.busy;
        from(self.own)..from(self.own + 1)
    }

    /// The most episodes that are one rank's, of so many.
    pub fn largest_part(self, episodes: usize) -> usize {
        episodes.div_ceil(self.busy)
    }

    /// Tells the others something, and returns what each of them told, in order.
    pub fn exchange<T: Serialize + DeserializeOwned>(self, own: T) -> Result<Vec<T>, RankError> {
        match self.of {
            1 => Ok(vec![own]),
            _ => self.tell(&Told::This(own)),
        }
    }

    /// Tells the others that this one cannot go on, in whatever exchange they are.
    pub fn fail(self, why: &str) {
        if self.of > 1 {
            let _ = self.tell::<()>(&Told::Failed(why.to_owned()));
        }
    }

    fn tell<T: Serialize + DeserializeOwned>(self, own: &Told<T>) -> Result<Vec<T>, RankError> {
        let own = postcard::to_stdvec(own).expect("what is told is plain data");
        let told = self.all_gather(&own)?;
        // Who fails says so in an exchange of something else.
        let read = |(rank, bytes): (usize, &Vec<u8>)| match bytes.split_first() {
            Some((1, said)) => Err(RankError::Failed {
                rank,
                of: self.of,
                said: postcard::from_bytes(said).unwrap_or_default(),
            }),
            _ => match postcard::from_bytes(bytes) {
                Ok(Told::This(told)) => Ok(told),
                _ => Err(RankError::Gibberish { rank }),
            },
        };
        told.iter().enumerate().map(read).collect()
    }

    #[cfg(feature = "mpi")]
    fn all_gather(self, own: &[u8]) -> Result<Vec<Vec<u8>>, RankError> {
        world::all_gather(own, self.patience).ok_or(self.silent())
    }

    /// Nobody can be heard.
    #[cfg(not(feature = "mpi"))]
    fn all_gather(self, _: &[u8]) -> Result<Vec<Vec<u8>>, RankError> {
        Err(self.silent())
    }

    fn silent(self) -> RankError {
        RankError::Silent {
            of: self.of,
            patience: self.patience,
        }
    }

    /// Whether it holds for any of them.
    pub fn any(self, holds: bool) -> Result<bool, RankError> {
        Ok(self.exchange(holds)?.contains(&true))
    }

    /// Refuses ranks that were not asked for the same; each thing has a name that can be told.
    pub fn agree(self, on: &[(&'static str, String)]) -> Result<(), RankError> {
        let sums = on.iter().map(|(what, all)| checksum(what, all.as_bytes()));
        let told: Vec<Vec<String>> = self.exchange(sums.collect())?;
        for (rank, sums) in told.iter().enumerate() {
            let differs = (on.iter().zip(&told[0]).zip(sums)).find(|((_, a), b)| a != b);
            if let Some((((what, _), _), _)) = differs {
                return Err(RankError::Differ { rank, what });
            }
        }
        Ok(())
    }
}

/// How many processes a launcher has started beside this one and including it; 1 where none has.
pub fn started() -> usize {
    let count = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let by_launcher = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
        .into_iter()
        .find_map(count);
    // Slurm says how many in a variable that scripts have too.
    let by_slurm = || {
        std::env::var_os("PMIX_RANK")?;
        count("SLURM_STEP_NUM_TASKS")
    };
    by_launcher.or_else(by_slurm).unwrap_or(1)
}

/// A closed loop whose episodes are shared by ranks: each runs its part, and all get what comes of all.
pub struct SharedRollout {
    each: Box<dyn Rollout>,
    ranks: Ranks,
}

impl SharedRollout {
    /// One that runs this rank's part in `each`.
    pub fn new(each: Box<dyn Rollout>, ranks: Ranks) -> Self {
        Self { each, ranks }
    }
}

impl Rollout for SharedRollout {
    fn problem(&self) -> &Problem {
        self.each.problem()
    }

    fn horizon(&self) -> usize {
        self.each.horizon()
    }

    fn terms(&mut self, parameters: &[f32], trials: &[Trial]) -> Result<Vec<Terms>, RolloutError> {
        let own = match &trials[self.ranks.part(trials.len())] {
            [] => Vec::new(),
            own => self.each.terms(parameters, own)?,
        };
        Ok(self.ranks.exchange(own)?.concat())
    }

    fn gradient(
        &mut self,
        parameters: &[f32],
        trials: &[Trial],
        weights: &Terms,
    ) -> Result<(Vec<Terms>, Vec<f32>), RolloutError> {
        let own = match &trials[self.ranks.part(trials.len())] {
            [] => Default::default(),
            own => {
                // The mean over its own is this share of the mean over all.
                let share = own.len() as f64 / trials.len() as f64;
                let weights = weights.map(|weight| weight * share);
                self.each.gradient(parameters, own, &weights)?
            }
        };
        let (mut terms, mut sum) = (Vec::new(), vec![0.0; parameters.len()]);
        for (rank, (theirs, gradient)) in self.ranks.exchange(own)?.into_iter().enumerate() {
            let expected = if theirs.is_empty() { 0 } else { sum.len() };
            if gradient.len() != expected {
                return Err(RankError::Gibberish { rank }.into());
            }
            terms.extend(theirs);
            // In order, so that the bits are the same whoever was there first.
            for (sum, g) in sum.iter_mut().zip(gradient) {
                *sum += g;
            }
        }
        Ok((terms, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_episode_is_one_ranks_and_parts_are_as_even_as_they_can_be() {
        for (of, busy) in [(1, 1), (2, 2), (3, 3), (4, 2), (7, 5)] {
            for episodes in [0, 1, 5, 64] {
                let ranks = (0..of).map(|own| {
                    Ranks {
                        own,
                        of,
                        ..Ranks::ALONE
                    }
                    .first(busy)
                });
                let parts: Vec<Range<usize>> = ranks.map(|ranks| ranks.part(episodes)).collect();
                let all: Vec<usize> = parts.iter().cloned().flatten().collect();
                assert_eq!(all, (0..episodes).collect::<Vec<_>>());
                let longest = parts.iter().map(Range::len).max().unwrap();
                assert_eq!(
                    longest,
                    Ranks { of, ..Ranks::ALONE }
                        .first(busy)
                        .largest_part(episodes)
                );
                assert!(parts[busy..].iter().all(Range::is_empty));
            }
        }
    }

    #[test]
    fn who_fails_is_heard_in_any_exchange() {
        let failed: Told<(Vec<f32>, bool)> = Told::Failed("out of luck".to_owned());
        let bytes = postcard::to_stdvec(&failed).unwrap();
        assert_eq!(bytes[0], 1, "read before anything is known of its type");
        assert_eq!(
            postcard::from_bytes::<String>(&bytes[1..]).unwrap(),
            "out of luck"
        );
    }
}
