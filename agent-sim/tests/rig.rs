//! Boards in the loop, without boards: nodes that answer at a network address.

use agent_core::agent::AgentState;
use agent_core::message::{
    COMMAND_FRAME, Command, FrameReader, Hello, PROTOCOL, PolicyId, Report, ResetCause,
    decode_frame, encode_frame,
};
use agent_core::policy::Policy;
use agent_sim::recording::Recording;
use agent_sim::rig::{Absent, Boards, Images, Pace, Payload, Rig, Setup, State};
use agent_sim::scenario::Scenario;
use artifacts::policy_file::PolicyFile;
use problem::published::heat_1d::PROBLEM;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// What a stand-in for a node does with the connections that it gets.
#[derive(Clone, Copy)]
struct Conduct {
    /// After so many observations it hangs up; a new connection finds it as it was.
    hangs_up_after: Option<usize>,
    /// It takes this long to answer an observation.
    takes: Duration,
}

const SOUND: Conduct = Conduct {
    hangs_up_after: None,
    takes: Duration::ZERO,
};

/// A node with the shipped policy at an address of its own.
fn node(conduct: Conduct) -> Boards {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let file = PolicyFile::shipped(&PROBLEM).unwrap();
        let policy = file.policy(&PROBLEM).unwrap();
        let mut state = AgentState::new();
        let mut observations = 0;
        for stream in listener.incoming() {
            let _ = serve(
                stream.unwrap(),
                &policy,
                &mut state,
                &mut observations,
                conduct,
            );
        }
    });
    Boards::Tcp { address }
}

fn serve(
    mut stream: TcpStream,
    policy: &Policy<'_>,
    state: &mut AgentState,
    observations: &mut usize,
    conduct: Conduct,
) -> std::io::Result<()> {
    let mut frames = FrameReader::<COMMAND_FRAME>::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut byte = [0];
    let hello = |id: PolicyId| {
        Report::Hello(Hello {
            policy: Some(id),
            reset: ResetCause::PowerOn,
            boots: 1,
        })
    };
    while stream.read(&mut byte)? > 0 {
        let Some(Ok(frame)) = frames.push(byte[0]) else {
            continue;
        };
        let Ok((number, command)) = decode_frame(frame) else {
            continue;
        };
        let report = match command {
            Command::Hello => hello(policy.id()),
            Command::Reset => {
                *state = AgentState::new();
                hello(policy.id())
            }
            Command::Observe(observation) => {
                *observations += 1;
                if conduct.hangs_up_after == Some(*observations) {
                    return Ok(());
                }
                thread::sleep(conduct.takes);
                let action = state.step(policy, &mut workspace, &observation);
                Report::Action { action, ticks: 0 }
            }
            _ => Report::Rejected { reason: "no" },
        };
        stream.write_all(encode_frame(number, &report, &mut [0; 256]).unwrap())?;
    }
    Ok(())
}

/// Starts a rig with the shipped policy.
fn start(boards: &[Boards], pace: Pace) -> (Rig, Vec<Absent>) {
    let file = PolicyFile::shipped(&PROBLEM).unwrap();
    let policy = file.policy(&PROBLEM).unwrap();
    let setup = Setup {
        images: Images::Folder("no/such/folder".into()),
        flash: None,
        payload: Some(Payload {
            bytes: file.bytes().into(),
            id: policy.id(),
            signature: [].into(),
            late_us: policy.header().timing.late_us.into(),
        }),
        pace,
        log: false,
        seed: 0,
    };
    Rig::start(boards, &setup, &|| ())
}

/// Thirty steps of heat-1d with eight agents, of which the first ones are on the rig.
fn run(rig: Option<&Rig>) -> Recording {
    let scenario = Scenario {
        problem: "heat-1d".to_owned(),
        steps: Some(30),
        set: "fresh".to_owned(),
        ..Scenario::default()
    };
    let team = scenario.team(&problem::Problems::published()).unwrap();
    let episode = scenario.episode(&team).unwrap();
    let policy = team.parsed_policy();
    Recording::make(&team.experiment(policy.as_ref()), rig, &episode, || ()).unwrap()
}

fn states(rig: &Rig, node: usize) -> Vec<&'static str> {
    let stretches = rig.node(node).diary.stretches();
    stretches.iter().map(|(state, _, _)| state.name()).collect()
}

