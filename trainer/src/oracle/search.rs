//! One episode as a function of its plan, and the way down that function: L-BFGS.

use crate::adjoint::real::Real;
use crate::host_loop::HostLoop;
use crate::loss::Term;
use crate::rollout::Terms;
use crate::trial::Trial;
use argmin::core::{CostFunction, Error, Executor, Gradient};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;
use indicatif::ProgressBar;
use problem::Headline;
use std::cell::RefCell;
use std::slice;

/// Weight of the error over all steps beside the error at the end, where plans begin with nothing:
/// where only the end counts, it gives the first actions a gradient to go by.
const ON_THE_WAY: f64 = 0.01;
/// Steps that L-BFGS remembers.
const REMEMBERED: usize = 30;
/// A descent is over when so many runs …
const WINDOW: usize = 50;
/// … have gained less than this share.
const GAIN: f64 = 0.01;
/// How far its first step goes, in the action that it changes most, before tanh.
const FIRST_STEP: f64 = 0.1;

/// An episode whose plan is sought. Plans are [horizon, agents, actions] before tanh.
pub(crate) struct Flight<'a, T: Real> {
    closed_loop: &'a HostLoop<T>,
    trial: &'a Trial,
    /// What is to become small: so much of each term.
    objective: Terms,
    /// Actions at the beginning that stay as they are.
    fixed: usize,
    /// Most runs.
    most: usize,
    bar: &'a ProgressBar,
    log: RefCell<Log>,
}

/// What a search has come to.
#[derive(Debug)]
pub(crate) struct Log {
    /// Episodes run, forwards and backwards.
    pub runs: usize,
    /// The least that the objective came to.
    pub score: f64,
    /// Its plan.
    pub plan: Vec<f64>,
    /// Whether the search ended because it gained no more.
    pub converged: bool,
    /// Of the descent at hand, the least cost,
    cost: f64,
    /// and what it was some runs ago: how many runs there had been, and that cost.
    milestone: (usize, f64),
}

#[derive(Debug, thiserror::Error)]
enum Halt {
    #[error("all runs are spent")]
    Spent,
    #[error("the episode overflowed")]
    Overflow,
    #[error("nothing is gained any more")]
    Settled,
}

impl<'a, T: Real> Flight<'a, T> {
    /// An episode that may be run `most` times, and of whose plan the first `fixed` actions stay.
    /// Every run moves the bar on.
    pub fn new(
        closed_loop: &'a HostLoop<T>,
        trial: &'a Trial,
        objective: Terms,
        (fixed, most): (usize, usize),
        bar: &'a ProgressBar,
    ) -> Self {
        Self {
            closed_loop,
            trial,
            objective,
            fixed,
            most,
            bar,
            log: RefCell::new(Log {
                runs: 0,
                score: f64::INFINITY,
                plan: Vec::new(),
                converged: false,
                cost: f64::INFINITY,
                milestone: (0, f64::INFINITY),
            }),
        }
    }

    /// The best plan that can be found from a start, led by the error on the way at first if that
    /// start is nothing much.
    pub fn seek(self, start: Vec<f64>, led: bool) -> Log {
        self.log.borrow_mut().plan = start;
        if led {
            let mut weights = self.objective;
            weights[Term::Track as usize] += ON_THE_WAY;
            // Clouds that do not overlap their target need to be told where it is.
            weights[Term::Centroid as usize] += ON_THE_WAY;
            self.descend(weights);
        }
        self.descend(self.objective);
        let log = self.log.into_inner();
        self.bar.inc((self.most - log.runs) as u64);
        log
    }

    /// L-BFGS from the best plan there is, again and again with nothing remembered, until that gains
    /// nothing.
    fn descend(&self, weights: Terms) {
        let mut log = self.log.borrow_mut();
        log.converged = false;
        log.cost = f64::INFINITY;
        log.milestone = (log.runs, f64::INFINITY);
        drop(log);
        let mut first_step = FIRST_STEP;
        while !self.over() {
            self.descend_once(weights, first_step);
            // It may have failed because it went too far.
            first_step *= 0.5;
        }
    }

