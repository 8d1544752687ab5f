//! Nodes that have been given keys: whose policies they run, and whom they obey.

use agent_core::message::{
    CHUNK, Command, Guard, Mishap, Report, SlotState, UNASKED, encode_frame, encode_sealed,
};
use ed25519_compact::{KeyPair, Seed};
use firmware::keys::Keys;
use std::panic::{AssertUnwindSafe, catch_unwind};
use trust::{
    KeyId, LinkKey, Manifest, Rights, SessionKey,
    manifest::{SIGNED, Subject, signed_bytes},
};

use crate::{
    chip::{Cut, next},
    rig::{self, Host, Rig, encoded_manifest, id, large_policy, observation, policy},
};

const FIELD: [f32; 6] = [0.0, 0.5, 0.5, 0.5, 0.5, 0.0];
const FLEET: &str = "plant seven";
pub const LINK: LinkKey = LinkKey::new([5; 32]);

fn pair(seed: u8) -> KeyPair {
    KeyPair::from_seed(Seed::new([seed; 32]))
}

fn key_id(seed: u8) -> KeyId {
    KeyId::of(&pair(seed).pk)
}

/// A node that trusts keys 1 and 2, of a fleet, on the board "bench".
fn signed_rig() -> Rig<4, 4096> {
    let mut rig = Rig::new();
    rig.hardware.keys = Keys {
        policy: [Some(*pair(1).pk), Some(*pair(2).pk)],
        link: None,
        bus: None,
        fleet: FLEET,
    };
    rig
}

/// What key 1 says of a policy for such a node.
fn says(blob: &[u8], counter: u64) -> Manifest<'static> {
    Manifest {
        fleet: FLEET,
        counter,
        key: key_id(1),
        ..Manifest::unsigned(blob, "test")
    }
}

/// A manifest and its signature.
struct Offer(Vec<u8>, Vec<u8>);

impl Offer {
    fn signed(manifest: Manifest, seed: u8) -> Self {
        let manifest = encoded_manifest(&manifest);
        let mut room = [0; SIGNED];
        let signed = signed_bytes(Subject::Policy, &manifest, &mut room).unwrap();
        let signature = pair(seed).sk.sign(signed, None).to_vec();
        Self(manifest, signature)
    }

    fn begin(&self) -> Command<'_> {
        Command::PolicyBegin {
            manifest: &self.0,
            signature: &self.1,
        }
    }
}

async fn give(host: &Host<'_>, blob: &[u8], offer: &Offer) {
    host.begin_signed(blob, &offer.0, &offer.1).await;
    let taken = host.ask(Command::PolicyCommit, rig::hello).await;
    assert_eq!(taken.policy, Some(id(blob)));
    assert!(taken.guard.policies);
}

#[test]
fn a_signed_policy_is_taken_and_runs_at_the_next_start() {
    let mut rig = signed_rig();
    rig.live(async |host, _| {
        let offer = Offer::signed(says(&policy(), 1), 1);
        give(host, &policy(), &offer).await;
    });
    let started = rig.live(async |_, started| started);
    assert_eq!(started.policy, Some(id(&policy())));
}

