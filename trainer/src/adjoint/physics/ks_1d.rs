//! The Kuramoto–Sivashinsky equation on a circle, one step and its adjoint.
//!
//! Per wavenumber k, with l = k² − k⁴ and r = 1/(1 − Δt l/2), the scheme is
//!
//! ```text
//! û⁺ = r [(1 + Δt l/2) û + Δt (f̂ − ½ i k F(u²))] = r (2 û + Δt f̂) − û − ½ i k r Δt F(u²)
//! ```
//!
//! On the grid r is a symmetric circulant matrix R and −½ i k r Δt an antisymmetric one, S: a step is
//! one product of [2u + Δt f, u²] with the two stacked, for all episodes at once. At 128 points that
//! is no more work than the transforms, and it runs at the speed of matrix products.

use super::super::elementwise::vectorised;
use super::super::matrix;
use super::super::real::Real;
use super::{Batch, Differentiable, FieldStep, Gradients, Interval, not_implemented};
use problem::published::ks_1d::equation;
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};
use std::f64::consts::TAU;

/// Beyond this the matrices take gigabytes.
const MOST_POINTS: usize = 4096;

/// Crank–Nicolson for the linear part, explicit Euler for the rest.
#[derive(Debug, Clone)]
pub struct Ks1d<T> {
    arch: Arch,
    points: usize,
    substeps: usize,
    dt: T,
    /// R above S, [2 points, points].
    propagator: Vec<T>,
    /// The same transposed.
    transposed: Vec<T>,
}

impl<T: Real> Differentiable<T> for Ks1d<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let n = problem.grid.len();
        let length = equation(problem).length;
        if n > MOST_POINTS {
            return Err(not_implemented(problem));
        }
        let (dt, substeps) = problem.solver_steps(1);
        // Waves 0 and n/2 have no sine on the grid; the others stand for their mirror images too.
        let waves = (0..=n / 2).map(|m| (m, if 2 * m % n == 0 { 1.0 } else { 2.0 }));
        let (mut damping, mut advection) = (vec![0.0; n], vec![0.0; n]);
        for (m, weight) in waves {
            let k = TAU / length * m as f64;
            let r = weight / (n as f64 * (1.0 - 0.5 * dt * (k.powi(2) - k.powi(4))));
            for gap in 0..n {
                let (sin, cos) = (TAU * (m * gap % n) as f64 / n as f64).sin_cos();
                damping[gap] += r * cos;
                if weight == 2.0 {
                    advection[gap] += 0.5 * k * dt * r * sin;
                }
            }
        }
        let circulant =
            |symbol: Vec<f64>| (0..n * n).map(move |at| T::of(symbol[(at % n + n - at / n) % n]));
        let propagator: Vec<T> = circulant(damping).chain(circulant(advection)).collect();
        let mut transposed = vec![T::ZERO; propagator.len()];
        matrix::transpose(&propagator, 2 * n, &mut transposed);
        Ok(Self {
            arch: Arch::new(),
            points: n,
            substeps,
            dt: T::of(dt),
            propagator,
            transposed,
        })
    }
}

impl<T: Real> FieldStep<T> for Ks1d<T> {
    /// The fields between the substeps.
    fn tape_len(&self) -> usize {
        (self.substeps - 1) * self.points
    }

    fn scratch_len(&self) -> usize {
        2 * self.points
    }

    fn advance(
        &self,
        Batch { episodes, .. }: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let n = self.points;
        let inputs = &mut scratch[..episodes * 2 * n];
        next.copy_from_slice(fields);
        for substep in 0..self.substeps {
            if substep > 0 {
                let kept = tape.chunks_exact_mut(self.tape_len());
                for (u, kept) in next.chunks_exact(n).zip(kept) {
                    kept[(substep - 1) * n..][..n].copy_from_slice(u);
                }
            }
            depart(self.arch, self.dt, n, forcing, inputs, next);
            matrix::multiply(self.arch, inputs, &self.propagator, next, 2 * n);
        }
    }

