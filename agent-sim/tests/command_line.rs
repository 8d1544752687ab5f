//! What a user sees: results on good input, one clear sentence on bad input, and nothing left
//! behind.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{listing, npy, refused, stdout};
use tempfile::TempDir;

/// A folder with the hand-made policy in it, where commands run.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hand.policy"), support::policy()).unwrap();
    folder
}

#[test]
fn eval_prints_one_json_object_and_nothing_else() {
    let folder = folder();
    let out = stdout(
        folder.path(),
        "eval heat-1d --policy hand.policy --episodes 5 --json",
    );
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["problem"], "heat-1d");
    assert_eq!(object["controller"], "policy");
    assert_eq!(object["agents"], 8);
    assert_eq!(object["episodes"], 5);
    assert_eq!(object["seed"], 0);
    assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(object["policy_hash"].as_str().unwrap().len(), 64);
    for part in ["final", "time_mean", "effort", "travel"] {
        for figure in ["mean", "std", "median", "p95", "worst"] {
            assert!(object[part][figure].is_number(), "{part}.{figure}");
        }
    }
    assert_eq!(listing(folder.path()).len(), 1, "eval writes no files");
}

#[test]
fn eval_without_control_gives_the_published_figure() {
    let folder = folder();
    let out = stdout(folder.path(), "eval heat-1d --controller none --json");
    let object: Value = serde_json::from_str(&out).unwrap();
    let mean = object["final"]["mean"].as_f64().unwrap();
    assert!((mean / 0.3899 - 1.0).abs() < 0.005, "{mean}");
    assert_eq!(object["policy_hash"], Value::Null);
}

