//! What a room's host says of itself when it is asked.

use super::NetworkError;
use crate::plain;
use agent_core::message::{PROTOCOL, PolicyId};
use serde::{Deserialize, Serialize};

/// Version of what is said on a network. It is the first byte of a greeting and stays it, so that two
/// sides of different versions can say so.
const MESSAGES: u8 = 1;

/// Longest greeting that is read.
const LONGEST: usize = 1 << 16;

/// Most characters of a board's name.
const NAME: usize = 60;

/// What a room holds. It says what one host has, which whoever started that knows; of a swarm nobody
/// says how large it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The policy that the agents of the host's own process run; none if there are no such agents.
    pub policy: Option<PolicyId>,
    /// How many agents its own process has.
    pub inside: u32,
    /// The names of the boards at its links, whose agents follow those.
    pub boards: Vec<String>,
}

/// Whom a greeting is for.
#[derive(Serialize, Deserialize)]
struct Said {
    messages: u8,
    frames: u8,
    /// Whoever asks is whose commands are heard.
    yours: bool,
    greeting: Greeting,
}

impl Greeting {
    /// All agents of the room.
    pub fn agents(&self) -> usize {
        self.inside as usize + self.boards.len()
    }

    /// The greeting as it goes out, to somebody who drives the agents, or does not.
    pub(super) fn encode(&self, yours: bool) -> Vec<u8> {
        let said = Said {
            messages: MESSAGES,
            frames: PROTOCOL,
            yours,
            greeting: self.clone(),
        };
        postcard::to_allocvec(&said).unwrap_or_default()
    }

    /// The greeting of `room`, and whether it is for the one who drives its agents. Texts in it can be
    /// shown as they are.
    pub(super) fn decode(room: &str, bytes: &[u8]) -> Result<(Self, bool), NetworkError> {
        let refused = |theirs: String| NetworkError::Version {
            room: room.to_owned(),
            theirs,
            ours: version(MESSAGES, PROTOCOL),
        };
        match *bytes {
            [MESSAGES, PROTOCOL, ..] if bytes.len() <= LONGEST => {}
            [messages, frames, ..] => return Err(refused(version(messages, frames))),
            _ => return Err(refused("nothing that can be read".to_owned())),
        }
        let Ok((said, [])) = postcard::take_from_bytes::<Said>(bytes) else {
            return Err(refused("nothing that can be read".to_owned()));
        };
        let mut greeting = said.greeting;
        for name in &mut greeting.boards {
            *name = plain(name, NAME);
        }
        Ok((greeting, said.yours))
    }
}

/// What of two programs must agree: what is said on a network, and the frames in it.
fn version(messages: u8, frames: u8) -> String {
    format!("{messages} with frames of protocol {frames}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Greeting {
        Greeting {
            policy: Some(PolicyId([7; 32])),
            inside: 16,
            boards: vec!["an386 0".to_owned()],
        }
    }

    #[test]
    fn a_greeting_is_read_as_it_was_said() {
        let bytes = greeting().encode(true);
        assert_eq!(Greeting::decode("a", &bytes), Ok((greeting(), true)));
        assert_eq!(greeting().agents(), 17);
    }

    #[test]
    fn a_greeting_of_another_version_is_refused_by_the_version_and_the_rooms_name() {
        let mut bytes = greeting().encode(true);
        bytes[0] = 9;
        // Whatever may follow in that version.
        bytes.truncate(3);
        let refused = Greeting::decode("lab/room-1", &bytes)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("lab/room-1 speaks version 9 with frames of protocol 5"),
            "{refused}"
        );
        for bytes in [&[][..], &[MESSAGES], &[MESSAGES, PROTOCOL, 3]] {
            assert!(Greeting::decode("a", bytes).is_err());
        }
    }

    #[test]
    fn names_of_boards_are_made_fit_to_be_shown() {
        let mut hostile = greeting();
        hostile.boards = vec!["\u{1b}[2J".to_owned(), "x".repeat(1000)];
        let (read, _) = Greeting::decode("a", &hostile.encode(false)).unwrap();
        assert_eq!(read.boards[0], r"\u{1b}[2J");
        assert_eq!(read.boards[1].chars().count(), NAME + 1);
    }
}
