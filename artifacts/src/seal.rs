//! Figures that are kept from run to run, so that they need not be computed again: with a checksum of
//! them and of what they are for, so that neither a damaged nor a changed one is believed. (Against
//! somebody who makes the checksum anew it is no protection.)

use sha2::{Digest, Sha256};

/// The checksum of `content` that was made for `purpose`, in hexadecimal.
pub fn checksum(purpose: &str, content: &[u8]) -> String {
    let mut hash = Sha256::new();
    // So that no byte of the one can be taken for one of the other.
    hash.update((purpose.len() as u64).to_le_bytes());
    hash.update(purpose);
    hash.update(content);
    hex(&hash.finalize())
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_purpose_both_count() {
        let all = [("a", "bc"), ("ab", "c"), ("", "abc"), ("a", "bd")];
        let sums = all.map(|(purpose, content)| checksum(purpose, content.as_bytes()));
        for (k, sum) in sums.iter().enumerate() {
            assert_eq!(sum.len(), 64);
            assert!(!sums[..k].contains(sum), "{:?}", all[k]);
        }
    }
}
