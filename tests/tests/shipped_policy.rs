//! The shipped policies keep what their cards say.

use agent_sim::controller::{Controller, Experiment};
use agent_sim::policy_file::PolicyFile;
use agent_sim::problem::{Problem, by_name};
use agent_sim::test_set::EpisodeSet;

fn problem() -> &'static Problem {
    by_name("heat-1d").unwrap()
}

fn mean_final_error(set: &EpisodeSet, episodes: usize, seed: u64, controller: Controller) -> f64 {
    let experiment = Experiment {
        problem: problem(),
        controller,
        agents: 8,
        steps: problem().horizon,
        faults: &[],
        seed,
    };
    let sum: f64 = set
        .episodes(problem(), seed, Some(episodes))
        .unwrap()
        .iter()
        .map(|episode| experiment.run(episode, &mut |_| {}).unwrap().final_error)
        .sum();
    sum / episodes as f64
}

#[test]
fn heat_1d_beats_the_published_figure_on_the_published_episodes_and_on_fresh_ones() {
    let file = PolicyFile::shipped(problem()).unwrap();
    let policy = file.policy(problem()).unwrap();
    let learned = Controller::Policy(&policy);
    // Paper, results table, heat 1D: 2.9e-4 with control, 0.390 without.
    let table = mean_final_error(&EpisodeSet::Table, 50, 0, learned);
    assert!(table <= 2.9e-4, "{table:e}");
    let idle = mean_final_error(&EpisodeSet::Table, 50, 0, Controller::None);
    assert!((idle / 0.3899 - 1.0).abs() < 0.005, "{idle}");
    let fresh = mean_final_error(&EpisodeSet::Fresh, 50, 1, learned);
    assert!(fresh <= 1.5 * table, "{fresh:e} against {table:e}");
}

#[test]
fn heat_1d_fits_a_small_board() {
    let file = PolicyFile::shipped(problem()).unwrap();
    let policy = file.policy(problem()).unwrap();
    assert!(file.bytes().len() <= 64 * 1024);
    assert!(4 * policy.workspace_len() <= 4 * 1024);
}
