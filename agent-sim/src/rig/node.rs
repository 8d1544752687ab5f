//! One board of a run: its line, what is known of it, and what was done to it.
//!
//! The host learns of a node's death as it would in the field: the line breaks, or no answer comes.
//! It then waits for that node no longer, but looks for it now and again, and takes it back when it
//! answers. A node that only costs time is given up for good ([`Account`]), and so is one that refuses
//! the run's policy: every call here is bounded, whatever is at the other end.

use super::account::Account;
use super::cable::Plug;
use super::diary::{Diary, State};
use super::recent::Recent;
use super::wires::Wires;
use super::{LinkKind, Pace};
use crate::standing::Stand;
use agent_core::agent::Action;
use agent_core::message::{Command, Guard, Hello, Observation, Report, ResetCause, UNASKED};
use agent_core::policy::Policy;
use node_link::device_log::Follower;
use node_link::{
    EmulatedBoard, LinkCounters, NodeConduct, NodeStatus, Offer, PlaceOffer, Session, SessionError,
    UploadLimit,
};
use std::time::{Duration, Instant};
use trust::Rights;

/// How often a silent node is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// Looking for it takes at most one part in so many of the run's time.
const LOOK_SHARE: u32 = 50;

/// Most reports that are looked at before the other nodes have their turn: from one that never stops
/// there are always more.
const BURST: usize = 64;

/// How often a node is given the policy in a run: at its beginning, and once again if it loses it.
const MOST_UPLOADS: usize = 2;

/// A frame that was not answered is sent again after this, then after twice as long, and so on.
const RESEND: Duration = Duration::from_millis(100);

/// The policy that the nodes of a run are to have.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The policy, as they are offered it.
    pub offer: Offer,
    /// For how long an action of it is good.
    pub late_us: u64,
}

impl Payload {
    /// A policy as it is offered, which was read.
    pub fn new(offer: Offer, policy: &Policy) -> Self {
        Self {
            offer,
            late_us: policy.header().timing.late_us.into(),
        }
    }
}

