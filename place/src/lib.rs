#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! 1. A [`record`] says what is particular about a place. It is checked once, alone and against the policy
//!    that is to run there; nothing behind that check can fail.
//! 2. [`sight`]: what sensors read becomes a patch, or nothing where too little can be seen.
//! 3. [`neighbours`]: what others measure, heard on a bus that all of them share, becomes part of it.
//! 4. [`aim`]: what the field should be there, at any time.
//! 5. [`conduct`]: how the node says that it gets on.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod aim;
pub mod conduct;
pub mod neighbours;
pub mod record;
pub mod sight;

pub use conduct::Conduct;
pub use record::{Equipment, Fault, Place};
pub use sight::Sight;