#[test]
fn eval_shows_the_yardsticks_beside_the_result() {
    let folder = folder();
    let out = stdout(
        folder.path(),
        "eval heat-1d --policy hand.policy --set fresh --episodes 3 --seed 4",
    );
    for row in ["policy", "none", "proportional", "seed 4", "fresh"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}

#[test]
fn the_same_command_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = folder();
    let run = |threads: usize| {
        let command = format!(
            "run heat-1d --policy hand.policy --agents 300 --seed 7 --steps 40 --fault crash,fraction=0.3,at=0.5 \
             --threads {threads} --out out"
        );
        let out = stdout(folder.path(), &command);
        let read = |name| std::fs::read(folder.path().join("out").join(name)).unwrap();
        (out, read("field.svg"), read("error.svg"))
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn run_names_its_pictures_and_its_origin() {
    let folder = folder();
    let out = stdout(
        folder.path(),
        "run heat-1d --policy hand.policy --agents 16 --seed 7 --out pictures",
    );
    assert!(out.contains("seed 7") && out.contains("policy ") && out.contains("16 agents"));
    for name in ["field.svg", "error.svg"] {
        let path = Path::new("pictures").join(name);
        assert!(out.contains(path.to_str().unwrap()), "{out}");
        let picture = std::fs::read_to_string(folder.path().join(path)).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        assert!(picture.contains("seed 7"), "{name} names its seed");
        assert!(
            picture.len() < 300_000,
            "{name} has {} bytes",
            picture.len()
        );
    }
    let field = std::fs::read_to_string(folder.path().join("pictures/field.svg")).unwrap();
    assert!(field.contains("data:image/png;base64,"));
}

#[test]
fn the_demo_tells_its_story() {
    let folder = folder();
    let out = stdout(folder.path(), "demo --policy hand.policy");
    for row in [
        "no control",
        "swarm of 8",
        "3 of 8 killed half way",
        "proportional",
    ] {
        assert!(out.contains(row), "{row} in {out}");
    }
    assert!(out.contains("out/demo/demo.svg"));
    assert!(folder.path().join("out/demo/demo.svg").is_file());
}

#[test]
fn an_unknown_problem_is_refused_with_the_known_ones() {
    let facts = ["no problem called 'heat-9d'", "heat-1d"];
    refused(folder().path(), "run heat-9d", &facts);
    refused(folder().path(), "eval heat-9d --json", &facts);
}

#[test]
fn a_swarm_of_nobody_is_refused() {
    let facts = ["0 agents", "--agents 1"];
    refused(folder().path(), "run heat-1d --agents 0", &facts);
    refused(folder().path(), "eval heat-1d --agents 0 --json", &facts);
}

#[test]
fn a_policy_for_another_problem_is_refused() {
    let folder = folder();
    let path = folder.path().join("other.policy");
    std::fs::write(path, support::policy_for("ks-1d")).unwrap();
    let facts = ["other.policy", "trained for ks-1d, not for heat-1d"];
    refused(folder.path(), "run heat-1d --policy other.policy", &facts);
    refused(folder.path(), "eval heat-1d --policy other.policy", &facts);
}

#[test]
fn unusable_blobs_are_refused_by_what_is_wrong_with_them() {
    let folder = folder();
    let good = support::policy();
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("short.policy", good[..good.len() - 9].to_vec(), "cut off"),
        ("empty.policy", Vec::new(), "not a policy"),
        (
            "damaged.policy",
            {
                let mut bytes = good.clone();
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            },
            "damaged",
        ),
        (
            "newer.policy",
            {
                // The format number follows the eight magic bytes.
                let mut bytes = good.clone();
                bytes[8] = 9;
                bytes
            },
            "format 9",
        ),
        ("song.policy", vec![b'x'; 400], "not a policy"),
    ];
    for (name, bytes, fact) in cases {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let command = format!("run heat-1d --policy {name} --out out");
        refused(folder.path(), &command, &[name, fact, "export"]);
    }
    let facts = ["nowhere.policy", "--policy"];
    refused(
        folder.path(),
        "eval heat-1d --policy nowhere.policy",
        &facts,
    );
}

#[test]
fn bad_test_sets_are_refused_by_what_is_wrong_with_them() {
    let folder = folder();
    let cases = [
        // Sample 1, target (1), point 17.
        (
            "nan.npy",
            npy(&[3, 2, 100], Some((317, f32::NAN))),
            "[1, 1, 17] is NaN",
        ),
        (
            "inf.npy",
            npy(&[3, 2, 100], Some((0, f32::INFINITY))),
            "[0, 0, 0] is inf",
        ),
        ("small.npy", npy(&[3, 2, 3], None), "at least 4"),
        ("plane.npy", npy(&[3, 2, 64, 64], None), "[3, 2, 64, 64]"),
        ("flat.npy", npy(&[3, 100], None), "[samples, 2, 100]"),
        ("none.npy", npy(&[0, 2, 100], None), "[0, 2, 100]"),
        ("text.npy", b"1,2,3".to_vec(), "not a NumPy"),
    ];
    for (name, bytes, fact) in cases {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let command = format!("eval heat-1d --policy hand.policy --set {name} --json");
        refused(folder.path(), &command, &[name, fact]);
        let command = format!("run heat-1d --policy hand.policy --set {name}");
        refused(folder.path(), &command, &[name, fact]);
    }
    let command = "eval heat-1d --policy hand.policy --set missing.npy";
    refused(folder.path(), command, &["missing.npy", "--set table"]);
    let command = "run heat-1d --policy hand.policy --set table --episode 50";
    refused(folder.path(), command, &["50 episodes", "episode 50"]);
}

#[test]
fn a_good_test_set_file_is_used() {
    let folder = folder();
    std::fs::write(folder.path().join("good.npy"), npy(&[3, 2, 100], None)).unwrap();
    let out = stdout(
        folder.path(),
        "eval heat-1d --policy hand.policy --set good.npy --json",
    );
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&object["episodes"], &object["set"]),
        (&3.into(), &"good.npy".into())
    );
    // From zero to zero there is nothing to do, and a linear policy does nothing.
    assert_eq!(object["final"]["worst"], 0.0);
}

#[test]
fn an_unwritable_folder_is_refused_before_the_run() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let facts = ["cannot write to file/out", "--out"];
    let run = "run heat-1d --policy hand.policy --out file/out";
    refused(folder.path(), run, &facts);
    refused(
        folder.path(),
        "demo --policy hand.policy --out file/out",
        &facts,
    );
}

