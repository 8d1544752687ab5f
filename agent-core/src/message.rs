//! What crosses a link between a host and an agent, and how it is framed.
//!
//! A frame is `COBS(protocol ‖ number ‖ postcard(message) ‖ CRC-32) ‖ 0`: the zero byte ends a frame
//! and occurs nowhere inside one, so a receiver that joins late or loses bytes is in step again at the
//! next zero. The protocol's version is the first byte and stays it, so that two sides of different
//! versions can say so. The number is the command's, repeated in its answer: a host tells late and
//! repeated answers from the one it waits for, and a node does not step twice for a command that
//! came twice. Nothing here says how many agents there are.
//!
//! A *sealed* frame says so in the version's highest bit and ends, instead of in the CRC, in a tag that
//! only who has the session's key can make ([`Seal`]): it proves its sender, and that no bit has changed.

use crate::agent::Action;
use crate::stuffing::{head_room, stuff, unstuff};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Version of the messages below, in every frame.
pub const PROTOCOL: u8 = 5;

/// First byte of a sealed frame.
const SEALED: u8 = PROTOCOL | 0x80;

/// Bytes of a sealed frame's tag.
pub const TAG: usize = 16;

/// Number of a report that nobody asked for. Commands have any other.
pub const UNASKED: u32 = 0;

/// CRC-32 as in Ethernet and zlib, for frames and blobs alike.
pub const CRC32: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// [`CRC32`] of bytes, in the fastest way there is here.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    #[cfg(not(target_os = "none"))]
    return crc32fast::hash(bytes);
    #[cfg(target_os = "none")]
    return CRC32.checksum(bytes);
}

/// Little-endian f32 values, read where they lie: in a frame or in a host's array.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples<'a>(#[serde(borrow)] &'a [u8]);

impl<'a> Samples<'a> {
    /// The values of a slice, not copied.
    #[cfg(target_endian = "little")]
    pub fn new(values: &'a [f32]) -> Self {
        Self(bytemuck::cast_slice(values))
    }

    /// Number of whole values.
    pub fn len(&self) -> usize {
        self.0.len() / 4
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = f32> + use<'a> {
        self.words().iter().map(|c| f32::from_le_bytes(*c))
    }

    /// The bytes of the whole values.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn words(&self) -> &'a [[u8; 4]] {
        self.0.as_chunks().0
    }
}

impl fmt::Debug for Samples<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// First and last cell, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Span {
    /// Index of the first cell.
    pub first: u16,
    /// Index of the last cell.
    pub last: u16,
}

/// The field around one agent: its window and one cell more on each side (the halo), so that
/// slopes at the window's rim are those of the whole field. Row-major in two dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch<'a> {
    /// What the agent's sensors read.
    #[serde(borrow)]
    pub field: Samples<'a>,
    /// What they should read; empty where the policy's target is zero.
    #[serde(borrow)]
    pub target: Samples<'a>,
    /// The cells that lie inside the domain, per axis. Those beyond a wall hold anything.
    pub inside: [Span; 2],
    /// What the agent is told of the rest of the domain.
    #[serde(borrow)]
    pub wide: Overview<'a>,
}

impl<'a> Patch<'a> {
    /// A patch of a one-dimensional field.
    #[cfg(target_endian = "little")]
    pub fn line(field: &'a [f32], target: &'a [f32], inside: Span) -> Self {
        Self {
            field: Samples::new(field),
            target: Samples::new(target),
            inside: [inside, Span::default()],
            wide: Overview::default(),
        }
    }
}

/// A coarse picture of the whole domain, the same for all agents: means of the field over equal
/// blocks of cells, row-major. Empty for a policy that does not ask for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview<'a> {
    /// What sensors read.
    #[serde(borrow)]
    pub field: Samples<'a>,
    /// What they should read; empty where the policy's target is zero.
    #[serde(borrow)]
    pub target: Samples<'a>,
}

/// One control step's input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Observation<'a> {
    /// The agent's clock at this observation.
    pub now_us: u64,
    /// Where the agent is; unused axes are 0.
    pub position: [f32; 2],
    /// What it sees there.
    #[serde(borrow)]
    pub patch: Patch<'a>,
}

