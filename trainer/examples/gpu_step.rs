//! Times the closed loop on this machine's GPU.
//!
//! ```text
//! cargo run --release -p trainer --features gpu --example gpu_step -- heat-1d --reps 10
//! ```

use anyhow::Result;
use burn::tensor::Device;
use clap::Parser;
use problem::random_field::episode_rng;
use std::time::Instant;
use trainer::gpu::{Gpu, GpuLoop};
use trainer::kernels::LoopSpec;
use trainer::published::entries;
use trainer::rollout::Rollout;
use trainer::trial::Trial;

/// Milliseconds per gradient and per forward pass of one training batch.
#[derive(Debug, Parser)]
struct Arguments {
    /// The control problem.
    problem: String,
    /// Repetitions.
    #[arg(long, default_value_t = 10)]
    reps: u32,
    /// Episodes in a batch [default: the recipe's].
    #[arg(long)]
    batch: Option<usize>,
    /// Agents [default: the problem's].
    #[arg(long)]
    agents: Option<usize>,
    /// Steps of an episode [default: the recipe's].
    #[arg(long)]
    horizon: Option<usize>,
    /// Threads of a workgroup; 0 leaves it to the loop.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let entry = entries().by_name(&arguments.problem)?;
    let problem = entry.problem;
    let recipe = entry.recipe.full(problem);
    let spec = LoopSpec {
        problem: *problem,
        corners: Vec::new(),
        agents: arguments.agents.unwrap_or(problem.agents),
        horizon: arguments.horizon.unwrap_or(recipe.train.horizon),
        batch: arguments.batch.unwrap_or(recipe.train.batch),
        shape: recipe.policy.shape.clone(),
        sight: recipe.policy.sight.clone(),
        threads: arguments.threads,
    };
    let weights = recipe.train.weights;
    let device = Device::default();
    let parameters = recipe.policy.init(0, &device).parameters();
    let trials: Vec<Trial> = (0..spec.batch as u64)
        .map(|k| (problem.draw)(problem, &mut episode_rng(0, k)))
        .map(|episode| Trial::plain(problem, spec.agents, episode))
        .collect();

    let gpu = Gpu::open()?;
    println!("{}", gpu.name());
    let began = Instant::now();
    let mut gpu_loop = GpuLoop::new(&gpu, entry, &spec)?;
    println!(
        "{}: {} episodes of {} agents and {} steps, kernels compiled in {:.1} s",
        problem.name,
        spec.batch,
        spec.agents,
        spec.horizon,
        began.elapsed().as_secs_f64()
    );
    // The first run pays for what drivers put off.
    let (terms, gradient) = gpu_loop.gradient(&parameters, &trials, &weights)?;
    let length = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
    println!(
        "terms of the first episode {:?}\nlength of the gradient {length:.6e}",
        terms[0]
    );
    let time = |run: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let began = Instant::now();
        for _ in 0..arguments.reps {
            run()?;
        }
        Ok(began.elapsed().as_secs_f64() * 1e3 / f64::from(arguments.reps))
    };
    let forward = time(&mut || Ok(gpu_loop.terms(&parameters, &trials).map(drop)?))?;
    let both = time(&mut || {
        Ok(gpu_loop
            .gradient(&parameters, &trials, &weights)
            .map(drop)?)
    })?;
    println!("terms {forward:.2} ms, gradient {both:.2} ms");
    Ok(())
}
