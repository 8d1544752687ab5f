#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! [`policy_file`]: the blobs that agents run; [`arrays`]: the same as arrays and words, for who trains
//! elsewhere; [`fitting`]: what of one follows from its problem; [`import`](mod@import): networks that other programs wrote; [`output`]: files that are either there and whole, or
//! not there; [`lock`]: folders that one program writes to at a time, or several each its [`shard`]; [`seal`]: what is kept from run to
//! run and not believed blindly; [`observation`]: what an agent was shown.
//!
//! The simulator and the trainer both need these and must not need each other.

#![forbid(unsafe_code)]

pub mod arrays;
pub mod fitting;
pub mod import;
pub mod lock;
pub mod observation;
pub mod output;
pub mod policy_file;
pub mod seal;
pub mod shard;
