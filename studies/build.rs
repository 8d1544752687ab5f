//! Fingerprints the code that decides what a run gives, so that stored figures of another simulator
//! are never taken for this one's; and builds in the policies that were trained for one study alone,
//! so that the program runs from anywhere.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Folders whose sources decide what a run gives.
const DECIDING: [&str; 6] = [
    "../agent-core/src",
    "../agent-kernels/src",
    "../agent-sim/src",
    "../artifacts/src",
    "../problem/src",
    "../testsets",
];

/// Folders among them that decide how results are shown, no more.
const SHOWING: [&str; 2] = ["../agent-sim/src/cli", "../agent-sim/src/report"];

fn main() {
    let mut files = Vec::new();
    for folder in DECIDING {
        println!("cargo::rerun-if-changed={folder}");
        gather(Path::new(folder), &mut files);
    }
    files.sort();
    let mut digest = Sha256::new();
    for path in files {
        let bytes = std::fs::read(&path).expect("listed a moment ago");
        digest.update(path.to_string_lossy().as_bytes());
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    }
    let text: String = digest.finalize()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=SIMULATOR_SOURCES={text}");
    build_in_policies();
}

/// Every `policies/studies/<name>.policy` becomes an entry of the table `BUILT_IN`.
fn build_in_policies() {
    // The folder above is watched too: this one may not be there yet.
    println!("cargo::rerun-if-changed=../policies");
    let entries = std::fs::read_dir("../policies/studies")
        .into_iter()
        .flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "policy"));
    paths.sort();
    let mut table = String::from("static BUILT_IN: &[(&str, &[u8])] = &[\n");
    for path in paths {
        let name = path.file_stem().and_then(|s| s.to_str());
        let name = name.expect("UTF-8 names");
        let path = path.canonicalize().expect("listed a moment ago");
        table += &format!("    ({name:?}, include_bytes!({path:?})),\n");
    }
    table += "];\n";
    let out = std::env::var_os("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&out).join("policies.rs"), table).expect("OUT_DIR is writable");
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    if SHOWING.iter().any(|shows| Path::new(shows) == folder) {
        return;
    }
    let entries = std::fs::read_dir(folder).expect("the workspace's sources are beside this crate");
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => gather(&path, files),
            false => files.push(path),
        }
    }
}
