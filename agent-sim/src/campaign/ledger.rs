//! What became of the runs of a campaign, kept as they end.

use crate::requirement::{Judged, Verdict};
use artifacts::seal;
use problem::input;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub run: usize,
    /// Each requirement; none of a run that ended before its time.
    pub judged: Vec<Judged>,
    /// Why it did, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cut: Option<String>,
}

/// The smallest margin that is written: of what is no number, and of runs that were cut.
const BOTTOMLESS: f64 = -1e300;

impl Record {
    /// Of a run that was judged.
    pub fn new(run: usize, verdict: &Verdict) -> Self {
        let finite = |value: f64| match value.is_nan() {
            true => BOTTOMLESS,
            false => value.clamp(BOTTOMLESS, -BOTTOMLESS),
        };
        let judged = verdict.judged.iter().map(|judged| Judged {
            margin: finite(judged.margin),
            value: finite(judged.value),
            ..*judged
        });
        Self {
            run,
            judged: if verdict.cut.is_some() {
                Vec::new()
            } else {
                judged.collect()
            },
            cut: verdict.cut.clone(),
        }
    }

    /// The smallest margin.
    pub fn margin(&self) -> f64 {
        let margins = self.judged.iter().map(|judged| judged.margin);
        margins.reduce(f64::min).unwrap_or(BOTTOMLESS)
    }

    /// Whether everything held.
    pub fn holds(&self) -> bool {
        self.margin() >= 0.0
    }
}

/// Why the records of a campaign cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum BadLedger {
    /// They are another campaign's.
    #[error(
        "{} holds the runs of another campaign (another file, policy or version); choose another folder with \
         --out or delete it", .0.display()
    )]
    Another(PathBuf),
    /// The disk says no.
    #[error("cannot keep runs in {}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A file of records, in order, each with a checksum. What was cut off in the middle of a line, or
/// changed, is forgotten with all that follows it.
pub struct Ledger {
    path: PathBuf,
    file: File,
    purpose: String,
    /// All that are kept.
    pub records: Vec<Record>,
    /// Whether some were there that could not be believed.
    pub damaged: bool,
}

impl Ledger {
    /// Opens or begins the ledger of a campaign: `purpose` is all that decides its runs.
    pub fn open(path: &Path, purpose: &str) -> Result<Self, BadLedger> {
        let io = |source| BadLedger::Io {
            path: path.to_owned(),
            source,
        };
        let head = format!("{}\n", seal::checksum("campaign", purpose.as_bytes()));
        let text = match input::read_text(path, input::RUNS) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(io(error)),
        };
        // A head that was cut off had nothing behind it.
        let fresh = !text.contains('\n');
        if !fresh && !text.starts_with(&head) {
            return Err(BadLedger::Another(path.to_owned()));
        }
        let mut records = Vec::new();
        let mut kept = head.len();
        for line in text
            .get(head.len()..)
            .unwrap_or_default()
            .split_inclusive('\n')
        {
            match read(line, purpose).filter(|record| record.run == records.len()) {
                Some(record) => records.push(record),
                None => break,
            }
            kept += line.len();
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(io)?;
        if fresh {
            file.set_len(0).map_err(io)?;
            file.write_all(head.as_bytes()).map_err(io)?;
        } else {
            file.set_len(kept as u64).map_err(io)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            purpose: purpose.to_owned(),
            damaged: !fresh && kept < text.len(),
            records,
        })
    }

    /// Keeps what became of the next runs.
    pub fn append(&mut self, records: Vec<Record>) -> Result<(), BadLedger> {
        let lines: String = records
            .iter()
            .map(|record| line(record, &self.purpose))
            .collect();
        let written = self.file.write_all(lines.as_bytes());
        written.map_err(|source| BadLedger::Io {
            path: self.path.clone(),
            source,
        })?;
        self.records.extend(records);
        Ok(())
    }
}

fn line(record: &Record, purpose: &str) -> String {
    let json = serde_json::to_string(record).expect("a record holds nothing that JSON lacks");
    let sum = seal::checksum(purpose, json.as_bytes());
    format!("{} {json}\n", &sum[..16])
}

/// The record of a whole line that nobody changed.
fn read(text: &str, purpose: &str) -> Option<Record> {
    let (_, json) = text.strip_suffix('\n')?.split_once(' ')?;
    let record: Record = serde_json::from_str(json).ok()?;
    (line(&record, purpose) == text).then_some(record)
}
