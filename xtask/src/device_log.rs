//! A node's defmt log, made readable with the image that wrote it.

use anyhow::{Context, Result};
use defmt_decoder::{DecodeError, Locations, Table};
use std::{fs, path::Path};

/// Decodes the log lines of one image.
pub struct Decoder {
    table: Table,
    locations: Option<Locations>,
}

impl Decoder {
    /// Reads the format strings, which never leave the host, from the image.
    pub fn new(elf: &Path) -> Result<Self> {
        let bytes = fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
        let table =
            Table::parse(&bytes)?.with_context(|| format!("{} has no defmt log", elf.display()))?;
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
                    let line = frame.display(false).to_string();
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

/// A path without what the compiler made up for closures and tasks.
fn module(path: &str) -> &str {
    let end = path.find("::{").into_iter().chain(path.find("::__")).min();
    end.map_or(path, |end| &path[..end])
}
