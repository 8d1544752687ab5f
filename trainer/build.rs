//! Tells the program which source revision it is built from, for the provenance in policy blobs.

use std::{path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_REVISION");
    // Outside a checkout of ours, as from a registry, git would speak of somebody else's.
    if std::env::var_os("SOURCE_REVISION").is_some() || !Path::new("../.git").exists() {
        println!("cargo::rerun-if-changed=build.rs");
        return;
    }
    // Written by every commit. What is not there counts as changed, and everything would be compiled
    // again and again: it is elsewhere in a second work tree, and absent outside a checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(revision) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=SOURCE_REVISION={revision}");
    }
}

/// What git says, if it says something.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(said).ok()?.trim().to_owned())
}
