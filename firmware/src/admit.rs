//! What a policy must pass before it runs, when it is uploaded and at every start.

use core::fmt;

use agent_core::{
    agent::ArmError,
    message::{COMMAND_FRAME, PolicyId},
    policy::{Policy, PolicyError},
};

use crate::{node::WORKSPACE, signature};

/// Names the policy in these bytes, if this node can run it and may.
pub(crate) async fn admit(
    blob: &[u8],
    signature: &[u8],
    key: Option<&[u8; 32]>,
    workspace: &mut [f32; WORKSPACE],
) -> Result<PolicyId, Refusal> {
    // First: what a stranger sends is not even read.
    if let Some(key) = key {
        signature::check(blob, signature, key)
            .await
            .map_err(Refusal::Signature)?;
    }
    try_out(blob, workspace)
}

/// Reads a policy and lets it compute what its maker has: in one go. The largest policy that ships,
/// 155 kB, takes 3.8 million instructions of a Cortex-M4.
///
/// Not in line: what it needs of the stack is free again when the node runs the policy.
#[inline(never)]
fn try_out(blob: &[u8], workspace: &mut [f32; WORKSPACE]) -> Result<PolicyId, Refusal> {
    let policy = Policy::parse(blob).map_err(Refusal::Policy)?;
    if policy.workspace_len() > WORKSPACE {
        return Err(Refusal::Workspace {
            needed: policy.workspace_len(),
        });
    }
    if policy.frame_room() > COMMAND_FRAME {
        return Err(Refusal::Observation {
            needed: policy.frame_room(),
        });
    }
    if !policy.self_test(workspace) {
        return Err(Refusal::SelfTest);
    }
    Ok(policy.id())
}

/// Why a policy was not taken.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// None has come.
    NoUpload,
    /// Not all of it has come.
    Incomplete {
        /// Bytes that have.
        stored: u32,
        /// Bytes announced.
        length: u32,
    },
    /// Nobody whom the node trusts has signed it.
    Signature(signature::Fault),
    /// It is no policy.
    Policy(PolicyError),
    /// A step needs more working memory than the node has.
    Workspace {
        /// Floats it needs.
        needed: usize,
    },
    /// Its observations are longer than the frames that the node takes.
    Observation {
        /// Bytes they need.
        needed: usize,
    },
    /// It does not compute here what it did where it was made.
    SelfTest,
    /// The flash did not take it.
    Flash,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUpload => f.write_str("no upload under way: begin one first"),
            Self::Incomplete { stored, length } => {
                write!(f, "only {stored} of the policy's {length} bytes have come")
            }
            Self::Signature(fault) => fault.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Workspace { needed } => write!(
                f,
                "the policy needs {needed} floats of working memory and the node has {WORKSPACE}"
            ),
            Self::Observation { needed } => write!(
                f,
                "the policy's observations need frames of {needed} bytes and the node takes {COMMAND_FRAME}"
            ),
            Self::SelfTest => ArmError::SelfTest.fmt(f),
            Self::Flash => f.write_str("the node's policy memory failed"),
        }
    }
}

impl core::error::Error for Refusal {}
