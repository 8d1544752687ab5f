//! Training on the heat equation on a plate.

use crate::adjoint::physics::diffusion::implicit_inverse;
use crate::adjoint::physics::heat_2d::Heat2d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, plate};
use crate::loss::Term::{Bound, Collision, Effort, Final, Obstacle, Order, Track};
use crate::recipe::{Authors, Central, Quick, Settings};
use crate::swarm::Size;
use crate::tensor_step::{Advance, constant, second_difference};
use burn::tensor::{Device, Tensor};
use problem::published::heat_2d::{Equation, PROBLEM, TRAINING_HORIZON, equation};
use problem::{NotImplemented, Problem};

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: PHYSICS,
    recipe: RECIPE,
    kernels: Some(Kernels(plate::heat)),
};

/// The plate's, with or without obstacles.
pub const PHYSICS: Physics =
    Physics::by_hand::<Heat2d<f32>, Heat2d<f64>>().and_in_tensors(in_tensors);

/// Many losses, early enough to be made good.
pub const RECIPE: Settings = Settings {
    window: 16,
    gains: [1.0, 0.0, 0.0],
    memory: 2,
    weights: &[
        (Track, 5.0),
        (Final, 500.0),
        (Order, 0.3),
        (Effort, 1e-6),
        (Bound, 1.0),
        (Collision, 0.1),
        (Obstacle, 10.0),
    ],
    batch: 48,
    horizon: Some(100),
    agents: &[
        Size::of(9),
        Size::of(16),
        Size::of(16),
        Size::between(9, 49),
    ],
    deaths: [0.5, 0.4, 0.6],
    steps: 5000,
    quick: Quick {
        steps: 200,
        batch: 16,
    },
    authors: Authors {
        batch: 16,
        horizon: Some(TRAINING_HORIZON),
        ..Authors::COMMON
    },
    // Shown all 1024 points of field and target, it leaves the cliff's edge again and again.
    central: Central {
        picture: Some([16, 16]),
        batch: 16,
        ..Central::COMMON
    },
    ..Settings::COMMON
};

/// Half a step implicit along axis 0 and explicit along axis 1, then the other way round.
fn in_tensors(problem: &Problem, device: &Device) -> Result<Box<Advance>, NotImplemented> {
    let points = problem.grid.points;
    let [rows, columns] = points;
    let (dt, substeps) = problem.solver_steps(1);
    let Equation {
        diffusivity,
        spacing,
    } = equation(problem);
    let half = spacing.map(|dx| 0.5 * diffusivity * dt / (dx * dx));
    let explicit = [0, 1].map(|axis| {
        let n = points[axis];
        constant(second_difference(n, half[axis]), [n, n], device)
    });
    let implicit = [0, 1].map(|axis| {
        let n = points[axis];
        constant(implicit_inverse(n, half[axis]), [n, n], device)
    });
    let on_edge = |k: usize| {
        let (i, j) = (k / columns, k % columns);
        i == 0 || j == 0 || i == rows - 1 || j == columns - 1
    };
    let inside: Vec<f64> = (0..rows * columns)
        .map(|k| f64::from(u8::from(!on_edge(k))))
        .collect();
    let inside = constant(inside, [rows, columns], device).unsqueeze::<3>();
    Ok(Box::new(move |fields, forcing| {
        let episodes = fields.dims()[0];
        // Products along either axis; the matrices are symmetric, up to the walls that they set to 0.
        let along_1 = |z: Tensor<3>, by: &Tensor<2>| {
            let flat = z.reshape([episodes * rows, columns]).matmul(by.clone());
            flat.reshape([episodes, rows, columns])
        };
        let along_0 = |z: Tensor<3>, by: &Tensor<2>| {
            let flat = z.swap_dims(1, 2).reshape([episodes * columns, rows]);
            let flat = flat.matmul(by.clone());
            flat.reshape([episodes, columns, rows]).swap_dims(1, 2)
        };
        let push = forcing.reshape([episodes, rows, columns]) * (0.5 * dt);
        let start = fields.reshape([episodes, rows, columns]);
        let end = (0..substeps).fold(start, |z, _| {
            // On all edges the half step is zero: along axis 0 its inverse sees to it.
            let half =
                along_0(along_1(z, &explicit[1]) + push.clone(), &implicit[0]) * inside.clone();
            along_1(along_0(half, &explicit[0]) + push.clone(), &implicit[1]) * inside.clone()
        });
        end.reshape([episodes, rows * columns])
    }))
}
