//! `cargo xtask reproduce`: the studies, optimised. They are a program of their own, so that they can
//! run on a machine without a source tree.

use anyhow::Result;
use clap::Args;

use crate::{command::succeed, programs::Build};

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

/// Runs them.
pub fn run(options: &Options, build: Build) -> Result<()> {
    succeed(
        build
            .program("studies", "reproduce")?
            .args(&options.arguments),
    )
}
