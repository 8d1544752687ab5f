//! The policy every agent carries, as a Burn module.
//!
//! A DeepONet: the *branch* reads the error field around the agent and what the agent remembers, the
//! *trunk* reads where the agent is, a fusion layer joins them into a force, a velocity and what to
//! remember.
//!
//! The same network in one place, once for all agents, is a yardstick: see [`PolicyConfig::centralised`].

use agent_core::policy::Fusion;
use burn::module::{Module, Param, ParamId};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor, TensorData};
use problem::{Actuation, Problem};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::ops::Range;

use crate::adjoint::elementwise::NORM_FLOOR;

/// Layer sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Values the branch reads of the field, see [`Sight`].
    pub features: usize,
    /// Numbers that an agent remembers from step to step; the branch reads them behind the features.
    pub memory: usize,
    /// Branch layers, each dense, soft norm, tanh.
    pub branch: [usize; 2],
    /// Space dimensions.
    pub axes: usize,
    /// The trunk reads sin(πfs) for these f and every axis, then cos(πfs), with s the position
    /// scaled to 0..1.
    pub frequencies: Vec<f64>,
    /// Trunk layers, each dense, tanh.
    pub trunk: [usize; 2],
    /// How branch and trunk come together.
    pub fusion: Fusion,
    /// Whether agents that see no error and remember nothing do nothing, whatever was learnt: nothing is
    /// added on the way from what the branch reads to what comes out, see [`Shape::resting`].
    pub rests: bool,
    /// Fusion layer: dense, tanh.
    pub fuse: usize,
    /// What agents do: force, if they have one, then velocity along each axis, if they move.
    pub actions: usize,
    /// How many agents an episode has, where one network decides for all of them: the trunk reads where
    /// each of them is, and the actions of one after the other come out. None where every agent carries
    /// its own.
    pub seats: Option<usize>,
}

impl Shape {
    /// The published sizes on `sight`.
    fn published(problem: &Problem, sight: &Sight) -> Self {
        let fuse = if problem.grid.axes == 1 { 32 } else { 64 };
        Self {
            features: sight.features(problem.grid.axes),
            memory: 0,
            branch: [64, 64],
            axes: problem.grid.axes,
            frequencies: vec![1.0, 2.0, 4.0, 8.0],
            trunk: [32, 32],
            fusion: Fusion::Concatenate,
            rests: false,
            fuse,
            actions: actions(problem),
            seats: None,
        }
    }

    /// Agents that an evaluation of the network decides for.
    pub fn decides_for(&self) -> usize {
        self.seats.unwrap_or(1)
    }

    /// Values that say where these are.
    pub fn coordinates(&self) -> usize {
        self.decides_for() * self.axes
    }

    /// Values the branch reads: the field's, then the memory's.
    pub fn inputs(&self) -> usize {
        self.features + self.memory
    }

    /// Values that come out: a push and a gate for each number of the memory, pushes first, then the
    /// actions.
    pub fn outputs(&self) -> usize {
        2 * self.memory + self.decides_for() * self.actions
    }

    /// Position features.
    pub fn fourier(&self) -> usize {
        2 * self.coordinates() * self.frequencies.len()
    }

    /// [inputs, outputs] of the dense layers: branch 1 and 2, trunk 1 and 2, fusion, head.
    pub fn layers(&self) -> [[usize; 2]; 6] {
        let ([b1, b2], [t1, t2]) = (self.branch, self.trunk);
        let joint = match self.fusion {
            Fusion::Concatenate => b2 + t2,
            Fusion::Multiply => b2,
        };
        [
            [self.inputs(), b1],
            [b1, b2],
            [self.fourier(), t1],
            [t1, t2],
            [joint, self.fuse],
            [self.fuse, self.outputs()],
        ]
    }

    /// The same for agents that do nothing where there is nothing to do. Where they are only scales
    /// what they do then: the trunk is multiplied with the branch.
    pub fn resting(self) -> Self {
        Self {
            fusion: Fusion::Multiply,
            trunk: [self.trunk[0], self.branch[1]],
            rests: true,
            ..self
        }
    }

