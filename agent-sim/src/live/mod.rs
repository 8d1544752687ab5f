//! A run in the browser: the field as it goes, and hands on it.
//!
//! 1. [`play`](play::play) is the loop. What is run is a [`Scenario`](crate::scenario::Scenario), and hands
//!    do nothing but change it: a kill is one more fault, a stroke of the brush one more touch. Where the
//!    past of agents in this process depends on it, the run is made again from its start, so that a saved
//!    scenario is what was seen, bit for bit. Boards cannot be taken back: what is done to them is done.
//! 2. [`Hub`] stands between the loop and its viewers. It holds the newest frame and nothing older: a slow
//!    viewer misses frames and slows nobody.
//! 3. [`attend`] sees to one viewer, at the other end of any [`Line`]. [`serve`] is the web server: the page,
//!    and a WebSocket for each viewer. Where the loop itself is in the browser (the crate `web`), lines are
//!    its messages.
//! 4. [`Frame`] is what goes over it.
//! 5. [`Broadcast`] shows a run that somebody else drives, to be looked at only.

#[cfg(not(target_family = "wasm"))]
mod broadcast;
mod command;
mod frame;
mod history;
mod hub;
mod lens;
pub mod play;
mod scene;
#[cfg(not(target_family = "wasm"))]
pub mod serve;
mod viewer;

#[cfg(not(target_family = "wasm"))]
pub use broadcast::Broadcast;
pub use command::{Command, Paint};
pub use frame::{Frame, Raster};
pub use hub::{Ear, Hub, Order, Orders, Seat};
pub use viewer::{Gone, Heard, Line, News, attend};
