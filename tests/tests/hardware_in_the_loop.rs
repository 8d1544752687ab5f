//! The real image on many emulated boards, in one closed loop with the host's field.
//!
//! `cargo xtask test` builds the images and says where they are.

use agent_core::policy::Encoding;
use agent_sim::controller::ControllerKind;
use agent_sim::fault::Fault;
use agent_sim::live::play::{Show, play};
use agent_sim::live::{Command, Hub, Order};
use agent_sim::recording::Recording;
use agent_sim::rig::{Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use agent_sim::scenario::{Scenario, Team};
use artifacts::policy_file::PolicyFile;
use node_link::Offer;
use problem::Problems;
use serde_json::{Value, json};
use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::sync::mpsc;

/// On a busy machine a board that works well can be slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folder of the images, or none on a machine without.
fn images() -> Option<PathBuf> {
    let image = env::var_os("FIRMWARE_ELF").map(PathBuf::from);
    let folder = image.and_then(|image| Some(image.parent()?.to_owned()));
    if folder.is_none() {
        // Not with eprintln!, which the test runner hides when the test passes.
        let message = b"SKIPPED: FIRMWARE_ELF is not set; `cargo xtask test` sets it\n";
        let _ = io::stderr().write_all(message);
    }
    folder
}

fn scenario(links: &[&str], faults: &[&str]) -> Scenario {
    let boards = links.iter().map(|link| link.parse().unwrap());
    let faults = faults.iter().map(|fault| fault.parse().unwrap());
    Scenario {
        problem: "heat-1d".to_owned(),
        set: "fresh".to_owned(),
        links: boards.collect::<Vec<Boards>>(),
        faults: faults.collect::<Vec<Fault>>(),
        ..Scenario::default()
    }
}

/// A policy as boards are given it that take any.
fn payload(file: &PolicyFile) -> Result<Payload, artifacts::policy_file::PolicyFileError> {
    Ok(Payload::new(Offer::unsigned(file.bytes()), &file.parse()?))
}

/// Another policy for the same problem: the shipped one with smaller numbers.
fn other_policy(folder: &Path) -> (PolicyFile, String) {
    let shipped = PolicyFile::shipped(&problem::published::heat_1d::PROBLEM).unwrap();
    let other = shipped.recoded(Encoding::Int8).unwrap();
    let path = folder.join("other.policy");
    std::fs::write(&path, other.bytes()).unwrap();
    (other, path.display().to_string())
}

/// Starts the boards of a team.
fn rig(team: &Team, images: PathBuf, patience: Duration) -> Rig {
    let policy = team.parsed_policy().unwrap();
    let setup = Setup {
        images: Images::in_folder(images),
        flash: None,
        rooms: Rooms::default(),
        link_key: None,
        payload: Some(Payload::new(
            Offer::unsigned(team.policy.as_ref().unwrap().bytes()),
            &policy,
        )),
        pace: Pace::lock_step(PATIENCE),
        bus: None,
        log: false,
        seed: team.seed,
    };
    let (rig, absent) = Rig::start(&team.links, &setup, &|| ());
    assert_eq!(absent, []);
    for (name, file) in &team.brought {
        rig.shelve(name, payload(file).unwrap());
    }
    rig.with_patience(patience)
        .with_faults(&team.faults, team.steps, team.seed)
}

fn record(scenario: &Scenario, team: &Team, rig: Option<&Rig>) -> Recording {
    let episode = scenario.episode(team).unwrap();
    let policy = team.parsed_policy();
    Recording::make(&team.experiment(policy.as_ref()), rig, &episode, || ()).unwrap()
}

/// What happened to a board, a line each.
fn events(rig: &Rig, node: usize) -> String {
    let node = rig.node(node);
    let told = node
        .diary
        .events
        .iter()
        .map(|e| format!("{}: {}\n", e.step, e.what));
    told.collect()
}

#[test]
fn eight_boards_do_what_eight_agents_of_this_process_do_bit_for_bit() {
    let Some(images) = images() else { return };
    // Cores of both families.
    let scenario = scenario(&["qemu=6", "qemu=2:virt-rv32"], &[]);
    let team = scenario.team(&problem::Problems::published()).unwrap();
    assert_eq!((team.agents, team.steps), (8, 300));
    let rig = rig(&team, images, PATIENCE);
    let on_boards = record(&scenario, &team, Some(&rig));
    let inside = record(&scenario, &team, None);
    // Errors, efforts, and a fingerprint of every bit of field, places and deeds, step by step.
    assert_eq!(on_boards.log, inside.log);
    for node in 0..8 {
        assert_eq!(
            rig.node(node).diary.answered(),
            300,
            "{}",
            events(&rig, node)
        );
    }
}

#[test]
fn every_core_does_the_same() {
    let Some(images) = images() else { return };
    let links = ["qemu=1", "qemu=1:mps2-an500", "qemu=1:mps2-an505"];
    let scenario = Scenario {
        steps: Some(60),
        ..scenario(&links, &[])
    };
    let team = scenario.team(&problem::Problems::published()).unwrap();
    let rig = rig(&team, images, PATIENCE);
    let mixed = record(&scenario, &team, Some(&rig));
    assert_eq!(mixed.log, record(&scenario, &team, None).log);
    for (node, status) in rig.statuses().into_iter().enumerate() {
        let status = status.expect("it answers");
        assert_eq!(status.counters.steps, 60, "{}", status.board);
        let board = ["mps2-an386", "mps2-an500", "mps2-an505"][node];
        assert_eq!(status.board, board);
    }
}

#[test]
fn a_swarm_goes_on_when_boards_are_killed_hung_and_restarted() {
    let Some(images) = images() else { return };
    let faults = [
        "kill,count=2,at=0.5",
        "hang,count=1,at=0.5",
        "restart,count=1,at=0.5,until=0.6",
    ];
    let scenario = scenario(&["qemu=8"], &faults);
    let team = scenario.team(&problem::Problems::published()).unwrap();
    // Short enough that the one that hangs does not keep the others for long.
    let rig = rig(&team, images, Duration::from_secs(5));
    let broken = record(&scenario, &team, Some(&rig));
    // Three of eight are gone from half way on. Measured in what the field feels, not against the
    // swarm's own error: tuned feedback, which knows the count and loses nobody.
    let feedback = Team {
        kind: ControllerKind::PROPORTIONAL,
        faults: Vec::new(),
        ..team.clone()
    };
    let feedback = record(&scenario, &feedback, None);
    let (error, bound) = (broken.score.final_error, feedback.score.final_error);
    assert!(
        error <= bound,
        "{error} with faults, {bound} by feedback without"
    );
    let told: Vec<String> = (0..8).map(|node| events(&rig, node)).collect();
    let hit = |fault: &str| {
        (0..8)
            .filter(|&node| told[node].contains(fault))
            .collect::<Vec<_>>()
    };
    let (killed, hung, restarted) = (
        hit("fault: kill"),
        hit("fault: hang"),
        hit("fault: restart"),
    );
    assert_eq!(
        (killed.len(), hung.len(), restarted.len()),
        (2, 1, 1),
        "{told:#?}"
    );
    for (node, told) in told.iter().enumerate() {
        let diary = rig.node(node).diary.clone();
        let last = diary.states.last().unwrap().name();
        let answered = diary.answered();
        if killed.contains(&node) || hung.contains(&node) {
            assert_eq!((last, answered), ("silent", 150), "{told}");
            assert!(told.contains("150: silent: "), "{told}");
        } else if restarted.contains(&node) {
            assert_eq!((last, answered), ("active", 270), "{told}");
            assert!(
                told.contains("180: answers again; start 1, cause: power came on"),
                "{told}"
            );
        } else {
            assert_eq!((last, answered, told.as_str()), ("active", 300, ""));
        }
    }
}

#[test]
fn boards_come_back_from_cut_cables_noise_brownouts_and_long_sleep() {
    let Some(images) = images() else { return };
    let faults = [
        "cut,ids=0,at=0.2,until=0.4",
        "flood,ids=1,at=0.2,until=0.9",
        "brownout,ids=2,at=0.5",
        // One step, which lasts as long as the rig waits: however slow the others' steps are here,
        // it ends before the watchdog's time is up twice. Then the board resets without a word, and
        // for all that it knows somebody pressed its button.
        "hang,ids=3,at=0.2,until=0.22",
    ];
    let scenario = Scenario {
        steps: Some(50),
        ..scenario(&["qemu=4"], &faults)
    };
    let team = scenario.team(&problem::Problems::published()).unwrap();
    // Longer than the node's watchdog, 8 s, bears, and shorter than twice that.
    let rig = rig(&team, images, Duration::from_secs(10));
    record(&scenario, &team, Some(&rig));
    let told: Vec<String> = (0..4).map(|node| events(&rig, node)).collect();
    for (node, status) in rig.statuses().into_iter().enumerate() {
        let status = status.unwrap_or_else(|| panic!("{node} is silent: {told:#?}"));
        let last = rig.node(node).diary.states.last().unwrap().name();
        assert_eq!(last, "active", "{}", told[node]);
        // Nobody needed the policy anew: it is in the first slot, and in no other.
        assert_eq!(status.active, Some(0), "{}", told[node]);
        assert_eq!(status.slots[1].policy, None, "{}", told[node]);
        assert_eq!(
            (status.history.panics, status.history.faults),
            (0, 0),
            "{}",
            told[node]
        );
        match node {
            // Half a frame, and the first one after it, which brings the line in step.
            0 => assert!((1..=2).contains(&status.counters.rejected), "{status:?}"),
            // 35 floods of 4096 random bytes, a 256th of which are zeros: some frames each.
            1 => assert!(status.counters.rejected > 35, "{status:?}"),
            2 => assert_eq!(status.history.boots, 2, "{}", told[node]),
            // It slept through its watchdog.
            _ => assert_eq!(status.history.watchdog_bites, 1, "{}", told[node]),
        }
    }
}

#[test]
fn a_board_that_is_given_another_policy_on_the_way_goes_on_with_that() {
    let Some(images) = images() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (other, path) = other_policy(folder.path());
    let scenario = Scenario {
        steps: Some(40),
        ..scenario(&["qemu=2"], &[&format!("flash,policy={path},ids=1,at=0.5")])
    };
    let team = scenario.team(&Problems::published()).unwrap();
    let rig = rig(&team, images, PATIENCE);
    let flashed = record(&scenario, &team, Some(&rig));
    let as_before = record(&scenario.without_faults(), &team, None);
    // The state before step 20 is the last that the first policy led to alone.
    assert_eq!(flashed.log[..21], as_before.log[..21]);
    assert_ne!(flashed.log[22..], as_before.log[22..]);
    let runs: Vec<_> = (rig.statuses().into_iter())
        .map(|status| status.expect("it answers").runs())
        .collect();
    let id = |file: &PolicyFile| Some(payload(file).unwrap().offer.id);
    assert_eq!(runs, [id(team.policy.as_ref().unwrap()), id(&other)]);
    assert_eq!(rig.node(1).diary.answered(), 40, "{}", events(&rig, 1));
}

#[test]
fn what_hands_do_to_boards_in_a_live_run_can_be_done_again() {
    let Some(images) = images() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, path) = other_policy(folder.path());
    let scenario = Scenario {
        steps: Some(40),
        ..scenario(&["qemu=2"], &[])
    };
    let team = scenario.team(&Problems::published()).unwrap();
    let live = Arc::new(rig(&team, images.clone(), PATIENCE));
    let (hub, orders) = Hub::new();
    let seat = hub.sit_down(1).unwrap();
    let (shown, boards) = (Arc::clone(&hub), Arc::clone(&live));
    thread::spawn(move || {
        let show = Show {
            scenario,
            recorded: None,
            problems: &Problems::published(),
            rig: Some(&boards),
            payload: &|file| Ok(payload(file)?),
            plant: None,
            playing: false,
            save: &|_| Ok("somewhere".to_owned()),
        };
        play(show, &shown, &orders).unwrap();
    });
    let ask = |command: Value| -> Option<Value> {
        let (answer, mut answers) = mpsc::channel(4);
        let command = Command::read(&command.to_string()).unwrap();
        hub.order(Order { command, answer }).unwrap();
        let text = answers.blocking_recv()?;
        Some(serde_json::from_str(&text).unwrap())
    };
    let fault = |fault: &str, id: usize| ask(json!({ "do": "fault", "fault": fault, "ids": [id] }));
    assert_eq!(ask(json!({ "do": "seek", "step": 10 })), None);
    assert_eq!(fault("restart", 0), None);
    assert_eq!(fault(&format!("flash,policy={path}"), 1), None);
    // Nonsense gets a sentence, and nothing is done.
    for (nonsense, id, why) in [
        ("flash,policy=nowhere.policy", 1, "nowhere.policy"),
        ("flash", 1, "policy"),
        ("kill", 5, "is on no board"),
        ("noise,std=0.1", 1, "boards"),
    ] {
        let refused = fault(nonsense, id).expect("a sentence");
        assert!(refused["why"].as_str().unwrap().contains(why), "{refused}");
    }
    assert_eq!(ask(json!({ "do": "seek", "step": 20 })), None);
    assert_eq!(fault("kill", 0), None);
    assert_eq!(ask(json!({ "do": "seek", "step": 40 })), None);
    let saved = ask(json!({ "do": "save" })).expect("it is saved");
    let state: Value = serde_json::from_str(&seat.state.borrow()).unwrap();
    assert_eq!(state["boards"][0]["state"], "silent", "{state}");
    assert_eq!(state["boards"][1]["state"], "active", "{state}");

    let saved = Scenario::from_toml(saved["scenario"].as_str().unwrap()).unwrap();
    assert_eq!(saved.faults.len(), 3);
    let team = saved.team(&Problems::published()).unwrap();
    let rig = rig(&team, images, PATIENCE);
    let again = record(&saved, &team, Some(&rig));
    assert_eq!(
        state["fingerprint"],
        again.log.last().unwrap().fingerprint,
        "live:\n{}{}again:\n{}{}",
        events(&live, 0),
        events(&live, 1),
        events(&rig, 0),
        events(&rig, 1)
    );
}
