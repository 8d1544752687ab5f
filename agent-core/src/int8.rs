//! Layers with 8-bit weights.
//!
//! Sums are taken in integers, exactly, so their order does not matter. A layer's inputs are
//! integers up to 2^`bits`, with `bits` as large as leaves its greatest sum within
//! [`SUM_LIMIT`](kernels::SUM_LIMIT). Hidden layers end in tanh, so what goes from one to the next
//! is a fraction of 1; the features of the first layer are divided by the largest of them.
//!
//! A layer in the weight section, in words: `bits`; biases and scales as f32, each padded to whole
//! quads of outputs; then [tiles](kernels::Tile), all inputs of the first quad of outputs first.

use crate::net;
use crate::policy::{
    Activation, Complaint, Dense, Fault, FieldName, Fusion, Network, Norm, Outputs, field,
};
use agent_kernels as kernels;
use kernels::{QUAD, SUM_LIMIT, Tile};

/// Most bits of an input.
const MAX_BITS: u32 = 14;

/// `len` rounded up to whole quads.
pub(crate) const fn padded(len: usize) -> usize {
    len.div_ceil(QUAD) * QUAD
}

/// Words of a layer.
pub(crate) const fn dense_len(inputs: usize, outputs: usize) -> usize {
    1 + 2 * padded(outputs) + padded(outputs) * padded(inputs) / QUAD
}

/// Checks that a network's layers can be run with 8-bit weights.
pub(crate) fn check(network: &Network) -> Result<(), Complaint> {
    let name = FieldName::Encoding;
    let (branch, trunk) = (&network.branch[..], &network.trunk[..]);
    let Some((last, head)) = network.head.split_last() else {
        return field(name, Fault::Int8Parts);
    };
    if branch.is_empty() || trunk.is_empty() {
        return field(name, Fault::Int8Parts);
    }
    for hidden in [branch, trunk, head] {
        for layer in hidden {
            if layer.activation != Activation::Tanh {
                return field(name, Fault::Int8Activations);
            }
            if !usize::from(layer.outputs).is_multiple_of(QUAD) {
                return field(name, Fault::Int8Outputs);
            }
        }
    }
    match last.activation {
        Activation::Identity => Ok(()),
        _ => field(name, Fault::Int8Activations),
    }
}

/// A layer, taken apart.
#[derive(Clone, Copy)]
struct Layer<'a> {
    bits: u32,
    bias: &'a [f32],
    scale: &'a [f32],
    tiles: &'a [Tile],
}

impl<'a> Layer<'a> {
    /// The next layer in `weights`, which goes on behind it.
    fn read(weights: &mut &'a [f32], inputs: usize, outputs: usize) -> Option<Self> {
        let (layer, rest) = weights.split_at_checked(dense_len(inputs, outputs))?;
        *weights = rest;
        let (bits, layer) = layer.split_first()?;
        let (bias, layer) = layer.split_at_checked(padded(outputs))?;
        let (scale, tiles) = layer.split_at_checked(padded(outputs))?;
        let words: &[u32] = bytemuck::must_cast_slice(tiles);
        Some(Self {
            bits: bits.to_bits(),
            bias,
            scale,
            tiles: words.as_chunks().0,
        })
    }

