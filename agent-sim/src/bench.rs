//! How fast things are, and how their cost grows.
//!
//! Every figure is the median of repeated timings: on a machine that does other work too, the mean
//! tells about that work. Exponents are the slope of a straight line through the logarithms of size
//! and cost.

use crate::controller::{Controller, Experiment};
use crate::episode::RunError;
use crate::link::{Framed, InProcess, Link};
use crate::proportional::{Law, ProportionalAgent};
use crate::sense::{Eye, Panorama, View};
use agent_core::message::Observation;
use agent_core::policy::Policy;
use artifacts::policy_file::PolicyFile;
use problem::metrics::Spread;
use problem::resample::on_grid;
use problem::{BadProblem, Episode, ErrorSensing, Problem, Proportional};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Steepest growth of a control step's cost with the number of agents, from a thousand on: each
/// agent is paid for once, whatever the size of the swarm.
pub const AGENTS_BAR: f64 = 1.05;
/// Steepest growth of a solver step's cost with the number of grid points, transforms' logarithm
/// included.
pub const POINTS_BAR: f64 = 1.1;
/// Swarms below this size are dominated by the field and not counted in the fit.
const FIT_FROM: usize = 1000;

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Timings of which the median is taken.
    pub repeats: usize,
    /// Each lasts at least so long.
    pub seconds: f64,
    /// Sizes of swarms.
    pub swarms: &'static [usize],
    /// Steps of all agents together that the cost of a swarm is taken from.
    pub agent_steps: usize,
}

impl Effort {
    /// For figures to be quoted: about a minute for a problem on a line.
    pub const FULL: Self = Self {
        repeats: 15,
        seconds: 0.1,
        swarms: &[100, 1000, 10_000, 100_000, 1_000_000],
        agent_steps: 3_000_000,
    };
    /// To see that everything works: a second or so.
    pub const QUICK: Self = Self {
        repeats: 5,
        seconds: 0.01,
        swarms: &[100, 1000, 3000, 10_000],
        agent_steps: 30_000,
    };

    /// Median seconds of one call.
    pub fn time(&self, mut work: impl FnMut()) -> f64 {
        // The first call warms up and tells how many fit into one timing.
        let once = seconds(&mut work);
        let calls = (self.seconds / once.max(1e-9)).clamp(1.0, 1e7) as usize;
        let each = (0..self.repeats).map(|_| {
            let all = seconds(|| (0..calls).for_each(|_| work()));
            all / calls as f64
        });
        Spread::of(each).median
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// What the processor calls itself.
    pub cpu: String,
    /// Processors that the system offers.
    pub cores: usize,
    /// Threads that swarms of several groups are spread over.
    pub threads: usize,
}

impl Machine {
    /// The one this runs on.
    pub fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            cpu: model
                .map_or(std::env::consts::ARCH, |(_, name)| name.trim())
                .to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            threads: rayon::current_num_threads(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            cores,
            threads,
        } = self;
        write!(f, "{cpu}, {cores} cores, {threads} threads")
    }
}

/// How fast a problem is, as published.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Name of the problem.
    pub problem: &'static str,
    /// Its grid.
    pub grid: String,
    /// Solver steps in one control interval.
    pub substeps: usize,
    /// Number of agents.
    pub agents: usize,
    /// What they run: the shipped policy, or proportional feedback where there is none.
    pub controller: &'static str,
    /// Control intervals of the field alone, per second.
    pub pde_steps_per_s: f64,
    /// Steps of one agent alone, per second and thread.
    pub agent_steps_per_s: f64,
    /// What frames both ways add to a step of an agent with a policy, in microseconds.
    pub framing_us: Option<f64>,
    /// Control intervals of the closed loop, per second.
    pub control_steps_per_s: f64,
    /// Seconds of one whole episode, its preparation included.
    pub episode_s: f64,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {:.3e} PDE steps/s, {:.3e} agent steps/s ({}), {:.3e} control steps/s with {} agents",
            self.problem,
            self.pde_steps_per_s,
            self.agent_steps_per_s,
            self.controller,
            self.control_steps_per_s,
            self.agents
        )
    }
}

/// How cost grows with size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// Name of the problem.
    pub problem: &'static str,
    /// What grows: `agents` or `grid points`.
    pub with: &'static str,
    /// Cost by size.
    pub costs: Vec<Cost>,
    /// The smallest size that the exponent is fitted to.
    pub from: usize,
    /// Slope of log cost over log size.
    pub exponent: f64,
    /// What it must not exceed.
    pub bar: f64,
    /// Whether it does not.
    pub met: bool,
}

/// One timing of a growing cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Agents or grid points.
    pub size: usize,
    /// Of one control step or one solver step.
    pub seconds: f64,
}

