//! Swarms whose agents are at hosts on a Zenoh network: on loopback, or in namespaces of their own.

mod stand_in;

use agent_core::message::{PolicyId, Report, encode_frame};
use agent_sim::answering::Answering;
use agent_sim::episode::Snapshot;
use agent_sim::recording::Recording;
use agent_sim::rig::{Absent, Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use agent_sim::scenario::{Scenario, Team};
use agent_sim::swarm::Deed;
use node_link::Offer;
use node_link::network::{Greeting, Network, NetworkError, Offered, Settings, batch};
use problem::Problems;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);
const STEPS: usize = 60;

/// A free endpoint of this machine.
fn endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp/{}", listener.local_addr().unwrap())
}

fn listening(at: &str) -> Settings {
    Settings {
        listen: vec![at.to_owned()],
        ..Settings::default()
    }
}

/// As a router, which leads those who connect to it to each other.
fn routing(at: &str) -> Settings {
    Settings {
        configuration: Some("{ mode: 'router' }".to_owned()),
        ..listening(at)
    }
}

/// As a client of a router.
fn as_client(of: &str) -> Settings {
    Settings {
        configuration: Some("{ mode: 'client' }".to_owned()),
        ..connecting(of)
    }
}

fn connecting(to: &str) -> Settings {
    Settings {
        connect: vec![to.to_owned()],
        ..Settings::default()
    }
}

/// `agent-sim` with these words for arguments.
fn program(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-sim"));
    command.args(arguments.split_whitespace());
    command
}

/// A process that is ended with this.
struct Host(Child);

