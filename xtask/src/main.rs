//! `cargo xtask`: what a shell script would do elsewhere, in Rust.
//!
//! [`stages`] runs all that CI runs; [`setup`] finds or installs the tools for the firmware;
//! [`firmware`] builds the image of a [`board`], which is measured and run; [`c_library`] does so
//! with agent-core for C; [`fuzz`] and [`sanitize`] look for what tests do not think of;
//! [`endurance`] puts a link and a node through more than they will ever see; [`reproduce`] measures
//! every claim again.

mod bench;
mod board;
mod c_library;
mod command;
mod endurance;
mod firmware;
mod fuzz;
mod host_bench;
mod peer;
mod reproduce;
mod run;
mod sanitize;
mod setup;
mod size;
mod stages;

use anyhow::Context;
use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

use board::{Board, Image};
use clap::{Parser, Subcommand, ValueEnum};
use endurance::Place;

/// Automation for this workspace.
#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Examples:\n  \
    cargo xtask test\n  \
    cargo xtask fuzz parse --seconds 600\n  \
    cargo xtask reproduce --quick cardinality\n  \
    cargo xtask firmware build --board pico2\n  \
    cargo xtask firmware run --policy policies/heat-1d.policy\n  \
    cargo xtask firmware c"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything CI needs: set-up, format, lints, firmware, size budget, all tests, sanitizer and
    /// fuzzer.
    ///
    /// Installs what it may; what cannot be had is skipped loudly, and is a failure with CI=true.
    Test,
    /// Look for inputs that break agent-core.
    Fuzz(fuzz::Options),
    /// Measure every claim about the shipped policies again: tables, CSV and pictures.
    ///
    /// `--quick` (few episodes, under a minute) or `--full` (half an hour), then studies by name; all if
    /// none is named.
    Reproduce(reproduce::Options),
    /// Run agent-core's tests under AddressSanitizer.
    Sanitize,
    /// Run agent-core's unit tests in Miri, with a nightly toolchain.
    Miri,
    /// Measure on this machine.
    #[command(subcommand)]
    Bench(Bench),
    /// Control an agent over a line that drops, corrupts, doubles and reorders 1 % of the frames
    /// each: no wrong action, no dead-lock, no leak.
    Soak {
        #[command(flatten)]
        options: endurance::Options,
        /// Where the node is.
        #[arg(long, value_enum, default_value = "host")]
        link: Place,
    },
    /// Send malformed frames to a live emulated node, which must go on answering.
    Torture(endurance::Options),
    /// The node's image: build it, measure it, run it in the emulator.
    #[command(subcommand)]
    Firmware(Firmware),
}

#[derive(Subcommand)]
enum Bench {
    /// One control step of heat-1d against the same network in tract, and against the core's peak.
    Host,
}

#[derive(Subcommand)]
enum Firmware {
    /// Build a board's image and say where it is.
    Build {
        /// The board's name, or `all`.
        #[arg(long, value_name = "NAME", default_value = "mps2-an386", value_parser = boards)]
        board: Boards,
    },
    /// Build a real board's image, flash it with probe-rs and show its log.
    Flash {
        /// The board's name.
        #[arg(long, value_name = "NAME")]
        board: Board,
    },
    /// Boot the image in the emulator, give it a policy, and compare its actions bit for bit with
    /// those of the same agent on the host.
    Run {
        /// The policy blob.
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
        /// How many observations to send.
        #[arg(long, value_name = "N", default_value_t = 32)]
        observations: u32,
        /// Show the node's log, decoded.
        #[arg(long)]
        log: bool,
    },
    /// Flash, RAM and stack of every image against their budget, and agent-core alone against its
    /// own.
    Size,
    /// agent-core as a static library for C, small and fast: link the example in C with it, which
    /// only a library that cannot panic does, boot it in the emulator, and compare its actions bit
    /// for bit with those of the same agent on the host.
    C,
    /// Instructions per control step on the emulated core, and the control rate that allows; beside
    /// them what heat-1d's network takes in TensorFlow Lite Micro.
    Bench {
        /// A policy blob; can be given several times. Default: all of policies/.
        #[arg(long, value_name = "FILE")]
        policy: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test => stages::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Reproduce(options) => reproduce::run(&options),
        Task::Sanitize => sanitize::address(),
        Task::Miri => sanitize::in_miri(),
        Task::Bench(Bench::Host) => host_bench::run(),
        Task::Soak {
            options,
            link: Place::Host,
        } => endurance::soak_link(&options, None),
        Task::Soak {
            options,
            link: Place::Qemu,
        } => bootable_image().and_then(|image| endurance::soak_link(&options, Some(&image))),
        Task::Torture(options) => {
            bootable_image().and_then(|image| endurance::torture_node(&options, &image))
        }
        Task::Firmware(task) => firmware(task),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One board or all of them.
#[derive(Debug, Clone)]
struct Boards(Vec<Board>);

fn boards(name: &str) -> Result<Boards, String> {
    if name == "all" {
        return Ok(Boards(Board::ALL.to_vec()));
    }
    let board = Board::from_str(name, false).map_err(|_| {
        let names = Board::ALL.map(Board::name).join(", ");
        format!("there is no such board: there are {names}, and `all` of them")
    })?;
    Ok(Boards(vec![board]))
}

/// The node's image, and something to boot it in.
fn bootable_image() -> anyhow::Result<PathBuf> {
    let elf = firmware::build(&setup::toolchain()?, Image::of(Board::An386))?;
    setup::emulator()?;
    Ok(elf)
}

fn firmware(task: Firmware) -> anyhow::Result<()> {
    let toolchain = setup::toolchain()?;
    let image = || firmware::build(&toolchain, Image::of(Board::An386));
    match task {
        Firmware::Build { board } => {
            for board in board.0 {
                let elf = firmware::build(&toolchain, Image::of(board))?;
                println!("{}", elf.display());
            }
            Ok(())
        }
        Firmware::Flash { board } => {
            let chip = board.chip().with_context(|| {
                format!("{} is emulated: `cargo xtask firmware run`", board.name())
            })?;
            let elf = firmware::build(&toolchain, Image::of(board))?;
            let mut probe = Command::new("probe-rs");
            command::succeed(probe.args(["run", "--chip", chip]).arg(elf)).context(
                "cannot flash (probe-rs comes with `cargo install probe-rs-tools --locked`)",
            )
        }
        Firmware::Run {
            policy,
            observations,
            log,
        } => {
            let elf = image()?;
            setup::emulator()?;
            run::run(&elf, &policy, observations, log)
        }
        Firmware::Size => {
            let images = Board::ALL.into_iter().map(Image::signed);
            let built = images.map(|image| Ok((image, firmware::build(&toolchain, image)?)));
            size::check_images(&built.collect::<anyhow::Result<Vec<_>>>()?)?;
            setup::c_compiler()?;
            size::check_library(&toolchain)
        }
        Firmware::C => {
            setup::c_compiler()?;
            setup::emulator()?;
            c_library::run(&toolchain)
        }
        Firmware::Bench { policy } => {
            let elf = image()?;
            setup::emulator()?;
            bench::run(&toolchain, &elf, &policy)
        }
    }
}
