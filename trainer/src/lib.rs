//! Learns one shared policy for a swarm by differentiating through the field it controls.
//!
//! In the order data takes through it:
//!
//! 1. [`policy`]: the network every agent carries, as a Burn module.
//! 2. [`adjoint`]: one closed-loop time step in plain Rust — observe, decide, act, diffuse — each
//!    piece a function with its adjoint beside it; [`loss`] scores it the same way.
//! 3. [`rollout`]: whole episodes forwards and backwards, in parallel, from those pieces;
//!    [`operation`] makes that one differentiable Burn operation.
//! 4. [`reference`](mod@reference): the same loop from plain tensor operations, on any backend:
//!    the oracle of the tests.
//! 5. [`learn`]: fresh episodes, gradient, clip, Adam. [`checkpoint`] freezes a training between
//!    two steps, [`run`] keeps it on disk, [`report`] draws it.
//! 6. [`export`]: the frozen policy, as agents read it.
//!
//! What the field does, how episodes are drawn and what counts as good comes from
//! [`agent_sim::problem`]; no constant of a problem stands here.
#![forbid(unsafe_code)]

pub mod adjoint;
pub mod checkpoint;
pub mod export;
pub mod learn;
pub mod loss;
pub mod operation;
pub mod policy;
pub mod reference;
pub mod report;
pub mod rollout;
pub mod run;
pub mod store;
