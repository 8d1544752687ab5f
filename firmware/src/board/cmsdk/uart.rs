//! The CMSDK UART: one byte deep in each direction, interrupt on both.

use core::{convert::Infallible, future::poll_fn, task::Poll};

use embassy_sync::{
    blocking_mutex::raw::CriticalSectionRawMutex, pipe::Pipe, waitqueue::AtomicWaker,
};
use embedded_io_async::{ErrorType, Read, Write};

use super::Register;

const STATE_TX_FULL: u32 = 1 << 0;
const STATE_RX_FULL: u32 = 1 << 1;
const CTRL_TX_ENABLE: u32 = 1 << 0;
const CTRL_RX_ENABLE: u32 = 1 << 1;
const CTRL_TX_INTERRUPT: u32 = 1 << 2;
const CTRL_RX_INTERRUPT: u32 = 1 << 3;
const INTERRUPT_TX: u32 = 1 << 0;
const INTERRUPT_RX: u32 = 1 << 1;

/// The registers of one UART.
#[derive(Clone, Copy)]
pub struct Registers {
    base: usize,
}

impl Registers {
    /// # Safety
    /// `base` must be the address of a CMSDK UART.
    pub const unsafe fn at(base: usize) -> Self {
        Self { base }
    }

    fn data(self) -> Register {
        // SAFETY: the constructor was promised a UART, this and the next four are its registers.
        unsafe { Register::at(self.base) }
    }

    fn state(self) -> Register {
        // SAFETY: see `data`.
        unsafe { Register::at(self.base + 0x04) }
    }

    fn control(self) -> Register {
        // SAFETY: see `data`.
        unsafe { Register::at(self.base + 0x08) }
    }

    fn interrupt(self) -> Register {
        // SAFETY: see `data`.
        unsafe { Register::at(self.base + 0x0c) }
    }

    fn baud_divider(self) -> Register {
        // SAFETY: see `data`.
        unsafe { Register::at(self.base + 0x10) }
    }

    /// Turns the transmitter on, for a log that is only ever written.
    pub fn enable_transmitter(self) {
        self.baud_divider().write(FASTEST_DIVIDER);
        self.control().write(CTRL_TX_ENABLE);
    }

    /// Writes one byte, waiting until there is room.
    pub fn write_blocking(self, byte: u8) {
        while self.state().read() & STATE_TX_FULL != 0 {}
        self.data().write(byte.into());
    }
}

/// The smallest divider the hardware takes; the emulator does not model the line's speed.
const FASTEST_DIVIDER: u32 = 16;

/// A UART with a receive buffer of `N` bytes that its interrupt fills.
///
/// When the buffer is full the receive interrupt is masked until the reader
/// has made room: the emulator then holds the sender back, and nothing is lost.
/// On a real line, without flow control, the bytes beyond the buffer are lost,
/// and the frame they belong to fails its checksum.
///
/// Its address is part of its type: of one that is off, memory then holds nothing but zeros, and the image nothing.
pub struct BufferedUart<const BASE: usize, const N: usize> {
    received: Pipe<CriticalSectionRawMutex, N>,
    transmitted: AtomicWaker,
}

impl<const BASE: usize, const N: usize> BufferedUart<BASE, N> {
    /// A UART that is still switched off.
    ///
    /// # Safety
    /// `BASE` must be the address of a CMSDK UART.
    pub const unsafe fn new() -> Self {
        Self {
            received: Pipe::new(),
            transmitted: AtomicWaker::new(),
        }
    }

    fn registers(&self) -> Registers {
        // SAFETY: `new` was promised that.
        unsafe { Registers::at(BASE) }
    }

    /// Switches the UART on. Its interrupts must be routed to the two methods below.
    pub fn enable(&self) {
        self.registers().baud_divider().write(FASTEST_DIVIDER);
        self.registers()
            .control()
            .write(CTRL_TX_ENABLE | CTRL_RX_ENABLE | CTRL_TX_INTERRUPT | CTRL_RX_INTERRUPT);
        // The emulator delivers what was sent before only when the data is read.
        if self.registers().state().read() & STATE_RX_FULL == 0 {
            self.registers().data().read();
        }
    }

    /// To be called by the receive interrupt.
    pub fn on_receive(&self) {
        // Cleared first: reading the data lets the next byte in.
        self.registers().interrupt().write(INTERRUPT_RX);
        if !self.take_bytes() {
            let control = self.registers().control();
            control.write(control.read() & !CTRL_RX_INTERRUPT);
        }
    }

    /// To be called by the transmit interrupt.
    pub fn on_transmit(&self) {
        self.registers().interrupt().write(INTERRUPT_TX);
        self.transmitted.wake();
    }

    /// Moves what has come into the buffer; false if there is more than fits.
    fn take_bytes(&self) -> bool {
        while self.registers().state().read() & STATE_RX_FULL != 0 {
            if self.received.is_full() {
                return false;
            }
            let byte = self.registers().data().read() as u8;
            let _ = self.received.try_write(&[byte]);
        }
        true
    }

    /// Lets bytes in again after the buffer was full.
    fn unmask_receiver(&self) {
        let control = self.registers().control();
        critical_section::with(|_| {
            let masked = control.read();
            if masked & CTRL_RX_INTERRUPT != 0 {
                return;
            }
            // First unmasked, then looked at: a byte that came while masked has raised no
            // interrupt and never will, one that comes between the two does.
            control.write(masked | CTRL_RX_INTERRUPT);
            if !self.take_bytes() {
                control.write(masked);
            }
        });
    }
}

impl<const BASE: usize, const N: usize> ErrorType for &BufferedUart<BASE, N> {
    type Error = Infallible;
}

impl<const BASE: usize, const N: usize> Read for &BufferedUart<BASE, N> {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let length = self.received.read(buffer).await;
        self.unmask_receiver();
        Ok(length)
    }
}

impl<const BASE: usize, const N: usize> Write for &BufferedUart<BASE, N> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        let Some(&first) = bytes.first() else {
            return Ok(0);
        };
        self.flush().await?;
        self.registers().data().write(first.into());
        Ok(1)
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        poll_fn(|context| {
            // Registered first, so that an interrupt between the two is not missed.
            self.transmitted.register(context.waker());
            match self.registers().state().read() & STATE_TX_FULL {
                0 => Poll::Ready(Ok(())),
                _ => Poll::Pending,
            }
        })
        .await
    }
}
