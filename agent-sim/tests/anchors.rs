//! Published figures that the simulator must reproduce, through the whole of it: test set, swarm,
//! stepper and score.
//!
//! They are those of the test sets' README: means and twice the population standard deviation over
//! the samples, printed there to four digits. The sets are exact, so 0.5 % allows for the third of
//! those digits and no more.

use agent_sim::controller::{Controller, Experiment};
use agent_sim::scenario::fault_seed;
use problem::metrics::Summary;
use problem::published::by_name;
use problem::test_set::EpisodeSet;
use problem::{ErrorSensing, Problem, Proportional};
use rayon::prelude::*;

fn evaluate(
    problem: &Problem,
    controller: Controller<'_>,
    steps: usize,
    set: &EpisodeSet,
    count: Option<usize>,
) -> Summary {
    let episodes = set.episodes(problem, 1, count).unwrap();
    let scores: Vec<_> = episodes
        .par_iter()
        .map(|episode| {
            let experiment = Experiment {
                problem,
                controller,
                agents: problem.agents,
                steps,
                faults: &[],
                seed: fault_seed(0, 0),
                plant: None,
            };
            experiment.run(episode, &mut |_| {}).unwrap()
        })
        .collect();
    Summary::of(&scores)
}

fn uncontrolled(problem: &Problem, steps: usize) -> Summary {
    evaluate(problem, Controller::None, steps, &EpisodeSet::Table, None)
}

/// Kernel-averaged sensing and gain 20, the best in the README's tables.
fn kernel_feedback(problem: &Problem, gain: f64) -> Summary {
    let law = Proportional {
        gain,
        sensing: ErrorSensing::Kernel,
    };
    let controller = Controller::Proportional(law);
    evaluate(
        problem,
        controller,
        problem.horizon,
        &EpisodeSet::Table,
        None,
    )
}

#[track_caller]
fn within(found: f64, published: f64, tolerance: f64) {
    let off = (found / published - 1.0).abs();
    assert!(off < tolerance, "{found} is {off:.4} off {published}");
}

/// Mean and twice the standard deviation of the final error, then of the time mean.
#[track_caller]
fn agrees(summary: &Summary, final_error: [f64; 2], time_mean: [f64; 2]) {
    within(summary.final_error.mean, final_error[0], 0.005);
    within(2.0 * summary.final_error.std, final_error[1], 0.005);
    within(summary.time_mean.mean, time_mean[0], 0.005);
    within(2.0 * summary.time_mean.std, time_mean[1], 0.005);
    let spent = [
        summary.effort.worst,
        summary.travel.worst,
        summary.intrusion.worst,
    ];
    assert_eq!(spent, [0.0; 3]);
}

#[test]
fn heat_1d_without_control() {
    let summary = uncontrolled(by_name("heat-1d").unwrap(), 300);
    agrees(&summary, [0.3899, 1.1434], [0.5509, 1.615]);
}

#[test]
fn fkpp_1d_without_control() {
    let summary = uncontrolled(by_name("fkpp-1d").unwrap(), 300);
    agrees(&summary, [0.1025, 0.1275], [0.1130, 0.1329]);
}

#[test]
fn heat_2d_without_control_at_both_horizons() {
    for name in ["heat-2d", "heat-2d-obstacles"] {
        let problem = by_name(name).unwrap();
        assert_eq!(problem.horizon, 100);
        agrees(
            &uncontrolled(problem, 100),
            [0.2197, 0.5322],
            [0.3335, 0.7226],
        );
        agrees(
            &uncontrolled(problem, 300),
            [0.1049, 0.2680],
            [0.2072, 0.4652],
        );
    }
}

#[test]
fn ks_1d_without_control_at_both_horizons() {
    let problem = by_name("ks-1d").unwrap();
    agrees(
        &uncontrolled(problem, 200),
        [1.411, 0.9704],
        [1.486, 0.7483],
    );
    agrees(
        &uncontrolled(problem, 400),
        [1.339, 0.9022],
        [1.411, 0.5240],
    );
}

