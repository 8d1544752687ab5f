//! What a policy must pass before it runs, when it is uploaded and at every start.

use core::fmt;

use agent_core::{
    agent::ArmError,
    message::{COMMAND_FRAME, PolicyId},
    policy::{Policy, PolicyError},
};
use embassy_futures::yield_now;
use place::Fault;
use trust::{
    Hasher, KeyId, Manifest, ManifestFault,
    manifest::{self, Subject},
};

use crate::{
    keys::{HAS_VERIFIER, Keys},
    node::WORKSPACE,
};

/// What a node asks of manifests.
pub(crate) struct Terms {
    pub keys: Keys,
    pub board: &'static str,
}

impl Terms {
    /// The manifest in these bytes, if it is for this node and, where the node asks for that, signed by
    /// a key that is trusted still.
    ///
    /// Not in line: what the verifier needs of the stack is free again when the node runs the policy.
    #[inline(never)]
    pub fn manifest<'m>(
        &self,
        subject: Subject,
        bytes: &'m [u8],
        signature: &[u8],
        is_revoked: impl Fn(KeyId) -> bool,
    ) -> Result<Manifest<'m>, Refusal> {
        let offered = Manifest::read(bytes).map_err(Refusal::Manifest)?;
        if HAS_VERIFIER && self.keys.guard_policies() {
            // First: what a stranger says is not even considered.
            if signature.is_empty() {
                return Err(Refusal::Manifest(ManifestFault::Unsigned));
            }
            let key = self.keys.policy_key(offered.key);
            let key = key.ok_or(Refusal::Manifest(ManifestFault::Foreign))?;
            manifest::verify(subject, bytes, signature, key).map_err(Refusal::Manifest)?;
            if is_revoked(offered.key) {
                return Err(Refusal::Revoked);
            }
            if offered.revokes == Some(offered.key) {
                return Err(Refusal::RevokesItself);
            }
        }
        if !offered.board.is_empty() && offered.board != self.board {
            return Err(Refusal::Board);
        }
        if offered.fleet != self.keys.fleet {
            return Err(Refusal::Fleet);
        }
        Ok(offered)
    }
}

/// An image that cannot act by itself does not carry what is said of places either. The host, where nodes are
/// given sensors by tests, always does.
pub(crate) const HAS_STATION: bool = cfg!(feature = "standalone") || cfg!(not(target_os = "none"));

/// Bytes that are hashed at a time.
const PIECE: usize = 2048;

/// The name of a blob. Gives way to others between pieces.
pub(crate) async fn name_of(blob: &[u8]) -> PolicyId {
    let mut hasher = Hasher::default();
    for piece in blob.chunks(PIECE) {
        hasher.absorb(piece);
        yield_now().await;
    }
    hasher.finish()
}

/// Reads a policy and lets it compute what its maker has: in one go. The largest policy that ships,
/// 155 kB, takes 3.8 million instructions of a Cortex-M4.
///
/// Not in line: what it needs of the stack is free again when the node runs the policy.
#[inline(never)]
pub(crate) fn try_out(blob: &[u8], problem: &str, workspace: &mut [f32]) -> Result<(), Refusal> {
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
    if policy.header().problem.as_str() != problem {
        return Err(Refusal::Mislabelled);
    }
    if !policy.self_test(workspace) {
        return Err(Refusal::SelfTest);
    }
    Ok(())
}

/// Why a policy was not taken.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Its manifest is none, or not signed by anybody whom the node trusts.
    Manifest(ManifestFault),
    /// The key that it is signed with is trusted no more.
    Revoked,
    /// Its manifest revokes the key that it is signed with.
    RevokesItself,
    /// It is for another board.
    Board,
    /// It is for another fleet.
    Fleet,
    /// It is older than what the node has had.
    Old {
        /// Its counter.
        counter: u64,
        /// The highest that the node has taken.
        newest: u64,
    },
    /// It is for another problem than the policy that the node runs.
    Problem,
    /// It is longer than a slot.
    TooLong,
    /// What came is not what the manifest names.
    NotAsNamed,
    /// The blob is for another problem than its manifest says.
    Mislabelled,
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
    /// It is no place, or not one for the policy that runs or for this board.
    Place(Fault),
    /// The place's manifest is about other bytes.
    OtherPlace,
    /// The place is for another problem than the policy.
    PlaceOfOther,
    /// The place's manifest revokes a key.
    PlaceRevokes,
    /// A place came before any policy.
    NoPolicy,
    /// The node acts on what a host shows it, and was told what the field should be.
    NoPlace,
    /// The image cannot act by itself.
    NoStation,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUpload => f.write_str("no upload under way: begin one first"),
            Self::Incomplete { stored, length } => {
                write!(f, "only {stored} of the policy's {length} bytes have come")
            }
            Self::Manifest(fault) => fault.fmt(f),
            Self::Revoked => {
                f.write_str("the manifest is signed with a key that was revoked: sign it with another")
            }
            Self::RevokesItself => f.write_str(
                "the manifest revokes the key that it is signed with: sign it with the other one",
            ),
            Self::Board => f.write_str("the manifest is for another board than this one"),
            Self::Fleet => f.write_str("the manifest is for another fleet than this node's"),
            Self::Old { counter, newest } => write!(
                f,
                "the manifest's counter is {counter} and the node has taken {newest}: to go back, sign \
                 anew what it is about"
            ),
            Self::Problem => f.write_str(
                "the policy is for another problem than the one that runs: sign it as one that repurposes",
            ),
            Self::TooLong => f.write_str("the policy does not fit the node's slot"),
            Self::NotAsNamed => f.write_str("what was uploaded is not the policy that its manifest names"),
            Self::Mislabelled => {
                f.write_str("the policy is for another problem than its manifest says")
            }
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
            Self::NoStation => f.write_str(
                "this image does not act by itself: build one with the feature `standalone`",
            ),
            _ if !HAS_STATION => Ok(()),
            Self::Place(fault) => fault.fmt(f),
            Self::OtherPlace => f.write_str("the manifest is about another place than came with it"),
            Self::PlaceOfOther => f.write_str(
                "the place is for another problem than the policy that runs: flash that, or configure the \
                 place anew",
            ),
            Self::PlaceRevokes => {
                f.write_str("a place's manifest revokes no key: revoke it with a policy's")
            }
            Self::NoPlace => f.write_str("the node has no place: configure it first"),
            Self::NoPolicy => {
                f.write_str("the node has no policy that the place could be for: flash one first")
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// The sentence: it is in the image anyway.
#[cfg(feature = "defmt")]
impl defmt::Format for Refusal {
    fn format(&self, f: defmt::Formatter) {
        defmt::Display2Format(self).format(f);
    }
}
