//! Hyperdiffusion of a described field, with the diffusion that it holds in check where that is negative.
//!
//! With Δ = L₀ + L₁ along the axes and `a = κ Δt`, a step of first order is
//!
//! ```text
//! S(Δt) = (1 + a L₀²)⁻¹ (1 + Δt N − 2a L₀ L₁) (1 + a L₁²)⁻¹
//! ```
//!
//! and one of second order `2 S(Δt/2)² − S(Δt)`. `(1 + a L²)⁻¹` and `−√a L (1 + a L²)⁻¹` are the parts of
//! `C = (1 + i√a L)⁻¹`, real and imaginary, so that with `z = C₁ u`
//!
//! ```text
//! S u = Re C₀ ((1 + Δt N) Re z + 2i Im z)
//! ```
//!
//! All of it is linear, up to what is beyond walls: that adds g to Δu but nothing to Δ of it, which is `−√a g`
//! in the imaginary part of what `C` is applied to. The transpose has the same form, with the axes and all
//! matrices turned round.

use super::described::turn;
use crate::adjoint::elementwise::vectorised;
use crate::adjoint::real::Real;
use problem::grid::Edge;
use problem::kit::operator::Operator;
use problem::kit::system::Hyper;
use problem::pde::lines::Scheme;
use pulp::{Arch, Simd, WithSimd};

/// A step of a field.
#[derive(Debug, Clone)]
pub struct Hyperdiffusion<T> {
    whole: Step<T>,
    /// To second order.
    half: Option<Step<T>>,
    /// `N`: what a node's change takes from another node.
    spread: Vec<(usize, usize, T)>,
}

/// What is beyond walls adds to Δu, half-way through a step and at its end: node, axis and how much.
pub type Beyond<T> = [Vec<(usize, usize, T)>; 2];

/// A step of one length.
#[derive(Debug, Clone)]
struct Step<T> {
    dt: T,
    /// √a.
    root: T,
    /// `C` along each axis, and its transpose.
    forward: Vec<Inverse<T>>,
    transposed: Vec<Inverse<T>>,
}

/// A complex tridiagonal matrix along an axis, factored; lines stand side by side.
#[derive(Debug, Clone)]
struct Inverse<T> {
    width: usize,
    /// Whether lines go along the last axis of a plane, so that fields are turned.
    turned: bool,
    /// The elements before and one over the pivots, the elements after; the first and last are divided by
    /// the pivots.
    lower: Parts<T>,
    inverse: Parts<T>,
    upper: Parts<T>,
    /// What closes lines to rings: the last value's share in what is taken, and how much of what.
    ring: Option<(Parts<T>, Parts<T>)>,
}

/// Complex numbers: real parts, imaginary parts.
type Parts<T> = [Vec<T>; 2];

/// What is beyond walls; nothing is said of it on the way back.
type Given<'a, T> = Option<&'a Vec<(usize, usize, T)>>;

/// One.
type Number = [f64; 2];

fn times([a, b]: Number, [c, d]: Number) -> Number {
    [a * c - b * d, a * d + b * c]
}

fn minus(a: Number, b: Number) -> Number {
    [a[0] - b[0], a[1] - b[1]]
}

fn over(a: Number, [c, d]: Number) -> Number {
    let square = c * c + d * d;
    times(a, [c / square, -d / square])
}

impl<T: Real> Hyperdiffusion<T> {
    /// For steps of `dt`.
    pub fn new(hyper: &Hyper, scheme: Scheme, dt: f64) -> Self {
        let mut spread = Vec::new();
        for (against, axis) in hyper.against.iter().flat_map(|a| [(a, 0), (a, 1)]) {
            if axis == against.grid.axes {
                continue;
            }
            let (rows, stride) = lines(against, axis);
            for node in 0..against.grid.len() {
                let at = node / stride % rows;
                let beside = |to: usize| node - at * stride + to % rows * stride;
                let takes = [
                    (beside(at + rows - 1), against.before[axis][node]),
                    (node, against.at[axis][node]),
                    (beside(at + 1), against.after[axis][node]),
                ];
                let takes = takes.into_iter().filter(|(_, weight)| *weight != 0.0);
                spread.extend(takes.map(|(from, weight)| (node, from, T::of(-weight))));
            }
        }
        Self {
            whole: Step::new(hyper, dt),
            half: match scheme {
                Scheme::FirstOrder => None,
                Scheme::SecondOrder => Some(Step::new(hyper, 0.5 * dt)),
            },
            spread,
        }
    }

