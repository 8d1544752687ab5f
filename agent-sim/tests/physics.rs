//! Problems under other physics, as a user sees them.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{agent_sim, refused, stdout};

fn json(folder: &Path, command: &str) -> Value {
    serde_json::from_str(&stdout(folder, command)).unwrap()
}

fn final_error(outcome: &Value) -> f64 {
    outcome["scores"][0]["final_error"].as_f64().unwrap()
}

const ALONE: &str = "--controller none --steps 60 --alone --json --out out";

#[test]
fn coefficients_change_what_the_field_does_and_what_outputs_say() {
    let folder = tempfile::tempdir().unwrap();
    let run = |flags: &str| {
        final_error(&json(
            folder.path(),
            &format!("run fkpp-1d --seed 3 {flags} {ALONE}"),
        ))
    };
    let published = run("");
    assert_eq!(run("--physics nu=0.005,rho=3"), published);
    // A population that grows ten times as fast has filled the line after 60 steps.
    let fast = run("--physics rho=30");
    assert!((fast / published - 1.0).abs() > 0.1, "{fast} {published}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("fkpp-1d with rho=30"));
    let evaluation = json(
        folder.path(),
        "eval fkpp-1d --physics nu=0.001,rho=5 --controller none --episodes 2 --json",
    );
    assert_eq!(evaluation["physics"]["nu"], 0.001);
    assert_eq!(evaluation["physics"]["rho"], 5.0);
}

#[test]
fn a_scenario_file_holds_coefficients_and_a_replay_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "problem = \"fkpp-1d\"\nsteps = 40\n\n[physics]\nnu = 0.001\nrho = 5.0\n";
    std::fs::write(folder.path().join("mine.toml"), scenario).unwrap();
    let run = |command: &str| final_error(&json(folder.path(), command));
    let by_file = run("run --scenario mine.toml --alone --json --out file");
    let flags = "--steps 40 --alone --json --out flags";
    let by_flags = run(&format!("run fkpp-1d --physics nu=0.001,rho=5 {flags}"));
    assert_eq!(by_file, by_flags);
    let changed = run("run --scenario mine.toml --physics rho=1 --alone --json --out changed");
    assert_ne!(changed, by_file, "flags go before files");
    let kept = std::fs::read_to_string(folder.path().join("changed/scenario.toml")).unwrap();
    assert!(
        kept.contains("nu = 0.001") && kept.contains("rho = 1"),
        "{kept}"
    );
    for out in ["file", "flags", "changed"] {
        let said = stdout(folder.path(), &format!("replay {out}"));
        assert!(said.contains("the same bit for bit"), "{said}");
    }
}

#[test]
fn a_longer_circle_can_be_run_on_a_grid_of_its_own_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let command =
        "run ks-1d --physics length=64 --grid 256 --agents 30 --steps 20 --alone --out out";
    let said = stdout(folder.path(), command);
    assert!(
        said.contains("ks-1d with length=64") && said.contains("30 agents"),
        "{said}"
    );
    let said = stdout(folder.path(), "replay out");
    assert!(said.contains("the same bit for bit"), "{said}");
    // The published episodes stand on another circle.
    let facts = ["[samples, 372]", "--set fresh"];
    refused(folder.path(), "eval ks-1d --physics length=64", &facts);
}

#[test]
fn fields_that_their_grid_is_too_coarse_for_are_told_apart_from_wild_gains() {
    let folder = tempfile::tempdir().unwrap();
    let said = |command: &str| {
        let output = agent_sim(folder.path(), &format!("{command} --alone --out out"));
        let message = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), message)
    };
    let (ran, warning) = said("run turbulence-2d --physics nu=1e-5 --controller none");
    assert!(
        ran && warning.contains("a grid of 64x64 is too coarse"),
        "{warning}"
    );
    assert!(warning.contains("--grid 128"), "{warning}");
    let (ran, error) = said("run ks-1d --physics length=200 --grid 64");
    assert!(
        !ran && error.contains("a grid of 64 is too coarse"),
        "{error}"
    );
    assert!(
        error.contains("--grid 128") && !error.contains("gain"),
        "{error}"
    );
    for fine in ["turbulence-2d", "ks-1d", "ks-1d --physics length=200"] {
        let (ran, warning) = said(&format!("run {fine} --controller none --steps 60"));
        assert!(ran && !warning.contains("coarse"), "{warning}");
    }
}

