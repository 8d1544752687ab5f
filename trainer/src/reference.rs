//! The closed loop of heat-1d from plain tensor operations.
//!
//! Slow and obvious: the oracle for [`crate::rollout`].

use crate::adjoint::physics::heat_1d::{diffusion_ratio, implicit_inverse};
use crate::loss::{ORDER_FLOOR, TERMS};
use crate::policy::{GAIN, LEAK, PolicyConfig, PolicyModule, Shape};
use burn::tensor::{Device, Int, Tensor, TensorData};
use problem::{Episode, Problem};

/// Terms of every episode, [episodes, terms], unweighted; differentiable in the policy.
pub fn rollout(
    policy: &PolicyModule,
    config: &PolicyConfig,
    problem: &Problem,
    agents: usize,
    horizon: usize,
    episodes: &[Episode],
    device: &Device,
) -> Tensor<2> {
    let rod = Rod::new(problem, agents, episodes.len(), device);
    let mut field = stack(episodes.iter().map(|e| &e.initial), device);
    let target = stack(episodes.iter().map(|e| &e.target), device);
    let start: Vec<f32> = (problem.placement)(problem, agents)
        .into_iter()
        .map(|[x, _]| x as f32)
        .collect();
    let mut positions = matrix(start, [1, agents], device).repeat_dim(0, episodes.len());
    let Shape { memory, .. } = config.shape;
    let mut memories =
        (memory > 0).then(|| Tensor::<2>::zeros([episodes.len() * agents, memory], device));
    let mut velocity_before: Option<Tensor<2>> = None;
    let mut sums: Option<Tensor<2>> = None;
    for step in 0..horizon {
        let windows = rod.observe(
            config.sight.window,
            field.clone() - target.clone(),
            &positions,
            [config.sight.error_gain, config.sight.slope_gain],
        );
        let rows = episodes.len() * agents;
        let inputs = match &memories {
            Some(memories) => Tensor::cat(vec![windows, memories.clone()], 1),
            None => windows,
        };
        let output = policy.forward(&config.shape, inputs, positions.clone().reshape([rows, 1]));
        memories = memories.map(|m| {
            let part = |k: usize| output.clone().narrow(1, k * memory, memory);
            let lost = m.clone() * (part(1) + 1.0) * f64::from(LEAK);
            (m - lost + part(0) * f64::from(GAIN)).clamp(-1.0, 1.0)
        });
        let component = |k: usize, scale: f64| {
            output
                .clone()
                .narrow(1, 2 * memory + k, 1)
                .reshape([episodes.len(), agents])
                * scale
        };
        let force = component(0, problem.actuation.force_max);
        let velocity = component(1, problem.actuation.velocity_max);
        field = rod.diffuse(field, rod.forcing(&positions, force.clone()));
        positions = (positions + velocity.clone() * problem.control_interval)
            .clamp(problem.reach[0][0], problem.reach[1][0]);

        let error = field.clone() - target.clone();
        let track = mean_square(error);
        let effort =
            mean_square(force) + mean_square(velocity.clone()) * problem.loss.velocity_effort;
        let change = match velocity_before.replace(velocity.clone()) {
            Some(before) => mean_square(velocity - before),
            None => effort.zeros_like(),
        };
        let (bound, collision) = rod.proximity(&positions);
        let last = if step + 1 == horizon {
            track.clone()
        } else {
            track.zeros_like()
        };
        let late = match step + horizon.div_ceil(10) >= horizon {
            true => track.clone() / horizon.div_ceil(10) as f64,
            false => track.zeros_like(),
        };
        let terms = Tensor::cat(
            vec![
                track / horizon as f64,
                effort / horizon as f64,
                bound / horizon as f64,
                collision / horizon as f64,
                change / (horizon - 1).max(1) as f64,
                last.clone(),
                last.zeros_like(),
                last.zeros_like(),
                late,
                (last / ORDER_FLOOR).log1p(),
            ],
            1,
        );
        sums = Some(match sums {
            Some(sums) => sums + terms,
            None => terms,
        });
    }
    sums.unwrap_or_else(|| Tensor::zeros([episodes.len(), TERMS], device))
}

/// Mean of squares per row, [rows, 1].
fn mean_square(values: Tensor<2>) -> Tensor<2> {
    (values.clone() * values).mean_dim(1)
}

fn matrix(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn stack<'a>(fields: impl ExactSizeIterator<Item = &'a Vec<f32>>, device: &Device) -> Tensor<2> {
    let rows = fields.len();
    let values: Vec<f32> = fields.flatten().copied().collect();
    let columns = values.len() / rows.max(1);
    matrix(values, [rows, columns], device)
}

