//! Regular grids over a line or a rectangle.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What lies beyond an axis' ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// A wall; grid points stand on both ends.
    Wall,
    /// The other end; the last grid point stands one spacing before the end.
    Periodic,
}

/// Grid points over a line or a rectangle, row-major: the last axis runs fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Space dimensions, 1 or 2.
    pub axes: usize,
    /// Points along each axis; 1 along an axis that is not there.
    pub points: [usize; 2],
    /// The lowest coordinate of each axis.
    pub low: [f64; 2],
    /// The highest coordinate of each axis.
    pub high: [f64; 2],
    /// What lies beyond the ends of each axis.
    pub edges: [Edge; 2],
}

impl Grid {
    /// `points` points on a line from 0 to `length`.
    pub const fn line(points: usize, length: f64, edge: Edge) -> Self {
        Self {
            axes: 1,
            points: [points, 1],
            low: [0.0; 2],
            high: [length, 0.0],
            edges: [edge; 2],
        }
    }

    /// Points on a rectangle from the origin to `lengths`, both axes ending alike.
    pub const fn plane(points: [usize; 2], lengths: [f64; 2], edge: Edge) -> Self {
        Self {
            axes: 2,
            points,
            low: [0.0; 2],
            high: lengths,
            edges: [edge; 2],
        }
    }

    /// Number of grid points.
    #[allow(clippy::len_without_is_empty)] // A grid is never empty.
    pub const fn len(&self) -> usize {
        self.points[0] * self.points[1]
    }

    /// Length of an axis.
    pub fn extent(&self, axis: usize) -> f64 {
        self.high[axis] - self.low[axis]
    }

    /// Steps from point to point that make the length of an axis.
    pub fn intervals(&self, axis: usize) -> usize {
        match self.edges[axis] {
            Edge::Wall => self.points[axis] - 1,
            Edge::Periodic => self.points[axis],
        }
    }

    /// Whether there are no walls: a ring, or in a plane a torus.
    pub fn is_closed(&self) -> bool {
        self.edges[..self.axes] == [Edge::Periodic; 2][..self.axes]
    }

    /// Distance between neighbouring points.
    pub fn spacing(&self, axis: usize) -> f64 {
        self.extent(axis) / self.intervals(axis).max(1) as f64
    }

    /// Coordinate of point `j` of an axis.
    pub fn coordinate(&self, axis: usize, j: usize) -> f64 {
        self.low[axis] + self.spacing(axis) * j as f64
    }

    /// Where point number `index` of the whole grid is.
    pub fn place(&self, index: usize) -> [f64; 2] {
        let [_, columns] = self.points;
        let mut place = [self.coordinate(0, index / columns), 0.0];
        if self.axes == 2 {
            place[1] = self.coordinate(1, index % columns);
        }
        place
    }

    /// The integral of a field over the domain, by the trapezoidal rule: each point stands for the
    /// stretch half-way to its neighbours, of which a point on a wall has only one.
    pub fn integral(&self, field: &[f64]) -> f64 {
        let share = |axis: usize, j: usize| match self.edges[axis] {
            Edge::Wall if j == 0 || j + 1 == self.points[axis] => 0.5 * self.spacing(axis),
            _ => self.spacing(axis),
        };
        let [_, columns] = self.points;
        let rows = field.chunks_exact(columns).enumerate();
        rows.map(|(i, row)| {
            let along = |(j, z): (usize, &f64)| match self.axes {
                1 => *z,
                _ => share(1, j) * z,
            };
            share(0, i) * row.iter().enumerate().map(along).sum::<f64>()
        })
        .sum()
    }

    /// Distance between two positions: the short way round along periodic axes.
    pub fn distance(&self, a: [f64; 2], b: [f64; 2]) -> f64 {
        let along = |axis: usize| {
            let apart = (a[axis] - b[axis]).abs();
            match self.edges[axis] {
                Edge::Wall => apart,
                Edge::Periodic => apart.min(self.extent(axis) - apart),
            }
        };
        (0..self.axes)
            .map(|axis| along(axis).powi(2))
            .sum::<f64>()
            .sqrt()
    }

    /// The shape as arrays have it: `[100]` or `[64, 80]`.
    pub fn shape(&self) -> &[usize] {
        &self.points[..self.axes]
    }
}

