//! Time steppers: the truth that a swarm is measured against.
//!
//! One file per equation. A stepper is built once for a grid and a time step (factorisations and
//! buffers included) and then advances fields in place without allocating. The trainer has its own,
//! differentiable version of each; the two share nothing but the problem's constants, so that a
//! test which compares them means something.

pub mod advection_diffusion_2d;
mod batch_fft;
pub mod density_2d;
pub mod described;
mod exponential;
pub mod fkpp_1d;
mod fourier;
pub mod heat_1d;
pub mod heat_2d;
pub mod hyperdiffusion;
pub mod ks_1d;
pub mod ks_2d;
mod lanes;
pub mod lines;
mod real_line;
mod spectral;
pub mod tridiagonal;
pub mod turbulence_2d;

pub(crate) use batch_fft::transform_lines;

pub use advection_diffusion_2d::AdvectionDiffusion2d;
pub use density_2d::Density2d;
pub use fkpp_1d::Fkpp1d;
pub use heat_1d::Heat1d;
pub use heat_2d::Heat2d;
pub use ks_1d::Ks1d;
pub use ks_2d::Ks2d;
pub use lanes::Real;
pub use tridiagonal::Tridiagonal;
pub use turbulence_2d::Turbulence2d;

/// Advances a field by one control interval.
pub trait Stepper<T>: Send {
    /// Replaces `field` by its value one control interval later under `force`, which acts at every
    /// grid point and is held constant over the interval. Densities are moved by a wind: there,
    /// `force` holds its component along axis 0 at every grid point and then that along axis 1.
    ///
    /// # Panics
    /// If the slices do not have the stepper's number of grid points.
    fn step(&mut self, field: &mut [T], force: &[T]);
}
