//! The AN386 image: a Cortex-M4F at 25 MHz.

/// In reports, and for the emulator's `-M`.
pub const NAME: &str = "mps2-an386";
pub const CLOCK_HZ: u64 = 25_000_000;

pub const LINK_UART: usize = 0x4000_4000;
pub const LOG_UART: usize = 0x4000_5000;
pub const DUAL_TIMER: usize = 0x4000_2000;
pub const WATCHDOG: usize = 0x4000_8000;
/// The second shield's: the one that the emulator calls `i2c`.
#[cfg(feature = "standalone")]
pub const TWO_WIRE: usize = 0x4002_a000;

/// The bus's, where boards hear each other.
#[cfg(feature = "standalone")]
pub const BUS_UART: usize = 0x4000_6000;
#[cfg(feature = "standalone")]
pub const BUS_RECEIVE: u16 = 4;
#[cfg(feature = "standalone")]
pub const BUS_TRANSMIT: u16 = 5;

pub const LINK_RECEIVE: u16 = 0;
pub const LINK_TRANSMIT: u16 = 1;
pub const TIMER: u16 = 10;
/// No device's: the software's.
pub const EXECUTOR: u16 = 31;
