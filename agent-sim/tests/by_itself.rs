//! A node that senses and acts by itself, on an emulated board with eight thermometers: nobody shows it
//! anything.
//!
//! `cargo xtask test` builds the image and says where it is.

use agent_core::{
    agent::{AgentState, Mode},
    message::{Observation, Patch, Span},
};
use agent_sim::{scenario::Scenario, standing::stands};
use artifacts::policy_file::PolicyFile;
use node_link::{
    BoardOptions, EmulatedBoard, NodeConduct, Offer, PlaceOffer, Session, emulated::CHANNELS,
};
use place::{
    Place, Sight,
    conduct::{Alone, Timing},
    neighbours::grid::Grid,
    record::{Calibration, RECORD, SENSORS, Sensor, Target, Tolerance},
};
use problem::{Problems, published};
use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use trust::{Manifest, manifest::MANIFEST};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(40);

/// What the thermometers measure, in sixteenths of a degree: what they read is that and nothing else.
const SIXTEENTHS: [i32; 8] = [320, 325, 331, 340, 344, 343, 336, 322];

/// Which cells of the policy's twenty they are in; the node is in the eleventh.
const CELLS: [u16; 8] = [1, 4, 6, 9, 11, 14, 16, 18];

/// The field of a degree: 20 degrees are its zero, 10 more are 1.
const GAIN: f32 = 0.1;
const OFFSET: f32 = -2.0;

/// The image, or none where it is not named.
fn image() -> Option<OsString> {
    image_named("FIRMWARE_ELF_STANDALONE")
}

fn image_named(variable: &str) -> Option<OsString> {
    let image = env::var_os(variable);
    if image.is_none() {
        if env::var("CI").is_ok_and(|is| is == "true") {
            panic!("{variable} is not set: run the tests with `cargo xtask test`");
        }
        // Not with eprintln!, which the test runner hides when the test passes.
        let message = format!("SKIPPED: {variable} is not set; `cargo xtask test` sets it\n");
        let _ = io::stderr().write_all(message.as_bytes());
    }
    image
}

fn place() -> Place {
    let sensor = |k: u8| Sensor {
        channel: CHANNELS[usize::from(k)],
        cell: CELLS[usize::from(k)],
        calibration: Some(Calibration {
            gain: GAIN,
            offset: OFFSET,
        }),
    };
    Place {
        node: 12,
        position: [0.3, 0.0],
        second: 1.0,
        sensors: (0..8).map(sensor).collect(),
        target: Target::Constant(0.5),
        force: Some(10.0),
        tolerance: Tolerance {
            missing: 1,
            missing_us: 100_000_000,
            least: -1.0,
            most: 1.0,
            change: 1e6,
            frozen_us: None,
        },
        neighbours: None,
    }
}

fn offer(place: &[u8]) -> PlaceOffer {
    let manifest = Manifest::unsigned(place, "heat-1d");
    PlaceOffer {
        place: place.to_vec(),
        manifest: manifest.encode(&mut [0; MANIFEST]).unwrap().to_vec(),
        signature: Vec::new(),
    }
}

fn alone(conduct: NodeConduct) -> Alone {
    match conduct {
        NodeConduct::Alone(alone) => alone,
        other => panic!("{other:?}"),
    }
}

/// Asks until the node says so.
fn wait_for(node: &mut Session, what: &str, is_so: impl Fn(&Alone) -> bool) -> Alone {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = alone(node.conduct(PATIENCE).unwrap());
        if is_so(&said) {
            return said;
        }
        assert!(Instant::now() < deadline, "never {what}: {said:?}");
    }
}

fn measures(board: &mut EmulatedBoard, sixteenths: &[i32]) {
    let milli: Vec<i32> = sixteenths.iter().map(|n| n * 125 / 2).collect();
    board.set_temperatures(&milli).unwrap();
}

#[test]
fn a_board_with_thermometers_acts_by_itself_as_an_agent_does_that_is_shown_what_they_read() {
    let Some(image) = image() else { return };
    act_by_itself(image);
}