    fn adjoint(
        &self,
        Batch { episodes, .. }: Batch,
        at: Interval<T>,
        g: Gradients<T>,
        scratch: &mut [T],
    ) {
        let n = self.points;
        let g_inputs = &mut scratch[..episodes * 2 * n];
        g.fields.copy_from_slice(g.next);
        g.forcing.fill(T::ZERO);
        for substep in (0..self.substeps).rev() {
            g_inputs.fill(T::ZERO);
            matrix::multiply(self.arch, g.fields, &self.transposed, g_inputs, n);
            let rows = g_inputs.chunks_exact(2 * n).enumerate();
            let gradients = g
                .fields
                .chunks_exact_mut(n)
                .zip(g.forcing.chunks_exact_mut(n));
            for ((episode, g_inputs), (g_u, g_f)) in rows.zip(gradients) {
                let u = match substep {
                    0 => &at.fields[episode * n..],
                    _ => &at.tape[episode * self.tape_len() + (substep - 1) * n..],
                };
                depart_adjoint(self.arch, self.dt, &u[..n], g_inputs, g_u, g_f);
            }
        }
    }
}

vectorised! {
    /// Rows [2u + Δt f, u²] of `inputs`; u becomes −u.
    pub fn depart<'a, T>(dt: T, n: usize, forcing: &'a [T], inputs: &'a mut [T], u: &'a mut [T]) {
        let rows = u.chunks_exact_mut(n).zip(forcing.chunks_exact(n));
        for ((u, f), row) in rows.zip(inputs.chunks_exact_mut(2 * n)) {
            let (pushed, squared) = row.split_at_mut(n);
            for (((u, &f), pushed), squared) in u.iter_mut().zip(f).zip(pushed).zip(squared) {
                *pushed = f.fused(dt, *u + *u);
                *squared = *u * *u;
                *u = -*u;
            }
        }
    }
}

vectorised! {
    /// Adjoint of [`depart`] for one episode: `g_u` turns from the gradient of −u into that of u, and
    /// adds to `g_f`.
    pub fn depart_adjoint<'a, T>(
        dt: T,
        u: &'a [T],
        g_inputs: &'a [T],
        g_u: &'a mut [T],
        g_f: &'a mut [T],
    ) {
        let (pushed, squared) = g_inputs.split_at(u.len());
        let inputs = u.iter().zip(pushed).zip(squared);
        for (((&u, &pushed), &squared), (g_u, g_f)) in inputs.zip(g_u.iter_mut().zip(g_f)) {
            *g_f = pushed.fused(dt, *g_f);
            *g_u = (u + u).fused(squared, pushed + pushed) - *g_u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::{assert_adjoint, assert_stays_near_simulator};
    use super::*;
    use crate::adjoint::check::wave;
    use problem::published::ks_1d::{FORCE_MAX, PROBLEM};

    /// In f32 a step rounds the mean, which nothing damps, by a few 1e-7; there are up to 75.
    #[test]
    fn stepping_is_the_simulators() {
        for substeps in [1, 3] {
            let problem = PROBLEM.with_substeps(substeps).unwrap();
            let (wide, narrow) = (Ks1d::new(&problem).unwrap(), Ks1d::new(&problem).unwrap());
            assert_stays_near_simulator(&problem, &wide, &narrow, FORCE_MAX, [1e-12, 1e-4]);
        }
    }

    /// Sums of some 600 terms of size 1 are off by about 1e-13, their differences over 2e-5 by 5e-9;
    /// gradients of forces that act for 0.01 time units are of size 0.01.
    #[test]
    fn it_has_the_adjoint_it_claims() {
        for substeps in [1, 3] {
            let problem = PROBLEM.with_substeps(substeps).unwrap();
            let points = 2 * problem.grid.len();
            let (fields, forcing) = (wave(points, 0.23, 2.0), wave(points, 0.71, 1.0));
            assert_adjoint(&Ks1d::new(&problem).unwrap(), &fields, &forcing, 1e-6);
        }
    }
}
