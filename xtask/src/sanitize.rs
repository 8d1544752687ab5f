//! agent-core's tests where memory errors show: under AddressSanitizer, and its unit tests in Miri.
//!
//! agent-core has no `unsafe` of its own; the crates that it reads bytes with do.

use anyhow::Result;
use std::{env, process::Command};

use crate::{command::succeed, firmware::built_apart, setup, stages::cargo};

const ADDRESS: &str = "-Zsanitizer=address";

/// How agent-core is optimised under it.
const LIGHTLY: [&str; 2] = ["opt-level=1", "codegen-units=16"];

/// The target whose code Miri runs: libm has inline assembly for x86-64, which Miri cannot run, and
/// pointers here are as long as a node's.
const MIRI_TARGET: &str = "armv7-unknown-linux-gnueabihf";

/// Property tests run this many cases in Miri, which is a few hundred times slower.
const MIRI_CASES: &str = "4";

/// Runs the tests under AddressSanitizer.
pub fn address() -> Result<()> {
    let mut tests = cargo();
    tests
        .args(["test", "--package", "agent-core"])
        // The workspace's own optimises agent-core fully and in one piece, its tests too: with checks at
        // every access that takes minutes.
        .args(LIGHTLY.map(|setting| format!("--config=profile.dev.package.agent-core.{setting}")))
        .arg("--target")
        // Named, so that the flags are not those of build scripts and macros too.
        .arg(setup::host()?)
        .arg("--target-dir")
        .arg(built_apart("address"))
        // Sanitizers are unstable; a stable compiler, which carries their runtime, takes them with
        // this.
        .env("RUSTC_BOOTSTRAP", "1");
    for variable in ["RUSTFLAGS", "RUSTDOCFLAGS"] {
        let given = env::var(variable).unwrap_or_default();
        tests.env(variable, format!("{given} {ADDRESS}"));
    }
    succeed(&mut tests)
}

/// Runs the tests in Miri.
pub fn in_miri() -> Result<()> {
    setup::miri()?;
    // The unit tests alone: the others run whole networks, which takes Miri tens of minutes.
    succeed(miri("test").args(["--package", "agent-core", "--lib"]))
}

/// `cargo miri <command>` of the nightly toolchain.
pub fn miri(command: &str) -> Command {
    let mut miri = Command::new("rustup");
    miri.args(["run", "nightly", "cargo", "miri", command])
        .args(["--target", MIRI_TARGET, "--target-dir"])
        .arg(built_apart("miri"))
        // Property tests look for the file of earlier failures.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("PROPTEST_CASES", MIRI_CASES);
    // Left by the cargo that runs us, and meant for its own compiler.
    for variable in [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTUP_TOOLCHAIN",
        "LD_LIBRARY_PATH",
    ] {
        miri.env_remove(variable);
    }
    miri
}
