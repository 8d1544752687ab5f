//! Whose policies a node runs.
//!
//! An image built with `POLICY_KEY` in the environment, an Ed25519 public key in 64 hexadecimal
//! digits, runs only policies that the holder of its secret half has signed, blob by blob.

use core::fmt;

use ed25519_compact::{PublicKey, Signature};

/// The key that this image was built with.
pub const POLICY_KEY: Option<[u8; 32]> = match option_env!("POLICY_KEY") {
    Some(digits) => Some(key(digits)),
    None => None,
};

const fn key(digits: &str) -> [u8; 32] {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        panic!("POLICY_KEY is an Ed25519 public key: 64 hexadecimal digits");
    };
    assert!(
        pairs.len() == 32,
        "POLICY_KEY is an Ed25519 public key: 64 hexadecimal digits"
    );
    let mut key = [0; 32];
    let mut at = 0;
    while at < key.len() {
        key[at] = 16 * digit(pairs[at][0]) + digit(pairs[at][1]);
        at += 1;
    }
    key
}

const fn digit(letter: u8) -> u8 {
    match (letter as char).to_digit(16) {
        Some(value) => value as u8,
        None => panic!("POLICY_KEY holds a letter that is no hexadecimal digit"),
    }
}

/// Whether `signature` is the key's, of this blob.
pub(crate) fn check(blob: &[u8], signature: &[u8], key: &[u8; 32]) -> Result<(), Fault> {
    if signature.is_empty() {
        return Err(Fault::Missing);
    }
    let Ok(signature) = Signature::from_slice(signature) else {
        return Err(Fault::Length {
            found: signature.len(),
        });
    };
    PublicKey::new(*key)
        .verify(blob, &signature)
        .map_err(|_| Fault::Foreign)
}

/// What is wrong with a policy's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault {
    /// There is none.
    Missing,
    /// It is not 64 bytes long.
    Length {
        /// Bytes there are.
        found: usize,
    },
    /// It was made with another key, or for another blob.
    Foreign,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => {
                f.write_str("the policy is not signed, and this node runs signed ones only")
            }
            Self::Length { found } => write!(
                f,
                "the policy's signature has {found} bytes; one of Ed25519 has 64"
            ),
            Self::Foreign => f.write_str(
                "the policy's signature was made with another key than this node's, or for another policy",
            ),
        }
    }
}

impl core::error::Error for Fault {}
