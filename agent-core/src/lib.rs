//! Everything that runs on an agent.
#![no_std]
#![forbid(unsafe_code)]
