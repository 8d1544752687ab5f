//! The node: what stands between a board and [`agent_core`].
//!
//! Everything here runs on any board with a byte stream, a clock and some memory for a policy, and
//! on the host, where its tests run. In the order data takes:
//!
//! 1. [`link`]: bytes from the stream become commands, reports become bytes.
//! 2. [`slot`]: where an uploaded policy is kept and read in place.
//! 3. [`node`]: the loop that answers commands and, when none come, lets the agent fail safe.
//!
//! A board (in the binary, under `board/`) brings the peripherals and starts [`node::run`].
//! What an agent does with an observation is agent-core's business alone.

#![no_std]
#![forbid(unsafe_code)]

/// Logs with defmt where there is one; evaluates nothing elsewhere.
macro_rules! log {
    ($level:ident, $format:literal $(, $value:expr)* $(,)?) => {{
        #[cfg(feature = "defmt")]
        defmt::$level!($format $(, $value)*);
        #[cfg(not(feature = "defmt"))]
        { let _ = || { $(let _ = &$value;)* }; }
    }};
}

pub mod hardware;
pub mod link;
pub mod node;
pub mod slot;