/// How many points a grid is to have: along its first axis, and along the others in proportion; or
/// along each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// Along the first axis, the others keeping the shape.
    First(usize),
    /// Along both axes of a plane.
    Each([usize; 2]),
}

impl From<usize> for Points {
    fn from(points: usize) -> Self {
        Self::First(points)
    }
}

impl From<[usize; 2]> for Points {
    fn from(points: [usize; 2]) -> Self {
        Self::Each(points)
    }
}

/// `96` or `48x80`.
impl FromStr for Points {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no number of grid points; write 96 or 48x80");
        let number = |text: &str| text.trim().parse().map_err(|_| wrong());
        match text.split_once('x') {
            None => Ok(Self::First(number(text)?)),
            Some((first, second)) => Ok(Self::Each([number(first)?, number(second)?])),
        }
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(points) => write!(f, "{points}"),
            Self::Each([first, second]) => write!(f, "{first}x{second}"),
        }
    }
}

/// A number where one says it all, else as text.
impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::First(points) => points.serialize(serializer),
            Self::Each(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number of grid points, 96 or \"48x80\"")]
        enum Written {
            Number(usize),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(points) => Ok(Self::First(points)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.axes {
            1 => write!(f, "{}", self.points[0]),
            _ => write!(f, "{}x{}", self.points[0], self.points[1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_stand_on_grid_points_and_periods_do_not_count_twice() {
        let wall = Grid::line(11, 2.0, Edge::Wall);
        assert_eq!((wall.spacing(0), wall.coordinate(0, 10)), (0.2, 2.0));
        let ring = Grid::line(10, 2.0, Edge::Periodic);
        assert_eq!((ring.spacing(0), ring.coordinate(0, 9)), (0.2, 1.8));
    }

    #[test]
    fn distances_go_the_short_way_round_a_ring_and_not_through_walls() {
        let ends = |edge| Grid::line(10, 2.0, edge).distance([0.25, 7.0], [1.75, 0.0]);
        assert_eq!((ends(Edge::Wall), ends(Edge::Periodic)), (1.5, 0.5));
        let torus = Grid::plane([8, 8], [10.0, 10.0], Edge::Periodic);
        assert_eq!(torus.distance([1.0, 2.0], [8.0, 8.0]), 5.0);
        let pipe = Grid {
            edges: [Edge::Wall, Edge::Periodic],
            ..torus
        };
        assert_eq!(pipe.distance([1.0, 1.0], [4.0, 7.0]), 5.0);
        assert_eq!(pipe.distance([1.0, 1.0], [9.0, 1.0]), 8.0);
        assert!(torus.is_closed() && !pipe.is_closed());
    }

    #[test]
    fn integrals_count_walls_half() {
        let room = Grid::plane([5, 9], [1.0, 2.0], Edge::Wall);
        assert_eq!(room.integral(&[3.0; 45]), 6.0);
        // Exact for what is linear along each axis: ∫∫ x y = ½ · 2.
        let field: Vec<f64> = (0..45).map(|j| room.place(j)).map(|[x, y]| x * y).collect();
        assert!((room.integral(&field) - 1.0).abs() < 1e-15);
        let ring = Grid::line(10, 2.0, Edge::Periodic);
        assert!((ring.integral(&[1.5; 10]) - 3.0).abs() < 1e-15);
        let line = Grid::line(11, 2.0, Edge::Wall);
        let ramp: Vec<f64> = (0..11).map(|j| line.coordinate(0, j)).collect();
        assert!((line.integral(&ramp) - 2.0).abs() < 1e-15);
    }

    #[test]
    fn numbers_of_points_are_read_as_they_are_written() {
        for (text, points) in [("96", Points::First(96)), ("48x80", Points::Each([48, 80]))] {
            assert_eq!(text.parse(), Ok(points));
            assert_eq!(points.to_string(), text);
        }
        for text in ["", "x", "48x", "48x80x2", "-1", "4.5"] {
            let error = text.parse::<Points>().unwrap_err();
            assert!(error.contains("48x80"), "{error}");
        }
    }

    #[test]
    fn places_are_row_major() {
        let plane = Grid::plane([3, 5], [1.0, 2.0], Edge::Wall);
        assert_eq!((plane.len(), plane.place(7)), (15, [0.5, 1.0]));
        assert_eq!(
            (plane.to_string(), plane.shape()),
            ("3x5".into(), &[3, 5][..])
        );
    }
}
