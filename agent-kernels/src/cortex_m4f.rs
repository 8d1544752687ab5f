//! The kernels in a Cortex-M4F's own instructions.

use crate::{LANES, QUAD, Tile};
use core::arch::asm;

/// The products of one input with the first eight weights loaded, then their addition to the sums.
macro_rules! first {
    ($x:literal) => {
        products!($x, 16 17 18 19 20 21 22 23)
    };
}

/// The same with the second eight.
macro_rules! second {
    ($x:literal) => {
        products!($x, 24 25 26 27 28 29 30 31)
    };
}

macro_rules! products {
    ($x:literal, $a:literal $b:literal $c:literal $d:literal $e:literal $f:literal $g:literal $h:literal) => {
        concat!(
            times!($a, $x),
            times!($b, $x),
            times!($c, $x),
            times!($d, $x),
            times!($e, $x),
            times!($f, $x),
            times!($g, $x),
            times!($h, $x),
            plus!(0, $a),
            plus!(1, $b),
            plus!(2, $c),
            plus!(3, $d),
            plus!(4, $e),
            plus!(5, $f),
            plus!(6, $g),
            plus!(7, $h),
        )
    };
}

macro_rules! times {
    ($w:literal, $x:literal) => {
        concat!("vmul.f32 s", $w, ", s", $w, ", s", $x, "\n")
    };
}

macro_rules! plus {
    ($sum:literal, $product:literal) => {
        concat!("vadd.f32 s", $sum, ", s", $sum, ", s", $product, "\n")
    };
}

/// [`portable::dense`](crate::portable::dense).
///
/// Eight sums stay in registers; one instruction loads the weights of two inputs, another eight
/// inputs. What is left are a multiplication and an addition for each weight.
#[inline(never)]
pub fn dense(
    start: &[[f32; LANES]],
    rows: &[[f32; LANES]],
    input: &[f32],
    output: &mut [[f32; LANES]],
) {
    let n = input.len();
    let blocks = start.len().min(output.len());
    // Lengths are those of slices in memory, so that the product cannot overflow.
    let blocks = match n {
        0 => 0,
        _ if rows.len() < blocks * n => rows.len() / n,
        _ => blocks,
    };
    if blocks == 0 {
        return;
    }
    // SAFETY: `start` and `output` have at least `blocks` blocks, `rows` at least `blocks · n`, and
    // `input` has `n` values: that is what the loops read and write, each in order, aligned as
    // floats. The stack is not touched; all registers that change are named.
    unsafe {
        asm!(
            "2:", // a block
            "vldmia {start}!, {{s0-s7}}",
            "mov {x}, {input}",
            "lsrs {count}, {n}, #3",
            "beq 4f",
            "3:", // eight inputs
            "vldmia {x}!, {{s8-s15}}",
            "vldmia {rows}!, {{s16-s31}}",
            first!(8),
            second!(9),
            "vldmia {rows}!, {{s16-s31}}",
            first!(10),
            second!(11),
            "vldmia {rows}!, {{s16-s31}}",
            first!(12),
            second!(13),
            "vldmia {rows}!, {{s16-s31}}",
            first!(14),
            second!(15),
            "subs {count}, {count}, #1",
            "bne 3b",
            "4:",
            "ands {count}, {n}, #7",
            "beq 6f",
            "5:", // one input
            "vldmia {x}!, {{s8}}",
            "vldmia {rows}!, {{s16-s23}}",
            first!(8),
            "subs {count}, {count}, #1",
            "bne 5b",
            "6:",
            "vstmia {output}!, {{s0-s7}}",
            "subs {blocks}, {blocks}, #1",
            "bne 2b",
            start = inout(reg) start.as_ptr() => _,
            rows = inout(reg) rows.as_ptr() => _,
            output = inout(reg) output.as_mut_ptr() => _,
            blocks = inout(reg) blocks => _,
            input = in(reg) input.as_ptr(),
            n = in(reg) n,
            x = out(reg) _,
            count = out(reg) _,
            out("s0") _, out("s1") _, out("s2") _, out("s3") _,
            out("s4") _, out("s5") _, out("s6") _, out("s7") _,
            out("s8") _, out("s9") _, out("s10") _, out("s11") _,
            out("s12") _, out("s13") _, out("s14") _, out("s15") _,
            out("s16") _, out("s17") _, out("s18") _, out("s19") _,
            out("s20") _, out("s21") _, out("s22") _, out("s23") _,
            out("s24") _, out("s25") _, out("s26") _, out("s27") _,
            out("s28") _, out("s29") _, out("s30") _, out("s31") _,
            options(nostack),
        );
    }
}

