//! A step in Burn's tensor operations, with Burn's autodiff as its adjoint.
//!
//! The rest of the closed loop (observing, deciding, acting, scoring) stays the host's: what an own
//! equation adds to a time step is the handful of tensor operations that it is made of, on whatever
//! device Burn has them on, not the hundreds of the whole loop.

use crate::adjoint::physics::{Batch, FieldStep, Gradients, Interval};
use burn::tensor::{Device, Tensor, TensorData};
use problem::{NotImplemented, Problem};
use std::fmt;

/// What fields do in one control interval: from fields, [episodes, points], and the forcing held over
/// it, [episodes, components, points], to fields.
pub type Advance = dyn Fn(Tensor<2>, Tensor<3>) -> Tensor<2> + Send + Sync;

/// Builds the step of a problem on a device: constant tensors are made once, here.
pub type TensorForm = fn(&Problem, &Device) -> Result<Box<Advance>, NotImplemented>;

/// The step of a problem on a device.
pub struct TensorStep {
    advance: Box<Advance>,
    device: Device,
    points: usize,
    components: usize,
}

impl fmt::Debug for TensorStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (points, device) = (self.points, &self.device);
        write!(
            f,
            "a step of {points} points in tensor operations on {device:?}"
        )
    }
}

impl TensorStep {
    /// The step of this form of the problem.
    pub fn new(
        form: TensorForm,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self, NotImplemented> {
        let device = device.clone().autodiff();
        Ok(Self {
            advance: form(problem, &device)?,
            device,
            points: problem.grid.len(),
            components: problem.components(),
        })
    }

    fn fields(&self, episodes: usize, values: &[f32]) -> Tensor<2> {
        let data = TensorData::new(values.to_vec(), [episodes, self.points]);
        Tensor::from_data(data, &self.device)
    }

    fn forcing(&self, episodes: usize, values: &[f32]) -> Tensor<3> {
        let data = TensorData::new(values.to_vec(), [episodes, self.components, self.points]);
        Tensor::from_data(data, &self.device)
    }
}

impl FieldStep<f32> for TensorStep {
    fn scratch_len(&self) -> usize {
        0
    }

    fn advance(
        &self,
        Batch { episodes, .. }: Batch,
        fields: &[f32],
        forcing: &[f32],
        next: &mut [f32],
        _: &mut [f32],
        _: &mut [f32],
    ) {
        let (fields, forcing) = (
            self.fields(episodes, fields),
            self.forcing(episodes, forcing),
        );
        write((self.advance)(fields, forcing), next);
    }

    /// The interval again, this time with Burn's tape.
    fn adjoint(
        &self,
        Batch { episodes, .. }: Batch,
        at: Interval<f32>,
        g: Gradients<f32>,
        _: &mut [f32],
    ) {
        let fields = self.fields(episodes, at.fields).require_grad();
        let forcing = self.forcing(episodes, at.forcing).require_grad();
        let next = (self.advance)(fields.clone(), forcing.clone());
        let pulled = (next * self.fields(episodes, g.next)).sum();
        let gradients = pulled.backward();
        // A step that does not read one of the two has no gradient by it.
        match fields.grad(&gradients) {
            Some(gradient) => write(gradient, g.fields),
            None => g.fields.fill(0.0),
        }
        match forcing.grad(&gradients) {
            Some(gradient) => write(gradient, g.forcing),
            None => g.forcing.fill(0.0),
        }
    }
}

fn write<const D: usize>(tensor: Tensor<D>, to: &mut [f32]) {
    let values = tensor.into_data().convert::<f32>();
    let values = values.try_into_vec::<f32>().expect("just converted to f32");
    to.copy_from_slice(&values);
}

/// A constant matrix.
pub fn constant(values: Vec<f64>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// `1 + h D` on a line of `n` points, D being the second difference of interior points, to be
/// multiplied from the right; walls are read and come out as zero.
pub fn second_difference(n: usize, h: f64) -> Vec<f64> {
    let entry = |from: usize, to: usize| match (to > 0 && to < n - 1, from.abs_diff(to)) {
        (true, 0) => 1.0 - 2.0 * h,
        (true, 1) => h,
        _ => 0.0,
    };
    (0..n * n).map(|at| entry(at / n, at % n)).collect()
}
