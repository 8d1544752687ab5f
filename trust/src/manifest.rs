//! What a policy is, for whom and how new, in bytes that can be signed. The place of a node that senses and
//! acts by itself has a manifest of the same form: its bytes stand for the blob's.

use crate::{KeyId, policy_id};
use agent_core::message::PolicyId;
use core::fmt;
use ed25519_compact::{PublicKey, Signature};
use serde::{Deserialize, Serialize};

/// Most bytes of a manifest.
pub const MANIFEST: usize = 192;

/// Most bytes of each name in it.
pub const NAME: usize = 40;

/// What a manifest is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A policy.
    Policy,
    /// The place of a node.
    Place,
}

/// Bytes that what is signed begins with.
const DOMAIN: usize = 16;

impl Subject {
    /// What is signed begins with this, so that no signature of something else is one of a manifest, nor
    /// one of a policy's that of a place's.
    fn domain(self) -> [u8; DOMAIN] {
        match self {
            Self::Policy => *b"policy manifest\x01",
            Self::Place => *b"place manifest\0\x01",
        }
    }
}

/// What is said of a policy by who lets it run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest<'a> {
    /// The policy.
    pub policy: PolicyId,
    /// Bytes of its blob.
    pub length: u32,
    /// The problem that it is for, as its blob says.
    pub problem: &'a str,
    /// The board that it may run on; empty for any.
    pub board: &'a str,
    /// The fleet that it is for; empty for nodes that belong to none.
    pub fleet: &'a str,
    /// Higher than that of any manifest before it. To bring an old policy back, a new manifest is
    /// signed for it: that is the permission to go back.
    pub counter: u64,
    /// The key that it is signed with.
    pub key: KeyId,
    /// It may take the place of a policy for another problem.
    pub repurposes: bool,
    /// A key that is trusted no more once this is taken.
    pub revokes: Option<KeyId>,
}

impl<'a> Manifest<'a> {
    /// The manifest of a policy for any board, in no fleet, that nobody has signed.
    pub fn unsigned(blob: &[u8], problem: &'a str) -> Self {
        Self {
            policy: policy_id(blob),
            length: blob.len().try_into().unwrap_or(u32::MAX),
            problem,
            board: "",
            fleet: "",
            counter: 0,
            key: KeyId([0; 4]),
            repurposes: false,
            revokes: None,
        }
    }

    /// Its bytes, in `buffer`; an error where a name is longer than [`NAME`].
    pub fn encode<'b>(&self, buffer: &'b mut [u8; MANIFEST]) -> Result<&'b [u8], ManifestFault> {
        if [self.problem, self.board, self.fleet]
            .iter()
            .any(|n| n.len() > NAME)
        {
            return Err(ManifestFault::LongName);
        }
        let bytes = postcard::to_slice(self, buffer).map_err(|_| ManifestFault::LongName)?;
        Ok(bytes)
    }

    /// The manifest that these bytes are, whoever made it.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ManifestFault> {
        if bytes.len() > MANIFEST {
            return Err(ManifestFault::Unreadable);
        }
        match postcard::take_from_bytes::<Self>(bytes) {
            Ok((manifest, [])) => Ok(manifest),
            _ => Err(ManifestFault::Unreadable),
        }
    }
}

/// What a signature of a manifest covers, in `buffer`.
pub fn signed_bytes<'b>(
    subject: Subject,
    manifest: &[u8],
    buffer: &'b mut [u8; SIGNED],
) -> Option<&'b [u8]> {
    let (domain, room) = buffer.split_at_mut(DOMAIN);
    domain.copy_from_slice(&subject.domain());
    room.get_mut(..manifest.len())?.copy_from_slice(manifest);
    buffer.get(..DOMAIN + manifest.len())
}

/// Room for [`signed_bytes`].
pub const SIGNED: usize = DOMAIN + MANIFEST;

