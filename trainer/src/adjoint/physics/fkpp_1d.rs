//! Fisher's equation on a line, with `r = ν Δt / Δx²`:
//!
//! ```text
//! e_j = z_j + Δt (ρ z_j (1 − z_j) + f_j)
//! (1 + 2r) z⁺_j − r (z⁺_{j−1} + z⁺_{j+1}) = e_j,   z⁺ = 0 at the walls,   then z⁺ ← clip(z⁺, 0, 1)
//! ```
//!
//! The implicit half is a product with the inverse matrix, which serves all episodes at once and is
//! its own adjoint. Whether a value was clipped can be told from the result, so the tape holds only
//! the densities between solver steps.

use super::diffusion::implicit_inverse;
use super::{Batch, Differentiable, FieldStep, Gradients, Interval};
use crate::adjoint::elementwise::vectorised;
use crate::adjoint::matrix;
use crate::adjoint::real::Real;
use problem::published::fkpp_1d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};

/// Euler step of growth and forcing, then implicit diffusion, then a cut to [0, 1].
#[derive(Debug, Clone)]
pub struct Fkpp1d<T> {
    arch: Arch,
    points: usize,
    /// Of the diffusion, zero on the walls.
    inverse: Vec<T>,
    reaction: Reaction<T>,
    substeps: usize,
}

/// What goes forward explicitly.
#[derive(Debug, Clone, Copy)]
pub struct Reaction<T> {
    /// Δt
    dt: T,
    /// Δt ρ
    growth: T,
}

impl<T: Real> Differentiable<T> for Fkpp1d<T> {
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let points = problem.grid.len();
        let Equation {
            diffusivity,
            growth,
            spacing,
        } = equation(problem);
        let ratio = diffusivity * dt / spacing.powi(2);
        Ok(Self {
            arch: Arch::new(),
            points,
            inverse: (implicit_inverse(points, ratio).into_iter())
                .map(T::of)
                .collect(),
            reaction: Reaction {
                dt: T::of(dt),
                growth: T::of(dt * growth),
            },
            substeps,
        })
    }
}

impl<T: Real> Fkpp1d<T> {
    fn substep(&self, z: &[T], forcing: &[T], next: &mut [T], explicit: &mut [T]) {
        react(self.arch, self.reaction, z, forcing, explicit);
        next.fill(T::ZERO);
        matrix::multiply(self.arch, explicit, &self.inverse, next, self.points);
        clip(self.arch, next);
    }
}

impl<T: Real> FieldStep<T> for Fkpp1d<T> {
    /// The densities after every solver step but the last.
    fn tape_len(&self) -> usize {
        (self.substeps - 1) * self.points
    }

    fn scratch_len(&self) -> usize {
        2 * self.points
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
        let explicit = &mut scratch[..fields.len()];
        let mut from = fields;
        for state in tape.chunks_exact_mut(fields.len()).take(self.substeps - 1) {
            self.substep(from, forcing, state, explicit);
            from = state;
        }
        self.substep(from, forcing, next, explicit);
    }

    fn adjoint(&self, _: Batch, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]) {
        let all = at.fields.len();
        let (g_implicit, g_explicit) = scratch[..2 * all].split_at_mut(all);
        g.fields.copy_from_slice(g.next);
        g.forcing.fill(T::ZERO);
        for step in (0..self.substeps).rev() {
            let z = at.state(step, self.substeps);
            let next = at.state(step + 1, self.substeps);
            clip_adjoint(self.arch, next, g.fields, g_implicit);
            g_explicit.fill(T::ZERO);
            matrix::multiply(
                self.arch,
                g_implicit,
                &self.inverse,
                g_explicit,
                self.points,
            );
            react_adjoint(self.arch, self.reaction, z, g_explicit, g.fields, g.forcing);
        }
    }
}

vectorised! {
    /// `explicit = z + Δt (ρ z (1 − z) + f)`.
    pub fn react<'a, T>(
        reaction: Reaction<T>,
        z: &'a [T],
        forcing: &'a [T],
        explicit: &'a mut [T],
    ) {
        let Reaction { dt, growth } = reaction;
        for ((out, &z), &f) in explicit.iter_mut().zip(z).zip(forcing) {
            *out = (growth * z).fused(T::ONE - z, f.fused(dt, z));
        }
    }
}

vectorised! {
    /// Adjoint of [`react`]: sets the gradient of z and adds to that of the forcing.
    pub fn react_adjoint<'a, T>(
        reaction: Reaction<T>,
        z: &'a [T],
        g_explicit: &'a [T],
        g_z: &'a mut [T],
        g_forcing: &'a mut [T],
    ) {
        let Reaction { dt, growth } = reaction;
        let given = z.iter().zip(g_explicit);
        for ((&z, &g), (g_z, g_f)) in given.zip(g_z.iter_mut().zip(g_forcing)) {
            *g_z = g * growth.fused(T::ONE - z - z, T::ONE);
            *g_f = g.fused(dt, *g_f);
        }
    }
}

vectorised! {
    /// Cuts densities to [0, 1].
    pub fn clip<'a, T>(densities: &'a mut [T]) {
        for z in densities {
            *z = z.within(T::ZERO, T::ONE);
        }
    }
}

vectorised! {
    /// Adjoint of [`clip`], given its result: zero where it stands at an end.
    pub fn clip_adjoint<'a, T>(clipped: &'a [T], g: &'a [T], g_densities: &'a mut [T]) {
        for ((out, &g), &z) in g_densities.iter_mut().zip(g).zip(clipped) {
            *out = if z > T::ZERO && z < T::ONE { g } else { T::ZERO };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::wave;
    use crate::adjoint::physics::agreement::{assert_adjoint, assert_follows_simulator};
    use problem::published::fkpp_1d::{FORCE_MAX, PROBLEM};

    fn finer() -> Problem {
        PROBLEM.with_substeps(3).unwrap()
    }

    /// Full force moves a density by 0.04 in an interval, so 25 of them fill and empty the line.
    #[test]
    fn the_population_is_the_simulators() {
        for problem in [PROBLEM, finer()] {
            let (wide, narrow) = (
                Fkpp1d::new(&problem).unwrap(),
                Fkpp1d::new(&problem).unwrap(),
            );
            assert_follows_simulator(&problem, &wide, &narrow, FORCE_MAX);
        }
    }

    /// Densities from −0.2 to 1.2: some are cut at either end, the walls are not zero.
    #[test]
    fn the_adjoint_is_the_derivative() {
        let fields: Vec<f64> = (wave(200, 0.2, 0.7).iter()).map(|z| z + 0.5).collect();
        let forcing = wave(200, 0.7, FORCE_MAX);
        for problem in [PROBLEM, finer()] {
            assert_adjoint(&Fkpp1d::new(&problem).unwrap(), &fields, &forcing, 1e-7);
        }
    }

    #[test]
    fn a_density_at_the_end_of_its_range_passes_no_gradient() {
        let mut g = [f64::NAN; 4];
        clip_adjoint(
            Arch::new(),
            &[0.0, 0.3, 1.0, 1.0],
            &[1.0, 2.0, 3.0, 4.0],
            &mut g,
        );
        assert_eq!(g, [0.0, 2.0, 0.0, 0.0]);
    }
}
