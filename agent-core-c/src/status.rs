//! What a call returns.

use agent_core::agent::ArmError;
use agent_core::policy::PolicyError;
use core::{ffi::CStr, fmt};

/// `agent_status` of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer that must not be null is.
    Null = 1,
    /// A pointer is not aligned for what it points to.
    Misaligned = 2,
    /// More elements than memory can hold.
    Length = 3,
    /// No [`agent_init`](crate::agent_init) of this agent has succeeded.
    NotReady = 4,
    /// [`PolicyError::Truncated`].
    PolicyTruncated = 16,
    /// [`PolicyError::TrailingBytes`].
    PolicyTrailingBytes = 17,
    /// [`PolicyError::NotAPolicy`].
    NotAPolicy = 18,
    /// [`PolicyError::UnknownFormat`].
    PolicyFormat = 19,
    /// [`PolicyError::Checksum`].
    PolicyChecksum = 20,
    /// [`PolicyError::Misaligned`].
    PolicyMisaligned = 21,
    /// [`PolicyError::Header`].
    PolicyHeader = 22,
    /// [`PolicyError::Field`].
    PolicyField = 23,
    /// [`PolicyError::WeightCount`].
    PolicyWeightCount = 24,
    /// [`PolicyError::Weight`].
    PolicyWeight = 25,
    /// Fewer floats of working memory than the policy needs.
    WorkspaceTooSmall = 32,
    /// The policy does not do here what it did where it was written.
    SelfTest = 33,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Null,
        Self::Misaligned,
        Self::Length,
        Self::NotReady,
        Self::PolicyTruncated,
        Self::PolicyTrailingBytes,
        Self::NotAPolicy,
        Self::PolicyFormat,
        Self::PolicyChecksum,
        Self::PolicyMisaligned,
        Self::PolicyHeader,
        Self::PolicyField,
        Self::PolicyWeightCount,
        Self::PolicyWeight,
        Self::WorkspaceTooSmall,
        Self::SelfTest,
    ];

    pub(crate) fn of(result: Result<(), Self>) -> Self {
        match result {
            Ok(()) => Self::Ok,
            Err(status) => status,
        }
    }

    /// What a number that may be none of ours means: all text from there on, each sentence with its
    /// NUL.
    pub(crate) fn sentence(number: i32) -> &'static [u8] {
        let before = Self::ALL.iter().take_while(|s| **s as i32 != number);
        let mut before = before.count();
        let mut text = SENTENCES.as_bytes();
        while before > 0
            && let Some((byte, rest)) = text.split_first()
        {
            before -= usize::from(*byte == 0);
            text = rest;
        }
        text
    }
}

/// One for each status, in the order of [`Status::ALL`], then one for all other numbers.
///
/// One text, because a linker takes text that ends in its only NUL together with all other such text:
/// here that of the sentences which only [`agent_policy_explain`](crate::agent_policy_explain)
/// writes.
const SENTENCES: &str = concat!(
    "there is nothing wrong\0",
    "a pointer is null\0",
    "a pointer is not aligned for what it points to\0",
    "a length is more than memory can hold\0",
    "the agent has not been initialised, or was refused\0",
    "the policy is cut off\0",
    "the policy is followed by other bytes\0",
    "this is not a policy\0",
    "the policy is written in a format that this reader does not know\0",
    "the policy is damaged\0",
    "the policy must start on a 4-byte boundary in memory\0",
    "the policy's header cannot be decoded\0",
    "a field of the policy has a value that cannot be run\0",
    "the policy has not as many weights as its layers need\0",
    "a weight of the policy is not finite\0",
    "the policy needs more working memory than was given\0",
    "the policy's self-test gives other actions here than where it was written\0",
    "this is no status of agent-core\0",
);

/// The sentences are ASCII.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = CStr::from_bytes_until_nul(Self::sentence(*self as i32));
        f.write_str(sentence.unwrap_or_default().to_str().unwrap_or_default())
    }
}

impl From<PolicyError> for Status {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::Truncated { .. } => Self::PolicyTruncated,
            PolicyError::TrailingBytes { .. } => Self::PolicyTrailingBytes,
            PolicyError::NotAPolicy => Self::NotAPolicy,
            PolicyError::UnknownFormat { .. } => Self::PolicyFormat,
            PolicyError::Checksum { .. } => Self::PolicyChecksum,
            PolicyError::Misaligned => Self::PolicyMisaligned,
            PolicyError::Header => Self::PolicyHeader,
            PolicyError::Field { .. } => Self::PolicyField,
            PolicyError::WeightCount { .. } => Self::PolicyWeightCount,
            PolicyError::Weight { .. } => Self::PolicyWeight,
        }
    }
}

impl From<ArmError> for Status {
    fn from(error: ArmError) -> Self {
        match error {
            ArmError::Workspace { .. } => Self::WorkspaceTooSmall,
            ArmError::SelfTest => Self::SelfTest,
        }
    }
}