#[test]
fn what_is_not_signed_for_this_node_is_refused_before_anything_is_erased() {
    let (old, blob) = (policy(), large_policy(0.1));
    let right = Offer::signed(says(&blob, 8), 1);
    let mut flipped = right.1.clone();
    flipped[40] ^= 1;
    let with = |manifest: Manifest, reason| (Offer::signed(manifest, 1), reason);
    let wrong = [
        (Offer(right.0.clone(), vec![]), "not signed"),
        (Offer(right.0.clone(), right.1[..63].to_vec()), "63 bytes"),
        (Offer(right.0.clone(), flipped), "another key"),
        (Offer(right.0.clone(), vec![0; 64]), "another key"),
        (Offer(right.0[1..].to_vec(), right.1.clone()), "manifest"),
        // Signed by somebody else, under their name and under ours.
        (
            Offer::signed(
                Manifest {
                    key: key_id(3),
                    ..says(&blob, 8)
                },
                3,
            ),
            "another key",
        ),
        (Offer::signed(says(&blob, 8), 3), "another key"),
        (Offer::signed(says(&blob, 8), 2), "another key"),
        with(
            Manifest {
                fleet: "",
                ..says(&blob, 8)
            },
            "another fleet",
        ),
        with(
            Manifest {
                fleet: "plant eight",
                ..says(&blob, 8)
            },
            "another fleet",
        ),
        with(
            Manifest {
                board: "pico2",
                ..says(&blob, 8)
            },
            "another board",
        ),
        with(says(&blob, 7), "to go back"),
        with(says(&blob, 1), "to go back"),
        with(says(&old, 7), "to go back"),
        with(
            Manifest {
                problem: "other",
                ..says(&blob, 8)
            },
            "another problem",
        ),
        with(
            Manifest {
                length: u32::MAX,
                ..says(&blob, 8)
            },
            "does not fit",
        ),
        with(
            Manifest {
                revokes: Some(key_id(1)),
                ..says(&blob, 8)
            },
            "revokes the key",
        ),
    ];
    let mut rig = signed_rig();
    rig.live(async |host, _| {
        give(
            host,
            &large_policy(0.2),
            &Offer::signed(says(&large_policy(0.2), 6), 1),
        )
        .await;
        give(host, &old, &Offer::signed(says(&old, 7), 1)).await;
        let slots = host.slots().await;
        let operations = host.flash_operations();
        for (offer, reason) in &wrong {
            let refusal = host.refusal_of(offer.begin()).await;
            assert!(refusal.contains(reason), "{reason}: {refusal}");
        }
        assert_eq!(host.flash_operations(), operations, "the flash was touched");
        assert_eq!(host.slots().await, slots);
        assert_eq!(host.hello().await.policy, Some(id(&old)));
        // And what is right is still taken.
        give(host, &blob, &right).await;
    });
}

#[test]
fn a_blob_other_than_the_manifests_is_refused() {
    let (named, sent) = (large_policy(0.1), large_policy(0.2));
    let mut rig = signed_rig();
    rig.live(async |host, _| {
        let offer = Offer::signed(says(&named, 1), 1);
        assert_eq!(named.len(), sent.len());
        host.begin_signed(&sent, &offer.0, &offer.1).await;
        let refusal = host.refusal().await;
        assert!(refusal.contains("not the policy"), "{refusal}");
        // A manifest that names another problem than its blob.
        let offer = Offer::signed(
            Manifest {
                problem: "other",
                ..says(&named, 2)
            },
            1,
        );
        host.begin_signed(&named, &offer.0, &offer.1).await;
        let refusal = host.refusal().await;
        assert!(
            refusal.contains("another problem than its manifest"),
            "{refusal}"
        );
        assert_eq!(host.hello().await.policy, None);
    });
}

#[test]
fn a_node_never_goes_back_by_itself_nor_after_its_power_went() {
    let (first, second) = (policy(), large_policy(0.1));
    let offers = [
        Offer::signed(says(&first, 10), 1),
        Offer::signed(says(&second, 20), 1),
    ];
    let mut rig = signed_rig();
    rig.live(async |host, _| {
        give(host, &first, &offers[0]).await;
        give(host, &second, &offers[1]).await;
    });
    for _ in 0..2 {
        rig.live(async |host, _| {
            for offer in &offers {
                let refusal = host.refusal_of(offer.begin()).await;
                assert!(refusal.contains("has taken 20"), "{refusal}");
            }
        });
    }
    // A permission to go back is a new manifest for the old policy.
    rig.live(async |host, _| {
        give(host, &first, &Offer::signed(says(&first, 21), 1)).await;
        let refusal = host.refusal_of(offers[1].begin()).await;
        assert!(refusal.contains("has taken 21"), "{refusal}");
    });
}

/// The policy with the highest counter fails, its slot is overwritten by an upload that never ends, and
/// the power goes.
#[test]
fn the_counter_outlives_the_policy_that_had_it() {
    let mut rig = signed_rig();
    let (old, bad, other) = (policy(), large_policy(0.1), large_policy(0.2));
    let replayed = Offer::signed(says(&bad, 20), 1);
    rig.live(async |host, _| {
        give(host, &old, &Offer::signed(says(&old, 10), 1)).await;
        host.observe(observation(&FIELD, 0)).await;
        give(host, &bad, &replayed).await;
    });
    rig.live(async |host, _| {
        // Slot 0 is free; then slot 1, which holds the highest counter.
        give(host, &old, &Offer::signed(says(&old, 30), 1)).await;
        let begun = Offer::signed(says(&other, 40), 1);
        host.expect(begun.begin(), Report::Stored { next: 0 }).await;
    });
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&old)));
        let refusal = host.refusal_of(replayed.begin()).await;
        assert!(refusal.contains("has taken 30"), "{refusal}");
    });
}

