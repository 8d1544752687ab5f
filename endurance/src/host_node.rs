//! The node's own code on a thread of this process, with flash in memory: everything of a node but
//! its chip.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    io,
    panic::{self, AssertUnwindSafe},
    pin::pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use agent_core::{
    agent::Action,
    message::{History, ResetCause},
};
use embedded_io_async as line;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read,
    check_write,
};
use firmware::{
    hardware::{Actuator, Hardware, NoSensors, PolicyFlash, Station, Watchdog},
    keys::Keys,
    link::{Receiver, Sender},
    node::{self, WORKSPACE},
};
use node_link::Transport;

/// A node that runs until it is dropped.
pub struct HostNode {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

impl HostNode {
    /// Starts a node with empty flash that obeys anybody, and hands out the line to it.
    pub fn start() -> io::Result<(Self, Box<dyn Transport>)> {
        Self::with_keys(Keys::NONE)
    }

    /// The same for a node that has been given keys.
    pub fn with_keys(keys: Keys) -> io::Result<(Self, Box<dyn Transport>)> {
        let line = Arc::new(Line::default());
        let at_node = line.clone();
        let thread = thread::Builder::new()
            .name("node".to_owned())
            .spawn(move || power_on(&at_node, keys))?;
        let node = Self {
            line: line.clone(),
            thread: Some(thread),
        };
        Ok((node, Box::new(HostEnd(line))))
    }
}

impl Drop for HostNode {
    fn drop(&mut self) {
        self.line.to_node.close();
        self.line.to_host.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How a node that starts afresh leaves its loop.
struct Restart;

/// Runs a node, again after each restart, until its line is closed.
fn power_on(line: &Line, keys: Keys) {
    let mut hardware = Hardware {
        board: "host",
        keys,
        slots: [MemoryFlash::new(), MemoryFlash::new()],
        journal: MemoryFlash::new(),
        watchdog: Nothing,
        actuator: Nothing,
        station: None::<Station<MemoryFlash, NoSensors>>,
        history: History {
            reset: ResetCause::PowerOn,
            boots: 1,
            watchdog_bites: 0,
            panics: 0,
            faults: 0,
        },
        last_words: "",
        stack: || [0; 2],
        restart: || panic::resume_unwind(Box::new(Restart)),
        provoke: None,
    };
    let mut workspace = Box::new([0.0; WORKSPACE]);
    loop {
        let mut receiver = Receiver::new(NodeEnd(line));
        let mut sender = Sender::new(NodeEnd(line));
        let run = panic::catch_unwind(AssertUnwindSafe(|| {
            let node = node::run(&mut receiver, &mut sender, &mut hardware, &mut workspace);
            let mut node = pin!(node);
            host_clock::block_on(poll_fn(|context| {
                // Not in the match, which would keep the line locked while the node uses it.
                let closed = line.to_node.lock().closed;
                match closed {
                    true => Poll::Ready(()),
                    false => node.as_mut().poll(context).map(|never| never),
                }
            }));
        }));
        match run {
            Ok(()) => return,
            Err(panic) if panic.is::<Restart>() => {
                hardware.history.reset = ResetCause::Command;
                hardware.history.boots += 1;
            }
            Err(panic) => panic::resume_unwind(panic),
        }
    }
}

/// The host has no watchdog and nothing to move.
struct Nothing;

impl Watchdog for Nothing {
    fn feed(&mut self) {}
}

impl Actuator for Nothing {
    fn apply(&mut self, _: &Action) {}
}

/// A line in both directions.
#[derive(Default)]
struct Line {
    to_node: Pipe,
    to_host: Pipe,
}

/// Bytes under way, as many as a driver's buffer holds.
#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    /// For the host, which waits as a thread.
    changed: Condvar,
}

#[derive(Default)]
struct PipeState {
    bytes: VecDeque<u8>,
    /// The node, which waits as a task.
    node: Option<Waker>,
    closed: bool,
}

const ROOM: usize = 4096;

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets whoever waits look again.
    fn wake(&self, mut state: MutexGuard<'_, PipeState>) {
        let node = state.node.take();
        drop(state);
        self.changed.notify_all();
        if let Some(node) = node {
            node.wake();
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(state);
    }

    /// Waits as a thread until `ready`, the deadline, or the end of the line.
    fn wait(
        &self,
        deadline: Instant,
        ready: impl Fn(&PipeState) -> bool,
    ) -> io::Result<MutexGuard<'_, PipeState>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !state.closed && !ready(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.closed {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(state),
        }
    }

