//! Implicit steps of one field on a domain with cut-outs, along grid lines.

use crate::grid::Edge;
use crate::kit::operator::Operator;
use num_traits::Float;
use serde::Deserialize;

/// Solves `(1 − c A) u = rhs` along all grid lines of one axis, for the part `A` of an [`Operator`]
/// along it; fixed and dry nodes keep their right-hand side.
///
/// Every line has its own coefficients, but all are eliminated row by row together: along a line
/// every value waits for its neighbour's, across them none do. What a line's row is, is a node's
/// position along the axis.
///
/// There is no pivoting: weighted with the nodes' volumes, each free column is dominated by its
/// diagonal, because what a volume loses its neighbours gain.
#[derive(Debug, Clone)]
pub struct Lines<T> {
    rows: usize,
    width: usize,
    axis: usize,
    /// The coefficient of the row before, 1 / pivot, and the coefficient of the row after divided by
    /// the pivot; `width` entries per row.
    lower: Vec<T>,
    inverse_pivot: Vec<T>,
    scaled_upper: Vec<T>,
    ring: Option<Ring<T>>,
}

/// What closes lines to rings, by Sherman and Morrison: the matrix is a tridiagonal one plus
/// `(γ, 0, …, high) (1, 0, …, weight)ᵀ`, where `γ weight = low`; `low` and `high` are the corners.
#[derive(Debug, Clone)]
struct Ring<T> {
    weight: Vec<T>,
    /// The tridiagonal matrix' solution for `(γ, 0, …, high)`, over 1 + its product with
    /// `(1, 0, …, weight)`.
    response: Vec<T>,
    /// How much of it each line takes, in a solve.
    taken: Vec<T>,
}

/// One line's matrix, before or after elimination.
struct Line {
    lower: Vec<f64>,
    diagonal: Vec<f64>,
    upper: Vec<f64>,
}

impl<T: Float> Lines<T> {
    /// Factors `1 − c A` along `axis`.
    ///
    /// # Panics
    /// If `c` is so large that 1 is lost beside `c A` in rounding.
    pub fn new(operator: &Operator, axis: usize, c: f64) -> Self {
        let [n0, n1] = operator.grid.points;
        let (rows, lines, width) = match (operator.grid.axes, axis) {
            (1, _) => (n0, 1, 1),
            (_, 0) => (n0, n1, n1),
            _ => (n1, n0, turned_width(n0)),
        };
        let filled = |value: T| vec![value; rows * width];
        let mut all = Self {
            rows,
            width,
            axis,
            lower: filled(T::zero()),
            inverse_pivot: filled(T::one()),
            scaled_upper: filled(T::zero()),
            ring: (operator.grid.edges[axis] == Edge::Periodic).then(|| Ring {
                weight: vec![T::zero(); width],
                response: filled(T::zero()),
                taken: vec![T::zero(); width],
            }),
        };
        for number in 0..lines {
            let node = |row: usize| match axis {
                0 => row * n1 + number,
                _ => number * n1 + row,
            };
            let along = |part: &[Vec<f64>; 2], unit: f64| -> Vec<f64> {
                let entry = |row| unit - c * part[axis][node(row)];
                (0..rows).map(entry).collect()
            };
            all.factor(
                number,
                Line {
                    lower: along(&operator.before, 0.0),
                    diagonal: along(&operator.at, 1.0),
                    upper: along(&operator.after, 0.0),
                },
            );
        }
        all
    }

    fn factor(&mut self, number: usize, mut line: Line) {
        let last = self.rows - 1;
        let (low, high) = (line.lower[0], line.upper[last]);
        (line.lower[0], line.upper[last]) = (0.0, 0.0);
        // γ = −diagonal makes the tridiagonal part the more dominant. Where `low` is zero there is
        // no need, and a fixed first node keeps its value to the bit.
        let gamma = if low == 0.0 { 0.0 } else { -line.diagonal[0] };
        let weight = if low == 0.0 { 0.0 } else { low / gamma };
        if self.ring.is_some() {
            line.diagonal[0] -= gamma;
            line.diagonal[last] -= high * weight;
        }
        line.eliminate();
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        let width = self.width;
        let at = |row: usize| row * width + number;
        for row in 0..self.rows {
            self.lower[at(row)] = t(line.lower[row]);
            self.inverse_pivot[at(row)] = t(line.diagonal[row]);
            self.scaled_upper[at(row)] = t(line.upper[row]);
        }
        if let Some(ring) = &mut self.ring {
            let mut response = vec![0.0; self.rows];
            response[0] = gamma;
            response[last] += high;
            line.solve(&mut response);
            let whole = 1.0 + response[0] + weight * response[last];
            ring.weight[number] = t(weight);
            for (row, value) in response.iter().enumerate() {
                ring.response[at(row)] = t(value / whole);
            }
        }
    }

    /// Values that [`solve`](Self::solve) takes.
    #[allow(clippy::len_without_is_empty)] // Lines are never empty.
    pub fn len(&self) -> usize {
        self.rows * self.width
    }

    /// Where in them a node's value is. Along axis 0 of a plane that is where it is in the field; along
    /// axis 1 fields are turned, `[axis 1, axis 0]`, with a filling at the end of each row.
    pub fn place(&self, node: usize) -> usize {
        match self.axis {
            0 => node,
            _ => node % self.rows * self.width + node / self.rows,
        }
    }

    /// Replaces the right-hand sides by the solutions.
    ///
    /// # Panics
    /// If there are not [`len`](Self::len) of them.
    pub fn solve(&mut self, rhs: &mut [T]) {
        assert_eq!(rhs.len(), self.len(), "one value per node and filling");
        match self.width {
            1 => self.sweep_one(rhs),
            _ => self.sweep(rhs),
        }
        if let Some(ring) = &mut self.ring {
            ring.close(rhs, self.width);
        }
    }

    /// A line of its own; nothing stands beside it, so the last value stays in a register.
    fn sweep_one(&self, rhs: &mut [T]) {
        let mut previous = T::zero();
        let coefficients = self.lower.iter().zip(&self.inverse_pivot);
        for (value, (&lower, &inverse)) in rhs.iter_mut().zip(coefficients) {
            previous = (*value - lower * previous) * inverse;
            *value = previous;
        }
        let mut next = T::zero();
        for (value, &upper) in rhs.iter_mut().zip(&self.scaled_upper).rev() {
            next = *value - upper * next;
            *value = next;
        }
    }

