//! A board as one of a swarm's agents.

use super::Node;
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The link to an agent on a board.
pub struct BoardLink(Arc<Mutex<Node>>);

impl BoardLink {
    /// To a fresh agent on that board.
    pub(super) fn new(node: Arc<Mutex<Node>>) -> Self {
        let link = Self(node);
        link.node().reset();
        link
    }

    fn node(&self) -> MutexGuard<'_, Node> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What goes wrong on a line is the node's to note and to mend: to the swarm the agent is silent.
impl Link for BoardLink {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.node().send(observation);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        Ok(self.node().receive(now_us))
    }
}
