//! Fields that a file describes. Diffusion, flow and edges go in one or two stages,
//!
//! ```text
//! (1 − c A_a) w = w₀ + e A_b w₀ + d forcing + inflow,   w = its edge's value where it is held
//! ```
//!
//! along axes a and b: Crank and Nicolson's or backward Euler's on a line, Peaceman and Rachford's or two
//! backward ones on a plane; `hyperdiffusion` comes after them, to second order half
//! of it before; all of that is linear. To second order, half a step of reactions by the midpoint
//! rule comes before them and half after; to first order reactions are part of the forcing. Their derivatives
//! are the expressions'.

use super::diffusion::NEGLIGIBLE;
use super::hyperdiffusion::{Beyond, Hyperdiffusion};
use super::{Batch, Differentiable, FieldStep, Gradients, Interval};
use crate::adjoint::elementwise::vectorised;
use crate::adjoint::matrix::multiply_into;
use crate::adjoint::real::Real;
use problem::grid::Edge;
use problem::kit::MOST_FIELDS;
use problem::kit::expression::Scratch;
use problem::kit::operator::{Inflow, Operator};
use problem::kit::system::System;
use problem::pde::lines::Scheme;
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};
use std::borrow::Cow;
use std::cell::RefCell;

/// Step of a described problem.
#[derive(Debug, Clone)]
pub struct DescribedStep<T> {
    arch: Arch,
    system: System,
    lines: Vec<FieldLines<T>>,
    coordinates: [Vec<T>; 2],
    nodes: usize,
    dt: f64,
    substeps: usize,
    reacts: bool,
    /// What edges hold and bring, unless that changes in time.
    edges: Option<Vec<Held<T>>>,
}

/// One field's stages.
#[derive(Debug, Clone)]
struct FieldLines<T> {
    stages: Vec<Stage<T>>,
    smoothing: Option<Hyperdiffusion<T>>,
    fixed: Vec<usize>,
    dry: Vec<usize>,
    clip: Option<[T; 2]>,
}

impl<T: Real> FieldLines<T> {
    /// Makes values zero where nodes are held or dry.
    fn release(&self, values: &mut [T]) {
        let nodes = self.fixed.iter().chain(&self.dry);
        nodes.for_each(|&node| values[node] = T::ZERO);
    }
}

/// One stage.
#[derive(Debug, Clone)]
struct Stage<T> {
    explicit: Option<Rows<T>>,
    implicit: Factors<T>,
    /// Shares of the forcing and of what flows in along each axis.
    push: T,
    inflow: [T; 2],
    /// Whether it ends half-way: what is held is then half-way from what it was.
    midway: bool,
}

/// `e A` along an axis.
#[derive(Debug, Clone)]
struct Rows<T> {
    before: Vec<T>,
    at: Vec<T>,
    after: Vec<T>,
    /// Distance of neighbours.
    stride: usize,
    /// First and last node of every line that is closed, and what each takes from the other.
    closed: Vec<(usize, usize, T, T)>,
}

/// `1 − c A` along an axis, factored; lines stand side by side.
#[derive(Debug, Clone)]
struct Factors<T> {
    width: usize,
    /// Whether lines go along the last axis of a plane, so that fields are turned.
    turned: bool,
    /// The elements before, one over the pivots, the elements after; the first and last are divided by
    /// the pivots.
    lower: Vec<T>,
    inverse: Vec<T>,
    upper: Vec<T>,
    closing: Option<Closing<T>>,
    /// Of a single short line the inverse and its transpose: along one line elimination has to wait for
    /// every value.
    short: Option<[Vec<T>; 2]>,
}

/// Most nodes of a line that is multiplied with its inverse.
const SHORT: usize = 128;

/// What closes lines to rings: the matrix is that of open lines plus `u vᵀ`, `u` and `v` having only a first
/// and a last entry.
#[derive(Debug, Clone)]
struct Closing<T> {
    /// First and last entry of u and of v, for every line.
    u: [Vec<T>; 2],
    v: [Vec<T>; 2],
    /// The open lines' solution with u over `1 + v · that`, and the same of the transpose.
    correction: Vec<T>,
    transposed: Vec<T>,
}

/// What a field's edges hold and bring.
#[derive(Debug, Clone, Default)]
struct Held<T> {
    values: Vec<T>,
    /// Node, axis and what comes in.
    inflow: Vec<(usize, usize, T)>,
    /// What is beyond for hyperdiffusion, before and after the rest.
    beyond: [Beyond<T>; 2],
}

thread_local! {
    /// Registers of expressions, for either precision.
    static REGISTERS: RefCell<(Scratch<f32>, Scratch<f64>)> = RefCell::default();
}

