//! Commands out, reports in: numbered, checked, bounded in time.

use std::{
    io,
    ops::Range,
    time::{Duration, Instant},
};

use agent_core::message::{
    CHUNK, COMMAND_FRAME, Command, Counters, Frame, FrameError, FrameReader, Hello, History,
    PROTOCOL, PolicyId, Report, Slot, SlotState, Status, UNASKED, encode_frame, encode_sealed,
    message,
};
use trust::{Grant, Rights};

use place::{Conduct, conduct::Alone};

use crate::{
    OVERDUE, Offer, PlaceOffer, Transport,
    guarded::Guarded,
    plain_text::{self, plain},
};

/// Longest frame taken; more than any node sends.
const REPORT_FRAME: usize = 1024;

/// How long a piece of an upload may take. A real board erases its flash meanwhile: up to 2 s for a
/// sector of 128 KiB (STM32F446 data sheet, table 48), and on a busy machine an emulated one is slow.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of an upload that the slowest line brings in a second, erasing included: a third of what
/// 115,200 baud carry.
const UPLOAD_RATE: usize = 4096;

/// Pieces of an upload that a node may ask for again, or take in part. One that keeps the rules does
/// neither: what is lost on the line is sent again with its number, and answered as before.
const MOST_AGAIN: usize = 16;

/// When an answer is first missed; from then on each wait is twice as long as the one before.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Why a node could not be talked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No answer came.
    #[error(
        "the node did not answer within {0:?}: is it running, with an image for protocol {PROTOCOL}?"
    )]
    Timeout(Duration),
    /// The stream is broken, or takes nothing.
    #[error("{0}")]
    Line(io::Error),
    /// The node speaks another version of the messages.
    #[error(
        "the node speaks protocol {node} and this program {PROTOCOL}: build the firmware again \
         with `cargo xtask firmware build`, or use the program that belongs to it"
    )]
    Protocol {
        /// The node's version.
        node: u8,
    },
    /// The command is longer than a node's frame buffer.
    #[error("the command is longer than the {COMMAND_FRAME} bytes that a node takes")]
    CommandTooLong,
    /// No session is open with a node that asks for a key.
    #[error("no session is open with the node: say hello first")]
    NotOpen,
    /// The node asks for a key, and none was given.
    #[error("the node obeys only hosts that have a key of its link: give one with --link-key")]
    KeyNeeded,
    /// The node has a key, and not this one.
    #[error(
        "the node's key is another than the one given: it belongs to another fleet, or the key was \
         made for other rights"
    )]
    WrongKey,
    /// The node cannot carry out the command, with its reason.
    #[error("the node cannot do that: {0}")]
    Rejected(String),
    /// The policy was refused, with the node's reason.
    #[error("the node refused the policy: {0}")]
    Refused(String),
    /// The node started anew in the middle of it.
    #[error(
        "the node restarted in the middle of it: ask for its status, which tells why, and try again"
    )]
    Restarted,
    /// The node's answers to an upload cannot be true.
    #[error("the upload was given up: {0}; the node is broken, or not what it says it is")]
    Upload(String),
    /// The node answered, but not what was asked.
    #[error("unexpected answer to {asked}: {report}")]
    Unexpected {
        /// What was asked.
        asked: &'static str,
        /// The answer.
        report: String,
    },
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> Self {
        Self::Line(error)
    }
}

/// What has crossed the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Commands sent, each counted once.
    pub sent: u64,
    /// Commands sent again.
    pub resent: u64,
    /// Reports received.
    pub received: u64,
    /// Frames that were none, or too long, or bore no proof where one is asked for.
    pub damaged: u64,
    /// Answers to other commands than the last one: they came late, or twice.
    pub late: u64,
    /// Starts that the node announced.
    pub starts: u64,
    /// How often the stream was opened again.
    pub reopened: u64,
}

/// [`Status`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Name of its board.
    pub board: String,
    /// Version of its image.
    pub firmware: String,
    /// The fleet that it belongs to; empty for none.
    pub fleet: String,
    /// The slot whose policy it runs.
    pub active: Option<u8>,
    /// What lies in its slots.
    pub slots: [Slot; 2],
    /// The highest counter of a manifest that it has taken.
    pub counter: u64,
    /// How it has fared since its power came on.
    pub history: History,
    /// What it said at its last panic or fault; empty if there was none.
    pub last_words: String,
    /// How it has fared since it started.
    pub counters: Counters,
}

