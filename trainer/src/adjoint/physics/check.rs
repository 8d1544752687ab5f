//! What the tests of every physics ask.

use super::super::check::{assert_gradient, wave};
use super::super::real::Real;
use super::{Gradients, Interval, Physics};
use agent_sim::problem::Problem;
use agent_sim::random_field::episode_rng;

const EPISODES: usize = 2;

/// What the simulator makes of two episodes side by side under forcings that change from interval to
/// interval and, being no periodic waves, reach every mode.
pub struct Truth {
    initial: Vec<f64>,
    /// Forcings and the fields that they lead to.
    intervals: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Truth {
    /// A fresh episode and a fainter copy, for 25 control intervals under forces up to `height`.
    pub fn new(problem: &Problem, height: f64) -> Self {
        let n = problem.grid.len();
        let drawn = (problem.draw)(&mut episode_rng(3, 0)).initial;
        let copy = |share: f64| drawn.iter().map(move |&z| share * f64::from(z));
        let initial: Vec<f64> = copy(1.0).chain(copy(0.7)).collect();
        let (mut stepper, mut fields) = ((problem.stepper)(problem, 1), initial.clone());
        let intervals = (0..25).map(|interval| {
            let forcing = wave(EPISODES * n, 0.37 + 0.11 * f64::from(interval), height);
            for (field, force) in fields.chunks_exact_mut(n).zip(forcing.chunks_exact(n)) {
                stepper.step(field, force);
            }
            (forcing, fields.clone())
        });
        Self {
            intervals: intervals.collect(),
            initial,
        }
    }

    /// Largest difference at the end of any interval, as a share of the largest value there.
    pub fn distance<T: Real>(&self, physics: &dyn Physics<T>) -> f64 {
        let mut fields = of(&self.initial);
        let mut worst = 0.0;
        for (forcing, truth) in &self.intervals {
            (fields, _) = advance(physics, &fields, &of(forcing));
            let largest = truth.iter().fold(0.0, |m, z| f64::max(m, z.abs()));
            for (found, want) in fields.iter().zip(truth) {
                let gap = (found.wide() - want).abs() / largest;
                // NaN must not pass as small.
                worst = if gap <= worst { worst } else { gap };
            }
        }
        worst
    }
}

/// Of the largest gradient. Sums of some 600 terms of size 1 are off by about 1e-13, their differences
/// over 2e-5 by 5e-9; gradients of forces that act for 0.01 are of size 0.01.
const TOLERANCE: f64 = 1e-6;

/// Gradients of a weighted sum of two episodes' next fields, against differences in every value of
/// fields and forcing.
pub fn assert_adjoint(problem: &Problem, physics: &dyn Physics<f64>) {
    let len = EPISODES * problem.grid.len();
    let (fields, forcing) = (&wave(len, 0.23, 2.0), &wave(len, 0.71, 1.0));
    let weight = wave(len, 0.9, 1.0);
    let (next, tape) = advance(physics, fields, forcing);
    let (mut g_fields, mut g_forcing) = (unset(len), unset(len));
    physics.adjoint(
        EPISODES,
        Interval {
            fields,
            forcing,
            next: &next,
            tape: &tape,
        },
        Gradients {
            next: &weight,
            fields: &mut g_fields,
            forcing: &mut g_forcing,
        },
        &mut unset(EPISODES * physics.scratch_len()),
    );
    let value = |fields: &[f64], forcing: &[f64]| {
        let (next, _) = advance(physics, fields, forcing);
        next.iter().zip(&weight).map(|(z, w)| z * w).sum()
    };
    // Apart, because forces act for a short time and so have much smaller gradients.
    assert_gradient(|z| value(z, forcing), fields, &g_fields, TOLERANCE);
    assert_gradient(|f| value(fields, f), forcing, &g_forcing, TOLERANCE);
}

/// The next fields and the tape.
fn advance<T: Real>(physics: &dyn Physics<T>, fields: &[T], forcing: &[T]) -> (Vec<T>, Vec<T>) {
    let (mut next, mut tape) = (unset(fields.len()), unset(EPISODES * physics.tape_len()));
    let scratch = &mut unset(EPISODES * physics.scratch_len());
    physics.advance(EPISODES, fields, forcing, &mut next, &mut tape, scratch);
    (next, tape)
}

/// Room whose content must not be read.
fn unset<T: Real>(len: usize) -> Vec<T> {
    vec![T::of(f64::NAN); len]
}

fn of<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}
