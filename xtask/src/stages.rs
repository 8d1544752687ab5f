//! `cargo xtask test`: all stages, each with its time, and a summary.

use anyhow::{Context, Result, anyhow, bail};
use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{
    board::{Board, Image, complete},
    c_library, c_packages, cluster,
    command::{held, say, succeed},
    dependencies,
    firmware::{self, built_apart, root},
    fuzz::{self, Fuzzer},
    package, page,
    programs::Build,
    python::Environment,
    sanitize,
    setup::{self, Toolchain},
    size,
    slurm::Slurm,
    smoke, throwaway, web,
};

/// How the tests find the example in C, small and fast; without it they skip what needs it, and
/// say so.
const EXAMPLES_VARIABLE: &str = "C_EXAMPLE_ELFS";

/// Where tests find the secrets of the image with keys.
const KEYS_VARIABLE: &str = "THROWAWAY_KEYS";

/// How many patches of field the tests show each policy on an emulated board, and how many they do here
/// unless told otherwise: each takes an emulator a thirtieth of a second.
const PATCHES_VARIABLE: &str = "BOARD_PATCHES";
const PATCHES: &str = "300";

/// What tests are compiled with wherever they are, and programs only where somebody asks for it: the
/// trainer's kernels, whose tests run on whatever Vulkan driver there is, also a software one, and agents on
/// a Zenoh network.
const EVERYWHERE: &str = "trainer/gpu,agent-sim/zenoh";

/// The workspace's features that can be tested here: trainings on several processes where there is an MPI.
/// One set for all that is built, or the trainer would be compiled twice.
pub fn features() -> String {
    match setup::has_mpi() {
        true => format!("{EVERYWHERE},trainer/mpi"),
        false => EVERYWHERE.to_owned(),
    }
}

/// Packages outside the workspace: one is compiled for the fuzzer, one with a large dependency.
const APART: [&str; 2] = ["agent-core/fuzz/Cargo.toml", "bench/host/Cargo.toml"];

/// Everything with a lock file: the workspace and what is outside it.
pub const WITH_LOCK_FILES: [&str; 4] = ["Cargo.toml", APART[0], APART[1], "bench/peer/Cargo.toml"];

/// Packages that cannot do without Burn.
const BURNS: [&str; 4] = ["trainer", "fieldswarm-python", "own-equation", "tests"];

/// Modules that a macro declares, which `cargo fmt` does not see.
const PUBLISHED: [&str; 2] = ["problem/src/published", "trainer/src/published"];

/// The revision that policies of tests name.
pub const TESTED: &str = "tested";

/// Clippy as a compiler.
const CLIPPY: &str = "clippy-driver";

/// Tests that [`run_fast`] leaves out, each more than ten seconds of a core's time. So does it those on
/// emulated boards, and examples in documentation.
const LONG: [&str; 14] = [
    // problem
    "both_ends_of_every_range_can_be_drawn_and_solved",
    "fresh_episodes_have_the_enstrophy_of_the_test_set",
    "fresh_episodes_lie_on_the_attractor",
    // studies
    "a_quick_run_leaves_pages_tables_and_pictures_of_every_study",
    // tests
    "every_policy_beats_its_bar_on_the_published_episodes",
    "every_term_of_a_problem_has_a_gradient",
    "the_gradient_is_the_slope_along_random_directions_in_every_block",
    "the_same_forces_lead_both_solvers_to_the_same_state",
    // trainer, most of them on a GPU, which may be a software one
    "a_killed_training_resumes_to_the_same_end",
    "a_short_training_on_a_gpu_is_that_of_the_cpu",
    "examples_are_the_cpus",
    "fields_with_coefficients_of_their_own_are_the_cpus",
    "random_files_are_the_cpus",
    "the_vortices_are_the_cpus",
];

/// All targets of a package but its documentation.
const NO_DOCUMENTATION: [&str; 3] = ["--lib", "--bins", "--tests"];

/// How long each fuzz target is run.
const FUZZ_SECONDS: u64 = 20;

/// The cargo that runs us.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// What is compiled for this machine to be tested, by [`checking_cargo`] and nothing else.
pub fn checked() -> PathBuf {
    built_apart("checked")
}

