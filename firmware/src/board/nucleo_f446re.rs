//! ST's Nucleo-F446RE: an STM32F446RE, a Cortex-M4F at 168 MHz.
//!
//! USART2 (PA2, PA3), which the on-board ST-Link shows as a serial port, carries the link; the log
//! goes through the debugger (RTT). Where the node acts by itself, thermometers hang on I2C1 (PB8, PB9), PC7
//! drives what moves the field, and USART1 (PA9, PA10) is on the line to its neighbours.
//!
//! Two flash sectors of 128 KiB hold the policies, of the first ones, of 16 KiB, three the records: the
//! image's code begins behind those, and only its vectors lie before them.

use core::cell::RefCell;

use agent_core::message::ResetCause;
use embassy_executor::{InterruptExecutor, SendSpawner};
use embassy_stm32::{
    Config, bind_interrupts,
    flash::{Bank1Region1, Bank1Region3, Blocking, Flash},
    gpio::{Level, Output as Pin, Speed},
    interrupt,
    interrupt::{InterruptExt, Priority},
    pac::RCC,
    peripherals::{IWDG, USART2},
    rcc::{
        AHBPrescaler, APBPrescaler, Hse, HseMode, Pll, PllMul, PllPDiv, PllPreDiv, PllSource,
        Sysclk,
    },
    time::Hertz,
    usart::{self, BufferedUart, BufferedUartRx, BufferedUartTx},
    wdg::IndependentWatchdog,
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
    embassy_stm32::{
        Peri, dma,
        gpio::{AfType, Flex, OutputType},
        i2c::{self, I2c, Master},
        mode::Async,
        peripherals::{DMA1_CH0, DMA1_CH6, I2C1, PC7, TIM3, USART1},
        timer::{
            Channel,
            low_level::{OutputCompareMode, Timer},
        },
    },
    embedded_hal::pwm::{ErrorType, SetDutyCycle},
    firmware::pulse_width::Driven,
};

use super::{
    BAUD, Board, RECEIVE_BUFFER, TRANSMIT_BUFFER, WATCHDOG_SECONDS,
    lamp::Lamp,
    mapped_flash::{Controller, MappedSlot},
    mishap,
};

pub type Input = BufferedUartRx<'static>;
pub type Output = BufferedUartTx<'static>;
pub type NodeHardware = Hardware<MappedSlot<Large>, Iwdg, Moved, Senses, MappedSlot<Small>>;

/// Nothing to read, and nothing but the lamp to move.
#[cfg(not(feature = "standalone"))]
type Senses = NoSensors;
#[cfg(not(feature = "standalone"))]
pub type Moved = Lamp<Pin<'static>>;

