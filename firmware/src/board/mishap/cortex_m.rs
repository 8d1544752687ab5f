//! Faults of Arm's cores. The MPU takes away what lies below the stack, or on a Cortex-M33 the limit of the
//! stack pointer guards it.

use core::arch::naked_asm;

use agent_core::message::ResetCause;
use cortex_m::peripheral::{
    SCB,
    scb::{Exception, VectActive},
};

use super::{_stack_end, _stack_start, may_speak, write_down};

/// What faults are handled with.
pub type Core = cortex_m::Peripherals;

/// Has faults handled from now on.
pub fn install(core: &mut Core) {
    #[cfg(armv7em)]
    guard_stack(&mut core.MPU);
    // Faults of their own, not hard faults: one that happens while another is being entered, as
    // with a stack that is full, then has somewhere to go and does not lock the core up.
    core.SCB.enable(Exception::MemoryManagement);
    core.SCB.enable(Exception::BusFault);
    core.SCB.enable(Exception::UsageFault);
}

pub fn stack_pointer() -> usize {
    cortex_m::register::msp::read() as usize
}

pub fn reset() -> ! {
    SCB::sys_reset()
}

/// Bytes below the stack that nothing may touch, as a power of two.
#[cfg(armv7em)]
const GUARD_BITS: u32 = 12;

/// Takes away the memory below the stack, whatever is there.
#[cfg(armv7em)]
fn guard_stack(mpu: &mut cortex_m::peripheral::MPU) {
    const ENABLE: u32 = 1 << 0;
    /// All other memory as without the MPU.
    const DEFAULT_MAP: u32 = 1 << 2;
    const NEVER_EXECUTE: u32 = 1 << 28;
    let below = (&raw const _stack_end).addr() as u32 - (1 << GUARD_BITS);
    // SAFETY: the image uses no memory there, and no MPU elsewhere.
    unsafe {
        mpu.rnr.write(0);
        mpu.rbar.write(below);
        // No access bits at all.
        mpu.rasr
            .write(NEVER_EXECUTE | (GUARD_BITS - 1) << 1 | ENABLE);
        mpu.ctrl.write(DEFAULT_MAP | ENABLE);
    }
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}

/// Handlers for what a core does not come back from.
macro_rules! fatal {
    ($($exception:ident)*) => {$(
        /// Takes the address of what was interrupted from the stack, if there is still a stack,
        /// and goes on with a fresh one.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $exception() {
            naked_asm!(
                "mrs r1, msp",
                "movw r2, #:lower16:{bottom}",
                "movt r2, #:upper16:{bottom}",
                "movs r0, #0",
                "cmp r1, r2",
                "blo 2f",
                "ldr r0, [r1, #24]",
                "2:",
                "movw r2, #:lower16:{top}",
                "movt r2, #:upper16:{top}",
                "msr msp, r2",
                // FPCCR.LSPACT: the first float would be preceded by saving the old ones on the
                // old stack.
                "movw r2, #0xef34",
                "movt r2, #0xe000",
                "ldr r3, [r2]",
                "bic r3, r3, #1",
                "str r3, [r2]",
                "b {ended}",
                bottom = sym _stack_end,
                top = sym _stack_start,
                ended = sym ended,
            )
        }
    )*};
}

// The last is the watchdog's on boards where it warns the core before it resets it.
fatal!(HardFault MemoryManagement BusFault UsageFault NonMaskableInt);

/// Bits of the fault status register that tell of a stack: the frame of a memory or bus fault could
/// not be written, or a Cortex-M33's stack pointer met its limit.
const STACKING: u32 = 1 << 4 | 1 << 12 | 1 << 20;
/// Those that say that the fault address registers hold an address.
const MEMORY_ADDRESS_VALID: u32 = 1 << 7;
const BUS_ADDRESS_VALID: u32 = 1 << 15;

/// What a fault or the watchdog's warning ends in. `pc` is 0 if the stack was no memory any more.
extern "C" fn ended(pc: u32) -> ! {
    // SAFETY: status registers that are only read.
    let scb = unsafe { &*SCB::PTR };
    let status = scb.cfsr.read();
    if let VectActive::Exception(Exception::NonMaskableInt) = SCB::vect_active() {
        let words = format_args!("watchdog at pc {pc:#010x}");
        write_down(ResetCause::Watchdog, Some(words));
        if may_speak() {
            defmt::error!("no control step for too long, at pc {=u32:#010x}", pc);
        }
    } else if pc == 0 || status & STACKING != 0 {
        let words = format_args!("stack overflow, status {status:#010x}");
        write_down(ResetCause::Fault, Some(words));
        if may_speak() {
            defmt::error!("stack overflow, status {=u32:#010x}", status);
        }
    } else {
        let address = match status {
            status if status & MEMORY_ADDRESS_VALID != 0 => scb.mmfar.read(),
            status if status & BUS_ADDRESS_VALID != 0 => scb.bfar.read(),
            _ => 0,
        };
        let words =
            format_args!("fault at pc {pc:#010x}, status {status:#010x}, address {address:#010x}");
        write_down(ResetCause::Fault, Some(words));
        if may_speak() {
            defmt::error!(
                "fault at pc {=u32:#010x}, status {=u32:#010x}, address {=u32:#010x}",
                pc,
                status,
                address
            );
        }
    }
    reset();
}
