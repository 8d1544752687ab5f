//! Agents inside the simulator's own process.

use super::{Link, LinkError};
use agent_core::agent::{Action, AgentState};
use agent_core::message::Observation;
use agent_core::policy::Policy;
use std::cell::RefCell;

thread_local! {
    /// Working memory for one control step. Agents keep nothing in it from one step to the next, so
    /// those of one thread share it, and a million of them cost a million small states and no more.
    static WORKSPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// An agent core in this process: exactly what a node runs, minus the node.
#[derive(Clone)]
pub struct InProcess<'p> {
    policy: &'p Policy<'p>,
    state: AgentState,
    pending: Option<Action>,
}

impl<'p> InProcess<'p> {
    /// An agent that waits for its first patch.
    pub fn new(policy: &'p Policy<'p>) -> Self {
        Self {
            policy,
            state: AgentState::new(),
            pending: None,
        }
    }
}

impl Link for InProcess<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let (policy, state) = (self.policy, &mut self.state);
        let action = WORKSPACE.with_borrow_mut(|workspace| {
            if workspace.len() < policy.workspace_len() {
                workspace.resize(policy.workspace_len(), 0.0);
            }
            state.step(policy, workspace, observation)
        });
        self.pending = Some(action);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = match self.pending.take() {
            Some(action) => action,
            None => self.state.idle(self.policy, now_us),
        };
        Ok(Some(action))
    }
}
