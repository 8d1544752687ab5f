//! The 32 bytes before the header, and the checksum among them.

use super::error::PolicyError;
use super::{FORMAT, MAGIC, PROLOGUE};

/// Everything needed to find the header and the weights, in plain little-endian words.
pub(super) struct Prologue {
    /// 1 to [`FORMAT`].
    pub format: u32,
    /// Bytes of the header.
    pub header: u32,
    /// Offset of the weights.
    pub weights_at: u32,
    /// Bytes of the weights.
    pub weights: u32,
    /// Bytes of the blob.
    pub total: u32,
    /// CRC-32 of the blob without these four bytes.
    pub crc: u32,
}

impl Prologue {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, PolicyError> {
        let there = bytes.len().min(MAGIC.len());
        if bytes.is_empty() || bytes.get(..there) != MAGIC.get(..there) {
            return Err(PolicyError::NotAPolicy);
        }
        let Some(prologue) = bytes.first_chunk::<PROLOGUE>() else {
            return Err(PolicyError::Truncated {
                needed: PROLOGUE,
                found: bytes.len(),
                section: "prologue",
            });
        };
        let words: [u32; PROLOGUE / 4] =
            bytemuck::cast::<_, [[u8; 4]; PROLOGUE / 4]>(*prologue).map(u32::from_le_bytes);
        let [_, _, format, header, weights_at, weights, total, crc] = words;
        if !(1..=u32::from(FORMAT)).contains(&format) {
            return Err(PolicyError::UnknownFormat { found: format });
        }
        Ok(Self {
            format,
            header,
            weights_at,
            weights,
            total,
            crc,
        })
    }

    pub(super) fn write(&self) -> [u8; PROLOGUE] {
        let [a, b] = bytemuck::cast::<_, [[u8; 4]; 2]>(MAGIC).map(u32::from_le_bytes);
        bytemuck::cast(
            [
                a,
                b,
                self.format,
                self.header,
                self.weights_at,
                self.weights,
                self.total,
                self.crc,
            ]
            .map(u32::to_le_bytes),
        )
    }
}

/// CRC-32 of a blob without the four bytes that hold it.
///
/// The same as [`CRC32`](crate::message::CRC32), whose table would be a node's largest constant, bit
/// by bit: a blob is read once.
pub(super) fn checksum(blob: &[u8]) -> u32 {
    let mut remainder = !0u32;
    for part in [blob.get(..PROLOGUE - 4), blob.get(PROLOGUE..)] {
        for byte in part.unwrap_or_default() {
            remainder ^= u32::from(*byte);
            // Half a byte at a time: a table for whole ones is a kilobyte, and this runs once.
            for _ in 0..2 {
                remainder = (remainder >> 4) ^ HALF_BYTES[remainder as usize & 15];
            }
        }
    }
    !remainder
}

/// The remainders of all half bytes.
static HALF_BYTES: [u32; 16] = {
    /// Bits reversed, as are those of the remainder.
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 16];
    let mut k = 0;
    while k < 16 {
        let mut remainder = k as u32;
        let mut bit = 0;
        while bit < 4 {
            remainder = (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
            bit += 1;
        }
        table[k] = remainder;
        k += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::CRC32;
    use std::vec::Vec;

    #[test]
    fn the_checksum_of_blobs_is_that_of_frames() {
        for length in [0, 27, 32, 33, 1000] {
            let blob: Vec<u8> = (0..length).map(|k: u32| (k * k + 7) as u8).collect();
            let head = &blob[..blob.len().min(PROLOGUE - 4)];
            let tail = blob.get(PROLOGUE..).unwrap_or_default();
            let whole = blob.len() >= PROLOGUE - 4;
            let expected = [if whole { head } else { &[] }, tail].concat();
            assert_eq!(checksum(&blob), CRC32.checksum(&expected), "{length}");
        }
    }
}