    /// The same for a layer of the network.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn next(weights: &mut &'a [f32], dense: &Dense) -> Option<Self> {
        Self::read(
            weights,
            usize::from(dense.inputs),
            usize::from(dense.outputs),
        )
    }

    /// The greatest magnitude that its sums can have for inputs up to `bound`, or why it cannot run.
    fn bound(&self, inputs: usize, bound: f32) -> Result<f32, Fault> {
        if self.bits > MAX_BITS {
            return Err(Fault::Int8Bits);
        }
        if !self.bias.iter().chain(self.scale).all(|x| x.is_finite()) {
            return Err(Fault::Int8NotFinite);
        }
        let mut tiles = self.tiles;
        let mut greatest = 0.0f32;
        let (biases, _) = self.bias.as_chunks::<QUAD>();
        let (scales, _) = self.scale.as_chunks::<QUAD>();
        for (bias, scale) in biases.iter().zip(scales) {
            // Those of outputs 0 and 1, 2 and 3.
            let mut sums = [[0u32; 2]; QUAD / 2];
            let block = tiles.split_off(..padded(inputs) / QUAD);
            for words in block.unwrap_or_default().as_flattened().as_chunks().0 {
                let words: &[u32; QUAD / 2] = words;
                for (word, [first, second]) in words.iter().zip(&mut sums) {
                    for half in &[*word as i16, (word >> 16) as i16] {
                        let low = *half as i8;
                        *first += ((i32::from(*half) - i32::from(low)) >> 8).unsigned_abs();
                        *second += u32::from(low.unsigned_abs());
                    }
                }
            }
            for ((sum, bias), scale) in sums.as_flattened().iter().zip(bias).zip(scale) {
                if *sum > SUM_LIMIT >> self.bits {
                    return Err(Fault::Int8Sums);
                }
                let sum = (sum << self.bits) as f32;
                let sum = sum * scale.abs() * bound + bias.abs();
                greatest = if sum > greatest { sum } else { greatest };
            }
        }
        match greatest <= net::LARGEST_SUM {
            true => Ok(greatest),
            false => Err(Fault::SumsTooLarge),
        }
    }

    /// The layer's sums, scaled and with their biases. `gain` is what an input of 2^bits stands for.
    fn sums(&self, input: &[f32], gain: f32, output: &mut [f32]) {
        let words: &[u32] = bytemuck::must_cast_slice(input);
        let sums: &mut [i32] = bytemuck::must_cast_slice_mut(output);
        kernels::dense_int8(self.tiles, words.as_chunks().0, sums.as_chunks_mut().0);
        // Whole quads: a loop for each costs a node as much as its arithmetic.
        let quads = output.as_chunks_mut::<QUAD>().0.iter_mut();
        let (bias, scale) = (self.bias.as_chunks::<QUAD>().0, self.scale.as_chunks().0);
        for ((out, bias), scale) in quads.zip(bias).zip(scale) {
            let scale: &[f32; QUAD] = scale;
            for ((out, bias), scale) in out.iter_mut().zip(bias).zip(scale) {
                let sum = out.to_bits() as i32 as f32;
                *out = sum * scale * gain + bias;
            }
        }
    }
}

/// Checks all layers: every number finite, no sum beyond its limit.
pub(crate) fn check_weights(
    network: &Network,
    mut weights: &[f32],
    features: f32,
) -> Result<(), Fault> {
    for (part, first) in [
        (&network.branch, features),
        (&network.trunk, 1.0),
        (&network.head, 1.0),
    ] {
        let mut bound = first;
        for dense in part {
            let layer = Layer::next(&mut weights, dense).ok_or(Fault::CutOff)?;
            layer.bound(usize::from(dense.inputs), bound)?;
            bound = 1.0;
        }
    }
    Ok(())
}

