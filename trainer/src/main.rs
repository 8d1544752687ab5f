//! The trainer on the command line, for the published problems.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    trainer::cli::main(trainer::published::ENTRIES)
}
