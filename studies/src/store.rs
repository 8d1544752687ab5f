//! Finished cells on disk.

use crate::cell::{Outcome, Work};
use crate::provenance::SOURCES;
use artifacts::output::OutputFolder;
use artifacts::seal::checksum;
use problem::input;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

/// A folder of finished cells, each under the hash of all that decides it.
pub struct Store(OutputFolder);

/// A finished cell.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Of the two that follow: what is damaged or was changed is computed again.
    sha256: String,
    key: serde_json::Value,
    outcome: Outcome,
}

impl Stored {
    fn new(key: serde_json::Value, outcome: Outcome) -> anyhow::Result<Self> {
        let content = serde_json::to_string(&outcome)?;
        Ok(Self {
            sha256: checksum(&key.to_string(), content.as_bytes()),
            key,
            outcome,
        })
    }
}

/// All that decides a work's figures.
fn whole_key(work: &dyn Work) -> serde_json::Value {
    serde_json::json!({
        "sources": SOURCES,
        "pieces": work.pieces(),
        "figures": work.figures(),
        "work": work.key(),
    })
}

/// The name under which a work's outcome is stored.
pub fn address(work: &dyn Work) -> String {
    let digest = Sha256::digest(whole_key(work).to_string());
    digest[..16].iter().map(|b| format!("{b:02x}")).collect()
}

/// The outcome in a file, if the file is whole and about this work.
fn believed(text: &str, work: &dyn Work) -> Option<Outcome> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    let again = Stored::new(whole_key(work), stored.outcome).ok()?;
    let whole = again.outcome.rows.len() == work.pieces();
    (whole && stored.key == again.key && stored.sha256 == again.sha256).then_some(again.outcome)
}

impl Store {
    /// The store in that folder.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self(OutputFolder::prepare(folder)?))
    }

    /// What the work gave, if it is known. A file that is damaged or was changed is told of and
    /// removed.
    pub fn find(&self, work: &dyn Work) -> Option<Outcome> {
        let name = address(work) + ".json";
        let text = match input::read_text(&self.0.path().join(&name), input::FIGURES) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            read => read.ok(),
        };
        let found = text.and_then(|text| believed(&text, work));
        if found.is_none() {
            eprintln!("note: the cell {name} is damaged or was changed; it is computed again");
            self.0.remove(&name).ok();
        }
        found
    }

    /// Whether there is a file for what the work gave, which somebody else may have written.
    pub fn has(&self, work: &dyn Work) -> bool {
        self.0.path().join(address(work) + ".json").exists()
    }

    /// Keeps what the work gave.
    pub fn keep(&self, work: &dyn Work, outcome: &Outcome) -> anyhow::Result<()> {
        let stored = Stored::new(whole_key(work), outcome.clone())?;
        let text = serde_json::to_string(&stored)?;
        self.0.write(&(address(work) + ".json"), text.as_bytes())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::Shelf;

    struct Named(&'static str);

    impl Work for Named {
        fn key(&self) -> serde_json::Value {
            self.0.into()
        }
        fn pieces(&self) -> usize {
            2
        }
        fn cost(&self) -> u64 {
            1
        }
        fn figures(&self) -> Vec<String> {
            vec!["error".to_owned()]
        }
        fn run(&self, _: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
            unreachable!("nobody runs it")
        }
    }

    #[test]
    fn what_is_kept_is_found_to_the_bit_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path()).unwrap();
        let outcome = Outcome {
            figures: Named("a").figures(),
            rows: vec![Some(vec![0.1 + 0.2]), None],
        };
        assert_eq!(store.find(&Named("a")), None);
        store.keep(&Named("a"), &outcome).unwrap();
        assert_eq!(store.find(&Named("a")), Some(outcome));
        assert_eq!(store.find(&Named("b")), None);
        let file = folder.path().join(address(&Named("a")) + ".json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.find(&Named("a")), None);
        assert!(!file.exists(), "it is removed");
        // Figures of something else under this name, and others than were kept.
        assert!(text.contains("0.30000000000000004"), "{text}");
        for changed in [
            text.replace("\"a\"", "\"b\""),
            text.replace("0.30000000000000004", "0.30000000000000009"),
        ] {
            std::fs::write(&file, changed).unwrap();
            assert_eq!(store.find(&Named("a")), None);
        }
        std::fs::write(&file, text).unwrap();
        assert!(store.find(&Named("a")).is_some());
    }
}