impl<T: Real> Differentiable<T> for DescribedStep<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let system = System::of(problem);
        let lines = system.fields.iter().map(|field| FieldLines {
            stages: stages(problem, &field.operator, system.scheme, dt),
            smoothing: field.hyper.as_ref().map(|hyper| {
                let share = match system.scheme {
                    Scheme::FirstOrder => 1.0,
                    Scheme::SecondOrder => 0.5,
                };
                Hyperdiffusion::new(hyper, system.scheme, share * dt)
            }),
            fixed: field.operator.fixed.iter().map(|(node, _)| *node).collect(),
            dry: (0..system.nodes())
                .filter(|&node| !system.domain.wet(node))
                .collect(),
            clip: field.clip.map(|range| range.map(T::of)),
        });
        let mut step = Self {
            arch: Arch::new(),
            lines: lines.collect(),
            coordinates: [0, 1].map(|axis| of(&system.coordinates[axis])),
            nodes: system.nodes(),
            dt,
            substeps,
            reacts: (system.kit().described.iter()).any(|field| field.reaction.is_some()),
            edges: None,
            system,
        };
        if !step.system.edges_change() {
            step.edges = Some(step.held(0.0));
        }
        Ok(step)
    }
}

fn of<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

/// One stage of a solver step, whatever the field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Along which axis it is implicit, along which explicit, and both by how much.
    pub implicit: usize,
    /// See there.
    pub explicit: Option<usize>,
    /// See there.
    pub by: f64,
    /// Share of the forcing.
    pub push: f64,
    /// Shares of what flows in along each axis.
    pub inflow: [f64; 2],
    /// Whether it ends half-way: what is held is then half-way from what it was.
    pub midway: bool,
}

/// The stages of one solver step.
pub fn plan(axes: usize, scheme: Scheme, dt: f64) -> Vec<Plan> {
    let half = 0.5 * dt;
    let stage = |implicit, explicit, by, push, inflow, midway| Plan {
        implicit,
        explicit,
        by,
        push,
        inflow,
        midway,
    };
    match (axes, scheme) {
        (1, Scheme::SecondOrder) => vec![stage(0, Some(0), half, dt, [dt, 0.0], false)],
        (1, Scheme::FirstOrder) => vec![stage(0, None, dt, dt, [dt, 0.0], false)],
        (_, Scheme::SecondOrder) => vec![
            stage(0, Some(1), half, half, [half; 2], true),
            stage(1, Some(0), half, half, [half; 2], false),
        ],
        // What flows in along an axis balances what flows out along it: they stay together.
        (_, Scheme::FirstOrder) => vec![
            stage(0, None, dt, dt, [dt, 0.0], false),
            stage(1, None, dt, 0.0, [0.0, dt], false),
        ],
    }
}

/// A field's stages.
fn stages<T: Real>(problem: &Problem, a: &Operator, scheme: Scheme, dt: f64) -> Vec<Stage<T>> {
    if a.is_idle() {
        return Vec::new();
    }
    let stage = |plan: Plan| Stage {
        explicit: (plan.explicit).map(|axis| Rows::new(problem, a, axis, plan.by)),
        implicit: Factors::new(problem, a, plan.implicit, plan.by),
        push: T::of(plan.push),
        inflow: plan.inflow.map(T::of),
        midway: plan.midway,
    };
    let plans = plan(problem.grid.axes, scheme, dt);
    plans.into_iter().map(stage).collect()
}

/// First and last node of every line along an axis that closes to a ring.
fn rings(problem: &Problem, axis: usize) -> Vec<(usize, usize)> {
    let [rows, columns] = problem.grid.points;
    match (problem.grid.edges[axis], axis) {
        (Edge::Wall, _) => Vec::new(),
        (Edge::Periodic, 0) => (0..columns)
            .map(|j| (j, (rows - 1) * columns + j))
            .collect(),
        (Edge::Periodic, _) => (0..rows)
            .map(|i| (i * columns, (i + 1) * columns - 1))
            .collect(),
    }
}

impl<T: Real> Rows<T> {
    fn new(problem: &Problem, a: &Operator, axis: usize, by: f64) -> Self {
        let scaled = |row: &[f64]| -> Vec<T> { row.iter().map(|&x| T::of(by * x)).collect() };
        let (mut before, at) = (scaled(&a.before[axis]), scaled(&a.at[axis]));
        let mut after = scaled(&a.after[axis]);
        let closed = rings(problem, axis).into_iter().map(|(first, last)| {
            let take = |from: &mut T| std::mem::replace(from, T::ZERO);
            (
                first,
                last,
                take(&mut before[first]),
                take(&mut after[last]),
            )
        });
        Self {
            closed: closed.collect(),
            before,
            at,
            after,
            stride: if axis == 0 { problem.grid.points[1] } else { 1 },
        }
    }

