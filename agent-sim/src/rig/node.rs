//! One board of a run: its line, what is known of it, and what was done to it.
//!
//! The host learns of a node's death as it would in the field: the line breaks, or no answer comes.
//! It then waits for that node no longer, but looks for it now and again, and takes it back when it
//! answers.

use super::cable::Plug;
use super::diary::{Diary, State};
use super::{LinkKind, Pace};
use agent_core::agent::Action;
use agent_core::message::{Command, Hello, Observation, PolicyId, Report, ResetCause, UNASKED};
use node_link::device_log::Follower;
use node_link::{EmulatedBoard, LinkCounters, NodeStatus, Session, SessionError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a silent node is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// A frame that was not answered is sent again after this, then after twice as long, and so on.
const RESEND: Duration = Duration::from_millis(100);

/// The policy that the nodes of a run are to have.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The blob.
    pub bytes: Arc<[u8]>,
    /// Its name to nodes.
    pub id: PolicyId,
    /// Its signature; empty for none.
    pub signature: Arc<[u8]>,
    /// For how long an action of it is good.
    pub late_us: u64,
}

/// A board, or the place of one that could not be reached.
pub struct Node {
    /// What people call it.
    pub name: String,
    /// What kind of link leads to it.
    pub kind: LinkKind,
    /// What became of it.
    pub diary: Diary,
    pub(crate) board: Option<EmulatedBoard>,
    pub(crate) plug: Plug,
    pub(super) log: Option<Follower>,
    /// Bytes of the log that have been looked at.
    log_read: u64,
    session: Option<Session>,
    /// None for a node that is only looked at.
    payload: Option<Payload>,
    pace: Pace,
    step: usize,
    contact: Contact,
    /// When the last observation went out and its number.
    asked: Option<(Instant, u32)>,
    /// How long after that it is sent again.
    resend_after: Duration,
    /// The action that answers it, and the time that took.
    answer: Option<(Action, Duration)>,
    /// The last action and the time of the observation that it answers.
    last: Option<(Action, u64)>,
    asked_at_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    Answering,
    /// Silent, and last looked for then.
    Silent(Instant),
}

impl Node {
    pub(super) fn new(name: String, kind: LinkKind, payload: Option<Payload>, pace: Pace) -> Self {
        Self {
            name,
            kind,
            diary: Diary::default(),
            board: None,
            plug: Plug::default(),
            log: None,
            log_read: 0,
            session: None,
            payload,
            pace,
            step: 0,
            contact: Contact::Silent(Instant::now()),
            asked: None,
            resend_after: RESEND,
            answer: None,
            last: None,
            asked_at_us: 0,
        }
    }

    /// Makes sure that the node at the end of `session` runs the payload.
    pub(super) fn connect(&mut self, session: Session) -> Result<(), SessionError> {
        let session = self.session.insert(session);
        let hello = session.hello(self.pace.patience)?;
        if let Some(payload) = &self.payload {
            if hello.policy != Some(payload.id) {
                session.upload(&payload.bytes, &payload.signature, &mut |_| {})?;
            }
            session.ask(&Command::Reset, self.pace.patience)?;
        }
        self.contact = Contact::Answering;
        Ok(())
    }

    /// Whether there ever was a node here.
    pub fn is_there(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    pub(super) fn begin_step(&mut self, step: usize) {
        self.step = step;
    }

    /// Notes what is done to the board, or happens to it.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.diary.event(self.step, what);
    }

    /// The agent of this board begins anew.
    pub(super) fn reset(&mut self) {
        if self.is_answering() {
            let patience = self.pace.patience;
            let asked = self
                .session
                .as_mut()
                .map(|session| session.ask(&Command::Reset, patience).map(|_| ()));
            if let Some(Err(error)) = asked {
                self.fall_silent(&error.to_string());
            }
        }
        self.last = None;
    }

    pub(super) fn send(&mut self, observation: &Observation<'_>) {
        self.asked = None;
        self.answer = None;
        self.resend_after = RESEND;
        self.asked_at_us = observation.now_us;
        if !self.is_answering() {
            self.look_for();
        }
        if !self.is_answering() {
            return;
        }
        let Some(session) = &mut self.session else {
            return;
        };
        match session.send(&Command::Observe(*observation)) {
            Ok(number) => self.asked = Some((Instant::now(), number)),
            Err(error) => self.fall_silent(&error.to_string()),
        }
    }

