//! Finding a GPU.

use std::fmt;

/// A GPU that is ready to work.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    name: String,
    software: bool,
}

/// Why there is no GPU, or why a loop does not fit on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// Nothing answers to Vulkan.
    #[error(
        "no Vulkan driver found; install the GPU's own (on Debian: nvidia-driver, or mesa-vulkan-drivers for AMD, \
         Intel and a slow one in software), or train with --backend flex"
    )]
    NoAdapter,
    /// The driver is there but does not open.
    #[error("{adapter} does not open: {reason}")]
    Refused {
        /// Name of the GPU.
        adapter: String,
        /// What the driver said.
        reason: String,
    },
    /// A form of the loop that nobody has written kernels for.
    #[error("there are no GPU kernels for {what}; train with --backend {instead}")]
    NoKernels {
        /// What they are missing for.
        what: String,
        /// Where it can be trained.
        instead: &'static str,
    },
    /// A form of the problem that its kernels lack.
    #[error(transparent)]
    NotImplemented(#[from] problem::NotImplemented),
    /// Something asked for more than the GPU has.
    #[error(
        "{adapter} is too small for this loop: {what} takes {needed}, and there is {available}; {remedy}"
    )]
    TooSmall {
        /// Name of the GPU.
        adapter: String,
        /// What does not fit.
        what: &'static str,
        /// How much it takes.
        needed: u64,
        /// How much there is.
        available: u64,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A kernel did not compile, or the GPU stopped answering.
    #[error("{adapter} failed: {reason}")]
    Failed {
        /// Name of the GPU.
        adapter: String,
        /// What the driver said.
        reason: String,
    },
}

impl Gpu {
    /// The fastest GPU there is, with all it has to offer.
    pub fn open() -> Result<Self, GpuError> {
        Self::open_nth(0)
    }

    /// The GPU of the `nth` process that wants one: the fastest, and then the others of its kind in turn.
    pub fn open_nth(nth: usize) -> Result<Self, GpuError> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(descriptor);
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let fastest = pollster::block_on(instance.request_adapter(&options))
            .map_err(|_| GpuError::NoAdapter)?;
        let like = fastest.get_info();
        let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
        adapters.retain(|adapter| adapter.get_info().device_type == like.device_type);
        let first = (adapters.iter()).position(|adapter| adapter.get_info() == like);
        let adapter = match (first, adapters.len()) {
            (Some(first), count) => adapters.swap_remove((first + nth) % count),
            (None, _) => fastest,
        };
        let info = adapter.get_info();
        let name = info.name;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: None,
            required_limits: adapter.limits(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        }))
        .map_err(|error| GpuError::Refused {
            adapter: name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            device,
            queue,
            name,
            software: info.device_type == wgpu::DeviceType::Cpu,
        })
    }

    /// What the driver calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Steps of a closed loop that one dispatch may take: short enough for the patience of desktops'
    /// drivers. Mesa's software driver moreover leaves a kernel's loops after 65,535 rounds in all, of which
    /// the field's take so many in a step.
    pub(super) fn steps_per_dispatch(&self, rounds: usize) -> Result<usize, GpuError> {
        let (steps, most) = match self.software {
            true => (8, 40_000),
            false => (64, 4_000_000),
        };
        self.fits(
            "the rounds that loops take in a step",
            rounds as u64,
            most as u64,
            "take a coarser grid, or train with --backend flex",
        )?;
        Ok(steps.min(most / rounds.max(1)).max(1))
    }

    pub(super) fn failed(&self, reason: impl fmt::Display) -> GpuError {
        GpuError::Failed {
            adapter: self.name.clone(),
            reason: reason.to_string(),
        }
    }

    /// Refuses what takes more than there is.
    pub(super) fn fits(
        &self,
        what: &'static str,
        needed: u64,
        available: u64,
        remedy: &'static str,
    ) -> Result<(), GpuError> {
        match needed <= available {
            true => Ok(()),
            false => Err(GpuError::TooSmall {
                adapter: self.name.clone(),
                what,
                needed,
                available,
                remedy,
            }),
        }
    }
}
