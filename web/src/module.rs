//! Makes a module for pages of the compiled library: `web-module FROM.wasm TO-FOLDER NAME`.
//!
//! It is what the program `wasm-bindgen` does, in the version that the library was compiled with.
#![forbid(unsafe_code)]

#[cfg(target_family = "wasm")]
fn main() {}

#[cfg(not(target_family = "wasm"))]
fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, name] = &arguments[..] else {
        anyhow::bail!("give the compiled library, a folder and a name");
    };
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(from)
        .out_name(name)
        .web(true)?
        .omit_default_module_path(false)
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(to)
}
