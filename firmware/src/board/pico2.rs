//! Raspberry Pi's Pico 2: an RP2350, of which one Cortex-M33 at 150 MHz is used.
//!
//! UART0 (GP0, GP1) carries the link, for a Debug Probe or any 3.3 V adapter; the log goes through
//! the debugger (RTT). Where the node acts by itself, thermometers hang on I2C0 (GP4, GP5), GP14 drives
//! what moves the field, and UART1 (GP8, GP9) is on the line to its neighbours.

use core::cell::RefCell;

use agent_core::message::ResetCause;
use embassy_executor::{InterruptExecutor, SendSpawner};
use embassy_rp::{
    bind_interrupts,
    flash::{Blocking, Flash},
    gpio::{Level, Output as Pin},
    interrupt,
    interrupt::{InterruptExt, Priority},
    pac,
    peripherals::{FLASH, UART0},
    uart::{self, BufferedInterruptHandler, BufferedUart, BufferedUartRx, BufferedUartTx},
    watchdog,
};
use embassy_time::Duration;
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
    embassy_rp::{
        i2c::{self, I2c},
        peripherals::{I2C0, UART1},
        pwm::{self, Pwm},
    },
    firmware::pulse_width::Driven,
};

use super::{
    BAUD, Board, RECEIVE_BUFFER, TRANSMIT_BUFFER, WATCHDOG_SECONDS,
    lamp::Lamp,
    mapped_flash::{Controller, MappedSlot},
    mishap,
};

pub type Input = BufferedUartRx;
pub type Output = BufferedUartTx;
pub type NodeHardware = Hardware<MappedSlot<Qspi>, Dog, Moved, Senses>;

/// Nothing to read, and nothing but the lamp to move.
#[cfg(not(feature = "standalone"))]
type Senses = NoSensors;
#[cfg(not(feature = "standalone"))]
pub type Moved = Lamp<Pin<'static>>;

/// What is read where the node acts by itself, and what is moved.
#[cfg(feature = "standalone")]
pub type TwoWire = I2c<'static, I2C0, i2c::Async>;
#[cfg(feature = "standalone")]
pub type Moved = (Lamp<Pin<'static>>, Driven<Pwm<'static>>);

/// The flash chip, written by code that runs from RAM meanwhile.
type Qspi = Flash<'static, FLASH, Blocking, { 4 * 1024 * 1024 }>;
const MAPPED: usize = 0x1000_0000;
/// Where the slots lie in it, as in the memory map.
const SLOTS: u32 = 0x10_0000;
const SLOT: u32 = 260 * 1024;
const SECTOR: u32 = 4 * 1024;
/// Behind them the journal, of two sectors,
const JOURNAL: u32 = SLOTS + 2 * SLOT;
/// and what a node knows of its place, in two more.
#[cfg(feature = "standalone")]
const PLACES: u32 = JOURNAL + 2 * SECTOR;

/// The clock that outputs are counted with.
#[cfg(feature = "standalone")]
const CLOCK_HZ: u32 = 150_000_000;

const PATIENCE: Duration = Duration::from_secs(WATCHDOG_SECONDS as u64);

bind_interrupts!(struct Irqs {
    UART0_IRQ => BufferedInterruptHandler<UART0>;
    #[cfg(feature = "standalone")]
    I2C0_IRQ => i2c::InterruptHandler<I2C0>;
    #[cfg(feature = "standalone")]
    UART1_IRQ => BufferedInterruptHandler<UART1>;
});

/// The node's task, below the interrupts that take bytes in, on one made for software.
static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

#[interrupt]
unsafe fn SWI_IRQ_0() {
    // SAFETY: this is the executor's interrupt, unmasked by its `start`.
    unsafe { EXECUTOR.on_interrupt() }
}

