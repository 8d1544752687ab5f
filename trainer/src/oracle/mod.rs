//! What could be reached at best: the actions of every agent at every step, optimised for one known
//! episode through the same physics that policies are trained in.
//!
//! A plan sees the future and the whole field, so no policy can be expected to do better than the best
//! plan; that plan is approached from above, by a quasi-Newton method that begins with what a policy
//! does and stops when it gains no more.

pub(crate) mod search;

use crate::adjoint::physics::FieldStep;
use crate::adjoint::real::Real;
use crate::entry::Entry;
use crate::export;
use crate::host_loop::HostLoop;
use crate::loss::TERMS;
use crate::trial::Trial;
use agent_core::policy::Policy;
use anyhow::{Context, Result};
use burn::tensor::Device;
use indicatif::{ProgressBar, ProgressStyle};
use problem::{Episode, Problem};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use search::{Flight, Log, scored};

/// Episodes to be planned.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// What is known about the problem.
    pub entry: &'a Entry,
    /// The form of it.
    pub problem: &'a Problem,
    /// How many agents there are.
    pub agents: usize,
    /// The episodes.
    pub episodes: &'a [Episode],
    /// What befalls the agents.
    pub crash: Option<Crash>,
    /// What plans begin with; nothing, if there is none. Without its governor, which only rollouts of
    /// agents have.
    pub policy: Option<&'a Policy<'a>>,
    /// Most runs, forwards and backwards, for one plan.
    pub runs: usize,
}

/// Agents that fall silent at half of the episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crash {
    /// The share of the agents, rounded to whole ones.
    pub share: f64,
    /// Who they are is drawn by it, for each episode anew.
    pub seed: u64,
    /// Whether plans know beforehand who. Otherwise they are made for all agents, and when it happens
    /// anew for those that are left.
    pub foreseen: bool,
}

/// What was found for one episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The figure of the published table with agents that do nothing.
    pub idle: f64,
    /// The same with the policy that the plan began with.
    pub policy: Option<f64>,
    /// The same with the best plan found, or with the policy if that is better.
    pub best: f64,
    /// That plan, [horizon, agents, actions] before tanh.
    pub plan: Vec<f64>,
    /// Whether the search ended because it gained no more.
    pub converged: bool,
    /// Episodes run, forwards and backwards.
    pub runs: usize,
}

/// A policy's actions, as shares of their limits, are drawn in to this: saturated ones have no slope.
const SATURATED: f64 = 0.99;

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

impl Task<'_> {
    /// Seeks the best plan for each episode.
    pub fn plan(&self) -> Result<Vec<Found>> {
        // The last digits of a small error are lost in f32.
        match self.entry.physics.step_by_hand::<f64>(self.problem) {
            Some(field) => self.plan_in(field?),
            None => self.plan_in(self.entry.physics.step(self.problem, &Device::default())?),
        }
    }

    fn plan_in<T: Real>(&self, field: Box<dyn FieldStep<T>>) -> Result<Vec<Found>> {
        let config = match self.policy {
            Some(policy) => export::config(policy, self.problem),
            None => Ok(self.entry.recipe.full(self.problem).policy),
        };
        let thawed = config.and_then(|config| {
            let thaw = |policy| export::thaw(policy, self.problem, &config);
            Ok((self.policy.map(thaw).transpose()?, config))
        });
        let (parameters, config) =
            thawed.context("plans cannot begin with this policy; begin with --policy none")?;
        let horizon = self.problem.scored_steps();
        let whole: Vec<Trial> = (self.episodes.iter())
            .map(|episode| Trial::plain(self.problem, self.agents, episode.clone()))
            .collect();
        let mut struck = whole.clone();
        if let Some(crash) = self.crash {
            crash.befall(&mut struck, horizon);
        }
        let surprised = self.crash.is_some_and(|crash| !crash.foreseen);
        let plans = whole.len() * if surprised { 2 } else { 1 };
        let style = ProgressStyle::with_template("planning {bar:30} {pos}/{len} runs, eta {eta}");
        let bar = ProgressBar::new((plans * self.runs) as u64);
        bar.set_style(style.expect("a valid template"));
        let planner = Planner {
            closed_loop: HostLoop::new(self.problem, field, horizon, &config)?,
            parameters,
            runs: self.runs,
            bar,
        };
        let found = (whole.par_iter().zip(&struck))
            .map(|(whole, struck)| match surprised {
                true => planner.surprised(whole, struck),
                false => planner.informed(struck),
            })
            .collect();
        planner.bar.finish_and_clear();
        Ok(found)
    }
}

/// What all episodes have in common.
struct Planner<T: Real> {
    closed_loop: HostLoop<T>,
    /// Those of the policy.
    parameters: Option<Vec<f32>>,
    runs: usize,
    bar: ProgressBar,
}

