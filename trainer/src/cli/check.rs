//! `trainer check`: whether a field can be trained on, and what that will take.

use super::use_threads;
use crate::engine::Engine;
use crate::entry::{Entries, Entry};
use crate::export::{Training, blob};
use crate::host_loop::HostLoop;
use crate::learn::Trainer;
use crate::recipe::Recipe;
use crate::rollout::Terms;
use anyhow::{Result, ensure};
use artifacts::say;
use burn::tensor::Device;
use problem::random_field::episode_rng;
use rand::RngExt;
use std::time::{Duration, Instant};

/// Steps of the loop that the gradient is taken through.
const HORIZON: usize = 20;
/// How far along a random direction of the parameters losses are compared: agents that pass from cell to
/// cell and cuts bend the loss, the less within the less.
const REACHES: [f32; 4] = [1e-3, 1e-4, 1e-5, 1e-6];
/// How far gradient and difference may be apart.
const AGREES: f64 = 1e-2;
/// Longer than this nobody waits for an estimate.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(after_help = "Example:\n  trainer check my-plate.toml")]
pub struct Arguments {
    /// The control problem: a name, or the file that describes it.
    problem: String,
    /// Threads to use [default: one per core].
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

/// Checks what was asked for.
pub fn run(arguments: &Arguments, entries: &Entries) -> Result<()> {
    use_threads(arguments.threads)?;
    let entry = entries.by_name(&arguments.problem)?;
    let recipe = entry.recipe.full(entry.problem);
    let engine = Engine::Host(Device::default());
    let (steps, batch) = (recipe.steps, recipe.train.batch);
    let mut trainer = Trainer::new(entry, recipe.train.clone(), recipe.policy.clone(), &engine)?;
    let parameters = trainer.policy().parameters();
    say!("{}: {}", entry.problem.name, entry.problem.summary)?;
    let stairs = (entry.problem.kit)
        .is_some_and(|kit| kit.sensors.iter().any(|sensor| sensor.quantisation > 0.0));
    if stairs {
        say!(
            "  gradient       not held to differences, which find no slope of readings in steps: leave quantisation out to see"
        )?;
    } else if let Some((gradient, difference)) = gradient(entry, &recipe, &trainer, &parameters)? {
        let apart = (gradient - difference).abs() / gradient.abs().max(difference.abs());
        say!(
            "  gradient       {gradient:.6e} along a random direction, {difference:.6e} by differences: {apart:.1e} apart"
        )?;
        ensure!(
            apart <= AGREES,
            "the gradient does not agree with differences; a reaction or a cut with a bend where the field \
             is would do that: smooth it, or widen the field's range"
        );
    }
    let begun = Instant::now();
    trainer.step()?;
    let mut each = begun.elapsed();
    if begun.elapsed() < PATIENCE {
        let again = Instant::now();
        trainer.step()?;
        each = again.elapsed();
    }
    let whole = each.as_secs_f64() * steps as f64;
    say!(
        "  training       {steps} steps of {batch} episodes, {:.2} s each: about {} here; trainer train {} --preset quick takes {}",
        each.as_secs_f64(),
        spoken(whole),
        arguments.problem,
        spoken(quick(entry, each)),
    )?;
    let training = Training { seed: 0, steps: 0 };
    let blob = blob(entry.problem, &recipe.policy, &parameters, training)?;
    say!(
        "  policy         {} parameters, {} bytes as f32, about {} as int8; {} numbers remembered",
        parameters.len(),
        blob.len(),
        parameters.len() + blob.len().saturating_sub(4 * parameters.len()),
        recipe.policy.shape.memory,
    )?;
    Ok(())
}

/// Seconds of the quick preset, from those of a step of the full one.
fn quick(entry: &Entry, each: Duration) -> f64 {
    let quick = entry.recipe.quick;
    each.as_secs_f64() * quick.steps as f64 * quick.batch as f64 / entry.recipe.batch as f64
}

fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The loss's change along a random direction of the parameters, by its gradient and by differences; none
/// for problems without a step in double precision.
fn gradient(
    entry: &Entry,
    recipe: &Recipe,
    trainer: &Trainer,
    parameters: &[f32],
) -> Result<Option<(f64, f64)>> {
    let problem = entry.problem.with_substeps(recipe.train.substeps)?;
    let Some(step) = entry.physics.step_by_hand::<f64>(&problem) else {
        return Ok(None);
    };
    let horizon = HORIZON.min(recipe.train.horizon);
    let closed_loop = HostLoop::<f64>::new(&problem, step?, horizon, &recipe.policy)?;
    let mut trials = trainer.draw().trials;
    trials.truncate(2);
    trials
        .iter_mut()
        .for_each(|trial| trial.physics = problem.physics);
    let weights: Terms = recipe.train.weights;
    let loss = |parameters: &[f32]| -> f64 {
        let (terms, tape) = closed_loop.forward(parameters, &trials);
        closed_loop.recycle(tape);
        let each = terms
            .iter()
            .map(|terms| terms.iter().zip(weights).map(|(t, w)| t * w).sum::<f64>());
        each.sum()
    };
    let mut rng = episode_rng(0, 1);
    let way: Vec<f32> = (parameters.iter())
        .map(|_| rng.random_range(-1.0..1.0))
        .collect();
    let (_, tape) = closed_loop.forward(parameters, &trials);
    let slope = closed_loop.backward(tape, &trials, &vec![weights; trials.len()]);
    let compared = REACHES.map(|reach| {
        let moved = |by: f32| -> Vec<f32> {
            let both = parameters.iter().zip(&way);
            both.map(|(p, w)| p + by * w).collect()
        };
        let (ahead, behind) = (moved(reach), moved(-reach));
        // By what parameters moved in single precision.
        let gaps = ahead.iter().zip(&behind);
        let gaps = gaps.map(|(a, b)| (f64::from(*a) - f64::from(*b)) / f64::from(2.0 * reach));
        let gradient = slope.iter().zip(gaps).map(|(s, gap)| s * gap).sum::<f64>();
        let difference = (loss(&ahead) - loss(&behind)) / f64::from(2.0 * reach);
        (gradient, difference)
    });
    let apart = |&(g, d): &(f64, f64)| (g - d).abs() / g.abs().max(d.abs());
    let nearest = compared
        .into_iter()
        .min_by(|a, b| apart(a).total_cmp(&apart(b)));
    Ok(nearest)
}
