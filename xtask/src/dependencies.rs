//! `cargo deny`: what may be linked, by deny.toml.

use anyhow::{Context, Result};
use std::{path::Path, process::Command, time::Duration};

use crate::{
    command::{say, succeed},
    firmware::root,
    setup::{self, succeeds_within},
    stages::WITH_LOCK_FILES,
};

/// What can be checked with nothing but the packages.
const ALWAYS: [&str; 3] = ["bans", "licenses", "sources"];

/// What each package needs not have all of.
const PERHAPS_UNUSED: [&str; 2] = ["unmatched-skip-root", "license-exception-not-encountered"];

/// All that can be checked here.
pub fn run() -> Result<()> {
    let program = setup::cargo_deny()?;
    let advisories = fetch_advisories(&program);
    if let Err(missing) = &advisories {
        println!("{missing:#}");
    }
    check(&program, advisories.is_ok())
}

/// Brings the database of known holes, which is a git repository and no registry's.
pub fn fetch_advisories(program: &Path) -> Result<()> {
    let mut fetch = Command::new(program);
    fetch.args(["fetch", "db"]).current_dir(root());
    succeeds_within(&mut fetch, Duration::from_secs(120))
        .then_some(())
        .context(
            "dependencies are not held against known holes: https://github.com/RustSec/advisory-db \
             cannot be had here",
        )
}

/// Checks everything that has a lock file.
pub fn check(program: &Path, advisories: bool) -> Result<()> {
    for manifest in WITH_LOCK_FILES {
        say!("{manifest}");
        let mut check = Command::new(program);
        check
            .args(["--locked", "--manifest-path", manifest])
            .args(["--config", "deny.toml", "check", "--hide-inclusion-graph"])
            .args(PERHAPS_UNUSED.iter().flat_map(|lint| ["--allow", lint]))
            .args(ALWAYS)
            .args(advisories.then_some("advisories"));
        succeed(&mut check)?;
    }
    Ok(())
}
