//! `cargo xtask baselines`: reinforcement learning with the libraries of that field, in an environment of its
//! own, because they bring gigabytes.

use anyhow::Result;
use clap::Args;
use std::process::Command;

use crate::{command::succeed, firmware::root, programs::Build, python::Environment};

#[derive(Args)]
pub struct Options {
    /// Train every method for some seconds on heat-1d: that all of it works, not that it is good.
    #[arg(long)]
    quick: bool,
    /// What the package takes: `train mappo heat-1d --budget 10m --seed 1`; `cargo xtask baselines -- --help`
    /// shows it.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
}

/// Sets the environment up where it is not, and runs the package there.
pub fn run(options: &Options) -> Result<()> {
    let environment = Environment::of("baselines")?;
    environment.install_wheel(Build::Release)?;
    let mut package = package(&environment);
    if options.quick {
        package.arg("quick");
    }
    succeed(package.args(&options.arguments))
}

fn package(environment: &Environment) -> Command {
    let mut package = environment.program("python");
    package.args(["-m", "fieldswarm_baselines"]);
    package.env("PYTHONPATH", root().join("baselines"));
    package
}