    /// A step in place.
    pub fn step(&self, arch: Arch, field: &mut [T], [middle, end]: &Beyond<T>) {
        self.through(arch, field, [Some(middle), Some(end)]);
    }

    /// Back through one.
    pub fn step_adjoint(&self, arch: Arch, g: &mut [T]) {
        self.through(arch, g, [None; 2]);
    }

    /// A step, or back through one where nothing is said of what is beyond.
    fn through(&self, arch: Arch, field: &mut [T], [middle, end]: [Given<T>; 2]) {
        let mut room = [(); 4].map(|()| vec![T::ZERO; field.len()]);
        let Some(half) = &self.half else {
            return self.take(arch, &self.whole, field, end, &mut room);
        };
        let mut once = field.to_vec();
        self.take(arch, &self.whole, &mut once, end, &mut room);
        self.take(arch, half, field, middle, &mut room);
        self.take(arch, half, field, end, &mut room);
        for (u, &once) in field.iter_mut().zip(&once) {
            *u = *u + *u - once;
        }
    }

    fn take(
        &self,
        arch: Arch,
        step: &Step<T>,
        u: &mut [T],
        beyond: Given<T>,
        [imaginary, a, b, c]: &mut [Vec<T>; 4],
    ) {
        let transpose = beyond.is_none();
        let let_in = |axis: usize, imaginary: &mut [T]| {
            for &(node, along, added) in beyond.into_iter().flatten() {
                if along == axis {
                    imaginary[node] = (-step.root).fused(added, imaginary[node]);
                }
            }
        };
        let all = match transpose {
            false => &step.forward,
            true => &step.transposed,
        };
        let (imaginary, a) = (&mut imaginary[..], &mut a[..]);
        let mut solve = |along: &Inverse<T>, re: &mut [T], im: &mut [T]| {
            along.solve(arch, [re, im], [&mut b[..], &mut c[..]]);
        };
        imaginary.fill(T::ZERO);
        match (&all[..], transpose) {
            ([along], false) => {
                self.spread(step.dt, false, u, a);
                let_in(0, imaginary);
                solve(along, u, imaginary);
            }
            ([along], true) => {
                solve(along, u, imaginary);
                self.spread(step.dt, true, u, a);
            }
            ([down, across], _) => {
                let (first, last) = if transpose {
                    (down, across)
                } else {
                    (across, down)
                };
                let_in(1, imaginary);
                solve(first, u, imaginary);
                self.spread(step.dt, transpose, u, a);
                imaginary.iter_mut().for_each(|z| *z = *z + *z);
                let_in(0, imaginary);
                solve(last, u, imaginary);
            }
            _ => unreachable!("one axis or two"),
        }
    }

    /// `u = (1 + Δt N) u`.
    fn spread(&self, dt: T, transpose: bool, u: &mut [T], old: &mut [T]) {
        if self.spread.is_empty() {
            return;
        }
        old.copy_from_slice(u);
        for &(to, from, weight) in &self.spread {
            let (to, from) = if transpose { (from, to) } else { (to, from) };
            u[to] = (dt * weight).fused(old[from], u[to]);
        }
    }
}

/// Points of a line along an axis, and from one to the next.
fn lines(operator: &Operator, axis: usize) -> (usize, usize) {
    let [rows, columns] = operator.grid.points;
    [(rows, columns), (columns, 1)][axis]
}

impl<T: Real> Step<T> {
    fn new(hyper: &Hyper, dt: f64) -> Self {
        let root = (hyper.coefficient * dt).sqrt();
        let all = |transpose: bool| {
            let axes = 0..hyper.laplacian.grid.axes;
            axes.map(|axis| Inverse::new(&hyper.laplacian, axis, root, transpose))
                .collect()
        };
        Self {
            dt: T::of(dt),
            root: T::of(root),
            forward: all(false),
            transposed: all(true),
        }
    }
}

