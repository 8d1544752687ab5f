//! The images, and agent-core alone, against their budgets.

use anyhow::{Context, Result, bail};
use object::{
    Object, ObjectSection, ObjectSymbol, SectionFlags,
    elf::{SHF_ALLOC, SHF_EXECINSTR},
};
use std::{fs, path::Path};

use crate::{
    c_library::{self, Flavour},
    setup::Toolchain,
};

/// The image without policy.
const FLASH_BUDGET: u64 = 96 * 1024;
/// All variables and buffers, and the stack.
const RAM_BUDGET: u64 = 48 * 1024;
/// agent-core alone, code and constants, optimised for size.
const SMALL_BUDGET: u64 = 24 * 1024;
/// The same, optimised for speed.
const FAST_BUDGET: u64 = 48 * 1024;
/// Where the core's data memory starts; below is code.
const RAM_ORIGIN: u64 = 0x2000_0000;

/// What an image takes on the board, in bytes.
#[derive(Debug, Default)]
struct Footprint {
    code: u64,
    constants: u64,
    /// Initial values of variables, kept in flash.
    initial: u64,
    variables: u64,
}

/// Prints an image's footprint; an error if it is over its budget.
pub fn check(name: &str, elf: &Path) -> Result<()> {
    let footprint = measure(elf)?;
    let flash = footprint.code + footprint.constants + footprint.initial;
    let stack = between(elf, "_stack_end", "_stack_start")?;
    let black_box = between(elf, "_black_box", "_black_box_end")?;
    let ram = footprint.variables + stack + black_box;
    println!("{name:<34} {:>8}  {:>8}", "bytes", "budget");
    for (name, bytes) in [
        ("  code", footprint.code),
        ("  constants", footprint.constants),
        ("  initial values of variables", footprint.initial),
    ] {
        println!("{name:<34} {bytes:>8}");
    }
    println!(
        "{:<34} {flash:>8}  {FLASH_BUDGET:>8}",
        "flash, without policies"
    );
    for (name, bytes) in [
        ("  variables and buffers", footprint.variables),
        ("  stack", stack),
        ("  black box", black_box),
    ] {
        println!("{name:<34} {bytes:>8}");
    }
    println!("{:<34} {ram:>8}  {RAM_BUDGET:>8}", "RAM");
    if flash > FLASH_BUDGET || ram > RAM_BUDGET {
        bail!("the image for {name} is over its budget");
    }
    Ok(())
}

/// Prints what agent-core alone takes, without policy, working memory and whoever calls it; an
/// error if it is over its budget.
pub fn check_library(toolchain: &Toolchain) -> Result<()> {
    let small = c_library::library(toolchain, Flavour::Small)?;
    let fast = c_library::library(toolchain, Flavour::Fast)?;
    println!("{:<34} {:>8}  {:>8}", "agent-core alone", "bytes", "budget");
    let mut over = false;
    for (library, name, budget) in [
        (small, "optimised for size", SMALL_BUDGET),
        (fast, "optimised for speed", FAST_BUDGET),
    ] {
        let alone = measure(&c_library::link_alone(&library, &c_library::CONTROL)?)?;
        let functions = [&c_library::CONTROL[..], &[c_library::EXPLAIN]].concat();
        let all = measure(&c_library::link_alone(&library, &functions)?)?;
        if alone.variables > 0 {
            bail!("agent-core has variables of its own: {alone:?}");
        }
        let flash = alone.code + alone.constants;
        println!("{:<34} {:>8}", format!("  {name}: code"), alone.code);
        println!("{:<34} {:>8}", "    constants", alone.constants);
        println!("{:<34} {flash:>8}  {budget:>8}", "    flash");
        println!(
            "{:<34} {:>8}",
            "    with sentences about errors",
            all.code + all.constants
        );
        over |= flash > budget;
    }
    if over {
        bail!("agent-core is over its budget");
    }
    Ok(())
}

/// What lies where; the stack is in no section.
fn measure(elf: &Path) -> Result<Footprint> {
    let bytes = fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let image = object::File::parse(&*bytes)?;
    let mut footprint = Footprint::default();
    for section in image.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            continue;
        };
        let has = |flag: u32| sh_flags & u64::from(flag) != 0;
        if !has(SHF_ALLOC) {
            continue; // for the host: log strings, debug information
        }
        let size = section.size();
        if section.address() >= RAM_ORIGIN {
            footprint.variables += size;
            // Variables, and code that runs from RAM.
            if section.kind() != object::SectionKind::UninitializedData {
                footprint.initial += size;
            }
        } else if has(SHF_EXECINSTR) {
            footprint.code += size;
        } else {
            footprint.constants += size;
        }
    }
    Ok(footprint)
}

/// Bytes between two symbols of the image's memory map.
fn between(elf: &Path, start: &str, end: &str) -> Result<u64> {
    let bytes = fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let image = object::File::parse(&*bytes)?;
    let symbol = |name| {
        image
            .symbols()
            .find(|s| s.name() == Ok(name))
            .map(|s| s.address())
            .with_context(|| format!("{} has no symbol {name}", elf.display()))
    };
    Ok(symbol(end)?.saturating_sub(symbol(start)?))
}
