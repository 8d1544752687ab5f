//! Where tensors live.

use anyhow::{Result, bail};
use burn::tensor::Device;
use clap::ValueEnum;
#[cfg(feature = "gpu")]
use trainer::gpu::Gpu;

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Backend {
    /// Burn's CPU backend.
    #[cfg_attr(feature = "flex", default)]
    Flex,
    /// Burn's older CPU backend.
    #[cfg_attr(all(feature = "ndarray", not(feature = "flex")), default)]
    Ndarray,
    /// A GPU with Vulkan for the rollouts; the parameters stay on the CPU.
    #[value(alias = "wgpu")]
    #[cfg_attr(not(any(feature = "ndarray", feature = "flex")), default)]
    Gpu,
}

impl Backend {
    /// The device of the parameters.
    pub fn open(self) -> Result<Device> {
        match self {
            #[cfg(feature = "flex")]
            Backend::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated)]
            Backend::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "gpu")]
            Backend::Gpu => Ok(Device::default()),
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

    /// The GPU that rollouts run on, if they do.
    #[cfg(feature = "gpu")]
    pub fn gpu(self) -> Result<Option<Gpu>> {
        Ok(match self {
            Backend::Gpu => Some(Gpu::open()?),
            _ => None,
        })
    }
}