    /// `out = u + e A u`.
    fn apply(&self, arch: Arch, u: &[T], out: &mut [T]) {
        let (n, s) = (u.len(), self.stride);
        stay(arch, u, &self.at, out);
        add_product(arch, &self.before[s..], &u[..n - s], &mut out[s..]);
        add_product(arch, &self.after[..n - s], &u[s..], &mut out[..n - s]);
        for &(first, last, before, after) in &self.closed {
            out[first] += before * u[last];
            out[last] += after * u[first];
        }
    }

    /// The same with the transpose.
    fn apply_transposed(&self, arch: Arch, g: &[T], out: &mut [T]) {
        let (n, s) = (g.len(), self.stride);
        stay(arch, g, &self.at, out);
        add_product(arch, &self.before[s..], &g[s..], &mut out[..n - s]);
        add_product(arch, &self.after[..n - s], &g[..n - s], &mut out[s..]);
        for &(first, last, before, after) in &self.closed {
            out[last] += before * g[first];
            out[first] += after * g[last];
        }
    }
}

vectorised! {
    /// `out = u + at · u`.
    pub fn stay<'a, T>(u: &'a [T], at: &'a [T], out: &'a mut [T]) {
        for ((out, &u), &at) in out.iter_mut().zip(u).zip(at) {
            *out = at.fused(u, u);
        }
    }
}

vectorised! {
    /// Cuts values to a range.
    pub fn clip<'a, T>(low: T, high: T, values: &'a mut [T]) {
        for z in values {
            *z = z.within(low, high);
        }
    }
}

vectorised! {
    /// Adjoint of [`clip`], given its result: zero where it stands at an end.
    pub fn clip_adjoint<'a, T>(clipped: &'a [T], low: T, high: T, g: &'a mut [T]) {
        for (g, &z) in g.iter_mut().zip(clipped) {
            *g = if z <= low || z >= high { T::ZERO } else { *g };
        }
    }
}

vectorised! {
    /// `sum += a · b`.
    pub fn add_product<'a, T>(a: &'a [T], b: &'a [T], sum: &'a mut [T]) {
        for ((sum, &a), &b) in sum.iter_mut().zip(a).zip(b) {
            *sum = a.fused(b, *sum);
        }
    }
}

vectorised! {
    /// `sum += a · b` for one number.
    pub fn add_scaled<'a, T>(a: T, b: &'a [T], sum: &'a mut [T]) {
        for (sum, &b) in sum.iter_mut().zip(b) {
            *sum = a.fused(b, *sum);
        }
    }
}

vectorised! {
    /// Solves the open lines, side by side, `width` of them. All that a value waits for is one
    /// multiplication with its neighbour's.
    pub fn sweep<'a, T>(lower: &'a [T], inverse: &'a [T], upper: &'a [T], width: usize, values: &'a mut [T]) {
        if width == 1 {
            for (z, &p) in values.iter_mut().zip(inverse) {
                *z = *z * p;
            }
            chain(values.iter_mut().zip(lower));
            chain(values.iter_mut().zip(upper).rev());
            return;
        }
        for (z, &p) in values[..width].iter_mut().zip(inverse) {
            *z = *z * p;
        }
        let rows = values.len() / width;
        for row in 1..rows {
            let (done, rest) = values.split_at_mut(row * width);
            let (l, p) = (&lower[row * width..], &inverse[row * width..]);
            for (((z, &z0), &l), &p) in rest[..width].iter_mut().zip(&done[(row - 1) * width..]).zip(l).zip(p) {
                *z = (-l).fused(z0, *z * p);
            }
        }
        for row in (0..rows - 1).rev() {
            let (head, tail) = values.split_at_mut((row + 1) * width);
            for ((z, &z1), &u) in head[row * width..].iter_mut().zip(&*tail).zip(&upper[row * width..]) {
                *z = (-u).fused(z1, *z);
            }
        }
    }
}

vectorised! {
    /// Solves the transpose of the open lines.
    pub fn sweep_transposed<'a, T>(lower: &'a [T], inverse: &'a [T], upper: &'a [T], width: usize, values: &'a mut [T]) {
        let rows = values.len() / width;
        if width == 1 {
            let (first, rest) = values.split_at_mut(1);
            chain(first.iter_mut().zip(&[T::ZERO]).chain(rest.iter_mut().zip(upper)));
            let (rest, last) = values.split_at_mut(rows - 1);
            chain(rest.iter_mut().zip(&lower[1..]).chain(last.iter_mut().zip(&[T::ZERO])).rev());
            for (z, &p) in values.iter_mut().zip(inverse) {
                *z = *z * p;
            }
            return;
        }
        for row in 1..rows {
            let (done, rest) = values.split_at_mut(row * width);
            for ((z, &z0), &u) in rest[..width].iter_mut().zip(&done[(row - 1) * width..]).zip(&upper[(row - 1) * width..]) {
                *z = (-u).fused(z0, *z);
            }
        }
        for row in (0..rows - 1).rev() {
            let (head, tail) = values.split_at_mut((row + 1) * width);
            let l = &lower[(row + 1) * width..];
            for ((z, &z1), &l) in head[row * width..].iter_mut().zip(&*tail).zip(l) {
                *z = (-l).fused(z1, *z);
            }
        }
        for (z, &p) in values.iter_mut().zip(inverse) {
            *z = *z * p;
        }
    }
}