/// From features and memory (in `floats`) and Fourier features (which `fourier` writes where it is
/// told, and says how many) to the raw outputs. `joint` takes branch and trunk outputs.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(crate) fn infer(
    network: &Network,
    mut weights: &[f32],
    fourier: impl FnOnce(&mut [f32]) -> usize,
    joint: &mut [f32],
    floats: &mut [f32],
    words: &mut [f32],
    outputs: &mut Outputs,
) -> Option<()> {
    let bits = head_bits(network, weights)?;
    let (seen, rest) = joint.split_at_mut_checked(half(network.branch.last()?.outputs))?;
    let placed = rest.get_mut(..half(network.trunk.last()?.outputs))?;

    let features = usize::from(network.branch.first()?.inputs);
    let gain = largest(floats.get(..features)?);
    let inputs = Inputs {
        count: features,
        factor: if gain > 0.0 { 1.0 / gain } else { 0.0 },
        gain,
    };
    hidden(
        &network.branch,
        &mut weights,
        inputs,
        bits,
        floats,
        words,
        seen,
    )?;
    let inputs = Inputs {
        count: fourier(floats),
        factor: 1.0,
        gain: 1.0,
    };
    hidden(
        &network.trunk,
        &mut weights,
        inputs,
        bits,
        floats,
        words,
        placed,
    )?;
    let fused = match network.fusion {
        Fusion::Concatenate => seen.len() + placed.len(),
        Fusion::Multiply => {
            multiply(seen, placed, bits);
            seen.len()
        }
    };
    for (to, from) in words.iter_mut().zip(joint.get(..fused)?) {
        *to = *from;
    }

    let (last, firsts) = network.head.split_last()?;
    for (index, dense) in firsts.iter().enumerate() {
        let layer = Layer::next(&mut weights, dense)?;
        let sums = floats.get_mut(..usize::from(dense.outputs))?;
        layer.sums(words.get(..half(dense.inputs))?, 1.0, sums);
        let behind = firsts.get(index + 1).unwrap_or(last);
        let bits = Layer::next(&mut { weights }, behind)?.bits;
        activate(dense.norm, sums, bits, words);
    }
    let layer = Layer::next(&mut weights, last)?;
    // Whole quads: the few outputs of the last layer are not.
    let sums = floats.get_mut(..padded(usize::from(last.outputs)))?;
    layer.sums(words.get(..half(last.inputs))?, 1.0, sums);
    for (out, sum) in outputs.iter_mut().zip(sums).take(usize::from(last.outputs)) {
        *out = *sum;
    }
    if last.norm == Norm::Soft {
        let scale = net::soft_scale(&outputs[..]);
        for out in outputs {
            *out *= scale;
        }
    }
    Some(())
}

/// Words of so many inputs.
fn half(count: u16) -> usize {
    padded(usize::from(count)) / 2
}

/// What the first layer of a part is given.
struct Inputs {
    count: usize,
    /// Brings them to at most 1.
    factor: f32,
    /// The reverse.
    gain: f32,
}

/// Runs the hidden layers of branch or trunk on the inputs in `floats`; the last one's outputs go to
/// `output`, as inputs of so many bits.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn hidden(
    layers: &[Dense],
    weights: &mut &[f32],
    inputs: Inputs,
    bits: u32,
    floats: &mut [f32],
    words: &mut [f32],
    output: &mut [f32],
) -> Option<()> {
    let mut gain = inputs.gain;
    let first = Layer::next(&mut { *weights }, layers.first()?)?;
    let padding = floats.get_mut(inputs.count..padded(inputs.count))?;
    padding.fill(0.0);
    let features = floats.get(..padded(inputs.count))?;
    quantise(features, inputs.factor, first.bits, words);
    for (index, dense) in layers.iter().enumerate() {
        let layer = Layer::next(weights, dense)?;
        let sums = floats.get_mut(..usize::from(dense.outputs))?;
        layer.sums(words.get(..half(dense.inputs))?, gain, sums);
        gain = 1.0;
        match layers.get(index + 1) {
            Some(behind) => {
                let bits = Layer::next(&mut { *weights }, behind)?.bits;
                activate(dense.norm, sums, bits, words);
            }
            None => activate(dense.norm, sums, bits, output),
        }
    }
    Some(())
}

/// The bits of the head's inputs, behind branch and trunk.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn head_bits(network: &Network, weights: &[f32]) -> Option<u32> {
    let mut before = 0;
    for part in [&network.branch, &network.trunk] {
        for layer in part {
            before += dense_len(usize::from(layer.inputs), usize::from(layer.outputs));
        }
    }
    Some(weights.get(before)?.to_bits())
}

/// The largest magnitude.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn largest(values: &[f32]) -> f32 {
    // Floats without sign are in the order of their bits.
    let larger = |m: u32, x: &f32| m.max(x.to_bits() & 0x7fff_ffff);
    let (fours, rest) = values.as_chunks::<4>();
    let mut largest = rest.iter().fold(0, larger);
    for [a, b, c, d] in fours {
        largest = larger(larger(larger(larger(largest, a), b), c), d);
    }
    f32::from_bits(largest)
}

/// Two integers in one word.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn pair(low: i32, high: i32) -> f32 {
    f32::from_bits(low as u32 & 0xffff | (high as u32) << 16)
}

