//! The workspace's programs, as `cargo xtask` starts them.

use anyhow::{Result, ensure};
use std::{env::consts::EXE_SUFFIX, path::PathBuf, process::Command};

use crate::{
    command::succeed,
    firmware::target,
    stages::{cargo, checked},
};

/// Which build of them is started.
#[derive(Debug, Clone, Copy)]
pub enum Build {
    /// Optimised, and compiled first if need be.
    Release,
    /// What the tests have just been run with: for smoke runs, which are not to compile everything
    /// a second time.
    Tested,
}

impl Build {
    /// A program of the package of the same name, or of another.
    pub fn program(self, package: &str, program: &str) -> Result<Command> {
        match self {
            Self::Release => {
                let mut command = cargo();
                command.args(["run", "--release", "--quiet", "-p", package]);
                command.args(["--bin", program, "--"]);
                Ok(command)
            }
            Self::Tested => Ok(Command::new(self.path(package, program)?)),
        }
    }

    /// Where such a program is, for others to start.
    pub fn path(self, package: &str, program: &str) -> Result<PathBuf> {
        let file = format!("{program}{EXE_SUFFIX}");
        match self {
            Self::Release => {
                let mut build = cargo();
                build.args(["build", "--release", "--quiet", "-p", package]);
                succeed(build.args(["--bin", program]))?;
                Ok(target().join("release").join(file))
            }
            Self::Tested => {
                let built = checked().join("debug").join(file);
                ensure!(
                    built.is_file(),
                    "there is no {}: `cargo xtask test` builds it",
                    built.display()
                );
                Ok(built)
            }
        }
    }
}
