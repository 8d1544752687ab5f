//! Fields that files describe, from the command line.

use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::Snapshot;
use agent_sim::fault::Fault;
use problem::test_set::EpisodeSet;
use problem::{ErrorSensing, Proportional};
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

/// What every agent's force is after each step under feedback that always asks for the most.
fn forces(problem: &problem::Problem, faults: &[Fault]) -> Vec<Vec<f32>> {
    let experiment = Experiment {
        problem,
        controller: Controller::Proportional(Proportional {
            gain: 1e6,
            sensing: ErrorSensing::Kernel,
        }),
        agents: problem.agents,
        steps: 12,
        faults,
        seed: 1,
        plant: None,
    };
    let episode = EpisodeSet::Fresh.episode(problem, 1, 0).unwrap();
    let mut forces = Vec::new();
    let mut watch = |now: &Snapshot<'_>| {
        forces.push(now.deeds.iter().map(|deed| deed.force).collect());
    };
    experiment.run(&episode, &mut watch).unwrap();
    forces
}

/// The template's force of 15 and interval of 0.1: with a rate of 40, steps of 4.
#[test]
fn forces_with_a_rate_go_in_steps_and_those_of_the_dead_are_gone_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let rate = [("force = 15 ", "rate = 40\nforce = 15 ")];
    changed(folder.path(), "mine", "heat-2d", &rate);
    let problem = problem::kit::load(&folder.path().join("mine.toml")).unwrap();
    let all = forces(problem, &[]);
    for agent in 0..problem.agents {
        let course: Vec<f32> = all.iter().map(|step| step[agent]).collect();
        assert_eq!(course[0], 0.0);
        assert_eq!(course[1].abs(), 4.0, "{course:?}");
        for pair in course.windows(2) {
            assert!((pair[1] - pair[0]).abs() <= 4.0 + 1e-5, "{course:?}");
        }
    }
    assert!(all.iter().flatten().any(|force| force.abs() == 15.0));
    let crashed = forces(problem, &["crash,at=0.5".parse().unwrap()]);
    // Farther from 0 than a step goes.
    assert!(
        crashed[6].iter().any(|force| force.abs() > 8.0),
        "{crashed:?}"
    );
    assert!(crashed[7].iter().all(|force| *force == 0.0), "{crashed:?}");
}

/// Maps that say what bells of the template's width do are those bells, under feedback too, which asks
/// maps what counts.
#[test]
fn measured_actuators_do_what_their_maps_say_and_there_are_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let places = [[4.0, 4.0], [4.0, 15.0], [15.0, 14.0], [9.0, 11.0]];
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 41, 41), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for [x, y] in places {
        for node in 0..41 * 41 {
            let (dx, dy) = (0.5 * (node / 41) as f64 - x, 0.5 * (node % 41) as f64 - y);
            let effect = (-(dx * dx + dy * dy) / (2.0 * 1.5 * 1.5)).exp();
            bytes.extend((effect as f32).to_le_bytes());
        }
    }
    std::fs::write(folder.join("maps.npy"), bytes).unwrap();
    let list = format!("{{ list = {places:?} }}");
    let listed = ("{ lattice = [4, 4] }", list.as_str());
    changed(folder, "bells", "heat-2d", &[listed]);
    let maps = ("width = 1.5 ", "influence = \"maps.npy\" ");
    changed(folder, "maps", "heat-2d", &[listed, maps]);
    let [bells, maps] = ["bells", "maps"]
        .map(|name| problem::kit::load(&folder.join(format!("{name}.toml"))).unwrap());
    let width = maps.actuation.width;
    assert!((width / 1.5 - 1.0).abs() < 0.1, "{width}");
    let [bells, maps] = [bells, maps].map(|problem| {
        let experiment = Experiment {
            problem,
            controller: Controller::Proportional(Proportional {
                gain: 3.0,
                sensing: ErrorSensing::Kernel,
            }),
            agents: 4,
            steps: 50,
            faults: &[],
            seed: 1,
            plant: None,
        };
        let episode = EpisodeSet::Fresh.episode(problem, 1, 0).unwrap();
        let score = experiment.run(&episode, &mut |_| {}).unwrap();
        score.time_mean_error
    });
    assert!((maps / bells - 1.0).abs() < 0.01, "{maps} for {bells}");
    for command in [&["run"][..], &["eval"], &["sweep"]] {
        let more = ["maps.toml", "--gain", "1", "--agents", "5", "--controller"];
        let more = if command == ["sweep"] {
            &more[..5]
        } else {
            &more
        };
        let kind = if command == ["sweep"] {
            &[][..]
        } else {
            &["proportional"]
        };
        let output = agent_sim(folder, &[command, more, kind].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("--agents 4"),
            "{said}"
        );
    }
    let told = printed(folder, &["check", "maps.toml"]);
    assert!(told.contains("as its map says"), "{told}");
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