/// The small boards' images are compiled otherwise than all that other tests run.
#[test]
fn the_smallest_image_does_the_same() {
    let Some(image) = image_named("FIRMWARE_ELF_SMALLEST") else {
        return;
    };
    act_by_itself(image);
}

fn act_by_itself(image: OsString) {
    let options = BoardOptions {
        thermometers: 8,
        ..BoardOptions::new(image)
    };
    let (mut board, mut node) = EmulatedBoard::start(&options).expect("the board boots");
    let problem = published::by_name("heat-1d").unwrap();
    let file = PolicyFile::shipped(problem).unwrap();
    let policy = file.policy(problem).unwrap();
    node.upload(&Offer::unsigned(file.bytes()), &mut |_| ())
        .unwrap();
    measures(&mut board, &SIXTEENTHS);
    let mut room = [0; RECORD];
    let bytes = place().encode(&mut room).unwrap().to_vec();
    node.configure(&offer(&bytes), PATIENCE).unwrap();

    // Its force after so many steps, bit for bit.
    let said = wait_for(&mut node, "20 steps", |alone| alone.timing.steps >= 20);
    assert_eq!((said.node, said.mode, said.blind), (12, Mode::Active, 0));
    let mut host = AgentState::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let (mut field, mut target) = ([0.0; 22], [0.0; 22]);
    let mut readings = [None; SENSORS];
    for (reading, n) in readings.iter_mut().zip(SIXTEENTHS) {
        *reading = Some(n as f32 / 16.0);
    }
    let seen = Sight::new().look(&place(), 0, &readings, &mut field);
    let grid = Grid::of(&policy.header().sensing);
    place().aim(0).fill(grid, &mut target);
    let inside = Span { first: 2, last: 19 };
    assert_eq!(seen, Some(inside));
    let mut force = 0.0;
    for step in 0..said.timing.steps {
        let observation = Observation {
            now_us: u64::from(step + 1) * 1_000,
            position: [0.3, 0.0],
            patch: Patch::line(&field, &target, inside),
        };
        let action = host.step(&policy, &mut workspace, &observation);
        force = action.force.clamp(-10.0, 10.0);
    }
    assert_eq!(
        said.force.to_bits(),
        force.to_bits(),
        "{} {force}",
        said.force
    );
    assert!(force != 0.0);
    assert!(board.actuator().unwrap().count >= said.timing.steps);

    // One that measures what the field cannot be is made up for, two are too many, and they come back.
    let mut ill = SIXTEENTHS;
    ill[3] = 16 * 90;
    measures(&mut board, &ill);
    wait_for(&mut node, "blind in a cell", |alone| {
        alone.blind == 0b1000 && alone.mode == Mode::Active
    });
    ill[4] = 16 * 90;
    measures(&mut board, &ill);
    let safe = wait_for(&mut node, "safe", |alone| alone.mode == Mode::FailedSafe);
    assert_eq!((safe.blind, safe.force), (0b1_1000, 0.0));
    let set = board.actuator().unwrap();
    assert_eq!((set.force, set.mode), (0.0, Mode::FailedSafe));
    measures(&mut board, &SIXTEENTHS);
    wait_for(&mut node, "back", |alone| {
        alone.mode == Mode::Active && alone.blind == 0
    });

    // Somebody holds the bus of all thermometers low: the driver cannot free it, and the node waits for it.
    let boots = node.hello(PATIENCE).unwrap().boots;
    board.hold_bus(true).unwrap();
    let safe = wait_for(&mut node, "safe", |alone| alone.mode == Mode::FailedSafe);
    assert_eq!((safe.blind, safe.force), (0b1111_1111, 0.0));
    assert_eq!(board.actuator().unwrap().force, 0.0);
    let on = wait_for(&mut node, "on time", |alone| {
        alone.timing.steps >= safe.timing.steps + 500
    });
    assert_eq!(on.mode, Mode::FailedSafe);
    board.hold_bus(false).unwrap();
    wait_for(&mut node, "back", |alone| {
        alone.mode == Mode::Active && alone.blind == 0
    });
    assert_eq!(node.hello(PATIENCE).unwrap().boots, boots);

    // Its power goes: it stands by itself again, with nobody's help.
    board.kill();
    board.restart().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = node.reopen().and_then(|()| node.hello(PATIENCE)) {
        assert!(Instant::now() < deadline, "{error}");
    }
    let before = board.actuator().unwrap().count;
    measures(&mut board, &SIXTEENTHS);
    wait_for(&mut node, "active again", |alone| {
        alone.mode == Mode::Active
    });
    assert!(board.actuator().unwrap().count > before);
    // What a place needs of the stack, it has, and a step of the largest policy besides.
    let counters = node.status(PATIENCE).unwrap().counters;
    assert!(counters.stack_used < 15_400, "{counters:?}");
    // And is fed again when it is told to be.
    let fed = node.configure(&offer(&[]), PATIENCE).unwrap();
    assert_eq!(fed, NodeConduct::Fed);
}