#[test]
fn ks_1d_with_proportional_feedback() {
    let summary = kernel_feedback(by_name("ks-1d").unwrap(), 20.0);
    within(summary.time_mean.mean, 0.1268, 0.005);
    within(2.0 * summary.time_mean.std, 0.1149, 0.005);
    within(summary.final_error.mean, 7.32e-5, 0.005);
}

/// Chaotic, but five time units are too short for rounding to matter.
#[test]
fn ks_2d_without_control() {
    let problem = by_name("ks-2d").unwrap();
    let published = problem.with_variant("as-published").unwrap();
    agrees(
        &uncontrolled(&published, 50),
        [12.88, 3.678],
        [13.09, 3.473],
    );
    // Our default is another scheme for the same equation.
    within(uncontrolled(problem, 50).final_error.mean, 12.88, 0.05);
}

#[test]
fn ks_2d_with_proportional_feedback() {
    let problem = by_name("ks-2d").unwrap();
    let published = problem.with_variant("as-published").unwrap();
    let summary = kernel_feedback(&published, 20.0);
    within(summary.final_error.mean, 0.2258, 0.005);
    within(2.0 * summary.final_error.std, 0.1977, 0.005);
    within(
        kernel_feedback(problem, 20.0).final_error.mean,
        0.2258,
        0.05,
    );
}

/// Records are those before each of 150 actions, the initial state among them.
#[test]
fn turbulence_2d_without_control() {
    let problem = by_name("turbulence-2d").unwrap();
    let published = problem.with_variant("as-published").unwrap();
    agrees(
        &uncontrolled(&published, 150),
        [50.49, 13.29],
        [65.24, 15.11],
    );
    let correct = uncontrolled(problem, 150);
    within(correct.final_error.mean, 37.25, 0.005);
    within(2.0 * correct.final_error.std, 10.90, 0.005);
}

#[test]
fn turbulence_2d_with_proportional_feedback() {
    let problem = by_name("turbulence-2d").unwrap();
    let summary = kernel_feedback(&problem.with_variant("as-published").unwrap(), 20.0);
    within(summary.final_error.mean, 3.293, 0.005);
    within(2.0 * summary.final_error.std, 2.304, 0.005);
    within(summary.time_mean.mean, 14.70, 0.005);
}

#[test]
fn density_2d_without_control() {
    let summary = uncontrolled(by_name("density-2d").unwrap(), 150);
    agrees(&summary, [0.0281, 0.0259], [0.0329, 0.0234]);
}

/// README, "Sets at a glance": the published scheme gains 9.5 % of mass, 2 sd 0.2396.
#[test]
fn density_2d_gains_the_published_mass() {
    let problem = by_name("density-2d").unwrap();
    let episodes = EpisodeSet::Table.episodes(problem, 0, None).unwrap();
    let mut stepper = (problem.stepper)(problem, 1);
    let still = vec![0.0; 2 * problem.grid.len()];
    let ratios: Vec<f64> = episodes
        .iter()
        .map(|episode| {
            let mut field: Vec<f64> = episode.initial.iter().map(|z| f64::from(*z)).collect();
            let before: f64 = field.iter().sum();
            (0..150).for_each(|_| stepper.step(&mut field, &still));
            field.iter().sum::<f64>() / before
        })
        .collect();
    let mean = ratios.iter().sum::<f64>() / 50.0;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 50.0;
    within(mean, 1.095, 0.005);
    within(2.0 * variance.sqrt(), 0.2396, 0.005);
}

/// Over 15,000 pairs of the authors' generators the uncontrolled final error is 0.471 (heat) and
/// 0.121 (Fisher–KPP), and means of 50 pairs scatter by 0.093 and 0.012 (README, notes); of 2,000
/// pairs by √(50/2000) as much, three times which is allowed.
#[test]
fn fresh_episodes_come_from_the_published_distributions() {
    for (name, published, scatter) in [("heat-1d", 0.471, 0.093), ("fkpp-1d", 0.121, 0.012)] {
        let problem = by_name(name).unwrap();
        let fresh = EpisodeSet::Fresh;
        let summary = evaluate(problem, Controller::None, 300, &fresh, Some(2000));
        let mean = summary.final_error.mean;
        let allowed = 3.0 * scatter * (50f64 / 2000.0).sqrt();
        assert!((mean - published).abs() < allowed, "{name}: {mean}");
    }
}