/// The same for what is tested on this machine. It compiles with clippy, which is the compiler with more
/// lints: linting and compiling one after the other reads all dependencies twice. What clippy warns of
/// does not compile; what is in the folder has passed.
///
/// In CI each crate is compiled once, and nobody debugs it: what would make the second time quicker costs
/// time and disk, and so do the lines of calls. (A panic names its own without them.)
pub fn checking_cargo(command: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([command, "--target-dir"]).arg(checked());
    as_checked(&mut cargo);
    cargo
}

/// What makes a cargo, or what starts one, compile as [`checking_cargo`] does.
pub fn as_checked(command: &mut Command) {
    command
        .env("RUSTC_WRAPPER", CLIPPY)
        // As `cargo clippy` hands on what follows its `--`.
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__")
        // Policies of tests do not leave the machine: a commit is no reason to compile the trainer again.
        .env("SOURCE_REVISION", TESTED);
    if in_ci() {
        command.env("CARGO_INCREMENTAL", "0");
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    }
}

/// Runs every stage, also after one has failed: one run tells all there is to mend.
///
/// In two lanes, because few stages keep two cores busy: what is compiled for this machine, and its tests; and
/// what is compiled for others, or with other flags, in target folders of its own, and what is tried out as
/// people do.
pub fn run() -> Result<()> {
    let log = Log::default();
    let tools = Tools::set_up(&log);
    log.stage("format", format);
    let (built, images) = mpsc::channel();
    thread::scope(|scope| {
        let beside = log.beside();
        let tools = &tools;
        scope.spawn(move || {
            let nodes = Nodes::build(&beside, tools);
            let has_boards = nodes.images.is_some() && nodes.examples.is_some();
            // Nobody is there to hear of it only if the other lane has panicked.
            let _ = built.send(nodes);
            beside.stage("crates as published", package::check);
            checks_of_agent_core(&beside);
            audit(&beside);
            python(&beside);
            documentation(&beside);
            // With the programs that the other lane compiled long ago.
            pages(&beside);
            documented_commands(&beside, has_boards);
        });
        workspace(&log, &images);
    });
    log.finish(in_ci())
}

/// Runs what people at work want to know within minutes: format, lints, and the tests that are quick,
/// with what is here. Compiles what [`run`] does, in the same folder.
pub fn run_fast() -> Result<()> {
    let log = Log::default();
    log.stage("format", format);
    log.stage("lints, tests compiled", || {
        clippy_is_here()?;
        succeed(tests().args(NO_DOCUMENTATION).arg("--no-run"))
    });
    log.stage("quick tests", || {
        let mut tests = tests();
        Nodes::default().show(&mut tests);
        // Where tests that need an image do not pass over it.
        tests.env_remove("CI");
        tests.args(NO_DOCUMENTATION).arg("--");
        succeed(tests.args(LONG.iter().flat_map(|name| ["--skip", name])))
    });
    log.finish(false)?;
    println!("\nThese were the quick ones: `cargo xtask test` runs all.");
    Ok(())
}

/// What the stages for nodes need.
struct Tools {
    toolchain: Option<Toolchain>,
    emulator: bool,
    c_compiler: bool,
}

impl Tools {
    /// Finds or installs them.
    fn set_up(log: &Log) -> Self {
        let toolchain = log.optional("set-up: compiler for the node", || {
            let toolchain = setup::toolchain()?;
            say!("{}", toolchain.describe());
            Ok(toolchain)
        });
        let emulator = log.optional("set-up: emulator", setup::emulator);
        let c_compiler = log.optional("set-up: C compiler for the node", setup::c_compiler);
        log.optional("set-up: Vulkan driver", setup::vulkan);
        log.optional("set-up: MPI", setup::mpi);
        Self {
            toolchain,
            emulator: emulator.is_some(),
            c_compiler: c_compiler.is_some(),
        }
    }
}

fn format() -> Result<()> {
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
}

/// The workspace's tests.
fn tests() -> Command {
    let mut tests = checking_cargo("test");
    tests.args(["--workspace", "--no-fail-fast", "--features", &features()]);
    tests
}

fn clippy_is_here() -> Result<()> {
    succeed(Command::new(CLIPPY).arg("--version"))
        .context("clippy is not here: `rustup component add clippy` installs it")
}

/// Compiles, and with that lints, the workspace's programs and tests.
pub fn compile_tests() -> Result<()> {
    clippy_is_here()?;
    // Benchmarks too, which the tests leave out.
    succeed(tests().args(["--no-run", "--all-targets"]))
}

