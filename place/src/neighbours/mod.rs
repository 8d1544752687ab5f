//! What others measure, heard on a bus that all of them share.
//!
//! Every node says now and then what it measures in its own cell, and where and when: a [`bulletin`]. There
//! are no addresses, no count and no master; who is mounted in a cell of a node's window is told by the
//! position that it says. A node's [`hearing`] has room for those cells and for no others, and keeps what may
//! be used of each; its [`window`] becomes a patch from that and from the node's own sensors, on a line or in
//! the plane, as the cells lie in its [`grid`]. How many can share a bus is a matter of [`bandwidth`].
//!
//! Nothing is guessed: a cell is filled by whoever is mounted in it, from between others that are, or by what
//! was last said there for as long as the place tolerates; else too little is seen.

pub mod bandwidth;
pub mod bulletin;
pub mod grid;
pub mod hearing;
pub mod window;

pub use bulletin::Bulletin;
pub use hearing::Hearing;
