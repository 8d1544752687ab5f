//! Commands in, reports out, over any byte stream.

use agent_core::message::{
    COMMAND_FRAME, Command, FrameReader, Report, decode_frame, encode_frame,
};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_io_async::{Read, Write};

/// Longest frame a node sends, in bytes: a refusal with its reason.
pub const REPORT_FRAME: usize = 256;

/// A host that does not read must not keep the agent from failing safe: a report that cannot be
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
    dropped: u32,
}

impl<R: Read> Receiver<R> {
    /// A receiver on `stream`, whose reads must lose nothing when they are given up.
    pub const fn new(stream: R) -> Self {
        Self {
            stream,
            frames: FrameReader::new(),
            chunk: [0; 64],
            unread: 0..0,
            dropped: 0,
        }
    }

    /// The next command, or `None` when `deadline` comes first or what came was no command.
    ///
    /// A caller that gets `None` looks at the clock and calls again. Bytes that came before the
    /// deadline are kept.
    pub async fn command(&mut self, deadline: Option<Instant>) -> Option<Command<'_>> {
        while let Some(byte) = self.byte(deadline).await {
            if byte == 0 {
                return self.finish_frame();
            }
            // Only the zero at its end completes a frame.
            let _ = self.frames.push(byte);
        }
        None
    }

    fn finish_frame(&mut self) -> Option<Command<'_>> {
        let command = self.frames.push(0)?.and_then(decode_frame);
        if let Err(error) = command {
            self.dropped = self.dropped.wrapping_add(1);
            log!(debug, "dropped frame {=u32}: {}", self.dropped, error);
        }
        command.ok()
    }

    async fn byte(&mut self, deadline: Option<Instant>) -> Option<u8> {
        loop {
            if let Some(at) = self.unread.next() {
                return self.chunk.get(at).copied();
            }
            let read = self.stream.read(&mut self.chunk);
            let length = match deadline {
                None => read.await,
                Some(deadline) => match select(read, Timer::at(deadline)).await {
                    Either::First(length) => length,
                    Either::Second(()) => return None,
                },
            };
            match length {
                Ok(length) if length > 0 => self.unread = 0..length,
                _ => {
                    Timer::after(RETRY).await;
                    return None;
                }
            }
        }
    }
}

/// The sending half of a link.
pub struct Sender<W> {
    stream: W,
    frame: [u8; REPORT_FRAME],
    /// The last frame was cut short: a zero must end it before the next one.
    cut: bool,
}

impl<W: Write> Sender<W> {
    /// A sender on `stream`.
    pub const fn new(stream: W) -> Self {
        Self {
            stream,
            frame: [0; REPORT_FRAME],
            cut: false,
        }
    }

    /// Sends one report, or gives up after [`WRITE_TIMEOUT`]: the host will ask again.
    pub async fn send(&mut self, report: &Report<'_>) {
        let Ok(frame) = encode_frame(report, &mut self.frame) else {
            log!(error, "report longer than its frame buffer");
            return;
        };
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