/// Whether `signature` is the key's, of this manifest. About 2 million instructions of a Cortex-M4.
pub fn verify(
    subject: Subject,
    manifest: &[u8],
    signature: &[u8],
    key: &[u8; 32],
) -> Result<(), ManifestFault> {
    if signature.is_empty() {
        return Err(ManifestFault::Unsigned);
    }
    let found = signature.len();
    let signature =
        Signature::from_slice(signature).map_err(|_| ManifestFault::Signature { found })?;
    let mut buffer = [0; SIGNED];
    let signed = signed_bytes(subject, manifest, &mut buffer).ok_or(ManifestFault::Unreadable)?;
    PublicKey::new(*key)
        .verify(signed, &signature)
        .map_err(|_| ManifestFault::Foreign)
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFault {
    /// The bytes are none.
    Unreadable,
    /// A name in it is too long.
    LongName,
    /// There is no signature.
    Unsigned,
    /// The signature is not 64 bytes long.
    Signature {
        /// Bytes there are.
        found: usize,
    },
    /// It was signed with another key, or for another manifest.
    Foreign,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("the manifest is unreadable"),
            Self::LongName => write!(f, "a name in the manifest has more than {NAME} bytes"),
            Self::Unsigned => {
                f.write_str("the manifest is not signed, and this node takes signed ones only")
            }
            Self::Signature { found } => write!(
                f,
                "the manifest's signature has {found} bytes; one of Ed25519 has 64"
            ),
            Self::Foreign => f.write_str(
                "the manifest's signature was made with another key than this node's, or for another \
                 manifest",
            ),
        }
    }
}

impl core::error::Error for ManifestFault {}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_compact::{KeyPair, Seed};
    use proptest::prelude::*;
    use std::{string::String, vec::Vec};

    fn sample() -> Manifest<'static> {
        Manifest {
            board: "pico2",
            fleet: "plant seven",
            counter: 1_800_000_000,
            key: KeyId::of(&[3; 32]),
            revokes: Some(KeyId([1, 2, 3, 4])),
            ..Manifest::unsigned(b"a policy", "heat-1d")
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let mut buffer = [0; MANIFEST];
        let bytes = sample().encode(&mut buffer).unwrap();
        assert_eq!(Manifest::read(bytes), Ok(sample()));
        assert_eq!(
            Manifest::read(&bytes[..bytes.len() - 1]),
            Err(ManifestFault::Unreadable)
        );
        let long: Vec<u8> = [bytes, &[0]].concat();
        assert_eq!(Manifest::read(&long), Err(ManifestFault::Unreadable));
    }

    /// The longest of everything.
    #[test]
    fn there_is_room_for_every_manifest_with_names_of_the_length_allowed() {
        let name: String = "x".repeat(NAME);
        let longest = Manifest {
            length: u32::MAX,
            board: &name,
            fleet: &name,
            problem: &name,
            counter: u64::MAX,
            ..sample()
        };
        assert!(longest.encode(&mut [0; MANIFEST]).is_ok());
        let name: String = "x".repeat(NAME + 1);
        let longer = Manifest {
            board: &name,
            ..longest
        };
        assert_eq!(
            longer.encode(&mut [0; MANIFEST]),
            Err(ManifestFault::LongName)
        );
    }

    #[test]
    fn a_signature_is_of_one_manifest_and_by_one_key() {
        let pair = KeyPair::from_seed(Seed::new([1; 32]));
        let mut buffer = [0; MANIFEST];
        let bytes = sample().encode(&mut buffer).unwrap();
        let mut room = [0; SIGNED];
        let signature = pair.sk.sign(
            signed_bytes(Subject::Policy, bytes, &mut room).unwrap(),
            None,
        );
        let verify = |bytes: &[u8], signature: &[u8], key| {
            super::verify(Subject::Policy, bytes, signature, key)
        };
        assert_eq!(verify(bytes, &*signature, &pair.pk), Ok(()));
        // A policy's is not a place's.
        assert_eq!(
            super::verify(Subject::Place, bytes, &*signature, &pair.pk),
            Err(ManifestFault::Foreign)
        );
        // Of the bytes alone, without what they are signed as.
        let bare = pair.sk.sign(bytes, None);
        assert_eq!(verify(bytes, &*bare, &pair.pk), Err(ManifestFault::Foreign));
        let other = KeyPair::from_seed(Seed::new([2; 32]));
        assert_eq!(
            verify(bytes, &*signature, &other.pk),
            Err(ManifestFault::Foreign)
        );
        assert_eq!(verify(bytes, &[], &pair.pk), Err(ManifestFault::Unsigned));
        let mut changed = bytes.to_vec();
        changed[40] ^= 1;
        assert_eq!(
            verify(&changed, &*signature, &pair.pk),
            Err(ManifestFault::Foreign)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_manifest_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..250)) {
            let _ = Manifest::read(&bytes);
        }
    }
}
