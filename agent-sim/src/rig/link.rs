//! A board as one of a swarm's agents.

use super::Node;
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the other boards' lines are looked at while one is waited for.
const GLANCE: Duration = Duration::from_millis(1);

/// Most others that are looked at before the one that is waited for has its turn again.
const OTHERS: usize = 64;

/// All boards of a run.
pub(super) type Nodes = Arc<[Mutex<Node>]>;

/// Locks a node. A thread that panicked elsewhere does not make it unusable.
pub(super) fn lock(node: &Mutex<Node>) -> MutexGuard<'_, Node> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The link to an agent on a board.
pub struct BoardLink {
    nodes: Nodes,
    index: usize,
}

impl BoardLink {
    /// To a fresh agent on that board.
    pub(super) fn new(nodes: Nodes, index: usize) -> Self {
        lock(&nodes[index]).reset();
        Self { nodes, index }
    }

    /// Takes in what other boards have answered meanwhile, so that they are not thought as slow as
    /// the one that is waited for.
    fn glance_at_others(&self, now_us: u64) {
        let count = self.nodes.len();
        // Those before have been waited for already.
        for next in 1..count.min(1 + OTHERS) {
            if let Ok(mut node) = self.nodes[(self.index + next) % count].try_lock() {
                node.listen(now_us, Instant::now());
            }
        }
    }
}

/// What goes wrong on a line is the node's to note and to mend: to the swarm the agent is silent.
impl Link for BoardLink {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        lock(&self.nodes[self.index]).send(observation);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        while !lock(&self.nodes[self.index]).listen(now_us, Instant::now() + GLANCE) {
            self.glance_at_others(now_us);
        }
        Ok(lock(&self.nodes[self.index]).take_answer(now_us))
    }
}
