//! The node on the host, over pipes in memory.

use std::cell::RefCell;

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{
        CHUNK, Command, FrameReader, Observation, PROTOCOL, Patch, Report, Span, decode_frame,
        encode_frame,
    },
    policy::{
        Activation, Channel, Dense, DenseWeights, Fusion, Header, Limits, Network, Norm, Policy,
        Provenance, Sensing, Timing, encode,
    },
};
use embassy_futures::{
    block_on,
    select::{Either, select},
};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, pipe::Pipe};
use embassy_time::{Duration, Timer, with_timeout};
use firmware::{
    link::{Receiver, Sender},
    node::{self, Actuator, WORKSPACE},
    slot::MemorySlot,
};

type Line = Pipe<NoopRawMutex, 4096>;

const TIMING: Timing = Timing {
    period_us: 1_000,
    late_us: 20_000,
    fail_safe_us: 60_000,
};

/// A small policy whose force follows the mean error of its 4 cells: one layer.
fn policy(buffer: &mut [u32]) -> &[u8] {
    policy_that_sees(4, buffer)
}

/// The same with another window, of which 4 samples are taken.
fn policy_that_sees(window: u16, buffer: &mut [u32]) -> &[u8] {
    let dense = Dense {
        inputs: 4,
        outputs: 1,
        norm: Norm::None,
        activation: Activation::Identity,
    };
    let header = Header {
        problem: "test",
        sensing: Sensing {
            axes: 1,
            window,
            target: false,
            channels: [Channel::Error].into_iter().collect(),
            samples: 4,
            error_limit: 10.0,
            wide: None,
        },
        network: Network {
            branch: Default::default(),
            frequencies: Default::default(),
            trunk: Default::default(),
            fusion: Fusion::Concatenate,
            head: [dense].into_iter().collect(),
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
        timing: TIMING,
        workspace: 0,
        provenance: Provenance {
            tool: "test",
            revision: "",
            seed: 0,
            steps: 0,
        },
        probe: None,
    };
    let layer = DenseWeights {
        weights: &[0.25; 4],
        bias: &[0.0],
    };
    encode(&header, &[layer], buffer).expect("the test's policy is valid")
}

fn observation(field: &[f32; 6], now_us: u64) -> Observation<'_> {
    let patch = Patch::line(field, &[], Span { first: 0, last: 5 });
    Observation {
        now_us,
        position: [0.5, 0.0],
        patch,
    }
}

/// The host's end of the line.
struct Host<'a> {
    to_node: &'a Line,
    from_node: &'a Line,
    frames: RefCell<FrameReader<512>>,
}

impl Host<'_> {
    async fn send(&self, command: &Command<'_>) {
        let mut buffer = [0; 2048];
        let frame = encode_frame(command, &mut buffer).unwrap();
        self.to_node.write_all(frame).await;
    }

    async fn receive(&self, look: impl FnOnce(Report<'_>)) {
        loop {
            let mut byte = [0];
            with_timeout(Duration::from_secs(5), self.from_node.read(&mut byte))
                .await
                .expect("the node answers");
            let mut frames = self.frames.borrow_mut();
            if let Some(frame) = frames.push(byte[0]) {
                return look(decode_frame(frame.unwrap()).unwrap());
            }
        }
    }

    async fn ask(&self, command: Command<'_>, look: impl FnOnce(Report<'_>)) {
        self.send(&command).await;
        self.receive(look).await;
    }

    async fn expect(&self, command: Command<'_>, expected: Report<'_>) {
        self.ask(command, |report| assert_eq!(report, expected))
            .await;
    }

    async fn begin(&self, policy: &[u8]) {
        let length = policy.len() as u32;
        self.expect(Command::PolicyBegin { length }, Report::Stored { next: 0 })
            .await;
        for (k, bytes) in policy.chunks(CHUNK).enumerate() {
            let offset = (k * CHUNK) as u32;
            let next = offset + bytes.len() as u32;
            self.expect(
                Command::PolicyChunk { offset, bytes },
                Report::Stored { next },
            )
            .await;
        }
    }

    async fn upload(&self, policy: &[u8]) {
        self.begin(policy).await;
        let id = Policy::parse(policy).unwrap().id();
        let hello = Report::Hello {
            protocol: PROTOCOL,
            policy: Some(id),
        };
        self.expect(Command::PolicyCommit, hello).await;
    }
}

/// What the actuator was told, in order.
struct Told<'a>(&'a RefCell<Vec<Action>>);

