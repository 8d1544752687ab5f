//! Which part of a grid a problem lives on, and what its boundary is made of.

use super::shape::Shape;
use crate::grid::{Edge, Grid};

/// Side ids below this are ends of the box: axis 0 low, axis 0 high, axis 1 low, axis 1 high.
pub const BOX_SIDES: usize = 4;

/// A picture of the domain, of any size; row-major, stretched over the whole box.
#[derive(Debug, Clone, PartialEq)]
pub struct Mask {
    /// Its points along each axis.
    pub points: [usize; 2],
    /// Which of them belong to the domain.
    pub inside: Vec<bool>,
}

/// A part of the domain's boundary that belongs to one node's volume.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// The node.
    pub node: usize,
    /// What lies beyond: an end of the box, a cut-out from [`BOX_SIDES`] on, or the mask, which
    /// comes last.
    pub side: usize,
    /// The axis that it is normal to.
    pub axis: usize,
    /// Which way is out along that axis: 1 or −1.
    pub outward: f64,
    /// Its length in spacings of the other axis: 1 or ½; 1 on a line.
    pub share: f64,
}

/// The cells of a grid that are left when shapes are cut out of it.
///
/// A cell between neighbouring nodes is present if all its corners are kept. The volume of a node is
/// the quarters (on a line, halves) of the present cells around it; a node without any is dry. So the
/// boundary follows grid lines and nodes stand on it, as they do on the walls of the box.
#[derive(Debug, Clone)]
pub struct Domain {
    grid: Grid,
    /// Of each cell, by its lowest corner: nothing if present, else the side id of what took it.
    cells: Vec<Option<usize>>,
    /// Cells along each axis; 1 along an axis that is not there.
    cell_points: [usize; 2],
    volume: Vec<f64>,
    pieces: Vec<Piece>,
    parts: Vec<usize>,
    sides: usize,
}

impl Domain {
    /// What is left of the box of `grid` without `cut_outs` and, if there is one, within `mask`.
    ///
    /// # Panics
    /// If an axis has fewer than 2 points, or the mask no points or not as many as it says.
    pub fn new(grid: Grid, cut_outs: &[Shape], mask: Option<&Mask>) -> Self {
        let points = &grid.points[..grid.axes];
        assert!(points.iter().all(|&n| n >= 2), "a cell lies between nodes");
        if let Some(Mask { points, inside }) = mask {
            let named = points[0] * points[1];
            assert!(named > 0 && named == inside.len(), "{points:?}");
        }
        let removed: Vec<_> = (0..grid.len())
            .map(|node| removed_by(&grid, cut_outs, mask, node))
            .collect();
        let mut domain = Self {
            grid,
            cells: Vec::new(),
            cell_points: [0, 1].map(|axis| match axis < grid.axes {
                true => grid.intervals(axis),
                false => 1,
            }),
            volume: vec![0.0; grid.len()],
            pieces: Vec::new(),
            parts: Vec::new(),
            sides: BOX_SIDES + cut_outs.len() + usize::from(mask.is_some()),
        };
        let [rows, columns] = domain.cell_points;
        domain.cells = (0..rows * columns)
            .map(|cell| {
                let corners = domain.corners([cell / columns, cell % columns]);
                corners.filter_map(|node| removed[node]).min()
            })
            .collect();
        domain.measure();
        domain.find_parts();
        domain
    }

    /// The grid that it is a part of.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Side ids there are, those of an axis that is not there included.
    pub fn sides(&self) -> usize {
        self.sides
    }

    /// Whether a node belongs to the domain.
    pub fn wet(&self, node: usize) -> bool {
        self.volume[node] > 0.0
    }

    /// Each node's share of a full volume `h₀ h₁`; zero for dry ones.
    pub fn volume(&self) -> &[f64] {
        &self.volume
    }

    /// The boundary, by node.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// One node of each connected part.
    pub fn parts(&self) -> &[usize] {
        &self.parts
    }

