//! The emulated board: Arm MPS2+ with the AN386 image, a Cortex-M4F at 25 MHz.
//!
//! UART0 carries the link and nothing else, UART1 the defmt log.

use core::{panic::PanicInfo, slice};

use agent_core::agent::{Action, Mode};
use cortex_m::{
    interrupt::InterruptNumber,
    peripheral::{NVIC, SCB},
};
use embassy_executor::{InterruptExecutor, SendSpawner};
use firmware::{node::Actuator, slot::MemorySlot};

use super::{
    cmsdk::{
        dual_timer::DualTimer,
        uart::{BufferedUart, Registers},
    },
    log,
};

const CLOCK_HZ: u64 = 25_000_000;

/// The receive buffer only bridges the time until the node looks, frames gather elsewhere.
pub type Link = BufferedUart<256>;

// SAFETY: the board's address map.
static LINK: Link = Link::new(unsafe { Registers::at(0x4000_4000) });
// SAFETY: as above.
const LOG: Registers = unsafe { Registers::at(0x4000_5000) };

embassy_time_driver::time_driver_impl!(
    // SAFETY: as above, and nothing else uses the timer.
    static TIMER: DualTimer = unsafe { DualTimer::new(0x4000_2000, CLOCK_HZ) }
);

/// Runs the node's tasks in an interrupt of their own and leaves thread mode to `wfi`: the
/// emulator sleeps on `wfi`, but takes the `wfe` of embassy's thread executor for a no-op.
static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

/// The interrupts we use, by their number on this board.
#[derive(Clone, Copy)]
enum Interrupt {
    LinkReceive = 0,
    LinkTransmit = 1,
    Timer = 10,
    Executor = 31,
}

// SAFETY: the numbers are those of the vector table below.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

type Vector = unsafe extern "C" fn();

unsafe extern "C" {
    fn DefaultHandler();
}

#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Vector; 32] = {
    let mut vectors: [Vector; 32] = [DefaultHandler; 32];
    vectors[Interrupt::LinkReceive as usize] = on_link_receive;
    vectors[Interrupt::LinkTransmit as usize] = on_link_transmit;
    vectors[Interrupt::Timer as usize] = on_timer;
    vectors[Interrupt::Executor as usize] = on_executor;
    vectors
};

extern "C" fn on_link_receive() {
    LINK.on_receive();
}

extern "C" fn on_link_transmit() {
    LINK.on_transmit();
}

extern "C" fn on_timer() {
    TIMER.on_interrupt();
}

extern "C" fn on_executor() {
    // SAFETY: this is the executor's interrupt, unmasked by its `start`.
    unsafe { EXECUTOR.on_interrupt() }
}

/// What the node runs on.
pub struct Board {
    /// The link to the host; reads and writes.
    pub link: &'static Link,
    /// Where the policy lies.
    pub slot: MemorySlot<'static>,
    /// What the actions do.
    pub actuator: Reported,
    /// Runs the node.
    pub spawner: SendSpawner,
}

/// Switches the board on. To be called once, first.
pub fn init() -> Option<Board> {
    let mut core = cortex_m::Peripherals::take()?;
    log::to(LOG);
    TIMER.start();
    LINK.enable();
    // SAFETY: nothing relies on masking by priority; the handlers exist and are ready.
    unsafe {
        // Below the others: bytes are taken in while the node computes.
        core.NVIC.set_priority(Interrupt::Executor, 0x80);
        NVIC::unmask(Interrupt::Timer);
        NVIC::unmask(Interrupt::LinkReceive);
        NVIC::unmask(Interrupt::LinkTransmit);
    }
    Some(Board {
        link: &LINK,
        // SAFETY: `take` hands out the peripherals once, so this happens once.
        slot: MemorySlot(unsafe { policy_region() }),
        actuator: Reported {
            mode: Mode::Waiting,
        },
        spawner: EXECUTOR.start(Interrupt::Executor),
    })
}

/// The POLICY region of the memory map: RAM in the emulator that outlives a reset of the core,
/// where a real board has flash pages.
///
/// # Safety
/// To be called once: the slot is the only one who writes there.
unsafe fn policy_region() -> &'static mut [u8] {
    unsafe extern "C" {
        static mut _policy_start: u8;
        static _policy_end: u8;
    }
    // SAFETY: memory.x reserves what lies between the two symbols for this slot alone.
    unsafe {
        let start = &raw mut _policy_start;
        let length = (&raw const _policy_end).offset_from(start) as usize;
        slice::from_raw_parts_mut(start, length)
    }
}

/// There is nothing to move on this board: the host that simulates the field takes actions from
/// the reports. The log tells when the agent changes its mind about how well it is.
pub struct Reported {
    mode: Mode,
}

impl Actuator for Reported {
    fn apply(&mut self, action: &Action) {
        if action.mode != self.mode {
            defmt::info!("{} -> {}", self.mode, action.mode);
            self.mode = action.mode;
        }
    }
}

/// Says where it happened and starts afresh: a node that is restarted fails safe on its own.
#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    if let Some(place) = info.location() {
        defmt::error!("panic at {=str}:{=u32}", place.file(), place.line());
    }
    SCB::sys_reset();
}

/// A fault has no one to report to but the log.
#[cortex_m_rt::exception]
unsafe fn HardFault(frame: &cortex_m_rt::ExceptionFrame) -> ! {
    defmt::error!("hard fault at {=u32:#010x}", frame.pc());
    SCB::sys_reset();
}
