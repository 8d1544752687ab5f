//! The step for training, with its adjoint beside it.

use crate::equation::{Equation, response};
use problem::{NotImplemented, Problem};
use trainer::adjoint::physics::{Batch, Differentiable, FieldStep, Gradients, Interval};
use trainer::adjoint::real::Real;

/// See [`crate::equation`] for the scheme.
#[derive(Debug)]
pub struct Burgers<T> {
    points: usize,
    substeps: usize,
    dt: T,
    /// Δt / 4Δx
    flux: T,
    /// What a unit in cell 0 becomes; the inverse matrix is made of it, and is symmetric.
    response: Vec<T>,
}

impl<T: Real> Differentiable<T> for Burgers<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let equation = Equation::of(problem);
        Ok(Self {
            points: equation.points,
            substeps,
            dt: T::of(dt),
            flux: T::of(dt / (4.0 * equation.spacing)),
            response: response(&equation, dt).into_iter().map(T::of).collect(),
        })
    }
}

impl<T: Real> Burgers<T> {
    /// The implicit half, forwards and backwards.
    fn diffuse(&self, from: &[T], to: &mut [T]) {
        let n = self.points;
        for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
            for (j, to) in to.iter_mut().enumerate() {
                let parts = from.iter().enumerate();
                *to = parts
                    .map(|(i, &e)| self.response[(j + n - i) % n] * e)
                    .sum();
            }
        }
    }

    fn substep(&self, u: &[T], forcing: &[T], explicit: &mut [T], next: &mut [T]) {
        let n = self.points;
        let rows = u.chunks_exact(n).zip(forcing.chunks_exact(n));
        for ((u, f), e) in rows.zip(explicit.chunks_exact_mut(n)) {
            for j in 0..n {
                let (left, right) = (u[(j + n - 1) % n], u[(j + 1) % n]);
                e[j] = u[j] - self.flux * (right * right - left * left) + self.dt * f[j];
            }
        }
        self.diffuse(explicit, next);
    }
}

impl<T: Real> FieldStep<T> for Burgers<T> {
    /// The fields after every solver step but the last.
    fn tape_len(&self) -> usize {
        (self.substeps - 1) * self.points
    }

    fn scratch_len(&self) -> usize {
        self.points
    }

    fn advance(
        &self,
        _: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let mut from = fields;
        for state in tape.chunks_exact_mut(fields.len()) {
            self.substep(from, forcing, scratch, state);
            from = state;
        }
        self.substep(from, forcing, scratch, next);
    }

    fn adjoint(&self, _: Batch, at: Interval<T>, g: Gradients<T>, g_explicit: &mut [T]) {
        let n = self.points;
        let twice = self.flux + self.flux;
        g.fields.copy_from_slice(g.next);
        g.forcing.fill(T::ZERO);
        for step in (0..self.substeps).rev() {
            self.diffuse(g.fields, g_explicit);
            let given = at.state(step, self.substeps).chunks_exact(n);
            let set = g
                .fields
                .chunks_exact_mut(n)
                .zip(g.forcing.chunks_exact_mut(n));
            for ((u, g_e), (g_u, g_f)) in given.zip(g_explicit.chunks_exact(n)).zip(set) {
                for j in 0..n {
                    let (left, right) = (g_e[(j + n - 1) % n], g_e[(j + 1) % n]);
                    g_u[j] = g_e[j] + twice * u[j] * (right - left);
                    g_f[j] += self.dt * g_e[j];
                }
            }
        }
    }
}
