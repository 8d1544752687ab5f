//! The node's loop: answer every command, and fail safe when none come.
//!
//! ```text
//!           valid policy in the slot                     PolicyBegin
//!  boot ──────────────────────────────► armed ─────────────────────────► disarmed
//!     └───────────── none ─────────────────────────────────────────────►   │  ▲
//!                                         ▲           PolicyCommit         │  │
//!                                         └───────────── valid ────────────┤  │
//!                                                     refused ─────────────┘──┘
//! ```
//!
//! What a node answers depends on the commands alone, so a host that simulates slower or faster
//! than real time gets the same bits as from an agent in its own process. The node's clock only
//! decides what its *actuator* does between two commands: there the agent's fail-safe runs on a
//! copy of its state, which the next command discards.

use core::fmt::{self, Write as _};

use agent_core::{
    agent::{Action, AgentState, ArmError, Mode},
    message::{COMMAND_FRAME, Command, Observation, PROTOCOL, PolicyId, Report},
    policy::{Policy, PolicyError, stated_length},
};
use embassy_time::{Duration, Instant};
use embedded_io_async::{Read, Write};

use crate::{
    link::{REPORT_FRAME, Receiver, Sender},
    slot::PolicySlot,
};

/// Floats of working memory a node has for its policy (16 KiB). A 20 × 20 window with 80 cells of
/// the whole needs 22² for the patch, twice 480 for the features and two layers' outputs: under half.
pub const WORKSPACE: usize = 4096;

/// What carries out an agent's actions: the board's actuator, or a host that is only told.
pub trait Actuator {
    /// Does `action` from now on. Called after each control step, and between two observations
    /// when the agent holds or fails safe on its own.
    fn apply(&mut self, action: &Action);
}

/// Runs a node for ever.
///
/// It starts with a [`Report::Hello`] nobody asked for: the host learns that the node listens now,
/// or that it was restarted.
pub async fn run<R: Read, W: Write>(
    receiver: &mut Receiver<R>,
    sender: &mut Sender<W>,
    slot: &mut impl PolicySlot,
    workspace: &mut [f32; WORKSPACE],
    actuator: &mut impl Actuator,
) -> ! {
    // What was there at boot tells its own length.
    let mut stored = stated_length(slot.bytes()).unwrap_or(0);
    let mut booting = true;
    loop {
        let begin = match load(slot, stored, workspace) {
            Ok(policy) => {
                let id = policy.id();
                log!(
                    info,
                    "armed: {=u32} bytes, checksum {=u32:08x}",
                    id.length,
                    id.crc
                );
                let mut armed = Armed {
                    policy,
                    workspace,
                    actuator,
                };
                sender.send(&armed.hello()).await;
                let length = armed.serve(receiver, sender, slot.bytes().len()).await;
                actuator.apply(&Action::none(Mode::Waiting));
                Some(length)
            }
            Err(refusal) => {
                log!(info, "no policy to run: {}", refusal);
                let mut reason = Sentence::new();
                let report = match booting {
                    true => hello(None),
                    false => Report::PolicyRefused {
                        reason: reason.of(refusal),
                    },
                };
                sender.send(&report).await;
                None
            }
        };
        stored = disarmed(receiver, sender, slot, stored, begin).await;
        booting = false;
    }
}

/// The policy in the first `length` bytes of the slot, if this node can run it.
fn load<'s>(
    slot: &'s impl PolicySlot,
    length: usize,
    workspace: &mut [f32],
) -> Result<Policy<'s>, Refusal> {
    let bytes = slot.bytes();
    // Whoever states more than the slot holds is told so by the parser.
    let policy = Policy::parse(bytes.get(..length).unwrap_or(bytes)).map_err(Refusal::Policy)?;
    if policy.workspace_len() > WORKSPACE {
        return Err(Refusal::Workspace {
            needed: policy.workspace_len(),
        });
    }
    if policy.frame_room() > COMMAND_FRAME {
        return Err(Refusal::Observation {
            needed: policy.frame_room(),
        });
    }
    if !policy.self_test(workspace) {
        return Err(Refusal::SelfTest);
    }
    Ok(policy)
}