/// `z −= weight · the z before`, one after the other.
#[inline(always)]
fn chain<'a, T: Real>(values: impl Iterator<Item = (&'a mut T, &'a T)>) {
    let mut before = T::ZERO;
    for (z, &weight) in values {
        before = (-weight).fused(before, *z);
        *z = before;
    }
}

impl<T: Real> Factors<T> {
    fn new(problem: &Problem, a: &Operator, axis: usize, by: f64) -> Self {
        let [rows, columns] = problem.grid.points;
        let turned = axis == 1;
        let (length, width) = if turned {
            (columns, rows)
        } else {
            (rows, columns)
        };
        // Value `line` of row `k`, wherever it stands on the grid.
        let node = |k: usize, line: usize| match turned {
            true => line * columns + k,
            false => k * columns + line,
        };
        let size = length * width;
        let entry = |row: &[f64], k: usize, line: usize| -by * row[node(k, line)];
        let (mut lower, mut inverse, mut upper) =
            (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
        let closed = problem.grid.edges[axis] == Edge::Periodic;
        let (mut u, mut v) = ([vec![], vec![]], [vec![], vec![]]);
        for line in 0..width {
            // The corners of a ring's matrix go into u vᵀ.
            let first_takes = entry(&a.before[axis], 0, line);
            let last_takes = entry(&a.after[axis], length - 1, line);
            let pivot = |k: usize| 1.0 + entry(&a.at[axis], k, line);
            let gamma = -pivot(0);
            let mut previous = 0.0;
            for k in 0..length {
                let at = k * width + line;
                let mut diagonal = pivot(k);
                if closed && k == 0 {
                    diagonal -= gamma;
                }
                if closed && k == length - 1 {
                    diagonal -= first_takes * last_takes / gamma;
                }
                if k > 0 {
                    lower[at] = entry(&a.before[axis], k, line);
                    diagonal -= lower[at] * previous;
                }
                inverse[at] = 1.0 / diagonal;
                lower[at] *= inverse[at];
                if k + 1 < length {
                    upper[at] = entry(&a.after[axis], k, line) * inverse[at];
                }
                previous = upper[at];
            }
            if closed {
                u[0].push(gamma);
                u[1].push(last_takes);
                v[0].push(1.0);
                v[1].push(first_takes / gamma);
            }
        }
        let mut factors = Factors {
            width,
            turned,
            lower,
            inverse,
            upper,
            closing: None,
            short: None,
        };
        if closed {
            let ends = |ends: &[Vec<f64>; 2]| {
                let mut values = vec![0.0; size];
                values[..width].copy_from_slice(&ends[0]);
                values[size - width..].copy_from_slice(&ends[1]);
                values
            };
            let scaled = |mut solution: Vec<f64>, with: &[Vec<f64>; 2]| {
                for line in 0..width {
                    let last = size - width + line;
                    let product = with[0][line] * solution[line] + with[1][line] * solution[last];
                    for k in 0..length {
                        solution[k * width + line] /= 1.0 + product;
                    }
                }
                solution
            };
            let (mut forward, mut backward) = (ends(&u), ends(&v));
            factors.open(Arch::new(), &mut forward);
            factors.open_transposed(Arch::new(), &mut backward);
            factors.closing = Some(Closing {
                correction: scaled(forward, &v),
                transposed: scaled(backward, &u),
                u,
                v,
            });
        }
        if width == 1 && length <= SHORT {
            let inverse = [false, true].map(|transpose| {
                let mut rows = vec![0.0; size * size];
                for (unit, row) in rows.chunks_exact_mut(size).enumerate() {
                    row[unit] = 1.0;
                    factors.solve_lines(Arch::new(), transpose, row);
                }
                // Sums of less would be subnormal.
                for x in rows.iter_mut().filter(|x| x.abs() < NEGLIGIBLE) {
                    *x = 0.0;
                }
                rows
            });
            factors.short = Some(inverse);
        }
        factors.cast()
    }
}

impl Factors<f64> {
    fn cast<T: Real>(&self) -> Factors<T> {
        let ends = |ends: &[Vec<f64>; 2]| [0, 1].map(|k| of(&ends[k]));
        Factors {
            width: self.width,
            turned: self.turned,
            lower: of(&self.lower),
            inverse: of(&self.inverse),
            upper: of(&self.upper),
            closing: self.closing.as_ref().map(|closing| Closing {
                u: ends(&closing.u),
                v: ends(&closing.v),
                correction: of(&closing.correction),
                transposed: of(&closing.transposed),
            }),
            short: self.short.as_ref().map(|[a, b]| [of(a), of(b)]),
        }
    }
}

impl<T: Real> Factors<T> {
    fn open(&self, arch: Arch, values: &mut [T]) {
        sweep(
            arch,
            &self.lower,
            &self.inverse,
            &self.upper,
            self.width,
            values,
        );
    }

