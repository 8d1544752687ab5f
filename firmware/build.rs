//! Hands the linker the memory map of the board that is being built for.

use std::{env, fs, path::PathBuf};

/// The boards: each is a feature, and a file of `memory/`, in their own spellings.
const BOARDS: [&str; 7] = [
    "mps2_an386",
    "mps2_an500",
    "mps2_an505",
    "nucleo_f446re",
    "nrf52840_dk",
    "pico2",
    "virt_rv32",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory");
    println!("cargo:rustc-check-cfg=cfg(armv7em)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv7em")) {
        println!("cargo:rustc-cfg=armv7em");
    }
    let is_on = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let boards = BOARDS.iter().filter(|board| is_on(&board.to_uppercase()));
    let board = match boards.collect::<Vec<_>>()[..] {
        [] => return, // a host build: nothing to link
        [board] => board,
        [..] => panic!("an image is for one board: choose one of {BOARDS:?}"),
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let map = format!("memory/{board}.x");
    fs::copy(map, out.join("memory.x")).expect("copy the memory map");
    if is_on("MPS2") {
        // cortex-m-rt includes it for the default handlers; our vector table is complete without.
        fs::write(out.join("device.x"), "").expect("write device.x");
    }
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
}
