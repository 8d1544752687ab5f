//! The emulated boards: Arm's MPS2+ with one of its images, each with a different core.
//!
//! UART0 carries the link and nothing else, UART1 the defmt log. The boards have no flash: their
//! PSRAM plays it, which the emulator can keep in a file, so that policies outlive the emulator as
//! they would a board's power.

use agent_core::agent::{Action, Mode};
use cortex_m::{interrupt::InterruptNumber, peripheral::NVIC};
use embassy_executor::{InterruptExecutor, SendSpawner};
use embassy_time::Duration;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};
#[cfg(not(feature = "standalone"))]
use firmware::hardware::NoSensors;
use firmware::{
    hardware::{Actuator, Hardware, PolicyFlash, Station},
    keys::Keys,
};
#[cfg(feature = "standalone")]
use {
    super::cmsdk::two_wire::TwoWire,
    core::sync::atomic::{AtomicU32, Ordering},
    firmware::tmp105::Tmp105s,
};

use super::{
    Board,
    cmsdk::{
        dual_timer::DualTimer,
        uart::{BufferedUart, Registers},
        watchdog::CmsdkWatchdog,
    },
    log, mishap,
};

#[cfg_attr(feature = "mps2-an386", path = "mps2_an386.rs")]
#[cfg_attr(feature = "mps2-an500", path = "mps2_an500.rs")]
#[cfg_attr(feature = "mps2-an505", path = "mps2_an505.rs")]
mod image;

/// How long the watchdog waits. Emulated time runs with the host's, which may have better things
/// to do than emulating us, or makes this a core of a million instructions a second in order to
/// count them: a real board's watchdog need not be so patient.
const WATCHDOG_SECONDS: u64 = 8;

/// The receive buffer only bridges the time until the node looks, frames gather elsewhere.
type Link = BufferedUart<256>;

pub type Input = &'static Link;
pub type Output = &'static Link;
pub type NodeHardware = Hardware<Psram, CmsdkWatchdog, Reported, Thermometers>;

/// What the board reads by itself.
#[cfg(feature = "standalone")]
pub type Thermometers = Tmp105s<TwoWire>;
/// Nothing.
#[cfg(not(feature = "standalone"))]
pub type Thermometers = NoSensors;

// SAFETY: the board's address map.
static LINK: Link = Link::new(unsafe { Registers::at(image::LINK_UART) });
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
    let hardware = Hardware {
        board: image::NAME,
        keys: Keys::BUILT_IN,
        // SAFETY: `take` hands out the peripherals once, so this happens once.
        slots: unsafe { Psram::slots() },
        // SAFETY: as above.
        journal: unsafe { Psram::journal() },
        // SAFETY: as above, and the address map.
        watchdog: unsafe {
            let cycles = WATCHDOG_SECONDS * image::CLOCK_HZ;
            CmsdkWatchdog::start(image::WATCHDOG, cycles as u32)
        },
        actuator: Reported {
            mode: Mode::Waiting,
            // SAFETY: as above.
            #[cfg(feature = "standalone")]
            registers: unsafe { actuator() },
        },
        // SAFETY: as above.
        station: unsafe { station() },
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
    Some((EXECUTOR.start(Interrupt(image::EXECUTOR)), board))
}

/// RAM that behaves like flash: programming clears bits and only an erase sets them again.
pub struct Psram(&'static mut [u8]);

impl Psram {
    /// The two slots of the memory map.
    ///
    /// # Safety
    /// To be called once: a slot is the only one who writes to its memory.
    unsafe fn slots() -> [Self; 2] {
        unsafe extern "C" {
            static mut _slot_0: [u8; SLOT];
            static mut _slot_1: [u8; SLOT];
        }
        let slots = [&raw mut _slot_0, &raw mut _slot_1];
        // SAFETY: memory.x reserves them for this alone.
        slots.map(|slot| Self(unsafe { &mut *slot }))
    }

    /// What lies behind them.
    ///
    /// # Safety
    /// As of [`Self::slots`].
    unsafe fn journal() -> Self {
        unsafe extern "C" {
            static mut _journal: [u8; JOURNAL];
        }
        let journal = &raw mut _journal;
        // SAFETY: as above.
        Self(unsafe { &mut *journal })
    }
}

/// What the board has to act by itself.
///
/// # Safety
/// As of [`Psram::slots`].
#[cfg(feature = "standalone")]
unsafe fn station() -> Option<Station<Psram, Thermometers>> {
    unsafe extern "C" {
        static mut _place_0: [u8; PLACE];
        static mut _place_1: [u8; PLACE];
    }
    let slots = [&raw mut _place_0, &raw mut _place_1];
    Some(Station {
        // SAFETY: memory.x reserves them for this alone.
        slots: slots.map(|slot| Psram(unsafe { &mut *slot })),
        // SAFETY: the board's address map, and nothing else uses the bus.
        sensors: Tmp105s::on(unsafe { TwoWire::at(image::TWO_WIRE) }),
    })
}

/// Nothing.
///
/// # Safety
/// It is safe.
#[cfg(not(feature = "standalone"))]
unsafe fn station() -> Option<Station<Psram, Thermometers>> {
    None
}

/// Bytes of a place, as in the memory map: a sector.
#[cfg(feature = "standalone")]
const PLACE: usize = 4096;

/// The registers of what plays the actuator: the force's bits, the agent's mode, and how often they were set.
///
/// # Safety
/// As of [`Psram::slots`].
#[cfg(feature = "standalone")]
unsafe fn actuator() -> &'static [AtomicU32; 3] {
    unsafe extern "C" {
        static _actuator: [AtomicU32; 3];
    }
    // SAFETY: memory.x reserves them for this alone; any bits are a value.
    unsafe { &_actuator }
}

/// Bytes of a slot, as in the memory map: the largest policy there is and a sector for its record.
const SLOT: usize = 260 * 1024;

/// Bytes of the journal: two sectors.
const JOURNAL: usize = 8 * 1024;

impl ErrorType for Psram {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Psram {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        check_read(self, offset, bytes.len())?;
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Psram {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        check_write(self, offset, bytes.len())?;
        let cells = self.0[offset as usize..].iter_mut();
        cells.zip(bytes).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        check_erase(self, from, to)?;
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }
}

impl PolicyFlash for Psram {
    // Memory that plays flash is erased in no time.
    const STALL: Duration = Duration::from_ticks(0);

    fn bytes(&self) -> &[u8] {
        self.0
    }
}

/// There is nothing to move on this board: the host that simulates the field takes actions from
/// the reports. Where the node acts by itself, three words of the PSRAM play the registers of a converter,
/// which the emulator can share with whoever plays the plant. The log tells when the agent changes its mind
/// about how well it is.
pub struct Reported {
    mode: Mode,
    #[cfg(feature = "standalone")]
    registers: &'static [AtomicU32; 3],
}

impl Actuator for Reported {
    fn apply(&mut self, action: &Action) {
        #[cfg(feature = "standalone")]
        {
            let [force, mode, count] = self.registers;
            force.store(action.force.to_bits(), Ordering::Release);
            let word = match action.mode {
                Mode::Waiting => 0,
                Mode::Active => 1,
                Mode::Holding => 2,
                Mode::FailedSafe => 3,
            };
            mode.store(word, Ordering::Release);
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Release,
            );
        }
        if action.mode != self.mode {
            defmt::info!("{} -> {}", self.mode, action.mode);
            self.mode = action.mode;
        }
    }
}
