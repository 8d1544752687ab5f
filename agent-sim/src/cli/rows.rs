//! `eval --rows`: the score of every episode, one line each, for other programs.

use super::origin::{Entries, object};
use anyhow::bail;
use artifacts::output::{OutputError, WholeFile};
use problem::Scoring;
use problem::metrics::Score;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How a line is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Below a head, lists and objects as JSON.
    Csv,
    /// One object a line.
    JsonLines,
}

/// A file of rows: there when it is finished.
pub struct Rows {
    file: WholeFile,
    form: Form,
    begun: bool,
}

impl Rows {
    /// Begins a file, CSV or JSON lines by the end of its name.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let form = match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Form::Csv,
            Some("jsonl") => Form::JsonLines,
            _ => bail!(
                "--rows {} is neither .csv nor .jsonl; give --rows rows.csv for CSV or --rows \
                 rows.jsonl for one JSON object a line",
                path.display()
            ),
        };
        let file = WholeFile::create(path).map_err(|error| error.of("--rows"))?;
        Ok(Self {
            file,
            form,
            begun: false,
        })
    }

    /// Adds the scores of one controller's episodes. `name` is what tells it from the others, and
    /// takes precedence over the same entries of `origin`.
    pub fn add(
        &mut self,
        name: &Entries,
        origin: &Entries,
        scores: &[Score],
        scoring: Scoring,
    ) -> Result<(), OutputError> {
        let mut text = String::new();
        for (episode, score) in scores.iter().enumerate() {
            let mut row = name.clone();
            row.extend([
                ("episode", json!(episode)),
                ("final_error", json!(score.final_error)),
                ("time_mean_error", json!(score.time_mean_error)),
                ("effort", json!(score.effort)),
                ("travel", json!(score.travel)),
                ("intrusion", json!(score.intrusion)),
                ("headline", json!(score.headline(scoring))),
            ]);
            let rest = origin.iter().filter(|(key, _)| {
                let named = |(name, _): &(&str, Value)| name == key;
                !name.iter().any(named)
            });
            row.extend(rest.cloned());
            let line = match self.form {
                Form::JsonLines => object(row.iter().map(|(k, v)| (*k, v.to_string())), ", "),
                Form::Csv => {
                    let cells: Vec<String> = row.iter().map(|(_, value)| cell(value)).collect();
                    cells.join(",")
                }
            };
            if self.form == Form::Csv && !std::mem::replace(&mut self.begun, true) {
                let head: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
                text += &(head.join(",") + "\n");
            }
            text += &line;
            text.push('\n');
        }
        self.file
            .write(text.as_bytes())
            .map_err(|error| error.of("--rows"))
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        self.file.finish().map_err(|error| error.of("--rows"))
    }
}

/// A value as a cell; what is not there is empty.
fn cell(value: &Value) -> String {
    let empty = match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    let text = match value {
        _ if empty => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_plain_where_they_can_be() {
        let cases = [
            (json!(null), ""),
            (json!([]), ""),
            (json!({}), ""),
            (json!("policy"), "policy"),
            (json!(0.25), "0.25"),
            (json!([64, 80]), "\"[64,80]\""),
            (json!({"nu": 0.001}), "\"{\"\"nu\"\":0.001}\""),
        ];
        for (value, expected) in cases {
            assert_eq!(cell(&value), expected);
        }
    }
}
