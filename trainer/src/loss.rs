//! The terms of the training loss, unweighted, with their adjoints.
//!
//! Every term is a mean over time and over grid points or agents. Positions and fields count from
//! step 1 to the horizon, actions from step 0 to horizon − 1.

use crate::adjoint::elementwise::sum_of_squares;
use crate::adjoint::real::Real;
use problem::{Drives, LossWeights, Problem};
use pulp::Arch;

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
    /// Squared shortfall of the distance to a keep-out zone.
    Obstacle,
    /// Squared distance between the centres of mass of field and target, in domain lengths: where
    /// the two do not overlap, squared errors do not say which way to go.
    Centroid,
    /// Squared error to the target over the last tenth of the steps: the score, less at the mercy of
    /// a single moment.
    Late,
    /// Logarithm of the squared error after the last step, in units of [`ORDER_FLOOR`], so that it
    /// is never negative: one episode that goes badly does not drown those that could go better.
    Order,
}

impl Term {
    /// All of them, in order.
    pub const ALL: [Term; 10] = [
        Term::Track,
        Term::Effort,
        Term::Bound,
        Term::Collision,
        Term::Acceleration,
        Term::Final,
        Term::Obstacle,
        Term::Centroid,
        Term::Late,
        Term::Order,
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
            Term::Obstacle => "obstacle",
            Term::Centroid => "centroid",
            Term::Late => "late",
            Term::Order => "order",
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
        Term::Obstacle => loss.obstacle,
        Term::Final | Term::Centroid | Term::Late | Term::Order => 0.0,
    })
}

/// Final errors that are smaller than this are as good as none.
pub const ORDER_FLOOR: f64 = 1e-9;

/// Steps that [`Term::Late`] counts.
pub fn late_steps(horizon: usize) -> usize {
    horizon.div_ceil(10)
}

/// 1 / number of values that each of [`Term::ALL`] is the mean of, or the logarithm of a mean.
pub fn shares(problem: &Problem, agents: usize, horizon: usize) -> [f64; TERMS] {
    let per = |count: usize| 1.0 / count.max(1) as f64;
    let grid = problem.state_len();
    let scored = horizon.saturating_sub(problem.scoring.from);
    Term::ALL.map(|term| match term {
        Term::Track => per(scored * grid),
        Term::Effort | Term::Bound => per(horizon * agents),
        Term::Collision => per(horizon * agents * agents),
        Term::Acceleration => per((horizon - 1) * agents),
        Term::Final | Term::Order => per(grid),
        Term::Obstacle => per(horizon * agents * problem.keep_out.len()),
        Term::Centroid => per(horizon),
        Term::Late => per(late_steps(horizon) * grid),
    })
}

/// The terms of an episode, from the sums that [`Score`] made of it and its [`shares`].
pub fn means(sums: &[f64; TERMS], shares: &[f64; TERMS]) -> [f64; TERMS] {
    let mut terms = std::array::from_fn(|k| sums[k] * shares[k]);
    terms[Term::Order as usize] = (terms[Term::Final as usize] / ORDER_FLOOR).ln_1p();
    terms
}

/// Sums up the values that the terms of one episode are [`means`] of, and goes back from their pulls:
/// the terms' gradient times their [`shares`]. Positions and velocities are [agents, axes].
#[derive(Debug, Clone)]
pub struct Score<T> {
    arch: Arch,
    axes: usize,
    /// Grid coordinates in units of the first axis' length.
    coordinates: [Vec<T>; 2],
    velocity_effort: T,
    /// The corners of what is not in the margin.
    free: [[T; 2]; 2],
    safe_distance: T,
    /// Centre of each keep-out zone, and the distance from it that agents should keep.
    zones: Vec<([T; 2], T)>,
    /// Whether the term [`Term::Centroid`] means anything: a density has a centre of mass.
    has_mass: bool,
    /// Steps in all, those before the first that counts, and the last tenth.
    horizon: usize,
    from: usize,
    late: usize,
    /// Roots of how much each value of the state counts; none where all count alike.
    roots: Option<Vec<T>>,
}

