//! What the programs keep: [`policy_file`], the blobs that agents run; [`output`], files that are
//! either there and whole, or not there; [`observation`], what an agent was shown.
//!
//! The simulator and the trainer both need these and must not need each other.
#![forbid(unsafe_code)]

pub mod observation;
pub mod output;
pub mod policy_file;
