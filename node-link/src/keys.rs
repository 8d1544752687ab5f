//! Keys and signed manifests as files.
//!
//! | file | holds | is for |
//! | --- | --- | --- |
//! | a policy key | 64 hexadecimal digits | signing manifests; its public half goes into images |
//! | a link key | 64 hexadecimal digits | the image, and making keys for hosts from it |
//! | a host's key | rights, a space, 64 hexadecimal digits | opening sessions with these rights |
//! | a manifest | [`SignedManifest`] | whoever flashes without a policy key |

use crate::{Offer, PlaceOffer};
use anyhow::{Context, anyhow, bail};
use ed25519_compact::{KeyPair, Noise, Seed};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tempfile::NamedTempFile;
use trust::manifest::{MANIFEST, SIGNED, Subject, signed_bytes};
use trust::{Grant, KeyId, LinkKey, Manifest, Rights};

/// A key that signs manifests.
pub struct PolicyKey(KeyPair);

impl PolicyKey {
    /// A new one.
    pub fn generate() -> Self {
        Self(KeyPair::from_seed(Seed::generate()))
    }

    /// The one that a file holds.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let seed = bytes(text.trim());
        let seed = seed.context("no policy key of agent-sim key: 64 hexadecimal digits")?;
        Ok(Self(KeyPair::from_seed(Seed::new(seed))))
    }

    /// Keeps it in a file that must not exist yet.
    pub fn keep(&self, path: &Path) -> anyhow::Result<()> {
        keep(path, &hex(&*self.0.sk.seed()))
    }

    /// Its public half, in hexadecimal digits.
    pub fn public(&self) -> String {
        hex(&*self.0.pk)
    }

    /// What manifests call it.
    pub fn id(&self) -> KeyId {
        KeyId::of(&self.0.pk)
    }

    /// Signs what is said of a policy, as said with this key.
    pub fn sign(&self, manifest: &Manifest) -> anyhow::Result<SignedManifest> {
        let (manifest, signature) = self.signed(Subject::Policy, manifest)?;
        Ok(SignedManifest {
            magic: MAGIC,
            manifest,
            signature,
        })
    }

    /// The offer of a place, with what is said of it, as said with this key.
    pub fn offer_place(&self, place: &[u8], manifest: &Manifest) -> anyhow::Result<PlaceOffer> {
        let (manifest, signature) = self.signed(Subject::Place, manifest)?;
        Ok(PlaceOffer {
            place: place.to_vec(),
            manifest,
            signature,
        })
    }

    /// A manifest as said with this key, and its signature as one of a policy or a place.
    fn signed(&self, subject: Subject, manifest: &Manifest) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
        let manifest = Manifest {
            key: self.id(),
            ..*manifest
        };
        let mut room = [0; MANIFEST];
        let manifest = manifest.encode(&mut room)?.to_vec();
        let mut room = [0; SIGNED];
        let signed = signed_bytes(subject, &manifest, &mut room);
        let signed = signed.context("the manifest is too long")?;
        let signature = self.0.sk.sign(signed, Some(Noise::generate())).to_vec();
        Ok((manifest, signature))
    }
}

/// First in every file of a manifest.
const MAGIC: [u8; 8] = *b"MANIFEST";

/// A manifest and its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedManifest {
    magic: [u8; 8],
    manifest: Vec<u8>,
    signature: Vec<u8>,
}

impl SignedManifest {
    /// The one that a file holds.
    pub fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        match postcard::take_from_bytes::<Self>(bytes) {
            Ok((signed, [])) if signed.magic == MAGIC => Ok(signed),
            _ => bail!("no manifest of agent-sim sign"),
        }
    }

    /// Keeps it in a file.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let bytes = postcard::to_allocvec(self)?;
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let whole = || -> io::Result<()> {
            let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        whole().with_context(|| format!("cannot write {}", path.display()))
    }

    /// What it says.
    pub fn manifest(&self) -> anyhow::Result<Manifest<'_>> {
        Ok(Manifest::read(&self.manifest)?)
    }

    /// The offer of the policy that it is about.
    pub fn offer(&self, policy: &[u8]) -> anyhow::Result<Offer> {
        let named = self.manifest()?.policy;
        let found = trust::policy_id(policy);
        if named != found {
            bail!("the manifest is for policy {named:.16}, and this one is {found:.16}");
        }
        Ok(Offer::signed(policy, &self.manifest, &self.signature))
    }
}

