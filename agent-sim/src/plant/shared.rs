//! A plant that many runs use, one after the other.

use super::{Plant, PlantError, Start};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One plant for all runs of a program: starting it may take long, and it may be the only one there is.
/// Clones are the same plant.
#[derive(Clone)]
pub struct Shared {
    name: Arc<str>,
    held: Arc<Mutex<Held>>,
}

struct Held {
    plant: Box<dyn Plant>,
    /// Episodes that were begun: the last of them has the plant.
    episodes: u64,
}

impl Shared {
    /// A plant by the name that reports and errors have for it.
    pub fn new(name: &str, plant: impl Plant + 'static) -> Self {
        Self {
            name: name.into(),
            held: Arc::new(Mutex::new(Held {
                plant: Box::new(plant),
                episodes: 0,
            })),
        }
    }

    /// What reports and errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plant for one run. It is the run's from its `reset` until another's; then a step of the first
    /// one fails instead of moving the other's field.
    pub fn lend(&self) -> Box<dyn Plant> {
        Box::new(Lent {
            of: self.clone(),
            episode: 0,
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic in another run leaves a plant that can be reset.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.name).finish()
    }
}

struct Lent {
    of: Shared,
    /// The last one that was begun through this; none is 0.
    episode: u64,
}

impl Plant for Lent {
    fn reset(&mut self, start: &Start<'_>, state: &mut [f64]) -> Result<(), PlantError> {
        let mut held = self.of.held();
        held.episodes += 1;
        self.episode = held.episodes;
        held.plant.reset(start, state)
    }

    fn step(&mut self, forcing: &[f64], dt: f64, state: &mut [f64]) -> Result<(), PlantError> {
        let mut held = self.of.held();
        if held.episodes != self.episode {
            return Err(PlantError::Taken {
                plant: self.of.name.to_string(),
            });
        }
        held.plant.step(forcing, dt, state)
    }
}
