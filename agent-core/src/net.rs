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

/// Outputs computed side by side, and the block size of packed weights.
pub const LANES: usize = 8;

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
    #[cfg(target_arch = "x86_64")]
    let (bias, rows, output) = dense_groups(bias, rows, input, output);
    let blocks = rows.chunks_exact(input.len().max(1));
    for ((bias, rows), output) in bias.iter().zip(blocks).zip(output.chunks_mut(LANES)) {
        let mut sums = *bias;
        for (x, row) in input.iter().zip(rows) {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += x * weight;
            }
        }
        for (out, sum) in output.iter_mut().zip(sums) {
            *out = sum;
        }
    }
}

/// Blocks whose sums x86-64 takes at the same time: a sum waits for its last addition, and while it
/// does the others go on. A Cortex-M4F has neither the wait nor the registers.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 4;

/// The part of [`dense`] that whole groups of blocks are; returns what is left of each argument.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn dense_groups<'a>(
    bias: &'a [[f32; LANES]],
    rows: &'a [[f32; LANES]],
    input: &[f32],
    output: &'a mut [f32],
) -> (&'a [[f32; LANES]], &'a [[f32; LANES]], &'a mut [f32]) {
    let depth = input.len().max(1);
    let groups = (output.len() / (GROUP * LANES)).min(rows.len() / (GROUP * depth));
    let (bias, bias_left) = bias.split_at(groups * GROUP);
    let (rows, rows_left) = rows.split_at(groups * GROUP * depth);
    let (output, output_left) = output.split_at_mut(groups * GROUP * LANES);
    let (bias, _) = bias.as_chunks::<GROUP>();
    let (output, _) = output.as_chunks_mut::<LANES>();
    let (output, _) = output.as_chunks_mut::<GROUP>();
    for ((bias, rows), output) in bias
        .iter()
        .zip(rows.chunks_exact(GROUP * depth))
        .zip(output)
    {
        let (first, rest) = rows.split_at(depth);
        let (second, rest) = rest.split_at(depth);
        let (third, fourth) = rest.split_at(depth);
        let [mut a, mut b, mut c, mut d] = *bias;
        for (i, x) in input.iter().enumerate() {
            for lane in 0..LANES {
                a[lane] += x * first[i][lane];
                b[lane] += x * second[i][lane];
                c[lane] += x * third[i][lane];
                d[lane] += x * fourth[i][lane];
            }
        }
        *output = [a, b, c, d];
    }
    (bias_left, rows_left, output_left)
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

/// Euclidean norm: lane `l` sums the squares of elements `l, l + 8, …`, then lanes fold in halves.
///
/// Never inlined on x86-64: `libm`'s root is an instruction in the baseline's encoding, for which
/// code with wider vectors would have to wait; before a call it leaves those in a state that does
/// not matter.
#[cfg_attr(target_arch = "x86_64", inline(never))]
pub fn norm(values: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum += x * x;
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += x * x;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    libm::sqrtf(((a + e) + (c + g)) + ((b + f) + (d + h)))
}

/// `h / (‖h‖ + 1)`, the soft normalisation of the published network.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn soft_normalise(values: &mut [f32]) {
    let scale = 1.0 / (norm(values) + 1.0);
    for x in values {
        *x *= scale;
    }
}

/// Hyperbolic tangent, within 3.5e-7 of the true value, never beyond ±1; NaN stays NaN.
///
/// A rational minimax fit x·P(x²)/Q(x²) on |x| ≤ 8.5, beyond which tanh rounds to ±1 in f32.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn tanh(x: f32) -> f32 {
    const P: [f32; 5] = [
        1.0,
        0.134_132_6,
        0.003_534_040_9,
        2.125_124_4e-5,
        1.426_944_5e-8,
    ];
    const Q: [f32; 5] = [
        1.0,
        0.467_465_82,
        0.026_022_807,
        0.000_334_888_64,
        8.145_225e-7,
    ];
    let x = x.clamp(-8.5, 8.5);
    let s = x * x;
    (x * horner(&P, s) / horner(&Q, s)).clamp(-1.0, 1.0)
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
fn horner<const N: usize>(coefficients: &[f32; N], s: f32) -> f32 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * s + c)
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
        assert!(worst <= 3.5e-7, "{worst:e}");
        assert_eq!(tanh(f32::INFINITY), 1.0_f32.min(tanh(8.5)));
        assert_eq!(tanh(1e-30), 1e-30);
        assert!(tanh(f32::NAN).is_nan());
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
        let mut h: Vec<f32> = (0..13).map(|k| k as f32 - 4.0).collect();
        let length = h.iter().map(|x| x * x).sum::<f32>().sqrt();
        let expected: Vec<f32> = h.iter().map(|x| x / (length + 1.0)).collect();
        soft_normalise(&mut h);
        for (a, b) in h.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6);
        }
    }
}
