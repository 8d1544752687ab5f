//! `cargo xtask bench host`: the benchmark in `bench/host`, which is apart from the workspace because
//! tract takes minutes to compile.

use anyhow::Result;
use clap::Args;

use crate::{
    command::succeed,
    firmware::built_apart,
    stages::{cargo, checking_cargo},
};

#[derive(Args)]
pub struct Options {
    /// Only see that it works, unoptimised: the figures mean nothing.
    #[arg(long)]
    smoke: bool,
}

/// Builds and runs it.
pub fn run(options: &Options) -> Result<()> {
    let mut bench = match options.smoke {
        // Among what tests have built are some of tract's dependencies.
        true => checking_cargo("run"),
        false => {
            let mut bench = cargo();
            let folder = built_apart("host-bench");
            bench.args(["run", "--release", "--target-dir"]).arg(folder);
            bench
        }
    };
    bench.args(["--manifest-path", "bench/host/Cargo.toml"]);
    if options.smoke {
        bench.args(["--", "--smoke"]);
    }
    // tract makes errors on its way that nobody sees; their backtraces would count against it.
    succeed(bench.env("RUST_BACKTRACE", "0"))
}
