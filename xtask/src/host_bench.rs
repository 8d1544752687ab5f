//! `cargo xtask bench host`: the benchmark in `bench/host`, which is apart from the workspace because
//! tract takes minutes to compile.

use anyhow::Result;
use clap::Args;

use crate::{
    command::succeed,
    firmware::{built_apart, target},
    stages::cargo,
};

#[derive(Args)]
pub struct Options {
    /// Only see that it works, unoptimised: the figures mean nothing.
    #[arg(long)]
    smoke: bool,
}

/// Builds and runs it.
pub fn run(options: &Options) -> Result<()> {
    let mut bench = cargo();
    bench.args(["run", "--manifest-path", "bench/host/Cargo.toml"]);
    bench.arg("--target-dir");
    match options.smoke {
        // Among what tests have built are some of tract's dependencies.
        true => bench.arg(target()).args(["--", "--smoke"]),
        false => bench.arg(built_apart("host-bench")).arg("--release"),
    };
    // tract makes errors on its way that nobody sees; their backtraces would count against it.
    succeed(bench.env("RUST_BACKTRACE", "0"))
}