fn events(rig: &Rig, node: usize) -> String {
    let node = rig.node(node);
    let told = node
        .diary
        .events
        .iter()
        .map(|event| format!("{}: {}\n", event.step, event.what));
    told.collect()
}

#[test]
fn agents_at_the_end_of_a_wire_do_what_those_in_this_process_do() {
    let (rig, absent) = start(&[node(SOUND), node(SOUND)], Pace::lock_step(PATIENCE));
    assert_eq!(absent, []);
    let (mixed, inside) = (run(Some(&rig)), run(None));
    assert_eq!(mixed.log, inside.log);
    assert_eq!(states(&rig, 1), ["active"]);
    assert_eq!(rig.node(1).diary.answered(), 30);
    assert!(rig.node(0).diary.percentiles().unwrap().is_sorted());
}

#[test]
fn a_node_that_hangs_up_is_silent_until_it_is_reached_again_and_the_others_go_on() {
    let hangs_up = Conduct {
        hangs_up_after: Some(10),
        ..SOUND
    };
    // The host looks for a silent node every quarter of a second: the run must last longer.
    let slow = Conduct {
        takes: Duration::from_millis(40),
        ..SOUND
    };
    let boards = [node(hangs_up), node(slow), node(hangs_up)];
    let (rig, _) = start(&boards, Pace::lock_step(PATIENCE));
    let run = run(Some(&rig));
    assert_eq!(run.log.len(), 31);
    assert_eq!(states(&rig, 1), ["active"]);
    for broken in [0, 2] {
        let told = events(&rig, broken);
        assert!(
            told.contains("9: silent: ") && told.contains("answers again"),
            "{told}"
        );
        assert_eq!(states(&rig, broken)[..2], ["active", "silent"], "{told}");
    }
}

#[test]
fn in_real_time_the_field_waits_for_nobody() {
    let slow = Conduct {
        takes: Duration::from_millis(60),
        ..SOUND
    };
    // A step of 1 ms at a fiftieth of real time lasts 50 ms.
    let (rig, _) = start(&[node(slow), node(SOUND)], Pace::lock_step(PATIENCE));
    let rig = rig.in_real_time(0.02, 1000.0);
    let began = std::time::Instant::now();
    run(Some(&rig));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(
        rig.node(0).diary.states.contains(&State::Late),
        "{}",
        events(&rig, 0)
    );
    assert!(rig.node(1).diary.answered() > rig.node(0).diary.answered());
}

#[test]
fn boards_that_are_not_there_are_named_with_what_to_do_and_the_rest_goes_on() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let boards = [
        "qemu=1".parse().unwrap(),
        "serial=/dev/no-such-port".parse().unwrap(),
        Boards::Tcp { address: nobody },
        node(SOUND),
    ];
    let (rig, absent) = start(&boards, Pace::lock_step(PATIENCE));
    let why = |name: &str| {
        let found = absent.iter().find(|absent| absent.name.contains(name));
        found.map_or("", |absent| absent.why.as_str())
    };
    assert_eq!(absent.len(), 3, "{absent:?}");
    assert!(
        why("an386").contains("cargo xtask firmware build"),
        "{absent:?}"
    );
    assert!(why("no-such-port").contains("plugged in"), "{absent:?}");
    assert!(why("127.0.0.1").contains("refused"), "{absent:?}");
    run(Some(&rig));
    assert_eq!(states(&rig, 0), ["silent"]);
    assert_eq!(states(&rig, 3), ["active"]);
}

#[test]
fn a_node_of_another_protocol_is_told_by_its_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        // A frame with the next version's number, and nothing else that we know of.
        let mut plain = vec![PROTOCOL + 1, 1, 2, 3];
        plain.extend(agent_core::message::CRC32.checksum(&plain).to_le_bytes());
        // No zeros in it: one block.
        assert!(!plain.contains(&0));
        let mut frame = vec![plain.len() as u8 + 1];
        frame.extend(plain);
        frame.push(0);
        stream.write_all(&frame).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (_, absent) = start(&[Boards::Tcp { address }], Pace::lock_step(PATIENCE));
    let theirs = format!("protocol {}", PROTOCOL + 1);
    assert!(absent[0].why.contains(&theirs), "{absent:?}");
    assert!(
        absent[0].why.contains("cargo xtask firmware build"),
        "{absent:?}"
    );
}