    fn open_transposed(&self, arch: Arch, values: &mut [T]) {
        sweep_transposed(
            arch,
            &self.lower,
            &self.inverse,
            &self.upper,
            self.width,
            values,
        );
    }

    /// Solves in place; `room` is overwritten.
    fn solve(&self, arch: Arch, transpose: bool, values: &mut [T], room: &mut [T]) {
        let length = values.len() / self.width;
        if let Some(short) = &self.short {
            multiply_into(arch, values, &short[usize::from(transpose)], room, length);
            values.copy_from_slice(room);
        } else if self.turned {
            turn(arch, values, length, room);
            self.solve_lines(arch, transpose, room);
            turn(arch, room, self.width, values);
        } else {
            self.solve_lines(arch, transpose, values);
        }
    }

    fn solve_lines(&self, arch: Arch, transpose: bool, values: &mut [T]) {
        match transpose {
            false => self.open(arch, values),
            true => self.open_transposed(arch, values),
        }
        let Some(closing) = &self.closing else { return };
        let (ends, correction) = match transpose {
            false => (&closing.v, &closing.correction),
            true => (&closing.u, &closing.transposed),
        };
        let last = values.len() - self.width;
        let shares: Vec<T> = (0..self.width)
            .map(|line| -(ends[0][line] * values[line] + ends[1][line] * values[last + line]))
            .collect();
        for (row, by) in values
            .chunks_exact_mut(self.width)
            .zip(correction.chunks_exact(self.width))
        {
            add_product(arch, &shares, by, row);
        }
    }
}

/// Side of the squares that are turned at once.
const SQUARE: usize = 8;

vectorised! {
    /// `to` = the transpose of `from`, which has rows of `columns`.
    pub fn turn<'a, T>(from: &'a [T], columns: usize, to: &'a mut [T]) {
        let rows = from.len() / columns;
        for i in (0..rows).step_by(SQUARE) {
            for j in (0..columns).step_by(SQUARE) {
                let (height, width) = (SQUARE.min(rows - i), SQUARE.min(columns - j));
                let mut square = [[T::ZERO; SQUARE]; SQUARE];
                if height == SQUARE && width == SQUARE {
                    for (k, row) in square.iter_mut().enumerate() {
                        row.copy_from_slice(&from[(i + k) * columns + j..][..SQUARE]);
                    }
                    for k in 0..SQUARE {
                        let column: [T; SQUARE] = std::array::from_fn(|l| square[l][k]);
                        to[(j + k) * rows + i..][..SQUARE].copy_from_slice(&column);
                    }
                    continue;
                }
                for k in 0..height {
                    for l in 0..width {
                        to[(j + l) * rows + i + k] = from[(i + k) * columns + j + l];
                    }
                }
            }
        }
    }
}

impl<T: Real> DescribedStep<T> {
    /// What edges hold and bring in a solver step that begins at a time.
    fn held(&self, begin: f64) -> Vec<Held<T>> {
        let (mut values, mut inflow) = (Vec::new(), Vec::new());
        let inflow_time = self.system.inflow_time(begin, self.dt);
        let given = |all: &[Inflow], values: &[f64]| {
            let sources = all.iter().zip(values);
            let sources = sources.map(|(s, value)| (s.node, s.axis, T::of(s.weight * value)));
            sources.collect()
        };
        // To first order hyperdiffusion takes its whole step after the rest, to second half of it before and
        // half after; it asks half-way through each and at the end.
        let parts = match self.system.scheme {
            Scheme::FirstOrder => [[0.0, 0.0], [0.5, 1.0]],
            Scheme::SecondOrder => [[0.25, 0.5], [0.75, 1.0]],
        };
        let field = |k: usize| {
            let field = &self.system.fields[k];
            self.system.fixed_values(k, begin + self.dt, &mut values);
            self.system.inflow_values(k, inflow_time, &mut inflow);
            let brought = given(&field.operator.inflow, &inflow);
            let beyond = parts.map(|times| {
                times.map(|share| {
                    let time = begin + share * self.dt;
                    self.system.ambient_values(k, time, &mut inflow);
                    let hyper = field.hyper.iter();
                    hyper
                        .flat_map(|hyper| -> Vec<_> { given(&hyper.laplacian.inflow, &inflow) })
                        .collect()
                })
            });
            Held {
                values: of(&values),
                inflow: brought,
                beyond,
            }
        };
        (0..self.lines.len()).map(field).collect()
    }