/// The workspace on this machine: lints and tests. Tests on boards wait for their images.
fn workspace(log: &Log, images: &mpsc::Receiver<Nodes>) {
    log.stage("lints, tests compiled", compile_tests);

    let nodes = images.recv().unwrap_or_default();
    if nodes.images.is_none() {
        log.skip(
            "tests on the emulated boards",
            anyhow!("they need the images and the emulator"),
        );
    }
    if nodes.examples.is_none() {
        log.skip(
            "tests of the example in C",
            anyhow!("they need both compilers for the node and the emulator"),
        );
    }
    log.stage("tests", || {
        let mut tests = tests();
        nodes.show(&mut tests);
        if env::var_os(PATCHES_VARIABLE).is_none() {
            tests.env(PATCHES_VARIABLE, PATCHES);
        }
        succeed(&mut tests)
    });
    log.stage("jobs for clusters", || cluster::by_hand(Build::Tested));
    // Where containers let its daemons run: that is not for the workspace to say.
    if let Some(slurm) = log.extra("set-up: Slurm", Slurm::start) {
        log.stage("campaign in Slurm", || {
            cluster::in_slurm(&slurm, Build::Tested)
        });
    }
}

/// The pages, where people see them.
fn pages(log: &Log) -> Option<()> {
    log.optional("set-up: Node.js", page::set_up)?;
    log.stage("page of live runs", page::check);
    let browser = log.optional("set-up: browser", setup::browser)?;
    log.stage("page in a browser", || {
        page::browse(&browser, Build::Tested)
    });
    without_server(log, &browser)
}

/// What readers of the documentation type.
fn documented_commands(log: &Log, has_boards: bool) {
    log.stage("documented commands", || {
        smoke::run(&smoke::Here {
            boards: has_boards,
            gpu: setup::has_vulkan(),
        })
    });
}

/// The page with the simulator in it, which must compute what the program does.
fn without_server(log: &Log, browser: &Path) -> Option<()> {
    log.optional("set-up: compiler for browsers", setup::wasm_target)?;
    log.stage("page without a server", || {
        let folder = web::folder();
        web::build(&folder, Build::Tested)?;
        web::browse(&folder, browser, Build::Tested)
    })
}

/// agent-core where memory errors show, and on inputs that nobody thought of.
fn checks_of_agent_core(log: &Log) {
    log.stage("agent-core under AddressSanitizer", sanitize::address);
    if log.extra("set-up: Miri", setup::miri).is_some() {
        log.stage("agent-core in Miri", sanitize::in_miri);
    }
    if let Some(program) = log.optional("set-up: fuzzer", setup::fuzzer) {
        fuzz(log, &program);
    }
}

/// What is documented, and that its links lead somewhere.
fn documentation(log: &Log) {
    log.stage("documentation", || {
        let mut documentation = checking_cargo("doc");
        documentation.env("RUSTDOCFLAGS", "-Dwarnings");
        documentation.args(["--workspace", "--no-deps"]);
        // Documenting needs all dependencies once more, as `cargo check` has them, and Burn's and Zenoh's
        // are most of that.
        succeed(documentation.args(BURNS.iter().flat_map(|name| ["--exclude", name])))
    });
}

/// The Python package, as it is installed.
fn python(log: &Log) -> Option<()> {
    let environment = log.optional("set-up: Python", || Environment::of("python"))?;
    log.stage("Python lints", || environment.lint());
    log.stage("wheel", || environment.install_wheel(Build::Tested))?;
    log.stage("Python tests", || environment.test())
}

/// What others wrote and is linked: licences, sources, duplicates; known holes where they can be had.
fn audit(log: &Log) {
    if let Some(program) = log.optional("set-up: cargo-deny", setup::cargo_deny) {
        let advisories = log.extra("set-up: database of advisories", || {
            dependencies::fetch_advisories(&program)
        });
        log.stage("dependencies", || {
            dependencies::check(&program, advisories.is_some())
        });
    }
}

/// Every fuzz target, on its corpus and a little beyond: CI looks again with every change, and `cargo
/// xtask fuzz` looks longer.
fn fuzz(log: &Log, program: &Path) -> Option<()> {
    let options = fuzz::Options::all(FUZZ_SECONDS);
    let fuzzer = log.stage("fuzz targets", || Fuzzer::build(program, &options))?;
    for target in options.targets() {
        log.stage(target.stage(), || fuzzer.run(*target));
    }
    Some(())
}