/// A board, or the place of one that could not be reached.
pub struct Node {
    /// What people call it.
    pub name: String,
    /// What kind of link leads to it.
    pub kind: LinkKind,
    /// What became of it.
    pub diary: Diary,
    pub(super) board: Option<EmulatedBoard>,
    pub(super) plug: Plug,
    pub(super) log: Option<Follower>,
    /// Bytes of the log that have been looked at.
    log_read: u64,
    session: Option<Session>,
    /// Whom it says it obeys.
    pub guard: Guard,
    /// How often it had started when it last said so.
    boots: Option<u32>,
    /// None for a node that is only looked at.
    payload: Option<Payload>,
    pace: Pace,
    step: usize,
    contact: Contact,
    account: Account,
    uploads: usize,
    /// Its agent has begun anew, and nothing was sent to it since.
    is_fresh: bool,
    /// When the last observation went out and its number.
    asked: Option<(Instant, u32)>,
    /// The observations that it may still answer.
    recent: Recent,
    /// How long after that it is sent again.
    resend_after: Duration,
    /// Of a board that senses and acts by itself.
    wires: Option<Wires>,
    /// The action that answers it, and the time that took.
    answer: Option<(Action, Duration)>,
    /// The last action and the time of the observation that it answers.
    last: Option<(Action, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    Answering,
    /// Silent, and looked for again then.
    Silent(Instant),
    /// Silent, and not looked for again in this run.
    GivenUp,
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
            guard: Guard::default(),
            boots: None,
            payload,
            pace,
            step: 0,
            contact: Contact::Silent(Instant::now()),
            account: Account::default(),
            uploads: 0,
            is_fresh: false,
            asked: None,
            recent: Recent::default(),
            resend_after: RESEND,
            wires: None,
            answer: None,
            last: None,
        }
    }

    /// The board's sensors and its actuator are the plant's from now on, and its clock is off by this rate.
    pub(super) fn stand_at(&mut self, stand: Stand, rate: f64) {
        self.wires = Some(Wires::new(stand));
        let gain = ((rate - 1.0) * 1e6).round() as i32;
        if let Some(Err(error)) = self.board.as_ref().map(|board| board.set_gain(gain)) {
            self.note(format!("its clock cannot be changed: {error}"));
        }
    }

    /// The board with its wires, if it has some.
    pub(super) fn wired(&mut self) -> Option<(&mut Wires, &mut EmulatedBoard)> {
        self.wires.as_mut().zip(self.board.as_mut())
    }

    /// Makes sure that the node at the end of `session` runs the payload.
    pub(super) fn connect(&mut self, session: Session) -> Result<(), SessionError> {
        let rights = session.rights();
        self.session = Some(session);
        let hello = self.ask(Session::hello)?;
        self.guard = hello.guard;
        self.boots = Some(hello.boots);
        if let Some(payload) = &self.payload {
            if hello.guard.link && rights.is_none() {
                return Err(SessionError::KeyNeeded);
            }
            if hello.policy != Some(payload.offer.id) {
                let limit = UploadLimit::by_size(self.pace.patience, payload.offer.blob.len());
                self.upload(limit)?;
            }
            // Who may only give it policies lets its agent be.
            if rights.is_none_or(|rights| rights.include(Rights::OBSERVE)) {
                self.ask(forget)?;
                self.is_fresh = true;
            }
        }
        self.contact = Contact::Answering;
        Ok(())
    }

    /// Asks the node something, for as long as it may still keep the others waiting.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Session, Duration) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let patience = self.account.left(self.pace.patience);
        let Some(session) = &mut self.session else {
            return Err(SessionError::Timeout(patience));
        };
        let began = Instant::now();
        let answer = question(session, patience);
        if answer.is_err() {
            self.account.waited_in_vain(began.elapsed());
        }
        answer
    }

    /// Gives the node the payload. One that refuses it is given up: it would refuse it again, and
    /// each time a piece of its flash is erased.
    fn upload(&mut self, limit: UploadLimit) -> Result<(), SessionError> {
        let Some(payload) = self.payload.clone() else {
            return Ok(());
        };
        let limit = match self.kind {
            // Ours, and slow on a busy machine.
            LinkKind::Qemu => UploadLimit::generous(payload.offer.blob.len()),
            LinkKind::Serial | LinkKind::Tcp | LinkKind::Zenoh => limit,
        };
        self.uploads += 1;
        let uploaded =
            self.ask(|session, _| session.upload_within(limit, &payload.offer, &mut |_| {}));
        if let Err(SessionError::Refused(_)) = uploaded {
            self.contact = Contact::GivenUp;
        }
        uploaded.map(|_| ())
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
        // One that acts by itself has gone on since.
        let has_begun = !self.is_fresh || self.wires.is_some();
        if has_begun
            && self.is_answering()
            && let Err(error) = self.ask(forget)
        {
            self.fall_silent(&error.to_string());
        }
        self.last = None;
        self.recent.clear();
    }

    pub(super) fn send(&mut self, observation: &Observation<'_>) {
        if let Some((wires, board)) = self.wired() {
            wires.surround(board, observation);
            return;
        }
        self.asked = None;
        self.answer = None;
        self.resend_after = RESEND;
        // Without waiting.
        self.look_for(Instant::now());
        if !self.is_answering() {
            return;
        }
        let Some(session) = &mut self.session else {
            return;
        };
        self.is_fresh = false;
        match session.send(&Command::Observe(*observation)) {
            Ok(number) => {
                self.asked = Some((Instant::now(), number));
                self.recent.push(number, observation.now_us);
            }
            Err(error) => self.fall_silent(&error.to_string()),
        }
    }

    /// Hears what the node has to say until it has answered the last observation, or `until`. True
    /// when there is nothing more to wait for in this step.
    pub(super) fn listen(&mut self, now_us: u64, until: Instant) -> bool {
        let pace = self.pace;
        if let Some((wires, board)) = self.wired() {
            let end = |sent| pace.deadline(sent, pace.patience, now_us);
            return wires.await_action(board, until, end);
        }
        for _ in 0..BURST {
            let Some((sent, number)) = self.asked else {
                return true;
            };
            let deadline = self.deadline(sent, now_us);
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
                Came::Action(answered, action) => {
                    self.take_in(answered, action);
                    if answered == number {
                        self.asked = None;
                        self.answer = Some((action, sent.elapsed()));
                    }
                }
                Came::Start(hello) => {
                    // It lost the observation with its memory.
                    self.stop_waiting();
                    self.greet(hello);
                }
                Came::Refusal(reason) => {
                    self.stop_waiting();
                    self.note(format!("refused the observation: {reason}"));
                    self.give_up_if_spent();
                }
                Came::Break(error) => {
                    self.stop_waiting();
                    self.fall_silent(&error);
                }
                Came::Nothing if now >= deadline => self.miss(now_us),
                Came::Nothing if now >= resend => {
                    self.resend_after *= 3;
                    if let Err(error) = session.resend() {
                        self.fall_silent(&error.to_string());
                    }
                }
                Came::Nothing => return false,
            }
        }
        // Much came, and not the answer.
        match self.asked {
            Some((sent, _)) if Instant::now() >= self.deadline(sent, now_us) => self.miss(now_us),
            _ => {}
        }
        self.asked.is_none()
    }

    /// Until when the answer to an observation of `now_us`, sent at `sent`, is waited for.
    fn deadline(&self, sent: Instant, now_us: u64) -> Instant {
        let patience = self.account.left(self.pace.patience);
        self.pace.deadline(sent, patience, now_us)
    }

    /// An action that answers an observation of ours, if only an earlier one, is what the actuator
    /// does since that observation. In lock-step an earlier one has been given up.
    fn take_in(&mut self, answered: u32, action: Action) {
        let is_last = self.asked.is_some_and(|(_, number)| answered == number);
        if !is_last && self.pace.is_lock_step() {
            return;
        }
        if let Some(at_us) = self.recent.take(answered) {
            self.last = Some((action, at_us));
            self.account.answered();
        }
    }

    /// The last observation will not be answered; in lock-step all have waited for it.
    fn stop_waiting(&mut self) {
        if let Some((sent, _)) = self.asked.take()
            && self.pace.is_lock_step()
        {
            let waited = sent.elapsed();
            let most = self.account.left(self.pace.patience);
            self.account.waited_in_vain(waited.min(most));
        }
    }

    /// The answer to the last observation has not come in time.
    fn miss(&mut self, now_us: u64) {
        let waited = self.account.left(self.pace.patience);
        self.stop_waiting();
        if self.pace.is_lock_step() {
            self.fall_silent(&format!("no answer within {} s", waited.as_secs_f64()));
        } else if self.has_been_late_for_long(now_us) {
            self.fall_silent("no answer for a long time");
        }
    }

    /// The answer to the last observation, or what the board's actuator is taken to do without one.
    pub(super) fn take_answer(&mut self, now_us: u64) -> Option<Action> {
        if let Some((wires, board)) = self.wired() {
            let acts = wires.action(board);
            match acts {
                Some((action, true, latency)) => self.diary.heard(action.mode, latency),
                Some(_) => self.diary.states.push(State::Late),
                None => self.diary.states.push(State::Silent),
            }
            return acts.map(|(action, ..)| action);
        }
        if let Some((action, latency)) = self.answer.take() {
            self.diary.heard(action.mode, latency);
            return Some(action);
        }
        self.diary.states.push(match self.contact {
            Contact::Answering => State::Late,
            Contact::Silent(_) | Contact::GivenUp => State::Silent,
        });
        match self.contact {
            Contact::Answering => self.held(now_us),
            Contact::Silent(_) | Contact::GivenUp => None,
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
        self.contact = Contact::Silent(Instant::now() + LOOK);
        self.asked = None;
        self.note(format!("silent: {why}"));
        self.give_up_if_spent();
    }

    fn give_up_if_spent(&mut self) {
        if self.account.left(self.pace.patience).is_zero() {
            self.give_up("it has kept the others waiting for too long");
        }
    }

    /// Neither waits for the node nor looks for it again in this run.
    fn give_up(&mut self, why: &str) {
        self.contact = Contact::GivenUp;
        self.asked = None;
        self.note(format!("given up: {why}"));
    }

    /// Sees whether a silent node says something before `until`, and calls it now and then. Only an
    /// answer to what it was last asked is a sign of life, or that it has started.
    fn look_for(&mut self, mut until: Instant) {
        let Contact::Silent(next_call) = self.contact else {
            return;
        };
        if Instant::now() >= next_call {
            self.call();
        }
        let Some(session) = &mut self.session else {
            return;
        };
        let mut life = None;
        for _ in 0..BURST {
            let asked = session.last_number();
            let Ok(Some((number, report))) = session.receive(until) else {
                break;
            };
            match report {
                Report::Hello(hello) if number == UNASKED || number == asked => {
                    life = Some(Some(hello));
                }
                _ if number == asked => life = life.or(Some(None)),
                _ => {}
            }
            if life.is_some() {
                // Whatever else has come is old by now.
                until = Instant::now();
            }
        }
        match life {
            Some(Some(hello)) => self.greet(hello),
            Some(None) if self.account.comes_back() => {
                self.contact = Contact::Answering;
                self.note("answers again");
            }
            Some(None) => self.give_up(TOO_OFTEN),
            None => {}
        }
    }

    /// Asks a silent node who it is, on a new line if the old one is broken.
    fn call(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        let began = Instant::now();
        if session.send(&Command::Hello).is_err() && session.reopen().is_ok() {
            let _ = session.send(&Command::Hello);
        }
        let pause = LOOK.max(began.elapsed() * LOOK_SHARE);
        self.contact = Contact::Silent(Instant::now() + pause);
    }

    /// Takes a node back that has said who it is.
    fn greet(&mut self, hello: Hello) {
        let again = match self.contact {
            Contact::Answering => "restarted",
            Contact::Silent(_) | Contact::GivenUp => "answers again",
        };
        let told = format!(
            "{again}; start {}, cause: {}",
            hello.boots,
            cause(hello.reset)
        );
        // The first start after the power came on is the rig's to count: it says the same every time.
        if self.boots.replace(hello.boots) != Some(hello.boots) && hello.boots > 1 {
            self.diary.restarts += 1;
        }
        self.last = None;
        self.recent.clear();
        if !self.account.comes_back() {
            return self.give_up(TOO_OFTEN);
        }
        self.give_up_if_spent();
        if self.contact == Contact::GivenUp {
            return;
        }
        if let Some(payload) = &self.payload
            && hello.policy != Some(payload.offer.id)
        {
            self.diary.lost_policies += 1;
            if !self.pace.is_lock_step() {
                return self.fall_silent(&format!("{told}; it has lost its policy"));
            }
            if self.uploads >= MOST_UPLOADS {
                return self.give_up(&format!("{told}; it has lost its policy again"));
            }
            let left = self.account.left(self.pace.patience);
            let limit = UploadLimit {
                piece: left,
                whole: left,
            };
            if let Err(error) = self.upload(limit) {
                let why = format!("{told}; it takes no policy: {error}");
                return match self.contact {
                    Contact::GivenUp => self.give_up(&why),
                    _ => self.fall_silent(&why),
                };
            }
        }
        self.contact = Contact::Answering;
        self.note(told);
    }

    /// In lock-step: waits until a board that has its power or its cable back answers, but not for
    /// ever. What it cost until now was our doing.
    pub(super) fn await_answer(&mut self) {
        if !self.pace.is_lock_step() || self.contact == Contact::GivenUp {
            return;
        }
        self.asked = None;
        self.account = Account::default();
        let deadline = Instant::now() + self.pace.patience;
        self.contact = Contact::Silent(Instant::now());
        while let Contact::Silent(next_call) = self.contact
            && Instant::now() < deadline
        {
            // Nobody else is kept waiting by a call.
            let next_call = next_call.min(Instant::now() + LOOK);
            self.contact = Contact::Silent(next_call);
            self.look_for(next_call.min(deadline));
            if !self.is_answering() {
                // A broken line has nothing to wait for until it is open again.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Writes half of a policy to the node's flash, without waiting for the last answer.
    pub(super) fn begin_upload(&mut self) -> Result<(), SessionError> {
        let patience = self.pace.patience;
        let (Some(session), Some(payload)) = (&mut self.session, &self.payload) else {
            return Ok(());
        };
        let offer = &payload.offer;
        let begin = Command::PolicyBegin {
            manifest: &offer.manifest,
            signature: &offer.signature,
        };
        session.ask(&begin, patience)?;
        let bytes = &offer.blob;
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

    /// Gives the node another policy, with which its agent begins anew. One that refuses it goes on with
    /// its own: nothing was erased. One that is silent gets it when it answers again.
    pub(crate) fn flash(&mut self, policy: &Payload) {
        let before = self.payload.replace(policy.clone());
        self.uploads = 0;
        if !self.is_answering() {
            return;
        }
        let limit = UploadLimit::by_size(self.pace.patience, policy.offer.blob.len());
        match self.upload(limit).and_then(|()| self.ask(forget)) {
            Ok(()) => {
                self.last = None;
                self.recent.clear();
                self.note("runs another policy");
            }
            Err(error @ SessionError::Refused(_)) => {
                self.payload = before;
                self.contact = Contact::Answering;
                self.note(format!("goes on with its own policy: {error}"));
            }
            Err(error) => self.fall_silent(&format!("takes no other policy: {error}")),
        }
    }

    /// How the node says it is, if it says anything.
    pub(super) fn status(&mut self) -> Option<NodeStatus> {
        match self.is_answering() {
            true => self.ask(Session::status).ok(),
            false => None,
        }
    }

    /// How the node says it gets on at its place; why not, if it does not say.
    pub(super) fn conduct(&mut self) -> Result<NodeConduct, SessionError> {
        // One without power is not waited for.
        if let Some((_, board)) = self.wired()
            && !board.is_running()
        {
            return Err(SessionError::Timeout(Duration::ZERO));
        }
        self.ask(Session::conduct)
    }

    /// Gives the node a place, or none.
    pub(super) fn configure(&mut self, offer: &PlaceOffer) -> Result<NodeConduct, SessionError> {
        self.ask(|session, patience| session.configure(offer, patience))
    }

    /// Has the node hold its window at this, or at what its place says.
    pub(super) fn aim_at(&mut self, target: Option<f32>) -> Result<NodeConduct, SessionError> {
        self.ask(|session, patience| session.aim_at(target, patience))
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

/// Why a node is not taken back once more.
const TOO_OFTEN: &str = "it keeps coming back, and answers no observation";

/// Tells the node's agent to begin anew.
fn forget(session: &mut Session, patience: Duration) -> Result<(), SessionError> {
    session.ask(&Command::Reset, patience).map(|_| ())
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
