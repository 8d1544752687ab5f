//! The two-wire interface of these boards: two lines that software pulls low and lets go, no more. I2C is
//! made of that here; the emulated lines follow at once, so nothing is waited for.

use embedded_hal_async::i2c::{
    ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation, SevenBitAddress,
};

use super::Register;
use crate::board::outside;

const CLOCK: u32 = 1 << 0;
const DATA: u32 = 1 << 1;

/// Clocks after which any part has ended the byte that it was sending, and lets the data line go.
const BYTE: usize = 9;

/// A bus of which this is the only master.
pub struct TwoWire {
    base: usize,
}

impl TwoWire {
    /// # Safety
    /// `base` must be the address of a two-wire interface that nothing else uses.
    pub const unsafe fn at(base: usize) -> Self {
        Self { base }
    }

    fn register(&self, offset: usize) -> Register {
        // SAFETY: `at` was promised the interface; both offsets here are its registers.
        unsafe { Register::at(self.base + offset) }
    }

    /// Lets a line go, or pulls it low.
    fn set(&self, line: u32, high: bool) {
        // The emulated line has no others on it: one that holds it is as if this master did.
        let goes_up = high && (line != DATA || !outside::holds_data());
        self.register(if goes_up { 0 } else { 4 }).write(line);
    }

    fn data(&self) -> bool {
        self.register(0).read() & DATA != 0
    }

    /// One clock, with the data line let go or pulled low; what it is meanwhile.
    fn clock(&self, high: bool) -> bool {
        self.set(DATA, high);
        self.pulse()
    }

    /// One clock with the data line as it is; what that is meanwhile.
    fn pulse(&self) -> bool {
        self.set(CLOCK, true);
        let data = self.data();
        self.set(CLOCK, false);
        data
    }

    /// An error if somebody holds the data line whatever is done.
    fn start(&self) -> Result<(), ErrorKind> {
        self.set(DATA, true);
        self.set(CLOCK, true);
        if !self.data() {
            // A part that was cut off in the middle of a byte still sends it.
            self.set(CLOCK, false);
            let is_free = (0..BYTE).any(|_| self.clock(true));
            self.stop();
            if !is_free {
                return Err(ErrorKind::Bus);
            }
            self.set(DATA, true);
            self.set(CLOCK, true);
        }
        self.set(DATA, false);
        self.set(CLOCK, false);
        Ok(())
    }

    fn stop(&self) {
        self.set(DATA, false);
        self.set(CLOCK, true);
        self.set(DATA, true);
    }

    fn write_byte(&self, byte: u8, whose: NoAcknowledgeSource) -> Result<(), ErrorKind> {
        for bit in (0..8).rev() {
            self.clock(byte >> bit & 1 != 0);
        }
        match self.clock(true) {
            false => Ok(()),
            true => Err(ErrorKind::NoAcknowledge(whose)),
        }
    }

    fn read_byte(&self, more: bool) -> u8 {
        self.set(DATA, true);
        let byte = (0..8).fold(0, |byte, _| byte << 1 | u8::from(self.pulse()));
        self.clock(!more);
        byte
    }

    fn carry_out(
        &self,
        address: SevenBitAddress,
        operations: &mut [Operation<'_>],
    ) -> Result<(), ErrorKind> {
        // Operations of one kind in a row are one transfer.
        let mut before = None;
        let mut rest = operations.iter_mut().peekable();
        while let Some(operation) = rest.next() {
            let reads = matches!(operation, Operation::Read(_));
            if before != Some(reads) {
                self.start()?;
                let head = address << 1 | u8::from(reads);
                self.write_byte(head, NoAcknowledgeSource::Address)?;
                before = Some(reads);
            }
            match operation {
                Operation::Write(bytes) => {
                    for byte in bytes.iter() {
                        self.write_byte(*byte, NoAcknowledgeSource::Data)?;
                    }
                }
                Operation::Read(bytes) => {
                    let goes_on = matches!(rest.peek(), Some(Operation::Read(_)));
                    let mut left = bytes.len();
                    for byte in bytes.iter_mut() {
                        left -= 1;
                        *byte = self.read_byte(left > 0 || goes_on);
                    }
                }
            }
        }
        Ok(())
    }
}

impl ErrorType for TwoWire {
    type Error = ErrorKind;
}

impl I2c for TwoWire {
    async fn transaction(
        &mut self,
        address: SevenBitAddress,
        operations: &mut [Operation<'_>],
    ) -> Result<(), ErrorKind> {
        let done = self.carry_out(address, operations);
        self.stop();
        done
    }
}
