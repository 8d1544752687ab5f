//! Seconds per training step of the published experiment: forward, backward, and both through Burn.
//!
//! ```text
//! cargo run --release -p trainer --example step_time
//! ```

use agent_sim::problem::heat_1d::PROBLEM;
use agent_sim::random_field::episode_rng;
use std::time::Instant;
use trainer::loss;
use trainer::policy::PolicyConfig;
use trainer::rollout::ClosedLoop;

fn main() {
    let config = PolicyConfig::of(&PROBLEM);
    let closed_loop: ClosedLoop = ClosedLoop::new(
        &PROBLEM,
        PROBLEM.agents,
        PROBLEM.horizon,
        config.shape.clone(),
        config.gains,
    );
    let episodes: Vec<_> = (0..32)
        .map(|k| (PROBLEM.draw)(&mut episode_rng(1, k)))
        .collect();
    let parameters = config.init(1, &Default::default()).parameters();
    let weights = loss::weights(&PROBLEM.loss);
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let start = Instant::now();
        let (_, tape) = closed_loop.forward(&parameters, &episodes);
        forward.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        closed_loop.backward(tape, &[weights; 32]);
        backward.push(start.elapsed().as_secs_f64());
    }
    let summary = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        (1e3 * seconds[0], 1e3 * seconds[seconds.len() / 2])
    };
    for (name, seconds) in [("forward", &mut forward), ("backward", &mut backward)] {
        let (best, median) = summary(seconds);
        println!("{name:<10}{best:8.1} ms best{median:8.1} ms median");
    }
}