    fn over(&self) -> bool {
        let log = self.log.borrow();
        log.converged || log.runs >= self.most
    }

    fn descend_once(&self, weights: Terms, first_step: f64) {
        let start = self.log.borrow().plan.clone();
        let Ok((cost, gradient)) = self.run(&start, &weights) else {
            return;
        };
        let steepest = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        if steepest == 0.0 {
            self.log.borrow_mut().converged = true;
            return;
        }
        let slope = Slope {
            flight: self,
            weights,
            // The first step of L-BFGS is the gradient as it is.
            scale: first_step / steepest,
            last: RefCell::new((start.clone(), cost, gradient)),
        };
        let solver = LBFGS::new(MoreThuenteLineSearch::new(), REMEMBERED)
            .with_tolerance_grad(0.0)
            .and_then(|solver| solver.with_tolerance_cost(0.0));
        let executor = Executor::new(slope, solver.expect("tolerances that are not negative"))
            .configure(|state| state.param(start))
            .timer(false);
        // However it ends, the best plan is in the log.
        let _ = executor.run();
    }

    /// The weighted terms of a plan and their gradient.
    fn run(&self, plan: &[f64], weights: &Terms) -> Result<(f64, Vec<f64>), Halt> {
        if self.log.borrow().runs >= self.most {
            return Err(Halt::Spent);
        }
        let trials = slice::from_ref(self.trial);
        let cast = plan.iter().map(|&action| T::of(action)).collect();
        let (terms, tape) = self.closed_loop.forward_plans(vec![cast], trials);
        let gradient = self.closed_loop.backward_plans(tape, trials, &[*weights]);
        let mut gradient: Vec<f64> = gradient.into_iter().map(T::wide).collect();
        gradient[..self.fixed].fill(0.0);
        let weighted = |weights: &Terms| weights.iter().zip(&terms[0]).map(|(w, t)| w * t).sum();
        let cost = weighted(weights);
        let mut log = self.log.borrow_mut();
        log.runs += 1;
        self.bar.inc(1);
        if !(f64::is_finite(cost) && gradient.iter().all(|g| g.is_finite())) {
            return Err(Halt::Overflow);
        }
        let score: f64 = weighted(&self.objective);
        if score < log.score {
            log.score = score;
            log.plan = plan.to_vec();
        }
        log.cost = log.cost.min(cost);
        let (then, was) = log.milestone;
        if log.runs >= then + WINDOW || was.is_infinite() {
            log.converged = log.cost > (1.0 - GAIN) * was;
            log.milestone = (log.runs, log.cost);
        }
        match log.converged {
            true => Err(Halt::Settled),
            false => Ok((cost, gradient)),
        }
    }
}

/// The term of the published table.
pub(super) fn scored<T: Real>(closed_loop: &HostLoop<T>) -> Term {
    match closed_loop.problem.scoring.headline {
        Headline::Final => Term::Final,
        Headline::TimeMean => Term::Track,
    }
}

/// The function that L-BFGS descends.
struct Slope<'a, T: Real> {
    flight: &'a Flight<'a, T>,
    weights: Terms,
    scale: f64,
    /// The last plan with its cost and gradient: both come from one run and are asked for one after
    /// the other.
    last: RefCell<(Vec<f64>, f64, Vec<f64>)>,
}

impl<T: Real> Slope<'_, T> {
    /// Runs the episode, unless it is the one that was run last.
    fn see(&self, plan: &[f64]) -> Result<(), Halt> {
        if self.last.borrow().0 != plan {
            let (cost, gradient) = self.flight.run(plan, &self.weights)?;
            self.last.replace((plan.to_vec(), cost, gradient));
        }
        Ok(())
    }
}

impl<T: Real> CostFunction for Slope<'_, T> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, plan: &Vec<f64>) -> Result<f64, Error> {
        self.see(plan)?;
        Ok(self.scale * self.last.borrow().1)
    }
}

impl<T: Real> Gradient for Slope<'_, T> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, plan: &Vec<f64>) -> Result<Vec<f64>, Error> {
        self.see(plan)?;
        Ok(self
            .last
            .borrow()
            .2
            .iter()
            .map(|g| self.scale * g)
            .collect())
    }
}
