//! The node's image: a board, and the node on it.

#![no_std]
#![no_main]

mod board;

use board::mps2_an386::{self, Board, Link};
use embassy_executor::task;
use firmware::{
    link::{Receiver, Sender},
    node::{self, WORKSPACE},
};
use static_cell::StaticCell;

#[cortex_m_rt::entry]
fn main() -> ! {
    if let Some(board) = mps2_an386::init() {
        let spawner = board.spawner;
        match node(board) {
            Ok(task) => spawner.spawn(task),
            Err(_) => defmt::error!("no room for the node's task"),
        }
    }
    loop {
        cortex_m::asm::wfi();
    }
}

#[task]
async fn node(board: Board) {
    static RECEIVER: StaticCell<Receiver<&Link>> = StaticCell::new();
    static WORKING_MEMORY: StaticCell<[f32; WORKSPACE]> = StaticCell::new();
    let Board {
        link,
        mut slot,
        mut actuator,
        ..
    } = board;
    defmt::info!("firmware {=str}", env!("CARGO_PKG_VERSION"));
    node::run(
        RECEIVER.init_with(|| Receiver::new(link)),
        &mut Sender::new(link),
        &mut slot,
        WORKING_MEMORY.init_with(|| [0.0; WORKSPACE]),
        &mut actuator,
    )
    .await
}
