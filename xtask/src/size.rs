//! The image against its budget.

use anyhow::{Context, Result, bail};
use object::{
    Object, ObjectSection, ObjectSymbol, SectionFlags,
    elf::{SHF_ALLOC, SHF_EXECINSTR},
};
use std::{fs, path::Path};

/// The image without policy.
const FLASH_BUDGET: u64 = 64 * 1024;
/// All variables and buffers, and the stack.
const RAM_BUDGET: u64 = 32 * 1024;
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
    stack: u64,
}

/// Prints the image's footprint; an error if it is over its budget.
pub fn check(elf: &Path) -> Result<()> {
    let footprint = measure(elf)?;
    let flash = footprint.code + footprint.constants + footprint.initial;
    let ram = footprint.variables + footprint.stack;
    println!(
        "{:<34} {:>8}  {:>8}",
        "image, without policy", "bytes", "budget"
    );
    for (name, bytes) in [
        ("  code", footprint.code),
        ("  constants", footprint.constants),
        ("  initial values of variables", footprint.initial),
    ] {
        println!("{name:<34} {bytes:>8}");
    }
    println!("{:<34} {flash:>8}  {FLASH_BUDGET:>8}", "flash");
    println!(
        "{:<34} {:>8}",
        "  variables and buffers", footprint.variables
    );
    println!("{:<34} {:>8}", "  stack", footprint.stack);
    println!("{:<34} {ram:>8}  {RAM_BUDGET:>8}", "RAM");
    if flash > FLASH_BUDGET || ram > RAM_BUDGET {
        bail!("the image is over its budget");
    }
    Ok(())
}

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
            if section.kind() == object::SectionKind::Data {
                footprint.initial += size;
            }
        } else if has(SHF_EXECINSTR) {
            footprint.code += size;
        } else {
            footprint.constants += size;
        }
    }
    let symbol = |name| {
        image
            .symbols()
            .find(|s| s.name() == Ok(name))
            .map(|s| s.address())
            .with_context(|| format!("{} has no symbol {name}", elf.display()))
    };
    footprint.stack = symbol("_stack_start")?.saturating_sub(symbol("_stack_end")?);
    Ok(footprint)
}