    /// Hears what the node has to say until it has answered the last observation, or `until`. True
    /// when there is nothing more to wait for in this step.
    pub(super) fn listen(&mut self, now_us: u64, until: Instant) -> bool {
        loop {
            let Some((sent, number)) = self.asked else {
                return true;
            };
            let deadline = self.pace.deadline(sent, now_us);
            let resend = match self.pace.is_lock_step() {
                true => sent + self.resend_after,
                false => deadline,
            };
            let Some(session) = &mut self.session else {
                return true;
            };
            let came = match session.receive(until.min(deadline).min(resend)) {
                Ok(None) => Came::Nothing,
                Ok(Some((UNASKED, Report::Hello(hello)))) => Came::Start(hello),
                Ok(Some((answered, Report::Action { action, .. }))) => {
                    Came::Action(answered, action)
                }
                Ok(Some((answered, Report::Rejected { reason }))) if answered == number => {
                    Came::Refusal(reason.to_owned())
                }
                Ok(Some(_)) => continue,
                Err(error) => Came::Break(error.to_string()),
            };
            let now = Instant::now();
            match came {
                Came::Action(answered, action) if answered == number => {
                    self.asked = None;
                    self.answer = Some((action, sent.elapsed()));
                    self.last = Some((action, self.asked_at_us));
                }
                // Late: meant for an earlier observation, but newer than what we have.
                Came::Action(_, action) if !self.pace.is_lock_step() => {
                    self.last = Some((action, now_us));
                }
                Came::Action(..) => {}
                Came::Start(hello) => {
                    // It lost the observation with its memory.
                    self.asked = None;
                    self.greet(hello);
                }
                Came::Refusal(reason) => {
                    self.asked = None;
                    self.note(format!("refused the observation: {reason}"));
                }
                Came::Break(error) => self.fall_silent(&error),
                Came::Nothing if now >= deadline => {
                    self.asked = None;
                    if self.pace.is_lock_step() {
                        let waited = self.pace.patience.as_secs_f64();
                        self.fall_silent(&format!("no answer within {waited} s"));
                    } else if self.has_been_late_for_long(now_us) {
                        self.fall_silent("no answer for a long time");
                    }
                }
                Came::Nothing if now >= resend => {
                    self.resend_after *= 3;
                    if let Err(error) = session.resend() {
                        self.fall_silent(&error.to_string());
                    }
                }
                Came::Nothing => return false,
            }
        }
    }

    /// The answer to the last observation, or what the board's actuator is taken to do without one.
    pub(super) fn take_answer(&mut self, now_us: u64) -> Option<Action> {
        if let Some((action, latency)) = self.answer.take() {
            self.diary.heard(action.mode, latency);
            return Some(action);
        }
        self.diary.states.push(match self.contact {
            Contact::Answering => State::Late,
            Contact::Silent(_) => State::Silent,
        });
        match self.contact {
            Contact::Answering => self.held(now_us),
            Contact::Silent(_) => None,
        }
    }

    /// A board that has not answered yet goes on with what it did, until its action is too old.
    fn held(&self, now_us: u64) -> Option<Action> {
        let (action, at_us) = self.last?;
        let late_us = self.payload.as_ref().map_or(0, |payload| payload.late_us);
        (now_us.saturating_sub(at_us) <= late_us).then_some(action)
    }

    /// In real time a node may miss some steps before it is given up.
    fn has_been_late_for_long(&self, now_us: u64) -> bool {
        let late = |state: &&State| **state == State::Late;
        let missed = self.diary.states.iter().rev().take_while(late).count();
        missed >= 8 && self.held(now_us).is_none()
    }

    fn is_answering(&self) -> bool {
        self.contact == Contact::Answering
    }

    fn fall_silent(&mut self, why: &str) {
        self.contact = Contact::Silent(Instant::now());
        self.asked = None;
        self.note(format!("silent: {why}"));
    }

    /// Sees whether a silent node has something to say, and calls it now and then.
    fn look_for(&mut self) {
        let Contact::Silent(looked) = self.contact else {
            return;
        };
        let Some(session) = &mut self.session else {
            return;
        };
        let mut life = None;
        // Without waiting.
        while let Ok(Some((_, report))) = session.receive(Instant::now()) {
            life = Some(match report {
                Report::Hello(hello) => Some(hello),
                _ => None,
            });
        }
        match life {
            Some(Some(hello)) => self.greet(hello),
            Some(None) => {
                self.contact = Contact::Answering;
                self.note("answers again");
            }
            None if looked.elapsed() > LOOK => {
                self.contact = Contact::Silent(Instant::now());
                if session.send(&Command::Hello).is_err() && session.reopen().is_ok() {
                    let _ = session.send(&Command::Hello);
                }
            }
            None => {}
        }
    }

