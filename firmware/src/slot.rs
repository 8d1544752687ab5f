//! Where a node keeps its policy.

use core::fmt;

/// Memory for one policy blob that the core can read like any other: flash, or RAM that plays it.
///
/// Shaped after flash: bytes are erased first, then written once, in order.
pub trait PolicySlot {
    /// The whole slot, for reading in place. Starts on a multiple of 16 bytes.
    fn bytes(&self) -> &[u8];

    /// Makes the first `length` bytes writable; what they held is gone.
    fn erase(&mut self, length: usize) -> Result<(), SlotError>;

    /// Writes erased bytes.
    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), SlotError>;
}

/// Why a slot could not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SlotError {
    /// The bytes lie beyond the slot's end.
    OutOfRange,
    /// The memory did not take them.
    Device,
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "the policy does not fit the node's slot",
            Self::Device => "the node's policy memory failed",
        })
    }
}

impl core::error::Error for SlotError {}

/// A slot in plain memory.
pub struct MemorySlot<'a>(pub &'a mut [u8]);

impl PolicySlot for MemorySlot<'_> {
    fn bytes(&self) -> &[u8] {
        self.0
    }

    fn erase(&mut self, length: usize) -> Result<(), SlotError> {
        // As flash reads when erased.
        self.0
            .get_mut(..length)
            .ok_or(SlotError::OutOfRange)?
            .fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), SlotError> {
        offset
            .checked_add(bytes.len())
            .and_then(|end| self.0.get_mut(offset..end))
            .ok_or(SlotError::OutOfRange)?
            .copy_from_slice(bytes);
        Ok(())
    }
}
