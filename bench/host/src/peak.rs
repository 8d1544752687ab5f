//! The most that one core can multiply and add: fused, on its widest vectors, all in registers.

use std::hint::black_box;

/// Multiply-accumulates of one run: some tens of microseconds.
const ROUNDS: usize = 20_000;
/// Sums taken side by side. Two units that take a new one every cycle and hand it back after four
/// need eight; a few more hide the loop.
const SUMS: usize = 12;

/// What [`multiply_accumulates`] uses.
pub fn name() -> &'static str {
    match widest() {
        Vectors::Sixteen => "AVX-512 fused multiply-add",
        Vectors::Eight => "AVX2 fused multiply-add",
        Vectors::None => "scalar multiply and add (no fused vectors known here)",
    }
}

enum Vectors {
    Sixteen,
    Eight,
    None,
}

fn widest() -> Vectors {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return Vectors::Sixteen;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Vectors::Eight;
        }
    }
    Vectors::None
}

/// Multiplies and adds without rest; returns how often.
pub fn multiply_accumulates() -> usize {
    match widest() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has just said that it has these instructions.
        Vectors::Sixteen => unsafe { x86::sixteen() },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Vectors::Eight => unsafe { x86::eight() },
        _ => {
            let mut sums = [0.0f32; SUMS];
            let (x, y) = (black_box(0.9999), black_box(0.5));
            for _ in 0..ROUNDS {
                for sum in &mut sums {
                    *sum = *sum * x + y;
                }
            }
            black_box(sums);
            ROUNDS * SUMS
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{ROUNDS, SUMS};
    use std::{arch::x86_64::*, hint::black_box};

    #[target_feature(enable = "avx512f")]
    pub fn sixteen() -> usize {
        let (x, y) = (
            _mm512_set1_ps(black_box(0.9999)),
            _mm512_set1_ps(black_box(0.5)),
        );
        let mut sums = [_mm512_setzero_ps(); SUMS];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, x, y);
            }
        }
        black_box(sums);
        ROUNDS * SUMS * 16
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn eight() -> usize {
        let (x, y) = (
            _mm256_set1_ps(black_box(0.9999)),
            _mm256_set1_ps(black_box(0.5)),
        );
        let mut sums = [_mm256_setzero_ps(); SUMS];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, x, y);
            }
        }
        black_box(sums);
        ROUNDS * SUMS * 8
    }
}
