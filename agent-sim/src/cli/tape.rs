//! `run --mcap`: a run as a recording for Foxglove and other programs that read MCAP. Messages are JSON with
//! a schema each; docs/live.md says what they hold.

use super::fields::mode_name;
use crate::episode::Snapshot;
use crate::report::Event;
use anyhow::{anyhow, bail};
use artifacts::output::WholeFile;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcap::records::{MessageHeader, Metadata};
use mcap::{WriteOptions, Writer};
use problem::Problem;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Refuses a path that could not be written.
pub fn check(path: &Path) -> anyhow::Result<()> {
    match path.extension().is_some_and(|end| end == "mcap") {
        true => Ok(()),
        false => bail!(
            "--mcap {} does not end in .mcap; give --mcap run.mcap or the like",
            path.display()
        ),
    }
}

/// A recording on the way.
pub struct Tape {
    path: PathBuf,
    problem: Problem,
    writer: Writer<WholeFile>,
    channels: Channels,
    events: Vec<Event>,
    /// The disk may be full, which a run has no way to be told of.
    failed: Option<mcap::McapError>,
}

struct Channels {
    field: u16,
    target: u16,
    agents: u16,
    actions: u16,
    figures: u16,
    events: u16,
}

/// The encoding of messages and of what describes them.
const MESSAGES: &str = "json";
const SCHEMAS: &str = "jsonschema";

impl Tape {
    /// Begins the recording of a run in which these things happen; `about` is kept beside it.
    pub fn create(
        path: &Path,
        problem: &Problem,
        events: Vec<Event>,
        about: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let file = WholeFile::create(path)?;
        let begin = || -> Result<(Writer<WholeFile>, Channels), mcap::McapError> {
            let library = format!("fieldswarm {}", env!("CARGO_PKG_VERSION"));
            let options = WriteOptions::new().compression(None).library(library);
            let mut writer = options.create(file)?;
            writer.write_metadata(&Metadata {
                name: "fieldswarm".to_owned(),
                metadata: about,
            })?;
            let mut channel = |topic: &str, name: &str, schema: Value| {
                let schema = writer.add_schema(name, SCHEMAS, schema.to_string().as_bytes())?;
                writer.add_channel(schema, topic, MESSAGES, &BTreeMap::new())
            };
            let channels = Channels {
                field: channel("/field", "foxglove.Grid", grid_schema())?,
                target: channel("/target", "foxglove.Grid", grid_schema())?,
                agents: channel("/agents", "fieldswarm.Agents", agents_schema())?,
                actions: channel("/actions", "fieldswarm.Actions", actions_schema())?,
                figures: channel("/figures", "fieldswarm.Figures", figures_schema())?,
                events: channel("/events", "foxglove.Log", log_schema())?,
            };
            Ok((writer, channels))
        };
        let (writer, channels) = begin().map_err(|error| unwritten(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            problem: *problem,
            writer,
            channels,
            events,
            failed: None,
        })
    }

    /// Adds the state before the first step or after a step.
    pub fn push(&mut self, snapshot: &Snapshot<'_>) {
        if self.failed.is_none() {
            self.failed = self.write(snapshot).err();
        }
    }