impl NodeStatus {
    /// The policy that it runs, as its slots have it.
    pub fn runs(&self) -> Option<PolicyId> {
        let slot = self.slots.get(usize::from(self.active?))?;
        match slot.state {
            SlotState::OnTrial | SlotState::Proven => slot.policy,
            SlotState::Empty | SlotState::Refused | SlotState::GivenUp => None,
        }
    }
}

impl From<Status<'_>> for NodeStatus {
    fn from(status: Status<'_>) -> Self {
        Self {
            board: status.board.to_owned(),
            firmware: status.firmware.to_owned(),
            fleet: status.fleet.to_owned(),
            active: status.active,
            slots: status.slots,
            counter: status.counter,
            history: status.history,
            last_words: status.last_words.to_owned(),
            counters: status.counters,
        }
    }
}

/// [`Conduct`], owned.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeConduct {
    /// It acts on what a host shows it.
    Fed,
    /// It has a place that it cannot take, for this reason.
    Refused(String),
    /// It senses and acts by itself.
    Alone(Alone),
}

/// Most characters of a reason; nodes of ours give shorter ones.
const REASON: usize = 200;

/// A conversation with one node. It begins with [`hello`](Self::hello), which brings both sides in
/// step: a node drops commands with a lower number than its last.
pub struct Session {
    transport: Box<dyn Transport>,
    frames: FrameReader<REPORT_FRAME>,
    chunk: [u8; 512],
    /// What of `chunk` has not been looked at.
    unread: Range<usize>,
    /// The report last received, still encoded, and its number.
    report: Vec<u8>,
    report_number: u32,
    /// The frame last received.
    bytes: Vec<u8>,
    /// What people may read of a report.
    text: String,
    /// The frame of the last command, after a zero that ends whatever may be on the line.
    command: Vec<u8>,
    number: u32,
    /// Part of a frame may have got on the line.
    cut: bool,
    counters: LinkCounters,
    last_start: Option<Hello>,
    /// To a node that has been given a key.
    guarded: Option<Guarded>,
}

