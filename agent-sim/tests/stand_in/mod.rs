//! Nodes that answer at a network address, and runs with them.
#![allow(dead_code)] // Each test file uses its own part of this.

use agent_core::agent::AgentState;
use agent_core::message::{
    COMMAND_FRAME, Command, FrameReader, Guard, Hello, PolicyId, Report, ResetCause, decode_frame,
    encode_frame,
};
use agent_core::policy::Policy;
use agent_sim::episode::Snapshot;
use agent_sim::recording::Recording;
use agent_sim::rig::{Absent, Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use agent_sim::scenario::Scenario;
use artifacts::policy_file::PolicyFile;
use node_link::Offer;
use problem::published::heat_1d::PROBLEM;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// What a stand-in for a node does with the connections that it gets.
#[derive(Clone, Copy)]
pub struct Conduct {
    /// After so many observations it hangs up; a new connection finds it as it was.
    pub hangs_up_after: Option<usize>,
    /// It takes this long to answer an observation.
    pub takes: Duration,
}

/// Does nothing wrong.
pub const SOUND: Conduct = Conduct {
    hangs_up_after: None,
    takes: Duration::ZERO,
};

/// A node with the shipped policy at an address of its own.
pub fn node(conduct: Conduct) -> Boards {
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
    // As a node does: what comes twice is answered twice and obeyed once.
    let mut last: Option<(u32, Vec<u8>)> = None;
    let id = payload().offer.id;
    let hello = |id: PolicyId| {
        Report::Hello(Hello {
            policy: Some(id),
            reset: ResetCause::PowerOn,
            boots: 1,
            guard: Guard::default(),
        })
    };
    while stream.read(&mut byte)? > 0 {
        let Some(Ok(frame)) = frames.push(byte[0]) else {
            continue;
        };
        let Ok((number, command)) = decode_frame(frame) else {
            continue;
        };
        if let Some((_, answer)) = last.as_ref().filter(|(had, _)| *had == number) {
            stream.write_all(answer)?;
            continue;
        }
        let report = match command {
            Command::Hello => hello(id),
            Command::Reset => {
                *state = AgentState::new();
                hello(id)
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
        let answer = encode_frame(number, &report, &mut [0; 256])
            .unwrap()
            .to_vec();
        stream.write_all(&answer)?;
        last = Some((number, answer));
    }
    Ok(())
}

/// The shipped policy.
pub fn file() -> PolicyFile {
    PolicyFile::shipped(&PROBLEM).unwrap()
}

/// What nodes of a run are given: the shipped policy.
pub fn payload() -> Payload {
    let file = file();
    let policy = file.policy(&PROBLEM).unwrap();
    Payload::new(Offer::unsigned(file.bytes()), &policy)
}

/// Starts a rig with it.
pub fn start(boards: &[Boards], pace: Pace) -> (Rig, Vec<Absent>) {
    Rig::start(boards, &setup(pace, Rooms::default()), &|| ())
}

/// What it is started with.
pub fn setup(pace: Pace, rooms: Rooms) -> Setup {
    Setup {
        images: Images::in_folder("no/such/folder"),
        flash: None,
        rooms,
        link_key: None,
        payload: Some(payload()),
        pace,
        bus: None,
        log: false,
        seed: 0,
    }
}

/// Control steps of a run.
pub const STEPS: usize = 30;

/// A run of heat-1d with eight agents, of which the first ones are on the rig.
pub fn run(rig: Option<&Rig>) -> Recording {
    watched(rig, |_| ())
}

/// The same; `watch` sees every step.
pub fn watched(rig: Option<&Rig>, watch: impl FnMut(&Snapshot<'_>)) -> Recording {
    watched_in(&scenario(), rig, watch)
}

/// What is run.
pub fn scenario() -> Scenario {
    Scenario {
        problem: "heat-1d".to_owned(),
        steps: Some(STEPS),
        set: "fresh".to_owned(),
        ..Scenario::default()
    }
}

/// The same of another scenario.
pub fn watched_in(
    scenario: &Scenario,
    rig: Option<&Rig>,
    watch: impl FnMut(&Snapshot<'_>),
) -> Recording {
    let team = scenario.team(&problem::Problems::published()).unwrap();
    let episode = scenario.episode(&team).unwrap();
    let policy = team.parsed_policy();
    Recording::watched(&team.experiment(policy.as_ref()), rig, &episode, watch).unwrap()
}

/// What became of a node, a line each.
pub fn events(rig: &Rig, node: usize) -> String {
    let node = rig.node(node);
    let told = node
        .diary
        .events
        .iter()
        .map(|event| format!("{}: {}\n", event.step, event.what));
    told.collect()
}
