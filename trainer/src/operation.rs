//! The rollout as one differentiable Burn operation.
//!
//! Burn holds the parameters and the graph around this operation; forward and adjoint are
//! [`ClosedLoop`]'s. Autodiff's tape then has a handful of nodes per training step instead of
//! hundreds per time step.

// Burn has deprecated its ndarray backend; it stays on offer for comparison.
#![cfg_attr(feature = "ndarray", allow(deprecated))]

use crate::loss::TERMS;
use crate::rollout::{ClosedLoop, Tape};
use crate::trial::Trial;
use burn::backend::autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};
use std::sync::{Arc, Mutex};

/// A closed loop and the episodes to run in it.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The loop.
    pub closed_loop: Arc<ClosedLoop>,
    /// The episodes.
    pub trials: Arc<[Trial]>,
}

/// Terms of every episode, [episodes, terms], unweighted; differentiable in `parameters`.
pub fn rollout(parameters: Tensor<1>, batch: Batch) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rollout(parameters.into_dispatch(), batch))
}

/// Backends on which episodes can be rolled out in one operation.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Autodiff)]
pub trait RolloutBackend: Backend {
    /// Terms of every episode, [episodes, terms], from the flat parameters.
    fn rollout(parameters: FloatTensor<Self>, batch: Batch) -> FloatTensor<Self>;
}

fn to_host<B: Backend>(tensor: FloatTensor<B>) -> Vec<f32> {
    burn::tensor::try_read_sync(B::float_into_data(tensor))
        .expect("CPU tensors are read at once")
        .expect("CPU tensors can be read")
        .convert::<f32>()
        .try_into_vec::<f32>()
        .expect("just converted to f32")
}

fn to_tensor<B: Backend>(values: Vec<f32>, shape: &[usize], device: &B::Device) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(values, shape.to_vec()), device)
}

fn terms_to_tensor<B: Backend>(terms: &[[f64; TERMS]], device: &B::Device) -> FloatTensor<B> {
    let values = terms.as_flattened().iter().map(|&t| t as f32).collect();
    to_tensor::<B>(values, &[terms.len(), TERMS], device)
}

fn forward<B: Backend>(parameters: FloatTensor<B>, batch: &Batch) -> (FloatTensor<B>, Tape<f32>) {
    let device = parameters.device();
    let (terms, tape) = batch
        .closed_loop
        .forward(&to_host::<B>(parameters), &batch.trials);
    (terms_to_tensor::<B>(&terms, &device), tape)
}

macro_rules! on_cpu {
    ($backend:ty) => {
        impl RolloutBackend for $backend {
            fn rollout(parameters: FloatTensor<Self>, batch: Batch) -> FloatTensor<Self> {
                let (terms, tape) = forward::<Self>(parameters, &batch);
                batch.closed_loop.recycle(tape);
                terms
            }
        }
    };
}

#[cfg(feature = "flex")]
on_cpu!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
on_cpu!(burn::backend::NdArray);

/// The hand-written adjoint.
#[derive(Debug)]
struct RolloutBackward;

/// The tape is taken, not cloned: a graph is walked backwards once.
type State = (Batch, Arc<Mutex<Option<Tape<f32>>>>);

impl<B: Backend> Backward<B, 1> for RolloutBackward {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let g_terms = grads.consume::<B>(&ops.node);
        let Some(parent) = parent else { return };
        let device = g_terms.device();
        let g_terms = to_host::<B>(g_terms);
        let g_terms: Vec<[f64; TERMS]> = g_terms
            .as_chunks()
            .0
            .iter()
            .map(|g| g.map(f64::from))
            .collect();
        let (batch, tape) = ops.state;
        let tape = tape.lock().unwrap_or_else(|e| e.into_inner()).take();
        let tape = tape.expect("a rollout is differentiated once");
        let gradient = batch.closed_loop.backward(tape, &batch.trials, &g_terms);
        let length = gradient.len();
        grads.register::<B>(parent.id, to_tensor::<B>(gradient, &[length], &device));
    }
}

impl<B: RolloutBackend, C: CheckpointStrategy> RolloutBackend for Autodiff<B, C> {
    fn rollout(parameters: FloatTensor<Self>, batch: Batch) -> FloatTensor<Self> {
        let (parameters, node) = parameters.into_parts();
        match RolloutBackward
            .prepare::<C>([node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (terms, tape) = forward::<B>(parameters, &batch);
                prep.finish((batch, Arc::new(Mutex::new(Some(tape)))), terms)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::rollout(parameters, batch)),
        }
    }
}
