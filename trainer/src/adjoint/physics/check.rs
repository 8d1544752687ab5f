//! What the tests of every physics ask.

use super::super::check::{assert_gradient, wave};
use super::super::real::Real;
use super::{Gradients, Interval, Physics};
use agent_sim::problem::Problem;
use agent_sim::random_field::episode_rng;

/// How a comparison with the simulator is driven.
#[derive(Debug, Clone, Copy)]
pub struct Drive {
    /// Control intervals.
    pub intervals: usize,
    /// Largest forcing.
    pub height: f64,
}

/// Largest difference to the simulator's fields at the end of any interval, as a share of the
/// largest value: two fresh episodes side by side under forcings that change from interval to
/// interval and, being no periodic waves, reach every mode.
pub fn distance_to_truth<T: Real>(
    problem: &Problem,
    physics: &dyn Physics<T>,
    drive: Drive,
) -> f64 {
    let n = problem.grid.len();
    let mut truth: Vec<f64> = (0..2)
        .flat_map(|k| (problem.draw)(&mut episode_rng(3, k)).initial)
        .map(f64::from)
        .collect();
    let mut stepper = (problem.stepper)(problem, 1);
    let mut fields: Vec<T> = truth.iter().map(|&z| T::of(z)).collect();
    let [mut next, mut tape, mut scratch] =
        [n, physics.tape_len(), physics.scratch_len()].map(|len| vec![T::ZERO; 2 * len]);
    let mut worst = 0.0;
    for interval in 0..drive.intervals {
        let forcing = wave(2 * n, 0.37 + 0.11 * interval as f64, drive.height);
        for (field, force) in truth.chunks_exact_mut(n).zip(forcing.chunks_exact(n)) {
            stepper.step(field, force);
        }
        let forcing: Vec<T> = forcing.into_iter().map(T::of).collect();
        physics.advance(2, &fields, &forcing, &mut next, &mut tape, &mut scratch);
        std::mem::swap(&mut fields, &mut next);
        let largest = truth.iter().fold(0.0, |m, z| f64::max(m, z.abs()));
        for (found, want) in fields.iter().zip(&truth) {
            let gap = (found.wide() - want).abs() / largest;
            // NaN must not pass as small.
            worst = if gap <= worst { worst } else { gap };
        }
    }
    worst
}

/// Gradients of a weighted sum of two episodes' next fields, against differences in every value of
/// fields and forcing.
pub fn assert_adjoint(problem: &Problem, physics: &dyn Physics<f64>, tolerance: f64) {
    let len = 2 * problem.grid.len();
    let mut inputs = wave(len, 0.23, 2.0);
    inputs.extend(wave(len, 0.71, 1.0));
    let weight = wave(len, 0.9, 1.0);
    let room = || [physics.tape_len(), physics.scratch_len()].map(|len| vec![0.5; 2 * len]);
    let advanced = |inputs: &[f64]| {
        let ([mut tape, mut scratch], mut next) = (room(), vec![0.5; len]);
        let (fields, forcing) = inputs.split_at(len);
        physics.advance(2, fields, forcing, &mut next, &mut tape, &mut scratch);
        (next, tape)
    };
    let value = |inputs: &[f64]| {
        let (next, _) = advanced(inputs);
        next.iter().zip(&weight).map(|(z, w)| z * w).sum()
    };
    let (next, tape) = advanced(&inputs);
    let ([_, mut scratch], mut g) = (room(), vec![0.5; 2 * len]);
    let (g_fields, g_forcing) = g.split_at_mut(len);
    let (fields, forcing) = inputs.split_at(len);
    physics.adjoint(
        2,
        Interval {
            fields,
            forcing,
            next: &next,
            tape: &tape,
        },
        Gradients {
            next: &weight,
            fields: g_fields,
            forcing: g_forcing,
        },
        &mut scratch,
    );
    assert_gradient(value, &inputs, &g, tolerance);
}
