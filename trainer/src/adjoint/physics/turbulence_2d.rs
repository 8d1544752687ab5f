//! Two-dimensional turbulence, one control interval and its adjoint: with x along axis 1 and y along
//! axis 0,
//!
//! ```text
//! ω_t = −a (u ω_x + v ω_y) + ν Δω + f,   u = ψ_y,   v = −ψ_x,   Δψ = ω
//! ```
//!
//! Velocity is free of divergence, so that advection needs only products of velocities; with
//! w = −v = ψ_x it is
//!
//! ```text
//! −(u ω_x + v ω_y) = −(∂_xx − ∂_yy)(u w) + ∂_xy (w² − u²)
//! ```
//!
//! Two transforms lead to a grid of 3/2 as many points, where products have no aliases among the
//! carried modes, and two back. Nyquist modes have no signed wave number: they only diffuse. In time
//! it is the classical Runge–Kutta scheme. A rate takes 2.0 million multiply-adds on 64 × 64 points.
//! The modes of ψ at every stage are kept for the adjoint, which finds the velocities again.

use super::super::elementwise::vectorised;
use super::super::real::Real;
use super::spectral::{Circle, Of, Transform, parts, table, tiles, tiles_mut};
use super::torus::{Evolution, OnTorus};
use super::{Differentiable, not_implemented};
use problem::published::turbulence_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};

/// Turbulence on a torus.
pub type Turbulence2d<T> = OnTorus<T, Vortices<T>>;

/// Runge–Kutta steps of the vorticity's modes.
#[derive(Debug, Clone)]
pub struct Vortices<T> {
    arch: Arch,
    dt: f64,
    /// Modes of a field.
    modes: usize,
    /// From modes of the stream function to u and w on the fine grid.
    velocities: [Transform<T>; 2],
    /// From the modes' sides of the two products to the fine grid: plain, and differentiated along
    /// both axes.
    products: [Transform<T>; 2],
    factors: Factors<T>,
}

/// What modes are multiplied by.
#[derive(Debug, Clone)]
struct Factors<T> {
    /// ψ from ω: −1/|k|², and 0 for the mean.
    stream: Vec<T>,
    /// −ν |k|²
    damping: Vec<T>,
    /// −∂_xx + ∂_yy: k_x² − k_y².
    shear: Vec<T>,
    /// a, and what transforms back from a finer grid leave out.
    advection: T,
}

/// Room for one evaluation of the rate or its adjoint.
struct Room<'a, T> {
    /// On the fine grid.
    velocities: [&'a mut [T]; 2],
    products: [&'a mut [T]; 2],
    halfway: &'a mut [T],
    /// As many as modes.
    modes: &'a mut [T],
}

/// The classical scheme's (reach to the next stage, weight in the end), in steps.
const STAGES: [(f64, f64); 4] = [
    (0.5, 1.0 / 6.0),
    (0.5, 1.0 / 3.0),
    (1.0, 1.0 / 3.0),
    (0.0, 1.0 / 6.0),
];

impl<T: Real> Differentiable<T> for Turbulence2d<T> {
    /// The scheme of the problem or its variant, on an even number of points.
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let points = problem.grid.points;
        let Equation {
            viscosity,
            advection,
        } = equation(problem);
        if points.iter().any(|n| !n.is_multiple_of(2)) {
            return Err(not_implemented(problem));
        }
        let torus = [0, 1].map(|axis| Circle::whole(points[axis], problem.grid.extent(axis)));
        let fine = torus.map(|circle| Circle {
            grid: (3 * circle.points / 2).next_multiple_of(2),
            carried: circle.points / 2 - 1,
            ..circle
        });
        let finer: f64 = fine
            .map(|c| c.grid as f64 / c.points as f64)
            .iter()
            .product();
        let onto = |what| Transform::new(fine, what);
        let (plain, steep) = (Of::Values, Of::Slopes);
        let square = |k: f64, l: f64| k * k + l * l;
        let vortices = Vortices {
            arch: Arch::new(),
            dt,
            modes: points[0] * points[1],
            velocities: [[steep, plain], [plain, steep]].map(onto),
            products: [[plain; 2], [steep; 2]].map(onto),
            factors: Factors {
                stream: table(torus, |k, l| match square(k, l) {
                    0.0 => 0.0,
                    square => -1.0 / square,
                }),
                damping: table(torus, |k, l| -viscosity * square(k, l)),
                shear: table(torus, |k, l| l * l - k * k),
                advection: T::of(advection / finer),
            },
        };
        Ok(Self::driven(torus, substeps, vortices))
    }
}

impl<T: Real> Vortices<T> {
    fn fine_len(&self) -> usize {
        self.products[0].grid_len()
    }

    /// Tiles of u and w from the modes of ψ.
    fn flow(&self, stream: &[T], room: &mut Room<T>) {
        for (velocity, transform) in room.velocities.iter_mut().zip(&self.velocities) {
            transform.to_grid(stream, room.halfway, velocity);
        }
    }

