//! Coverage feedback (Lloyd's algorithm): agents spread over the errors, and push where they stand.
//!
//! Every place belongs to the agent that is nearest to it, and every agent goes to the centroid of what
//! is its own, weighted by the |error| there; on the way it pushes against the error that it sees, as in
//! [proportional feedback](crate::proportional). It is the classic answer to the question who looks after what
//! (Cortés, Martínez, Karataş and Bullo, "Coverage control for mobile sensing networks", 2004).
//!
//! Who owns what is decided in one place, which is told the true field, the target and where everybody is. It
//! is told nothing of losses, as proportional feedback is not: a dead agent's cell stays a dead agent's.

use crate::centre::{Centre, Guide, Order, Radio, Whole};
use crate::controller::ControllerKind;
use crate::held::Held;
use crate::link::{Link, LinkError};
use crate::proportional::Law;
use crate::sense::View;
use agent_core::agent::{Action, project};
use agent_core::message::Observation;
use agent_core::policy::Limits;
use artifacts::fitting;
use problem::grid::{Edge, Grid};
use problem::{Drives, Problem, Proportional};
use rayon::prelude::*;

/// Control intervals in which an agent would be at its centroid, if it were fast enough and that stayed.
const LAG: f64 = 10.0;
/// Distances that are worth several threads.
const MANY: usize = 100_000;

/// Coverage feedback on a problem.
#[derive(Debug)]
pub struct Coverage {
    problem: Problem,
    law: Law,
    feedback: Proportional,
    limits: Limits,
}

impl Coverage {
    /// Agents that go where the centroids are and push with this feedback; none where agents stir, who cannot
    /// go anywhere without doing something to the field.
    pub fn new(problem: &Problem, feedback: Proportional) -> Option<Self> {
        (problem.actuation.drives == Drives::Source).then(|| {
            let law = Law::new(problem, feedback);
            Self {
                problem: *problem,
                limits: fitting::header(problem, law.view().window).limits,
                law,
                feedback,
            }
        })
    }
}

impl Guide for Coverage {
    fn kind(&self) -> ControllerKind {
        ControllerKind::COVERAGE
    }

    fn problem(&self) -> &Problem {
        &self.problem
    }

    fn gain(&self) -> Option<f64> {
        Some(self.feedback.gain)
    }

    fn view(&self) -> View {
        self.law.view()
    }

    fn centre(&self, agents: usize) -> Box<dyn Centre> {
        Box::new(Dispatcher {
            problem: self.problem,
            partition: Partition::new(&self.problem),
            weights: Vec::new(),
            ways: vec![[0.0; 2]; agents],
        })
    }

    fn agent<'g>(&'g self, agent: usize, radio: Radio) -> Box<dyn Link + 'g> {
        Box::new(CoverageAgent {
            coverage: self,
            agent,
            radio,
            held: Held::new(&self.problem),
        })
    }
}

/// Tells every agent where to go.
struct Dispatcher {
    problem: Problem,
    partition: Partition,
    weights: Vec<f64>,
    ways: Vec<[f64; 2]>,
}

impl Centre for Dispatcher {
    fn decide(&mut self, whole: &Whole<'_>, orders: &mut [Order]) {
        if self.problem.actuation.velocity_max == 0.0 {
            return;
        }
        let (field, target) = (
            self.problem.seen(whole.state),
            self.problem.seen(whole.target),
        );
        let errors = field.iter().zip(target);
        self.weights.clear();
        self.weights
            .extend(errors.map(|(z, t)| (z - f64::from(*t)).abs()));
        self.partition
            .ways(&self.weights, whole.positions, &mut self.ways);
        let pace = 1.0 / (LAG * self.problem.control_interval);
        for (order, way) in orders.iter_mut().zip(&self.ways) {
            order.velocity = way.map(|x| (pace * x) as f32);
        }
    }
}

/// Who is nearest to what.
#[derive(Debug)]
pub struct Partition {
    grid: Grid,
    places: Vec<[f64; 2]>,
    /// What every point of the grid stands for: less at walls, nothing outside the domain.
    shares: Vec<f64>,
    splits: Vec<Split>,
    sums: Vec<[f64; 3]>,
}

