//! Where rollouts run: one place that knows what was built in.

use crate::adjoint::physics::FieldStep;
use crate::entry::Entry;
#[cfg(feature = "gpu")]
use crate::gpu::{Gpu, GpuLoop};
use crate::host_loop::HostLoop;
#[cfg(feature = "gpu")]
use crate::kernels::LoopSpec;
use crate::policy::PolicyConfig;
use crate::rollout::{Rollout, RolloutError};
use burn::tensor::Device;
use problem::{NotImplemented, Problem};

/// Where rollouts run, and where the parameters are kept.
#[derive(Debug, Clone)]
pub enum Engine {
    /// On the host, with hand-written adjoints where there are any and tensor operations on this
    /// device where there are none.
    Host(Device),
    /// The field in tensor operations on this device, the rest on the host.
    Tensors(Device),
    /// In compute kernels.
    #[cfg(feature = "gpu")]
    Kernels(Gpu),
}

/// A closed loop to be built.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The form of the problem.
    pub problem: &'a Problem,
    /// Most agents in one episode.
    pub agents: usize,
    /// Steps per episode.
    pub horizon: usize,
    /// The network.
    pub policy: &'a PolicyConfig,
    /// Most episodes in one call that are expected.
    pub batch: usize,
}

impl Engine {
    /// Where Burn keeps the parameters.
    pub fn device(&self) -> Device {
        match self {
            Self::Host(device) => device.clone(),
            Self::Tensors(_) => on_cpu(),
            #[cfg(feature = "gpu")]
            Self::Kernels(_) => on_cpu(),
        }
    }

    /// What people call it.
    pub fn name(&self) -> String {
        match self {
            Self::Host(_) => "the host".to_owned(),
            Self::Tensors(device) => format!("the host, fields on {device:?}"),
            #[cfg(feature = "gpu")]
            Self::Kernels(gpu) => gpu.name().to_owned(),
        }
    }

    /// Builds a closed loop of an entry, or says what is missing.
    pub fn rollout(&self, entry: &Entry, plan: Plan) -> Result<Box<dyn Rollout>, RolloutError> {
        match self {
            Self::Host(device) => {
                let field = entry.physics.step(plan.problem, device)?;
                Ok(on_host(field, plan)?)
            }
            Self::Tensors(device) => {
                let step = entry.physics.step_in_tensors(plan.problem, device);
                let step = step.ok_or_else(|| no_tensor_form(plan.problem))??;
                Ok(on_host(Box::new(step), plan)?)
            }
            #[cfg(feature = "gpu")]
            Self::Kernels(gpu) => Ok(Box::new(GpuLoop::new(gpu, entry, &LoopSpec::of(plan))?)),
        }
    }
}

/// Parameters are few: they stay on the CPU, wherever Burn would put them by itself.
fn on_cpu() -> Device {
    #[cfg(feature = "flex")]
    return Device::flex();
    #[cfg(not(feature = "flex"))]
    Device::default()
}

fn on_host(field: Box<dyn FieldStep<f32>>, plan: Plan) -> Result<Box<dyn Rollout>, NotImplemented> {
    let closed_loop = HostLoop::new(plan.problem, field, plan.horizon, plan.policy)?;
    Ok(Box::new(closed_loop))
}

fn no_tensor_form(problem: &Problem) -> NotImplemented {
    NotImplemented {
        part: "--backend wgpu",
        form: format!("{}, which has no step in tensor operations", problem.name),
        remedy: "train with --backend flex or gpu",
    }
}