    fn write(&mut self, snapshot: &Snapshot<'_>) -> Result<(), mcap::McapError> {
        let time = snapshot.step as f64 * self.problem.control_interval;
        let nanoseconds = (time * 1e9).round() as u64;
        let stamp = stamp(nanoseconds);
        let narrow = |values: &[f64]| values.iter().map(|&z| z as f32).collect::<Vec<f32>>();
        let places = snapshot.positions.iter();
        let places: Vec<&[f64]> = places.map(|at| &at[..self.problem.grid.axes]).collect();
        let modes = snapshot.deeds.iter();
        let modes: Vec<&str> = modes.map(|deed| mode_name(deed.mode)).collect();
        let forces: Vec<f32> = snapshot.deeds.iter().map(|deed| deed.force).collect();
        let velocities = snapshot.deeds.iter();
        let velocities: Vec<&[f32]> = velocities
            .map(|deed| &deed.velocity[..self.problem.grid.axes])
            .collect();
        let heard = snapshot.deeds.iter().filter(|deed| deed.heard()).count();
        let step = snapshot.step;
        let mut messages = vec![
            (
                self.channels.field,
                self.grid(&narrow(snapshot.field), &stamp),
            ),
            (
                self.channels.agents,
                json!({ "timestamp": stamp, "step": step, "places": places, "modes": modes }),
            ),
            (
                self.channels.figures,
                json!({
                    "timestamp": stamp,
                    "step": step,
                    "error": snapshot.error,
                    "effort": snapshot.cost.squared_effort / snapshot.deeds.len().max(1) as f64,
                    "heard": heard,
                }),
            ),
        ];
        if self.problem.tracking {
            messages.push((self.channels.target, self.grid(snapshot.target, &stamp)));
        }
        if step > 0 {
            messages.push((
                self.channels.actions,
                json!({ "timestamp": stamp, "step": step, "forces": forces, "velocities": velocities }),
            ));
        }
        for event in self.events.iter().filter(|event| event.step == step) {
            let message = json!({
                "timestamp": stamp, "level": 3, "message": event.name, "name": self.problem.name, "file": "", "line": 0
            });
            messages.push((self.channels.events, message));
        }
        for (channel, message) in messages {
            let header = MessageHeader {
                channel_id: channel,
                sequence: step as u32,
                log_time: nanoseconds,
                publish_time: nanoseconds,
            };
            let text = message.to_string();
            self.writer
                .write_to_known_channel(&header, text.as_bytes())?;
        }
        Ok(())
    }

    /// Values on the grid, the first axis to the right and the second upwards.
    fn grid(&self, values: &[f32], stamp: &Value) -> Value {
        let grid = &self.problem.grid;
        let [across, up] = grid.points;
        let rows = (0..up).flat_map(|row| (0..across).map(move |column| column * up + row));
        let bytes: Vec<u8> = rows.flat_map(|cell| values[cell].to_le_bytes()).collect();
        let second = if grid.axes == 2 {
            grid.spacing(1)
        } else {
            0.1 * grid.extent(0)
        };
        json!({
            "timestamp": stamp,
            "frame_id": "field",
            "pose": {
                "position": { "x": grid.low[0], "y": grid.low[1], "z": 0.0 },
                "orientation": { "x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0 },
            },
            "column_count": across,
            "cell_size": { "x": grid.spacing(0), "y": second },
            "row_stride": 4 * across,
            "cell_stride": 4,
            // 7 is float32.
            "fields": [{ "name": self.problem.quantity, "offset": 0, "type": 7 }],
            "data": STANDARD.encode(bytes),
        })
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> anyhow::Result<PathBuf> {
        let failed = self.failed.take();
        let done = failed.map_or_else(|| self.writer.finish().map(drop), Err);
        done.map_err(|error| unwritten(&self.path, &error))?;
        Ok(self.writer.into_inner().finish()?)
    }
}

fn unwritten(path: &Path, error: &mcap::McapError) -> anyhow::Error {
    anyhow!("cannot write {}: {error}", path.display())
}

fn stamp(nanoseconds: u64) -> Value {
    json!({ "sec": nanoseconds / 1_000_000_000, "nsec": nanoseconds % 1_000_000_000 })
}

// ---- what messages hold

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn list(of: &str) -> Value {
    json!({ "type": "array", "items": { "type": of } })
}

fn lists_of_numbers() -> Value {
    json!({ "type": "array", "items": list("number") })
}

fn time_schema() -> Value {
    object(json!({ "sec": { "type": "integer" }, "nsec": { "type": "integer" } }))
}

fn vector(names: &[&str]) -> Value {
    let properties = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "number" })));
    object(Value::Object(properties.collect()))
}

