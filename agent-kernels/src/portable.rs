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
        let high = [0, 1].map(|k| whole[k].wrapping_sub(low[k]) >> 8);
        *output = [high[0], low[0], high[1], low[1]];
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
