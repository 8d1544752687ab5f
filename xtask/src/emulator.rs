//! A node in an emulated board: a QEMU process, and the byte stream to it.
//!
//! ```no_run
//! use agent_core::message::Command;
//! use std::path::Path;
//! use xtask::emulator::Emulator;
//!
//! let mut node = Emulator::start(Path::new("firmware.elf"))?;
//! node.upload(&std::fs::read("policies/heat-1d.policy")?)?;
//! println!("{:?}", node.ask(&Command::Hello)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every call is bounded in time, and the process ends with its [`Emulator`].

use std::{
    fs,
    io::{self, Read, Write},
    ops::Range,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    thread,
    time::{Duration, Instant},
};

use agent_core::message::{
    CHUNK, COMMAND_FRAME, Command, FrameReader, PROTOCOL, PolicyId, Report, decode_frame,
    encode_frame,
};
use tempfile::TempDir;

/// The emulator's program.
pub const PROGRAM: &str = "qemu-system-arm";

/// Longest wait for the process to come up and for one answer. Generous: on a busy machine a
/// board is slow, and a test that fails for that reason costs more than it tells.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a node in the emulator could not be talked to.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// There is no emulator on this machine.
    #[error(
        "cannot start {PROGRAM} ({0}): install it, on Debian with `apt-get install qemu-system-arm`"
    )]
    NotInstalled(#[source] io::Error),
    /// The process ended.
    #[error("the emulator ended ({status}): {messages}")]
    Ended {
        /// Its exit status.
        status: String,
        /// What it wrote on its standard error.
        messages: String,
    },
    /// No whole frame came.
    #[error("the node did not answer within {0:?}")]
    Timeout(Duration),
    /// The command is longer than a node's frame buffer.
    #[error("the command is longer than {COMMAND_FRAME} bytes")]
    CommandTooLong,
    /// The node answered, but not what was asked.
    #[error("unexpected answer to {asked}: {report}")]
    Unexpected {
        /// What was asked.
        asked: &'static str,
        /// The answer.
        report: String,
    },
    /// The node speaks another version of the messages.
    #[error(
        "the node speaks protocol {node} and this program {PROTOCOL}: build the firmware again"
    )]
    Protocol {
        /// The node's version.
        node: u16,
    },
    /// The policy was refused, with the node's reason.
    #[error("the node refused the policy: {0}")]
    Refused(String),
    /// The stream or a file failed.
    #[error("the link to the emulator failed: {0}")]
    Io(#[from] io::Error),
}

/// Longest frame taken; more than any node sends.
const REPORT_FRAME: usize = 1024;

/// A node in an emulated `mps2-an386` board.
pub struct Emulator {
    process: Child,
    stream: UnixStream,
    frames: FrameReader<REPORT_FRAME>,
    /// The frame of the report last handed out.
    frame: Vec<u8>,
    chunk: [u8; 256],
    /// What of `chunk` has not been looked at.
    unread: Range<usize>,
    /// Holds the socket, the log and the emulator's messages; gone with this value.
    folder: TempDir,
}

/// How the emulated core's clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// With the host's.
    Wall,
    /// Each instruction takes 2^shift ns: time measured on the core counts instructions.
    Instructions {
        /// 0 to 10.
        shift: u8,
    },
}

impl Emulator {
    /// Boots the image on the wall clock and waits until it listens.
    pub fn start(elf: &Path) -> Result<Self, EmulatorError> {
        Self::start_with(elf, Clock::Wall)
    }

    /// Boots the image and waits until it listens.
    pub fn start_with(elf: &Path, clock: Clock) -> Result<Self, EmulatorError> {
        fs::metadata(elf)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", elf.display())))?;
        let folder = TempDir::with_prefix("node-")?;
        let listener = UnixListener::bind(folder.path().join(SOCKET))?;
        let mut process = boot(elf, clock, folder.path())?;
        let stream = match accept(&listener, &mut process, folder.path()) {
            Ok(stream) => stream,
            Err(error) => {
                end(&mut process);
                return Err(error);
            }
        };
        let mut node = Self {
            process,
            stream,
            frames: FrameReader::new(),
            frame: Vec::new(),
            chunk: [0; 256],
            unread: 0..0,
            folder,
        };
        node.stream.set_write_timeout(Some(PATIENCE))?;
        // A node says hello when it listens.
        match node.receive(PATIENCE)? {
            Report::Hello { protocol, .. } if protocol != PROTOCOL => {
                Err(EmulatorError::Protocol { node: protocol })
            }
            Report::Hello { .. } => Ok(node),
            report => Err(unexpected("the node's start", &report)),
        }
    }

    /// Uploads a policy and arms the node with it.
    pub fn upload(&mut self, policy: &[u8]) -> Result<PolicyId, EmulatorError> {
        let length = u32::try_from(policy.len()).unwrap_or(u32::MAX);
        let mut next = self.stored(&Command::PolicyBegin { length })?;
        while let Some(rest) = policy.get(next..).filter(|rest| !rest.is_empty()) {
            let bytes = &rest[..rest.len().min(CHUNK)];
            let offset = next as u32;
            next = self.stored(&Command::PolicyChunk { offset, bytes })?;
        }
        match self.ask(&Command::PolicyCommit)? {
            Report::Hello {
                policy: Some(id), ..
            } => Ok(id),
            Report::PolicyRefused { reason } => Err(EmulatorError::Refused(reason.to_owned())),
            report => Err(unexpected("the end of the upload", &report)),
        }
    }

