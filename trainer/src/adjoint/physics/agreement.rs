//! Physics against the simulator and against central differences, for the tests of every problem.

use super::{Batch, FieldStep, Gradients, Interval};
use crate::adjoint::check::{assert_gradient, wave};
use crate::adjoint::real::Real;
use problem::Problem;
use problem::random_field::episode_rng;

const EPISODES: usize = 2;
const BATCH: Batch = Batch {
    episodes: EPISODES,
    step: 0,
};

/// Of the largest value, in f64 and f32: 25 intervals of up to three steps, each rounding a few
/// times by half a unit in the last place.
const TOLERANCES: [f64; 2] = [1e-13, 1e-5];

/// Runs two drawn episodes for 25 control intervals under a forcing of that `height`, in f64 and in
/// f32, beside the simulator. All three stay together within rounding.
pub fn assert_follows_simulator(
    problem: &Problem,
    wide: &dyn FieldStep<f64>,
    narrow: &dyn FieldStep<f32>,
    height: f64,
) {
    assert_stays_near_simulator(problem, wide, narrow, height, TOLERANCES);
}

/// The same where a control interval takes many steps or errors grow: within `tolerances` of the
/// largest value in f64 and f32.
pub fn assert_stays_near_simulator(
    problem: &Problem,
    wide: &dyn FieldStep<f64>,
    narrow: &dyn FieldStep<f32>,
    height: f64,
    tolerances: [f64; 2],
) {
    let n = problem.grid.len();
    let forced = problem.components() * n;
    let mut truth: Vec<f64> = (0..EPISODES as u64)
        .flat_map(|index| (problem.draw)(problem, &mut episode_rng(21, index)).initial)
        .map(f64::from)
        .collect();
    let (mut doubles, mut singles) = (truth.clone(), of::<f32>(&truth));
    let mut stepper = (problem.stepper)(problem, 1);
    for interval in 0..25 {
        let forcing = wave(EPISODES * forced, 0.03 + 0.01 * f64::from(interval), height);
        for (z, f) in truth.chunks_mut(n).zip(forcing.chunks(forced)) {
            stepper.step(z, f);
        }
        doubles = advance(wide, &doubles, &forcing).0;
        singles = advance(narrow, &singles, &of(&forcing)).0;
        let scale = truth.iter().fold(0.0f64, |m, z| m.max(z.abs()));
        for (k, z) in truth.iter().enumerate() {
            let found = [doubles[k], f64::from(singles[k])];
            for (found, tolerance) in found.into_iter().zip(tolerances) {
                assert!(
                    (found - z).abs() <= tolerance * scale,
                    "interval {interval}, entry {k}: {found} for {z}, largest {scale}"
                );
            }
        }
    }
}

/// The adjoint of `physics` at these fields and forcings, of two episodes, is their derivative within
/// `tolerance` of its largest entry.
pub fn assert_adjoint(
    physics: &dyn FieldStep<f64>,
    fields: &[f64],
    forcing: &[f64],
    tolerance: f64,
) {
    let weight = wave(fields.len(), 0.9, 1.0);
    let value = |fields: &[f64], forcing: &[f64]| {
        let (next, _) = advance(physics, fields, forcing);
        next.iter().zip(&weight).map(|(z, w)| z * w).sum()
    };
    let (next, tape) = advance(physics, fields, forcing);
    let (mut g_fields, mut g_forcing) = (unset(fields.len()), unset(forcing.len()));
    let at = Interval {
        fields,
        forcing,
        next: &next,
        tape: &tape,
    };
    let gradients = Gradients {
        next: &weight,
        fields: &mut g_fields,
        forcing: &mut g_forcing,
    };
    let mut scratch = unset(EPISODES * physics.scratch_len());
    physics.adjoint(BATCH, at, gradients, &mut scratch);
    // Each in its own scale: the two differ by orders of magnitude.
    assert_gradient(
        |fields| value(fields, forcing),
        fields,
        &g_fields,
        tolerance,
    );
    assert_gradient(
        |forcing| value(fields, forcing),
        forcing,
        &g_forcing,
        tolerance,
    );
}

/// The next fields and the tape.
fn advance<T: Real>(physics: &dyn FieldStep<T>, fields: &[T], forcing: &[T]) -> (Vec<T>, Vec<T>) {
    let mut next = unset(fields.len());
    let mut tape = unset(EPISODES * physics.tape_len());
    let mut scratch = unset(EPISODES * physics.scratch_len());
    physics.advance(BATCH, fields, forcing, &mut next, &mut tape, &mut scratch);
    (next, tape)
}

/// Room whose content must not be read.
fn unset<T: Real>(len: usize) -> Vec<T> {
    vec![T::of(f64::NAN); len]
}

fn of<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().copied().map(T::of).collect()
}