    /// The rate of change of `stage`, whose stream function is left in `stream`.
    fn rate(&self, stage: &[T], push: &[T], stream: &mut [T], rate: &mut [T], room: &mut Room<T>) {
        scale(self.arch, &self.factors.stream, stage, stream);
        self.flow(stream, room);
        let ([u, w], [shear, cross]) = (&room.velocities, &mut room.products);
        multiply(self.arch, self.factors.advection, [u, w], shear, cross);
        room.modes.fill(T::ZERO);
        rate.copy_from_slice(push);
        let [plain, steep] = &self.products;
        plain.to_modes(shear, room.halfway, room.modes);
        steep.to_modes(cross, room.halfway, rate);
        let Factors { damping, shear, .. } = &self.factors;
        combine(self.arch, [damping, shear], [stage, room.modes], rate);
    }

    /// Adjoint of [`Self::rate`] but for the force: sets the gradient of the stage.
    fn rate_adjoint(&self, stream: &[T], g_rate: &[T], g_stage: &mut [T], room: &mut Room<T>) {
        let Factors {
            stream: inverse,
            damping,
            shear,
            advection,
        } = &self.factors;
        self.flow(stream, room);
        scale(self.arch, shear, g_rate, room.modes);
        let [plain, steep] = &self.products;
        let [g_shear, g_cross] = &mut room.products;
        plain.to_grid(room.modes, room.halfway, g_shear);
        steep.to_grid(g_rate, room.halfway, g_cross);
        let [u, w] = &mut room.velocities;
        multiply_adjoint(self.arch, *advection, [g_shear, g_cross], u, w);
        room.modes.fill(T::ZERO);
        for (velocity, transform) in room.velocities.iter().zip(&self.velocities) {
            transform.to_modes(velocity, room.halfway, room.modes);
        }
        g_stage.fill(T::ZERO);
        combine(self.arch, [damping, inverse], [g_rate, room.modes], g_stage);
    }

    /// Parts of the room for an evaluation.
    fn room<'a>(&self, scratch: &'a mut [T]) -> Room<'a, T> {
        let ([u, w, shear, cross, halfway], rest) = parts(scratch, self.fine_len());
        Room {
            velocities: [u, w],
            products: [shear, cross],
            halfway,
            modes: &mut rest[..self.modes],
        }
    }
}

impl<T: Real> Evolution<T> for Vortices<T> {
    /// The stream functions of all stages.
    fn kept_len(&self) -> usize {
        STAGES.len() * self.modes
    }

    fn room_len(&self) -> usize {
        4 * self.modes + 5 * self.fine_len()
    }

    fn step(&self, start: &mut [T], push: &[T], kept: &mut [T], room: &mut [T]) {
        let ([stage, end, rate], rest) = parts(room, start.len());
        let room = &mut self.room(rest);
        stage.copy_from_slice(start);
        end.copy_from_slice(start);
        for (stream, (reach, weight)) in kept.chunks_exact_mut(start.len()).zip(STAGES) {
            self.rate(stage, push, stream, rate, room);
            let shares = [reach, weight].map(|share| T::of(share * self.dt));
            proceed(self.arch, shares, [start, rate], stage, end);
        }
        start.copy_from_slice(end);
    }

    fn step_adjoint(&self, g_start: &mut [T], g_push: &mut [T], kept: &[T], room: &mut [T]) {
        let ([g_end, g_stage, g_rate], rest) = parts(room, g_start.len());
        let room = &mut self.room(rest);
        g_end.copy_from_slice(g_start);
        g_stage.fill(T::ZERO);
        for (stream, (reach, weight)) in kept.chunks_exact(g_end.len()).zip(STAGES).rev() {
            let shares = [reach, weight].map(|share| T::of(share * self.dt));
            proceed_adjoint(self.arch, shares, [g_stage, g_end], g_rate, g_push);
            self.rate_adjoint(stream, g_rate, g_stage, room);
            add(self.arch, g_stage, g_start);
        }
    }
}

vectorised! {
    /// Tiles of `factor` times u w and w² − u².
    pub fn multiply<'a, T>(
        factor: T,
        velocities: [&'a [T]; 2],
        shear: &'a mut [T],
        cross: &'a mut [T],
    ) {
        let [u, w] = velocities;
        let (u, w) = (tiles(u), tiles(w));
        let (shear, cross) = (tiles_mut(shear), tiles_mut(cross));
        let half = T::of(0.5) * factor;
        for j in 0..shear[0].len() {
            let u = [u[0][j], u[1][j], u[2][j], u[3][j]];
            let w = [w[0][j], w[1][j], w[2][j], w[3][j]];
            for s in 0..4 {
                let (mut product, mut squares) = (T::ZERO, T::ZERO);
                for t in 0..4 {
                    product = u[t].fused(w[t ^ s], product);
                    squares = w[t].fused(w[t ^ s], (-u[t]).fused(u[t ^ s], squares));
                }
                shear[s][j] = half * product;
                cross[s][j] = half * squares;
            }
        }
    }
}

