//! Building the image.

use anyhow::{Result, bail};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::setup::{TARGET, Toolchain};

/// The workspace's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// A folder of its own for what is built with another compiler or other flags than the host's files.
pub fn built_apart(what: &str) -> PathBuf {
    let shared =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    shared.join(what)
}

/// Where firmware is built.
pub fn target_folder() -> PathBuf {
    built_apart("firmware")
}

/// Selects the image for the emulated board.
const IMAGE: [&str; 8] = [
    "--package",
    "firmware",
    "--bin",
    "firmware",
    "--features",
    "mps2-an386",
    "--profile",
    "firmware",
];

/// Builds the image and returns its path.
pub fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    let mut cargo = toolchain.cargo("build", &target_folder());
    cargo
        .args(IMAGE)
        // Which log lines are compiled in; those of a level that is off cost nothing.
        .env(
            "DEFMT_LOG",
            env::var_os("DEFMT_LOG").unwrap_or("info".into()),
        );
    succeed(&mut cargo)?;
    let elf = target_folder().join(TARGET).join("firmware/firmware");
    if !elf.is_file() {
        bail!("the build left no {}", elf.display());
    }
    Ok(elf)
}

/// Lints the image's code, the board's part of which no host build compiles.
pub fn lint(toolchain: &Toolchain) -> Result<()> {
    let mut cargo = toolchain.cargo("clippy", &target_folder());
    succeed(cargo.args(IMAGE).args(["--", "-D", "warnings"]))
}

/// Checks agent-core for the target, with and without its logging.
pub fn check_agent_core(toolchain: &Toolchain) -> Result<()> {
    for features in [&[][..], &["--features", "defmt"]] {
        let mut cargo = toolchain.cargo("check", &target_folder());
        // The image's profile: what is compiled here need not be compiled again for the image.
        cargo
            .args(["--package", "agent-core", "--profile", "firmware"])
            .args(features);
        succeed(&mut cargo)?;
    }
    Ok(())
}

/// Runs a command in the workspace's folder.
pub fn succeed(command: &mut Command) -> Result<()> {
    let status = command.current_dir(root()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{} ended with {status}", name(command)),
        Err(error) => bail!("cannot run {}: {error}", name(command)),
    }
}

fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
