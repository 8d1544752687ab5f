//! One line that all nodes write to and read from, as RS-485 is.
//!
//! A frame is stuffed with COBS and ends in a zero; one more before it ends whatever noise has begun. Who has
//! something to say lets the line rest for a gap, and for a multiple of a slot that it draws from its frame
//! and from when it last heard anything: of two that wait the first is heard by the other, which then waits
//! anew. Two that begin at once destroy each other's frame, and nobody says it again: by then the next is due.

use agent_core::message::FrameReader;
use embassy_time::{Duration, Instant, Timer};
use embedded_io_async::{Read, Write};
use place::neighbours::bandwidth::{GAP, SLOT, SLOTS};

use super::lot;
use crate::hardware::{Bus, Busy, MTU};

/// Longest frame on the line, less the zero at its end.
const STUFFED: usize = cobs::max_encoding_length(MTU);

/// How long to wait before reading a line again that broke or ended.
const RETRY: Duration = Duration::from_millis(10);

/// A multi-drop line. Its driver is off while this node does not write, and its receiver may be while it does: a
/// node that hears itself takes it for one that is none of its neighbours.
pub struct Serial<R, W> {
    input: R,
    output: W,
    /// How long one byte takes.
    byte: Duration,
    frames: FrameReader<STUFFED>,
    chunk: [u8; 16],
    /// What of `chunk` has not been looked at.
    unread: core::ops::Range<usize>,
    /// When something was last on the line.
    busy: Instant,
    /// What waits to be said, by its lot, and since when.
    waits: Option<(u32, Instant)>,
}

impl<R: Read, W: Write> Serial<R, W> {
    /// A line of so many bits a second, ten to a byte, whose reads lose nothing when they are given up.
    pub fn new(input: R, output: W, baud: u32) -> Self {
        let micros = 10_000_000u64.div_ceil(baud.max(1).into());
        Self {
            input,
            output,
            byte: Duration::from_micros(micros),
            frames: FrameReader::new(),
            chunk: [0; 16],
            unread: 0..0,
            busy: Instant::MIN,
            waits: None,
        }
    }

    fn bytes(&self, many: u64) -> Duration {
        Duration::from_ticks(self.byte.as_ticks() * many)
    }

    /// When it is this frame's turn, as things stand.
    fn turn(&mut self, lot: u32) -> Instant {
        let since = match self.waits {
            Some((waits, since)) if waits == lot => since,
            _ => Instant::now(),
        };
        self.waits = Some((lot, since));
        // Multiplied, so that lots and times that are close lie apart.
        let mixed = (lot ^ self.busy.as_ticks() as u32).wrapping_mul(0x9e37_79b1);
        let slot = u64::from(mixed >> 28) % SLOTS;
        self.busy.max(since) + self.bytes(GAP + SLOT * slot)
    }
}

impl<R: Read, W: Write> Bus for Serial<R, W> {
    async fn send(&mut self, frame: &[u8]) -> Result<(), Busy> {
        let turn = self.turn(lot(frame));
        if Instant::now() < turn {
            return Err(Busy { until: turn });
        }
        self.waits = None;
        let mut stuffed = [0; STUFFED + 2];
        // Between two zeros.
        let room = stuffed.get_mut(1..).unwrap_or_default();
        if frame.len() <= MTU
            && let Ok(length) = cobs::try_encode(frame, room)
            && let Some(bytes) = stuffed.get(..length + 2)
        {
            let _ = self.output.write_all(bytes).await;
            let _ = self.output.flush().await;
        }
        self.busy = Instant::now();
        Ok(())
    }

    async fn receive(&mut self, frame: &mut [u8; MTU]) -> usize {
        loop {
            for at in self.unread.by_ref() {
                let byte = self.chunk.get(at).copied().unwrap_or_default();
                let Some(Ok(stuffed)) = self.frames.push(byte) else {
                    continue;
                };
                let length = cobs::decode_in_place(stuffed).unwrap_or_default();
                if let (Some(to), Some(from)) = (frame.get_mut(..length), stuffed.get(..length)) {
                    to.copy_from_slice(from);
                    // What cannot be unstuffed is heard as nothing.
                    return length;
                }
            }
            match self.input.read(&mut self.chunk).await {
                Ok(length) if length > 0 => {
                    self.unread = 0..length;
                    self.busy = Instant::now();
                }
                _ => Timer::after(RETRY).await,
            }
        }
    }
}
