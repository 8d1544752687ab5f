//! Exceptions of a RISC-V core. Physical memory protection takes away what lies below the stack.

use core::arch::{asm, global_asm};

use agent_core::message::ResetCause;
use riscv::register::{Permission, Range, mcause, mepc, mtval, pmpaddr0, pmpcfg0};

use super::{_stack_end, _stack_start, may_speak, write_down};
use crate::board::virt;

/// What faults are handled with: all of it are registers of the core.
pub struct Core;

/// Bytes below the stack that nothing may touch, as a power of two.
const GUARD_BITS: u32 = 12;

/// Has faults handled from now on.
pub fn install(_: &mut Core) {
    // A naturally aligned power of two: the ones at its end say how large it is.
    let below = guard().start | ((1 << (GUARD_BITS - 1)) - 1);
    // SAFETY: the image uses no memory there. Locked, or it would not hold for us.
    unsafe {
        pmpaddr0::write(below >> 2);
        pmpcfg0::set_pmp(0, Range::NAPOT, Permission::NONE, true);
    }
}

fn guard() -> core::ops::Range<usize> {
    let end = (&raw const _stack_end).addr();
    end - (1 << GUARD_BITS)..end
}

pub fn stack_pointer() -> usize {
    let at: usize;
    // SAFETY: it only reads a register.
    unsafe { asm!("mv {}, sp", out(reg) at, options(nomem, nostack, preserves_flags)) };
    at
}

pub fn reset() -> ! {
    virt::reset()
}

// Where every trap comes first. An interrupt goes on as it came; from an exception nobody comes back, and
// what it finds may be no stack any more.
global_asm!(
    ".section .trap.start, \"ax\"",
    ".global _pre_default_start_trap",
    "_pre_default_start_trap:",
    "csrw mscratch, t0",
    "csrr t0, mcause",
    "bgez t0, 1f",
    "csrr t0, mscratch",
    "j _pre_default_start_trap_ret",
    "1:",
    "la sp, {top}",
    "j {ended}",
    top = sym _stack_start,
    ended = sym ended,
);

/// What an exception ends in.
extern "C" fn ended() -> ! {
    let (pc, status, address) = (mepc::read(), mcause::read().code(), mtval::read());
    if guard().contains(&address) {
        let words = format_args!("stack overflow, cause {status}, pc {pc:#010x}");
        write_down(ResetCause::Fault, Some(words));
        if may_speak() {
            defmt::error!(
                "stack overflow, cause {=usize}, pc {=usize:#010x}",
                status,
                pc
            );
        }
    } else {
        let words = format_args!("fault at pc {pc:#010x}, cause {status}, address {address:#010x}");
        write_down(ResetCause::Fault, Some(words));
        if may_speak() {
            defmt::error!(
                "fault at pc {=usize:#010x}, cause {=usize}, address {=usize:#010x}",
                pc,
                status,
                address
            );
        }
    }
    reset();
}
