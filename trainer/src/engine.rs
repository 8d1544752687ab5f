//! Where rollouts run: one place that knows what was built in.

use crate::adjoint::physics::mixed::MakeStep;
use crate::entry::Entry;
#[cfg(feature = "gpu")]
use crate::gpu::{Gpu, GpuLoop};
use crate::host_loop::HostLoop;
#[cfg(feature = "gpu")]
use crate::kernels::LoopSpec;
use crate::policy::PolicyConfig;
use crate::ranks::{Ranks, SharedRollout};
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
    /// On several processes, each of which has one of the others.
    Shared(Box<Engine>, Ranks),
}

/// A closed loop to be built.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The form of the problem.
    pub problem: &'a Problem,
    /// The outermost forms that episodes may have instead, with other coefficients; none where they have
    /// the problem's.
    pub corners: &'a [Problem],
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
            Self::Shared(each, _) => each.device(),
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
            Self::Shared(each, ranks) => format!("{} ranks, each on {}", ranks.of(), each.name()),
        }
    }

    /// The processes that share the episodes.
    pub fn ranks(&self) -> Ranks {
        match self {
            Self::Shared(_, ranks) => *ranks,
            _ => Ranks::ALONE,
        }
    }

    /// Builds a closed loop of an entry, or says what is missing.
    pub fn rollout(&self, entry: &Entry, plan: Plan) -> Result<Box<dyn Rollout>, RolloutError> {
        match self {
            Self::Host(device) => {
                let (physics, device) = (entry.physics, device.clone());
                Ok(on_host(
                    Box::new(move |form| physics.step(form, &device)),
                    plan,
                )?)
            }
            Self::Tensors(device) => {
                let (physics, device) = (entry.physics, device.clone());
                let make: Box<MakeStep<f32>> = Box::new(move |form| {
                    let step = physics.step_in_tensors(form, &device);
                    Ok(Box::new(step.ok_or_else(|| no_tensor_form(form))??))
                });
                Ok(on_host(make, plan)?)
            }
            Self::Shared(each, ranks) => {
                let batch = ranks.largest_part(plan.batch);
                let each = each.rollout(entry, Plan { batch, ..plan })?;
                Ok(Box::new(SharedRollout::new(each, *ranks)))
            }
            #[cfg(feature = "gpu")]
            Self::Kernels(_) if plan.policy.shape.seats.is_some() => Err(NotImplemented {
                part: "--backend gpu",
                form: "one network that decides for all agents".to_owned(),
                remedy: "train it on the CPU: --backend flex",
            }
            .into()),
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

fn on_host(make: Box<MakeStep<f32>>, plan: Plan) -> Result<Box<dyn Rollout>, NotImplemented> {
    let field = make(plan.problem)?;
    // What cannot be made is refused before training, not in the middle of it.
    for corner in plan.corners {
        make(corner)?;
    }
    let closed_loop = HostLoop::new(plan.problem, field, plan.horizon, plan.policy)?;
    Ok(Box::new(closed_loop.for_family(make)))
}

fn no_tensor_form(problem: &Problem) -> NotImplemented {
    NotImplemented {
        part: "--backend wgpu",
        form: format!("{}, which has no step in tensor operations", problem.name),
        remedy: "train with --backend flex or gpu",
    }
}
