//! Training on Fisher's equation.

use crate::adjoint::physics::diffusion::implicit_inverse;
use crate::adjoint::physics::fkpp_1d::Fkpp1d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, line};
use crate::loss::Term::{Bound, Collision, Effort, Final, Order, Track};
use crate::recipe::{Quick, Settings};
use crate::swarm::Size;
use crate::tensor_step::{Advance, constant};
use burn::tensor::Device;
use problem::published::fkpp_1d::{Equation, PROBLEM, equation};
use problem::{NotImplemented, Problem};

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Fkpp1d<f32>, Fkpp1d<f64>>().and_in_tensors(in_tensors),
    // Losses stand in for smaller swarms, and the governor sees to larger ones; seeing across the gaps
    // that losses leave helps. Trained without noise, the paper's lowest makes the error ten times as
    // large.
    recipe: Settings {
        window: 40,
        gains: [3.0, 10.0, 0.0],
        memory: 2,
        weights: &[
            (Track, 5.0),
            (Final, 500.0),
            (Order, 0.1),
            (Effort, 1e-6),
            (Bound, 1.0),
            (Collision, 0.1),
        ],
        batch: 48,
        agents: &Size::each([20, 20, 14]),
        deaths: [0.6, 0.5, 1.0],
        noise: [0.01, 0.02],
        steps: 4000,
        quick: Quick {
            steps: 150,
            batch: 16,
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(line::fisher)),
};

/// `z⁺ = clip((z + Δt (ρ z (1 − z) + f)) A⁻¹, 0, 1)`.
fn in_tensors(problem: &Problem, device: &Device) -> Result<Box<Advance>, NotImplemented> {
    let n = problem.grid.len();
    let (dt, substeps) = problem.solver_steps(1);
    let Equation {
        diffusivity,
        growth,
        spacing,
    } = equation(problem);
    let ratio = diffusivity * dt / spacing.powi(2);
    let implicit = constant(implicit_inverse(n, ratio), [n, n], device);
    Ok(Box::new(move |fields, forcing| {
        let push = forcing.squeeze_dim::<2>(1) * dt;
        (0..substeps).fold(fields, |z, _| {
            let born = (z.clone() - z.clone() * z.clone()) * (dt * growth);
            (z + born + push.clone())
                .matmul(implicit.clone())
                .clamp(0.0, 1.0)
        })
    }))
}
