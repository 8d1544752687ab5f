//! A network where there can be none, because this program was built without Zenoh. Everybody speaks of
//! it as elsewhere; nobody can join it.

pub mod batch;

mod error;

pub use error::NetworkError;

use crate::Transport;
use agent_core::message::PolicyId;
use std::time::{Duration, Instant};

/// How a network would be joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Zenoh's configuration.
    pub configuration: Option<String>,
    /// Where to listen.
    pub listen: Vec<String>,
    /// Whom to connect to.
    pub connect: Vec<String>,
}

/// What a room would hold; see the form with Zenoh.
pub struct Greeting {
    /// The policy of the agents of the host's own process.
    pub policy: Option<PolicyId>,
    /// How many they are.
    pub inside: u32,
    /// The names of boards.
    pub boards: Vec<String>,
}

/// A network that was joined.
pub enum Network {}

impl Network {
    /// Refuses.
    pub fn join(_: &Settings, _: Duration) -> Result<Self, NetworkError> {
        Err(NetworkError::NotBuilt)
    }

    /// Finds rooms.
    pub fn find(
        &self,
        _: &str,
        _: usize,
        _: Option<PolicyId>,
        _: Duration,
    ) -> Result<Vec<Room>, NetworkError> {
        match *self {}
    }

    /// Offers a room.
    pub fn offer(&self, _: &str, _: Greeting) -> Result<Offered, NetworkError> {
        match *self {}
    }

    /// Why nobody could drive what is offered.
    pub fn trouble(&self, _: Duration) -> Option<NetworkError> {
        match *self {}
    }
}

/// A room that was found.
pub struct Room {
    /// Its key.
    pub name: String,
    /// What its host said of it.
    pub greeting: Greeting,
    /// How many of its agents there are lines to.
    pub agents: usize,
    never: std::convert::Infallible,
}

impl Room {
    /// The line to an agent of the room.
    pub fn line(&self, _: usize) -> Box<dyn Transport> {
        match self.never {}
    }
}

/// A message to a room's agents.
pub struct Arrival {
    /// Whose it is.
    pub driver: u64,
    /// The records of many agents.
    pub batch: Vec<u8>,
}

/// A room that is offered.
pub enum Offered {}

impl Offered {
    /// The next message.
    pub fn next(&self, _: Instant) -> Option<Arrival> {
        match *self {}
    }

    /// Sends what agents say.
    pub fn answer(&self, _: u64, _: Vec<u8>) {
        match *self {}
    }

    /// The driver that there is now.
    pub fn driver(&self) -> Option<u64> {
        match *self {}
    }
}
