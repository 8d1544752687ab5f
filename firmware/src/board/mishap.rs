//! The end of a node that panics, faults or hangs: it writes down why, says so, and starts afresh.
//!
//! A stack overflow is a fault too: the memory map puts the stack at the bottom of RAM, so that it
//! grows out of memory instead of into the variables (what `flip-link` does to other images). What
//! lies below must be no memory that takes writes in silence: the MPU sees to that, or on a
//! Cortex-M33 the limit of its stack pointer. Nothing here relies on the stack that was there: a
//! fault's handler starts on a fresh one.

use core::{
    arch::naked_asm,
    fmt,
    panic::PanicInfo,
    sync::atomic::{AtomicBool, Ordering},
};

use agent_core::message::{History, ResetCause};
use cortex_m::peripheral::{
    SCB,
    scb::{Exception, VectActive},
};
use firmware::black_box::BlackBox;
use static_cell::StaticCell;

unsafe extern "C" {
    /// A region of the memory map, in no section: neither the start-up code nor a loader that
    /// writes sections afresh at every reset touches it.
    static mut _black_box: BlackBox;
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Reads what the last run left behind, counts this start, and has faults handled from now on.
/// To be called once, first.
pub fn begin(
    core: &mut cortex_m::Peripherals,
    chip: Option<ResetCause>,
) -> (History, &'static str) {
    static REMEMBERED: StaticCell<BlackBox> = StaticCell::new();
    paint_stack();
    #[cfg(armv7em)]
    guard_stack(&mut core.MPU);
    // Faults of their own, not hard faults: one that happens while another is being entered, as
    // with a stack that is full, then has somewhere to go and does not lock the core up.
    core.SCB.enable(Exception::MemoryManagement);
    core.SCB.enable(Exception::BusFault);
    core.SCB.enable(Exception::UsageFault);
    let memory = &raw mut _black_box;
    // SAFETY: the region is ours alone and aligned; any bytes there are a value of the type.
    let remembered = unsafe {
        let remembered = BlackBox::at_start(memory.read_volatile(), chip);
        memory.write_volatile(remembered);
        remembered
    };
    let remembered = REMEMBERED.init(remembered);
    (remembered.history(), remembered.last_words())
}

/// What lies on the stack where nothing ever did.
const UNUSED: u32 = 0xa5c3_5a3c;

/// Bytes below the stack pointer that are left alone: what painting itself may use.
const BEING_USED: usize = 256;

/// Marks all of the stack that is not in use, so that [`stack`] sees later how deep it went.
fn paint_stack() {
    let top = cortex_m::register::msp::read() as usize - BEING_USED;
    let mut word = (&raw const _stack_end).cast_mut();
    while word.addr() < top {
        // SAFETY: from its end up to here the stack holds nothing.
        unsafe {
            word.write_volatile(UNUSED);
            word = word.add(1);
        }
    }
}

/// Bytes of stack that were ever used, and those that there are.
pub fn stack() -> [u32; 2] {
    let (mut word, top) = (&raw const _stack_end, &raw const _stack_start);
    let size = top.addr() - word.addr();
    // SAFETY: it is memory, wherever the stack has got to.
    while word < top && unsafe { word.read_volatile() } == UNUSED {
        word = word.wrapping_add(1);
    }
    [top.addr() - word.addr(), size].map(|bytes| bytes as u32)
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

fn write_down(cause: ResetCause, words: Option<fmt::Arguments<'_>>) {
    let memory = &raw mut _black_box;
    // SAFETY: as in `begin`; whoever comes here never goes back to what it interrupted.
    unsafe {
        let mut remembered = memory.read_volatile();
        remembered.write_down(cause, words);
        memory.write_volatile(remembered);
    }
}

/// Starts the node afresh because it was told to.
pub fn restart() -> ! {
    write_down(ResetCause::Command, None);
    SCB::sys_reset();
}

/// Whether there is time for a log line: not if one was what brought us here.
fn may_speak() -> bool {
    static SPOKEN: AtomicBool = AtomicBool::new(false);
    !SPOKEN.swap(true, Ordering::Relaxed)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let (file, line) = info
        .location()
        .map_or(("?", 0), |place| (within_crate(place.file()), place.line()));
    let message = info.message().as_str().unwrap_or_default();
    write_down(
        ResetCause::Panic,
        Some(format_args!("panic at {file}:{line}: {message}")),
    );
    if may_speak() {
        defmt::error!("panic at {=str}:{=u32}: {=str}", file, line, message);
    }
    SCB::sys_reset();
}

/// A source file from its crate's folder on: the rest is about the machine that built the image.
fn within_crate(file: &str) -> &str {
    let inside = file.rfind("/src/").and_then(|at| file.get(..at));
    let start = inside.and_then(|path| path.rfind('/')).map(|at| at + 1);
    start.and_then(|start| file.get(start..)).unwrap_or(file)
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
    SCB::sys_reset();
}

/// Brings the node to grief: for images that are tested, never for one that is flashed.
#[cfg(feature = "provoke")]
pub const PROVOKE: Option<fn(agent_core::message::Mishap)> = Some(provoke::provoke);
/// An image that is no test's cannot be made to fail.
#[cfg(not(feature = "provoke"))]
pub const PROVOKE: Option<fn(agent_core::message::Mishap)> = None;

#[cfg(feature = "provoke")]
mod provoke {
    use agent_core::message::Mishap;
    use core::hint::black_box;

    pub fn provoke(mishap: Mishap) {
        match mishap {
            Mishap::Panic => panic!("provoked"),
            Mishap::Hang => loop {
                cortex_m::asm::nop();
            },
            Mishap::StackOverflow => {
                black_box(deeper(0));
            }
            Mishap::Fault => {
                // SAFETY: none, that is the point: no board has memory there.
                unsafe { (0xb000_0000 as *const u32).read_volatile() };
            }
        }
    }

    #[expect(unconditional_recursion, reason = "it is to run out of stack")]
    fn deeper(depth: u32) -> u32 {
        let frame = black_box([depth; 16]);
        deeper(depth.wrapping_add(1)).wrapping_add(black_box(frame)[0])
    }
}
