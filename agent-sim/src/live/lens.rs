//! What one agent sees, looked at over its shoulder.

use crate::link::{InProcess, Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use agent_core::policy::Policy;
use artifacts::observation::OwnedObservation;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Nobody.
const NOBODY: usize = usize::MAX;

/// Looks over the shoulder of one agent of a swarm.
#[derive(Debug)]
pub struct Lens {
    agent: AtomicUsize,
    sight: Mutex<Option<Sight>>,
}

/// What an agent saw, and what it made of it.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Its number.
    pub agent: usize,
    /// What reached it, sensors and faults included.
    pub observation: OwnedObservation,
    /// What it remembers after that.
    pub memory: Vec<f32>,
}

impl Default for Lens {
    fn default() -> Self {
        Self {
            agent: AtomicUsize::new(NOBODY),
            sight: Mutex::new(None),
        }
    }
}

impl Lens {
    /// Looks at this agent from now on.
    pub fn turn_to(&self, agent: Option<usize>) {
        self.agent.store(agent.unwrap_or(NOBODY), Ordering::Relaxed);
        self.keep(None);
    }

    /// What it last saw; nothing if nothing has reached it since the lens was turned to it.
    pub fn sight(&self) -> Option<Sight> {
        let sight = self.sight.lock().unwrap_or_else(PoisonError::into_inner);
        sight.clone()
    }

    fn keep(&self, seen: Option<Sight>) {
        *self.sight.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

/// An agent that can be looked over the shoulder.
pub struct Watched<'p> {
    inner: InProcess<'p>,
    agent: usize,
    lens: &'p Lens,
}

impl<'p> Watched<'p> {
    /// A fresh agent of that number.
    pub fn new(policy: &'p Policy<'p>, agent: usize, lens: &'p Lens) -> Self {
        Self {
            inner: InProcess::new(policy),
            agent,
            lens,
        }
    }
}

impl Link for Watched<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.inner.send(observation)?;
        if self.lens.agent.load(Ordering::Relaxed) == self.agent {
            self.lens.keep(Some(Sight {
                agent: self.agent,
                observation: OwnedObservation::from(observation),
                memory: self.inner.memory().to_vec(),
            }));
        }
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}
