//! Training on the Kuramoto–Sivashinsky equation on a circle.

use crate::adjoint::physics::ks_1d::Ks1d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, ring};
use crate::loss::Term::{Final, Track};
use crate::recipe::{Quick, Settings};
use crate::swarm::Size;
use crate::tensor_step::{Advance, constant};
use burn::tensor::Device;
use problem::published::ks_1d::{PROBLEM, equation};
use problem::{NotImplemented, Problem};
use std::f64::consts::TAU;

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Ks1d<f32>, Ks1d<f64>>().and_in_tensors(in_tensors),
    // Eight agents cannot push one phase of the fourth wave; its decay sets the end. Seeing as far as
    // the neighbours and beyond is what beats plain feedback.
    recipe: Settings {
        window: 64,
        gains: [1.0, 3.0, 0.0],
        weights: &[(Track, 10.0), (Final, 2000.0)],
        pool: 256,
        agents: &Size::each([8]),
        steps: 2000,
        quick: Quick {
            steps: 200,
            batch: 32,
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(ring::flame)),
};

/// Per wave, with l = k² − k⁴: `û⁺ = ((1 + Δt l/2) û + Δt (f̂ − ½ i k F(u²))) / (1 − Δt l/2)`, its
/// three factors as matrices on the grid.
fn in_tensors(problem: &Problem, device: &Device) -> Result<Box<Advance>, NotImplemented> {
    let n = problem.grid.len();
    let (dt, substeps) = problem.solver_steps(1);
    let wave_number = |m: usize| TAU * m as f64 / equation(problem).length;
    let half = |m: usize| 0.5 * dt * (wave_number(m).powi(2) - wave_number(m).powi(4));
    // All but the mean and the shortest wave come in pairs; what is odd in k has no shortest wave.
    let pairs = |m: usize| if (2 * m).is_multiple_of(n) { 1.0 } else { 2.0 };
    let angle =
        |m: usize, from: usize, to: usize| TAU * (m * (to + n - from) % n) as f64 / n as f64;
    let matrix = |entry: &dyn Fn(usize, usize, usize) -> f64| {
        let cell = |at: usize| (0..=n / 2).map(|m| entry(m, at / n, at % n)).sum::<f64>();
        let values = (0..n * n).map(|at| cell(at) / n as f64).collect();
        constant(values, [n, n], device)
    };
    let even =
        |of: &dyn Fn(usize) -> f64| matrix(&|m, i, j| pairs(m) * of(m) * angle(m, i, j).cos());
    let linear = even(&|m| (1.0 + half(m)) / (1.0 - half(m)));
    let push = even(&|m| dt / (1.0 - half(m)));
    let steepen = matrix(&|m, i, j| match pairs(m) {
        2.0 => dt * wave_number(m) / (1.0 - half(m)) * angle(m, i, j).sin(),
        _ => 0.0,
    });
    Ok(Box::new(move |fields, forcing| {
        let pushed = forcing.squeeze_dim::<2>(1).matmul(push.clone());
        (0..substeps).fold(fields, |u, _| {
            let square = u.clone() * u.clone();
            u.matmul(linear.clone()) + square.matmul(steepen.clone()) + pushed.clone()
        })
    }))
}