/// Values in −1..1, after `factor`, as integers up to 2^`bits`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn quantise(values: &[f32], factor: f32, bits: u32, words: &mut [f32]) {
    let factor = factor * (1u32 << bits.min(MAX_BITS)) as f32;
    let integer = |x: f32| nearest(x * factor);
    for (word, x) in words.iter_mut().zip(values.as_chunks::<2>().0) {
        *word = pair(integer(x[0]), integer(x[1]));
    }
}

/// The nearest integer, for magnitudes far below 2²²; its lowest 16 bits are what counts.
///
/// In the sum with 1.5 · 2²³ the lowest bit of the significand counts ones.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn nearest(x: f32) -> i32 {
    (x + 12_582_912.0).to_bits() as i32
}

/// The product of fractions given as integers up to 2^`bits`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn multiply(a: &mut [f32], b: &[f32], bits: u32) {
    let rounding = 1i32 << bits.min(MAX_BITS) >> 1;
    for (a, b) in a.iter_mut().zip(b) {
        let (x, y) = (a.to_bits(), b.to_bits());
        let product = |shift: u32| {
            let (x, y) = ((x >> shift) as i16, (y >> shift) as i16);
            (i32::from(x) * i32::from(y) + rounding) >> bits.min(MAX_BITS)
        };
        *a = pair(product(0), product(16));
    }
}

/// tanh of the sums, after normalisation, as integers up to 2^`bits`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn activate(norm: Norm, sums: &[f32], bits: u32, words: &mut [f32]) {
    let scale = match norm {
        Norm::None => 1.0,
        Norm::Soft => net::soft_scale(sums),
    };
    let factor = scale * STEPS_PER_ONE;
    let down = 24 - bits.min(MAX_BITS);
    for (word, x) in words.iter_mut().zip(sums.as_chunks::<2>().0) {
        *word = pair(
            tanh_steps((x[0] * factor) as i32, down),
            tanh_steps((x[1] * factor) as i32, down),
        );
    }
}

/// Steps of the argument of [`tanh_steps`] in 1: 512 between two entries of its table.
const STEPS_PER_ONE: f32 = 16_384.0;

/// 2²⁴ tanh, down by so many bits, within 1.3e-4 of the scale before the last rounding, and beyond 4,
/// which the table's last entry is for, within 7e-4: linear between the entries.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn tanh_steps(steps: i32, down: u32) -> i32 {
    let steps = steps.clamp(-(1 << 16), (1 << 16) - 1);
    let at = ((steps >> 9) + 128) as usize & 0xff;
    let share = steps & 511;
    let (value, rise) = (i32::from(TANH[at] as i16), TANH[at] as i32 >> 16);
    let fine = (value << 9) + rise * share;
    (fine + (1 << (down - 1))) >> down
}

/// 32767 tanh(k / 32) for k from −128 to 127 in the low half, and in the high half by how much the
/// next is larger: both in one load.
static TANH: [u32; 256] = {
    let mut table = [0; 256];
    let mut k = 0;
    while k < 256 {
        let (here, there) = (tanh_at(k), tanh_at(k + 1));
        table[k] = here as u32 & 0xffff | ((there - here) as u32) << 16;
        k += 1;
    }
    table
};

const fn tanh_at(k: usize) -> i32 {
    match k >= 128 {
        true => POSITIVE[k - 128] as i32,
        false => -(POSITIVE[128 - k] as i32),
    }
}

#[rustfmt::skip]
const POSITIVE: [i16; 129] = [
    0, 1024, 2045, 3063, 4075, 5079, 6073, 7056, 8025, 8980, 9919, 10840, 11742, 12625,
    13486, 14325, 15142, 15936, 16706, 17451, 18173, 18869, 19541, 20189, 20812, 21411, 21986, 22537,
    23065, 23570, 24053, 24515, 24955, 25375, 25775, 26156, 26518, 26863, 27190, 27501, 27796, 28075,
    28340, 28592, 28829, 29054, 29267, 29469, 29659, 29839, 30009, 30169, 30321, 30464, 30599, 30726,
    30846, 30959, 31066, 31166, 31261, 31350, 31435, 31514, 31588, 31658, 31725, 31787, 31845, 31900,
    31952, 32001, 32047, 32090, 32131, 32169, 32205, 32239, 32270, 32300, 32328, 32355, 32380, 32403,
    32425, 32446, 32465, 32483, 32500, 32516, 32531, 32546, 32559, 32572, 32583, 32595, 32605, 32615,
    32624, 32633, 32641, 32648, 32656, 32662, 32669, 32675, 32680, 32685, 32690, 32695, 32699, 32703,
    32707, 32711, 32714, 32717, 32720, 32723, 32726, 32728, 32731, 32733, 32735, 32737, 32739, 32740,
    32742, 32744, 32745,
];

