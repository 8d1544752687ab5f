//! Sessions: from a key that both sides have to frames that prove their sender.
//!
//! ```text
//!  host                                            node
//!   Open { rights, nonce }  ───────────────────────►
//!        ◄────────────────  Challenge { nonce }, sealed: the node has the key, and this is now
//!   first command, sealed   ───────────────────────►  the host has it too: the session begins
//! ```
//!
//! A node's key is 32 bytes. A host that may do some things has a key that follows from it and from
//! those [`Rights`]; the session's follows from that and from both nonces. Neither has to be secret or
//! random, only new: a node without a source of randomness counts. Until a host has proven itself the
//! session before goes on, so nobody ends one by asking for another.
//!
//! A frame is sealed with ChaCha20-Poly1305 (RFC 8439) over nothing, with the frame as additional data,
//! under a nonce of direction and number. Keys are derived by HChaCha20. What is said is not hidden:
//! whoever is on the line sees what the agent sees.

use crate::Rights;
use agent_core::message::{Seal, TAG};
use chacha20::{R20, hchacha};
use chacha20poly1305::{AeadInOut, ChaCha20Poly1305, KeyInit};

/// The key of a node's link: who has it may do everything, and make keys for others.
#[derive(Clone)]
pub struct LinkKey([u8; 32]);

/// What a host has of a node's key: enough for some rights.
#[derive(Clone)]
pub struct Grant {
    rights: Rights,
    key: [u8; 32],
}

/// The key of one session.
#[derive(Clone)]
pub struct SessionKey(ChaCha20Poly1305);

impl LinkKey {
    /// The key of these bytes.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The key of a host with some rights.
    pub fn grant(&self, rights: Rights) -> Grant {
        let mut purpose = *b"rights of a host";
        purpose[15] = rights.bits();
        Grant {
            rights,
            key: derived(&self.0, &purpose),
        }
    }
}

impl Grant {
    /// As it was kept.
    pub const fn new(rights: Rights, key: [u8; 32]) -> Self {
        Self { rights, key }
    }

    /// What it is for.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// To be kept.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.key
    }

    /// The key of the session that these nonces begin.
    pub fn session(&self, host: &[u8; 16], node: &[u8; 16]) -> SessionKey {
        let key = derived(&derived(&self.key, host), node);
        SessionKey(ChaCha20Poly1305::new(&key.into()))
    }
}

/// The key that follows from one for some purpose.
pub(crate) fn derived(key: &[u8; 32], input: &[u8; 16]) -> [u8; 32] {
    hchacha::<R20>(key.into(), input.into()).into()
}

impl SessionKey {
    /// Seals commands.
    pub fn commands(&self) -> impl Seal {
        Direction(&self.0, 1)
    }

    /// Seals reports.
    pub fn reports(&self) -> impl Seal {
        Direction(&self.0, 2)
    }
}

struct Direction<'k>(&'k ChaCha20Poly1305, u8);

impl Seal for Direction<'_> {
    fn tag(&self, number: u32, bytes: &[u8]) -> [u8; TAG] {
        let mut nonce = [0; 12];
        nonce[0] = self.1;
        nonce[8..].copy_from_slice(&number.to_le_bytes());
        tag(self.0, &nonce, bytes)
    }
}

/// The tag of bytes that are not hidden.
pub(crate) fn tag(cipher: &ChaCha20Poly1305, nonce: &[u8; 12], bytes: &[u8]) -> [u8; TAG] {
    let sealed = cipher.encrypt_inout_detached(nonce.into(), bytes, (&mut [][..]).into());
    // It fails for messages of more than 256 GiB.
    sealed.map_or([0; TAG], Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(rights: Rights, host: u8, node: u8) -> SessionKey {
        let grant = LinkKey::new([7; 32]).grant(rights);
        grant.session(&[host; 16], &[node; 16])
    }

    /// Computed apart: HChaCha20 as in draft-irtf-cfrg-xchacha, thrice, then PyCryptodome's
    /// ChaCha20-Poly1305 with additional data alone.
    #[test]
    fn the_tag_is_that_of_the_standard() {
        let tag = session(Rights::ALL, 1, 2).commands().tag(5, b"a frame");
        let expected = "dcb39ad5e267694c35d07b5199c3413f";
        assert_eq!(std::format!("{:032x}", u128::from_be_bytes(tag)), expected);
    }

    #[test]
    fn nothing_that_differs_has_the_same_tag() {
        let key = session(Rights::OBSERVE, 1, 2);
        let tag = key.commands().tag(5, b"a frame");
        let others = [
            key.reports().tag(5, b"a frame"),
            key.commands().tag(6, b"a frame"),
            key.commands().tag(5, b"b frame"),
            session(Rights::OBSERVE, 3, 2).commands().tag(5, b"a frame"),
            session(Rights::OBSERVE, 1, 3).commands().tag(5, b"a frame"),
            session(Rights::ALL, 1, 2).commands().tag(5, b"a frame"),
        ];
        assert!(others.iter().all(|other| *other != tag));
        assert!(key.commands().is_tag(5, b"a frame", &tag));
        let mut wrong = tag;
        wrong[15] ^= 0x80;
        assert!(!key.commands().is_tag(5, b"a frame", &wrong));
    }
}
