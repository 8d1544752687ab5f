//! `cargo xtask bench host`: the benchmark in `bench/host`, which is apart from the workspace because
//! tract takes minutes to compile.

use anyhow::Result;

use crate::{command::succeed, firmware::built_apart, stages::cargo};

/// Builds and runs it.
pub fn run() -> Result<()> {
    let mut bench = cargo();
    bench
        .args([
            "run",
            "--release",
            "--manifest-path",
            "bench/host/Cargo.toml",
        ])
        .arg("--target-dir")
        .arg(built_apart("host-bench"))
        // tract makes errors on its way that nobody sees; their backtraces would count against it.
        .env("RUST_BACKTRACE", "0");
    succeed(&mut bench)
}
