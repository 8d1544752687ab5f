//! Sessions with hosts that have a key of this node's link.
//!
//! A host opens a session with a greeting that anybody can send; the node's answer proves that it has the
//! key, and the host's first sealed frame that the host has. Until then the session before goes on, and
//! whoever greets without a key has changed nothing.

use agent_core::message::{Command, FrameError, SealedFrame};
use trust::{LinkKey, Rights, SessionKey};

use crate::keys::HAS_SEAL;

/// Whose command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Anybody's: the node has no key.
    Anybodys,
    /// Somebody's who has not shown a key to a node that has one.
    Strangers,
    /// A host's that has these rights.
    Hosts(Rights),
}

impl Whose {
    /// Whether they may.
    pub fn may(self, command: &Command) -> bool {
        let rights = match self {
            Self::Anybodys => Rights::ALL,
            Self::Strangers => Rights::NONE,
            Self::Hosts(rights) => rights,
        };
        rights.include(Rights::needed_for(command))
    }
}

/// The place of a sealed command among those before it.
pub(crate) enum Place {
    /// It is to be carried out.
    Next,
    /// The last one once more.
    Again,
    /// It is older.
    Stale,
}

struct Session {
    key: SessionKey,
    rights: Rights,
    /// Number of the last command taken; 0 before the first.
    last: u32,
}

/// The session there is, and the one that may come.
pub struct Sessions {
    key: Option<LinkKey>,
    /// In the nonce, so that none is ever used twice; none if that is not known.
    starts: Option<u64>,
    opened: u64,
    current: Option<Session>,
    awaited: Option<Session>,
}

impl Sessions {
    /// Of a node that has, or has not, been given a key, and has started so often in all.
    pub fn new(key: Option<LinkKey>, starts: Option<u64>) -> Self {
        Self {
            key,
            starts,
            opened: 0,
            current: None,
            awaited: None,
        }
    }

    /// Whether commands must be sealed.
    pub fn are_needed(&self) -> bool {
        self.key.is_some()
    }

    /// Whose a command is that is not sealed.
    pub(crate) fn unsealed(&self) -> Whose {
        match self.are_needed() {
            true => Whose::Strangers,
            false => Whose::Anybodys,
        }
    }

    /// The node's half of a session's beginning, for a host that says it has a key of these rights.
    pub(crate) fn challenge(&mut self, rights: u8, host: &[u8; 16]) -> Option<[u8; 16]> {
        let key = self.key.as_ref().filter(|_| HAS_SEAL)?;
        let rights = Rights::from_bits(rights)?;
        self.opened = self.opened.checked_add(1)?;
        let mut nonce = [0; 16];
        let (starts, opened) = nonce.split_at_mut(8);
        starts.copy_from_slice(&self.starts?.to_le_bytes());
        opened.copy_from_slice(&self.opened.to_le_bytes());
        self.awaited = Some(Session {
            key: key.grant(rights).session(host, &nonce),
            rights,
            last: 0,
        });
        Some(nonce)
    }

    /// The key of the session that was last asked for.
    pub(crate) fn awaited(&self) -> Option<&SessionKey> {
        self.awaited.as_ref().map(|session| &session.key)
    }

    /// The key of the session there is.
    pub(crate) fn current(&self) -> Option<&SessionKey> {
        self.current.as_ref().map(|session| &session.key)
    }

    /// The command in a sealed frame, if its tag is right, and its place.
    pub(crate) fn open<'b>(
        &mut self,
        frame: &SealedFrame<'b>,
    ) -> Result<(Place, Whose, Command<'b>), FrameError> {
        if !HAS_SEAL {
            return Err(FrameError::Sealed);
        }
        let by = |session: &Option<Session>| match session {
            Some(session) => frame.open::<Command>(&session.key.commands()),
            None => Err(FrameError::Sealed),
        };
        let command = match by(&self.current) {
            Err(FrameError::Sealed) => {
                let command = by(&self.awaited)?;
                self.current = self.awaited.take();
                command
            }
            other => other?,
        };
        let session = self.current.as_mut().ok_or(FrameError::Sealed)?;
        let place = match frame.number {
            number if number > session.last => Place::Next,
            number if number == session.last => Place::Again,
            _ => Place::Stale,
        };
        session.last = session.last.max(frame.number);
        Ok((place, Whose::Hosts(session.rights), command))
    }
}
