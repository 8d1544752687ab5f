//! Whose policies a node runs.
//!
//! An image built with `POLICY_KEY` in the environment, an Ed25519 public key in 64 hexadecimal
//! digits, runs only policies that the holder of its secret half has signed, blob by blob.

use core::fmt;

use ed25519_compact::{PublicKey, Signature};
use embassy_futures::yield_now;

/// The key that this image was built with.
pub const POLICY_KEY: Option<[u8; 32]> = match option_env!("POLICY_KEY") {
    Some(digits) => Some(key(digits)),
    None => None,
};

/// An image that was built without a key does not carry the verifier either, all 17 KB of it. The
/// host, where keys are given to tests, always does.
const HAS_VERIFIER: bool = POLICY_KEY.is_some() || cfg!(not(target_os = "none"));

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

/// Bytes that are hashed at a time: some 0.3 million instructions, and hashing is what takes long.
const PIECE: usize = 2048;

/// Whether `signature` is the key's, of this blob. Gives way to others between pieces: for 256 KiB
/// it takes 43 million instructions of a Cortex-M4, of which 2 are in one piece.
pub(crate) async fn check(blob: &[u8], signature: &[u8], key: &[u8; 32]) -> Result<(), Fault> {
    if signature.is_empty() {
        return Err(Fault::Missing);
    }
    let Ok(signature) = Signature::from_slice(signature) else {
        return Err(Fault::Length {
            found: signature.len(),
        });
    };
    // Asked wherever the verifier is used: that nobody gets past the first question, no compiler
    // sees in a future.
    if !HAS_VERIFIER {
        return Err(Fault::Foreign);
    }
    let verifier = PublicKey::new(*key).verify_incremental(&signature);
    let mut verifier = verifier.map_err(|_| Fault::Foreign)?;
    for piece in blob.chunks(PIECE) {
        if HAS_VERIFIER {
            verifier.absorb(piece);
        }
        yield_now().await;
    }
    match HAS_VERIFIER && verifier.verify().is_ok() {
        true => Ok(()),
        false => Err(Fault::Foreign),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use embassy_futures::block_on;

    /// RFC 8032, section 7.1, test 3.
    #[test]
    fn a_signature_is_that_of_the_standard() {
        // A signature is written in two halves of a key's length.
        let [public, r, s] = [
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac",
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ]
        .map(key);
        let signature = [r, s];
        let checked = |blob: &[u8]| block_on(check(blob, signature.as_flattened(), &public));
        assert_eq!(checked(&[0xaf, 0x82]), Ok(()));
        assert_eq!(checked(&[0xaf, 0x83]), Err(Fault::Foreign));
    }

    #[test]
    #[should_panic(expected = "64 hexadecimal digits")]
    fn a_key_of_another_length_stops_the_build() {
        key("fc51cd8e");
    }

    #[test]
    #[should_panic(expected = "no hexadecimal digit")]
    fn a_key_with_other_letters_stops_the_build() {
        key("xc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
    }
}
