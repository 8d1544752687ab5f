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
/// byte of each half. r8 and r10 sum whole halves, r9 and r11 their low bytes.
macro_rules! tile {
    () => {
        concat!(
            "ldmia r12!, {{r4, r6}}\n",
            "ldmia lr!, {{r0, r1, r2, r3}}\n",
            "smlad r8, r0, r4, r8\n",
            "smlad r10, r1, r4, r10\n",
            "sxtb16 r0, r0\n",
            "sxtb16 r1, r1\n",
            "smlad r9, r0, r4, r9\n",
            "smlad r11, r1, r4, r11\n",
            "smlad r8, r2, r6, r8\n",
            "smlad r10, r3, r6, r10\n",
            "sxtb16 r2, r2\n",
            "sxtb16 r3, r3\n",
            "smlad r9, r2, r6, r9\n",
            "smlad r11, r3, r6, r11\n",
        )
    };
}

/// [`portable::dense_int8`](crate::portable::dense_int8).
#[inline(never)]
pub fn dense_int8(tiles: &[Tile], input: &[[u32; 2]], output: &mut [[i32; QUAD]]) {
    let n = input.len();
    // Lengths are those of slices in memory, so that the product cannot overflow.
    let blocks = match n {
        0 => 0,
        _ if tiles.len() < output.len() * n => tiles.len() / n,
        _ => output.len(),
    };
    if blocks == 0 {
        return;
    }
    // SAFETY: `tiles` has at least `blocks · n` tiles, `input` `n` pairs of words and `output` at
    // least `blocks` quads: that is what is read and written, each in order, aligned as words. What
    // is pushed is popped; r6, which no operand may be in, is put back; all others that change are
    // named.
    unsafe {
        asm!(
            "push {{r0, r1, r2, r3, r6}}",
            "2:", // a block
            "ldrd r12, r5, [sp]",
            "mov r8, #0",
            "mov r9, #0",
            "mov r10, #0",
            "mov r11, #0",
            "lsrs r5, r5, #1",
            "bcc 3f",
            tile!(),
            "3:",
            "lsrs r5, r5, #1",
            "bcc 4f",
            tile!(),
            tile!(),
            "4:",
            "cmp r5, #0",
            "beq 6f",
            "5:", // four tiles
            tile!(),
            tile!(),
            tile!(),
            tile!(),
            "subs r5, r5, #1",
            "bne 5b",
            "6:",
            "ldrd r2, r3, [sp, #8]",
            "sub r8, r8, r9",
            "asr r8, r8, #8",
            "sub r10, r10, r11",
            "asr r10, r10, #8",
            "stmia r2!, {{r8, r9, r10, r11}}",
            "subs r3, r3, #1",
            "strd r2, r3, [sp, #8]",
            "bne 2b",
            "add sp, sp, #16",
            "pop {{r6}}",
            inout("r0") input.as_ptr() => _,
            inout("r1") n => _,
            inout("r2") output.as_mut_ptr() => _,
            inout("r3") blocks => _,
            inout("lr") tiles.as_ptr() => _,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, out("r12") _,
        );
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
