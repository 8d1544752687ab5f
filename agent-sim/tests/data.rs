//! Data that other programs write and read: test sets of any precision and grid, the field of every
//! step, the score of every episode.

mod support;

use problem::npy;
use problem::published::heat_1d::PROBLEM;
use serde_json::Value;
use std::path::Path;
use support::{agent_sim, listing, refused, stdout};
use tempfile::TempDir;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hand.policy"), support::policy()).unwrap();
    folder
}

fn json(folder: &Path, command: &str) -> Value {
    serde_json::from_str(&stdout(folder, command)).unwrap()
}

/// Three smooth episodes of heat-1d on so many points.
fn smooth(points: usize) -> Vec<f64> {
    let field = |wave: usize, point: usize| {
        let x = point as f64 / (points - 1) as f64;
        (1.5 * wave as f64 * x + 0.3).sin() + 0.5 * x
    };
    let fields = (1..=6).flat_map(|wave| (0..points).map(move |point| field(wave, point)));
    fields.collect()
}

fn single(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    npy::encode(shape, &values)
}

fn double(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let mut bytes = npy::beginning("<f8", shape);
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

#[test]
fn double_precision_gives_the_scores_of_single_precision() {
    let folder = folder();
    let (shape, values) = ([3, 2, 100], smooth(100));
    std::fs::write(folder.path().join("f4.npy"), single(&shape, &values)).unwrap();
    std::fs::write(folder.path().join("f8.npy"), double(&shape, &values)).unwrap();
    let score = |set: &str| {
        let command = format!("eval heat-1d --policy hand.policy --set {set} --json");
        let mut object = json(folder.path(), &command);
        assert_eq!(object["set"], set);
        assert!(object.get("resampled").is_none());
        object.as_object_mut().unwrap().remove("set");
        object
    };
    assert_eq!(score("f4.npy"), score("f8.npy"));

    let mut values = values;
    values[317] = 1e40;
    std::fs::write(folder.path().join("huge.npy"), double(&shape, &values)).unwrap();
    let command = "eval heat-1d --policy hand.policy --set huge.npy";
    refused(folder.path(), command, &["[1, 1, 17] is 1e40", "huge.npy"]);
}

#[test]
fn a_set_on_a_finer_grid_gives_nearly_the_scores_of_the_published_one() {
    let folder = folder();
    for points in [100, 256] {
        let bytes = double(&[3, 2, points], &smooth(points));
        std::fs::write(folder.path().join(format!("{points}.npy")), bytes).unwrap();
    }
    let score = |set: &str| {
        let command = format!("eval heat-1d --policy hand.policy --set {set} --json");
        json(folder.path(), &command)
    };
    let (published, finer) = (score("100.npy"), score("256.npy"));
    for figure in ["final", "time_mean"] {
        let worst = |object: &Value| object[figure]["worst"].as_f64().unwrap();
        let ratio = worst(&finer) / worst(&published);
        assert!((ratio - 1.0).abs() < 1e-3, "{figure}: {ratio}");
    }
    assert_eq!(finer["resampled"]["from"][0], 256);
    assert_eq!(finer["resampled"]["to"][0], 100);

    // People are told too, on standard error and in the report.
    let said = "256.npy: resampled from 256 to 100 points";
    let command = "run heat-1d --policy hand.policy --set 256.npy --steps 5 --alone --out out";
    let output = agent_sim(folder.path(), command);
    assert!(String::from_utf8(output.stderr).unwrap().contains(said));
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(report.contains("resampled from 256 to 100 points"));
    // The record holds the episode as it was run.
    let out = stdout(folder.path(), "replay out");
    assert!(out.contains("bit for bit"), "{out}");
}

#[test]
fn run_writes_the_field_of_every_step_and_what_the_agents_did() {
    let folder = folder();
    let out = stdout(
        folder.path(),
        "run heat-1d --policy hand.policy --set table --episode 3 --seed 5 --steps 20 --alone \
         --fault crash,ids=0,at=0.5 --grid 200 --fields all.npy",
    );
    for name in ["all.npy", "all-target.npy", "all.json"] {
        assert!(out.contains(&format!("wrote {name}")), "{out}");
    }
    let array = |name: &str| npy::parse(&std::fs::read(folder.path().join(name)).unwrap()).unwrap();
    let (field, target) = (array("all.npy"), array("all-target.npy"));
    assert_eq!(
        (field.shape.as_slice(), target.shape.as_slice()),
        (&[21, 200][..], &[200][..])
    );

    let text = std::fs::read_to_string(folder.path().join("all.json")).unwrap();
    let about: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(about["problem"], "heat-1d");
    assert_eq!(about["controller"], "policy");
    assert_eq!(about["policy_hash"].as_str().unwrap().len(), 64);
    assert_eq!((&about["seed"], &about["episode"]), (&5.into(), &3.into()));
    assert_eq!(about["set"], "table");
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["variant"], Value::Null);
    let axis = &about["axes"][0];
    assert_eq!(
        (&axis["name"], &axis["periodic"]),
        (&"x".into(), &false.into())
    );
    let points = axis["points"].as_array().unwrap();
    assert_eq!((points.len(), points[199].as_f64()), (200, Some(1.0)));
    let times = about["times"].as_array().unwrap();
    let end = times[20].as_f64().unwrap();
    assert!((end - 20.0 * PROBLEM.control_interval).abs() < 1e-12);

    // The error is what anybody computes from the arrays.
    for (record, row) in field.values.chunks_exact(200).enumerate() {
        let pairs = row.iter().zip(&target.values);
        let error = pairs.map(|(z, t)| f64::from(z - t).powi(2)).sum::<f64>() / 200.0;
        let told = about["errors"][record].as_f64().unwrap();
        assert!(
            (error / told - 1.0).abs() < 1e-4,
            "{record}: {error} {told}"
        );
    }
    let agents = &about["agents"];
    let length = |name: &str| agents[name].as_array().unwrap().len();
    let lengths = ["positions", "forces", "velocities", "modes"].map(length);
    assert_eq!((&agents["count"], lengths), (&8.into(), [21, 20, 20, 20]));
    assert_eq!(agents["positions"][0][7].as_array().unwrap().len(), 1);
    // Agent 0 dies half way, the others go on.
    let silent = agents["mode_names"].as_array().unwrap();
    assert_eq!(silent[0], "silent");
    let modes = |step: usize| [0, 1].map(|agent| agents["modes"][step][agent].as_u64().unwrap());
    assert_eq!((modes(9), modes(10)), ([2, 2], [0, 2]));
    assert_eq!(agents["forces"][10][0], 0.0);
}

