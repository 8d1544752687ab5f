//! `cargo xtask fuzz`: looks for inputs that break agent-core.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use crate::{
    command::{say, succeed},
    firmware::{built_apart, root},
    setup,
};

/// What is fuzzed; each is a file of `agent-core/fuzz/fuzz_targets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Bytes as a policy; what parses is run.
    Parse,
    /// Good policies on any patches, places and clocks.
    Step,
    /// Bytes from a line.
    Frame,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Step => "step",
            Self::Frame => "frame",
        }
    }

    /// Its name among the stages of `cargo xtask test`.
    pub fn stage(self) -> &'static str {
        match self {
            Self::Parse => "fuzz: policies",
            Self::Step => "fuzz: steps",
            Self::Frame => "fuzz: frames",
        }
    }
}

/// What to do with the targets.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask fuzz\n  \
    cargo xtask fuzz parse --runs 10000000\n  \
    cargo xtask fuzz step --sanitizer address --seconds 600")]
pub struct Options {
    /// What to fuzz. Default: all.
    targets: Vec<Target>,
    /// How long, for each.
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "runs")]
    seconds: u64,
    /// How many inputs, for each.
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Only run this input again.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "runs"])]
    input: Option<PathBuf>,
    /// Compile for a sanitizer; several times slower. What is fuzzed has no `unsafe` of its own, and
    /// its tests run under AddressSanitizer anyway.
    #[arg(long, value_enum, default_value_t = Sanitizer::None)]
    sanitizer: Sanitizer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sanitizer {
    None,
    Address,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Address => "address",
        }
    }
}

impl Options {
    /// All of them, for so many seconds each.
    pub fn all(seconds: u64) -> Self {
        Self {
            targets: Vec::new(),
            seconds,
            runs: None,
            input: None,
            sanitizer: Sanitizer::None,
        }
    }

    /// The targets asked for.
    pub fn targets(&self) -> &[Target] {
        match &self.targets[..] {
            [] => Target::value_variants(),
            given => given,
        }
    }
}

/// Builds the targets and runs those asked for, one after the other.
pub fn run(options: &Options) -> Result<()> {
    let program = setup::fuzzer()?;
    let fuzzer = Fuzzer::build(&program, options)?;
    for target in options.targets() {
        say!("\n{}", target.stage());
        fuzzer.run(*target)?;
    }
    Ok(())
}

/// All targets, compiled.
pub struct Fuzzer<'a> {
    program: &'a Path,
    options: &'a Options,
}

impl<'a> Fuzzer<'a> {
    /// Compiles the targets with the `cargo-fuzz` given.
    pub fn build(program: &'a Path, options: &'a Options) -> Result<Self> {
        let fuzzer = Self { program, options };
        succeed(&mut fuzzer.command("build"))?;
        Ok(fuzzer)
    }

    /// Runs one of them; an error if it has found something.
    pub fn run(&self, target: Target) -> Result<()> {
        let name = target.name();
        let start = SystemTime::now();
        let mut command = self.command("run");
        command.arg(name);
        match &self.options.input {
            // The fuzzer runs in the workspace's folder, the caller perhaps elsewhere.
            Some(input) => {
                let input = input.canonicalize();
                command.arg(input.context("cannot find the input")?);
            }
            None => {
                // New inputs go to the first folder, so that a run leaves the sources alone.
                let found = built_apart("fuzz").join("corpus").join(name);
                fs::create_dir_all(&found)
                    .with_context(|| format!("cannot make {}", found.display()))?;
                command.arg(found).arg(sources().join("corpus").join(name));
            }
        }
        command.args(["--", "-print_final_stats=1"]);
        command.arg(match self.options.runs {
            Some(runs) => format!("-runs={runs}"),
            None => format!("-max_total_time={}", self.options.seconds),
        });
        let Err(error) = succeed(&mut command) else {
            return Ok(());
        };
        match finding(target, start) {
            Some(file) => bail!(
                "{} found something: {}\nRun it again with `cargo xtask fuzz {name} --sanitizer {} \
                 --input {}`",
                target.stage(),
                file.display(),
                self.options.sanitizer.name(),
                file.display()
            ),
            None => Err(error),
        }
    }

    fn command(&self, task: &str) -> Command {
        let sanitizer = self.options.sanitizer.name();
        let mut command = Command::new(self.program);
        command
            .args(["fuzz", task, "--sanitizer", sanitizer, "--fuzz-dir"])
            .arg(sources())
            .arg("--target-dir")
            .arg(built_apart("fuzz").join(sanitizer))
            // Coverage and sanitizers are unstable; a stable compiler takes them with this.
            .env("RUSTC_BOOTSTRAP", "1");
        command
    }
}

fn sources() -> PathBuf {
    root().join("agent-core/fuzz")
}

/// The newest input that the target has failed on since `start`.
fn finding(target: Target, start: SystemTime) -> Option<PathBuf> {
    let folder = sources().join("artifacts").join(target.name());
    let files = fs::read_dir(folder).ok()?.flatten();
    let dated = files.filter_map(|file| {
        let written = file.metadata().ok()?.modified().ok()?;
        (written >= start).then(|| (written, file.path()))
    });
    dated.max().map(|(_, path)| path)
}
