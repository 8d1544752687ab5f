//! A node in an emulated board: a QEMU process that can be killed, hung, restarted and reset.
//!
//! The board's flash is a file that outlives the process, as a chip outlives a power cut.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

use agent_core::agent::Mode;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process},
};
use tempfile::TempDir;

use crate::{
    Session, SessionError, Transport, leash,
    stream::{REOPEN_PATIENCE, Stream},
};

/// The emulator's program for boards with a core of Arm's.
pub const PROGRAM: &str = "qemu-system-arm";

/// Longest wait for a board to come up. Generous: on a busy machine a board is slow, and a run
/// that fails for that reason costs more than it tells.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait for the emulator itself to do as it is told.
const MONITOR_PATIENCE: Duration = Duration::from_secs(5);

/// The memory that the emulated boards have for flash. The other half of what `virt` has is lost with the
/// power.
const FLASH: u64 = 16 << 20;

/// As much of it as reads like flash that was never written: more than any image uses.
const ERASED: usize = 1 << 20;

/// Why there is no emulated board.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// There is no emulator on this machine.
    #[error(
        "cannot start {program} ({1}): install it, on Debian with `apt-get install {package}`",
        program = .0.program(),
        package = .0.package()
    )]
    NotInstalled(Machine, io::Error),
    /// There is no image.
    #[error("there is no image {}: build it with `cargo xtask firmware build`", .0.display())]
    NoImage(PathBuf),
    /// The process ended.
    #[error("the emulator ended ({0})")]
    Ended(String),
    /// It runs, and has not connected.
    #[error("the emulator did not come up within {PATIENCE:?}")]
    Timeout,
    /// The node in it cannot be talked to.
    #[error("the emulated board does not work: {0}")]
    Node(SessionError),
    /// The emulator does not do as it is told.
    #[error("the emulator does not obey: {0}")]
    Monitor(io::Error),
    /// A file or a signal failed.
    #[error("cannot set up the emulated board: {0}")]
    Io(io::Error),
}

// Each sentence holds its cause, which as a source would be printed twice.
impl From<SessionError> for BoardError {
    fn from(error: SessionError) -> Self {
        Self::Node(error)
    }
}

impl From<io::Error> for BoardError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The boards there are, each with its own image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Arm MPS2+ with a Cortex-M4F.
    An386,
    /// Arm MPS2+ with a Cortex-M7.
    An500,
    /// Arm MPS2+ with a Cortex-M33.
    An505,
    /// QEMU's virtual machine with an RV32IMAC, a core of RISC-V without floats.
    VirtRv32,
}

impl Machine {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::An386, Self::An500, Self::An505, Self::VirtRv32];

    /// Its name, in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::An386 => "mps2-an386",
            Self::An500 => "mps2-an500",
            Self::An505 => "mps2-an505",
            Self::VirtRv32 => "virt-rv32",
        }
    }

    /// The emulator's program.
    pub fn program(self) -> &'static str {
        match self {
            Self::An386 | Self::An500 | Self::An505 => PROGRAM,
            Self::VirtRv32 => "qemu-system-riscv32",
        }
    }

    /// The package of Debian's that has it.
    fn package(self) -> &'static str {
        match self {
            Self::An386 | Self::An500 | Self::An505 => "qemu-system-arm",
            Self::VirtRv32 => "qemu-system-misc",
        }
    }

    /// Tells the emulator what to be, with `-object …,id=flash` for its memory, and the image.
    fn select(self, qemu: &mut Process, image: &Path) {
        match self {
            Self::An386 | Self::An500 | Self::An505 => qemu
                .arg("-machine")
                .arg(format!("{},memory-backend=flash", self.name()))
                .arg("-kernel")
                .arg(image),
            // The core without what rv32imac has not: an image that used it would fault. Where it starts
            // is in the image, which is loaded again at each reset.
            Self::VirtRv32 => qemu
                .args(["-machine", "virt,memory-backend=flash", "-bios", "none"])
                .args(["-cpu", "rv32,f=off,d=off"])
                .args(["-m", &format!("{}M", self.memory() >> 20)])
                .args(["-device", "i6300esb,addr=2"])
                .arg("-device")
                .arg(format!("loader,cpu-num=0,file={}", escaped(image))),
        };
    }

    /// What takes the log: UART1, or where there is none, one in a slot.
    fn log(self) -> [&'static str; 2] {
        match self {
            Self::An386 | Self::An500 | Self::An505 => ["-serial", "chardev:log"],
            Self::VirtRv32 => ["-device", "pci-serial,chardev=log,addr=1"],
        }
    }

    /// Bytes of memory that the emulator keeps in a file.
    fn memory(self) -> u64 {
        match self {
            Self::An386 | Self::An500 | Self::An505 => FLASH,
            Self::VirtRv32 => 2 * FLASH,
        }
    }
}