impl<'a> Observation<'a> {
    /// Bytes that are enough for its frame.
    pub fn frame_room(&self) -> usize {
        let Patch {
            field,
            target,
            wide,
            ..
        } = self.patch;
        let samples = [field, target, wide.field, wide.target];
        frame_room(samples.iter().map(Samples::len).sum())
    }
}

/// Bytes that are enough for the frame of an observation with so many samples in all.
pub const fn frame_room(samples: usize) -> usize {
    // Four bytes a sample, 64 for everything else in the message, and what framing adds to that
    // (COBS: one byte in 254; tag and end: 17).
    (4 * samples + 64) * 255 / 254 + 20
}

/// Longest frame that a node must take, in bytes: an observation of a 20 × 20 window with its halo
/// and 80 cells of the whole domain, field and target.
pub const COMMAND_FRAME: usize = frame_room(2 * (22 * 22 + 80));

/// What a host asks of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Command<'a> {
    /// Who are you? Answered by [`Report::Hello`]. The commands after it are numbered anew.
    Hello,
    /// How are you? Answered by [`Report::Status`].
    Status,
    /// Forget the agent's state (not its policy). Answered by [`Report::Hello`].
    Reset,
    /// Take one control step. Answered by [`Report::Action`].
    Observe(#[serde(borrow)] Observation<'a>),
    /// The policy of this manifest follows, for the slot that is not in use; the node goes on with
    /// the policy that it runs. Answered by [`Report::Stored`], or by [`Report::PolicyRefused`] before
    /// anything is erased.
    PolicyBegin {
        /// What comes, for whom, how new: see the crate `trust`.
        #[serde(borrow)]
        manifest: &'a [u8],
        /// Ed25519 signature of the manifest, 64 bytes; empty for none.
        #[serde(borrow)]
        signature: &'a [u8],
    },
    /// The blob's bytes from `offset`, in order. Answered by [`Report::Stored`].
    PolicyChunk {
        /// Where these bytes go; must be where the last chunk ended.
        offset: u32,
        /// Up to [`CHUNK`] bytes.
        #[serde(borrow)]
        bytes: &'a [u8],
    },
    /// Check the blob and run it from now on. Answered by [`Report::Hello`] or
    /// [`Report::PolicyRefused`]; the node then runs what it ran before.
    PolicyCommit,
    /// Start afresh, as after a reset. Answered by the [`Report::Hello`] of a node that has started.
    Restart,
    /// Come to grief, in an image built for tests; [`Report::Rejected`] in any other.
    Provoke(Mishap),
    /// Begin a session of sealed frames, to a node that has been given a key. Answered by
    /// [`Report::Challenge`].
    Open {
        /// What the host may do, which says what key it has: see the crate `trust`.
        rights: u8,
        /// Never used before by this host.
        nonce: [u8; 16],
    },
    /// Take this place, and sense and act there by yourself; without bytes, act on what a host shows you
    /// again. Answered by [`Report::Conduct`], or by [`Report::Rejected`] with the reason.
    Configure {
        /// See the crate `place`.
        #[serde(borrow)]
        place: &'a [u8],
        /// Whose word that is: a manifest of these bytes.
        #[serde(borrow)]
        manifest: &'a [u8],
        /// Its signature as that of a place, 64 bytes; empty for none.
        #[serde(borrow)]
        signature: &'a [u8],
    },
    /// How do you get on at your place? Answered by [`Report::Conduct`].
    Conduct,
    /// Hold the whole window at this from now on, or at what your place says again. It is forgotten at the next
    /// start. Answered by [`Report::Conduct`], or by [`Report::Rejected`] with the reason.
    Aim(Option<f32>),
}

/// Most bytes in one [`Command::PolicyChunk`].
pub const CHUNK: usize = 512;

/// How a node built for tests can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mishap {
    /// A panic.
    Panic,
    /// A control step that never ends.
    Hang,
    /// More stack than there is.
    StackOverflow,
    /// An access to memory that is not there.
    Fault,
}

