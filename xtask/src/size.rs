//! The images, and agent-core alone, against their budgets.

use anyhow::{Context, Result, bail};
use object::{
    Object, ObjectSection, ObjectSymbol, SectionFlags,
    elf::{SHF_ALLOC, SHF_EXECINSTR},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    board::{Board, Image},
    c_library::{self, Flavour},
    command::say,
    setup::{TARGET, Toolchain},
};

/// The image without policy.
const FLASH_BUDGET: u64 = 112 * 1024;
/// The same on a core of RISC-V, which takes more instructions, and for floats functions.
const FLASH_BUDGET_RISC_V: u64 = 128 * 1024;
/// All variables and buffers, and the stack.
const RAM_BUDGET: u64 = 48 * 1024;
/// The same where a real board's node senses and acts by itself: besides what the emulated one has, there are
/// its line's buffers.
const RAM_BUDGET_ALONE: u64 = 56 * 1024;
/// agent-core alone, code and constants, optimised for size.
const SMALL_BUDGET: u64 = 24 * 1024;
/// The same, optimised for speed.
const FAST_BUDGET: u64 = 48 * 1024;
/// Where Arm's cores have their data memory, and the linker puts what agent-core alone has of it.
const RAM: u64 = 0x2000_0000;
/// Where the stack ends, which in every memory map is where RAM begins; below is code.
const STACK_END: &str = "_stack_end";

/// What an image takes on the board, in bytes.
#[derive(Debug, Default)]
struct Footprint {
    code: u64,
    constants: u64,
    /// Initial values of variables, kept in flash.
    initial: u64,
    variables: u64,
}

/// Prints what images take; an error if one is over its budget.
pub fn check_images(images: &[(Image, PathBuf)]) -> Result<()> {
    say!(
        "{:<22} {:>7} {:>9} {:>7} {:>7}   {:>9} {:>6} {:>9} {:>7}",
        "bytes",
        "code",
        "constants",
        "initial",
        "FLASH",
        "variables",
        "stack",
        "black box",
        "RAM"
    );
    let mut over = Vec::new();
    for (image, elf) in images {
        let name = image.name();
        let Footprint {
            code,
            constants,
            initial,
            variables,
        } = measure(elf, symbol(elf, STACK_END)?)?;
        let flash = code + constants + initial;
        let between = |start, end| Ok::<_, anyhow::Error>(symbol(elf, end)? - symbol(elf, start)?);
        let stack = between(STACK_END, "_stack_start")?;
        let black_box = between("_black_box", "_black_box_end")?;
        let ram = variables + stack + black_box;
        say!(
            "{name:<22} {code:>7} {constants:>9} {initial:>7} {flash:>7}   {variables:>9} {stack:>6} \
             {black_box:>9} {ram:>7}"
        );
        let flash_budget = match image.board {
            Board::VirtRv32 => FLASH_BUDGET_RISC_V,
            _ => FLASH_BUDGET,
        };
        let ram_budget = match image.is_standalone() {
            true => RAM_BUDGET_ALONE,
            false => RAM_BUDGET,
        };
        if flash > flash_budget || ram > ram_budget {
            over.push(name);
        }
    }
    say!("{:<22} {FLASH_BUDGET:>33}   {RAM_BUDGET:>34}", "budget");
    say!("{:<22} {FLASH_BUDGET_RISC_V:>33}", "on RISC-V");
    say!("{:<22} {:>33}   {RAM_BUDGET_ALONE:>34}", "by itself", "");
    if !over.is_empty() {
        bail!("over its budget: the image for {}", over.join(", "));
    }
    Ok(())
}

/// Prints what agent-core alone takes, without policy, working memory and whoever calls it; an
/// error if it is over its budget.
pub fn check_library(toolchain: &Toolchain) -> Result<()> {
    let small = c_library::library(toolchain, TARGET, Flavour::Small)?;
    let fast = c_library::library(toolchain, TARGET, Flavour::Fast)?;
    say!("{:<34} {:>8}  {:>8}", "agent-core alone", "bytes", "budget");
    let mut over = false;
    for (library, name, budget) in [
        (small, "optimised for size", SMALL_BUDGET),
        (fast, "optimised for speed", FAST_BUDGET),
    ] {
        let alone = measure(&c_library::link_alone(&library, &c_library::CONTROL)?, RAM)?;
        let functions = [&c_library::CONTROL[..], &[c_library::EXPLAIN]].concat();
        let all = measure(&c_library::link_alone(&library, &functions)?, RAM)?;
        if alone.variables > 0 {
            bail!("agent-core has variables of its own: {alone:?}");
        }
        let flash = alone.code + alone.constants;
        say!("{:<34} {:>8}", format!("  {name}: code"), alone.code);
        say!("{:<34} {:>8}", "    constants", alone.constants);
        say!("{:<34} {flash:>8}  {budget:>8}", "    flash");
        say!(
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

/// What lies where; the stack is not counted.
fn measure(elf: &Path, ram: u64) -> Result<Footprint> {
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
        if section.name() == Ok(".stack") {
            continue; // where the linker's script makes one of it
        }
        if section.address() >= ram {
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

/// The address of a symbol of the image's memory map.
fn symbol(elf: &Path, name: &str) -> Result<u64> {
    let bytes = fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let image = object::File::parse(&*bytes)?;
    let found = image.symbols().find(|symbol| symbol.name() == Ok(name));
    found
        .map(|symbol| symbol.address())
        .with_context(|| format!("{} has no symbol {name}", elf.display()))
}