fn grid_schema() -> Value {
    let packed = json!({ "name": { "type": "string" }, "offset": { "type": "integer" }, "type": { "type": "integer" } });
    object(json!({
        "timestamp": time_schema(),
        "frame_id": { "type": "string" },
        "pose": object(json!({ "position": vector(&["x", "y", "z"]), "orientation": vector(&["x", "y", "z", "w"]) })),
        "column_count": { "type": "integer" },
        "cell_size": vector(&["x", "y"]),
        "row_stride": { "type": "integer" },
        "cell_stride": { "type": "integer" },
        "fields": { "type": "array", "items": object(packed) },
        "data": { "type": "string", "contentEncoding": "base64" },
    }))
}

fn agents_schema() -> Value {
    object(json!({
        "timestamp": time_schema(),
        "step": { "type": "integer" },
        "places": lists_of_numbers(),
        "modes": list("string"),
    }))
}

fn actions_schema() -> Value {
    object(json!({
        "timestamp": time_schema(),
        "step": { "type": "integer" },
        "forces": list("number"),
        "velocities": lists_of_numbers(),
    }))
}

fn figures_schema() -> Value {
    object(json!({
        "timestamp": time_schema(),
        "step": { "type": "integer" },
        "error": { "type": "number" },
        "effort": { "type": "number" },
        "heard": { "type": "integer" },
    }))
}

fn log_schema() -> Value {
    object(json!({
        "timestamp": time_schema(),
        "level": { "type": "integer" },
        "message": { "type": "string" },
        "name": { "type": "string" },
        "file": { "type": "string" },
        "line": { "type": "integer" },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Cost, Deed};
    use problem::published::heat_2d::PROBLEM;

    #[test]
    fn what_was_recorded_is_read_back_by_the_formats_own_library() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcap");
        let event = Event {
            step: 1,
            name: "agent 0 crashes".to_owned(),
        };
        let about = BTreeMap::from([("seed".to_owned(), "7".to_owned())]);
        let mut tape = Tape::create(&path, &PROBLEM, vec![event], about).unwrap();
        let cells = PROBLEM.grid.len();
        let field: Vec<f64> = (0..cells).map(|j| j as f64).collect();
        for step in 0..3 {
            tape.push(&Snapshot {
                step,
                field: &field,
                target: &vec![0.5; cells],
                error: 0.25,
                positions: &[[0.5, 0.25]],
                deeds: &[Deed::default()],
                cost: Cost::default(),
            });
        }
        assert_eq!(tape.finish().unwrap(), path);
        let bytes = std::fs::read(&path).unwrap();
        let mut topics: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for message in mcap::MessageStream::new(&bytes).unwrap() {
            let message = message.unwrap();
            let value = serde_json::from_slice(&message.data).unwrap();
            topics
                .entry(message.channel.topic.clone())
                .or_default()
                .push(value);
        }
        let counts: Vec<(&str, usize)> =
            topics.iter().map(|(t, m)| (t.as_str(), m.len())).collect();
        assert_eq!(
            counts,
            [
                ("/actions", 2),
                ("/agents", 3),
                ("/events", 1),
                ("/field", 3),
                ("/figures", 3),
                ("/target", 3)
            ]
        );
        assert_eq!(topics["/agents"][0]["places"], json!([[0.5, 0.25]]));
        // The second value of the first row is the neighbour along the first axis.
        let grid = &topics["/field"][2];
        let data = STANDARD.decode(grid["data"].as_str().unwrap()).unwrap();
        let second = f32::from_le_bytes(data[4..8].try_into().unwrap());
        assert_eq!(second, PROBLEM.grid.points[1] as f32);
        assert_eq!(data.len(), 4 * cells);
    }

    #[test]
    fn a_name_that_says_something_else_is_refused() {
        assert!(check(Path::new("a.bag")).is_err() && check(Path::new("a.mcap")).is_ok());
    }
}
