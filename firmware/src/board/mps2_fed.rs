//! Nothing: a host feeds the board.

use embassy_executor::SendSpawner;
use firmware::hardware::{NoSensors, Station};

use super::Vector;
use crate::board::played_flash::PlayedFlash;

pub type Thermometers = NoSensors;

/// The vectors as they are.
pub const fn with_bus(vectors: [Vector; 64]) -> [Vector; 64] {
    vectors
}

/// None.
///
/// # Safety
/// It is safe.
pub unsafe fn station(_: SendSpawner) -> Option<Station<PlayedFlash, Thermometers>> {
    None
}