#[test]
fn planes_keep_their_axes_and_tori_need_no_target() {
    let folder = folder();
    let command =
        "run turbulence-2d --controller none --steps 2 --out out --json --fields out/z.npy";
    let object = json(folder.path(), command);
    assert_eq!(object["fields"].as_array().unwrap().len(), 2);
    let bytes = std::fs::read(folder.path().join("out/z.npy")).unwrap();
    assert_eq!(npy::parse(&bytes).unwrap().shape, [3, 64, 64]);
    let text = std::fs::read_to_string(folder.path().join("out/z.json")).unwrap();
    let about: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(about["target"], Value::Null);
    assert_eq!(about["axes"][1]["periodic"], true);
    assert_eq!(about["agents"]["count"], 0);
}

#[test]
fn fields_that_could_not_be_written_are_refused_before_the_run() {
    let folder = folder();
    for (path, fact) in [
        ("fields.csv", "does not end in .npy"),
        ("fields", "does not end in .npy"),
        ("nowhere/fields.npy", "no folder nowhere"),
        ("out/run-heat-1d/episode.npy", "of its own"),
    ] {
        let command = format!("run heat-1d --policy hand.policy --fields {path}");
        refused(folder.path(), &command, &["--fields", path, fact]);
    }
}

#[test]
fn a_run_that_blows_up_leaves_no_fields_and_no_rows() {
    let folder = folder();
    let wild = support::npy(&[2, 128], Some((5, 1e20)));
    std::fs::write(folder.path().join("wild.npy"), wild).unwrap();
    let command = "run ks-1d --set wild.npy --fields all.npy --alone --out out";
    assert!(!agent_sim(folder.path(), command).status.success());
    let command = "eval ks-1d --set wild.npy --rows all.csv";
    refused(folder.path(), command, &["blew up"]);
    let mut left: Vec<String> = listing(folder.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["hand.policy", "last-finite.npy", "out", "wild.npy"]);
}

#[test]
fn eval_writes_a_row_an_episode() {
    let folder = folder();
    let eval = |rows: &str, more: &str| {
        let command = format!(
            "eval heat-1d --policy hand.policy --set fresh --episodes 3 --seed 4 --rows {rows} {more}"
        );
        stdout(folder.path(), &command)
    };
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let out = eval("scores.csv", "");
    assert!(out.contains("wrote scores.csv"), "{out}");
    let text = read("scores.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    assert_eq!(
        head[..2],
        ["controller", "variant"],
        "what tells rows apart comes first"
    );
    let rows: Vec<Vec<&str>> = lines.collect();
    // The policy, no control and proportional feedback, in each form of the problem.
    assert_eq!(rows.len(), 9 * (1 + PROBLEM.variants.len()));
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (controller, episode, final_error) = (
        column("controller"),
        column("episode"),
        column("final_error"),
    );
    let told: Vec<(&str, &str)> = rows.iter().map(|r| (r[controller], r[episode])).collect();
    assert_eq!(
        told[..4],
        [
            ("policy", "0"),
            ("policy", "1"),
            ("policy", "2"),
            ("none", "0")
        ]
    );

    // The same in JSON lines, and the means are those that eval shows.
    let object: Value = serde_json::from_str(&eval("scores.jsonl", "--json")).unwrap();
    let text = read("scores.jsonl");
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    let errors: Vec<f64> = lines
        .iter()
        .map(|l| l["final_error"].as_f64().unwrap())
        .collect();
    let csv: Vec<f64> = rows[..3]
        .iter()
        .map(|row| row[final_error].parse().unwrap())
        .collect();
    assert_eq!(errors, csv);
    let mean = errors.iter().sum::<f64>() / 3.0;
    assert!((mean / object["final"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["episode"], index);
        assert_eq!(line["headline"], line["final_error"]);
        assert_eq!((&line["seed"], &line["agents"]), (&4.into(), &8.into()));
        assert_eq!(line["policy_hash"], object["policy_hash"]);
        for name in &head {
            assert!(line.get(*name).is_some(), "{name} is in both");
        }
    }
}

#[test]
fn rows_that_could_not_be_written_are_refused_before_the_run() {
    let folder = folder();
    for (path, fact) in [
        ("-", ".jsonl"),
        ("scores.txt", "neither .csv nor .jsonl"),
        ("nowhere/scores.csv", "nowhere/scores.csv"),
    ] {
        let command = format!("eval heat-1d --policy hand.policy --rows {path}");
        refused(folder.path(), &command, &["--rows", fact]);
    }
}
