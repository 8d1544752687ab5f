//! `run --fields`: what the field and the agents did, whole, for other programs.
//!
//! Everything goes to disk step by step: a run of a million agents or of a large grid needs no more
//! memory with it than without.

use super::origin::{Entries, object};
use super::replay::EPISODE;
use super::run::LAST_FINITE;
use crate::episode::Snapshot;
use crate::swarm::Deed;
use agent_core::agent::Mode;
use anyhow::bail;
use artifacts::output::{OutputError, WholeFile};
use problem::grid::{Edge, Grid};
use problem::metrics::Score;
use problem::resample::resample;
use problem::{Episode, Problem, npy};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Most agents times records whose arrays stand in the JSON file; more go to `.npy` files of their
/// own, which are a fraction as long and read in no time.
const MOST_IN_JSON: usize = 250_000;

/// What the numbers in `modes` stand for.
const MODES: [&str; 5] = ["silent", "waiting", "active", "holding", "failed-safe"];

fn number_of(mode: Option<Mode>) -> u8 {
    match mode {
        None => 0,
        Some(Mode::Waiting) => 1,
        Some(Mode::Active) => 2,
        Some(Mode::Holding) => 3,
        Some(Mode::FailedSafe) => 4,
    }
}

/// What an agent's state is called in files.
pub fn mode_name(mode: Option<Mode>) -> &'static str {
    MODES[usize::from(number_of(mode))]
}

