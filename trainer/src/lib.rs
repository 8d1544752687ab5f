//! Learns one shared policy for a swarm by differentiating through the field it controls.
//!
//! In the order data takes through it:
//!
//! 1. [`policy`]: the network every agent carries, as a Burn module.
//! 2. [`adjoint`]: one closed-loop time step in plain Rust — observe, decide, act, let the field go
//!    on — each piece a function with its adjoint beside it; [`loss`] scores it the same way.
//! 3. [`trial`]: an episode and what befalls the swarm in it. [`rollout`]: whole episodes forwards
//!    and backwards, in parallel, from those pieces; [`operation`] makes that one differentiable
//!    Burn operation.
//! 4. [`reference`](mod@reference): the same loop for heat-1d from plain tensor operations: the
//!    oracle of the tests.
//! 5. `gpu` (with the feature of that name): the rollout again, as compute kernels.
//! 6. [`recipe`]: the settings each problem is trained with. [`learn`]: fresh episodes, gradient,
//!    clip, Adam. [`checkpoint`] freezes a training between two steps, [`run`] keeps it on disk,
//!    [`report`] draws it.
//! 7. [`export`]: the frozen policy, as agents read it.
//!
//! What the field does, how episodes are drawn and what counts as good comes from
//! [`problem`]; no constant of a problem stands here.
#![deny(unsafe_code)]

pub mod adjoint;
pub mod checkpoint;
pub mod export;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod learn;
pub mod loss;
pub mod operation;
pub mod oracle;
pub mod policy;
pub mod recipe;
pub mod reference;
pub mod report;
pub mod rollout;
pub mod run;
pub mod store;
pub mod trial;
