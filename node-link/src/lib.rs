#![doc = include_str!("../README.md")]
//!
//! # From the node towards the caller
//!
//! 1. A [`Transport`] carries bytes: the socket of an [`emulated`] board, a [`serial`] port, a
//!    [`tcp`] connection, a strand of the line to many agents on a [`network`], or one of these behind a
//!    line that loses things ([`unreliable`]).
//! 2. A [`Session`] makes commands of them and reports, numbered, so that an answer is never taken
//!    for that to another question; it resends what was lost and counts what was damaged.
//! 3. An [`EmulatedBoard`] is the process at the other end, where there is one: it is killed, hung,
//!    restarted and reset like a board on a bench. Several can be on one [`SharedLine`].
//!
//! What a node logs is made readable by [`device_log`]; [`keys`] are files for nodes that obey not
//! everybody and run not everybody's policies.
//!
//! Every call is bounded in time, whoever is at the other end and whatever they send, and none waits
//! by looking again and again. What a node says is made fit for a terminal where it comes in.

#![forbid(unsafe_code)]

pub mod device_log;
pub mod emulated;
pub mod keys;
#[cfg_attr(not(feature = "zenoh"), path = "network/absent.rs")]
pub mod network;
pub mod serial;
pub mod session;
pub mod shared_line;
pub mod tcp;
pub mod unreliable;

mod guarded;
mod leash;
mod offer;
mod plain_text;
mod stream;

pub use emulated::{BoardError, BoardOptions, Clock, EmulatedBoard, Machine, Set, UnknownMachine};
pub use offer::{Offer, PlaceOffer};
pub use plain_text::plain;
pub use session::{LinkCounters, NodeConduct, NodeStatus, Session, SessionError, UploadLimit};
pub use shared_line::SharedLine;

use std::{io, time::Instant};

/// How often more is read, or looked at, after a deadline: it came in time, and we are late. Bounded,
/// because from somebody who never stops there is always more.
const OVERDUE: usize = 16;

/// A byte stream to a node. Every call is bounded in time.
///
/// After an error of any other kind than [`io::ErrorKind::TimedOut`] the stream is broken, and stays
/// it until [`reopen`](Self::reopen) has worked.
pub trait Transport: Send {
    /// Puts bytes on the line.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// What has come, waiting for the first byte until `deadline` at most; 0 if none came.
    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize>;

    /// Opens the stream again after an error. Takes a moment at most; an error until it worked.
    fn reopen(&mut self) -> io::Result<()>;
}
