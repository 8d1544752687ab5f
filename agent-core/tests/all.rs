//! All of agent-core's integration tests in one program: linked once, and run side by side.

mod agent_states;
mod convolutions;
mod golden;
mod governor;
mod int8;
mod memory;
mod plane;
mod policy_blob;
mod published_network;
mod rates;
mod sample;
mod self_test;
mod shipped;
mod together;
