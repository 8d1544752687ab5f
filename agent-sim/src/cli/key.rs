//! `agent-sim key`: keys that sign policies.

use super::print;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct KeyArgs {
    /// File for the secret key; must not exist yet
    file: PathBuf,
}

pub fn key(_args: &KeyArgs) -> anyhow::Result<()> {
    print("")
}

/// The signature of a policy with the secret key in a file.
pub fn sign(_path: &Path, _policy: &[u8]) -> anyhow::Result<Vec<u8>> {
    Ok(Vec::new())
}
