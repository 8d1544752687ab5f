//! Fingerprints the code that decides what a run gives, so that stored figures of another simulator
//! are never taken for this one's.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Folders whose sources decide what a run gives.
const DECIDING: [&str; 4] = [
    "../agent-core/src",
    "../agent-kernels/src",
    "../agent-sim/src",
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
