//! Commands in, reports out, over any byte stream.

use agent_core::message::{
    COMMAND_FRAME, Command, Counters, Frame, FrameReader, Report, UNASKED, encode_frame,
    encode_sealed, message,
};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_io_async::{Read, Write};
use trust::SessionKey;

use crate::{
    keys::HAS_SEAL,
    sessions::{Place, Sessions, Whose},
};

/// Longest frame a node sends, in bytes: a refusal with its reason, or its status, which is at most
/// 7 bytes of prologue, 33, 17 and 41 of board, version and fleet, 70 of slots, 10 of the counter, 21 of
/// history, 97 of last words, 50 of counters and 19 of tag and framing: 365.
pub const REPORT_FRAME: usize = 368;

/// A host that does not read must not keep the node from listening: a report that cannot be
/// written for this long is dropped.
pub const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// How long to wait before reading a stream again that broke or ended.
const RETRY: Duration = Duration::from_millis(100);

/// The receiving half of a link: finds the commands in what arrives and drops the rest.
pub struct Receiver<R> {
    stream: R,
    frames: FrameReader<COMMAND_FRAME>,
    chunk: [u8; 64],
    /// What of `chunk` has not been looked at.
    unread: core::ops::Range<usize>,
    /// Number of the last command taken that was not sealed.
    last: Option<u32>,
    counters: Counters,
    /// How long the last frame took to be read.
    ticks: u32,
}

/// A command that is not older than the last one.
pub enum Arrival<'a> {
    /// To be carried out, if whose it is may have that, and answered with its number.
    New(u32, Command<'a>, Whose),
    /// The last one once more, because its answer was lost or the line doubled it: to be answered
    /// as before.
    Again,
}

impl<R: Read> Receiver<R> {
    /// A receiver on `stream`, whose reads must lose nothing when they are given up.
    pub const fn new(stream: R) -> Self {
        Self {
            stream,
            frames: FrameReader::new(),
            chunk: [0; 64],
            unread: 0..0,
            last: None,
            counters: Counters {
                uptime_us: 0,
                steps: 0,
                commands: 0,
                rejected: 0,
                repeated: 0,
                stale: 0,
                frame_ticks: 0,
                stack_used: 0,
                stack_size: 0,
            },
            ticks: 0,
        }
    }

    /// How long the last frame took to be read, in ticks.
    pub fn ticks(&self) -> u32 {
        self.ticks
    }

    /// What has come so far: frames by what became of them. The rest of the counters is zero.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The next command, or `None` when `deadline` comes first or what came was none to carry out.
    ///
    /// A caller that gets `None` looks at the clock and calls again; no stream of bytes, however
    /// dense, keeps it past the deadline. Bytes that came before are kept.
    pub async fn command(
        &mut self,
        deadline: Instant,
        sessions: &mut Sessions,
    ) -> Option<Arrival<'_>> {
        while let Some(byte) = self.byte(deadline).await {
            if byte == 0 {
                return self.finish_frame(sessions);
            }
            // Only the zero at its end completes a frame.
            let _ = self.frames.push(byte);
        }
        None
    }

    fn finish_frame(&mut self, sessions: &mut Sessions) -> Option<Arrival<'_>> {
        let start = Instant::now();
        let counters = &mut self.counters;
        let read = self.frames.push(0)?.and_then(|frame| {
            Ok(match Frame::read(frame)? {
                Frame::Plain { number, body } => {
                    let command = message::<Command>(body)?;
                    let whose = sessions.unsealed();
                    let place = match whose {
                        // A stranger's commands change nothing: any may come again.
                        Whose::Strangers => Place::Next,
                        _ => place(&mut self.last, number, &command),
                    };
                    (number, place, whose, command)
                }
                Frame::Sealed(frame) => {
                    let (place, whose, command) = sessions.open(&frame)?;
                    (frame.number, place, whose, command)
                }
            })
        });
        self.ticks = ticks_since(start);
        let (number, place, whose, command) = match read {
            Ok((UNASKED, ..)) => {
                count(&mut counters.rejected);
                log!(debug, "dropped a command without a number");
                return None;
            }
            Ok(read) => read,
            Err(error) => {
                count(&mut counters.rejected);
                log!(debug, "dropped frame {=u32}: {}", counters.rejected, error);
                return None;
            }
        };
        count(&mut counters.commands);
        match place {
            Place::Next => Some(Arrival::New(number, command, whose)),
            Place::Again => {
                count(&mut counters.repeated);
                Some(Arrival::Again)
            }
            Place::Stale => {
                count(&mut counters.stale);
                None
            }
        }
    }

    async fn byte(&mut self, deadline: Instant) -> Option<u8> {
        loop {
            if let Some(at) = self.unread.next() {
                return self.chunk.get(at).copied();
            }
            // A stream that always has bytes would otherwise always win.
            let now = Instant::now();
            if now >= deadline {
                return None;
            }
            let read = self.stream.read(&mut self.chunk);
            match select(read, Timer::at(deadline)).await {
                Either::First(Ok(length)) if length > 0 => self.unread = 0..length,
                Either::First(_) => {
                    Timer::at(deadline.min(now + RETRY)).await;
                    return None;
                }
                Either::Second(()) => return None,
            }
        }
    }
}

