//! The heat equation's closed-loop step and its adjoint:
//!
//! ```text
//! (1+r) z⁺_j − r/2 (z⁺_{j−1} + z⁺_{j+1}) = z_j + r/2 (z_{j−1} − 2 z_j + z_{j+1}) + Δt f_j,   z⁺ = 0 at the walls
//! f_j = Σ_i u_i exp(−(x_j − ξ_i)²/2σ²),   ξ⁺ = clip(ξ + Δt v)
//! ```
//!
//! The implicit half is a product with the inverse matrix: it serves all episodes at once, and
//! being symmetric it is its own adjoint. (The simulator solves the same system by elimination;
//! the two are independent on purpose.)

use super::elementwise::{CHUNK, vectorised};
use super::matrix;
use super::real::Real;
use agent_sim::problem::{Problem, heat_1d};
use pulp::{Arch, Simd, WithSimd};

/// Crank–Nicolson step of the rod with Gaussian actuators.
#[derive(Debug, Clone)]
pub struct Heat<T> {
    arch: Arch,
    grid: usize,
    /// Length of a force field: the grid, filled up to whole chunks.
    pub padded: usize,
    /// Grid coordinates; the filling is out of every actuator's reach.
    coordinates: Vec<T>,
    /// (I − r/2 D)⁻¹ on the interior, zero on the walls.
    inverse: Vec<T>,
    /// r/2
    half_ratio: T,
    dt: T,
    /// 1/σ²
    precision: T,
    domain: [T; 2],
}

/// r = ν Δt / Δx².
pub fn diffusion_ratio(problem: &Problem) -> f64 {
    let dx = heat_1d::scheme_spacing(problem.grid.points[0]);
    heat_1d::DIFFUSIVITY * problem.control_interval / (dx * dx)
}

/// Row-major inverse of the implicit half of the step, [grid, grid], zero on the walls.
pub fn implicit_inverse(problem: &Problem) -> Vec<f64> {
    let (n, r) = (problem.grid.len(), diffusion_ratio(problem));
    let mut inverse = vec![0.0; n * n];
    // Elimination for the unit vector of each interior point.
    for unit in 1..n - 1 {
        let (mut pivot, mut value) = (vec![0.0; n], vec![0.0; n]);
        for j in 1..n - 1 {
            let scale = 1.0 / (1.0 + r - 0.5 * r * pivot[j - 1]);
            pivot[j] = 0.5 * r * scale;
            value[j] = (f64::from(u8::from(j == unit)) + 0.5 * r * value[j - 1]) * scale;
        }
        for j in (1..n - 1).rev() {
            value[j] += pivot[j] * value[j + 1];
            inverse[unit * n + j] = value[j];
        }
    }
    inverse
}

impl<T: Real> Heat<T> {
    /// The published scheme.
    pub fn new(problem: &Problem) -> Self {
        let padded = problem.grid.len().next_multiple_of(CHUNK);
        let beyond = problem.reach[1][0] + 100.0 * problem.actuation.width;
        let coordinates = (0..padded)
            .map(|j| {
                if j < problem.grid.len() {
                    problem.grid.coordinate(0, j)
                } else {
                    beyond
                }
            })
            .map(T::of)
            .collect();
        Self {
            arch: Arch::new(),
            grid: problem.grid.len(),
            padded,
            coordinates,
            inverse: implicit_inverse(problem).into_iter().map(T::of).collect(),
            half_ratio: T::of(0.5 * diffusion_ratio(problem)),
            dt: T::of(problem.control_interval),
            precision: T::of(problem.actuation.width.powi(-2)),
            domain: problem.reach.map(|[x, _]| T::of(x)),
        }
    }

