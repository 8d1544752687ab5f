//! Power that goes at any moment of an update.

use std::cmp::Ordering;

use agent_core::message::{PolicyId, SlotState};

use crate::{
    chip::{Cut, next},
    rig::{Rig, WentDark, first_action, id, large_policy, observation, policy},
};

const FIELD: [f32; 6] = [0.0, 0.5, 0.25, 0.5, 0.5, 0.0];

const CUTS: [Cut; 8] = [
    Cut::Before,
    Cut::Part(0),
    Cut::Part(1),
    Cut::Part(85),
    Cut::Part(255),
    Cut::Scattered(1),
    Cut::Scattered(2),
    Cut::After,
];

/// A new policy comes in and takes its first step.
fn update<const W: usize, const E: usize>(
    rig: &mut Rig<W, E>,
    new: &[u8],
    chunk: usize,
) -> Result<(), WentDark> {
    rig.live(async |host, _| {
        host.try_upload(new, chunk).await?;
        host.try_observe(observation(&FIELD, 0)).await?;
        Ok(())
    })
}

/// Starts the node with good power: it runs one of these policies, and as an agent in process would.
fn started_with<const W: usize, const E: usize>(
    rig: &mut Rig<W, E>,
    policies: &[&[u8]],
) -> Option<PolicyId> {
    rig.power.on(None);
    rig.live(async |host, started| {
        let running = started.policy?;
        let blob = policies.iter().find(|blob| id(blob) == running);
        let blob = blob.expect("one of those that were uploaded");
        let seen = observation(&FIELD, 0);
        assert_eq!(host.observe(seen).await, first_action(blob, &seen));
        Some(running)
    })
}

/// What a node may have behind it when an update begins.
#[derive(Debug, Clone, Copy)]
enum Past {
    Factory,
    OnePolicy,
    OneOnTrial,
    TwoPolicies,
    /// The second one was given up.
    FallenBack,
    /// An update was cut short before.
    HalfAnUpdate,
}

const PASTS: [Past; 6] = [
    Past::Factory,
    Past::OnePolicy,
    Past::OneOnTrial,
    Past::TwoPolicies,
    Past::FallenBack,
    Past::HalfAnUpdate,
];

/// A node with that past, and the policy it runs.
fn node_with<const W: usize, const E: usize>(past: Past) -> (Rig<W, E>, Option<Vec<u8>>) {
    let (first, second) = (policy(), large_policy(0.1));
    let mut rig = Rig::new();
    if matches!(past, Past::Factory) {
        return (rig, None);
    }
    rig.live(async |host, _| host.upload(&first).await);
    if matches!(past, Past::OneOnTrial) {
        return (rig, Some(first));
    }
    rig.live(async |host, _| host.observe(observation(&FIELD, 0)).await);
    let running = match past {
        Past::TwoPolicies => {
            update(&mut rig, &second, 512).unwrap();
            second
        }
        Past::FallenBack => {
            rig.live(async |host, _| host.upload(&second).await);
            for _ in 0..3 {
                // The try is marked, and then the power goes.
                rig.power.on(Some((0, Cut::After)));
                let tried =
                    rig.live(async |host, _| host.try_observe(observation(&FIELD, 0)).await);
                assert!(tried.is_err());
            }
            rig.power.on(None);
            let slots = rig.live(async |host, _| host.slots().await);
            let fallen_back = [SlotState::Proven, SlotState::GivenUp];
            assert_eq!(slots, (Some(0), fallen_back));
            first
        }
        Past::HalfAnUpdate => {
            rig.power.on(Some((5, Cut::Scattered(7))));
            assert!(update(&mut rig, &second, 512).is_err());
            first
        }
        Past::Factory | Past::OneOnTrial | Past::OnePolicy => first,
    };
    rig.power.on(None);
    (rig, Some(running))
}

