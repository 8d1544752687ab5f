//! The node: what stands between a board and [`agent_core`].
//!
//! Everything here runs on any board with a byte stream, a clock and some flash for two policies,
//! and on the host, where its tests run. In the order data takes:
//!
//! 1. [`link`]: bytes from the stream become commands, reports become bytes; [`sessions`]: whose they are.
//! 2. [`upload`]: a policy comes in chunks while another one runs.
//! 3. [`admit`]: what it must pass to be run, the signature of its manifest included.
//! 4. [`store`]: two slots of flash that hold a whole policy whenever the power goes, and the trial
//!    that a new one stands; [`journal`]: what outlives them.
//! 5. [`places`]: what it knows of its place, where it senses and acts by itself; [`standalone`]: how it
//!    does that; [`air`]: what it says to its neighbours and they to it, over a [`bus`].
//! 6. [`node`]: the loop that answers commands and, when none come, lets the agent fail safe.
//!
//! Whom a node obeys and whose policies it runs is said by its [`keys`].
//!
//! [`tmp105`] are sensors that boards may have, read [`aside`], and [`pulse_width`] is an actuator; a [`bus`] is
//! what nodes hear each other on.
//!
//! A board (in the binary, under `board/`) brings the [`hardware`] and starts [`node::run`]; in a
//! [`black_box`] it keeps what the node is to remember of its end.
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

// Brings the clock that unit tests are linked with.
#[cfg(test)]
use host_clock as _;

pub mod admit;
#[cfg_attr(
    all(target_os = "none", not(feature = "standalone")),
    path = "absent/air.rs"
)]
pub mod air;
pub mod aside;
pub mod black_box;
pub mod bus;
pub mod hardware;
pub mod journal;
pub mod keys;
pub mod link;
pub mod node;
#[cfg_attr(
    all(target_os = "none", not(feature = "standalone")),
    path = "absent/places.rs"
)]
pub mod places;
pub mod pulse_width;
pub mod sessions;
#[cfg_attr(
    all(target_os = "none", not(feature = "standalone")),
    path = "absent/standalone.rs"
)]
pub mod standalone;
pub mod store;
pub mod tmp105;
pub mod upload;