vectorised! {
    /// Adjoint of [`multiply`], in place: velocities become their gradients.
    pub fn multiply_adjoint<'a, T>(
        factor: T,
        gradients: [&'a [T]; 2],
        u: &'a mut [T],
        w: &'a mut [T],
    ) {
        let [shear, cross] = gradients;
        let (shear, cross) = (tiles(shear), tiles(cross));
        let (u, w) = (tiles_mut(u), tiles_mut(w));
        let half = T::of(0.5) * factor;
        for j in 0..shear[0].len() {
            let shear = [shear[0][j], shear[1][j], shear[2][j], shear[3][j]];
            let cross = [cross[0][j], cross[1][j], cross[2][j], cross[3][j]];
            let at_u = [u[0][j], u[1][j], u[2][j], u[3][j]];
            let at_w = [w[0][j], w[1][j], w[2][j], w[3][j]];
            for t in 0..4 {
                let (mut from_u, mut from_w) = (T::ZERO, T::ZERO);
                let (mut g_u, mut g_w) = (T::ZERO, T::ZERO);
                for s in 0..4 {
                    from_u = cross[s].fused(at_u[t ^ s], from_u);
                    from_w = cross[s].fused(at_w[t ^ s], from_w);
                    g_u = shear[s].fused(at_w[t ^ s], g_u);
                    g_w = shear[s].fused(at_u[t ^ s], g_w);
                }
                u[t][j] = half * g_u - factor * from_u;
                w[t][j] = half * g_w + factor * from_w;
            }
        }
    }
}

vectorised! {
    /// `out` = factor · term.
    pub fn scale<'a, T>(factor: &'a [T], term: &'a [T], out: &'a mut [T]) {
        for ((out, &factor), &term) in out.iter_mut().zip(factor).zip(term) {
            *out = factor * term;
        }
    }
}

vectorised! {
    /// `sum` += term.
    pub fn add<'a, T>(term: &'a [T], sum: &'a mut [T]) {
        for (sum, &term) in sum.iter_mut().zip(term) {
            *sum += term;
        }
    }
}

vectorised! {
    /// `sum` += Σ factors · terms.
    pub fn combine<'a, T>(factors: [&'a [T]; 2], terms: [&'a [T]; 2], sum: &'a mut [T]) {
        let ([a, b], [x, y]) = (factors, terms);
        let terms = a.iter().zip(x).zip(b.iter().zip(y));
        for (sum, ((&a, &x), (&b, &y))) in sum.iter_mut().zip(terms) {
            *sum = a.fused(x, b.fused(y, *sum));
        }
    }
}

vectorised! {
    /// A rate leads from the start to the next stage and is added to `end`, each by its share.
    pub fn proceed<'a, T>(
        shares: [T; 2],
        inputs: [&'a [T]; 2],
        stage: &'a mut [T],
        end: &'a mut [T],
    ) {
        let ([reach, weight], [start, rate]) = (shares, inputs);
        let inputs = start.iter().zip(rate);
        for ((&start, &rate), (stage, end)) in inputs.zip(stage.iter_mut().zip(end)) {
            *stage = rate.fused(reach, start);
            *end = rate.fused(weight, *end);
        }
    }
}

vectorised! {
    /// The gradient of a rate, from those of the next stage and of the end; it is one of the force too.
    pub fn proceed_adjoint<'a, T>(
        shares: [T; 2],
        gradients: [&'a [T]; 2],
        g_rate: &'a mut [T],
        g_push: &'a mut [T],
    ) {
        let ([reach, weight], [g_stage, g_end]) = (shares, gradients);
        let inputs = g_stage.iter().zip(g_end);
        for ((&g_stage, &g_end), (g_rate, g_push)) in inputs.zip(g_rate.iter_mut().zip(g_push)) {
            *g_rate = g_stage.fused(reach, weight * g_end);
            *g_push += *g_rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::{assert_adjoint, assert_stays_near_simulator};
    use super::*;
    use crate::adjoint::check::wave;
    use problem::published::turbulence_2d::{FORCE_MAX, PROBLEM};

    fn forms() -> [Problem; 2] {
        [PROBLEM, PROBLEM.with_variant("as-published").unwrap()]
    }

    /// 500 evaluations in f32: some 1e-6 in all.
    #[test]
    fn stepping_is_the_simulators() {
        for problem in forms() {
            let (wide, narrow) = (
                Turbulence2d::new(&problem).unwrap(),
                Turbulence2d::new(&problem).unwrap(),
            );
            assert_stays_near_simulator(&problem, &wide, &narrow, FORCE_MAX, [1e-12, 1e-5]);
        }
    }

    /// Sums of some 600 terms of size 1 are off by about 1e-13, their differences over 2e-5 by 5e-9;
    /// gradients of forces that act for 0.01 time units are of size 0.01.
    #[test]
    fn it_has_the_adjoint_it_claims() {
        for problem in forms() {
            let problem = problem.with_grid(18).unwrap().with_substeps(2).unwrap();
            let points = 2 * problem.grid.len();
            let (fields, forcing) = (wave(points, 0.23, 2.0), wave(points, 0.71, 1.0));
            assert_adjoint(
                &Turbulence2d::new(&problem).unwrap(),
                &fields,
                &forcing,
                1e-6,
            );
        }
    }
}
