//! The Kuramoto–Sivashinsky equation on a torus, one control interval and its adjoint:
//!
//! ```text
//! u_t = −Δu − Δ²u − ½|∇u|² + f
//! ```
//!
//! The linear part is diagonal in the modes of `spectral` and is solved exactly;
//! the rest, N, goes by four stages per substep (E = exp c, E₂ = exp(c/2), c = Δt (q − q²), q = |k|²;
//! h and the weights b depend on c too):
//!
//! ```text
//! a = E₂ v + h N(v),   b = E₂ v + h N(a),   d = E₂ a + h (2 N(b) − N(v))
//! v⁺ = E v + b₀ N(v) + b₁ (N(a) + N(b)) + b₂ N(d)
//! ```
//!
//! N takes the gradient of the modes up to 2/3 of the largest wave number, squares it on the grid and
//! feeds all modes but the mean: 0.61 million multiply-adds on 64 × 64 points. The carried modes of
//! every stage are kept for the adjoint, which finds the gradients on the grid again: to fetch these
//! from memory, three times as much, would take about as long.

use super::super::elementwise::vectorised;
use super::super::real::Real;
use super::spectral::{Band, Circle, Of, Transform, mean_index, parts, table, tiles, tiles_mut};
use super::torus::{Evolution, OnTorus};
use super::{Differentiable, not_implemented};
use problem::pde::ks_2d::Stages;
use problem::published::ks_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};

/// The flame front on a torus.
pub type Ks2d<T> = OnTorus<T, Flame<T>>;

/// Exponential time differencing in four stages.
#[derive(Debug, Clone)]
pub struct Flame<T> {
    arch: Arch,
    /// Between modes and the grid.
    whole: Transform<T>,
    /// From carried modes to the derivative along each axis.
    slopes: [Transform<T>; 2],
    band: Band,
    mean: usize,
    factors: Factors<T>,
}

/// What the scheme multiplies modes by.
#[derive(Debug, Clone)]
struct Factors<T> {
    /// E
    whole: Vec<T>,
    /// E₂
    half: Vec<T>,
    /// h
    stage: Vec<T>,
    /// b₀, b₁, b₂
    weights: [Vec<T>; 3],
}

/// φ₁, φ₂ and φ₃ at `c`, where φ_n(c) = Σ_j c^j / (j + n)! and so φ_n = 1/n! + c φ_{n+1}.
pub(crate) fn phi(c: f64) -> [f64; 3] {
    let third = match c.abs() < 1.0 {
        // φ₃ = (1 + c/4 (1 + c/5 (1 + …))) / 6; the rest after c/22 is below 1e-18.
        true => {
            (4..23)
                .rev()
                .fold(1.0, |sum, n| 1.0 + c / f64::from(n) * sum)
                / 6.0
        }
        false => ((c.exp_m1() / c - 1.0) / c - 0.5) / c,
    };
    let second = 0.5 + c * third;
    [1.0 + c * second, second, third]
}

impl<T: Real> Factors<T> {
    fn new(torus: [Circle; 2], dt: f64, stages: Stages) -> Self {
        let table = |of: &dyn Fn(f64) -> f64| {
            table(torus, |k, l| {
                let q = k * k + l * l;
                of(dt * (q - q * q))
            })
        };
        let weight =
            |shares: [f64; 3]| table(&|c| dt * (0..3).map(|n| shares[n] * phi(c)[n]).sum::<f64>());
        Self {
            whole: table(&f64::exp),
            half: table(&|c| (0.5 * c).exp()),
            stage: match stages {
                Stages::Proper => table(&|c| 0.5 * dt * phi(0.5 * c)[0]),
                Stages::AsPublished => table(&|c| 0.5 * dt * phi(c)[0]),
            },
            weights: [[1.0, -3.0, 4.0], [0.0, 2.0, -4.0], [0.0, -1.0, 4.0]].map(weight),
        }
    }
}

/// Room for one evaluation of N or its adjoint, each as large as a field.
struct Room<'a, T> {
    slopes: [&'a mut [T]; 2],
    product: &'a mut [T],
    halfway: &'a mut [T],
}

