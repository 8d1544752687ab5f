//! The heat equation under a swarm with normalised forcing, and the gradient of its cost.
//!
//! As in the paper's theorem: a linear, strictly dissipative equation, fixed agents, each the same
//! bounded and smooth policy of the whole field, and a force that is a mean over agents instead of a
//! sum,
//!
//! ```text
//! z_t = ν z_xx + 1/M Σ_i b(x, ξ_i) G_θ(z, ξ_i),   G_θ(z, y) = U tanh(θ·φ(z, y) / U),
//! J = ∫∫ (z − z_ref)² dx dt.
//! ```
//!
//! Constants, grid and scheme are those of `heat-1d`. Forward and backward pass are exact derivatives
//! of each other, step by step.

use problem::pde::Tridiagonal;
use problem::published::heat_1d::{DIFFUSIVITY, GRID, PROBLEM, scheme_spacing};
use std::f64::consts::PI;

const CONTROL_INTERVAL: f64 = PROBLEM.control_interval;
const HORIZON: usize = PROBLEM.horizon;
const KERNEL_WIDTH: f64 = PROBLEM.actuation.width;
const FORCE_MAX: f64 = PROBLEM.actuation.force_max;

/// Features φ of a policy: the error around the agent, its slope, the error weighted by place, and
/// place alone.
pub const FEATURES: usize = 4;
/// The parameters θ at which gradients are compared: feedback strong enough to matter and weak enough
/// for the theorem's condition (see [`contraction`]).
pub const PARAMETERS: [f64; FEATURES] = [-4.0, 0.5, 1.0, 0.5];
/// Width of the Gaussian through which an agent sees the field: the theorem needs policies that are
/// continuous in L², which reading a point is not.
const SIGHT: f64 = KERNEL_WIDTH;

/// A swarm at rest in places of its own.
pub struct Swarm {
    /// Per agent, what it does to each grid point: b(x_j, ξ_i) / M.
    kernels: Vec<[f64; GRID]>,
    /// Per agent, the weights by which the field's error becomes its features …
    sights: Vec<[[f64; GRID]; FEATURES]>,
    /// … and what is added to them.
    offsets: Vec<[f64; FEATURES]>,
    scheme: Scheme,
}

/// Crank–Nicolson, as `heat-1d` has it.
struct Scheme {
    implicit: Tridiagonal<f64>,
    half_r: f64,
}

impl Scheme {
    fn new() -> Self {
        let r = DIFFUSIVITY * CONTROL_INTERVAL / scheme_spacing(&PROBLEM, 0).powi(2);
        Self {
            implicit: Tridiagonal::constant(GRID - 2, -0.5 * r, 1.0 + r)
                .expect("1 + r > r: diagonally dominant"),
            half_r: 0.5 * r,
        }
    }

    /// The explicit half of the diffusion, on the interior; walls become zero. Symmetric.
    fn explicit(&self, field: &[f64; GRID]) -> [f64; GRID] {
        let mut after = [0.0; GRID];
        for j in 1..GRID - 1 {
            let curvature = field[j - 1] - 2.0 * field[j] + field[j + 1];
            after[j] = field[j] + self.half_r * curvature;
        }
        after
    }

    /// The implicit half, likewise.
    fn solve(&self, field: &mut [f64; GRID]) {
        (field[0], field[GRID - 1]) = (0.0, 0.0);
        self.implicit.solve(&mut field[1..GRID - 1]);
    }

    fn step(&self, field: &[f64; GRID], force: &[f64; GRID]) -> [f64; GRID] {
        let mut after = self.explicit(field);
        for (z, f) in after.iter_mut().zip(force) {
            *z += CONTROL_INTERVAL * f;
        }
        self.solve(&mut after);
        after
    }
}

fn coordinate(j: usize) -> f64 {
    j as f64 / (GRID - 1) as f64
}

impl Swarm {
    /// Agents in these places, from 0 to 1.
    pub fn new(places: &[f64]) -> Self {
        let bump = |x: f64, y: f64, width: f64| (-0.5 * ((x - y) / width).powi(2)).exp();
        let share = 1.0 / places.len() as f64;
        let kernel =
            |&y: &f64| std::array::from_fn(|j| share * bump(coordinate(j), y, KERNEL_WIDTH));
        let sight = |&y: &f64| {
            let weight = |j: usize| {
                bump(coordinate(j), y, SIGHT) * scheme_spacing(&PROBLEM, 0)
                    / (SIGHT * (2.0 * PI).sqrt())
            };
            let error = std::array::from_fn(weight);
            let slope = std::array::from_fn(|j| weight(j) * (coordinate(j) - y) / SIGHT);
            let by_place = std::array::from_fn(|j| weight(j) * (PI * y).cos());
            [error, slope, by_place, [0.0; GRID]]
        };
        Self {
            kernels: places.iter().map(kernel).collect(),
            sights: places.iter().map(sight).collect(),
            offsets: places
                .iter()
                .map(|y| [0.0, 0.0, 0.0, (PI * y).sin()])
                .collect(),
            scheme: Scheme::new(),
        }
    }

    /// What each agent sees of an error, and how hard it pushes.
    fn act(
        &self,
        parameters: &[f64; FEATURES],
        error: &[f64; GRID],
    ) -> Vec<([f64; FEATURES], f64)> {
        let agents = self.sights.iter().zip(&self.offsets);
        agents
            .map(|(sight, offset)| {
                let features: [f64; FEATURES] =
                    std::array::from_fn(|k| offset[k] + dot(&sight[k], error));
                let asked: f64 = features.iter().zip(parameters).map(|(f, p)| f * p).sum();
                (features, FORCE_MAX * (asked / FORCE_MAX).tanh())
            })
            .collect()
    }

