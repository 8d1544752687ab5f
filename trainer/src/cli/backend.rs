//! Where tensors live.

use anyhow::{Result, bail};
use burn::tensor::Device;
use clap::ValueEnum;

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Backend {
    /// Burn's CPU backend.
    #[cfg_attr(feature = "flex", default)]
    Flex,
    /// Burn's older CPU backend.
    #[cfg_attr(all(feature = "ndarray", not(feature = "flex")), default)]
    Ndarray,
    /// A GPU, through wgpu.
    #[cfg_attr(not(any(feature = "ndarray", feature = "flex")), default)]
    Wgpu,
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
