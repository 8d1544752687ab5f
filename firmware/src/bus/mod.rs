//! Buses that all nodes speak and listen on, over what boards and their HALs bring: [`Serial`] over any byte
//! stream, [`CanFd`] over any controller that takes 64 bytes.
//!
//! Nobody assigns turns. Who finds the bus taken waits for a time that follows from what it has to say, which
//! is another's for any two nodes and another each time.

mod can;
mod serial;

pub use can::{CanFd, ClassicCan};
pub use serial::Serial;

use agent_core::message::CRC32;

/// A number that follows from a frame: where it is said, which one it is and what it says. Any two nodes'
/// differ, and differ anew with each frame.
fn lot(frame: &[u8]) -> u32 {
    // Of what ends in its own CRC-32 that sum is always the same.
    let said = (frame.split_last_chunk::<4>()).map_or(frame, |(said, _)| said);
    CRC32.checksum(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use place::neighbours::{Bulletin, bulletin::SEALED};
    use trust::BusKey;

    /// Of 16 slots two nodes draw the same now and then, and no two do again and again.
    #[test]
    fn lots_of_neighbours_differ() {
        for key in [None, Some(BusKey::new([1; 32]))] {
            let slot = |node: u32, number: u64| {
                let bulletin = Bulletin {
                    field: Default::default(),
                    start: 1,
                    number,
                    stamp_us: number as u32 * 1_000,
                    position: [0.1 * node as f32, 0.0],
                    value: 0.5,
                };
                lot(bulletin.encode(key.as_ref(), &mut [0; SEALED])).wrapping_mul(0x9e37_79b1) >> 28
            };
            for node in 1..10 {
                let same = (0..800).filter(|&number| slot(0, number) == slot(node, number));
                // Fifty, seven of them off either way.
                let same = same.count();
                assert!((20..90).contains(&same), "{node}: {same}");
            }
        }
    }
}
