//! Building the images.

use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{board::Image, command::succeed, setup::Toolchain};

/// The workspace's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Where cargo builds for the host.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A folder of its own for what is built with another compiler or other flags than the host's files.
pub fn built_apart(what: &str) -> PathBuf {
    target().join(what)
}

/// Where firmware is built.
pub fn target_folder() -> PathBuf {
    built_apart("firmware")
}

/// Builds an image and returns its path.
pub fn build(toolchain: &Toolchain, image: Image) -> Result<PathBuf> {
    let target = image.board.target();
    let mut cargo = toolchain.cargo_for(target, "build", &target_folder());
    image.select(&mut cargo)?;
    cargo.args(["--profile", image.profile()]);
    // Which log lines are compiled in; those of a level that is off cost nothing.
    let level = env::var_os("DEFMT_LOG").unwrap_or("info".into());
    succeed(cargo.env("DEFMT_LOG", level))?;
    let built = target_folder().join(target).join(image.profile());
    let built = built.join("firmware");
    if !built.is_file() {
        bail!("the build left no {}", built.display());
    }
    // Every image is built under the same name: keep it where the next one does not overwrite it.
    let images = target_folder().join("images");
    let kept = images.join(image.file_name());
    fs::create_dir_all(&images)
        .and_then(|()| fs::copy(&built, &kept))
        .with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(kept)
}

/// Lints an image's code, the board's part of which no host build compiles.
pub fn lint(toolchain: &Toolchain, image: Image) -> Result<()> {
    let mut cargo = toolchain.cargo_for(image.board.target(), "clippy", &target_folder());
    image.select(&mut cargo)?;
    // One for all: chips' drivers are read once for each.
    cargo.args(["--profile", "firmware"]);
    succeed(cargo.args(["--", "-D", "warnings"]))
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