/// What a node answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Report<'a> {
    /// Who this node is. Sent [`UNASKED`] when a node starts.
    Hello(Hello),
    /// The upload has reached this offset.
    Stored {
        /// Offset of the next byte expected.
        next: u32,
    },
    /// The uploaded policy was not taken, and why.
    PolicyRefused {
        /// A sentence for a person.
        reason: &'a str,
    },
    /// The answer to one observation.
    Action {
        /// What the agent does until the next one.
        action: Action,
        /// How long the step took on the node's own clock, in its ticks; 0 if it has none.
        ticks: u32,
    },
    /// The command cannot be carried out now, and why.
    Rejected {
        /// A sentence for a person.
        reason: &'a str,
    },
    /// How this node is.
    Status(#[serde(borrow)] Status<'a>),
    /// The node's half of a session's beginning, sealed with the key that follows from both halves:
    /// who reads it knows that the node has the key, and that nothing here is a recording.
    Challenge {
        /// Never used before by this node.
        nonce: [u8; 16],
    },
    /// How the node gets on at its place.
    Conduct {
        /// See the crate `place`.
        #[serde(borrow)]
        said: &'a [u8],
    },
}

/// Who a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// The policy it runs, if any.
    pub policy: Option<PolicyId>,
    /// Why it started.
    pub reset: ResetCause,
    /// How often it has started since its power came on.
    pub boots: u32,
    /// Whom it obeys.
    pub guard: Guard,
}

/// Whom a node obeys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Guard {
    /// Only who has a key of its link; otherwise anybody on the line.
    pub link: bool,
    /// It runs only policies whose manifest is signed; otherwise any.
    pub policies: bool,
}

/// How a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status<'a> {
    /// Name of its board.
    pub board: &'a str,
    /// Version of its image.
    pub firmware: &'a str,
    /// The fleet that it belongs to; empty for none.
    pub fleet: &'a str,
    /// The slot whose policy it runs.
    pub active: Option<u8>,
    /// What lies in its slots.
    pub slots: [Slot; 2],
    /// The highest counter of a manifest that it has taken: it never goes back.
    pub counter: u64,
    /// How it has fared since its power came on.
    pub history: History,
    /// What it said at its last panic or fault; empty if there was none.
    #[serde(borrow)]
    pub last_words: &'a str,
    /// How it has fared since it started.
    pub counters: Counters,
}

/// What lies in one of a node's policy slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slot {
    /// The policy, where there is a whole one.
    pub policy: Option<PolicyId>,
    /// What the node makes of it.
    pub state: SlotState,
}

/// What a node makes of a policy slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SlotState {
    /// Nothing was ever committed here, or it is being written.
    Empty,
    /// What was committed here is damaged, or refused by this image.
    Refused,
    /// Committed, and yet to prove itself.
    OnTrial,
    /// Has taken control steps.
    Proven,
    /// Brought the node down while on trial.
    GivenUp,
}

/// Why a node started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ResetCause {
    /// Power came on, or came back after it had been gone.
    PowerOn,
    /// The voltage fell too low for a moment.
    Brownout,
    /// The reset pin, a debugger, or nothing that the node can tell.
    External,
    /// It was told to.
    Command,
    /// No control step was completed for too long.
    Watchdog,
    /// A panic.
    Panic,
    /// A fault of the processor: bad memory, bad instruction, stack overflow.
    Fault,
}

/// How a node has fared since its power came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct History {
    /// Why it last started.
    pub reset: ResetCause,
    /// How often it has started.
    pub boots: u32,
    /// How many of those were the watchdog's doing,
    pub watchdog_bites: u32,
    /// a panic's,
    pub panics: u32,
    /// or a fault's.
    pub faults: u32,
}