/// The commands of docs/deploy.md, on a board that keeps its flash from one to the next.
#[test]
fn a_person_configures_a_node_and_asks_how_it_gets_on() {
    let Some(image) = image() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heat-1d.policy");
    let problem = published::by_name("heat-1d").unwrap();
    std::fs::write(&file, problem.policy.unwrap()).unwrap();
    let sensors: String = (0..8)
        .map(|k| {
            format!(
                "[[sensors]]\nchannel = {}\ncell = {}\ngain = 0.1\noffset = 0.0\n",
                CHANNELS[k], CELLS[k]
            )
        })
        .collect();
    let tolerance = "[tolerance]\nleast = -1.0\nmost = 1.0\nchange = 1e6\n";
    let place = |position: &str| {
        let head =
            format!("problem = \"heat-1d\"\nnode = 3\nposition = {position}\ntarget = 0.5\n");
        let path = folder.path().join("node.toml");
        std::fs::write(&path, head + &sensors + tolerance).unwrap();
        path
    };
    let run = |arguments: &[&std::ffi::OsStr]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_agent-sim"));
        program
            .args(arguments)
            .args(["--link", "qemu=1", "--image"]);
        let said = program
            .arg(&image)
            .arg("--flash-dir")
            .arg(folder.path())
            .output()
            .unwrap();
        let text = [said.stdout, said.stderr].concat();
        (said.status.success(), String::from_utf8(text).unwrap())
    };
    let (flashed, said) = run(&["flash".as_ref(), file.as_os_str()]);
    assert!(flashed, "{said}");
    let outside = place("1.5");
    let (taken, said) = run(&["configure".as_ref(), outside.as_os_str()]);
    assert!(
        !taken && said.contains("outside the policy's domain"),
        "{said}"
    );
    let inside = place("0.25");
    let (taken, said) = run(&["configure".as_ref(), inside.as_os_str()]);
    assert!(taken && said.contains("node 3 at 0.25"), "{said}");
    let (_, said) = run(&["nodes".as_ref()]);
    assert!(said.contains("node 3 at 0.25"), "{said}");
    assert!(said.contains("target 0.5,"), "{said}");
    // Its power goes with each command, and the target with that.
    let (taken, said) = run(&["target".as_ref(), "-0.7".as_ref()]);
    assert!(
        taken && said.contains("target -0.7 set over the link"),
        "{said}"
    );
    let (taken, said) = run(&["target".as_ref(), "--as-placed".as_ref()]);
    assert!(taken && said.contains("target 0.5,"), "{said}");
    let (taken, said) = run(&["target".as_ref(), "1.1".as_ref()]);
    assert!(
        !taken && said.contains("outside what the field can be"),
        "{said}"
    );
    let (fed, said) = run(&["configure".as_ref(), "--fed".as_ref()]);
    assert!(fed && said.contains("fed by its host"), "{said}");
}