/// Why an upload was not taken.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Refusal {
    Policy(PolicyError),
    Workspace { needed: usize },
    Observation { needed: usize },
    SelfTest,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::Workspace { needed } => write!(
                f,
                "the policy needs {needed} floats of working memory and the node has {WORKSPACE}"
            ),
            Self::Observation { needed } => write!(
                f,
                "the policy's observations need frames of {needed} bytes and the node takes {COMMAND_FRAME}"
            ),
            Self::SelfTest => ArmError::SelfTest.fmt(f),
        }
    }
}

/// A node with a policy.
struct Armed<'n, 's, A> {
    policy: Policy<'s>,
    workspace: &'n mut [f32; WORKSPACE],
    actuator: &'n mut A,
}

impl<A: Actuator> Armed<'_, '_, A> {
    /// Answers commands until a policy upload begins; returns the length announced.
    async fn serve<R: Read, W: Write>(
        &mut self,
        receiver: &mut Receiver<R>,
        sender: &mut Sender<W>,
        capacity: usize,
    ) -> u32 {
        let mut state = AgentState::new();
        let mut blind: Option<Blind> = None;
        loop {
            let deadline = blind.as_ref().and_then(|b| b.next_look(&self.policy));
            let Some(command) = receiver.command(deadline).await else {
                if let Some(blind) = &mut blind {
                    blind.look(&self.policy, self.actuator);
                }
                continue;
            };
            let report = match command {
                Command::Hello | Command::PolicyCommit => self.hello(),
                Command::Reset => {
                    state = AgentState::new();
                    blind = None;
                    self.actuator.apply(&Action::none(state.mode()));
                    self.hello()
                }
                Command::PolicyBegin { length } if fits(length, capacity) => return length,
                Command::PolicyBegin { .. } => TOO_LONG,
                Command::PolicyChunk { .. } => NO_UPLOAD,
                Command::Observe { seq, observation } => {
                    let arrived = Instant::now();
                    let (action, ticks) = self.step(&mut state, &observation);
                    self.actuator.apply(&action);
                    blind = Some(Blind::new(state, observation.now_us, arrived));
                    Report::Action { seq, action, ticks }
                }
            };
            sender.send(&report).await;
        }
    }

    /// One control step and the time it took. Apart from the loop so that nothing but the step is
    /// between the two looks at the clock.
    #[inline(never)]
    fn step(&mut self, state: &mut AgentState, observation: &Observation<'_>) -> (Action, u32) {
        let start = Instant::now();
        let action = state.step(&self.policy, self.workspace, observation);
        let ticks = start.elapsed().as_ticks();
        (action, ticks.try_into().unwrap_or(u32::MAX))
    }

    fn hello(&self) -> Report<'static> {
        hello(Some(self.policy.id()))
    }
}

/// The agent between two observations, on the node's own clock.
struct Blind {
    state: AgentState,
    /// The agent's time of the last observation, and when that came by the node's clock.
    observed_us: u64,
    arrived: Instant,
    /// When the agent was last looked at.
    looked: Option<Instant>,
}

impl Blind {
    fn new(state: AgentState, observed_us: u64, arrived: Instant) -> Self {
        Self {
            state,
            observed_us,
            arrived,
            looked: None,
        }
    }

    /// When the agent must be looked at again; never once it does nothing anyway.
    fn next_look(&self, policy: &Policy) -> Option<Instant> {
        let timing = policy.header().timing;
        let (from, after_us) = match (self.state.mode(), self.looked) {
            (Mode::Waiting | Mode::FailedSafe, _) => return None,
            (_, None) => (self.arrived, timing.late_us.saturating_add(1)),
            (_, Some(looked)) => (looked, timing.period_us),
        };
        from.checked_add(Duration::from_micros(after_us.into()))
    }

    /// Lets the agent act on the time that has passed, if it is late.
    fn look(&mut self, policy: &Policy, actuator: &mut impl Actuator) {
        self.looked = Some(Instant::now());
        let now_us = self
            .observed_us
            .saturating_add(self.arrived.elapsed().as_micros());
        if self.state.is_late(policy, now_us) {
            actuator.apply(&self.state.idle(policy, now_us));
        }
    }
}

