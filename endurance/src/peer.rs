//! The same network in a library that others use, on the same emulated core: what our figures are
//! worth. `bench/peer` is the image; it refuses to answer unless it computes what agent-core does.

use anyhow::{Context, Result, bail};
use node_link::emulated;
use std::{
    ffi::OsString,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// What is compared with: its name, and the version its source says.
pub const NAME: &str = "TensorFlow Lite Micro 2.2.0";

/// The problem whose network the image runs.
pub const PROBLEM: &str = "heat-1d";

/// Where the image expects the policy; see its memory.x.
const SLOT: &str = "0x00100000";

/// Longest wait for the image to answer; it needs less than a second.
const PATIENCE: Duration = Duration::from_secs(60);

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