impl<T: Real> Score<T> {
    /// For episodes of `horizon` steps.
    pub fn new(problem: &Problem, horizon: usize) -> Self {
        let [low, high] = problem.reach;
        let loss = &problem.loss;
        let zones = problem.keep_out.iter().map(|disc| {
            let distance = disc.radius + loss.obstacle_margin;
            (disc.centre.map(T::of), T::of(distance))
        });
        Self {
            arch: Arch::new(),
            axes: problem.grid.axes,
            coordinates: [0, 1].map(|axis| {
                let points = 0..problem.grid.points[axis];
                points
                    .map(|j| T::of(problem.grid.coordinate(axis, j) / problem.grid.extent(0)))
                    .collect()
            }),
            velocity_effort: T::of(loss.velocity_effort),
            free: [
                low.map(|x| T::of(x + loss.margin)),
                high.map(|x| T::of(x - loss.margin)),
            ],
            safe_distance: T::of(loss.safe_distance),
            zones: zones.collect(),
            has_mass: problem.actuation.drives == Drives::Flow,
            horizon,
            from: problem.scoring.from,
            late: late_steps(horizon),
            roots: problem
                .weights()
                .map(|weights| weights.into_iter().map(|w| T::of(w.sqrt())).collect()),
        }
    }

    fn add(&self, sums: &mut [f64; TERMS], term: Term, sum: T) {
        sums[term as usize] += sum.wide();
    }

    fn pull(&self, pulls: &[f64; TERMS], term: Term) -> T {
        T::of(pulls[term as usize])
    }

    /// The errors whose squares are summed: those of the state, scaled by how much each counts.
    pub fn errors(&self, state: &[T], target: &[T], error: &mut [T]) {
        for ((e, &z), &t) in error.iter_mut().zip(state).zip(target) {
            *e = z - t;
        }
        if let Some(roots) = &self.roots {
            error.iter_mut().zip(roots).for_each(|(e, &r)| *e = *e * r);
        }
    }

    /// Adds the state after step `step`, counted from 0, of these [`errors`](Self::errors) to `target`.
    pub fn field(&self, error: &[T], target: &[T], step: usize, sums: &mut [f64; TERMS]) {
        let mut sum = T::ZERO;
        sum_of_squares(self.arch, error, &mut sum);
        if step >= self.from {
            self.add(sums, Term::Track, sum);
        }
        if step + self.late >= self.horizon {
            self.add(sums, Term::Late, sum);
        }
        if step + 1 == self.horizon {
            self.add(sums, Term::Final, sum);
        }
        if self.has_mass {
            let Moments { gap, .. } = self.moments(error, target);
            self.add(sums, Term::Centroid, gap[0] * gap[0] + gap[1] * gap[1]);
        }
    }

    /// Adjoint of [`Self::field`]: adds to the field's gradient.
    pub fn field_adjoint(
        &self,
        error: &[T],
        target: &[T],
        step: usize,
        pulls: &[f64; TERMS],
        g_field: &mut [T],
    ) {
        let mut pull = match step >= self.from {
            true => self.pull(pulls, Term::Track),
            false => T::ZERO,
        };
        if step + self.late >= self.horizon {
            pull += self.pull(pulls, Term::Late);
        }
        if step + 1 == self.horizon {
            pull += self.pull(pulls, Term::Final);
            let mut sum = T::ZERO;
            sum_of_squares(self.arch, error, &mut sum);
            let mean = sum.wide() / error.len() as f64;
            pull += self.pull(pulls, Term::Order) / T::of(mean + ORDER_FLOOR);
        }
        match &self.roots {
            None => {
                for (g, &e) in g_field.iter_mut().zip(error) {
                    *g += (pull + pull) * e;
                }
            }
            Some(roots) => {
                for ((g, &e), &root) in g_field.iter_mut().zip(error).zip(roots) {
                    *g += (pull + pull) * root * e;
                }
            }
        }
        let pull = self.pull(pulls, Term::Centroid);
        if self.has_mass && pull != T::ZERO {
            // c = Σ x z / Σ z, so ∂c/∂z_j = (x_j − c) / Σ z.
            let Moments { mass, centre, gap } = self.moments(error, target);
            let pull = (pull + pull) / mass;
            let [xs, ys] = &self.coordinates;
            for (&x, row) in xs.iter().zip(g_field.chunks_exact_mut(ys.len())) {
                let across = gap[0] * (x - centre[0]);
                for (&y, g) in ys.iter().zip(row) {
                    *g += pull * (across + gap[1] * (y - centre[1]));
                }
            }
        }
    }