impl<T: Real> Differentiable<T> for Ks2d<T> {
    /// The scheme of the problem or its variant, on an even number of points.
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let Equation { length, stages } = equation(problem);
        if problem.grid.points.iter().any(|n| !n.is_multiple_of(2)) {
            return Err(not_implemented(problem));
        }
        let torus = problem.grid.points.map(|n| Circle::whole(n, length));
        let gentle = torus.map(|circle| Circle {
            carried: (circle.points - 1) / 3, // the last below 2/3 · points/2
            ..circle
        });
        let flame = Flame {
            arch: Arch::new(),
            whole: Transform::new(torus, [Of::Values; 2]),
            slopes: [[Of::Slopes, Of::Values], [Of::Values, Of::Slopes]]
                .map(|what| Transform::new(gentle, what)),
            band: Band::new(gentle),
            mean: mean_index(torus),
            factors: Factors::new(torus, dt, stages),
        };
        Ok(Self::driven(torus, substeps, flame))
    }
}

impl<T: Real> Flame<T> {
    /// Tiles of both slopes of a stage, from its carried modes.
    fn slope(&self, stage: &[T], room: &mut Room<T>) {
        for (slope, transform) in room.slopes.iter_mut().zip(&self.slopes) {
            transform.to_grid(stage, room.halfway, slope);
        }
    }

    /// N of `stage`, of which the carried modes are left in `kept`.
    fn rate(&self, stage: &[T], force: &[T], kept: &mut [T], rate: &mut [T], room: &mut Room<T>) {
        self.band.pick(stage, kept);
        self.slope(kept, room);
        let [x, y] = &room.slopes;
        square(self.arch, x, y, room.product);
        rate.copy_from_slice(force);
        self.whole.to_modes(room.product, room.halfway, rate);
        rate[self.mean] = force[self.mean];
    }

    /// Adjoint of [`Self::rate`] but for the force: sets the gradient of the stage. That of the rate
    /// loses its mean.
    fn rate_adjoint(&self, kept: &[T], g_rate: &mut [T], g_stage: &mut [T], room: &mut Room<T>) {
        self.slope(kept, room);
        g_rate[self.mean] = T::ZERO;
        self.whole.to_grid(g_rate, room.halfway, room.product);
        let [x, y] = &mut room.slopes;
        square_adjoint(self.arch, room.product, x, y);
        let g_kept = &mut room.product[..kept.len()];
        g_kept.fill(T::ZERO);
        for (slope, transform) in room.slopes.iter().zip(&self.slopes) {
            transform.to_modes(slope, room.halfway, g_kept);
        }
        self.band.put(g_kept, g_stage);
    }

    /// Parts of the room for an evaluation.
    fn room<'a>(&self, scratch: &'a mut [T]) -> Room<'a, T> {
        let ([x, y, product, halfway], _) = parts(scratch, self.whole.grid_len());
        Room {
            slopes: [x, y],
            product,
            halfway,
        }
    }
}

impl<T: Real> Evolution<T> for Flame<T> {
    /// The carried modes of all four stages.
    fn kept_len(&self) -> usize {
        4 * self.slopes[0].modes_len()
    }

    fn room_len(&self) -> usize {
        9 * self.whole.grid_len()
    }

    fn step(&self, v: &mut [T], push: &[T], kept: &mut [T], room: &mut [T]) {
        let ([a, stage, end, n0, n], rest) = parts(room, v.len());
        let (arch, room) = (self.arch, &mut self.room(rest));
        let Factors {
            whole,
            half,
            stage: h,
            weights: [b0, b1, b2],
        } = &self.factors;
        let [at_v, at_a, at_b, at_d] = tiles_mut(kept);
        self.rate(v, push, at_v, n0, room);
        combine(arch, [half, h], [v, n0], a);
        combine(arch, [whole, b0], [v, n0], end);
        self.rate(a, push, at_a, n, room);
        proceed(arch, [half, h, b1], [v, n, n], stage, end);
        self.rate(stage, push, at_b, n, room);
        proceed(arch, [half, h, b1], [a, n, n0], stage, end);
        self.rate(stage, push, at_d, n, room);
        arrive(arch, b2, [n, end], v);
    }