/// The key of a link that a file holds, for some rights.
pub fn parse_link_key(text: &str) -> anyhow::Result<Grant> {
    match text.trim().split_once(' ') {
        None => Ok(parse_whole_link_key(text)?.grant(Rights::ALL)),
        Some((rights, digits)) => {
            let key = bytes(digits).context(NO_LINK_KEY)?;
            Ok(Grant::new(parse_rights(rights)?, key))
        }
    }
}

/// The key of a link that a file holds, with which others are made.
pub fn parse_whole_link_key(text: &str) -> anyhow::Result<LinkKey> {
    Ok(LinkKey::new(bytes(text.trim()).context(NO_LINK_KEY)?))
}

const NO_LINK_KEY: &str =
    "no link key of agent-sim key: 64 hexadecimal digits, after rights and a space in a host's";

/// Makes a new key of a link and keeps it in a file that must not exist yet.
pub fn keep_new_link_key(path: &Path) -> anyhow::Result<()> {
    keep(path, &hex(&*Seed::generate()))
}

/// Keeps a host's key in a file that must not exist yet.
pub fn keep_grant(path: &Path, grant: &Grant) -> anyhow::Result<()> {
    keep(path, &format!("{} {}", grant.rights(), hex(grant.bytes())))
}

/// Rights by their names, with commas.
pub fn parse_rights(text: &str) -> anyhow::Result<Rights> {
    let mut rights = Rights::NONE;
    for word in text.split(',') {
        let named = Rights::NAMES.iter().find(|(_, name)| *name == word);
        let (right, _) = named.ok_or_else(|| {
            anyhow!(
                "{word:?} is no right; there are observe, flash and restart, with commas between"
            )
        })?;
        rights = rights.and(*right);
    }
    Ok(rights)
}

fn keep(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        // Nobody else's business.
        .mode(0o600)
        .open(path)
        .and_then(|mut file| {
            writeln!(file, "{text}")?;
            file.sync_all()
        });
    written.with_context(|| format!("cannot write the key to {}", path.display()))
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
    use agent_core::message::Seal;

    #[test]
    fn a_key_is_kept_once_and_signs_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret.key");
        let key = PolicyKey::generate();
        key.keep(&file).unwrap();
        let text = |file: &Path| std::fs::read_to_string(file).unwrap();
        let read = PolicyKey::parse(&text(&file)).unwrap();
        assert_eq!(read.public(), key.public());
        // Never overwritten.
        assert!(key.keep(&file).is_err());
        let said = Manifest::unsigned(b"a policy", "heat-1d");
        let signed = read.sign(&said).unwrap();
        let public = bytes(&key.public()).unwrap();
        let checked = trust::manifest::verify(
            Subject::Policy,
            &signed.manifest,
            &signed.signature,
            &public,
        );
        assert_eq!(checked, Ok(()));
        let kept = folder.path().join("signed.manifest");
        signed.write(&kept).unwrap();
        assert_eq!(
            SignedManifest::decode(&std::fs::read(&kept).unwrap()).unwrap(),
            signed
        );
        assert!(signed.offer(b"another policy").is_err());
        assert_eq!(
            signed.offer(b"a policy").unwrap().signature[..],
            signed.signature[..]
        );
        assert!(SignedManifest::decode(text(&file).as_bytes()).is_err());
    }

    #[test]
    fn a_hosts_key_opens_what_the_links_would_with_those_rights() {
        let folder = tempfile::tempdir().unwrap();
        let [link, host] = ["link.key", "host.key"].map(|name| folder.path().join(name));
        keep_new_link_key(&link).unwrap();
        let rights = parse_rights("observe,restart").unwrap();
        let text = |file: &Path| std::fs::read_to_string(file).unwrap();
        let whole = parse_whole_link_key(&text(&link)).unwrap();
        keep_grant(&host, &whole.grant(rights)).unwrap();
        let read = parse_link_key(&text(&host)).unwrap();
        assert_eq!(read.rights(), rights);
        let tag = |grant: &Grant| grant.session(&[1; 16], &[2; 16]).commands().tag(1, b"x");
        assert_eq!(tag(&read), tag(&whole.grant(rights)));
        assert_eq!(parse_link_key(&text(&link)).unwrap().rights(), Rights::ALL);
        // Who has some rights cannot make keys for others.
        assert!(parse_whole_link_key(&text(&host)).is_err());
        assert!(parse_rights("observe,fly").is_err());
    }
}
