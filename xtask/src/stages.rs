//! `cargo xtask test`: all stages, each with its time, and a summary.

use anyhow::{Result, anyhow, bail};
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    board::{Board, Image},
    c_library,
    command::succeed,
    firmware::{self, root, target},
    fuzz::{self, Fuzzer},
    sanitize,
    setup::{self, Toolchain},
    size, smoke,
};

/// How the tests find the example in C, small and fast; without it they skip what needs it, and
/// say so.
const EXAMPLES_VARIABLE: &str = "C_EXAMPLE_ELFS";

/// The trainer's kernels; their tests run on whatever Vulkan driver there is, also a software one.
const GPU: &str = "trainer/gpu";

/// Packages outside the workspace: one is compiled for the fuzzer, one with a large dependency, one is
/// what a user's own would be.
const APART: [&str; 3] = [
    "agent-core/fuzz/Cargo.toml",
    "bench/host/Cargo.toml",
    OWN_EQUATION,
];

/// A problem in a user's crate.
const OWN_EQUATION: &str = "examples/own-equation/Cargo.toml";

/// Modules that a macro declares, which `cargo fmt` does not see.
const PUBLISHED: [&str; 2] = ["problem/src/published", "trainer/src/published"];

/// How long each fuzz target is run.
const FUZZ_SECONDS: u64 = 20;