    /// The parameters that stay zero in all training: none, or every bias behind what the branch reads
    /// but those of the gates, which only scale what is remembered.
    pub fn held(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let biases = self.layers().map(|[inputs, outputs]| {
            start += (inputs + 1) * outputs;
            start - outputs..start
        });
        let [branch_1, branch_2, _, _, fuse, head] = biases;
        let pushes = head.start..head.start + self.memory;
        let actions = head.start + 2 * self.memory..head.end;
        match self.rests {
            true => vec![branch_1, branch_2, fuse, pushes, actions],
            false => Vec::new(),
        }
    }

    /// Weights and biases.
    pub fn parameters(&self) -> usize {
        self.layers().iter().map(|[i, o]| i * o + o).sum()
    }
}

/// How fast a memory forgets and learns: `m ← cut(m − LEAK (1 + gate) m + GAIN push, ±1)`. With a gate
/// near −1 it keeps what it has for the length of an episode, and a steady push fills it in five steps.
pub const LEAK: f32 = 0.05;
/// See [`LEAK`].
pub const GAIN: f32 = 0.2;
/// Where gates begin: a memory loses 1.2 % per step.
const GATE_BIAS: f32 = -1.0;

/// Width of the layers of a network that decides for all agents.
const CENTRAL: usize = 256;

/// Actions of the agents of a problem.
fn actions(problem: &Problem) -> usize {
    let Actuation {
        force_max,
        velocity_max,
        ..
    } = problem.actuation;
    usize::from(force_max > 0.0) + usize::from(velocity_max > 0.0) * problem.grid.axes
}

/// What an agent is shown and how it is scaled. The factors are folded into the first layer when
/// the policy is exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// Cells of the window along each axis. On a line the agent sees the errors in it and their
    /// slopes; on a plane the errors alone, from which a dense layer can form slopes itself.
    pub window: usize,
    /// Factor of the errors.
    pub error_gain: f64,
    /// Factor of the slopes.
    pub slope_gain: f64,
    /// Cells along each axis of a coarse view of the whole domain, if there is one.
    pub wide: Option<[usize; 2]>,
    /// Factor of the coarse view's errors.
    pub wide_gain: f64,
    /// Whether the coarse view shows the target too, times the same factor.
    pub target: bool,
    /// Factors of the errors of fields that are seen besides, of each those in a window of the same cells.
    /// They stand in the place of the coarse view, which there is none of then.
    pub others: Vec<f64>,
}

impl Sight {
    /// Values of the window, all channels.
    pub fn local(&self, axes: usize) -> usize {
        match axes {
            1 => 2 * self.cells(axes),
            _ => self.cells(axes),
        }
    }

    /// Cells of the coarse view.
    pub fn coarse(&self) -> usize {
        self.wide.map_or(0, |[a, b]| a * b)
    }

    /// Cells of the coarse view of the target.
    pub fn aims(&self) -> usize {
        match self.target {
            true => self.coarse(),
            false => 0,
        }
    }

    /// Cells of the window.
    pub fn cells(&self, axes: usize) -> usize {
        self.window.pow(axes as u32)
    }

    /// Values the branch reads.
    pub fn features(&self, axes: usize) -> usize {
        self.local(axes) + self.coarse() + self.aims() + self.others.len() * self.cells(axes)
    }

    /// The factor of each value.
    pub fn gains(&self, axes: usize) -> Vec<f64> {
        let repeat = std::iter::repeat_n::<f64>;
        let local = match axes {
            1 => repeat(self.error_gain, self.window).chain(repeat(self.slope_gain, self.window)),
            _ => repeat(self.error_gain, self.local(axes)).chain(repeat(0.0, 0)),
        };
        let others = (self.others.iter()).flat_map(|&gain| repeat(gain, self.cells(axes)));
        let coarse = repeat(self.wide_gain, self.coarse() + self.aims());
        local.chain(coarse).chain(others).collect()
    }
}

/// What makes a [`PolicyModule`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyConfig {
    /// Layer sizes.
    pub shape: Shape,
    /// What it reads.
    pub sight: Sight,
}

impl PolicyConfig {
    /// The published layers on `sight`.
    pub fn new(problem: &Problem, sight: Sight) -> Self {
        Self {
            shape: Shape::published(problem, &sight),
            sight,
        }
    }