/// How a node has fared since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Counters {
    /// Time since then.
    pub uptime_us: u64,
    /// Control steps taken.
    pub steps: u32,
    /// Frames taken for commands.
    pub commands: u32,
    /// Frames dropped: damaged, too long, of another protocol, or with a wrong tag.
    pub rejected: u32,
    /// Commands that came again and were answered as before.
    pub repeated: u32,
    /// Commands older than the last one, dropped.
    pub stale: u32,
    /// How long the frames of the last observation and its answer took, beyond the step itself, on the
    /// node's own clock, in its ticks: stuffing, and checksums or tags.
    pub frame_ticks: u32,
    /// Bytes of its stack that were ever used; 0 where nobody can tell.
    pub stack_used: u32,
    /// Bytes of stack that it has.
    pub stack_size: u32,
}

/// Names a blob: the SHA-256 of all its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyId(pub [u8; 32]);

impl PolicyId {
    /// As people write it, in 64 hexadecimal digits; `{:.8}` gives the first eight.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(64);
        let mut bytes = self.0.iter().take(digits.div_ceil(2));
        bytes.try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl fmt::Debug for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for PolicyId {
    fn format(&self, f: defmt::Formatter) {
        let first = self.0.first_chunk().copied().unwrap_or_default();
        defmt::write!(f, "{=u32:08x}", u32::from_be_bytes(first));
    }
}

/// Why bytes are not a frame, or a message does not fit one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FrameError {
    /// The buffer is too small for the message.
    TooLong,
    /// The bytes are no frame: damaged, cut, or foreign.
    Damaged,
    /// The other side speaks another version of the protocol.
    Protocol {
        /// Theirs.
        theirs: u8,
    },
    /// The frame is sealed, for a session that is not this one.
    Sealed,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the message does not fit its frame buffer"),
            Self::Damaged => f.write_str("the frame is damaged"),
            Self::Protocol { theirs } => {
                write!(
                    f,
                    "the other side speaks protocol {theirs}, this one {PROTOCOL}"
                )
            }
            Self::Sealed => f.write_str("the frame is sealed for another session"),
        }
    }
}

impl core::error::Error for FrameError {}

/// What makes and checks the tags of one direction of a session.
pub trait Seal {
    /// The tag of a frame's bytes before it. The number is among them; it is given apart because no
    /// two frames of a session may be sealed under the same one.
    fn tag(&self, number: u32, bytes: &[u8]) -> [u8; TAG];

    /// Whether `tag` is theirs, in a time that does not tell how much of it is right.
    fn is_tag(&self, number: u32, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        let expected = self.tag(number, bytes);
        let difference = expected.iter().zip(tag).fold(0, |d, (a, b)| d | (a ^ b));
        core::hint::black_box(difference) == 0
    }
}

/// Writes `message` as one frame, its final zero included, and returns the frame.
pub fn encode_frame<'b>(
    number: u32,
    message: &impl Serialize,
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], FrameError> {
    encode(PROTOCOL, number, message, buffer, |plain| {
        checksum(plain).to_le_bytes()
    })
}

/// The same, sealed.
pub fn encode_sealed<'b>(
    number: u32,
    message: &impl Serialize,
    seal: &impl Seal,
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], FrameError> {
    encode(SEALED, number, message, buffer, |plain| {
        seal.tag(number, plain)
    })
}

fn encode<'b, const N: usize>(
    kind: u8,
    number: u32,
    message: &impl Serialize,
    buffer: &'b mut [u8],
    end_of: impl FnOnce(&[u8]) -> [u8; N],
) -> Result<&'b mut [u8], FrameError> {
    let start = head_room(buffer.len());
    let room = buffer.get_mut(start..).ok_or(FrameError::TooLong)?;
    let plain = postcard::to_slice(&(kind, number, message), room);
    let plain = plain.map_err(|_| FrameError::TooLong)?;
    let (proof, end) = (end_of(plain), start + plain.len());
    let place = buffer.get_mut(end..).and_then(<[u8]>::first_chunk_mut);
    *place.ok_or(FrameError::TooLong)? = proof;
    let length = stuff(buffer, start, end + N).ok_or(FrameError::TooLong)?;
    buffer.get_mut(..length).ok_or(FrameError::TooLong)
}

