//! The emulated board as a link: for `cargo xtask`, and for tests that need a node that is not a
//! function call away; and the example in C on the same board.

pub mod c_example;
pub mod device_log;
pub mod emulator;
