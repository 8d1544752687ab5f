//! Looking for the smallest margin.

use crate::campaign::{Points, Sampling, Settings, Space};
use cmaes::{CMAES, CMAESOptions, DVector, ObjectiveFunction, ParallelObjectiveFunction};
use problem::limit;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How candidates are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// All of them in turns.
    Portfolio,
    /// By chance alone: what the others are to be compared with.
    Random,
}

/// How a search went.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trail {
    /// Runs made.
    pub runs: usize,
    /// Those that failed.
    pub failed: usize,
    /// After how many runs the first failed.
    pub first_failure: Option<usize>,
    /// Each point that was worse than all before: after how many runs, its margin and where it is.
    pub worse: Vec<(usize, f64, Vec<f64>)>,
}

impl Trail {
    /// The worst point that was found, and its margin.
    pub fn worst(&self) -> Option<(&[f64], f64)> {
        let (_, margin, point) = self.worse.last()?;
        Some((point, *margin))
    }

    fn note(&mut self, point: &[f64], margin: f64) {
        self.runs += 1;
        if margin < 0.0 {
            self.failed += 1;
            self.first_failure.get_or_insert(self.runs);
        }
        if self.worst().is_none_or(|(_, worst)| margin < worst) {
            self.worse.push((self.runs, margin, point.to_owned()));
        }
    }
}

/// Points that small changes begin with.
const ELITE: usize = 8;
/// Points that are nearer than this along every coordinate are in one place.
const NEAR: f64 = 0.1;
/// Candidates of a turn.
const TURN: usize = 16;
/// Generations without anything worse after which CMA-ES begins elsewhere.
const PATIENCE: usize = 12;

/// Searches until `go_on` says no; it is asked after every turn. `run` gives the margin at a point.
pub fn search(
    space: &Space,
    method: Method,
    seed: u64,
    go_on: &mut dyn FnMut(&Trail) -> bool,
    run: &(dyn Fn(&[f64]) -> f64 + Sync),
) -> Trail {
    let mut hunter = Hunter {
        space,
        rng: ChaCha8Rng::seed_from_u64(seed),
        trail: Trail::default(),
        elite: Vec::new(),
        run,
    };
    let covered = space.searched(Settings {
        runs: limit::RUNS.most,
        sampling: Sampling::Sobol,
        seed,
        ..space.settings.clone()
    });
    let mut covering = Points::from(&covered, 0);
    if space.coordinates == 0 {
        // One scenario is its own worst.
        hunter.take(covering.next().into_iter().collect());
        return hunter.trail;
    }
    let mut descent = Descent::new(run);
    for round in 0usize.. {
        match (method, round % 4) {
            (Method::Random, _) => {
                let points = (0..TURN).map(|_| hunter.anywhere()).collect();
                hunter.take(points);
            }
            (Method::Portfolio, 0) => hunter.take(covering.by_ref().take(TURN).collect()),
            (Method::Portfolio, 2) if space.coordinates > 1 => descent.turn(&mut hunter),
            (Method::Portfolio, _) => {
                let points = (0..TURN).map(|_| hunter.near_the_worst()).collect();
                hunter.take(points);
            }
        }
        if !go_on(&hunter.trail) {
            break;
        }
    }
    hunter.trail
}

struct Hunter<'h> {
    space: &'h Space,
    rng: ChaCha8Rng,
    trail: Trail,
    /// The worst points so far, the worst first.
    elite: Vec<(f64, Vec<f64>)>,
    run: &'h (dyn Fn(&[f64]) -> f64 + Sync),
}

impl Hunter<'_> {
    /// Tries points, side by side if that can be; what is learnt does not depend on which is first done.
    fn take(&mut self, points: Vec<Vec<f64>>) {
        let margins: Vec<f64> = match self.space.alone {
            true => points.iter().map(|point| (self.run)(point)).collect(),
            false => points.par_iter().map(|point| (self.run)(point)).collect(),
        };
        for (point, margin) in points.into_iter().zip(margins) {
            self.learn(point, margin);
        }
    }

    fn learn(&mut self, point: Vec<f64>, margin: f64) {
        self.trail.note(&point, margin);
        // Of those in one place the worst stands for all; else one place would soon be all there is.
        let near = |(_, known): &(f64, Vec<f64>)| {
            let mut apart = known.iter().zip(&point).map(|(a, b)| (a - b).abs());
            apart.all(|distance| distance < NEAR)
        };
        if let Some(known) = self.elite.iter().position(near) {
            if self.elite[known].0 <= margin {
                return;
            }
            self.elite.remove(known);
        }
        let rank = self.elite.partition_point(|(other, _)| *other <= margin);
        self.elite.insert(rank, (margin, point));
        self.elite.truncate(ELITE);
    }

    fn anywhere(&mut self) -> Vec<f64> {
        (0..self.space.coordinates)
            .map(|_| self.rng.random())
            .collect()
    }

    /// One of the worst with something changed: an agent for its neighbour or another one, a number a
    /// little or altogether.
    fn near_the_worst(&mut self) -> Vec<f64> {
        if self.elite.is_empty() {
            return self.anywhere();
        }
        // The worst are taken most often.
        let rank = self
            .rng
            .random_range(0..self.elite.len())
            .min(self.rng.random_range(0..self.elite.len()));
        let mut point = self.elite[rank].1.clone();
        let agents = self.space.agents_at(&point);
        let changes =
            1 + usize::from(self.rng.random_bool(0.4)) + usize::from(self.rng.random_bool(0.2));
        for _ in 0..changes {
            let varied = &self.space.varied[self.rng.random_range(0..self.space.varied.len())];
            let range = varied.range();
            let coordinate = self.rng.random_range(range);
            point[coordinate] = match varied.neighbour(agents) {
                _ if self.rng.random_bool(0.25) => self.rng.random(),
                Some(step) => {
                    let way = [-2.0, -1.0, 1.0, 2.0][self.rng.random_range(0..4)];
                    folded(point[coordinate] + way * step)
                }
                None => {
                    let size = 10f64.powf(-self.rng.random_range(0.5..3.0));
                    let step: f64 = StandardNormal.sample(&mut self.rng);
                    folded(point[coordinate] + size * step)
                }
            };
        }
        point
    }
}

