//! The same network in a library that others use, on the same emulated core: what our figures are
//! worth.
//!
//! The peer is TensorFlow Lite Micro with its f32 kernels, compiled with -O3. Its source comes from
//! the registry, in a crate that Cargo.lock pins by checksum; the kernels' arithmetic is that of
//! later versions too. `bench/peer` runs it and refuses to answer unless it computes what agent-core
//! does.

use anyhow::{Context, Result, bail};
use node_link::emulated;
use std::{
    ffi::OsString,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    command::succeed,
    firmware::{root, target_folder},
    setup::{self, TARGET, Toolchain},
    stages::cargo,
};

/// What is compared with: its name, and the version its source says.
pub const NAME: &str = "TensorFlow Lite Micro 2.2.0";

/// The problem whose network the image runs.
pub const PROBLEM: &str = "heat-1d";

const MANIFEST: &str = "bench/peer/Cargo.toml";
/// The crate that carries the source, as its folder is called.
const CARRIER: &str = "tfmicro-0.1.0";
/// Tells the image's build script where that folder is.
const SOURCE_VARIABLE: &str = "TFMICRO_SOURCE";
/// Where the image expects the policy; see its memory.x.
const SLOT: &str = "0x00100000";

/// Longest wait for the image to answer; it needs less than a second.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Runs the policy's network once, with each instruction taking 2^shift ns of emulated time, and
/// returns how many it took.
pub fn instructions(elf: &Path, policy: &Path, shift: u8) -> Result<f64> {
    let mut slot = OsString::from(format!("loader,addr={SLOT},force-raw=on,file="));
    slot.push(policy);
    let mut qemu = Command::new(emulated::PROGRAM);
    qemu.args(["-M", "mps2-an386", "-nodefaults", "-display", "none"])
        .args(["-icount", &format!("shift={shift}")])
        // How the image prints and ends.
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-device")
        .arg(slot)
        .arg("-kernel")
        .arg(elf)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut process = qemu.spawn().context("cannot start the emulator")?;
    let answered = wait(&mut process);
    let mut answer = String::new();
    if let Some(mut stdout) = process.stdout.take() {
        stdout.read_to_string(&mut answer)?;
    }
    match answer.trim().parse::<u32>() {
        Ok(nanoseconds) if answered? => Ok(f64::from(nanoseconds) / f64::from(1u32 << shift)),
        _ => bail!("{NAME} did not run the network: {}", answer.trim()),
    }
}

/// Waits until the process ends, or ends it; whether it was content.
fn wait(process: &mut Child) -> Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = process.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(20));
    }
    process.kill()?;
    process.wait()?;
    Ok(false)
}