/// Reads one frame, with or without its final zero: the message's number and the message. `frame`
/// is decoded in place.
pub fn decode_frame<'b, T: Deserialize<'b>>(frame: &'b mut [u8]) -> Result<(u32, T), FrameError> {
    match Frame::read(frame)? {
        Frame::Plain { number, body } => Ok((number, message(body)?)),
        Frame::Sealed(_) => Err(FrameError::Sealed),
    }
}

/// A frame out of its stuffing, its message still to be read.
#[derive(Debug, Clone, Copy)]
pub enum Frame<'b> {
    /// Whole, and from anybody.
    Plain {
        /// The message's number.
        number: u32,
        /// The message.
        body: &'b [u8],
    },
    /// From whoever has the key, if its tag says so.
    Sealed(SealedFrame<'b>),
}

/// A sealed frame, whose tag is still to be checked.
#[derive(Debug, Clone, Copy)]
pub struct SealedFrame<'b> {
    /// The message's number.
    pub number: u32,
    bytes: &'b [u8],
    body: &'b [u8],
    tag: &'b [u8; TAG],
}

impl<'b> Frame<'b> {
    /// Reads one frame, with or without its final zero. `frame` is decoded in place.
    pub fn read(frame: &'b mut [u8]) -> Result<Self, FrameError> {
        let length = unstuff(frame).ok_or(FrameError::Damaged)?;
        let bytes = frame.get(..length).ok_or(FrameError::Damaged)?;
        if bytes.first() == Some(&SEALED) {
            let (bytes, tag) = bytes.split_last_chunk().ok_or(FrameError::Damaged)?;
            let (number, body) = numbered(bytes)?;
            return Ok(Self::Sealed(SealedFrame {
                number,
                bytes,
                body,
                tag,
            }));
        }
        let (bytes, sum) = bytes.split_last_chunk().ok_or(FrameError::Damaged)?;
        if checksum(bytes) != u32::from_le_bytes(*sum) {
            return Err(FrameError::Damaged);
        }
        match bytes.first() {
            Some(&PROTOCOL) => {
                let (number, body) = numbered(bytes)?;
                Ok(Self::Plain { number, body })
            }
            Some(&theirs) => Err(FrameError::Protocol { theirs }),
            None => Err(FrameError::Damaged),
        }
    }
}

impl<'b> SealedFrame<'b> {
    /// The message's bytes, if the tag is that of `seal`.
    pub fn body(&self, seal: &impl Seal) -> Result<&'b [u8], FrameError> {
        match seal.is_tag(self.number, self.bytes, self.tag) {
            true => Ok(self.body),
            false => Err(FrameError::Sealed),
        }
    }

    /// The message, if the tag is that of `seal`.
    pub fn open<T: Deserialize<'b>>(&self, seal: &impl Seal) -> Result<T, FrameError> {
        message(self.body(seal)?)
    }

    /// The message, of which nothing is proven: for what must be known to tell the key.
    pub fn unproven<T: Deserialize<'b>>(&self) -> Result<T, FrameError> {
        message(self.body)
    }
}

/// The message that these bytes are, all of them.
pub fn message<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        _ => Err(FrameError::Damaged),
    }
}

/// What follows the first byte: the number, and the message.
fn numbered(bytes: &[u8]) -> Result<(u32, &[u8]), FrameError> {
    let rest = bytes.get(1..).ok_or(FrameError::Damaged)?;
    postcard::take_from_bytes(rest).map_err(|_| FrameError::Damaged)
}

/// Gathers bytes into frames of at most `N` bytes.
pub struct FrameReader<const N: usize> {
    buffer: [u8; N],
    length: usize,
    /// The current frame outgrew the buffer; its rest is dropped.
    overrun: bool,
    /// The last frame was handed out; the next byte starts a new one.
    complete: bool,
}

impl<const N: usize> Default for FrameReader<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> FrameReader<N> {
    /// An empty reader.
    pub const fn new() -> Self {
        Self {
            buffer: [0; N],
            length: 0,
            overrun: false,
            complete: false,
        }
    }

