//! Training on decaying turbulence.

use crate::adjoint::physics::turbulence_2d::Turbulence2d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, torus};
use crate::learn::Schedule;
use crate::loss::Term::{Effort, Final, Late, Order};
use crate::recipe::{Authors, Central, Quick, Settings};
use crate::swarm::Size;
use problem::published::turbulence_2d::PROBLEM;

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Turbulence2d<f32>, Turbulence2d<f64>>(),
    recipe: Settings {
        window: 20,
        gains: [0.3, 0.0, 0.0],
        memory: 8,
        rests: true,
        weights: &[(Late, 1.0), (Final, 1.0), (Order, 0.5), (Effort, 1e-5)],
        rate: 2e-3,
        batch: 24,
        pool: 64,
        agents: &[
            Size::of(49),
            Size::of(64),
            Size::of(64),
            Size::of(64),
            Size::of(100),
            Size::between(49, 256),
        ],
        // One policy for both strengths of advection.
        variants: &["", "as-published"],
        deaths: [0.5, 0.35, 1.0],
        steps: 900,
        quick: Quick {
            steps: 40,
            batch: 4,
        },
        authors: Authors {
            batch: 4,
            schedule: Schedule::Cosine {
                rate: 5e-4,
                warm_up: 20,
                steps: 500,
            },
            ..Authors::COMMON
        },
        central: Central {
            picture: Some([16, 16]),
            rate: 2e-3,
            batch: 16,
            steps: 800,
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(torus::vortices)),
};