impl FromStr for Machine {
    type Err = UnknownMachine;

    fn from_str(name: &str) -> Result<Self, UnknownMachine> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|machine| machine.name() == name);
        found.ok_or_else(|| UnknownMachine(name.to_owned()))
    }
}

/// A name that no emulated board has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no emulated board '{0}': there are {known}",
    known = Machine::ALL.map(Machine::name).join(", ")
)]
pub struct UnknownMachine(String);

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

/// What to start.
#[derive(Debug, Clone)]
pub struct BoardOptions {
    /// The board.
    pub machine: Machine,
    /// The image for it.
    pub image: PathBuf,
    /// How its clock runs.
    pub clock: Clock,
    /// The file that is its flash, made if it is not there; without one it has a flash of its own,
    /// which goes with the board.
    pub flash: Option<PathBuf>,
    /// Thermometers on the board's bus, for a node that senses by itself: [`THERMOMETERS`] at most.
    pub thermometers: u8,
    /// The socket of the [line](crate::SharedLine) that its third UART is on, where it hears other boards.
    pub bus: Option<PathBuf>,
}

/// The most thermometers that an emulated board has.
pub const THERMOMETERS: u8 = 8;

/// The channels that they are: behind a switch, four on each of two branches at the same addresses.
pub const CHANNELS: [u8; THERMOMETERS as usize] = [8, 9, 10, 11, 16, 17, 18, 19];

/// Where in the flash's memory the registers of what plays an actuator are: the force's bits, the agent's
/// mode, and how often they were set.
const ACTUATOR: u64 = 1 << 20;

/// Where in it the words are by which something is done to the board that the emulator cannot do. They outlive
/// power cuts: what is wrong is so with the power off.
const OUTSIDE: u64 = ACTUATOR + 16;

/// What a node that acts by itself has set its actuator to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Set {
    /// The force.
    pub force: f32,
    /// The state of the agent that it comes from.
    pub mode: Mode,
    /// How often it was set.
    pub count: u32,
}

impl BoardOptions {
    /// A Cortex-M4F with empty flash, on the wall clock.
    pub fn new(image: impl Into<PathBuf>) -> Self {
        Self {
            machine: Machine::An386,
            image: image.into(),
            clock: Clock::Wall,
            flash: None,
            thermometers: 0,
            bus: None,
        }
    }
}

/// An emulated board. The process ends with this value.
pub struct EmulatedBoard {
    process: Child,
    options: BoardOptions,
    flash: PathBuf,
    /// The emulator's own line, while it is open.
    monitor: Option<Monitor>,
    /// Holds the sockets, the log and the emulator's messages; gone with this value.
    folder: TempDir,
}

const LINK: &str = "link";
const LOG: &str = "log";
const MESSAGES: &str = "messages";
const MONITOR: &str = "monitor";

impl EmulatedBoard {
    /// Boots the image and waits until it answers.
    pub fn start(options: &BoardOptions) -> Result<(Self, Session), BoardError> {
        if !options.image.is_file() {
            return Err(BoardError::NoImage(options.image.clone()));
        }
        let folder = TempDir::with_prefix("node-")?;
        let flash = match &options.flash {
            Some(file) => file.clone(),
            None => folder.path().join("flash"),
        };
        make_flash(&flash)?;
        let mut line = Line::new(&folder.path().join(LINK))?;
        let process = boot(options, &flash, folder.path())?;
        let mut board = Self {
            process,
            options: options.clone(),
            flash,
            monitor: None,
            folder,
        };
        board.wait_for(&mut line)?;
        let mut session = Session::new(Box::new(line));
        // Not asked before it listens: on a busy machine it would have to be asked again.
        let started = session.wait_for_start(PATIENCE);
        match started.and_then(|_| session.hello(PATIENCE)) {
            Ok(_) => Ok((board, session)),
            Err(error) => Err(board.explain(error)),
        }
    }

