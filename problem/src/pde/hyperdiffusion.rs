//! Implicit steps of one field's hyperdiffusion, along grid lines.

use super::lines::Scheme;
use crate::grid::Edge;
use crate::kit::operator::{Inflow, Operator};
use crate::kit::system::Hyper;
use num_complex::Complex;

/// Steps `u_t = −κ Δ²u` and, where a diffusivity is negative, the diffusion that hyperdiffusion holds.
///
/// With Δ = L₀ + L₁ along the axes and `a = κ Δt`, one step of first order is
///
/// ```text
/// S(Δt) = (1 + a L₀²)⁻¹ (1 + Δt N − 2a L₀ L₁) (1 + a L₁²)⁻¹
/// ```
///
/// `N` being the diffusion. Without it no step makes a field larger, whatever its length and whatever is cut
/// out of the domain, because L₀ and L₁ are symmetric and have no positive eigenvalues. Two halves and a
/// whole make one of second order, `2 S(Δt/2)² − S(Δt)`, under which the finest waves die away too.
///
/// Along a line, `(1 + a L²)⁻¹` and `−√a L (1 + a L²)⁻¹` are the parts, real and imaginary, of
/// `(1 + i√a L)⁻¹`: one complex tridiagonal system gives both. What is beyond walls adds g to `L u`, but
/// nothing to `L` of that: `−√a g` on the right, in the imaginary part.
#[derive(Debug, Clone)]
pub struct Hyperdiffusion {
    whole: Step,
    /// To second order.
    half: Option<Step>,
    /// Diffusion by as much as a diffusivity is below zero.
    against: Option<Operator>,
    /// Where what is beyond walls counts.
    inflow: Vec<Inflow>,
    room: Room,
    begun: Vec<f64>,
}

/// A step of one length.
#[derive(Debug, Clone)]
struct Step {
    dt: f64,
    /// √a.
    root: f64,
    /// `1 + i√a L` along each axis.
    lines: Vec<ComplexLines>,
}

#[derive(Debug, Clone)]
struct Room {
    values: Vec<Complex<f64>>,
    /// What is beyond walls adds to Δu: node, axis, how much.
    beyond: Vec<(usize, usize, f64)>,
    real: Vec<f64>,
    change: Vec<f64>,
}

/// A complex tridiagonal matrix along all lines of an axis, factored, line by line.
#[derive(Debug, Clone)]
struct ComplexLines {
    rows: usize,
    /// From a node to the next along a line.
    stride: usize,
    /// As in [`Lines`](super::lines::Lines).
    lower: Vec<Complex<f64>>,
    inverse_pivot: Vec<Complex<f64>>,
    scaled_upper: Vec<Complex<f64>>,
    rings: Vec<Ring>,
    line: Vec<Complex<f64>>,
}

/// What closes a line to a ring, as in [`Lines`](super::lines::Lines).
#[derive(Debug, Clone)]
struct Ring {
    weight: Complex<f64>,
    response: Vec<Complex<f64>>,
}

impl Hyperdiffusion {
    /// The stepper for steps of `dt`.
    pub fn new(hyper: &Hyper, scheme: Scheme, dt: f64) -> Self {
        let nodes = hyper.laplacian.grid.len();
        let zeros = vec![0.0; nodes];
        Self {
            whole: Step::new(hyper, dt),
            half: match scheme {
                Scheme::FirstOrder => None,
                Scheme::SecondOrder => Some(Step::new(hyper, 0.5 * dt)),
            },
            against: hyper.against.clone(),
            inflow: hyper.laplacian.inflow.clone(),
            room: Room {
                values: vec![Complex::ZERO; nodes],
                beyond: Vec::new(),
                real: zeros.clone(),
                change: zeros.clone(),
            },
            begun: zeros,
        }
    }

    /// Replaces `field` by its value one step later. Fixed and dry nodes keep theirs. `beyond` are the values
    /// of each of the laplacian's inflows half-way and at the end.
    pub fn step(&mut self, field: &mut [f64], beyond: [&[f64]; 2]) {
        let Self {
            whole,
            half,
            against,
            inflow,
            room,
            begun: once,
        } = self;
        let mut take = |step: &mut Step, which: usize, field: &mut [f64]| {
            assert_eq!(beyond[which].len(), inflow.len(), "values beyond");
            let given = inflow.iter().zip(beyond[which]);
            room.beyond.clear();
            room.beyond
                .extend(given.map(|(at, value)| (at.node, at.axis, at.weight * value)));
            step.take(against.as_ref(), room, field);
        };
        let Some(half) = half else {
            return take(whole, 1, field);
        };
        once.copy_from_slice(field);
        take(whole, 1, once);
        take(half, 0, field);
        take(half, 1, field);
        for (u, once) in field.iter_mut().zip(once) {
            *u = 2.0 * *u - *once;
        }
    }
}

