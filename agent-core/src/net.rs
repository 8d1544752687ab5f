//! The network's arithmetic, the same bits everywhere.
//!
//! Only IEEE additions, multiplications, divisions and square roots are used, never fused, in an
//! order fixed by the code below. [`LANES`] outputs are computed side by side: x86-64 keeps them in
//! vector registers, a Cortex-M4F in [`LANES`] of its 32 scalar ones. No sum runs across lanes
//! except in [`norm`], which adds them pairwise.
//!
//! On x86-64 everything on the way of a control step is inlined into its caller, so that a host can
//! compile the step for wider vectors than the baseline's; wider or not, each value is the result
//! of the same operations in the same order.

use crate::policy::{Activation, Norm};
use crate::value::{PACK, Pack, Value};
use agent_kernels as kernels;
pub use kernels::LANES;

/// `len` rounded up to whole blocks.
pub const fn padded(len: usize) -> usize {
    len.div_ceil(LANES) * LANES
}

/// Floats of the packed weights and biases of a dense layer.
pub const fn dense_len(inputs: usize, outputs: usize) -> usize {
    padded(outputs) * (inputs + 1)
}

/// `output[o] = bias[o] + Σ_i input[i] · weight[i][o]`, each sum taken in the order of `i`.
///
/// `packed` holds the biases, padded to whole blocks, then for each block of [`LANES`] outputs and
/// each input one row of [`LANES`] weights (see [`pack_dense`]). Missing inputs or weights leave
/// outputs out; a parsed policy misses none.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn dense(packed: &[f32], input: &[f32], output: &mut [f32]) {
    let Some((bias, weights)) = packed.split_at_checked(padded(output.len())) else {
        return;
    };
    let (bias, _) = bias.as_chunks::<LANES>();
    let (rows, _) = weights.as_chunks::<LANES>();
    let (whole, rest) = output.as_chunks_mut::<LANES>();
    kernels::dense(bias, rows, input, whole);
    if !rest.is_empty() {
        let mut last = [[0.0; LANES]];
        let bias = bias.get(whole.len()..).unwrap_or_default();
        let rows = rows.get(whole.len() * input.len()..).unwrap_or_default();
        kernels::dense(bias, rows, input, &mut last);
        for (out, sum) in rest.iter_mut().zip(last.as_flattened()) {
            *out = *sum;
        }
    }
}

/// [`dense`] for several agents at once: the same sums in the same order for each of them.
#[inline(always)]
pub(crate) fn dense_pack(packed: &[f32], input: &[Pack], output: &mut [Pack]) {
    let Some((bias, weights)) = packed.split_at_checked(padded(output.len())) else {
        return;
    };
    let (bias, _) = bias.as_chunks::<LANES>();
    let (rows, _) = weights.as_chunks::<LANES>();
    let blocks = rows.chunks_exact(input.len().max(1));
    for ((bias, rows), output) in bias.iter().zip(blocks).zip(output.chunks_mut(LANES)) {
        // Written out, so that each sum stays in registers.
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = bias.map(|x| [x; PACK]);
        for (Pack(x), row) in input.iter().zip(rows) {
            add_product(&mut a, x, row[0]);
            add_product(&mut b, x, row[1]);
            add_product(&mut c, x, row[2]);
            add_product(&mut d, x, row[3]);
            add_product(&mut e, x, row[4]);
            add_product(&mut f, x, row[5]);
            add_product(&mut g, x, row[6]);
            add_product(&mut h, x, row[7]);
        }
        for (out, sum) in output.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *out = Pack(sum);
        }
    }
}

#[inline(always)]
fn add_product(sums: &mut [f32; PACK], x: &[f32; PACK], weight: f32) {
    for lane in 0..PACK {
        sums[lane] += x[lane] * weight;
    }
}

/// Writes a dense layer in the order [`dense`] reads: `weights` is row-major `[inputs][outputs]`.
///
/// `packed` must have [`dense_len`] floats; what the layer does not fill is zero.
pub fn pack_dense(weights: &[f32], bias: &[f32], inputs: usize, packed: &mut [f32]) {
    let outputs = bias.len();
    let blocks = padded(outputs);
    packed.fill(0.0);
    for (to, from) in packed.iter_mut().zip(bias) {
        *to = *from;
    }
    for (i, row) in weights
        .chunks_exact(outputs.max(1))
        .take(inputs)
        .enumerate()
    {
        for (o, weight) in row.iter().enumerate() {
            let at = blocks + ((o / LANES) * inputs + i) * LANES + o % LANES;
            if let Some(to) = packed.get_mut(at) {
                *to = *weight;
            }
        }
    }
}

