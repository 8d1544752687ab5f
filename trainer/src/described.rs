//! Training on fields that files describe.

use crate::adjoint::physics::described::DescribedStep;
use crate::entry::{Entry, Physics};
use crate::kernels::{self, Kernels};
use crate::loss::Term;
use crate::recipe::{Quick, Settings};
use problem::kit::Kit;
use problem::{Headline, Problem};

/// All there is to know about a described problem. It is kept for as long as the program runs.
///
/// # Panics
/// If no file describes it.
pub fn entry(problem: &'static Problem) -> &'static Entry {
    let kit = problem.kit.expect("a described problem");
    Box::leak(Box::new(Entry {
        problem,
        physics: Physics::by_hand::<DescribedStep<f32>, DescribedStep<f64>>(),
        recipe: settings(problem, kit),
        kernels: Some(Kernels(kernels::described::described)),
    }))
}

/// What errors of a field are about: a fraction of what is possible.
fn scale(kit: &Kit, field: usize) -> f64 {
    let [low, high] = kit.described[field].range;
    0.25 * (high - low)
}

/// Factors that make features of order one of the fields that agents see besides.
pub fn other_gains(problem: &Problem) -> Vec<f64> {
    let gain = |kit: &'static Kit| kit.also_seen.iter().map(|&field| 1.0 / scale(kit, field));
    problem.kit.into_iter().flat_map(gain).collect()
}

/// The usual settings in the units of the file, and what it says itself.
fn settings(problem: &Problem, kit: &Kit) -> Settings {
    let scale = scale(kit, kit.seen);
    let (force, length) = (problem.actuation.force_max, problem.grid.extent(0));
    let training = &kit.training;
    let per_square = |weight: f64, unit: f64| weight / (unit * unit);
    let last = training.last.unwrap_or(match problem.scoring.headline {
        Headline::Final => 50.0,
        Headline::TimeMean => 0.0,
    });
    let weights = vec![
        (Term::Track, per_square(5.0, scale)),
        (Term::Final, per_square(last, scale)),
        (
            Term::Effort,
            per_square(training.effort.unwrap_or(2e-3), force),
        ),
        (Term::Bound, per_square(1.0, length)),
        (Term::Collision, per_square(0.1, length)),
        (Term::Obstacle, per_square(10.0, length)),
    ];
    let [losses, lost] = training.losses.unwrap_or([0.5, 0.4]);
    let steps = training.steps.unwrap_or(600);
    let batch = training.batch.unwrap_or(32);
    Settings {
        gains: [1.0, f64::from(training.slopes.unwrap_or(true)), 1.0].map(|gain| gain / scale),
        memory: training.memory.unwrap_or(2),
        rests: training.rests,
        weights: Box::leak(weights.into_boxed_slice()),
        rate: training.rate.unwrap_or(1e-3),
        batch,
        horizon: training.horizon,
        deaths: [losses, lost, 0.7],
        noise: [kit.sensors[0].noise, 0.0],
        neighbours: training.neighbours(),
        missing: training.missing(),
        steps,
        quick: Quick {
            steps: (steps / 4).max(1),
            batch: batch.min(16),
        },
        ..Settings::COMMON
    }
}
