//! Keeping out of discs: what the last stage does in the plane beyond walls and limits.

use crate::agent::confine;
use crate::policy::{Disc, Limits};

/// Who would end inside a disc ends beside it instead, this share of its radius off the rim; half of
/// it is what rounding and limits may use up.
const MARGIN: f32 = 1e-3;

/// [`project`](crate::agent::project) for limits with discs.
///
/// Never inlined on x86-64, for the roots in it; see [`norm`](crate::net::norm).
#[cfg_attr(target_arch = "x86_64", inline(never))]
pub(crate) fn project(
    limits: &Limits,
    period_s: f32,
    position: [f32; 2],
    velocity: [f32; 2],
) -> [f32; 2] {
    let discs = &limits.keep_out;
    let confine = |velocity| confine(limits, 2, period_s, position, velocity);
    let end = |velocity| pairwise(position, velocity, |x, v| x + v * period_s);
    if let Some(disc) = discs.iter().find(|d| distance(d, position) < d.radius) {
        let limit = limits.velocity.unwrap_or(0.0);
        // At the very centre all directions are as good.
        let outwards = direction(disc, position).unwrap_or([1.0, 0.0]);
        return confine(outwards.map(|x| limit * x));
    }
    let mut velocity = confine(velocity);
    for disc in discs {
        let rim = disc.radius * (1.0 + MARGIN);
        let there = end(velocity);
        if distance(disc, there) < rim {
            // From the very centre back to the side that the agent comes from.
            let outwards = direction(disc, there)
                .or_else(|| direction(disc, position))
                .unwrap_or([1.0, 0.0]);
            let beside = pairwise(disc.centre, outwards, |c, x| c + rim * x);
            velocity = pairwise(beside, position, |to, from| (to - from) / period_s);
        }
    }
    let velocity = confine(velocity);
    let there = end(velocity);
    let clear = |d: &Disc| distance(d, there) >= d.radius * (1.0 + 0.5 * MARGIN);
    match discs.iter().all(clear) {
        true => velocity,
        // Led into a wall, into another disc, or farther than the agent gets in a period.
        false => [0.0; 2],
    }
}

/// A function of two vectors' coordinates. Without an index, whose check a build for size keeps.
fn pairwise([a, b]: [f32; 2], [c, d]: [f32; 2], f: impl Fn(f32, f32) -> f32) -> [f32; 2] {
    [f(a, c), f(b, d)]
}

/// From a disc's centre.
fn distance(disc: &Disc, place: [f32; 2]) -> f32 {
    let [x, y] = pairwise(place, disc.centre, |x, c| x - c);
    agent_kernels::sqrt(x * x + y * y)
}

/// Away from a disc's centre; none if that cannot be told.
fn direction(disc: &Disc, place: [f32; 2]) -> Option<[f32; 2]> {
    let length = distance(disc, place);
    (length.is_finite() && length > 0.0)
        .then(|| pairwise(place, disc.centre, |x, c| (x - c) / length))
}

#[cfg(test)]
mod tests {
    use crate::agent::project;
    use crate::policy::{Disc, Limits};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// An agent of the plate with obstacles: 5 units a second at most, a step every millisecond.
    const PERIOD: f32 = 1e-3;
    const LIMIT: f32 = 5.0;

    fn plate(discs: &[([f32; 2], f32)]) -> Limits {
        Limits {
            force: None,
            velocity: Some(LIMIT),
            low: [0.0; 2],
            high: [1.0; 2],
            keep_out: discs
                .iter()
                .map(|&(centre, radius)| Disc { centre, radius })
                .collect(),
            ..Limits::default()
        }
    }

    /// As in the published experiment: three discs on the diagonal.
    fn diagonal() -> Limits {
        plate(&[0.3, 0.5, 0.7].map(|x| ([x, x], 0.06)))
    }

    fn inside(disc: &Disc, [x, y]: [f64; 2]) -> bool {
        let [cx, cy] = disc.centre.map(f64::from);
        (x - cx).hypot(y - cy) < f64::from(disc.radius)
    }

    /// Where the agent truly is after a period.
    fn after(place: [f64; 2], velocity: [f32; 2]) -> [f64; 2] {
        [0, 1].map(|k| place[k] + f64::from(velocity[k]) * f64::from(PERIOD))
    }

    #[test]
    fn far_from_discs_a_velocity_is_left_alone() {
        let asked = [3.0, -5.0];
        assert_eq!(project(&diagonal(), 2, PERIOD, [0.3, 0.6], asked), asked);
    }

    /// At (0.56 + 2e-4, 0.5), beside the middle disc, straight at its centre: a step of 5e-3 ends
    /// well inside and is cut to end 1e-3 · 0.06 = 6e-5 off the rim.
    #[test]
    fn an_agent_that_heads_for_a_disc_stops_just_short_of_it() {
        let [vx, vy] = project(&diagonal(), 2, PERIOD, [0.5602, 0.5], [-LIMIT, 0.0]);
        assert!((0.5602 + vx * PERIOD - 0.56006).abs() < 1e-6, "{vx}");
        assert_eq!(vy, 0.0);
    }

