//! The heat equation on a rod, one Crank–Nicolson step:
//!
//! ```text
//! (1+r) z⁺_j − r/2 (z⁺_{j−1} + z⁺_{j+1}) = z_j + r/2 (z_{j−1} − 2 z_j + z_{j+1}) + Δt f_j,   z⁺ = 0 at the walls
//! ```
//!
//! The implicit half is a product with the inverse matrix: it serves all episodes at once, and
//! being symmetric it is its own adjoint. (The simulator solves the same system by elimination;
//! the two are independent on purpose.)

use super::{Batch, Differentiable, FieldStep, Gradients, Interval, diffusion};
use crate::adjoint::matrix;
use crate::adjoint::real::Real;
use problem::published::heat_1d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::Arch;

/// Crank–Nicolson step of the rod.
#[derive(Debug, Clone)]
pub struct Heat1d<T> {
    arch: Arch,
    grid: usize,
    /// (I − r/2 D)⁻¹ on the interior, zero on the walls.
    inverse: Vec<T>,
    /// r/2
    half_ratio: T,
    dt: T,
    substeps: usize,
}

/// r = ν Δt / Δx².
pub fn diffusion_ratio(problem: &Problem) -> f64 {
    let Equation {
        diffusivity,
        spacing,
    } = equation(problem);
    diffusivity * problem.solver_steps(1).0 / (spacing * spacing)
}

/// Row-major inverse of the implicit half of the step, [grid, grid], zero on the walls.
pub fn implicit_inverse(problem: &Problem) -> Vec<f64> {
    diffusion::implicit_inverse(problem.grid.len(), 0.5 * diffusion_ratio(problem))
}

impl<T: Real> Differentiable<T> for Heat1d<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        Ok(Self {
            arch: Arch::new(),
            grid: problem.grid.len(),
            inverse: (implicit_inverse(problem).into_iter().map(T::of)).collect(),
            half_ratio: T::of(0.5 * diffusion_ratio(problem)),
            dt: T::of(dt),
            substeps,
        })
    }
}

impl<T: Real> Heat1d<T> {
    fn substep(&self, fields: &[T], forcing: &[T], explicit: &mut [T]) {
        let n = self.grid;
        let rows = fields.chunks_exact(n).zip(forcing.chunks_exact(n));
        for ((z, f), out) in rows.zip(explicit.chunks_exact_mut(n)) {
            // Not read, but multiplied with zeros; what is left there may be no number.
            (out[0], out[n - 1]) = (T::ZERO, T::ZERO);
            for j in 1..n - 1 {
                let bend = z[j - 1] + z[j + 1] - z[j] - z[j];
                out[j] = z[j] + self.half_ratio * bend + self.dt * f[j];
            }
        }
    }
}

impl<T: Real> FieldStep<T> for Heat1d<T> {
    fn scratch_len(&self) -> usize {
        self.grid
    }

    fn advance(
        &self,
        _: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        _: &mut [T],
        explicit: &mut [T],
    ) {
        self.substep(fields, forcing, explicit);
        for step in 0..self.substeps {
            if step > 0 {
                self.substep(next, forcing, explicit);
            }
            next.fill(T::ZERO);
            matrix::multiply(self.arch, explicit, &self.inverse, next, self.grid);
        }
    }

    /// The step is linear: nothing of the way there needs to be known.
    fn adjoint(&self, _: Batch, _: Interval<T>, g: Gradients<T>, g_explicit: &mut [T]) {
        let n = self.grid;
        g.forcing.fill(T::ZERO);
        for step in 0..self.substeps {
            let g_next = if step == 0 { g.next } else { &*g.fields };
            g_explicit.fill(T::ZERO);
            matrix::multiply(self.arch, g_next, &self.inverse, g_explicit, n);
            let rows = g_explicit.chunks_exact(n).zip(g.fields.chunks_exact_mut(n));
            for ((g, z), f) in rows.zip(g.forcing.chunks_exact_mut(n)) {
                // The walls' rows of the inverse are zero, so g is zero there.
                z[0] = self.half_ratio * g[1];
                z[n - 1] = self.half_ratio * g[n - 2];
                for j in 1..n - 1 {
                    let bend = g[j - 1] + g[j + 1] - g[j] - g[j];
                    z[j] = g[j] + self.half_ratio * bend;
                    f[j] += self.dt * g[j];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(episodes: usize) -> Batch {
        Batch { episodes, step: 0 }
    }
    use crate::adjoint::check::{assert_gradient, wave};
    use problem::published::heat_1d::PROBLEM;

    /// sin(πx) is an eigenvector of the second difference: one step multiplies it by
    /// (1 + a)/(1 − a) with a = −2 r sin²(π / 2(N−1)).
    #[test]
    fn a_sine_decays_by_the_schemes_own_factor() {
        let heat = Heat1d::<f64>::new(&PROBLEM).unwrap();
        let sine: Vec<f64> = (0..100)
            .map(|j| (std::f64::consts::PI * j as f64 / 99.0).sin())
            .collect();
        let a = -2.0 * diffusion_ratio(&PROBLEM) * (std::f64::consts::PI / 198.0).sin().powi(2);
        let (mut scratch, mut next) = (vec![0.0; 100], vec![0.0; 100]);
        heat.advance(
            batch(1),
            &sine,
            &[0.0; 100],
            &mut next,
            &mut [],
            &mut scratch,
        );
        for (before, after) in sine.iter().zip(&next) {
            assert!((after - before * (1.0 + a) / (1.0 - a)).abs() < 1e-13);
        }
        assert_eq!((next[0], next[99]), (0.0, 0.0));
    }

    #[test]
    fn diffusion_has_the_adjoint_it_claims() {
        let heat = Heat1d::<f64>::new(&PROBLEM).unwrap();
        let mut state = wave(200, 0.2, 1.0); // two episodes, walls not zero
        state.extend(wave(200, 0.7, 5.0));
        let weight = wave(200, 0.9, 1.0);
        let value = |state: &[f64]| {
            let (mut scratch, mut next) = (vec![0.0; 200], vec![0.0; 200]);
            heat.advance(
                batch(2),
                &state[..200],
                &state[200..],
                &mut next,
                &mut [],
                &mut scratch,
            );
            next.iter().zip(&weight).map(|(v, w)| v * w).sum()
        };
        let (mut scratch, mut g) = (vec![0.0; 200], vec![0.0; state.len()]);
        let (fields, forcing) = g.split_at_mut(200);
        let at = Interval {
            fields: &state[..200],
            forcing: &state[200..],
            next: &[],
            tape: &[],
        };
        let gradients = Gradients {
            next: &weight,
            fields,
            forcing,
        };
        heat.adjoint(batch(2), at, gradients, &mut scratch);
        assert_gradient(value, &state, &g, 1e-8);
    }
}
