//! Live runs: what hands do is a scenario, and whoever knocks at the server's door gets a sentence.

use agent_sim::live::play::{Show, play};
use agent_sim::live::serve::Server;
use agent_sim::live::{Hub, Order};
use agent_sim::recording::Recording;
use agent_sim::scenario::Scenario;
use problem::Problems;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket, client};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A live run that stands still, in a thread that ends with the test's program.
fn begin(scenario: &str) -> Arc<Hub> {
    let (hub, orders) = Hub::new();
    let scenario = Scenario::from_toml(scenario).unwrap();
    let shown = Arc::clone(&hub);
    std::thread::spawn(move || {
        let problems = Problems::published();
        let save = |_: &Scenario| Ok("somewhere".to_owned());
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
        play(show, &shown, &orders).unwrap();
    });
    hub
}

/// Somebody who watches a run and does things to it.
struct Viewer {
    hub: Arc<Hub>,
    seat: agent_sim::live::Seat,
}

impl Viewer {
    fn of(hub: &Arc<Hub>) -> Self {
        let seat = hub.sit_down(64).unwrap();
        Self {
            hub: Arc::clone(hub),
            seat,
        }
    }

    /// Asks for something; what is said to that, if anything is.
    fn ask(&mut self, command: Value) -> Option<Value> {
        let (answer, mut answers) = tokio::sync::mpsc::channel(4);
        let command = serde_json::from_value(command).unwrap();
        self.hub.order(Order { command, answer }).unwrap();
        let begun = Instant::now();
        loop {
            match answers.try_recv() {
                Ok(text) => return Some(serde_json::from_str(&text).unwrap()),
                // The loop has dropped its end: it is done with it.
                Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => return None,
                Err(tokio::sync::mpsc::error::TryRecvError::Empty) => {}
            }
            assert!(begun.elapsed() < PATIENCE, "nothing was said");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where the run stands, once it is so.
    fn state(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let text = self.seat.state.borrow().clone();
            if let Ok(state) = serde_json::from_str::<Value>(&text)
                && is(&state)
            {
                return state;
            }
            assert!(begun.elapsed() < PATIENCE, "stands at {text}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn seek(&mut self, step: usize) -> Value {
        assert_eq!(self.ask(json!({ "do": "seek", "step": step })), None);
        self.state(|state| state["step"] == step && state["head"].as_u64() >= Some(step as u64))
    }
}

fn fingerprint(scenario: &Scenario) -> String {
    let team = scenario.team(&Problems::published()).unwrap();
    let episode = scenario.episode(&team).unwrap();
    let policy = team.parsed_policy();
    let made = Recording::make(&team.experiment(policy.as_ref()), None, &episode, || {}).unwrap();
    made.log.last().unwrap().fingerprint.clone()
}

/// Anything at all is done, in any order, also after going back; what is saved leads to the same bits.
#[test]
fn what_was_done_by_hand_replays_bit_for_bit() {
    for (problem, axes, seed) in [("heat-1d", 1, 1), ("heat-1d", 1, 2), ("heat-2d", 2, 3)] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let steps = 60;
        let mut viewer = Viewer::of(&begin(&format!(
            "problem = \"{problem}\"\nagents = 9\nsteps = {steps}\nseed = {seed}"
        )));
        let kinds = [
            "crash",
            "stuck",
            "dropout,p=0.5",
            "delay,steps=3",
            "noise,std=0.2",
            "invert",
            "gain,factor=0.3",
            "loss,p=0.5",
            "freeze,p=1",
        ];
        for _ in 0..12 {
            viewer.seek(rng.random_range(0..steps));
            let ids: Vec<usize> = (0..9).filter(|_| rng.random_range(0..3) == 0).collect();
            let place: Vec<f64> = (0..axes).map(|_| rng.random_range(0.1..0.9)).collect();
            let command = match rng.random_range(0..8) {
                0..3 => {
                    json!({ "do": "fault", "fault": kinds[rng.random_range(0..kinds.len())], "ids": ids })
                }
                3 => json!({ "do": "revive", "ids": ids }),
                4 => {
                    json!({ "do": "paint", "what": "push", "places": [place], "radius": 0.1, "amount": 0.5, "steps": 4 })
                }
                5 => {
                    json!({ "do": "paint", "what": "target", "places": [place], "radius": 0.1, "amount": -0.2, "steps": null })
                }
                6 => json!({ "do": "add", "place": place }),
                _ => json!({ "do": "undo" }),
            };
            if let Some(refused) = viewer.ask(command.clone()) {
                // Nobody was pointed at, nothing was wrong, or there was nothing to take back.
                assert_eq!(refused["is"], "refused", "{command}: {refused}");
            }
        }
        let end = viewer.seek(steps);
        let saved = viewer.ask(json!({ "do": "save" })).unwrap();
        let scenario = Scenario::from_toml(saved["scenario"].as_str().unwrap()).unwrap();
        assert_eq!(
            end["fingerprint"],
            fingerprint(&scenario),
            "{problem} {seed}"
        );
        let done = scenario.faults.len() + scenario.touches.len() + scenario.added.len();
        assert!(done > 0, "something was done: {scenario:?}");
    }
}

#[test]
fn what_is_done_in_the_past_changes_what_comes_after_and_nothing_before() {
    let mut viewer = Viewer::of(&begin("problem = \"heat-1d\"\nagents = 8\nsteps = 100"));
    viewer.seek(100);
    let errors = |viewer: &mut Viewer| -> Vec<f64> {
        let curves = viewer.ask(json!({ "do": "curves" })).unwrap();
        let swarm = curves["runs"][0].as_array().unwrap();
        swarm.iter().map(|pair| pair[0].as_f64().unwrap()).collect()
    };
    let before = errors(&mut viewer);
    viewer.seek(40);
    let kill = json!({ "do": "fault", "fault": "crash", "ids": [0, 1, 2, 3, 4, 5, 6] });
    assert_eq!(viewer.ask(kill), None);
    let state = viewer.seek(100);
    assert_eq!(
        state["events"],
        json!([[40, "agents 0, 1, 2, 3, 4, 5, 6 crash"]])
    );
    let after = errors(&mut viewer);
    assert_eq!(before[..=40], after[..=40]);
    assert!(
        after[100] > 2.0 * before[100],
        "{} {}",
        before[100],
        after[100]
    );
    assert_eq!(viewer.ask(json!({ "do": "undo" })), None);
    viewer.seek(100);
    assert_eq!(errors(&mut viewer), before);
}

#[test]
fn what_cannot_be_done_is_refused_and_the_run_goes_on() {
    let mut viewer = Viewer::of(&begin("problem = \"ks-1d\"\nsteps = 20"));
    for (command, said) in [
        (
            json!({ "do": "fault", "fault": "dance", "ids": [1] }),
            "dance",
        ),
        (
            json!({ "do": "fault", "fault": "gain", "ids": [1] }),
            "factor",
        ),
        (
            json!({ "do": "fault", "fault": "crash", "ids": [] }),
            "nobody",
        ),
        (
            json!({ "do": "fault", "fault": "crash", "ids": [99_999] }),
            "no agent 99999",
        ),
        (
            json!({ "do": "fault", "fault": "clock,rate=0.1,at=0.5", "ids": [1] }),
            "clock",
        ),
        (json!({ "do": "revive", "ids": [1] }), "nothing is wrong"),
        (json!({ "do": "seek", "step": 21 }), "20 steps"),
        (json!({ "do": "speed", "steps": 0.0 }), "0 steps a second"),
        (json!({ "do": "select", "agent": 4000 }), "no agent 4000"),
        (json!({ "do": "add", "place": [1.0, 2.0] }), "coordinates"),
        (json!({ "do": "add", "place": [-1.0] }), "outside"),
        (json!({ "do": "undo" }), "nothing to take back"),
        (
            json!({ "do": "paint", "what": "target", "places": [[1.0]], "radius": 1.0, "amount": 1.0, "steps": null }),
            "brought to zero",
        ),
        (
            json!({ "do": "paint", "what": "push", "places": [], "radius": 1.0, "amount": 1.0, "steps": 2 }),
            "1 to 64 places",
        ),
        (
            json!({ "do": "paint", "what": "push", "places": [[1.0]], "radius": -1.0, "amount": 1.0, "steps": 2 }),
            "radius is -1",
        ),
    ] {
        let answer = viewer
            .ask(command.clone())
            .unwrap_or_else(|| panic!("{command} was done"));
        let why = answer["why"].as_str().unwrap_or_default();
        assert!(
            answer["is"] == "refused" && why.contains(said),
            "{command}: {answer}"
        );
    }
    assert_eq!(viewer.seek(20)["ended"], Value::Null);
    let late = json!({ "do": "fault", "fault": "crash", "ids": [1] });
    assert!(
        viewer.ask(late).unwrap()["why"]
            .as_str()
            .unwrap()
            .contains("over")
    );
}

#[test]
fn an_agent_shows_what_it_sees_and_remembers() {
    let mut viewer = Viewer::of(&begin("problem = \"heat-1d\"\nagents = 8\nsteps = 50"));
    viewer.seek(10);
    viewer.ask(json!({ "do": "select", "agent": 3 }));
    viewer.seek(11);
    let begun = Instant::now();
    let sight = loop {
        let text = viewer.seat.agent.borrow().clone();
        if let Ok(sight) = serde_json::from_str::<Value>(&text) {
            break sight;
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(sight["agent"], 3);
    let side = sight["side"].as_u64().unwrap() as usize;
    assert_eq!(sight["field"].as_array().unwrap().len(), side);
    assert!(!sight["features"].as_array().unwrap().is_empty());
    assert!(
        !sight["memory"].as_array().unwrap().is_empty(),
        "the shipped policy remembers"
    );
}

/// A server for a run, and its address.
fn serve(token: Option<&str>) -> SocketAddr {
    let hub = begin("problem = \"heat-1d\"\nagents = 8\nsteps = 50");
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(local, token.map(str::to_owned)).unwrap();
    let url = server.url().unwrap();
    server.start(hub).unwrap();
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    address.parse().unwrap()
}

/// The answer to a request with these headers.
fn request(server: SocketAddr, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n").unwrap();
    let mut answer = Vec::new();
    // A socket stays open: its head is all there is.
    let upgraded = headers.contains("Upgrade");
    while !(upgraded && answer.windows(4).any(|end| end == b"\r\n\r\n")) {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend(&chunk[..read]),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

type Socket = WebSocket<TcpStream>;

fn connect(server: SocketAddr, query: &str) -> Result<Socket, String> {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let connected = client(format!("ws://{server}/ws{query}"), stream);
    connected
        .map(|(socket, _)| socket)
        .map_err(|error| error.to_string())
}

/// The next message that is JSON of that kind.
fn told(socket: &mut Socket, is: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["is"] == is {
                return value;
            }
        }
    }
}

#[test]
fn the_page_is_served_to_its_own_address_only_and_may_load_nothing_else() {
    let server = serve(None);
    let own = format!("Host: {server}\r\nConnection: close\r\n");
    for (path, said) in [
        ("/", "<canvas"),
        ("/live.js", "WebSocket"),
        ("/live.css", "canvas"),
    ] {
        let answer = request(server, path, &own);
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains(said),
            "{path}"
        );
        let head = answer.to_lowercase();
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
        assert!(head.contains("x-content-type-options: nosniff"));
    }
    for host in ["Host: evil.example\r\n", "", "Host: evil.example:80\r\n"] {
        let headers = format!("{host}Connection: close\r\n");
        let answer = request(server, "/", &headers);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{headers}: {answer}");
    }
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let foreign = format!("Host: {server}\r\n{upgrade}Origin: http://evil.example\r\n");
    assert!(request(server, "/ws", &foreign).starts_with("HTTP/1.1 403"));
    let own = foreign.replace("evil.example", &server.to_string());
    assert!(request(server, "/ws", &own).starts_with("HTTP/1.1 101"));
}

#[test]
fn others_need_the_token() {
    let server = serve(Some("k3ep0ut1"));
    for query in ["", "?token=", "?token=k3ep0ut", "?token=k3ep0ut2"] {
        let refused = connect(server, query).err().unwrap_or_default();
        assert!(refused.contains("403"), "{query}: {refused}");
    }
    let mut socket = connect(server, "?token=k3ep0ut1").unwrap();
    assert_eq!(told(&mut socket, "hello")["problem"]["name"], "heat-1d");
}

#[test]
fn garbage_is_answered_with_a_sentence_and_harms_nobody() {
    let server = serve(None);
    let mut good = connect(server, "").unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut bad = connect(server, "").unwrap();
    for _ in 0..300 {
        let garbage: Vec<u8> = (0..rng.random_range(0..200))
            .map(|_| rng.random())
            .collect();
        let text = String::from_utf8_lossy(&garbage).into_owned();
        let message = match rng.random_range(0..3) {
            0 => Message::binary(garbage),
            1 => Message::text(text),
            _ => Message::text(json!({ "do": text }).to_string()),
        };
        bad.send(message).unwrap();
    }
    assert!(
        told(&mut bad, "refused")["why"]
            .as_str()
            .unwrap()
            .contains("command")
    );
    // One that is too long is not even read.
    let _ = bad.send(Message::text("x".repeat(1 << 20)));
    // What is no WebSocket at all.
    let mut raw = TcpStream::connect(server).unwrap();
    raw.write_all(&[0xff; 4096]).unwrap();
    good.send(Message::text(
        json!({ "do": "seek", "step": 50 }).to_string(),
    ))
    .unwrap();
    while told(&mut good, "state")["step"] != 50 {}
}

/// Ten viewers, one of which never reads: the others see the run to its end.
#[test]
fn a_viewer_that_stalls_holds_up_nobody() {
    let server = serve(None);
    let _stalled = connect(server, "").unwrap();
    let mut others: Vec<Socket> = (0..9).map(|_| connect(server, "").unwrap()).collect();
    let full = json!({ "do": "speed", "steps": null }).to_string();
    others[0].send(Message::text(full)).unwrap();
    for _ in 0..20 {
        let again = json!({ "do": "restart", "seed": null }).to_string();
        others[0].send(Message::text(again)).unwrap();
        others[0]
            .send(Message::text(json!({ "do": "play" }).to_string()))
            .unwrap();
    }
    for other in &mut others {
        while told(other, "state")["fingerprint"].is_null() {}
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = serve(None);
    let refused = Server::bind(taken, None).err().unwrap().to_string();
    assert!(
        refused.contains(&taken.to_string()) && refused.contains("--port"),
        "{refused}"
    );
}
