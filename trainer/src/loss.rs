//! The terms of the training loss, unweighted, with their adjoints.
//!
//! Every term is a mean over time and over grid points or agents. Positions and fields count from
//! step 1 to the horizon, actions from step 0 to horizon − 1.

use crate::adjoint::real::Real;
use agent_sim::problem::{LossWeights, Problem};

/// The terms, in the order in which a rollout returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Squared error to the target.
    Track,
    /// Squared force plus a share of the squared velocity.
    Effort,
    /// Squared intrusion into the margin along the walls.
    Bound,
    /// Squared shortfall of the distance between two agents.
    Collision,
    /// Squared change of velocity between two steps.
    Acceleration,
    /// Squared error to the target after the last step: the score, not part of the published loss.
    Final,
}

impl Term {
    /// All of them, in order.
    pub const ALL: [Term; 6] = [
        Term::Track,
        Term::Effort,
        Term::Bound,
        Term::Collision,
        Term::Acceleration,
        Term::Final,
    ];

    /// How logs and reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Term::Track => "track",
            Term::Effort => "effort",
            Term::Bound => "bound",
            Term::Collision => "collision",
            Term::Acceleration => "acceleration",
            Term::Final => "final",
        }
    }
}

/// Number of terms.
pub const TERMS: usize = Term::ALL.len();

/// Weights of [`Term::ALL`], as published.
pub fn weights(loss: &LossWeights) -> [f64; TERMS] {
    Term::ALL.map(|term| match term {
        Term::Track => loss.track,
        Term::Effort => loss.effort,
        Term::Bound => loss.bound,
        Term::Collision => loss.collision,
        Term::Acceleration => loss.acceleration,
        Term::Final => 0.0,
    })
}

/// Sums the terms of one episode.
#[derive(Debug, Clone)]
pub struct Score<T> {
    velocity_effort: T,
    /// Positions that are not yet in the margin.
    free: [T; 2],
    safe_distance: T,
    /// 1 / number of summed values, per term.
    share: [f64; TERMS],
}

impl<T: Real> Score<T> {
    /// For episodes of `horizon` steps with `agents` agents.
    pub fn new(problem: &Problem, agents: usize, horizon: usize) -> Self {
        let [[low, _], [high, _]] = problem.reach;
        let loss = &problem.loss;
        let per = |count: usize| 1.0 / count.max(1) as f64;
        Self {
            velocity_effort: T::of(loss.velocity_effort),
            free: [T::of(low + loss.margin), T::of(high - loss.margin)],
            safe_distance: T::of(loss.safe_distance),
            share: Term::ALL.map(|term| match term {
                Term::Track => per(horizon * problem.grid.len()),
                Term::Effort | Term::Bound => per(horizon * agents),
                Term::Collision => per(horizon * agents * agents),
                Term::Acceleration => per((horizon - 1) * agents),
                Term::Final => per(problem.grid.len()),
            }),
        }
    }

    fn add(&self, terms: &mut [f64; TERMS], term: Term, sum: T) {
        terms[term as usize] += sum.wide() * self.share[term as usize];
    }

    /// The share of a single value of `term` in the loss, given the terms' gradient.
    fn pull(&self, g: &[f64; TERMS], term: Term) -> T {
        T::of(g[term as usize] * self.share[term as usize])
    }

    /// Adds the field after a step.
    pub fn field(&self, error: &[T], last: bool, terms: &mut [f64; TERMS]) {
        let sum = error.iter().map(|&e| e * e).sum();
        self.add(terms, Term::Track, sum);
        if last {
            self.add(terms, Term::Final, sum);
        }
    }

    /// Adjoint of [`Self::field`]: adds to the field's gradient.
    pub fn field_adjoint(&self, error: &[T], last: bool, g: &[f64; TERMS], g_field: &mut [T]) {
        let mut pull = self.pull(g, Term::Track);
        if last {
            pull += self.pull(g, Term::Final);
        }
        for (g, &e) in g_field.iter_mut().zip(error) {
            *g += (pull + pull) * e;
        }
    }

    /// How far `x` is inside a margin, signed by the side: negative at the low wall.
    fn intrusion(&self, x: T) -> T {
        x - x.within(self.free[0], self.free[1])
    }

    /// Adds the positions after a step.
    pub fn positions(&self, positions: &[T], terms: &mut [f64; TERMS]) {
        let bound = positions
            .iter()
            .map(|&x| self.intrusion(x) * self.intrusion(x))
            .sum();
        let mut collision = T::ZERO;
        for (i, &a) in positions.iter().enumerate() {
            for &b in &positions[i + 1..] {
                let short = self.safe_distance - (a - b).magnitude();
                if short > T::ZERO {
                    collision += short * short;
                }
            }
        }
        self.add(terms, Term::Bound, bound);
        // Each pair counts in both orders.
        self.add(terms, Term::Collision, collision + collision);
    }

