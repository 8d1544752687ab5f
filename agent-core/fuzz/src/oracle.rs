//! What must hold whatever the input: invariant 4 of `docs/architecture.md`, as assertions.

use agent_core::agent::{Action, Mode};
use agent_core::policy::{Disc, Header};

/// The action is finite, within the header's limits, and zero where there is nothing to act with.
pub fn within_limits(header: &Header, action: &Action) {
    let limits = &header.limits;
    let (force, velocity) = (limits.force.unwrap_or(0.0), limits.velocity.unwrap_or(0.0));
    // A comparison with NaN is false.
    assert!(action.force.abs() <= force, "{action:?} beyond ±{force}");
    for (axis, v) in action.velocity.iter().enumerate() {
        let limit = match axis < usize::from(header.sensing.axes) {
            true => velocity,
            false => 0.0,
        };
        assert!(
            v.abs() <= limit,
            "{action:?} beyond ±{limit} on axis {axis}"
        );
    }
    if matches!(action.mode, Mode::Waiting | Mode::FailedSafe) {
        assert_eq!(action.force, 0.0, "{action:?}");
        // In the plane an agent leaves a disc also blind.
        let still = action.velocity == [0.0; 2];
        assert!(still || !limits.keep_out.is_empty(), "{action:?}");
    }
}

/// What an agent was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Step,
    Idle,
}

/// The state machine of [`agent_core::agent`]: only a step makes an agent active, only a reset lets
/// it wait again, and an agent that has failed safe holds nothing any more.
pub fn legal(before: Mode, call: Call, after: Mode) {
    use Mode::{Active, FailedSafe, Holding, Waiting};
    let allowed = match (before, after) {
        (_, Active) => call == Call::Step,
        (Waiting, Waiting) => true,
        (Active | Holding, Holding) => true,
        // A network that gives no number.
        (Waiting, FailedSafe) => call == Call::Step,
        (_, FailedSafe) => true,
        (_, Waiting | Holding) => false,
    };
    assert!(allowed, "{before:?} → {after:?} by {call:?}");
}

/// A period from now an agent at `position`, inside its domain, still is; and unless it is in a disc
/// already it is in none.
pub fn keeps_its_place(header: &Header, position: [f32; 2], velocity: [f32; 2]) {
    let limits = &header.limits;
    let axes = usize::from(header.sensing.axes);
    let period = f64::from(header.timing.period_us as f32 * 1e-6);
    let there = [0, 1].map(|k| f64::from(position[k]) + f64::from(velocity[k]) * period);
    for axis in 0..axes {
        let (low, high) = (f64::from(limits.low[axis]), f64::from(limits.high[axis]));
        if !(low..=high).contains(&f64::from(position[axis])) {
            return;
        }
        // A few roundings of a difference of coordinates, and of a velocity too small to be normal.
        let rounding = 1e-6 * low.abs().max(high.abs()) + 1e-40;
        let domain = low - rounding..=high + rounding;
        assert!(
            domain.contains(&there[axis]),
            "from {position:?} with {velocity:?} to {there:?}"
        );
    }
    if axes == 2 {
        let place = position.map(f64::from);
        let was_clear = limits.keep_out.iter().all(|d| distance(d, place) > 1.0001);
        let is_clear = limits.keep_out.iter().all(|d| distance(d, there) >= 1.0);
        assert!(
            is_clear || !was_clear,
            "from {position:?} with {velocity:?} into a disc, to {there:?}"
        );
    }
}

/// From a disc's centre, in radii.
fn distance(disc: &Disc, place: [f64; 2]) -> f64 {
    let [x, y] = [0, 1].map(|k| place[k] - f64::from(disc.centre[k]));
    x.hypot(y) / f64::from(disc.radius)
}
