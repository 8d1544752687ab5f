//! The image in the emulated board, through the line it has in the field.
//!
//! `cargo xtask test` builds the image and says where it is.

use super::{PATIENCE, started_again};
use agent_core::{
    agent::{AgentState, Mode},
    message::{Command, Observation, Overview, Patch, Report, Samples, Span, encode_frame},
    policy::{
        Activation, Channel, Dense, DenseWeights, Disc, Fusion, Header, Limits, Network, Norm,
        Policy, Provenance, Sensing, Text, Timing, encode,
    },
};
use endurance::{observations::Blob, soak::soak, torture::torture};
use node_link::{
    BoardOptions, Clock, EmulatedBoard, Offer, Session, SessionError,
    device_log::{Decoder, Follower},
    unreliable::Faults,
};
use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// A board that has just started and the line to it, or none on a machine without image.
fn start(clock: Clock) -> Option<(EmulatedBoard, Session)> {
    let Some(image) = env::var_os("FIRMWARE_ELF").map(PathBuf::from) else {
        // Not with eprintln!, which the test runner hides when the test passes.
        let message = b"SKIPPED: FIRMWARE_ELF is not set; `cargo xtask test` sets it\n";
        let _ = io::stderr().write_all(message);
        return None;
    };
    let options = BoardOptions {
        clock,
        ..BoardOptions::new(image)
    };
    Some(EmulatedBoard::start(&options).expect("the board boots"))
}

fn is_alive(node: &mut Session) -> bool {
    node.hello(PATIENCE).is_ok()
}

fn decoder(board: &EmulatedBoard) -> Decoder {
    Decoder::new(&board.options().image).unwrap()
}