impl Step {
    fn new(hyper: &Hyper, dt: f64) -> Self {
        let root = (hyper.coefficient * dt).sqrt();
        let lines = |axis| ComplexLines::new(&hyper.laplacian, axis, root);
        Self {
            dt,
            root,
            lines: (0..hyper.laplacian.grid.axes).map(lines).collect(),
        }
    }

    fn take(&mut self, against: Option<&Operator>, room: &mut Room, field: &mut [f64]) {
        let values = &mut room.values;
        for (value, u) in values.iter_mut().zip(&*field) {
            *value = Complex::new(*u, 0.0);
        }
        let root = self.root;
        let let_in = |axis: usize, values: &mut [Complex<f64>]| {
            for (node, _, added) in room.beyond.iter().filter(|(_, along, _)| *along == axis) {
                values[*node].im -= root * added;
            }
        };
        let (first, rest) = self.lines.split_first_mut().expect("an axis");
        for across in rest {
            let_in(1, values);
            across.solve(values);
            values.iter_mut().for_each(|value| value.im *= 2.0);
        }
        if let Some(against) = against {
            for (real, value) in room.real.iter_mut().zip(&*values) {
                *real = value.re;
            }
            room.change.fill(0.0);
            (0..2).for_each(|axis| against.apply(axis, &room.real, &mut room.change));
            for (value, change) in values.iter_mut().zip(&room.change) {
                value.re -= self.dt * change;
            }
        }
        let_in(0, values);
        first.solve(values);
        for (u, value) in field.iter_mut().zip(values) {
            *u = value.re;
        }
    }
}

impl ComplexLines {
    /// Factors `1 + i root L` along an axis.
    fn new(laplacian: &Operator, axis: usize, root: f64) -> Self {
        let [n0, n1] = laplacian.grid.points;
        let (rows, stride) = [(n0, n1), (n1, 1)][axis];
        let mut all = Self {
            rows,
            stride,
            lower: Vec::new(),
            inverse_pivot: Vec::new(),
            scaled_upper: Vec::new(),
            rings: Vec::new(),
            line: vec![Complex::ZERO; rows],
        };
        for first in all.firsts(laplacian.grid.len()) {
            let along = |part: &[Vec<f64>; 2], unit: f64| -> Vec<Complex<f64>> {
                let entry = |row| Complex::new(unit, root * part[axis][first + row * stride]);
                (0..rows).map(entry).collect()
            };
            let closed = laplacian.grid.edges[axis] == Edge::Periodic;
            all.factor(
                along(&laplacian.before, 0.0),
                along(&laplacian.at, 1.0),
                along(&laplacian.after, 0.0),
                closed,
            );
        }
        all
    }

    /// The first node of every line.
    fn firsts(&self, nodes: usize) -> impl Iterator<Item = usize> + use<> {
        let (stride, length) = (self.stride, self.rows * self.stride);
        (0..nodes).filter(move |node| node % length < stride)
    }

    fn factor(
        &mut self,
        mut lower: Vec<Complex<f64>>,
        mut pivot: Vec<Complex<f64>>,
        mut upper: Vec<Complex<f64>>,
        closed: bool,
    ) {
        let last = self.rows - 1;
        let (low, high) = (lower[0], upper[last]);
        (lower[0], upper[last]) = (Complex::ZERO, Complex::ZERO);
        let (gamma, weight) = match low == Complex::ZERO {
            true => (Complex::ZERO, Complex::ZERO),
            false => (-pivot[0], -low / pivot[0]),
        };
        pivot[0] -= gamma;
        pivot[last] -= high * weight;
        for row in 0..self.rows {
            if row > 0 {
                let eliminated = lower[row] * upper[row - 1];
                pivot[row] -= eliminated;
            }
            pivot[row] = pivot[row].inv();
            upper[row] *= pivot[row];
        }
        let start = self.lower.len();
        self.lower.extend(lower);
        self.inverse_pivot.extend(pivot);
        self.scaled_upper.extend(upper);
        if closed {
            let mut response = vec![Complex::ZERO; self.rows];
            response[0] = gamma;
            response[last] += high;
            self.sweep(start, &mut response);
            let whole = 1.0 + response[0] + weight * response[last];
            response.iter_mut().for_each(|value| *value /= whole);
            self.rings.push(Ring { weight, response });
        }
    }

