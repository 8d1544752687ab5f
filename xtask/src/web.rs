//! `cargo xtask web`: the page of live runs with the simulator in it, as a folder that anybody can host.
//!
//! The simulator is compiled to WebAssembly (the crate `web`) and runs in a worker of the page; the rest of
//! the page is the one that `agent-sim live` serves. Files have no headers, so what the page may load stands
//! in the page.

use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::{say, succeed, succeed_in},
    firmware::built_apart,
    page::{FILES, sources},
    programs::Build,
    setup,
    stages::cargo,
};

/// Most bytes of the folder, all files together.
const BUDGET: u64 = 3_000_000;

/// What the simulator is called there.
const ENGINE: &str = "engine";

/// What the page may load: its own files, and nothing that is written into it.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
     connect-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'";

/// The folder unless another is given.
pub fn folder() -> PathBuf {
    built_apart("web")
}

/// Writes the folder.
pub fn build(out: &Path, build: Build) -> Result<()> {
    let built = built_apart("wasm");
    let mut compile = cargo();
    compile
        .args(["build", "--package", "web", "--lib", "--profile", "web"])
        .args(["--target", setup::TARGET_WASM, "--target-dir"])
        .arg(&built);
    succeed(&mut compile)?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut module = build.program("web", "web-module")?;
    module
        .arg(built.join(setup::TARGET_WASM).join("web/web.wasm"))
        .arg(out)
        .arg(ENGINE);
    succeed(&mut module)?;
    for file in FILES.into_iter().chain(["worker.js"]) {
        let text = fs::read_to_string(sources().join(file))?;
        let text = match file {
            "index.html" => without_server(&text)?,
            _ => text,
        };
        let path = out.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    weigh(out)
}

/// The page that runs its simulator itself.
fn without_server(page: &str) -> Result<String> {
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\" />");
    let charset = "<meta charset=\"utf-8\" />";
    let changes = [
        ("<html ", "<html data-engine=\"worker\" ".to_owned()),
        (charset, format!("{charset}\n    {policy}")),
    ];
    let mut page = page.to_owned();
    for (from, to) in changes {
        ensure!(
            page.matches(from).count() == 1,
            "index.html has no single '{from}'"
        );
        page = page.replace(from, &to);
    }
    Ok(page)
}

/// Says how heavy the files are, and refuses too much.
fn weigh(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name(), entry.metadata()?.len()));
    }
    files.sort();
    for (name, bytes) in &files {
        say!("{bytes:>9} {}", name.display());
    }
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    say!(
        "{bytes:>9} bytes of at most {BUDGET} in {}",
        folder.display()
    );
    ensure!(bytes <= BUDGET, "the page is too heavy");
    Ok(())
}

/// The folder in a browser, against the program that the tests were run with.
pub fn browse(folder: &Path, browser: &Path, build: Build) -> Result<()> {
    let program = build.program("agent-sim", "agent-sim")?;
    let mut test = Command::new("node");
    test.args(["--test", "web.test.mjs"])
        .env("SITE", folder)
        .env("AGENT_SIM", program.get_program())
        .env("CHROMIUM", browser)
        .env("PICTURES", built_apart("page"));
    succeed_in(&sources(), &mut test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_without_a_server_says_so_and_what_it_may_load() {
        let page = fs::read_to_string(sources().join("index.html")).unwrap();
        let page = without_server(&page).unwrap();
        assert!(page.contains("<html data-engine=\"worker\" lang=\"en\">"));
        let policy = page.find("Content-Security-Policy").unwrap();
        assert!(policy < page.find("<script").unwrap());
        assert!(without_server(&page.replace("utf-8", "latin-1")).is_err());
    }
}