impl<T: Real> Planner<T> {
    /// The plan of an episode in which all is known beforehand.
    fn informed(&self, trial: &Trial) -> Found {
        let policy = self.relay(&[], trial);
        let start = policy.as_ref().filter(|(score, _)| score.is_finite());
        let led = start.is_none();
        let start = start.map_or(self.nothing(trial), |(_, plan)| plan.clone());
        let flight = self.flight(trial, 0);
        self.found(
            trial,
            flight.seek(start, led),
            policy.map(|(score, _)| score),
        )
    }

    /// The plan of an episode that is begun as if it were `whole`, and turns out to be `struck`.
    fn surprised(&self, whole: &Trial, struck: &Trial) -> Found {
        let before = self.informed(whole);
        let fixed = self.closed_loop.horizon / 2 * struck.agents() * self.closed_loop.shape.actions;
        // What the policy makes of it from there, or the old plan with those that are left.
        let reaction = self.relay(&before.plan[..fixed], struck);
        let kept = self.score(&before.plan, struck);
        let start = match reaction {
            Some((score, plan)) if score < kept => plan,
            _ => before.plan,
        };
        let flight = self.flight(struck, fixed);
        let policy = self.relay(&[], struck).map(|(score, _)| score);
        let after = self.found(struck, flight.seek(start, false), policy);
        Found {
            converged: before.converged && after.converged,
            runs: before.runs + after.runs,
            ..after
        }
    }

    /// The search for the plan of an episode of which the first `fixed` actions stay.
    fn flight<'a>(&'a self, trial: &'a Trial, fixed: usize) -> Flight<'a, T> {
        let mut objective = [0.0; TERMS];
        objective[scored(&self.closed_loop) as usize] = 1.0;
        let extent = (fixed, self.runs);
        Flight::new(&self.closed_loop, trial, objective, extent, &self.bar)
    }

    fn found(&self, trial: &Trial, log: Log, policy: Option<f64>) -> Found {
        Found {
            idle: self.score(&self.nothing(trial), trial),
            policy,
            best: policy.map_or(log.score, |policy| policy.min(log.score)),
            plan: log.plan,
            converged: log.converged,
            runs: log.runs,
        }
    }

    /// The plan of agents that do nothing.
    fn nothing(&self, trial: &Trial) -> Vec<f64> {
        vec![0.0; self.closed_loop.horizon * trial.agents() * self.closed_loop.shape.actions]
    }

    fn score(&self, plan: &[f64], trial: &Trial) -> f64 {
        let (terms, tape) =
            (self.closed_loop).forward_plans(vec![cast(plan)], std::slice::from_ref(trial));
        self.closed_loop.recycle(tape);
        terms[0][scored(&self.closed_loop) as usize]
    }

    /// The score of an episode that begins with a plan and goes on with the policy, and what is done in
    /// it as a plan.
    fn relay(&self, begun: &[f64], trial: &Trial) -> Option<(f64, Vec<f64>)> {
        let parameters = self.parameters.as_ref()?;
        let (terms, decided) = self.closed_loop.relay(cast(begun), parameters, trial);
        let drawn_in = |share: T| share.wide().clamp(-SATURATED, SATURATED).atanh();
        let mut plan = begun.to_vec();
        plan.extend(decided.into_iter().skip(begun.len()).map(drawn_in));
        Some((terms[scored(&self.closed_loop) as usize], plan))
    }
}

