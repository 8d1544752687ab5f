//! What the kernels compute.
//!
//! Everything is inlined on x86-64, so that a host can compile a whole control step for wider
//! vectors than the baseline's.

use crate::{LANES, QUAD, Tile};

/// `output[b] = start[b] + Σ_i input[i] · rows[b · n + i]`, each sum taken in the order of `i`, with
/// `n` inputs. Missing starts or rows leave outputs as they are.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn dense(
    start: &[[f32; LANES]],
    rows: &[[f32; LANES]],
    input: &[f32],
    output: &mut [[f32; LANES]],
) {
    #[cfg(target_arch = "x86_64")]
    let (start, rows, output) = dense_groups(start, rows, input, output);
    let blocks = rows.chunks_exact(input.len().max(1));
    for ((start, rows), output) in start.iter().zip(blocks).zip(output) {
        let mut sums = *start;
        for (x, row) in input.iter().zip(rows) {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += x * weight;
            }
        }
        *output = sums;
    }
}

/// Blocks whose sums x86-64 takes at the same time: a sum waits for its last addition, and while it
/// does the others go on. A Cortex-M4F has neither the wait nor the registers.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 4;

#[cfg(target_arch = "x86_64")]
type Block = [f32; LANES];

/// The part of [`dense`] that whole groups of blocks are; returns what is left of each argument.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn dense_groups<'a>(
    start: &'a [Block],
    rows: &'a [Block],
    input: &[f32],
    output: &'a mut [Block],
) -> (&'a [Block], &'a [Block], &'a mut [Block]) {
    let depth = input.len().max(1);
    let groups = (start.len().min(output.len()) / GROUP).min(rows.len() / (GROUP * depth));
    let (start, start_left) = start.split_at(groups * GROUP);
    let (rows, rows_left) = rows.split_at(groups * GROUP * depth);
    let (output, output_left) = output.split_at_mut(groups * GROUP);
    let (start, _) = start.as_chunks::<GROUP>();
    let (output, _) = output.as_chunks_mut::<GROUP>();
    for ((start, rows), output) in start
        .iter()
        .zip(rows.chunks_exact(GROUP * depth))
        .zip(output)
    {
        let (first, rest) = rows.split_at(depth);
        let (second, rest) = rest.split_at(depth);
        let (third, fourth) = rest.split_at(depth);
        let [mut a, mut b, mut c, mut d] = *start;
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
    (start_left, rows_left, output_left)
}

/// `output[b][o] = Σ_i input[i] · w[i][4 b + o]` for int8 weights in tiles, those of a block of
/// outputs one after the other. An input word holds two 16-bit inputs, the first in its low half;
/// there are two words for each tile of a block.
///
/// Exact as long as no sum exceeds [`SUM_LIMIT`](crate::SUM_LIMIT); beyond, sums wrap. Missing tiles
/// leave outputs as they are.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn dense_int8(tiles: &[Tile], input: &[[u32; 2]], output: &mut [[i32; QUAD]]) {
    let blocks = tiles.chunks_exact(input.len().max(1));
    for (tiles, output) in blocks.zip(output) {
        let mut whole = [0i32; 2];
        let mut low = [0i32; 2];
        for (tile, input) in tiles.iter().zip(input) {
            let (pairs, _) = tile.as_chunks::<2>();
            for (x, words) in input.iter().zip(pairs) {
                for ((word, whole), low) in words.iter().zip(&mut whole).zip(&mut low) {
                    for shift in [0, 16] {
                        let (x, half) = ((x >> shift) as i16, (word >> shift) as i16);
                        *whole = whole.wrapping_add(i32::from(half) * i32::from(x));
                        *low = low.wrapping_add(i32::from(half as i8) * i32::from(x));
                    }
                }
            }
        }
        // Taken apart, not indexed in a closure: that is checked when optimised for size.
        let ([first, second], [low, low_second]) = (whole, low);
        let high = |whole: i32, low| whole.wrapping_sub(low) >> 8;
        *output = [high(first, low), low, high(second, low_second), low_second];
    }
}

