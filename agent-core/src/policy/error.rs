//! Why bytes are not a usable policy.

use super::FORMAT;
use core::fmt;

/// Why bytes are not a usable policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PolicyError {
    /// Fewer bytes than the blob says it has, or than its prologue needs.
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
        /// The first section that is incomplete.
        section: &'static str,
    },
    /// More bytes than the blob says it has.
    TrailingBytes {
        /// Bytes the blob has.
        stated: usize,
        /// Bytes there.
        found: usize,
    },
    /// It does not start with [`MAGIC`].
    NotAPolicy,
    /// Written in a format this reader does not know.
    UnknownFormat {
        /// The blob's format.
        found: u32,
    },
    /// The bytes changed since they were written.
    Checksum {
        /// What the blob carries.
        stated: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// The blob does not start on a 4-byte boundary in memory.
    Misaligned,
    /// The header is no postcard header.
    Header,
    /// A field has a value that cannot be run.
    Field {
        /// Its path in the header or prologue.
        name: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The weight section has another length than the layers need.
    WeightCount {
        /// Floats the layers need.
        needed: usize,
        /// Floats there.
        found: usize,
    },
    /// A weight is NaN or infinite.
    Weight {
        /// Its index in the weight section.
        index: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated {
                needed,
                found,
                section,
            } => write!(
                f,
                "the policy is cut off in its {section}: {found} of {needed} bytes are there"
            ),
            Self::TrailingBytes { stated, found } => write!(
                f,
                "the policy says it has {stated} bytes but {found} are there"
            ),
            Self::NotAPolicy => {
                f.write_str("this is not a policy: it does not start with SWARMPOL")
            }
            Self::UnknownFormat { found } => write!(
                f,
                "the policy has format {found} and this reader knows formats 1 to {FORMAT}: use a newer reader, or export the policy again with this version's trainer"
            ),
            Self::Checksum { stated, computed } => write!(
                f,
                "the policy is damaged: its checksum is {stated:08x} but its bytes give {computed:08x}"
            ),
            Self::Misaligned => f.write_str("the policy must start on a 4-byte boundary in memory"),
            Self::Header => f.write_str("the policy's header cannot be decoded"),
            Self::Field { name, fault } => write!(f, "the policy's field {name} {fault}"),
            Self::WeightCount { needed, found } => write!(
                f,
                "the policy's layers need {needed} weights but {found} are there"
            ),
            Self::Weight { index } => write!(f, "the policy's weight {index} is not finite"),
        }
    }
}

impl core::error::Error for PolicyError {}

/// A [`PolicyError::Field`].
pub(crate) const fn field<T>(name: &'static str, fault: &'static str) -> Result<T, PolicyError> {
    Err(PolicyError::Field { name, fault })
}
