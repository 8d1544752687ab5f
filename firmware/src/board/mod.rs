//! What a board brings: a link, a clock, a log, a policy slot, an executor.
//!
//! One file per board with its addresses and interrupts; drivers that several
//! boards share lie beside it.

mod cmsdk;
mod log;
pub mod mps2_an386;
