//! A policy as nodes are offered it.

use agent_core::{message::PolicyId, policy};
use std::sync::Arc;
use trust::{Manifest, manifest::MANIFEST};

/// A policy, what is said of it, and whose word that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The blob.
    pub blob: Arc<[u8]>,
    /// Its name.
    pub id: PolicyId,
    /// The manifest's bytes.
    pub manifest: Arc<[u8]>,
    /// Its signature; empty for none.
    pub signature: Arc<[u8]>,
}

impl Offer {
    /// A policy that nobody vouches for, for nodes that ask for nobody's word.
    pub fn unsigned(blob: &[u8]) -> Self {
        Self::unsigned_for(blob, "")
    }

    /// The same for nodes of a fleet.
    pub fn unsigned_for(blob: &[u8], fleet: &str) -> Self {
        // Nodes refuse what is no policy themselves, and say why.
        let problem = policy::problem(blob).unwrap_or_default();
        let manifest = Manifest {
            fleet,
            ..Manifest::unsigned(blob, problem)
        };
        let mut room = [0; MANIFEST];
        // A name that is too long makes none, which nodes refuse.
        let bytes = manifest.encode(&mut room).unwrap_or_default();
        Self {
            blob: blob.into(),
            id: manifest.policy,
            manifest: bytes.into(),
            signature: [].into(),
        }
    }

    /// With a manifest and its signature, made where the key is.
    pub fn signed(blob: &[u8], manifest: &[u8], signature: &[u8]) -> Self {
        Self {
            manifest: manifest.into(),
            signature: signature.into(),
            ..Self::unsigned(blob)
        }
    }
}

/// A place as nodes are offered it; see the crate `place`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceOffer {
    /// Its bytes; empty for none: the node then acts on what a host shows it.
    pub place: Vec<u8>,
    /// The manifest's bytes.
    pub manifest: Vec<u8>,
    /// Its signature as that of a place; empty for none.
    pub signature: Vec<u8>,
}