impl Partition {
    /// Of a problem's domain.
    pub fn new(problem: &Problem) -> Self {
        let grid = problem.grid;
        let half = |axis: usize, j: usize| match grid.edges[axis] {
            Edge::Wall if axis < grid.axes && (j == 0 || j + 1 == grid.points[axis]) => 0.5,
            _ => 1.0,
        };
        let [_, columns] = grid.points;
        let wet = problem.weights();
        let wet = wet.as_deref().map(|weights| problem.seen(weights));
        Self {
            grid,
            places: (0..grid.len()).map(|j| grid.place(j)).collect(),
            shares: match wet {
                Some(weights) => weights.to_vec(),
                None => (0..grid.len())
                    .map(|j| half(0, j / columns) * half(1, j % columns))
                    .collect(),
            },
            splits: vec![Split::default(); grid.len()],
            sums: Vec::new(),
        }
    }

    /// The way from every agent to the centroid of what is nearest to it, weighted; nowhere for those who have
    /// nothing of any weight. Of agents at one place the first has all. A point that the line between two
    /// agents passes by within half a spacing is shared by them as that cuts its cell: whole points would make
    /// agents stop wherever a step no longer changes whose they are.
    pub fn ways(&mut self, weights: &[f64], positions: &[[f64; 2]], ways: &mut [[f64; 2]]) {
        let grid = &self.grid;
        let spacing = (0..grid.axes).map(|axis| grid.spacing(axis));
        let spacing = spacing.fold(0.0, f64::max);
        let split = |place: &[f64; 2]| Split::of(grid, spacing, *place, positions);
        let pairs = self.splits.iter_mut().zip(&self.places);
        match self.places.len() * positions.len() < MANY {
            true => pairs.for_each(|(s, place)| *s = split(place)),
            false => (self.splits.par_iter_mut().zip(&self.places))
                .for_each(|(s, place)| *s = split(place)),
        }
        self.sums.clear();
        self.sums.resize(positions.len(), [0.0; 3]);
        let cells = self.splits.iter().zip(&self.places);
        let weights = weights.iter().zip(&self.shares).map(|(w, share)| w * share);
        for ((split, place), weight) in cells.zip(weights) {
            let [first, second] = split.agents;
            for (agent, share) in [(first, split.share), (second, 1.0 - split.share)] {
                let (Some(sum), Some(from)) = (self.sums.get_mut(agent), positions.get(agent))
                else {
                    continue;
                };
                let [x, y] = way(&self.grid, *from, *place);
                for (sum, value) in sum.iter_mut().zip([1.0, x, y]) {
                    *sum += share * weight * value;
                }
            }
        }
        for (way, [weight, x, y]) in ways.iter_mut().zip(&self.sums) {
            *way = match *weight > 0.0 {
                true => [x / weight, y / weight],
                false => [0.0; 2],
            };
        }
    }
}

/// Whose a point of the grid is: the nearest agent's, and some of it the next one's.
#[derive(Debug, Clone, Copy, Default)]
struct Split {
    agents: [usize; 2],
    /// The nearest one's.
    share: f64,
}

impl Split {
    fn of(grid: &Grid, spacing: f64, place: [f64; 2], positions: &[[f64; 2]]) -> Self {
        let square = |a, b| {
            let [x, y] = way(grid, a, b);
            x * x + y * y
        };
        let mut nearest = (0, f64::INFINITY);
        for (agent, position) in positions.iter().enumerate() {
            let apart = square(*position, place);
            if apart < nearest.1 {
                nearest = (agent, apart);
            }
        }
        let mut split = Self {
            agents: [nearest.0; 2],
            share: 1.0,
        };
        for (agent, position) in positions.iter().enumerate() {
            let between = square(positions[nearest.0], *position).sqrt();
            if between == 0.0 {
                continue;
            }
            // How far the point is from the line between the two.
            let off = (square(*position, place) - nearest.1) / (2.0 * between);
            let share = 0.5 + off / spacing;
            if share < split.share {
                split = Self {
                    agents: [nearest.0, agent],
                    share,
                };
            }
        }
        split
    }
}

