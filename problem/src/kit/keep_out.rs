//! Shapes to keep out of, by the discs that policies have room for.
//!
//! Agents carry a few discs and no other shape. Discs that cover a rectangle would forbid much beside it,
//! discs within it would leave its corners open; these do a little of both, and as little as they can.

use super::shape::Shape;
use crate::Disc;
use crate::grid::Grid;

/// Points where discs and shape are compared while discs are moved, and at the end: the side of a square
/// of as many.
const COARSE: usize = 64;
const FINE: usize = 160;
/// Points along the rim of a disc, likewise.
const RIM: usize = 360;
/// Most that discs may be off a shape's rim, as a share of how thick it is: a disc is off a square's by
/// nine hundredths at the best, a row of them off a bar's by an eighth.
const TOLERANCE: f64 = 1.0 / 6.0;
/// How much more the worst point counts than others while discs are moved: the power of a mean, first a
/// low one, in which all have a say.
const POWERS: [i32; 2] = [8, 32];

/// Discs in the place of a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Stand {
    /// The discs.
    pub discs: Vec<Disc>,
    /// How far beyond the shape's rim they reach at most.
    pub beyond: f64,
    /// How deep in the shape the deepest point is that none of them covers.
    pub open: f64,
}

impl Stand {
    /// As few discs as come as close to a shape as they should, at most so many. What is outside the box,
    /// where nobody gets, does not count. Where there are too few the closest, as an error.
    pub fn of(shape: &Shape, grid: &Grid, most: usize) -> Result<Self, Self> {
        if let Shape::Disc { centre, radius } = shape {
            let disc = Disc {
                centre: *centre,
                radius: *radius,
            };
            return Ok(Self {
                discs: vec![disc],
                beyond: 0.0,
                open: 0.0,
            });
        }
        let (points, check) = (
            Points::of(shape, grid, COARSE),
            Points::of(shape, grid, FINE),
        );
        if check.deepest() <= 0.0 {
            // Nobody gets there.
            return Ok(Self {
                discs: Vec::new(),
                beyond: 0.0,
                open: 0.0,
            });
        }
        let spacing = grid.spacing(0).min(grid.spacing(1));
        // The rims of cut-outs follow grid lines: less than half a spacing means nothing.
        let deepest = check.deepest();
        let bearable = (2.0 * TOLERANCE * deepest)
            .max(0.5 * spacing)
            .min(0.5 * deepest);
        let mut closest: Option<Self> = None;
        for count in 1..=most {
            let discs = points.fitted(count);
            let [beyond, open] = check.off(&discs, shape, grid);
            let found = Self {
                discs,
                beyond,
                open,
            };
            if found.off() <= bearable {
                return Ok(found);
            }
            if closest.as_ref().is_none_or(|best| found.off() < best.off()) {
                closest = Some(found);
            }
        }
        Err(closest.unwrap_or(Self {
            discs: Vec::new(),
            beyond: 0.0,
            open: check.deepest(),
        }))
    }

    /// How far they are off the shape's rim, either way.
    pub fn off(&self) -> f64 {
        self.beyond.max(self.open)
    }
}

/// Places in and around a shape, with how deep in it they are; negative outside.
struct Points(Vec<([f64; 2], f64)>);

impl Points {
    fn of(shape: &Shape, grid: &Grid, count: usize) -> Self {
        let [low, high] = shape.bounds();
        let size = [0, 1].map(|a| high[a] - low[a]);
        let beside = 0.5 * size[0].min(size[1]);
        if (0..2).any(|a| low[a] >= grid.high[a] || grid.low[a] >= high[a]) {
            // It is beyond the box.
            return Self(Vec::new());
        }
        let ends = [0, 1].map(|a| {
            [
                (low[a] - beside).max(grid.low[a]),
                (high[a] + beside).min(grid.high[a]),
            ]
        });
        let apart = ends.iter().map(|[first, last]| last - first);
        let apart = apart.product::<f64>().sqrt() / count as f64;
        let along = |axis: usize| {
            let [first, last] = ends[axis];
            let steps = ((last - first) / apart).ceil().clamp(1.0, 1e3);
            (0..=steps as usize).map(move |k| first + (last - first) * k as f64 / steps)
        };
        let places = along(0).flat_map(|x| along(1).map(move |y| [x, y]));
        Self(places.map(|place| (place, shape.depth(place))).collect())
    }

