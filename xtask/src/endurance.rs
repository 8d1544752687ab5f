//! The runs against nodes: a program of its own, which needs the node's code and what talks to it.
//! Here only its images are built and its arguments put together.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::{
    path::{Path, PathBuf, absolute},
    process::Command,
};

use crate::{
    board::{Board, Image},
    c_library,
    command::succeed,
    firmware::{self, root},
    peer,
    programs::Build,
    setup::Toolchain,
    throwaway,
};

/// Where the node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// The node's code on a thread of the host's process.
    Host,
    /// The image in the emulator.
    Qemu,
}

/// How long, and with what.
#[derive(Args)]
pub struct Options {
    /// How many frames to send. Default: a million.
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    /// The policy that the node runs. Default: policies/heat-1d.policy.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// How a policy is run on the emulated board.
#[derive(Args)]
pub struct Comparison {
    /// The emulated board's name.
    #[arg(long, value_name = "NAME", default_value = "mps2-an386")]
    pub board: Board,
    /// The policy blob.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// How many observations to send. Default: 32.
    #[arg(long, value_name = "N")]
    observations: Option<u32>,
    /// Show the node's log, decoded.
    #[arg(long)]
    log: bool,
}

/// Which steps are counted.
#[derive(Args)]
pub struct Count {
    /// A policy blob; can be given several times. Default: all of policies/.
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// Without TensorFlow Lite Micro, which takes a C++ compiler for the node and a minute to build.
    #[arg(long)]
    alone: bool,
}

/// Frames over a bad line, to the node's code on the host or, with an image, to an emulated board.
pub fn soak(build: Build, options: &Options, image: Option<&Path>) -> Result<()> {
    let mut soak = endurance(build, "soak")?;
    if let Some(image) = image {
        soak.arg("--image").arg(image);
    }
    options.add_to(&mut soak)?;
    succeed(&mut soak)
}

/// Malformed frames into an emulated board.
pub fn torture(build: Build, options: &Options, image: &Path) -> Result<()> {
    let mut torture = endurance(build, "torture")?;
    torture.arg("--image").arg(image);
    options.add_to(&mut torture)?;
    succeed(&mut torture)
}

/// The same policy and observations on an emulated board and on the host.
pub fn compare(build: Build, options: &Comparison, image: &Path) -> Result<()> {
    let mut compare = endurance(build, "compare")?;
    compare.args(["--machine", options.board.name()]);
    compare.arg("--image").arg(image);
    add(&mut compare, "--policy", &options.policy)?;
    if let Some(observations) = options.observations {
        compare.args(["--observations", &observations.to_string()]);
    }
    if options.log {
        compare.arg("--log");
    }
    succeed(&mut compare)
}

/// Instructions per control step, beside what heat-1d's network takes in a library that others use,
/// if that is asked for and can be had here.
pub fn count_instructions(
    build: Build,
    toolchain: &Toolchain,
    options: &Count,
    image: &Path,
) -> Result<()> {
    let mut count = endurance(build, "instructions")?;
    count.arg("--image").arg(image);
    let keyed = firmware::build(toolchain, Image::keyed(Board::An386))?;
    count.arg("--keyed").arg(keyed);
    count.arg("--keys").arg(throwaway::folder());
    count.arg("--standalone");
    count.arg(firmware::build(toolchain, Image::standalone(Board::An386))?);
    for policy in &options.policy {
        add(&mut count, "--policy", policy)?;
    }
    let peer = (!options.alone).then(peer::source);
    if let Some(Ok(source)) = &peer {
        count.arg("--peer").arg(peer::build(toolchain, source)?);
    }
    succeed(&mut count)?;
    if let Some(Err(error)) = peer {
        println!("\nNot compared with {}: {error:#}", peer::NAME);
    }
    Ok(())
}

/// The example in C, small and fast, on an emulated board and on the host.
pub fn run_c_examples(build: Build, toolchain: &Toolchain) -> Result<()> {
    let mut run = endurance(build, "c-example")?;
    run.arg("--policy").arg(root().join(c_library::POLICY));
    succeed(run.args(c_library::examples(toolchain)?))
}

impl Options {
    fn add_to(&self, command: &mut Command) -> Result<()> {
        if let Some(frames) = self.frames {
            command.args(["--frames", &frames.to_string()]);
        }
        match &self.policy {
            Some(policy) => add(command, "--policy", policy),
            None => Ok(()),
        }
    }
}

/// The program, with one of its commands.
fn endurance(build: Build, task: &str) -> Result<Command> {
    let mut command = build.program("endurance", "endurance")?;
    command.arg(task);
    Ok(command)
}

/// Adds a file as who runs us names it: commands run in the workspace's folder.
fn add(command: &mut Command, flag: &str, file: &Path) -> Result<()> {
    let file = absolute(file).with_context(|| format!("cannot find {}", file.display()))?;
    command.arg(flag).arg(file);
    Ok(())
}