#[test]
fn a_node_takes_any_bytes_and_still_answers() {
    let Some((_board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let mut hello = [0; 64];
    let hello = encode_frame(1, &Command::Hello, &mut hello).unwrap();
    // Numerical Recipes' generator: any bytes will do, the same ones each time.
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for round in 0..50 {
        let mut garbage: Vec<u8> = (0..round * 8).map(|_| noise()).collect();
        // A frame that is cut, and one with a wrong bit.
        garbage.extend(&hello[..hello.len() / 2]);
        garbage.push(0);
        let mut damaged = hello.to_vec();
        damaged[1] ^= 1 << (round % 8);
        garbage.extend(damaged);
        node.send_bytes(&garbage).unwrap();
        assert!(is_alive(&mut node), "after round {round}");
    }
    // Longer than its frame buffer.
    node.send_bytes(&[1; 6000]).unwrap();
    node.send_bytes(&[0]).unwrap();
    assert!(is_alive(&mut node));
    // It is still the same start, and nothing has gone wrong in it.
    assert_eq!(node.counters().starts, 1);
    assert_eq!(node.status(PATIENCE).unwrap().history.boots, 1);
}

/// Numbers in −1..1, the same ones each time.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f32 {
        // Numerical Recipes' generator.
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    }

    fn many(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A policy of the plane with the largest view a node takes and `width` outputs of its first layer.
fn plane_policy(width: usize, buffer: &mut [u32]) -> &[u8] {
    let sizes = [(20 * 20 + 80, width), (32, 32), (width + 32, 3)];
    let dense = |(inputs, outputs): (usize, usize), norm| Dense {
        inputs: inputs as u16,
        outputs: outputs as u16,
        norm,
        activation: Activation::Tanh,
    };
    let disc = |x: f32| Disc {
        centre: [x, x],
        radius: 0.06,
    };
    let header = Header {
        problem: Text::new("plane"),
        sensing: Sensing {
            axes: 2,
            window: 20,
            target: true,
            channels: [Channel::Error].into_iter().collect(),
            samples: 20,
            error_limit: 100.0,
            wide: Some([8, 10]),
        },
        network: Network {
            branch: [dense(sizes[0], Norm::Soft)].into_iter().collect(),
            frequencies: (1..=8).map(|f| f as f32).collect(),
            trunk: [dense(sizes[1], Norm::None)].into_iter().collect(),
            fusion: Fusion::Concatenate,
            head: [dense(sizes[2], Norm::None)].into_iter().collect(),
            ..Network::default()
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(5.0),
            low: [0.0; 2],
            high: [1.0; 2],
            keep_out: [0.3, 0.5, 0.7].map(disc).into_iter().collect(),
            ..Limits::default()
        },
        timing: Timing {
            period_us: 1_000,
            late_us: 3_000,
            fail_safe_us: 20_000,
        },
        workspace: 0,
        provenance: Provenance {
            tool: Text::new("test"),
            revision: Text::default(),
            seed: 0,
            steps: 0,
        },
        probe: None,
    };
    let mut noise = Noise(1);
    let numbers = sizes.map(|(inputs, outputs)| {
        let mut weights = noise.many(inputs * outputs);
        let scale = (3.0 / inputs as f32).sqrt();
        weights.iter_mut().for_each(|w| *w *= scale);
        (weights, noise.many(outputs))
    });
    let layers = numbers
        .each_ref()
        .map(|(weights, bias)| DenseWeights { weights, bias });
    encode(&header, &layers, buffer).unwrap()
}

/// Policies of about 115 KiB and of nearly the slot's 256 KiB.
#[test]
fn a_policy_of_the_plane_gives_the_same_bits_as_on_the_host() {
    let Some((_board, mut node)) = start(Clock::Wall) else {
        return;
    };
    for (width, kib) in [(56, 110..120), (124, 240..256)] {
        let mut buffer = vec![0; 1 << 17];
        let blob = plane_policy(width, &mut buffer);
        assert!(kib.contains(&(blob.len() / 1024)), "{}", blob.len());
        let policy = Policy::parse(blob).unwrap();
        let hello = node.upload(&Offer::unsigned(blob), &mut |_| ()).unwrap();
        assert_eq!(hello.policy, Some(trust::policy_id(blob)));
        let mut noise = Noise(2);
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut host = AgentState::new();
        let mut active = 0;
        for step in 0..36 {
            let mut field = noise.many(22 * 22);
            if step % 9 == 8 {
                field[11 * 22 + 11] = f32::NAN; // the agent's own cell
            }
            let (target, wide) = (noise.many(22 * 22), noise.many(160));
            let span = |k: u32| Span {
                first: (k % 12) as u16,
                last: 21 - (k % 10) as u16,
            };
            let observation = Observation {
                now_us: 1_000 * u64::from(step),
                // Across all discs, from corner to corner.
                position: [step as f32 / 35.0, (step as f32 + noise.next()) / 35.0],
                patch: Patch {
                    field: Samples::new(&field),
                    target: Samples::new(&target),
                    inside: [span(step), span(step / 2)],
                    wide: Overview {
                        field: Samples::new(&wide[..80]),
                        target: Samples::new(&wide[80..]),
                    },
                },
            };
            let expected = host.step(&policy, &mut workspace, &observation);
            match node.ask(&Command::Observe(observation), PATIENCE).unwrap() {
                Report::Action { action, .. } => {
                    let bits = |values: [f32; 2]| values.map(f32::to_bits);
                    assert_eq!(bits(action.velocity), bits(expected.velocity));
                    assert_eq!(action.force.to_bits(), expected.force.to_bits());
                    assert_eq!(action.mode, expected.mode);
                }
                other => panic!("{other:?}"),
            }
            active += usize::from(expected.mode == Mode::Active);
        }
        // All but every ninth.
        assert_eq!(active, 32);
    }
}

#[test]
fn bytes_that_are_no_policy_are_refused_with_a_reason() {
    let Some((_board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let nonsense = b"certainly not a policy, but long enough to be asked";
    match node.upload(&Offer::unsigned(nonsense), &mut |_| ()) {
        Err(SessionError::Refused(reason)) => assert!(!reason.is_empty()),
        other => panic!("{other:?}"),
    }
    match node.upload(&Offer::unsigned(&vec![0; 300 * 1024]), &mut |_| ()) {
        Err(SessionError::Refused(reason)) => assert!(reason.contains("slot"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(is_alive(&mut node));
}

#[test]
fn the_log_of_a_node_is_readable() {
    let Some((board, _node)) = start(Clock::Wall) else {
        return;
    };
    let log = decoder(&board).lines(&board.log().unwrap());
    let version = concat!("firmware ", env!("CARGO_PKG_VERSION"));
    assert!(log.iter().any(|line| line.contains(version)), "{log:#?}");
}

#[test]
fn a_node_whose_clock_counts_instructions_works_the_same() {
    let Some((_board, mut node)) = start(Clock::Instructions { shift: 10 }) else {
        return;
    };
    assert!(is_alive(&mut node));
}

#[test]
fn a_killed_board_is_started_again_and_has_its_policy() {
    let Some((mut board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let mut buffer = vec![0; 1 << 17];
    let blob = plane_policy(8, &mut buffer);
    let policy = node
        .upload(&Offer::unsigned(blob), &mut |_| ())
        .unwrap()
        .policy;
    board.kill();
    assert!(!board.is_running());
    assert!(board.exit_message().unwrap().contains("signal"));
    assert!(matches!(node.hello(PATIENCE), Err(SessionError::Line(_))));
    assert!(node.reopen().is_err());

    board.restart().unwrap();
    assert_eq!(started_again(&mut node).policy, policy);
    // Its own words, once per process.
    assert_eq!(node.counters().starts, 2);
    assert_eq!(node.last_start().unwrap().policy, policy);
}

#[test]
fn a_hung_board_says_nothing_and_goes_on_where_it_was() {
    let Some((mut board, mut node)) = start(Clock::Wall) else {
        return;
    };
    board.hang();
    assert!(board.is_running());
    let moment = Duration::from_millis(50);
    match node.hello(moment) {
        Err(SessionError::Timeout(waited)) => assert_eq!(waited, moment),
        other => panic!("{other:?}"),
    }
    board.resume();
    assert!(is_alive(&mut node));
    // The same process: nobody has started again but the watchdog, which had no time to.
    assert_eq!(node.counters().starts, 1);
    assert_eq!(node.counters().reopened, 0);
}

#[test]
fn the_reset_pin_starts_a_node_anew_on_the_same_line() {
    let Some((mut board, mut node)) = start(Clock::Wall) else {
        return;
    };
    board.reset().unwrap();
    node.wait_for_start(PATIENCE).unwrap();
    assert!(is_alive(&mut node));
    assert_eq!(node.counters().starts, 2);
    assert_eq!(node.counters().reopened, 0);
}

#[test]
fn a_log_that_grows_reads_like_the_whole() {
    let Some((mut board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let decoder = Arc::new(decoder(&board));
    let mut follower = Follower::new(decoder.clone());
    let mut followed = Vec::new();
    let mut offset = 0;
    let mut follow = |board: &EmulatedBoard| {
        // A byte at a time: no line may be read before its end has come.
        for byte in board.log_from(offset).unwrap() {
            followed.extend(follower.lines(&[byte]));
            offset += 1;
        }
        followed.len()
    };
    assert!(follow(&board) > 0);
    board.restart().unwrap();
    started_again(&mut node);
    follow(&board);
    board.kill();
    follow(&board);
    assert_eq!(followed, decoder.lines(&board.log().unwrap()));
}

fn shipped() -> Blob {
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    Blob::read(&Path::new(policies).join("heat-1d.policy")).unwrap()
}

/// `cargo xtask soak --link qemu` is the same with a million frames.
#[test]
fn no_wrong_action_comes_from_a_board_over_a_bad_line() {
    let Some((_board, node)) = start(Clock::Wall) else {
        return;
    };
    let soaked = soak(node, &shipped(), 5_000, Faults::each(0.01), &mut |_| ()).unwrap();
    assert_eq!(soaked.wrong, 0);
    // What was asked twice was not done twice.
    assert!(soaked.node.repeated > 0);
    assert_eq!(u64::from(soaked.node.steps), soaked.actions);
}

/// `cargo xtask torture` is the same with a million frames.
#[test]
fn malformed_frames_do_not_keep_a_board_from_answering() {
    let Some((_board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let tortured = torture(&mut node, &shipped(), 5_000, &mut |_| ()).unwrap();
    assert_eq!(tortured.sent.iter().sum::<u64>(), 5_000);
}

/// The time they take together is that of their instructions: nobody waits for anybody.
#[test]
fn many_boards_start_at_once() {
    if start(Clock::Wall).is_none() {
        return;
    }
    let starts: Vec<_> = (0..8)
        .map(|_| thread::spawn(|| start(Clock::Wall)))
        .collect();
    for start in starts {
        let (_board, mut node) = start.join().unwrap().unwrap();
        assert!(is_alive(&mut node));
    }
}

#[test]
fn a_silent_node_is_given_up_on() {
    let Some((_board, mut node)) = start(Clock::Wall) else {
        return;
    };
    let deadline = Instant::now() + Duration::from_millis(50);
    assert!(node.receive(deadline).unwrap().is_none());
    assert!(Instant::now() >= deadline);
}

#[test]
fn an_image_that_is_not_there_is_named_with_the_way_to_build_it() {
    let error = EmulatedBoard::start(&BoardOptions::new("no/such/image")).err();
    let message = error.unwrap().to_string();
    assert!(message.contains("no/such/image"), "{message}");
    assert!(message.contains("cargo xtask firmware build"), "{message}");
}
