//! `cargo xtask`: what a shell script would do elsewhere, in Rust.
//!
//! [`stages`] runs all that CI runs; [`setup`] finds or installs the tools for the firmware;
//! [`mod@firmware`] builds the image of a [`board`], which is measured and run; [`c_library`] does so
//! with agent-core for C; [`package`], [`python`], [`c_packages`] and [`web`] make what is handed to others; [`fuzz`] and
//! [`sanitize`] look for what tests do not think of, [`dependencies`] at what others wrote; [`cluster`] writes jobs for schedulers, and tries them in a
//! [`slurm`] of one node; [`endurance`]
//! runs what puts nodes through more than they will ever see; [`reproduce`] measures every claim again.
//! What these run are programs of their own: this crate only builds and starts them.

mod baselines;
mod board;
mod c_library;
mod c_packages;
mod cluster;
mod command;
mod dependencies;
mod endurance;
mod firmware;
mod fuzz;
mod host_bench;
mod package;
mod page;
mod peer;
mod programs;
mod python;
mod reproduce;
mod sanitize;
mod setup;
mod size;
mod slurm;
mod smoke;
mod stages;
mod throwaway;
mod web;

use anyhow::{Context, ensure};
use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

use board::{Board, Image, complete};
use clap::{Parser, Subcommand, ValueEnum};
use endurance::Place;
use programs::Build;

/// Automation for this workspace.
#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Examples:\n  \
    cargo xtask test\n  \
    cargo xtask test --fast\n  \
    cargo xtask fuzz parse --seconds 600\n  \
    cargo xtask reproduce --quick cardinality\n  \
    cargo xtask firmware build --board pico2\n  \
    cargo xtask firmware run --policy policies/heat-1d.policy\n  \
    cargo xtask firmware c\n  \
    cargo xtask web\n  \
    cargo xtask baselines train mappo heat-1d --budget 10m --seed 1"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything CI needs: set-up, format, lints, firmware, size budget, all tests, documentation,
    /// sanitizer, fuzzer and audit of dependencies.
    ///
    /// Installs what it may; what cannot be had is skipped loudly, and is a failure with CI=true.
    Test {
        /// While at work: format, lints and the quick tests on this machine; installs nothing.
        #[arg(long)]
        fast: bool,
    },
    /// Run the commands that README.md and docs name, each in a form that takes seconds, with the
    /// programs that the tests of `cargo xtask test` were run with; on the emulated board
    /// and on a GPU where they are there.
    Smoke,
    /// Look for inputs that break agent-core.
    Fuzz(fuzz::Options),
    /// The page of live runs: write what is served from its TypeScript, hold it to that, and try it in a
    /// browser with the program that the tests have built.
    Page,
    /// The page of live runs with the simulator in it, compiled to WebAssembly: a folder of files that any
    /// web server can host.
    Web {
        /// The folder [default: target/web]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Hold dependencies against deny.toml: licences, sources, duplicates, and known holes where their
    /// database can be had.
    Audit,
    /// Measure every claim about the shipped policies again: tables, CSV and pictures.
    ///
    /// `--quick` (few episodes, under a minute) or `--full` (seventeen minutes on 16 cores), then studies by name; all if
    /// none is named.
    Reproduce(reproduce::Options),
    /// Files that run a campaign in shards on a cluster, and how they are submitted.
    #[command(subcommand)]
    Cluster(cluster::Cluster),
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
    /// Pack every crate that is published as `cargo publish` would, in order, and build each from its
    /// package; nothing is sent.
    Package {
        /// Only pack them.
        #[arg(long)]
        no_verify: bool,
    },
    /// The Python package: lint it, build its wheel and measure that, install it in an environment of its
    /// own, and run its tests.
    Python,
    /// What policies are compared with: PPO, TD3, MAPPO and MATD3, trained on this machine.
    Baselines(baselines::Options),
    /// agent-core for C teams: a CMake package that is a Zephyr module too, and an Arduino library, each
    /// as a zip, after a check that it builds.
    PackageC,
}

#[derive(Subcommand)]
enum Bench {
    /// One control step of heat-1d against the same network in tract, and against the core's peak.
    Host(host_bench::Options),
}

