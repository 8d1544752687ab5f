//! What sockets have in common.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a peer may take nothing before a frame to it is given up. It is then hung, or gone
/// without a word; one that is merely slow takes something.
const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// Longest wait in an attempt to open a stream again.
pub const REOPEN_PATIENCE: Duration = Duration::from_millis(50);

/// A connected socket whose reads can be limited in time.
pub trait Socket: Read + Write + AsFd {
    fn limit_writes(&self, limit: Duration) -> io::Result<()>;
    fn limit_reads(&self, limit: Duration) -> io::Result<()>;
}

impl Socket for UnixStream {
    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }

    fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

impl Socket for TcpStream {
    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }

    fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

/// A socket, or what is left of it.
pub struct Stream<S> {
    socket: Option<S>,
    /// Who is at the other end, for errors.
    peer: String,
}

impl<S: Socket> Stream<S> {
    /// Not connected yet.
    pub fn new(peer: impl Into<String>) -> Self {
        Self {
            socket: None,
            peer: peer.into(),
        }
    }

    pub fn connect(&mut self, socket: S) -> io::Result<()> {
        socket.limit_writes(SEND_PATIENCE)?;
        self.socket = Some(socket);
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
        match socket.write_all(bytes) {
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
        // Never zero, which would mean for ever.
        let left = deadline.saturating_duration_since(Instant::now());
        let read = socket
            .limit_reads(left.max(Duration::from_micros(1)))
            .and_then(|()| socket.read(buffer));
        match read {
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

pub fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