    fn step_adjoint(&self, g: &mut [T], g_push: &mut [T], kept: &[T], room: &mut [T]) {
        let ([g_a, g_b, g_d, g_n], rest) = parts(room, g.len());
        let (arch, room) = (self.arch, &mut self.room(rest));
        let Factors {
            whole,
            half,
            stage: h,
            weights: [b0, b1, b2],
        } = &self.factors;
        let [at_v, at_a, at_b, at_d] = tiles(kept);
        evaluate_adjoint(arch, [b2, h], [g, g], T::ZERO, g_n, g_push);
        self.rate_adjoint(at_d, g_n, g_d, room);
        evaluate_adjoint(arch, [b1, h], [g, g_d], T::of(2.0), g_n, g_push);
        self.rate_adjoint(at_b, g_n, g_b, room);
        evaluate_adjoint(arch, [b1, h], [g, g_b], T::ONE, g_n, g_push);
        self.rate_adjoint(at_a, g_n, g_a, room);
        // From here on `g_b` is what goes through E₂ to v, and `g_d` what goes through h to N(v).
        join(arch, half, g_a, g_b, g_d);
        evaluate_adjoint(arch, [b0, h], [g, g_d], T::ONE, g_n, g_push);
        self.rate_adjoint(at_v, g_n, g_a, room);
        depart_adjoint(arch, [whole, half], [g_a, g_b], g);
    }
}

vectorised! {
    /// Tiles of −½|∇u|² from those of the slopes.
    pub fn square<'a, T>(x: &'a [T], y: &'a [T], product: &'a mut [T]) {
        let (x, y, product) = (tiles(x), tiles(y), tiles_mut(product));
        let factor = T::of(-0.25);
        for j in 0..product[0].len() {
            let x = [x[0][j], x[1][j], x[2][j], x[3][j]];
            let y = [y[0][j], y[1][j], y[2][j], y[3][j]];
            for s in 0..4 {
                let mut sum = T::ZERO;
                for t in 0..4 {
                    sum = x[t].fused(x[t ^ s], y[t].fused(y[t ^ s], sum));
                }
                product[s][j] = factor * sum;
            }
        }
    }
}

vectorised! {
    /// Adjoint of [`square`], in place: the slopes become their gradients.
    pub fn square_adjoint<'a, T>(g_product: &'a [T], x: &'a mut [T], y: &'a mut [T]) {
        let (g, x, y) = (tiles(g_product), tiles_mut(x), tiles_mut(y));
        let factor = T::of(-0.5);
        for j in 0..g[0].len() {
            let g = [g[0][j], g[1][j], g[2][j], g[3][j]];
            let at_x = [x[0][j], x[1][j], x[2][j], x[3][j]];
            let at_y = [y[0][j], y[1][j], y[2][j], y[3][j]];
            for t in 0..4 {
                let (mut g_x, mut g_y) = (T::ZERO, T::ZERO);
                for s in 0..4 {
                    g_x = g[s].fused(at_x[t ^ s], g_x);
                    g_y = g[s].fused(at_y[t ^ s], g_y);
                }
                x[t][j] = factor * g_x;
                y[t][j] = factor * g_y;
            }
        }
    }
}

vectorised! {
    /// `out` = Σ factors · terms.
    pub fn combine<'a, T>(factors: [&'a [T]; 2], terms: [&'a [T]; 2], out: &'a mut [T]) {
        let ([a, b], [x, y]) = (factors, terms);
        let terms = a.iter().zip(x).zip(b.iter().zip(y));
        for (out, ((&a, &x), (&b, &y))) in out.iter_mut().zip(terms) {
            *out = a.fused(x, b * y);
        }
    }
}

