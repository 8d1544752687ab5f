//! Why agents on a network cannot be had.

use agent_core::message::PolicyId;
use std::time::Duration;

/// Why a network cannot be joined, or nobody there be driven.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// This program has no Zenoh in it.
    #[error(
        "this program was built without Zenoh: build it with `cargo build --release -p agent-sim \
         --features zenoh`"
    )]
    NotBuilt,
    /// The configuration is none.
    #[error("Zenoh takes no such configuration: {0}")]
    Configuration(String),
    /// Zenoh could not be started.
    #[error("cannot join the Zenoh network: {0}")]
    Join(String),
    /// The key cannot be one.
    #[error(
        "'{key}' is no key of Zenoh: {why}; write chunks with slashes in between, as in {example}"
    )]
    Key {
        /// As it was given.
        key: String,
        /// What is wrong with it.
        why: String,
        /// A right one.
        example: &'static str,
    },
    /// No process of the network was reached.
    #[error(
        "nobody was reached at {endpoints} within {waited:?}{why}: is somebody listening there, and, \
         with TLS, does each side know who signed the other's certificate?"
    )]
    Unreached {
        /// Where it was tried.
        endpoints: String,
        /// For so long.
        waited: Duration,
        /// What Zenoh says, in brackets.
        why: String,
    },
    /// Nobody offers agents there.
    #[error(
        "nobody answers to {key} within {waited:?}: start hosts with `agent-sim agents … --zenoh KEY` \
         under keys that it matches, and lead both to each other with --zenoh-listen and \
         --zenoh-connect"
    )]
    Nobody {
        /// What was asked for.
        key: String,
        /// For so long.
        waited: Duration,
    },
    /// Two processes offer the same agents.
    #[error(
        "the agents of {room} are offered twice, by hosts {} and {}: end one of them, or give it \
         another key", hosts[0], hosts[1]
    )]
    Twice {
        /// The room.
        room: String,
        /// Their names on the network.
        hosts: [String; 2],
    },
    /// Two links lead to the same agents.
    #[error("two links name the agents of {room}: leave one out, or give keys that do not overlap")]
    Again {
        /// The room.
        room: String,
    },
    /// Another run has the agents.
    #[error("the agents of {room} are driven by another run: wait until it has ended, or end it")]
    Driven {
        /// The room.
        room: String,
    },
    /// There is a process, and it does not say what it offers.
    #[error(
        "the host of {room} does not say within {waited:?} what it offers: it hangs, or access \
         control keeps its answer away"
    )]
    Mute {
        /// The room.
        room: String,
        /// For so long.
        waited: Duration,
    },
    /// It speaks otherwise.
    #[error(
        "the host of {room} speaks version {theirs} and this program {ours}: start it with the program \
         that belongs to this one"
    )]
    Version {
        /// The room.
        room: String,
        /// Theirs, as people read it.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// Its agents run something else.
    #[error(
        "the agents of {room} run policy {theirs:.12} and this run's is {ours:.12}: start their host \
         with --policy and this run's file"
    )]
    Policy {
        /// The room.
        room: String,
        /// What they run.
        theirs: PolicyId,
        /// What they should run.
        ours: PolicyId,
    },
    /// Anything else.
    #[error("Zenoh: {0}")]
    Broken(String),
}
