//! Names that cannot be forged.

use agent_core::message::PolicyId;
use core::fmt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of a policy.
pub fn policy_id(blob: &[u8]) -> PolicyId {
    let mut hasher = Hasher::default();
    hasher.absorb(blob);
    hasher.finish()
}

/// The same, piece by piece, for whoever has something else to do meanwhile.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next bytes.
    pub fn absorb(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The name of what has come.
    pub fn finish(self) -> PolicyId {
        PolicyId(self.0.finalize().into())
    }
}

/// Names a public key: the first bytes of its SHA-256. For saying which one is meant, not for
/// trusting it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// The name of a key.
    pub fn of(public: &[u8; 32]) -> Self {
        let PolicyId(hash) = policy_id(public);
        Self(hash.first_chunk().copied().unwrap_or_default())
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn a_policys_name_is_its_sha_256() {
        let name = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(format!("{}", policy_id(b"abc")), name);
        let mut hasher = Hasher::default();
        hasher.absorb(b"a");
        hasher.absorb(b"bc");
        assert_eq!(hasher.finish(), policy_id(b"abc"));
    }
}
