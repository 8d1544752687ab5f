//! The state machine and the last stage: whatever comes in, actions stay finite and within limits.

use crate::sample;

use agent_core::agent::{Action, Agent, AgentState, ArmError, Mode};
use agent_core::message::{Patch, Span};
use agent_core::policy::{Governor, Policy};
use proptest::prelude::*;
use sample::{Random, Shown, bytes, plane_header, plane_layers, published};

const ALL: Span = Span { first: 0, last: 9 };

fn with_agent<R>(test: impl FnOnce(&mut Agent) -> R) -> R {
    let blob = published(3);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    test(&mut Agent::new(policy, &mut workspace).unwrap())
}

fn look(agent: &mut Agent, patch: Patch, x: f32, now_us: u64) -> Action {
    agent.step(&patch, [x, 0.0], now_us)
}

fn see(agent: &mut Agent, value: f32, now_us: u64) -> Action {
    let field = [value; 10];
    let patch = Patch::line(&field, &[0.0; 10], ALL);
    look(agent, patch, 0.5, now_us)
}

#[test]
fn an_agent_waits_then_acts_then_holds_a_fading_action_then_fails_safe_and_recovers() {
    with_agent(|agent| {
        assert_eq!(agent.idle(500_000), Action::none(Mode::Waiting));
        assert_eq!(see(agent, f32::NAN, 500_500).mode, Mode::Waiting);
        let active = see(agent, 1.0, 1_000_000);
        assert_eq!(active.mode, Mode::Active);
        assert!(active.force.abs() > 1.0);

        assert!(!agent.is_late(1_002_000) && agent.is_late(1_002_001));
        // 20 ms to fail-safe: a quarter of the way three quarters are left.
        let held = agent.idle(1_005_000);
        assert_eq!(held.mode, Mode::Holding);
        assert_eq!(held.force, active.force * 0.75);
        let held = see(agent, f32::INFINITY, 1_010_000);
        assert_eq!((held.mode, held.force), (Mode::Holding, active.force * 0.5));

        assert_eq!(agent.idle(1_020_000), Action::none(Mode::FailedSafe));
        assert_eq!(see(agent, f32::NAN, 1_021_000).mode, Mode::FailedSafe);
        assert_eq!(see(agent, 1.0, 1_022_000), active);
    });
}

#[test]
fn a_clock_that_runs_backwards_does_no_harm() {
    with_agent(|agent| {
        let active = see(agent, 1.0, 1_000_000);
        let held = agent.idle(10);
        assert_eq!((held.mode, held.force), (Mode::Holding, active.force));
    });
}

#[test]
fn patches_of_another_shape_are_invalid_input() {
    with_agent(|agent| {
        let ten = [1.0; 10];
        let patches = [
            Patch::line(&[1.0; 9], &ten, ALL),
            Patch::line(&ten, &[], ALL),
            Patch::line(&ten, &ten, Span { first: 0, last: 10 }),
            Patch::line(&ten, &ten, Span { first: 9, last: 0 }),
            Patch::line(&ten, &ten, Span { first: 6, last: 9 }),
        ];
        for patch in patches {
            assert_eq!(look(agent, patch, 0.5, 1).mode, Mode::Waiting, "{patch:?}");
        }
    });
}

#[test]
fn an_agent_at_a_wall_does_not_leave_even_blind() {
    for seed in 0..30 {
        let blob = published(seed);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        for start in [0.0f32, 0.0005, 0.9995, 1.0] {
            let mut x = start;
            for step in 0..40u64 {
                let now = step * 1_000;
                // From step 10 on nothing more is heard.
                let action = if step < 10 {
                    let patch = Patch::line(&[1.0; 10], &[0.0; 10], ALL);
                    look(&mut agent, patch, x, now)
                } else {
                    agent.idle(now)
                };
                x += action.velocity[0] * 1e-3;
                // One rounding of the sum.
                assert!((-1e-7..=1.0 + 1e-7).contains(&x), "seed {seed}: at {x}");
            }
        }
    }
}

#[test]
fn too_little_working_memory_is_refused() {
    let blob = published(0);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let needed = policy.workspace_len();
    let mut workspace = vec![0.0; needed - 1];
    let error = Agent::new(policy, &mut workspace).err().unwrap();
    let given = needed - 1;
    assert_eq!(error, ArmError::Workspace { needed, given });
}