#[test]
fn senseless_numbers_are_refused() {
    let folder = folder();
    let cases = [
        ("run heat-1d --policy hand.policy --steps 0", "0 steps"),
        (
            "run heat-1d --policy hand.policy --threads 0",
            "--threads 0",
        ),
        (
            "run heat-1d --policy hand.policy --fault crash,fraction=1.2",
            "1.2",
        ),
        ("run heat-1d --controller none --gain 3", "--gain belongs"),
        (
            "run heat-1d --controller none --policy hand.policy",
            "--policy belongs",
        ),
        ("run heat-1d --controller proportional --gain NaN", "NaN"),
        (
            "run density-2d --controller coverage",
            "--controller proportional",
        ),
        ("tune density-2d --controller coverage", "stir"),
        ("tune heat-1d --controller none", "no gain"),
        (
            "eval ks-1d --controller nmpc --plan 20",
            "trainer eval ks-1d --controller nmpc",
        ),
        (
            "eval ks-1d --controller dpc",
            "trainer eval ks-1d --controller dpc --network",
        ),
        (
            "run heat-1d --network runs/heat-1d-centralised/best",
            "belongs to --controller dpc",
        ),
        (
            "run heat-1d --controller coverage --replan 5",
            "belong to --controller nmpc",
        ),
        ("eval heat-1d --policy hand.policy --from 300", "0 to 299"),
        (
            "eval heat-1d --policy hand.policy --episodes 0",
            "0 episodes",
        ),
        (
            "eval heat-1d --policy hand.policy --episodes 51",
            "50 episodes",
        ),
    ];
    for (command, fact) in cases {
        refused(folder.path(), command, &[fact]);
    }
}

#[test]
fn boards_that_make_no_sense_are_refused_before_anything_starts() {
    let folder = folder();
    for (command, said) in [
        ("run heat-1d --link foo=2", "qemu=6"),
        ("run heat-1d --link qemu=0", "qemu=6"),
        ("run heat-1d --link qemu=9", "--agents 9"),
        ("run heat-1d --controller none --link qemu=1", "policy"),
        ("run heat-1d --fault kill,count=2,at=0.3", "--link qemu=2"),
        (
            "run heat-1d --link qemu=2 --fault hang,count=3",
            "--link qemu=3",
        ),
        (
            "run heat-1d --link tcp=localhost:1 --fault kill",
            "only emulated boards",
        ),
        (
            "run heat-1d --link qemu=2 --fault kill,link=usb",
            "qemu, serial, tcp or zenoh",
        ),
        (
            "run heat-1d --link qemu=2 --fault kill,until=0.5",
            "no parameter 'until'",
        ),
        ("run heat-1d --realtime 0", "above 0"),
        ("run heat-1d --link qemu=1 --patience 0", "--patience"),
        ("run heat-1d --link qemu=1 --patience 1e18", "3600 s"),
        ("nodes", "--link"),
        ("flash hand.policy", "--link"),
        ("flash nothing.policy --link qemu=1", "nothing.policy"),
    ] {
        refused(folder.path(), command, &[said]);
    }
}

#[test]
fn a_swarm_of_boards_without_any_board_is_refused_with_the_reason() {
    let folder = folder();
    let output = support::agent_sim(folder.path(), "run heat-1d --link qemu=8");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains("cargo xtask firmware build"), "{message}");
    assert!(message.contains("no other agents are left"), "{message}");
}

#[test]
fn a_run_in_real_time_takes_its_time() {
    let folder = folder();
    let began = std::time::Instant::now();
    // 30 steps of 1 ms at a tenth of real time.
    let command = "run heat-1d --policy hand.policy --steps 30 --realtime 0.1 --alone";
    stdout(folder.path(), command);
    assert!(began.elapsed().as_millis() >= 300);
    // What happened in real time happened once.
    refused(folder.path(), "replay out/run-heat-1d", &["run it again"]);
}

#[test]
fn help_has_examples() {
    let folder = folder();
    for command in [
        "--help",
        "run --help",
        "eval --help",
        "demo --help",
        "tune --help",
        "sweep --help",
        "replay --help",
        "flash --help",
        "nodes --help",
        "key --help",
        "problems --help",
        "faults --help",
    ] {
        assert!(
            stdout(folder.path(), command).contains("Example"),
            "{command}"
        );
    }
}
