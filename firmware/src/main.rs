//! The node's image: a board, and the node on it.

#![no_std]
#![no_main]

#[cfg(feature = "silicon")]
use defmt_rtt as _;

mod board;

use board::{Board, Input};
#[cfg(feature = "virt-rv32")]
use embassy_executor::Executor;
use embassy_executor::task;
use firmware::{
    link::{Receiver, Sender},
    node::{self, WORKSPACE},
};
use static_cell::{ConstStaticCell, StaticCell};

/// A task would keep what it is given twice.
static BOARD: StaticCell<Board> = StaticCell::new();

#[cfg(feature = "cortex")]
#[cortex_m_rt::entry]
fn main() -> ! {
    if let Some((spawner, board)) = board::start() {
        match node(BOARD.init(board)) {
            Ok(task) => spawner.spawn(task),
            Err(_) => defmt::error!("no room for the node's task"),
        }
    }
    loop {
        cortex_m::asm::wfi();
    }
}

/// No interrupt here is made for software: the node's task runs where all others interrupt it.
#[cfg(feature = "virt-rv32")]
#[riscv_rt::entry]
fn main() -> ! {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    // SAFETY: once, and first.
    let board = unsafe { board::start() };
    EXECUTOR
        .init(Executor::new())
        .run(|spawner| match node(BOARD.init(board)) {
            Ok(task) => spawner.spawn(task),
            Err(_) => defmt::error!("no room for the node's task"),
        })
}

#[task]
async fn node(board: &'static mut Board) {
    static RECEIVER: StaticCell<Receiver<&mut Input>> = StaticCell::new();
    // Not to be made on the stack, which it would fill.
    static WORKING_MEMORY: ConstStaticCell<[f32; WORKSPACE]> =
        ConstStaticCell::new([0.0; WORKSPACE]);
    let Board {
        input,
        output,
        hardware,
    } = board;
    defmt::info!(
        "firmware {=str} on {=str}, {}",
        env!("CARGO_PKG_VERSION"),
        hardware.board,
        hardware.history
    );
    if !hardware.last_words.is_empty() {
        defmt::warn!("last words: {=str}", hardware.last_words);
    }
    node::run(
        RECEIVER.init_with(|| Receiver::new(input)),
        &mut Sender::new(output),
        hardware,
        WORKING_MEMORY.take(),
    )
    .await
}
