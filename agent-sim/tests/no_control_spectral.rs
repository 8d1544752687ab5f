//! The pseudo-spectral solvers on the published test episodes, without agents: test sets' README,
//! "No control".

use agent_sim::npy;
use agent_sim::pde::ks_2d::Stages;
use agent_sim::pde::turbulence_2d::AS_PUBLISHED_ADVECTION;
use agent_sim::pde::{Ks2d, Stepper, Turbulence2d};
use agent_sim::problem::{ks_2d, turbulence_2d};
use rayon::prelude::*;

/// Mean square of every episode after each of `intervals` control intervals, the initial one first.
fn records<S: Stepper<f64>>(
    file: &[u8],
    intervals: usize,
    stepper: impl Fn() -> S + Sync,
) -> Vec<Vec<f64>> {
    let set = npy::parse(file).unwrap();
    assert_eq!(set.shape, [20, 64, 64]);
    let mean_square = |field: &[f64]| field.iter().map(|z| z * z).sum::<f64>() / 4096.0;
    set.values
        .par_chunks(4096)
        .map(|initial| {
            let mut field: Vec<f64> = initial.iter().map(|&z| f64::from(z)).collect();
            let mut stepper = stepper();
            let mut record = vec![mean_square(&field)];
            for _ in 0..intervals {
                stepper.step(&mut field, &[0.0; 4096]);
                record.push(mean_square(&field));
            }
            record
        })
        .collect()
}

/// Mean and twice the population standard deviation, as the README prints them.
fn summary(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    [mean, 2.0 * variance.sqrt()]
}

fn last(record: &Vec<f64>) -> f64 {
    record[record.len() - 1]
}

fn time_mean(record: &[f64]) -> f64 {
    record.iter().sum::<f64>() / record.len() as f64
}

#[track_caller]
fn within(found: [f64; 2], published: [f64; 2], tolerance: f64) {
    for (found, published) in found.into_iter().zip(published) {
        let off = (found / published - 1.0).abs();
        assert!(off < tolerance, "{found} is {off:.4} off {published}");
    }
}

fn turbulence(advection: f64) -> Vec<Vec<f64>> {
    use turbulence_2d::{CONTROL_INTERVAL, HORIZON, SUBSTEPS, VISCOSITY};
    let file = include_bytes!("../../testsets/turbulence2d.npy");
    // The last record is the state before the last action.
    records(file, HORIZON - 1, || {
        let dt = CONTROL_INTERVAL / SUBSTEPS as f64;
        Turbulence2d::new([64, 64], VISCOSITY, dt, SUBSTEPS, advection)
    })
}

#[test]
fn turbulence_decays_as_published() {
    let records = turbulence(AS_PUBLISHED_ADVECTION);
    within(summary(records.iter().map(|r| r[0])), [85.97, 20.06], 0.005);
    within(summary(records.iter().map(last)), [50.49, 13.29], 0.005);
    let time_means = records.iter().map(|r| time_mean(r));
    within(summary(time_means), [65.24, 15.11], 0.005);
}

/// The same episodes by an independent solver: 37.25 ± 10.90.
#[test]
fn turbulence_with_the_whole_advection_decays_faster() {
    let records = turbulence(1.0);
    within(summary(records.iter().map(last)), [37.25, 10.90], 0.005);
}

fn ks(stages: Stages) -> Vec<Vec<f64>> {
    use ks_2d::{HORIZON, LENGTH, SUBSTEP, SUBSTEPS};
    let file = include_bytes!("../../testsets/ks2d.npy");
    records(file, HORIZON, || {
        Ks2d::new([64, 64], LENGTH, SUBSTEP, SUBSTEPS, stages)
    })
}

/// Five time units are too short for chaos to show: a perturbation grows by less than a hundred.
#[test]
fn ks_2d_stays_on_the_attractor_as_published() {
    let records = ks(Stages::AsPublished);
    within(summary(records.iter().map(|r| r[0])), [12.62, 4.597], 0.005);
    within(summary(records.iter().map(last)), [12.88, 3.678], 0.005);
    let time_means = records.iter().map(|r| time_mean(&r[1..]));
    within(summary(time_means), [13.09, 3.473], 0.005);
}

/// The two schemes differ in strongly damped modes only.
#[test]
fn proper_stages_give_the_same_figures() {
    let records = ks(Stages::Proper);
    within(summary(records.iter().map(last)), [12.88, 3.678], 0.005);
}
