//! A node on the host: its line is two pipes in memory, its flash outlives it.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{
        CHUNK, Command, Frame, FrameReader, Hello, History, Observation, Patch, PolicyId, Report,
        ResetCause, SlotState, Span, UNASKED, encode_frame, encode_sealed, message,
    },
    policy::{
        Activation, Channel, Dense, DenseWeights, Fusion, Header, Limits, Network, Norm, Policy,
        Provenance, Sensing, Text, Timing, encode,
    },
};
use embassy_futures::select::{Either, select};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, pipe::Pipe};
use embassy_time::{Duration, Instant, with_timeout};
use firmware::{
    hardware::{Actuator, Hardware, NoSensors, Sensors, Watchdog},
    keys::Keys,
    link::{Receiver, Sender},
    node::{self, WORKSPACE},
};
use trust::{Manifest, SessionKey, manifest::MANIFEST};

use crate::chip::{Chip, Power};

pub type Line = Pipe<NoopRawMutex, 4096>;

pub const TIMING: Timing = Timing {
    period_us: 1_000,
    late_us: 20_000,
    fail_safe_us: 60_000,
};

/// A small policy whose force follows the mean error of its 4 cells: one layer.
pub fn policy() -> Vec<u8> {
    policy_that_sees(4)
}

/// The same with another window, of which 4 samples are taken.
pub fn policy_that_sees(window: u16) -> Vec<u8> {
    encoded(window, &[(4, 1)], 0.25, TIMING)
}

/// The same with so much patience, in milliseconds, until the agent holds and fails safe.
pub fn policy_that_waits(late: u32, fail_safe: u32) -> Vec<u8> {
    let timing = Timing {
        period_us: 1_000,
        late_us: 1_000 * late,
        fail_safe_us: 1_000 * fail_safe,
    };
    encoded(4, &[(4, 1)], 0.25, timing)
}

/// The same, of which the field is held at a target that it is shown.
pub fn policy_that_aims() -> Vec<u8> {
    let weights = [(vec![0.25; 4], vec![0.0])];
    encoded_with("test", (1, 4), true, &[(4, 1)], &weights, TIMING)
}

/// A policy of a few kilobytes that nobody else's force is like.
pub fn large_policy(gain: f32) -> Vec<u8> {
    encoded(4, &[(4, 32), (32, 32), (32, 1)], gain, TIMING)
}

/// A small policy for another problem.
pub fn policy_for(problem: &'static str) -> Vec<u8> {
    encoded_for(problem, 4, &[(4, 1)], 0.25, TIMING)
}

fn encoded(window: u16, layers: &[(u16, u16)], gain: f32, timing: Timing) -> Vec<u8> {
    encoded_for("test", window, layers, gain, timing)
}

fn encoded_for(
    problem: &'static str,
    window: u16,
    layers: &[(u16, u16)],
    gain: f32,
    timing: Timing,
) -> Vec<u8> {
    // Each layer takes the mean of its inputs, the last one times the gain.
    let last = layers.len() - 1;
    let weights: Vec<(Vec<f32>, Vec<f32>)> = (layers.iter().enumerate())
        .map(|(k, &(inputs, outputs))| {
            let gain = if k == last { 4.0 * gain } else { 1.0 };
            let weight = gain / f32::from(inputs);
            let weights = vec![weight; usize::from(inputs) * usize::from(outputs)];
            (weights, vec![0.0; usize::from(outputs)])
        })
        .collect();
    encoded_with(problem, (1, window), false, layers, &weights, timing)
}

/// A policy whose force tells every cell of its window from every other: one of four on a line, or of three by
/// three in the plane.
pub fn policy_that_weighs(plane: bool, timing: Timing) -> Vec<u8> {
    let (axes, window, cells) = if plane { (2, 3, 9) } else { (1, 4, 4) };
    let weights = (1..=cells).map(|k| 0.5f32.powi(k.into())).collect();
    let weights = [(weights, vec![0.0])];
    encoded_with(
        "test",
        (axes, window),
        false,
        &[(cells, 1)],
        &weights,
        timing,
    )
}