vectorised! {
    /// A rate `n` at one stage gives the next, E₂ x + h (2n − before), and adds b n to `end`.
    pub fn proceed<'a, T>(
        factors: [&'a [T]; 3],
        inputs: [&'a [T]; 3],
        stage: &'a mut [T],
        end: &'a mut [T],
    ) {
        let ([half, h, b], [x, n, before]) = (factors, inputs);
        let factors = half.iter().zip(h).zip(b);
        let inputs = x.iter().zip(n).zip(before);
        let outputs = stage.iter_mut().zip(end);
        for ((((&half, &h), &b), ((&x, &n), &before)), (stage, end)) in
            factors.zip(inputs).zip(outputs)
        {
            *stage = half.fused(x, h * (n + n - before));
            *end = b.fused(n, *end);
        }
    }
}

vectorised! {
    /// `v` = end + b n.
    pub fn arrive<'a, T>(b: &'a [T], inputs: [&'a [T]; 2], v: &'a mut [T]) {
        let [n, end] = inputs;
        for (((v, &end), &b), &n) in v.iter_mut().zip(end).zip(b).zip(n) {
            *v = b.fused(n, end);
        }
    }
}

vectorised! {
    /// The gradient of a rate, which is one of the force too: through its weight b in the end and
    /// `times` through h in a later stage.
    pub fn evaluate_adjoint<'a, T>(
        factors: [&'a [T]; 2],
        gradients: [&'a [T]; 2],
        times: T,
        g_rate: &'a mut [T],
        g_push: &'a mut [T],
    ) {
        let ([b, h], [g_end, g_stage]) = (factors, gradients);
        let inputs = b.iter().zip(h).zip(g_end.iter().zip(g_stage));
        let outputs = g_rate.iter_mut().zip(g_push);
        for (((&b, &h), (&g_end, &g_stage)), (g_rate, g_push)) in inputs.zip(outputs) {
            *g_rate = b.fused(g_end, times * h * g_stage);
            *g_push += *g_rate;
        }
    }
}

vectorised! {
    /// Completes the gradient of stage a, and replaces those of b and d by `g_a + g_b` and `g_a − g_d`.
    pub fn join<'a, T>(half: &'a [T], g_a: &'a [T], g_b: &'a mut [T], g_d: &'a mut [T]) {
        for (((&half, &g_a), g_b), g_d) in half.iter().zip(g_a).zip(g_b).zip(g_d) {
            let g_a = half.fused(*g_d, g_a);
            *g_b += g_a;
            *g_d = g_a - *g_d;
        }
    }
}

/// Gradients of strongly damped modes, which nothing renews on their way back, fade below this within
/// a few substeps; they are then dropped before they become subnormal numbers, which are slow.
const FAINTEST: f64 = 1e-24;

vectorised! {
    /// `g` turns from the gradient of the substep's end into that of its start.
    pub fn depart_adjoint<'a, T>(factors: [&'a [T]; 2], gradients: [&'a [T]; 2], g: &'a mut [T]) {
        let ([whole, half], [g_rate, g_stages]) = (factors, gradients);
        let faintest = T::of(FAINTEST);
        let inputs = whole.iter().zip(half).zip(g_rate.iter().zip(g_stages));
        for (g, ((&whole, &half), (&g_rate, &g_stages))) in g.iter_mut().zip(inputs) {
            let sum = whole.fused(*g, half.fused(g_stages, g_rate));
            *g = if sum.magnitude() < faintest { T::ZERO } else { sum };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::{assert_adjoint, assert_stays_near_simulator};
    use super::*;
    use crate::adjoint::check::wave;
    use problem::published::ks_2d::{FORCE_MAX, PROBLEM};

    fn forms() -> [Problem; 2] {
        [PROBLEM, PROBLEM.with_variant("as-published").unwrap()]
    }

    /// 2000 evaluations in f32, and chaos that makes errors grow: some 1e-5 in all.
    #[test]
    fn stepping_is_the_simulators() {
        for problem in forms() {
            let (wide, narrow) = (Ks2d::new(&problem).unwrap(), Ks2d::new(&problem).unwrap());
            assert_stays_near_simulator(&problem, &wide, &narrow, FORCE_MAX, [1e-12, 1e-4]);
        }
    }

    /// Sums of some 600 terms of size 1 are off by about 1e-13, their differences over 2e-5 by 5e-9;
    /// gradients of forces that act for 0.01 time units are of size 0.01.
    #[test]
    fn it_has_the_adjoint_it_claims() {
        for problem in forms() {
            let problem = problem.with_grid(16).unwrap().with_substeps(2).unwrap();
            let points = 2 * problem.grid.len();
            let (fields, forcing) = (wave(points, 0.23, 2.0), wave(points, 0.71, 1.0));
            assert_adjoint(&Ks2d::new(&problem).unwrap(), &fields, &forcing, 1e-6);
        }
    }

    #[test]
    fn phi_is_its_series_at_zero_and_smooth_where_its_form_changes() {
        assert_eq!(phi(0.0), [1.0, 0.5, 1.0 / 6.0]);
        for edge in [-1.0, 1.0] {
            let (inside, outside) = (phi(edge * (1.0 - 1e-15)), phi(edge));
            for (inside, outside) in inside.into_iter().zip(outside) {
                assert!((inside - outside).abs() < 1e-14, "{inside} {outside}");
            }
        }
    }
}
