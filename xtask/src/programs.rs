//! The workspace's programs, as `cargo xtask` starts them.

use anyhow::{Result, ensure};
use std::{env::consts::EXE_SUFFIX, process::Command};

use crate::stages::{cargo, checked};

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
            Self::Tested => {
                let built = checked()
                    .join("debug")
                    .join(format!("{program}{EXE_SUFFIX}"));
                ensure!(
                    built.is_file(),
                    "there is no {}: `cargo xtask test` builds it",
                    built.display()
                );
                Ok(Command::new(built))
            }
        }
    }
}
