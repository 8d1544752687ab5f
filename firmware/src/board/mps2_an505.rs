//! The AN505 image: a Cortex-M33 at 20 MHz, in the secure state, where it starts. The addresses are
//! those at which the secure state sees the devices.

/// In reports, and for the emulator's `-M`.
pub const NAME: &str = "mps2-an505";
pub const CLOCK_HZ: u64 = 20_000_000;

pub const LINK_UART: usize = 0x5020_0000;
pub const LOG_UART: usize = 0x5020_1000;
pub const DUAL_TIMER: usize = 0x5000_2000;
pub const WATCHDOG: usize = 0x5008_1000;

pub const LINK_RECEIVE: u16 = 32;
pub const LINK_TRANSMIT: u16 = 33;
pub const TIMER: u16 = 5;
/// No device's: the software's.
pub const EXECUTOR: u16 = 31;
