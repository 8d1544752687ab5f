//! `cargo xtask python`: the package as a person installs it, in an environment of its own, and its tests.

use anyhow::{Context, Result, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::{say, succeed},
    firmware::{built_apart, root},
    programs::Build,
    setup,
    stages::{self, TESTED, checked},
};

/// Most bytes of the wheel.
const WHEEL_BUDGET: u64 = 15_000_000;

/// An environment with what the tests need, beside what is built.
pub struct Environment {
    programs: PathBuf,
}

impl Environment {
    /// Finds or makes it, with the packages of `python/requirements.txt`.
    pub fn set_up() -> Result<Self> {
        let folder = built_apart("python");
        let environment = Self {
            programs: folder.join("venv/bin"),
        };
        let wanted = fs::read_to_string(requirements())?;
        let there = folder.join("installed.txt");
        if fs::read_to_string(&there).is_ok_and(|installed| installed == wanted) {
            return Ok(environment);
        }
        let python = setup::python()?;
        let venv = Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(folder.join("venv"))
            .status();
        ensure!(venv?.success(), "cannot make a Python environment");
        let mut install = environment.program("pip");
        install
            .args(["install", "--quiet", "--requirement"])
            .arg(requirements());
        succeed(&mut install).context("cannot install the packages of python/requirements.txt")?;
        fs::write(there, wanted)?;
        Ok(environment)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(root());
        command
    }

    /// Whether the sources are formatted and tidy.
    pub fn lint(&self) -> Result<()> {
        succeed(self.program("ruff").args(["format", "--check", "python"]))?;
        succeed(self.program("ruff").args(["check", "python"]))
    }

    /// Builds the wheel, as it would be published or of what the tests are compiled to, measures it and
    /// installs it.
    pub fn install_wheel(&self, build: Build) -> Result<()> {
        let wheels = built_apart("python").join("wheels");
        // One that is left of another version would be installed too.
        let _ = fs::remove_dir_all(&wheels);
        let mut maturin = self.program("maturin");
        maturin
            .args(["build", "--locked", "--manifest-path", "python/Cargo.toml"])
            .arg("--out")
            .arg(&wheels);
        match build {
            Build::Release => {
                maturin.args(["--release", "--target-dir"]).arg(built());
                // As the trainer that its trainings are held against has it: policies name it.
                maturin.env("SOURCE_REVISION", TESTED);
            }
            Build::Tested => {
                let features = format!("as-tested,{}", stages::features());
                maturin.args(["--profile", "dev", "--features", &features]);
                maturin.arg("--target-dir").arg(checked());
                // It stays here: no matter what else it needs of this machine.
                maturin.args(["--auditwheel", "skip"]);
                stages::as_checked(&mut maturin);
            }
        }
        succeed(&mut maturin)?;
        let wheel = only_file(&wheels)?;
        let bytes = fs::metadata(&wheel)?.len();
        say!(
            "{}: {:.1} MB",
            wheel.file_name().unwrap_or_default().display(),
            bytes as f64 / 1e6
        );
        if let Build::Release = build {
            say!(
                "{:.0} % of the budget of {} MB",
                100.0 * bytes as f64 / WHEEL_BUDGET as f64,
                WHEEL_BUDGET / 1_000_000
            );
            ensure!(bytes <= WHEEL_BUDGET, "the wheel is too large");
        }
        let mut install = self.program("pip");
        install.args(["install", "--quiet", "--force-reinstall", "--no-deps"]);
        succeed(install.arg(wheel))
    }

    /// Runs the package's tests, with the simulator that its plants are tried with and the trainer that its
    /// trainings are held against: those that the workspace's tests were run with, where they are there.
    pub fn test(&self) -> Result<()> {
        let mut tests = self.program("python");
        tests
            // Not from the sources, which lack the compiled module.
            .args([
                "-P",
                "-m",
                "pytest",
                "--import-mode=importlib",
                "-q",
                "--durations=5",
            ])
            // Examples in docstrings are tests too.
            .args([
                "--doctest-modules",
                "--pyargs",
                "fieldswarm",
                "python/tests",
            ]);
        for (variable, program) in [("AGENT_SIM", "agent-sim"), ("TRAINER", "trainer")] {
            let built = checked().join("debug").join(program);
            if built.is_file() {
                tests.env(variable, built);
            }
        }
        succeed(&mut tests)
    }
}

/// All of it.
pub fn run() -> Result<()> {
    let environment = Environment::set_up()?;
    environment.lint()?;
    environment.install_wheel(Build::Release)?;
    stages::compile_tests()?;
    environment.test()
}

/// Where the wheel is compiled: as it is published, with other flags than what is tested otherwise.
fn built() -> PathBuf {
    built_apart("wheel")
}

fn requirements() -> PathBuf {
    root().join("python/requirements.txt")
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(folder)?;
    let first = files.next().context("maturin built no wheel")??;
    Ok(first.path())
}

/// `python3`, or what the environment variable `PYTHON` names.
pub fn interpreter() -> PathBuf {
    env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}
