//! What a viewer costs a live run, and how many frames it gets.
//!
//! ```text
//! cargo bench -p agent-sim --bench live
//! cargo bench -p agent-sim --bench live -- --runs 3 heat-2d 64
//! ```
//!
//! The same run at full speed, in turns with nobody looking (the reference) and with a viewer over a real
//! socket, on the same cores.

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
use tungstenite::{Message, client};

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

/// Looks until it is told to stop; counts frames and their bytes.
fn look(server: SocketAddr, stop: &AtomicBool, frames: &AtomicUsize, bytes: &AtomicUsize) {
    let stream = TcpStream::connect(server).expect("the server is there");
    let timeout = stream.set_read_timeout(Some(Duration::from_millis(100)));
    timeout.expect("sockets have time-outs");
    let (mut socket, _) = client(format!("ws://{server}/ws"), stream).expect("it lets us in");
    while !stop.load(Ordering::Relaxed) {
        if let Ok(Message::Binary(frame)) = socket.read() {
            frames.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(frame.len(), Ordering::Relaxed);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
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
            plant: None,
            playing: false,
            save: &save,
        };
        play(show, &shown, &orders)
    });
    ask(&hub, Command::Speed { steps: None });
    once(&hub, steps);
    let (mut alone, mut watched, mut shown, mut sizes) = (vec![], vec![], vec![], vec![]);
    for _ in 0..runs {
        alone.push(once(&hub, steps));
        let (stop, frames, bytes) = (
            AtomicBool::new(false),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| look(address, &stop, &frames, &bytes));
            while !hub.is_watched() {
                std::thread::sleep(Duration::from_millis(1));
            }
            frames.store(0, Ordering::Relaxed);
            bytes.store(0, Ordering::Relaxed);
            let seconds = once(&hub, steps);
            let count = frames.load(Ordering::Relaxed);
            watched.push(seconds);
            shown.push(count as f64 / seconds);
            sizes.push(bytes.load(Ordering::Relaxed) as f64 / count.max(1) as f64);
            stop.store(true, Ordering::Relaxed);
        });
        while hub.is_watched() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let (alone, watched) = (median(alone), median(watched));
    println!("{problem}, {agents} agents, {steps} steps at full speed; medians of {runs}");
    println!(
        "nobody looks    {alone:8.3} s {:10.1} steps/s",
        steps as f64 / alone
    );
    println!(
        "a viewer looks  {watched:8.3} s {:10.1} steps/s",
        steps as f64 / watched
    );
    println!("ratio           {:8.3}   (at most 1.05)", watched / alone);
    println!(
        "frames          {:8.1} /s (at least 30), {:.0} bytes each",
        median(shown),
        median(sizes)
    );
}