/// Writes a layer: `weights` is row-major `[inputs][outputs]`, `packed` has [`dense_len`] words.
///
/// Each output's weights are divided by a scale that makes the largest of them 127. If one is not
/// finite its scale is not either, which no reader takes.
pub(crate) fn pack_dense(weights: &[f32], bias: &[f32], inputs: usize, packed: &mut [f32]) {
    let outputs = bias.len();
    packed.fill(0.0);
    let column = |o: usize| {
        let column = weights.iter().skip(o).step_by(outputs.max(1));
        column.take(inputs).copied()
    };
    let scale = |o: usize| {
        // NaN is not at most anything, and once there stays.
        let at_most = |w: f32, m: f32| w.abs() <= m || m.is_nan();
        let largest = column(o).fold(0.0f32, |m, w| if at_most(w, m) { m } else { w.abs() });
        let scale = largest / 127.0;
        // Weights too small to be divided by are as good as none.
        if scale < f32::MIN_POSITIVE {
            1.0
        } else {
            scale
        }
    };
    let integer = |w: f32, scale: f32| libm::roundf(w / scale) as i32;
    let sum = |o: usize| {
        let scale = scale(o);
        let magnitudes = column(o).map(|w| integer(w, scale).unsigned_abs());
        magnitudes.sum::<u32>()
    };
    let greatest = (0..outputs).map(sum).fold(1, u32::max);
    let bits = (SUM_LIMIT / greatest).ilog2().min(MAX_BITS);
    let Some((stated, rest)) = packed.split_first_mut() else {
        return;
    };
    *stated = f32::from_bits(bits);
    let Some((biases, rest)) = rest.split_at_mut_checked(padded(outputs)) else {
        return;
    };
    let Some((scales, tiles)) = rest.split_at_mut_checked(padded(outputs)) else {
        return;
    };
    let tiles: &mut [u32] = bytemuck::must_cast_slice_mut(tiles);
    let (tiles, _) = tiles.as_chunks_mut::<QUAD>();
    let depth = padded(inputs) / QUAD;
    for (o, ((to, from), stated)) in biases.iter_mut().zip(bias).zip(scales).enumerate() {
        let scale = scale(o);
        *to = *from;
        *stated = scale / (1u32 << bits) as f32;
        for (i, w) in column(o).enumerate() {
            let Some(tile) = tiles.get_mut(o / QUAD * depth + i / QUAD) else {
                return;
            };
            let (j, k) = (i % QUAD / 2, o % QUAD / 2);
            let half = integer(w, scale) * if o % 2 == 0 { 256 } else { 1 };
            let Some(word) = tile.get_mut(2 * j + k) else {
                return;
            };
            let shift = 16 * (i % 2);
            let with = (*word >> shift) as i16 as i32 + half;
            *word = *word & !(0xffff << shift) | (with as u32 & 0xffff) << shift;
        }
    }
}

