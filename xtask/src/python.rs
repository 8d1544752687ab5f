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

/// An environment of Python, beside what is built.
pub struct Environment {
    /// Where the wheel for it is written.
    folder: PathBuf,
    programs: PathBuf,
}

impl Environment {
    /// Finds or makes the one of a folder of the repository, with the packages of its `requirements.txt`.
    pub fn of(folder: &str) -> Result<Self> {
        let requirements = root().join(folder).join("requirements.txt");
        let folder = built_apart(folder);
        let environment = Self {
            programs: folder.join("venv/bin"),
            folder,
        };
        let folder = &environment.folder;
        let wanted = fs::read_to_string(&requirements)?;
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
            .arg(&requirements);
        succeed(&mut install).with_context(|| {
            format!("cannot install the packages of {}", requirements.display())
        })?;
        fs::write(there, wanted)?;
        Ok(environment)
    }

    /// A program that is installed there.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(root());
        command
    }

    /// Whether the sources are formatted and tidy.
    pub fn lint(&self) -> Result<()> {
        let sources = ["python", "baselines"];
        succeed(
            self.program("ruff")
                .args(["format", "--check"])
                .args(sources),
        )?;
        succeed(self.program("ruff").arg("check").args(sources))
    }

    /// Builds the wheel, as it would be published or of what the tests are compiled to, measures it and
    /// installs it.
    pub fn install_wheel(&self, build: Build) -> Result<()> {
        let wheels = self.folder.join("wheels");
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
        // Not under the feet of a program that runs there, if it is the one that is there.
        let (packed, there) = (fs::read(&wheel)?, self.folder.join("installed.whl"));
        if fs::read(&there).is_ok_and(|installed| installed == packed) {
            return Ok(());
        }
        let mut install = self.program("pip");
        install.args(["install", "--quiet", "--force-reinstall", "--no-deps"]);
        succeed(install.arg(wheel))?;
        Ok(fs::write(there, packed)?)
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
    let environment = Environment::of("python")?;
    environment.lint()?;
    environment.install_wheel(Build::Release)?;
    stages::compile_tests()?;
    environment.test()
}

/// Where the wheel is compiled: as it is published, with other flags than what is tested otherwise.
fn built() -> PathBuf {
    built_apart("wheel")
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