impl Growth {
    fn new(problem: &Problem, with: &'static str, costs: Vec<Cost>, from: usize, bar: f64) -> Self {
        let fitted = costs.iter().filter(|cost| cost.size >= from);
        let exponent = slope(fitted.map(|cost| ((cost.size as f64).ln(), cost.seconds.ln())));
        Self {
            problem: problem.name,
            with,
            costs,
            from,
            exponent,
            bar,
            met: exponent <= bar,
        }
    }

    /// Whether the bar is met, in a word.
    pub fn verdict(&self) -> &'static str {
        match self.met {
            true => "met",
            false => "missed",
        }
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: cost grows with {} to the {:.3} (bar {}: {})",
            self.problem,
            self.with,
            self.exponent,
            self.bar,
            self.verdict()
        )
    }
}

/// Slope of the straight line through points (x, y) that misses them least.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = points.clone().count() as f64;
    let mean = |f: fn((f64, f64)) -> f64| points.clone().map(f).sum::<f64>() / count;
    let (x, y) = (mean(|(x, _)| x), mean(|(_, y)| y));
    let rise: f64 = points.clone().map(|(a, b)| (a - x) * (b - y)).sum();
    let run: f64 = points.map(|(a, _)| (a - x).powi(2)).sum();
    rise / run
}

/// Why something cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The run that was to be timed did not survive.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A finer grid is refused.
    #[error("{0}")]
    Grid(#[from] BadProblem),
}

/// A problem's own agents: the shipped policy, or proportional feedback where there is none.
struct Team {
    shipped: Option<PolicyFile>,
}

impl Team {
    fn of(problem: &Problem) -> Self {
        Self {
            shipped: PolicyFile::shipped(problem).ok(),
        }
    }

    fn policy(&self, problem: &Problem) -> Option<Policy<'_>> {
        self.shipped.as_ref()?.policy(problem).ok()
    }
}

/// The published experiment with another number of agents.
fn experiment<'p>(
    problem: &'p Problem,
    policy: Option<&'p Policy<'p>>,
    agents: usize,
) -> Experiment<'p> {
    Experiment {
        problem,
        controller: match policy {
            Some(policy) => Controller::Policy(policy),
            None => Controller::Proportional(feedback(problem, agents)),
        },
        agents,
        steps: problem.horizon,
        faults: &[],
        seed: 0,
        plant: None,
    }
}

/// An episode like those of the published set.
fn episode(problem: &Problem) -> Episode {
    (problem.draw)(problem, &mut ChaCha8Rng::seed_from_u64(0))
}

/// Measures a problem as published.
pub fn speed(problem: &Problem, effort: &Effort) -> Result<Speed, BenchError> {
    let team = Team::of(problem);
    let policy = team.policy(problem);
    let episode_s = Spread::of(episodes(problem, effort.repeats)?).median;
    let bare = agent_step(problem, policy.as_ref(), effort);
    let framed = policy.as_ref().map(|policy| {
        let link = Framed::new(InProcess::new(policy));
        link_step(problem, View::of(policy), link, effort)
    });
    Ok(Speed {
        problem: problem.name,
        grid: problem.grid.to_string(),
        substeps: problem.substeps,
        agents: problem.agents,
        controller: match policy {
            Some(_) => "policy",
            None => "proportional",
        },
        pde_steps_per_s: 1.0 / pde_step(problem, effort),
        agent_steps_per_s: 1.0 / bare,
        framing_us: framed.map(|framed| 1e6 * (framed - bare)),
        control_steps_per_s: problem.horizon as f64 / episode_s,
        episode_s,
    })
}

/// Seconds of each of `count` whole episodes of the published experiment.
pub fn episodes(problem: &Problem, count: usize) -> Result<Vec<f64>, BenchError> {
    let team = Team::of(problem);
    let policy = team.policy(problem);
    let experiment = experiment(problem, policy.as_ref(), problem.agents);
    let episode = episode(problem);
    experiment.run(&episode, &mut |_| {})?;
    (0..count)
        .map(|_| {
            let began = Instant::now();
            black_box(experiment.run(&episode, &mut |_| {})?);
            Ok(began.elapsed().as_secs_f64())
        })
        .collect()
}

/// Seconds of one control interval of the field alone.
fn pde_step(problem: &Problem, effort: &Effort) -> f64 {
    let initial = on_grid(problem, &episode(problem).initial);
    let initial: Vec<f64> = initial.into_iter().map(f64::from).collect();
    let force = vec![0.0; problem.components() * problem.grid.len()];
    let mut stepper = (problem.stepper)(problem, 1);
    let mut field = initial.clone();
    let mut steps = 0;
    effort.time(|| {
        // Left alone for long, fields decay to numbers that processors are slow with.
        if steps % problem.horizon == 0 {
            field.copy_from_slice(&initial);
        }
        steps += 1;
        stepper.step(black_box(&mut field), &force);
    })
}

