//! What can be cut out of a box.

use crate::grid::{Edge, Grid};

/// How close to its rim, relative to a shape's size and place, a point counts as on it: more than
/// coordinates are rounded by, less than any grid's spacing.
const RIM: f64 = 1e-9;

/// A region of the plane. On a line, only its extent along axis 0 at height 0 counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A disc.
    Disc {
        /// Its centre.
        centre: [f64; 2],
        /// Its radius.
        radius: f64,
    },
    /// A rectangle along the axes.
    Rectangle {
        /// Its lowest corner.
        low: [f64; 2],
        /// Its highest corner.
        high: [f64; 2],
    },
    /// What a closed line through these corners surrounds, an odd number of times if it crosses
    /// itself.
    Polygon(Vec<[f64; 2]>),
}

impl Shape {
    /// Whether a point lies inside and not on the rim, so that the rim of a shape that follows the
    /// grid's lines stays part of the domain.
    pub fn contains(&self, point: [f64; 2]) -> bool {
        let rim = self.rim();
        match self {
            Self::Disc { centre, radius } => distance(point, *centre) < radius - rim,
            Self::Rectangle { low, high } => {
                (0..2).all(|a| low[a] + rim < point[a] && point[a] < high[a] - rim)
            }
            Self::Polygon(corners) => {
                let crossings = sides(corners).filter(|side| crosses(*side, point)).count();
                crossings % 2 == 1 && sides(corners).all(|side| distance_to(side, point) > rim)
            }
        }
    }

    /// The same on a grid: over the seam of a periodic axis a shape goes on at the other end.
    pub fn covers(&self, grid: &Grid, place: [f64; 2]) -> bool {
        let [down, across] = [0, 1].map(|axis| {
            let shifts: &[f64] = match grid.edges[axis] {
                Edge::Wall => &[0.0],
                Edge::Periodic => &[0.0, -1.0, 1.0],
            };
            shifts
                .iter()
                .map(move |s| place[axis] + s * grid.extent(axis))
        });
        down.into_iter()
            .any(|x| across.clone().any(|y| self.contains([x, y])))
    }

    /// How deep inside a point is: its distance from the rim, negative outside.
    pub fn depth(&self, point: [f64; 2]) -> f64 {
        match self {
            Self::Disc { centre, radius } => radius - distance(point, *centre),
            Self::Rectangle { low, high } => {
                let gaps = [0, 1].map(|a| (low[a] - point[a]).max(point[a] - high[a]));
                let outside = libm::hypot(gaps[0].max(0.0), gaps[1].max(0.0));
                match outside > 0.0 {
                    true => -outside,
                    false => -gaps[0].max(gaps[1]),
                }
            }
            Self::Polygon(corners) => {
                let gaps = sides(corners).map(|side| distance_to(side, point));
                let rim = gaps.fold(f64::INFINITY, f64::min);
                let crossings = sides(corners).filter(|side| crosses(*side, point)).count();
                if crossings % 2 == 1 { rim } else { -rim }
            }
        }
    }

    /// The lowest and the highest corner of the smallest box around it.
    pub fn bounds(&self) -> [[f64; 2]; 2] {
        match self {
            Self::Disc { centre, radius } => {
                [centre.map(|c| c - radius), centre.map(|c| c + radius)]
            }
            Self::Rectangle { low, high } => [*low, *high],
            Self::Polygon(corners) => {
                let most = |start: f64, pick: fn(f64, f64) -> f64| {
                    [0, 1].map(|a| corners.iter().map(|c| c[a]).fold(start, pick))
                };
                [
                    most(f64::INFINITY, f64::min),
                    most(f64::NEG_INFINITY, f64::max),
                ]
            }
        }
    }

    fn rim(&self) -> f64 {
        let largest = self.bounds().into_iter().flatten();
        RIM * largest.fold(0.0, |most: f64, x| most.max(x.abs()))
    }
}

fn distance([x, y]: [f64; 2], [cx, cy]: [f64; 2]) -> f64 {
    libm::hypot(x - cx, y - cy)
}

type Side = [[f64; 2]; 2];

