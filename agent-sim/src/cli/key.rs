//! `agent-sim key`: keys that sign policies for nodes that ask for it.

use super::print;
use anyhow::{Context, anyhow};
use clap::Args;
use ed25519_compact::{KeyPair, Noise, Seed};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct KeyArgs {
    /// File for the secret key; must not exist yet
    file: PathBuf,
}

pub fn key(args: &KeyArgs) -> anyhow::Result<()> {
    let seed = Seed::generate();
    let name = args.file.display();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        // Nobody else's business.
        .mode(0o600)
        .open(&args.file)
        .and_then(|mut file| writeln!(file, "{}", hex(&*seed)));
    written.with_context(|| format!("cannot write the secret key to {name}"))?;
    print(&format!(
        "secret key: {name} (keep it safe; who has it can sign policies)\npublic key: {}\n",
        hex(&*KeyPair::from_seed(seed).pk)
    ))
}

/// The signature of a policy with the secret key in a file.
pub fn sign(path: &Path, policy: &[u8]) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let text = problem::input::read_text(path, problem::input::KEY)
        .map_err(|error| anyhow!("cannot read the secret key {name}: {error}"))?;
    let seed = bytes(text.trim())
        .ok_or_else(|| anyhow!("{name} is no key of agent-sim key: 64 hexadecimal digits"))?;
    let pair = KeyPair::from_seed(Seed::new(seed));
    Ok(pair.sk.sign(policy, Some(Noise::generate())).to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.0.iter().map(byte).collect();
    bytes?.try_into().ok().filter(|_| digits.1.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_compact::{PublicKey, Signature};

    #[test]
    fn what_a_new_key_signs_its_public_key_confirms() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret.key");
        key(&KeyArgs { file: file.clone() }).unwrap();
        let signature = Signature::from_slice(&sign(&file, b"a policy").unwrap()).unwrap();
        let seed = bytes(std::fs::read_to_string(&file).unwrap().trim()).unwrap();
        let public = *KeyPair::from_seed(Seed::new(seed)).pk;
        let public = PublicKey::from_slice(&public).unwrap();
        assert!(public.verify(b"a policy", &signature).is_ok());
        assert!(public.verify(b"another", &signature).is_err());
        // A key is never overwritten.
        assert!(key(&KeyArgs { file }).is_err());
    }
}