/// A run of nodes of which nobody shows any anything: as many steps as a test has time for.
fn run_by_itself(problem: &str, steps: &str, others: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_agent-sim"));
    let said = program
        .args(["run", problem, "--standalone", "--steps", steps])
        .args(["--seed", "3", "--json", "--alone"])
        .args(others)
        .arg("--out")
        .arg(folder.path().join("out"))
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    serde_json::from_slice(&said.stdout).unwrap()
}

fn final_error(outcome: &serde_json::Value) -> f64 {
    outcome["scores"][0]["final_error"].as_f64().unwrap()
}

#[test]
fn boards_with_no_host_in_their_loop_control_the_field_as_agents_do_that_sense_as_they_do() {
    let Some(image) = image() else { return };
    let image = image.to_str().unwrap();
    // Eight nodes, four of them boards, slower than boards need on a quiet machine.
    let run_by_itself = |others: &[&str]| run_by_itself("heat-1d", "80", others);
    let wired = [
        "--plant-io",
        "qemu=4",
        "--realtime",
        "0.008",
        "--image",
        image,
    ];
    let in_process = final_error(&run_by_itself(&[]));
    let on_boards = run_by_itself(&wired);
    assert!(
        final_error(&on_boards) <= 1.5 * in_process,
        "{} {in_process}",
        final_error(&on_boards)
    );
    let nodes = on_boards["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 4);
    assert!(
        nodes.iter().all(|node| node["at the end"] == "active"),
        "{nodes:?}"
    );

    // One loses its power half way, and the others go on.
    let killed = run_by_itself(&[&wired[..], &["--fault", "kill,count=1,at=0.5"]].concat());
    let nodes = killed["nodes"].as_array().unwrap();
    let silent = nodes.iter().filter(|node| node["at the end"] == "silent");
    assert_eq!(silent.count(), 1, "{nodes:?}");
    assert!(final_error(&killed) > in_process);
}

/// The bus of two of eight nodes is held low for half of the run: both fail safe and come back, on boards as in this
/// process, while the others see to the rod.
#[test]
fn who_cannot_read_its_thermometers_goes_on_when_the_bus_is_free() {
    let Some(image) = image() else { return };
    let image = image.to_str().unwrap();
    let rod = examples().join("rod.toml");
    let run = |others: &[&str]| run_by_itself(rod.to_str().unwrap(), "100", others);
    let stuck = ["--fault", "bus-stuck,ids=0+6,at=0.2,until=0.7"];
    let wired = [
        "--plant-io",
        "qemu=2",
        "--realtime",
        "0.02",
        "--image",
        image,
    ];
    let mean = |outcome: &serde_json::Value| outcome["scores"][0]["time_mean_error"].as_f64();
    let (healthy, held, on_boards) = (run(&[]), run(&stuck), run(&[&wired[..], &stuck].concat()));
    println!(
        "mean error {:?}, with two buses held low {:?}, on boards {:?}",
        mean(&healthy),
        mean(&held),
        mean(&on_boards)
    );
    assert!(mean(&held) > mean(&healthy));
    let (held, on_boards_held) = (final_error(&held), final_error(&on_boards));
    assert!(on_boards_held <= 1.5 * held, "{on_boards_held} {held}");
    let (nodes, places) = (&on_boards["nodes"], &on_boards["places"]);
    for node in 0..2 {
        assert_eq!(nodes[node]["at the end"], "active");
        assert_eq!(nodes[node]["starts"], "1");
        assert_eq!(places[node]["missing"] == "0", node == 1, "{places}");
    }
}

/// Crystals, or what some chips have instead, are off by up to a hundredth, each by its own share.
#[test]
fn nodes_whose_clocks_are_off_by_a_hundredth_control_as_others_do() {
    let off = ["--fault", "clock,rate=0.01"];
    let rod = examples().join("rod.toml");
    let rod = |others: &[&str]| run_by_itself(rod.to_str().unwrap(), "100", others);
    let plate = examples().join("plate.toml");
    // Long enough for clocks to go apart by more than a neighbour's word is good for: four steps.
    let plate = |others: &[&str]| run_by_itself(plate.to_str().unwrap(), "400", others);
    for run in [&rod as &dyn Fn(&[&str]) -> _, &plate] {
        let (exact, off) = (final_error(&run(&[])), final_error(&run(&off)));
        println!("in this process: final error {exact:e}, with clocks that are off {off:e}");
        assert!(off <= 1.5 * exact, "{off} {exact}");
    }
    let Some(image) = image() else { return };
    let image = image.to_str().unwrap();
    let wired = [
        "--plant-io",
        "qemu=4",
        "--realtime",
        "0.016",
        "--image",
        image,
    ];
    let (exact, off) = (rod(&wired), rod(&[&wired[..], &off].concat()));
    let (exact, off) = (final_error(&exact), final_error(&off));
    println!("on boards: final error {exact:e}, with clocks that are off {off:e}");
    assert!(off <= 1.5 * exact, "{off} {exact}");
}

/// How fast a board's clock goes, in a second of this machine's.
#[test]
fn a_board_whose_clock_gains_does_everything_sooner() {
    let Some(image) = image() else { return };
    let (board, mut node) = EmulatedBoard::start(&BoardOptions {
        thermometers: 8,
        ..BoardOptions::new(image)
    })
    .expect("the board boots");
    let file = PolicyFile::shipped(published::by_name("heat-1d").unwrap()).unwrap();
    node.upload(&Offer::unsigned(file.bytes()), &mut |_| ())
        .unwrap();
    // A period of 20 ms, which the board keeps on a busy machine too.
    let slow = Place {
        second: 20.0,
        ..place()
    };
    let bytes = slow.encode(&mut [0; RECORD]).unwrap().to_vec();
    node.configure(&offer(&bytes), PATIENCE).unwrap();
    let mut steps_in = |gain: i32| {
        board.set_gain(gain).unwrap();
        let mut due = || {
            let Timing {
                steps, overruns, ..
            } = alone(node.conduct(PATIENCE).unwrap()).timing;
            (Instant::now(), f64::from(steps + overruns))
        };
        // From one step to another.
        let mut edge = || {
            let (_, before) = due();
            loop {
                let (when, now) = due();
                if now > before {
                    return (when, now);
                }
            }
        };
        let (from, first) = edge();
        std::thread::sleep(Duration::from_secs(2));
        let (until, last) = edge();
        (last - first) * 0.02 / (until - from).as_secs_f64()
    };
    let rates = [0, 300_000, -300_000, 0].map(&mut steps_in);
    println!("periods that pass in one: {rates:?}");
    for (rate, expected) in rates.into_iter().zip([1.0, 1.3, 0.7, 1.0]) {
        assert!((rate - expected).abs() < 0.03, "{rates:?}");
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/standalone")
}

/// Those around them, whatever their numbers; and nobody beyond the rim.
#[test]
fn agents_of_a_plane_hear_those_in_their_windows() {
    let plate = examples().join("plate.toml");
    let text = format!(
        "problem = {:?}\nstandalone = true",
        plate.display().to_string()
    );
    let scenario = Scenario::from_toml(&text).unwrap();
    let team = scenario.team(&Problems::published()).unwrap();
    let policy = team.parsed_policy().unwrap();
    let episode = scenario.episode(&team).unwrap();
    let stands = stands(&team.problem, &policy, &team.places(), &episode, 1.0).unwrap();
    let cells = stands
        .iter()
        .map(|stand| stand.place.neighbours.unwrap().cells);
    for (agent, cells) in cells.enumerate() {
        let (row, column) = (agent / 4, agent % 4);
        let expected: u64 = (0..9)
            .filter(|cell| {
                let (down, right) = (row + cell / 3, column + cell % 3);
                *cell != 4 && (1..=4).contains(&down) && (1..=4).contains(&right)
            })
            .map(|cell| 1 << cell)
            .sum();
        assert_eq!(cells, expected, "agent {agent}");
    }
}

/// Heaters as far apart as no cells of their windows are, and more agents than boards.
#[test]
fn agents_that_would_hear_nobody_are_refused() {
    let plate = std::fs::read_to_string(examples().join("plate.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plate.toml");
    std::fs::write(&file, plate.replace("[4, 4]", "[2, 2]")).unwrap();
    let policy = examples().join("plate.policy");
    let refused = |file: &Path, more: &str| {
        let text = format!("problem = {file:?}\npolicy = {policy:?}\nstandalone = true\n{more}");
        let scenario = Scenario::from_toml(&text).unwrap();
        let team = scenario.team(&Problems::published());
        team.err().unwrap().to_string()
    };
    let deaf = refused(&file, "");
    assert!(deaf.contains("nobody is mounted in a cell"), "{deaf}");
    let mixed = refused(&examples().join("plate.toml"), "plant_io = [\"qemu=4\"]");
    assert!(mixed.contains("--plant-io qemu=16, or none"), "{mixed}");
}

/// Four of the heaters of `examples/standalone/plate.toml`, in the middle: each has one thermometer, and what the
/// other three say on the line that they share.
#[test]
fn boards_in_a_plane_hear_each_other_and_again_after_one_has_babbled() {
    let Some(image) = image() else { return };
    let image = image.to_str().unwrap();
    let plate = std::fs::read_to_string(examples().join("plate.toml")).unwrap();
    let lattice = "{ lattice = [4, 4], low = [0.125, 0.125], high = [0.875, 0.875] }";
    assert!(plate.contains(lattice));
    let middle = "{ lattice = [2, 2], low = [0.375, 0.375], high = [0.625, 0.625] }";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plate.toml");
    std::fs::write(&file, plate.replace(lattice, middle)).unwrap();
    let (file, policy) = (file.to_str().unwrap(), examples().join("plate.policy"));
    let run = |others: &[&str]| {
        let policy = ["--policy", policy.to_str().unwrap()];
        run_by_itself(file, "40", &[&policy[..], others].concat())
    };
    let wired = [
        "--plant-io",
        "qemu=4",
        "--realtime",
        "0.004",
        "--image",
        image,
    ];
    let in_process = final_error(&run(&[]));
    // Whoever of the agents comes first.
    assert_eq!(in_process.to_bits(), final_error(&run(&[])).to_bits());
    let column = |outcome: &serde_json::Value, name: &str| -> Vec<f64> {
        let places = outcome["places"].as_array().unwrap();
        let cells = places.iter().map(|place| place[name].as_str().unwrap());
        cells.map(|cell| cell.parse().unwrap()).collect()
    };
    let on_boards = run(&wired);
    let error = final_error(&on_boards);
    assert!(error <= 1.5 * in_process, "{error} {in_process}");
    assert_eq!(column(&on_boards, "neighbours silent"), [0.0; 4]);
    assert!(
        column(&on_boards, "heard")
            .iter()
            .all(|heard| *heard > 60.0)
    );
    assert_eq!(column(&on_boards, "heard in vain"), [0.0; 4]);

    // Their clocks go apart by up to 2 %: whom they hear they still do.
    let off = run(&[&wired[..], &["--fault", "clock,rate=0.01"]].concat());
    println!(
        "final error {error:e}, with clocks that are off {:e}",
        final_error(&off)
    );
    assert!(final_error(&off) <= 1.5 * in_process);
    assert_eq!(column(&off, "neighbours silent"), [0.0; 4]);
    assert_eq!(column(&off, "heard in vain"), [0.0; 4]);

    // One babbles for half of the run: what the others say comes through again when it has ended.
    let babble = "flood,ids=1,until=0.5";
    let babbled = run(&[&wired[..], &["--fault", babble]].concat());
    assert_eq!(column(&babbled, "neighbours silent"), [0.0; 4]);
    let noise = column(&babbled, "heard in vain");
    assert!(noise.iter().any(|heard| *heard > 0.0));
}