    /// Mass and centre of the field, and how far that is from the target's.
    fn moments(&self, error: &[T], target: &[T]) -> Moments<T> {
        let [xs, ys] = &self.coordinates;
        let (mut sums, mut aims) = ([T::ZERO; 3], [T::ZERO; 3]);
        let rows = error
            .chunks_exact(ys.len())
            .zip(target.chunks_exact(ys.len()));
        for (&x, (error, target)) in xs.iter().zip(rows) {
            let (mut row, mut aim) = ([T::ZERO; 2], [T::ZERO; 2]);
            for (&y, (&e, &t)) in ys.iter().zip(error.iter().zip(target)) {
                row[0] += e + t;
                row[1] = y.fused(e + t, row[1]);
                aim[0] += t;
                aim[1] = y.fused(t, aim[1]);
            }
            for (sums, row) in [(&mut sums, row), (&mut aims, aim)] {
                sums[0] += row[0];
                sums[1] = x.fused(row[0], sums[1]);
                sums[2] += row[1];
            }
        }
        // An empty room has no centre; this keeps the figures finite.
        let mass = |m: T| m + T::of(MASS_FLOOR);
        let centre = |s: [T; 3]| [s[1] / mass(s[0]), s[2] / mass(s[0])];
        let (here, there) = (centre(sums), centre(aims));
        Moments {
            mass: mass(sums[0]),
            centre: here,
            gap: [here[0] - there[0], here[1] - there[1]],
        }
    }

    /// How far `x` is inside a margin, signed by the side: negative at the low wall.
    fn intrusion(&self, axis: usize, x: T) -> T {
        x - x.within(self.free[0][axis], self.free[1][axis])
    }

    /// Adds the positions after a step.
    pub fn positions(&self, positions: &[T], sums: &mut [f64; TERMS]) {
        let axes = self.axes;
        let mut bound = T::ZERO;
        for (k, &x) in positions.iter().enumerate() {
            let beyond = self.intrusion(k % axes, x);
            bound += beyond * beyond;
        }
        self.add(sums, Term::Bound, bound);
        let agents = || positions.chunks_exact(axes);
        if self.safe_distance > T::ZERO {
            let mut collision = T::ZERO;
            for (i, a) in agents().enumerate() {
                for b in agents().skip(i + 1) {
                    if let Some((short, ..)) = shortfall(a, b, self.safe_distance) {
                        collision += short * short;
                    }
                }
            }
            // Each pair counts in both orders.
            self.add(sums, Term::Collision, collision + collision);
        }
        let mut obstacle = T::ZERO;
        for a in agents() {
            for (centre, distance) in &self.zones {
                if let Some((short, ..)) = shortfall(a, centre, *distance) {
                    obstacle += short * short;
                }
            }
        }
        self.add(sums, Term::Obstacle, obstacle);
    }

