//! Finished cells on disk.

use crate::cell::{Outcome, Work};
use crate::provenance::SOURCES;
use artifacts::output::OutputFolder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

/// A folder of finished cells, each under the hash of all that decides it.
pub struct Store(OutputFolder);

/// A finished cell.
#[derive(Serialize, Deserialize)]
struct Stored {
    key: serde_json::Value,
    outcome: Outcome,
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

impl Store {
    /// The store in that folder.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self(OutputFolder::prepare(folder)?))
    }

    /// What the work gave, if it is known. A damaged file counts as none.
    pub fn find(&self, work: &dyn Work) -> Option<Outcome> {
        let path = self.0.path().join(address(work) + ".json");
        let text = std::fs::read_to_string(path).ok()?;
        let stored: Stored = serde_json::from_str(&text).ok()?;
        let whole = stored.outcome.rows.len() == work.pieces();
        (whole && stored.key == whole_key(work)).then_some(stored.outcome)
    }

    /// Keeps what the work gave.
    pub fn keep(&self, work: &dyn Work, outcome: &Outcome) -> anyhow::Result<()> {
        let stored = Stored {
            key: whole_key(work),
            outcome: outcome.clone(),
        };
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
        // Figures of something else under this name.
        std::fs::write(&file, text.replace("\"a\"", "\"b\"")).unwrap();
        assert_eq!(store.find(&Named("a")), None);
    }
}
