//! The shipped policies keep what their cards say.

use agent_sim::controller::{Controller, Experiment};
use artifacts::policy_file::PolicyFile;
use problem::Problem;
use problem::published::{by_name, measured};
use problem::test_set::EpisodeSet;

/// Mean of the published figure over episodes, and the largest share of a run that was spent in a
/// keep-out zone.
fn score(problem: &Problem, set: &EpisodeSet, episodes: usize, controller: Controller) -> [f64; 2] {
    let experiment = Experiment {
        problem,
        controller,
        agents: problem.agents,
        steps: problem.horizon,
        faults: &[],
        seed: 1,
        plant: None,
    };
    let episodes = set.episodes(problem, 1, Some(episodes)).unwrap();
    let scores = (episodes.iter()).map(|e| experiment.run(e, &mut |_| {}).unwrap());
    let (mut sum, mut intrusion) = (0.0, 0.0f64);
    for score in scores {
        sum += score.headline(problem.scoring);
        intrusion = intrusion.max(score.intrusion);
    }
    [sum / episodes.len() as f64, intrusion]
}

/// The first episodes of the published set, few enough for every test run, and the bar that all of
/// them are held to (the paper's best learned policy, or proportional feedback where that is better).
const BARS: [(&str, usize, f64); 8] = [
    ("heat-1d", 50, 7.9e-5),
    ("fkpp-1d", 50, 4.0e-5),
    ("heat-2d", 50, 6.3e-5),
    ("heat-2d-obstacles", 50, 6.3e-5),
    ("ks-1d", 100, 0.1268),
    ("ks-2d", 4, 0.226),
    ("turbulence-2d", 4, 1.70),
    ("density-2d", 50, 0.002),
];

#[test]
fn every_policy_beats_its_bar_on_the_published_episodes() {
    for (name, episodes, bar) in BARS {
        let problem = by_name(name).unwrap();
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let [found, intrusion] = score(
            problem,
            &EpisodeSet::Table,
            episodes,
            Controller::Policy(&policy),
        );
        assert!(found <= bar, "{name}: {found:e} against {bar:e}");
        assert_eq!(intrusion, 0.0, "{name}: agents entered a keep-out zone");
    }
}

#[test]
fn every_policy_holds_on_fresh_episodes() {
    for (name, _, bar) in BARS {
        // Drawing these takes seconds an episode.
        if ["ks-2d", "turbulence-2d"].contains(&name) {
            continue;
        }
        let problem = by_name(name).unwrap();
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let [found, _] = score(problem, &EpisodeSet::Fresh, 20, Controller::Policy(&policy));
        assert!(found <= 1.5 * bar, "{name}: {found:e} against {bar:e}");
    }
}

#[test]
fn every_policy_fits_a_small_board() {
    for problem in measured() {
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        assert!(file.bytes().len() <= 256 * 1024, "{}", problem.name);
        assert!(4 * policy.workspace_len() <= 32 * 1024, "{}", problem.name);
    }
}
