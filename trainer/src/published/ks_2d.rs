//! Training on the Kuramoto–Sivashinsky equation on a torus.

use crate::adjoint::physics::ks_2d::Ks2d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, torus};
use crate::learn::Schedule;
use crate::loss::Term::{Effort, Final, Order, Track};
use crate::recipe::{Authors, Central, Quick, Settings};
use crate::swarm::Size;
use problem::published::ks_2d::PROBLEM;

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Ks2d<f32>, Ks2d<f64>>(),
    // With 64 agents the field cannot be held at all. Larger swarms in training are what keeps them
    // stable: this instability does not alternate, so the governor cannot see it.
    recipe: Settings {
        window: 16,
        gains: [0.2, 0.0, 0.0],
        memory: 8,
        rests: true,
        weights: &[(Track, 1.0), (Final, 10.0), (Order, 0.2), (Effort, 1e-4)],
        batch: 24,
        pool: 48,
        substeps: Some(4),
        agents: &[
            Size::of(100),
            Size::of(100),
            Size::of(100),
            Size::of(121),
            Size::between(100, 400),
        ],
        deaths: [0.3, 0.3, 1.0],
        steps: 1300,
        quick: Quick {
            steps: 80,
            batch: 4,
        },
        authors: Authors {
            batch: 4,
            schedule: Schedule::Cosine {
                rate: 1e-3,
                warm_up: 50,
                steps: 500,
            },
            ..Authors::COMMON
        },
        central: Central {
            picture: Some([16, 16]),
            rate: 2e-3,
            batch: 8,
            steps: 1500,
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(torus::flame)),
};
