//! A line that several nodes write to: bytes take their time, those of two who write at once destroy each
//! other, and bits are wrong now and then.

use std::{cell::RefCell, collections::VecDeque, convert::Infallible, rc::Rc};

use embassy_futures::select::select;
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, signal::Signal};
use embassy_time::{Duration, Instant, Timer};
use embedded_io_async::{ErrorType, Read, Write};

use crate::chip::next;

/// Bytes that are heard at once: fewer than the gap between two frames.
const CHUNK: usize = 2;

/// So much of what was said is kept for those who have not listened yet.
const KEPT: Duration = Duration::from_secs(1);

struct Chunk {
    at: Instant,
    by: usize,
    bytes: Vec<u8>,
}

struct State {
    /// Of what is under way and of what was heard lately, in the order of its time.
    chunks: VecDeque<Chunk>,
    /// How many were dropped before those.
    dropped: usize,
    /// Until when somebody writes.
    free: Instant,
    seed: u64,
    /// Of 2^32 bits so many are wrong.
    wrong: u64,
    woken: Vec<Rc<Signal<NoopRawMutex, ()>>>,
    traffic: Traffic,
}

/// What was on the line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    pub frames: u64,
    pub collisions: u64,
    /// While somebody wrote.
    pub busy: Duration,
}

#[derive(Clone)]
pub struct Wire {
    state: Rc<RefCell<State>>,
    byte: Duration,
}

/// Where a node hangs on it.
pub struct Tap {
    wire: Wire,
    by: usize,
    heard: usize,
    woken: Rc<Signal<NoopRawMutex, ()>>,
}

impl Wire {
    /// A wire of so many bits a second, of which this share is wrong.
    pub fn new(baud: u64, wrong: f64, seed: u64) -> Self {
        Self {
            state: Rc::new(RefCell::new(State {
                chunks: VecDeque::new(),
                dropped: 0,
                free: Instant::MIN,
                seed,
                wrong: (wrong * 2f64.powi(32)) as u64,
                woken: Vec::new(),
                traffic: Traffic::default(),
            })),
            byte: Duration::from_micros(10_000_000u64.div_ceil(baud)),
        }
    }

    /// Both ends of one more who hangs on it.
    pub fn tap(&self) -> (Tap, Tap) {
        let mut state = self.state.borrow_mut();
        let (by, woken) = (state.woken.len(), Rc::new(Signal::new()));
        state.woken.push(woken.clone());
        let heard = state.dropped + state.chunks.len();
        let tap = || Tap {
            wire: self.clone(),
            by,
            heard,
            woken: woken.clone(),
        };
        (tap(), tap())
    }

    pub fn traffic(&self) -> Traffic {
        self.state.borrow().traffic
    }

    /// Puts bytes on the line; when the last of them is over.
    fn write(&self, by: usize, bytes: &[u8]) -> Instant {
        let mut state = self.state.borrow_mut();
        let now = Instant::now();
        let collides = state.free > now;
        let end = now + Duration::from_ticks(self.byte.as_ticks() * bytes.len() as u64);
        state.traffic.frames += 1;
        state.traffic.collisions += u64::from(collides);
        let from = state.free.max(now);
        state.traffic.busy += end.saturating_duration_since(from);
        state.free = state.free.max(end);
        let State {
            chunks,
            dropped,
            seed,
            wrong,
            ..
        } = &mut *state;
        if collides {
            for chunk in chunks.iter_mut().filter(|chunk| chunk.at > now) {
                chunk
                    .bytes
                    .iter_mut()
                    .for_each(|byte| *byte ^= next(seed) as u8);
            }
        }
        for (k, bytes) in bytes.chunks(CHUNK).enumerate() {
            let last = (k * CHUNK + bytes.len()) as u64;
            let at = now + Duration::from_ticks(self.byte.as_ticks() * last);
            let mut bytes = bytes.to_vec();
            for byte in &mut bytes {
                for bit in 0..8 {
                    *byte ^= u8::from(next(seed) >> 32 < *wrong) << bit;
                }
                if collides {
                    *byte ^= next(seed) as u8;
                }
            }
            let place = chunks.partition_point(|chunk| chunk.at <= at);
            chunks.insert(place, Chunk { at, by, bytes });
        }
        while chunks.front().is_some_and(|chunk| chunk.at + KEPT < now) {
            chunks.pop_front();
            *dropped += 1;
        }
        state.woken.iter().for_each(|woken| woken.signal(()));
        end
    }
}

impl ErrorType for Tap {
    type Error = Infallible;
}

impl Read for Tap {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, Infallible> {
        loop {
            let next = {
                let state = self.wire.state.borrow();
                self.heard = self.heard.max(state.dropped);
                let mut chunks = state.chunks.iter().skip(self.heard - state.dropped);
                let own = chunks
                    .clone()
                    .take_while(|chunk| chunk.by == self.by)
                    .count();
                let chunk = chunks.nth(own);
                self.heard += own;
                match chunk {
                    Some(chunk) if chunk.at <= Instant::now() => {
                        self.heard += 1;
                        to[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                        return Ok(chunk.bytes.len());
                    }
                    Some(chunk) => Some(chunk.at),
                    None => None,
                }
            };
            match next {
                Some(at) => {
                    select(Timer::at(at), self.woken.wait()).await;
                }
                None => self.woken.wait().await,
            }
        }
    }
}

impl Write for Tap {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        let end = self.wire.write(self.by, bytes);
        Timer::at(end).await;
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