/// What is read where the node acts by itself, and what is moved.
#[cfg(feature = "standalone")]
pub type TwoWire = I2c<'static, Async, Master>;
#[cfg(feature = "standalone")]
pub type Moved = (Lamp<Pin<'static>>, Driven<Pulses>);

/// The sectors of 16 KiB: 0 to 3, of which the first holds the vectors.
type Small = Bank1Region1<'static, Blocking>;
const SMALL: u32 = 16 * 1024;
/// Where the second begins, and with it the records: the journal, then what a node knows of its place.
const RECORDS: usize = 0x0800_4000;

/// The sectors of 128 KiB: 5, 6 and 7, of which the first is the image's.
type Large = Bank1Region3<'static, Blocking>;
const LARGE: u32 = 128 * 1024;
/// Where the second begins, and with it the slots.
const SLOTS: usize = 0x0804_0000;

/// The clock that outputs are counted with.
#[cfg(feature = "standalone")]
const CLOCK_HZ: u32 = 84_000_000;

bind_interrupts!(struct Irqs {
    USART2 => usart::BufferedInterruptHandler<USART2>;
    #[cfg(feature = "standalone")]
    USART1 => usart::BufferedInterruptHandler<USART1>;
    #[cfg(feature = "standalone")]
    I2C1_EV => i2c::EventInterruptHandler<I2C1>;
    #[cfg(feature = "standalone")]
    I2C1_ER => i2c::ErrorInterruptHandler<I2C1>;
    #[cfg(feature = "standalone")]
    DMA1_STREAM0 => dma::InterruptHandler<DMA1_CH0>;
    #[cfg(feature = "standalone")]
    DMA1_STREAM6 => dma::InterruptHandler<DMA1_CH6>;
});

/// The node's task, below the interrupts that take bytes in, on one that no device here uses.
static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

#[interrupt]
unsafe fn UART5() {
    // SAFETY: this is the executor's interrupt, unmasked by its `start`.
    unsafe { EXECUTOR.on_interrupt() }
}

/// Switches the board on. To be called once, first.
pub fn start() -> Option<(SendSpawner, Board)> {
    static RECEIVED: StaticCell<[u8; RECEIVE_BUFFER]> = StaticCell::new();
    static TRANSMITTED: StaticCell<[u8; TRANSMIT_BUFFER]> = StaticCell::new();
    static LARGE_SECTORS: StaticCell<Controller<Large>> = StaticCell::new();
    static SMALL_SECTORS: StaticCell<Controller<Small>> = StaticCell::new();

    let mut core = cortex_m::Peripherals::take()?;
    let (history, last_words) = mishap::begin(&mut core, Some(reset_cause()));
    let p = embassy_stm32::init(clocks());
    let mut line = usart::Config::default();
    line.baudrate = BAUD;
    let link = BufferedUart::new(
        p.USART2,
        p.PA3,
        p.PA2,
        TRANSMITTED.init_with(|| [0; TRANSMIT_BUFFER]),
        RECEIVED.init_with(|| [0; RECEIVE_BUFFER]),
        Irqs,
        line,
    );
    let (output, input) = link.ok()?.split();
    let flash = Flash::new_blocking(p.FLASH).into_blocking_regions();
    let large: &Controller<_> =
        LARGE_SECTORS.init(Controller::new(RefCell::new(flash.bank1_region3)));
    let small: &Controller<_> =
        SMALL_SECTORS.init(Controller::new(RefCell::new(flash.bank1_region1)));
    let mut watchdog = IndependentWatchdog::new(p.IWDG, WATCHDOG_SECONDS * 1_000_000);
    watchdog.unleash();
    // SAFETY: the chip's address map; the memory map keeps the image out of there.
    let (slots, [journal]) = unsafe {
        (
            MappedSlot::parts(large, LARGE, SLOTS, LARGE),
            MappedSlot::parts(small, SMALL, RECORDS, SMALL),
        )
    };
    // LD2.
    let lamp = Lamp::new(Pin::new(p.PA5, Level::Low, Speed::Low), PinState::High);
    interrupt::UART5.set_priority(Priority::P8);
    let spawner = EXECUTOR.start(interrupt::UART5);
    #[cfg(feature = "standalone")]
    let (moved, station) = {
        static HEARD: StaticCell<[u8; HEARD_BUFFER]> = StaticCell::new();
        static SAID: StaticCell<[u8; SAID_BUFFER]> = StaticCell::new();
        let mut bus = i2c::Config::default();
        bus.frequency = Hertz::khz(400);
        let thermometers = I2c::new(p.I2C1, p.PB8, p.PB9, p.DMA1_CH6, p.DMA1_CH0, Irqs, bus);
        let output = Pulses::new(p.TIM3, p.PC7);
        let mut line = usart::Config::default();
        line.baudrate = BAUD;
        let line = BufferedUart::new(
            p.USART1,
            p.PA10,
            p.PA9,
            SAID.init_with(|| [0; SAID_BUFFER]),
            HEARD.init_with(|| [0; HEARD_BUFFER]),
            Irqs,
            line,
        );
        let (said, heard) = line.ok()?.split();
        // SAFETY: as above.
        let slots = unsafe { MappedSlot::parts(small, 2 * SMALL, RECORDS + SMALL as usize, SMALL) };
        let station = alone::station(spawner, slots, thermometers, (heard, said));
        ((lamp, Driven::new(output)), Some(station))
    };
    #[cfg(not(feature = "standalone"))]
    let (moved, station) = (lamp, None);
    let hardware = Hardware {
        board: "nucleo-f446re",
        keys: Keys::BUILT_IN,
        slots,
        journal,
        watchdog: Iwdg(watchdog),
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

/// 168 MHz from the 8 MHz that the ST-Link puts on the oscillator's pin.
fn clocks() -> Config {
    let mut config = Config::default();
    config.rcc.hse = Some(Hse {
        freq: Hertz(8_000_000),
        mode: HseMode::Bypass,
    });
    config.rcc.pll_src = PllSource::HSE;
    config.rcc.pll = Some(Pll {
        prediv: PllPreDiv::DIV4,
        mul: PllMul::MUL168,
        divp: Some(PllPDiv::DIV2),
        divq: None,
        divr: None,
    });
    config.rcc.sys = Sysclk::PLL1_P;
    config.rcc.ahb_pre = AHBPrescaler::DIV1;
    // 42 and 84 MHz, the most that these buses take.
    config.rcc.apb1_pre = APBPrescaler::DIV4;
    config.rcc.apb2_pre = APBPrescaler::DIV2;
    config
}

fn reset_cause() -> ResetCause {
    let flags = RCC.csr().read();
    RCC.csr().modify(|w| w.set_rmvf(true));
    // Several are set at once: the pin's with every one, the brown-out's with power-on.
    if flags.porrstf() {
        ResetCause::PowerOn
    } else if flags.borrstf() {
        ResetCause::Brownout
    } else if flags.wdgrstf() {
        ResetCause::Watchdog
    } else {
        ResetCause::External
    }
}

/// The independent watchdog, on an oscillator of its own.
pub struct Iwdg(IndependentWatchdog<'static, IWDG>);

impl Watchdog for Iwdg {
    fn feed(&mut self) {
        self.0.pet();
    }
}

/// An output of the chip's, in the words of embedded-hal. The HAL has a driver for that too, which is larger
/// than there is room for.
#[cfg(feature = "standalone")]
pub struct Pulses {
    timer: Timer<'static, TIM3>,
    /// Which would be let go otherwise.
    _pin: Flex<'static>,
}

#[cfg(feature = "standalone")]
impl Pulses {
    const ALL: u16 = (CLOCK_HZ / OUTPUT_HZ) as u16;
    /// Of TIM3's, the one on PC7, as its alternate function 2.
    const CHANNEL: Channel = Channel::Ch2;

    fn new(timer: Peri<'static, TIM3>, pin: Peri<'static, PC7>) -> Self {
        let timer = Timer::new(timer);
        timer.set_max_compare_value(Self::ALL - 1);
        timer.set_output_compare_mode(Self::CHANNEL, OutputCompareMode::PwmMode1);
        // At once, and from then on with the next pulse.
        timer.set_compare_value(Self::CHANNEL, Self::ALL / 2);
        timer.set_output_compare_preload(Self::CHANNEL, true);
        timer.enable_channel(Self::CHANNEL, true);
        timer.start();
        let mut pin = Flex::new(pin);
        pin.set_as_af_unchecked(2, AfType::output(OutputType::PushPull, Speed::Low));
        Self { timer, _pin: pin }
    }
}

#[cfg(feature = "standalone")]
impl ErrorType for Pulses {
    type Error = Infallible;
}

#[cfg(feature = "standalone")]
impl SetDutyCycle for Pulses {
    fn max_duty_cycle(&self) -> u16 {
        Self::ALL
    }

    fn set_duty_cycle(&mut self, duty: u16) -> Result<(), Infallible> {
        self.timer.set_compare_value(Self::CHANNEL, duty);
        Ok(())
    }
}