    /// Adjoint of [`Self::positions`]: adds to the positions' gradient.
    pub fn positions_adjoint(&self, positions: &[T], g: &[f64; TERMS], g_positions: &mut [T]) {
        let pull = self.pull(g, Term::Bound);
        for (g, &x) in g_positions.iter_mut().zip(positions) {
            *g += (pull + pull) * self.intrusion(x);
        }
        let pull = self.pull(g, Term::Collision) * T::of(4.0);
        for i in 0..positions.len() {
            for j in i + 1..positions.len() {
                let gap = positions[i] - positions[j];
                let short = self.safe_distance - gap.magnitude();
                // Two agents at the same place have no direction to part in.
                if short > T::ZERO && gap != T::ZERO {
                    let push = pull * short * if gap > T::ZERO { T::ONE } else { -T::ONE };
                    g_positions[i] -= push;
                    g_positions[j] += push;
                }
            }
        }
    }

    /// Adds the actions of a step: force and velocity of each agent.
    pub fn actions(&self, actions: impl Iterator<Item = (T, T)>, terms: &mut [f64; TERMS]) {
        let sum = actions
            .map(|(u, v)| u * u + self.velocity_effort * v * v)
            .sum();
        self.add(terms, Term::Effort, sum);
    }

    /// Adjoint of [`Self::actions`] for one agent: gradients of its force and velocity.
    pub fn action_adjoint(&self, force: T, velocity: T, g: &[f64; TERMS]) -> (T, T) {
        let pull = self.pull(g, Term::Effort);
        let pull = pull + pull;
        (pull * force, pull * self.velocity_effort * velocity)
    }

    /// Adds the change of velocities since the step before.
    pub fn change(&self, changes: impl Iterator<Item = T>, terms: &mut [f64; TERMS]) {
        let sum = changes.map(|c| c * c).sum();
        self.add(terms, Term::Acceleration, sum);
    }

    /// Adjoint of [`Self::change`] for one agent: the gradient of its change.
    pub fn change_adjoint(&self, change: T, g: &[f64; TERMS]) -> T {
        let pull = self.pull(g, Term::Acceleration);
        (pull + pull) * change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use agent_sim::problem::heat_1d::PROBLEM;

    const G: [f64; TERMS] = [5.0, 0.001, 100.0, 1.0, 0.1, 0.7];

    fn weighted(terms: [f64; TERMS]) -> f64 {
        terms.iter().zip(G).map(|(t, g)| t * g).sum()
    }

    #[test]
    fn terms_are_means() {
        let score = Score::<f64>::new(&PROBLEM, 2, 1);
        let mut terms = [0.0; TERMS];
        score.field(&[0.5; 100], true, &mut terms);
        score.positions(&[0.0, 0.01], &mut terms);
        score.actions([(3.0, 2.0), (1.0, 0.0)].into_iter(), &mut terms);
        let want = [
            0.25,
            (9.0 + 0.1 * 4.0 + 1.0) / 2.0,
            (0.02f64.powi(2) + 0.01f64.powi(2)) / 2.0,
            2.0 * 0.04f64.powi(2) / 4.0,
            0.0,
            0.25,
        ];
        for (got, want) in terms.iter().zip(want) {
            assert!((got - want).abs() < 1e-15, "{terms:?}");
        }
    }

    #[test]
    fn every_term_has_the_adjoint_it_claims() {
        let score = Score::<f64>::new(&PROBLEM, 4, 3);
        let error = wave(100, 0.3, 1.0);
        for last in [false, true] {
            let value = |error: &[f64]| {
                let mut terms = [0.0; TERMS];
                score.field(error, last, &mut terms);
                weighted(terms)
            };
            let mut g = vec![0.0; 100];
            score.field_adjoint(&error, last, &G, &mut g);
            assert_gradient(value, &error, &g, 1e-8);
        }

        let positions = [0.012, 0.04, 0.07, 0.985];
        let value = |positions: &[f64]| {
            let mut terms = [0.0; TERMS];
            score.positions(positions, &mut terms);
            weighted(terms)
        };
        let mut g = [0.0; 4];
        score.positions_adjoint(&positions, &G, &mut g);
        assert_gradient(value, &positions, &g, 1e-7);

        let action = [7.0, -1.5];
        let value = |action: &[f64]| {
            let mut terms = [0.0; TERMS];
            score.actions([(action[0], action[1])].into_iter(), &mut terms);
            score.change([action[1] - 0.3].into_iter(), &mut terms);
            weighted(terms)
        };
        let (g_force, g_velocity) = score.action_adjoint(action[0], action[1], &G);
        let g_change = score.change_adjoint(action[1] - 0.3, &G);
        assert_gradient(value, &action, &[g_force, g_velocity + g_change], 1e-8);
    }
}