/// The cargo that runs us.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// The same for the workspace on this machine. In CI each crate is compiled once: what would make the
/// second time quicker costs time and disk.
pub fn host_cargo() -> Command {
    let mut cargo = cargo();
    if in_ci() {
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// Runs every stage, also after one has failed: one run tells all there is to mend.
pub fn run() -> Result<()> {
    let mut log = Log::default();
    let toolchain = log.optional("set-up: compiler for the node", || {
        let toolchain = setup::toolchain()?;
        println!("{}", toolchain.describe());
        Ok(toolchain)
    });
    let emulator = log.optional("set-up: emulator", setup::emulator);
    let c_compiler = log.optional("set-up: C compiler for the node", setup::c_compiler);
    log.optional("set-up: Vulkan driver", setup::vulkan);

    log.stage("format", || {
        succeed(cargo().args(["fmt", "--all", "--check"]))?;
        for apart in APART {
            let manifest = ["--manifest-path", apart];
            succeed(cargo().arg("fmt").args(manifest).arg("--check"))?;
        }
        let mut published = Command::new("rustfmt");
        published.args(["--check", "--edition", "2024"]);
        for folder in PUBLISHED {
            for file in std::fs::read_dir(root().join(folder))? {
                published.arg(file?.path());
            }
        }
        succeed(&mut published)
    });
    log.stage("lints", || {
        let lints = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            GPU,
            "--",
            "-D",
            "warnings",
        ];
        succeed(host_cargo().args(lints))
    });
    let for_c = toolchain.as_ref().filter(|_| c_compiler.is_some());
    let examples = for_c.and_then(|toolchain| examples(&mut log, toolchain));
    let images = toolchain.and_then(|toolchain| images(&mut log, &toolchain));

    let images = images.filter(|_| emulator.is_some());
    if images.is_none() {
        log.skip(
            "tests on the emulated boards",
            anyhow!("they need the images and the emulator"),
        );
    }
    let examples = examples.filter(|_| emulator.is_some());
    if examples.is_none() {
        log.skip(
            "tests of the example in C",
            anyhow!("they need both compilers for the node and the emulator"),
        );
    }
    log.stage("tests", || {
        let mut tests = host_cargo();
        tests
            .args(["test", "--workspace", "--no-fail-fast", "--features", GPU])
            .env_remove(EXAMPLES_VARIABLE);
        for variable in tested().filter_map(Image::variable) {
            tests.env_remove(variable);
        }
        for (image, elf) in images.iter().flatten() {
            tests.envs(image.variable().map(|variable| (variable, elf)));
        }
        if let Some(examples) = &examples {
            tests.env(EXAMPLES_VARIABLE, examples);
        }
        succeed(&mut tests)
    });
    log.stage("a problem in a user's crate", || {
        // With the workspace's target folder, profile and features: what the tests built is used again.
        let mut tests = host_cargo();
        tests
            .args(["test", "--manifest-path", OWN_EQUATION, "--features", "gpu"])
            .arg("--target-dir")
            .arg(target());
        for (image, elf) in images.iter().flatten() {
            tests.envs(image.variable().map(|variable| (variable, elf)));
        }
        succeed(&mut tests)
    });
    log.stage("documented commands", || {
        smoke::run(&smoke::Here {
            boards: images.is_some() && examples.is_some(),
            gpu: setup::has_vulkan(),
        })
    });
    log.stage("agent-core under AddressSanitizer", sanitize::address);
    if log.extra("set-up: Miri", setup::miri).is_some() {
        log.stage("agent-core in Miri", sanitize::in_miri);
    }
    if let Some(program) = log.optional("set-up: fuzzer", setup::fuzzer) {
        fuzz(&mut log, &program);
    }
    log.finish()
}

/// Builds the example in C, which does not link with a library that can panic, and measures the
/// library.
fn examples(log: &mut Log, toolchain: &Toolchain) -> Option<OsString> {
    let built = log.stage("agent-core for C, without panics", || {
        let examples = c_library::examples(toolchain)?;
        Ok(env::join_paths(examples)?)
    });
    log.stage("agent-core size", || size::check_library(toolchain));
    built
}

/// Every fuzz target, on its corpus and a little beyond: CI looks again with every change, and `cargo
/// xtask fuzz` looks longer.
fn fuzz(log: &mut Log, program: &Path) -> Option<()> {
    let options = fuzz::Options::all(FUZZ_SECONDS);
    let fuzzer = log.stage("fuzz targets", || Fuzzer::build(program, &options))?;
    for target in options.targets() {
        log.stage(target.stage(), || fuzzer.run(*target));
    }
    Some(())
}

/// The images that tests run: each emulated board's, to flash and to fail.
fn tested() -> impl Iterator<Item = Image> {
    Board::EMULATED
        .into_iter()
        .flat_map(|board| [Image::of(board), Image::provoked(board)])
}

/// Builds and measures every image; returns those that tests run.
fn images(log: &mut Log, toolchain: &Toolchain) -> Option<Vec<(Image, PathBuf)>> {
    log.stage("agent-core for the node", || {
        firmware::check_agent_core(toolchain)
    });
    // Debian's compiler comes without clippy; the firmware's board-independent part is linted with
    // the host's code.
    if let Toolchain::Current = toolchain {
        log.stage("firmware lints", || {
            let mut boards = Board::KINDS.into_iter();
            boards.try_for_each(|board| firmware::lint(toolchain, Image::of(board)))
        });
    }
    let build = |image: Image| Ok((image, firmware::build(toolchain, image)?));
    let complete = log.stage("firmware for every board", || {
        let images = Board::ALL.into_iter().map(Image::signed);
        images.map(build).collect::<Result<Vec<_>>>()
    })?;
    log.stage("firmware size", || size::check_images(&complete));
    log.stage("firmware for tests", || tested().map(build).collect())
}

enum Outcome {
    Passed,
    NotHere(anyhow::Error),
    Skipped(anyhow::Error),
    Failed(anyhow::Error),
}

/// What has been run, for the summary.
#[derive(Default)]
struct Log {
    stages: Vec<(&'static str, Duration, Outcome)>,
}

impl Log {
    /// Runs a stage that must pass.
    fn stage<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::Failed)
    }

    /// Runs a stage whose failure only means that others cannot be run on this machine.
    fn optional<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::Skipped)
    }

    /// Runs a stage whose failure means that others cannot be run, which is no failure in CI either:
    /// they need a compiler that is not the workspace's.
    fn extra<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::NotHere)
    }

    fn record<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<T>,
        otherwise: fn(anyhow::Error) -> Outcome,
    ) -> Option<T> {
        println!("\n==== {name} ====");
        let start = Instant::now();
        let result = run();
        let elapsed = start.elapsed();
        let (outcome, value) = match result {
            Ok(value) => (Outcome::Passed, Some(value)),
            Err(error) => {
                println!("{error:#}");
                (otherwise(error), None)
            }
        };
        println!("---- {name}: {:.1} s", elapsed.as_secs_f64());
        self.stages.push((name, elapsed, outcome));
        value
    }

    fn skip(&mut self, name: &'static str, why: anyhow::Error) {
        println!("\n==== SKIPPED: {name}: {why:#} ====");
        self.stages
            .push((name, Duration::ZERO, Outcome::Skipped(why)));
    }

    /// Prints the summary; an error if something failed, or in CI was skipped.
    fn finish(&self) -> Result<()> {
        println!("\n==== summary ====");
        let mut failed = 0;
        let mut skipped = 0;
        let mut total = Duration::ZERO;
        for (name, elapsed, outcome) in &self.stages {
            total += *elapsed;
            let (verdict, why) = match outcome {
                Outcome::Passed => ("passed", None),
                Outcome::NotHere(why) => ("not here", Some(why)),
                Outcome::Skipped(why) => {
                    skipped += 1;
                    ("SKIPPED", Some(why))
                }
                Outcome::Failed(why) => {
                    failed += 1;
                    ("FAILED", Some(why))
                }
            };
            println!("{verdict:<8} {:>7.1} s  {name}", elapsed.as_secs_f64());
            if let Some(why) = why {
                println!("{:20}{why:#}", "");
            }
        }
        let (minutes, seconds) = (total.as_secs() / 60, total.as_secs() % 60);
        println!(
            "{:17.1} s  in all: {minutes} min {seconds} s",
            total.as_secs_f64()
        );
        if failed > 0 {
            bail!("{failed} of {} stages failed", self.stages.len());
        }
        if skipped > 0 && in_ci() {
            bail!("{skipped} stages were skipped, which in CI is a failure");
        }
        if skipped > 0 {
            println!("\nNOT EVERYTHING WAS TESTED: {skipped} stages were skipped, see above.");
        }
        Ok(())
    }
}

fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