#[test]
fn another_problem_needs_a_manifest_that_says_so() {
    let blob = rig::policy_for("other");
    let mut rig = signed_rig();
    rig.live(async |host, _| {
        give(host, &policy(), &Offer::signed(says(&policy(), 1), 1)).await;
        let other = Manifest {
            problem: "other",
            ..says(&blob, 2)
        };
        let refusal = host.refusal_of(Offer::signed(other, 1).begin()).await;
        assert!(refusal.contains("another problem"), "{refusal}");
        let repurposed = Manifest {
            repurposes: true,
            ..other
        };
        give(host, &blob, &Offer::signed(repurposed, 1)).await;
    });
}

#[test]
fn one_key_takes_over_from_the_other_which_is_then_revoked_for_good() {
    let mut rig = signed_rig();
    let (first, second, third) = (policy(), large_policy(0.1), large_policy(0.2));
    let by_two = |blob: &[u8], counter| Manifest {
        key: key_id(2),
        ..says(blob, counter)
    };
    rig.live(async |host, _| {
        give(host, &first, &Offer::signed(says(&first, 1), 1)).await;
        let takes_over = Manifest {
            revokes: Some(key_id(1)),
            ..by_two(&second, 2)
        };
        give(host, &second, &Offer::signed(takes_over, 2)).await;
    });
    for _ in 0..2 {
        rig.live(async |host, started| {
            assert_eq!(started.policy, Some(id(&second)));
            let refusal = host
                .refusal_of(Offer::signed(says(&third, 9), 1).begin())
                .await;
            assert!(refusal.contains("revoked"), "{refusal}");
            // What it signed before is not run either.
            assert_eq!(host.slots().await.1[0], SlotState::Refused);
        });
    }
    rig.live(async |host, _| {
        give(host, &third, &Offer::signed(by_two(&third, 3), 2)).await;
    });
}

/// Power that goes in any operation of an update which revokes a key: it is taken, revocation and all,
/// or nothing of it is.
#[test]
fn an_update_that_revokes_a_key_is_whole_or_not_there() {
    let blob = large_policy(0.1);
    let takes_over = Manifest {
        key: key_id(2),
        revokes: Some(key_id(1)),
        ..says(&blob, 2)
    };
    let offer = Offer::signed(takes_over, 2);
    let prepared = || {
        let mut rig = signed_rig();
        rig.live(async |host, _| {
            give(host, &policy(), &Offer::signed(says(&policy(), 1), 1)).await
        });
        rig
    };
    let update = |rig: &mut Rig<4, 4096>| {
        rig.live(async |host, _| {
            host.ask(offer.begin(), |_| ()).await;
            for (k, bytes) in blob.chunks(CHUNK).enumerate() {
                let offset = (k * CHUNK) as u32;
                host.ask(Command::PolicyChunk { offset, bytes }, |_| ())
                    .await;
            }
            host.ask(Command::PolicyCommit, |_| ()).await;
        });
    };
    let mut rig = prepared();
    rig.power.on(None);
    update(&mut rig);
    let operations = rig.power.operations();
    for operation in 0..operations {
        for cut in [Cut::Before, Cut::Part(100), Cut::Scattered(3), Cut::After] {
            let mut rig = prepared();
            rig.power.on(Some((operation, cut)));
            update(&mut rig);
            rig.power.on(None);
            rig.live(async |host, started| {
                let by_one = Offer::signed(says(&large_policy(0.2), 9), 1);
                let refusal = host
                    .ask(by_one.begin(), |report| {
                        matches!(report, Report::PolicyRefused { .. })
                    })
                    .await;
                let is_taken = started.policy == Some(id(&blob));
                assert!(is_taken || started.policy == Some(id(&policy())));
                assert_eq!(refusal, is_taken, "operation {operation}, {cut:?}");
            });
        }
    }
}

