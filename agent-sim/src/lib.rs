#![doc = include_str!("../README.md")]
//!
//! # The modules in the order in which a run uses them
//!
//! 1. [`problem`]: what is controlled, with every constant, and which episodes.
//!    [`artifacts::policy_file`]: the blob that agents run. [`scenario`]: all of it written down, with
//!    what goes wrong.
//! 2. [`controller`]: who commands the actuators (nobody, [`proportional`] or [`coverage`] feedback, a policy, or a
//!    [`centre`] that decides for all) and an
//!    [`Experiment`](controller::Experiment) that puts one against an episode.
//! 3. [`episode`]: the closed loop. Every step it shows each agent of the [`swarm`] its patch of
//!    the field ([`sense`], at the sensors' spacing) over its [`link`], adds up what
//!    they do, lets the field evolve ([`plant`]: [`problem::pde`], or any other solver) and moves the agents. [`fault`]s are
//!    wrappers over links.
//!    [`standing`]: agents that sense by themselves, with thermometers of their own.
//!    [`puppets`]: the same loop, opened: agents are told from outside what to do.
//! 4. [`problem::metrics`]: the scores; [`trajectory`] and [`recording`]: what is kept of a run; [`report`]: the
//!    pictures, [`table`] the figures in columns; [`mod@bench`]: how fast all this is. [`cli`]: all of it on the
//!    command line, for the published problems or a user's own.
//! 5. [`live`]: a run in the browser; [`touch`]: what is done to it by hand.
//! 6. [`agents`]: agents without a run, for programs that have a field of their own; [`answering`]: the
//!    same at the end of lines, for runs elsewhere.
//!
//! Three things hold everywhere. Nothing an agent can read depends on how many there are. The same
//! seed gives the same trajectory to the last bit, whatever the number of threads. Agents work in
//! single precision, as they do on boards; the field is kept in double precision.
//!
//! Compiled to WebAssembly there is no operating system, so what needs one is left out: [`cli`] with
//! [`campaign`], [`hunt`] and [`mod@bench`], boards, plants in other programs, and the web server.

#![forbid(unsafe_code)]
// Some of what is left out there is the only user of something.
#![cfg_attr(target_family = "wasm", allow(dead_code, unused_imports))]

pub mod agents;
pub mod answering;
#[cfg(not(target_family = "wasm"))]
pub mod bench;
#[cfg(not(target_family = "wasm"))]
pub mod campaign;
pub mod centre;
#[cfg(not(target_family = "wasm"))]
pub mod cli;
pub mod controller;
pub mod coverage;
pub mod episode;
pub mod fault;
mod held;
#[cfg(not(target_family = "wasm"))]
pub mod hunt;
pub mod link;
pub mod live;
pub mod plant;
pub mod proportional;
pub mod puppets;
mod readings;
pub mod recording;
pub mod report;
pub mod requirement;
#[cfg_attr(target_family = "wasm", path = "rig/absent.rs")]
pub mod rig;
pub mod scenario;
pub mod sense;
pub mod standing;
pub mod swarm;
pub mod table;
pub mod touch;
pub mod trajectory;
