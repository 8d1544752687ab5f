//! What could be reached at best: the actions of every agent at every step, optimised for one known
//! episode through the same physics that policies are trained in.
//!
//! A plan sees the future and the whole field, so no policy can be expected to do better than the best
//! plan; that plan is approached from above, by gradient descent, not proven.

use crate::entry::Entry;
use crate::host_loop::HostLoop;
use crate::loss::{TERMS, Term};
use crate::rollout::RolloutError;
use crate::trial::Trial;
use burn::tensor::Device;
use indicatif::{ProgressBar, ProgressStyle};
use problem::{Episode, Headline, Problem};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// How plans are sought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Steps of Adam per episode.
    pub iterations: usize,
    /// Its learning rate, on actions before tanh; falls to a hundredth along a cosine.
    pub rate: f64,
}

/// The score of one episode's plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The figure of the published table with agents that do nothing.
    pub idle: f64,
    /// The same with the best plan found.
    pub best: f64,
}

/// Episodes planned at once; bounds memory.
const TOGETHER: usize = 16;
/// Weight of the error over all steps beside the error at the end: where only the end counts, it
/// gives the first actions a gradient to go by.
const ON_THE_WAY: f64 = 0.01;

/// Agents that fall silent at half of the episode; the plan knows beforehand who.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crash {
    /// The share of the agents, rounded to whole ones.
    pub share: f64,
    /// Who they are is drawn by it, for each episode anew.
    pub seed: u64,
}

impl Crash {
    fn befall(self, trials: &mut [Trial], horizon: usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for trial in trials {
            let agents = trial.dies_at.len();
            let victims = (self.share * agents as f64).round() as usize;
            for victim in rand::seq::index::sample(&mut rng, agents, victims) {
                trial.dies_at[victim] = horizon / 2;
            }
        }
    }
}

/// Seeks the best plan for each episode.
pub fn plan(
    entry: &Entry,
    problem: &Problem,
    agents: usize,
    episodes: &[Episode],
    crash: Option<Crash>,
    search: Search,
) -> Result<Vec<Found>, RolloutError> {
    let config = entry.recipe.full(problem).policy;
    let horizon = problem.scored_steps();
    let field = entry.physics.step(problem, &Device::default())?;
    let closed_loop = HostLoop::<f32>::new(problem, field, horizon, &config)?;
    let mut trials: Vec<Trial> = (episodes.iter())
        .map(|episode| Trial::plain(problem, agents, episode.clone()))
        .collect();
    if let Some(crash) = crash {
        crash.befall(&mut trials, horizon);
    }
    let bar = ProgressBar::new((episodes.len().div_ceil(TOGETHER) * search.iterations) as u64);
    let style = ProgressStyle::with_template("planning {bar:30} {pos}/{len} eta {eta}  {msg}");
    bar.set_style(style.expect("a valid template"));
    let found = trials
        .chunks(TOGETHER)
        .flat_map(|trials| plan_together(&closed_loop, trials, search, &bar))
        .collect();
    bar.finish_and_clear();
    Ok(found)
}

fn plan_together(
    closed_loop: &HostLoop,
    trials: &[Trial],
    search: Search,
    bar: &ProgressBar,
) -> Vec<Found> {
    let headline = closed_loop.problem.scoring.headline;
    let mut weights = [0.0; TERMS];
    let scored = match headline {
        Headline::Final => Term::Final,
        Headline::TimeMean => Term::Track,
    };
    weights[Term::Track as usize] = ON_THE_WAY;
    // Clouds that do not overlap their target need to be told where it is.
    weights[Term::Centroid as usize] = ON_THE_WAY;
    weights[scored as usize] = 1.0;
    let length = closed_loop.horizon * trials[0].agents() * closed_loop.shape.actions;
    let mut plans = vec![0.0f32; trials.len() * length];
    let (mut mean, mut square) = (vec![0.0f32; plans.len()], vec![0.0f32; plans.len()]);
    let mut found: Vec<Option<Found>> = vec![None; trials.len()];
    for iteration in 0..=search.iterations {
        let each = plans.chunks_exact(length).map(<[f32]>::to_vec).collect();
        let (terms, tape) = closed_loop.forward_plans(each, trials);
        for (found, terms) in found.iter_mut().zip(&terms) {
            let score = terms[scored as usize];
            let found = found.get_or_insert(Found {
                idle: score,
                best: score,
            });
            found.best = found.best.min(score);
        }
        if iteration == search.iterations {
            closed_loop.recycle(tape);
            break;
        }
        let gradient = closed_loop.backward_plans(tape, trials, &vec![weights; trials.len()]);
        let done = iteration as f64 / search.iterations as f64;
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
        let rate = search.rate * (0.01 + 0.99 * cosine);
        let time = iteration as i32 + 1;
        let (unbias_mean, unbias_square) = (1.0 - 0.9f64.powi(time), 1.0 - 0.999f64.powi(time));
        let (rate, unbias) = ((rate / unbias_mean) as f32, (1.0 / unbias_square) as f32);
        let moments = mean.iter_mut().zip(&mut square);
        for ((action, g), (mean, square)) in plans.iter_mut().zip(gradient).zip(moments) {
            // One episode's overflow must not spoil the others.
            let g = if g.is_finite() { g } else { 0.0 };
            *mean += 0.1 * (g - *mean);
            *square += 0.001 * (g * g - *square);
            *action -= rate * *mean / ((*square * unbias).sqrt() + 1e-12);
        }
        let sum: f64 = found.iter().flatten().map(|f| f.best).sum();
        bar.set_message(format!("mean {:.2e}", sum / trials.len() as f64));
        bar.inc(1);
    }
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::test_set::EpisodeSet;

    #[test]
    fn a_share_of_the_agents_falls_silent_half_way_others_in_each_episode() {
        let heat = problem::published::by_name("heat-2d").unwrap();
        let episode = EpisodeSet::Fresh.episode(heat, 0, 0).unwrap();
        let mut trials = vec![Trial::plain(heat, 16, episode); 8];
        let crash = Crash {
            share: 0.3,
            seed: 1,
        };
        crash.befall(&mut trials, 100);
        for trial in &trials {
            let silent = trial.dies_at.iter().filter(|&&at| at == 50).count();
            let untouched = trial.dies_at.iter().filter(|&&at| at == usize::MAX).count();
            assert_eq!((silent, untouched), (5, 11));
        }
        assert!(
            trials
                .iter()
                .any(|trial| trial.dies_at != trials[0].dies_at)
        );
    }
}