    fn sweep(&self, rhs: &mut [T]) {
        let width = self.width;
        for (value, inverse) in rhs[..width].iter_mut().zip(&self.inverse_pivot) {
            *value = *value * *inverse;
        }
        for row in 1..self.rows {
            let here = row * width..(row + 1) * width;
            let (done, rest) = rhs.split_at_mut(here.start);
            let values = rest[..width].iter_mut().zip(&done[here.start - width..]);
            let lower = &self.lower[here.clone()];
            let coefficients = lower.iter().zip(&self.inverse_pivot[here]);
            for ((value, previous), (lower, inverse)) in values.zip(coefficients) {
                *value = (*value - *lower * *previous) * *inverse;
            }
        }
        for row in (1..self.rows).rev() {
            let (rest, done) = rhs.split_at_mut(row * width);
            let here = (row - 1) * width;
            let values = rest[here..].iter_mut().zip(&done[..width]);
            for ((value, next), upper) in values.zip(&self.scaled_upper[here..here + width]) {
                *value = *value - *upper * *next;
            }
        }
    }
}

impl Line {
    /// Leaves 1 / pivot on the diagonal and the upper entries divided by it.
    fn eliminate(&mut self) {
        for row in 0..self.diagonal.len() {
            let eliminated = match row {
                0 => 0.0,
                _ => self.lower[row] * self.upper[row - 1],
            };
            let pivot = self.diagonal[row] - eliminated;
            assert!(pivot > 0.0, "pivot {pivot}: the step is too long for f64");
            self.diagonal[row] = pivot.recip();
            self.upper[row] *= self.diagonal[row];
        }
    }

    fn solve(&self, rhs: &mut [f64]) {
        for row in 0..rhs.len() {
            let eliminated = match row {
                0 => 0.0,
                _ => self.lower[row] * rhs[row - 1],
            };
            rhs[row] = (rhs[row] - eliminated) * self.diagonal[row];
        }
        for row in (1..rhs.len()).rev() {
            rhs[row - 1] -= self.upper[row - 1] * rhs[row];
        }
    }
}

impl<T: Float> Ring<T> {
    fn close(&mut self, solution: &mut [T], width: usize) {
        let ends = solution[..width]
            .iter()
            .zip(&solution[solution.len() - width..]);
        for ((taken, (first, last)), weight) in self.taken.iter_mut().zip(ends).zip(&self.weight) {
            *taken = *first + *weight * *last;
        }
        let rows = solution.chunks_exact_mut(width);
        for (row, response) in rows.zip(self.response.chunks_exact(width)) {
            for ((value, response), taken) in row.iter_mut().zip(response).zip(&self.taken) {
                *value = *value - *response * *taken;
            }
        }
    }
}

/// Values per row of a turned copy, as in [`Heat2d`](super::Heat2d): an odd number of cache lines,
/// because rows a power of two apart would push each other out of the cache.
fn turned_width(points: usize) -> usize {
    8 * (points.div_ceil(8) | 1)
}

/// How a [`Splitting`] goes forward in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Backward Euler, in a plane one axis after the other: no new extremes for any step, but
    /// accurate to first order only.
    FirstOrder,
    /// Crank and Nicolson's scheme, in a plane Peaceman and Rachford's.
    #[default]
    SecondOrder,
}

/// Steps `u_t = A₀ u + A₁ u + f` of one field by solving along one axis at a time.
///
/// With `c = Δt/2`, the second-order scheme is, as in [`Heat2d`](super::Heat2d),
///
/// ```text
/// (1 − c A₀) u* = (1 + c A₁) u  + c f
/// (1 − c A₁) u⁺ = (1 + c A₀) u* + c f
/// ```
///
/// and on a line `(1 − c A) u⁺ = (1 + c A) u + Δt f`; a steady field is that of the equation, whatever
/// the step. The first-order scheme is `(1 − Δt A₀) (1 − Δt A₁) u⁺ = u + Δt f`.
///
/// What flows in over the sides can be part of `f`. Given apart, it goes along its own axis: it
/// balances what flows out along that one, and split from it the first-order scheme would leave the
/// range of the field's and the sides' values.
#[derive(Debug, Clone)]
pub struct Splitting<T> {
    scheme: Scheme,
    dt: T,
    /// One per axis.
    implicit: Vec<Lines<T>>,
    /// `1 + c A` along the last axis, for the second order.
    explicit: Along<T>,
    /// Where fixed and dry nodes are, in the field and in the turned copy.
    fixed: Vec<[usize; 2]>,
    dry: Vec<[usize; 2]>,
    inflow: Vec<Source<T>>,
    /// Values that fixed nodes have half-way.
    midway: Vec<T>,
    half: Vec<T>,
    turned: Vec<T>,
}

/// What an [`Inflow`](crate::kit::operator::Inflow) adds to, in the field and in the turned copy.
#[derive(Debug, Clone)]
struct Source<T> {
    places: [usize; 2],
    axis: usize,
    weight: T,
}

/// Which of the two a right-hand side is.
const FIELD: usize = 0;
const TURNED: usize = 1;

impl<T: Float> Splitting<T> {
    /// The stepper for steps of `dt`.
    ///
    /// # Panics
    /// If `dt` is not positive, or so long that 1 is lost beside `dt A` in rounding.
    pub fn new(operator: &Operator, scheme: Scheme, dt: f64) -> Self {
        assert!(dt > 0.0 && dt.is_finite(), "dt = {dt}");
        let c = match scheme {
            Scheme::FirstOrder => dt,
            Scheme::SecondOrder => 0.5 * dt,
        };
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        let axes = operator.grid.axes;
        let implicit: Vec<_> = (0..axes)
            .map(|axis| Lines::new(operator, axis, c))
            .collect();
        let last = &implicit[axes - 1];
        let places = |node: usize| [node, last.place(node)];
        let inflow = operator.inflow.iter().map(|inflow| Source {
            places: places(inflow.node),
            axis: inflow.axis,
            weight: t(inflow.weight),
        });
        Self {
            scheme,
            dt: t(dt),
            explicit: Along::new(operator, c),
            fixed: operator
                .fixed
                .iter()
                .map(|(node, _)| places(*node))
                .collect(),
            dry: operator.dry.iter().map(|node| places(*node)).collect(),
            inflow: inflow.collect(),
            midway: vec![T::zero(); operator.fixed.len()],
            half: vec![T::zero(); operator.grid.len()],
            turned: vec![T::zero(); if axes == 2 { last.len() } else { 0 }],
            implicit,
        }
    }