    /// Adjoint of [`Self::positions`]: adds to the positions' gradient.
    pub fn positions_adjoint(&self, positions: &[T], pulls: &[f64; TERMS], g_positions: &mut [T]) {
        let axes = self.axes;
        let pull = self.pull(pulls, Term::Bound);
        for (k, (g, &x)) in g_positions.iter_mut().zip(positions).enumerate() {
            *g += (pull + pull) * self.intrusion(k % axes, x);
        }
        let agents = || positions.chunks_exact(axes).enumerate();
        if self.safe_distance > T::ZERO {
            let pull = self.pull(pulls, Term::Collision) * T::of(4.0);
            for (i, a) in agents() {
                for (j, b) in agents().skip(i + 1) {
                    if let Some((short, way)) = shortfall(a, b, self.safe_distance) {
                        for axis in 0..axes {
                            let push = pull * short * way[axis];
                            g_positions[i * axes + axis] -= push;
                            g_positions[j * axes + axis] += push;
                        }
                    }
                }
            }
        }
        let pull = self.pull(pulls, Term::Obstacle) * T::of(2.0);
        for (i, a) in agents() {
            for (centre, distance) in &self.zones {
                if let Some((short, way)) = shortfall(a, centre, *distance) {
                    for axis in 0..axes {
                        g_positions[i * axes + axis] -= pull * short * way[axis];
                    }
                }
            }
        }
    }

    /// Adds the actions of a step: all agents' forces and velocities.
    pub fn actions(
        &self,
        forces: impl Iterator<Item = T>,
        velocities: impl Iterator<Item = T>,
        sums: &mut [f64; TERMS],
    ) {
        let force: T = forces.map(|u| u * u).sum();
        let velocity: T = velocities.map(|v| v * v).sum();
        self.add(sums, Term::Effort, force + self.velocity_effort * velocity);
    }

    /// Adjoint of [`Self::actions`]: the gradient of a force is the first times it, that of a
    /// velocity component the second.
    pub fn action_pulls(&self, pulls: &[f64; TERMS]) -> (T, T) {
        let pull = self.pull(pulls, Term::Effort) * T::of(2.0);
        (pull, pull * self.velocity_effort)
    }

    /// Adds the change of velocities since the step before.
    pub fn change(&self, changes: impl Iterator<Item = T>, sums: &mut [f64; TERMS]) {
        let sum = changes.map(|c| c * c).sum();
        self.add(sums, Term::Acceleration, sum);
    }

    /// Adjoint of [`Self::change`]: the gradient of a change is this times it.
    pub fn change_pull(&self, pulls: &[f64; TERMS]) -> T {
        self.pull(pulls, Term::Acceleration) * T::of(2.0)
    }
}

/// Mass that an empty room counts as.
const MASS_FLOOR: f64 = 1e-6;

/// See [`Score::moments`].
struct Moments<T> {
    mass: T,
    centre: [T; 2],
    gap: [T; 2],
}

