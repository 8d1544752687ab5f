//! What holds for a swarm whatever its size and however many threads run it.

use agent_core::policy::Policy;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::link::{InProcess, Recorder, Wire};
use agent_sim::sense::View;
use agent_sim::swarm::Swarm;
use artifacts::policy_file::PolicyFile;
use problem::Problem;
use problem::published::by_name;
use problem::random_field::episode_rng;

fn problem() -> &'static Problem {
    by_name("heat-1d").unwrap()
}

/// Field, positions, forces and scores of a whole run, as bits.
fn run_with_threads(threads: usize, agents: usize) -> Vec<u64> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    let file = PolicyFile::shipped(problem()).unwrap();
    let policy = file.policy(problem()).unwrap();
    let experiment = Experiment {
        problem: problem(),
        controller: Controller::Policy(&policy),
        agents,
        steps: 60,
        faults: &["crash,fraction=0.3,at=0.5".parse().unwrap()],
        seed: 5,
        plant: None,
    };
    let episode = (problem().draw)(problem(), &mut episode_rng(5, 0));
    let mut bits = Vec::new();
    let score = pool.install(|| {
        experiment
            .run(&episode, &mut |now| {
                bits.extend(now.field.iter().map(|z| z.to_bits()));
                bits.extend(now.positions.iter().map(|p| p[0].to_bits()));
                bits.extend(now.deeds.iter().map(|d| u64::from(d.force.to_bits())));
            })
            .unwrap()
    });
    bits.extend([score.final_error, score.effort, score.travel].map(f64::to_bits));
    bits
}

#[test]
fn a_swarm_run_is_identical_for_one_and_two_threads() {
    // 2,000 agents are several groups, which threads share out.
    for agents in [8, 2_000] {
        assert!(run_with_threads(1, agents) == run_with_threads(2, agents));
    }
}

/// The conversation of the agent at `place` among `others`, on fields that are given rather than
/// controlled, so that only what an agent is told can differ.
fn conversation(policy: &Policy, place: f64, others: usize) -> Wire {
    let mut positions: Vec<[f64; 2]> = (0..others)
        .map(|i| [(i as f64 + 0.5) / others as f64, 0.0])
        .collect();
    let own = others / 2;
    positions.insert(own, [place, 0.0]);
    let links = vec![Recorder::new(InProcess::new(policy)); positions.len()];
    let mut swarm = Swarm::new(problem(), View::of(policy), links, positions);
    let target = (problem().draw)(problem(), &mut episode_rng(1, 0)).target;
    let mut force = vec![0.0; problem().grid.len()];
    for step in 0..50 {
        let field = (problem().draw)(problem(), &mut episode_rng(2, step)).initial;
        swarm.act(&field, &target, step * 1_000, &mut force);
        swarm.travel(problem().control_interval);
    }
    swarm.links()[own].wire().clone()
}

#[test]
fn an_agent_alone_and_among_a_thousand_reads_and_writes_the_same_bytes() {
    let file = PolicyFile::shipped(problem()).unwrap();
    let policy = file.policy(problem()).unwrap();
    for place in [0.0, 0.31, 0.97] {
        let alone = conversation(&policy, place, 0);
        assert_eq!((alone.sent.len(), alone.received.len()), (50, 50));
        assert!(alone == conversation(&policy, place, 999), "at {place}");
    }
}