    /// Takes one byte; at the end of a frame returns it, ready for [`decode_frame`].
    ///
    /// An over-long frame is reported once, at its end. Empty frames are skipped: senders may put
    /// extra zeros between frames to bring a receiver in step.
    pub fn push(&mut self, byte: u8) -> Option<Result<&mut [u8], FrameError>> {
        if self.complete {
            self.complete = false;
            self.length = 0;
        }
        if byte != 0 {
            match self.buffer.get_mut(self.length) {
                Some(slot) => {
                    *slot = byte;
                    self.length += 1;
                }
                None => self.overrun = true,
            }
            return None;
        }
        if core::mem::take(&mut self.overrun) {
            self.length = 0;
            return Some(Err(FrameError::TooLong));
        }
        if self.length == 0 {
            return None;
        }
        self.complete = true;
        self.buffer.get_mut(..self.length).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Mode;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn observe(field: &[f32]) -> Command<'_> {
        Command::Observe(Observation {
            now_us: 12_000,
            position: [0.25, 0.0],
            patch: Patch {
                wide: Overview {
                    field: Samples::new(field),
                    target: Samples::default(),
                },
                ..Patch::line(field, field, Span { first: 2, last: 9 })
            },
        })
    }

    #[test]
    fn frames_survive_the_line_and_resynchronise_after_garbage() {
        let field: Vec<f32> = (0..10).map(|k| k as f32 - 3.5).collect();
        let command = observe(&field);
        let mut buffer = [0; 256];
        let frame = encode_frame(7, &command, &mut buffer).unwrap().to_vec();
        let mut line = std::vec![9, 8, 7, 0];
        line.extend(&frame[..frame.len() / 2]);
        line.push(0);
        line.extend(&frame);
        let mut reader = FrameReader::<256>::new();
        let mut good = 0;
        for byte in line {
            if let Some(frame) = reader.push(byte)
                && let Ok(decoded) = decode_frame::<Command>(frame.unwrap())
            {
                assert_eq!(decoded, (7, command));
                good += 1;
            }
        }
        assert_eq!(good, 1);
    }

    #[test]
    fn an_overlong_frame_is_named_and_the_next_one_is_read() {
        let mut reader = FrameReader::<16>::new();
        let mut seen = Vec::new();
        let report = Report::Stored { next: 3 };
        let mut buffer = [0; 16];
        let mut line = std::vec![1; 40];
        line.push(0);
        line.extend(encode_frame(1, &report, &mut buffer).unwrap().iter());
        for byte in line {
            if let Some(frame) = reader.push(byte) {
                seen.push(frame.map(|f| decode_frame::<Report>(f) == Ok((1, report))));
            }
        }
        assert_eq!(seen, [Err(FrameError::TooLong), Ok(true)]);
    }

    /// The longest of everything: varints of ten, five and three bytes.
    #[test]
    fn the_room_for_a_frame_is_enough_and_not_much_more() {
        for samples in [0usize, 1, 10, 100, 1000] {
            // Without a zero byte framing costs most.
            let values = std::vec![0.1f32; samples];
            let observation = Observation {
                now_us: u64::MAX,
                position: [0.1; 2],
                patch: Patch {
                    field: Samples::new(&values),
                    target: Samples::new(&values),
                    inside: [Span {
                        first: u16::MAX,
                        last: u16::MAX,
                    }; 2],
                    wide: Overview {
                        field: Samples::new(&values),
                        target: Samples::new(&values),
                    },
                },
            };
            let mut buffer = std::vec![0; observation.frame_room()];
            let command = Command::Observe(observation);
            let used = encode_frame(u32::MAX, &command, &mut buffer).unwrap().len();
            assert!(used + 48 > observation.frame_room(), "{samples}: {used}");
        }
    }

