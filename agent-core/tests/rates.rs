//! Rate limits: how fast an action may change, and what they must give way to.

use crate::sample;

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::policy::{Header, Limits, Policy};
use sample::{
    Layer, Random, Shown, blob, bytes, header, int8_header, layers, layers_for, plane_header,
    plane_layers,
};

/// Force and velocity may change by 4 and 0.2 in a period of a millisecond: a tenth of the limits.
fn rated(mut header: Header<'static>) -> Header<'static> {
    header.limits.force_rate = Some(4_000.0);
    header.limits.velocity_rate = Some(200.0);
    header
}

/// The largest changes of force and velocity in a walk through noise, with broken and missing
/// observations, while the agent is active or holding; the agent is in the middle of its domain.
fn largest_changes(header: &Header, seed: u64) -> [f32; 2] {
    let blob = blob(header, &layers_for(header, seed));
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut state = AgentState::new();
    let mut random = Random(seed);
    let mut before = Action::none(Mode::Waiting);
    let mut changes = [0.0f32; 2];
    for step in 1..400u64 {
        let mut shown = Shown::noise(&policy, 3.0, &mut random);
        if step % 11 == 4 {
            shown.field.fill(f32::NAN);
        }
        let now_us = 1_000 * step;
        let action = match step % 9 < 2 {
            true => state.idle(&policy, now_us),
            false => state.step(&policy, &mut workspace, &shown.at([0.5, 0.9], now_us)),
        };
        assert!(matches!(action.mode, Mode::Active | Mode::Holding) || step < 5);
        changes[0] = changes[0].max((action.force - before.force).abs());
        for (v, w) in action.velocity.iter().zip(before.velocity) {
            changes[1] = changes[1].max((v - w).abs());
        }
        before = action;
    }
    changes
}

#[test]
fn force_and_velocity_never_change_faster_than_their_rates() {
    let seeds = if cfg!(miri) { 1 } else { 20 };
    for plain in [header(8), int8_header(8), plane_header()] {
        let mut rough = [0.0f32; 2];
        for seed in 0..seeds {
            // Three roundings of numbers up to 40 and 5.
            let [force, velocity] = largest_changes(&rated(plain.clone()), seed);
            assert!(force <= 4.0 + 1e-5, "{force}");
            assert!(velocity <= 0.2 + 1e-6, "{velocity}");
            for (rough, change) in rough.iter_mut().zip(largest_changes(&plain, seed)) {
                *rough = rough.max(change);
            }
        }
        // Without rates the same walks are rougher ones.
        assert!(rough[0] > 8.0 && rough[1] > 0.4, "{rough:?}");
    }
}

/// Layers of a head that says this whatever it sees.
fn always(mut layers: Vec<Layer>, outputs: &[f32]) -> Vec<Layer> {
    let last = layers.last_mut().unwrap();
    last.weights.fill(0.0);
    last.bias.copy_from_slice(outputs);
    layers
}

#[test]
fn an_agent_reaches_what_it_wants_in_as_many_steps_as_the_rate_takes() {
    let blob = blob(&rated(header(8)), &always(layers(8, 1), &[-20.0, 20.0]));
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut state = AgentState::new();
    let shown = Shown::all(&policy, 1.0);
    for step in 1..=12u64 {
        let action = state.step(&policy, &mut workspace, &shown.at([0.5, 0.0], 1_000 * step));
        // Ten steps to the limits, 40 and 2.
        let share = step.min(10) as f32;
        assert!((action.force + 4.0 * share).abs() < 1e-4, "{action:?}");
        assert!(
            (action.velocity[0] - 0.2 * share).abs() < 1e-5,
            "{action:?}"
        );
    }
}

#[test]
fn failing_safe_does_not_wait_for_the_rate() {
    let blob = blob(&rated(header(8)), &always(layers(8, 1), &[20.0, 20.0]));
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut state = AgentState::new();
    let shown = Shown::all(&policy, 1.0);
    let mut act = |state: &mut AgentState, now_us| {
        state.step(&policy, &mut workspace, &shown.at([0.5, 0.0], now_us))
    };
    for step in 1..=20 {
        act(&mut state, 1_000 * step);
    }
    // Held since step 20, at full force; half of the time to fail-safe the wish is half of that,
    // but the first step down is one of 4.
    let held = state.idle(&policy, 30_000);
    assert_eq!(held.mode, Mode::Holding);
    assert!((held.force - 36.0).abs() < 1e-4, "{held:?}");
    assert_eq!(state.idle(&policy, 40_000), Action::none(Mode::FailedSafe));
    // And from there it starts anew.
    let again = act(&mut state, 41_000);
    assert!((again.force - 4.0).abs() < 1e-5, "{again:?}");
}

/// Straight for the first disc, and on to the corner: where going on would break the rules of
/// where an agent may be, the velocity changes as fast as they ask.
#[test]
fn keep_out_and_the_walls_win_over_the_rate() {
    let mut header = plane_header();
    // 0.05 a period: from rest to a speed of 3 on the way to the disc.
    header.limits.velocity_rate = Some(50.0);
    let blob = blob(&header, &always(plane_layers(1), &[0.0, 3.0, 3.05]));
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let Limits { keep_out, high, .. } = &policy.header().limits;
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut state = AgentState::new();
    let shown = Shown::all(&policy, 1.0);
    let mut place = [0.15f64, 0.14];
    let mut before = [0.0f32; 2];
    let mut hard = Vec::new();
    for step in 1..2_000u64 {
        let position = place.map(|x| x as f32);
        let action = state.step(&policy, &mut workspace, &shown.at(position, 1_000 * step));
        let change = |axis: usize| (action.velocity[axis] - before[axis]).abs();
        if change(0) > 0.051 || change(1) > 0.051 {
            hard.push(place);
        }
        before = action.velocity;
        for axis in [0, 1] {
            place[axis] += f64::from(action.velocity[axis]) * 1e-3;
            assert!(place[axis] <= f64::from(high[axis]) + 1e-7);
        }
        for disc in keep_out {
            let [x, y] = disc.centre.map(f64::from);
            let distance = (place[0] - x).hypot(place[1] - y);
            assert!(distance >= f64::from(disc.radius), "{place:?}");
        }
    }
    let near = |p: &[f64; 2]| (p[0] - 0.3).hypot(p[1] - 0.3) < 0.07;
    assert!(hard.iter().any(near), "the disc was not met");
    // Nowhere but at discs and walls.
    for p in &hard {
        let at_disc = keep_out.iter().any(|disc| {
            let [x, y] = disc.centre.map(f64::from);
            (p[0] - x).hypot(p[1] - y) < f64::from(disc.radius) + 0.01
        });
        let at_wall = [0, 1]
            .iter()
            .any(|&axis| p[axis] > f64::from(high[axis]) - 0.006);
        assert!(at_disc || at_wall, "{p:?}");
    }
}
