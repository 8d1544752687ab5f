//! The node on the host, over pipes in memory.

mod chip;
mod line;
mod neighbours;
mod power_cut;
mod rig;
mod standalone;
mod trust;
mod updates;
mod watchdog;

use ::trust::{LinkKey, Rights};
use agent_core::{
    agent::{Action, Agent, Mode},
    message::{
        Command, Counters, History, Mishap, PolicyId, Report, ResetCause, Slot, SlotState, Status,
        encode_frame, encode_sealed,
    },
};
use embassy_time::{Duration, Timer};
use firmware::link::REPORT_FRAME;
use rig::{Restarted, Rig, observation, parsed, policy, policy_that_sees, with_node};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_node_without_policy_says_so_and_takes_one() {
    with_node(async |host| {
        assert_eq!(host.hello().await.policy, None);
        let observe = Command::Observe(observation(&[0.0; 6], 0));
        host.expect_rejection(observe).await;
        host.upload(&policy()).await;
        assert_eq!(host.hello().await.policy, Some(rig::id(&policy())));
    });
}

#[test]
fn its_actions_are_those_of_the_agent_in_process() {
    let blob = policy();
    parsed(&blob, |policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        with_node(async |host| {
            host.upload(&blob).await;
            for k in 0..100 {
                let x = (k as f32 * 0.7).sin();
                let x = if k % 9 == 4 { f32::NAN } else { x };
                let field = [0.0, x, -0.3, x * x, 1e30, 0.0];
                let seen = observation(&field, k * 1_000);
                let expected = agent.step(&seen.patch, seen.position, seen.now_us);
                assert_eq!(host.observe(seen).await, expected);
            }
        });
    });
}

#[test]
fn a_node_left_alone_holds_then_fails_safe_but_answers_as_if_no_time_had_passed() {
    let told = with_node(async |host| {
        host.upload(&policy()).await;
        host.observe(observation(&[1.0; 6], 5_000)).await;
        // Longer than fail_safe_us on the node's clock; 1 ms on the host's.
        Timer::after(Duration::from_millis(200)).await;
        let broken = host.observe(observation(&[f32::NAN; 6], 6_000)).await;
        assert_eq!(broken.mode, Mode::Holding);
    });
    let modes: Vec<Mode> = told.iter().map(|action| action.mode).collect();
    // At its start, when the policy took over, and at the first observation.
    assert_eq!(modes[..3], [Mode::Waiting, Mode::Waiting, Mode::Active]);
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
        let frame = encode_frame(1, &Command::Hello, &mut frame).unwrap();
        let mut wrong_sum = frame.to_vec();
        wrong_sum[2] ^= 4;
        let overlong = [7; 6000];
        for garbage in [&b"\0\0\0"[..], b"hello", &frame[..2], &wrong_sum, &overlong] {
            host.to_node.write_all(garbage).await;
            host.to_node.write_all(&[0]).await;
        }
        assert_eq!(host.hello().await.policy, None);
    });
}

#[test]
fn a_refused_policy_is_explained_and_the_node_takes_another() {
    let good = policy();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    with_node(async |host| {
        // Cut, damaged, none at all: each is refused, and asking again gives an answer again.
        for blob in [&good[..good.len() - 4], &bad, b"0123"] {
            host.begin(blob).await;
            for _ in 0..2 {
                assert_ne!(host.refusal().await, "");
            }
        }
        host.upload(&good).await;
    });
}

#[test]
fn a_policy_is_refused_before_all_of_it_has_come() {
    let blob = policy();
    with_node(async |host| {
        let length = blob.len() as u32;
        let manifest = rig::manifest(&blob);
        host.expect(rig::begin(&manifest), Report::Stored { next: 0 })
            .await;
        let (start, rest) = blob.split_at(100);
        let chunk = |offset, bytes| Command::PolicyChunk { offset, bytes };
        host.expect(chunk(0, start), Report::Stored { next: 100 })
            .await;
        let reason = host.refusal().await;
        assert!(reason.starts_with("only 100 of"), "{reason}");
        // The upload goes on where it was.
        host.expect(chunk(100, rest), Report::Stored { next: length })
            .await;
        let taken = host.ask(Command::PolicyCommit, rig::hello).await;
        assert_eq!(taken.policy, Some(rig::id(&blob)));
    });
}

/// 1000 cells are a frame of 4.1 kB and 1200 one of 4.9 kB; the node takes 4.6.
#[test]
fn a_policy_that_could_not_be_shown_its_window_is_refused() {
    with_node(async |host| {
        host.begin(&policy_that_sees(1200)).await;
        let reason = host.refusal().await;
        assert!(reason.contains("frames"), "{reason}");
        host.upload(&policy_that_sees(1000)).await;
    });
}

#[test]
fn a_policy_that_does_not_fit_is_rejected_and_the_old_one_stays() {
    with_node(async |host| {
        host.upload(&policy()).await;
        // A slot of 16 KiB less the record.
        for length in [16384 - 512 + 1, u32::MAX] {
            let manifest = rig::manifest_of(length);
            let reason = host.refusal_of(rig::begin(&manifest)).await;
            assert!(reason.contains("does not fit"), "{reason}");
        }
        assert_eq!(host.hello().await.policy, Some(rig::id(&policy())));
    });
}

