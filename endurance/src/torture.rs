//! Malformed frames, and good ones at the wrong time, fuzzed into a live node.
//!
//! After each volley the node must say hello within [`DEADLINE`], and now and then act as the agent
//! on the host does, bit for bit. It must not have panicked, faulted or been bitten by its watchdog.

use std::{
    io,
    time::{Duration, Instant},
};
use trust::{Manifest, manifest::MANIFEST};

use agent_core::{
    agent::AgentState,
    message::{
        CHUNK, COMMAND_FRAME, CRC32, Command, Observation, PROTOCOL, Patch, Report, Samples, Span,
        UNASKED, encode_frame,
    },
    policy::Policy,
};
use anyhow::{Context, Result, bail};
use node_link::{NodeStatus, Session, SessionError};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    observations::{Blob, Scene},
    soak::bits,
};

/// How soon a node must answer behind a volley: eight of its heartbeats, and less than half of what
/// a real board's watchdog waits. On the wall clock, and so of an emulator on a busy machine; what
/// it takes mostly is a hundredth of that.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Frames between two greetings. Few: what a greeting waits for is mostly the bytes before it on the
/// line, which are the emulator's work and not the node's.
const VOLLEY: u64 = 16;

/// Volleys between two looks at how the node acts.
const LOOK_EVERY: u64 = 1024;

/// Observations in one such look.
const STEPS: u32 = 16;

/// What a run found.
#[derive(Debug)]
pub struct Tortured {
    /// Frames sent, by kind, as in [`KINDS`].
    pub sent: [u64; KINDS.len()],
    /// How long the node took to say hello, sorted.
    pub answers: Vec<Duration>,
    /// Actions compared with the host's, all the same.
    pub actions: u64,
    /// Starts that frames which happened to be valid have asked for.
    pub restarts: u64,
    /// How the node is after it.
    pub node: NodeStatus,
    /// How long it took.
    pub elapsed: Duration,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A good frame with some bits flipped.
    Flipped,
    /// The beginning or the end of one.
    Cut,
    /// Any bytes.
    Noise,
    /// More bytes without a zero than a node has room for.
    Overlong,
    /// Any bytes, in the right frame.
    WrongContent,
    /// A good message of another protocol.
    WrongVersion,
    /// A good frame that nobody would send now: of an upload that has not begun, too long, with an
    /// old number or none, with an observation of another size.
    WrongTime,
}

/// All kinds, in the order of their counts.
pub const KINDS: [Kind; 7] = [
    Kind::Flipped,
    Kind::Cut,
    Kind::Noise,
    Kind::Overlong,
    Kind::WrongContent,
    Kind::WrongVersion,
    Kind::WrongTime,
];

