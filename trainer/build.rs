//! Tells the program which source revision it is built from, for the provenance in policy blobs.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_REVISION");
    // Written by every commit; absent outside a checkout.
    println!("cargo::rerun-if-changed=../.git/logs/HEAD");
    if std::env::var_os("SOURCE_REVISION").is_some() {
        return;
    }
    let revision = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    if let Some(revision) = revision {
        println!("cargo::rustc-env=SOURCE_REVISION={}", revision.trim());
    }
}
