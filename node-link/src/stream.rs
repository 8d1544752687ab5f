//! What sockets have in common.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a peer may take for a frame before it is given up. The system's buffers hold many: it is
/// then hung, or gone without a word.
pub const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// Longest wait in an attempt to open a stream again.
pub const REOPEN_PATIENCE: Duration = Duration::from_millis(50);

/// A connected socket whose writes can be limited in time.
pub trait Socket: Read + Write + AsFd {
    fn limit_writes(&self, limit: Duration) -> io::Result<()>;
}

impl Socket for UnixStream {
    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}

impl Socket for TcpStream {
    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}

/// A socket, or what is left of it.
pub struct Stream<S> {
    socket: Option<S>,
    /// Who is at the other end, for errors.
    peer: String,
    /// It did not take the last frame, and is not waited for again until it takes something.
    stuck: bool,
}

impl<S: Socket> Stream<S> {
    /// Not connected yet.
    pub fn new(peer: impl Into<String>) -> Self {
        Self {
            socket: None,
            peer: peer.into(),
            stuck: false,
        }
    }

    pub fn connect(&mut self, socket: S) -> io::Result<()> {
        socket.limit_writes(SEND_PATIENCE)?;
        self.socket = Some(socket);
        self.stuck = false;
        Ok(())
    }

    /// Whether there is somebody at the other end, also if nobody has read to the end yet.
    pub fn is_connected(&mut self) -> bool {
        let gone = self.socket.as_ref().is_none_or(|socket| {
            let mut ends = [PollFd::new(socket, PollFlags::RDHUP)];
            let now = Timespec::default();
            let _ = poll(&mut ends, Some(&now));
            ends[0]
                .revents()
                .intersects(PollFlags::RDHUP | PollFlags::HUP)
        });
        if gone {
            self.socket = None;
        }
        !gone
    }

    pub fn peer(&self) -> &str {
        &self.peer
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(socket) = &mut self.socket else {
            return Err(self.not_connected());
        };
        let sent = match self.stuck && !is_ready(socket, PollFlags::OUT, Duration::ZERO) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => write_all(socket, bytes, Instant::now() + SEND_PATIENCE),
        };
        self.stuck = sent.is_err();
        match sent {
            Ok(()) => Ok(()),
            Err(error) if is_timeout(&error) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{} takes nothing any more", self.peer),
            )),
            Err(error) => Err(self.broken(error)),
        }
    }

    pub fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let Some(socket) = &mut self.socket else {
            return Err(self.not_connected());
        };
        // Not by the socket's own limit, which is counted in ticks of several milliseconds.
        let left = deadline.saturating_duration_since(Instant::now());
        if !is_ready(socket, PollFlags::IN, left) {
            return Ok(0);
        }
        match socket.read(buffer) {
            Ok(0) => Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(length) => Ok(length),
            Err(error) if is_timeout(&error) => Ok(0),
            Err(error) => Err(self.broken(error)),
        }
    }

    fn broken(&mut self, error: io::Error) -> io::Error {
        self.socket = None;
        let kind = error.kind();
        match kind {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => {
                io::Error::new(kind, format!("{} has closed the line", self.peer))
            }
            _ => io::Error::new(kind, format!("{}: {error}", self.peer)),
        }
    }

    fn not_connected(&self) -> io::Error {
        io::Error::new(
            io::ErrorKind::NotConnected,
            format!("{} is not connected", self.peer),
        )
    }
}

/// Whether the socket can be read from or written to before `limit` has passed, or is broken.
fn is_ready(socket: &impl AsFd, wanted: PollFlags, limit: Duration) -> bool {
    let mut ends = [PollFd::new(socket, wanted)];
    // None would be for ever.
    let most = Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    };
    let limit = Timespec::try_from(limit).unwrap_or(most);
    matches!(poll(&mut ends, Some(&limit)), Ok(1))
}

/// Writes everything by `deadline`: also to somebody who takes a byte now and then.
pub fn write_all(to: &mut impl Write, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !bytes.is_empty() && Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

pub fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
