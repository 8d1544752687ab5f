//! Compiles the parts of TensorFlow Lite Micro that the network needs, and links them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Names the folder of the crate that carries the library's source.
const SOURCE: &str = "TFMICRO_SOURCE";

/// The interpreter and the three operators; relative to `tensorflow/lite`.
const FILES: [&str; 18] = [
    "c/common.c",
    "core/api/error_reporter.cc",
    "core/api/flatbuffer_conversions.cc",
    "core/api/op_resolver.cc",
    "core/api/tensor_utils.cc",
    "kernels/internal/quantization_util.cc",
    "kernels/kernel_util.cc",
    "micro/memory_helpers.cc",
    "micro/memory_planner/greedy_memory_planner.cc",
    "micro/micro_allocator.cc",
    "micro/micro_error_reporter.cc",
    "micro/micro_interpreter.cc",
    "micro/micro_string.cc",
    "micro/micro_utils.cc",
    "micro/simple_memory_allocator.cc",
    "micro/kernels/concatenation.cc",
    "micro/kernels/fully_connected.cc",
    "micro/kernels/tanh.cc",
];

/// What the library needs of the C and C++ run time, from the cross compiler.
const RUNTIME: [&str; 4] = ["stdc++", "m", "c", "gcc"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rerun-if-changed=src/network.cc");
    println!("cargo:rerun-if-env-changed={SOURCE}");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy("memory.x", out.join("memory.x")).expect("copy the memory map");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");

    let source = env::var_os(SOURCE).map(PathBuf::from);
    let source = source.unwrap_or_else(|| panic!("build with `cargo xtask firmware bench`"));
    let compiler = compile(&source.join("submodules/tensorflow"));
    for library in RUNTIME {
        let archive = compiler
            .to_command()
            .arg(format!("-print-file-name=lib{library}.a"))
            .output()
            .expect("ask the compiler for its libraries");
        let archive = PathBuf::from(String::from_utf8_lossy(&archive.stdout).trim());
        let folder = archive.parent().expect("a library lies in a folder");
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle={library}");
    }
}

/// Compiles the library and our use of it; returns the compiler.
fn compile(tensorflow: &Path) -> cc::Tool {
    let lite = tensorflow.join("tensorflow/lite");
    let downloads = lite.join("micro/tools/make/downloads");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .opt_level(3)
        .warnings(false)
        .flag("-mtune=cortex-m4")
        .flag("-xc++") // the one C file too
        .flag("-std=c++11")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fno-threadsafe-statics")
        .flag("-fno-math-errno")
        .define("NDEBUG", None)
        .define("TF_LITE_STATIC_MEMORY", None)
        .include(tensorflow)
        .include(downloads.join("flatbuffers/include"))
        .include(downloads.join("gemmlowp"))
        .include(downloads.join("ruy"))
        .file("src/network.cc")
        .files(FILES.map(|file| lite.join(file)))
        .compile("peer");
    build.get_compiler()
}