#[derive(Subcommand)]
enum Firmware {
    /// Build a board's image and say where it is.
    Build {
        /// The board's name, or `all`.
        #[arg(long, value_name = "NAME", default_value = "mps2-an386", value_parser = boards)]
        board: Boards,
        /// The image that senses and acts by itself, for a board that has sensors.
        #[arg(long)]
        standalone: bool,
    },
    /// Build a real board's image, flash it with probe-rs and show its log.
    Flash {
        /// The board's name.
        #[arg(long, value_name = "NAME")]
        board: Board,
    },
    /// Boot the image in the emulator, give it a policy, and compare its actions bit for bit with
    /// those of the same agent on the host.
    Run(endurance::Comparison),
    /// Flash, RAM and stack of every image against their budget, and agent-core alone against its
    /// own.
    Size {
        /// The board's name: its image alone, without agent-core's. Or `all`.
        #[arg(long, value_name = "NAME", default_value = "all", value_parser = boards)]
        board: Boards,
    },
    /// agent-core as a static library for C, small and fast: link the example in C with it, which
    /// only a library that cannot panic does, boot it in the emulator, and compare its actions bit
    /// for bit with those of the same agent on the host.
    C,
    /// Instructions per control step on the emulated core, and the control rate that allows; beside
    /// them what heat-1d's network takes in TensorFlow Lite Micro.
    Bench(endurance::Count),
}

fn main() -> ExitCode {
    match perform(Cli::parse(), Build::Release) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(cli: Cli, build: Build) -> anyhow::Result<()> {
    match cli.task {
        Task::Test { fast: false } => stages::run(),
        Task::Test { fast: true } => stages::run_fast(),
        Task::Smoke => smoke::run(&smoke::Here::found()),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Page => page::build().and_then(|()| {
            page::check()?;
            page::browse(&setup::browser()?, Build::Tested)
        }),
        Task::Web { out } => {
            setup::wasm_target()?;
            web::build(&out.unwrap_or_else(web::folder), build)
        }
        Task::Audit => dependencies::run(),
        Task::Reproduce(options) => reproduce::run(&options, build),
        Task::Cluster(task) => cluster::run(&task, build),
        Task::Sanitize => sanitize::address(),
        Task::Miri => sanitize::in_miri(),
        Task::Bench(Bench::Host(options)) => host_bench::run(&options),
        Task::Soak { options, link } => {
            let image = match link {
                Place::Host => None,
                Place::Qemu => Some(bootable_image()?),
            };
            endurance::soak(build, &options, image.as_deref())
        }
        Task::Torture(options) => endurance::torture(build, &options, &bootable_image()?),
        Task::Firmware(task) => firmware(task, build),
        Task::Package { no_verify } => package::run(no_verify),
        Task::Python => python::run(),
        Task::Baselines(options) => baselines::run(&options),
        Task::PackageC => {
            setup::c_compiler()?;
            setup::cmake()?;
            c_packages::run(&setup::toolchain()?)
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

fn firmware(task: Firmware, build: Build) -> anyhow::Result<()> {
    let toolchain = setup::toolchain()?;
    let image = || firmware::build(&toolchain, Image::of(Board::An386));
    match task {
        Firmware::Build { board, standalone } => {
            let all = board.0.len() == Board::ALL.len();
            let mut boards = board.0;
            if standalone {
                let can = |board: &Board| Board::STANDALONE.contains(board);
                ensure!(
                    all || boards.iter().all(can),
                    "no sensors are known of that board: there are some of {}",
                    Board::STANDALONE.map(Board::name).join(", ")
                );
                boards.retain(can);
            }
            let image = match standalone {
                true => Image::standalone,
                false => Image::of,
            };
            for image in boards.into_iter().map(image) {
                let elf = firmware::build(&toolchain, image)?;
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
        Firmware::Run(comparison) => {
            let board = comparison.board;
            ensure!(
                Board::EMULATED.contains(&board),
                "{} is not emulated: `cargo xtask firmware flash`",
                board.name()
            );
            let elf = firmware::build(&toolchain, Image::of(board))?;
            setup::emulator()?;
            endurance::compare(build, &comparison, &elf)
        }
        Firmware::Size { board } => {
            let images = complete().filter(|image| board.0.contains(&image.board));
            let built = images.map(|image| Ok((image, firmware::build(&toolchain, image)?)));
            size::check_images(&built.collect::<anyhow::Result<Vec<_>>>()?)?;
            if board.0.len() < Board::ALL.len() {
                return Ok(());
            }
            setup::c_compiler()?;
            size::check_library(&toolchain)
        }
        Firmware::C => {
            setup::c_compiler()?;
            setup::emulator()?;
            endurance::run_c_examples(build, &toolchain)
        }
        Firmware::Bench(count) => {
            let elf = image()?;
            setup::emulator()?;
            endurance::count_instructions(build, &toolchain, &count, &elf)
        }
    }
}