impl Host {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// With sixteen agents of `heat-2d`, in the room with this number.
    fn room(room: usize, at: &str) -> Self {
        Self::start(program(&format!(
            "agents heat-2d --agents 16 --threads 1 --zenoh lab/plate/room-{room} --zenoh-connect {at} --for 120"
        )))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A run of `heat-2d` with 64 agents.
struct Swarm {
    team: Team,
    scenario: Scenario,
    boards: Vec<Boards>,
}

impl Swarm {
    fn new(faults: &[&str]) -> Self {
        let scenario = Scenario {
            problem: "heat-2d".to_owned(),
            agents: Some(64),
            steps: Some(STEPS),
            set: "fresh".to_owned(),
            faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
            ..Scenario::default()
        };
        Self {
            team: scenario.team(&Problems::published()).unwrap(),
            scenario,
            boards: vec!["zenoh=lab/plate/*".parse().unwrap()],
        }
    }

    fn id(&self) -> PolicyId {
        Offer::unsigned(self.team.policy.as_ref().unwrap().bytes()).id
    }

    fn rooms(&self, settings: &Settings, patience: Duration) -> Result<Rooms, NetworkError> {
        Rooms::find(&self.boards, settings, 64, Some(self.id()), patience)
    }

    fn rig(&self, rooms: Rooms) -> (Rig, Vec<Absent>) {
        let policy = self.team.parsed_policy().unwrap();
        let file = self.team.policy.as_ref().unwrap();
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
        Rig::start(&self.boards, &setup, &|| ())
    }

    /// The run; `watch` hears of every step that was taken.
    fn run(&self, rig: Option<&Rig>, mut watch: impl FnMut(usize)) -> Recording {
        let episode = self.scenario.episode(&self.team).unwrap();
        let policy = self.team.parsed_policy();
        let experiment = self.team.experiment(policy.as_ref());
        Recording::watched(&experiment, rig, &episode, |snapshot| watch(snapshot.step)).unwrap()
    }
}

/// What happened to an agent, in one text.
fn events(rig: &Rig, agent: usize) -> String {
    stand_in::events(rig, agent)
}

#[test]
fn the_run_finishes_without_a_host_that_was_killed_as_if_its_agents_had_crashed() {
    let at = endpoint();
    let swarm = Swarm::new(&[]);
    let mut hosts: Vec<Host> = (0..4).map(|room| Host::room(room, &at)).collect();
    let rooms = swarm.rooms(&listening(&at), PATIENCE * 6).unwrap();
    let (rig, absent) = swarm.rig(rooms);
    assert_eq!((rig.len(), absent), (64, vec![]));
    let began = Instant::now();
    let cut_short = swarm.run(Some(&rig), |step| {
        if step == STEPS / 2 {
            hosts[1].kill();
        }
    });
    // It is missed because it is gone, not because it was waited for.
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let told = events(&rig, 16);
    let silent = format!(
        "{}: silent: the host of lab/plate/room-1 has gone",
        STEPS / 2
    );
    assert!(told.contains(&silent), "{told}");

    let crashed = Swarm::new(&["crash,ids=16..31,at=0.5"]).run(None, |_| ());
    assert_eq!(cut_short.log, crashed.log);
    assert_ne!(cut_short.log, swarm.run(None, |_| ()).log);
}

#[test]
fn agents_rejoin_when_their_host_returns() {
    let at = endpoint();
    let swarm = Swarm::new(&[]);
    let mut hosts: Vec<Host> = (0..4).map(|room| Host::room(room, &at)).collect();
    let rooms = swarm.rooms(&listening(&at), PATIENCE * 6).unwrap();
    let (rig, _) = swarm.rig(rooms);
    swarm.run(Some(&rig), |step| {
        if step == 10 {
            hosts[2].kill();
        }
        if step == 12 {
            hosts[2] = Host::room(2, &at);
        }
        let is_back = events(&rig, 40).contains("answers again");
        if step > 12 && !is_back {
            // Of sixty steps fifty are left: ten seconds.
            thread::sleep(Duration::from_millis(200));
        }
    });
    for agent in 32..48 {
        let told = events(&rig, agent);
        assert!(told.contains("answers again"), "{told}");
        let states = &rig.node(agent).diary.states;
        assert_eq!(states.last().unwrap().name(), "active", "{told}");
    }
    assert_eq!(events(&rig, 0), "");
}

#[test]
fn a_board_at_a_hosts_link_is_an_agent_like_any_other() {
    let at = endpoint();
    let addresses = [0, 1].map(|_| stand_in::node(stand_in::SOUND).to_string());
    let links = addresses
        .map(|address| format!("--link {address}"))
        .join(" ");
    let _host = Host::start(program(&format!(
        "agents heat-1d --agents 2 {links} --zenoh lab/rod --zenoh-connect {at} --for 60"
    )));
    let boards: Vec<Boards> = vec!["zenoh=lab/rod".parse().unwrap()];
    let id = stand_in::payload().offer.id;
    let rooms = Rooms::find(&boards, &listening(&at), 4, Some(id), PATIENCE * 6).unwrap();
    assert_eq!(rooms.len(), 4);
    let setup = stand_in::setup(Pace::lock_step(PATIENCE), rooms);
    let (rig, absent) = Rig::start(&boards, &setup, &|| ());
    assert_eq!(absent, []);
    assert!(
        rig.node(3).name.starts_with("lab/rod 127.0.0.1:"),
        "{}",
        rig.node(3).name
    );
    let there = stand_in::run(Some(&rig));
    assert_eq!(there.log, stand_in::run(None).log);
    assert_eq!(rig.node(3).diary.answered(), stand_in::STEPS);
}

#[test]
fn in_real_time_answers_that_come_within_the_step_count() {
    let at = endpoint();
    let swarm = Swarm::new(&[]);
    let _hosts: Vec<Host> = (0..4).map(|room| Host::room(room, &at)).collect();
    let rooms = swarm.rooms(&listening(&at), PATIENCE * 6).unwrap();
    let (rig, _) = swarm.rig(rooms);
    let interval = swarm.team.problem.control_interval;
    // A step in 50 ms of the wall clock.
    let rig = rig.in_real_time(interval / 0.05, interval * 1e6);
    swarm.run(Some(&rig), |_| ());
    let answered: usize = (0..64).map(|agent| rig.node(agent).diary.answered()).sum();
    assert!(answered > 64 * STEPS * 9 / 10, "{answered}");
}

/// What a room's host does in this process, on a thread, until this is dropped.
struct Stage {
    ended: std::sync::Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Stage {
    fn set(
        at: &str,
        key: &str,
        greeting: Greeting,
        act: impl FnMut(&Offered) + Send + 'static,
    ) -> Self {
        let network = Network::join(&connecting(at), PATIENCE).unwrap();
        let offered = network.offer(key, greeting).unwrap();
        let ended = std::sync::Arc::new(AtomicBool::new(false));
        let mut act = act;
        let ends = ended.clone();
        let thread = thread::spawn(move || {
            let _network = network;
            while !ends.load(Ordering::Relaxed) {
                act(&offered);
            }
        });
        Self {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

/// Answers as the agents of `heat-1d` that the stand-ins are; whether there was anything to answer.
fn answering(agents: usize) -> impl FnMut(&Offered) -> bool + Send {
    let file = Box::leak(Box::new(stand_in::file()));
    let policy = Box::leak(Box::new(file.parse().unwrap()));
    let mut agents = Answering::new(policy, stand_in::payload().offer.id, agents);
    move |offered| {
        let Some(mut arrival) = offered.next(soon()) else {
            return false;
        };
        let mut answers = Vec::new();
        let heard = batch::records(&mut arrival.batch);
        let heard = heard.map(|(agent, bytes)| (agent as usize, bytes));
        agents.hear(heard, |agent, frame| {
            batch::push(&mut answers, agent as u32, frame)
        });
        offered.answer(arrival.driver, answers);
        true
    }
}

/// Does nothing else.
fn sound(agents: usize) -> impl FnMut(&Offered) + Send {
    let mut answer = answering(agents);
    move |offered| {
        answer(offered);
    }
}

fn greeting(inside: u32) -> Greeting {
    Greeting {
        policy: Some(stand_in::payload().offer.id),
        inside,
        boards: Vec::new(),
    }
}

/// Something that a host can do to its driver, after it has answered soundly for a while.
type Trick = (&'static str, fn(&Offered, u64));

/// Messages that nobody asked for.
fn flood(offered: &Offered, driver: u64, message: &[u8]) {
    // As much as a fast network carries.
    for _ in 0..4 {
        offered.answer(driver, message.to_vec());
    }
    thread::sleep(Duration::from_millis(1));
}

const TRICKS: &[Trick] = &[
    ("says nothing", |_, _| {
        thread::sleep(Duration::from_millis(5))
    }),
    ("floods with what is no record", |offered, driver| {
        flood(offered, driver, &[0xff; 1 << 16]);
    }),
    ("floods with empty records", |offered, driver| {
        flood(offered, driver, &[0; 1 << 16]);
    }),
    ("floods with records for nobody", |offered, driver| {
        let mut message = Vec::new();
        (0..1000).for_each(|_| batch::push(&mut message, u32::MAX, &[1; 60]));
        flood(offered, driver, &message);
    }),
    ("floods with noise for its agent", |offered, driver| {
        let mut message = Vec::new();
        (0..200).for_each(|k| batch::push(&mut message, 0, &[k as u8 % 3; 300]));
        flood(offered, driver, &message);
    }),
    (
        "floods with answers to other questions",
        |offered, driver| {
            let mut message = Vec::new();
            for number in 1000..1500 {
                let report = Report::Rejected {
                    reason: "\u{1b}[2J",
                };
                let frame = encode_frame(number, &report, &mut [0; 64])
                    .unwrap()
                    .to_vec();
                batch::push(&mut message, 0, &frame);
            }
            flood(offered, driver, &message);
        },
    ),
    ("sends one message that is too long", |offered, driver| {
        offered.answer(driver, vec![0; 20 << 20]);
        thread::sleep(Duration::from_millis(100));
    }),
];

/// What all agents but the first do, and where they are.
fn others(snapshot: &Snapshot<'_>) -> Vec<(Deed, [f64; 2])> {
    let agents = snapshot.deeds.iter().zip(snapshot.positions);
    agents
        .skip(1)
        .map(|(deed, place)| (*deed, *place))
        .collect()
}

/// What they do, in this process, without the first from a step on.
fn crashed(step: usize) -> Vec<Vec<(Deed, [f64; 2])>> {
    let at = step as f64 / stand_in::STEPS as f64;
    let scenario = Scenario {
        faults: vec![format!("crash,ids=0,at={at}").parse().unwrap()],
        ..stand_in::scenario()
    };
    let mut steps = Vec::new();
    stand_in::watched_in(&scenario, None, |snapshot| steps.push(others(snapshot)));
    steps
}

/// Beside the sound room of a run is one whose host plays tricks from the tenth message on.
#[test]
fn a_hostile_host_costs_patience_and_two_seconds_and_nothing_of_the_others() {
    const PATIENCE: Duration = Duration::from_secs(1);
    let boards: Vec<Boards> = vec!["zenoh=lab/rod/*".parse().unwrap()];
    for (name, trick) in TRICKS {
        let at = endpoint();
        let hub = Network::join(&listening(&at), PATIENCE).unwrap();
        let mut messages = 0;
        let mut answer = answering(1);
        let trick = *trick;
        // Names come before numbers: the hostile one has agent 0.
        let _hostile = Stage::set(&at, "lab/rod/a", greeting(1), move |offered| {
            // The greeting, two beginnings, and so many observations.
            if messages < 13 {
                messages += usize::from(answer(offered));
            } else if let Some(driver) = offered.driver() {
                trick(offered, driver);
            } else {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let _sound = Stage::set(&at, "lab/rod/b", greeting(2), sound(2));
        drop(hub);
        let id = stand_in::payload().offer.id;
        let rooms = Rooms::find(&boards, &listening(&at), 3, Some(id), PATIENCE * 10).unwrap();
        let setup = stand_in::setup(Pace::lock_step(PATIENCE), rooms);
        let (rig, absent) = Rig::start(&boards, &setup, &|| ());
        assert_eq!(absent, [], "{name}");
        let began = Instant::now();
        let mut done = Vec::new();
        stand_in::watched(Some(&rig), |snapshot| done.push(others(snapshot)));
        let waited = began.elapsed();
        let told = events(&rig, 0);
        assert!(
            waited < PATIENCE + Duration::from_secs(2),
            "{name}: {waited:?}\n{told}"
        );
        assert!(!told.contains('\u{1b}'), "{name}: {told:?}");
        let states = rig.node(0).diary.states.clone();
        assert_eq!(states.last().unwrap().name(), "silent", "{name}: {told}");
        assert_eq!(events(&rig, 1) + &events(&rig, 2), "", "{name}");
        // Whatever it does, the others do what they do when it has crashed.
        let silent = states.iter().position(|state| state.name() == "silent");
        assert!(done == crashed(silent.unwrap()), "{name}: {told}");
    }
}

/// `agent-sim run` with its last words, which must come in time.
fn refused(arguments: &str, within: Duration) -> String {
    let began = Instant::now();
    let said: Output = program(arguments).output().unwrap();
    assert!(!said.status.success(), "{arguments}");
    assert!(
        began.elapsed() < within,
        "{arguments}: {:?}",
        began.elapsed()
    );
    String::from_utf8_lossy(&said.stderr).into_owned()
}

#[test]
fn whom_nobody_answers_is_told_so_within_patience() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &str| {
        let out = folder.path().display();
        let arguments = format!("run heat-1d --out {out} --alone --patience 1 {more}");
        refused(&arguments, PATIENCE)
    };
    let at = endpoint();
    let said = run(&format!("--link zenoh=lab/none/* --zenoh-listen {at}"));
    assert!(
        said.contains("nobody answers to lab/none/* within 1s"),
        "{said}"
    );
    let said = run(&format!("--link zenoh=lab/none/* --zenoh-connect {at}"));
    assert!(
        said.contains(&format!("nobody was reached at {at} within 1s")),
        "{said}"
    );
    assert!(said.contains("refused"), "{said}");
    let said = run(&format!("--link zenoh=lab//none --zenoh-listen {at}"));
    assert!(said.contains("'lab//none' is no key of Zenoh"), "{said}");
    let said = run("--link zenoh=a --zenoh-listen nowhere");
    assert!(said.contains("Zenoh takes no such configuration"), "{said}");
}

#[test]
fn hosts_of_another_policy_and_rooms_that_are_taken_are_refused_by_name() {
    let at = endpoint();
    let swarm = Swarm::new(&[]);
    let hub = Network::join(&routing(&at), PATIENCE).unwrap();
    // Of heat-1d, whose policy is another.
    let other = Stage::set(&at, "lab/plate/b", greeting(16), |_| {
        thread::sleep(PATIENCE / 100)
    });
    let find = || hub.find("lab/plate/*", 64, Some(swarm.id()), PATIENCE);
    let refusal = find().err().unwrap();
    assert!(
        matches!(&refusal, NetworkError::Policy { room, .. } if room == "lab/plate/b"),
        "{refusal}"
    );
    drop(other);

    // A second host does not offer what is offered.
    let _first = Stage::set(&at, "lab/rod", greeting(2), sound(2));
    let second = Network::join(&as_client(&at), PATIENCE).unwrap();
    let refusal = second.offer("lab/rod", greeting(1)).err().unwrap();
    assert!(
        matches!(&refusal, NetworkError::Twice { room, .. } if room == "lab/rod"),
        "{refusal}"
    );

    // Nor does a second run drive what is driven.
    let id = Some(stand_in::payload().offer.id);
    let rooms = hub.find("lab/rod", 2, id, PATIENCE).unwrap();
    let refusal = second
        .find("lab/rod", 2, id, Duration::from_secs(1))
        .err()
        .unwrap();
    assert!(
        matches!(&refusal, NetworkError::Driven { room } if room == "lab/rod"),
        "{refusal}"
    );
    drop(rooms);
    drop(hub);
}

/// Hosts that come to the network at the same time cannot know of each other before they are there.
#[test]
fn two_hosts_of_the_same_agents_are_refused_by_name() {
    let at = endpoint();
    let _rooms = [
        Stage::set(&at, "lab/rod", greeting(2), sound(2)),
        Stage::set(&at, "lab/rod", greeting(2), sound(2)),
    ];
    let hub = Network::join(&listening(&at), PATIENCE).unwrap();
    // More than there are: all who are there are heard of.
    let refusal = hub.find("lab/**", 64, None, PATIENCE).err().unwrap();
    assert!(
        matches!(&refusal, NetworkError::Twice { room, .. } if room == "lab/rod"),
        "{refusal}"
    );
}

/// A router of Zenoh's between a run and its hosts, none of which listens.
#[test]
fn a_router_leads_runs_and_hosts_to_each_other() {
    let at = endpoint();
    let _router = Network::join(&routing(&at), PATIENCE).unwrap();
    let _room = Stage::set(&at, "lab/rod/a", greeting(2), sound(2));
    let client = as_client(&at);
    let boards: Vec<Boards> = vec!["zenoh=lab/rod/*".parse().unwrap()];
    let id = stand_in::payload().offer.id;
    let rooms = Rooms::find(&boards, &client, 2, Some(id), PATIENCE).unwrap();
    let (rig, absent) = Rig::start(
        &boards,
        &stand_in::setup(Pace::lock_step(PATIENCE), rooms),
        &|| (),
    );
    assert_eq!(absent, []);
    assert_eq!(stand_in::run(Some(&rig)).log, stand_in::run(None).log);
}

/// `openssl` with these words for arguments, in a folder.
fn openssl(folder: &Path, arguments: &str) {
    let mut openssl = Command::new("openssl");
    let openssl = openssl
        .args(arguments.split_whitespace())
        .current_dir(folder);
    let said = openssl
        .output()
        .expect("openssl makes the certificates of this test");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

/// An authority and a certificate that it has signed for 127.0.0.1.
fn certificates(folder: &Path, authority: &str) {
    openssl(
        folder,
        &format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={authority} \
         -keyout {authority}.key -out {authority}.pem -addext basicConstraints=critical,CA:TRUE"
        ),
    );
    openssl(
        folder,
        &format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=room-{authority} \
         -keyout {authority}-room.key -out {authority}-room.csr"
        ),
    );
    let extensions = format!("{authority}.ext");
    std::fs::write(
        folder.join(&extensions),
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    openssl(
        folder,
        &format!(
            "x509 -req -in {authority}-room.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 2 \
         -extfile {extensions} -out {authority}-room.pem"
        ),
    );
}

/// Both sides show a certificate: theirs of `own`, and take what `trusted` has signed.
fn mutual(folder: &Path, own: &str, trusted: &str, more: &str) -> String {
    let at = |name: String| folder.join(name).display().to_string();
    let [key, certificate] = ["key", "pem"].map(|kind| at(format!("{own}-room.{kind}")));
    let authority = at(format!("{trusted}.pem"));
    format!(
        "{{ transport: {{ link: {{ tls: {{ enable_mtls: true, root_ca_certificate: '{authority}', \
         listen_private_key: '{key}', listen_certificate: '{certificate}', \
         connect_private_key: '{key}', connect_certificate: '{certificate}' }} }} }}, {more} }}"
    )
}

#[test]
fn over_tls_who_has_the_right_certificate_drives_and_who_has_a_wrong_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    certificates(folder, "ours");
    certificates(folder, "theirs");
    let at = endpoint().replace("tcp/", "tls/");
    let with = |configuration: String, settings: Settings| Settings {
        configuration: Some(configuration),
        ..settings
    };
    let host = with(mutual(folder, "ours", "ours", ""), listening(&at));
    let host = Network::join(&host, PATIENCE).unwrap();
    let offered = host.offer("lab/rod", greeting(2)).unwrap();
    let mut answers = sound(2);
    let ended = std::sync::Arc::new(AtomicBool::new(false));
    let ends = ended.clone();
    let thread = thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            answers(&offered);
        }
    });
    let boards: Vec<Boards> = vec!["zenoh=lab/*".parse().unwrap()];
    let id = Some(stand_in::payload().offer.id);
    let find = |configuration, patience| {
        let settings = with(configuration, connecting(&at));
        Rooms::find(&boards, &settings, 2, id, patience)
    };
    // We do not know who signed the host's certificate, then the host does not who signed ours.
    for (own, trusted) in [("ours", "theirs"), ("theirs", "ours")] {
        let began = Instant::now();
        let refusal = find(mutual(folder, own, trusted, ""), Duration::from_secs(1));
        let refusal = refusal.err().unwrap();
        let said = refusal.to_string();
        assert!(matches!(refusal, NetworkError::Unreached { .. }), "{said}");
        assert!(said.contains("certificate"), "{said}");
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    }
    let rooms = find(mutual(folder, "ours", "ours", ""), PATIENCE).unwrap();
    let (rig, absent) = Rig::start(
        &boards,
        &stand_in::setup(Pace::lock_step(PATIENCE), rooms),
        &|| (),
    );
    assert_eq!(absent, []);
    assert_eq!(stand_in::run(Some(&rig)).log, stand_in::run(None).log);
    drop(rig);
    ended.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    drop(host);
}

/// Zenoh's access control: the host takes no commands but from who shows the run's certificate.
#[test]
fn access_control_keeps_strangers_from_the_agents() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    certificates(folder, "ours");
    let at = endpoint().replace("tcp/", "tls/");
    let rules = |common_name: &str| {
        format!(
            "access_control: {{ enabled: true, default_permission: 'deny', \
             rules: [{{ id: 'all', permission: 'allow', flows: ['ingress', 'egress'], \
             messages: ['put', 'delete', 'query', 'reply', 'declare_subscriber', 'declare_queryable', \
             'liveliness_token', 'declare_liveliness_subscriber', 'liveliness_query'], \
             key_exprs: ['lab/**'] }}], \
             subjects: [{{ id: 'run', cert_common_names: ['{common_name}'] }}], \
             policies: [{{ rules: ['all'], subjects: ['run'] }}] }}"
        )
    };
    for (common_name, is_let_in) in [("room-ours", true), ("somebody", false)] {
        let host = Settings {
            configuration: Some(mutual(folder, "ours", "ours", &rules(common_name))),
            ..listening(&at)
        };
        let host = Network::join(&host, PATIENCE).unwrap();
        let _offered = host.offer("lab/rod", greeting(2)).unwrap();
        let run = Settings {
            configuration: Some(mutual(folder, "ours", "ours", "")),
            ..connecting(&at)
        };
        let run = Network::join(&run, PATIENCE).unwrap();
        let found = run.find("lab/*", 2, None, Duration::from_secs(2));
        assert_eq!(found.is_ok(), is_let_in, "{:?}", found.err());
    }
}

/// A name for what this test makes, which no other of this machine has.
fn own(name: &str) -> String {
    format!("fsz{}{name}", std::process::id())
}

/// Namespaces of the network, one for the run and one for each of four hosts, each with a cable of its
/// own to the run's; gone with this.
struct Cabled {
    made: Vec<String>,
}

impl Cabled {
    /// None where namespaces cannot be made, which takes root.
    fn make() -> Option<Self> {
        let mut rooms = Self { made: Vec::new() };
        for name in ["hub", "0", "1", "2", "3"].map(own) {
            if !ip(&format!("netns add {name}")) {
                assert!(rooms.made.is_empty(), "some namespaces, but not all");
                return None;
            }
            assert!(ip(&format!("-n {name} link set lo up")));
            rooms.made.push(name);
        }
        let hub = own("hub");
        for k in 0..4 {
            let room = own(&k.to_string());
            // Of the block that is for benchmarks of networks (RFC 2544).
            for command in [
                format!("-n {hub} link add r{k} type veth peer name r netns {room}"),
                format!("-n {hub} addr add 198.18.{k}.1/30 dev r{k}"),
                format!("-n {hub} link set r{k} up"),
                format!("-n {room} addr add 198.18.{k}.2/30 dev r"),
                format!("-n {room} link set r up"),
            ] {
                assert!(ip(&command), "{command}");
            }
        }
        Some(rooms)
    }

    /// A command in a namespace.
    fn within(name: &str, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &own(name)]);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Drop for Cabled {
    fn drop(&mut self) {
        for name in &self.made {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let mut ip = Command::new("ip");
    let ip = ip.args(arguments.split_whitespace()).stderr(Stdio::null());
    ip.status().is_ok_and(|status| status.success())
}

/// In rooms that only cables join where this may be made, else on loopback.
#[test]
fn four_hosts_of_sixteen_agents_are_one_process_of_sixty_four_bit_for_bit() {
    let rooms = Cabled::make();
    let loopback = endpoint();
    let port = 7447;
    let at = |k: usize| match &rooms {
        Some(_) => format!("tcp/198.18.{k}.1:{port}"),
        None => loopback.clone(),
    };
    let within = |name: &str, command: Command| match &rooms {
        Some(_) => Cabled::within(name, &command),
        None => command,
    };
    let _hosts: Vec<Host> = (0..4)
        .map(|k| {
            let command = program(&format!(
                "agents heat-2d --agents 16 --threads 1 --zenoh lab/plate/room-{k} --zenoh-connect {} --for 120",
                at(k)
            ));
            Host::start(within(&k.to_string(), command))
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).display().to_string();
    let mut listen: Vec<String> = (0..4)
        .map(|k| format!("--zenoh-listen {}", at(k)))
        .collect();
    listen.dedup();
    let run = |name: &str, more: &str| {
        let arguments = format!(
            "run heat-2d --agents 64 --steps {STEPS} --alone --patience 30 --out {} {more}",
            out(name)
        );
        let said = within("hub", program(&arguments)).output().unwrap();
        let told = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "{told}");
        let steps = folder.path().join(name).join("steps.csv");
        (std::fs::read_to_string(steps).unwrap(), told)
    };
    let over = format!("--link zenoh=lab/plate/* {}", listen.join(" "));
    let (there, told) = run("there", &over);
    assert!(!told.contains("in this process"), "{told}");
    let (here, _) = run("here", "");
    assert_eq!(there, here);
    // Sixteen agents of each room, in the order of their keys.
    let nodes = std::fs::read_to_string(folder.path().join("there/nodes.csv")).unwrap();
    let names: Vec<&str> = nodes
        .lines()
        .skip(1)
        .map(|row| row.split(',').next().unwrap())
        .collect();
    assert_eq!(
        (names.len(), names[0], names[63]),
        (64, "lab/plate/room-0 0", "lab/plate/room-3 15")
    );
}
