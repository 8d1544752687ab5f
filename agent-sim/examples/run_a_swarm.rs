//! A run as a library call: the shipped policy of a problem on its first published episode.
//!
//! ```text
//! cargo run -p agent-sim --example run_a_swarm -- heat-1d 16
//! ```

use agent_sim::controller::{Controller, Experiment};
use artifacts::policy_file::PolicyFile;
use problem::test_set::EpisodeSet;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or("heat-1d".to_owned());
    let problem = problem::published::by_name(&name)?;
    let agents = match words.next() {
        Some(number) => number.parse()?,
        None => problem.agents,
    };
    let file = PolicyFile::shipped(problem)?;
    let policy = file.policy(problem)?;
    let episode = EpisodeSet::Table.episode(problem, 0, 1)?;
    let swarm = Experiment {
        problem,
        controller: Controller::Policy(&policy),
        agents,
        steps: problem.horizon,
        faults: &[],
        seed: 1,
        plant: None,
    };
    let alone = Experiment {
        controller: Controller::None,
        ..swarm
    };
    for (who, experiment) in [("nobody", alone), ("the swarm", swarm)] {
        let score = experiment.run(&episode, &mut |_| {})?;
        println!(
            "{who:<10} leaves a final error of {:.3e}",
            score.final_error
        );
    }
    Ok(())
}
