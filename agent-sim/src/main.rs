//! The simulator on the command line, for the published problems.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_sim::cli::main(problem::published::ALL)
}
