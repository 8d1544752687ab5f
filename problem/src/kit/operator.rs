//! Diffusion and advection of one field on a domain, axis by axis.

use super::domain::{Domain, Piece};
use crate::grid::Grid;

/// What a side of the domain does to a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// Holds it at given values.
    Fixed,
    /// Lets nothing through.
    Insulated,
    /// Lets through what a flow carries, and nothing else.
    Open,
    /// Exchanges it with surroundings: `−D ∂u/∂n = transfer (u − ambient)`.
    Convective {
        /// The flux per unit of difference.
        transfer: f64,
    },
}

/// What a side's value, be it that of its surroundings or of what flows in, adds to `u_t` at a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inflow {
    /// The node.
    pub node: usize,
    /// The side.
    pub side: usize,
    /// The axis that it comes along.
    pub axis: usize,
    /// Source per unit of the side's value there.
    pub weight: f64,
}

/// The linear part of `u_t = ∇·(D ∇u) − ∇·(v u) + …` at the nodes of a domain, `A₀ u + A₁ u` plus
/// what flows in.
///
/// Finite volumes: what leaves one node's volume through a face arrives in the next one's, so that a
/// closed domain keeps its content whatever its form. With face values of `D` and `v` the means of
/// both nodes', the flux through a face of length `s` is
///
/// ```text
/// s (v (u_i + u_j) / 2 − max(D, |v| h / 2) (u_j − u_i) / h)
/// ```
///
/// The maximum is hybrid upwinding: where the grid is too coarse for the flow, diffusion is raised to
/// what keeps every neighbour's coefficient non-negative, and no new extremes appear.
///
/// Coefficients are per axis and node. Rows of fixed and dry nodes are zero.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The grid that the nodes are those of.
    pub grid: Grid,
    /// Coefficients of the previous node along the axis; around a ring, the first one's is the last.
    pub before: [Vec<f64>; 2],
    /// Coefficients of the node itself.
    pub at: [Vec<f64>; 2],
    /// Coefficients of the next node.
    pub after: [Vec<f64>; 2],
    /// Nodes that are held at a value, and the side whose value it is; by node.
    pub fixed: Vec<(usize, usize)>,
    /// Nodes that do not belong to the domain.
    pub dry: Vec<usize>,
    /// What the sides' values bring in; by node, side and axis.
    pub inflow: Vec<Inflow>,
    /// The largest ratio of diffusivity added by upwinding to the true one.
    pub artificial: f64,
}

impl Operator {
    /// The operator for a diffusivity and a velocity at each node and an edge for each of the domain's
    /// sides. Differences are divided by `spacing`, which is the grid's unless a published scheme
    /// says otherwise.
    ///
    /// # Panics
    /// If there is not one value per node and one edge per side; if a transfer, or within the domain
    /// a diffusivity, is negative or not finite, a velocity not finite or a spacing not positive.
    pub fn new(
        domain: &Domain,
        diffusivity: &[f64],
        velocity: Option<&[Vec<f64>; 2]>,
        edges: &[Edge],
        spacing: [f64; 2],
    ) -> Self {
        let edge = |piece: &Piece| edges[piece.side];
        Self::assembled(domain, diffusivity, velocity, edges, edge, spacing)
    }

    /// Δ of a field with that diffusivity: where it exchanges with its surroundings its slope goes by its
    /// diffusivity there, `−∂u/∂n = (transfer / D) (u − ambient)`.
    ///
    /// # Panics
    /// As [`Self::new`]; if the diffusivity is not positive where the field exchanges.
    pub fn laplacian(
        domain: &Domain,
        diffusivity: &[f64],
        edges: &[Edge],
        spacing: [f64; 2],
    ) -> Self {
        let ones = vec![1.0; domain.grid().len()];
        let edge = |piece: &Piece| match edges[piece.side] {
            Edge::Convective { transfer } if transfer > 0.0 => Edge::Convective {
                transfer: transfer / diffusivity[piece.node],
            },
            edge => edge,
        };
        Self::assembled(domain, &ones, None, edges, edge, spacing)
    }