/// Switches the board on. To be called once, first.
pub fn start() -> Option<(SendSpawner, Board)> {
    static RECEIVED: StaticCell<[u8; RECEIVE_BUFFER]> = StaticCell::new();
    static TRANSMITTED: StaticCell<[u8; TRANSMIT_BUFFER]> = StaticCell::new();
    static CONTROLLER: StaticCell<Controller<Qspi>> = StaticCell::new();

    let mut core = cortex_m::Peripherals::take()?;
    let (history, last_words) = mishap::begin(&mut core, Some(reset_cause()));
    let p = embassy_rp::init(Default::default());
    let mut line = uart::Config::default();
    line.baudrate = BAUD;
    let link = BufferedUart::new(
        p.UART0,
        p.PIN_0,
        p.PIN_1,
        Irqs,
        TRANSMITTED.init_with(|| [0; TRANSMIT_BUFFER]),
        RECEIVED.init_with(|| [0; RECEIVE_BUFFER]),
        line,
    );
    let (output, input) = link.split();
    let controller: &Controller<_> =
        CONTROLLER.init(Controller::new(RefCell::new(Flash::new_blocking(p.FLASH))));
    let mut watchdog = watchdog::Watchdog::new(p.WATCHDOG);
    watchdog.pause_on_debug(true);
    watchdog.start(PATIENCE);
    // SAFETY: the chip's address map; the memory map keeps the image out of there.
    let (slots, [journal]) = unsafe {
        (
            MappedSlot::parts(controller, SLOTS, MAPPED + SLOTS as usize, SLOT),
            MappedSlot::parts(controller, JOURNAL, MAPPED + JOURNAL as usize, 2 * SECTOR),
        )
    };
    // The lamp on the board.
    let lamp = Lamp::new(Pin::new(p.PIN_25, Level::Low), PinState::High);
    interrupt::SWI_IRQ_0.set_priority(Priority::P2);
    let spawner = EXECUTOR.start(interrupt::SWI_IRQ_0);
    #[cfg(feature = "standalone")]
    let (moved, station) = {
        static HEARD: StaticCell<[u8; HEARD_BUFFER]> = StaticCell::new();
        static SAID: StaticCell<[u8; SAID_BUFFER]> = StaticCell::new();
        let mut bus = i2c::Config::default();
        bus.frequency = 400_000;
        let thermometers = I2c::new_async(p.I2C0, p.PIN_5, p.PIN_4, Irqs, bus);
        let mut output = pwm::Config::default();
        output.top = (CLOCK_HZ / OUTPUT_HZ - 1) as u16;
        let output = Pwm::new_output_a(p.PWM_SLICE7, p.PIN_14, output);
        let mut line = uart::Config::default();
        line.baudrate = BAUD;
        let line = BufferedUart::new(
            p.UART1,
            p.PIN_8,
            p.PIN_9,
            Irqs,
            SAID.init_with(|| [0; SAID_BUFFER]),
            HEARD.init_with(|| [0; HEARD_BUFFER]),
            line,
        );
        let (said, heard) = line.split();
        // SAFETY: as above.
        let slots =
            unsafe { MappedSlot::parts(controller, PLACES, MAPPED + PLACES as usize, SECTOR) };
        let station = alone::station(spawner, slots, thermometers, (heard, said));
        ((lamp, Driven::new(output)), Some(station))
    };
    #[cfg(not(feature = "standalone"))]
    let (moved, station) = (lamp, None);
    let hardware = Hardware {
        board: "pico2",
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
    /// In a register that a reset of the whole chip clears and any other keeps: what the chip says
    /// of its last reset is old news then.
    const SEEN: u32 = 0x5ee2_0000;
    let news = pac::WATCHDOG.scratch0().read() != SEEN;
    pac::WATCHDOG.scratch0().write_value(SEEN);
    let chip = pac::POWMAN.chip_reset().read();
    if pac::WATCHDOG.reason().read().timer() {
        ResetCause::Watchdog
    } else if news && chip.had_por() {
        ResetCause::PowerOn
    } else if news && chip.had_bor() {
        ResetCause::Brownout
    } else {
        ResetCause::External
    }
}

/// The chip's watchdog.
pub struct Dog(watchdog::Watchdog);

impl Watchdog for Dog {
    fn feed(&mut self) {
        self.0.feed(PATIENCE);
    }
}
