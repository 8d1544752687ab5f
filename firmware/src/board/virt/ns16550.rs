//! The NS16550 UART: sixteen bytes deep in each direction, one interrupt for both.

use core::{convert::Infallible, future::poll_fn, task::Poll};

use embassy_sync::{
    blocking_mutex::raw::CriticalSectionRawMutex, pipe::Pipe, waitqueue::AtomicWaker,
};
use embedded_io_async::{ErrorType, Read, Write};

use super::Register;

const INTERRUPT_RECEIVED: u8 = 1 << 0;
const INTERRUPT_TRANSMITTED: u8 = 1 << 1;
const STATE_RECEIVED: u8 = 1 << 0;
const STATE_TRANSMITTED: u8 = 1 << 5;
const FIFO_ENABLE: u8 = 1 << 0;
const FIFO: usize = 16;
/// Eight bits, no parity. The emulator does not model the line's speed.
const EIGHT_BITS: u8 = 0b11;

/// The registers of one UART.
#[derive(Clone, Copy)]
pub struct Registers {
    base: usize,
}

impl Registers {
    /// # Safety
    /// `base` must be the address of an NS16550.
    pub const unsafe fn at(base: usize) -> Self {
        Self { base }
    }

    fn register(self, offset: usize) -> Register<u8> {
        // SAFETY: `at` was promised a UART, of which all offsets here are registers.
        unsafe { Register::at(self.base + offset) }
    }

    fn data(self) -> Register<u8> {
        self.register(0)
    }

    fn interrupts(self) -> Register<u8> {
        self.register(1)
    }

    fn state(self) -> u8 {
        self.register(5).read()
    }

    /// Switches it on, without interrupts: for a log that is only ever written, that is all.
    pub fn enable_transmitter(self) {
        self.interrupts().write(0);
        self.register(3).write(EIGHT_BITS);
        self.register(2).write(FIFO_ENABLE);
    }

    /// Writes one byte, waiting until there is room.
    pub fn write_blocking(self, byte: u8) {
        while self.state() & STATE_TRANSMITTED == 0 {}
        self.data().write(byte);
    }
}

/// A UART with a receive buffer of `N` bytes that its interrupt fills.
///
/// When the buffer is full the receive interrupt is masked until the reader has made room: the emulator then
/// holds the sender back, and nothing is lost.
pub struct BufferedUart<const N: usize> {
    registers: Registers,
    received: Pipe<CriticalSectionRawMutex, N>,
    transmitted: AtomicWaker,
}

impl<const N: usize> BufferedUart<N> {
    /// A UART that is still switched off.
    pub const fn new(registers: Registers) -> Self {
        Self {
            registers,
            received: Pipe::new(),
            transmitted: AtomicWaker::new(),
        }
    }

    /// Switches the UART on. Its interrupt must be routed to [`Self::on_interrupt`].
    pub fn enable(&self) {
        self.registers.enable_transmitter();
        self.registers.interrupts().write(INTERRUPT_RECEIVED);
    }

    /// To be called by its interrupt.
    pub fn on_interrupt(&self) {
        let mut wanted = self.registers.interrupts().read();
        if wanted & INTERRUPT_RECEIVED != 0 && !self.take_bytes() {
            wanted &= !INTERRUPT_RECEIVED;
        }
        if wanted & INTERRUPT_TRANSMITTED != 0 && self.registers.state() & STATE_TRANSMITTED != 0 {
            wanted &= !INTERRUPT_TRANSMITTED;
            self.transmitted.wake();
        }
        self.registers.interrupts().write(wanted);
    }

    /// Moves what has come into the buffer; false if there is more than fits.
    fn take_bytes(&self) -> bool {
        while self.registers.state() & STATE_RECEIVED != 0 {
            if self.received.is_full() {
                return false;
            }
            let byte = self.registers.data().read();
            let _ = self.received.try_write(&[byte]);
        }
        true
    }

    /// Asks for an interrupt; it comes at once if there is reason already.
    fn unmask(&self, interrupt: u8) {
        let interrupts = self.registers.interrupts();
        critical_section::with(|_| interrupts.write(interrupts.read() | interrupt));
    }
}

impl<const N: usize> ErrorType for &BufferedUart<N> {
    type Error = Infallible;
}

impl<const N: usize> Read for &BufferedUart<N> {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let length = self.received.read(buffer).await;
        // There is room now, if it was that what was missing.
        self.unmask(INTERRUPT_RECEIVED);
        Ok(length)
    }
}

impl<const N: usize> Write for &BufferedUart<N> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.flush().await?;
        // All of them have gone when there is said to be room.
        let written = bytes.iter().take(FIFO);
        Ok(written
            .map(|&byte| self.registers.data().write(byte))
            .count())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        poll_fn(|context| {
            if self.registers.state() & STATE_TRANSMITTED != 0 {
                return Poll::Ready(Ok(()));
            }
            self.transmitted.register(context.waker());
            self.unmask(INTERRUPT_TRANSMITTED);
            Poll::Pending
        })
        .await
    }
}
