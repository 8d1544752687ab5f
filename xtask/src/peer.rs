//! The same network in a library that others use, on the same emulated core: what our figures are
//! worth.
//!
//! The peer is TensorFlow Lite Micro with its f32 kernels, compiled with -O3. Its source comes from
//! the registry, in a crate that Cargo.lock pins by checksum; the kernels' arithmetic is that of
//! later versions too. `bench/peer` runs it; this builds that.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

use crate::{
    command::succeed,
    firmware::{root, target_folder},
    setup::{self, TARGET, Toolchain},
    stages::cargo,
};

/// What is compared with: its name, and the version its source says.
pub const NAME: &str = "TensorFlow Lite Micro 2.2.0";

const MANIFEST: &str = "bench/peer/Cargo.toml";
/// The crate that carries the source, as its folder is called.
const CARRIER: &str = "tfmicro-0.1.0";
/// Tells the image's build script where that folder is.
const SOURCE_VARIABLE: &str = "TFMICRO_SOURCE";

/// The peer's source, and a compiler for it.
pub struct Source(PathBuf);

/// Finds the peer's source and a compiler for it, or installs them.
pub fn source() -> Result<Source> {
    setup::cpp_compiler()?;
    succeed(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path", MANIFEST]))?;
    let mut metadata = cargo();
    metadata
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--manifest-path", MANIFEST])
        .current_dir(root());
    let metadata = metadata.output().context("cannot run cargo metadata")?;
    let metadata = String::from_utf8_lossy(&metadata.stdout);
    // One string among many in its JSON.
    let manifest = metadata
        .split('"')
        .map(Path::new)
        .find(|path| path.ends_with(Path::new(CARRIER).join("Cargo.toml")));
    let folder = manifest.and_then(Path::parent);
    let folder = folder.with_context(|| format!("cargo fetch did not bring {CARRIER}"))?;
    Ok(Source(folder.to_owned()))
}

/// Builds the image and returns its path.
pub fn build(toolchain: &Toolchain, source: &Source) -> Result<PathBuf> {
    let mut cargo = toolchain.cargo("build", &target_folder());
    cargo
        .args(["--release", "--locked", "--manifest-path", MANIFEST])
        .env(SOURCE_VARIABLE, &source.0);
    succeed(&mut cargo)?;
    Ok(target_folder().join(TARGET).join("release/peer"))
}
