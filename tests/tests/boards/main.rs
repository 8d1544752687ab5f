//! The images in the emulated boards, through the line they have in the field: [`line`] the node
//! and its link, [`mishaps`] what becomes of nodes that come to grief, [`keyed`] nodes that obey not
//! everybody, [`c_example`] the agent in C.
//!
//! `cargo xtask test` builds the images and says where they are.

mod c_example;
mod keyed;
mod line;
mod mishaps;