    /// A network in one place that is told the whole field, what it should be and where all of so many
    /// agents are, and decides for them: differentiable predictive control, a yardstick for policies. The
    /// field is shown as means over the cells of a `picture`, times `gain`.
    ///
    /// The layers are as wide as the published ones. The published network has two, of everything side by
    /// side; here positions have a trunk of their own, as policies have.
    pub fn centralised(problem: &Problem, agents: usize, picture: [usize; 2], gain: f64) -> Self {
        let sight = Sight {
            window: 0,
            error_gain: 0.0,
            slope_gain: 0.0,
            wide: Some(picture),
            wide_gain: gain,
            target: problem.tracking,
            others: Vec::new(),
        };
        let moves = problem.actuation.velocity_max > 0.0;
        let shape = Shape {
            branch: [CENTRAL; 2],
            // Of agents that stay it has nothing to learn but a bias.
            frequencies: if moves {
                vec![1.0, 2.0, 4.0, 8.0]
            } else {
                vec![1.0]
            },
            trunk: if moves { [CENTRAL / 2; 2] } else { [16; 2] },
            fuse: CENTRAL,
            seats: Some(agents),
            ..Shape::published(problem, &sight)
        };
        Self { shape, sight }
    }

    /// A fresh policy: weights normal with variance 1/inputs, those of the head a tenth as large, so
    /// that agents begin by doing little; biases zero, but those of a memory's gates.
    pub fn init(&self, seed: u64, device: &Device) -> PolicyModule {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX); // not one of the episodes' streams
        let mut parameters = Vec::with_capacity(self.shape.parameters());
        let layers = self.shape.layers();
        for (k, [inputs, outputs]) in layers.into_iter().enumerate() {
            let share = if k + 1 == layers.len() { 0.1 } else { 1.0 };
            let deviation = share * (inputs as f64).powf(-0.5);
            let normal = Normal::new(0.0, deviation).expect("a positive deviation");
            parameters.extend((0..inputs * outputs).map(|_| normal.sample(&mut rng) as f32));
            parameters.extend(std::iter::repeat_n(0.0, outputs));
        }
        let gates = parameters.len() - self.shape.outputs() + self.shape.memory;
        parameters[gates..][..self.shape.memory].fill(GATE_BIAS);
        self.with_parameters(&parameters, device)
    }

    /// The policy with these parameters, flat and in [`Shape::layers`]' order.
    pub fn with_parameters(&self, parameters: &[f32], device: &Device) -> PolicyModule {
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
        PolicyModule {
            branch_1,
            branch_2,
            trunk_1,
            trunk_2,
            fuse,
            head,
        }
    }
}

/// The network. Its parameters, visited in declaration order, are [`Shape::layers`].
#[derive(Module, Debug)]
pub struct PolicyModule {
    branch_1: Linear,
    branch_2: Linear,
    trunk_1: Linear,
    trunk_2: Linear,
    fuse: Linear,
    head: Linear,
}

impl PolicyModule {
    /// Outputs in (−1, 1), [agents, outputs], from inputs [agents, inputs] (gains applied) and scaled
    /// positions [agents, axes]. (Where one network decides for all agents, rows are episodes.)
    pub fn forward(&self, shape: &Shape, inputs: Tensor<2>, positions: Tensor<2>) -> Tensor<2> {
        let branch = soft_norm_tanh(self.branch_1.forward(inputs));
        let branch = soft_norm_tanh(self.branch_2.forward(branch));
        let waves = (0..shape.coordinates())
            .flat_map(|axis| shape.frequencies.iter().map(move |f| (axis, f)));
        let angles = waves.map(|(axis, f)| positions.clone().narrow(1, axis, 1) * PI * *f);
        let angles = Tensor::cat(angles.collect(), 1);
        let fourier = Tensor::cat(vec![angles.clone().sin(), angles.cos()], 1);
        let trunk = tanh(self.trunk_1.forward(fourier));
        let trunk = tanh(self.trunk_2.forward(trunk));
        let joint = match shape.fusion {
            Fusion::Concatenate => Tensor::cat(vec![branch, trunk], 1),
            Fusion::Multiply => branch * trunk,
        };
        tanh(self.head.forward(tanh(self.fuse.forward(joint))))
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