impl<T: Real> Inverse<T> {
    fn new(laplacian: &Operator, axis: usize, root: f64, transpose: bool) -> Self {
        let (length, stride) = lines(laplacian, axis);
        let size = laplacian.grid.len();
        let width = size / length;
        let turned = axis == 1;
        let node = |k: usize, line: usize| match turned {
            true => line * length + k,
            false => k * stride + line,
        };
        let closed = laplacian.grid.edges[axis] == Edge::Periodic;
        let mut all = Self {
            width,
            turned,
            lower: Default::default(),
            inverse: Default::default(),
            upper: Default::default(),
            ring: None,
        };
        let (mut lower, mut inverse, mut upper) = (
            vec![[0.0; 2]; size],
            vec![[0.0; 2]; size],
            vec![[0.0; 2]; size],
        );
        let (mut weights, mut responses) = (vec![[0.0; 2]; width], vec![[0.0; 2]; size]);
        for line in 0..width {
            // The elements beside the diagonal; a transpose has those of its neighbours.
            let beside = |k: usize, back: bool| {
                let neighbour = (if back { k + length - 1 } else { k + 1 }) % length;
                let (row, before) = if transpose {
                    (neighbour, !back)
                } else {
                    (k, back)
                };
                let rows = if before {
                    &laplacian.before
                } else {
                    &laplacian.after
                };
                [0.0, root * rows[axis][node(row, line)]]
            };
            let diagonal = |k: usize| [1.0, root * laplacian.at[axis][node(k, line)]];
            // Corners of a ring's matrix.
            let (low, high) = (beside(0, true), beside(length - 1, false));
            let gamma = match low == [0.0; 2] {
                true => [0.0; 2],
                false => minus([0.0; 2], diagonal(0)),
            };
            let weight = match low == [0.0; 2] {
                true => [0.0; 2],
                false => over(low, gamma),
            };
            let mut response = vec![[0.0; 2]; length];
            for k in 0..length {
                let at = k * width + line;
                let mut pivot = diagonal(k);
                if k == 0 {
                    pivot = minus(pivot, gamma);
                    response[0] = gamma;
                }
                if k + 1 == length {
                    pivot = minus(pivot, times(high, weight));
                    response[k] = high;
                }
                if k > 0 {
                    lower[at] = beside(k, true);
                    pivot = minus(pivot, times(lower[at], upper[at - width]));
                    response[k] = minus(response[k], times(lower[at], response[k - 1]));
                }
                inverse[at] = over([1.0, 0.0], pivot);
                lower[at] = times(lower[at], inverse[at]);
                response[k] = times(response[k], inverse[at]);
                if k + 1 < length {
                    upper[at] = times(beside(k, false), inverse[at]);
                }
            }
            for k in (0..length - 1).rev() {
                let after = times(upper[k * width + line], response[k + 1]);
                response[k] = minus(response[k], after);
            }
            let share = times(weight, response[length - 1]);
            let whole = [1.0 + response[0][0] + share[0], response[0][1] + share[1]];
            weights[line] = weight;
            for (k, value) in response.into_iter().enumerate() {
                responses[k * width + line] = over(value, whole);
            }
        }
        let parts = |all: &[Number]| [0, 1].map(|p| all.iter().map(|z| T::of(z[p])).collect());
        all.lower = parts(&lower);
        all.inverse = parts(&inverse);
        all.upper = parts(&upper);
        all.ring = closed.then(|| (parts(&weights), parts(&responses)));
        all
    }

    /// Solves in place; `room` is overwritten.
    fn solve(&self, arch: Arch, values: [&mut [T]; 2], room: [&mut [T]; 2]) {
        if !self.turned {
            return self.solve_lines(arch, values);
        }
        let ([re, im], [a, b]) = (values, room);
        let length = re.len() / self.width;
        turn(arch, re, length, a);
        turn(arch, im, length, b);
        self.solve_lines(arch, [&mut *a, &mut *b]);
        turn(arch, a, self.width, re);
        turn(arch, b, self.width, im);
    }

    fn solve_lines(&self, arch: Arch, [re, im]: [&mut [T]; 2]) {
        let (lower, inverse, upper) = (&self.lower, &self.inverse, &self.upper);
        sweep(arch, lower, inverse, upper, self.width, re, im);
        if let Some((weight, response)) = &self.ring {
            close(arch, weight, response, self.width, re, im);
        }
    }
}

