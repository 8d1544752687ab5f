//! What nodes and links are put through, and what they must do meanwhile: the same bits as an agent
//! on the host.
//!
//! [`observations`] are what is shown to them. [`host_node`] is the node's own code on the host;
//! [`soak`] gives it a bad line, [`torture`] malformed frames. [`c_example`] is the example in C on
//! the emulated board. Tests run them for seconds, the binary for as long as asked; `cargo xtask`
//! builds the images that it needs.

pub mod c_example;
pub mod host_node;
pub mod observations;
pub mod soak;
pub mod torture;
