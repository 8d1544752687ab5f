//! Nordic's nRF52840-DK: an nRF52840, a Cortex-M4F at 64 MHz.
//!
//! UARTE0 (P0.06, P0.08), which the on-board J-Link shows as a serial port, carries the link; the
//! log goes through the debugger (RTT).

use core::cell::RefCell;

use agent_core::message::ResetCause;
use embassy_executor::{InterruptExecutor, SendSpawner};
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte, BufferedUarteRx, BufferedUarteTx},
    config::{Config, HfclkSource, LfclkSource},
    gpio::{Level, Output as Pin, OutputDrive},
    interrupt,
    interrupt::{InterruptExt, Priority},
    nvmc::Nvmc,
    pac::POWER,
    peripherals::{UARTE0, WDT},
    uarte::{self, Baudrate},
    wdt::{self, HaltConfig, WatchdogHandle},
};
use embedded_hal::digital::PinState;
use firmware::{
    hardware::{Hardware, Watchdog},
    keys::Keys,
};
use static_cell::StaticCell;

use super::{
    Board, RECEIVE_BUFFER, TRANSMIT_BUFFER, WATCHDOG_SECONDS,
    lamp::Lamp,
    mapped_flash::{Controller, MappedSlot},
    mishap,
};

pub type Input = BufferedUarteRx<'static>;
pub type Output = BufferedUarteTx<'static>;
pub type NodeHardware = Hardware<MappedSlot<Nvmc<'static>>, Dog, Lamp<Pin<'static>>>;

/// Where the slots lie, as in the memory map. Flash starts at 0.
const SLOTS: u32 = 0x4_0000;
const SLOT: u32 = 260 * 1024;
/// Bytes of the journal: two sectors.
const JOURNAL: u32 = 8 * 1024;

bind_interrupts!(struct Irqs {
    UARTE0 => buffered_uarte::InterruptHandler<UARTE0>;
});

/// The node's task, below the interrupts that take bytes in, on one that no device here uses.
static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

#[interrupt]
unsafe fn EGU0_SWI0() {
    // SAFETY: this is the executor's interrupt, unmasked by its `start`.
    unsafe { EXECUTOR.on_interrupt() }
}

/// Switches the board on. To be called once, first.
pub fn start() -> Option<(SendSpawner, Board)> {
    static RECEIVED: StaticCell<[u8; RECEIVE_BUFFER]> = StaticCell::new();
    static TRANSMITTED: StaticCell<[u8; TRANSMIT_BUFFER]> = StaticCell::new();
    static CONTROLLER: StaticCell<Controller<Nvmc<'static>>> = StaticCell::new();

    let mut core = cortex_m::Peripherals::take()?;
    let (history, last_words) = mishap::begin(&mut core, Some(reset_cause()));
    let mut config = Config::default();
    // The board has both crystals.
    config.hfclk_source = HfclkSource::ExternalXtal;
    config.lfclk_source = LfclkSource::ExternalXtal;
    let p = embassy_nrf::init(config);
    let mut line = uarte::Config::default();
    line.baudrate = Baudrate::Baud1m;
    let link = BufferedUarte::new(
        p.UARTE0,
        p.TIMER1,
        p.PPI_CH0,
        p.PPI_CH1,
        p.PPI_GROUP0,
        p.P0_08,
        p.P0_06,
        Irqs,
        line,
        RECEIVED.init_with(|| [0; RECEIVE_BUFFER]),
        TRANSMITTED.init_with(|| [0; TRANSMIT_BUFFER]),
    );
    let (input, output) = link.split();
    let controller = CONTROLLER.init(Controller::new(RefCell::new(Nvmc::new(p.NVMC))));
    let mut dog = wdt::Config::default();
    dog.timeout_ticks = WATCHDOG_SECONDS * 32_768;
    dog.action_during_debug_halt = HaltConfig::Pause;
    let watchdog = match wdt::Watchdog::try_new(p.WDT, dog) {
        Ok((_, [handle])) => handle,
        // SAFETY: it runs already, started by another image, and has at least one handle.
        Err(_) => unsafe { WatchdogHandle::steal::<WDT>(0) },
    };
    // SAFETY: the chip's address map; the memory map keeps the image out of there.
    let (slots, journal) =
        unsafe { MappedSlot::slots_and_journal(controller, SLOTS, SLOTS as usize, SLOT, JOURNAL) };
    let hardware = Hardware {
        board: "nrf52840-dk",
        keys: Keys::BUILT_IN,
        slots,
        journal,
        watchdog: Dog(watchdog),
        // LED1, which a low pin lights.
        actuator: Lamp::new(
            Pin::new(p.P0_13, Level::High, OutputDrive::Standard),
            PinState::Low,
        ),
        station: None,
        history,
        last_words,
        stack: mishap::stack,
        restart: mishap::restart,
        provoke: mishap::PROVOKE,
    };
    let board = Board {
        input,
        output,
        hardware,
    };
    interrupt::EGU0_SWI0.set_priority(Priority::P6);
    Some((EXECUTOR.start(interrupt::EGU0_SWI0), board))
}

fn reset_cause() -> ResetCause {
    let reasons = POWER.resetreas().read();
    // Ones clear it; they would add up otherwise.
    POWER.resetreas().write_value(reasons);
    // Power-on and brown-out leave no bit; the black box tells them apart.
    match reasons.0 {
        0 => ResetCause::PowerOn,
        _ if reasons.dog() => ResetCause::Watchdog,
        _ if reasons.lockup() => ResetCause::Fault,
        _ => ResetCause::External,
    }
}

/// The chip's watchdog, which once started nothing stops.
pub struct Dog(WatchdogHandle);

impl Watchdog for Dog {
    fn feed(&mut self) {
        self.0.pet();
    }
}
