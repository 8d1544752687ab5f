//! The benchmark's output, not its figures: those belong to the machine.

use serde_json::Value;
use std::process::Command;

fn bench(arguments: &str) -> (String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), folder)
}

#[test]
fn a_quick_benchmark_prints_one_json_object_and_writes_its_timings() {
    let (out, folder) = bench("bench heat-1d --quick --json --csv timings.csv");
    let object: Value = serde_json::from_str(&out).unwrap();
    assert!(object["machine"]["cores"].as_u64().unwrap() > 0);
    let speed = &object["speeds"][0];
    assert_eq!(speed["problem"], "heat-1d");
    assert_eq!(speed["agents"], 8);
    for figure in [
        "pde_steps_per_s",
        "agent_steps_per_s",
        "control_steps_per_s",
        "episode_s",
    ] {
        let value = speed[figure].as_f64().unwrap();
        assert!(value.is_finite() && value > 0.0, "{figure}: {value}");
    }
    let growths = object["growths"].as_array().unwrap();
    let with: Vec<&str> = growths
        .iter()
        .map(|g| g["with"].as_str().unwrap())
        .collect();
    assert_eq!(with, ["agents", "grid points"]);
    for growth in growths {
        assert!(growth["exponent"].as_f64().unwrap().is_finite());
        assert!(growth["met"].is_boolean());
    }
    let sizes: Vec<u64> = growths[1]["costs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["size"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [100, 200, 400]);

    // Three figures, four swarms, three grids, and the names of the columns.
    let csv = std::fs::read_to_string(folder.path().join("timings.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 + 4 + 3, "{csv}");
}

#[test]
fn whole_episodes_can_be_timed_alone() {
    let (out, _) = bench("bench heat-1d --episodes 3 --json");
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["steps"], 300);
    assert_eq!(object["seconds"].as_array().unwrap().len(), 3);
}
