//! Hands the linker the memory map of the board that is being built for.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory");
    if env::var_os("CARGO_FEATURE_MPS2_AN386").is_none() {
        return; // a host build: nothing to link
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy("memory/mps2_an386.x", out.join("memory.x")).expect("copy the memory map");
    // cortex-m-rt includes it for the default handlers; our vector table is complete without.
    fs::write(out.join("device.x"), "").expect("write device.x");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
}
