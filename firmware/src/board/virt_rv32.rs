//! QEMU's `virt` machine with one RV32IMAC: a core without floats, of another family than all others here.
//!
//! The machine's own UART carries the link and nothing else. Two devices are in PCI slots where
//! `node_link::EmulatedBoard` puts them: a UART for the defmt log, and the watchdog. The lower half of the
//! memory plays the flash.

use agent_core::message::ResetCause;
use firmware::{
    hardware::{Hardware, NoSensors},
    keys::Keys,
};
use riscv::{interrupt, register::mie};
use riscv_rt::core_interrupt;

use super::{
    Board, WATCHDOG_SECONDS, log,
    mishap::{self, Core},
    played_flash::PlayedFlash,
    reported::Reported,
    virt::{
        i6300esb::I6300Esb,
        machine_timer::MachineTimer,
        ns16550::{BufferedUart, Registers},
        pci::Slot,
        plic,
    },
};

const LINK_UART: usize = 0x1000_0000;
const LINK_INTERRUPT: u32 = 10;

/// As `node_link::EmulatedBoard` fills them.
const LOG_SLOT: usize = 1;
const WATCHDOG_SLOT: usize = 2;

/// Where devices in slots are to answer: anywhere in what the machine has for ports and for memory.
const LOG_PORTS: u16 = 0x1000;
const WATCHDOG_MEMORY: u32 = 0x4000_0000;

/// The receive buffer only bridges the time until the node looks, frames gather elsewhere.
type Link = BufferedUart<256>;

pub type Input = &'static Link;
pub type Output = &'static Link;
pub type NodeHardware = Hardware<PlayedFlash, I6300Esb, Reported, NoSensors>;

// SAFETY: the machine's address map.
static LINK: Link = Link::new(unsafe { Registers::at(LINK_UART) });

embassy_time_driver::time_driver_impl!(
    static TIMER: MachineTimer = MachineTimer::new()
);

#[core_interrupt(interrupt::Interrupt::MachineTimer)]
fn on_timer() {
    TIMER.on_interrupt();
}

#[core_interrupt(interrupt::Interrupt::MachineExternal)]
fn on_device() {
    plic::claimed(|source| {
        if source == LINK_INTERRUPT {
            LINK.on_interrupt();
        }
    });
}

/// Switches the board on.
///
/// # Safety
/// To be called once, first.
pub unsafe fn start() -> Board {
    // SAFETY: the slots are the board's.
    let (watchdog, bitten) =
        unsafe { I6300Esb::start(Slot::new(WATCHDOG_SLOT), WATCHDOG_MEMORY, WATCHDOG_SECONDS) };
    let (history, last_words) = mishap::begin(&mut Core, bitten.then_some(ResetCause::Watchdog));
    // SAFETY: as above.
    log::to(unsafe { Registers::at(Slot::new(LOG_SLOT).map_ports(LOG_PORTS)) });
    LINK.enable();
    // SAFETY: the handlers exist and are ready, and all interrupts are off still.
    unsafe {
        plic::enable(LINK_INTERRUPT as usize);
        mie::set_mext();
        mie::set_mtimer();
        interrupt::enable();
    }
    let hardware = Hardware {
        board: "virt-rv32",
        keys: Keys::BUILT_IN,
        // SAFETY: once, says the caller.
        slots: unsafe { PlayedFlash::slots() },
        // SAFETY: as above.
        journal: unsafe { PlayedFlash::journal() },
        watchdog,
        // SAFETY: as above.
        actuator: unsafe { Reported::new() },
        station: None,
        history,
        last_words,
        stack: mishap::stack,
        restart: mishap::restart,
        provoke: mishap::PROVOKE,
    };
    Board {
        input: &LINK,
        output: &LINK,
        hardware,
    }
}