    fn stored(&mut self, command: &Command) -> Result<usize, EmulatorError> {
        match self.ask(command)? {
            Report::Stored { next } => Ok(next as usize),
            Report::Rejected { reason } => Err(EmulatorError::Refused(reason.to_owned())),
            report => Err(unexpected("a piece of the upload", &report)),
        }
    }

    /// Sends a command and waits for the answer.
    pub fn ask(&mut self, command: &Command) -> Result<Report<'_>, EmulatorError> {
        self.send(command)?;
        self.receive(PATIENCE)
    }

    /// Sends a command.
    pub fn send(&mut self, command: &Command) -> Result<(), EmulatorError> {
        let mut buffer = [0; COMMAND_FRAME];
        let frame =
            encode_frame(command, &mut buffer).map_err(|_| EmulatorError::CommandTooLong)?;
        self.send_bytes(frame)
    }

    /// Puts any bytes on the line: for tests of what a node does with garbage.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), EmulatorError> {
        let written = self.stream.write_all(bytes);
        written.map_err(|error| self.explain(error))
    }

    /// The node's next report; frames that are none are skipped.
    pub fn receive(&mut self, timeout: Duration) -> Result<Report<'_>, EmulatorError> {
        let deadline = Instant::now() + timeout;
        loop {
            let byte = self.byte(deadline, timeout)?;
            let Some(Ok(frame)) = self.frames.push(byte) else {
                continue;
            };
            self.frame.clear();
            self.frame.extend_from_slice(frame);
            if decode_frame::<Report>(frame).is_ok() {
                break;
            }
        }
        // Decoded a second time, where the report may borrow it.
        decode_frame(&mut self.frame).map_err(|_| EmulatorError::Timeout(timeout))
    }

    /// The defmt log so far, as it came.
    pub fn log(&self) -> Result<Vec<u8>, EmulatorError> {
        Ok(fs::read(self.folder.path().join(LOG))?)
    }

    fn byte(&mut self, deadline: Instant, timeout: Duration) -> Result<u8, EmulatorError> {
        loop {
            if let Some(at) = self.unread.next() {
                return Ok(self.chunk[at]);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(EmulatorError::Timeout(timeout));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err(self.explain(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.unread = 0..length,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// A broken stream mostly means that the process has ended: say so, and why.
    fn explain(&mut self, error: io::Error) -> EmulatorError {
        thread::sleep(Duration::from_millis(50)); // the process may be about to end
        match ended(&mut self.process, self.folder.path()) {
            Some(ended) => ended,
            None => error.into(),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

const SOCKET: &str = "link";
const LOG: &str = "log";
const MESSAGES: &str = "messages";

fn boot(elf: &Path, clock: Clock, folder: &Path) -> Result<Child, EmulatorError> {
    let file = |name| -> PathBuf { folder.join(name) };
    let mut qemu = Process::new(PROGRAM);
    qemu.args(["-M", "mps2-an386", "-nodefaults", "-display", "none"])
        // UART0. Multiplexed only for the buffer this gives it: bytes then reach the core 32 at a
        // time instead of one per turn of the emulator's main loop, which doubles the speed of the
        // line. No byte value may be an escape character.
        .arg("-chardev")
        .arg(format!(
            "socket,id=link,mux=on,path={}",
            file(SOCKET).display()
        ))
        .args(["-echr", "256", "-serial", "chardev:link"])
        // UART1.
        .arg("-serial")
        .arg(format!("file:{}", file(LOG).display()))
        .arg("-kernel")
        .arg(elf);
    if let Clock::Instructions { shift } = clock {
        qemu.args(["-icount", &format!("shift={shift}")]);
    }
    qemu.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(file(MESSAGES))?)
        .spawn()
        .map_err(EmulatorError::NotInstalled)
}

fn accept(
    listener: &UnixListener,
    process: &mut Child,
    folder: &Path,
) -> Result<UnixStream, EmulatorError> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(ended) = ended(process, folder) {
            return Err(ended);
        }
        if Instant::now() > deadline {
            return Err(EmulatorError::Timeout(PATIENCE));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn ended(process: &mut Child, folder: &Path) -> Option<EmulatorError> {
    let status = process.try_wait().ok().flatten()?;
    let messages = fs::read_to_string(folder.join(MESSAGES)).unwrap_or_default();
    // What comes after a blank line is a dump of registers.
    let telling: Vec<&str> = messages
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.contains("warning: "))
        .collect();
    Some(EmulatorError::Ended {
        status: status.to_string(),
        messages: telling.join("; "),
    })
}

fn end(process: &mut Child) {
    // An error means that it has ended already.
    let _ = process.kill();
    let _ = process.wait();
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn unexpected(asked: &'static str, report: &Report) -> EmulatorError {
    EmulatorError::Unexpected {
        asked,
        report: format!("{report:?}"),
    }
}