/// One tile: `smlad` multiplies two pairs of halves and adds both products, `sxtb16` leaves the low
/// byte of each half.
macro_rules! tile {
    () => {
        concat!(
            "ldmia {x}!, {{r4, r6}}\n",
            "ldmia {tile}!, {{r0, r1, r2, r3}}\n",
            "smlad {whole0}, r0, r4, {whole0}\n",
            "smlad {whole1}, r1, r4, {whole1}\n",
            "sxtb16 r0, r0\n",
            "sxtb16 r1, r1\n",
            "smlad {low0}, r0, r4, {low0}\n",
            "smlad {low1}, r1, r4, {low1}\n",
            "smlad {whole0}, r2, r6, {whole0}\n",
            "smlad {whole1}, r3, r6, {whole1}\n",
            "sxtb16 r2, r2\n",
            "sxtb16 r3, r3\n",
            "smlad {low0}, r2, r6, {low0}\n",
            "smlad {low1}, r3, r6, {low1}\n",
        )
    };
}

/// [`portable::dense_int8`](crate::portable::dense_int8).
#[inline(never)]
pub fn dense_int8(tiles: &[Tile], input: &[[u32; 2]], output: &mut [[i32; QUAD]]) {
    let n = input.len();
    if n == 0 {
        return;
    }
    let mut tiles = tiles;
    for output in output {
        let Some((block, rest)) = tiles.split_at_checked(n) else {
            return;
        };
        tiles = rest;
        let (mut whole0, mut low0, mut whole1, mut low1) = (0i32, 0i32, 0i32, 0i32);
        // SAFETY: `n` tiles and `n` pairs of input words are read, each in order, aligned as words.
        // Of the registers that no operand may be in, r6 is put back; the others are named.
        unsafe {
            asm!(
                "push {{r6}}",
                "lsrs r5, r5, #1",
                "bcc 2f",
                tile!(),
                "2:",
                "lsrs r5, r5, #1",
                "bcc 3f",
                tile!(),
                tile!(),
                "3:",
                "cmp r5, #0",
                "beq 5f",
                "4:", // four tiles
                tile!(),
                tile!(),
                tile!(),
                tile!(),
                "subs r5, r5, #1",
                "bne 4b",
                "5:",
                "pop {{r6}}",
                whole0 = inout(reg) whole0,
                low0 = inout(reg) low0,
                whole1 = inout(reg) whole1,
                low1 = inout(reg) low1,
                tile = inout(reg) block.as_ptr() => _,
                x = inout(reg) input.as_ptr() => _,
                inout("r5") n => _, // counts tiles
                out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _,
                options(readonly),
            );
        }
        let high = |whole: i32, low: i32| whole.wrapping_sub(low) >> 8;
        *output = [high(whole0, low0), low0, high(whole1, low1), low1];
    }
}

/// [`portable::sqrt`](crate::portable::sqrt), which is one instruction here.
#[inline]
pub fn sqrt(x: f32) -> f32 {
    let root: u32;
    // SAFETY: registers alone, all of them named.
    unsafe {
        asm!(
            "vmov s0, {x}",
            "vsqrt.f32 s0, s0",
            "vmov {root}, s0",
            x = in(reg) x.to_bits(),
            root = lateout(reg) root,
            out("s0") _,
            options(pure, nomem, nostack),
        );
    }
    f32::from_bits(root)
}
