//! `trainer bench --ranks`: how a training step shortens with more processes, beside what that should be by
//! what its parts take.

use super::bench::{Sizes, stepper_on};
use crate::engine::Engine;
use crate::entry::Entry;
use crate::learn::Trainer;
use crate::ranks::Ranks;
use crate::rollout::Terms;
use anyhow::Result;
use artifacts::say;
use std::time::Instant;

/// What the parts of a step take, in seconds, of one rank while the others wait.
struct Parts {
    /// Drawing all episodes, which each rank does for itself.
    draw: f64,
    /// One episode forwards and back.
    episode: f64,
    /// What is left with no episodes: the update.
    update: f64,
}

impl Parts {
    /// By two batches, of all episodes and of a quarter of them.
    fn measure(entry: &'static Entry, sizes: Sizes, engine: &Engine, reps: u32) -> Result<Self> {
        let few = Sizes {
            batch: (sizes.batch / 4).max(1),
            ..sizes
        };
        let mut whole = stepper_on(engine, entry, sizes)?;
        let mut part = stepper_on(engine, entry, few)?;
        let (mut draw, mut all, mut quarter) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..reps {
            let [drawn, learnt] = step(&mut whole)?;
            draw = draw.min(drawn);
            all = all.min(learnt);
            quarter = quarter.min(step(&mut part)?[1]);
        }
        let episode = (all - quarter) / (sizes.batch - few.batch).max(1) as f64;
        Ok(Self {
            draw,
            episode,
            update: (all - episode * sizes.batch as f64).max(0.0),
        })
    }
}

/// Seconds of drawing episodes, and of a step on them.
fn step(trainer: &mut Trainer) -> Result<[f64; 2]> {
    let began = Instant::now();
    let batch = trainer.draw();
    let drawn = began.elapsed().as_secs_f64();
    trainer.learn(&batch)?;
    Ok([drawn, began.elapsed().as_secs_f64() - drawn])
}

/// Times steps of 1, 2, 4, … ranks, by turns, and prints them beside the model. The shortest time counts:
/// whatever else the machine does only makes them longer.
pub fn run(
    entry: &'static Entry,
    sizes: Sizes,
    each: &Engine,
    ranks: Ranks,
    threads: usize,
    [rounds, reps]: [u32; 2],
) -> Result<()> {
    let counts: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n))
        .take_while(|n| *n <= ranks.of())
        .collect();
    let of = |busy: usize| Engine::Shared(Box::new(each.clone()), ranks.first(busy));
    let engines: Vec<Engine> = counts.iter().map(|busy| of(*busy)).collect();
    let steppers = engines
        .iter()
        .map(|engine| stepper_on(engine, entry, sizes));
    let mut steppers: Vec<Trainer> = steppers.collect::<Result<_>>()?;
    let numbers = steppers[0].policy_config.shape.parameters();
    let mut parts: Option<Parts> = None;
    let mut measured = vec![f64::MAX; counts.len()];
    let mut told = vec![f64::MAX; counts.len()];
    for _ in 0..rounds {
        if ranks.leads() {
            let again = Parts::measure(entry, sizes, each, reps)?;
            parts = Some(match parts {
                None => again,
                Some(before) => Parts {
                    draw: before.draw.min(again.draw),
                    episode: before.episode.min(again.episode),
                    update: before.update.min(again.update),
                },
            });
        }
        for (k, busy) in counts.iter().enumerate() {
            // What a step exchanges: a gradient from each that has one.
            let own = vec![0.5f32; if ranks.own() < *busy { numbers } else { 0 }];
            for _ in 0..reps {
                ranks.exchange(())?;
                let began = Instant::now();
                ranks.exchange(own.clone())?;
                told[k] = told[k].min(began.elapsed().as_secs_f64());
                ranks.exchange(())?;
                if ranks.own() >= *busy {
                    // What it would say, without drawing episodes for nothing.
                    ranks.exchange((Vec::<Terms>::new(), Vec::<f32>::new()))?;
                    continue;
                }
                let [draw, learn] = step(&mut steppers[k])?;
                measured[k] = measured[k].min(draw + learn);
            }
        }
    }
    let Some(parts) = parts else { return Ok(()) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say!(
        "{}: {} episodes a step, {threads} threads a rank, {cores} cores; draw {:.2} ms, an episode {:.3} ms, \
         update {:.2} ms",
        entry.problem.name,
        sizes.batch,
        1e3 * parts.draw,
        1e3 * parts.episode,
        1e3 * parts.update
    )?;
    say!(
        "{:>6}{:>10}{:>14}{:>12}{:>14}{:>8}",
        "ranks",
        "episodes",
        "exchange, ms",
        "model, ms",
        "measured, ms",
        "ratio"
    )?;
    for ((busy, told), measured) in counts.iter().zip(told).zip(measured) {
        let episodes = ranks.first(*busy).largest_part(sizes.batch);
        // More threads than cores take turns.
        let turns = ((busy * threads) as f64 / cores as f64).max(1.0);
        let alone = parts.draw + parts.update + parts.episode * episodes as f64;
        let model = alone * turns + told;
        say!(
            "{busy:>6}{episodes:>10}{:>14.3}{:>12.2}{:>14.2}{:>8.2}",
            1e3 * told,
            1e3 * model,
            1e3 * measured,
            measured / model
        )?;
    }
    Ok(())
}
