//! The same network in tract: the same weights, layers, soft normalisation and tanh, batch 1,
//! optimised, its state used again and again.
//!
//! Vectors are columns, with which tract takes its kernels for products of a matrix and a vector. It
//! is given features and the Fourier features of the position, which agent-core computes itself.

use crate::ours::{Blob, Scene};
use agent_core::net::{LANES, dense_len, padded};
use agent_core::policy::{Activation, Dense, Fusion, Norm, Policy};
use anyhow::{Result, anyhow, ensure};
use tract_core::internal::*;
use tract_core::ops::{array, einsum::EinSum, math, nn};

pub struct TractNetwork {
    state: TypedSimpleState,
}

impl TractNetwork {
    pub fn new(policy: &Policy, blob: &Blob) -> Result<Self> {
        let network = &policy.header().network;
        ensure!(network.fusion == Fusion::Concatenate, "not concatenated");
        let mut graph = Graph {
            model: TypedModel::default(),
            weights: blob.weights(),
            nodes: 0,
        };
        let seen = graph.source("features", &network.branch)?;
        let placed = graph.source("fourier", &network.trunk)?;
        let seen = graph.layers(&network.branch, seen)?;
        let placed = graph.layers(&network.trunk, placed)?;
        let fused = graph.wire(array::TypedConcat { axis: 0 }, &[seen, placed])?;
        let outputs = graph.layers(&network.head, fused)?;
        let outputs = graph.wire(math::tanh(), &[outputs])?;
        ensure!(graph.weights.is_empty(), "weights are left over");
        let mut model = graph.model;
        model.select_output_outlets(&[outputs])?;
        let plan = model.into_optimized()?.into_runnable()?;
        Ok(Self {
            state: SimpleState::new(&plan)?,
        })
    }

    /// The network's outputs, in −1 to 1.
    pub fn run(&mut self, scene: &Scene) -> Result<Vec<f32>> {
        let column = |values: &[f32]| Tensor::from_shape(&[values.len(), 1], values);
        let inputs = tvec!(
            column(&scene.features)?.into_tvalue(),
            column(&scene.fourier)?.into_tvalue()
        );
        let outputs = self.state.run(inputs)?;
        let output = outputs.first().ok_or(anyhow!("no output"))?;
        Ok(output.try_as_plain_ram()?.as_slice::<f32>()?.to_vec())
    }
}

struct Graph {
    model: TypedModel,
    /// Those of the layers that are still to come.
    weights: &'static [f32],
    nodes: usize,
}

impl Graph {
    fn source(&mut self, name: &str, layers: &[Dense]) -> Result<OutletId> {
        let first = layers.first().ok_or(anyhow!("no layers on {name}"))?;
        let fact = f32::fact([usize::from(first.inputs), 1]);
        self.model.add_source(name, fact)
    }

    fn layers(&mut self, layers: &[Dense], mut x: OutletId) -> Result<OutletId> {
        for layer in layers {
            x = self.dense(layer, x)?;
        }
        Ok(x)
    }

    /// `activation(norm(x W + b))`.
    fn dense(&mut self, layer: &Dense, x: OutletId) -> Result<OutletId> {
        let (inputs, outputs) = (usize::from(layer.inputs), usize::from(layer.outputs));
        let (packed, rest) = self.weights.split_at(dense_len(inputs, outputs));
        self.weights = rest;
        // Blocks of outputs, as `agent_core::net::pack_dense` writes them.
        let (bias, blocks) = packed.split_at(padded(outputs));
        let weights: Vec<f32> = (0..inputs * outputs)
            .map(|k| (k % inputs, k / inputs))
            .map(|(i, o)| blocks[(o / LANES * inputs + i) * LANES + o % LANES])
            .collect();
        let weights = self.constant(&[outputs, inputs], &weights)?;
        let bias = self.constant(&[outputs, 1], &bias[..outputs])?;
        let product = EinSum::new("mk,kn->mn".parse()?, f32::datum_type());
        let mut x = self.wire(product, &[weights, x])?;
        x = self.wire(math::add(), &[x, bias])?;
        if layer.norm == Norm::Soft {
            let squares = self.wire(math::square(), &[x])?;
            let sum = nn::Reduce::new(tvec!(0), nn::Reducer::Sum);
            let sum = self.wire(sum, &[squares])?;
            let length = self.wire(math::sqrt(), &[sum])?;
            let one = self.constant(&[1, 1], &[1.0])?;
            let divisor = self.wire(math::add(), &[length, one])?;
            x = self.wire(math::div(), &[x, divisor])?;
        }
        match layer.activation {
            Activation::Identity => Ok(x),
            Activation::Tanh => self.wire(math::tanh(), &[x]),
            other => Err(anyhow!("no {other:?} here")),
        }
    }

    fn constant(&mut self, shape: &[usize], values: &[f32]) -> Result<OutletId> {
        self.nodes += 1;
        let tensor = Tensor::from_shape(shape, values)?;
        self.model.add_const(format!("c{}", self.nodes), tensor)
    }

    fn wire(&mut self, op: impl Into<Box<dyn TypedOp>>, inputs: &[OutletId]) -> Result<OutletId> {
        self.nodes += 1;
        let name = format!("n{}", self.nodes);
        Ok(self.model.wire_node(name, op, inputs)?[0])
    }
}
