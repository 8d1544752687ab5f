//! `cargo bench -p agent-core`: one step and many agents on this machine, beside tract.
//!
//! The benchmark is `bench/host`, apart from the workspace because tract takes minutes to compile.
//! `--bench host -- --smoke` only sees that it works.

use std::{
    env,
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    // Others come from cargo itself.
    let smoke = env::args().filter(|argument| argument == "--smoke");
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
        .args(smoke)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