    /// Replaces `field` by its value one step later under a source `f` that is held constant.
    /// `fixed_values` are those of the operator's fixed nodes, in its order, at the end of the step;
    /// at its beginning they are what the field has there. Dry nodes become zero.
    ///
    /// # Panics
    /// If the slices do not have the grid's number of points and the operator's of fixed nodes.
    pub fn step(&mut self, field: &mut [T], f: &[T], fixed_values: &[T]) {
        self.advance(field, f, fixed_values, &[]);
    }

    /// The same with what flows in over the sides apart from `f`: the sides' values for each of the
    /// operator's inflows, in its order.
    ///
    /// # Panics
    /// As [`step`](Self::step), and if there is not one value per inflow.
    pub fn step_with_inflow(
        &mut self,
        field: &mut [T],
        f: &[T],
        fixed_values: &[T],
        inflow_values: &[T],
    ) {
        assert_eq!(inflow_values.len(), self.inflow.len(), "inflows");
        self.advance(field, f, fixed_values, inflow_values);
    }

    fn advance(&mut self, field: &mut [T], f: &[T], fixed: &[T], inflow: &[T]) {
        let n = self.half.len();
        assert!(field.len() == n && f.len() == n, "{n} grid points");
        assert_eq!(fixed.len(), self.fixed.len(), "fixed nodes");
        match (self.scheme, self.implicit.len()) {
            (Scheme::FirstOrder, 1) => self.euler_line(field, f, fixed, inflow),
            (Scheme::FirstOrder, _) => self.euler_plane(field, f, fixed, inflow),
            (Scheme::SecondOrder, 1) => self.crank_nicolson(field, f, fixed, inflow),
            (Scheme::SecondOrder, _) => self.peaceman_rachford(field, f, fixed, inflow),
        }
    }

    fn euler_line(&mut self, field: &mut [T], f: &[T], fixed: &[T], inflow: &[T]) {
        add(field, self.dt, f);
        self.hold(FIELD, field, fixed);
        self.let_in(FIELD, &[0], field, self.dt, inflow);
        self.implicit[0].solve(field);
    }

    fn euler_plane(&mut self, field: &mut [T], f: &[T], fixed: &[T], inflow: &[T]) {
        self.euler_line(field, f, fixed, inflow);
        let mut turned = std::mem::take(&mut self.turned);
        let [n0, n1] = self.plane();
        for (i, row) in field.chunks_exact(n1).enumerate() {
            for (column, value) in turned.chunks_exact_mut(turned_width(n0)).zip(row) {
                column[i] = *value;
            }
        }
        self.let_in(TURNED, &[1], &mut turned, self.dt, inflow);
        self.turned = turned;
        self.solve_turned(field);
    }

    fn crank_nicolson(&mut self, field: &mut [T], f: &[T], fixed: &[T], inflow: &[T]) {
        let mut rhs = std::mem::take(&mut self.half);
        self.explicit.apply(field, self.dt, f, &mut rhs);
        self.hold(FIELD, &mut rhs, fixed);
        self.let_in(FIELD, &[0], &mut rhs, self.dt, inflow);
        self.implicit[0].solve(&mut rhs);
        field.copy_from_slice(&rhs);
        self.half = rhs;
    }

    fn peaceman_rachford(&mut self, field: &mut [T], f: &[T], fixed: &[T], inflow: &[T]) {
        let one_half = T::from(0.5).expect("a float");
        let c = self.dt * one_half;
        let mut half = std::mem::take(&mut self.half);
        let mut turned = std::mem::take(&mut self.turned);
        // Fixed nodes are half-way between old and new; to have the new value here already would
        // cost an order where values change.
        for ((midway, [node, _]), new) in self.midway.iter_mut().zip(&self.fixed).zip(fixed) {
            *midway = (field[*node] + *new) * one_half;
        }
        self.explicit.apply(field, c, f, &mut half);
        self.hold(FIELD, &mut half, &self.midway);
        self.let_in(FIELD, &[0, 1], &mut half, c, inflow);
        // (1 + c A₀) u* = 2 u* − (1 − c A₀) u*, and that is what the solve starts from.
        field.copy_from_slice(&half);
        self.implicit[0].solve(&mut half);
        let [n0, n1] = self.plane();
        let width = turned_width(n0);
        let rows = (half.chunks_exact(n1))
            .zip(field.chunks_exact(n1))
            .zip(f.chunks_exact(n1));
        for (i, ((half, start), f)) in rows.enumerate() {
            let columns = turned.chunks_exact_mut(width);
            for (((column, half), start), f) in columns.zip(half).zip(start).zip(f) {
                column[i] = (*half + *half) - *start + c * *f;
            }
        }
        self.hold(TURNED, &mut turned, fixed);
        self.let_in(TURNED, &[0, 1], &mut turned, c, inflow);
        (self.half, self.turned) = (half, turned);
        self.solve_turned(field);
    }

    fn plane(&self) -> [usize; 2] {
        [self.implicit[0].rows, self.implicit[1].rows]
    }

    /// Sets what is fixed and dry in a right-hand side.
    fn hold(&self, layout: usize, rhs: &mut [T], values: &[T]) {
        for (places, value) in self.fixed.iter().zip(values) {
            rhs[places[layout]] = *value;
        }
        for places in &self.dry {
            rhs[places[layout]] = T::zero();
        }
    }

    /// Adds what flows in along some axes over a time to a right-hand side.
    fn let_in(&self, layout: usize, axes: &[usize], rhs: &mut [T], time: T, values: &[T]) {
        for (source, value) in self.inflow.iter().zip(values) {
            if axes.contains(&source.axis) {
                let place = source.places[layout];
                rhs[place] = rhs[place] + time * source.weight * *value;
            }
        }
    }