impl Session {
    /// A session over a stream that is open.
    pub fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            frames: FrameReader::new(),
            chunk: [0; 512],
            unread: 0..0,
            report: Vec::new(),
            report_number: UNASKED,
            bytes: Vec::new(),
            text: String::new(),
            command: vec![0],
            number: UNASKED,
            cut: true,
            counters: LinkCounters::default(),
            last_start: None,
            guarded: None,
        }
    }

    /// The same session with a key of the node's link: from the next [`hello`](Self::hello) on, which
    /// both sides prove themselves in, commands are sealed, and what is not proven is not heard.
    pub fn with_key(mut self, grant: Grant) -> Self {
        self.guarded = Some(Guarded::new(grant));
        self
    }

    /// What the key is good for; everything if there is none and the node asks for none.
    pub fn rights(&self) -> Option<Rights> {
        self.guarded.as_ref().map(Guarded::rights)
    }

    /// The same session with something in between: a line with faults, a recorder.
    pub fn through(mut self, wrap: impl FnOnce(Box<dyn Transport>) -> Box<dyn Transport>) -> Self {
        self.transport = wrap(self.transport);
        self
    }

    /// The stream alone, for whoever passes on what others say through it.
    pub fn into_transport(self) -> Box<dyn Transport> {
        self.transport
    }

    /// Numbers a command and sends it; returns the number, which its answer will have.
    pub fn send(&mut self, command: &Command<'_>) -> Result<u32, SessionError> {
        let number = match self.number.wrapping_add(1) {
            // No two frames are sealed under the same number: the greeting begins another session.
            UNASKED if self.guarded.is_some() && *command != Command::Hello => {
                return Err(SessionError::NotOpen);
            }
            UNASKED => UNASKED + 1,
            next => next,
        };
        match (&mut self.guarded, command) {
            (Some(guarded), Command::Hello) => {
                let open = guarded.open(number, false)?;
                self.encode(number, &open, false)?;
            }
            (guarded, command) => {
                let sealed = guarded.is_some();
                self.encode(number, command, sealed)?;
            }
        }
        self.number = number;
        self.counters.sent += 1;
        self.put(usize::from(!self.cut))?;
        Ok(number)
    }

    /// The number of the last command, which its answer will have.
    pub fn last_number(&self) -> u32 {
        self.number
    }

    /// Makes the frame of a command.
    fn encode(
        &mut self,
        number: u32,
        command: &Command<'_>,
        sealed: bool,
    ) -> Result<(), SessionError> {
        self.command.resize(1 + COMMAND_FRAME, 0);
        let room = &mut self.command[1..];
        let frame = match sealed {
            false => encode_frame(number, command, room),
            true => {
                let key = self.guarded.as_ref().and_then(Guarded::key);
                let key = key.ok_or(SessionError::NotOpen)?;
                encode_sealed(number, command, &key.commands(), room)
            }
        };
        let length = frame.map_err(|_| SessionError::CommandTooLong)?.len();
        self.command.truncate(1 + length);
        Ok(())
    }

    /// Sends the last command again, as it was: a node that has had it answers as before.
    pub fn resend(&mut self) -> Result<(), SessionError> {
        self.counters.resent += 1;
        // The first one may have lost its end.
        self.put(0)
    }

    fn put(&mut self, from: usize) -> Result<(), SessionError> {
        self.cut = true;
        self.transport.send(&self.command[from..])?;
        self.cut = false;
        Ok(())
    }

    /// Puts any bytes on the line: for tests of what a node does with them.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.cut = true;
        Ok(self.transport.send(bytes)?)
    }

    /// The next report, whatever command it answers, or none by `deadline`. What is damaged is
    /// counted and skipped. Its texts can be shown as they are.
    pub fn receive(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<(u32, Report<'_>)>, SessionError> {
        match self.next_report(deadline)? {
            Some(_) => Ok(self.last_report()),
            None => Ok(None),
        }
    }

    /// The report last received, its texts made fit to be shown: this is where they come in.
    fn last_report(&mut self) -> Option<(u32, Report<'_>)> {
        // It was decoded once already, on its way.
        let report = message(&self.report).ok()?;
        let report = plain_text::of_report(report, &mut self.text);
        Some((self.report_number, report))
    }

    /// Sends a command and waits for its answer, and sends it again a few times while none comes.
    pub fn ask(
        &mut self,
        command: &Command<'_>,
        patience: Duration,
    ) -> Result<Report<'_>, SessionError> {
        let number = self.send(command)?;
        let starts = self.counters.starts;
        let given_up = Instant::now() + patience;
        let (answer, mut wait) = match command {
            // Answered by the start itself, which takes a while; another one would undo it.
            Command::Restart => (UNASKED, patience / 2),
            _ => (number, FIRST_WAIT.min(patience / 8)),
        };
        loop {
            let until = (Instant::now() + wait).min(given_up);
            if self.wait_for(answer, until)? {
                break;
            }
            if let Some(guarded) = &self.guarded {
                if self.counters.starts != starts {
                    // What was asked, was asked in a session that is no more.
                    return Err(SessionError::Restarted);
                }
                if until == given_up && guarded.met_a_stranger() {
                    return Err(SessionError::WrongKey);
                }
            }
            if until == given_up {
                return Err(SessionError::Timeout(patience));
            }
            self.resend()?;
            wait *= 2;
        }
        let (_, report) = self.last_report().ok_or(SessionError::Timeout(patience))?;
        Ok(report)
    }

    /// Asks who the node is, and brings both sides in step.
    pub fn hello(&mut self, patience: Duration) -> Result<Hello, SessionError> {
        match self.ask(&Command::Hello, patience)? {
            Report::Hello(hello) => Ok(hello),
            report => Err(unexpected("hello", &report)),
        }
    }

    /// Waits until the node says by itself that it has started.
    pub fn wait_for_start(&mut self, patience: Duration) -> Result<Hello, SessionError> {
        let started = self.wait_for(UNASKED, Instant::now() + patience)?;
        match self.last_start.filter(|_| started) {
            Some(hello) => Ok(hello),
            None => Err(SessionError::Timeout(patience)),
        }
    }

    /// Asks how the node is.
    pub fn status(&mut self, patience: Duration) -> Result<NodeStatus, SessionError> {
        match self.ask(&Command::Status, patience)? {
            Report::Status(status) => Ok(status.into()),
            report => Err(unexpected("the question how the node is", &report)),
        }
    }

    /// Asks how the node gets on at its place.
    pub fn conduct(&mut self, patience: Duration) -> Result<NodeConduct, SessionError> {
        let report = self.ask(&Command::Conduct, patience)?;
        conduct(report, "the question how the node gets on at its place")
    }

    /// Gives the node a place, or none.
    pub fn configure(
        &mut self,
        offer: &PlaceOffer,
        patience: Duration,
    ) -> Result<NodeConduct, SessionError> {
        let configure = Command::Configure {
            place: &offer.place,
            manifest: &offer.manifest,
            signature: &offer.signature,
        };
        conduct(self.ask(&configure, patience)?, "a place")
    }

    /// Has the node hold its whole window at this from now on, or at what its place says.
    pub fn aim_at(
        &mut self,
        target: Option<f32>,
        patience: Duration,
    ) -> Result<NodeConduct, SessionError> {
        conduct(self.ask(&Command::Aim(target), patience)?, "a target")
    }

    /// Uploads a policy and arms the node with it. `progress` is told how many bytes have arrived.
    pub fn upload(
        &mut self,
        offer: &Offer,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Hello, SessionError> {
        let limit = UploadLimit::generous(offer.blob.len());
        self.upload_within(limit, offer, progress)
    }

    /// [`upload`](Self::upload) with limits of the caller's.
    pub fn upload_within(
        &mut self,
        limit: UploadLimit,
        offer: &Offer,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Hello, SessionError> {
        let policy = &*offer.blob;
        let starts = self.counters.starts;
        let clock = limit.begin();
        let begin = Command::PolicyBegin {
            manifest: &offer.manifest,
            signature: &offer.signature,
        };
        // A node goes on with what it has of the same policy.
        let mut next = self.stored(&begin, policy.len(), starts, &clock)?;
        let (mut sent, mut again) = (next, 0);
        while next < policy.len() {
            let end = policy.len().min(next + CHUNK);
            let offset = next as u32;
            let bytes = &policy[next..end];
            sent = end.max(sent);
            next = self.stored(
                &Command::PolicyChunk { offset, bytes },
                sent,
                starts,
                &clock,
            )?;
            again += usize::from(next < end);
            if again > MOST_AGAIN {
                let what = format!("{again} pieces were asked for again");
                return Err(SessionError::Upload(what));
            }
            progress(next);
        }
        let armed = match self.ask(&Command::PolicyCommit, clock.patience()?) {
            Ok(Report::Hello(hello)) => Ok(hello),
            Ok(Report::PolicyRefused { reason }) => Err(SessionError::Refused(reason.to_owned())),
            Ok(report) => Err(unexpected("the end of the upload", &report)),
            Err(error) => Err(error),
        };
        let hello = self.unless_restarted(starts, armed)?;
        self.check_armed(&hello, offer, &clock)?;
        Ok(hello)
    }

    /// Sends a piece of an upload that began after so many starts, and returns where the node wants
    /// to go on: within what was `sent`.
    fn stored(
        &mut self,
        command: &Command,
        sent: usize,
        starts: u64,
        clock: &UploadClock,
    ) -> Result<usize, SessionError> {
        let answer = match self.ask(command, clock.patience()?) {
            Ok(Report::Stored { next }) if next as usize <= sent => Ok(next as usize),
            Ok(Report::Stored { next }) => Err(SessionError::Upload(format!(
                "the node says that it has {next} bytes, of {sent} that were sent"
            ))),
            Ok(Report::PolicyRefused { reason } | Report::Rejected { reason }) => {
                Err(SessionError::Refused(reason.to_owned()))
            }
            Ok(report) => Err(unexpected("a piece of the upload", &report)),
            Err(error) => Err(error),
        };
        self.unless_restarted(starts, answer)
    }

    /// An upload has worked when the node names what was uploaded, and has it in a slot.
    fn check_armed(
        &mut self,
        hello: &Hello,
        offer: &Offer,
        clock: &UploadClock,
    ) -> Result<(), SessionError> {
        let wrong = |what: &str| Err(SessionError::Upload(what.to_owned()));
        let id = Some(offer.id);
        if hello.policy != id {
            return wrong("at its end the node names another policy than was sent");
        }
        let status = self.status(clock.patience()?)?;
        match status.runs() == id {
            true => Ok(()),
            false => wrong("at its end the node's slot holds another policy than was sent"),
        }
    }

    /// The answer, unless the node has started again since it had started so often: it then knows
    /// nothing of what was asked before.
    fn unless_restarted<T>(
        &self,
        starts: u64,
        answer: Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        match self.counters.starts == starts {
            true => answer,
            false => Err(SessionError::Restarted),
        }
    }

    /// Opens the stream again after an error. An error until it worked; try again a while later.
    pub fn reopen(&mut self) -> Result<(), SessionError> {
        self.transport.reopen()?;
        self.counters.reopened += 1;
        self.frames = FrameReader::new();
        self.unread = 0..0;
        self.cut = true;
        Ok(())
    }

    /// What has crossed the link so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What the node said when it last started, if that was heard.
    pub fn last_start(&self) -> Option<Hello> {
        self.last_start
    }

    /// Whether a report with this number came by `deadline`; it then lies in `report`.
    fn wait_for(&mut self, number: u32, deadline: Instant) -> Result<bool, SessionError> {
        let mut overdue = 0;
        while overdue < OVERDUE {
            match self.next_report(deadline)? {
                Some(got) if got == number => return Ok(true),
                Some(_) => overdue += usize::from(Instant::now() >= deadline),
                None => break,
            }
        }
        Ok(false)
    }

    /// Receives a report into `report` and returns its number; none if `deadline` has passed and
    /// none has come, whatever else keeps coming.
    fn next_report(&mut self, deadline: Instant) -> Result<Option<u32>, SessionError> {
        let mut overdue = 0;
        loop {
            while let Some(at) = self.unread.next() {
                let Some(frame) = self.frames.push(self.chunk[at]) else {
                    continue;
                };
                let mut bytes = std::mem::take(&mut self.bytes);
                let frame = frame.and_then(|frame| {
                    bytes.clear();
                    bytes.extend_from_slice(frame);
                    Frame::read(&mut bytes)
                });
                let taken = self.take_in(frame);
                self.bytes = bytes;
                if let Some(number) = taken? {
                    return Ok(Some(number));
                }
            }
            if overdue == OVERDUE {
                return Ok(None);
            }
            let length = self.transport.receive(&mut self.chunk, deadline)?;
            if length == 0 {
                return Ok(None);
            }
            overdue += usize::from(Instant::now() >= deadline);
            self.unread = 0..length;
        }
    }
}

impl Session {
    /// Takes what came in; the number if it is a report that is to be heard.
    fn take_in(&mut self, frame: Result<Frame, FrameError>) -> Result<Option<u32>, SessionError> {
        let (number, body, is_proven) = match frame {
            Ok(Frame::Plain { number, body }) => (number, body, false),
            Ok(Frame::Sealed(frame)) => {
                let Some(guarded) = &mut self.guarded else {
                    self.counters.damaged += 1;
                    return Ok(None);
                };
                if frame.number == UNASKED && guarded.take_challenge(&frame) {
                    let greeting = guarded.greeting();
                    self.encode(greeting, &Command::Hello, true)?;
                    self.put(0)?;
                    return Ok(None);
                }
                match guarded.proven(&frame) {
                    Some(body) => (frame.number, body, true),
                    None => {
                        self.counters.damaged += 1;
                        return Ok(None);
                    }
                }
            }
            Err(FrameError::Protocol { theirs }) => {
                return Err(SessionError::Protocol { node: theirs });
            }
            Err(_) => {
                self.counters.damaged += 1;
                return Ok(None);
            }
        };
        let Ok(report) = message::<Report>(body) else {
            self.counters.damaged += 1;
            return Ok(None);
        };
        let mut number = number;
        match (&mut self.guarded, report) {
            (Some(guarded), Report::Hello(hello)) if is_proven && number == guarded.greeting() => {
                let (has_restarted, unasked) = guarded.greeted();
                if has_restarted {
                    self.counters.starts += 1;
                    self.last_start = Some(hello);
                }
                match unasked {
                    // It has not started: somebody said so who is not the node.
                    true if !has_restarted => return Ok(None),
                    true => number = UNASKED,
                    false => {}
                }
            }
            (Some(_), _) if is_proven => {}
            // That there is no key to be opened with; whoever says so, there is nothing to be had.
            (Some(guarded), Report::Rejected { .. }) if number == guarded.greeting() => {}
            (Some(guarded), Report::Hello(_)) if number == UNASKED && guarded.heeds_notice() => {
                return self.look_into_start();
            }
            (Some(_), _) => {
                self.counters.damaged += 1;
                return Ok(None);
            }
            (None, Report::Hello(hello)) if number == UNASKED => {
                self.counters.starts += 1;
                self.last_start = Some(hello);
            }
            (None, _) => {}
        }
        self.counters.received += 1;
        if number != UNASKED && number != self.number {
            self.counters.late += 1;
        }
        self.report.clear();
        self.report.extend_from_slice(body);
        self.report_number = number;
        Ok(Some(number))
    }

    /// Asks a node, which is said to have started, for another session: if it has, it knows nothing of
    /// the one before.
    fn look_into_start(&mut self) -> Result<Option<u32>, SessionError> {
        let greeting = self.number.wrapping_add(1).max(UNASKED + 1);
        if let Some(guarded) = &mut self.guarded {
            let open = guarded.open(greeting, true)?;
            self.encode(greeting, &open, false)?;
            self.number = greeting;
            self.put(0)?;
        }
        Ok(None)
    }
}

/// How long an upload may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimit {
    /// Until the answer to one piece.
    pub piece: Duration,
    /// In all.
    pub whole: Duration,
}