/// From one place to another, the short way round along periodic axes.
fn way(grid: &Grid, from: [f64; 2], to: [f64; 2]) -> [f64; 2] {
    let mut way = [0.0; 2];
    for axis in 0..grid.axes {
        let apart = to[axis] - from[axis];
        way[axis] = match grid.edges[axis] {
            Edge::Wall => apart,
            Edge::Periodic => {
                let round = grid.extent(axis);
                apart - round * (apart / round).round()
            }
        };
    }
    way
}

/// An agent that pushes where it stands and goes where it is sent, but into no wall and no keep-out disc.
struct CoverageAgent<'g> {
    coverage: &'g Coverage,
    agent: usize,
    radio: Radio,
    held: Held,
}

impl Link for CoverageAgent<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let Coverage {
            problem,
            law,
            limits,
            ..
        } = self.coverage;
        let asked = self.radio.order(self.agent).velocity;
        let (axes, period) = (problem.grid.axes, problem.control_interval as f32);
        let action = Action {
            velocity: project(limits, axes, period, observation.position, asked),
            ..law.action(self.agent, observation)
        };
        self.held.take(action, observation.now_us);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        Ok(Some(self.held.answer(now_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::centre::Desk;
    use crate::swarm::Swarm;
    use problem::published::{heat_1d, heat_2d, heat_2d_obstacles, ks_1d};

    /// Lets agents go to the centroids of a weight, all the way at once, again and again.
    fn settled(
        problem: &Problem,
        weight: impl Fn([f64; 2]) -> f64,
        mut positions: Vec<[f64; 2]>,
    ) -> Vec<[f64; 2]> {
        let grid = &problem.grid;
        let weights: Vec<f64> = (0..grid.len()).map(|j| weight(grid.place(j))).collect();
        let mut partition = Partition::new(problem);
        let mut ways = vec![[0.0; 2]; positions.len()];
        for _ in 0..300 {
            partition.ways(&weights, &positions, &mut ways);
            for (position, way) in positions.iter_mut().zip(&ways) {
                for (x, step) in position.iter_mut().zip(way) {
                    *x += step;
                }
            }
        }
        positions
    }

    /// Fails unless agents are within a cell of where they should be: sums over points are no integrals.
    fn assert_near(problem: &Problem, found: &[[f64; 2]], expected: &[[f64; 2]]) {
        for (found, expected) in found.iter().zip(expected) {
            for axis in 0..problem.grid.axes {
                let off = (found[axis] - expected[axis]).abs();
                assert!(off < problem.grid.spacing(axis), "{found:?} {expected:?}");
            }
        }
    }

    #[test]
    fn under_an_even_error_agents_spread_evenly_between_walls() {
        let line = &heat_1d::PROBLEM;
        let start = [0.1, 0.15, 0.2, 0.9].map(|x| [x, 0.0]).to_vec();
        let expected = [0.125, 0.375, 0.625, 0.875].map(|x| [x, 0.0]);
        assert_near(line, &settled(line, |_| 1.0, start), &expected);

        let plate = &heat_2d::PROBLEM;
        let start = vec![[0.1, 0.2], [0.2, 0.9], [0.6, 0.1], [0.7, 0.8]];
        let expected = [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]];
        assert_near(plate, &settled(plate, |_| 1.0, start), &expected);
    }

    /// Of the density 2x two agents share [0, 1] at b: their centroids are 2b/3 and
    /// 2 (1 + b + b²) / 3 (1 + b), and b is half-way between them, so b² + b = 1. One alone has 2/3.
    #[test]
    fn agents_settle_at_the_centroids_of_a_ramp() {
        let line = &heat_1d::PROBLEM;
        let two = settled(line, |[x, _]| x, vec![[0.1, 0.0], [0.3, 0.0]]);
        let b = (5f64.sqrt() - 1.0) / 2.0;
        let second = 2.0 * (1.0 + b + b * b) / (3.0 * (1.0 + b));
        assert_near(line, &two, &[[2.0 * b / 3.0, 0.0], [second, 0.0]]);

        let plate = &heat_2d::PROBLEM;
        let one = settled(plate, |[x, _]| x, vec![[0.1, 0.9]]);
        assert_near(plate, &one, &[[2.0 / 3.0, 0.5]]);
    }

    /// The weight lies across the seam of the ring, one unit to each side.
    #[test]
    fn on_a_ring_the_short_way_leads_across_the_seam() {
        let ring = &ks_1d::PROBLEM;
        let round = ring.grid.extent(0);
        let weight = |[x, _]: [f64; 2]| f64::from(u8::from(x.min(round - x) < 1.0));
        let end = settled(ring, weight, vec![[round - 3.0, 0.0]])[0][0];
        assert!((end - round).abs() < ring.grid.spacing(0), "{end}");
    }

    #[test]
    fn agents_without_any_error_of_their_own_stay() {
        let line = &heat_1d::PROBLEM;
        let start = vec![[0.2, 0.0], [0.2, 0.0], [0.6, 0.0]];
        let end = settled(line, |_| 0.0, start.clone());
        assert_eq!(end, start);
        // Of two at one place the first has what is nearest to both.
        let weight = |j| f64::from(u8::from(line.grid.place(j)[0] < 0.3));
        let weights: Vec<f64> = (0..line.grid.len()).map(weight).collect();
        let mut ways = vec![[1.0; 2]; 3];
        Partition::new(line).ways(&weights, &start, &mut ways);
        assert!(ways[0][0] < 0.0 && ways[1..] == [[0.0; 2]; 2], "{ways:?}");
    }

    /// Over their links, with the speed that they have: at 2 a second and a step a millisecond the last of them
    /// is 400 steps on its way.
    #[test]
    fn agents_go_where_they_are_sent_no_faster_than_they_can() {
        let problem = &heat_1d::PROBLEM;
        let law = problem.coverage_for(4).unwrap();
        let coverage = Coverage::new(problem, law).unwrap();
        let mut desk = Desk::new(&coverage, 4);
        let links = (0..4).map(|agent| coverage.agent(agent, desk.radio()));
        let start = [0.02, 0.04, 0.06, 0.08].map(|x| [x, 0.0]).to_vec();
        let mut swarm = Swarm::new(problem, coverage.view(), links.collect(), start);
        let points = problem.grid.len();
        let (field, target) = (vec![1.0; points], vec![0.0; points]);
        let mut force = vec![0.0; points];
        for step in 0..1200 {
            let before = swarm.positions().to_vec();
            desk.decide(&Whole {
                step,
                state: &field,
                target: &target,
                positions: &before,
            });
            swarm.act(&vec![1.0; points], &target, 1000 * step as u64, &mut force);
            swarm.travel(problem.control_interval);
            for (before, after) in before.iter().zip(swarm.positions()) {
                assert!((after[0] - before[0]).abs() <= 2.0001e-3);
            }
        }
        let expected = [0.125, 0.375, 0.625, 0.875].map(|x| [x, 0.0]);
        assert_near(problem, swarm.positions(), &expected);
    }

    /// The middle disc holds the centroid, so the agent is sent into it with every step.
    #[test]
    fn nobody_enters_a_keep_out_disc_on_the_way() {
        let problem = &heat_2d_obstacles::PROBLEM;
        let coverage = Coverage::new(problem, problem.coverage_for(1).unwrap()).unwrap();
        let mut desk = Desk::new(&coverage, 1);
        let link = coverage.agent(0, desk.radio());
        let mut swarm = Swarm::new(problem, coverage.view(), vec![link], vec![[0.2, 0.5]]);
        let points = problem.grid.len();
        let (field, target) = (vec![1.0; points], vec![0.0; points]);
        let mut force = vec![0.0; points];
        for step in 0..300 {
            let positions = swarm.positions().to_vec();
            desk.decide(&Whole {
                step,
                state: &field,
                target: &target,
                positions: &positions,
            });
            swarm.act(&vec![1.0; points], &target, 1000 * step as u64, &mut force);
            let cost = swarm.travel(problem.control_interval);
            assert_eq!(cost.intruders, 0, "step {step}: {:?}", swarm.positions());
        }
        let [x, y] = swarm.positions()[0];
        let off = (x - 0.5).hypot(y - 0.5);
        assert!((0.06..0.062).contains(&off), "it stands at the rim: {off}");
    }
}