/// A coordinate that went over an end of its range comes back from there.
fn folded(x: f64) -> f64 {
    let x = x.rem_euclid(2.0);
    if x > 1.0 { 2.0 - x } else { x }
}

/// CMA-ES with restarts, each with twice as many in a generation, up to a limit.
struct Descent<'h> {
    run: &'h (dyn Fn(&[f64]) -> f64 + Sync),
    restarts: u32,
    state: Option<CMAES<Objective<'h>>>,
    tried: Tried,
    /// The smallest margin since it last began, and the generations since then.
    best: f64,
    idle: usize,
}

/// Points of a generation and their margins, in no order.
type Tried = Arc<Mutex<Vec<(Vec<f64>, f64)>>>;

/// What CMA-ES makes small.
struct Objective<'h> {
    run: &'h (dyn Fn(&[f64]) -> f64 + Sync),
    tried: Tried,
}

impl ParallelObjectiveFunction for Objective<'_> {
    fn evaluate_parallel(&self, x: &DVector<f64>) -> f64 {
        let point: Vec<f64> = x.iter().map(|x| folded(*x)).collect();
        let margin = (self.run)(&point);
        locked(&self.tried).push((point, margin));
        // Ranks are all that counts, and what is bottomless has to be a number.
        margin.signum() * margin.abs().min(1e9).ln_1p()
    }
}

impl ObjectiveFunction for Objective<'_> {
    fn evaluate(&mut self, x: &DVector<f64>) -> f64 {
        self.evaluate_parallel(x)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'h> Descent<'h> {
    fn new(run: &'h (dyn Fn(&[f64]) -> f64 + Sync)) -> Self {
        Self {
            run,
            restarts: 0,
            state: None,
            tried: Tried::default(),
            best: f64::INFINITY,
            idle: 0,
        }
    }

    /// Begins around a point that is bad already, or anywhere.
    fn begin(&mut self, hunter: &mut Hunter<'_>) {
        let dimensions = hunter.space.coordinates;
        let known = hunter.rng.random_bool(0.5) && !hunter.elite.is_empty();
        let (mean, spread) = match known {
            true => {
                let rank = hunter.rng.random_range(0..hunter.elite.len());
                (hunter.elite[rank].1.clone(), 0.15)
            }
            false => (hunter.anywhere(), 0.3),
        };
        let usual = 4 + (3.0 * (dimensions as f64).ln()) as usize;
        let options = CMAESOptions::new(mean, spread)
            .population_size(usual << self.restarts.min(2))
            .seed(hunter.rng.random());
        let objective = Objective {
            run: self.run,
            tried: Arc::clone(&self.tried),
        };
        self.state = options.build(objective).ok();
        self.restarts += 1;
        (self.best, self.idle) = (f64::INFINITY, 0);
    }

    /// A generation.
    fn turn(&mut self, hunter: &mut Hunter<'_>) {
        if self.state.is_none() {
            self.begin(hunter);
        }
        let Some(state) = &mut self.state else { return };
        let ended = match hunter.space.alone {
            true => state.next().is_some(),
            false => state.next_parallel().is_some(),
        };
        let mut tried = std::mem::take(&mut *locked(&self.tried));
        // Threads end in any order; what is learnt must not depend on it.
        tried.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let best = tried
            .iter()
            .map(|(_, margin)| *margin)
            .fold(f64::INFINITY, f64::min);
        for (point, margin) in tried {
            hunter.learn(point, margin);
        }
        self.idle = if best < self.best { 0 } else { self.idle + 1 };
        self.best = self.best.min(best);
        if ended || self.idle >= PATIENCE {
            self.state = None;
        }
    }
}
