//! A line that emulated boards share: what one of them says all others hear, and it does not hear itself.
//!
//! It is a socket. Whoever connects to it is on the line too, and may say on it what they like.

use std::{
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    thread,
};

use rustix::event::{PollFd, PollFlags, poll};
use tempfile::TempDir;

/// Longest piece that is passed on whole. What is longer is no frame: it goes on in pieces, as noise does.
const PIECE: usize = 256;

/// Most that are on one line; who comes then is sent away.
const MOST: usize = 1024;

/// The line. It is there as long as this value.
#[derive(Debug)]
pub struct SharedLine {
    socket: PathBuf,
    /// Whose other end the thread holds: when this one is gone, so is the line.
    _alive: UnixStream,
    _folder: TempDir,
}

impl SharedLine {
    /// A line on which nobody is yet.
    pub fn new() -> io::Result<Self> {
        let folder = TempDir::with_prefix("line-")?;
        let socket = folder.path().join("bus");
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        let (alive, ended) = UnixStream::pair()?;
        thread::Builder::new()
            .name("shared line".to_owned())
            .spawn(move || attend(&listener, &ended))?;
        Ok(Self {
            socket,
            _alive: alive,
            _folder: folder,
        })
    }

    /// The socket to connect to.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Somebody on the line.
struct Party {
    socket: UnixStream,
    /// What it has begun to say.
    begun: Vec<u8>,
}

/// Passes on what is said until nobody holds the other end of `ended`.
fn attend(listener: &UnixListener, ended: &UnixStream) {
    let mut parties: Vec<Party> = Vec::new();
    loop {
        let ready: Vec<PollFlags> = {
            let always = [
                PollFd::new(ended, PollFlags::IN),
                PollFd::new(listener, PollFlags::IN),
            ];
            let said = (parties.iter()).map(|party| PollFd::new(&party.socket, PollFlags::IN));
            let mut watched: Vec<PollFd<'_>> = always.into_iter().chain(said).collect();
            match poll(&mut watched, None) {
                Ok(_) => watched.iter().map(PollFd::revents).collect(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            }
        };
        if !ready[0].is_empty() {
            return;
        }
        // From the last on, so that who goes moves nobody that is still to be heard.
        for at in (0..parties.len()).rev() {
            if !ready[at + 2].is_empty() && !pass_on(&mut parties, at) {
                parties.remove(at);
            }
        }
        while let Ok((socket, _)) = listener.accept() {
            if parties.len() < MOST && socket.set_nonblocking(true).is_ok() {
                parties.push(Party {
                    socket,
                    begun: Vec::new(),
                });
            }
        }
    }
}

/// Takes in what one of them says and gives it to the others, a frame or a piece at a time so that two do not
/// mingle. False if it is gone.
fn pass_on(parties: &mut [Party], at: usize) -> bool {
    let mut said = [0; 4096];
    let party = &mut parties[at];
    let count = match party.socket.read(&mut said) {
        Ok(0) => return false,
        Ok(count) => count,
        Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
    };
    party.begun.extend(&said[..count]);
    let mut begun = std::mem::take(&mut party.begun);
    while let Some(end) = piece(&begun) {
        let rest = begun.split_off(end);
        for other in (0..parties.len()).filter(|other| *other != at) {
            // Who does not listen, or hangs, misses it: a line waits for nobody.
            let _ = parties[other].socket.write(&begun);
        }
        begun = rest;
    }
    parties[at].begun = begun;
    true
}

/// How long the first frame is, the zero at its end included, or the first piece of what is too long for one.
fn piece(begun: &[u8]) -> Option<usize> {
    let end = begun.iter().position(|byte| *byte == 0).map(|at| at + 1);
    match end {
        Some(end) if end <= PIECE => Some(end),
        _ => (begun.len() >= PIECE).then_some(PIECE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn party(line: &SharedLine) -> UnixStream {
        let socket = UnixStream::connect(line.socket()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        socket
    }

    fn hears(mut socket: &UnixStream, what: &[u8]) {
        let mut heard = vec![0xee; what.len()];
        socket.read_exact(&mut heard).unwrap();
        assert_eq!(heard, what);
    }

    #[test]
    fn all_others_hear_what_one_says_and_frames_stay_whole() {
        let line = SharedLine::new().unwrap();
        let parties = [party(&line), party(&line), party(&line)];
        // Until all are on the line nobody can say that it hears.
        let met = |from: &UnixStream, others: [&UnixStream; 2]| {
            for other in others {
                let mut heard = [0; 64];
                loop {
                    (&*from).write_all(b"\0").unwrap();
                    other
                        .set_read_timeout(Some(Duration::from_millis(20)))
                        .unwrap();
                    if (&*other).read(&mut heard).is_ok_and(|count| count > 0) {
                        break;
                    }
                }
                other
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
            }
        };
        let [a, b, c] = &parties;
        met(a, [b, c]);
        met(b, [a, c]);
        // What is left of getting to know each other.
        let quiet = |socket: &UnixStream| {
            socket.set_nonblocking(true).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            while (&*socket).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            socket.set_nonblocking(false).unwrap();
        };
        parties.iter().for_each(quiet);
        (&*a).write_all(b"half of").unwrap();
        (&*b).write_all(b"whole\0").unwrap();
        hears(c, b"whole\0");
        (&*a).write_all(b" one\0").unwrap();
        hears(c, b"half of one\0");
        hears(b, b"half of one\0");
        hears(a, b"whole\0");
    }

    #[test]
    fn noise_without_an_end_keeps_no_frame_and_nobody_waiting() {
        let line = SharedLine::new().unwrap();
        let (babbler, deaf) = (party(&line), party(&line));
        // More than any socket holds, and nobody reads it.
        let noise = vec![7; 1 << 20];
        for _ in 0..8 {
            (&babbler).write_all(&noise).unwrap();
        }
        drop(deaf);
        drop(babbler);
    }

    #[test]
    fn who_holds_no_line_leaves_none() {
        let line = SharedLine::new().unwrap();
        let socket = party(&line);
        let path = line.socket().to_owned();
        drop(line);
        // An end, or a refusal of who was not let in yet.
        let heard = (&socket).read(&mut [0; 8]);
        let reset = |error: io::Error| error.kind() == io::ErrorKind::ConnectionReset;
        assert!(heard.map_or_else(reset, |count| count == 0));
        assert!(!path.exists());
    }
}
