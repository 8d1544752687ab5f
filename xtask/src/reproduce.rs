//! `cargo xtask reproduce`: the studies, optimised. They are a program of their own, so that they can
//! run on a machine without a source tree.

use anyhow::Result;
use clap::Args;

use crate::{command::succeed, stages::cargo};

#[derive(Args)]
pub struct Options {
    /// What `reproduce` takes; `cargo xtask reproduce -- --help` shows it.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
}

/// Builds and runs them.
pub fn run(options: &Options) -> Result<()> {
    let mut studies = cargo();
    studies.args(["run", "--release", "-p", "studies", "--"]);
    succeed(studies.args(&options.arguments))
}
