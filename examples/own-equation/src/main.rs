//! Every command of the simulator and of the trainer, for a problem of one's own.

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    match trainer::cli::knows(&command) {
        true => trainer::cli::main(own_equation::ENTRIES),
        false => agent_sim::cli::main(own_equation::ENTRIES),
    }
}