/// The reverse of [`pack_dense`].
pub fn unpack_dense(packed: &[f32], inputs: usize, weights: &mut [f32], bias: &mut [f32]) {
    let outputs = bias.len();
    let blocks = padded(outputs);
    for (to, from) in bias.iter_mut().zip(packed) {
        *to = *from;
    }
    for (i, row) in weights.chunks_exact_mut(outputs.max(1)).enumerate() {
        for (o, weight) in row.iter_mut().enumerate() {
            let at = blocks + ((o / LANES) * inputs + i) * LANES + o % LANES;
            *weight = packed.get(at).copied().unwrap_or(0.0);
        }
    }
}

/// No sum of a policy that is run can be larger: the squares of tens of thousands such numbers still
/// add up to a finite one.
pub(crate) const LARGEST_SUM: f32 = 1e16;

/// The greatest magnitude that the sums of a packed layer can have for inputs up to `bound`; none if
/// that is beyond [`LARGEST_SUM`].
pub(crate) fn bound(packed: &[f32], inputs: usize, outputs: usize, bound: f32) -> Option<f32> {
    let (bias, weights) = packed.split_at_checked(padded(outputs))?;
    let (rows, _) = weights.as_chunks::<LANES>();
    let mut rows = rows;
    let mut greatest = 0.0f32;
    for bias in bias.as_chunks::<LANES>().0 {
        let mut sums = bias.map(f32::abs);
        for row in rows.split_off(..inputs)? {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += weight.abs() * bound;
            }
        }
        greatest = sums
            .iter()
            .fold(greatest, |m, s| if *s > m { *s } else { m });
    }
    (greatest <= LARGEST_SUM).then_some(greatest)
}

/// Changes values, two at a time: a loop for each costs a node as much as a product. Not a function
/// of a closure, which a compiler may leave in the baseline's instructions.
macro_rules! for_each {
    ($values:expr, |$x:ident| $change:expr) => {
        let (pairs, rest) = $values.as_chunks_mut::<2>();
        for [a, b] in pairs {
            let $x = *a;
            *a = $change;
            let $x = *b;
            *b = $change;
        }
        if let [last] = rest {
            let $x = *last;
            *last = $change;
        }
    };
}

/// Soft normalisation and non-linearity, in place.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn finish<V: Value>(norm: Norm, activation: Activation, values: &mut [V]) {
    if norm == Norm::Soft {
        let scale = soft_scale(values);
        if activation == Activation::Tanh {
            // Shorter than 1 after normalisation.
            for_each!(values, |x| tanh_unit(x * scale));
            return;
        }
        for x in values.iter_mut() {
            *x = *x * scale;
        }
    }
    match activation {
        Activation::Identity => {}
        Activation::Tanh => {
            for_each!(values, |x| tanh(x));
        }
        Activation::Relu => {
            for x in values {
                *x = x.map(|x| if x > 0.0 { x } else { 0.0 });
            }
        }
    }
}

/// Euclidean norm: lane `l` sums the squares of elements `l, l + 8, …`, then lanes fold in halves.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn norm<V: Value>(values: &[V]) -> V {
    let mut sums = [V::splat(0.0); LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum = *sum + *x * *x;
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum = *sum + *x * *x;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    (((a + e) + (c + g)) + ((b + f) + (d + h))).sqrt()
}

/// The factor of the published network's soft normalisation, `1 / (‖h‖ + 1)`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn soft_scale<V: Value>(values: &[V]) -> V {
    let one = V::splat(1.0);
    one / (norm(values) + one)
}

/// Hyperbolic tangent of a finite value, within 5e-7.
///
/// A rational minimax fit x·P(x²)/Q(x²) on |x| ≤ 8, beyond which the value at 8 is 2.3e-7 off.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn tanh<V: Value>(x: V) -> V {
    const P: [f32; 4] = [0.999_999_34, 0.129_136_5, 0.002_938_836_3, 1.131_030_5e-5];
    const Q: [f32; 5] = [
        1.0,
        0.462_467_5,
        0.023_763_863,
        0.000_237_029_61,
        2.423_865_3e-7,
    ];
    let x = x.cut();
    let s = x * x;
    x * horner(&P, s) / horner(&Q, s)
}

/// What share of a limit an output means: tanh, which as we compute it may pass 1 by its error, cut
/// to −1..1.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn share<V: Value>(x: V) -> V {
    tanh(x).map(cut)
}

/// The nearest value in −1..1.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[expect(clippy::manual_clamp, reason = "`clamp` has an assertion in it")]
pub(crate) fn cut(y: f32) -> f32 {
    match y {
        y if y > 1.0 => 1.0,
        y if y < -1.0 => -1.0,
        y => y,
    }
}

/// Hyperbolic tangent of a value in −1..1, within 4e-7: what follows a soft normalisation.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn tanh_unit<V: Value>(x: V) -> V {
    const C: [f32; 6] = [
        0.999_996_84,
        -0.333_240_03,
        0.132_535_25,
        -0.050_972_86,
        0.016_114_175,
        -0.002_839_463_3,
    ];
    x * horner(&C, x * x)
}