    fn wait_for(&mut self, line: &mut Line) -> Result<(), BoardError> {
        let deadline = Instant::now() + PATIENCE;
        while line.reopen().is_err() {
            if let Some(message) = self.exit_message() {
                return Err(BoardError::Ended(message));
            }
            if Instant::now() > deadline {
                return Err(BoardError::Timeout);
            }
        }
        Ok(())
    }

    /// A broken line mostly means that the process has ended: say so, and why.
    fn explain(&mut self, error: SessionError) -> BoardError {
        if let SessionError::Line(_) = error {
            thread::sleep(Duration::from_millis(50)); // the process may be about to end
            if let Some(message) = self.exit_message() {
                return BoardError::Ended(message);
            }
        }
        error.into()
    }

    /// Ends the process on the spot, as when the board's power is cut.
    pub fn kill(&mut self) {
        leash::end(&mut self.process);
    }

    /// Stops the process: the board is there, and does nothing.
    pub fn hang(&mut self) {
        self.signal(Signal::STOP);
    }

    /// Lets a process that hangs go on.
    pub fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    fn signal(&mut self, signal: Signal) {
        // Not to a process that has ended, whose number may be another's by now.
        if self.is_running() {
            let _ = kill_process(Pid::from_child(&self.process), signal);
        }
    }

    /// Starts the process again, with the flash as it is; the session's line must be reopened.
    pub fn restart(&mut self) -> Result<(), BoardError> {
        self.kill();
        self.monitor = None;
        // An actuator's registers are zero when the power comes on.
        let mut file = fs::OpenOptions::new().write(true).open(&self.flash)?;
        file.seek(SeekFrom::Start(ACTUATOR))?;
        file.write_all(&[0; 12])?;
        self.process = boot(&self.options, &self.flash, self.folder.path())?;
        Ok(())
    }

