//! Keys for images that are measured and attacked, and never shipped: made on this machine, once.

use anyhow::{Context, Result};
use ed25519_compact::{KeyPair, Seed};
use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use crate::firmware::target_folder;

/// The fleet of such an image.
pub const FLEET: &str = "throwaway";

/// Where the secret halves are, for tests that sign and seal with them.
pub fn folder() -> PathBuf {
    target_folder().join("throwaway-keys")
}

/// What an image is built with, by the variables that [`firmware`](mod@crate::firmware) builds read.
pub fn keys() -> Result<[(&'static str, String); 4]> {
    let public = |name| -> Result<String> { Ok(hex(&*KeyPair::from_seed(secret(name)?).pk)) };
    Ok([
        ("POLICY_KEY", public("policy")?),
        ("POLICY_KEY_2", public("policy-2")?),
        ("LINK_KEY", hex(&*secret("link")?)),
        ("NODE_FLEET", FLEET.to_owned()),
    ])
}

/// The secret of that name: kept, or made.
fn secret(name: &str) -> Result<Seed> {
    let file = folder().join(name).with_extension("key");
    let named = || format!("the throwaway key {}", file.display());
    if !file.exists() {
        fs::create_dir_all(folder()).with_context(named)?;
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&file);
        opened
            .and_then(|mut file| writeln!(file, "{}", hex(&*Seed::generate())))
            .with_context(named)?;
    }
    let text = fs::read_to_string(&file).with_context(named)?;
    let (pairs, _) = text.trim().as_bytes().as_chunks::<2>();
    let digits = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(digits).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    Ok(Seed::new(bytes.with_context(|| {
        format!("{} is no key: delete it", named())
    })?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