    /// Takes a node back that has said who it is.
    fn greet(&mut self, hello: Hello) {
        let again = match self.contact {
            Contact::Answering => "restarted",
            Contact::Silent(_) => "answers again",
        };
        let told = format!(
            "{again}; start {}, cause: {}",
            hello.boots,
            cause(hello.reset)
        );
        if let (Some(payload), Some(session)) = (&self.payload, &mut self.session)
            && hello.policy != Some(payload.id)
        {
            if !self.pace.is_lock_step() {
                return self.fall_silent(&format!("{told}; it has lost its policy"));
            }
            let uploaded = session.upload(&payload.bytes, &payload.signature, &mut |_| {});
            if let Err(error) = uploaded {
                return self.fall_silent(&format!("{told}; it takes no policy: {error}"));
            }
        }
        self.contact = Contact::Answering;
        self.last = None;
        self.note(told);
    }

    /// In lock-step: waits until a board that has its power or its cable back answers, but not for
    /// ever.
    pub(crate) fn await_answer(&mut self) {
        if !self.pace.is_lock_step() {
            return;
        }
        self.asked = None;
        let deadline = Instant::now() + self.pace.patience;
        let mut call = Instant::now();
        self.contact = Contact::Silent(call);
        while !self.is_answering() && Instant::now() < deadline {
            let Some(session) = &mut self.session else {
                return;
            };
            if Instant::now() >= call {
                call = Instant::now() + LOOK;
                if session.send(&Command::Hello).is_err() && session.reopen().is_ok() {
                    let _ = session.send(&Command::Hello);
                }
            }
            match session.receive(call.min(deadline)) {
                Ok(Some((_, Report::Hello(hello)))) => self.greet(hello),
                Ok(_) => {}
                // Broken: nothing to wait for until it is open again.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Writes half of a policy to the node's flash, without waiting for the last answer.
    pub(crate) fn begin_upload(&mut self) -> Result<(), SessionError> {
        let patience = self.pace.patience;
        let (Some(session), Some(payload)) = (&mut self.session, &self.payload) else {
            return Ok(());
        };
        let bytes = &payload.bytes;
        let length = bytes.len() as u32;
        session.ask(&Command::PolicyBegin { length }, patience)?;
        let chunks = bytes.chunks(agent_core::message::CHUNK).enumerate();
        let half = bytes.len() / agent_core::message::CHUNK / 2;
        for (k, bytes) in chunks.take(half + 1) {
            let offset = (k * agent_core::message::CHUNK) as u32;
            let chunk = Command::PolicyChunk { offset, bytes };
            match k == half {
                false => session.ask(&chunk, patience).map(|_| ())?,
                true => session.send(&chunk).map(|_| ())?,
            }
        }
        Ok(())
    }

    /// How the node says it is, if it says anything.
    pub(super) fn status(&mut self) -> Option<NodeStatus> {
        let patience = self.pace.patience;
        let session = self
            .session
            .as_mut()
            .filter(|_| self.contact == Contact::Answering)?;
        session.status(patience).ok()
    }

    /// What its line has carried.
    pub fn line(&self) -> Option<LinkCounters> {
        self.session.as_ref().map(|session| *session.counters())
    }

    /// What the node logged since it was last asked.
    pub(super) fn new_log_lines(&mut self) -> Vec<String> {
        let (Some(follower), Some(board)) = (&mut self.log, &self.board) else {
            return Vec::new();
        };
        let more = board.log_from(self.log_read).unwrap_or_default();
        self.log_read += more.len() as u64;
        follower.lines(&more)
    }
}

/// What an answer turned out to be.
enum Came {
    Nothing,
    Action(u32, Action),
    Start(Hello),
    Refusal(String),
    Break(String),
}

/// A reset's cause in words.
pub fn cause(cause: ResetCause) -> &'static str {
    match cause {
        ResetCause::PowerOn => "power came on",
        ResetCause::Brownout => "brown-out",
        ResetCause::External => "reset from outside",
        ResetCause::Command => "told to",
        ResetCause::Watchdog => "watchdog",
        ResetCause::Panic => "panic",
        ResetCause::Fault => "processor fault",
    }
}
