//! How many nodes can share a bus.
//!
//! A bus is filled by whoever speaks: so many nodes, each once a period, for as long as one bulletin takes.

use super::bulletin::{PLAIN, SEALED};

/// A bus of some kind and speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// CAN FD with extended identifiers, whose data goes at another rate than the rest.
    CanFd {
        /// Bits a second while nodes agree on who speaks,
        arbitration: u32,
        /// and of the data.
        data: u32,
    },
    /// Bytes of ten bits, framed with COBS.
    Serial {
        /// Bits a second.
        baud: u32,
    },
}

/// Bytes that framing adds to a bulletin on a serial bus: a zero that ends what noise has begun, COBS's own
/// byte, and a zero at the end.
pub const FRAMING: u64 = 3;

/// Times of a byte for which a serial bus is quiet before somebody speaks: the gap.
pub const GAP: u64 = 3;

/// Times of a byte that somebody waits beyond the gap, or a multiple of that.
pub const SLOT: u64 = 2;

/// How many multiples: who waits draws one of them from what it is to say.
pub const SLOTS: u64 = 16;

impl Line {
    /// Nanoseconds that the bus is not there for others while one bulletin is said, at most: with every
    /// stuff bit that CAN may need, or the gap and half the slots before it on a serial bus.
    pub fn occupied_ns(self, proven: bool) -> u64 {
        let bytes = if proven { SEALED } else { PLAIN } as u64;
        match self {
            Self::CanFd { arbitration, data } => {
                // Start, identifier, SRR, IDE, RRS, FDF, res, BRS, and a stuff bit after every four but the
                // first; delimiter, acknowledgement and its delimiter, end and interframe space.
                let head = 1 + 29 + 2 + 4;
                let slow = head + (head - 1) / 4 + (1 + 2 + 7 + 3);
                // ESI, length and data with their stuff bits; count of stuff bits and CRC-21 with theirs.
                let said = 1 + 4 + 8 * bytes;
                let quick = said + said / 4 + (4 + 21 + 7);
                bits_ns(slow, arbitration) + bits_ns(quick, data)
            }
            Self::Serial { baud } => {
                let waits = GAP + SLOT * SLOTS / 2;
                bits_ns(10 * (bytes + FRAMING + waits), baud)
            }
        }
    }

    /// Most nodes that can say something once a period, with so much of the bus in use, in hundredths.
    pub fn largest_swarm(self, proven: bool, period_us: u32, load: u8) -> u32 {
        let room_ns = u64::from(period_us) * 10 * u64::from(load.min(100));
        u32::try_from(room_ns / self.occupied_ns(proven)).unwrap_or(u32::MAX)
    }
}

fn bits_ns(bits: u64, rate: u32) -> u64 {
    (bits * 1_000_000_000).div_ceil(u64::from(rate.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FD: Line = Line::CanFd {
        arbitration: 500_000,
        data: 2_000_000,
    };

    /// By hand. CAN FD: 36 bits of head with 8 stuff bits and 13 behind are 57 at 2 µs; a bulletin's 256 or 384
    /// and 5 of control with 65 or 97 stuff bits, and 32 of checksum, are 358 or 518 at 0.5 µs. Serial: 32 or
    /// 48, 3 of framing and 19 of waiting are 54 or 70 bytes of ten bits.
    #[test]
    fn a_bulletin_takes_as_long_as_its_bits() {
        assert_eq!(FD.occupied_ns(false), 114_000 + 179_000);
        assert_eq!(FD.occupied_ns(true), 114_000 + 259_000);
        let slow = Line::Serial { baud: 1_000_000 };
        assert_eq!(slow.occupied_ns(false), 540_000);
        assert_eq!(slow.occupied_ns(true), 700_000);
    }

    /// The table of docs/neighbours.md.
    #[test]
    fn the_largest_swarms_are_those_that_are_documented() {
        let serial = |baud| Line::Serial { baud };
        let swarms = |line: Line, load| {
            [false, true].map(|proven| {
                [10_000, 100_000, 1_000_000]
                    .map(|period_us| line.largest_swarm(proven, period_us, load))
            })
        };
        assert_eq!(swarms(FD, 80), [[27, 273, 2730], [21, 214, 2144]]);
        let slow = serial(115_200);
        assert_eq!(swarms(slow, 50), [[1, 10, 106], [0, 8, 82]]);
        assert_eq!(swarms(serial(1_000_000), 50), [[9, 92, 925], [7, 71, 714]]);
        assert_eq!(
            swarms(serial(3_000_000), 50),
            [[27, 277, 2777], [21, 214, 2142]]
        );
    }
}