#[test]
fn chunks_out_of_order_are_not_stored_and_the_answer_says_where_to_go_on() {
    with_node(async |host| {
        let chunk = |offset, bytes| Command::PolicyChunk { offset, bytes };
        host.expect_rejection(chunk(0, b"1234")).await;
        let manifest = rig::manifest_of(8);
        let begin = rig::begin(&manifest);
        host.expect(begin, Report::Stored { next: 0 }).await;
        host.expect(chunk(4, b"5678"), Report::Stored { next: 0 })
            .await;
        host.expect(chunk(0, b"1234"), Report::Stored { next: 4 })
            .await;
        host.expect(chunk(0, b"1234"), Report::Stored { next: 4 })
            .await;
        host.expect_rejection(chunk(4, b"56789")).await;
        // A host that begins again with the same goes on where it was.
        host.expect(begin, Report::Stored { next: 4 }).await;
    });
}

#[test]
fn a_host_that_does_not_read_delays_the_node_but_does_not_stop_it() {
    with_node(async |host| {
        // Far more answers than the line holds.
        for number in 1..400 {
            host.send(number, &Command::Hello).await;
        }
        Timer::after(Duration::from_millis(500)).await;
        // Drain: some answers were cut, those that are whole are right.
        host.from_node.clear();
        host.send(400, &Command::Hello).await;
        let mut byte = [0];
        while byte[0] == 0 {
            embassy_time::with_timeout(Duration::from_secs(5), host.from_node.read(&mut byte))
                .await
                .expect("the node goes on");
        }
    });
}

#[test]
fn a_reset_makes_the_agent_forget_and_a_restart_makes_the_node() {
    let mut rig = Rig::<4, 4096>::new();
    let life = catch_unwind(AssertUnwindSafe(|| {
        rig.live(async |host, _| {
            host.upload(&policy()).await;
            host.observe(observation(&[1.0; 6], 0)).await;
            host.ask(Command::Reset, rig::hello).await;
            // An agent that had seen something would hold.
            let broken = host.observe(observation(&[f32::NAN; 6], 0)).await;
            assert_eq!(broken.mode, Mode::Waiting);
            host.observe(observation(&[1.0; 6], 0)).await;
            host.ask(Command::Restart, |report| panic!("{report:?}"))
                .await;
        });
    }));
    assert!(life.unwrap_err().is::<Restarted>());
    let told = &rig.hardware.actuator.0;
    assert_eq!(told.last(), Some(&Action::none(Mode::FailedSafe)));
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, Some(rig::id(&policy())));
}

#[test]
fn an_image_that_ships_cannot_be_provoked() {
    with_node(async |host| {
        let mishaps = [
            Mishap::Panic,
            Mishap::Hang,
            Mishap::StackOverflow,
            Mishap::Fault,
        ];
        for mishap in mishaps {
            host.expect_rejection(Command::Provoke(mishap)).await;
        }
    });
}

#[test]
fn names_and_last_words_are_cut_to_what_a_status_has_room_for() {
    let mut rig = Rig::<4, 4096>::new();
    rig.hardware.board = "a board with a name that is much longer than any name should be";
    rig.hardware.last_words = "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé!";
    rig.hardware.history.faults = u32::MAX;
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.ask(Command::Status, |report| match report {
            Report::Status(status) => {
                assert_eq!(status.board.len(), 32);
                assert_eq!(status.last_words, "é".repeat(48));
                assert_eq!(status.firmware, env!("CARGO_PKG_VERSION"));
                assert_eq!(status.history.faults, u32::MAX);
            }
            other => panic!("{other:?}"),
        })
        .await;
    });
}

/// Every text as long as a node lets it be, every number as long as it can be.
#[test]
fn a_status_fits_its_frame_however_much_there_is_to_tell() {
    let slot = Slot {
        policy: Some(PolicyId([0xff; 32])),
        state: SlotState::GivenUp,
    };
    let status = Status {
        board: &"b".repeat(32),
        firmware: "1000.1000.1000-a",
        fleet: &"f".repeat(40),
        active: Some(1),
        slots: [slot; 2],
        counter: u64::MAX,
        history: History {
            reset: ResetCause::Fault,
            boots: u32::MAX,
            watchdog_bites: u32::MAX,
            panics: u32::MAX,
            faults: u32::MAX,
        },
        last_words: &"w".repeat(96),
        counters: Counters {
            uptime_us: u64::MAX,
            steps: u32::MAX,
            commands: u32::MAX,
            rejected: u32::MAX,
            repeated: u32::MAX,
            stale: u32::MAX,
            frame_ticks: u32::MAX,
            stack_used: u32::MAX,
            stack_size: u32::MAX,
        },
    };
    let mut frame = [0; REPORT_FRAME];
    let key = LinkKey::new([1; 32]).grant(Rights::ALL);
    let key = key.session(&[2; 16], &[3; 16]);
    let frame = encode_sealed(
        u32::MAX,
        &Report::Status(status),
        &key.reports(),
        &mut frame,
    );
    assert_eq!(
        frame.unwrap().len(),
        365,
        "as the constant's comment reckons"
    );
}