/// What is built for nodes, and can be run here.
#[derive(Default)]
struct Nodes {
    /// The example in C, small and fast.
    examples: Option<OsString>,
    images: Option<Vec<(Image, PathBuf)>>,
}

impl Nodes {
    fn build(log: &Log, tools: &Tools) -> Self {
        let Some(toolchain) = &tools.toolchain else {
            return Self::default();
        };
        let examples = tools.c_compiler.then(|| examples(log, toolchain)).flatten();
        let images = images(log, toolchain);
        Self {
            examples: examples.filter(|_| tools.emulator),
            images: images.filter(|_| tools.emulator),
        }
    }

    /// Tells tests where the images and examples are, and of no others.
    fn show(&self, tests: &mut Command) {
        tests.env_remove(EXAMPLES_VARIABLE);
        tests.envs(self.examples.iter().map(|found| (EXAMPLES_VARIABLE, found)));
        for variable in tested().chain(complete()).filter_map(Image::variable) {
            tests.env_remove(variable);
        }
        tests.env(KEYS_VARIABLE, throwaway::folder());
        let images = self.images.iter().flatten();
        tests.envs(images.filter_map(|(image, elf)| Some((image.variable()?, elf))));
    }
}

/// Builds the example in C, which does not link with a library that can panic, and measures the
/// library.
fn examples(log: &Log, toolchain: &Toolchain) -> Option<OsString> {
    let built = log.stage("agent-core for C, without panics", || {
        let examples = c_library::examples(toolchain)?;
        Ok(env::join_paths(examples)?)
    });
    if log.optional("set-up: CMake", setup::cmake).is_some() {
        log.stage("packages for C teams", || c_packages::run(toolchain));
    }
    log.stage("agent-core size", || size::check_library(toolchain));
    built
}

/// The images that are built for tests alone: each emulated board's, to flash and to fail, and one that is as small
/// as the smallest of a real board.
fn tested() -> impl Iterator<Item = Image> {
    let each = |board| [Image::of(board), Image::provoked(board)];
    let emulated = Board::EMULATED.into_iter().flat_map(each);
    emulated.chain([Image::smallest(Board::An386)])
}

/// Builds and measures every image; returns those that tests run.
fn images(log: &Log, toolchain: &Toolchain) -> Option<Vec<(Image, PathBuf)>> {
    log.stage("agent-core for the node", || {
        firmware::check_agent_core(toolchain)
    });
    // Debian's compiler comes without clippy; the firmware's board-independent part is linted with
    // the host's code.
    if let Toolchain::Current = toolchain {
        log.stage("firmware lints", || {
            let fed = Board::KINDS.into_iter().map(Image::of);
            let mut images = fed.chain(Board::STANDALONE.map(Image::standalone));
            images.try_for_each(|image| firmware::lint(toolchain, image))
        });
    }
    let build = |image: Image| Ok((image, firmware::build(toolchain, image)?));
    let complete = log.stage("firmware for every board", || {
        complete().map(build).collect::<Result<Vec<_>>>()
    })?;
    log.stage("firmware size", || size::check_images(&complete));
    log.stage("firmware for tests", || {
        let built = complete.into_iter().map(Ok).chain(tested().map(build));
        built.collect()
    })
}

enum Outcome {
    Passed,
    NotHere(anyhow::Error),
    Skipped(anyhow::Error),
    Failed(anyhow::Error),
}

/// What has been run, for the summary.
#[derive(Clone)]
struct Log {
    start: Instant,
    stages: Arc<Mutex<Vec<Ended>>>,
    /// Other stages run at the same time: each of these is printed when it has ended.
    beside: bool,
}

struct Ended {
    name: &'static str,
    elapsed: Duration,
    outcome: Outcome,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            stages: Arc::default(),
            beside: false,
        }
    }
}

impl Log {
    /// The same log, for stages that are run beside the others.
    fn beside(&self) -> Self {
        Self {
            beside: true,
            ..self.clone()
        }
    }