impl Actuator for Told<'_> {
    fn apply(&mut self, action: &Action) {
        self.0.borrow_mut().push(*action);
    }
}

/// Runs a node against a host's script; returns what its actuator was told.
fn with_node(script: impl AsyncFnOnce(&Host)) -> Vec<Action> {
    let (to_node, from_node) = (Line::new(), Line::new());
    let told = RefCell::new(Vec::new());
    let host = Host {
        to_node: &to_node,
        from_node: &from_node,
        frames: RefCell::new(FrameReader::new()),
    };
    let mut memory = vec![[0u32; 4]; 512]; // 8 KiB, aligned
    let mut slot = MemorySlot(bytes_of(&mut memory));
    let (mut stream, mut back) = (&to_node, &from_node);
    let mut receiver = Receiver::new(&mut stream);
    let mut sender = Sender::new(&mut back);
    let mut workspace = [0.0; WORKSPACE];
    let mut actuator = Told(&told);
    let node = node::run(
        &mut receiver,
        &mut sender,
        &mut slot,
        &mut workspace,
        &mut actuator,
    );
    let script = async {
        // Every node says hello when it starts.
        let started = Report::Hello {
            protocol: PROTOCOL,
            policy: None,
        };
        host.receive(|report| assert_eq!(report, started)).await;
        script(&host).await;
    };
    match block_on(select(node, script)) {
        Either::First(never) => never,
        Either::Second(()) => told.take(),
    }
}

fn bytes_of(memory: &mut [[u32; 4]]) -> &mut [u8] {
    bytemuck::cast_slice_mut(memory)
}

#[test]
fn a_node_without_policy_says_so_and_takes_one() {
    let mut buffer = [0; 256];
    let policy = policy(&mut buffer);
    with_node(async |host| {
        let nobody = Report::Hello {
            protocol: PROTOCOL,
            policy: None,
        };
        host.expect(Command::Hello, nobody).await;
        let observe = Command::Observe {
            seq: 1,
            observation: observation(&[0.0; 6], 0),
        };
        host.ask(observe, |r| assert!(matches!(r, Report::Rejected { .. })))
            .await;
        host.upload(policy).await;
    });
}

#[test]
fn its_actions_are_those_of_the_agent_in_process() {
    let mut buffer = [0; 256];
    let blob = policy(&mut buffer);
    let policy = Policy::parse(blob).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut agent = Agent::new(policy, &mut workspace).unwrap();
    with_node(async |host| {
        host.upload(blob).await;
        for seq in 0..100 {
            let x = (seq as f32 * 0.7).sin();
            let x = if seq % 9 == 4 { f32::NAN } else { x };
            let field = [0.0, x, -0.3, x * x, 1e30, 0.0];
            let seen = observation(&field, u64::from(seq) * 1_000);
            let expected = agent.step(&seen.patch, seen.position, seen.now_us);
            let observe = Command::Observe {
                seq,
                observation: seen,
            };
            host.ask(observe, |report| match report {
                Report::Action { seq: s, action, .. } => {
                    assert_eq!((s, action), (seq, expected));
                }
                other => panic!("{other:?}"),
            })
            .await;
        }
    });
}

#[test]
fn a_node_left_alone_holds_then_fails_safe_but_answers_as_if_no_time_had_passed() {
    let mut buffer = [0; 256];
    let blob = policy(&mut buffer);
    let told = with_node(async |host| {
        host.upload(blob).await;
        let active = observation(&[1.0; 6], 5_000);
        let observe = |seq, observation| Command::Observe { seq, observation };
        host.ask(observe(0, active), |_| ()).await;
        // Longer than fail_safe_us on the node's clock; 1 ms on the host's.
        Timer::after(Duration::from_millis(200)).await;
        let broken = observation(&[f32::NAN; 6], 6_000);
        host.ask(observe(1, broken), |report| match report {
            Report::Action { action, .. } => assert_eq!(action.mode, Mode::Holding),
            other => panic!("{other:?}"),
        })
        .await;
    });
    let modes: Vec<Mode> = told.iter().map(|action| action.mode).collect();
    assert_eq!(modes.first(), Some(&Mode::Active));
    assert!(modes.contains(&Mode::Holding));
    let alone = &told[..told.len() - 1];
    assert_eq!(alone.last(), Some(&Action::none(Mode::FailedSafe)));
    let safe = modes.iter().filter(|m| **m == Mode::FailedSafe).count();
    assert_eq!(safe, 1, "a node that has failed safe sleeps");
}

