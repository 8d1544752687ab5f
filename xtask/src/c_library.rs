//! agent-core for C: the library, and the example that links with it.

use anyhow::{Context, Result, bail};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::succeed,
    firmware::{root, target_folder},
    setup::{C_COMPILER, TARGET, Toolchain},
};

/// What the library is optimised for.
#[derive(Debug, Clone, Copy)]
pub enum Flavour {
    /// Size.
    Small,
    /// Speed.
    Fast,
}

impl Flavour {
    const ALL: [Self; 2] = [Self::Small, Self::Fast];

    /// Its cargo profile.
    fn profile(self) -> &'static str {
        match self {
            Self::Small => "c-small",
            Self::Fast => "c-fast",
        }
    }

    fn folder(self, core: &str) -> PathBuf {
        target_folder().join(core).join(self.profile())
    }
}

/// The functions without which there is no agent.
pub const CONTROL: [&str; 7] = [
    "agent_init",
    "agent_step",
    "agent_idle",
    "agent_is_late",
    "agent_reset",
    "agent_policy_query",
    "agent_status_text",
];
/// The other one, which brings formatting of text with it.
pub const EXPLAIN: &str = "agent_policy_explain";

/// The policy in the example.
pub const POLICY: &str = "policies/heat-1d.policy";

/// A Cortex-M4F as rustc's target has it.
pub const CORE: [&str; 4] = [
    "-mcpu=cortex-m4",
    "-mthumb",
    "-mfloat-abi=hard",
    "-mfpu=fpv4-sp-d16",
];

/// At its default for size, 5, the compiler leaves functions alone whose calls take more room than
/// they do; 25 makes the library two in a hundred smaller.
const SMALLER: &str = "-Cllvm-args=-inline-threshold=25";

/// Builds the library for a core and returns its path.
pub fn library(toolchain: &Toolchain, core: &str, flavour: Flavour) -> Result<PathBuf> {
    let mut cargo = toolchain.cargo_for(core, "rustc", &target_folder());
    cargo.args(["--package", "agent-core-c", "--lib"]).args([
        "--crate-type",
        "staticlib",
        "--profile",
        flavour.profile(),
    ]);
    if matches!(flavour, Flavour::Small) {
        cargo.args(["--", SMALLER]);
    }
    succeed(&mut cargo)?;
    let library = flavour.folder(core).join("libagent_core_c.a");
    if !library.is_file() {
        bail!("the build left no {}", library.display());
    }
    Ok(library)
}

/// Builds the example, small and fast, and returns where they are.
pub fn examples(toolchain: &Toolchain) -> Result<Vec<PathBuf>> {
    let build = |flavour| example(&library(toolchain, TARGET, flavour)?);
    Flavour::ALL.into_iter().map(build).collect()
}

/// Links the example with a library that cannot panic; with any other it fails for want of
/// `agent_core_would_panic_here`.
fn example(library: &Path) -> Result<PathBuf> {
    let folder = root().join("agent-core-c");
    let sources = folder.join("example");
    let elf = library.with_file_name("c-example.elf");
    let mut compiler = linker(&elf);
    compiler
        .args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(["-ffreestanding", "-ffunction-sections", "-fdata-sections"])
        .args(["-Wl,--fatal-warnings", "-Wl,-z,noexecstack"])
        .arg("-I")
        .arg(folder.join("include"))
        .arg(format!("-DPOLICY=\"{}\"", root().join(POLICY).display()))
        .arg("-T")
        .arg(sources.join("mps2_an386.ld"))
        .args(["main.c", "mps2_an386.c", "policy.S"].map(|name| sources.join(name)))
        .arg(library);
    succeed(&mut compiler).context(
        "the example in C does not link; if it is for want of `agent_core_would_panic_here`, \
         agent-core can panic: docs/c-api.md says how to find out where",
    )?;
    Ok(elf)
}

/// Links nothing but these functions and what they need: for measuring, not for running.
pub fn link_alone(library: &Path, functions: &[&str]) -> Result<PathBuf> {
    let elf = library.with_file_name(format!("{}-functions.elf", functions.len()));
    let mut linker = linker(&elf);
    linker
        .arg("-Wl,--entry=0")
        .args(
            functions
                .iter()
                .map(|name| format!("-Wl,--undefined={name}")),
        )
        .arg(library);
    succeed(&mut linker)?;
    Ok(elf)
}

fn linker(elf: &Path) -> Command {
    let mut linker = Command::new(C_COMPILER);
    linker
        .args(CORE)
        .args(["-nostdlib", "-Wl,--gc-sections", "-o"])
        .arg(elf);
    linker
}
