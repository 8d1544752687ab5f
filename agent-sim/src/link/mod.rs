//! How the simulator talks to agents, and the only way it does.
//!
//! A [`Link`] leads to one agent, wherever that runs. Observations go out, actions come back, both
//! as agent-core's own messages. Wrappers stack over any link as middleware does over a network
//! device: [`Recorder`] keeps the bytes, [`Crash`](crate::fault::Crash) makes an agent die; delays,
//! losses and noise fit the same shape, and so do links to other processes and to boards, where
//! sending to all nodes before listening to any lets them work at the same time.

mod framed;
mod in_process;
mod recorder;

pub use framed::Framed;
pub use in_process::InProcess;
pub use recorder::{Recorder, Wire};

use agent_core::agent::Action;
use agent_core::message::{FrameError, Observation};

/// The way to one agent and back.
pub trait Link: Send {
    /// Shows the agent what is around it.
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError>;

    /// What the agent does from now on, at the host's time `now_us`.
    ///
    /// `None` means silence: nothing answers, and an actuator that nobody commands applies no force
    /// and does not move. An agent that is alive but has had no input still answers, with whatever
    /// its own fail-safe says.
    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError>;
}

/// Why a link did not carry a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A message could not be framed or a frame could not be read.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The other end is gone for good.
    #[error("the link is closed: {0}")]
    Closed(String),
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        (**self).send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        (**self).receive(now_us)
    }
}