    /// With edges by side, which tell what is held, and by piece, which tell what passes.
    fn assembled(
        domain: &Domain,
        diffusivity: &[f64],
        velocity: Option<&[Vec<f64>; 2]>,
        edges: &[Edge],
        edge: impl Fn(&Piece) -> Edge,
        spacing: [f64; 2],
    ) -> Self {
        let grid = *domain.grid();
        let n = grid.len();
        assert_eq!((diffusivity.len(), edges.len()), (n, domain.sides()));
        assert!(spacing[..grid.axes].iter().all(|h| *h > 0.0), "{spacing:?}");
        let speed = |axis: usize, node: usize| velocity.map_or(0.0, |v| v[axis][node]);
        for node in (0..n).filter(|node| domain.wet(*node)) {
            let d = diffusivity[node];
            assert!(d >= 0.0 && d.is_finite(), "diffusivity {d}");
            assert!((0..grid.axes).all(|axis| speed(axis, node).is_finite()));
        }
        let zeros = || [0, 1].map(|axis| vec![0.0; if axis < grid.axes { n } else { 0 }]);
        let mut operator = Self {
            grid,
            before: zeros(),
            at: zeros(),
            after: zeros(),
            fixed: fixed(domain, edges),
            dry: (0..n).filter(|node| !domain.wet(*node)).collect(),
            inflow: Vec::new(),
            artificial: 0.0,
        };
        for (axis, &h) in spacing.iter().enumerate().take(grid.axes) {
            for node in 0..n {
                let share = domain.face(node, axis);
                let Some(next) = domain.next(node, axis).filter(|_| share > 0.0) else {
                    continue;
                };
                let mean = |a: f64, b: f64| 0.5 * (a + b);
                let d = mean(diffusivity[node], diffusivity[next]);
                let v = mean(speed(axis, node), speed(axis, next));
                operator.join(domain, axis, [node, next], share, [d, v, h]);
            }
        }
        for piece in domain.pieces() {
            let v = speed(piece.axis, piece.node);
            operator.bound(domain, piece, edge(piece), v, spacing[piece.axis]);
        }
        operator.release_held_nodes();
        operator
    }

    /// Adds the flux through one face to the rows of both nodes.
    fn join(
        &mut self,
        domain: &Domain,
        axis: usize,
        [node, next]: [usize; 2],
        share: f64,
        [d, v, h]: [f64; 3],
    ) {
        let added = 0.5 * v.abs() * h - d;
        if added > 0.0 {
            self.artificial = self.artificial.max(added / d);
        }
        let carry = 0.5 * v / h;
        let stay = (d / (h * h)).max(carry.abs()); // So that they cancel to the bit.
        let volume = domain.volume();
        let [out, back] = [share / volume[node], share / volume[next]];
        self.at[axis][node] -= out * (stay + carry);
        self.after[axis][node] += out * (stay - carry);
        self.before[axis][next] += back * (stay + carry);
        self.at[axis][next] -= back * (stay - carry);
    }

    /// Adds what passes a piece of the boundary to its node's row.
    fn bound(&mut self, domain: &Domain, piece: &Piece, edge: Edge, v: f64, h: f64) {
        let transfer = match edge {
            Edge::Fixed | Edge::Insulated => return,
            Edge::Open => 0.0,
            Edge::Convective { transfer } => transfer,
        };
        assert!(transfer >= 0.0 && transfer.is_finite(), "{edge:?}");
        let per_length = piece.share / (h * domain.volume()[piece.node]);
        let outward = v * piece.outward;
        self.at[piece.axis][piece.node] -= per_length * (transfer + outward.max(0.0));
        let weight = per_length * (transfer + (-outward).max(0.0));
        if weight == 0.0 {
            return;
        }
        let Piece {
            node, side, axis, ..
        } = *piece;
        // Pieces come in this order; a node may face the same side both ways.
        match self.inflow.last_mut() {
            Some(last) if (last.node, last.side, last.axis) == (node, side, axis) => {
                last.weight += weight;
            }
            _ => self.inflow.push(Inflow {
                node,
                side,
                axis,
                weight,
            }),
        }
    }

    /// Nothing changes a fixed node. (Dry ones have no faces.)
    fn release_held_nodes(&mut self) {
        for rows in [&mut self.before, &mut self.at, &mut self.after] {
            for row in rows.iter_mut().filter(|row| !row.is_empty()) {
                self.fixed.iter().for_each(|(node, _)| row[*node] = 0.0);
            }
        }
        let held = |node: usize| self.fixed.binary_search_by_key(&node, |f| f.0).is_ok();
        self.inflow.retain(|inflow| !held(inflow.node));
    }

    /// Whether it does nothing: the field neither spreads nor flows, and no node is held.
    pub fn is_idle(&self) -> bool {
        let rows = [&self.before, &self.at, &self.after];
        let mut values = rows.into_iter().flatten().flatten();
        values.all(|value| *value == 0.0) && self.fixed.is_empty() && self.inflow.is_empty()
    }

    /// Adds `A u` along one axis to `out`.
    ///
    /// # Panics
    /// If the slices do not have the grid's number of points.
    pub fn apply(&self, axis: usize, u: &[f64], out: &mut [f64]) {
        let [n0, n1] = self.grid.points;
        assert!(u.len() == n0 * n1 && out.len() == n0 * n1, "{}", self.grid);
        if axis >= self.grid.axes {
            return;
        }
        let (points, stride) = [(n0, n1), (n1, 1)][axis];
        for (node, out) in out.iter_mut().enumerate() {
            let at = node / stride % points;
            let first = node - at * stride;
            let [previous, next] = [at + points - 1, at + 1].map(|at| first + at % points * stride);
            *out += self.before[axis][node] * u[previous]
                + self.at[axis][node] * u[node]
                + self.after[axis][node] * u[next];
        }
    }