/// How much nearer than `distance` a is to b, and the unit vector from b to a. None if it is not, or
/// if both are at the same place and have no direction to part in.
fn shortfall<T: Real>(a: &[T], b: &[T], distance: T) -> Option<(T, [T; 2])> {
    let mut way = [T::ZERO; 2];
    for (way, (&a, &b)) in way.iter_mut().zip(a.iter().zip(b)) {
        *way = a - b;
    }
    let square = way[0] * way[0] + way[1] * way[1];
    if square >= distance * distance || square == T::ZERO {
        return None;
    }
    let gap = square.root();
    Some((distance - gap, way.map(|w| w / gap)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use problem::published::heat_1d::PROBLEM;
    use problem::published::{density_2d, heat_2d_obstacles};

    const G: [f64; TERMS] = [5.0, 0.001, 100.0, 1.0, 0.1, 0.7, 30.0, 2.0, 0.4, 0.2];

    /// The loss that a sum makes, and the pulls of that loss.
    fn weighted(sums: [f64; TERMS], shares: &[f64; TERMS]) -> f64 {
        means(&sums, shares).iter().zip(G).map(|(t, g)| t * g).sum()
    }

    fn pulls(shares: &[f64; TERMS]) -> [f64; TERMS] {
        std::array::from_fn(|k| G[k] * shares[k])
    }

    #[test]
    fn terms_are_means() {
        let score = Score::<f64>::new(&PROBLEM, 1);
        let mut terms = [0.0; TERMS];
        score.field(&[0.5; 100], &[0.0; 100], 0, &mut terms);
        score.positions(&[0.0, 0.01], &mut terms);
        score.actions([3.0, 1.0].into_iter(), [2.0, 0.0].into_iter(), &mut terms);
        let terms = means(&terms, &shares(&PROBLEM, 2, 1));
        let want = [
            0.25,
            (9.0 + 0.1 * 4.0 + 1.0) / 2.0,
            (0.02f64.powi(2) + 0.01f64.powi(2)) / 2.0,
            2.0 * 0.04f64.powi(2) / 4.0,
            0.0,
            0.25,
            0.0,
            0.0,
            0.25,
            (0.25 / ORDER_FLOOR).ln_1p(),
        ];
        for (got, want) in terms.iter().zip(want) {
            assert!((got - want).abs() < 1e-15, "{terms:?}");
        }
    }

    /// Rows 16 and 48 of 64 are 32/63 apart; the rest is at the same place.
    #[test]
    fn the_centroid_is_the_distance_of_the_centres_of_mass() {
        let score = Score::<f64>::new(&density_2d::PROBLEM, 1);
        let (mut field, mut target) = (vec![0.0; 64 * 80], vec![0.0; 64 * 80]);
        (field[16 * 80 + 7], target[48 * 80 + 7]) = (2.0, 5.0);
        let error: Vec<f64> = field.iter().zip(&target).map(|(z, t)| z - t).collect();
        let mut terms = [0.0; TERMS];
        score.field(&error, &target, 0, &mut terms);
        let want = (32.0f64 / 63.0).powi(2);
        assert!((terms[Term::Centroid as usize] - want).abs() < 1e-5 * want);
    }

    #[test]
    fn a_field_has_the_adjoint_it_claims() {
        for (problem, grid) in [(&PROBLEM, 100), (&density_2d::PROBLEM, 64 * 80)] {
            let score = Score::<f64>::new(problem, 3);
            let shares = shares(problem, 4, 3);
            let error = wave(grid, 0.3, 1.0);
            let target: Vec<f64> = wave(grid, 0.01, 1.0).iter().map(|t| 2.0 + t).collect();
            for step in [0, 2] {
                let value = |error: &[f64]| {
                    let mut terms = [0.0; TERMS];
                    score.field(error, &target, step, &mut terms);
                    weighted(terms, &shares)
                };
                let mut g = vec![0.0; grid];
                score.field_adjoint(&error, &target, step, &pulls(&shares), &mut g);
                assert_gradient(value, &error, &g, 1e-6);
            }
        }
    }

    #[test]
    fn positions_and_actions_have_the_adjoints_they_claim() {
        let line = [0.012, 0.04, 0.07, 0.985];
        // Two pairs too close, one agent in the margin, one near a zone at (0.3, 0.3).
        let plane = [0.012, 0.5, 0.05, 0.53, 0.37, 0.31, 0.4, 0.35];
        for (problem, positions) in [
            (&PROBLEM, &line[..]),
            (&heat_2d_obstacles::PROBLEM, &plane[..]),
        ] {
            let score = Score::<f64>::new(problem, 3);
            let shares = shares(problem, 4, 3);
            let value = |positions: &[f64]| {
                let mut terms = [0.0; TERMS];
                score.positions(positions, &mut terms);
                weighted(terms, &shares)
            };
            let mut g = vec![0.0; positions.len()];
            score.positions_adjoint(positions, &pulls(&shares), &mut g);
            assert_gradient(value, positions, &g, 1e-7);
        }

        let score = Score::<f64>::new(&PROBLEM, 3);
        let shares = shares(&PROBLEM, 4, 3);
        let action = [7.0, -1.5];
        let value = |action: &[f64]| {
            let mut terms = [0.0; TERMS];
            score.actions([action[0]].into_iter(), [action[1]].into_iter(), &mut terms);
            score.change([action[1] - 0.3].into_iter(), &mut terms);
            weighted(terms, &shares)
        };
        let (force, velocity) = score.action_pulls(&pulls(&shares));
        let g_change = score.change_pull(&pulls(&shares)) * (action[1] - 0.3);
        let g = [force * action[0], velocity * action[1] + g_change];
        assert_gradient(value, &action, &g, 1e-8);
    }
}