/// The rod as matrices.
struct Rod<'a> {
    problem: &'a Problem,
    agents: usize,
    episodes: usize,
    /// Explicit, then implicit half of a step; symmetric up to the walls.
    explicit: Tensor<2>,
    implicit: Tensor<2>,
    coordinates: Tensor<3>,
    /// Central differences, one-sided at the walls.
    slope: Tensor<2>,
    /// 0 where an agent meets itself.
    others: Tensor<3>,
    device: Device,
}

impl<'a> Rod<'a> {
    fn new(problem: &'a Problem, agents: usize, episodes: usize, device: &Device) -> Self {
        let (n, r) = (problem.grid.len(), diffusion_ratio(problem));
        let inside = |j: usize| j > 0 && j < n - 1;
        let square = |entry: &dyn Fn(usize, usize) -> f64| {
            let values = (0..n * n).map(|k| entry(k / n, k % n) as f32).collect();
            matrix(values, [n, n], device)
        };
        // Row: from which point; column: to which.
        let explicit = square(&|from, to| match (inside(to), from.abs_diff(to)) {
            (true, 0) => 1.0 - r,
            (true, 1) => 0.5 * r,
            _ => 0.0,
        });
        let slope = square(&|from, to| {
            let (low, high) = (to.saturating_sub(1), (to + 1).min(n - 1));
            let spread = (high - low) as f64;
            f64::from(u8::from(from == high)) / spread - f64::from(u8::from(from == low)) / spread
        });
        let inverse = implicit_inverse(problem)
            .into_iter()
            .map(|v| v as f32)
            .collect();
        let coordinates = (0..n)
            .map(|j| problem.grid.coordinate(0, j) as f32)
            .collect();
        let others = (0..agents * agents).map(|k| f32::from(u8::from(k / agents != k % agents)));
        Self {
            problem,
            agents,
            episodes,
            explicit,
            implicit: matrix(inverse, [n, n], device),
            coordinates: matrix(coordinates, [1, n], device).reshape([1, 1, n]),
            slope,
            others: matrix(others.collect(), [agents, agents], device).reshape([1, agents, agents]),
            device: device.clone(),
        }
    }

    /// [episodes · agents, features]
    fn observe(
        &self,
        points: usize,
        error: Tensor<2>,
        positions: &Tensor<2>,
        gains: [f64; 2],
    ) -> Tensor<2> {
        let n = self.problem.grid.len();
        let slope = error.clone().matmul(self.slope.clone());
        // The cell has no gradient: it may as well be found on the host.
        let positions: Vec<f32> = positions
            .clone()
            .into_data()
            .convert::<f32>()
            .try_into_vec()
            .expect("just converted to f32");
        let indices: Vec<i32> = positions
            .iter()
            .flat_map(|&x| {
                let cell = self.problem.cell_of([x, 0.0])[0];
                (0..points).map(move |k| (cell + k).saturating_sub(points / 2).min(n - 1) as i32)
            })
            .collect();
        let shape = [self.episodes, self.agents * points];
        let indices = Tensor::<2, Int>::from_data(TensorData::new(indices, shape), &self.device);
        let cut = |field: Tensor<2>, gain: f64| {
            let rows = self.episodes * self.agents;
            field.gather(1, indices.clone()).reshape([rows, points]) * gain
        };
        Tensor::cat(vec![cut(error, gains[0]), cut(slope, gains[1])], 1)
    }

    /// [episodes, grid]
    fn forcing(&self, positions: &Tensor<2>, force: Tensor<2>) -> Tensor<2> {
        let gap = self.coordinates.clone() - positions.clone().unsqueeze_dim::<3>(2);
        let kernel = (gap.clone() * gap * (-0.5 / self.problem.actuation.width.powi(2))).exp();
        (kernel * force.unsqueeze_dim::<3>(2))
            .sum_dim(1)
            .squeeze_dim(1)
    }

    fn diffuse(&self, field: Tensor<2>, forcing: Tensor<2>) -> Tensor<2> {
        let explicit =
            field.matmul(self.explicit.clone()) + forcing * self.problem.control_interval;
        explicit.matmul(self.implicit.clone())
    }

    /// Bound and collision terms of one step, [episodes, 1] each.
    fn proximity(&self, positions: &Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let loss = &self.problem.loss;
        let [[low, _], [high, _]] = self.problem.reach;
        let below = (positions.clone() * -1.0 + (low + loss.margin)).clamp_min(0.0);
        let above = (positions.clone() - (high - loss.margin)).clamp_min(0.0);
        let bound = mean_square(below) + mean_square(above);
        let gap = positions.clone().unsqueeze_dim::<3>(2) - positions.clone().unsqueeze_dim::<3>(1);
        let short = (gap.abs() * -1.0 + loss.safe_distance).clamp_min(0.0) * self.others.clone();
        let pairs = self.agents * self.agents;
        (bound, mean_square(short.reshape([self.episodes, pairs])))
    }
}