    fn gaussian(&self) -> Gaussian<'_, T> {
        Gaussian {
            coordinates: &self.coordinates,
            precision: self.precision,
        }
    }

    /// The force field of one episode's agents (set, not added to).
    pub fn actuate(&self, positions: &[T], forces: &[T], field: &mut [T]) {
        actuate(self.arch, self.gaussian(), positions, forces, field);
    }

    /// Adjoint of [`Self::actuate`]: adds to the gradients of positions and forces.
    ///
    /// `g_field` is zero beyond the grid.
    pub fn actuate_adjoint(
        &self,
        g_field: &[T],
        positions: &[T],
        forces: &[T],
        g_positions: &mut [T],
        g_forces: &mut [T],
    ) {
        actuate_adjoint(
            self.arch,
            self.gaussian(),
            g_field,
            positions,
            forces,
            g_positions,
            g_forces,
        );
    }

    /// One step of several episodes: `next` from `fields` [episodes, grid] and `forcing`
    /// [episodes, padded]. `explicit` is scratch like `fields`.
    pub fn diffuse(&self, fields: &[T], forcing: &[T], explicit: &mut [T], next: &mut [T]) {
        let n = self.grid;
        let rows = fields
            .chunks_exact(n)
            .zip(forcing.chunks_exact(self.padded));
        for ((z, f), out) in rows.zip(explicit.chunks_exact_mut(n)) {
            for j in 1..n - 1 {
                let bend = z[j - 1] + z[j + 1] - z[j] - z[j];
                out[j] = z[j] + self.half_ratio * bend + self.dt * f[j];
            }
        }
        next.fill(T::ZERO);
        matrix::multiply(self.arch, explicit, &self.inverse, next, n);
    }

    /// Adjoint of [`Self::diffuse`]: sets the gradients of the fields and of the forcing.
    pub fn diffuse_adjoint(
        &self,
        g_next: &[T],
        g_explicit: &mut [T],
        g_fields: &mut [T],
        g_forcing: &mut [T],
    ) {
        let n = self.grid;
        g_explicit.fill(T::ZERO);
        matrix::multiply(self.arch, g_next, &self.inverse, g_explicit, n);
        let rows = g_explicit.chunks_exact(n).zip(g_fields.chunks_exact_mut(n));
        for ((g, z), f) in rows.zip(g_forcing.chunks_exact_mut(self.padded)) {
            // The walls' rows of the inverse are zero, so g is zero there.
            z[0] = self.half_ratio * g[1];
            z[n - 1] = self.half_ratio * g[n - 2];
            for j in 1..n - 1 {
                let bend = g[j - 1] + g[j + 1] - g[j] - g[j];
                z[j] = g[j] + self.half_ratio * bend;
                f[j] = self.dt * g[j];
            }
        }
    }

    /// `next` = positions after moving for one step, kept in the domain.
    pub fn travel(&self, positions: &[T], velocities: impl Iterator<Item = T>, next: &mut [T]) {
        let [low, high] = self.domain;
        for ((next, &x), v) in next.iter_mut().zip(positions).zip(velocities) {
            *next = v.fused(self.dt, x).within(low, high);
        }
    }

    /// Adjoint of [`Self::travel`] for one agent: `g` turns from the gradient of the next position
    /// into that of the position; the velocity's is returned. At the wall it is zero.
    pub fn travel_adjoint(&self, position: T, velocity: T, g: &mut T) -> T {
        let free = velocity.fused(self.dt, position);
        if free < self.domain[0] || free > self.domain[1] {
            *g = T::ZERO;
        }
        *g * self.dt
    }
}

/// Where a kernel of width 1/√precision is evaluated.
#[derive(Debug, Clone, Copy)]
pub struct Gaussian<'a, T> {
    coordinates: &'a [T],
    precision: T,
}

vectorised! {
    /// `field` = Σ forces · exp(−(x − position)² precision / 2).
    pub fn actuate<'a, T>(
        gaussian: Gaussian<'a, T>,
        positions: &'a [T],
        forces: &'a [T],
        field: &'a mut [T],
    ) {
        let Gaussian { coordinates, precision } = gaussian;
        let factor = T::of(-0.5) * precision;
        let (chunks, _) = field.as_chunks_mut::<CHUNK>();
        for (x, out) in coordinates.as_chunks::<CHUNK>().0.iter().zip(chunks) {
            let mut sums = [T::ZERO; CHUNK];
            for (&position, &force) in positions.iter().zip(forces) {
                for l in 0..CHUNK {
                    let gap = x[l] - position;
                    sums[l] = (factor * gap * gap).decay().fused(force, sums[l]);
                }
            }
            *out = sums;
        }
    }
}

