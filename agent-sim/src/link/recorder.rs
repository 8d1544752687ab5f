//! A link that keeps what passes.

use super::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::{Command, Observation, Report, encode_frame};

/// Keeps the frames of every message that passes to and from an agent, byte for byte as a wire
/// would carry them, whether or not the wrapped link has a wire.
#[derive(Debug, Clone)]
pub struct Recorder<L> {
    inner: L,
    wire: Wire,
    number: u32,
}

/// The frames of one agent's conversation, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wire {
    /// To the agent.
    pub sent: Vec<Vec<u8>>,
    /// From the agent; an empty entry for silence.
    pub received: Vec<Vec<u8>>,
}

impl<L> Recorder<L> {
    /// Records what passes through `inner`.
    pub fn new(inner: L) -> Self {
        Self {
            inner,
            wire: Wire::default(),
            number: 0,
        }
    }

    /// What has passed so far.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }
}

impl<L: Link> Link for Recorder<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.number = self.number.wrapping_add(1);
        let mut buffer = vec![0; observation.frame_room()];
        let command = Command::Observe(*observation);
        let frame = encode_frame(self.number, &command, &mut buffer)?.to_vec();
        self.wire.sent.push(frame);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = self.inner.receive(now_us)?;
        let frame = match action {
            None => Vec::new(),
            Some(action) => {
                let report = Report::Action { action, ticks: 0 };
                encode_frame(self.number, &report, &mut [0; 128])?.to_vec()
            }
        };
        self.wire.received.push(frame);
        Ok(action)
    }
}