    fn deepest(&self) -> f64 {
        self.0.iter().map(|(_, depth)| *depth).fold(0.0, f64::max)
    }

    /// How far each point is on the wrong side: covered outside the shape, or open within it.
    fn wrong<'a>(&'a self, discs: &'a [Disc]) -> impl Iterator<Item = f64> + 'a {
        self.0.iter().map(|(place, depth)| {
            let covered = discs.iter().any(|disc| disc.contains(*place));
            match covered == (*depth > 0.0) {
                true => 0.0,
                false => *depth,
            }
        })
    }

    /// How far discs reach beyond the shape, and how deep it is open: at these points and along the rims,
    /// where most of what is worst is.
    fn off(&self, discs: &[Disc], shape: &Shape, grid: &Grid) -> [f64; 2] {
        let rims = discs.iter().flat_map(|disc| {
            (0..RIM).map(|k| {
                let (s, c) = libm::sincos(k as f64 / RIM as f64 * std::f64::consts::TAU);
                // Rounded, still outside.
                let radius = disc.radius * (1.0 + 1e-9);
                [disc.centre[0] + radius * c, disc.centre[1] + radius * s]
            })
        });
        let rims = rims.filter(|place| {
            let within = (0..2).all(|a| (grid.low[a]..=grid.high[a]).contains(&place[a]));
            within && !discs.iter().any(|disc| disc.contains(*place))
        });
        let depths = rims.map(|place| shape.depth(place));
        let depths = self.wrong(discs).chain(depths);
        depths.fold([0.0; 2], |[beyond, open], depth| {
            [f64::max(beyond, -depth), f64::max(open, depth)]
        })
    }

    /// How bad discs are.
    fn cost(&self, discs: &[Disc], size: f64, power: i32) -> f64 {
        self.wrong(discs)
            .map(|depth| (depth / size).powi(power))
            .sum()
    }

    /// So many discs, as close to the shape as moving and resizing them one by one brings them.
    fn fitted(&self, count: usize) -> Vec<Disc> {
        let size = self.deepest();
        let mut discs = self.parts(count, size);
        if discs.is_empty() || size <= 0.0 {
            return discs;
        }
        for power in POWERS {
            self.improve(&mut discs, size, power);
        }
        discs
    }

