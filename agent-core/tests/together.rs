//! Several agents at a time do what each of them does alone, bit for bit.

use crate::sample;

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::policy::{Governor, Policy};
use agent_core::together::{self, Room};
use agent_core::value::{Pack, Value};
use sample::{
    Random, Shown, blob, bytes, convolved, header, int8_header, int8_plane_header, layers,
    layers_for, plane, plane_layers, published, remembering,
};

/// One policy of each kind, one of them with all that the last stage can do.
fn policies() -> Vec<(Vec<u32>, usize)> {
    let mut rated = header(8);
    rated.limits.force_rate = Some(4e3);
    rated.limits.velocity_rate = Some(200.0);
    rated.limits.governor = Some(Governor {
        growth: 1.01,
        floor: 0.25,
        band: 0.2,
    });
    let remembering = remembering(rated.clone(), 3);
    let mut int8_plane = int8_plane_header();
    int8_plane.limits.governor = rated.limits.governor;
    vec![
        published(1),
        blob(&rated, &layers_for(&rated, 2)),
        blob(&remembering, &layers_for(&remembering, 7)),
        plane(3),
        convolved(4),
        blob(&int8_header(20), &layers(20, 5)),
        blob(&int8_plane, &plane_layers(6)),
    ]
}

fn bits(action: &Action) -> ([u32; 3], Mode) {
    let [vx, vy] = action.velocity;
    ([action.force, vx, vy].map(f32::to_bits), action.mode)
}

#[test]
fn agents_together_act_as_each_alone() {
    for blob in policies() {
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let length = policy.workspace_len();
        // Nothing is expected of what is in there.
        let mut packs = vec![Pack::splat(f32::NAN); length];
        let mut alone = vec![f32::NAN; length];
        let mut own = vec![f32::NAN; length];
        let mut room = Room {
            packs: &mut packs,
            alone: &mut alone,
        };
        let mut random = Random(11);
        let counts = if cfg!(miri) { 15..=17 } else { 1..=40 };
        for agents in counts {
            let mut together = vec![AgentState::new(); agents];
            let mut each = together.clone();
            let mut actions = vec![Action::none(Mode::Waiting); agents];
            for step in 1..=4 {
                let shown: Vec<_> = (0..agents)
                    .map(|agent| broken(&policy, 7 * agent + step, &mut random))
                    .collect();
                let observations: Vec<_> = shown
                    .iter()
                    .map(|(shown, position)| shown.at(*position, 5_000 * step as u64))
                    .collect();
                together::step(
                    &policy,
                    &mut room,
                    &mut together,
                    &observations,
                    &mut actions,
                );
                for ((state, observation), action) in
                    each.iter_mut().zip(&observations).zip(&actions)
                {
                    let expected = state.step(&policy, &mut own, observation);
                    assert_eq!(bits(action), bits(&expected), "{agents} agents");
                }
                assert_eq!(together, each);
            }
        }
    }
}

/// Noise, and every fifth time something that is no observation.
fn broken(policy: &Policy, number: usize, random: &mut Random) -> (Shown, [f32; 2]) {
    let mut shown = Shown::noise(policy, 2.0, random);
    let mut position = [0.5 + 0.5 * random.next(), 0.6 + 0.6 * random.next()];
    match number % 20 {
        0 => shown.field.fill(f32::INFINITY),
        5 => shown.field.truncate(3),
        10 => position[0] = f32::NAN,
        15 => shown.inside[0].first = shown.inside[0].last + 1,
        _ => {}
    }
    (shown, position)
}

#[test]
fn with_too_little_room_every_observation_is_invalid() {
    for blob in policies() {
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let length = policy.workspace_len();
        for (packs, alone) in [(length - 1, length), (length, length - 1)] {
            let dense = policy.packed_layers().next().is_some()
                && policy.header().network.convolutions.is_empty();
            // Others than dense networks of floats are run one by one.
            if alone == length && !dense {
                continue;
            }
            let mut packs = vec![Pack::splat(0.0); packs];
            let mut alone = vec![0.0; alone];
            let mut room = Room {
                packs: &mut packs,
                alone: &mut alone,
            };
            let shown = Shown::all(&policy, 1.0);
            let observations = [shown.at([0.8, 0.1], 1); 3];
            let mut states = [AgentState::new(); 3];
            let mut actions = [Action::none(Mode::Active); 3];
            together::step(&policy, &mut room, &mut states, &observations, &mut actions);
            assert_eq!(actions, [Action::none(Mode::Waiting); 3]);
        }
    }
}