    fn force(&self, actions: &[([f64; FEATURES], f64)]) -> [f64; GRID] {
        let mut force = [0.0; GRID];
        for (kernel, (_, push)) in self.kernels.iter().zip(actions) {
            for (sum, b) in force.iter_mut().zip(kernel) {
                *sum += push * b;
            }
        }
        force
    }

    /// J and its gradient in θ, for a way from `initial` to `target`.
    pub fn cost(
        &self,
        parameters: &[f64; FEATURES],
        initial: &[f64; GRID],
        target: &[f64; GRID],
    ) -> (f64, [f64; FEATURES]) {
        let error =
            |field: &[f64; GRID]| -> [f64; GRID] { std::array::from_fn(|j| field[j] - target[j]) };
        let volume = CONTROL_INTERVAL * scheme_spacing(&PROBLEM, 0);
        let mut fields = vec![*initial];
        let mut cost = 0.0;
        for step in 0..HORIZON {
            let actions = self.act(parameters, &error(&fields[step]));
            let after = self.scheme.step(&fields[step], &self.force(&actions));
            cost += volume * error(&after).iter().map(|e| e * e).sum::<f64>();
            fields.push(after);
        }
        let mut gradient = [0.0; FEATURES];
        let mut adjoint = [0.0; GRID];
        for step in (0..HORIZON).rev() {
            let source = error(&fields[step + 1]);
            for (p, e) in adjoint.iter_mut().zip(source) {
                *p += 2.0 * volume * e;
            }
            // Backwards through the implicit half, then through the force and the explicit half.
            self.scheme.solve(&mut adjoint);
            let before = error(&fields[step]);
            let actions = self.act(parameters, &before);
            let mut next = self.scheme.explicit(&adjoint);
            for ((kernel, sight), (features, push)) in
                self.kernels.iter().zip(&self.sights).zip(&actions)
            {
                let felt = CONTROL_INTERVAL * dot(kernel, &adjoint);
                let saturation = 1.0 - (push / FORCE_MAX).powi(2);
                let asked = felt * saturation;
                for k in 0..FEATURES {
                    gradient[k] += asked * features[k];
                    let weight = asked * parameters[k];
                    for (p, w) in next.iter_mut().zip(&sight[k]) {
                        *p += weight * w;
                    }
                }
            }
            adjoint = next;
        }
        (cost, gradient)
    }
}

fn dot(a: &[f64; GRID], b: &[f64; GRID]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The theorem's L_G · L_b · C_T, which is to be below 1 for the state to be unique: Lipschitz
/// constant of the policy, norm of the kernel, and ∫‖S‖ over the episode.
pub fn contraction(parameters: &[f64; FEATURES]) -> f64 {
    // ‖w‖² of the Gaussian weight is at most 1 / (2 σ √π); that of its slope half as much.
    let sight = (2.0 * SIGHT * PI.sqrt()).recip().sqrt();
    let [error, slope, by_place, _] = parameters.map(f64::abs);
    let policy = sight * (error + slope * 0.5f64.sqrt() + by_place);
    // ‖b‖² over the square is at most σ √π.
    let kernel = (KERNEL_WIDTH * PI.sqrt()).sqrt();
    let rate = DIFFUSIVITY * PI * PI;
    let time = HORIZON as f64 * CONTROL_INTERVAL;
    policy * kernel * (1.0 - (-rate * time).exp()) / rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::pde::{Heat1d, Stepper};

    fn fields() -> ([f64; GRID], [f64; GRID]) {
        let initial = std::array::from_fn(|j| (2.0 * PI * coordinate(j)).sin());
        let target = std::array::from_fn(|j| 0.7 * (PI * coordinate(j)).sin());
        (initial, target)
    }

    #[test]
    fn a_step_is_the_simulators() {
        let (field, force) = fields();
        let after = Scheme::new().step(&field, &force);
        let mut expected = field.to_vec();
        Heat1d::new(
            GRID,
            DIFFUSIVITY,
            scheme_spacing(&PROBLEM, 0),
            CONTROL_INTERVAL,
            1,
        )
        .step(&mut expected, &force);
        for (a, b) in after.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-14);
        }
    }

    /// Central differences with steps of 1e-4 are off by about 1e-8 of the third derivative.
    #[test]
    fn the_gradient_is_that_of_the_cost() {
        let (initial, target) = fields();
        let swarm = Swarm::new(&[0.1, 0.35, 0.4, 0.8, 1.0]);
        // Strong enough to saturate.
        let parameters = [-60.0, 20.0, 30.0, 25.0];
        let (_, gradient) = swarm.cost(&parameters, &initial, &target);
        for k in 0..FEATURES {
            let at = |change: f64| {
                let mut moved = parameters;
                moved[k] += change;
                swarm.cost(&moved, &initial, &target).0
            };
            let difference = (at(1e-4) - at(-1e-4)) / 2e-4;
            let off = (gradient[k] - difference).abs();
            assert!(
                off < 1e-6 * difference.abs().max(1e-6),
                "{k}: {off} of {difference}"
            );
        }
    }

    #[test]
    fn the_parameters_meet_the_theorems_condition() {
        let contraction = contraction(&PARAMETERS);
        assert!((0.3..1.0).contains(&contraction), "{contraction}");
    }

    /// Two agents in one place push like one: forcing is a mean.
    #[test]
    fn forcing_is_normalised() {
        let (initial, target) = fields();
        let one = Swarm::new(&[0.3]).cost(&PARAMETERS, &initial, &target);
        let two = Swarm::new(&[0.3, 0.3]).cost(&PARAMETERS, &initial, &target);
        assert!((one.0 - two.0).abs() < 1e-14);
    }
}
