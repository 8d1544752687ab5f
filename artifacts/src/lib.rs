//! What the programs keep on disk: [`policy_file`], the blobs that agents run, and [`output`], files
//! that are either there and whole, or not there.
//!
//! The simulator and the trainer both need these and must not need each other.
#![forbid(unsafe_code)]

pub mod output;
pub mod policy_file;
