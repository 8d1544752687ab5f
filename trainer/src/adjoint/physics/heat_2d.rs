//! The heat equation on a plate, by Peaceman and Rachford's alternating directions. With
//! `C = 1 + r/2 D` the explicit and `A = 1 − r/2 D` the implicit half along an axis,
//!
//! ```text
//! A₀ z* = z C₁ᵀ + Δt/2 f,   z⁺ A₁ᵀ = C₀ z* + Δt/2 f,   z* = z⁺ = 0 on the edges
//! ```
//!
//! The halves of one axis commute, so both collapse into products with small matrices,
//!
//! ```text
//! z⁺ = L (z R + W) + W,   L = C₀ A₀⁻¹,   R = C₁ᵀ A₁⁻¹,   W = Δt/2 f A₁⁻¹
//! ```
//!
//! which are linear: their adjoint needs no tape.

use super::diffusion::implicit_inverse;
use super::{Batch, Differentiable, FieldStep, Gradients, Interval};
use crate::adjoint::elementwise::vectorised;
use crate::adjoint::matrix;
use crate::adjoint::real::Real;
use problem::published::heat_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};

/// Step of the plate, with or without places that agents must not enter.
#[derive(Debug, Clone)]
pub struct Heat2d<T> {
    arch: Arch,
    points: [usize; 2],
    /// L, zero on the edges; symmetric.
    along: Vec<T>,
    /// R. Only its rows know the edges: values there enter the explicit half and end.
    across: Vec<T>,
    across_transposed: Vec<T>,
    /// Δt/2 A₁⁻¹, zero on the edges; symmetric.
    source: Vec<T>,
    substeps: usize,
}

impl<T: Real> Differentiable<T> for Heat2d<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let points = problem.grid.points;
        let Equation {
            diffusivity,
            spacing,
        } = equation(problem);
        let half_ratio = spacing.map(|dx| 0.5 * diffusivity * dt / (dx * dx));
        let inverse = [0, 1].map(|axis| implicit_inverse(points[axis], half_ratio[axis]));
        let mut along = explicit_then(&inverse[0], points[0], half_ratio[0]);
        along[..points[0]].fill(0.0);
        along[(points[0] - 1) * points[0]..].fill(0.0);
        let across = explicit_then(&inverse[1], points[1], half_ratio[1]);
        let mut across_transposed = vec![0.0; across.len()];
        matrix::transpose(&across, points[1], &mut across_transposed);
        let of = |matrix: Vec<f64>| matrix.into_iter().map(T::of).collect();
        Ok(Self {
            arch: Arch::new(),
            points,
            along: of(along),
            across: of(across),
            across_transposed: of(across_transposed),
            source: of(inverse[1].iter().map(|a| 0.5 * dt * a).collect()),
            substeps,
        })
    }
}

impl<T: Real> Heat2d<T> {
    fn grid(&self) -> usize {
        self.points[0] * self.points[1]
    }

    /// `to += L from`, one episode after the other.
    fn step_along(&self, from: &[T], to: &mut [T]) {
        let n = self.grid();
        for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
            matrix::multiply(self.arch, &self.along, from, to, self.points[0]);
        }
    }
}

/// Cᵀ A⁻¹ for A⁻¹ zero at the walls, so that C reads the walls but does not set them.
fn explicit_then(inverse: &[f64], points: usize, half_ratio: f64) -> Vec<f64> {
    let at = |i: usize, j: usize| inverse[i * points + j];
    let entry = |i: usize, j: usize| {
        let before = if i > 0 { at(i - 1, j) } else { 0.0 };
        let after = if i + 1 < points { at(i + 1, j) } else { 0.0 };
        at(i, j) + half_ratio * (before - 2.0 * at(i, j) + after)
    };
    (0..points * points)
        .map(|k| entry(k / points, k % points))
        .collect()
}

impl<T: Real> FieldStep<T> for Heat2d<T> {
    fn scratch_len(&self) -> usize {
        2 * self.grid()
    }

    fn advance(
        &self,
        _: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        _tape: &mut [T],
        scratch: &mut [T],
    ) {
        let [_, columns] = self.points;
        let (source, halfway) = scratch[..2 * fields.len()].split_at_mut(fields.len());
        source.fill(T::ZERO);
        matrix::multiply(self.arch, forcing, &self.source, source, columns);
        for source in source.chunks_exact_mut(self.grid()) {
            source[..columns].fill(T::ZERO);
            source[self.grid() - columns..].fill(T::ZERO);
        }
        next.copy_from_slice(fields);
        for _ in 0..self.substeps {
            halfway.copy_from_slice(source);
            matrix::multiply(self.arch, next, &self.across, halfway, columns);
            next.copy_from_slice(source);
            self.step_along(halfway, next);
        }
    }

    fn adjoint(&self, _: Batch, _at: Interval<T>, g: Gradients<T>, scratch: &mut [T]) {
        let [_, columns] = self.points;
        let (g_source, g_halfway) = scratch[..2 * g.next.len()].split_at_mut(g.next.len());
        g_source.fill(T::ZERO);
        g.fields.copy_from_slice(g.next);
        for _ in 0..self.substeps {
            g_halfway.fill(T::ZERO);
            self.step_along(g.fields, g_halfway);
            let inside = columns..self.grid() - columns;
            let episodes = (g.fields.chunks_exact(self.grid()))
                .zip(g_halfway.chunks_exact(self.grid()))
                .zip(g_source.chunks_exact_mut(self.grid()));
            for ((a, b), sum) in episodes {
                let inside = || inside.clone();
                add_both(self.arch, &a[inside()], &b[inside()], &mut sum[inside()]);
            }
            g.fields.fill(T::ZERO);
            matrix::multiply(
                self.arch,
                g_halfway,
                &self.across_transposed,
                g.fields,
                columns,
            );
        }
        g.forcing.fill(T::ZERO);
        matrix::multiply(self.arch, g_source, &self.source, g.forcing, columns);
    }
}

vectorised! {
    /// `sum += a + b`.
    pub fn add_both<'a, T>(a: &'a [T], b: &'a [T], sum: &'a mut [T]) {
        for ((sum, &a), &b) in sum.iter_mut().zip(a).zip(b) {
            *sum += a + b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::wave;
    use crate::adjoint::physics::agreement::{assert_adjoint, assert_follows_simulator};
    use problem::grid::{Edge, Grid};
    use problem::published::heat_2d::{FORCE_MAX, PROBLEM};
    use problem::published::heat_2d_obstacles;

    #[test]
    fn the_temperature_is_the_simulators() {
        let finer = PROBLEM.with_substeps(3).unwrap();
        for problem in [PROBLEM, finer, heat_2d_obstacles::PROBLEM] {
            let (wide, narrow) = (
                Heat2d::new(&problem).unwrap(),
                Heat2d::new(&problem).unwrap(),
            );
            assert_follows_simulator(&problem, &wide, &narrow, FORCE_MAX);
        }
    }

    /// On a plate whose axes differ, with edges that are not zero.
    #[test]
    fn the_adjoint_is_the_derivative() {
        for substeps in [1, 3] {
            let plate = Problem {
                grid: Grid::plane([9, 13], [1.0, 1.0], Edge::Wall),
                substeps,
                ..PROBLEM
            };
            let (fields, forcing) = (wave(2 * 117, 0.2, 1.0), wave(2 * 117, 0.7, FORCE_MAX));
            assert_adjoint(&Heat2d::new(&plate).unwrap(), &fields, &forcing, 1e-7);
        }
    }
}
