//! Long runs against nodes, and comparisons of boards with the host, each told in a few lines.
//!
//! `cargo xtask soak`, `torture`, `firmware run`, `firmware bench` and `firmware c` build the images
//! and run this.

mod by_itself;
mod compare;
mod instructions;
mod peer;
mod report;

use artifacts::say;
use clap::{Parser, Subcommand};
use endurance::{c_example, observations::Blob};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Puts nodes and links through more than they will ever see.
#[derive(Parser)]
#[command(after_help = "`cargo xtask` builds the images and runs this:\n  \
    cargo xtask soak --link qemu\n  \
    cargo xtask torture --frames 100000\n  \
    cargo xtask firmware run --policy policies/heat-1d.policy")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Control an agent over a line that drops, corrupts, doubles and reorders 1 % of the frames
    /// each: no wrong action, no dead-lock, no leak.
    Soak {
        #[command(flatten)]
        options: report::Options,
        /// The node's image, run in the emulator. Default: the node's code on a thread of this
        /// process.
        #[arg(long, value_name = "ELF")]
        image: Option<PathBuf>,
    },
    /// Send malformed frames to a live emulated node, which must go on answering.
    Torture {
        #[command(flatten)]
        options: report::Options,
        /// The node's image.
        #[arg(long, value_name = "ELF")]
        image: PathBuf,
    },
    /// Give an emulated node a policy and compare its actions bit for bit with the host's.
    Compare(compare::Options),
    /// Count the instructions of a control step on the emulated core.
    Instructions(instructions::Options),
    /// Run images of the example in C and compare their actions bit for bit with the host's.
    CExample {
        /// The images.
        #[arg(value_name = "ELF", required = true)]
        images: Vec<PathBuf>,
        /// The policy in them.
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Soak { options, image } => report::soak_link(&options, image.as_deref()),
        Task::Torture { options, image } => report::torture_node(&options, &image),
        Task::Compare(options) => compare::run(&options),
        Task::Instructions(options) => instructions::run(&options),
        Task::CExample { images, policy } => run_examples(&images, &policy),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The shipped policies.
fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

/// Runs the examples in C and prints what they do; an error if a bit differs.
fn run_examples(images: &[PathBuf], policy: &Path) -> anyhow::Result<()> {
    let blob = Blob::read(policy)?;
    let policy = blob.policy()?;
    for elf in images {
        let steps = c_example::run(elf)?;
        let replay = c_example::replay(&steps, &policy)?;
        say!("{}", elf.display())?;
        for difference in &replay.differing {
            say!("{difference}")?;
        }
        say!(
            "{} actions from C on the emulated board, {} differ from the host's; {} bytes of stack",
            replay.actions,
            replay.differing.len(),
            replay.stack
        )?;
        if !replay.differing.is_empty() {
            anyhow::bail!("the same steps give other actions on the board than on the host");
        }
    }
    Ok(())
}
