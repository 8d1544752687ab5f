//! A node's defmt log, made readable with the image that wrote it.

use defmt_decoder::{DecodeError, Locations, Table};
use std::{fs, io, path::Path, sync::Arc};

use crate::plain_text::plain;

/// Most characters of a line.
const LINE: usize = 1000;

/// Why a log cannot be made readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The image cannot be read.
    #[error("cannot read the image {path}: {source}")]
    Image {
        /// Its path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The image was built without a log, or with another version of defmt.
    #[error("{path} has no defmt log that can be read here: {reason}")]
    NoLog {
        /// Its path.
        path: String,
        /// What is missing.
        reason: String,
    },
}

/// Decodes the log lines of one image.
pub struct Decoder {
    table: Table,
    locations: Option<Locations>,
}

impl Decoder {
    /// Reads the format strings, which never leave the host, from the image.
    pub fn new(elf: &Path) -> Result<Self, LogError> {
        let path = || elf.display().to_string();
        let bytes = fs::read(elf).map_err(|source| LogError::Image {
            path: path(),
            source,
        })?;
        let no_log = |reason: String| LogError::NoLog {
            path: path(),
            reason,
        };
        let table = Table::parse(&bytes)
            .map_err(|error| no_log(format!("{error:#}")))?
            .ok_or_else(|| no_log("no .defmt section".to_owned()))?;
        let locations = table.get_locations(&bytes).ok();
        Ok(Self { table, locations })
    }

    /// One string per line logged: time on the node, level, message, module.
    pub fn lines(&self, log: &[u8]) -> Vec<String> {
        let mut stream = self.table.new_stream_decoder();
        stream.received(log);
        let mut lines = Vec::new();
        loop {
            match stream.decode() {
                Ok(frame) => {
                    let line = plain(&frame.display(false).to_string(), LINE);
                    let locations = self.locations.as_ref();
                    lines.push(match locations.and_then(|l| l.get(&frame.index())) {
                        Some(place) => format!("{line}  ({})", module(&place.module)),
                        None => line,
                    });
                }
                Err(DecodeError::UnexpectedEof) => return lines,
                Err(DecodeError::Malformed) => lines.push("(damaged line)".to_owned()),
            }
        }
    }
}

/// Decodes a log that grows.
pub struct Follower {
    decoder: Arc<Decoder>,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Follower {
    /// From the log's beginning on.
    pub fn new(decoder: Arc<Decoder>) -> Self {
        Self {
            decoder,
            begun: Vec::new(),
        }
    }

    /// The lines that these bytes, the next ones of the log, complete.
    pub fn lines(&mut self, more: &[u8]) -> Vec<String> {
        self.begun.extend_from_slice(more);
        // A zero ends a line and is nowhere else: defmt frames with reverse-zero COBS.
        let Some(end) = self.begun.iter().rposition(|byte| *byte == 0) else {
            return Vec::new();
        };
        let complete: Vec<u8> = self.begun.drain(..=end).collect();
        self.decoder.lines(&complete)
    }
}

/// A path without what the compiler made up for closures and tasks.
fn module(path: &str) -> &str {
    let end = path.find("::{").into_iter().chain(path.find("::__")).min();
    end.map_or(path, |end| &path[..end])
}
