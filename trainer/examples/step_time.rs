//! Milliseconds per training step of the published experiment: the rollout forwards, backwards,
//! and the whole step with fresh episodes, Burn's graph and Adam.
//!
//! ```text
//! cargo run --release -p trainer --example step_time
//! ```

use agent_sim::problem::heat_1d::PROBLEM;
use agent_sim::random_field::episode_rng;
use burn::tensor::Device;
use std::time::Instant;
use trainer::learn::{Differentiation, TrainConfig, Trainer};
use trainer::loss;
use trainer::policy::PolicyConfig;
use trainer::rollout::ClosedLoop;

const REPETITIONS: usize = 20;

fn main() -> anyhow::Result<()> {
    let (config, policy) = (TrainConfig::of(&PROBLEM), PolicyConfig::of(&PROBLEM));
    let closed_loop: ClosedLoop = ClosedLoop::new(
        &PROBLEM,
        PROBLEM.agents,
        PROBLEM.horizon,
        policy.shape.clone(),
        policy.gains,
    );
    let episodes: Vec<_> = (0..config.batch as u64)
        .map(|k| (PROBLEM.draw)(&mut episode_rng(1, k)))
        .collect();
    let device = Device::default();
    let parameters = policy.init(1, &device).parameters();
    let weights = vec![loss::weights(&PROBLEM.loss); episodes.len()];
    let mut trainer = Trainer::new(&PROBLEM, config, policy, Differentiation::Fused, &device);

    let mut times = [const { Vec::new() }; 3];
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        let (_, tape) = closed_loop.forward(&parameters, &episodes);
        times[0].push(start.elapsed());
        let start = Instant::now();
        closed_loop.backward(tape, &weights);
        times[1].push(start.elapsed());
        let start = Instant::now();
        trainer.step()?;
        times[2].push(start.elapsed());
    }
    for (name, mut times) in ["forward", "backward", "whole step"].into_iter().zip(times) {
        times.sort();
        let ms = |k: usize| 1e3 * times[k].as_secs_f64();
        let (best, median) = (ms(0), ms(REPETITIONS / 2));
        println!("{name:<12}{best:8.1} ms best{median:8.1} ms median");
    }
    Ok(())
}