fn encoded_with(
    problem: &'static str,
    (axes, window): (u8, u16),
    target: bool,
    layers: &[(u16, u16)],
    weights: &[(Vec<f32>, Vec<f32>)],
    timing: Timing,
) -> Vec<u8> {
    let dense = |&(inputs, outputs): &(u16, u16)| Dense {
        inputs,
        outputs,
        norm: Norm::None,
        activation: Activation::Identity,
    };
    let header = Header {
        problem: Text::new(problem),
        sensing: Sensing {
            axes,
            window,
            target,
            channels: [Channel::Error].into_iter().collect(),
            samples: if axes == 1 { 4 } else { window },
            error_limit: 10.0,
            wide: None,
        },
        network: Network {
            branch: Default::default(),
            frequencies: Default::default(),
            trunk: Default::default(),
            fusion: Fusion::Concatenate,
            head: layers.iter().map(dense).collect(),
            ..Network::default()
        },
        limits: Limits {
            force: Some(2.0),
            velocity: None,
            low: [0.0; 2],
            high: [1.0; 2],
            keep_out: Default::default(),
            ..Limits::default()
        },
        timing,
        workspace: 0,
        provenance: Provenance {
            tool: Text::new("test"),
            revision: Text::default(),
            seed: 0,
            steps: 0,
        },
        probe: None,
    };
    let weights: Vec<DenseWeights> = weights
        .iter()
        .map(|(weights, bias)| DenseWeights { weights, bias })
        .collect();
    let mut buffer = vec![0; 8192];
    encode(&header, &weights, &mut buffer)
        .expect("the test's policy is valid")
        .to_vec()
}

pub fn id(blob: &[u8]) -> PolicyId {
    trust::policy_id(blob)
}

/// The manifest of a blob, which nobody has signed.
pub fn manifest(blob: &[u8]) -> Vec<u8> {
    encoded_manifest(&Manifest::unsigned(blob, "test"))
}

pub fn encoded_manifest(manifest: &Manifest) -> Vec<u8> {
    manifest.encode(&mut [0; MANIFEST]).unwrap().to_vec()
}

/// The manifest of bytes that are not there, so many.
pub fn manifest_of(length: u32) -> Vec<u8> {
    encoded_manifest(&Manifest {
        length,
        ..Manifest::unsigned(&[], "test")
    })
}

pub fn begin(manifest: &[u8]) -> Command<'_> {
    Command::PolicyBegin {
        manifest,
        signature: &[],
    }
}

/// What an agent in process does on its first observation.
pub fn first_action(blob: &[u8], observation: &Observation) -> Action {
    parsed(blob, |policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).expect("an agent");
        agent.step(&observation.patch, observation.position, observation.now_us)
    })
}

/// Weights are read in place: on a multiple of their size.
pub fn parsed<T>(blob: &[u8], look: impl FnOnce(Policy) -> T) -> T {
    let mut memory = vec![0u128; blob.len().div_ceil(16)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    bytes[..blob.len()].copy_from_slice(blob);
    look(Policy::parse(&bytes[..blob.len()]).expect("a valid policy"))
}

pub fn observation(field: &[f32; 6], now_us: u64) -> Observation<'_> {
    let patch = Patch::line(field, &[], Span { first: 0, last: 5 });
    Observation {
        now_us,
        position: [0.5, 0.0],
        patch,
    }
}

/// The host's end of the line.
pub struct Host<'a> {
    pub to_node: &'a Line,
    pub from_node: &'a Line,
    frames: RefCell<FrameReader<512>>,
    number: Cell<u32>,
    /// Of the session that is open, if one is.
    pub session: RefCell<Option<SessionKey>>,
    power: Rc<Power>,
}

/// The node's power went.
#[derive(Debug)]
pub struct WentDark;

