//! Training on a density that is carried by fans.

use crate::adjoint::physics::density_2d::Density2d;
use crate::entry::{Entry, Physics};
use crate::kernels::{Kernels, room};
use crate::loss::Term::{Centroid, Collision, Effort, Final, Track};
use crate::recipe::{Authors, Central, Quick, Settings};
use crate::swarm::Size;
use problem::published::density_2d::PROBLEM;

/// All there is to know.
pub static ENTRY: Entry = Entry {
    problem: &PROBLEM,
    physics: Physics::by_hand::<Density2d<f32>, Density2d<f64>>(),
    // Long training is what pays here: it is still getting better after thousands of steps.
    recipe: Settings {
        window: 12,
        gains: [3.0, 0.0, 30.0],
        wide: Some([8, 10]),
        weights: &[
            (Track, 20.0),
            (Final, 300.0),
            (Centroid, 30.0),
            (Effort, 1e-3),
            (Collision, 1.0),
        ],
        batch: 64,
        agents: &Size::each([4, 9, 9, 9, 9, 9, 16, 16, 36, 64]),
        deaths: [0.4, 0.4, 0.6],
        steps: 5500,
        quick: Quick {
            steps: 150,
            batch: 16,
        },
        authors: Authors {
            batch: 4,
            agents: Some(16),
            ..Authors::COMMON
        },
        central: Central {
            picture: Some([16, 20]),
            steps: 3000,
            ..Central::COMMON
        },
        ..Settings::COMMON
    },
    kernels: Some(Kernels(room::density)),
};
