//! Bytes to a plant and back, every wait with a deadline.

use super::error::LastWords;
use node_link::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Longest line, line end included; a plant that sends more without one is no plant.
pub const LONGEST_LINE: usize = 1 << 16;

/// What is kept of a plant's standard error.
const TAIL: usize = 2048;
const TAIL_LINES: usize = 12;

/// How long the last words of a plant that has ended, or takes no more, are waited for.
const GRACE: Duration = Duration::from_millis(500);

/// Why nothing more came or went.
#[derive(Debug)]
pub enum Trouble {
    /// The deadline has passed.
    Late,
    /// The other end closed the line.
    Closed,
    /// More came than any answer has.
    Flood,
    /// The system says so.
    Broken(io::Error),
}

/// Both directions, and what the plant says besides.
pub struct Line {
    /// None once it is closed.
    to: Option<File>,
    /// Until when a plant that takes no more may say why.
    refusing: Option<Instant>,
    from: File,
    /// Standard error; none if there is none, or it was closed.
    errors: Option<File>,
    said: VecDeque<u8>,
    /// What came and was not asked for yet.
    waiting: VecDeque<u8>,
    buffer: Vec<u8>,
}

/// Which ends have something to do.
struct Ready {
    to: bool,
    from: bool,
}

impl Line {
    /// The ends of pipes or sockets, none of which is to block.
    pub fn new(to: OwnedFd, from: OwnedFd, errors: Option<OwnedFd>) -> io::Result<Self> {
        for end in [Some(&to), Some(&from), errors.as_ref()]
            .into_iter()
            .flatten()
        {
            ioctl_fionbio(end, true)?;
        }
        Ok(Self {
            to: Some(to.into()),
            refusing: None,
            from: from.into(),
            errors: errors.map(File::from),
            said: VecDeque::new(),
            waiting: VecDeque::new(),
            buffer: vec![0; LONGEST_LINE],
        })
    }

    /// Sends bytes. A plant that takes no more may have said why: that is found when it is read from.
    pub fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Trouble> {
        while !bytes.is_empty() {
            let Some(to) = &mut self.to else {
                return Ok(());
            };
            match to.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => {
                        let ready = self.wait(true, deadline)?;
                        // It may answer before it has heard all, and wait to be heard.
                        if ready.from && !ready.to {
                            self.take()?;
                        }
                    }
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.refuse(),
                    _ => return Err(Trouble::Broken(error)),
                },
            }
        }
        Ok(())
    }

    /// No more is sent, and the plant finds out.
    pub fn close(&mut self) {
        self.to = None;
    }

    /// The plant takes no more.
    fn refuse(&mut self) {
        self.to = None;
        self.refusing = Some(Instant::now() + GRACE);
    }

    /// The next line, without its end.
    pub fn line(&mut self, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        let mut looked = 0;
        loop {
            let new = self.waiting.range(looked..);
            if let Some(end) = new.into_iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.waiting.drain(..=looked + end).collect();
                line.pop();
                return Ok(line);
            }
            looked = self.waiting.len();
            if looked >= LONGEST_LINE {
                return Err(Trouble::Flood);
            }
            self.more(deadline)?;
        }
    }

    /// So many bytes. Room for them is made as they come.
    pub fn bytes(&mut self, count: usize, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        loop {
            let there = self.waiting.len().min(count - bytes.len());
            bytes.extend(self.waiting.drain(..there));
            if bytes.len() == count {
                return Ok(bytes);
            }
            self.more(deadline)?;
        }
    }

    /// What has come and nobody asked for, as far as is known.
    pub fn unasked(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the other end closes the line in time, whatever it sends until then.
    pub fn ends(&mut self, deadline: Instant) -> bool {
        loop {
            self.waiting.clear();
            match self.more(deadline) {
                Ok(()) => {}
                Err(Trouble::Closed) => return true,
                Err(_) => return false,
            }
        }
    }

    /// The end of what the plant said besides, all of it if it has ended.
    pub fn last_words(&mut self) -> LastWords {
        let deadline = Instant::now() + GRACE;
        while self.errors.is_some() && self.hear(deadline) {}
        let said: Vec<u8> = self.said.iter().copied().collect();
        let said = String::from_utf8_lossy(&said);
        let lines = said.lines().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<String> = lines.map(|line| plain(line.trim_end(), TAIL)).collect();
        lines.drain(..lines.len().saturating_sub(TAIL_LINES));
        LastWords(lines)
    }

    /// Waits for something to come and takes it.
    fn more(&mut self, deadline: Instant) -> Result<(), Trouble> {
        while !self.wait(false, deadline)?.from {}
        self.take()
    }

    /// Takes what has come.
    fn take(&mut self) -> Result<(), Trouble> {
        if self.waiting.len() >= LONGEST_LINE {
            return Err(Trouble::Flood);
        }
        match self.from.read(&mut self.buffer) {
            Ok(0) => Err(Trouble::Closed),
            Ok(length) => {
                self.waiting.extend(&self.buffer[..length]);
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock => Ok(()),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Err(Trouble::Closed),
                _ => Err(Trouble::Broken(error)),
            },
        }
    }

    /// Waits until there is something to read, or room to write if that is `wanted`; what is said
    /// besides is heard on the way, so that nobody waits for being heard.
    fn wait(&mut self, wanted: bool, deadline: Instant) -> Result<Ready, Trouble> {
        loop {
            let until = self.refusing.map_or(deadline, |end| end.min(deadline));
            let left = until.saturating_duration_since(Instant::now());
            let late = match self.refusing {
                None => Trouble::Late,
                Some(_) => Trouble::Closed,
            };
            let mut ends = vec![PollFd::new(&self.from, PollFlags::IN)];
            let errors = self.errors.as_ref().map(|errors| {
                ends.push(PollFd::new(errors, PollFlags::IN));
                ends.len() - 1
            });
            // That it is closed is said unasked.
            let room = match wanted {
                true => PollFlags::OUT,
                false => PollFlags::empty(),
            };
            let to = self.to.as_ref().map(|to| {
                ends.push(PollFd::new(to, room));
                ends.len() - 1
            });
            match poll(&mut ends, Some(&timespec(left))) {
                Ok(0) if left.is_zero() => return Err(late),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Trouble::Broken(error.into())),
            }
            let is_ready = |end: usize| !ends[end].revents().is_empty();
            let ready = Ready {
                from: is_ready(0),
                to: wanted && to.is_some_and(is_ready),
            };
            let refused = to.is_some_and(|to| ends[to].revents().contains(PollFlags::ERR));
            if errors.is_some_and(is_ready) {
                self.hear(Instant::now());
            }
            if ready.from || ready.to {
                return Ok(ready);
            }
            if refused {
                self.refuse();
            } else if left.is_zero() {
                return Err(late);
            }
        }
    }

    /// Keeps the end of what is said besides; whether there may be more in time.
    fn hear(&mut self, deadline: Instant) -> bool {
        let Some(errors) = &mut self.errors else {
            return false;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ends = [PollFd::new(&*errors, PollFlags::IN)];
        if !matches!(poll(&mut ends, Some(&timespec(left))), Ok(1)) {
            return false;
        }
        let mut chunk = [0; TAIL];
        match errors.read(&mut chunk) {
            Ok(0) => self.errors = None,
            Ok(length) => {
                self.said.extend(&chunk[..length]);
                let excess = self.said.len().saturating_sub(TAIL);
                self.said.drain(..excess);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.errors = None,
        }
        !left.is_zero()
    }
}

fn timespec(time: Duration) -> Timespec {
    // None would be for ever.
    Timespec::try_from(time).unwrap_or(Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    })
}
