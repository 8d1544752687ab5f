//! The key of a bus: what proves that somebody who has it said something, to all others who have it.
//!
//! A bus has no host and no sessions: everybody hears everybody, and joins when its power comes. So the key of
//! a tag follows from the bus's and from who speaks, by HChaCha20, and a nonce need only be new among those of
//! one speaker; a speaker has its count of starts, which outlives power cuts, and a number that rises. The tag
//! is ChaCha20-Poly1305's (RFC 8439) over nothing, with what is said as additional data.
//!
//! It is never cut short. The bound of Poly1305 holds for all 128 bits of it: of its first 64, one can prove
//! no more than that some 2^37 attempts are needed.

use crate::session::{derived, tag};
use agent_core::message::TAG;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};

/// The key of a bus: who has it can say anything in anybody's name.
#[derive(Clone)]
pub struct BusKey([u8; 32]);

impl BusKey {
    /// The key of these bytes.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The tag of what this speaker says. No speaker may use a nonce for two things.
    pub fn tag(&self, speaker: &[u8; 8], nonce: &[u8; 12], bytes: &[u8]) -> [u8; TAG] {
        let mut purpose = *b"speaker ........";
        let (_, who) = purpose.split_at_mut(8);
        who.copy_from_slice(speaker);
        let key = derived(&self.0, &purpose);
        tag(&ChaCha20Poly1305::new(&key.into()), nonce, bytes)
    }

    /// Whether `tag` is theirs, in a time that does not tell how much of it is right.
    pub fn is_tag(
        &self,
        speaker: &[u8; 8],
        nonce: &[u8; 12],
        bytes: &[u8],
        tag: &[u8; TAG],
    ) -> bool {
        let expected = self.tag(speaker, nonce, bytes);
        let difference = expected.iter().zip(tag).fold(0, |d, (a, b)| d | (a ^ b));
        core::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart, in integers of Python: HChaCha20 as in draft-irtf-cfrg-xchacha, then RFC 8439.
    #[test]
    fn the_tag_is_that_of_the_standard() {
        let tag = BusKey::new([7; 32]).tag(&[1; 8], &[2; 12], b"a bulletin");
        let expected = "914220b8af39c717d71e53fbe4d5492b";
        assert_eq!(std::format!("{:032x}", u128::from_be_bytes(tag)), expected);
    }

    #[test]
    fn nothing_that_differs_has_the_same_tag() {
        let key = BusKey::new([7; 32]);
        let tag = key.tag(&[1; 8], &[2; 12], b"a bulletin");
        let others = [
            key.tag(&[3; 8], &[2; 12], b"a bulletin"),
            key.tag(&[1; 8], &[3; 12], b"a bulletin"),
            key.tag(&[1; 8], &[2; 12], b"b bulletin"),
            BusKey::new([8; 32]).tag(&[1; 8], &[2; 12], b"a bulletin"),
        ];
        assert!(others.iter().all(|other| *other != tag));
        assert!(key.is_tag(&[1; 8], &[2; 12], b"a bulletin", &tag));
        for bit in 0..128 {
            let mut wrong = tag;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_tag(&[1; 8], &[2; 12], b"a bulletin", &wrong));
        }
    }
}
