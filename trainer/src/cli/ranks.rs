//! Commands that several processes carry out together.

use crate::ranks::Ranks;
use anyhow::Result;

/// Carries something out as one of the ranks that a launcher has started, or alone where none has; the work
/// is told how many threads it has to itself, 0 for one per core.
#[cfg(not(feature = "mpi"))]
pub fn together(_: u64, work: impl FnOnce(Ranks, usize) -> Result<()>) -> Result<()> {
    let of = crate::ranks::started();
    anyhow::ensure!(
        of == 1,
        "this is one of {of} processes that were started to train together, and this trainer was built to train \
         alone: build it with --features mpi"
    );
    work(Ranks::ALONE, 0)
}

#[cfg(feature = "mpi")]
pub use with_mpi::together;

#[cfg(feature = "mpi")]
mod with_mpi {
    use super::{Ranks, Result};
    use crate::ranks::{GRACE, RankError, World};
    use crate::rollout::RolloutError;
    use std::time::Duration;

    /// The same where ranks can hear each other.
    pub fn together(patience: u64, work: impl FnOnce(Ranks, usize) -> Result<()>) -> Result<()> {
        let Some(world) = World::join(Duration::from_secs(patience))? else {
            return work(Ranks::ALONE, 0);
        };
        let ranks = world.ranks;
        // Ranks on one machine share its cores; a launcher may have given each its own already.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut done = work(ranks, (cores / world.neighbours()).max(1));
        match &done {
            Ok(()) => done = ranks.exchange(()).map(drop).map_err(Into::into),
            // Those who do not know of it wait in some exchange.
            Err(error) if of_ranks(error).is_none() => ranks.fail(&format!("{error:#}")),
            Err(_) => {}
        }
        let lost = match &done {
            Ok(()) => None,
            Err(error) => of_ranks(error).filter(|error| !error.is_shared()),
        };
        if let Some(error) = lost {
            match ranks.leads() {
                true => eprintln!("error: {error}"),
                false => std::thread::sleep(GRACE),
            }
            world.abort();
        }
        // One of them is enough to say why: a launcher ends who has not yet said it when another fails.
        match ranks.leads() {
            true => done,
            false => Ok(()),
        }
    }

    /// What is wrong among the ranks, where that is what an error is about.
    fn of_ranks(error: &anyhow::Error) -> Option<&RankError> {
        error.chain().find_map(|cause| {
            let rollout = cause.downcast_ref::<RolloutError>();
            let within = rollout.and_then(|error| match error {
                RolloutError::Ranks(error) => Some(error),
                _ => None,
            });
            cause.downcast_ref::<RankError>().or(within)
        })
    }
}
