//! The 32 bytes before the header, and the checksum among them.

use super::error::PolicyError;
use super::{FORMAT, MAGIC, PROLOGUE};
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

/// Everything needed to find the header and the weights, in plain little-endian words.
pub(super) struct Prologue {
    /// 1 or 2.
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

/// [`CRC32`](crate::message::CRC32) without its table, which is as large as all other constants: a
/// blob is read once.
const CRC32: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// CRC-32 of a blob without the four bytes that hold it.
pub(super) fn checksum(blob: &[u8]) -> u32 {
    let mut digest = CRC32.digest();
    digest.update(blob.get(..PROLOGUE - 4).unwrap_or_default());
    digest.update(blob.get(PROLOGUE..).unwrap_or_default());
    digest.finalize()
}
