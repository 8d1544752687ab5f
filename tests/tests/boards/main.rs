//! The images in the emulated boards, through the line they have in the field: [`line`] the node
//! and its link, [`mishaps`] what becomes of nodes that come to grief, [`keyed`] nodes that obey not
//! everybody, [`c_example`] the agent in C.
//!
//! `cargo xtask test` builds the images and says where they are.

mod c_example;
mod keyed;
mod line;
mod mishaps;

use agent_core::message::Hello;
use node_link::Session;
use std::time::{Duration, Instant};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a board says whose process was started again. Its old line breaks when it breaks, and there
/// is a new one when the emulator is up.
fn started_again(node: &mut Session) -> Hello {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match node.reopen().and_then(|()| node.hello(PATIENCE)) {
            Ok(hello) => return hello,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}