/// The tuned feedback; for timing, any will do.
fn feedback(problem: &Problem, agents: usize) -> Proportional {
    problem.baseline_for(agents).unwrap_or(Proportional {
        gain: 1.0,
        sensing: ErrorSensing::Kernel,
    })
}

/// Seconds of one step of one agent.
fn agent_step(problem: &Problem, policy: Option<&Policy<'_>>, effort: &Effort) -> f64 {
    match policy {
        Some(policy) => link_step(problem, View::of(policy), InProcess::new(policy), effort),
        None => {
            let law = Law::new(problem, feedback(problem, problem.agents));
            link_step(problem, law.view(), ProportionalAgent::new(&law, 0), effort)
        }
    }
}

/// Seconds in which an agent that is shown the same patch again and again answers.
pub fn link_step(problem: &Problem, view: View, mut link: impl Link, effort: &Effort) -> f64 {
    let Episode {
        initial, target, ..
    } = episode(problem);
    let place = (problem.placement)(problem, problem.agents)[0].map(|x| x as f32);
    let mut eye = Eye::new(view, problem);
    let mut panorama = Panorama::new(view, problem);
    let [initial, target] =
        [initial, target].map(|state| problem.all_seen(&state).collect::<Vec<_>>().concat());
    panorama.take(&problem.sensors, &initial, &target);
    let patch = panorama.beside(eye.look(problem, &initial, &target, place));
    let mut now_us = 0;
    effort.time(|| {
        now_us += (problem.control_interval * 1e6) as u64;
        let observation = Observation {
            now_us,
            position: place,
            patch,
        };
        let answer = link.send(&observation).and_then(|()| link.receive(now_us));
        let _ = black_box(answer);
    })
}

/// The cost of a control step by the number of agents.
pub fn growth_with_agents(problem: &Problem, effort: &Effort) -> Result<Growth, BenchError> {
    let team = Team::of(problem);
    let policy = team.policy(problem);
    let episode = episode(problem);
    let mut costs = Vec::new();
    for &size in effort.swarms {
        let experiment = Experiment {
            // The first step warms up.
            steps: 1 + (effort.agent_steps / size).clamp(2, 300),
            ..experiment(problem, policy.as_ref(), size)
        };
        let mut ends = Vec::new();
        experiment.run(&episode, &mut |_| ends.push(Instant::now()))?;
        let steps = ends[1..].windows(2).map(|w| (w[1] - w[0]).as_secs_f64());
        costs.push(Cost {
            size,
            seconds: Spread::of(steps).median,
        });
    }
    Ok(Growth::new(problem, "agents", costs, FIT_FROM, AGENTS_BAR))
}

/// The cost of a solver step by the number of grid points: the published grid, and two and four
/// times as many points along each axis.
pub fn growth_with_points(problem: &Problem, effort: &Effort) -> Result<Growth, BenchError> {
    let mut costs = Vec::new();
    for times in [1, 2, 4] {
        let finer = problem.with_grid(times * problem.sensors.points[0])?;
        let (_, substeps) = finer.solver_steps(1);
        costs.push(Cost {
            size: finer.grid.len(),
            seconds: pde_step(&finer, effort) / substeps as f64,
        });
    }
    Ok(Growth::new(problem, "grid points", costs, 0, POINTS_BAR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    #[test]
    fn a_power_law_shows_its_exponent() {
        // cost = 3 n^1.5, except below the sizes that count.
        let cost = |size: usize| Cost {
            size,
            seconds: 3.0 * (size as f64).powf(1.5),
        };
        let mut costs = vec![cost(1000), cost(4000), cost(100_000)];
        costs.insert(
            0,
            Cost {
                size: 10,
                seconds: 1.0,
            },
        );
        let growth = Growth::new(&PROBLEM, "agents", costs, 1000, 1.4);
        assert!((growth.exponent - 1.5).abs() < 1e-12, "{growth}");
        assert!(!growth.met && growth.to_string().contains("missed"));
    }

    #[test]
    fn timings_are_of_one_call() {
        let effort = Effort {
            repeats: 3,
            seconds: 1e-3,
            ..Effort::QUICK
        };
        let pause = std::time::Duration::from_micros(200);
        let found = effort.time(|| std::thread::sleep(pause));
        assert!(found >= pause.as_secs_f64(), "{found}");
        // A sleep may be late, but not by a whole second.
        assert!(found < 1.0, "{found}");
    }
}