    /// Adds what flows in to `out`, given the value of each side at each node.
    pub fn add_inflow(&self, value: impl Fn(usize, usize) -> f64, out: &mut [f64]) {
        for inflow in &self.inflow {
            out[inflow.node] += inflow.weight * value(inflow.node, inflow.side);
        }
    }
}

/// Nodes on fixed sides, each with the lowest of its sides.
fn fixed(domain: &Domain, edges: &[Edge]) -> Vec<(usize, usize)> {
    let on_fixed = domain
        .pieces()
        .iter()
        .filter(|p| edges[p.side] == Edge::Fixed);
    let mut fixed: Vec<_> = on_fixed.map(|p| (p.node, p.side)).collect();
    fixed.dedup_by_key(|(node, _)| *node); // They come by node and side.
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Edge as Ends;
    use crate::kit::domain::Mask;
    use crate::kit::shape::Shape;
    use proptest::prelude::*;

    const H: [f64; 2] = [0.125; 2];

    fn plane(edge: Ends) -> Grid {
        Grid::plane([9, 9], [1.0, 1.0], edge)
    }

    fn apply(operator: &Operator, u: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; u.len()];
        (0..2).for_each(|axis| operator.apply(axis, u, &mut out));
        out
    }

    #[test]
    fn on_a_plain_plate_it_is_the_five_point_stencil() {
        let domain = Domain::new(plane(Ends::Wall), &[], None);
        let operator = Operator::new(&domain, &[2.0; 81], None, &[Edge::Fixed; 4], H);
        let inside = |node: usize| (1..8).contains(&(node / 9)) && (1..8).contains(&(node % 9));
        for node in 0..81 {
            let row = [0, 1]
                .map(|a| [&operator.before, &operator.at, &operator.after].map(|c| c[a][node]));
            let expected = if inside(node) {
                [128.0, -256.0, 128.0]
            } else {
                [0.0; 3]
            };
            assert_eq!(row, [expected; 2], "{node}");
        }
        assert_eq!((operator.fixed.len(), operator.inflow.len()), (32, 0));
        // Corners belong to the side with the lowest id.
        assert_eq!((operator.fixed[0], operator.fixed[8]), ((0, 0), (8, 0)));
        assert_eq!((operator.fixed[9], operator.fixed[31]), ((9, 2), (80, 1)));
    }

    #[test]
    fn another_spacing_than_the_grids_divides_the_differences() {
        let domain = Domain::new(Grid::line(5, 1.0, Ends::Wall), &[], None);
        let edges = [Edge::Convective { transfer: 3.0 }; 4];
        let operator = Operator::new(&domain, &[1.0; 5], None, &edges, [0.5, 0.0]);
        assert_eq!(operator.at[0][..2], [-2.0 * (4.0 + 3.0 / 0.5), -8.0]);
        let inflow = |node, side| Inflow {
            node,
            side,
            axis: 0,
            weight: 12.0,
        };
        assert_eq!(operator.inflow, [inflow(0, 0), inflow(4, 1)]);
    }

    /// At an insulated wall a linear field's only flux is inward, D / (h/2); at a convective one
    /// with the ambient that balances it there is no net flux.
    #[test]
    fn walls_pass_what_they_should_of_a_linear_field() {
        let domain = Domain::new(plane(Ends::Wall), &[], None);
        let convective = Edge::Convective { transfer: 5.0 };
        let edges = [
            Edge::Insulated,
            convective,
            Edge::Insulated,
            Edge::Insulated,
        ];
        let operator = Operator::new(&domain, &[2.0; 81], None, &edges, H);
        let ramp: Vec<_> = (0..81).map(|node| domain.grid().place(node)[0]).collect();
        let mut change = apply(&operator, &ramp);
        // −D ∂u/∂n = −2 = 5 (1 − ambient).
        operator.add_inflow(
            |_, side| if side == 1 { 1.4 } else { f64::NAN },
            &mut change,
        );
        for (node, change) in change.iter().enumerate() {
            let expected = if node < 9 { 2.0 / 0.0625 } else { 0.0 };
            assert!((change - expected).abs() < 1e-12, "{node}: {change}");
        }
    }

    #[test]
    fn upwinding_raises_diffusivity_to_what_the_flow_needs() {
        let domain = Domain::new(Grid::line(11, 1.0, Ends::Periodic), &[], None);
        let operator = |d: f64, v: f64| {
            let velocity = [vec![v; 11], vec![]];
            Operator::new(
                &domain,
                &[d; 11],
                Some(&velocity),
                &[Edge::Insulated; 4],
                [0.1, 1.0],
            )
        };
        // |v| h / 2 = 0.1.
        assert_eq!(operator(0.1, 2.0).artificial, 0.0);
        assert_eq!(operator(0.04, -2.0).artificial, 1.5);
        assert_eq!(operator(0.0, 2.0).artificial, f64::INFINITY);
        let (back, ahead) = (operator(0.04, -2.0), operator(0.0, 2.0));
        for node in 0..11 {
            assert_eq!((back.before[0][node], ahead.after[0][node]), (0.0, 0.0));
            assert!((back.after[0][node] - 20.0).abs() < 1e-12);
            assert!((ahead.before[0][node] - 20.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_flow_takes_the_field_out_and_brings_the_sides_value_in() {
        let domain = Domain::new(plane(Ends::Wall), &[], None);
        let velocity = [vec![3.0; 81], vec![0.0; 81]];
        let operator = Operator::new(&domain, &[0.7; 81], Some(&velocity), &[Edge::Open; 4], H);
        assert!(operator.inflow.iter().all(|i| i.side == 0) && operator.inflow.len() == 9);
        // What comes in at 4 where the field is 4 goes through unchanged.
        let mut change = apply(&operator, &[4.0; 81]);
        operator.add_inflow(|_, _| 4.0, &mut change);
        assert!(change.iter().all(|c| c.abs() < 1e-11), "{change:?}");
    }

    fn edge() -> impl Strategy<Value = Edge> {
        prop_oneof![
            Just(Edge::Fixed),
            Just(Edge::Insulated),
            Just(Edge::Open),
            (0.0..9.0f64).prop_map(|transfer| Edge::Convective { transfer }),
        ]
    }

    proptest! {
        /// ⟨a, A b⟩ = ⟨A a, b⟩ in the inner product with the nodes' volumes, along each axis, for
        /// fields that vanish where they are fixed.
        #[test]
        fn diffusion_is_symmetric(
            a in prop::collection::vec(-1.0..1.0f64, 81),
            b in prop::collection::vec(-1.0..1.0f64, 81),
            diffusivity in prop::collection::vec(0.0..3.0f64, 81),
            inside in prop::collection::vec(prop::bool::weighted(0.9), 81),
            edges in prop::collection::vec(edge(), 6),
            periodic: bool,
        ) {
            let disc = Shape::Disc { centre: [0.4, 0.6], radius: 0.2 };
            let mask = Mask { points: [9, 9], inside };
            let grid = plane(if periodic { Ends::Periodic } else { Ends::Wall });
            let domain = Domain::new(grid, &[disc], Some(&mask));
            let operator = Operator::new(&domain, &diffusivity, None, &edges, [0.1, 0.2]);
            let vanish = |mut u: Vec<f64>| {
                operator.fixed.iter().for_each(|(node, _)| u[*node] = 0.0);
                u
            };
            let (a, b) = (vanish(a), vanish(b));
            for axis in 0..2 {
                let product = |a: &[f64], b: &[f64]| {
                    let mut change = vec![0.0; 81];
                    operator.apply(axis, b, &mut change);
                    let terms = a.iter().zip(&change).zip(domain.volume());
                    terms.map(|((a, c), v)| a * c * v).sum::<f64>()
                };
                let (there, back) = (product(&a, &b), product(&b, &a));
                prop_assert!((there - back).abs() < 1e-9, "{there} {back}");
                prop_assert!(product(&a, &a) < 1e-9);
            }
        }

        /// What is neither carried nor held changes no total: every flux leaves one volume for
        /// another.
        #[test]
        fn closed_domains_keep_their_content(
            u in prop::collection::vec(-1.0..1.0f64, 81),
            stream in prop::collection::vec(-1.0..1.0f64, 81),
            inside in prop::collection::vec(prop::bool::weighted(0.9), 81),
            periodic: bool,
        ) {
            let grid = plane(if periodic { Ends::Periodic } else { Ends::Wall });
            let mask = Mask { points: [9, 9], inside };
            let domain = Domain::new(grid, &[], Some(&mask));
            let mut velocity = [stream.clone(), stream.iter().map(|s| 1.0 - s).collect()];
            domain.pieces().iter().for_each(|p| velocity[p.axis][p.node] = 0.0);
            let edges = vec![Edge::Insulated; domain.sides()];
            let operator = Operator::new(&domain, &[0.01; 81], Some(&velocity), &edges, H);
            for axis in 0..2 {
                let mut change = vec![0.0; 81];
                operator.apply(axis, &u, &mut change);
                let total: f64 = change.iter().zip(domain.volume()).map(|(c, v)| c * v).sum();
                prop_assert!(total.abs() < 1e-11, "{total}");
            }
        }
    }
}