impl Host<'_> {
    pub async fn send(&self, number: u32, command: &Command<'_>) {
        let frame = self.frame(number, command);
        self.to_node.write_all(&frame).await;
    }

    /// A command's frame, sealed if a session is open.
    pub fn frame(&self, number: u32, command: &Command<'_>) -> Vec<u8> {
        let mut buffer = [0; 2048];
        let frame = match &*self.session.borrow() {
            Some(key) => encode_sealed(number, command, &key.commands(), &mut buffer),
            None => encode_frame(number, command, &mut buffer),
        };
        frame.unwrap().to_vec()
    }

    /// The next report, with its number.
    pub async fn receive<T>(&self, look: impl FnOnce(u32, Report<'_>) -> T) -> T {
        loop {
            let mut byte = [0];
            with_timeout(Duration::from_secs(5), self.from_node.read(&mut byte))
                .await
                .expect("the node answers");
            let mut frames = self.frames.borrow_mut();
            if let Some(frame) = frames.push(byte[0]) {
                let frame = frame.unwrap();
                let session = self.session.borrow();
                let (number, report) = match (Frame::read(frame).unwrap(), &*session) {
                    (Frame::Plain { number, body }, _) => (number, message(body)),
                    (Frame::Sealed(frame), Some(key)) => (frame.number, frame.open(&key.reports())),
                    (Frame::Sealed(frame), None) => (frame.number, frame.unproven()),
                };
                return look(number, report.unwrap());
            }
        }
    }

    pub async fn ask<T>(&self, command: Command<'_>, look: impl FnOnce(Report<'_>) -> T) -> T {
        let number = self.number.get() + 1;
        self.number.set(number);
        self.send(number, &command).await;
        self.receive(|answered, report| {
            assert_eq!(answered, number);
            look(report)
        })
        .await
    }

    pub async fn expect(&self, command: Command<'_>, expected: Report<'_>) {
        self.ask(command, |report| assert_eq!(report, expected))
            .await;
    }

    pub async fn expect_rejection(&self, command: Command<'_>) {
        self.ask(command, |report| {
            assert!(matches!(report, Report::Rejected { .. }), "{report:?}");
        })
        .await;
    }

    pub async fn hello(&self) -> Hello {
        self.ask(Command::Hello, hello).await
    }

    pub async fn observe(&self, observation: Observation<'_>) -> Action {
        self.ask(Command::Observe(observation), |report| match report {
            Report::Action { action, .. } => action,
            other => panic!("{other:?}"),
        })
        .await
    }

    /// The same under a number of one's choice; other answers that come before are skipped.
    pub async fn observe_with_number(&self, number: u32, seen: Observation<'_>) -> Action {
        self.send(number, &Command::Observe(seen)).await;
        loop {
            let answer = self.receive(|answered, report| match report {
                Report::Action { action, .. } if answered == number => Some(action),
                _ => None,
            });
            if let Some(action) = answer.await {
                return action;
            }
        }
    }

    /// Waits for a frame, of whatever kind and session.
    pub async fn receive_any(&self) {
        let key = self.session.borrow_mut().take();
        self.receive(|_, _| ()).await;
        *self.session.borrow_mut() = key;
    }

    /// Operations that the node's flash has seen.
    pub fn flash_operations(&self) -> usize {
        self.power.operations()
    }

    /// The slot in use and what is made of both.
    pub async fn slots(&self) -> (Option<u8>, [SlotState; 2]) {
        self.ask(Command::Status, |report| match report {
            Report::Status(status) => (status.active, status.slots.map(|slot| slot.state)),
            other => panic!("{other:?}"),
        })
        .await
    }

    pub async fn begin(&self, policy: &[u8]) {
        self.begin_signed(policy, &manifest(policy), &[]).await;
    }

    pub async fn begin_signed(&self, policy: &[u8], manifest: &[u8], signature: &[u8]) {
        let begin = Command::PolicyBegin {
            manifest,
            signature,
        };
        self.expect(begin, Report::Stored { next: 0 }).await;
        for (k, bytes) in policy.chunks(CHUNK).enumerate() {
            let offset = (k * CHUNK) as u32;
            let next = offset + bytes.len() as u32;
            let chunk = Command::PolicyChunk { offset, bytes };
            self.expect(chunk, Report::Stored { next }).await;
        }
    }

    pub async fn upload(&self, policy: &[u8]) {
        self.begin(policy).await;
        let taken = self.ask(Command::PolicyCommit, hello).await;
        assert_eq!(taken.policy, Some(id(policy)));
    }

    /// Why a policy that was uploaded is refused.
    pub async fn refusal(&self) -> String {
        self.refusal_of(Command::PolicyCommit).await
    }

    /// Why a policy is refused at this command.
    pub async fn refusal_of(&self, command: Command<'_>) -> String {
        self.ask(command, |report| match report {
            Report::PolicyRefused { reason } => reason.to_owned(),
            other => panic!("{other:?}"),
        })
        .await
    }

    /// The same in chunks of so many bytes, of a node whose power may go.
    pub async fn try_upload(&self, policy: &[u8], chunk: usize) -> Result<(), WentDark> {
        self.ask(begin(&manifest(policy)), |_| ()).await;
        self.is_lit()?;
        for (k, bytes) in policy.chunks(chunk).enumerate() {
            let offset = (k * chunk) as u32;
            self.ask(Command::PolicyChunk { offset, bytes }, |_| ())
                .await;
            self.is_lit()?;
        }
        self.ask(Command::PolicyCommit, |_| ()).await;
        self.is_lit()
    }

    pub async fn try_observe(&self, observation: Observation<'_>) -> Result<Action, WentDark> {
        let action = self.observe(observation).await;
        // The next answer comes when everything that a step entails is done.
        self.ask(Command::Hello, |_| ()).await;
        self.is_lit().map(|()| action)
    }

    fn is_lit(&self) -> Result<(), WentDark> {
        match self.power.is_off() {
            true => Err(WentDark),
            false => Ok(()),
        }
    }
}