    /// Pulls the reset pin: the core starts anew, its memory stays.
    pub fn reset(&mut self) -> Result<(), BoardError> {
        self.tell_all(&[r#"{"execute": "system_reset"}"#.to_owned()])
    }

    /// What the thermometers on the board's bus measure from now on, in thousandths of a degree Celsius, in
    /// the order of their [`CHANNELS`].
    pub fn set_temperatures(&mut self, millidegrees: &[i32]) -> Result<(), BoardError> {
        self.tell_all(&temperatures(millidegrees))
    }

    /// The same without waiting until it is so: a board that hangs does not hear of it, and keeps nobody waiting.
    pub fn post_temperatures(&mut self, millidegrees: &[i32]) -> io::Result<()> {
        self.over_monitor(|monitor| monitor.post(&temperatures(millidegrees)))
    }

    /// What a node by itself has set its actuator to.
    pub fn actuator(&self) -> io::Result<Set> {
        let mut file = fs::File::open(&self.flash)?;
        file.seek(SeekFrom::Start(ACTUATOR))?;
        let mut registers = [[0; 4]; 3];
        file.read_exact(registers.as_flattened_mut())?;
        let [force, mode, count] = registers.map(u32::from_le_bytes);
        Ok(Set {
            force: f32::from_bits(force),
            mode: match mode {
                1 => Mode::Active,
                2 => Mode::Holding,
                3 => Mode::FailedSafe,
                _ => Mode::Waiting,
            },
            count,
        })
    }

    /// Holds the data line of the thermometers' bus low from now on, whatever the board does, or lets it go.
    pub fn hold_bus(&self, held: bool) -> io::Result<()> {
        self.do_from_outside(0, held.into())
    }

    /// Lets the board's clock gain so many millionths of its time from now on.
    pub fn set_gain(&self, millionths: i32) -> io::Result<()> {
        self.do_from_outside(1, millionths as u32)
    }

    /// Sets one of the words by which that is done.
    fn do_from_outside(&self, word: u64, bits: u32) -> io::Result<()> {
        let mut file = fs::File::options().write(true).open(&self.flash)?;
        file.seek(SeekFrom::Start(OUTSIDE + 4 * word))?;
        file.write_all(&bits.to_le_bytes())
    }

    fn tell_all(&mut self, commands: &[String]) -> Result<(), BoardError> {
        match self.over_monitor(|monitor| monitor.tell(commands)) {
            Ok(()) => Ok(()),
            Err(error) => match self.exit_message() {
                Some(message) => Err(BoardError::Ended(message)),
                None => Err(BoardError::Monitor(error)),
            },
        }
    }

    /// Says something to the emulator itself.
    fn over_monitor(&mut self, say: impl FnOnce(&mut Monitor) -> io::Result<()>) -> io::Result<()> {
        let mut monitor = match self.monitor.take() {
            Some(monitor) => monitor,
            None => Monitor::open(&self.folder.path().join(MONITOR))?,
        };
        // One that has failed is not asked again.
        say(&mut monitor)?;
        self.monitor = Some(monitor);
        Ok(())
    }

    /// Whether the process is there, hung or not.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// How the process ended and what it said, once it has.
    pub fn exit_message(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        let messages = fs::read_to_string(self.folder.path().join(MESSAGES)).unwrap_or_default();
        // What comes after a blank line is a dump of registers.
        let telling: Vec<&str> = messages
            .lines()
            .take_while(|line| !line.is_empty())
            .filter(|line| !line.contains("warning: "))
            .collect();
        Some(match telling[..] {
            [] => status.to_string(),
            _ => format!("{status}: {}", telling.join("; ")),
        })
    }

    /// The defmt log so far, as it came, over all restarts.
    pub fn log(&self) -> io::Result<Vec<u8>> {
        self.log_from(0)
    }

    /// The log's bytes from `offset` on.
    pub fn log_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(self.folder.path().join(LOG))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What this board is.
    pub fn options(&self) -> &BoardOptions {
        &self.options
    }
}

/// The emulator's own line, over which it is told what happens to the board.
struct Monitor {
    stream: UnixStream,
    /// What has come of a line that is not whole.
    begun: Vec<u8>,
    /// Answers that are to come.
    owed: usize,
}

/// Most answers that are to come when more is [posted](Monitor::post).
const MOST_OWED: usize = 64;

impl Monitor {
    fn open(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(MONITOR_PATIENCE))?;
        stream.set_read_timeout(Some(MONITOR_PATIENCE))?;
        let mut monitor = Self {
            stream,
            begun: Vec::new(),
            owed: 0,
        };
        monitor.tell(&[r#"{"execute": "qmp_capabilities"}"#.to_owned()])?;
        Ok(monitor)
    }

    /// Has these commands executed.
    fn tell(&mut self, commands: &[String]) -> io::Result<()> {
        self.send(commands)?;
        self.hear(Instant::now() + MONITOR_PATIENCE)?;
        match self.owed {
            0 => Ok(()),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// The same without waiting for answers. An emulator that has not answered for long gets no more.
    fn post(&mut self, commands: &[String]) -> io::Result<()> {
        self.hear(Instant::now())?;
        match self.owed > MOST_OWED {
            true => Ok(()),
            false => self.send(commands),
        }
    }

    fn send(&mut self, commands: &[String]) -> io::Result<()> {
        let mut text = commands.join("\n");
        text.push('\n');
        self.owed += commands.len();
        self.stream.write_all(text.as_bytes())
    }

    /// Takes answers in until there are no more to come, or the deadline. One that is an error is an error.
    fn hear(&mut self, deadline: Instant) -> io::Result<()> {
        let mut bytes = [0; 4096];
        while self.owed > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&left))? == 0 {
                break;
            }
            let count = self.stream.read(&mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for &byte in &bytes[..count] {
                match byte {
                    b'\n' => self.answered()?,
                    _ => self.begun.push(byte),
                }
            }
        }
        Ok(())
    }

    /// Looks at a line that is whole. Events and the greeting come between answers.
    fn answered(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.begun);
        let line = String::from_utf8_lossy(&line);
        if line.contains(r#""error""#) {
            return Err(io::Error::other(line.into_owned()));
        }
        if line.contains(r#""return""#) {
            self.owed = self.owed.saturating_sub(1);
        }
        Ok(())
    }
}

impl Drop for EmulatedBoard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Commands after which the thermometers measure that.
fn temperatures(millidegrees: &[i32]) -> Vec<String> {
    let set = |(k, value): (usize, &i32)| {
        format!(
            r#"{{"execute": "qom-set", "arguments": {{"path": "/machine/peripheral/t{k}", "property": "temperature", "value": {value}}}}}"#
        )
    };
    millidegrees.iter().enumerate().map(set).collect()
}

/// Makes flash that was never written, unless there is one.
fn make_flash(path: &Path) -> io::Result<()> {
    let mut file = match fs::File::create_new(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => {
            return Err(io::Error::new(
                error.kind(),
                format!("{}: {error}", path.display()),
            ));
        }
    };
    file.write_all(&vec![0xff; ERASED])?;
    file.set_len(FLASH)
}

/// What is no flash in the file was memory of the process before, and is as empty as after a power cut.
fn lose_power(flash: &Path, machine: Machine) -> io::Result<()> {
    if machine.memory() == FLASH {
        return Ok(());
    }
    let file = fs::File::options().write(true).open(flash)?;
    file.set_len(FLASH)?;
    file.set_len(machine.memory())
}

fn boot(options: &BoardOptions, flash: &Path, folder: &Path) -> Result<Child, BoardError> {
    let file = |name: &str| -> String { escaped(&folder.join(name)) };
    let machine = options.machine;
    is_installed(machine).map_err(|error| BoardError::NotInstalled(machine, error))?;
    lose_power(flash, machine)?;
    let mut qemu = leash::command(machine.program(), folder);
    qemu.args(["-nodefaults", "-display", "none"])
        .arg("-object")
        .arg(format!(
            "memory-backend-file,id=flash,share=on,size={},mem-path={}",
            machine.memory(),
            escaped(flash)
        ))
        // UART0. Multiplexed only for the buffer this gives it: bytes then reach the core 32 at a
        // time instead of one per turn of the emulator's main loop, which doubles the speed of the
        // line. No byte value may be an escape character.
        .arg("-chardev")
        .arg(format!("socket,id=link,mux=on,path={}", file(LINK)))
        .args(["-echr", "256", "-serial", "chardev:link"])
        .arg("-chardev")
        .arg(format!("file,id=log,append=on,path={}", file(LOG)))
        .args(machine.log())
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", file(MONITOR)));
    if let Some(bus) = &options.bus {
        // UART2, after the link and the log; multiplexed as the link is.
        qemu.arg("-chardev")
            .arg(format!("socket,id=bus,mux=on,path={}", escaped(bus)))
            .args(["-serial", "chardev:bus"]);
    }
    machine.select(&mut qemu, &options.image);
    if options.thermometers > 0 {
        qemu.args(["-device", "pca9548,id=switch,bus=i2c,address=0x70"]);
    }
    for k in 0..options.thermometers.min(THERMOMETERS) {
        // The emulator numbers the switch's branches.
        let (branch, address) = (k / 4, 0x48 + k % 4);
        qemu.args([
            "-device",
            &format!("tmp105,id=t{k},bus=i2c.{branch},address={address}"),
        ]);
    }
    if let Clock::Instructions { shift } = options.clock {
        qemu.args(["-icount", &format!("shift={shift}")]);
    }
    qemu.stdout(Stdio::null())
        .stderr(fs::File::create(folder.join(MESSAGES))?);
    Ok(qemu.spawn()?)
}

/// An error if the emulator cannot be started at all.
fn is_installed(machine: Machine) -> io::Result<()> {
    let mut asked = Process::new(machine.program());
    asked.arg("--version").stdin(Stdio::null());
    asked.stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().map(drop)
}

/// A path inside one of the emulator's options, where a comma ends a value unless doubled.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// The socket that the emulator connects to, again after each restart.
struct Line {
    listener: UnixListener,
    stream: Stream<UnixStream>,
}

impl Line {
    fn new(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            stream: Stream::new("the emulator"),
        })
    }
}

impl Transport for Line {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.send(bytes)
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.stream.receive(buffer, deadline)
    }

    /// Takes the newest connection: those before it are of processes that are gone.
    fn reopen(&mut self) -> io::Result<()> {
        if !self.stream.is_connected() {
            let limit = Timespec::try_from(REOPEN_PATIENCE).map_err(io::Error::other)?;
            poll(
                &mut [PollFd::new(&self.listener, PollFlags::IN)],
                Some(&limit),
            )?;
        }
        while let Ok((socket, _)) = self.listener.accept() {
            socket.set_nonblocking(false)?;
            self.stream.connect(socket)?;
        }
        match self.stream.is_connected() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the emulator has not connected: it is not running, or still starting",
            )),
        }
    }
}
