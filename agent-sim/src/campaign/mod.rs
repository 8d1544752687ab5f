//! Many runs held to what is required: where in a space of scenarios a swarm fails, and how often.
//!
//! 1. A [`Space`] is a scenario's file in which some values stand for ranges of them; every point of
//!    the space is a [`Scenario`](crate::scenario::Scenario) like any other.
//! 2. [`Points`] are tried: those of a grid, of a Sobol sequence, or by chance.
//! 3. A [`Record`] is what became of one of them; a [`Ledger`] keeps them, so that what is stopped goes on, and what
//!    several programs share comes together.
//! 4. A [`Tally`] says what they come to.
//!
//! [`hunt`](crate::hunt) searches the same spaces for the worst instead.

mod ledger;
mod sample;
mod space;
mod tally;

pub use ledger::{BadLedger, Ledger, Record};
pub use sample::{Points, Sampling};
pub use space::{BadSpace, Settings, Space, Varied};
pub use tally::{Tally, wilson};