    /// The next node along an axis, where the grid goes on.
    pub fn next(&self, node: usize, axis: usize) -> Option<usize> {
        let columns = self.grid.points[1];
        let (at, stride) = match axis {
            0 => (node / columns, columns),
            _ => (node % columns, 1),
        };
        let points = self.grid.points[axis];
        match self.grid.edges[axis] {
            _ if axis >= self.grid.axes => None,
            _ if at + 1 < points => Some(node + stride),
            Edge::Wall => None,
            Edge::Periodic => Some(node - at * stride),
        }
    }

    /// The face between a node's volume and that of the [`next`](Self::next) one along `axis`, in
    /// spacings of the other axis: 1, ½, or 0 where there is none.
    pub fn face(&self, node: usize, axis: usize) -> f64 {
        let [i, j] = self.position(node);
        let beside = match (self.grid.axes, axis) {
            (1, 0) => return if self.present([i, 0]) { 1.0 } else { 0.0 },
            (1, _) => return 0.0,
            (_, 0) => [[i, j - 1], [i, j]],
            _ => [[i - 1, j], [i, j]],
        };
        beside.iter().filter(|cell| self.present(**cell)).count() as f64 / 2.0
    }

    fn position(&self, node: usize) -> [isize; 2] {
        let columns = self.grid.points[1];
        [(node / columns) as isize, (node % columns) as isize]
    }

    /// Where a cell's record is, if the box has such a cell.
    fn cell(&self, at: [isize; 2]) -> Option<usize> {
        let [i, j] = [0, 1].map(|axis| {
            let points = self.cell_points[axis] as isize;
            match self.grid.edges[axis] {
                Edge::Wall => (0..points).contains(&at[axis]).then_some(at[axis]),
                Edge::Periodic => Some(at[axis].rem_euclid(points)),
            }
        });
        Some(i? as usize * self.cell_points[1] + j? as usize)
    }

    fn present(&self, at: [isize; 2]) -> bool {
        self.cell(at).is_some_and(|cell| self.cells[cell].is_none())
    }

    fn node(&self, at: [usize; 2]) -> usize {
        let [n0, n1] = self.grid.points;
        at[0] % n0 * n1 + at[1] % n1
    }

    /// Both corners on a line, all four in a plane.
    fn corners(&self, [i, j]: [usize; 2]) -> impl Iterator<Item = usize> {
        let across = self.grid.axes; // 1 on a line: `j` alone.
        [[0, 0], [1, 0], [0, 1], [1, 1]]
            .into_iter()
            .take(2 * across)
            .map(move |[di, dj]| self.node([i + di, j + dj]))
    }

    /// Gives every present cell and its outer sides to the nodes around it.
    fn measure(&mut self) {
        let [_, columns] = self.cell_points;
        let quarter = 0.5f64.powi(self.grid.axes as i32);
        for cell in (0..self.cells.len()).filter(|cell| self.cells[*cell].is_none()) {
            let at = [cell / columns, cell % columns];
            let corners: Vec<_> = self.corners(at).collect();
            corners
                .iter()
                .for_each(|node| self.volume[*node] += quarter);
            for (axis, up) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                if axis >= self.grid.axes {
                    continue;
                }
                let mut beyond = at.map(|at| at as isize);
                beyond[axis] += 2 * up - 1;
                let side = match self.cell(beyond) {
                    Some(cell) => self.cells[cell],
                    None => Some(2 * axis + up as usize),
                };
                let Some(side) = side else { continue };
                let mut low = at;
                low[axis] += up as usize;
                let mut ends = vec![self.node(low)];
                if self.grid.axes == 2 {
                    low[1 - axis] += 1;
                    ends.push(self.node(low));
                }
                let share = 1.0 / ends.len() as f64;
                self.pieces.extend(ends.into_iter().map(|node| Piece {
                    node,
                    side,
                    axis,
                    outward: (2 * up - 1) as f64,
                    share,
                }));
            }
        }
        let key = |p: &Piece| (p.node, p.side, p.axis, p.outward > 0.0);
        self.pieces.sort_by_key(key);
        // The halves that two cells gave to the node between them are one piece.
        self.pieces.dedup_by(|second, first| {
            let same = key(first) == key(second);
            if same {
                first.share += second.share;
            }
            same
        });
    }

    /// Floods the nodes from each that no earlier flood has reached.
    fn find_parts(&mut self) {
        let mut neighbours = vec![Vec::new(); self.grid.len()];
        for node in 0..self.grid.len() {
            for axis in 0..self.grid.axes {
                let next = self
                    .next(node, axis)
                    .filter(|_| self.face(node, axis) > 0.0);
                if let Some(next) = next {
                    neighbours[node].push(next);
                    neighbours[next].push(node);
                }
            }
        }
        let mut reached = vec![false; self.grid.len()];
        for start in 0..self.grid.len() {
            if reached[start] || !self.wet(start) {
                continue;
            }
            self.parts.push(start);
            reached[start] = true;
            let mut front = vec![start];
            while let Some(node) = front.pop() {
                for &next in &neighbours[node] {
                    if !std::mem::replace(&mut reached[next], true) {
                        front.push(next);
                    }
                }
            }
        }
    }
}

