//! Heat equation on a square plate with places that agents must not enter.
//!
//! Field, actuators and episodes are those of [`heat_2d`]; the obstacles do not touch
//! the field. The paper's text and its code disagree about where they are; these are those of the
//! authors' evaluation and figure.

use super::heat_2d::{self, LOSS};
use crate::{Disc, LossWeights, Problem};

/// Radius of each keep-out zone (authors' evaluation; 0.08 in the paper's text).
pub const RADIUS: f64 = 0.06;
/// The keep-out zones, along the diagonal (authors' evaluation; the paper's text has them at
/// (0.15, 0.5), (0.85, 0.5) and (0.5, 0.15)).
pub const KEEP_OUT: [Disc; 3] = [disc(0.3), disc(0.5), disc(0.7)];
/// Distance that agents are trained to keep from a zone's rim (authors' evaluation).
pub const MARGIN: f64 = 0.04;

const fn disc(x: f64) -> Disc {
    Disc {
        centre: [x, x],
        radius: RADIUS,
    }
}

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "heat-2d-obstacles",
    summary: "steer the temperature of a plate and stay out of three places",
    keep_out: &KEEP_OUT,
    loss: LossWeights {
        collision: 20.0,
        obstacle: 100.0,
        obstacle_margin: MARGIN,
        ..LOSS
    },
    placement,
    policy: Some(include_bytes!("../../policies/heat-2d-obstacles.policy")),
    ..heat_2d::PROBLEM
};

/// As without obstacles, but those who would start inside a zone start beside it.
pub fn placement(problem: &Problem, agents: usize) -> Vec<[f64; 2]> {
    let mut places = heat_2d::placement(problem, agents);
    for place in &mut places {
        for zone in KEEP_OUT {
            if !zone.contains(*place) {
                continue;
            }
            let [dx, dy] = [0, 1].map(|axis| place[axis] - zone.centre[axis]);
            let distance = libm::hypot(dx, dy);
            // From the very centre across the diagonal that the zones lie on.
            let (towards_x, towards_y) = match distance > 1e-9 {
                true => (dx / distance, dy / distance),
                false => (0.5f64.sqrt(), -0.5f64.sqrt()),
            };
            let reach = zone.radius + MARGIN;
            *place = [
                zone.centre[0] + reach * towards_x,
                zone.centre[1] + reach * towards_y,
            ];
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_starts_where_nobody_may_be() {
        for agents in [1, 9, 16, 25, 121, 1024] {
            let places = placement(&PROBLEM, agents);
            assert_eq!(places.len(), agents);
            for place in places {
                assert!(
                    !KEEP_OUT.iter().any(|zone| zone.contains(place)),
                    "{place:?}"
                );
            }
        }
    }

    #[test]
    fn the_published_lattice_is_left_alone() {
        assert_eq!(placement(&PROBLEM, 16), heat_2d::placement(&PROBLEM, 16));
    }
}
