//! The emulated boards: Arm's MPS2+ with one of its images, each with a different core.
//!
//! UART0 carries the link and nothing else, UART1 the defmt log. The PSRAM plays the flash. What a board has that
//! acts by itself is a page of its own.

use cortex_m::{interrupt::InterruptNumber, peripheral::NVIC};
use embassy_executor::{InterruptExecutor, SendSpawner};
use firmware::{hardware::Hardware, keys::Keys};

use super::{
    Board, WATCHDOG_SECONDS,
    cmsdk::{
        dual_timer::DualTimer,
        uart::{BufferedUart, Registers},
        watchdog::CmsdkWatchdog,
    },
    log, mishap,
    played_flash::PlayedFlash,
    reported::Reported,
};

#[cfg_attr(feature = "mps2-an386", path = "mps2_an386.rs")]
#[cfg_attr(feature = "mps2-an500", path = "mps2_an500.rs")]
#[cfg_attr(feature = "mps2-an505", path = "mps2_an505.rs")]
mod image;

#[cfg_attr(feature = "standalone", path = "mps2_alone.rs")]
#[cfg_attr(not(feature = "standalone"), path = "mps2_fed.rs")]
mod station;

/// The receive buffer only bridges the time until the node looks, frames gather elsewhere.
type Link = BufferedUart<{ image::LINK_UART }, 256>;

pub type Input = &'static Link;
pub type Output = &'static Link;
pub type NodeHardware = Hardware<PlayedFlash, CmsdkWatchdog, Reported, station::Thermometers>;

// SAFETY: the board's address map.
static LINK: Link = unsafe { Link::new() };
// SAFETY: as above.
const LOG: Registers = unsafe { Registers::at(image::LOG_UART) };

embassy_time_driver::time_driver_impl!(
    // SAFETY: as above, and nothing else uses the timer.
    static TIMER: DualTimer = unsafe { DualTimer::new(image::DUAL_TIMER, image::CLOCK_HZ) }
);

/// Runs the node's task in an interrupt of its own and leaves thread mode to `wfi`: the emulator
/// sleeps on `wfi`, but takes the `wfe` of embassy's thread executor for a no-op.
static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

/// An interrupt by its number on this board.
#[derive(Clone, Copy)]
struct Interrupt(u16);

// SAFETY: the numbers are those of the vector table below.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

type Vector = unsafe extern "C" fn();

unsafe extern "C" {
    fn DefaultHandler();
}

#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Vector; 64] = {
    let mut vectors: [Vector; 64] = [DefaultHandler; 64];
    vectors[image::LINK_RECEIVE as usize] = on_link_receive;
    vectors[image::LINK_TRANSMIT as usize] = on_link_transmit;
    vectors[image::TIMER as usize] = on_timer;
    vectors[image::EXECUTOR as usize] = on_executor;
    station::with_bus(vectors)
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

/// Switches the board on. To be called once, first.
pub fn start() -> Option<(SendSpawner, Board)> {
    let mut core = cortex_m::Peripherals::take()?;
    // Nothing on this board tells why it was reset.
    let (history, last_words) = mishap::begin(&mut core, None);
    log::to(LOG);
    TIMER.start();
    LINK.enable();
    // SAFETY: nothing relies on masking by priority; the handlers exist and are ready.
    unsafe {
        // Below the others: bytes are taken in while the node computes.
        core.NVIC.set_priority(Interrupt(image::EXECUTOR), 0x80);
        NVIC::unmask(Interrupt(image::TIMER));
        NVIC::unmask(Interrupt(image::LINK_RECEIVE));
        NVIC::unmask(Interrupt(image::LINK_TRANSMIT));
    }
    let spawner = EXECUTOR.start(Interrupt(image::EXECUTOR));
    let hardware = Hardware {
        board: image::NAME,
        keys: Keys::BUILT_IN,
        // SAFETY: `take` hands out the peripherals once, so this happens once.
        slots: unsafe { PlayedFlash::slots() },
        // SAFETY: as above.
        journal: unsafe { PlayedFlash::journal() },
        // SAFETY: as above, and the address map.
        watchdog: unsafe {
            let cycles = u64::from(WATCHDOG_SECONDS) * image::CLOCK_HZ;
            CmsdkWatchdog::start(image::WATCHDOG, cycles as u32)
        },
        // SAFETY: as above.
        actuator: unsafe { Reported::new() },
        // SAFETY: as above.
        station: unsafe { station::station(spawner) },
        history,
        last_words,
        stack: mishap::stack,
        restart: mishap::restart,
        provoke: mishap::PROVOKE,
    };
    let board = Board {
        input: &LINK,
        output: &LINK,
        hardware,
    };
    Some((spawner, board))
}