/// A journal that takes no entry, of a node that has a policy: it runs on, and takes nobody's word.
#[test]
fn who_cannot_remember_lets_nobody_in() {
    let mut rig = signed_rig();
    rig.hardware.keys.link = Some(LINK);
    rig.live(async |host, _| {
        open(host, Rights::ALL).await;
        give(host, &policy(), &Offer::signed(says(&policy(), 1), 1)).await;
    });
    // The first operation of a start is the journal's.
    rig.power.on(Some((0, Cut::Before)));
    rig.live(async |host, started| {
        assert_eq!(started.policy, Some(id(&policy())));
        let open = Command::Open {
            rights: 7,
            nonce: [1; 16],
        };
        host.expect_rejection(open).await;
    });
    rig.hardware.keys.link = None;
    rig.power.on(Some((0, Cut::Before)));
    rig.live(async |host, _| {
        let newer = Offer::signed(says(&large_policy(0.1), 2), 1);
        let refusal = host.refusal_of(newer.begin()).await;
        assert!(refusal.contains("memory failed"), "{refusal}");
    });
}

#[test]
fn an_image_with_a_key_does_not_start_with_what_one_without_took() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| host.upload(&policy()).await);
    rig.hardware.keys.policy = [Some(*pair(1).pk), None];
    rig.live(async |host, started| {
        assert_eq!(started.policy, None);
        let states = [SlotState::Refused, SlotState::Empty];
        assert_eq!(host.slots().await, (None, states));
    });
}

/// Forged, replayed, rolled back, for others: whatever is offered, nothing is taken.
#[test]
fn of_a_hundred_thousand_wrong_offers_none_is_taken() {
    let blob = large_policy(0.1);
    let mut rig = signed_rig();
    let mut seed = 7;
    rig.live(async |host, _| {
        give(host, &policy(), &Offer::signed(says(&policy(), 1_000), 1)).await;
        let slots = host.slots().await;
        // Signed once each; what is then changed of them is drawn.
        let right = Offer::signed(says(&blob, 2_000), 1);
        let real: Vec<Offer> = (0..64)
            .map(|k| {
                let said = says(&blob, 2_000 + k);
                let said = match k % 6 {
                    0 => Manifest {
                        counter: 1_000 - k,
                        ..said
                    },
                    1 => Manifest {
                        fleet: "another plant",
                        ..said
                    },
                    2 => Manifest {
                        board: "another board",
                        ..said
                    },
                    3 => Manifest {
                        problem: "another problem",
                        ..said
                    },
                    4 => Manifest {
                        key: key_id(3),
                        ..said
                    },
                    _ => Manifest {
                        counter: 1_000,
                        ..says(&policy(), 1_000)
                    },
                };
                Offer::signed(said, if k % 6 == 4 { 3 } else { 1 })
            })
            .collect();
        for k in 0..100_000_u64 {
            let mut draw = |below: usize| (next(&mut seed) % below as u64) as usize;
            let Offer(mut manifest, mut signature) = match draw(2) {
                0 => Offer(right.0.clone(), right.1.clone()),
                _ => {
                    let Offer(manifest, signature) = &real[draw(real.len())];
                    Offer(manifest.clone(), signature.clone())
                }
            };
            let is_right = manifest == right.0;
            match draw(5) {
                0 => {
                    let at = draw(manifest.len());
                    manifest[at] ^= 1 << draw(8);
                }
                1 => {
                    let at = draw(signature.len());
                    signature[at] ^= 1 << draw(8);
                }
                2 => manifest.truncate(draw(manifest.len())),
                3 => signature = real[draw(real.len())].1.clone(),
                // As it was signed, where that is wrong enough.
                _ if is_right => signature.clear(),
                _ => {}
            }
            let offer = Offer(manifest, signature);
            host.ask(offer.begin(), |report| {
                assert!(
                    matches!(report, Report::PolicyRefused { .. }),
                    "{k}: {report:?}"
                );
            })
            .await;
        }
        assert_eq!(host.slots().await, slots);
        assert_eq!(host.hello().await.policy, Some(id(&policy())));
    });
}

