//! The host's side of sessions with a node that has been given a key.

use agent_core::message::{Command, Report, SealedFrame};
use std::time::{Duration, Instant};
use trust::{Grant, Rights, SessionKey};

/// A notice that the node has started is not proven: it makes the host ask again, this often at most.
const NOTICES: Duration = Duration::from_millis(250);

/// The session there is, and the one that is being opened.
pub(crate) struct Guarded {
    grant: Grant,
    /// The host's half of the session that was asked for last.
    nonce: [u8; 16],
    /// Number of the greeting that is sent, sealed, once the node has answered.
    greeting: u32,
    /// Nobody asked for that greeting: the node is said to have started.
    unasked: bool,
    asked: Option<Instant>,
    key: Option<SessionKey>,
    /// That of the session before, under which answers may still come.
    before: Option<SessionKey>,
    /// What the node's half tells of how often it has started.
    starts: Option<[u8; 8]>,
    /// It has, since the last session.
    has_restarted: bool,
    /// It answered under another key.
    stranger: bool,
}

impl Guarded {
    pub fn new(grant: Grant) -> Self {
        Self {
            grant,
            nonce: [0; 16],
            greeting: 0,
            unasked: false,
            asked: None,
            key: None,
            before: None,
            starts: None,
            has_restarted: false,
            stranger: false,
        }
    }

    /// What the key is good for.
    pub fn rights(&self) -> Rights {
        self.grant.rights()
    }

    /// Asks for a session, in which the greeting of this number follows.
    pub fn open(&mut self, greeting: u32, unasked: bool) -> std::io::Result<Command<'static>> {
        getrandom::fill(&mut self.nonce).map_err(std::io::Error::other)?;
        self.greeting = greeting;
        self.unasked = unasked;
        self.asked = Some(Instant::now());
        Ok(Command::Open {
            rights: self.grant.rights().bits(),
            nonce: self.nonce,
        })
    }

    /// What seals commands, once there is a session.
    pub fn key(&self) -> Option<&SessionKey> {
        self.key.as_ref()
    }

    /// Number of the greeting under way.
    pub fn greeting(&self) -> u32 {
        self.greeting
    }

    /// Whether the node has answered, but under another key.
    pub fn met_a_stranger(&self) -> bool {
        self.stranger
    }

    /// Whether a notice that the node has started is to be looked into.
    pub fn heeds_notice(&self) -> bool {
        self.asked.is_none_or(|asked| asked.elapsed() >= NOTICES)
    }

    /// Takes the node's half of a session, if it is that of the session asked for.
    pub fn take_challenge(&mut self, frame: &SealedFrame) -> bool {
        let Ok(Report::Challenge { nonce }) = frame.unproven() else {
            return false;
        };
        let key = self.grant.session(&self.nonce, &nonce);
        if frame.body(&key.reports()).is_err() {
            self.stranger = true;
            return false;
        }
        self.stranger = false;
        self.before = self.key.replace(key);
        let starts = nonce.first_chunk().copied();
        self.has_restarted |= self.starts.is_some() && self.starts != starts;
        self.starts = starts;
        true
    }

    /// A report's bytes, if it is proven.
    pub fn proven<'b>(&self, frame: &SealedFrame<'b>) -> Option<&'b [u8]> {
        let keys = [&self.key, &self.before];
        let keys = keys.into_iter().flatten();
        keys.filter_map(|key| frame.body(&key.reports()).ok())
            .next()
    }

    /// Told of each answer to a greeting: whether the node has started since the last one, and whether
    /// nobody has asked for this one.
    pub fn greeted(&mut self) -> (bool, bool) {
        (
            std::mem::take(&mut self.has_restarted),
            std::mem::take(&mut self.unasked),
        )
    }
}