/// Square root, rounded as IEEE 754 asks.
///
/// Never inlined on x86-64: `libm`'s root is an instruction in the baseline's encoding, for which
/// code with wider vectors would have to wait; before a call it leaves those in a state that does
/// not matter.
#[cfg_attr(target_arch = "x86_64", inline(never))]
pub fn sqrt(x: f32) -> f32 {
    libm::sqrtf(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SUM_LIMIT;
    use std::vec::Vec;

    /// A small generator (SplitMix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> i64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % end) as i64
        }
    }

    /// Weights `[inputs][outputs]`, whole quads of both, in tiles.
    fn tiles(weights: &[i64], inputs: usize, outputs: usize) -> Vec<Tile> {
        let w = |i: usize, o: usize| weights[i * outputs + o];
        let mut tiles = Vec::new();
        for o in (0..outputs).step_by(QUAD) {
            for i in (0..inputs).step_by(QUAD) {
                let half = |i, o| (256 * w(i, o) + w(i, o + 1)) as u16;
                let word = |i, o| u32::from(half(i, o)) | u32::from(half(i + 1, o)) << 16;
                tiles.push([
                    word(i, o),
                    word(i, o + 2),
                    word(i + 2, o),
                    word(i + 2, o + 2),
                ]);
            }
        }
        tiles
    }

    fn words(input: &[i64]) -> Vec<[u32; 2]> {
        let pair = |low: i64, high: i64| u32::from(low as u16) | u32::from(high as u16) << 16;
        let (quads, _) = input.as_chunks::<QUAD>();
        quads
            .iter()
            .map(|[a, b, c, d]| [pair(*a, *b), pair(*c, *d)])
            .collect()
    }

    fn check(weights: &[i64], input: &[i64], outputs: usize) {
        let mut found = std::vec![[i32::MIN; QUAD]; outputs / QUAD];
        let tiles = tiles(weights, input.len(), outputs);
        dense_int8(&tiles, &words(input), &mut found);
        for (o, found) in found.as_flattened().iter().enumerate() {
            let column = weights.iter().skip(o).step_by(outputs);
            let sum: i64 = column.zip(input).map(|(w, x)| w * x).sum();
            assert!(sum.unsigned_abs() <= u64::from(SUM_LIMIT), "{sum}");
            assert_eq!(i64::from(*found), sum, "output {o}");
        }
    }

    #[test]
    fn sums_of_8_bit_weights_are_exact() {
        let mut random = Random(1);
        for (inputs, outputs) in [(4usize, 4), (8, 12), (44, 64), (96, 4), (512, 8)] {
            // 128 · 2^bits · inputs stays below 2²³.
            let bits = (23 - 7 - inputs.next_power_of_two().ilog2()).min(14);
            for _ in 0..if cfg!(miri) { 1 } else { 20 } {
                let weights: Vec<i64> = (0..inputs * outputs)
                    .map(|_| random.below(255) - 127)
                    .collect();
                let input: Vec<i64> = (0..inputs)
                    .map(|_| random.below((2 << bits) + 1) - (1 << bits))
                    .collect();
                check(&weights, &input, outputs);
            }
        }
    }

    /// 127 · 2¹⁴ · 4 and 127 · 2⁷ · 516 are as near to the limit of 2²³ − 1 as inputs of 14 and 7
    /// bits get: within 66 thousand and within 511. All outputs are there at once, with all signs.
    #[test]
    fn sums_at_their_limit_are_exact_whatever_their_neighbours() {
        assert_eq!(127 * (1 << 14) * 4, SUM_LIMIT - 65_535);
        assert_eq!(127 * (1 << 7) * 516, SUM_LIMIT - 511);
        for (inputs, bits) in [(4, 14), (516, 7)] {
            for signs in 0..32u32 {
                let sign = |k: usize| if signs >> k & 1 == 0 { 1 } else { -1 };
                let weights: Vec<i64> = (0..inputs * QUAD).map(|k| 127 * sign(k % QUAD)).collect();
                let input = std::vec![sign(QUAD) << bits; inputs];
                check(&weights, &input, QUAD);
                // And each on its own way up and down again.
                let turns = |i: usize| if i.is_multiple_of(2) { 1 } else { -1 };
                let weights: Vec<i64> = (0..inputs * QUAD)
                    .map(|k| 127 * sign(k % QUAD) * turns(k / QUAD))
                    .collect();
                let input: Vec<i64> = (0..inputs)
                    .map(|i| (sign(QUAD) * turns(i)) << bits)
                    .collect();
                check(&weights, &input, QUAD);
            }
        }
    }

    #[test]
    fn a_low_weight_of_minus_128_does_not_carry_into_its_neighbour() {
        for neighbour in [-127, -1, 0, 1, 127] {
            let weights = [neighbour, -128, neighbour, -128].repeat(4);
            check(&weights, &[16_384, -16_384, 1, -1], QUAD);
            check(&weights, &[16_383, 1, 7, 0], QUAD);
        }
    }

    #[test]
    fn missing_tiles_leave_outputs_as_they_are() {
        let tiles = tiles(&[1; 32], 8, QUAD);
        let mut output = [[7; QUAD]; 2];
        dense_int8(&tiles, &words(&[1; 8]), &mut output);
        assert_eq!(output, [[8; QUAD], [7; QUAD]]);
        dense_int8(&tiles[..1], &words(&[1; 8]), &mut output[1..]);
        assert_eq!(output[1], [7; QUAD]);
    }

    /// In groups of blocks and one by one, the order of each sum is that of the inputs.
    #[test]
    fn dense_sums_are_taken_in_the_order_of_the_inputs() {
        let mut random = Random(2);
        let mut float = || random.below(1 << 24) as f32 / 8_388_608.0 - 1.0;
        for (inputs, blocks) in [(1, 1), (3, 4), (40, 5), (7, 9), (0, 2)] {
            let mut block = || [(); LANES].map(|()| float());
            let start: Vec<_> = (0..blocks).map(|_| block()).collect();
            let rows: Vec<_> = (0..blocks * inputs).map(|_| block()).collect();
            let input: Vec<f32> = (0..inputs).map(|_| block()[0]).collect();
            let mut output = std::vec![[0.5; LANES]; blocks];
            dense(&start, &rows, &input, &mut output);
            for (b, output) in output.iter().enumerate() {
                for (lane, found) in output.iter().enumerate() {
                    let mut sum = start[b][lane];
                    for (i, x) in input.iter().enumerate() {
                        sum += x * rows[b * inputs + i][lane];
                    }
                    // Without rows there is nothing to do.
                    let expected = if inputs == 0 { 0.5 } else { sum };
                    assert_eq!(found.to_bits(), expected.to_bits());
                }
            }
        }
    }
}