#[test]
fn garbage_between_frames_is_dropped_and_the_next_command_answered() {
    with_node(async |host| {
        let mut frame = [0; 64];
        let frame = encode_frame(&Command::Hello, &mut frame).unwrap();
        let mut wrong_sum = frame.to_vec();
        wrong_sum[1] ^= 4;
        let overlong = [7; 6000];
        for garbage in [&b"\0\0\0"[..], b"hello", &frame[..2], &wrong_sum, &overlong] {
            host.to_node.write_all(garbage).await;
            host.to_node.write_all(&[0]).await;
        }
        host.ask(Command::Hello, |r| {
            assert!(matches!(r, Report::Hello { policy: None, .. }));
        })
        .await;
    });
}

#[test]
fn a_refused_policy_is_explained_and_the_node_takes_another() {
    let mut buffer = [0; 256];
    let good = policy(&mut buffer);
    let mut bad = good.to_vec();
    *bad.last_mut().unwrap() ^= 1;
    with_node(async |host| {
        // Cut, damaged, none at all: each is refused, and asking again gives an answer again.
        for blob in [&good[..good.len() - 4], &bad, b"0123"] {
            host.begin(blob).await;
            for _ in 0..2 {
                host.ask(Command::PolicyCommit, |report| match report {
                    Report::PolicyRefused { reason } => assert!(!reason.is_empty()),
                    other => panic!("{other:?}"),
                })
                .await;
            }
        }
        host.upload(good).await;
    });
}

/// 1000 cells are a frame of 4.1 kB and 1200 one of 4.9 kB; the node takes 4.6.
#[test]
fn a_policy_that_could_not_be_shown_its_window_is_refused() {
    let (mut small, mut large) = ([0; 8192], [0; 8192]);
    let small = policy_that_sees(1000, &mut small);
    let large = policy_that_sees(1200, &mut large);
    with_node(async |host| {
        host.begin(large).await;
        host.ask(Command::PolicyCommit, |report| match report {
            Report::PolicyRefused { reason } => assert!(reason.contains("frames"), "{reason}"),
            other => panic!("{other:?}"),
        })
        .await;
        host.upload(small).await;
    });
}

#[test]
fn a_policy_that_does_not_fit_is_rejected_and_the_old_one_stays() {
    let mut buffer = [0; 256];
    let blob = policy(&mut buffer);
    with_node(async |host| {
        host.upload(blob).await;
        for length in [8193, u32::MAX] {
            host.ask(Command::PolicyBegin { length }, |r| {
                assert!(matches!(r, Report::Rejected { .. }));
            })
            .await;
        }
        host.ask(Command::Hello, |r| {
            assert!(matches!(
                r,
                Report::Hello {
                    policy: Some(_),
                    ..
                }
            ));
        })
        .await;
    });
}

#[test]
fn chunks_out_of_order_are_not_stored_and_the_answer_says_where_to_go_on() {
    with_node(async |host| {
        let chunk = |offset, bytes| Command::PolicyChunk { offset, bytes };
        host.ask(chunk(0, b"1234"), |r| {
            assert!(matches!(r, Report::Rejected { .. }));
        })
        .await;
        let begin = Command::PolicyBegin { length: 8 };
        host.expect(begin, Report::Stored { next: 0 }).await;
        host.expect(chunk(4, b"5678"), Report::Stored { next: 0 })
            .await;
        host.expect(chunk(0, b"1234"), Report::Stored { next: 4 })
            .await;
        host.expect(chunk(0, b"1234"), Report::Stored { next: 4 })
            .await;
        host.ask(chunk(4, b"56789"), |r| {
            assert!(matches!(r, Report::Rejected { .. }));
        })
        .await;
    });
}

#[test]
fn a_host_that_does_not_read_delays_the_node_but_does_not_stop_it() {
    with_node(async |host| {
        // Far more answers than the line holds.
        for _ in 0..400 {
            host.send(&Command::Hello).await;
        }
        Timer::after(Duration::from_millis(500)).await;
        // Drain: some answers were cut, those that are whole are right.
        host.from_node.clear();
        host.send(&Command::Hello).await;
        let mut byte = [0];
        while byte[0] == 0 {
            with_timeout(Duration::from_secs(5), host.from_node.read(&mut byte))
                .await
                .expect("the node goes on");
        }
    });
}
