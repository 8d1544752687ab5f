//! Live runs within a page: what `agent-sim live` serves, with the simulator compiled to WebAssembly and run
//! in a worker of the page. There is no server; the page is a folder of files that anybody can host.
//!
//! 1. `asked` makes a scenario of the page's address.
//! 2. `agent_sim::live` plays it, as everywhere.
//! 3. `worker` is the browser's side of that loop: how it waits for commands, and the line to the page.
//!
//! `agent-sim/page/worker.ts` is what starts it. Compiled for any other machine, there is the program
//! `web-module`, by which `cargo xtask web` makes of this library what the worker loads.

#![cfg_attr(target_family = "wasm", deny(unsafe_code))]

#[cfg(target_family = "wasm")]
mod asked;
#[cfg(target_family = "wasm")]
mod engine;
#[cfg(target_family = "wasm")]
mod worker;