    /// At an angle it slides along the rim at nearly its speed.
    #[test]
    fn an_agent_that_grazes_a_disc_slides_along_it() {
        let [vx, vy] = project(&diagonal(), 2, PERIOD, [0.56006, 0.5], [-0.5, 4.0]);
        assert!(vy > 3.9 && vx.abs() < 0.5, "{vx} {vy}");
    }

    #[test]
    fn an_agent_inside_a_disc_leaves_it_radially_at_its_limit() {
        // 0.03 along x and 0.04 along y from the centre: 3/5 and 4/5 of the limit.
        let [vx, vy] = project(&diagonal(), 2, PERIOD, [0.53, 0.54], [-1.0, -1.0]);
        assert!(
            (vx - 3.0).abs() < 1e-4 && (vy - 4.0).abs() < 1e-4,
            "{vx} {vy}"
        );
        let centre = project(&diagonal(), 2, PERIOD, [0.5, 0.5], [0.0; 2]);
        assert_eq!(centre, [LIMIT, 0.0]);
    }

    /// Between a disc and a wall that touches it there is no way on: led beside the disc the agent
    /// would end beyond the wall.
    #[test]
    fn in_the_corner_between_a_disc_and_a_wall_an_agent_does_not_enter_either() {
        let limits = plate(&[([0.5, 0.05], 0.05)]);
        let place = [0.5 - 0.0505, 0.001];
        for way in [[LIMIT, -LIMIT], [LIMIT, 0.0]] {
            let velocity = project(&limits, 2, PERIOD, place, way);
            let there = after(place.map(f64::from), velocity);
            assert!(!inside(&limits.keep_out[0], there), "{velocity:?}");
        }
    }

    /// Any bit pattern, with the awkward ones and ordinary ones often.
    fn any_f32() -> impl Strategy<Value = f32> {
        let awkward = [0.0, f32::NAN, f32::INFINITY, f32::MAX, f32::MIN, 1e-45];
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            proptest::sample::select(awkward.to_vec()),
            -2.0f32..2.0,
        ]
    }

    fn any_pair() -> impl Strategy<Value = [f32; 2]> {
        [any_f32(), any_f32()]
    }

    /// Directions that an agent is sent in, one after the other; few under Miri, which is slow.
    const WAYS: usize = if cfg!(miri) { 4 } else { 200 };

    proptest! {
        #[test]
        fn any_input_gives_numbers(
            velocity in proptest::option::of(any_f32()),
            (low, high, position, asked) in (any_pair(), any_pair(), any_pair(), any_pair()),
            discs in proptest::collection::vec((any_pair(), any_f32()), 0..4),
            axes in 0usize..4,
            period in any_f32(),
        ) {
            let limits = Limits { velocity, low, high, ..plate(&discs) };
            let given = project(&limits, axes, period, position, asked);
            prop_assert!(given.iter().all(|v| v.is_finite()), "{given:?}");
        }

        /// Overlapping discs, discs across walls, and whatever velocity is asked for.
        #[test]
        fn agents_never_enter_a_disc(
            discs in proptest::collection::vec(([0.0f32..1.0, 0.0f32..1.0], 0.01f32..0.2), 1..=4),
            start in [0.0f64..1.0, 0.0f64..1.0],
            ways in proptest::collection::vec([-8.0f32..8.0, -8.0f32..8.0], WAYS),
        ) {
            let limits = plate(&discs);
            let blocked = |place| limits.keep_out.iter().any(|disc| inside(disc, place));
            prop_assume!(!blocked(start));
            let mut place = start;
            // Ten steps the same way: long enough to meet something.
            for way in ways.iter().flat_map(|way| std::iter::repeat_n(*way, 10)) {
                let velocity = project(&limits, 2, PERIOD, place.map(|x| x as f32), way);
                prop_assert!(velocity.iter().all(|v| v.abs() <= LIMIT));
                place = after(place, velocity);
                prop_assert!(!blocked(place), "{place:?} with {velocity:?}");
                // One rounding of a coordinate.
                prop_assert!(place.iter().all(|x| (-1e-7..=1.0 + 1e-7).contains(x)));
            }
        }
    }

    #[test]
    fn an_agent_that_started_inside_comes_out_and_stays_out() {
        let limits = diagonal();
        for start in [[0.5, 0.5], [0.31, 0.29], [0.7, 0.7599]] {
            let mut place: [f64; 2] = start;
            let mut within = Vec::new();
            for _ in 0..100 {
                let way = [0, 1].map(|k| 1e3 * (0.5 - place[k] as f32));
                let velocity = project(&limits, 2, PERIOD, place.map(|x| x as f32), way);
                place = after(place, velocity);
                within.push(limits.keep_out.iter().any(|disc| inside(disc, place)));
            }
            // The radius is 12 steps of 5e-3.
            assert!(!within[12..].contains(&true), "{start:?}: {within:?}");
        }
    }
}