/// The side id of what removes a node, the first cut-out if several do.
fn removed_by(grid: &Grid, cut_outs: &[Shape], mask: Option<&Mask>, node: usize) -> Option<usize> {
    let place = grid.place(node);
    let shape = (cut_outs.iter()).position(|shape| shape.covers(grid, place));
    let masked = || mask.is_some_and(|mask| !mask.keeps(grid, node));
    shape
        .or_else(|| masked().then_some(cut_outs.len()))
        .map(|k| BOX_SIDES + k)
}

impl Mask {
    /// Whether the cell of the picture that a node falls into is inside; in whole numbers, so that a
    /// picture with the grid's points is taken point by point.
    fn keeps(&self, grid: &Grid, node: usize) -> bool {
        let columns = grid.points[1];
        let at = [node / columns, node % columns];
        let [i, j] = [0, 1].map(|axis| {
            let intervals = grid.intervals(axis).max(1);
            (at[axis] * self.points[axis] / intervals).min(self.points[axis] - 1)
        });
        self.inside[i * self.points[1] + j]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn square(n: usize, edge: Edge) -> Grid {
        Grid::plane([n, n], [1.0, 1.0], edge)
    }

    fn rectangle(low: [f64; 2], high: [f64; 2]) -> Shape {
        Shape::Rectangle { low, high }
    }

    /// Length of a side's pieces facing one way, in spacings.
    fn length(domain: &Domain, side: usize, axis: usize, outward: f64) -> f64 {
        let facing = |p: &&Piece| (p.side, p.axis, p.outward) == (side, axis, outward);
        domain.pieces().iter().filter(facing).map(|p| p.share).sum()
    }

    #[test]
    fn a_full_box_has_its_volume_and_four_sides() {
        let domain = Domain::new(Grid::plane([5, 9], [1.0, 2.0], Edge::Wall), &[], None);
        assert_eq!((domain.volume()[0], domain.volume()[1]), (0.25, 0.5));
        assert_eq!((domain.volume()[10], domain.face(1, 0)), (1.0, 1.0));
        assert_eq!((domain.face(0, 1), domain.face(44, 0)), (0.5, 0.0));
        assert_eq!(domain.volume().iter().sum::<f64>(), 32.0);
        let lengths = [(0, 0, -1.0), (1, 0, 1.0), (2, 1, -1.0), (3, 1, 1.0)]
            .map(|(side, axis, outward)| length(&domain, side, axis, outward));
        assert_eq!(lengths, [8.0, 8.0, 4.0, 4.0]);
        assert_eq!((domain.parts(), domain.sides()), (&[0][..], 4));
        // 24 nodes on the walls, the corners on two.
        assert_eq!(domain.pieces().len(), 28);
    }

    #[test]
    fn a_line_has_two_ends_and_a_ring_none() {
        let line = Domain::new(Grid::line(5, 1.0, Edge::Wall), &[], None);
        assert_eq!(line.volume(), [0.5, 1.0, 1.0, 1.0, 0.5]);
        let piece = |node, side, outward| Piece {
            node,
            side,
            axis: 0,
            outward,
            share: 1.0,
        };
        assert_eq!(line.pieces(), [piece(0, 0, -1.0), piece(4, 1, 1.0)]);
        let ring = Domain::new(Grid::line(5, 1.0, Edge::Periodic), &[], None);
        assert_eq!((ring.volume(), ring.pieces()), (&[1.0; 5][..], &[][..]));
        assert_eq!((ring.next(4, 0), ring.face(4, 0)), (Some(0), 1.0));
        assert_eq!((line.next(4, 0), line.next(3, 1)), (None, None));
        // A gap makes two parts, whose inner ends face it.
        let cut = Domain::new(
            Grid::line(11, 1.0, Edge::Wall),
            &[rectangle([0.4, -1.0], [0.6, 1.0])],
            None,
        );
        assert_eq!((cut.parts(), cut.wet(5)), (&[0, 6][..], false));
        assert_eq!(cut.pieces()[1..3], [piece(4, 4, 1.0), piece(6, 4, -1.0)]);
    }

    /// A hole of 2 × 4 cells in 8 × 8, on grid lines: the rim is wet and has its exact length.
    #[test]
    fn a_hole_on_grid_lines_keeps_its_rim() {
        let hole = rectangle([0.25, 0.25], [0.5, 0.75]);
        let domain = Domain::new(square(9, Edge::Wall), &[hole], None);
        assert_eq!(domain.volume().iter().sum::<f64>(), 64.0 - 8.0);
        assert_eq!(domain.volume().iter().filter(|v| **v == 0.0).count(), 3);
        // Corner, rim.
        assert_eq!(
            (domain.volume()[2 * 9 + 2], domain.volume()[2 * 9 + 3]),
            (0.75, 0.5)
        );
        for (axis, expected) in [(0, 4.0), (1, 2.0)] {
            for outward in [-1.0, 1.0] {
                assert_eq!(length(&domain, 4, axis, outward), expected);
            }
        }
        assert_eq!(domain.parts().len(), 1);
    }

    #[test]
    fn a_cut_at_the_wall_leaves_no_wall_behind_it() {
        for high in [1.0, 1.5] {
            let cut = rectangle([0.5, 0.5], [high, high]);
            let domain = Domain::new(square(9, Edge::Wall), &[cut], None);
            assert_eq!(domain.volume().iter().sum::<f64>(), 48.0);
            assert_eq!(length(&domain, 1, 0, 1.0), 4.0);
            assert_eq!(length(&domain, 4, 0, 1.0), 4.0);
            assert!(!domain.wet(80) && domain.wet(4 * 9 + 4));
        }
    }

    #[test]
    fn of_two_shapes_the_first_names_the_rim_and_the_mask_comes_last() {
        let low = rectangle([0.25, -1.0], [0.75, 0.5]);
        let all = rectangle([0.25, -1.0], [0.75, 0.75]);
        let mut inside = vec![true; 64];
        inside[56..].fill(false);
        let mask = Mask {
            points: [8, 8],
            inside,
        };
        let domain = Domain::new(square(9, Edge::Wall), &[low, all], Some(&mask));
        assert_eq!(domain.sides(), 7);
        // The mask removes nodes 7 and 8 of axis 0, and the shapes all but two columns before them.
        assert_eq!(length(&domain, 6, 0, 1.0), 2.0);
        // Nodes 0 to 3 of axis 1 are the lower shape's and name four columns of cells.
        assert_eq!(length(&domain, 4, 0, 1.0), 4.0);
        assert_eq!(length(&domain, 5, 0, 1.0), 2.0);
        assert_eq!(
            (length(&domain, 5, 1, -1.0), length(&domain, 4, 1, -1.0)),
            (4.0, 0.0)
        );
    }

    #[test]
    fn a_shape_over_the_seam_of_a_torus_goes_on_at_the_other_end() {
        let grid = square(8, Edge::Periodic);
        let seam = Domain::new(grid, &[rectangle([0.875, 0.25], [1.125, 0.75])], None);
        let middle = Domain::new(grid, &[rectangle([0.375, 0.25], [0.625, 0.75])], None);
        for node in 0..64 {
            let turned = (node + 32) % 64;
            assert_eq!(seam.volume()[node], middle.volume()[turned], "{node}");
            assert_eq!(seam.face(node, 0), middle.face(turned, 0));
            assert_eq!(seam.face(node, 1), middle.face(turned, 1));
        }
        assert_eq!(seam.volume().iter().sum::<f64>(), 64.0 - 8.0);
        assert_eq!(length(&seam, 4, 0, 1.0), 4.0);
    }

    #[test]
    fn masks_are_read_by_relative_position_at_any_size() {
        let half = |points: [usize; 2]| Mask {
            points,
            inside: (0..points[0] * points[1])
                .map(|k| 2 * (k / points[1]) < points[0])
                .collect(),
        };
        let sizes = [[2, 1], [9, 9], [90, 7], [400, 300]];
        let kept = sizes.map(|size| {
            let domain = Domain::new(square(9, Edge::Wall), &[], Some(&half(size)));
            domain.volume().iter().sum::<f64>()
        });
        // Nodes 0 to 3, or to the middle one of an odd picture.
        assert_eq!(kept, [24.0, 32.0, 24.0, 24.0]);
        let ring = Grid::line(49, 1.0, Edge::Periodic);
        let inside: Vec<_> = (0..49).map(|k| k % 7 != 3).collect();
        let mask = Mask {
            points: [49, 1],
            inside: inside.clone(),
        };
        let domain = Domain::new(ring, &[], Some(&mask));
        (0..49).for_each(|node| assert_eq!(domain.wet(node), inside[node], "{node}"));
    }

    #[test]
    fn parts_that_do_not_touch_are_counted() {
        let picture = [
            "##.##", //
            "##.##", "....#", "##..#", "##..#",
        ];
        let mask = Mask {
            points: [5, 5],
            inside: picture.concat().bytes().map(|c| c == b'#').collect(),
        };
        let domain = Domain::new(square(5, Edge::Wall), &[], Some(&mask));
        // The column of single nodes on the right has no cells.
        assert_eq!(domain.parts(), [0, 3, 15]);
        let torus = Domain::new(square(5, Edge::Periodic), &[], Some(&mask));
        assert_eq!(torus.parts().len(), 1);
        let none = Mask {
            points: [1, 1],
            inside: vec![false],
        };
        let nothing = Domain::new(square(5, Edge::Wall), &[], Some(&none));
        assert_eq!((nothing.parts(), nothing.pieces()), (&[][..], &[][..]));
    }

    proptest! {
        /// Whatever a volume is made of, it is closed: its faces and pieces along each axis balance.
        #[test]
        fn volumes_are_closed(
            inside in prop::collection::vec(prop::bool::weighted(0.8), 42),
            periodic: bool,
            radius in 0.1..0.5f64,
        ) {
            let edge = if periodic { Edge::Periodic } else { Edge::Wall };
            let disc = Shape::Disc { centre: [0.3, 0.9], radius };
            let mask = Mask { points: [6, 7], inside };
            let domain = Domain::new(Grid::plane([9, 8], [1.0, 1.0], edge), &[disc], Some(&mask));
            let mut open = [[0.0; 72]; 2];
            for (axis, open) in open.iter_mut().enumerate() {
                for node in 0..72 {
                    let face = domain.face(node, axis);
                    prop_assert!(face == 0.0 || domain.wet(node));
                    if let Some(next) = domain.next(node, axis) {
                        open[node] += face;
                        open[next] -= face;
                    }
                }
            }
            for piece in domain.pieces() {
                prop_assert!(domain.wet(piece.node) && piece.side < domain.sides());
                prop_assert!(piece.share == 0.5 || piece.share == 1.0);
                open[piece.axis][piece.node] += piece.outward * piece.share;
            }
            prop_assert!(open.iter().flatten().all(|sum| *sum == 0.0), "{open:?}");
            prop_assert!(domain.parts().iter().all(|node| domain.wet(*node)));
        }
    }
}