    /// Solves the line whose coefficients begin at `start`, open.
    fn sweep(&self, start: usize, line: &mut [Complex<f64>]) {
        let part = start..start + self.rows;
        let mut previous = Complex::ZERO;
        let coefficients = (self.lower[part.clone()].iter()).zip(&self.inverse_pivot[part.clone()]);
        for (value, (lower, inverse)) in line.iter_mut().zip(coefficients) {
            previous = (*value - lower * previous) * inverse;
            *value = previous;
        }
        let mut next = Complex::ZERO;
        for (value, upper) in line.iter_mut().zip(&self.scaled_upper[part]).rev() {
            next = *value - upper * next;
            *value = next;
        }
    }

    /// Replaces the right-hand sides by the solutions.
    fn solve(&mut self, values: &mut [Complex<f64>]) {
        let mut line = std::mem::take(&mut self.line);
        for (number, first) in self.firsts(values.len()).enumerate() {
            for (row, value) in line.iter_mut().enumerate() {
                *value = values[first + row * self.stride];
            }
            self.sweep(number * self.rows, &mut line);
            if let Some(ring) = self.rings.get(number) {
                let taken = line[0] + ring.weight * line[self.rows - 1];
                for (value, response) in line.iter_mut().zip(&ring.response) {
                    *value -= response * taken;
                }
            }
            for (row, value) in line.iter().enumerate() {
                values[first + row * self.stride] = *value;
            }
        }
        self.line = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::kit::domain::{Domain, Mask};
    use crate::kit::operator::Edge as Kind;
    use crate::kit::shape::Shape;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    fn hyper(domain: &Domain, coefficient: f64, edges: Kind, below: f64) -> Hyper {
        let n = domain.grid().len();
        let spacing = [0, 1].map(|axis| domain.grid().spacing(axis));
        let edges = vec![edges; domain.sides()];
        let operator = |d: f64| Operator::new(domain, &vec![d; n], None, &edges, spacing);
        Hyper {
            coefficient,
            laplacian: operator(1.0),
            against: (below > 0.0).then(|| operator(below)),
        }
    }

    /// Beyond walls that let nothing in.
    const NOTHING: [&[f64]; 2] = [&[]; 2];

    fn apart(a: &[f64], b: &[f64]) -> f64 {
        let gaps = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        gaps.fold(0.0, f64::max)
    }

    /// cos(k x) cos(l y) decays by κ(k² + l²)², or grows where a diffusivity of −ν wins: level at walls, and
    /// a wave around rings. Against the rate of the differences it is of second order in time, which tells
    /// far more than the spacing's error would let through.
    #[test]
    fn waves_decay_at_their_rate() {
        let (kappa, h) = (1e-3, 1.0 / 24.0);
        for (edges, axes) in [
            ([Edge::Periodic; 2], 1),
            ([Edge::Wall; 2], 1),
            ([Edge::Periodic; 2], 2),
            ([Edge::Wall, Edge::Periodic], 2),
            ([Edge::Wall; 2], 2),
        ] {
            for below in [0.0, 0.1] {
                let points = edges.map(|edge| 24 + usize::from(edge == Edge::Wall));
                let grid = match axes {
                    1 => Grid::line(points[0], 1.0, edges[0]),
                    _ => Grid {
                        edges,
                        ..Grid::plane(points, [1.0; 2], Edge::Wall)
                    },
                };
                let hyper = hyper(&Domain::new(grid, &[], None), kappa, Kind::Insulated, below);
                let waves = [2.0 * PI, 4.0 * PI];
                let start: Vec<f64> = (0..grid.len())
                    .map(|node| grid.place(node))
                    .map(|at| (0..axes).map(|a| (waves[a] * at[a]).cos()).product())
                    .collect();
                let square: f64 = (waves[..axes].iter())
                    .map(|k| (2.0 * (0.5 * k * h).sin() / h).powi(2))
                    .sum();
                let factor = (0.1 * (below * square - kappa * square * square)).exp();
                let error = |steps: usize, scheme| {
                    let mut field = start.clone();
                    let mut stepper = Hyperdiffusion::new(&hyper, scheme, 0.1 / steps as f64);
                    (0..steps).for_each(|_| stepper.step(&mut field, NOTHING));
                    let exact: Vec<f64> = start.iter().map(|u| factor * u).collect();
                    apart(&field, &exact) / factor
                };
                for (scheme, order) in [(Scheme::FirstOrder, 1.0), (Scheme::SecondOrder, 2.0)] {
                    let errors = [128, 256, 512].map(|steps| error(steps, scheme));
                    for pair in errors.windows(2) {
                        let found = (pair[0] / pair[1]).log2();
                        assert!(
                            (found - order).abs() < 0.15,
                            "{edges:?} {axes} {below} {scheme:?}: {errors:?}"
                        );
                    }
                }
            }
        }
    }

    /// Held at zero a sine decays too: Δu is zero there.
    #[test]
    fn a_sine_between_held_walls_decays() {
        let grid = Grid::line(33, 1.0, Edge::Wall);
        let hyper = hyper(&Domain::new(grid, &[], None), 1e-3, Kind::Fixed, 0.0);
        let sine = |node: usize| (2.0 * PI * grid.place(node)[0]).sin();
        let start: Vec<f64> = (0..33).map(sine).collect();
        let mut field = start.clone();
        let mut stepper = Hyperdiffusion::new(&hyper, Scheme::SecondOrder, 1e-3);
        (0..400).for_each(|_| stepper.step(&mut field, NOTHING));
        // κ (2π)⁴ t = 0.623; differences have 4/h² sin²(πh) for k².
        let square = (2.0 * 32.0 * (PI / 32.0).sin()).powi(2);
        let exact: Vec<f64> = (start.iter())
            .map(|u| u * (-4e-4 * square * square).exp())
            .collect();
        assert!(apart(&field, &exact) < 1e-6, "{field:?}");
        assert_eq!((field[0], field[32]), (start[0], start[32]));
    }

    proptest! {
        /// On any domain, for any step: nothing is gained, and where nothing is held nothing is lost.
        #[test]
        fn fields_never_grow(
            points in (4..9usize, 4..9usize),
            around: [bool; 2],
            inside in prop::collection::vec(prop::bool::weighted(0.85), 36),
            held in 0..3usize,
            log_dt in -4.0..6.0f64,
            start in prop::collection::vec(-1.0..1.0f64, 64),
        ) {
            let points = [points.0, points.1];
            let edges = around.map(|around| if around { Edge::Periodic } else { Edge::Wall });
            let grid = Grid { edges, ..Grid::plane(points, [1.0, 1.7], Edge::Wall) };
            let disc = Shape::Disc { centre: [0.3, 0.3], radius: 0.25 };
            let mask = Mask { points: [6, 6], inside };
            let domain = Domain::new(grid, &[disc], Some(&mask));
            let kind = [Kind::Insulated, Kind::Fixed, Kind::Convective { transfer: 0.7 }][held];
            let hyper = hyper(&domain, 1e-2, kind, 0.0);
            let fixed = &hyper.laplacian.fixed;
            let zeros = vec![0.0; hyper.laplacian.inflow.len()];
            let beyond = [zeros.as_slice(); 2];
            let mut field = start[..grid.len()].to_vec();
            fixed.iter().for_each(|(node, _)| field[*node] = 0.0);
            let sum = |f: &[f64], power: i32| -> f64 {
                f.iter().zip(domain.volume()).map(|(u, v)| u.powi(power) * v).sum()
            };
            let mut first = Hyperdiffusion::new(&hyper, Scheme::FirstOrder, 10f64.powf(log_dt));
            let mut second = Hyperdiffusion::new(&hyper, Scheme::SecondOrder, 10f64.powf(log_dt));
            let (content, size) = (sum(&field, 1), sum(&field, 2));
            let mut other = field.clone();
            for _ in 0..10 {
                let before = sum(&field, 2);
                first.step(&mut field, beyond);
                second.step(&mut other, beyond);
                prop_assert!(sum(&field, 2) <= before * (1.0 + 1e-9) + 1e-12);
            }
            (0..200).for_each(|_| second.step(&mut other, beyond));
            prop_assert!(sum(&other, 2) <= 1.01 * size + 1e-12);
            if held == 0 {
                prop_assert!((sum(&field, 1) - content).abs() < 1e-8);
                prop_assert!((sum(&other, 1) - content).abs() < 1e-8);
            }
        }
    }
}
