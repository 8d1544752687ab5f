#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use realfft::{ComplexToReal, RealToComplex};
pub use rustfft::Fft;
pub use rustfft::num_complex::Complex;

use realfft::RealFftPlanner;
use rustfft::{FftNum, FftPlanner};
use std::sync::Arc;

/// A precision that fields are transformed in. A transform and its inverse multiply by the number of
/// points.
pub trait Transform: FftNum {
    /// Complex values to modes.
    fn forward(points: usize) -> Arc<dyn Fft<Self>>;
    /// Modes to complex values.
    fn inverse(points: usize) -> Arc<dyn Fft<Self>>;
    /// Real values to the first half of their modes.
    fn real_forward(points: usize) -> Arc<dyn RealToComplex<Self>>;
    /// The first half of the modes of real values to these.
    fn real_inverse(points: usize) -> Arc<dyn ComplexToReal<Self>>;
}

macro_rules! transform {
    ($($float:ty)*) => {$(
        impl Transform for $float {
            fn forward(points: usize) -> Arc<dyn Fft<Self>> {
                FftPlanner::new().plan_fft_forward(points)
            }

            fn inverse(points: usize) -> Arc<dyn Fft<Self>> {
                FftPlanner::new().plan_fft_inverse(points)
            }

            fn real_forward(points: usize) -> Arc<dyn RealToComplex<Self>> {
                RealFftPlanner::new().plan_fft_forward(points)
            }

            fn real_inverse(points: usize) -> Arc<dyn ComplexToReal<Self>> {
                RealFftPlanner::new().plan_fft_inverse(points)
            }
        }
    )*};
}

transform!(f32 f64);
