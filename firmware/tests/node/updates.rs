//! Policies that replace each other on a node that goes on controlling.

use agent_core::{
    agent::Mode,
    message::{Command, Mishap, Report, SlotState},
};
use embassy_time::Duration;
use firmware::{store::RECORD_AREA, upload::STALL};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::rig::{
    Rig, begin, first_action, id, large_policy, manifest, manifest_of, observation, policy,
    policy_that_waits, with_node,
};

const FIELD: [f32; 6] = [0.0, 0.5, 0.5, 0.5, 0.5, 0.0];

#[test]
fn what_was_taken_runs_at_the_next_start() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| host.upload(&policy()).await);
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&policy())));
        let seen = observation(&FIELD, 0);
        assert_eq!(host.observe(seen).await, first_action(&policy(), &seen));
    });
}

#[test]
fn an_actuator_is_told_by_which_policys_limit_to_take_its_actions() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| host.upload(&policy()).await);
    rig.live(async |_, _| ());
    // No policy, one with a limit of 2, and the same one at the next start.
    assert_eq!(rig.hardware.actuator.2, [0.0, 2.0, 2.0]);
}

#[test]
fn updates_go_to_the_slots_in_turn_and_a_first_step_proves_them() {
    let mut rig = Rig::<1, 16384>::new();
    rig.live(async |host, _| {
        let [empty, on_trial, proven] = [SlotState::Empty, SlotState::OnTrial, SlotState::Proven];
        assert_eq!(host.slots().await, (None, [empty, empty]));
        host.upload(&policy()).await;
        assert_eq!(host.slots().await, (Some(0), [on_trial, empty]));
        // What is not seen does not run the network.
        host.observe(observation(&[f32::NAN; 6], 0)).await;
        assert_eq!(host.slots().await, (Some(0), [on_trial, empty]));
        host.observe(observation(&FIELD, 0)).await;
        assert_eq!(host.slots().await, (Some(0), [proven, empty]));
        host.upload(&large_policy(0.1)).await;
        assert_eq!(host.slots().await, (Some(1), [proven, on_trial]));
        host.observe(observation(&FIELD, 0)).await;
        host.begin(&large_policy(0.3)).await;
        assert_eq!(host.slots().await, (Some(1), [empty, proven]));
        host.upload(&large_policy(0.2)).await;
        assert_eq!(host.slots().await, (Some(0), [on_trial, proven]));
    });
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&large_policy(0.2))));
        let on_trial = [SlotState::OnTrial, SlotState::Proven];
        assert_eq!(host.slots().await, (Some(0), on_trial));
    });
}

/// An agent whose every other command is one of an upload gives the actions of one that is left alone.
#[test]
fn an_upload_that_is_refused_does_not_interrupt_control() {
    let mut bad = large_policy(0.3);
    *bad.last_mut().unwrap() ^= 1;
    let old = policy_that_waits(10_000, 20_000);
    let fields: Vec<[f32; 6]> = (0..40).map(|k| [(k as f32).sin(); 6]).collect();
    let mut alone = Vec::new();
    with_node(async |host| {
        host.upload(&old).await;
        for (k, field) in fields.iter().enumerate() {
            alone.push(host.observe(observation(field, k as u64 * 1_000)).await);
        }
    });
    let told = with_node(async |host| {
        host.upload(&old).await;
        let chunks = bad.chunks(512).enumerate();
        let mut chunks = chunks.map(|(k, bytes)| Command::PolicyChunk {
            offset: k as u32 * 512,
            bytes,
        });
        let manifest = manifest(&bad);
        host.expect(begin(&manifest), Report::Stored { next: 0 })
            .await;
        for (k, field) in fields.iter().enumerate() {
            match chunks.next() {
                Some(chunk) => {
                    host.ask(chunk, |r| assert!(matches!(r, Report::Stored { .. })))
                        .await;
                }
                None => {
                    let reason = host.refusal().await;
                    assert!(reason.contains("checksum"), "{reason}");
                }
            }
            let action = host.observe(observation(field, k as u64 * 1_000)).await;
            assert_eq!(action, alone[k], "step {k}");
        }
        assert_eq!(host.hello().await.policy, Some(id(&old)));
    });
    // Its actuator was never told to stop either: nothing but the start and the actions.
    assert_eq!(told[2..], alone);
}

/// A chip with large sectors keeps the core for a second; the agent may be blind for less.
#[test]
fn an_actuator_is_stopped_before_an_erasure_that_nobody_could_interrupt() {
    let mut rig = Rig::<1, 16384>::new();
    rig.live(async |host, _| {
        host.upload(&policy_that_waits(800, 900)).await;
        let before = host.observe(observation(&FIELD, 0)).await;
        host.begin(&large_policy(0.1)).await;
        assert_eq!(host.observe(observation(&FIELD, 0)).await, before);
    });
    // When it started, when the policy took over, and then once: one sector holds the new one.
    let started = [Mode::Waiting; 2];
    let updated = [Mode::Active, Mode::FailedSafe, Mode::Active];
    assert_eq!(rig.modes(), [&started[..], &updated[..]].concat());
}

/// Dies as a panic would make it.
fn die(_: Mishap) {
    panic!("provoked");
}

/// A life of the node that ends in its first control step.
fn fail(rig: &mut Rig<16, 4096>) {
    rig.hardware.provoke = Some(die);
    let life = catch_unwind(AssertUnwindSafe(|| {
        rig.live(async |host, _| host.ask(Command::Provoke(Mishap::Panic), |_| ()).await);
    }));
    assert!(life.is_err(), "the node lives on");
}

