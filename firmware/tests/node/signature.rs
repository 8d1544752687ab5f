//! Nodes that run signed policies only.

use agent_core::message::{Command, SlotState};
use ed25519_compact::{KeyPair, Seed};

use crate::rig::{self, Rig, id, large_policy, policy};

fn keys(seed: u8) -> KeyPair {
    KeyPair::from_seed(Seed::new([seed; 32]))
}

fn sign(keys: &KeyPair, blob: &[u8]) -> Vec<u8> {
    keys.sk.sign(blob, None).to_vec()
}

fn rig_of(keys: &KeyPair) -> Rig<4, 4096> {
    let mut rig = Rig::new();
    rig.hardware.policy_key = Some(*keys.pk);
    rig
}

#[test]
fn a_signed_policy_is_taken_and_runs_at_the_next_start() {
    let mut rig = rig_of(&keys(1));
    let signature = sign(&keys(1), &policy());
    rig.live(async |host, _| {
        host.begin(&policy()).await;
        let commit = Command::PolicyCommit {
            signature: &signature,
        };
        let taken = host.ask(commit, rig::hello).await;
        assert_eq!(taken.policy, Some(id(&policy())));
    });
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, Some(id(&policy())));
}

#[test]
fn a_policy_that_is_not_signed_by_the_right_hand_is_refused_and_why_is_told() {
    let blob = large_policy(0.1);
    let right = sign(&keys(1), &blob);
    let mut flipped = right.clone();
    flipped[40] ^= 1;
    let wrong = [
        (vec![], "not signed"),
        (right[..63].to_vec(), "63 bytes"),
        ([&right[..], &[0]].concat(), "65 bytes"),
        (sign(&keys(2), &blob), "another key"),
        (sign(&keys(1), &policy()), "another policy"),
        (flipped, "another key"),
        (vec![0; 64], "another key"),
    ];
    let mut rig = rig_of(&keys(1));
    rig.live(async |host, _| {
        host.begin(&blob).await;
        for (signature, reason) in &wrong {
            let refusal = host.refusal(signature).await;
            assert!(refusal.contains(reason), "{refusal}");
        }
        // The blob is still there, and the right signature is enough.
        let signature = &right;
        let taken = host
            .ask(Command::PolicyCommit { signature }, rig::hello)
            .await;
        assert_eq!(taken.policy, Some(id(&blob)));
    });
}

#[test]
fn an_image_with_a_key_does_not_start_with_what_one_without_took() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| host.upload(&policy()).await);
    rig.hardware.policy_key = Some(*keys(1).pk);
    rig.live(async |host, started| {
        assert_eq!(started.policy, None);
        let states = [SlotState::Refused, SlotState::Empty];
        assert_eq!(host.slots().await, (None, states));
    });
}

#[test]
fn a_node_without_a_key_keeps_the_signature_for_an_image_that_has_one() {
    let signature = sign(&keys(1), &policy());
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| {
        host.begin(&policy()).await;
        let signature = &signature;
        host.ask(Command::PolicyCommit { signature }, rig::hello)
            .await;
    });
    rig.hardware.policy_key = Some(*keys(1).pk);
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, Some(id(&policy())));
    rig.hardware.policy_key = Some(*keys(2).pk);
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, None);
}