/// Takes an upload, or waits for one, until a commit; returns the bytes stored by then.
async fn disarmed<R: Read, W: Write>(
    receiver: &mut Receiver<R>,
    sender: &mut Sender<W>,
    slot: &mut impl PolicySlot,
    stored: usize,
    begin: Option<u32>,
) -> usize {
    let mut upload = None;
    if let Some(length) = begin {
        let report = begin_upload(slot, length, &mut upload);
        sender.send(&report).await;
    }
    loop {
        let Some(command) = receiver.command(None).await else {
            continue;
        };
        let report = match (command, &mut upload) {
            (Command::Hello | Command::Reset, _) => hello(None),
            (Command::Observe { .. }, _) => Report::Rejected {
                reason: "the node has no policy: upload one first",
            },
            (Command::PolicyBegin { length }, _) => begin_upload(slot, length, &mut upload),
            (Command::PolicyChunk { offset, bytes }, Some(upload)) => {
                upload.store(slot, offset, bytes)
            }
            (Command::PolicyChunk { .. }, None) => NO_UPLOAD,
            (Command::PolicyCommit, Some(upload)) => return upload.next as usize,
            // The answer to an earlier commit may have been lost: give it again.
            (Command::PolicyCommit, None) => return stored,
        };
        sender.send(&report).await;
    }
}

/// An upload under way.
struct Upload {
    length: u32,
    next: u32,
}

fn begin_upload(
    slot: &mut impl PolicySlot,
    length: u32,
    upload: &mut Option<Upload>,
) -> Report<'static> {
    if !fits(length, slot.bytes().len()) {
        return TOO_LONG;
    }
    if slot.erase(length as usize).is_err() {
        return DEVICE;
    }
    log!(info, "upload of {=u32} bytes", length);
    *upload = Some(Upload { length, next: 0 });
    Report::Stored { next: 0 }
}

impl Upload {
    /// Takes a chunk that continues the upload. Any other one (sent again because an answer was
    /// lost, or after a lost one) is not stored; the answer says where to go on.
    fn store(&mut self, slot: &mut impl PolicySlot, offset: u32, bytes: &[u8]) -> Report<'static> {
        if offset == self.next {
            let end = u32::try_from(bytes.len())
                .ok()
                .and_then(|length| offset.checked_add(length))
                .filter(|end| *end <= self.length);
            let Some(end) = end else {
                return Report::Rejected {
                    reason: "the chunk goes beyond the length announced",
                };
            };
            if slot.write(offset as usize, bytes).is_err() {
                return DEVICE;
            }
            self.next = end;
        }
        Report::Stored { next: self.next }
    }
}

const NO_UPLOAD: Report<'static> = Report::Rejected {
    reason: "no upload under way: begin one first",
};
const TOO_LONG: Report<'static> = Report::Rejected {
    reason: "the policy does not fit the node's slot",
};
const DEVICE: Report<'static> = Report::Rejected {
    reason: "the node's policy memory failed",
};

fn fits(length: u32, capacity: usize) -> bool {
    usize::try_from(length).is_ok_and(|length| length <= capacity)
}

fn hello(policy: Option<PolicyId>) -> Report<'static> {
    Report::Hello {
        protocol: PROTOCOL,
        policy,
    }
}

/// Room for one sentence in a report; what does not fit is cut off.
struct Sentence {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl Sentence {
    /// A report's frame less its variant, length prefix, checksum and framing.
    const ROOM: usize = REPORT_FRAME - 16;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::ROOM],
            length: 0,
        }
    }

    fn of(&mut self, text: impl fmt::Display) -> &str {
        let _ = write!(self, "{text}");
        let written = self.bytes.get(..self.length).unwrap_or_default();
        match str::from_utf8(written) {
            Ok(text) => text,
            // Cut inside a character.
            Err(error) => written
                .get(..error.valid_up_to())
                .and_then(|valid| str::from_utf8(valid).ok())
                .unwrap_or_default(),
        }
    }
}

impl fmt::Write for Sentence {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let length = text.len().min(room.len());
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.length += length;
        Ok(())
    }
}