#[test]
fn a_policy_that_fails_three_times_is_given_up_for_the_one_before() {
    let mut rig = Rig::<16, 4096>::new();
    let (old, new) = (policy(), large_policy(0.1));
    rig.live(async |host, _| {
        host.upload(&old).await;
        host.observe(observation(&FIELD, 0)).await;
        host.upload(&new).await;
    });
    for _ in 0..3 {
        // A start at which nothing is asked is no try.
        rig.live(async |_, started| assert_eq!(started.policy, Some(id(&new))));
        fail(&mut rig);
    }
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&old)));
        let fallen_back = [SlotState::Proven, SlotState::GivenUp];
        assert_eq!(host.slots().await, (Some(0), fallen_back));
        let seen = observation(&FIELD, 0);
        assert_eq!(host.observe(seen).await, first_action(&old, &seen));
        // And another update takes the place of the one that failed.
        host.upload(&large_policy(0.2)).await;
        host.observe(observation(&FIELD, 0)).await;
        let updated = [SlotState::Proven, SlotState::Proven];
        assert_eq!(host.slots().await, (Some(1), updated));
    });
    fail(&mut rig);
    rig.live(async |_, started| assert_eq!(started.policy, Some(id(&large_policy(0.2)))));
}

#[test]
fn two_failures_and_a_success_prove_a_policy_for_good() {
    let mut rig = Rig::<16, 4096>::new();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.observe(observation(&FIELD, 0)).await;
        host.upload(&large_policy(0.1)).await;
    });
    fail(&mut rig);
    fail(&mut rig);
    rig.live(async |host, _| host.observe(observation(&FIELD, 0)).await);
    for _ in 0..4 {
        fail(&mut rig);
    }
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, Some(id(&large_policy(0.1))));
}

/// Rather a policy that has failed than none: there is nothing to go back to.
#[test]
fn a_policy_without_another_is_not_given_up() {
    let mut rig = Rig::<16, 4096>::new();
    rig.live(async |host, _| host.upload(&policy()).await);
    for _ in 0..4 {
        fail(&mut rig);
    }
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&policy())));
        let alone = [SlotState::GivenUp, SlotState::Empty];
        assert_eq!(host.slots().await, (Some(0), alone));
        host.observe(observation(&FIELD, 0)).await;
        let proven = [SlotState::Proven, SlotState::Empty];
        assert_eq!(host.slots().await, (Some(0), proven));
    });
}

#[test]
fn a_policy_that_has_gone_bad_in_flash_is_told_and_the_other_runs() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.upload(&large_policy(0.1)).await;
    });
    let expect_the_other = |rig: &mut Rig<4, 4096>| {
        rig.live(async |host, started| {
            assert_eq!(started.policy, Some(id(&policy())));
            let states = [SlotState::OnTrial, SlotState::Refused];
            assert_eq!(host.slots().await, (Some(0), states));
        });
    };
    rig.hardware.slots[1].bytes_mut()[3000] ^= 1;
    expect_the_other(&mut rig);
    // A whole policy, but not the one of which the record speaks.
    let stranger = large_policy(0.2);
    let blob = &mut rig.hardware.slots[1].bytes_mut()[RECORD_AREA..];
    blob[..stranger.len()].copy_from_slice(&stranger);
    expect_the_other(&mut rig);
}

#[test]
fn the_same_policy_again_is_an_update_like_any_other() {
    with_node(async |host| {
        for slot in [0, 1, 0] {
            host.upload(&policy()).await;
            assert_eq!(host.slots().await.0, Some(slot));
        }
        let reason = host.refusal().await;
        assert!(reason.contains("no upload under way"), "{reason}");
    });
}

#[test]
fn an_upload_that_stalls_is_dropped_and_the_node_runs_on() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.observe(observation(&FIELD, 0)).await;
        let manifest = manifest_of(2000);
        host.expect(begin(&manifest), Report::Stored { next: 0 })
            .await;
        // Nobody is kept busy: to the node it is as if its host had gone.
        host_clock::pass(STALL + Duration::from_millis(10));
        let chunk = Command::PolicyChunk {
            offset: 0,
            bytes: &[0; 100],
        };
        host.expect_rejection(chunk).await;
        host.observe(observation(&FIELD, 1_000)).await;
        host.upload(&large_policy(0.1)).await;
    });
}

/// As flash does that wears out. The step that finds it is not taken; the next one is the other's.
#[test]
fn a_policy_that_goes_bad_while_it_runs_gives_way_to_the_other() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.observe(observation(&FIELD, 0)).await;
        host.upload(&large_policy(0.1)).await;
    });
    // The mark of its first try is written, and a bit of the blob flips beside it.
    rig.hardware.slots[1].weak_at = Some(3000);
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&large_policy(0.1))));
        let seen = observation(&FIELD, 0);
        host.expect_rejection(Command::Observe(seen)).await;
        assert_eq!(host.hello().await.policy, Some(id(&policy())));
        assert_eq!(host.observe(seen).await, first_action(&policy(), &seen));
        let states = [SlotState::Proven, SlotState::Refused];
        assert_eq!(host.slots().await, (Some(0), states));
        // The next one goes to the slot that failed.
        host.upload(&large_policy(0.2)).await;
        assert_eq!(host.slots().await.0, Some(1));
    });
}
