//! What became of the runs of a campaign, kept as they end.

use crate::requirement::{Judged, Verdict};
use artifacts::seal;
use artifacts::shard::Shard;
use problem::input;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// A file of records, in order, each with a checksum: of all runs, or of a shard's. What was cut off in
/// the middle of a line, or changed, is forgotten with all that follows it.
pub struct Ledger {
    path: PathBuf,
    file: File,
    purpose: String,
    /// All that are kept.
    pub records: Vec<Record>,
    /// Whether some were there that could not be believed.
    pub damaged: bool,
}

/// What is in a ledger's file.
#[derive(Default)]
struct Found {
    records: Vec<Record>,
    /// So many bytes hold the head and these.
    believed: usize,
    length: usize,
}

/// How names of ledgers begin and end.
const NAME: &str = "runs";
const ENDING: &str = ".jsonl";

impl Ledger {
    /// Opens or begins the ledger of a campaign: `purpose` is all that decides its runs. A shard has one
    /// of its own, so that nobody else writes to it.
    pub fn open(folder: &Path, purpose: &str, shard: Option<Shard>) -> Result<Self, BadLedger> {
        let path = folder.join(match shard {
            None => format!("{NAME}{ENDING}"),
            Some(shard) => format!("{NAME}-{}{ENDING}", shard.label()),
        });
        let io = |source| BadLedger::Io {
            path: path.clone(),
            source,
        };
        let found = Found::read(&path, purpose, shard.unwrap_or(Shard::WHOLE))?;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(io)?;
        file.set_len(found.believed as u64).map_err(io)?;
        if found.believed == 0 {
            file.write_all(head(purpose).as_bytes()).map_err(io)?;
        }
        Ok(Self {
            file,
            purpose: purpose.to_owned(),
            damaged: found.believed > 0 && found.believed < found.length,
            records: found.records,
            path,
        })
    }

    /// What the folder's other ledgers have, by number; they are not touched, and may be written to.
    pub fn others(&self) -> Result<BTreeMap<usize, Record>, BadLedger> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let io = |source| BadLedger::Io {
            path: folder.to_owned(),
            source,
        };
        let mut records = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let shard = shard_of(&path).filter(|_| path.file_name() != self.path.file_name());
            if let Some(shard) = shard {
                let found = Found::read(&path, &self.purpose, shard)?.records;
                records.extend(found.into_iter().map(|record| (record.run, record)));
            }
        }
        Ok(records)
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Found {
    /// What there is of a shard's records; nothing where there is no file.
    fn read(path: &Path, purpose: &str, shard: Shard) -> Result<Self, BadLedger> {
        let text = match input::read_text(path, input::RUNS) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                return Err(BadLedger::Io {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let head = head(purpose);
        let mut found = Self {
            length: text.len(),
            ..Self::default()
        };
        // A head that was cut off had nothing behind it.
        if !text.contains('\n') {
            return Ok(found);
        }
        let Some(lines) = text.strip_prefix(&head) else {
            return Err(BadLedger::Another(path.to_owned()));
        };
        found.believed = head.len();
        for (line, run) in lines.split_inclusive('\n').zip(shard.parts()) {
            match read(line, purpose).filter(|record| record.run == run) {
                Some(record) => found.records.push(record),
                None => break,
            }
            found.believed += line.len();
        }
        Ok(found)
    }
}

/// Whose runs the ledger of that name has.
fn shard_of(path: &Path) -> Option<Shard> {
    let name = path.file_name()?.to_str()?;
    match name.strip_prefix(NAME)?.strip_suffix(ENDING)? {
        "" => Some(Shard::WHOLE),
        label => Shard::labelled(label.strip_prefix('-')?),
    }
}

fn head(purpose: &str) -> String {
    format!("{}\n", seal::checksum("campaign", purpose.as_bytes()))
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