/// sin(π y) and cos(π y), each within 3e-7, for |y| < 2³⁰.
///
/// Working in half turns makes the range reduction exact.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn sin_cos_pi(y: f32) -> (f32, f32) {
    // The nearest even integer to y; the cast truncates, hence the signed half.
    let half = y * 0.5;
    let turns = (half + if half < 0.0 { -0.5 } else { 0.5 }) as i32;
    let r = y - 2.0 * turns as f32;
    let folded = if r > 0.5 {
        1.0 - r
    } else if r < -0.5 {
        -1.0 - r
    } else {
        r
    };
    let magnitude = if r < 0.0 { -r } else { r };
    (sin_pi_quarter(folded), sin_pi_quarter(0.5 - magnitude))
}

/// sin(π r) for |r| ≤ 1/2, an odd minimax polynomial.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn sin_pi_quarter(r: f32) -> f32 {
    const C: [f32; 5] = [
        3.141_592_5,
        -5.167_707,
        2.550_031_4,
        -0.598_045_2,
        0.077_220_13,
    ];
    r * horner(&C, r * r)
}

/// c₀ + c₁ s + c₂ s² + …
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn horner<V: Value, const N: usize>(coefficients: &[f32; N], s: V) -> V {
    let mut sum = V::splat(coefficients[N - 1]);
    for c in coefficients.iter().rev().skip(1) {
        sum = sum * s + V::splat(*c);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Of the arguments that are tried; a prime under Miri, which takes hours for all of them.
    const EVERY: usize = if cfg!(miri) { 9973 } else { 1 };

    #[test]
    fn tanh_stays_within_its_stated_error() {
        let mut worst = 0.0f64;
        for i in (-1_200_000..=1_200_000).step_by(EVERY) {
            let x = i as f32 * 1e-5;
            worst = worst.max((f64::from(tanh(x)) - f64::from(x).tanh()).abs());
        }
        assert!(worst <= 5e-7, "{worst:e}");
        assert_eq!(tanh(1e30), tanh(8.0));
        assert_eq!(tanh(0.0), 0.0);
    }

    #[test]
    fn tanh_within_one_stays_within_its_stated_error() {
        let mut worst = 0.0f64;
        for i in (-1_000_000..=1_000_000).step_by(EVERY) {
            let x = i as f32 * 1e-6;
            worst = worst.max((f64::from(tanh_unit(x)) - f64::from(x).tanh()).abs());
        }
        assert!(worst <= 4e-7, "{worst:e}");
    }

    #[test]
    fn sine_and_cosine_stay_within_their_stated_error() {
        for i in (-2_000_000..=2_000_000).step_by(EVERY) {
            let y = i as f32 * 1e-5;
            let (s, c) = sin_cos_pi(y);
            // Reduced first: f64 sine of a large product is itself inexact at 1e-15, far below.
            let angle = f64::from(y) * core::f64::consts::PI;
            assert!((f64::from(s) - angle.sin()).abs() <= 3e-7, "sin at {y}");
            assert!((f64::from(c) - angle.cos()).abs() <= 3e-7, "cos at {y}");
        }
    }

    #[test]
    fn a_packed_layer_computes_the_plain_product() {
        for (inputs, outputs) in [(1, 1), (3, 8), (16, 64), (5, 11), (96, 2)] {
            let weights: Vec<f32> = (0..inputs * outputs).map(|k| (k as f32).sin()).collect();
            let bias: Vec<f32> = (0..outputs).map(|k| (k as f32).cos()).collect();
            let input: Vec<f32> = (0..inputs).map(|k| (k as f32 * 0.7).cos()).collect();
            let mut packed = std::vec![f32::NAN; dense_len(inputs, outputs)];
            pack_dense(&weights, &bias, inputs, &mut packed);
            let mut output = std::vec![f32::NAN; outputs];
            dense(&packed, &input, &mut output);
            for o in 0..outputs {
                let mut sum = bias[o];
                for i in 0..inputs {
                    sum += input[i] * weights[i * outputs + o];
                }
                assert_eq!(
                    sum.to_bits(),
                    output[o].to_bits(),
                    "{inputs}x{outputs} at {o}"
                );
            }
        }
    }

    #[test]
    fn soft_normalisation_keeps_the_direction_and_shortens_below_one() {
        let h: Vec<f32> = (0..13).map(|k| k as f32 - 4.0).collect();
        let length = h.iter().map(|x| x * x).sum::<f32>().sqrt();
        let expected: Vec<f32> = h.iter().map(|x| x / (length + 1.0)).collect();
        let scale = soft_scale(&h);
        for (a, b) in h.iter().zip(expected) {
            assert!((a * scale - b).abs() < 1e-6);
        }
    }
}
