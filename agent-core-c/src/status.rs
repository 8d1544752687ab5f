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

    /// What a number that may be none of ours means.
    pub(crate) fn sentence(number: i32) -> &'static CStr {
        let status = Self::ALL.iter().find(|status| **status as i32 == number);
        status.map_or(c"this is no status of agent-core", Self::text)
    }

    fn text(&self) -> &'static CStr {
        match self {
            Self::Ok => c"there is nothing wrong",
            Self::Null => c"a pointer is null",
            Self::Misaligned => c"a pointer is not aligned for what it points to",
            Self::Length => c"a length is more than memory can hold",
            Self::NotReady => c"the agent has not been initialised, or was refused",
            Self::PolicyTruncated => c"the policy is cut off",
            Self::PolicyTrailingBytes => c"the policy is followed by other bytes",
            Self::NotAPolicy => c"this is not a policy",
            Self::PolicyFormat => {
                c"the policy is written in a format that this reader does not know"
            }
            Self::PolicyChecksum => c"the policy is damaged",
            Self::PolicyMisaligned => c"the policy must start on a 4-byte boundary in memory",
            Self::PolicyHeader => c"the policy's header cannot be decoded",
            Self::PolicyField => c"a field of the policy has a value that cannot be run",
            Self::PolicyWeightCount => c"the policy has not as many weights as its layers need",
            Self::PolicyWeight => c"a weight of the policy is not finite",
            Self::WorkspaceTooSmall => c"the policy needs more working memory than was given",
            Self::SelfTest => {
                c"the policy's self-test gives other actions here than where it was written"
            }
        }
    }
}

/// The sentences are ASCII.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().to_str().unwrap_or_default())
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