pub fn hello(report: Report<'_>) -> Hello {
    match report {
        Report::Hello(hello) => hello,
        other => panic!("{other:?}"),
    }
}

/// What the actuator was told, in order, and when; and how much force it was told to expect.
#[derive(Default)]
pub struct Told(pub Vec<Action>, pub Vec<Instant>, pub Vec<f32>);

impl Actuator for Told {
    fn limit(&mut self, force: f32) {
        self.2.push(force);
    }

    fn apply(&mut self, action: &Action) {
        self.0.push(*action);
        self.1.push(Instant::now());
    }
}

/// When the watchdog was fed.
#[derive(Default)]
pub struct Fed(pub Vec<Instant>);

impl Watchdog for Fed {
    fn feed(&mut self) {
        self.0.push(Instant::now());
    }
}

/// The node's hardware, which lives longer than the node's power is on.
pub struct Rig<const W: usize, const E: usize, N = NoSensors> {
    pub hardware: Hardware<Chip<W, E>, Fed, Told, N>,
    pub power: Rc<Power>,
}

/// Thrown where a board would restart.
pub struct Restarted;

impl<const W: usize, const E: usize> Rig<W, E> {
    /// A board from the factory, whose clock passes only while nobody has anything to do, and where
    /// a test lets it.
    pub fn new() -> Self {
        Self::with_sensors()
    }
}

impl<const W: usize, const E: usize, N: Sensors> Rig<W, E, N> {
    /// The same of a kind that can have sensors, without any yet.
    pub fn with_sensors() -> Self {
        host_clock::simulate();
        let power = Rc::new(Power::default());
        Self {
            hardware: Hardware {
                board: "bench",
                keys: Keys::NONE,
                slots: [Chip::new(&power), Chip::new(&power)],
                journal: Chip::new(&power),
                watchdog: Fed::default(),
                actuator: Told::default(),
                station: None,
                history: History {
                    reset: ResetCause::PowerOn,
                    boots: 1,
                    watchdog_bites: 0,
                    panics: 0,
                    faults: 0,
                },
                last_words: "",
                stack: || [0; 2],
                restart: || std::panic::panic_any(Restarted),
                provoke: None,
            },
            power,
        }
    }

    /// The modes of all actions that the actuator was told.
    pub fn modes(&self) -> Vec<Mode> {
        let told = self.hardware.actuator.0.iter();
        told.map(|action| action.mode).collect()
    }

    /// Starts the node and runs it against a host's script, which is given the node's greeting.
    pub fn live<T>(&mut self, script: impl AsyncFnOnce(&Host, Hello) -> T) -> T {
        host_clock::block_on(self.alive(script))
    }

    /// The same beside others.
    pub async fn alive<T>(&mut self, script: impl AsyncFnOnce(&Host, Hello) -> T) -> T {
        let (to_node, from_node) = (Line::new(), Line::new());
        let host = Host {
            to_node: &to_node,
            from_node: &from_node,
            frames: RefCell::new(FrameReader::new()),
            number: Cell::new(0),
            session: RefCell::new(None),
            power: self.power.clone(),
        };
        let (mut stream, mut back) = (&to_node, &from_node);
        let mut receiver = Receiver::new(&mut stream);
        let mut sender = Sender::new(&mut back);
        let mut workspace = [0.0; WORKSPACE];
        let node = node::run(
            &mut receiver,
            &mut sender,
            &mut self.hardware,
            &mut workspace,
        );
        let script = async {
            // Every node says hello when it starts.
            let started = host
                .receive(|number, report| {
                    assert_eq!(number, UNASKED);
                    hello(report)
                })
                .await;
            script(&host, started).await
        };
        match select(node, script).await {
            Either::First(never) => never,
            Either::Second(outcome) => outcome,
        }
    }
}

/// Runs a new node against a host's script; returns what its actuator was told.
pub fn with_node(script: impl AsyncFnOnce(&Host)) -> Vec<Action> {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, started| {
        assert_eq!(started.policy, None);
        script(host).await;
    });
    rig.hardware.actuator.0
}