    #[test]
    fn the_wire_bytes_of_an_action_are_fixed() {
        let report = Report::Action {
            action: Action {
                force: 1.0,
                velocity: [0.5, 0.0],
                mode: Mode::Active,
            },
            ticks: 0,
        };
        let mut buffer = [0; 64];
        let frame = encode_frame(1, &report, &mut buffer).unwrap();
        // protocol 5, number 1, variant 3, three little-endian floats, mode 1, ticks 0, CRC-32; then COBS.
        let mut plain = std::vec![5, 1, 3, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x3f, 0, 0, 0, 0, 1, 0];
        plain.extend(CRC32.checksum(&plain).to_le_bytes());
        let mut decoded = frame.to_vec();
        let length = cobs::decode_in_place(&mut decoded).unwrap();
        assert_eq!(&decoded[..length], plain);
    }

    #[test]
    fn the_wire_bytes_of_a_target_are_fixed() {
        // Protocol 5, number 1, variant 12, one that is there, 0.7; or none.
        let told = [5, 1, 12, 1, 0x33, 0x33, 0x33, 0x3f];
        for (target, bytes) in [(Some(0.7), &told[..]), (None, &[5, 1, 12, 0])] {
            let mut buffer = [0; 64];
            let frame = encode_frame(1, &Command::Aim(target), &mut buffer).unwrap();
            let length = cobs::decode_in_place(frame).unwrap();
            assert_eq!(&frame[..length - 4], bytes);
        }
    }

    /// Any function of number and bytes will do here.
    struct Sum(u8);

    impl Seal for Sum {
        fn tag(&self, number: u32, bytes: &[u8]) -> [u8; TAG] {
            let mut tag = [self.0; TAG];
            tag[0] ^= number as u8;
            for (k, byte) in bytes.iter().enumerate() {
                tag[k % TAG] = tag[k % TAG].rotate_left(3) ^ byte;
            }
            tag
        }
    }

    #[test]
    fn a_sealed_frame_is_read_with_its_key_and_as_a_plain_one_by_nobody() {
        let command = Command::PolicyCommit;
        let mut buffer = [0; 64];
        let frame = encode_sealed(9, &command, &Sum(1), &mut buffer).unwrap();
        let mut bytes = frame.to_vec();
        let mut copy = bytes.clone();
        let plain = decode_frame::<Command>(&mut copy);
        assert_eq!(plain, Err(FrameError::Sealed));
        let Ok(Frame::Sealed(sealed)) = Frame::read(&mut bytes) else {
            panic!("not sealed");
        };
        assert_eq!(sealed.number, 9);
        assert_eq!(sealed.open::<Command>(&Sum(2)), Err(FrameError::Sealed));
        assert_eq!(sealed.open::<Command>(&Sum(1)), Ok(command));
    }

    #[test]
    fn a_policy_is_named_in_hexadecimal_digits() {
        let mut id = PolicyId([0xab; 32]);
        id.0[1] = 7;
        assert_eq!(std::format!("{id:.8}"), "ab07abab");
        assert_eq!(std::format!("{id}").len(), 64);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_a_message_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut copy = bytes.clone();
            let _ = decode_frame::<Command>(&mut bytes);
            let _ = decode_frame::<Report>(&mut copy);
        }

        /// Whatever comes after it, and whatever became of the messages.
        #[test]
        fn a_frame_of_another_protocol_is_told_by_its_version(
            theirs in any::<u8>().prop_filter("another", |theirs| ![PROTOCOL, SEALED].contains(theirs)),
            rest in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut plain = std::vec![theirs];
            plain.extend(rest);
            plain.extend(CRC32.checksum(&plain).to_le_bytes());
            let mut frame = std::vec![0; cobs::max_encoding_length(plain.len())];
            let length = cobs::encode(&plain, &mut frame);
            let refused = decode_frame::<Report>(&mut frame[..length]);
            prop_assert_eq!(refused, Err(FrameError::Protocol { theirs }));
        }

        #[test]
        fn one_flipped_bit_never_passes(number: u32, bit in 0usize..8, at in 0usize..60) {
            let field = [1.0f32; 10];
            let mut buffer = [0; 256];
            let mut frame = encode_frame(number, &observe(&field), &mut buffer).unwrap().to_vec();
            let at = at % (frame.len() - 1);
            frame[at] ^= 1 << bit;
            prop_assert!(decode_frame::<Command>(&mut frame).is_err());
        }
    }
}
