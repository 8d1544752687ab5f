//! Asks a node who it is and how it fares, over TCP:
//!
//! ```text
//! cargo run -p node-link --example talk_to_a_node -- 127.0.0.1:4000
//! ```

use node_link::{Session, tcp};
use std::{error::Error, time::Duration};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("where is it? Give HOST:PORT")?;
    let mut session = Session::new(tcp::connect(&address)?);
    session.hello(PATIENCE)?;
    let node = session.status(PATIENCE)?;
    println!("{} with firmware {}", node.board, node.firmware);
    match node.active {
        Some(slot) => println!("runs the policy in slot {slot}"),
        None => println!("has no policy to run"),
    }
    println!("{:?}", session.counters());
    Ok(())
}
