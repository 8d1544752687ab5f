//! What a network costs a swarm.
//!
//! ```text
//! cargo bench -p agent-sim --features zenoh --bench zenoh
//! cargo bench -p agent-sim --features zenoh --bench zenoh -- --agents 1000000   # a swarm of that size alone
//! cargo bench -p agent-sim --features zenoh --bench zenoh -- --smoke
//! ```
//!
//! First the time from showing 64 agents something until all have answered: at the ends of TCP links,
//! a connection each, and at hosts on a Zenoh network, a message each. Then large swarms: steps of a run
//! with all agents in this process, at one host and at several. Hosts are processes of this machine, and
//! share its cores with the run.

use agent_core::policy::Policy;
use agent_sim::answering::Answering;
use agent_sim::link::Link;
use agent_sim::rig::{Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use agent_sim::scenario::{Scenario, Team};
use artifacts::observation::OwnedObservation;
use node_link::Offer;
use node_link::network::Settings;
use problem::Problems;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Agents whose latency is measured.
const AGENTS: usize = 64;

/// Over the figures of large swarms.
const HEAD: &str = "\
steps of heat-1d, mean of the last ten of twelve, and agents stepped in a second:
agents     where           made ready      step     agents/s   MB to hosts";

/// Under which this program is a process with nodes at TCP ports.
const NODES: &str = "--tcp-nodes";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == NODES) {
        return tcp_nodes(&team(&arguments[at + 1], AGENTS, 1));
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--agents") {
        println!("{HEAD}");
        return throughput(arguments[at + 1].parse().expect("how many agents"));
    }
    let smoke = arguments.iter().any(|argument| argument == "--smoke");
    let rounds = if smoke { 20 } else { 1000 };
    println!(
        "{AGENTS} agents, median time from showing all something to all answers, of {rounds}:"
    );
    println!("problem      frame      TCP   1 host  4 hosts   hosts / TCP");
    for problem in ["heat-1d", "heat-2d", "turbulence-2d"] {
        latency(problem, rounds);
    }
    let sizes: &[usize] = if smoke {
        &[1000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    println!("\n{HEAD}");
    for agents in sizes {
        throughput(*agents);
    }
}

fn team(problem: &str, agents: usize, steps: usize) -> Team {
    scenario(problem, agents, steps)
        .team(&Problems::published())
        .expect("a sound scenario")
}

fn scenario(problem: &str, agents: usize, steps: usize) -> Scenario {
    Scenario {
        problem: problem.to_owned(),
        agents: Some(agents),
        steps: Some(steps),
        set: "fresh".to_owned(),
        ..Scenario::default()
    }
}

/// A process that is ended with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Hosts on a network that share `agents` among them, and the rooms.
fn hosts(team: &Team, hosts: usize, agents: usize) -> (Vec<Ended>, Rooms) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp/{}", listener.local_addr().expect("an address"));
    drop(listener);
    let started = (0..hosts).map(|host| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-sim"));
        command.args(["agents", team.problem.name, "--agents"]);
        command.arg((agents / hosts).to_string());
        command.args(["--zenoh", &format!("bench/{host}"), "--zenoh-connect", &at]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ended(command.spawn().expect("a host"))
    });
    let started = started.collect();
    let settings = Settings {
        listen: vec![at],
        ..Settings::default()
    };
    let boards = [zenoh()];
    let rooms = Rooms::find(&boards, &settings, agents, None, PATIENCE).expect("rooms");
    assert_eq!(rooms.len(), agents);
    (started, rooms)
}

fn zenoh() -> Boards {
    "zenoh=bench/*".parse().expect("a link")
}

fn rig(team: &Team, boards: &[Boards], rooms: Rooms) -> Rig {
    let file = team.policy.as_ref().expect("a policy");
    let policy = team.parsed_policy().expect("a policy");
    let setup = Setup {
        images: Images::in_folder("no/such/folder"),
        flash: None,
        rooms,
        link_key: None,
        payload: Some(Payload::new(Offer::unsigned(file.bytes()), &policy)),
        pace: Pace::lock_step(PATIENCE),
        bus: None,
        log: false,
        seed: 0,
    };
    let (rig, absent) = Rig::start(boards, &setup, &|| ());
    assert_eq!(absent, []);
    rig
}

fn latency(problem: &str, rounds: usize) {
    let team = team(problem, AGENTS, 1);
    let policy = team.parsed_policy().expect("a policy");
    let frame = OwnedObservation::blank(&policy).arriving(0).frame_room();
    let tcp = {
        let (_nodes, boards) = tcp_boards(problem);
        median(&rig(&team, &boards, Rooms::default()), &policy, rounds)
    };
    let over = [1, 4].map(|count| {
        let (_hosts, rooms) = hosts(&team, count, AGENTS);
        median(&rig(&team, &[zenoh()], rooms), &policy, rounds)
    });
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = over.map(|time| time.as_secs_f64() / tcp.as_secs_f64());
    println!(
        "{problem:<12} {frame:>5} B {:>5.2} ms {:>5.2} ms {:>5.2} ms   {:.2}, {:.2}",
        ms(tcp),
        ms(over[0]),
        ms(over[1]),
        ratio[0],
        ratio[1]
    );
}