/// Cuts the power in every operation of an update, in every way, whatever was before.
fn at_every_operation<const W: usize, const E: usize>() -> usize {
    let (new, later) = (large_policy(0.2), large_policy(0.3));
    let mut tested = 0;
    for past in PASTS {
        let (mut rig, _) = node_with::<W, E>(past);
        rig.power.on(None);
        update(&mut rig, &new, 500).expect("good power");
        let operations = rig.power.operations();
        for operation in 0..operations {
            for cut in CUTS {
                let (mut rig, old) = node_with::<W, E>(past);
                rig.power.on(Some((operation, cut)));
                update(&mut rig, &new, 500).expect_err("the power goes");
                let old = old.as_deref();
                let policies: Vec<&[u8]> = old.into_iter().chain([&new[..]]).collect();
                let running = started_with(&mut rig, &policies);
                // The last three operations are the record and the marks of the trial.
                let record = operations - 3;
                let expected = match operation.cmp(&record) {
                    Ordering::Less => old.map(id),
                    // Where a record is whole before its last byte is told from what runs.
                    Ordering::Equal => running.or(old.map(id)),
                    Ordering::Greater => Some(id(&new)),
                };
                assert_eq!(
                    running, expected,
                    "{past:?}, {operation} of {operations}, {cut:?}"
                );
                // And goes on as if nothing had been.
                update(&mut rig, &later, 512).expect("good power");
                assert_eq!(started_with(&mut rig, &[&later]), Some(id(&later)));
                tested += 1;
            }
        }
    }
    tested
}

#[test]
fn a_cut_at_every_operation_of_an_update_leaves_the_old_policy_or_the_new_words_of_4() {
    // 2 erasures, 11 chunks of 5.4 KB, record and two marks, in 8 ways and after 6 pasts.
    assert!(at_every_operation::<4, 4096>() >= 16 * 8 * 6);
}

#[test]
fn a_cut_at_every_operation_of_an_update_leaves_the_old_policy_or_the_new_bytes() {
    assert!(at_every_operation::<1, 16384>() >= 15 * 8 * 6);
}

#[test]
fn a_cut_at_every_operation_of_an_update_leaves_the_old_policy_or_the_new_units_of_16() {
    assert!(at_every_operation::<16, 4096>() >= 16 * 8 * 6);
}

/// One node that is never left in peace.
fn at_random<const W: usize, const E: usize>(cuts: usize, mut seed: u64) {
    let policies: Vec<Vec<u8>> = (1..8).map(|k| large_policy(k as f32 * 0.05)).collect();
    let all: Vec<&[u8]> = policies.iter().map(Vec::as_slice).collect();
    let mut rig = Rig::<W, E>::new();
    update(&mut rig, all[0], 512).expect("good power");
    let mut done = 0;
    while done < cuts {
        let before = rig.live(async |_, started| started.policy);
        let before = before.expect("a policy");
        let mut draw = |below: usize| (next(&mut seed) % below as u64) as usize;
        let new = all[draw(all.len())];
        let chunk = 1 + draw(512);
        let operation = draw(12 + new.len() / chunk);
        let part = draw(256) as u8;
        let cut = match draw(8) {
            0 => Cut::Before,
            1 => Cut::After,
            2..5 => Cut::Part(part),
            _ => Cut::Scattered(next(&mut seed)),
        };
        rig.power.on(Some((operation, cut)));
        match update(&mut rig, new, chunk) {
            Ok(()) => {
                rig.power.on(None);
                let started = rig.live(async |_, started| started.policy);
                assert_eq!(started, Some(id(new)));
            }
            Err(WentDark) => {
                done += 1;
                rig.power.on(None);
                let slots = rig.live(async |host, started| {
                    let running = started.policy.expect("a policy, whatever came before");
                    // What ran before, what was to run, or what a policy that never came to its
                    // first step was given up for.
                    (running, host.slots().await)
                });
                let (running, (_, states)) = slots;
                let fallen_back = states.contains(&SlotState::GivenUp);
                assert!(
                    running == before || running == id(new) || fallen_back,
                    "cut {done}: {states:?}"
                );
                // Half of the time the next cut comes before anything was proven.
                if next(&mut seed).is_multiple_of(2) {
                    assert!(started_with(&mut rig, &all).is_some());
                }
            }
        }
    }
}

#[test]
fn a_thousand_random_cuts_one_after_the_other_always_leave_a_policy_that_runs() {
    at_random::<4, 4096>(400, 1);
    at_random::<1, 16384>(300, 2);
    at_random::<16, 4096>(300, 3);
}
