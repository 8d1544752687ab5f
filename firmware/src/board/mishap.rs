//! The end of a node that panics, faults or hangs: it writes down why, says so, and starts afresh.
//!
//! A stack overflow is a fault too: the memory map puts the stack at the bottom of RAM, so that it
//! grows out of memory instead of into the variables (what `flip-link` does to other images). What
//! lies below must be no memory that takes writes in silence: each core sees to that in its own way.
//! Nothing here relies on the stack that was there: a fault's handler starts on a fresh one.

use core::{
    fmt,
    panic::PanicInfo,
    sync::atomic::{AtomicBool, Ordering, compiler_fence},
};

use agent_core::message::{History, ResetCause};
use firmware::black_box::BlackBox;
use static_cell::StaticCell;

#[cfg_attr(feature = "cortex", path = "mishap/cortex_m.rs")]
#[cfg_attr(feature = "virt-rv32", path = "mishap/riscv.rs")]
mod handlers;

pub use handlers::Core;

unsafe extern "C" {
    /// A region of the memory map, in no section: neither the start-up code nor a loader that
    /// writes sections afresh at every reset touches it.
    static mut _black_box: BlackBox;
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Reads what the last run left behind, counts this start, and has faults handled from now on.
/// To be called once, first.
pub fn begin(core: &mut Core, chip: Option<ResetCause>) -> (History, &'static str) {
    static REMEMBERED: StaticCell<BlackBox> = StaticCell::new();
    paint_stack();
    handlers::install(core);
    let memory = &raw mut _black_box;
    // SAFETY: the region is ours alone and aligned; any bytes there are a value of the type.
    let remembered = unsafe {
        *memory = BlackBox::at_start(*memory, chip);
        *memory
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
    let top = handlers::stack_pointer() - BEING_USED;
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

/// Once in an image, however many ends there are.
#[inline(never)]
fn write_down(cause: ResetCause, words: Option<fmt::Arguments<'_>>) {
    let memory = &raw mut _black_box;
    // SAFETY: as in `begin`; whoever comes here never goes back to what it interrupted.
    unsafe { (*memory).write_down(cause, words) };
    // It is in memory before the reset.
    compiler_fence(Ordering::SeqCst);
}

/// Starts the node afresh because it was told to.
pub fn restart() -> ! {
    write_down(ResetCause::Command, None);
    handlers::reset();
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
    handlers::reset();
}

/// A source file from its crate's folder on: the rest is about the machine that built the image.
fn within_crate(file: &str) -> &str {
    let (mut start, mut folder) = (0, 0);
    for (at, byte) in file.bytes().enumerate() {
        if byte == b'/' {
            if file.get(at..).is_some_and(|rest| rest.starts_with("/src/")) {
                start = folder;
            }
            folder = at + 1;
        }
    }
    file.get(start..).unwrap_or(file)
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
                core::hint::spin_loop();
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