#[test]
fn grids_can_have_any_shape_and_replays_keep_it() {
    let folder = tempfile::tempdir().unwrap();
    for (problem, grid) in [
        ("heat-2d", "33x48"),
        ("ks-2d", "63x80"),
        ("density-2d", "64x120"),
    ] {
        let flags = "--steps 3 --set table --alone --out out";
        stdout(
            folder.path(),
            &format!("run {problem} --grid {grid} {flags}"),
        );
        let kept = std::fs::read_to_string(folder.path().join("out/scenario.toml")).unwrap();
        assert!(kept.contains(&format!("grid = \"{grid}\"")), "{kept}");
        let said = stdout(folder.path(), "replay out");
        assert!(said.contains("the same bit for bit"), "{said}");
    }
    let numbers = "problem = \"heat-1d\"\ngrid = 200\nsteps = 3\n";
    std::fs::write(folder.path().join("old.toml"), numbers).unwrap();
    stdout(folder.path(), "run --scenario old.toml --alone --out out");
    let kept = std::fs::read_to_string(folder.path().join("out/scenario.toml")).unwrap();
    assert!(kept.contains("grid = 200"), "{kept}");
}

#[test]
fn density_runs_report_their_mass() {
    let folder = tempfile::tempdir().unwrap();
    let command = "run density-2d --variant conservative --steps 20 --alone --out out";
    let said = stdout(folder.path(), command);
    assert!(
        said.contains("mass at start") && said.contains("mass at end"),
        "{said}"
    );
    let outcome = json(folder.path(), &format!("{command} --json"));
    let mass = |k: usize| outcome["scores"][0]["mass"][k].as_f64().unwrap();
    assert!(
        (mass(1) / mass(0) - 1.0).abs() < 1e-12,
        "{} {}",
        mass(0),
        mass(1)
    );
}

#[test]
fn flows_are_warmed_up_at_their_own_viscosity() {
    let folder = tempfile::tempdir().unwrap();
    // Before anything has happened: the mean square of the episode itself.
    let start = |flags: &str| {
        let command = format!(
            "run turbulence-2d --steps 1 --controller none --alone --json --out out {flags}"
        );
        final_error(&json(folder.path(), &command))
    };
    let (published, thin) = (start(""), start("--physics nu=2e-4"));
    assert!(thin > 1.3 * published, "{thin} {published}");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    for (command, facts) in [
        (
            "run fkpp-1d --physics mu=1",
            ["no coefficient 'mu'", "rho (growth rate"],
        ),
        (
            "run fkpp-1d --physics nu=-1",
            ["nu (diffusivity", "from 1e-9 to 1e0"],
        ),
        (
            "run fkpp-1d --physics rho=NaN",
            ["rho (growth rate", "not NaN"],
        ),
        (
            "run fkpp-1d --physics nu",
            ["'nu' is no setting", "nu=0.001,rho=5"],
        ),
        (
            "run heat-1d --physics nu=100",
            ["nu (diffusivity", "from 1e-6 to 1e1"],
        ),
        (
            "run heat-1d --physics rho=1",
            ["heat-1d has no coefficient 'rho'", "nu (diffusivity"],
        ),
        (
            "run ks-1d --physics length=3",
            ["length (circumference", "from 1.1e1"],
        ),
    ] {
        refused(folder.path(), command, &facts);
    }
}

#[test]
fn problems_lists_what_can_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let said = stdout(folder.path(), "problems");
    for fact in [
        "fkpp-1d --physics rho=3",
        "ks-1d --physics length=22",
        "turbulence-2d --physics nu=0.0005",
    ] {
        assert!(said.contains(fact), "{said}");
    }
}
