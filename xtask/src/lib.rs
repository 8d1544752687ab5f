//! What `cargo xtask` and its tests share: the example in C on the emulated board.

pub mod c_example;
