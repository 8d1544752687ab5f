//! An agent of this process behind the frames of a wire.

use super::{InProcess, Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::{
    COMMAND_FRAME, Command, FrameError, Observation, Report, decode_frame, encode_frame,
};

/// Longest report about a control step.
const ACTION_FRAME: usize = 64;

/// An agent that is talked to as a node is, in frames with numbers and checksums both ways, but
/// without a line: what framing costs, and nothing else.
pub struct Framed<'p> {
    agent: InProcess<'p>,
    number: u32,
    command: Vec<u8>,
    report: [u8; ACTION_FRAME],
}

impl<'p> Framed<'p> {
    /// Frames around `agent`.
    pub fn new(agent: InProcess<'p>) -> Self {
        Self {
            agent,
            number: 0,
            command: vec![0; COMMAND_FRAME],
            report: [0; ACTION_FRAME],
        }
    }
}

impl Link for Framed<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.number = self.number.wrapping_add(1);
        let command = Command::Observe(*observation);
        let frame = encode_frame(self.number, &command, &mut self.command)?;
        match decode_frame(frame)? {
            (_, Command::Observe(observation)) => self.agent.send(&observation),
            _ => Err(FrameError::Damaged.into()),
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let Some(action) = self.agent.receive(now_us)? else {
            return Ok(None);
        };
        let report = Report::Action { action, ticks: 0 };
        let frame = encode_frame(self.number, &report, &mut self.report)?;
        match decode_frame(frame)? {
            (number, Report::Action { action, .. }) if number == self.number => Ok(Some(action)),
            _ => Err(FrameError::Damaged.into()),
        }
    }
}
