//! The Kuramoto–Sivashinsky equation on a circle.

use super::{Declaration, FieldKernel, one_step};
use problem::actuate::Kernel;
use problem::published::ks_1d::equation;
use problem::{NotImplemented, Problem};
use std::borrow::Cow;
use std::f64::consts::TAU;

/// The flame front on a circle.
pub fn flame(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    Ok(Box::new(Ring::new(problem)))
}

/// One step of the Kuramoto–Sivashinsky equation on a circle, `u⁺ = A u + B u² + Σ a_i R_i`: in
/// Fourier modes, Crank–Nicolson for the linear part and Euler for the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// The first column of A: what a unit in cell 0 does to every cell.
    pub linear: Vec<f64>,
    /// The first column of B.
    pub square: Vec<f64>,
    /// What a unit of force in cell 0 does to every cell.
    pub filter: Vec<f64>,
}

impl Ring {
    /// The published scheme.
    fn new(problem: &Problem) -> Self {
        let (n, dt) = (problem.grid.len(), problem.control_interval);
        let length = equation(problem).length;
        let wave_number = |k: usize| TAU * k as f64 / length;
        let half_rate = |k: usize| 0.5 * dt * (wave_number(k).powi(2) - wave_number(k).powi(4));
        // All but the mean and the shortest wave come in pairs.
        let share = |k: usize| (if k == 0 || 2 * k == n { 1.0 } else { 2.0 }) / n as f64;
        let angle = |k: usize, d: usize| TAU * (k * d % n) as f64 / n as f64;
        let even = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let value = |d: usize| {
                (0..=n / 2)
                    .map(|k| share(k) * of(k) * angle(k, d).cos())
                    .sum()
            };
            (0..n).map(value).collect()
        };
        let linear = even(&|k| (1.0 + half_rate(k)) / (1.0 - half_rate(k)));
        let filter = even(&|k| dt / (1.0 - half_rate(k)));
        // −½ ∂_x: the shortest wave has no slope on the grid.
        let slope = |d: usize, k: usize| {
            share(k) * 0.5 * dt * wave_number(k) / (1.0 - half_rate(k)) * angle(k, d).sin()
        };
        let square = (0..n)
            .map(|d| (1..n / 2).map(|k| slope(d, k)).sum())
            .collect();
        Self {
            linear,
            square,
            filter,
        }
    }
}

impl FieldKernel for Ring {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        include_str!("wgsl/ring.wgsl").into()
    }

    fn placed(&self) -> usize {
        self.linear.len()
    }

    /// The response R of the field to a unit of its force.
    fn place(&self, problem: &Problem, place: [f64; 2]) -> Vec<f64> {
        let n = self.filter.len();
        let mut bump = vec![0.0; n];
        Kernel::new(problem).add(&mut bump, place, &[1.0]);
        let response = |j: usize| (0..n).map(|i| self.filter[(j + n - i) % n] * bump[i]).sum();
        (0..n).map(response).collect()
    }

    fn declare(&self, shader: &mut Declaration) {
        let (agents, cells, lanes) = (shader.agents(), shader.cells(), shader.lanes());
        shader.in_pool("WORK", cells);
        shader.table("LINEAR", &[&self.linear[..], &self.linear].concat());
        shader.table("SQUARE", &[&self.square[..], &self.square].concat());
        shader.in_pool("LANES", agents * lanes);
    }
}
