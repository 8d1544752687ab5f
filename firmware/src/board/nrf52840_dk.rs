//! Nordic's nRF52840-DK: an nRF52840, a Cortex-M4F at 64 MHz.
//!
//! UARTE0 (P0.06, P0.08), which the on-board J-Link shows as a serial port, carries the link; the
//! log goes through the debugger (RTT). Where the node acts by itself, thermometers hang on TWIM0 (P0.26,
//! P0.27), P1.11 drives what moves the field, and UARTE1 (P1.01, P1.02) is on the line to its neighbours.

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
#[cfg(not(feature = "standalone"))]
use firmware::hardware::NoSensors;
use firmware::{
    hardware::{Hardware, Watchdog},
    keys::Keys,
};
use static_cell::StaticCell;
#[cfg(feature = "standalone")]
use {
    super::alone::{self, HEARD_BUFFER, OUTPUT_HZ, SAID_BUFFER, Senses},
    core::convert::Infallible,
    embassy_nrf::{
        peripherals::{TWISPI0, UARTE1},
        pwm::{DutyCycle, Prescaler, SimpleConfig, SimplePwm},
        twim::{self, Frequency, Twim},
    },
    embedded_hal::pwm::{ErrorType, SetDutyCycle},
    firmware::pulse_width::Driven,
};

use super::{
    Board, RECEIVE_BUFFER, TRANSMIT_BUFFER, WATCHDOG_SECONDS,
    lamp::Lamp,
    mapped_flash::{Controller, MappedSlot},
    mishap,
};

pub type Input = BufferedUarteRx<'static>;
pub type Output = BufferedUarteTx<'static>;
pub type NodeHardware = Hardware<MappedSlot<Nvmc<'static>>, Dog, Moved, Senses>;

/// Nothing to read, and nothing but the lamp to move.
#[cfg(not(feature = "standalone"))]
type Senses = NoSensors;
#[cfg(not(feature = "standalone"))]
pub type Moved = Lamp<Pin<'static>>;

/// What is read where the node acts by itself, and what is moved.
#[cfg(feature = "standalone")]
pub type TwoWire = Twim<'static>;
#[cfg(feature = "standalone")]
pub type Moved = (Lamp<Pin<'static>>, Driven<Pulses>);

/// Where the slots lie, as in the memory map. Flash starts at 0.
const SLOTS: u32 = 0x4_0000;
const SLOT: u32 = 260 * 1024;
const SECTOR: u32 = 4 * 1024;
/// Behind them the journal, of two sectors,
const JOURNAL: u32 = SLOTS + 2 * SLOT;
/// and what a node knows of its place, in two more.
#[cfg(feature = "standalone")]
const PLACES: u32 = JOURNAL + 2 * SECTOR;

/// The clock that outputs are counted with.
#[cfg(feature = "standalone")]
const CLOCK_HZ: u32 = 16_000_000;

/// Bytes of the longest command to a thermometer, which must lie in RAM.
#[cfg(feature = "standalone")]
const COMMAND: usize = 2;

bind_interrupts!(struct Irqs {
    UARTE0 => buffered_uarte::InterruptHandler<UARTE0>;
    #[cfg(feature = "standalone")]
    TWISPI0 => twim::InterruptHandler<TWISPI0>;
    #[cfg(feature = "standalone")]
    UARTE1 => buffered_uarte::InterruptHandler<UARTE1>;
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
    let controller: &Controller<_> =
        CONTROLLER.init(Controller::new(RefCell::new(Nvmc::new(p.NVMC))));
    let mut dog = wdt::Config::default();
    dog.timeout_ticks = WATCHDOG_SECONDS * 32_768;
    dog.action_during_debug_halt = HaltConfig::Pause;
    let watchdog = match wdt::Watchdog::try_new(p.WDT, dog) {
        Ok((_, [handle])) => handle,
        // SAFETY: it runs already, started by another image, and has at least one handle.
        Err(_) => unsafe { WatchdogHandle::steal::<WDT>(0) },
    };
    // SAFETY: the chip's address map; the memory map keeps the image out of there.
    let (slots, [journal]) = unsafe {
        (
            MappedSlot::parts(controller, SLOTS, SLOTS as usize, SLOT),
            MappedSlot::parts(controller, JOURNAL, JOURNAL as usize, 2 * SECTOR),
        )
    };
    // LED1, which a low pin lights.
    let lamp = Lamp::new(
        Pin::new(p.P0_13, Level::High, OutputDrive::Standard),
        PinState::Low,
    );
    interrupt::EGU0_SWI0.set_priority(Priority::P6);
    let spawner = EXECUTOR.start(interrupt::EGU0_SWI0);
    #[cfg(feature = "standalone")]
    let (moved, station) = {
        static SENT: StaticCell<[u8; COMMAND]> = StaticCell::new();
        static HEARD: StaticCell<[u8; HEARD_BUFFER]> = StaticCell::new();
        static SAID: StaticCell<[u8; SAID_BUFFER]> = StaticCell::new();
        let mut bus = twim::Config::default();
        bus.frequency = Frequency::K400;
        let sent = SENT.init([0; COMMAND]);
        let thermometers = Twim::new(p.TWISPI0, Irqs, p.P0_26, p.P0_27, bus, sent);
        let mut output = SimpleConfig::default();
        output.prescaler = Prescaler::Div1;
        output.max_duty = (CLOCK_HZ / OUTPUT_HZ) as u16;
        let output = Pulses(SimplePwm::new_1ch(p.PWM0, p.P1_11, &output));
        let mut line = uarte::Config::default();
        line.baudrate = Baudrate::Baud1m;
        let line = BufferedUarte::new(
            p.UARTE1,
            p.TIMER2,
            p.PPI_CH2,
            p.PPI_CH3,
            p.PPI_GROUP1,
            p.P1_01,
            p.P1_02,
            Irqs,
            line,
            HEARD.init_with(|| [0; HEARD_BUFFER]),
            SAID.init_with(|| [0; SAID_BUFFER]),
        );
        // SAFETY: as above.
        let slots = unsafe { MappedSlot::parts(controller, PLACES, PLACES as usize, SECTOR) };
        let station = alone::station(spawner, slots, thermometers, line.split());
        ((lamp, Driven::new(output)), Some(station))
    };
    #[cfg(not(feature = "standalone"))]
    let (moved, station) = (lamp, None);
    let hardware = Hardware {
        board: "nrf52840-dk",
        keys: Keys::BUILT_IN,
        slots,
        journal,
        watchdog: Dog(watchdog),
        actuator: moved,
        station,
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
    Some((spawner, board))
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

/// An output of the chip's, in the words of embedded-hal, which the HAL does not speak here.
#[cfg(feature = "standalone")]
pub struct Pulses(SimplePwm<'static>);

#[cfg(feature = "standalone")]
impl ErrorType for Pulses {
    type Error = Infallible;
}

#[cfg(feature = "standalone")]
impl SetDutyCycle for Pulses {
    fn max_duty_cycle(&self) -> u16 {
        self.0.max_duty()
    }

    fn set_duty_cycle(&mut self, duty: u16) -> Result<(), Infallible> {
        // "Inverted" is on below the count.
        self.0.set_duty(0, DutyCycle::inverted(duty));
        Ok(())
    }
}