vectorised! {
    /// Solves the open lines, side by side, `width` of them; of a lone one the last value stays in registers.
    #[allow(clippy::needless_range_loop)]
    pub fn sweep<'a, T>(
        lower: &'a Parts<T>,
        inverse: &'a Parts<T>,
        upper: &'a Parts<T>,
        width: usize,
        re: &'a mut [T],
        im: &'a mut [T],
    ) {
        let rows = re.len() / width;
        if width == 1 {
            for j in 0..rows {
                let (x, y, pr, pi) = (re[j], im[j], inverse[0][j], inverse[1][j]);
                re[j] = (-y).fused(pi, x * pr);
                im[j] = x.fused(pi, y * pr);
            }
            let values = re.iter_mut().zip(&mut *im);
            chain(values.zip(lower[0].iter().zip(&lower[1])));
            let values = re.iter_mut().zip(im);
            chain(values.zip(upper[0].iter().zip(&upper[1])).rev());
            return;
        }
        for row in 0..rows {
            let here = row * width;
            let (done_re, re) = re.split_at_mut(here);
            let (done_im, im) = im.split_at_mut(here);
            let (re, im) = (&mut re[..width], &mut im[..width]);
            let [pr, pi] = [0, 1].map(|p| &inverse[p][here..][..width]);
            for j in 0..width {
                let (x, y) = (re[j], im[j]);
                re[j] = (-y).fused(pi[j], x * pr[j]);
                im[j] = x.fused(pi[j], y * pr[j]);
            }
            if row == 0 {
                continue;
            }
            let [lr, li] = [0, 1].map(|p| &lower[p][here..][..width]);
            let (zr, zi) = (&done_re[here - width..][..width], &done_im[here - width..][..width]);
            for j in 0..width {
                re[j] = li[j].fused(zi[j], (-lr[j]).fused(zr[j], re[j]));
                im[j] = (-li[j]).fused(zr[j], (-lr[j]).fused(zi[j], im[j]));
            }
        }
        for row in (0..rows - 1).rev() {
            let here = row * width;
            let (re, next_re) = re.split_at_mut(here + width);
            let (im, next_im) = im.split_at_mut(here + width);
            let (re, im) = (&mut re[here..][..width], &mut im[here..][..width]);
            let (zr, zi) = (&next_re[..width], &next_im[..width]);
            let [ur, ui] = [0, 1].map(|p| &upper[p][here..][..width]);
            for j in 0..width {
                re[j] = ui[j].fused(zi[j], (-ur[j]).fused(zr[j], re[j]));
                im[j] = (-ui[j]).fused(zr[j], (-ur[j]).fused(zi[j], im[j]));
            }
        }
    }
}

/// A complex value and what the one before it is multiplied by.
type Link<'a, T> = ((&'a mut T, &'a mut T), (&'a T, &'a T));

/// `z −= weight · the z before`, one after the other.
#[inline(always)]
fn chain<'a, T: Real>(values: impl Iterator<Item = Link<'a, T>>) {
    let (mut zr, mut zi) = (T::ZERO, T::ZERO);
    for ((re, im), (&wr, &wi)) in values {
        let x = wi.fused(zi, (-wr).fused(zr, *re));
        let y = (-wi).fused(zr, (-wr).fused(zi, *im));
        (zr, zi) = (x, y);
        (*re, *im) = (x, y);
    }
}

vectorised! {
    /// Closes lines that were solved open.
    #[allow(clippy::needless_range_loop)]
    pub fn close<'a, T>(
        weight: &'a Parts<T>,
        response: &'a Parts<T>,
        width: usize,
        re: &'a mut [T],
        im: &'a mut [T],
    ) {
        let last = re.len() - width;
        let mut taken = [re[..width].to_vec(), im[..width].to_vec()];
        for j in 0..width {
            let ([wr, wi], x, y) = ([weight[0][j], weight[1][j]], re[last + j], im[last + j]);
            taken[0][j] += wr * x - wi * y;
            taken[1][j] += wr * y + wi * x;
        }
        for start in (0..re.len()).step_by(width) {
            let (re, im) = (&mut re[start..][..width], &mut im[start..][..width]);
            let [rr, ri] = [0, 1].map(|p| &response[p][start..][..width]);
            let (tr, ti) = (&taken[0][..width], &taken[1][..width]);
            for j in 0..width {
                re[j] = ri[j].fused(ti[j], (-rr[j]).fused(tr[j], re[j]));
                im[j] = (-ri[j]).fused(tr[j], (-rr[j]).fused(ti[j], im[j]));
            }
        }
    }
}
