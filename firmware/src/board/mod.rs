//! What a board brings: a link, a clock, a log, flash for policies, a watchdog, an executor.
//!
//! One file per board with its addresses, pins and interrupts; what several boards share lies beside
//! it. Each has the same four names, which `main` builds the image from: `start`, and the types of
//! what it returns.

mod mishap;

#[cfg(feature = "mps2")]
mod cmsdk;
#[cfg(feature = "mps2")]
mod log;
#[cfg(feature = "mps2")]
mod mps2;
#[cfg(feature = "mps2")]
pub use mps2::{Input, NodeHardware, Output, start};

/// What the node's task is started with.
pub struct Board {
    /// The link from the host,
    pub input: Input,
    /// and to it.
    pub output: Output,
    /// Everything else.
    pub hardware: NodeHardware,
}
