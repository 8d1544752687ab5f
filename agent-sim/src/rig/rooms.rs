//! Agents that hosts on a Zenoh network have.

use super::Boards;
use agent_core::message::PolicyId;
use node_link::Transport;
use node_link::network::{Network, NetworkError, Room, Settings};
use std::sync::Arc;
use std::time::Duration;

/// The rooms that were found for the links of a run, with the network that leads to them. There are
/// none by default.
#[derive(Clone, Default)]
pub struct Rooms(Arc<Found>);

#[derive(Default)]
struct Found {
    /// By the key that they were looked for with.
    rooms: Vec<(String, Vec<Room>)>,
    /// Their lines are its.
    _network: Option<Network>,
}

impl Rooms {
    /// Finds those that `boards` name, until there are `wanted` agents or `patience` has passed.
    pub fn find(
        boards: &[Boards],
        settings: &Settings,
        wanted: usize,
        policy: Option<PolicyId>,
        patience: Duration,
    ) -> Result<Self, NetworkError> {
        let keys: Vec<&String> = boards.iter().filter_map(key).collect();
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let network = Network::join(settings, patience)?;
        let mut left = wanted;
        let mut rooms: Vec<(String, Vec<Room>)> = Vec::new();
        for key in keys {
            let found = network.find(key, left, policy, patience)?;
            let before = rooms.iter().flat_map(|(_, rooms)| rooms);
            let mut before = before.map(|room| &room.name);
            if let Some(room) = before.find(|name| found.iter().any(|room| room.name == **name)) {
                let room = room.clone();
                return Err(NetworkError::Again { room });
            }
            left -= found.iter().map(|room| room.agents).sum::<usize>();
            rooms.push((key.clone(), found));
        }
        let _network = Some(network);
        Ok(Self(Arc::new(Found { rooms, _network })))
    }

    /// The agents that were found with a key: their names, and where each is.
    pub(super) fn agents(&self, key: &str) -> impl Iterator<Item = (String, Seat)> {
        let rooms = self.0.rooms.iter().enumerate();
        let rooms = rooms.filter(move |(_, (found, _))| found == key);
        rooms.flat_map(|(search, (_, rooms))| {
            rooms.iter().enumerate().flat_map(move |(room, found)| {
                (0..found.agents).map(move |agent| {
                    let seat = Seat {
                        search,
                        room,
                        agent,
                    };
                    (name(found, agent), seat)
                })
            })
        })
    }

    /// The line to an agent.
    pub(super) fn line(&self, seat: &Seat) -> Box<dyn Transport> {
        self.0.rooms[seat.search].1[seat.room].line(seat.agent)
    }

    /// How many agents were found.
    pub fn len(&self) -> usize {
        let rooms = self.0.rooms.iter().flat_map(|(_, rooms)| rooms);
        rooms.map(|room| room.agents).sum()
    }

    /// Whether none were.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where in the rooms that were found an agent is.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    search: usize,
    room: usize,
    agent: usize,
}

fn key(boards: &Boards) -> Option<&String> {
    match boards {
        Boards::Zenoh { key } => Some(key),
        Boards::Qemu { .. } | Boards::Serial { .. } | Boards::Tcp { .. } => None,
    }
}

/// What an agent of a room is called.
fn name(room: &Room, agent: usize) -> String {
    let key = node_link::plain(&room.name, 200);
    match agent.checked_sub(room.greeting.inside as usize) {
        Some(board) => format!("{key} {}", room.greeting.boards[board]),
        None => format!("{key} {agent}"),
    }
}