    fn state_len(&self) -> usize {
        self.lines.len() * self.nodes
    }

    /// When a solver step begins.
    fn time(&self, step: usize, substep: usize) -> f64 {
        (step * self.substeps + substep) as f64 * self.dt
    }

    /// Evaluates an expression of all fields at every node.
    fn evaluate(
        &self,
        expression: &problem::kit::expression::Expression,
        state: &[T],
        time: f64,
        out: &mut [T],
    ) {
        let mut fields: [&[T]; MOST_FIELDS] = [&[]; MOST_FIELDS];
        let parts = state.chunks_exact(self.nodes);
        fields
            .iter_mut()
            .zip(parts)
            .for_each(|(to, part)| *to = part);
        T::evaluate(
            &self.system,
            expression,
            &fields[..self.lines.len()],
            &self.coordinates,
            time,
            out,
        );
    }

    /// Writes how fast reactions change every field; nothing where a node is held or dry.
    fn react(&self, state: &[T], time: f64, rates: &mut [T]) {
        let parts = rates.chunks_exact_mut(self.nodes).enumerate();
        for (k, rates) in parts {
            match &self.system.kit().described[k].reaction {
                Some(reaction) => self.evaluate(&reaction.rate, state, time, rates),
                None => rates.fill(T::ZERO),
            }
            self.lines[k].release(rates);
        }
    }

    /// Half a step of reactions by the midpoint rule: `state` moves on, `middle` is where its rates are
    /// taken.
    fn grow(&self, state: &mut [T], time: f64, middle: &mut [T], rates: &mut [T]) {
        if !self.reacts {
            return;
        }
        let half = 0.5 * self.dt;
        self.react(state, time, rates);
        middle.copy_from_slice(state);
        add_scaled(self.arch, T::of(0.5 * half), rates, middle);
        self.react(middle, time + 0.5 * half, rates);
        add_scaled(self.arch, T::of(half), rates, state);
    }

    /// Back through that, from the state before it; `g` goes from the state after to that before.
    fn grow_adjoint(
        &self,
        state: &[T],
        time: f64,
        g: &mut [T],
        rooms: &mut Rooms<T>,
        g_middle: &mut [T],
    ) {
        if !self.reacts {
            return;
        }
        let half = 0.5 * self.dt;
        let Rooms {
            push: pull,
            middle,
            room,
            ..
        } = rooms;
        self.react(state, time, pull);
        middle.copy_from_slice(state);
        add_scaled(self.arch, T::of(0.5 * half), pull, middle);
        // What the rates in the middle are pulled by, and through them the middle itself.
        self.scaled(T::of(half), g, pull);
        g_middle.fill(T::ZERO);
        self.reaction_adjoint(middle, time + 0.5 * half, pull, g_middle, room);
        add_scaled(self.arch, T::ONE, g_middle, g);
        self.scaled(T::of(0.5 * half), g_middle, pull);
        self.reaction_adjoint(state, time, pull, g, room);
    }

    /// `to = by · from`, but nothing where a node is held or dry.
    fn scaled(&self, by: T, from: &[T], to: &mut [T]) {
        to.iter_mut()
            .zip(from)
            .for_each(|(to, &from)| *to = by * from);
        self.release(to);
    }

    /// Back through the cut to fields' ranges, given what came out of it.
    fn clip_adjoint(&self, after: &[T], g: &mut [T]) {
        let fields = after
            .chunks_exact(self.nodes)
            .zip(g.chunks_exact_mut(self.nodes));
        for (lines, (after, g)) in self.lines.iter().zip(fields) {
            if let Some([low, high]) = lines.clip {
                clip_adjoint(self.arch, after, low, high, g);
            }
        }
    }

