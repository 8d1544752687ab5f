//! `cargo bench -p agent-core`: one step and many agents on this machine, beside tract.
//!
//! The benchmark is `bench/host`, apart from the workspace because tract takes minutes to compile.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "bench",
            "host",
        ])
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
