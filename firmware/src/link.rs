//! Commands in, reports out, over any byte stream.

use agent_core::message::{
    COMMAND_FRAME, Command, Counters, FrameReader, Report, UNASKED, decode_frame, encode_frame,
};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_io_async::{Read, Write};

/// Longest frame a node sends, in bytes: a refusal with its reason, or its status, which is at most
/// 7 bytes of prologue, 33 and 17 of board and version, 26 of slots, 21 of history, 97 of last
/// words, 35 of counters and 6 of checksum and framing: 242.
pub const REPORT_FRAME: usize = 256;

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
    /// Number of the last command taken.
    last: Option<u32>,
    counters: Counters,
}

/// A command that is not older than the last one.
pub enum Arrival<'a> {
    /// To be carried out, and answered with its number.
    New(u32, Command<'a>),
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
            },
        }
    }

    /// What has come so far: frames by what became of them. The rest of the counters is zero.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The next command, or `None` when `deadline` comes first or what came was none to carry out.
    ///
    /// A caller that gets `None` looks at the clock and calls again; no stream of bytes, however
    /// dense, keeps it past the deadline. Bytes that came before are kept.
    pub async fn command(&mut self, deadline: Instant) -> Option<Arrival<'_>> {
        while let Some(byte) = self.byte(deadline).await {
            if byte == 0 {
                return self.finish_frame();
            }
            // Only the zero at its end completes a frame.
            let _ = self.frames.push(byte);
        }
        None
    }

    fn finish_frame(&mut self) -> Option<Arrival<'_>> {
        let counters = &mut self.counters;
        let (number, command) = match self.frames.push(0)?.and_then(decode_frame::<Command>) {
            Ok((UNASKED, _)) => {
                count(&mut counters.rejected);
                log!(debug, "dropped a command without a number");
                return None;
            }
            Ok(numbered) => numbered,
            Err(error) => {
                count(&mut counters.rejected);
                log!(debug, "dropped frame {=u32}: {}", counters.rejected, error);
                return None;
            }
        };
        count(&mut counters.commands);
        // A greeting starts a new count: it is neither old nor a repetition, whatever its number.
        let last = self.last.filter(|_| command != Command::Hello);
        // Numbers may wrap; older is what lies in the half behind.
        let ahead = last.map(|last| number.wrapping_sub(last).cast_signed());
        match ahead {
            Some(0) => {
                count(&mut counters.repeated);
                Some(Arrival::Again)
            }
            Some(..0) => {
                count(&mut counters.stale);
                None
            }
            _ => {
                self.last = Some(number);
                Some(Arrival::New(number, command))
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

fn count(events: &mut u32) {
    *events = events.saturating_add(1);
}

/// The sending half of a link.
pub struct Sender<W> {
    stream: W,
    frame: [u8; REPORT_FRAME],
    /// Bytes of the last report's frame, kept to be sent again.
    length: usize,
    /// The last frame was cut short: a zero must end it before the next one.
    cut: bool,
}

impl<W: Write> Sender<W> {
    /// A sender on `stream`.
    pub const fn new(stream: W) -> Self {
        Self {
            stream,
            frame: [0; REPORT_FRAME],
            length: 0,
            cut: false,
        }
    }

    /// Sends one report, or gives up after [`WRITE_TIMEOUT`]: the host will ask again.
    pub async fn send(&mut self, number: u32, report: &Report<'_>) {
        self.length = match encode_frame(number, report, &mut self.frame) {
            Ok(frame) => frame.len(),
            Err(_) => {
                log!(error, "report longer than its frame buffer");
                0
            }
        };
        self.again().await;
    }

    /// Sends the last report once more, the same bytes.
    pub async fn again(&mut self) {
        let frame = self.frame.get(..self.length).unwrap_or_default();
        let stream = &mut self.stream;
        let cut = core::mem::replace(&mut self.cut, true);
        let write = async {
            if cut {
                stream.write_all(&[0]).await?;
            }
            stream.write_all(frame).await?;
            stream.flush().await
        };
        match with_timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(())) => self.cut = false,
            _ => log!(warn, "the host does not read: report dropped"),
        }
    }
}
