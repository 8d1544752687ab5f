//! `cargo xtask page`: the page of live runs, from TypeScript to what the program serves, and in a real
//! browser.
//!
//! What is served is committed beside its source, so that nobody needs Node.js to build the program; it is
//! the source without its types, and CI holds it to that.

use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::{say, succeed_in},
    firmware::{built_apart, root},
    programs::Build,
    setup,
};

/// Most bytes of the page, all files together.
const BUDGET: u64 = 500_000;
/// What is served.
pub const FILES: [&str; 3] = ["index.html", "live.css", "live.js"];

/// Where the page's source is.
pub fn sources() -> PathBuf {
    root().join("agent-sim/page")
}

fn npx(arguments: &[&str]) -> Command {
    let mut npx = Command::new("npx");
    npx.arg("--no-install").args(arguments);
    npx
}

/// Node.js, with the packages of the lock file.
pub fn set_up() -> Result<()> {
    setup::node()?;
    let lock = fs::read_to_string(sources().join("package-lock.json"))?;
    let there = sources().join("node_modules/installed.txt");
    if fs::read_to_string(&there).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    succeed_in(&sources(), &mut install)
        .context("cannot install the packages of agent-sim/page")?;
    Ok(fs::write(there, lock)?)
}

/// Writes what is served.
pub fn build() -> Result<()> {
    set_up()?;
    succeed_in(&sources(), &mut npx(&["tsc"]))
}

/// Whether what is served is its source, tidy and small.
pub fn check() -> Result<()> {
    let fresh = built_apart("page");
    let out = fresh.display().to_string();
    succeed_in(&sources(), &mut npx(&["tsc", "--outDir", &out]))?;
    let read =
        |path: PathBuf| fs::read(&path).with_context(|| format!("cannot read {}", path.display()));
    for file in ["live", "worker"] {
        let script = format!("{file}.js");
        ensure!(
            read(fresh.join(&script))? == read(sources().join(&script))?,
            "agent-sim/page/{script} is not what {file}.ts gives: run `cargo xtask page` and commit it"
        );
    }
    succeed_in(
        &sources(),
        Command::new("npm").args(["run", "--silent", "format"]),
    )?;
    let mut bytes = 0;
    for file in FILES {
        bytes += fs::metadata(sources().join(file))?.len();
    }
    say!("the page weighs {bytes} bytes of at most {BUDGET}");
    ensure!(bytes <= BUDGET, "the page is too heavy");
    Ok(())
}

/// The page in a browser, against the program that the tests were run with.
pub fn browse(browser: &Path, build: Build) -> Result<()> {
    let program = build.program("agent-sim", "agent-sim")?;
    let mut test = Command::new("node");
    test.args(["--test", "browser.test.mjs"])
        .env("AGENT_SIM", program.get_program())
        .env("CHROMIUM", browser)
        .env("PICTURES", built_apart("page"));
    succeed_in(&sources(), &mut test)
}