    /// From `turned`, along axis 1, to `field`.
    fn solve_turned(&mut self, field: &mut [T]) {
        self.implicit[1].solve(&mut self.turned);
        let [n0, n1] = self.plane();
        for (i, row) in field.chunks_exact_mut(n1).enumerate() {
            for (value, column) in row
                .iter_mut()
                .zip(self.turned.chunks_exact(turned_width(n0)))
            {
                *value = column[i];
            }
        }
    }
}

fn add<T: Float>(field: &mut [T], dt: T, f: &[T]) {
    for (u, f) in field.iter_mut().zip(f) {
        *u = *u + dt * *f;
    }
}

/// `1 + c A` along the axis whose nodes lie side by side in memory.
#[derive(Debug, Clone)]
struct Along<T> {
    points: usize,
    before: Vec<T>,
    at: Vec<T>,
    after: Vec<T>,
}

impl<T: Float> Along<T> {
    fn new(operator: &Operator, c: f64) -> Self {
        let axis = operator.grid.axes - 1;
        let scaled = |part: &[Vec<f64>; 2], unit: f64| -> Vec<T> {
            let entry = |a: &f64| T::from(unit + c * a).expect("floats convert to floats");
            part[axis].iter().map(entry).collect()
        };
        Self {
            points: operator.grid.points[axis],
            before: scaled(&operator.before, 0.0),
            at: scaled(&operator.at, 1.0),
            after: scaled(&operator.after, 0.0),
        }
    }