/// The published network needs 298 floats; with one less some of its layers would still fit.
#[test]
fn a_step_without_enough_working_memory_is_no_input_and_breaks_nothing() {
    let blob = published(0);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let shown = Shown::all(&policy, 1.0);
    let observation = shown.at([0.5, 0.0], 1);
    for given in 0..policy.workspace_len() {
        let mut state = AgentState::new();
        let action = state.step(&policy, &mut workspace[..given], &observation);
        assert_eq!(action, Action::none(Mode::Waiting), "{given} floats");
        let action = state.step(&policy, &mut workspace, &observation);
        assert_eq!(action.mode, Mode::Active, "after {given} floats");
    }
}

/// A disc over the origin, which is where nobody has said that the agent is.
#[test]
fn an_agent_that_was_never_told_its_place_leaves_no_disc() {
    let mut header = plane_header();
    header.limits.keep_out[0].centre = [0.0, 0.0];
    let blob = sample::blob(&header, &plane_layers(3));
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut state = AgentState::new();
    assert_eq!(state.idle(&policy, 5_000), Action::none(Mode::Waiting));
}

/// 500 steps on noise, walls at all distances. The format fixes the arithmetic bit for bit, because a
/// probe written anywhere must give its bits everywhere: this digest changes with the format only.
/// The last time it did was when format 3 came with another tanh.
#[test]
fn the_bits_of_actions_do_not_change_by_accident() {
    let blob = published(1);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut agent = Agent::new(policy, &mut workspace).unwrap();
    let mut random = Random(9);
    let mut digest = agent_core::message::CRC32.digest();
    for step in 0..500u64 {
        let mut cells = || std::array::from_fn::<f32, 10, _>(|_| 3.0 * random.next());
        let (field, target) = (cells(), cells());
        let x = 0.5 + 0.5 * random.next();
        let span = Span {
            first: (step % 6) as u16,
            last: 9 - (step % 4) as u16,
        };
        let patch = Patch::line(&field, &target, span);
        let action = look(&mut agent, patch, x, 1000 * step);
        let [v, w] = action.velocity;
        for value in [action.force, v, w] {
            digest.update(&value.to_bits().to_le_bytes());
        }
    }
    assert_eq!(digest.finalize(), 0x1efa_6eaf);
}

/// Any bit pattern, with the awkward ones often.
fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        proptest::sample::select(vec![
            0.0,
            -0.0,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1e-45,
        ]),
        -5.0f32..5.0,
    ]
}

proptest! {
    #[test]
    fn any_input_gives_a_finite_action_within_limits(
        steps in proptest::collection::vec(
            (
                proptest::collection::vec(any_f32(), 10),
                proptest::collection::vec(any_f32(), 10),
                (0u16..12, 0u16..12),
                any_f32(),
                any::<u64>(),
                any::<bool>(),
            ),
            1..8,
        ),
    ) {
        with_agent(|agent| {
            for (field, target, (first, last), x, now, observe) in steps {
                let action = if observe {
                    let patch = Patch::line(&field, &target, Span { first, last });
                    look(agent, patch, x, now)
                } else {
                    agent.idle(now)
                };
                prop_assert!(action.force.abs() <= 40.0);
                prop_assert!(action.velocity[0].abs() <= 2.0);
                prop_assert!(action.velocity[1] == 0.0);
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_input_of_the_plane_gives_a_finite_action_within_limits(
        steps in proptest::collection::vec(
            (
                (proptest::collection::vec(any_f32(), 64), proptest::collection::vec(any_f32(), 64)),
                (proptest::collection::vec(any_f32(), 6), proptest::collection::vec(any_f32(), 6)),
                [(0u16..6, 3u16..10), (0u16..6, 3u16..10)],
                [any_f32(), any_f32()],
                any::<u64>(),
                any::<bool>(),
            ),
            1..6,
        ),
        wide_missing: bool,
    ) {
        let mut header = plane_header();
        header.limits.governor = Some(Governor {
            growth: 2.0,
            floor: 1e-45,
            band: 1e-45,
        });
        let blob = sample::blob(&header, &plane_layers(3));
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        for ((field, target), (wide_field, wide_target), inside, position, now_us, observe) in steps {
            let shown = sample::Shown {
                field,
                target,
                inside: inside.map(|(first, last)| Span { first, last }),
                wide_field: if wide_missing { Vec::new() } else { wide_field },
                wide_target,
            };
            let action = match observe {
                true => agent.step(&shown.patch(), position, now_us),
                false => agent.idle(now_us),
            };
            prop_assert!(action.force.abs() <= 40.0);
            prop_assert!(action.velocity.iter().all(|v| v.abs() <= 5.0), "{action:?}");
            prop_assert!(!wide_missing || action.force == 0.0);
        }
    }
}