    /// Moves and resizes discs as long as that helps, in ever shorter steps.
    fn improve(&self, discs: &mut [Disc], size: f64, power: i32) {
        let (mut step, mut best) = (0.1 * size, self.cost(discs, size, power));
        while step > 1e-3 * size {
            let before = best;
            for k in 0..discs.len() {
                for way in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
                    for by in [step, -step] {
                        let old = discs[k];
                        let [x, y] = old.centre;
                        discs[k] = Disc {
                            centre: [x + by * way[0], y + by * way[1]],
                            radius: (old.radius + by * way[2]).max(0.1 * size),
                        };
                        let cost = self.cost(discs, size, power);
                        match cost < best {
                            true => best = cost,
                            false => discs[k] = old,
                        }
                    }
                }
            }
            let helped = best < 0.999 * before;
            if !helped {
                step *= 0.5;
            }
        }
    }

    /// The shape in so many parts, each gathered around its middle (Lloyd's iteration from places as far
    /// from each other as there are), as discs.
    fn parts(&self, count: usize, size: f64) -> Vec<Disc> {
        let inside = self.0.iter().filter(|(_, depth)| *depth > 0.0);
        let inside: Vec<[f64; 2]> = inside.map(|(place, _)| *place).collect();
        let Some(first) = inside.first() else {
            return Vec::new();
        };
        let gap = |a: &[f64; 2], b: &[f64; 2]| libm::hypot(a[0] - b[0], a[1] - b[1]);
        let mut middles = vec![*first];
        while middles.len() < count {
            let alone = |p: &[f64; 2]| {
                let gaps = middles.iter().map(|m| gap(p, m));
                gaps.fold(f64::INFINITY, f64::min)
            };
            let next = inside
                .iter()
                .copied()
                .max_by(|a, b| alone(a).total_cmp(&alone(b)));
            middles.extend(next);
        }
        for _ in 0..200 {
            let mut sums = vec![([0.0; 2], 0.0); count];
            for place in &inside {
                let near = |k: &usize| gap(&middles[*k], place);
                let nearest = (0..count).min_by(|a, b| near(a).total_cmp(&near(b)));
                let (sum, number) = &mut sums[nearest.unwrap_or(0)];
                (0..2).for_each(|a| sum[a] += place[a]);
                *number += 1.0;
            }
            for (middle, (sum, number)) in middles.iter_mut().zip(&sums) {
                if *number > 0.0 {
                    *middle = sum.map(|x| x / number);
                }
            }
        }
        let disc = |centre: [f64; 2]| Disc {
            centre,
            radius: 1.15 * size,
        };
        middles.into_iter().map(disc).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Edge;

    fn rectangle(low: [f64; 2], high: [f64; 2]) -> Shape {
        Shape::Rectangle { low, high }
    }

    fn plate() -> Grid {
        Grid::plane([201, 201], [10.0, 10.0], Edge::Wall)
    }

    /// A disc of radius r around a square of side 1 reaches r − 1/2 beyond its sides and leaves 1/2 − r/√2
    /// open at its corners: as much of both at r = 2 − √2, which is 0.086.
    #[test]
    fn a_square_is_one_disc() {
        let stand = Stand::of(&rectangle([4.0, 4.0], [5.0, 5.0]), &plate(), 4).unwrap();
        let [disc] = stand.discs[..] else {
            panic!("{stand:?}")
        };
        assert!((disc.radius - 0.586).abs() < 0.02, "{stand:?}");
        assert!(
            disc.centre.iter().all(|c| (c - 4.5).abs() < 0.02),
            "{stand:?}"
        );
        assert!(
            (stand.beyond - 0.086).abs() < 0.02 && (stand.open - 0.086).abs() < 0.02,
            "{stand:?}"
        );
    }

    #[test]
    fn a_longer_shape_takes_more_and_a_wall_cannot_be_had() {
        let stand = Stand::of(&rectangle([2.0, 2.0], [5.0, 3.0]), &plate(), 4).unwrap();
        assert_eq!(stand.discs.len(), 3, "{stand:?}");
        assert!(stand.off() <= TOLERANCE, "{stand:?}");
        let wall = Stand::of(&rectangle([1.0, 2.0], [9.0, 2.5]), &plate(), 4).unwrap_err();
        assert!(wall.off() > 0.0625, "{wall:?}");
        let triangle = Shape::Polygon(vec![[2.0, 2.0], [6.0, 2.0], [4.0, 5.5]]);
        let stand = Stand::of(&triangle, &plate(), 4).unwrap();
        assert!((2..=4).contains(&stand.discs.len()), "{stand:?}");
    }

    /// What is told is what random points find.
    #[test]
    fn nothing_is_farther_off_than_is_told() {
        let shape = Shape::Polygon(vec![[2.0, 2.0], [5.0, 2.2], [5.5, 4.0], [2.5, 4.5]]);
        let stand = Stand::of(&shape, &plate(), 4).unwrap();
        for k in 0..40_000 {
            let place = [
                1.0 + 5.5 * (k as f64 * 0.618_034).fract(),
                1.0 + 4.5 * (k as f64 * 0.754_878).fract(),
            ];
            let (covered, depth) = (
                stand.discs.iter().any(|disc| disc.contains(place)),
                shape.depth(place),
            );
            let off = if covered { -depth } else { depth };
            let told = if covered { stand.beyond } else { stand.open };
            // Within a cell of the points where it was looked.
            assert!(off <= told + 0.02, "{place:?}: {off} in {stand:?}");
        }
    }

    #[test]
    fn outside_the_box_discs_may_be_anywhere() {
        let corner = Stand::of(&rectangle([8.0, 8.0], [12.0, 12.0]), &plate(), 4).unwrap();
        assert!(corner.discs.len() <= 2, "{corner:?}");
        let beyond = Stand::of(&rectangle([11.0, 11.0], [12.0, 12.0]), &plate(), 4).unwrap();
        assert!(beyond.discs.is_empty(), "{beyond:?}");
    }
}
