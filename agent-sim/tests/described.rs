//! Fields that files describe, from the command line.

use std::path::Path;
use std::process::{Command, Output};

fn agent_sim(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// What a command that works prints.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = agent_sim(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_template_is_sound_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    for like in ["heat-2d", "reaction", "channel", "excitable"] {
        let (name, file) = (format!("my-{like}"), format!("my-{like}.toml"));
        printed(folder.path(), &["new", &name, "--like", like]);
        let text = printed(folder.path(), &["check", &file]);
        assert!(
            text.contains("domain.svg") && text.contains("growing modes"),
            "{text}"
        );
        let picture = folder.path().join(format!("out/check-{name}/domain.svg"));
        assert!(
            std::fs::read_to_string(picture)
                .unwrap()
                .ends_with("</svg>\n")
        );
        let run = [
            "run",
            &file,
            "--controller",
            "proportional",
            "--gain",
            "1",
            "--steps",
            "20",
        ];
        printed(folder.path(), &run);
        let again = printed(folder.path(), &["replay", &format!("out/run-{name}")]);
        assert!(again.contains("bit for bit"), "{again}");
    }
}

#[test]
fn what_is_there_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    printed(folder.path(), &["new", "mine"]);
    let again = agent_sim(folder.path(), &["new", "mine"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && said.contains("is there already"),
        "{said}"
    );
    let odd = agent_sim(folder.path(), &["new", "a plate"]);
    let said = String::from_utf8_lossy(&odd.stderr).into_owned();
    assert!(!odd.status.success() && said.contains("no name"), "{said}");
}

/// Disturbances, several fields, their weights and their policies come with the files.
#[test]
fn examples_run_with_their_policies_and_are_replayed() {
    let fields = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields");
    let folder = tempfile::tempdir().unwrap();
    for name in ["board-cooling", "excitable-tissue", "channel"] {
        let file = fields.join(name).with_extension("toml");
        let file = file.to_str().unwrap();
        let run = [
            "run",
            file,
            "--steps",
            "30",
            "--fault",
            "crash,fraction=0.3,at=0.5",
            "--seed",
            "3",
        ];
        let text = printed(folder.path(), &run);
        assert!(
            text.contains("swarm") && text.contains("proportional"),
            "{text}"
        );
        let again = printed(folder.path(), &["replay", &format!("out/run-{name}")]);
        assert!(again.contains("bit for bit"), "{again}");
    }
}

/// A swarm of another size than the file's finds places within the domain.
#[test]
fn swarms_of_any_size_stand_within_the_domain() {
    let fields = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields");
    let problem = problem::kit::load(&fields.join("board-cooling.toml")).unwrap();
    let domain = problem.kit.unwrap().domain(&problem.grid);
    for agents in [1, 5, 16, 17, 64, 300] {
        let places = (problem.placement)(problem, agents);
        assert_eq!(places.len(), agents);
        for place in places {
            let node = |axis: usize| (place[axis] / problem.grid.spacing(axis)).round() as usize;
            assert!(
                domain.wet(node(0) * problem.grid.points[1] + node(1)),
                "{agents}: {place:?}"
            );
        }
    }
}

/// A description to begin with, changed.
fn changed(folder: &Path, name: &str, like: &str, changes: &[(&str, &str)]) {
    printed(folder, &["new", name, "--like", like]);
    let path = folder.join(format!("{name}.toml"));
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} in {text}");
        text = text.replacen(from, to, 1);
    }
    std::fs::write(&path, text).unwrap();
}

/// What `eval` prints of a description, feedback alone, its first words aside, which hold the name.
fn evaluated(folder: &Path, file: &str, more: &[&str]) -> String {
    let eval = ["eval", file, "--set", "fresh", "--episodes", "3", "--gain"];
    let text = printed(
        folder,
        &[&eval[..], &["1", "--controller", "proportional"], more].concat(),
    );
    text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

/// Sensors of a file are part of every run of it, and come again with the run's seed.
#[test]
fn described_sensors_act_in_every_run_and_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    changed(folder, "mine", "heat-2d", &[]);
    let exact = evaluated(folder, "mine.toml", &[]);
    for sensors in ["noise = 2", "range = [-1, 1]", "quantisation = 4"] {
        std::fs::remove_file(folder.join("mine.toml")).unwrap();
        let lines = format!("[sensors]\n{sensors}\n");
        changed(folder, "mine", "heat-2d", &[("[sensors]\n", &lines)]);
        let seen = evaluated(folder, "mine.toml", &[]);
        assert_ne!(seen, exact, "{sensors}");
        assert_eq!(seen, evaluated(folder, "mine.toml", &[]), "{sensors}");
        let told = printed(folder, &["check", "mine.toml"]);
        assert!(told.contains("  sensors  "), "{told}");
        let run = ["run", "mine.toml", "--controller", "proportional", "--gain"];
        let more = [
            "1",
            "--steps",
            "10",
            "--fault",
            "noise,std=0.5",
            "--seed",
            "3",
        ];
        printed(folder, &[&run[..], &more].concat());
        let again = printed(folder, &["replay", "out/run-mine"]);
        assert!(again.contains("bit for bit"), "{again}");
    }
}

#[test]
fn complaints_name_the_file_and_the_line() {
    let folder = tempfile::tempdir().unwrap();
    printed(folder.path(), &["new", "mine"]);
    let path = folder.path().join("mine.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("reaction"))
        .unwrap();
    std::fs::write(&path, text.replace("\"-0.02*T\"", "\"-0.02*S\"")).unwrap();
    for command in ["check", "run", "eval", "tune"] {
        let output = agent_sim(folder.path(), &[command, "mine.toml"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(
            said.contains(&format!("mine.toml:{line}: ")) && said.contains("'S'"),
            "{said}"
        );
    }
}