/// The median time of a round in which all agents are shown something and all answer.
fn median(rig: &Rig, policy: &Policy<'_>, rounds: usize) -> Duration {
    let mut links: Vec<_> = (0..AGENTS)
        .map(|agent| rig.link(agent).expect("a link"))
        .collect();
    let seen = OwnedObservation::blank(policy);
    let period = u64::from(policy.header().timing.period_us);
    let mut times = Vec::with_capacity(rounds);
    for round in 1..=rounds as u64 {
        let now_us = round * period;
        let began = Instant::now();
        for link in &mut links {
            link.send(&seen.arriving(now_us)).expect("sent");
        }
        for link in &mut links {
            assert!(link.receive(now_us).expect("heard").is_some());
        }
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// This program again, with a node at each of so many ports.
fn tcp_boards(problem: &str) -> (Ended, Vec<Boards>) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([NODES, problem]).stdout(Stdio::piped());
    let mut nodes = command.spawn().expect("nodes");
    let ports = BufReader::new(nodes.stdout.take().expect("a pipe"));
    let ports = ports.lines().take(AGENTS).map(|line| {
        let line = line.expect("a line");
        format!("tcp={line}").parse().expect("an address")
    });
    let boards = ports.collect();
    (Ended(nodes), boards)
}

fn tcp_nodes(team: &Team) {
    let file = team.policy.as_ref().expect("a policy");
    let id = Offer::unsigned(file.bytes()).id;
    thread::scope(|scope| {
        for _ in 0..AGENTS {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            println!("{}", listener.local_addr().expect("an address"));
            scope.spawn(move || {
                let policy = team.parsed_policy().expect("a policy");
                let stream = listener.accept().expect("a connection").0;
                tcp_node(stream, &mut Answering::new(&policy, id, 1));
            });
        }
    });
}

/// Answers until the other end closes the line.
fn tcp_node(mut stream: TcpStream, agent: &mut Answering<'_>) {
    stream.set_nodelay(true).expect("a socket");
    let (mut buffer, mut heard) = (vec![0; 1 << 16], Vec::new());
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        heard.extend(&buffer[..length]);
        let Some(end) = heard.iter().rposition(|byte| *byte == 0) else {
            continue;
        };
        let rest = heard.split_off(end + 1);
        let mut answers = Vec::new();
        agent.hear([(0, &mut heard[..])], |_, frame| answers.extend(frame));
        heard = rest;
        if stream.write_all(&answers).is_err() {
            return;
        }
    }
}

fn throughput(agents: usize) {
    let team = team("heat-1d", agents, 12);
    let policy = team.parsed_policy().expect("a policy");
    let frame = OwnedObservation::blank(&policy).arriving(0).frame_room();
    let megabytes = (frame * agents) as f64 * 1e-6;
    let report = |place: &str, ready: Option<Duration>, rig: Option<&Rig>| {
        let step = mean_step(&team, agents, rig);
        let ready = ready.map_or("–".to_owned(), |time| {
            format!("{:.1} s", time.as_secs_f64())
        });
        println!(
            "{agents:<10} {place:<15} {ready:>10} {:>8.1} ms {:>10.0}   {}",
            step.as_secs_f64() * 1e3,
            agents as f64 / step.as_secs_f64(),
            rig.map_or("–".to_owned(), |_| format!("{megabytes:.1}"))
        );
    };
    report("this process", None, None);
    for count in [1, 4, 8] {
        let began = Instant::now();
        let (_hosts, rooms) = hosts(&team, count, agents);
        let rig = rig(&team, &[zenoh()], rooms);
        report(
            &format!("{count} at Zenoh"),
            Some(began.elapsed()),
            Some(&rig),
        );
    }
}

/// The mean time of a step of a run, without the first two.
fn mean_step(team: &Team, agents: usize, rig: Option<&Rig>) -> Duration {
    let episode = scenario("heat-1d", agents, team.steps)
        .episode(team)
        .expect("an episode");
    let policy = team.parsed_policy();
    let experiment = team.experiment(policy.as_ref());
    let mut times = Vec::new();
    let mut watch = |_: &agent_sim::episode::Snapshot<'_>| times.push(Instant::now());
    experiment.run_on(rig, &episode, &mut watch).expect("a run");
    let last = times.len() - 1;
    (times[last] - times[2]) / (last - 2) as u32
}
