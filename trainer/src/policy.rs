//! The policy every agent carries, as a Burn module.
//!
//! A DeepONet: the *branch* reads the window of the error field around the agent, the *trunk*
//! reads where the agent is, a fusion layer joins them into a force and a velocity.

use agent_sim::problem::Problem;
use burn::module::{Module, Param, ParamId};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

use crate::adjoint::elementwise::NORM_FLOOR;

/// Layer sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Window features: errors, then slopes.
    pub window: usize,
    /// Branch layers, each dense, soft norm, tanh.
    pub branch: [usize; 2],
    /// The trunk reads sin(πfξ) for these f, then cos(πfξ).
    pub frequencies: Vec<f64>,
    /// Trunk layers, each dense, tanh.
    pub trunk: [usize; 2],
    /// Fusion layer on [branch, trunk]: dense, tanh.
    pub fuse: usize,
}

impl Shape {
    /// Force and velocity.
    pub const ACTIONS: usize = 2;

    /// The published network, reading the raw window. (The published one stretches the window from
    /// 8 to 20 points first; that is a linear map in front of a linear layer.)
    pub fn published(problem: &Problem) -> Self {
        Self {
            window: 2 * problem.sensing.window,
            branch: [64, 64],
            frequencies: vec![1.0, 2.0, 4.0, 8.0],
            trunk: [32, 32],
            fuse: 32,
        }
    }

    /// Position features.
    pub fn fourier(&self) -> usize {
        2 * self.frequencies.len()
    }

    /// [inputs, outputs] of the dense layers: branch 1 and 2, trunk 1 and 2, fusion, head.
    pub fn layers(&self) -> [[usize; 2]; 6] {
        let ([b1, b2], [t1, t2]) = (self.branch, self.trunk);
        [
            [self.window, b1],
            [b1, b2],
            [self.fourier(), t1],
            [t1, t2],
            [b2 + t2, self.fuse],
            [self.fuse, Self::ACTIONS],
        ]
    }

    /// Weights and biases.
    pub fn parameters(&self) -> usize {
        self.layers().iter().map(|[i, o]| i * o + o).sum()
    }
}

/// What makes a [`Policy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyConfig {
    /// Layer sizes.
    pub shape: Shape,
    /// Constant factors on the two channels of the window, [error, slope]; folded into the first
    /// layer when the policy is exported.
    pub gains: [f64; 2],
}

impl PolicyConfig {
    /// The default for a problem.
    pub fn of(problem: &Problem) -> Self {
        Self {
            shape: Shape::published(problem),
            gains: DEFAULT_GAINS,
        }
    }

    /// A fresh policy: weights normal with variance 1/inputs, biases zero.
    pub fn init(&self, seed: u64, device: &Device) -> Policy {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX); // not one of the episodes' streams
        let mut parameters = Vec::with_capacity(self.shape.parameters());
        for [inputs, outputs] in self.shape.layers() {
            let normal =
                Normal::new(0.0, (inputs as f64).powf(-0.5)).expect("a positive deviation");
            parameters.extend((0..inputs * outputs).map(|_| normal.sample(&mut rng) as f32));
            parameters.extend(std::iter::repeat_n(0.0, outputs));
        }
        self.with_parameters(&parameters, device)
    }

    /// The policy with these parameters, flat and in [`Shape::layers`]' order.
    pub fn with_parameters(&self, parameters: &[f32], device: &Device) -> Policy {
        assert_eq!(parameters.len(), self.shape.parameters());
        let (mut rest, mut id) = (parameters, 0);
        let mut take = |sizes: &[usize]| {
            let (values, others) = rest.split_at(sizes.iter().product());
            rest = others;
            id += 1; // the same in every run: optimiser records are keyed by it
            (
                ParamId::from(id),
                TensorData::new(values.to_vec(), sizes.to_vec()),
            )
        };
        let [branch_1, branch_2, trunk_1, trunk_2, fuse, head] =
            self.shape.layers().map(|[i, o]| {
                let mut layer = LinearConfig::new(i, o).init(device);
                let (id, data) = take(&[i, o]);
                layer.weight = Param::from_data(data, device);
                layer.weight.id = id;
                let (id, data) = take(&[o]);
                let mut bias = Param::from_data(data, device);
                bias.id = id;
                layer.bias = Some(bias);
                layer
            });
        Policy {
            branch_1,
            branch_2,
            trunk_1,
            trunk_2,
            fuse,
            head,
        }
    }
}

/// Factors that bring both channels to order one: neighbouring grid points differ by about a
/// tenth of the field.
const DEFAULT_GAINS: [f64; 2] = [1.0, 10.0];

/// The network. Its parameters, visited in declaration order, are [`Shape::layers`].
#[derive(Module, Debug)]
pub struct Policy {
    branch_1: Linear,
    branch_2: Linear,
    trunk_1: Linear,
    trunk_2: Linear,
    fuse: Linear,
    head: Linear,
}

impl Policy {
    /// Actions in (−1, 1), [agents, 2], from windows [agents, features] (gains applied) and
    /// positions [agents, 1].
    pub fn forward(&self, shape: &Shape, windows: Tensor<2>, positions: Tensor<2>) -> Tensor<2> {
        let branch = soft_norm_tanh(self.branch_1.forward(windows));
        let branch = soft_norm_tanh(self.branch_2.forward(branch));
        let angles: Vec<_> = shape
            .frequencies
            .iter()
            .map(|f| positions.clone() * PI * *f)
            .collect();
        let angles = Tensor::cat(angles, 1);
        let fourier = Tensor::cat(vec![angles.clone().sin(), angles.cos()], 1);
        let trunk = tanh(self.trunk_1.forward(fourier));
        let trunk = tanh(self.trunk_2.forward(trunk));
        let fused = tanh(self.fuse.forward(Tensor::cat(vec![branch, trunk], 1)));
        tanh(self.head.forward(fused))
    }

    fn layers(&self) -> [&Linear; 6] {
        [
            &self.branch_1,
            &self.branch_2,
            &self.trunk_1,
            &self.trunk_2,
            &self.fuse,
            &self.head,
        ]
    }

    /// All parameters in one differentiable vector, layer by layer, weights before bias.
    pub fn flat(&self) -> Tensor<1> {
        let parts = self.layers().into_iter().flat_map(|layer| {
            let weights = layer.weight.val().flatten(0, 1);
            [Some(weights), layer.bias.as_ref().map(Param::val)]
        });
        Tensor::cat(parts.flatten().collect(), 0)
    }

    /// All parameters as numbers, in the order of [`Self::flat`].
    pub fn parameters(&self) -> Vec<f32> {
        self.flat()
            .into_data()
            .convert::<f32>()
            .try_into_vec::<f32>()
            .expect("just converted to f32")
    }
}

/// tanh(h / (‖h‖ + 1)), row by row.
fn soft_norm_tanh(h: Tensor<2>) -> Tensor<2> {
    let norm = (h.clone() * h.clone())
        .sum_dim(1)
        .add_scalar(NORM_FLOOR)
        .sqrt();
    tanh(h / norm.add_scalar(1.0))
}
