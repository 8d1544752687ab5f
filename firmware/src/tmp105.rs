//! TI's TMP105 and its kin (LM75 with 12 bits): thermometers on an I2C bus, eight of them at most.
//!
//! A page of our own, because the crates for this family read nine bits, half a degree, or speak to four
//! addresses only (data sheet: <https://www.ti.com/lit/ds/symlink/tmp105.pdf>, SLOS345B).

use embedded_hal_async::i2c::I2c;

use crate::hardware::Sensors;

/// The address of the first; those of the others follow.
const FIRST: u8 = 0x48;

/// Pointers to the registers, table 7-4.
const TEMPERATURE: u8 = 0;
const CONFIGURATION: u8 = 1;

/// Twelve bits, continuously, table 7-8: after power-on it is nine.
const TWELVE_BITS: u8 = 0b0110_0000;

/// Degrees Celsius in the last of twelve bits.
const DEGREES: f32 = 1.0 / 16.0;

/// Thermometers on a bus, a channel each by their addresses; in degrees Celsius.
pub struct Tmp105s<B> {
    bus: B,
    /// Those that read twelve bits, a bit each.
    configured: u8,
}

impl<B: I2c> Tmp105s<B> {
    /// Those on this bus, be they there or not.
    pub const fn on(bus: B) -> Self {
        Self { bus, configured: 0 }
    }

    async fn degrees(&mut self, channel: u8) -> Result<f32, B::Error> {
        let (address, mask) = (FIRST + channel, 1 << channel);
        if self.configured & mask == 0 {
            let configure = [CONFIGURATION, TWELVE_BITS];
            self.bus.write(address, &configure).await?;
            self.configured |= mask;
        }
        let mut read = [0; 2];
        self.bus
            .write_read(address, &[TEMPERATURE], &mut read)
            .await?;
        Ok(f32::from(i16::from_be_bytes(read) >> 4) * DEGREES)
    }
}

impl<B: I2c> Sensors for Tmp105s<B> {
    const CHANNELS: u8 = 8;

    async fn read(&mut self, channel: u8) -> Option<f32> {
        if channel >= Self::CHANNELS {
            return None;
        }
        let degrees = self.degrees(channel).await;
        if degrees.is_err() {
            // It may have been without power, and forgotten.
            self.configured &= !(1 << channel);
        }
        degrees.ok()
    }
}