fn cast<T: Real>(plan: &[f64]) -> Vec<T> {
    plan.iter().map(|&action| T::of(action)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::published::heat_1d::ENTRY;
    use artifacts::policy_file::PolicyFile;
    use problem::test_set::EpisodeSet;

    fn episodes(problem: &Problem, count: usize) -> Vec<Episode> {
        let episode = |k| EpisodeSet::Fresh.episode(problem, 1, k).unwrap();
        (0..count).map(episode).collect()
    }

    /// Losses half way.
    fn crash(foreseen: bool) -> Option<Crash> {
        Some(Crash {
            share: 0.3,
            seed: 1,
            foreseen,
        })
    }

    #[test]
    fn a_share_of_the_agents_falls_silent_half_way_others_in_each_episode() {
        let heat = problem::published::by_name("heat-2d").unwrap();
        let episode = EpisodeSet::Fresh.episode(heat, 0, 0).unwrap();
        let mut trials = vec![Trial::plain(heat, 16, episode); 8];
        let crash = Crash {
            share: 0.3,
            seed: 1,
            foreseen: true,
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

    /// Short episodes of heat-1d from the shipped policy.
    fn short(
        episodes: &[Episode],
        crash: Option<Crash>,
        policy: Option<&Policy>,
        runs: usize,
    ) -> Vec<Found> {
        let problem = Problem {
            horizon: 20,
            ..*ENTRY.problem
        };
        let task = Task {
            entry: &ENTRY,
            problem: &problem,
            agents: 4,
            episodes,
            crash,
            policy,
            runs,
        };
        task.plan().unwrap()
    }

    #[test]
    fn plans_are_never_worse_than_the_policy_that_they_began_with() {
        let shipped = PolicyFile::shipped(ENTRY.problem).unwrap();
        let policy = shipped.policy(ENTRY.problem).unwrap();
        let episodes = episodes(ENTRY.problem, 3);
        for (crash, runs, share) in [
            (None, 1, 1.0),
            (None, 20, 0.9),
            (crash(true), 20, 0.9),
            (crash(false), 20, 1.0),
        ] {
            for found in short(&episodes, crash, Some(&policy), runs) {
                let began = found.policy.unwrap();
                assert!(found.best <= share * began, "{crash:?} {found:?}");
            }
        }
    }

    #[test]
    fn plans_for_losses_that_are_not_foreseen_begin_like_those_without_losses() {
        let shipped = PolicyFile::shipped(ENTRY.problem).unwrap();
        let policy = shipped.policy(ENTRY.problem).unwrap();
        let episodes = episodes(ENTRY.problem, 1);
        let plan = |crash| short(&episodes, crash, Some(&policy), 20).remove(0).plan;
        let (without, surprised, informed) = (plan(None), plan(crash(false)), plan(crash(true)));
        let half = without.len() / 2;
        assert_eq!(surprised[..half], without[..half]);
        assert_ne!(surprised[half..], without[half..]);
        assert_ne!(informed[..half], without[..half]);
    }

    #[test]
    fn an_episode_that_overflows_leaves_the_others_alone() {
        let mut episodes = episodes(ENTRY.problem, 2);
        let alone = short(&episodes[1..], None, None, 10);
        episodes[0].initial[3] = f32::NAN;
        let found = short(&episodes, None, None, 10);
        assert!(!found[0].converged && !found[0].best.is_finite());
        assert_eq!(found[1], alone[0]);
    }

    /// What is left at best of `start + Σ share · effects`, of which the squares are known for every
    /// one and every two of the shares: `s − ½ bᵀ A⁻¹ b`.
    pub fn least(square: impl Fn(&[f64]) -> f64, count: usize) -> f64 {
        let with = |which: &[usize]| {
            let mut shares = vec![0.0; count];
            which.iter().for_each(|&k| shares[k] += 0.4);
            square(&shares)
        };
        let zero = with(&[]);
        let pair = |i, j| (with(&[i, j]) - with(&[i]) - with(&[j]) + zero) / 0.16;
        let mut a: Vec<Vec<f64>> = (0..count)
            .map(|i| (0..count).map(|j| pair(i, j)).collect())
            .collect();
        let mut b: Vec<f64> = (0..count)
            .map(|i| (with(&[i]) - zero) / 0.4 - 0.2 * a[i][i])
            .collect();
        // Elimination, which leaves in b what each row gains.
        let mut gain = 0.0;
        for k in 0..count {
            gain += 0.5 * b[k] * b[k] / a[k][k];
            let (row, pivot) = (a[k].clone(), b[k]);
            for i in k + 1..count {
                let factor = a[i][k] / row[k];
                (k..count).for_each(|j| a[i][j] -= factor * row[j]);
                b[i] -= factor * pivot;
            }
        }
        zero - gain
    }

    /// Agents that stay drive a linear field.
    #[test]
    fn the_plan_of_a_linear_problem_is_the_least_squares_solution() {
        let mut problem = *ENTRY.problem;
        problem.actuation.velocity_max = 0.0;
        // In one step: forces that follow each other would do nearly the same.
        problem.horizon = 1;
        let mut episode = episodes(&problem, 1).remove(0);
        // So little that no force comes to its limit.
        for (initial, target) in episode.initial.iter_mut().zip(&mut episode.target) {
            *initial *= 1e-3;
            *target *= 1e-3;
        }
        let task = Task {
            entry: &ENTRY,
            problem: &problem,
            agents: 4,
            episodes: &[episode.clone()],
            crash: None,
            policy: None,
            runs: 2000,
        };
        let found = task.plan().unwrap().remove(0);
        let config = ENTRY.recipe.full(&problem).policy;
        let field = ENTRY.physics.step_by_hand::<f64>(&problem).unwrap();
        let steps = problem.scored_steps();
        let planner = Planner {
            closed_loop: HostLoop::new(&problem, field.unwrap(), steps, &config).unwrap(),
            parameters: None,
            runs: 0,
            bar: ProgressBar::hidden(),
        };
        let trial = Trial::plain(&problem, 4, episode);
        let square = |shares: &[f64]| {
            let plan: Vec<f64> = shares.iter().map(|share| share.atanh()).collect();
            planner.score(&plan, &trial)
        };
        let least = least(square, found.plan.len());
        assert!(found.converged, "{found:?}");
        assert!(
            found.plan.iter().all(|action| action.abs() < 2.0),
            "{found:?}"
        );
        assert!(least < 0.9 * found.idle, "{least:e} of {:e}", found.idle);
        assert!(
            (found.best / least - 1.0).abs() < 0.01,
            "{:e} instead of {least:e}",
            found.best
        );
    }
}
