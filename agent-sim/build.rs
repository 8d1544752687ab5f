//! Builds the shipped policies into the program, so that it runs from anywhere.
//!
//! Every `policies/<problem>.policy` of the workspace becomes an entry of the table `SHIPPED`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let folder = root.join("../policies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut policies: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    policies.retain(|path| path.extension().is_some_and(|e| e == "policy"));
    policies.sort();

    let mut table = String::from("static SHIPPED: &[(&str, &[u8])] = &[\n");
    for path in &policies {
        println!("cargo::rerun-if-changed={}", path.display());
        let problem = path
            .file_stem()
            .and_then(|s| s.to_str())
            .expect("UTF-8 names");
        let path = path.canonicalize().expect("listed a moment ago");
        writeln!(table, "    ({problem:?}, include_bytes!({path:?})),").expect("to a string");
    }
    table.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&out).join("shipped.rs"), table).expect("OUT_DIR is writable");
}