/// The reverse of [`pack_dense`]: weights that it makes the same words of again.
pub(crate) fn unpack_dense(packed: &[f32], inputs: usize, weights: &mut [f32], bias: &mut [f32]) {
    let outputs = bias.len();
    let Some(layer) = Layer::read(&mut { packed }, inputs, outputs) else {
        return;
    };
    let depth = padded(inputs) / QUAD;
    let weight = |i: usize, o: usize| {
        let tile = layer.tiles.get(o / QUAD * depth + i / QUAD);
        let word = tile.and_then(|tile| tile.get(i % QUAD / 2 * 2 + o % QUAD / 2));
        let half = (word.copied().unwrap_or(0) >> (16 * (i % 2))) as i16;
        let second = i32::from(half as i8);
        match o % 2 {
            0 => (i32::from(half) - second) >> 8,
            _ => second,
        }
    };
    let one = (1u32 << layer.bits.min(MAX_BITS)) as f32;
    for (o, ((to, from), stated)) in bias.iter_mut().zip(layer.bias).zip(layer.scale).enumerate() {
        *to = *from;
        let scale = stated * one;
        let largest = dividend(scale);
        for (i, row) in weights.chunks_exact_mut(outputs.max(1)).enumerate() {
            if let Some(to) = row.get_mut(o) {
                *to = match weight(i, o) {
                    127 => largest,
                    -127 => -largest,
                    integer => integer as f32 * scale,
                };
            }
        }
    }
}