fn keyed_rig() -> Rig<4, 4096> {
    let mut rig = Rig::new();
    rig.hardware.keys.link = Some(LINK);
    rig
}

/// Begins a session with a key of these rights.
pub async fn open(host: &Host<'_>, rights: Rights) {
    *host.session.borrow_mut() = None;
    let nonce = [9; 16];
    let grant = LINK.grant(rights);
    let open = Command::Open {
        rights: rights.bits(),
        nonce,
    };
    host.send(1, &open).await;
    let theirs = host
        .receive(|number, report| match report {
            Report::Challenge { nonce } => {
                assert_eq!(number, UNASKED);
                nonce
            }
            other => panic!("{other:?}"),
        })
        .await;
    *host.session.borrow_mut() = Some(grant.session(&nonce, &theirs));
}

#[test]
fn a_host_with_the_key_does_everything_and_a_stranger_nothing_but_ask() {
    let mut rig = keyed_rig();
    rig.live(async |host, started| {
        assert!(started.guard.link && !started.guard.policies);
        let guard = Guard {
            link: true,
            policies: false,
        };
        assert_eq!(host.hello().await.guard, guard);
        let manifest = rig::manifest(&policy());
        let chunk = Command::PolicyChunk {
            offset: 0,
            bytes: b"1234",
        };
        let refused = [
            Command::Reset,
            Command::Observe(observation(&FIELD, 0)),
            rig::begin(&manifest),
            chunk,
            Command::PolicyCommit,
            Command::Restart,
            Command::Provoke(Mishap::Panic),
        ];
        for command in refused {
            host.expect_rejection(command).await;
        }
        assert_eq!(host.slots().await.0, None);
        open(host, Rights::ALL).await;
        host.upload(&policy()).await;
        let seen = observation(&FIELD, 0);
        let action = host.observe(seen).await;
        assert_eq!(action, rig::first_action(&policy(), &seen));
        assert_eq!(host.hello().await.policy, Some(id(&policy())));
    });
}

#[test]
fn a_key_for_some_rights_gives_no_others() {
    let mut rig = keyed_rig();
    rig.live(async |host, _| {
        open(host, Rights::ALL).await;
        host.upload(&policy()).await;
        let manifest = rig::manifest(&policy());
        for (rights, others) in [
            (Rights::OBSERVE, [rig::begin(&manifest), Command::Restart]),
            (Rights::FLASH, [Command::Reset, Command::Restart]),
            (Rights::RESTART, [Command::Reset, Command::PolicyCommit]),
        ] {
            open(host, rights).await;
            for command in others {
                host.expect_rejection(command).await;
            }
            host.hello().await;
        }
        open(host, Rights::OBSERVE).await;
        host.observe(observation(&FIELD, 0)).await;
        // Whoever claims more than their key is for has no key at all.
        let nonce = [1; 16];
        *host.session.borrow_mut() = None;
        let claim = Command::Open {
            rights: Rights::ALL.bits(),
            nonce,
        };
        host.send(1, &claim).await;
        let theirs = host
            .receive(|_, report| match report {
                Report::Challenge { nonce } => nonce,
                other => panic!("{other:?}"),
            })
            .await;
        let observer = LINK.grant(Rights::OBSERVE);
        *host.session.borrow_mut() = Some(observer.session(&nonce, &theirs));
        host.send(500, &Command::Restart).await;
        *host.session.borrow_mut() = None;
        assert!(host.hello().await.policy.is_some());
    });
}

#[test]
fn a_restart_takes_the_right_to_it() {
    let mut rig = keyed_rig();
    let life = catch_unwind(AssertUnwindSafe(|| {
        rig.live(async |host, _| {
            open(host, Rights::RESTART).await;
            host.ask(Command::Restart, |report| panic!("{report:?}"))
                .await;
        });
    }));
    assert!(life.unwrap_err().is::<rig::Restarted>());
}