    /// Waits as a task until `act` gives something.
    async fn until<T>(&self, mut act: impl FnMut(&mut PipeState) -> Option<T>) -> T {
        poll_fn(|context| {
            let mut state = self.lock();
            match act(&mut state) {
                Some(done) => {
                    self.wake(state);
                    Poll::Ready(done)
                }
                None => {
                    state.node = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// The host's end.
struct HostEnd(Arc<Line>);

impl Transport for HostEnd {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let pipe = &self.0.to_node;
        let deadline = Instant::now() + Duration::from_millis(100);
        for piece in bytes.chunks(ROOM) {
            let fits = |state: &PipeState| state.bytes.len() + piece.len() <= ROOM;
            let mut state = pipe.wait(deadline, fits)?;
            if !fits(&state) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            state.bytes.extend(piece);
            pipe.wake(state);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let pipe = &self.0.to_host;
        let mut state = pipe.wait(deadline, |state| !state.bytes.is_empty())?;
        let length = io::Read::read(&mut state.bytes, buffer)?;
        pipe.wake(state);
        Ok(length)
    }

    fn reopen(&mut self) -> io::Result<()> {
        match self.0.to_node.lock().closed {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => Ok(()),
        }
    }
}

/// The node's end.
struct NodeEnd<'l>(&'l Line);

impl line::ErrorType for NodeEnd<'_> {
    type Error = line::ErrorKind;
}

impl line::Read for NodeEnd<'_> {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, line::ErrorKind> {
        let mut read = |state: &mut PipeState| {
            let length = io::Read::read(&mut state.bytes, buffer).unwrap_or(0);
            (length > 0).then_some(length)
        };
        Ok(self.0.to_node.until(&mut read).await)
    }
}

impl line::Write for NodeEnd<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, line::ErrorKind> {
        let write = |state: &mut PipeState| {
            let length = bytes.len().min(ROOM - state.bytes.len());
            state.bytes.extend(&bytes[..length]);
            (length > 0 || bytes.is_empty()).then_some(length)
        };
        Ok(self.0.to_host.until(write).await)
    }

    async fn flush(&mut self) -> Result<(), line::ErrorKind> {
        Ok(())
    }
}

/// Flash of one slot, with the habits of the real thing: programming only clears bits.
struct MemoryFlash(Vec<u128>);

impl MemoryFlash {
    /// A blob of 256 KiB and its record.
    const CAPACITY: usize = 256 * 1024 + 4096;

    fn new() -> Self {
        Self(vec![u128::MAX; Self::CAPACITY / 16])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Used against its rules.
#[derive(Debug)]
struct Misuse(NorFlashErrorKind);

impl NorFlashError for Misuse {
    fn kind(&self) -> NorFlashErrorKind {
        self.0
    }
}

impl From<NorFlashErrorKind> for Misuse {
    fn from(kind: NorFlashErrorKind) -> Self {
        Self(kind)
    }
}

impl ErrorType for MemoryFlash {
    type Error = Misuse;
}

impl ReadNorFlash for MemoryFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Misuse> {
        check_read(self, offset, bytes.len())?;
        let from = offset as usize;
        bytes.copy_from_slice(&self.bytes()[from..from + bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        Self::CAPACITY
    }
}

impl NorFlash for MemoryFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Misuse> {
        check_erase(self, from, to)?;
        self.bytes_mut()[from as usize..to as usize].fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Misuse> {
        check_write(self, offset, bytes.len())?;
        let cells = &mut self.bytes_mut()[offset as usize..];
        for (cell, byte) in cells.iter_mut().zip(bytes) {
            *cell &= byte;
        }
        Ok(())
    }
}

impl PolicyFlash for MemoryFlash {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}