/// Refuses a path that could not be written, or that the run itself writes to `folder`.
pub fn check(path: &Path, folder: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if path.extension().is_none_or(|end| end != "npy") {
        bail!("--fields {shown} does not end in .npy; give --fields fields.npy or the like");
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    // The run makes its own folder.
    if parent != folder && !parent.as_os_str().is_empty() && !parent.is_dir() {
        bail!(
            "--fields {shown}: there is no folder {}; make it first",
            parent.display()
        );
    }
    let name = path.file_name().unwrap_or_default();
    let taken = [EPISODE, LAST_FINITE].into_iter().find(|own| name == *own);
    if let Some(own) = taken.filter(|_| parent == folder) {
        bail!("--fields {shown}: the run writes an {own} of its own there; give another name");
    }
    Ok(())
}

/// The files of a run, on the way.
pub struct Fields {
    path: PathBuf,
    grid: Grid,
    /// Of the field, all steps.
    shape: Vec<usize>,
    axis_names: [&'static str; 2],
    interval: f64,
    field: WholeFile,
    target: Option<WholeFile>,
    positions: Series,
    forces: Series,
    velocities: Series,
    modes: Series,
    errors: Vec<f64>,
    /// The disk may be full, which a run has no way to be told of.
    failed: Option<OutputError>,
}

impl Fields {
    /// Begins the files of a run, with the path of the field's.
    pub fn create(
        path: &Path,
        problem: &Problem,
        episode: &Episode,
        steps: usize,
        agents: usize,
    ) -> Result<Self, OutputError> {
        let grid = problem.grid;
        let mut shape = vec![steps + 1];
        shape.extend(grid.shape());
        let field = begun(path, "<f4", &shape)?;
        let target = match problem.tracking {
            false => None,
            true => {
                let mut file = begun(&beside(path, "target"), "<f4", grid.shape())?;
                let target = resample(problem.seen(&episode.target), &problem.sensors, &grid);
                file.write(&little_endian(target)).map_err(of_fields)?;
                Some(file)
            }
        };
        let in_json = agents * (steps + 1) <= MOST_IN_JSON;
        let series = |name, whole, shape: &[usize]| -> Result<Series, OutputError> {
            let values = match in_json {
                true => Values::Here(Vec::new()),
                false => Values::File(begun(&beside(path, name), kind(whole), shape)?),
            };
            Ok(Series {
                shape: shape.to_vec(),
                whole,
                values,
            })
        };
        Ok(Self {
            path: path.to_owned(),
            grid,
            shape,
            axis_names: problem.axis_names,
            interval: problem.control_interval,
            positions: series("positions", false, &[steps + 1, agents, grid.axes])?,
            forces: series("forces", false, &[steps, agents])?,
            velocities: series("velocities", false, &[steps, agents, grid.axes])?,
            modes: series("modes", true, &[steps, agents])?,
            field,
            target,
            errors: Vec::with_capacity(steps + 1),
            failed: None,
        })
    }

    /// Adds the state before the first step or after a step.
    pub fn push(&mut self, snapshot: &Snapshot<'_>) {
        if self.failed.is_none() {
            self.failed = self.write(snapshot).err();
        }
    }

    fn write(&mut self, snapshot: &Snapshot<'_>) -> Result<(), OutputError> {
        self.errors.push(snapshot.error);
        let field = snapshot.field.iter().map(|&z| z as f32);
        self.field.write(&little_endian(field))?;
        let axes = self.grid.axes;
        let places = snapshot.positions.iter();
        self.positions
            .push(places.flat_map(|place| place[..axes].iter().map(|&x| x as f32)))?;
        // Before the first step nobody has done anything.
        if snapshot.step > 0 {
            let deeds = || snapshot.deeds.iter();
            self.forces.push(deeds().map(|deed| deed.force))?;
            let velocity = |deed: &'_ Deed| deed.velocity.into_iter().take(axes);
            self.velocities.push(deeds().flat_map(velocity))?;
            let modes = deeds().map(|deed| f32::from(number_of(deed.mode)));
            self.modes.push(modes)?;
        }
        Ok(())
    }

    /// Puts the files in their places, the JSON file last, and returns their paths.
    /// There is no score of a run that ended before its time, and no more than was pushed.
    pub fn finish(
        mut self,
        origin: &Entries,
        score: Option<&Score>,
    ) -> Result<Vec<PathBuf>, OutputError> {
        if let Some(error) = self.failed.take() {
            return Err(of_fields(error));
        }
        let missing = self.shape[0] - self.errors.len();
        if missing > 0 {
            let shape = [&[self.errors.len()], self.grid.shape()].concat();
            shorten(&mut self.field, "<f4", &self.shape, &shape)?;
            for series in [
                &mut self.positions,
                &mut self.forces,
                &mut self.velocities,
                &mut self.modes,
            ] {
                series.cut(missing)?;
            }
        }
        let axes: Vec<Value> = (0..self.grid.axes).map(|axis| self.axis(axis)).collect();
        let times: Vec<f64> = (0..self.errors.len())
            .map(|record| record as f64 * self.interval)
            .collect();
        let json = self.path.with_extension("json");
        let mut file = WholeFile::create(&json).map_err(of_fields)?;

        let mut written = vec![self.field.finish().map_err(of_fields)?];
        let field = named(&written[0]);
        let mut target = Value::Null;
        if let Some(file) = self.target {
            written.push(file.finish().map_err(of_fields)?);
            target = json!(written.last().map(|path| named(path)));
        }
        let count = self.forces.shape[1];
        let mut agents = vec![
            ("count", json!(count).to_string()),
            ("mode_names", json!(MODES).to_string()),
        ];
        for (name, series) in [
            ("positions", self.positions),
            ("forces", self.forces),
            ("velocities", self.velocities),
            ("modes", self.modes),
        ] {
            agents.push((name, series.finish(&mut written)?));
        }
        let origin = origin.iter().filter(|(name, _)| *name != "agents");
        let mut entries: Vec<(&str, String)> = origin
            .map(|(name, value)| (*name, value.to_string()))
            .collect();
        entries.extend([
            ("score", json!(score).to_string()),
            ("field", json!(field).to_string()),
            ("target", target.to_string()),
            ("axes", json!(axes).to_string()),
            ("times", json!(times).to_string()),
            ("errors", json!(self.errors).to_string()),
            ("agents", object(agents, ",\n")),
        ]);
        let text = object(entries, ",\n") + "\n";
        file.write(text.as_bytes()).map_err(of_fields)?;
        written.push(file.finish().map_err(of_fields)?);
        Ok(written)
    }

    fn axis(&self, axis: usize) -> Value {
        let grid = &self.grid;
        let points: Vec<f64> = (0..grid.points[axis])
            .map(|j| grid.coordinate(axis, j))
            .collect();
        json!({
            "name": self.axis_names[axis],
            "low": grid.low[axis],
            "high": grid.high[axis],
            "periodic": grid.edges[axis] == Edge::Periodic,
            "points": points,
        })
    }
}

/// Values of all agents, step by step.
struct Series {
    shape: Vec<usize>,
    /// Whether they are whole numbers of one byte.
    whole: bool,
    values: Values,
}

/// NumPy's name of the type of values, whole numbers or not.
fn kind(whole: bool) -> &'static str {
    if whole { "|u1" } else { "<f4" }
}

enum Values {
    Here(Vec<f32>),
    File(WholeFile),
}

impl Series {
    fn push(&mut self, more: impl Iterator<Item = f32>) -> Result<(), OutputError> {
        match &mut self.values {
            Values::Here(values) => values.extend(more),
            Values::File(file) if self.whole => {
                let bytes: Vec<u8> = more.map(|value| value as u8).collect();
                file.write(&bytes)?;
            }
            Values::File(file) => file.write(&little_endian(more))?,
        }
        Ok(())
    }

    /// Takes back steps that did not come.
    fn cut(&mut self, missing: usize) -> Result<(), OutputError> {
        let before = self.shape.clone();
        self.shape[0] -= missing;
        match &mut self.values {
            Values::Here(_) => Ok(()),
            Values::File(file) => shorten(file, kind(self.whole), &before, &self.shape),
        }
    }

    /// As JSON: nested lists, or the name of the file that has them.
    fn finish(self, written: &mut Vec<PathBuf>) -> Result<String, OutputError> {
        match self.values {
            Values::Here(values) => {
                let mut text = String::new();
                nest(&mut text, &self.shape, &values, self.whole);
                Ok(text)
            }
            Values::File(file) => {
                let path = file.finish().map_err(of_fields)?;
                let name = json!(named(&path)).to_string();
                written.push(path);
                Ok(name)
            }
        }
    }
}

/// Appends an array as nested lists.
fn nest(text: &mut String, shape: &[usize], values: &[f32], whole: bool) {
    let Some((count, inner)) = shape.split_first() else {
        // Both are JSON, and the shortest that reads back to the same bits.
        match whole {
            true => write!(text, "{}", values[0]),
            false => write!(text, "{:?}", values[0]),
        }
        .expect("to a string");
        return;
    };
    let size: usize = inner.iter().product();
    text.push('[');
    for i in 0..*count {
        if i > 0 {
            text.push(',');
        }
        nest(text, inner, &values[i * size..][..size], whole);
    }
    text.push(']');
}

fn begun(path: &Path, kind: &str, shape: &[usize]) -> Result<WholeFile, OutputError> {
    let mut file = WholeFile::create(path).map_err(of_fields)?;
    file.write(&npy::beginning(kind, shape))
        .map_err(of_fields)?;
    Ok(file)
}

/// Writes into a file that was begun with one shape that it has another, of fewer steps.
fn shorten(
    file: &mut WholeFile,
    kind: &str,
    before: &[usize],
    now: &[usize],
) -> Result<(), OutputError> {
    let length = npy::beginning(kind, before).len();
    file.overwrite(&npy::beginning_of(kind, now, length))
        .map_err(of_fields)
}

fn of_fields(error: OutputError) -> OutputError {
    error.of("--fields")
}

/// `out.npy` and `target` give `out-target.npy`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{what}.npy"));
    path.with_file_name(name)
}

fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn little_endian(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::Cost;
    use problem::published::heat_1d::PROBLEM;

    /// A run of two steps with so many agents, written to a folder.
    fn run(folder: &Path, agents: usize) -> Vec<PathBuf> {
        let episode = Episode {
            initial: vec![0.0; 100],
            target: vec![0.5; 100],
            ..Episode::default()
        };
        let path = folder.join("out.npy");
        let mut fields = Fields::create(&path, &PROBLEM, &episode, 2, agents).unwrap();
        let deed = Deed {
            force: -1.5,
            velocity: [0.25, 0.0],
            mode: Some(Mode::Holding),
        };
        for step in 0..=2 {
            fields.push(&Snapshot {
                step,
                field: &[step as f64; 100],
                target: &[],
                error: 0.25,
                positions: &vec![[0.5, 0.0]; agents],
                deeds: &vec![deed; agents],
                cost: Cost::default(),
            });
        }
        let score = Score {
            final_error: 0.25,
            time_mean_error: 0.25,
            effort: 0.0,
            travel: 0.0,
            intrusion: 0.0,
        };
        fields
            .finish(&vec![("problem", json!("heat-1d"))], Some(&score))
            .unwrap()
    }

    fn read(path: &Path) -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn small_swarms_stand_in_the_json_file_and_large_ones_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let written = run(folder.path(), 3);
        assert_eq!(written.len(), 3);
        let array = npy::parse(&std::fs::read(&written[0]).unwrap()).unwrap();
        assert_eq!((array.shape, array.values[299]), (vec![3, 100], 2.0));
        let about = read(&folder.path().join("out.json"));
        assert_eq!(about["agents"]["positions"], json!(vec![[[0.5]; 3]; 3]));
        assert_eq!(about["agents"]["velocities"], json!(vec![[[0.25]; 3]; 2]));
        assert_eq!(about["agents"]["forces"], json!(vec![[-1.5; 3]; 2]));
        assert_eq!(about["agents"]["modes"], json!(vec![[3; 3]; 2]));
        assert_eq!(about["target"], "out-target.npy");

        let written = run(folder.path(), 100_000);
        assert_eq!(written.len(), 7);
        let about = read(&folder.path().join("out.json"));
        assert_eq!(about["agents"]["positions"], "out-positions.npy");
        let bytes = std::fs::read(folder.path().join("out-positions.npy")).unwrap();
        let array = npy::parse(&bytes).unwrap();
        assert_eq!(array.shape, [3, 100_000, 1]);
        assert!(array.values.iter().all(|x| *x == 0.5));
        let modes = std::fs::read(folder.path().join("out-modes.npy")).unwrap();
        assert_eq!(modes[modes.len() - 200_000..], vec![3; 200_000]);
    }

    #[test]
    fn a_run_without_agents_has_empty_lists() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), 0);
        let about = read(&folder.path().join("out.json"));
        assert_eq!(about["agents"]["forces"], json!([[], []]));
        assert_eq!(about["agents"]["positions"], json!([[], [], []]));
    }

    #[test]
    fn a_run_that_ends_early_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let episode = Episode {
            initial: vec![0.0; 100],
            target: vec![0.0; 100],
            ..Episode::default()
        };
        let path = folder.path().join("out.npy");
        drop(Fields::create(&path, &PROBLEM, &episode, 9, 1_000_000).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
