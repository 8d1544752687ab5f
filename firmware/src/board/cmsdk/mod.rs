//! Drivers for the peripherals of Arm's Cortex-M System Design Kit, which the
//! MPS2 and MPS3 boards carry in all their variants.

#[cfg_attr(not(feature = "standalone"), path = "exact.rs")]
mod crystal;
pub mod dual_timer;
#[cfg(feature = "standalone")]
pub mod two_wire;
pub mod uart;
pub mod watchdog;

/// Its registers are all words.
type Register = super::register::Register<u32>;
