//! What viewers cost a live run, and how many frames they get.
//!
//! ```text
//! cargo bench -p agent-sim --bench live
//! cargo bench -p agent-sim --bench live -- --runs 3 heat-2d 64
//! ```
//!
//! The same run at full speed, in turns with nobody looking (the reference), with a viewer over a real
//! socket, and with ten of which one never reads, on the same cores.

use agent_sim::live::play::{Show, play};
use agent_sim::live::serve::Server;
use agent_sim::live::{Command, Hub, Order};
use agent_sim::scenario::Scenario;
use problem::Problems;
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket, client};

fn ask(hub: &Hub, command: Command) -> Option<Value> {
    let (answer, mut answers) = tokio::sync::mpsc::channel(4);
    assert!(hub.order(Order { command, answer }).is_ok());
    let text = answers.blocking_recv()?;
    serde_json::from_str(&text).ok()
}

/// Steps that were computed so far.
fn head(hub: &Hub) -> usize {
    let curves = ask(hub, Command::Curves {}).expect("curves are there");
    curves["steps"].as_array().map_or(0, Vec::len) - 1
}

/// Seconds that a run takes from its first step to its last.
fn once(hub: &Hub, steps: usize) -> f64 {
    let restart = Command::Restart {
        seed: None,
        keep: false,
    };
    ask(hub, Command::Pause {});
    ask(hub, restart);
    while head(hub) != 0 {}
    let begun = Instant::now();
    ask(hub, Command::Play {});
    while head(hub) < steps {
        std::thread::sleep(Duration::from_millis(10));
    }
    begun.elapsed().as_secs_f64()
}

/// A viewer that has been let in.
fn enter(server: SocketAddr) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(server).expect("the server is there");
    let timeout = stream.set_read_timeout(Some(Duration::from_millis(100)));
    timeout.expect("sockets have time-outs");
    let (socket, _) = client(format!("ws://{server}/ws"), stream).expect("it lets us in");
    socket
}

/// What viewers got in a run.
#[derive(Default)]
struct Seen {
    frames: AtomicUsize,
    bytes: AtomicUsize,
}

/// A run with viewers.
struct Watched {
    seconds: f64,
    /// Of each viewer that looks, on average.
    frames_per_second: f64,
    bytes_per_frame: f64,
}

/// A run while so many look, and others have come and never read what they are sent.
fn watched(hub: &Hub, server: SocketAddr, looking: usize, stalled: usize, steps: usize) -> Watched {
    let (stop, seen) = (AtomicBool::new(false), Seen::default());
    let stalled: Vec<_> = (0..stalled).map(|_| enter(server)).collect();
    let run = std::thread::scope(|scope| {
        for _ in 0..looking {
            let mut socket = enter(server);
            let (stop, seen) = (&stop, &seen);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(Message::Binary(frame)) = socket.read() {
                        seen.frames.fetch_add(1, Ordering::Relaxed);
                        seen.bytes.fetch_add(frame.len(), Ordering::Relaxed);
                    }
                }
            });
        }
        while !hub.is_watched() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for count in [&seen.frames, &seen.bytes] {
            count.store(0, Ordering::Relaxed);
        }
        let seconds = once(hub, steps);
        let frames = seen.frames.load(Ordering::Relaxed) as f64;
        let bytes = seen.bytes.load(Ordering::Relaxed) as f64;
        stop.store(true, Ordering::Relaxed);
        Watched {
            seconds,
            frames_per_second: frames / seconds / looking as f64,
            bytes_per_frame: bytes / frames.max(1.0),
        }
    });
    drop(stalled);
    while hub.is_watched() {
        std::thread::sleep(Duration::from_millis(1));
    }
    run
}

/// Megabytes of this program that are in memory, where the system tells.
fn resident() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1e3)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let given = std::env::args().skip(1).filter(|word| word != "--bench");
    let words: Vec<String> = given.collect();
    let (mut runs, mut names) = (5, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" => {
                let number = words.next().and_then(|word| word.parse().ok());
                runs = number.expect("--runs needs a number");
            }
            _ => names.push(word.clone()),
        }
    }
    let problem = names.first().map_or("turbulence-2d", String::as_str);
    let agents = names.get(1).map_or("256", String::as_str);
    let text = format!("problem = \"{problem}\"\nagents = {agents}");
    let scenario = Scenario::from_toml(&text).expect("a problem and a number of agents");
    let problems = Problems::published();
    let steps = scenario.team(&problems).expect("it can be run").steps;
    let (hub, orders) = Hub::new();
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), None).expect("a port is free");
    let url = server.url().expect("it listens");
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let address: SocketAddr = address.parse().expect("an address");
    server.start(Arc::clone(&hub)).expect("it serves");
    let shown = Arc::clone(&hub);
    std::thread::spawn(move || {
        let problems = Problems::published();
        let save = |_: &Scenario| Ok(String::new());
        let show = Show {
            scenario,
            recorded: None,
            problems: &problems,
            rig: None,
            payload: &|_| unreachable!("there are no boards"),
            plant: None,
            playing: false,
            save: &save,
        };
        play(show, &shown, &orders)
    });
    ask(&hub, Command::Speed { steps: None });
    once(&hub, steps);
    let (mut alone, mut one, mut ten) = (vec![], vec![], vec![]);
    let mut memory = vec![];
    for _ in 0..runs {
        alone.push(once(&hub, steps));
        one.push(watched(&hub, address, 1, 0, steps));
        ten.push(watched(&hub, address, 9, 1, steps));
        memory.extend(resident());
    }
    println!("{problem}, {agents} agents, {steps} steps at full speed; medians of {runs}");
    let alone = median(alone.into_iter());
    let line = |who: &str, seconds: f64| {
        let (rate, ratio) = (steps as f64 / seconds, seconds / alone);
        println!("{who:26} {seconds:8.3} s {rate:8.1} steps/s, ratio {ratio:.3}");
    };
    line("nobody looks", alone);
    line(
        "a viewer (at most 1.05)",
        median(one.iter().map(|run| run.seconds)),
    );
    line(
        "ten, one of them stalled",
        median(ten.iter().map(|run| run.seconds)),
    );
    for (who, runs) in [("a viewer", &one), ("each of nine", &ten)] {
        println!(
            "{who:26} {:8.1} frames/s (at least 30), {:.0} bytes each",
            median(runs.iter().map(|run| run.frames_per_second)),
            median(runs.iter().map(|run| run.bytes_per_frame))
        );
    }
    if let [first, .., last] = memory[..] {
        println!("memory after the first and the last of these: {first:.0} and {last:.0} MB");
    }
}
