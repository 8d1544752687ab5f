//! Fields that are computed by other programs: what they get and give, and every way in which they fail.

mod support;

use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::RunError;
use agent_sim::plant::{self, Address, BuiltIn, Plant, PlantError, Shared, Start};
use problem::published::{density_2d, heat_1d, heat_2d};
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem, Problems, Proportional};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::listing;

/// Far longer than any answer takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a peer does when it is asked something.
enum Turn {
    Say(Vec<u8>),
    /// Says so, then nothing, until the other end is gone.
    Stall(Vec<u8>),
    /// Says so and goes.
    Leave(Vec<u8>),
}

/// A header and its array.
fn message(header: &Value, values: &[f64]) -> Vec<u8> {
    let mut bytes = format!("{header}\n").into_bytes();
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

fn hello() -> Vec<u8> {
    let header = json!({ "message": "hello", "protocol": 1, "name": "peer" });
    message(&header, &[])
}

fn field(shape: &[usize], values: &[f64]) -> Vec<u8> {
    message(&json!({ "message": "field", "shape": shape }), values)
}

/// A peer that answers as it is told, in a thread; its address.
fn peer(mut turn: impl FnMut(&Value, &[f64]) -> Turn + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let mut from = BufReader::new(socket.try_clone().unwrap());
        // Errors mean that the other end has had enough.
        let _ = converse(&socket, &mut from, &mut turn);
    });
    format!("tcp={address}").parse().unwrap()
}

fn converse(
    mut to: &TcpStream,
    from: &mut impl BufRead,
    turn: &mut impl FnMut(&Value, &[f64]) -> Turn,
) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let header: Value = serde_json::from_str(&line)?;
        let shape = header["shape"].as_array();
        let sizes = shape.map(|sizes| sizes.iter().map(|n| n.as_u64().unwrap() as usize));
        let count: usize = sizes.map_or(0, Iterator::product);
        let mut bytes = vec![0; 8 * count];
        from.read_exact(&mut bytes)?;
        let values = bytes.chunks_exact(8);
        let values: Vec<f64> = values
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect();
        match turn(&header, &values) {
            Turn::Say(bytes) => to.write_all(&bytes)?,
            Turn::Stall(bytes) => {
                to.write_all(&bytes)?;
                return from.read_to_end(&mut Vec::new()).map(drop);
            }
            Turn::Leave(bytes) => return to.write_all(&bytes),
        }
    }
}

/// A peer that solves a problem as the program itself does.
fn solving(problem: Problem) -> Address {
    let mut plant = BuiltIn::default();
    let mut state = Vec::new();
    peer(move |header, values| {
        match header["message"].as_str().unwrap() {
            "hello" => return Turn::Say(hello()),
            "reset" => {
                let dt = header["dt"].as_f64().unwrap();
                let start = Start {
                    problem: &problem,
                    parts: (problem.control_interval / dt).round() as usize,
                    seed: header["seed"].as_u64().unwrap(),
                };
                state = values.to_vec();
                plant.reset(&start, &mut state).unwrap();
            }
            "step" => {
                let dt = header["dt"].as_f64().unwrap();
                plant.step(values, dt, &mut state).unwrap();
            }
            _ => return Turn::Leave(Vec::new()),
        }
        let shape = [&[problem.fields()], problem.grid.shape()].concat();
        Turn::Say(field(&shape, &state))
    })
}

/// One that says hello and then, to the question of that number from the reset on, this; before, a field
/// of zeros.
fn failing(at: usize, turn: impl Fn() -> Turn + Send + 'static) -> Address {
    let mut asked = 0;
    peer(move |header, _| {
        if header["message"] == "hello" {
            return Turn::Say(hello());
        }
        asked += 1;
        match asked > at {
            true => turn(),
            false => Turn::Say(field(&[1, 100], &[0.0; 100])),
        }
    })
}

