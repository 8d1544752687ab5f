//! Names the cores whose instructions `cortex_m4f.rs` is written in: rustc's own names for them are
//! not stable.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(cortex_m4f)");
    if std::env::var("TARGET").is_ok_and(|target| target == "thumbv7em-none-eabihf") {
        println!("cargo:rustc-cfg=cortex_m4f");
    }
}