impl UploadLimit {
    /// So long for a piece, and in all as long as a slow line takes for so many bytes.
    pub fn by_size(piece: Duration, bytes: usize) -> Self {
        let line = Duration::from_secs_f64(bytes as f64 / UPLOAD_RATE as f64);
        let whole = piece.saturating_add(line);
        Self { piece, whole }
    }

    /// For a node that means well and may be slow.
    pub fn generous(bytes: usize) -> Self {
        Self::by_size(UPLOAD_PATIENCE, bytes)
    }

    fn begin(self) -> UploadClock {
        UploadClock {
            limit: self,
            began: Instant::now(),
        }
    }
}

/// An upload's time.
struct UploadClock {
    limit: UploadLimit,
    began: Instant,
}

impl UploadClock {
    /// How long the next answer may take.
    fn patience(&self) -> Result<Duration, SessionError> {
        let UploadLimit { piece, whole } = self.limit;
        match whole.checked_sub(self.began.elapsed()) {
            Some(left) if !left.is_zero() => Ok(left.min(piece)),
            _ => Err(SessionError::Upload(format!(
                "it is not done after {} s",
                whole.as_secs_f64()
            ))),
        }
    }
}

/// What a node says of its place.
fn conduct(report: Report<'_>, asked: &'static str) -> Result<NodeConduct, SessionError> {
    let said = match report {
        Report::Conduct { said } => Conduct::read(said),
        _ => None,
    };
    match said {
        Some(Conduct::Fed) => Ok(NodeConduct::Fed),
        Some(Conduct::Refused { reason }) => Ok(NodeConduct::Refused(plain(reason, REASON))),
        Some(Conduct::Alone(alone)) => Ok(NodeConduct::Alone(alone)),
        None => Err(unexpected(asked, &report)),
    }
}

fn unexpected(asked: &'static str, report: &Report) -> SessionError {
    match report {
        Report::Rejected { reason } => SessionError::Rejected((*reason).to_owned()),
        _ => SessionError::Unexpected {
            asked,
            report: format!("{report:?}"),
        },
    }
}