/// Sends `frames` frames to a node. `progress` is told how many have gone.
pub fn torture(
    session: &mut Session,
    blob: &Blob,
    frames: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Tortured> {
    let start = Instant::now();
    let policy = blob.policy()?;
    let hello = session.upload(&blob.offer(), &mut |_| ())?;
    if hello.policy != Some(blob.offer().id) {
        bail!("the node runs another policy than it was given: {hello:?}");
    }
    let started = session.counters().starts;
    let mut forge = Forge {
        rng: ChaCha8Rng::seed_from_u64(1),
        last: 0,
    };
    let mut sent = [0; KINDS.len()];
    let mut answers = Vec::new();
    let mut actions = 0;
    let mut volley = Vec::new();
    for gone in (0..frames).step_by(VOLLEY as usize) {
        progress(gone);
        volley.clear();
        // Numbered in their order, so far without a wrap.
        forge.last = session.counters().sent as u32;
        for _ in 0..VOLLEY.min(frames - gone) {
            sent[forge.frame(&mut volley) as usize] += 1;
        }
        put(session, &volley)?;
        let asked = Instant::now();
        let hello = session
            .hello(DEADLINE)
            .with_context(|| format!("after {gone} frames"))?;
        answers.push(asked.elapsed());
        if hello.policy != Some(blob.offer().id) {
            bail!("after {gone} frames the node runs another policy: {hello:?}");
        }
        if (gone / VOLLEY).is_multiple_of(LOOK_EVERY) {
            actions += look(session, &policy).with_context(|| format!("after {gone} frames"))?;
        }
    }
    actions += look(session, &policy)?;
    let node = session.status(DEADLINE)?;
    let history = node.history;
    if history.watchdog_bites + history.panics + history.faults > 0 {
        bail!("the node came to grief: {history:?} {}", node.last_words);
    }
    answers.sort();
    Ok(Tortured {
        sent,
        answers,
        actions,
        restarts: session.counters().starts - started,
        node,
        elapsed: start.elapsed(),
    })
}

/// Puts bytes on a line that may be full for a while: nobody reads as fast as these are made.
fn put(session: &mut Session, volley: &[u8]) -> Result<()> {
    for piece in volley.chunks(1024) {
        match session.send_bytes(piece) {
            // What has got on the line of it is as good as the whole.
            Err(SessionError::Line(error)) if error.kind() == io::ErrorKind::TimedOut => {}
            sent => sent?,
        }
    }
    Ok(())
}

/// A few steps from the beginning, here and there; how many, if all were the same.
fn look(session: &mut Session, policy: &Policy) -> Result<u64> {
    session.ask(&Command::Reset, DEADLINE)?;
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut host = AgentState::new();
    for step in 0..STEPS {
        let scene = Scene::new(policy, step, STEPS);
        let observation = scene.observation();
        let expected = host.step(policy, &mut workspace, &observation);
        match session.ask(&Command::Observe(observation), DEADLINE)? {
            Report::Action { action, .. } if bits(&action) == bits(&expected) => {}
            report => bail!("observation {step} was answered by {report:?}, not {expected:?}"),
        }
    }
    Ok(STEPS.into())
}

/// Makes frames.
struct Forge {
    rng: ChaCha8Rng,
    /// Number of the session's last command.
    last: u32,
}

impl Forge {
    /// Appends a frame.
    fn frame(&mut self, to: &mut Vec<u8>) -> Kind {
        let kind = match self.rng.random_range(0..1000) {
            // Rare: each is as long as a hundred others.
            0 => Kind::Overlong,
            other => [
                Kind::Flipped,
                Kind::Cut,
                Kind::Noise,
                Kind::WrongContent,
                Kind::WrongVersion,
                Kind::WrongTime,
            ][other % 6],
        };
        match kind {
            Kind::Flipped => {
                let from = to.len();
                self.good(to);
                // The zero at the end may be among them: the next frame then shares this one's fate.
                for _ in 0..self.rng.random_range(1..=8) {
                    let at = self.rng.random_range(from..to.len());
                    to[at] ^= 1 << self.rng.random_range(0..8);
                }
            }
            Kind::Cut => {
                let mut frame = Vec::new();
                self.good(&mut frame);
                let at = self.rng.random_range(0..frame.len());
                match self.rng.random() {
                    true => to.extend(&frame[at..]),
                    false => {
                        to.extend(&frame[..at]);
                        to.push(0);
                    }
                }
            }
            Kind::Noise => {
                to.extend(self.noise(CHUNK));
                to.push(0);
            }
            Kind::Overlong => {
                let length = self.rng.random_range(COMMAND_FRAME..2 * COMMAND_FRAME);
                to.extend((0..length).map(|_| self.rng.random_range(1..=255u8)));
                to.push(0);
            }
            Kind::WrongContent => {
                let noise = self.noise(CHUNK);
                framed(PROTOCOL, &noise, to);
            }
            Kind::WrongVersion => {
                let version = PROTOCOL ^ self.rng.random_range(1..=255);
                let noise = self.noise(CHUNK);
                framed(version, &noise, to);
            }
            Kind::WrongTime => self.good(to),
        }
        kind
    }

    /// Mostly short, and now and then `longest`: what takes a node's time is the bytes.
    fn length(&mut self, longest: usize) -> usize {
        let limit = longest >> self.rng.random_range(0..8);
        self.rng.random_range(0..=limit)
    }

    fn noise(&mut self, longest: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.length(longest)];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    /// A manifest of something that is not there, or noise.
    fn manifest(&mut self) -> Vec<u8> {
        if self.rng.random() {
            return self.noise(MANIFEST);
        }
        let manifest = Manifest {
            length: self.rng.next_u32() >> self.rng.random_range(0..32),
            ..Manifest::unsigned(&self.noise(8), "heat-1d")
        };
        let encoded = manifest.encode(&mut [0; MANIFEST]).map(<[u8]>::to_vec);
        encoded.unwrap_or_default()
    }

    /// A frame as a host could send it.
    fn good(&mut self, to: &mut Vec<u8>) {
        let number = match self.rng.random_range(0..4) {
            0 => UNASKED,
            1 => self.last.wrapping_sub(self.rng.random_range(0..1000)),
            // Far from any that the session uses.
            _ => self.rng.random_range(1 << 30..1 << 31),
        };
        let bytes = self.noise(CHUNK);
        let values: Vec<f32> = (0..self.length(CHUNK / 4))
            .map(|_| f32::from_bits(self.rng.next_u32()))
            .collect();
        let (field, target) = values.split_at(self.rng.random_range(0..=values.len()));
        let manifest = self.manifest();
        let command = match self.rng.random_range(0..32) {
            0..4 => Command::Hello,
            4..8 => Command::Status,
            8..10 => Command::Reset,
            // Rare: a slot is erased.
            10 => Command::PolicyBegin {
                manifest: &manifest,
                signature: &bytes[..bytes.len().min(80)],
            },
            11..15 => Command::PolicyChunk {
                offset: self.rng.next_u32() >> self.rng.random_range(0..32),
                bytes: &bytes,
            },
            15..19 => Command::PolicyCommit,
            _ => Command::Observe(Observation {
                now_us: self.rng.next_u64(),
                position: [0; 2].map(|_: u32| f32::from_bits(self.rng.next_u32())),
                patch: Patch {
                    field: Samples::new(field),
                    target: Samples::new(target),
                    inside: [0; 2].map(|_: u16| Span {
                        first: self.rng.random(),
                        last: self.rng.random(),
                    }),
                    wide: Default::default(),
                },
            }),
        };
        let mut buffer = [0; COMMAND_FRAME];
        if let Ok(frame) = encode_frame(number, &command, &mut buffer) {
            to.extend(frame.iter());
        }
    }
}

/// A frame with the right checksum around anything.
fn framed(version: u8, content: &[u8], to: &mut Vec<u8>) {
    let mut plain = vec![version];
    plain.extend(content);
    plain.extend(CRC32.checksum(&plain).to_le_bytes());
    let mut frame = vec![0; cobs::max_encoding_length(plain.len())];
    let length = cobs::encode(&plain, &mut frame);
    to.extend(&frame[..length]);
    to.push(0);
}