    /// Cuts scratch into room for a step and two states.
    fn rooms<'a>(&self, scratch: &'a mut [T]) -> (Rooms<'a, T>, [&'a mut [T]; 2]) {
        let size = self.state_len();
        let (push, rest) = scratch.split_at_mut(size);
        let (middle, rest) = rest.split_at_mut(size);
        let (state, rest) = rest.split_at_mut(size);
        let (spare, rest) = rest.split_at_mut(size);
        let (room, rest) = rest.split_at_mut(self.nodes);
        let rooms = Rooms {
            push,
            middle,
            room,
            old: &mut rest[..self.nodes],
        };
        (rooms, [state, spare])
    }

    /// What edges hold and bring in a solver step.
    fn held_in(&self, step: usize, substep: usize) -> Cow<'_, [Held<T>]> {
        match &self.edges {
            Some(held) => Cow::Borrowed(held),
            None => Cow::Owned(self.held(self.time(step, substep))),
        }
    }

    /// Nothing happens by itself where a node is held or dry.
    fn release(&self, values: &mut [T]) {
        for (lines, values) in self.lines.iter().zip(values.chunks_exact_mut(self.nodes)) {
            lines.release(values);
        }
    }

    /// Hyperdiffusion of one field.
    fn smooth(&self, lines: &FieldLines<T>, field: &mut [T], beyond: &Beyond<T>) {
        if let Some(smoothing) = &lines.smoothing {
            smoothing.step(self.arch, field, beyond);
        }
    }

    /// Back through it.
    fn smooth_adjoint(&self, lines: &FieldLines<T>, g: &mut [T]) {
        if let Some(smoothing) = &lines.smoothing {
            smoothing.step_adjoint(self.arch, g);
        }
    }

    /// Diffusion, hyperdiffusion, flow, edges and `push`, in place.
    fn carry(&self, state: &mut [T], push: &[T], held: &[Held<T>], room: &mut [T], old: &mut [T]) {
        for (k, lines) in self.lines.iter().enumerate() {
            let part = k * self.nodes..(k + 1) * self.nodes;
            let (field, push) = (&mut state[part.clone()], &push[part]);
            let [before, after] = &held[k].beyond;
            if self.system.scheme == Scheme::SecondOrder {
                self.smooth(lines, field, before);
            }
            if lines.stages.is_empty() {
                add_scaled(self.arch, T::of(self.dt), push, field);
                lines.dry.iter().for_each(|&node| field[node] = T::ZERO);
            }
            for (old, &node) in old.iter_mut().zip(&lines.fixed) {
                *old = field[node];
            }
            for stage in &lines.stages {
                if let Some(rows) = &stage.explicit {
                    rows.apply(self.arch, field, room);
                    field.copy_from_slice(room);
                }
                add_scaled(self.arch, stage.push, push, field);
                let fixed = lines.fixed.iter().zip(&held[k].values).zip(&*old);
                for ((&node, &value), &old) in fixed {
                    field[node] = match stage.midway {
                        true => (old + value) * T::of(0.5),
                        false => value,
                    };
                }
                lines.dry.iter().for_each(|&node| field[node] = T::ZERO);
                for &(node, axis, value) in &held[k].inflow {
                    field[node] = stage.inflow[axis].fused(value, field[node]);
                }
                stage.implicit.solve(self.arch, false, field, room);
            }
            self.smooth(lines, field, after);
        }
    }

    /// Back through that: `g` goes from the state after to that before, `g_push` is set.
    fn carry_adjoint(&self, g: &mut [T], g_push: &mut [T], room: &mut [T]) {
        for (k, lines) in self.lines.iter().enumerate() {
            let part = k * self.nodes..(k + 1) * self.nodes;
            let (g, g_push) = (&mut g[part.clone()], &mut g_push[part]);
            g_push.fill(T::ZERO);
            self.smooth_adjoint(lines, g);
            if lines.stages.is_empty() {
                lines.dry.iter().for_each(|&node| g[node] = T::ZERO);
                add_scaled(self.arch, T::of(self.dt), g, g_push);
            }
            for stage in lines.stages.iter().rev() {
                stage.implicit.solve(self.arch, true, g, room);
                let halves: Vec<T> = match stage.midway {
                    true => lines
                        .fixed
                        .iter()
                        .map(|&node| g[node] * T::of(0.5))
                        .collect(),
                    false => Vec::new(),
                };
                lines.release(g);
                add_scaled(self.arch, stage.push, g, g_push);
                if let Some(rows) = &stage.explicit {
                    rows.apply_transposed(self.arch, g, room);
                    g.copy_from_slice(room);
                }
                for (&node, half) in lines.fixed.iter().zip(halves) {
                    g[node] += half;
                }
            }
            if self.system.scheme == Scheme::SecondOrder {
                self.smooth_adjoint(lines, g);
            }
        }
    }

    /// One solver step of one episode, in place.
    fn substep(
        &self,
        state: &mut [T],
        forcing: &[T],
        held: &[Held<T>],
        time: f64,
        rooms: &mut Rooms<T>,
    ) {
        let Rooms {
            push,
            middle,
            room,
            old,
        } = rooms;
        match self.system.scheme {
            Scheme::FirstOrder => {
                self.react(state, time, push);
                add_scaled(self.arch, T::ONE, forcing, push);
                self.carry(state, push, held, room, old);
            }
            Scheme::SecondOrder => {
                self.grow(state, time, middle, push);
                self.carry(state, forcing, held, room, old);
                self.grow(state, time + 0.5 * self.dt, middle, push);
            }
        }
        for (lines, field) in self.lines.iter().zip(state.chunks_exact_mut(self.nodes)) {
            if let Some([low, high]) = lines.clip {
                clip(self.arch, low, high, field);
            }
        }
    }

    /// Adds the reaction's part to the gradient of the state.
    fn reaction_adjoint(&self, state: &[T], time: f64, g_push: &[T], g: &mut [T], room: &mut [T]) {
        for (k, field) in self.system.kit().described.iter().enumerate() {
            for (by, derivative) in field
                .reaction
                .iter()
                .flat_map(|reaction| &reaction.derivatives)
            {
                self.evaluate(derivative, state, time, room);
                let g = &mut g[by * self.nodes..][..self.nodes];
                add_product(self.arch, room, &g_push[k * self.nodes..][..self.nodes], g);
            }
        }
    }
}