/// A number of which 127 parts are `scale`, to the bit: the nearest one to 127 times it, or beside it. Not
/// every float is such a part; of those that are not it is the nearest.
fn dividend(scale: f32) -> f32 {
    let about = 127.0 * scale;
    let beside =
        [0, 1, -1i32].map(|ulps| f32::from_bits(about.to_bits().wrapping_add_signed(ulps)));
    let exact = |x: &&f32| (**x / 127.0).to_bits() == scale.to_bits();
    beside.iter().find(exact).copied().unwrap_or(about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A chord between entries is off by up to (1/32)²/8 · 0.77 = 9.4e-5, an entry by half of
    /// 1/32768, and the scale of 32767 by 3e-5; beyond the table 1 − tanh 4 = 6.7e-4 is left.
    #[test]
    fn tanh_stays_within_its_stated_error() {
        let (mut within, mut beyond) = (0.0f64, 0.0f64);
        let one = f64::from(1 << 24);
        for steps in (-100_000..=100_000).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let exact = (f64::from(steps) / f64::from(STEPS_PER_ONE)).tanh();
            // The last bit is a rounding of half.
            let found = f64::from(tanh_steps(steps, 1)) * 2.0 / one;
            let off = (found - exact).abs();
            match steps.abs() <= 1 << 16 {
                true => within = within.max(off),
                false => beyond = beyond.max(off),
            }
        }
        assert!(within <= 1.3e-4 && beyond <= 7e-4, "{within:e} {beyond:e}");
        assert_eq!(tanh_steps(0, 10), 0);
        // Never more than what the bits of an input hold.
        for bits in 0..=MAX_BITS {
            assert!(tanh_steps(i32::MAX, 24 - bits) <= 1 << bits);
            assert!(tanh_steps(i32::MIN, 24 - bits) >= -(1 << bits));
        }
    }

    /// The weights of a quad of outputs for a quad of inputs, `[input][output]`.
    fn untiled(tile: &Tile) -> [[i32; QUAD]; QUAD] {
        let mut weights = [[0; QUAD]; QUAD];
        for (i, row) in weights.iter_mut().enumerate() {
            for (o, weight) in row.iter_mut().enumerate() {
                let half = (tile[i / 2 * 2 + o / 2] >> (16 * (i % 2))) as i16;
                let low = i32::from(half as i8);
                *weight = [(i32::from(half) - low) >> 8, low][o % 2];
            }
        }
        weights
    }

    /// The weights of a packed layer as integers, `[inputs][outputs]`.
    fn unpacked(layer: &Layer, inputs: usize, outputs: usize) -> Vec<i32> {
        let depth = padded(inputs) / QUAD;
        let weight = |i: usize, o: usize| {
            untiled(&layer.tiles[o / QUAD * depth + i / QUAD])[i % QUAD][o % QUAD]
        };
        let all = (0..inputs).flat_map(|i| (0..outputs).map(move |o| (i, o)));
        all.map(|(i, o)| weight(i, o)).collect()
    }

    #[test]
    fn a_packed_layer_holds_its_weights_to_half_a_step() {
        for (inputs, outputs) in [(1, 1), (3, 2), (4, 4), (5, 7), (17, 3), (42, 16), (8, 33)] {
            let weights: Vec<f32> = (0..inputs * outputs)
                .map(|k| (1.0 + k as f32).sin())
                .collect();
            let bias: Vec<f32> = (0..outputs).map(|k| (k as f32).cos()).collect();
            let mut packed = std::vec![f32::NAN; dense_len(inputs, outputs)];
            pack_dense(&weights, &bias, inputs, &mut packed);
            let mut rest = &packed[..];
            let layer = Layer::read(&mut rest, inputs, outputs).unwrap();
            assert!(rest.is_empty());
            assert_eq!(layer.bias[..outputs], bias);
            let one = (1 << layer.bits) as f32;
            let integers = unpacked(&layer, inputs, outputs);
            for (k, (w, integer)) in weights.iter().zip(&integers).enumerate() {
                let scale = layer.scale[k % outputs] * one;
                assert!((w - *integer as f32 * scale).abs() <= 0.5001 * scale);
            }
            // As many bits as the greatest sum of magnitudes leaves room for, and no more.
            let sum = |o: usize| -> u32 {
                let column = integers.iter().skip(o).step_by(outputs);
                column.map(|w| w.unsigned_abs()).sum()
            };
            let greatest = (0..outputs).map(sum).max().unwrap();
            assert!(greatest << layer.bits <= SUM_LIMIT);
            assert!(layer.bits == MAX_BITS || greatest << (layer.bits + 1) > SUM_LIMIT);
            for o in 0..outputs {
                let column = integers.iter().skip(o).step_by(outputs);
                assert_eq!(column.map(|w| w.abs()).max(), Some(127));
            }
            // Nothing where there is no input or output.
            let padding: i32 = layer
                .tiles
                .iter()
                .flat_map(untiled)
                .flatten()
                .map(i32::abs)
                .sum();
            assert_eq!(padding, integers.iter().map(|w| w.abs()).sum());
        }
    }

    #[test]
    fn weights_that_are_nothing_or_next_to_nothing_are_packed_as_nothing() {
        let weights = [0.0, 1e-45, 1.0, 0.0, -1e-40, -0.5];
        let mut packed = [f32::NAN; dense_len(2, 3)];
        pack_dense(&weights, &[1.0; 3], 2, &mut packed);
        let layer = Layer::read(&mut &packed[..], 2, 3).unwrap();
        // -63.5 is rounded away from zero.
        assert_eq!(unpacked(&layer, 2, 3), [0, 0, 127, 0, 0, -64]);
        assert!(layer.bound(2, 1.0).is_ok());
    }

    #[test]
    fn an_unpacked_layer_is_packed_to_the_same_words() {
        // Large layers take Miri minutes.
        let shapes = [(1, 1), (3, 2), (4, 4), (5, 7), (17, 3), (42, 16), (300, 33)];
        for (inputs, outputs) in shapes.into_iter().take(if cfg!(miri) { 5 } else { 7 }) {
            for size in [1e-3, 1.0, 77.0] {
                let weight = |k: usize| match k % 7 {
                    3 => 0.0,
                    _ => (size * (1.0 + k as f32)).sin() * size,
                };
                let weights: Vec<f32> = (0..inputs * outputs).map(weight).collect();
                let bias: Vec<f32> = (0..outputs).map(|k| (k as f32).cos()).collect();
                let mut packed = std::vec![f32::NAN; dense_len(inputs, outputs)];
                pack_dense(&weights, &bias, inputs, &mut packed);
                let mut found = std::vec![f32::NAN; weights.len()];
                let mut biases = std::vec![f32::NAN; outputs];
                unpack_dense(&packed, inputs, &mut found, &mut biases);
                let mut again = std::vec![f32::NAN; packed.len()];
                pack_dense(&found, &biases, inputs, &mut again);
                let bits = |words: &[f32]| words.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&again), bits(&packed), "{inputs} {outputs} {size}");
            }
        }
    }

    #[test]
    fn integers_are_the_nearest_ones() {
        for k in (-32_768..=32_768).step_by(if cfg!(miri) { 255 } else { 1 }) {
            let x = k as f32 * 0.5;
            assert_eq!(nearest(x) as i16, x.round_ties_even() as i16, "{x}");
        }
    }
}