/// The place of a command that is not sealed.
fn place(last: &mut Option<u32>, number: u32, command: &Command) -> Place {
    if number == UNASKED {
        return Place::Stale;
    }
    // A greeting starts a new count: it is neither old nor a repetition, whatever its number.
    let before = last.filter(|_| *command != Command::Hello);
    // Numbers may wrap; older is what lies in the half behind.
    match before.map(|before| number.wrapping_sub(before).cast_signed()) {
        Some(0) => Place::Again,
        Some(..0) => Place::Stale,
        _ => {
            *last = Some(number);
            Place::Next
        }
    }
}

fn ticks_since(start: Instant) -> u32 {
    start.elapsed().as_ticks().try_into().unwrap_or(u32::MAX)
}

fn count(events: &mut u32) {
    *events = events.saturating_add(1);
}

/// How a report is sent.
#[derive(Clone, Copy)]
pub enum Proof<'k> {
    /// As it is, to be sent again if its command comes again.
    None,
    /// The same, sealed.
    Sealed(&'k SessionKey),
    /// To a stranger: the answer to the last command of the host's is kept.
    Aside,
    /// The same, sealed: to a host that has not proven itself yet.
    SealedAside(&'k SessionKey),
}

/// The sending half of a link.
pub struct Sender<W> {
    stream: W,
    answer: Outgoing,
    aside: Outgoing,
    /// The last frame was cut short: a zero must end it before the next one.
    cut: bool,
    /// How long the last frame took to be made.
    ticks: u32,
}

/// A report's frame.
struct Outgoing {
    frame: [u8; REPORT_FRAME],
    length: usize,
}

impl Outgoing {
    const EMPTY: Self = Self {
        frame: [0; REPORT_FRAME],
        length: 0,
    };

    fn put(&mut self, number: u32, report: &Report<'_>, key: Option<&SessionKey>) {
        let frame = match key {
            Some(key) if HAS_SEAL => encode_sealed(number, report, &key.reports(), &mut self.frame),
            _ => encode_frame(number, report, &mut self.frame),
        };
        self.length = match frame {
            Ok(frame) => frame.len(),
            Err(_) => {
                log!(error, "report longer than its frame buffer");
                0
            }
        };
    }
}

impl<W: Write> Sender<W> {
    /// A sender on `stream`.
    pub const fn new(stream: W) -> Self {
        Self {
            stream,
            answer: Outgoing::EMPTY,
            aside: Outgoing::EMPTY,
            cut: false,
            ticks: 0,
        }
    }

    /// How long the last frame took to be made, in ticks.
    pub fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Sends one report, or gives up after [`WRITE_TIMEOUT`]: the host will ask again.
    pub async fn send(&mut self, number: u32, report: &Report<'_>, proof: Proof<'_>) {
        let start = Instant::now();
        let (outgoing, key) = match proof {
            Proof::None => (&mut self.answer, None),
            Proof::Sealed(key) => (&mut self.answer, Some(key)),
            Proof::Aside => (&mut self.aside, None),
            Proof::SealedAside(key) => (&mut self.aside, Some(key)),
        };
        outgoing.put(number, report, key);
        self.ticks = ticks_since(start);
        write(&mut self.stream, outgoing, &mut self.cut).await;
    }

    /// Sends the answer to the last command once more, the same bytes.
    pub async fn again(&mut self) {
        write(&mut self.stream, &self.answer, &mut self.cut).await;
    }
}

async fn write(stream: &mut impl Write, outgoing: &Outgoing, cut: &mut bool) {
    let frame = outgoing.frame.get(..outgoing.length).unwrap_or_default();
    let was_cut = core::mem::replace(cut, true);
    let write = async {
        if was_cut {
            stream.write_all(&[0]).await?;
        }
        stream.write_all(frame).await?;
        stream.flush().await
    };
    match with_timeout(WRITE_TIMEOUT, write).await {
        Ok(Ok(())) => *cut = false,
        _ => log!(warn, "the host does not read: report dropped"),
    }
}
