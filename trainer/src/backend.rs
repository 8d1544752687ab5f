//! Where rollouts run.

use crate::engine::Engine;
#[cfg(feature = "gpu")]
use crate::gpu::Gpu;
use crate::ranks::Ranks;
use anyhow::{Result, bail};
#[allow(unused_imports, reason = "without any backend there is no device")]
use burn::tensor::Device;
use clap::ValueEnum;

/// Where rollouts run; the parameters stay on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Backend {
    /// The CPU, with Burn's CPU backend.
    #[cfg_attr(feature = "flex", default)]
    Flex,
    /// The CPU, with Burn's older CPU backend.
    #[cfg_attr(all(feature = "ndarray", not(feature = "flex")), default)]
    Ndarray,
    /// A GPU with Vulkan, in kernels of our own, for problems that have them.
    #[cfg_attr(not(any(feature = "ndarray", feature = "flex")), default)]
    Gpu,
    /// Any GPU that Burn knows, for the field of problems with a step in tensor operations.
    Wgpu,
}

impl Backend {
    /// Finds the devices of processes that share the episodes.
    pub fn open_for(self, ranks: Ranks) -> Result<Engine> {
        let each = self.open_nth(ranks.local())?;
        match ranks.of() {
            1 => Ok(each),
            _ => Ok(Engine::Shared(Box::new(each), ranks)),
        }
    }

    /// Finds the device.
    pub fn open(self) -> Result<Engine> {
        self.open_nth(0)
    }

    /// The device of the `nth` process on this machine: each has a GPU of its own where there are as many.
    #[cfg_attr(not(feature = "gpu"), expect(unused_variables))]
    pub fn open_nth(self, nth: usize) -> Result<Engine> {
        match self {
            #[cfg(feature = "flex")]
            Backend::Flex => Ok(Engine::Host(Device::flex())),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated)]
            Backend::Ndarray => Ok(Engine::Host(Device::ndarray())),
            #[cfg(feature = "gpu")]
            Backend::Gpu => Ok(Engine::Kernels(Gpu::open_nth(nth)?)),
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => Ok(Engine::Tensors(Device::wgpu(Default::default()))),
            #[allow(unreachable_patterns)]
            missing => {
                let name = missing
                    .to_possible_value()
                    .map_or_else(String::new, |v| v.get_name().to_owned());
                bail!(
                    "this trainer was built without the {name} backend; build it with --features {name}, or choose another --backend"
                )
            }
        }
    }
}