    /// Runs a stage that must pass.
    fn stage<T>(&self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::Failed)
    }

    /// Runs a stage whose failure only means that others cannot be run on this machine.
    fn optional<T>(&self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::Skipped)
    }

    /// Runs a stage whose failure means that others cannot be run, which is no failure in CI either:
    /// they need a compiler that is not the workspace's.
    fn extra<T>(&self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        self.record(name, run, Outcome::NotHere)
    }

    fn record<T>(
        &self,
        name: &'static str,
        run: impl FnOnce() -> Result<T>,
        otherwise: fn(anyhow::Error) -> Outcome,
    ) -> Option<T> {
        let start = Instant::now();
        let (result, held) = match self.beside {
            true => {
                println!("---- {name}: started");
                held(run)
            }
            false => {
                println!("\n==== {name} ====");
                (run(), Vec::new())
            }
        };
        let elapsed = start.elapsed();
        let mut stdout = io::stdout().lock();
        if self.beside {
            // Printed for whoever is there to read it.
            let _ = writeln!(stdout, "\n==== {name} ====");
            let _ = stdout.write_all(&held);
        }
        let (outcome, value) = match result {
            Ok(value) => (Outcome::Passed, Some(value)),
            Err(error) => {
                let _ = writeln!(stdout, "{error:#}");
                (otherwise(error), None)
            }
        };
        let _ = writeln!(stdout, "---- {name}: {:.1} s", elapsed.as_secs_f64());
        self.add(Ended {
            name,
            elapsed,
            outcome,
        });
        value
    }

    fn skip(&self, name: &'static str, why: anyhow::Error) {
        println!("\n==== SKIPPED: {name}: {why:#} ====");
        self.add(Ended {
            name,
            elapsed: Duration::ZERO,
            outcome: Outcome::Skipped(why),
        });
    }

    fn add(&self, ended: Ended) {
        self.ended().push(ended);
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Ended>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the summary; an error if something failed, or in CI was skipped.
    fn finish(&self, in_ci: bool) -> Result<()> {
        println!("\n==== summary, stages in the order in which they ended ====");
        let mut failed = 0;
        let mut skipped = 0;
        let stages = self.ended();
        for Ended {
            name,
            elapsed,
            outcome,
        } in &*stages
        {
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
        let total = self.start.elapsed();
        let (minutes, seconds) = (total.as_secs() / 60, total.as_secs() % 60);
        println!(
            "{:16.1} s  in all: {minutes} min {seconds} s",
            total.as_secs_f64()
        );
        if failed > 0 {
            bail!("{failed} of {} stages failed", stages.len());
        }
        if skipped > 0 && in_ci {
            bail!("{skipped} stages were skipped, which in CI is a failure");
        }
        if skipped > 0 {
            println!("\nNOT EVERYTHING WAS TESTED: {skipped} stages were skipped, see above.");
        }
        Ok(())
    }
}

/// Whether nobody is there to read what was skipped. `.ci/run` says so.
fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_skipped_fails_in_ci_and_what_is_not_here_does_not() {
        let log = Log::default();
        log.extra("a compiler of its own", || -> Result<()> { bail!("none") });
        assert!(log.finish(true).is_ok());
        log.skip("a stage", anyhow!("no emulator"));
        assert!(log.finish(false).is_ok());
        assert!(log.finish(true).is_err());
    }

    /// Whether a file of Rust in the folder has this text.
    fn is_said(text: &str, folder: &Path) -> bool {
        let mut entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        entries.any(|path| match path.is_dir() {
            true => !path.ends_with("target") && is_said(text, &path),
            false => {
                path.extension().is_some_and(|e| e == "rs")
                    && fs::read_to_string(&path).unwrap().contains(text)
            }
        })
    }

    #[test]
    fn what_the_fast_lane_leaves_out_is_there() {
        for name in LONG {
            assert!(is_said(&format!("fn {name}()"), root()), "{name}");
        }
    }

    #[test]
    fn ci_says_that_it_is_ci() {
        let folder = env::temp_dir().join(format!("ci-run-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let cargo = folder.join("cargo");
        fs::write(&cargo, "#!/bin/sh\necho $CI $*\n").unwrap();
        succeed(Command::new("chmod").arg("+x").arg(&cargo)).unwrap();
        let path = env::var_os("PATH").unwrap();
        let path = [folder.clone()].into_iter().chain(env::split_paths(&path));
        let mut run = Command::new(root().join(".ci/run"));
        run.env_remove("CI");
        run.env("PATH", env::join_paths(path).unwrap());
        let said = run.output().unwrap().stdout;
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(String::from_utf8_lossy(&said), "true xtask test\n");
    }
}