vectorised! {
    /// Adjoint of [`actuate`].
    pub fn actuate_adjoint<'a, T>(
        gaussian: Gaussian<'a, T>,
        g_field: &'a [T],
        positions: &'a [T],
        forces: &'a [T],
        g_positions: &'a mut [T],
        g_forces: &'a mut [T],
    ) {
        let Gaussian { coordinates, precision } = gaussian;
        let factor = T::of(-0.5) * precision;
        let ((x, _), (g, _)) = (coordinates.as_chunks::<CHUNK>(), g_field.as_chunks::<CHUNK>());
        let agents = positions.iter().zip(forces).zip(g_positions.iter_mut().zip(g_forces));
        for ((&position, &force), (g_position, g_force)) in agents {
            let (mut level, mut moment) = ([T::ZERO; CHUNK], [T::ZERO; CHUNK]);
            for (x, g) in x.iter().zip(g) {
                for l in 0..CHUNK {
                    let gap = x[l] - position;
                    let felt = g[l] * (factor * gap * gap).decay();
                    level[l] += felt;
                    moment[l] = felt.fused(gap, moment[l]);
                }
            }
            *g_force += level.into_iter().sum::<T>();
            *g_position += force * precision * moment.into_iter().sum::<T>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use agent_sim::problem::heat_1d::PROBLEM;

    fn weighted(values: &[f64], weights: &[f64]) -> f64 {
        values.iter().zip(weights).map(|(v, w)| v * w).sum()
    }

    /// sin(πx) is an eigenvector of the second difference: one step multiplies it by
    /// (1 + a)/(1 − a) with a = −2 r sin²(π / 2(N−1)).
    #[test]
    fn a_sine_decays_by_the_schemes_own_factor() {
        let heat = Heat::<f64>::new(&PROBLEM);
        let sine: Vec<f64> = (0..100)
            .map(|j| (std::f64::consts::PI * j as f64 / 99.0).sin())
            .collect();
        let a = -2.0 * diffusion_ratio(&PROBLEM) * (std::f64::consts::PI / 198.0).sin().powi(2);
        let (mut scratch, mut next) = (vec![0.0; 100], vec![0.0; 100]);
        heat.diffuse(&sine, &vec![0.0; heat.padded], &mut scratch, &mut next);
        for (before, after) in sine.iter().zip(&next) {
            assert!((after - before * (1.0 + a) / (1.0 - a)).abs() < 1e-13);
        }
        assert_eq!((next[0], next[99]), (0.0, 0.0));
    }

    #[test]
    fn a_lone_actuator_makes_a_gaussian() {
        let heat = Heat::<f32>::new(&PROBLEM);
        let mut field = vec![0.0; heat.padded];
        heat.actuate(&[0.3], &[-7.0], &mut field);
        for (j, &value) in field[..100].iter().enumerate() {
            let gap = (j as f64 / 99.0 - 0.3) / PROBLEM.actuation.width;
            let want = -7.0 * (-0.5 * gap * gap).exp();
            assert!((f64::from(value) - want).abs() < 7.0 * 1e-6);
        }
    }

    #[test]
    fn diffusion_has_the_adjoint_it_claims() {
        let heat = Heat::<f64>::new(&PROBLEM);
        let mut state = wave(200, 0.2, 1.0); // two episodes, walls not zero
        state.extend(wave(2 * heat.padded, 0.7, 5.0));
        let weight = wave(200, 0.9, 1.0);
        let value = |state: &[f64]| {
            let (mut scratch, mut next) = (vec![0.0; 200], vec![0.0; 200]);
            heat.diffuse(&state[..200], &state[200..], &mut scratch, &mut next);
            weighted(&next, &weight)
        };
        let (mut scratch, mut g) = (vec![0.0; 200], vec![0.0; state.len()]);
        let (g_fields, g_forcing) = g.split_at_mut(200);
        heat.diffuse_adjoint(&weight, &mut scratch, g_fields, g_forcing);
        assert_gradient(value, &state, &g, 1e-8);
    }

    #[test]
    fn actuation_has_the_adjoint_it_claims() {
        let heat = Heat::<f64>::new(&PROBLEM);
        let inputs = [0.2, 0.35, 0.99, 3.0, -20.0, 11.0]; // positions, forces
        let mut weight = wave(heat.padded, 0.4, 1.0);
        weight[100..].fill(0.0);
        let value = |inputs: &[f64]| {
            let mut field = vec![0.0; heat.padded];
            heat.actuate(&inputs[..3], &inputs[3..], &mut field);
            weighted(&field, &weight)
        };
        let mut g = [0.0; 6];
        let (g_positions, g_forces) = g.split_at_mut(3);
        heat.actuate_adjoint(&weight, &inputs[..3], &inputs[3..], g_positions, g_forces);
        assert_gradient(value, &inputs, &g, 1e-7);
    }

    #[test]
    fn travelling_stops_at_the_wall_and_so_does_its_gradient() {
        let heat = Heat::<f64>::new(&PROBLEM);
        let (positions, velocities) = ([0.5, 0.9995, 0.0], [2.0, 2.0, -1.0]);
        let mut next = [0.0; 3];
        heat.travel(&positions, velocities.into_iter(), &mut next);
        assert_eq!(next, [0.502, 1.0, 0.0]);
        let adjoint = |k: usize| {
            let mut g = 1.0;
            (heat.travel_adjoint(positions[k], velocities[k], &mut g), g)
        };
        assert_eq!(adjoint(0), (1e-3, 1.0));
        assert_eq!(adjoint(1), (0.0, 0.0));
        assert_eq!(adjoint(2), (0.0, 0.0));
    }
}
