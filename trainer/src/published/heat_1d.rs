//! Training on the heat equation on a rod.

use crate::adjoint::physics::heat_1d::{Heat1d, diffusion_ratio, implicit_inverse};
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, line};
use crate::loss::Term::{Bound, Collision, Effort, Final, Order, Track};
use crate::recipe::{Quick, Settings};
use crate::swarm::Size;
use crate::tensor_step::{Advance, constant, second_difference};
use burn::tensor::Device;
use problem::published::heat_1d::PROBLEM;
use problem::{NotImplemented, Problem};

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Heat1d<f32>, Heat1d<f64>>().and_in_tensors(in_tensors),
    recipe: Settings {
        window: 20,
        gains: [0.3, 1.0, 0.0],
        memory: 2,
        // Four and fewer need a way of their own, and the final error to be held to it: its logarithm
        // alone would rather halve small errors.
        weights: &[
            (Track, 5.0),
            (Final, 2000.0),
            (Order, 1.0),
            (Effort, 1e-6),
            (Bound, 1.0),
            (Collision, 0.1),
        ],
        batch: 48,
        agents: &[
            Size::of(4),
            Size::of(4),
            Size::of(4),
            Size::of(6),
            Size::of(8),
            Size::of(16),
            Size::between(3, 64),
        ],
        deaths: [0.5, 0.4, 0.7],
        steps: 4500,
        quick: Quick {
            steps: 250,
            batch: 32,
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(line::heat)),
};

/// `z⁺ = (z (1 + r/2 D) + Δt f) A⁻¹`.
fn in_tensors(problem: &Problem, device: &Device) -> Result<Box<Advance>, NotImplemented> {
    let n = problem.grid.len();
    let (dt, substeps) = problem.solver_steps(1);
    let explicit = constant(
        second_difference(n, 0.5 * diffusion_ratio(problem)),
        [n, n],
        device,
    );
    let implicit = constant(implicit_inverse(problem), [n, n], device);
    Ok(Box::new(move |fields, forcing| {
        let push = forcing.squeeze_dim::<2>(1) * dt;
        (0..substeps).fold(fields, |z, _| {
            (z.matmul(explicit.clone()) + push.clone()).matmul(implicit.clone())
        })
    }))
}
