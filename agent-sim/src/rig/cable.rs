//! The cable to a board, which can be pulled, or pick up noise.

use node_link::Transport;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Instant;

/// Bytes of noise before each frame on a flooded line: as many as the longest frame has, so that a
/// node has at least twice the work.
const FLOOD: usize = 4096;

/// The far end of a cable, for whoever pulls it.
#[derive(Debug, Clone, Default)]
pub struct Plug(Arc<AtomicU8>);

const SOUND: u8 = 0;
const BEING_PULLED: u8 = 1;
const OUT: u8 = 2;
const FLOODED: u8 = 3;

impl Plug {
    /// Pulls the cable in the middle of the next frame.
    pub fn pull(&self) {
        self.0.store(BEING_PULLED, Ordering::Relaxed);
    }

    /// Lets noise in.
    pub fn flood(&self) {
        self.0.store(FLOODED, Ordering::Relaxed);
    }

    /// Mends everything.
    pub fn mend(&self) {
        self.0.store(SOUND, Ordering::Relaxed);
    }
}

/// A line with a [`Plug`].
pub struct Cable {
    inner: Box<dyn Transport>,
    plug: Plug,
    rng: ChaCha8Rng,
    noise: Vec<u8>,
}

impl Cable {
    /// `inner`, with this plug; `seed` makes the noise.
    pub fn new(inner: Box<dyn Transport>, plug: Plug, seed: u64) -> Self {
        Self {
            inner,
            plug,
            rng: ChaCha8Rng::seed_from_u64(seed),
            noise: Vec::new(),
        }
    }

    fn state(&self) -> u8 {
        self.plug.0.load(Ordering::Relaxed)
    }
}

impl Transport for Cable {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.state() {
            OUT => Ok(()),
            BEING_PULLED => {
                self.plug.0.store(OUT, Ordering::Relaxed);
                self.inner.send(&bytes[..bytes.len() / 2])
            }
            FLOODED => {
                self.noise.clear();
                self.noise.resize(FLOOD, 0);
                self.rng.fill(&mut self.noise[..]);
                // The last byte ends the last piece of noise: what follows is a frame of its own.
                self.noise.push(0);
                self.inner.send(&self.noise)?;
                self.inner.send(bytes)
            }
            _ => self.inner.send(bytes),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        match self.state() {
            OUT => {
                thread::sleep(deadline.saturating_duration_since(Instant::now()));
                Ok(0)
            }
            _ => self.inner.receive(buffer, deadline),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        match self.state() {
            OUT => Err(io::ErrorKind::NotConnected.into()),
            _ => self.inner.reopen(),
        }
    }
}