/// A stranger's greetings begin sessions that never come about; that of the host goes on.
#[test]
fn nobody_ends_a_session_by_asking_for_another() {
    let mut rig = keyed_rig();
    rig.live(async |host, _| {
        open(host, Rights::ALL).await;
        host.upload(&policy()).await;
        for k in 0..50 {
            let mut frame = [0; 64];
            let stranger = Command::Open {
                rights: 7,
                nonce: [k; 16],
            };
            let frame = encode_frame(u32::MAX, &stranger, &mut frame).unwrap();
            host.to_node.write_all(frame).await;
            host.receive_any().await;
            host.observe(observation(&FIELD, u64::from(k))).await;
        }
    });
}

/// A whole session recorded, and played back to the node in this life and in the next.
#[test]
fn a_recorded_session_is_worth_nothing() {
    let mut rig = keyed_rig();
    let mut recorded = Vec::new();
    let mut opening = Vec::new();
    rig.live(async |host, _| {
        open(host, Rights::ALL).await;
        host.upload(&policy()).await;
        let mut frame = [0; 64];
        let open = Command::Open {
            rights: 7,
            nonce: [9; 16],
        };
        opening = encode_frame(1, &open, &mut frame).unwrap().to_vec();
        for k in 0..20 {
            let command = Command::Observe(observation(&FIELD, k));
            recorded.push(host.frame(900 + k as u32, &command));
        }
    });
    for _ in 0..3 {
        rig.live(async |host, _| {
            host.to_node.write_all(&opening).await;
            host.receive_any().await;
            for frame in &recorded {
                host.to_node.write_all(frame).await;
            }
            let counters = counters(host).await;
            assert_eq!(counters.steps, 0);
            assert_eq!(counters.rejected, recorded.len() as u32);
        });
    }
}

async fn counters(host: &Host<'_>) -> agent_core::message::Counters {
    host.ask(Command::Status, |report| match report {
        Report::Status(status) => status.counters,
        other => panic!("{other:?}"),
    })
    .await
}

/// Wrong keys, wrong directions, changed bits, numbers that were used: none is obeyed.
#[test]
fn of_a_million_frames_with_wrong_or_repeated_tags_none_is_obeyed() {
    let mut rig = keyed_rig();
    let mut seed = 11;
    rig.live(async |host, _| {
        open(host, Rights::ALL).await;
        host.upload(&policy()).await;
        let taken = host.frame(1_000, &Command::Reset);
        host.send(1_000, &Command::Reset).await;
        host.receive(|_, report| rig::hello(report)).await;
        let steps = host
            .observe_with_number(1_001, observation(&FIELD, 0))
            .await;
        assert_eq!(steps.mode, agent_core::agent::Mode::Active);
        let stranger = LinkKey::new([6; 32]).grant(Rights::ALL);
        let stranger = stranger.session(&[1; 16], &[2; 16]);
        let observer = LINK.grant(Rights::OBSERVE).session(&[1; 16], &[2; 16]);
        let right = host.session.borrow().clone().unwrap();
        let reset = Command::Reset;
        for k in 0..1_000_000_u32 {
            let number = 1_002 + k;
            let mut draw = |below: usize| (next(&mut seed) % below as u64) as usize;
            let mut buffer = [0; 64];
            let by = |key: &SessionKey, buffer: &mut [u8; 64]| {
                encode_sealed(number, &reset, &key.commands(), buffer)
                    .unwrap()
                    .to_vec()
            };
            let frame = match draw(6) {
                0 => by(&stranger, &mut buffer),
                1 => by(&observer, &mut buffer),
                // What the node itself would say.
                2 => encode_sealed(number, &reset, &right.reports(), &mut buffer)
                    .unwrap()
                    .to_vec(),
                3 => {
                    let mut frame = by(&right, &mut buffer);
                    let at = draw(frame.len() - 1);
                    frame[at] ^= 1 << draw(8);
                    frame
                }
                // Sealed for another number.
                4 => {
                    let mut frame = by(&right, &mut buffer);
                    let end = frame.len() - 1;
                    frame[end - 1] = frame[end - 1].wrapping_add(1).max(1);
                    frame
                }
                _ => taken.clone(),
            };
            host.to_node.write_all(&frame).await;
        }
        // Whoever was obeyed would have made the agent forget: it would wait, not hold.
        let broken = host
            .observe_with_number(u32::MAX, observation(&[f32::NAN; 6], 1_000))
            .await;
        assert_eq!(broken.mode, agent_core::agent::Mode::Holding);
    });
}
