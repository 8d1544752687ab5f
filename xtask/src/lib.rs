//! What `cargo xtask` and its tests share: the example in C on the emulated board, the node's code
//! on the host, and what links and nodes are put through.

pub mod c_example;
pub mod host_node;
pub mod observations;
pub mod soak;
pub mod torture;
