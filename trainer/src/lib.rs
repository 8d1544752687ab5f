#![doc = include_str!("../README.md")]
//!
//! # The modules in the order data takes through them
//!
//! 1. [`entry`]: what is known about a problem in order to train on it. [`published`]: that of the
//!    published ones; a user's own come in a list of their own.
//! 2. [`policy`]: the network every agent carries, as a Burn module.
//! 3. [`adjoint`]: one closed-loop time step in plain Rust — observe, decide, act, let the field go
//!    on — each piece a function with its adjoint beside it; [`loss`] scores it the same way.
//!    [`tensor_step`]: the field's part in Burn's tensor operations instead.
//! 4. [`swarm`]: how many agents an episode has. [`family`]: what coefficients its equation has. [`trial`]: an episode and what befalls the swarm in it. [`hunted`]: those in which one was found to fail. [`rollout`]: whole episodes forwards and
//!    backwards, wherever that is computed: [`host_loop`], in parallel, from those pieces; `gpu` (with
//!    the feature of that name), from the compute kernels that [`kernels`] makes. [`engine`] chooses. [`ranks`]: on several processes.
//! 5. [`reference`](mod@reference): the same loop for heat-1d from plain tensor operations: the
//!    oracle of the tests.
//! 6. [`recipe`]: the settings a problem is trained with. [`learn`]: fresh episodes, gradient,
//!    clip, Adam. [`checkpoint`] freezes a training between two steps, [`run`] keeps it on disk,
//!    [`report`] draws it. [`training`] is what one is asked to be and how it begins, on the
//!    [`backend`] it is to run on; [`background`] lets it run while a program does something else.
//! 7. [`export`]: the frozen policy, as agents read it. [`inspect`]: as people do. [`nmpc`], [`dpc`]: yardsticks that decide for all agents in the simulator. [`cli`]: all of it on the command line.
//!
//! What the field does, how episodes are drawn and what counts as good comes from
//! [`problem`]; no constant of a problem stands here.

#![deny(unsafe_code)]

pub mod adjoint;
pub mod backend;
pub mod background;
pub mod checkpoint;
pub mod cli;
pub mod described;
pub mod dpc;
pub mod engine;
pub mod entry;
pub mod export;
pub mod family;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host_loop;
pub mod hunted;
pub mod inspect;
pub mod kernels;
pub mod learn;
pub mod loss;
pub mod nmpc;
pub mod oracle;
pub mod policy;
pub mod published;
pub mod ranks;
pub mod recipe;
pub mod reference;
pub mod report;
pub mod rollout;
pub mod run;
pub mod swarm;
pub mod tensor_step;
pub mod training;
pub mod trial;