    /// `out = (1 + c A) u + weight f`.
    fn apply(&self, u: &[T], weight: T, f: &[T], out: &mut [T]) {
        let n = self.points;
        for start in (0..u.len()).step_by(n) {
            let row = start..start + n;
            let (u, f, out) = (&u[row.clone()], &f[row.clone()], &mut out[row.clone()]);
            let (before, at, after) = (
                &self.before[row.clone()],
                &self.at[row.clone()],
                &self.after[row],
            );
            let value = |j: usize, previous: T, next: T| {
                before[j] * previous + at[j] * u[j] + after[j] * next + weight * f[j]
            };
            out[0] = value(0, u[n - 1], u[1]);
            let inner = (out[1..].iter_mut().zip(u.windows(3)))
                .zip(before[1..].iter().zip(&at[1..]))
                .zip(after[1..].iter().zip(&f[1..]));
            for (((out, u), (before, at)), (after, f)) in inner {
                *out = *before * u[0] + *at * u[1] + *after * u[2] + weight * *f;
            }
            out[n - 1] = value(n - 1, u[n - 2], u[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::kit::domain::{Domain, Mask};
    use crate::kit::operator::Edge as Kind;
    use crate::kit::shape::Shape;
    use crate::pde::{Fkpp1d, Heat1d, Heat2d, Stepper};
    use proptest::prelude::*;
    use std::f64::consts::PI;

    const SCHEMES: [Scheme; 2] = [Scheme::FirstOrder, Scheme::SecondOrder];

    fn plain(grid: Grid, d: f64, spacing: [f64; 2]) -> Operator {
        let domain = Domain::new(grid, &[], None);
        Operator::new(
            &domain,
            &vec![d; grid.len()],
            None,
            &[Kind::Fixed; 4],
            spacing,
        )
    }

    fn noise(n: usize) -> Vec<f64> {
        (0..n).map(|k| (k as f64 * 12.9898).sin()).collect()
    }

    fn apart(a: &[f64], b: &[f64]) -> f64 {
        a.iter()
            .zip(b)
            .fold(0.0, |most, (a, b)| most.max((a - b).abs()))
    }

    #[test]
    fn a_plain_plate_is_heat_2d() {
        let (points, dx) = ([32, 20], [1.0 / 32.0, 0.03]);
        let operator = plain(Grid::plane(points, [1.0, 1.0], Edge::Wall), 0.2, dx);
        let mut splitting = Splitting::new(&operator, Scheme::SecondOrder, 1e-3);
        let mut heat = Heat2d::new(points, 0.2, dx, 1e-3, 1);
        let force = noise(640);
        let mut field = noise(640);
        operator
            .fixed
            .iter()
            .for_each(|(node, _)| field[*node] = 0.0);
        let mut expected = field.clone();
        for _ in 0..50 {
            splitting.step(&mut field, &force, &vec![0.0; operator.fixed.len()]);
            heat.step(&mut expected, &force);
            assert!(apart(&field, &expected) < 1e-14);
        }
    }

    #[test]
    fn a_plain_line_is_heat_1d_or_fkpp_1d_without_growth() {
        let operator = plain(Grid::line(100, 1.0, Edge::Wall), 0.2, [0.01; 2]);
        let [mut euler, mut crank] = SCHEMES.map(|s| Splitting::new(&operator, s, 1e-3));
        let mut heat = Heat1d::new(100, 0.2, 0.01, 1e-3, 1);
        let mut fkpp = Fkpp1d::new(100, 0.2, f64::MIN_POSITIVE, 0.01, 1e-3, 1);
        let start: Vec<f64> = noise(100).iter().map(|z| 0.5 + 0.4 * z).collect();
        let force = noise(100);
        let (mut field, mut expected) = (start.clone(), start.clone());
        let (mut density, mut expected_density) = (start.clone(), start);
        for _ in 0..50 {
            crank.step(&mut field, &force, &[0.0; 2]);
            heat.step(&mut expected, &force);
            assert!(apart(&field, &expected) < 1e-14);
            euler.step(&mut density, &[0.0; 100], &[0.0; 2]);
            fkpp.step(&mut expected_density, &[0.0; 100]);
            assert!(apart(&density, &expected_density) < 1e-14);
        }
    }

    /// A smooth function: its value, first and second derivatives along each axis.
    type Smooth = fn([f64; 2]) -> (f64, [f64; 2], [f64; 2]);

    /// Slopes everywhere.
    const SLOPING: Smooth = |[x, y]| {
        let ((s, c), e) = ((2.0 * x + 0.3).sin_cos(), (0.7 * y).exp());
        (
            s * e,
            [2.0 * c * e, 0.7 * s * e],
            [-4.0 * s * e, 0.49 * s * e],
        )
    };

    /// Level along all lines at multiples of a quarter.
    const LEVEL: Smooth = |[x, y]| {
        let k = 4.0 * PI;
        let ((sx, cx), (sy, cy)) = ((k * x).sin_cos(), (k * y).sin_cos());
        let curvature = -k * k * cx * cy;
        (1.0 + cx * cy, [-k * sx * cy, -k * cx * sy], [curvature; 2])
    };

    fn constant(_: [f64; 2]) -> (f64, [f64; 2]) {
        (0.3, [0.0; 2])
    }

    fn variable([x, y]: [f64; 2]) -> (f64, [f64; 2]) {
        (0.3 + 0.2 * x - 0.1 * x * y, [0.2 - 0.1 * y, -0.1 * x])
    }

    /// Largest error at t = 0.25 against `g(t) U`, g = 1 + sin(3t)/2, with steps in proportion to the
    /// spacing. All sides are of one kind; sources, fixed and ambient values are what `g U` needs.
    ///
    /// Where a convective rim ends in the open, steps must shrink with the square of the spacing:
    /// half a step takes in `Δt k/h` of what the other half gives back, and along the other axis
    /// that difference, of order Δt²/h, has a jump there.
    fn manufactured(
        grid: Grid,
        cut_outs: &[Shape],
        kind: Kind,
        diffusivity: fn([f64; 2]) -> (f64, [f64; 2]),
        smooth: Smooth,
    ) -> f64 {
        let domain = Domain::new(grid, cut_outs, None);
        let spacing = [0, 1].map(|axis| grid.spacing(axis));
        let places: Vec<_> = (0..grid.len()).map(|node| grid.place(node)).collect();
        let d: Vec<_> = places.iter().map(|at| diffusivity(*at).0).collect();
        let edges = vec![kind; domain.sides()];
        let operator = Operator::new(&domain, &d, None, &edges, spacing);
        let (start, u): (Vec<f64>, Vec<f64>) = (places.iter().enumerate())
            .map(|(node, at)| {
                (
                    smooth(*at).0,
                    if domain.wet(node) { smooth(*at).0 } else { 0.0 },
                )
            })
            .unzip();
        let divergence = |at: &[f64; 2]| {
            let ((d, slope), (_, first, second)) = (diffusivity(*at), smooth(*at));
            (0..grid.axes)
                .map(|a| d * second[a] + slope[a] * first[a])
                .sum::<f64>()
        };
        let divergence: Vec<_> = places.iter().map(divergence).collect();
        // A node that faces one side along both axes has its own ambient along each.
        let ambient = |node: usize, side: usize, axis: usize| {
            let Kind::Convective { transfer } = kind else {
                unreachable!()
            };
            let on =
                |p: &&crate::kit::domain::Piece| (p.node, p.side, p.axis) == (node, side, axis);
            let piece = domain.pieces().iter().find(on).unwrap();
            let slope = smooth(places[node]).1[axis] * piece.outward;
            start[node] + d[node] / transfer * slope
        };
        let ambient: Vec<_> = (operator.inflow.iter())
            .map(|i| ambient(i.node, i.side, i.axis))
            .collect();

        let intervals = grid.points[0] - 1;
        let steps = match kind {
            Kind::Convective { .. } => intervals * intervals / 16,
            _ => intervals,
        };
        let dt = 0.25 / steps as f64;
        let (g, rate) = (
            |t: f64| 1.0 + 0.5 * (3.0 * t).sin(),
            |t: f64| 1.5 * (3.0 * t).cos(),
        );
        let scaled = |values: &[f64], g: f64| values.iter().map(|v| g * v).collect::<Vec<_>>();
        let mut splitting = Splitting::new(&operator, Scheme::SecondOrder, dt);
        let mut field = start.clone();
        for step in 0..steps {
            let (mid, end) = ((step as f64 + 0.5) * dt, (step as f64 + 1.0) * dt);
            let f: Vec<_> = (start.iter().zip(&divergence))
                .map(|(u, divergence)| rate(mid) * u - g(mid) * divergence)
                .collect();
            let fixed: Vec<_> = operator
                .fixed
                .iter()
                .map(|(node, _)| g(end) * u[*node])
                .collect();
            splitting.step_with_inflow(&mut field, &f, &fixed, &scaled(&ambient, g(mid)));
        }
        apart(&field, &scaled(&u, g(0.25)))
    }

    fn assert_second_order(name: &str, error: impl Fn(usize) -> f64) {
        let errors = [16, 32, 64, 128].map(error);
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!(
                (order - 2.0).abs() < 0.15,
                "{name}: order {order} of {errors:?}"
            );
        }
    }

    /// Solutions are smooth, so that re-entrant corners cost nothing.
    #[test]
    fn every_edge_on_every_form_is_second_order() {
        let cut = |low: [f64; 2], high: [f64; 2]| vec![Shape::Rectangle { low, high }];
        let forms = [
            ("line", 1, vec![]),
            ("box", 2, vec![]),
            ("L", 2, cut([0.5, 0.5], [1.5, 1.5])),
            ("hole", 2, cut([0.25, 0.25], [0.5, 0.75])),
        ];
        let kinds = [
            (Kind::Fixed, SLOPING),
            (Kind::Insulated, LEVEL),
            (Kind::Convective { transfer: 0.8 }, SLOPING),
        ];
        for (name, axes, cut_outs) in forms {
            for (kind, smooth) in kinds {
                for diffusivity in [constant, variable] {
                    let name = format!("{name}, {kind:?}, {}", diffusivity([0.5, 0.5]).0);
                    assert_second_order(&name, |n| {
                        let grid = match axes {
                            1 => Grid::line(n + 1, 1.0, Edge::Wall),
                            _ => Grid::plane([n + 1, n + 1], [1.0, 1.0], Edge::Wall),
                        };
                        manufactured(grid, &cut_outs, kind, diffusivity, smooth)
                    });
                }
            }
        }
    }

    /// Whatever the step, u = x between walls held at 0 and 1 is steady, and so is what a source of 2D
    /// between cold walls makes, x (1 − x): differences of parabolas are exact.
    #[test]
    fn steady_fields_do_not_depend_on_the_step() {
        let grid = Grid::plane([9, 7], [1.0, 1.0], Edge::Wall);
        let domain = Domain::new(grid, &[], None);
        let edges = [Kind::Fixed, Kind::Fixed, Kind::Insulated, Kind::Insulated];
        let spacing = [0, 1].map(|axis| grid.spacing(axis));
        let operator = Operator::new(&domain, &[0.5; 63], None, &edges, spacing);
        let fixed: Vec<_> = operator
            .fixed
            .iter()
            .map(|(_, side)| *side as f64)
            .collect();
        for dt in [0.01, 10.0] {
            let mut splitting = Splitting::new(&operator, Scheme::SecondOrder, dt);
            let exact: Vec<_> = (0..63)
                .map(|node| grid.place(node)[0])
                .map(|x| x + x * (1.0 - x))
                .collect();
            let mut field = exact.clone();
            (0..20).for_each(|_| splitting.step(&mut field, &[1.0; 63], &fixed));
            assert!(apart(&field, &exact) < 1e-12);
        }
    }

    /// Both axes' sines at once, carried round while they decay: u = e^(−Dk²t) sin k(x − v t).
    #[test]
    fn waves_are_carried_round_a_torus_to_second_order() {
        let (d, v, k) = (0.05, [0.8, -0.5], 2.0 * PI);
        for axes in [1, 2] {
            let error = |n: usize| {
                let grid = match axes {
                    1 => Grid::line(n, 1.0, Edge::Periodic),
                    _ => Grid::plane([n, n], [1.0, 1.0], Edge::Periodic),
                };
                let exact = |t: f64| -> Vec<f64> {
                    let sine = |at: [f64; 2], a: usize| (k * (at[a] - v[a] * t)).sin();
                    (0..grid.len())
                        .map(|node| {
                            (0..axes)
                                .map(|a| sine(grid.place(node), a))
                                .product::<f64>()
                        })
                        .map(|u| u * (-d * k * k * t * axes as f64).exp())
                        .collect()
                };
                let domain = Domain::new(grid, &[], None);
                let velocity = v.map(|v| vec![v; grid.len()]);
                let h = [1.0 / n as f64; 2];
                let operator = Operator::new(
                    &domain,
                    &vec![d; grid.len()],
                    Some(&velocity),
                    &[Kind::Insulated; 4],
                    h,
                );
                assert_eq!(operator.artificial, 0.0);
                let mut splitting = Splitting::new(&operator, Scheme::SecondOrder, 0.25 / n as f64);
                let mut field = exact(0.0);
                (0..n).for_each(|_| splitting.step(&mut field, &vec![0.0; grid.len()], &[]));
                apart(&field, &exact(0.25))
            };
            assert_second_order("torus", error);
        }
    }

    /// u = e^(−D(k² + m²)t) cos m x sin k(y − v t): insulated at the ends of a pipe, carried round it.
    #[test]
    fn waves_are_carried_round_a_pipe_to_second_order() {
        let (d, v, k, m) = (0.05, 0.8, 2.0 * PI, PI);
        for around in [0, 1] {
            let error = |n: usize| {
                let mut grid = Grid::plane([n, n], [1.0; 2], Edge::Periodic);
                (grid.edges[1 - around], grid.points[1 - around]) = (Edge::Wall, n + 1);
                let exact = |t: f64| -> Vec<f64> {
                    let at = |node: usize| {
                        let place = grid.place(node);
                        (m * place[1 - around]).cos() * (k * (place[around] - v * t)).sin()
                    };
                    let decay = (-d * (k * k + m * m) * t).exp();
                    (0..grid.len()).map(|node| decay * at(node)).collect()
                };
                let mut velocity = [0.0; 2].map(|v| vec![v; grid.len()]);
                velocity[around].fill(v);
                let operator = Operator::new(
                    &Domain::new(grid, &[], None),
                    &vec![d; grid.len()],
                    Some(&velocity),
                    &[Kind::Insulated; 4],
                    [1.0 / n as f64; 2],
                );
                let mut splitting = Splitting::new(&operator, Scheme::SecondOrder, 0.25 / n as f64);
                let mut field = exact(0.0);
                (0..n).for_each(|_| splitting.step(&mut field, &vec![0.0; grid.len()], &[]));
                apart(&field, &exact(0.25))
            };
            assert_second_order("pipe", error);
        }
    }

    /// Velocities from a stream function that is zero on the walls, by central differences (one-sided on
    /// the walls): free of divergence node by node.
    fn eddy(grid: &Grid) -> [Vec<f64>; 2] {
        let [n0, n1] = grid.points;
        let stream = |i: usize, j: usize| {
            let sine = |i: usize, n: usize| match i {
                0 => 0.0,
                i if i == n - 1 => 0.0,
                i => (PI * i as f64 / (n - 1) as f64).sin(),
            };
            sine(i, n0) * sine(j, n1)
        };
        let slope = |low: f64, high: f64, at: usize, n: usize, h: f64| {
            (high - low) / if at == 0 || at == n - 1 { h } else { 2.0 * h }
        };
        let at = |node: usize| (node / n1, node % n1);
        let down = |i: usize| i.saturating_sub(1);
        let along = |node| {
            let (i, j) = at(node);
            slope(
                stream(i, down(j)),
                stream(i, (j + 1).min(n1 - 1)),
                j,
                n1,
                grid.spacing(1),
            )
        };
        let across = |node| {
            let (i, j) = at(node);
            -slope(
                stream(down(i), j),
                stream((i + 1).min(n0 - 1), j),
                i,
                n0,
                grid.spacing(0),
            )
        };
        [
            (0..n0 * n1).map(along).collect(),
            (0..n0 * n1).map(across).collect(),
        ]
    }

    #[test]
    fn an_eddy_in_a_closed_box_moves_content_and_loses_none() {
        let grid = Grid::plane([17, 12], [1.0, 1.5], Edge::Wall);
        let domain = Domain::new(grid, &[], None);
        let h = [0, 1].map(|axis| grid.spacing(axis));
        let velocity = eddy(&grid);
        for d in [1e-3, 1.0] {
            let operator = Operator::new(
                &domain,
                &[d; 204],
                Some(&velocity),
                &[Kind::Insulated; 4],
                h,
            );
            assert!(operator.inflow.is_empty());
            // Free of divergence: what is even stays so.
            let mut change = vec![0.0; 204];
            (0..2).for_each(|axis| operator.apply(axis, &[1.0; 204], &mut change));
            assert!(change.iter().all(|c| c.abs() < 1e-12), "{change:?}");
            for scheme in SCHEMES {
                let mut splitting = Splitting::new(&operator, scheme, 0.01);
                let start = noise(204);
                let mut field = start.clone();
                (0..100).for_each(|_| splitting.step(&mut field, &[0.0; 204], &[]));
                assert!((grid.integral(&field) - grid.integral(&start)).abs() < 1e-13);
                assert!(apart(&field, &start) > 0.5);
            }
        }
    }

    #[test]
    fn single_precision_follows_double() {
        for edge in [Edge::Wall, Edge::Periodic] {
            let grid = Grid::plane([20, 16], [1.0, 1.0], edge);
            let disc = Shape::Disc {
                centre: [0.5, 0.4],
                radius: 0.2,
            };
            let domain = Domain::new(grid, &[disc], None);
            let edges = [
                Kind::Fixed,
                Kind::Insulated,
                Kind::Insulated,
                Kind::Insulated,
                Kind::Fixed,
            ];
            let operator = Operator::new(&domain, &[0.2; 320], None, &edges, [0.05; 2]);
            let fixed = vec![0.5; operator.fixed.len()];
            for scheme in SCHEMES {
                let mut wide = noise(320);
                let mut narrow: Vec<f32> = wide.iter().map(|v| *v as f32).collect();
                let mut double = Splitting::<f64>::new(&operator, scheme, 1e-3);
                let mut single = Splitting::<f32>::new(&operator, scheme, 1e-3);
                let narrow_fixed = vec![0.5; fixed.len()];
                for _ in 0..300 {
                    double.step(&mut wide, &[1.0; 320], &fixed);
                    single.step(&mut narrow, &[1.0; 320], &narrow_fixed);
                }
                let back: Vec<f64> = narrow.iter().map(|v| f64::from(*v)).collect();
                assert!(apart(&wide, &back) < 1e-5);
            }
        }
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for edge in [Edge::Wall, Edge::Periodic] {
            for grid in [
                Grid::line(2, 1.0, edge),
                Grid::line(3, 1.0, edge),
                Grid::plane([2, 2], [1.0, 1.0], edge),
                Grid::plane([2, 5], [1.0, 1.0], edge),
                Grid::plane([5, 2], [1.0, 1.0], edge),
            ] {
                let operator = Operator::new(
                    &Domain::new(grid, &[], None),
                    &vec![1.0; grid.len()],
                    None,
                    &[Kind::Insulated; 4],
                    [0, 1].map(|axis| grid.spacing(axis)),
                );
                for scheme in SCHEMES {
                    let mut field = noise(grid.len());
                    let total = grid.integral(&field);
                    Splitting::new(&operator, scheme, 0.1).step(
                        &mut field,
                        &vec![0.0; grid.len()],
                        &[],
                    );
                    assert!((grid.integral(&field) - total).abs() < 1e-14, "{grid:?}");
                }
            }
        }
    }

    #[derive(Debug, Clone)]
    struct Case {
        domain: Domain,
        diffusivity: Vec<f64>,
        edges: Vec<Kind>,
        scheme: Scheme,
        dt: f64,
        start: Vec<f64>,
    }

    impl Case {
        fn operator(&self, velocity: Option<&[Vec<f64>; 2]>) -> Operator {
            let spacing = [0, 1].map(|axis| self.domain.grid().spacing(axis));
            Operator::new(
                &self.domain,
                &self.diffusivity,
                velocity,
                &self.edges,
                spacing,
            )
        }

        fn content(&self, field: &[f64]) -> f64 {
            field
                .iter()
                .zip(self.domain.volume())
                .map(|(u, v)| u * v)
                .sum()
        }

        fn wet(&self, field: &[f64]) -> Vec<f64> {
            let keep = |(node, u): (usize, &f64)| if self.domain.wet(node) { *u } else { 0.0 };
            field.iter().enumerate().map(keep).collect()
        }
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Fixed),
            Just(Kind::Insulated),
            Just(Kind::Open),
            (0.0..9.0f64).prop_map(|transfer| Kind::Convective { transfer }),
        ]
    }

    /// Any form, any edges, steps from far below to far above what diffusion takes to cross.
    fn case() -> impl Strategy<Value = Case> {
        let grid = (1..=2usize, 2..11usize, 2..11usize, any::<bool>());
        let grid = grid.prop_map(|(axes, n0, n1, periodic)| {
            let edge = if periodic { Edge::Periodic } else { Edge::Wall };
            match axes {
                1 => Grid::line(n0, 1.0, edge),
                _ => Grid::plane([n0, n1], [1.0, 0.8], edge),
            }
        });
        let shape = prop_oneof![
            (-0.2..1.2f64, -0.2..1.2f64, 0.0..0.5f64).prop_map(|(x, y, radius)| Shape::Disc {
                centre: [x, y],
                radius
            }),
            (-0.2..1.2f64, -0.2..1.2f64, 0.0..0.5f64, 0.0..0.5f64).prop_map(|(x, y, w, h)| {
                Shape::Rectangle {
                    low: [x, y],
                    high: [x + w, y + h],
                }
            }),
        ];
        let mask = prop::collection::vec(prop::bool::weighted(0.9), 36);
        (
            grid,
            prop::collection::vec(shape, 0..3),
            prop::option::of(mask),
        )
            .prop_flat_map(|(grid, shapes, inside)| {
                let mask = inside.map(|inside| Mask {
                    points: [6, 6],
                    inside,
                });
                let domain = Domain::new(grid, &shapes, mask.as_ref());
                let n = grid.len();
                let values = (
                    prop::collection::vec(0.0..3.0f64, n),
                    prop::collection::vec(kind(), domain.sides()),
                    prop::sample::select(&SCHEMES[..]),
                    -4.0..3.0f64,
                    prop::collection::vec(-1.0..1.0f64, n),
                );
                values.prop_map(move |(diffusivity, edges, scheme, log_dt, start)| Case {
                    domain: domain.clone(),
                    diffusivity,
                    edges,
                    scheme,
                    dt: 10f64.powf(log_dt),
                    start,
                })
            })
    }

    /// `count` values of the range that starts are drawn from.
    fn drawn(count: usize) -> Vec<f64> {
        (0..count).map(|k| (k as f64 * 7.1).sin()).collect()
    }

    proptest! {
        /// Multiplying the solution by the matrix gives the right-hand side back, with any flow.
        #[test]
        fn lines_are_solved(case in case(), speed in prop::collection::vec(-5.0..5.0f64, 200)) {
            let n = case.start.len();
            let velocity = [speed[..n].to_vec(), speed[100..100 + n].to_vec()];
            let operator = case.operator(Some(&velocity));
            for axis in 0..case.domain.grid().axes {
                let mut lines = Lines::new(&operator, axis, case.dt);
                let mut u = vec![0.0; lines.len()];
                (0..n).for_each(|node| u[lines.place(node)] = case.start[node]);
                lines.solve(&mut u);
                let u: Vec<_> = (0..n).map(|node| u[lines.place(node)]).collect();
                let mut change = vec![0.0; n];
                operator.apply(axis, &u, &mut change);
                let largest = u.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
                for node in 0..n {
                    let product = u[node] - case.dt * change[node];
                    let scale = largest * (1.0 + case.dt * operator.at[axis][node].abs());
                    prop_assert!((product - case.start[node]).abs() < 1e-13 * scale);
                }
                for node in operator.fixed.iter().map(|f| f.0).chain(operator.dry.clone()) {
                    prop_assert_eq!(u[node], case.start[node]);
                }
            }
        }

        #[test]
        fn fields_stay_finite_and_the_first_order_within_its_range(case in case()) {
            let operator = case.operator(None);
            let (fixed, inflow) = (drawn(operator.fixed.len()), drawn(operator.inflow.len()));
            let mut field = case.start.clone();
            let still = vec![0.0; field.len()];
            let mut splitting = Splitting::new(&operator, case.scheme, case.dt);
            for _ in 0..5 {
                splitting.step_with_inflow(&mut field, &still, &fixed, &inflow);
                prop_assert!(field.iter().all(|u| u.is_finite()));
                if case.scheme == Scheme::FirstOrder {
                    prop_assert!(field.iter().all(|u| u.abs() <= 1.0 + 1e-9), "{field:?}");
                }
                prop_assert!(operator.dry.iter().all(|node| field[*node] == 0.0));
                for ((node, _), value) in operator.fixed.iter().zip(&fixed) {
                    prop_assert_eq!(field[*node], *value);
                }
            }
        }

        #[test]
        fn steps_are_linear(case in case(), weight in -3.0..3.0f64) {
            let operator = case.operator(None);
            let n = case.start.len();
            let step = |scale: [f64; 2]| {
                let mix = |a: &[f64], b: &[f64]| -> Vec<f64> {
                    a.iter().zip(b).map(|(a, b)| scale[0] * a + scale[1] * b).collect()
                };
                let data = |count: usize| mix(&noise(count), &drawn(count));
                let mut field = mix(&case.start, &noise(n));
                let mut splitting = Splitting::new(&operator, case.scheme, case.dt);
                let (fixed, inflow) = (data(operator.fixed.len()), data(operator.inflow.len()));
                splitting.step_with_inflow(&mut field, &data(n), &fixed, &inflow);
                field
            };
            let (together, a, b) = (step([1.0, weight]), step([1.0, 0.0]), step([0.0, weight]));
            let largest = a.iter().chain(&b).fold(1.0, |most: f64, u| most.max(u.abs()));
            for ((u, a), b) in together.iter().zip(&a).zip(&b) {
                prop_assert!((u - a - b).abs() < 1e-9 * largest, "{u} {a} {b}");
            }
        }

        /// Closed by insulated walls of any form, whatever blows along them.
        #[test]
        fn closed_domains_keep_their_content(case in case(), speed in prop::collection::vec(-5.0..5.0f64, 200)) {
            let mut case = case;
            case.edges.fill(Kind::Insulated);
            // Half a second-order step leaves Δt A u, whose rounding Δt A multiplies again.
            let power = match case.scheme {
                Scheme::FirstOrder => 1,
                Scheme::SecondOrder => 2,
            };
            if case.scheme == Scheme::SecondOrder {
                case.dt = case.dt.min(0.1);
            }
            let n = case.start.len();
            let mut velocity = [speed[..n].to_vec(), speed[100..100 + n].to_vec()];
            case.domain.pieces().iter().for_each(|p| velocity[p.axis][p.node] = 0.0);
            for velocity in [None, Some(&velocity)] {
                let operator = case.operator(velocity);
                let mut splitting = Splitting::new(&operator, case.scheme, case.dt);
                let mut field = case.wet(&case.start);
                let rates = operator.at.iter().flatten();
                let stiffest = rates.fold(0.0, |most: f64, a| most.max(a.abs()));
                for _ in 0..5 {
                    let before = case.content(&field);
                    let size = |field: &[f64]| field.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
                    let old = size(&field);
                    splitting.step(&mut field, &vec![0.0; n], &[]);
                    let lost = case.content(&field) - before;
                    let rounding = 1e-13 * (1.0 + case.dt * stiffest).powi(power) * old.max(size(&field));
                    prop_assert!(lost.abs() < rounding, "{lost}");
                }
            }
        }

        /// What is nowhere negative stays so under the first-order scheme, in any flow.
        #[test]
        fn the_first_order_keeps_signs(case in case(), speed in prop::collection::vec(-5.0..5.0f64, 200)) {
            let n = case.start.len();
            let velocity = [speed[..n].to_vec(), speed[100..100 + n].to_vec()];
            let operator = case.operator(Some(&velocity));
            let mut splitting = Splitting::new(&operator, Scheme::FirstOrder, case.dt);
            let mut field: Vec<_> = case.start.iter().map(|u| u.abs()).collect();
            let (fixed, inflow) = (vec![0.5; operator.fixed.len()], vec![0.5; operator.inflow.len()]);
            for _ in 0..5 {
                splitting.step_with_inflow(&mut field, &vec![0.0; n], &fixed, &inflow);
                prop_assert!(field.iter().all(|u| *u >= 0.0 && u.is_finite()), "{field:?}");
            }
        }
    }
}