fn sides(corners: &[[f64; 2]]) -> impl Iterator<Item = Side> {
    let ends = corners.iter().cycle().skip(1);
    corners.iter().zip(ends).map(|(from, to)| [*from, *to])
}

/// Whether a ray from `point` along axis 0 meets this side; of its two ends only the lower counts, so
/// that a corner is met once.
fn crosses([from, to]: Side, [x, y]: [f64; 2]) -> bool {
    (from[1] > y) != (to[1] > y)
        && x < from[0] + (to[0] - from[0]) * (y - from[1]) / (to[1] - from[1])
}

fn distance_to([from, to]: Side, point: [f64; 2]) -> f64 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let at = (point[0] - from[0]) * along[0] + (point[1] - from[1]) * along[1];
    let s = if square > 0.0 {
        (at / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    distance(point, [from[0] + s * along[0], from[1] + s * along[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rims_are_outside_however_their_coordinates_are_rounded() {
        // 0.1 + 0.2 > 0.3 and 3 · 0.1 > 0.3 in binary.
        let square = Shape::Rectangle {
            low: [0.1, 0.1],
            high: [0.3, 0.3],
        };
        let corners = vec![[0.1, 0.1], [0.3, 0.1], [0.3, 0.3], [0.1, 0.3]];
        for shape in [square, Shape::Polygon(corners)] {
            for rim in [[0.1 + 0.2, 0.2], [0.2, 3.0 * 0.1], [0.1, 0.2], [0.1, 0.1]] {
                assert!(!shape.contains(rim), "{shape:?} {rim:?}");
            }
            for inside in [[0.2, 0.2], [0.299, 0.101]] {
                assert!(shape.contains(inside), "{shape:?} {inside:?}");
            }
        }
        let disc = Shape::Disc {
            centre: [0.5, 0.5],
            radius: 0.2,
        };
        assert!(!disc.contains([0.7, 0.5]) && !disc.contains([0.5, 0.3]));
        assert!(disc.contains([0.699, 0.5]) && !disc.contains([0.65, 0.65]));
    }

    #[test]
    fn polygons_may_be_hollow_on_one_side_and_need_three_corners() {
        let arrow = Shape::Polygon(vec![[0.0, 0.0], [2.0, 1.0], [0.0, 2.0], [1.0, 1.0]]);
        assert!(arrow.contains([1.2, 1.0]) && !arrow.contains([0.8, 1.0]));
        assert_eq!(arrow.bounds(), [[0.0, 0.0], [2.0, 2.0]]);
        for few in [vec![], vec![[0.5, 0.5]], vec![[0.0, 0.0], [1.0, 1.0]]] {
            assert!(!Shape::Polygon(few).contains([0.5, 0.5]));
        }
    }

    proptest! {
        #[test]
        fn a_rectangle_is_a_polygon_of_four_corners(x in -2.0..2.0f64, y in -2.0..2.0f64) {
            let rectangle = Shape::Rectangle { low: [-1.0, -0.5], high: [0.5, 1.5] };
            let [low, high] = rectangle.bounds();
            let polygon = Shape::Polygon(vec![low, [low[0], high[1]], high, [high[0], low[1]]]);
            prop_assert_eq!(rectangle.contains([x, y]), polygon.contains([x, y]));
            prop_assert_eq!(polygon.bounds(), [low, high]);
            let [a, b] = [&rectangle, &polygon].map(|shape| shape.depth([x, y]));
            prop_assert!((a - b).abs() < 1e-12, "{} {}", a, b);
        }

        #[test]
        fn many_corners_make_a_disc(x in -2.0..2.0f64, y in -2.0..2.0f64) {
            let disc = Shape::Disc { centre: [0.5, -0.5], radius: 1.0 };
            let corner = |k: usize| (k as f64 * std::f64::consts::TAU / 1000.0).sin_cos();
            let corners = (0..1000).map(corner).map(|(s, c)| [0.5 + c, s - 0.5]).collect();
            // The chords of 1000 corners stay within 5e-6 of the circle.
            prop_assume!((distance([x, y], [0.5, -0.5]) - 1.0).abs() > 1e-5);
            prop_assert_eq!(disc.contains([x, y]), Shape::Polygon(corners).contains([x, y]));
        }
    }
}