/// Nobody controls heat-1d on that plant.
fn run_on(address: &Address, patience: Duration) -> Result<(), RunError> {
    let problem = &heat_1d::PROBLEM;
    let open = plant::open(address, patience, problem);
    let plant = open.map_err(|source| {
        RunError::Plant(Box::new(agent_sim::episode::PlantFailed {
            step: 0,
            source,
            last_finite: Vec::new(),
        }))
    })?;
    let experiment = Experiment {
        problem,
        controller: Controller::None,
        agents: 0,
        steps: 10,
        faults: &[],
        seed: 0,
        plant: Some(&plant),
    };
    let episode = EpisodeSet::Table.episode(problem, 0, 0).unwrap();
    experiment.run(&episode, &mut |_| {}).map(drop)
}

/// How that plant failed.
fn failure(address: &Address, patience: Duration) -> (usize, PlantError) {
    match run_on(address, patience) {
        Err(RunError::Plant(failed)) => (failed.step, failed.source),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn says(error: &PlantError, facts: &[&str]) {
    let text = error.to_string();
    for fact in facts {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

/// The bits of all states of a run with proportional agents.
fn bits(problem: &Problem, episode: &Episode, faults: &str, plant: Option<&Shared>) -> Vec<u64> {
    let faults: Vec<_> = (faults.split_whitespace())
        .map(|fault| fault.parse().unwrap())
        .collect();
    let law = problem.baseline.unwrap_or(Proportional {
        gain: 1.0,
        sensing: problem::ErrorSensing::Kernel,
    });
    let experiment = Experiment {
        problem,
        controller: Controller::Proportional(law),
        agents: problem.agents,
        steps: 12,
        faults: &faults,
        seed: 5,
        plant,
    };
    let mut bits = Vec::new();
    let run = experiment.run(episode, &mut |snapshot| {
        bits.extend(snapshot.field.iter().map(|z| z.to_bits()));
    });
    run.unwrap();
    bits
}

#[test]
fn the_same_solver_elsewhere_gives_the_same_bits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let file = root.join("examples/fields/excitable-tissue.toml");
    let tissue = Problems::published();
    let tissue = *tissue.by_name(file.to_str().unwrap()).unwrap();
    assert_eq!((tissue.fields(), density_2d::PROBLEM.components()), (2, 2));
    let finer = heat_1d::PROBLEM.with_grid(150).unwrap();
    for (problem, faults) in [
        (heat_1d::PROBLEM, ""),
        (finer, "crash,fraction=0.3"),
        // Agents with clocks of their own: several steps in a control interval.
        (heat_1d::PROBLEM, "clock,rate=0.1,phase=1"),
        (density_2d::PROBLEM, ""),
        (tissue, ""),
    ] {
        let episode = EpisodeSet::Fresh.episode(&problem, 3, 0).unwrap();
        let plant = plant::open(&solving(problem), PATIENCE, &problem).unwrap();
        assert!(plant.name().ends_with("(peer)"), "{}", plant.name());
        let here = bits(&problem, &episode, faults, None);
        assert_eq!(bits(&problem, &episode, faults, Some(&plant)), here);
        // And once more: it is reset.
        assert_eq!(bits(&problem, &episode, faults, Some(&plant)), here);
    }
}

#[test]
fn a_plant_is_told_what_it_has_to_solve() {
    let (tell, told) = std::sync::mpsc::channel();
    let address = peer(move |header, values| {
        tell.send((header.clone(), values.to_vec())).unwrap();
        match header["message"].as_str().unwrap() {
            "hello" => Turn::Say(hello()),
            "bye" => Turn::Leave(Vec::new()),
            _ => Turn::Say(field(&[1, 100], &[0.5; 100])),
        }
    });
    run_on(&address, PATIENCE).unwrap();
    let told: Vec<(Value, Vec<f64>)> = told.iter().collect();
    let (hello, volumes) = &told[0];
    for (name, value) in [
        ("message", json!("hello")),
        ("protocol", json!(1)),
        ("problem", json!("heat-1d")),
        ("variant", json!(null)),
        ("file", json!(null)),
        ("grid", json!([100])),
        ("low", json!([0.0])),
        ("high", json!([1.0])),
        ("edges", json!(["wall"])),
        ("axes", json!(["x"])),
        ("drives", json!("source")),
        ("components", json!(1)),
        ("interval", json!(0.001)),
        ("shape", json!([100])),
    ] {
        assert_eq!(hello[name], value, "{name}");
    }
    assert_eq!(hello["fields"].as_array().unwrap().len(), 1);
    assert!(hello["coefficients"].is_object() && hello["substeps"].is_u64());
    assert_eq!((volumes[0], volumes[1], volumes[99]), (0.5, 1.0, 0.5));
    let (reset, initial) = &told[1];
    assert_eq!(
        *reset,
        json!({ "message": "reset", "shape": [1, 100], "dt": 0.001, "seed": 0 })
    );
    let episode = EpisodeSet::Table.episode(&heat_1d::PROBLEM, 0, 0).unwrap();
    assert_eq!(initial[7], f64::from(episode.initial[7]));
    let step = json!({ "message": "step", "shape": [1, 100], "dt": 0.001 });
    assert_eq!(told[2], (step, vec![0.0; 100]));
    assert_eq!(told.len(), 1 + 1 + 10 + 1);
    assert_eq!(told[12].0, json!({ "message": "bye" }));
}

/// One connection serves several problems: each is said when it comes.
#[test]
fn a_plant_is_told_when_the_problem_changes() {
    let (tell, told) = std::sync::mpsc::channel();
    let address = peer(move |header, _| match header["message"].as_str().unwrap() {
        "hello" => {
            tell.send(header["variant"].clone()).unwrap();
            Turn::Say(hello())
        }
        "bye" => Turn::Leave(Vec::new()),
        _ => Turn::Say(field(&[1, 100], &[0.5; 100])),
    });
    let problem = heat_1d::PROBLEM;
    let variant = problem.with_variant("true-spacing").unwrap();
    let plant = plant::open(&address, PATIENCE, &problem).unwrap();
    let mut lent = plant.lend();
    for problem in [&problem, &problem, &variant, &variant] {
        let start = Start {
            problem,
            parts: 1,
            seed: 0,
        };
        lent.reset(&start, &mut [0.0; 100]).unwrap();
    }
    drop((lent, plant));
    let told: Vec<Value> = told.iter().collect();
    assert_eq!(told, [json!(null), json!("true-spacing")]);
}

#[test]
fn a_plant_that_leaves_is_said_to_have_stopped() {
    let (step, error) = failure(&failing(4, || Turn::Leave(Vec::new())), PATIENCE);
    assert!(matches!(error, PlantError::Stopped { .. }), "{error}");
    says(&error, &["tcp=127.0.0.1", "closed the line", "step"]);
    assert_eq!(step, 4);
    // In the middle of an answer too.
    let half = || Turn::Leave(field(&[1, 100], &[0.0; 50]));
    let (step, error) = failure(&failing(0, half), PATIENCE);
    assert!(matches!(error, PlantError::Stopped { .. }), "{error}");
    assert_eq!(step, 0);
}

#[test]
fn a_plant_that_stalls_is_waited_for_no_longer_than_said() {
    let patience = Duration::from_millis(300);
    for said in [
        Vec::new(),
        b"{\"message\"".to_vec(),
        field(&[1, 100], &[0.0; 99]),
    ] {
        let began = Instant::now();
        let (_, error) = failure(&failing(2, move || Turn::Stall(said.clone())), patience);
        assert!(matches!(error, PlantError::Stalled { .. }), "{error}");
        says(&error, &["0.3 s", "--plant-patience", "the step"]);
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

/// A deadline is for the whole answer, not for its next byte.
#[test]
fn a_plant_that_dribbles_stalls_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp={}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        while socket.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let (_, error) = failure(&address.parse().unwrap(), Duration::from_millis(400));
    assert!(matches!(error, PlantError::Stalled { .. }), "{error}");
}

#[test]
fn answers_that_are_none_are_refused_with_the_facts() {
    let header = |header: Value| move || Turn::Say(message(&header, &[]));
    type Case = (Box<dyn Fn() -> Turn + Send>, &'static [&'static str]);
    let cases: Vec<Case> = vec![
        (
            Box::new(|| Turn::Say(field(&[1, 99], &[0.0; 99]))),
            &["[1, 99]", "[1, 100]", "heat-1d"],
        ),
        (
            Box::new(|| Turn::Say(field(&[usize::MAX, 100, 7], &[]))),
            &["18446744073709551615"],
        ),
        (
            Box::new(|| Turn::Say([field(&[1, 100], &[0.0; 100]), vec![7; 3]].concat())),
            &["3 bytes", "after its answer"],
        ),
        (
            Box::new(|| Turn::Say(b"Hello, I am a solver\n".to_vec())),
            &["Hello, I am a solver", "standard output"],
        ),
        (
            Box::new(|| Turn::Stall(vec![b'x'; 1 << 20])),
            &["65536 bytes", "line"],
        ),
        (
            Box::new(|| Turn::Say(vec![0xff, 0xfe, b'\n'])),
            &["no message"],
        ),
        (Box::new(|| Turn::Say(hello())), &["a reset with 'hello'"]),
        (
            Box::new(header(json!({ "message": "field" }))),
            &["missing field `shape`"],
        ),
        (
            Box::new(header(json!({ "message": "field", "shape": [-1, 100] }))),
            &["no message"],
        ),
        (Box::new(header(json!([1, 2]))), &["no message"]),
        (
            Box::new(header(json!({ "message": "state" }))),
            &["state", "no message"],
        ),
    ];
    for (turn, facts) in cases {
        let (_, error) = failure(&failing(0, turn), PATIENCE);
        assert!(matches!(error, PlantError::Malformed { .. }), "{error}");
        says(&error, facts);
    }
}

#[test]
fn a_plant_of_another_version_is_refused() {
    let version = |_: &Value, _: &[f64]| {
        let hello = json!({ "message": "hello", "protocol": 2 });
        Turn::Say(message(&hello, &[]))
    };
    let (_, error) = failure(&peer(version), PATIENCE);
    says(&error, &["version 2", "version 1"]);
}

#[test]
fn a_plant_can_refuse_in_its_own_words() {
    let words = "I know\u{1b}[2J plates only";
    let refuse = move || {
        let error = json!({ "message": "error", "text": words });
        Turn::Leave(message(&error, &[]))
    };
    let (step, error) = failure(&failing(3, refuse), PATIENCE);
    assert!(matches!(error, PlantError::Refused { .. }), "{error}");
    says(&error, &["refuses", "I know\\u{1b}[2J plates only"]);
    assert_eq!(step, 3);
}

#[test]
fn a_field_that_no_sensor_can_show_is_said_where() {
    for wild in [f64::NAN, f64::NEG_INFINITY, 1e300] {
        let answer = move || {
            let mut values = [0.0; 100];
            values[33] = wild;
            Turn::Say(field(&[1, 100], &values))
        };
        let (step, error) = failure(&failing(5, answer), PATIENCE);
        assert!(matches!(error, PlantError::NotFinite { .. }), "{error}");
        says(&error, &[&wild.to_string(), "x = 0.333"]);
        assert_eq!(step, 5);
    }
}

#[test]
fn nobody_at_the_address_is_said() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = format!("tcp={}", port.unwrap()).parse().unwrap();
    let error = plant::open(&address, PATIENCE, &heat_1d::PROBLEM).unwrap_err();
    says(&error, &["cannot be reached", "does it listen there?"]);
}

#[test]
fn commands_that_fail_are_shown_with_their_last_words() {
    for (command, facts) in [
        ("exit 3", &["stopped", "exit status: 3"][..]),
        (
            "echo early >&2; echo 'ValueError: no such mesh' >&2; exit 1",
            &["exit status: 1", "last words", "    early\n    ValueError"],
        ),
        (
            "no-such-solver-anywhere",
            &["exit status: 127", "not found"],
        ),
        // It says what it hears, which begins like an answer.
        ("cat", &["800 bytes", "after its answer to the hello"]),
        ("echo starting up; cat > /dev/null", &["starting up"]),
        ("yes", &["'y'", "no message"]),
        ("exec 0<&-; sleep 1000", &["closed the line", "hello"]),
        ("tr -d '\\n' < /dev/zero", &["65536 bytes"]),
    ] {
        let error = plant::open(&command.parse().unwrap(), PATIENCE, &heat_1d::PROBLEM);
        says(&error.unwrap_err(), facts);
    }
    // A flood on standard error is no answer.
    let patience = Duration::from_millis(500);
    for command in ["yes >&2", "sleep 1000"] {
        let began = Instant::now();
        let error = plant::open(&command.parse().unwrap(), patience, &heat_1d::PROBLEM);
        let error = error.unwrap_err();
        assert!(matches!(error, PlantError::Stalled { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

/// A plant in a few lines of shell: the field of heat-1d is the forcing, or the start. `$1` says after
/// how many steps which command is run.
const SHELL: &str = r#"
steps=0
while read -r header; do
    case "$header" in
    *'"message":"hello"'*)
        head -c 800 > /dev/null
        echo '{"message":"hello","protocol":1,"name":"shell"}' ;;
    *'"message":"bye"'*)
        exit ;;
    *'"message":"step"'*)
        steps=$((steps + 1))
        test "$steps" = "$1" && eval "$2"
        echo '{"message":"field","shape":[1,100]}'
        head -c 800 ;;
    *)
        echo '{"message":"field","shape":[1,100]}'
        head -c 800 ;;
    esac
done
"#;

/// A folder with that plant.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plant.sh"), SHELL).unwrap();
    folder
}

fn agent_sim(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What a command prints that works.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = agent_sim(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command says that fails.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = agent_sim(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed results");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_on_a_plant_names_it_and_is_replayed_when_allowed() {
    let folder = folder();
    let folder = folder.path();
    let run = ["run", "heat-1d", "--steps", "20", "--plant", "sh plant.sh"];
    let text = printed(folder, &[&run[..], &["--json"]].concat());
    let outcome: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(outcome["plant"], "'sh plant.sh' (shell)");
    assert_eq!(outcome["scenario"]["plant"], "sh plant.sh");
    let out = folder.join("out/run-heat-1d");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("plant &#39;sh plant.sh&#39; (shell)")
            || page.contains("plant 'sh plant.sh' (shell)")
    );
    assert!(printed(folder, &run).contains("plant 'sh plant.sh' (shell)"));

    let scenario = ["run", "--scenario", "out/run-heat-1d/scenario.toml"];
    let replay = ["replay", "out/run-heat-1d"];
    for command in [&scenario[..], &replay] {
        let refused = said(folder, command);
        for fact in ["sh plant.sh", "run as a command", "--run-plant"] {
            assert!(refused.contains(fact), "{refused}");
        }
    }
    let again = printed(folder, &[&replay[..], &["--run-plant"]].concat());
    assert!(again.contains("bit for bit"), "{again}");
    printed(
        folder,
        &[&scenario[..], &["--run-plant", "--alone"]].concat(),
    );
    // Under another plant it is another run.
    let other = ["--plant", "sh plant.sh 7 'head -c 800; exit'"];
    let stopped = said(folder, &[&replay[..], &other].concat());
    assert!(stopped.contains("step 7"), "{stopped}");
}

#[test]
fn a_run_whose_plant_dies_keeps_what_was_recorded() {
    let folder = folder();
    let folder = folder.path();
    let plant = "sh plant.sh 6 'echo out of memory >&2; exit 9'";
    let run = [
        "run", "heat-1d", "--plant", plant, "--out", "out", "--fields", "all.npy",
    ];
    let message = said(folder, &run);
    for fact in [
        "swarm: in step 6, the plant",
        "exit status: 9",
        "    out of memory\n",
        "wrote out/last-finite.npy",
        "wrote out/steps.csv",
        "wrote out/scenario.toml",
        "wrote out/agents.policy",
        "wrote all.npy",
        "wrote all.json",
    ] {
        assert!(message.contains(fact), "{fact}: {message}");
    }
    let log = std::fs::read_to_string(folder.join("out/steps.csv")).unwrap();
    assert_eq!(log.lines().count(), 1 + 6);
    let fields = std::fs::read(folder.join("all.npy")).unwrap();
    assert_eq!(problem::npy::parse(&fields).unwrap().shape, [6, 100]);
    let facts = std::fs::read_to_string(folder.join("all.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["agents"]["forces"].as_array().unwrap().len(), 5);
    assert_eq!(
        (&facts["score"], &facts["plant"]),
        (&json!(null), &json!(format!("'{plant}' (shell)")))
    );
    let page = std::fs::read_to_string(folder.join("out/report.html")).unwrap();
    assert!(
        page.contains("It was cut short. swarm: in step 6, the plant"),
        "{page}"
    );
    assert!(
        page.contains("out of memory") && !page.contains("Scores"),
        "{page}"
    );
    assert_eq!(page.matches("<figure>").count(), 3);
    // A plant that does not even begin leaves nothing.
    let before = listing(folder);
    let message = said(
        folder,
        &["run", "heat-1d", "--plant", "exit 1", "--out", "new"],
    );
    assert!(message.contains("exit status: 1"), "{message}");
    assert_eq!(listing(folder), before);
}

/// Five steps for the swarm, and two of the five of what it is compared with.
#[test]
fn a_yardstick_whose_plant_dies_leaves_the_run_asked_for() {
    let folder = folder();
    let plant = "sh plant.sh 8 'exit 9'";
    let run = [
        "run", "heat-1d", "--steps", "5", "--plant", plant, "--out", "out",
    ];
    let message = said(folder.path(), &run);
    assert!(message.contains("proportional: in step 3"), "{message}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(
        page.contains("It was cut short. proportional: in step 3"),
        "{page}"
    );
    assert!(page.contains("<td>swarm</td>") && !page.contains("<td>proportional</td>"));
    let log = std::fs::read_to_string(folder.path().join("out/steps.csv")).unwrap();
    assert_eq!(log.lines().count(), 1 + 6);
}

/// Of a run that is cut in its first step there is the start to show, on a line and on a plane; of one that does
/// not start there is nothing.
#[test]
fn a_run_that_is_cut_at_once_is_shown_too() {
    for (problem, answers) in [
        (&heat_1d::PROBLEM, 1),
        (&heat_2d::PROBLEM, 1),
        (&heat_1d::PROBLEM, 0),
    ] {
        let folder = folder();
        let shape = [&[problem.fields()], problem.grid.shape()].concat();
        let mut asked = 0;
        let address = peer(move |header, _| {
            if header["message"] == "hello" {
                return Turn::Say(hello());
            }
            asked += 1;
            match asked > answers {
                true => Turn::Leave(Vec::new()),
                false => Turn::Say(field(&shape, &vec![0.0; shape.iter().product()])),
            }
        });
        let plant = address.to_string();
        let run = [
            "run",
            problem.name,
            "--plant",
            &plant,
            "--out",
            "out",
            "--gif",
        ];
        let message = said(folder.path(), &run);
        assert!(message.contains("closed the line"), "{message}");
        let page = folder.path().join("out/report.html").exists();
        assert_eq!(page, answers > 0, "{message}");
    }
}

#[test]
fn an_evaluation_shows_the_built_in_field_beside_and_keeps_its_rows() {
    let folder = folder();
    let folder = folder.path();
    let eval = [
        "eval",
        "heat-1d",
        "--episodes",
        "3",
        "--steps",
        "5",
        "--rows",
        "rows.csv",
    ];
    let text = printed(folder, &[&eval[..], &["--plant", "sh plant.sh"]].concat());
    assert!(text.contains("policy, built-in field"), "{text}");
    let rows = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(rows("rows.csv").matches("'sh plant.sh' (shell)").count(), 9);
    assert_eq!(rows("rows.csv").lines().count(), 1 + 12);
    let dies = ["--plant", "sh plant.sh 14 'exit 2'"];
    let message = said(folder, &[&eval[..], &dies].concat());
    for fact in ["episode 2: in step 4", "exit status: 2", "wrote rows.csv"] {
        assert!(message.contains(fact), "{message}");
    }
    assert_eq!(rows("rows.csv").lines().count(), 1 + 2);
    let sweep = [
        "sweep",
        "heat-1d",
        "--agents",
        "8",
        "--episodes",
        "3",
        "--steps",
        "5",
    ];
    let message = said(folder, &[&sweep[..], &dies].concat());
    assert!(message.contains("goes on there"), "{message}");
    printed(
        folder,
        &[&sweep[..], &["--plant", "sh plant.sh", "--out", "other"]].concat(),
    );
}

/// An episode has 300 steps: with the 301st begins the second way of sensing of the first gain.
#[test]
fn gains_are_tuned_on_a_plant_and_shown_as_far_as_it_goes() {
    let folder = folder();
    let tune = ["tune", "heat-1d", "--episodes", "1"];
    let plant = "sh plant.sh 301 'exit 4'";
    let message = said(folder.path(), &[&tune[..], &["--plant", plant]].concat());
    for fact in [
        "episode 0: in step 1,",
        "exit status: 4",
        "plant 'sh plant.sh 301",
        "with gain 0.1 and Point sensing",
    ] {
        assert!(message.contains(fact), "{fact}: {message}");
    }
    let senseless = ["--plant", "true", "--plant-patience", "0"];
    let message = said(folder.path(), &[&tune[..], &senseless].concat());
    assert!(message.contains("no time to wait"), "{message}");
}

#[test]
fn senseless_plants_are_refused() {
    let folder = folder();
    for (more, fact) in [
        (&["--plant", "tcp=nowhere"][..], "tcp=host:port"),
        (&["--plant", ""], "is no plant"),
        (&["--plant", "x", "--plant-patience", "0"], "0.001 to 3600"),
        (
            &["--plant", "x", "--plant-patience", "NaN"],
            "0.001 to 3600",
        ),
    ] {
        let message = said(folder.path(), &[&["run", "heat-1d"][..], more].concat());
        assert!(message.contains(fact), "{message}");
    }
}

/// Whether a process runs; one that has ended may still be in the table.
fn is_alive(process: &str) -> bool {
    let ps = Command::new("ps")
        .args(["-o", "stat=", "-p", process])
        .output();
    let state = String::from_utf8(ps.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.starts_with('Z')
}

/// Waits for a file with a line in it.
fn line_of(path: &Path) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        match text.strip_suffix('\n') {
            Some(line) => return line.to_owned(),
            None => assert!(
                Instant::now() < deadline,
                "{} does not come",
                path.display()
            ),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ends(process: &str) {
    let deadline = Instant::now() + PATIENCE;
    while is_alive(process) {
        assert!(Instant::now() < deadline, "{process} goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a plant starts goes with it, whether the run ends by itself or is killed.
#[test]
fn a_plant_ends_with_the_run() {
    let folder = folder();
    let folder = folder.path();
    let plant = "sleep 1000 & echo $! > helper; sh plant.sh";
    let run = [
        "run", "heat-1d", "--steps", "3", "--alone", "--plant", plant,
    ];
    printed(folder, &run);
    ends(&line_of(&folder.join("helper")));

    let plant = "sleep 1000 & echo $! > helper2; sleep 1000";
    let mut program = Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(["run", "heat-1d", "--plant", plant])
        .current_dir(folder)
        .spawn()
        .unwrap();
    let helper = line_of(&folder.join("helper2"));
    assert!(is_alive(&helper));
    program.kill().unwrap();
    program.wait().unwrap();
    ends(&helper);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever comes, there is an end and a sentence.
    #[test]
    fn any_bytes_end_in_an_error(
        begun in 0usize..4,
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        cut in 0usize..900,
        flip in (0usize..900, any::<u8>()),
        kind in 0..3,
    ) {
        let mut answer = field(&[1, 100], &[0.25; 100]);
        let said = match kind {
            0 => bytes,
            1 => answer[..cut.min(answer.len() - 1)].to_vec(),
            _ => {
                let at = flip.0.min(answer.len() - 1);
                answer[at] ^= flip.1;
                [answer, bytes].concat()
            }
        };
        let address = failing(begun, move || Turn::Leave(said.clone()));
        prop_assert!(run_on(&address, PATIENCE).is_err());
    }
}
