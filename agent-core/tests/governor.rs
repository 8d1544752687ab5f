//! The governor in the control step: what it eases, and when it remembers.

use crate::sample;

use agent_core::agent::{Action, Agent, Mode};
use agent_core::policy::{Activation, Channel, Governor, Header, Norm, Policy};
use sample::{Layer, Shown, blob, bytes, dense, header, plane_header};

/// An agent in the middle of its domain whose first output has the field's sign; the others are 0.5.
/// All are those of one dense layer.
fn with_agent(force: bool, axes: u8, test: impl FnOnce(&mut dyn FnMut(Call) -> Action)) {
    with_banded(0.0, force, axes, test);
}

/// The same with a band.
fn with_banded(
    band: f32,
    force: bool,
    axes: u8,
    test: impl FnOnce(&mut dyn FnMut(Call) -> Action),
) {
    let mut header: Header = match axes {
        1 => header(8),
        _ => plane_header(),
    };
    header.sensing.channels = [Channel::Error].into_iter().collect();
    header.sensing.wide = None;
    header.limits.keep_out.clear();
    header.limits.governor = Some(Governor {
        growth: 1.25,
        floor: 0.125,
        band,
    });
    if !force {
        header.limits.force = None;
    }
    let cells = usize::from(header.sensing.window).pow(axes.into());
    let outputs = usize::from(force) + usize::from(axes);
    let network = &mut header.network;
    network.branch.clear();
    network.trunk.clear();
    network.frequencies.clear();
    let head = dense(cells, outputs, Norm::None, Activation::Identity);
    network.head = [head].into_iter().collect();
    let mut layer = Layer {
        inputs: cells,
        weights: vec![0.0; cells * outputs],
        bias: vec![0.5; outputs],
    };
    layer.weights[0] = 1.0;
    layer.bias[0] = 0.0;
    let blob = blob(&header, &[layer]);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut agent = Agent::new(policy.clone(), &mut workspace).unwrap();
    let mut now_us = 0;
    test(&mut |call| {
        now_us += 1_000;
        match call {
            Call::See(value) => {
                let shown = Shown::all(&policy, value);
                agent.step(&shown.patch(), [0.5, 0.6], now_us)
            }
            Call::Idle => agent.idle(now_us),
            Call::Reset => {
                agent.reset();
                Action::none(Mode::Waiting)
            }
        }
    });
}

enum Call {
    See(f32),
    Idle,
    Reset,
}
use Call::{Idle, Reset, See};

#[test]
fn a_force_that_turns_round_is_eased_and_moving_is_not() {
    for axes in [1, 2] {
        with_agent(true, axes, |call| {
            let first = call(See(0.3));
            assert!(first.force > 1.0 && first.velocity[0] > 0.1, "{first:?}");
            for (sign, ease) in [(-1.0, 0.5), (1.0, 0.25), (-1.0, 0.125), (1.0, 0.125)] {
                let turned = call(See(sign * 0.3));
                assert_eq!(turned.force, sign * ease * first.force);
                assert_eq!(turned.velocity, first.velocity);
            }
        });
    }
}

#[test]
fn without_a_force_each_velocity_is_eased_by_itself() {
    for axes in [1, 2] {
        with_agent(false, axes, |call| {
            let [across, along] = call(See(0.3)).velocity;
            assert!(across > 0.1 && (axes == 1 || along > 0.1));
            assert_eq!(call(See(-0.3)).velocity, [-0.5 * across, along]);
            // A quarter more with every step that stays on its side.
            assert_eq!(call(See(-0.3)).velocity, [-0.625 * across, along]);
        });
    }
}

#[test]
fn blind_steps_are_not_remembered_and_a_reset_forgets() {
    with_agent(true, 1, |call| {
        let first = call(See(0.3)).force;
        call(Idle);
        assert_eq!(call(See(f32::NAN)).mode, Mode::Holding);
        let turned = call(See(-0.3));
        assert_eq!((turned.mode, turned.force), (Mode::Active, -0.5 * first));
        // What is held is what was done, fading: 1 of 20 ms.
        assert_eq!(call(Idle).force, turned.force * (1.0 - 1.0 / 20.0));
        call(Reset);
        assert_eq!(call(See(0.3)).force, first);
        assert_eq!(call(See(-0.3)).force, -0.5 * first);
    });
}

#[test]
fn within_its_band_a_force_that_turns_round_is_hardly_eased() {
    with_banded(0.25, true, 1, |call| {
        let small = call(See(0.001)).force;
        let turned = call(See(-0.001)).force;
        assert!((-small..-0.99 * small).contains(&turned), "{turned}");
        let large = call(See(-3.0)).force;
        let turned = call(See(3.0)).force;
        assert!((0.5..0.6).contains(&(turned / -large)), "{turned}");
    });
}