impl<T: Real> FieldStep<T> for DescribedStep<T> {
    fn tape_len(&self) -> usize {
        (self.substeps - 1) * self.state_len()
    }

    fn scratch_len(&self) -> usize {
        4 * self.state_len() + 2 * self.nodes
    }

    fn advance(
        &self,
        batch: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let (size, all) = (self.state_len(), fields.len());
        let (mut rooms, [state, _]) = self.rooms(scratch);
        for substep in 0..self.substeps {
            let held = self.held_in(batch.step, substep);
            let time = self.time(batch.step, substep);
            for e in 0..batch.episodes {
                let part = e * size..(e + 1) * size;
                state.copy_from_slice(match substep {
                    0 => &fields[part.clone()],
                    _ => &tape[(substep - 1) * all..][part.clone()],
                });
                self.substep(state, &forcing[part.clone()], &held, time, &mut rooms);
                match substep + 1 == self.substeps {
                    true => next[part].copy_from_slice(state),
                    false => tape[substep * all..][part].copy_from_slice(state),
                }
            }
        }
    }

    fn adjoint(&self, batch: Batch, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]) {
        let size = self.state_len();
        let (mut rooms, [state, spare]) = self.rooms(scratch);
        g.fields.copy_from_slice(g.next);
        g.forcing.fill(T::ZERO);
        for substep in (0..self.substeps).rev() {
            let before = at.state(substep, self.substeps);
            let after = at.state(substep + 1, self.substeps);
            let held = self.held_in(batch.step, substep);
            let time = self.time(batch.step, substep);
            for e in 0..batch.episodes {
                let part = e * size..(e + 1) * size;
                let g_state = &mut g.fields[part.clone()];
                self.clip_adjoint(&after[part.clone()], g_state);
                let begun = &before[part.clone()];
                let forcing = &at.forcing[part.clone()];
                if self.system.scheme == Scheme::SecondOrder && self.reacts {
                    // What the second half of the reactions began with.
                    state.copy_from_slice(begun);
                    self.grow(state, time, rooms.middle, rooms.push);
                    self.carry(state, forcing, &held, rooms.room, rooms.old);
                    self.grow_adjoint(state, time + 0.5 * self.dt, g_state, &mut rooms, spare);
                }
                self.carry_adjoint(g_state, state, rooms.room);
                add_scaled(self.arch, T::ONE, state, &mut g.forcing[part]);
                match self.system.scheme {
                    Scheme::SecondOrder => {
                        self.grow_adjoint(begun, time, g_state, &mut rooms, spare);
                    }
                    Scheme::FirstOrder => {
                        self.release(state);
                        self.reaction_adjoint(begun, time, state, g_state, rooms.room);
                    }
                }
            }
        }
    }
}

/// Room for one step of one episode.
struct Rooms<'a, T> {
    /// As large as a state.
    push: &'a mut [T],
    middle: &'a mut [T],
    /// As large as a field.
    room: &'a mut [T],
    old: &'a mut [T],
}

/// Evaluates expressions in a precision.
pub trait Evaluates: Sized {
    /// See [`System::evaluate`].
    fn evaluate(
        system: &System,
        expression: &problem::kit::expression::Expression,
        fields: &[&[Self]],
        coordinates: &[Vec<Self>; 2],
        time: f64,
        out: &mut [Self],
    );
}

macro_rules! evaluates {
    ($real:ty, $which:tt) => {
        impl Evaluates for $real {
            fn evaluate(
                system: &System,
                expression: &problem::kit::expression::Expression,
                fields: &[&[Self]],
                coordinates: &[Vec<Self>; 2],
                time: f64,
                out: &mut [Self],
            ) {
                REGISTERS.with_borrow_mut(|registers| {
                    system.evaluate(
                        expression,
                        fields,
                        coordinates,
                        time,
                        out,
                        &mut registers.$which,
                    );
                });
            }
        }
    };
}
evaluates!(f32, 0);
evaluates!(f64, 1);
