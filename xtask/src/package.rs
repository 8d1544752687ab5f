//! `cargo xtask package`: the crates as a registry would get them, in the order in which one depends on
//! the other, without sending anything.

use anyhow::Result;
use std::process::Command;

use crate::{command::succeed, firmware::built_apart, stages::cargo};

/// What CI builds from its package alone: what goes into other people's firmware. The others would take
/// minutes, most of them Burn's.
const BUILT_IN_CI: [&str; 2] = ["agent-kernels", "agent-core"];

/// Packs every crate that is published and, unless told otherwise, builds each from its package.
pub fn run(no_verify: bool) -> Result<()> {
    let mut publish = publish();
    publish.arg("--workspace");
    if no_verify {
        publish.arg("--no-verify");
    }
    succeed(&mut publish)
}

/// Packs all, builds the smallest.
pub fn check() -> Result<()> {
    run(true)?;
    let crates = BUILT_IN_CI.iter().flat_map(|name| ["--package", name]);
    succeed(publish().args(crates))
}

/// Files that are not committed go in too: what is tested is what is there.
fn publish() -> Command {
    let mut cargo = cargo();
    cargo
        .args(["publish", "--dry-run", "--allow-dirty", "--target-dir"])
        .arg(built_apart("packages"))
        // Nobody debugs or builds this again.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0");
    cargo
}
