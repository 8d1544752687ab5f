//! The program that makes modules for pages says what it lacks. What it makes is tested in a browser.
#![cfg(not(target_family = "wasm"))]

use std::process::Command;

fn said(arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_web-module");
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_missing_is_told() {
    assert!(said(&[]).contains("give the compiled library, a folder and a name"));
    let folder = env!("CARGO_TARGET_TMPDIR");
    assert!(said(&["nowhere.wasm", folder, "engine"]).contains("nowhere.wasm"));
}
