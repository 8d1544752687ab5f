#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! 1. A policy's name is the SHA-256 of its bytes ([`identity`]).
//! 2. Permission to run it is a signature over a [`manifest`]: what, for whom, how new.
//! 3. Permission to talk to a node is a key of its link, for some [`rights`]; who has it opens a
//!    [`session`], in which every frame proves its sender and its place.
//! 4. Permission to be heard by neighbours is the key of their [`bus`].
//!
//! CRCs are for noise. What is protected from whom, and what is not: `docs/security.md`.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod bus;
pub mod identity;
pub mod manifest;
pub mod rights;
pub mod session;

pub use bus::BusKey;
pub use identity::{Hasher, KeyId, policy_id};
pub use manifest::{Manifest, ManifestFault};
pub use rights::Rights;
pub use session::{Grant, LinkKey, SessionKey};
