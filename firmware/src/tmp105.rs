//! TI's TMP105 and its kin (LM75 with 12 bits): thermometers on an I2C bus, eight of them at most, and eight on each
//! branch of a switch on that bus.
//!
//! A page of our own, because the crates for this family read nine bits, half a degree, or speak to four
//! addresses only, and those for the switch wait for its bus (data sheets:
//! <https://www.ti.com/lit/ds/symlink/tmp105.pdf>, SLOS345B, and for the switch
//! <https://www.ti.com/lit/ds/symlink/pca9548a.pdf>, SCPS143).

use core::mem::take;

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

/// Addresses that they can have.
const ADDRESSES: u8 = 8;

/// The switch's address, all of whose pins are low. What is written to it connects the branches whose bits are set.
const SWITCH: u8 = 0x70;

/// Branches that it has.
const BRANCHES: u8 = 8;

/// Thermometers on a bus, a channel each: first those on the bus itself by their addresses, then those on each
/// branch. In degrees Celsius.
pub struct Tmp105s<B> {
    bus: B,
    /// Those that read twelve bits, a bit each.
    configured: [u8; 1 + BRANCHES as usize],
    /// What the switch was told; nothing if that is not known.
    chosen: u8,
}

impl<B: I2c> Tmp105s<B> {
    /// Those on this bus, be they there or not.
    pub const fn on(bus: B) -> Self {
        Self {
            bus,
            configured: [0; 1 + BRANCHES as usize],
            chosen: 0,
        }
    }
}

impl<B: I2c> Sensors for Tmp105s<B> {
    const CHANNELS: u8 = ADDRESSES * (1 + BRANCHES);

    async fn read(&mut self, channel: u8) -> Option<f32> {
        let (place, number) = (channel / ADDRESSES, channel % ADDRESSES);
        let (address, mask) = (FIRST + number, 1 << number);
        let configured = self.configured.get_mut(usize::from(place))?;
        // What does not answer may have been without power, and forgotten: either is known when it has.
        let (is_configured, before) = (*configured & mask != 0, take(&mut self.chosen));
        *configured &= !mask;
        let chosen = match place.checked_sub(1) {
            None => before,
            Some(branch) => 1 << branch,
        };
        if chosen != before {
            self.bus.write(SWITCH, &[chosen]).await.ok()?;
        }
        if !is_configured {
            let configure = [CONFIGURATION, TWELVE_BITS];
            self.bus.write(address, &configure).await.ok()?;
        }
        let mut read = [0; 2];
        let pointer = [TEMPERATURE];
        (self.bus.write_read(address, &pointer, &mut read).await).ok()?;
        *configured |= mask;
        self.chosen = chosen;
        Some(f32::from(i16::from_be_bytes(read) >> 4) * DEGREES)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::{
        pin::pin,
        task::{Context, Poll, Waker},
    };
    use embedded_hal_async::i2c::{ErrorKind, ErrorType, NoAcknowledgeSource, Operation};
    use std::{vec, vec::Vec};

    /// Thermometers on the bus itself and on three branches, at three addresses each, with a switch between.
    #[derive(Default)]
    struct Bus {
        /// The branches that the switch connects.
        switch: u8,
        /// By place and number: whether it reads twelve bits.
        twelve: [[bool; 3]; 4],
        /// What was written to the switch.
        choices: Vec<u8>,
        configured: usize,
        /// Whose power is off, by place and number.
        off: Option<(usize, usize)>,
    }

    impl ErrorType for &mut Bus {
        type Error = ErrorKind;
    }

    impl I2c for &mut Bus {
        async fn transaction(
            &mut self,
            address: u8,
            operations: &mut [Operation<'_>],
        ) -> Result<(), ErrorKind> {
            let nobody = Err(ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address));
            if address == SWITCH {
                let [Operation::Write([choice])] = operations else {
                    panic!("it is told one byte");
                };
                self.switch = *choice;
                self.choices.push(*choice);
                return Ok(());
            }
            let number = usize::from(address - FIRST);
            assert!(self.switch.count_ones() <= 1, "one branch at a time");
            let place = match self.switch {
                // The first number is on the bus, the others behind the switch.
                _ if number == 0 => 0,
                0 => return nobody,
                branch => 1 + branch.trailing_zeros() as usize,
            };
            if place >= 4 || number >= 3 || self.off == Some((place, number)) {
                return nobody;
            }
            match operations {
                [Operation::Write([CONFIGURATION, TWELVE_BITS])] => {
                    self.twelve[place][number] = true;
                    self.configured += 1;
                }
                [Operation::Write([TEMPERATURE]), Operation::Read(read)] => {
                    assert!(self.twelve[place][number]);
                    let sixteenths = (16 * (10 * place + number) + 1) as i16;
                    read.copy_from_slice(&(sixteenths << 4).to_be_bytes());
                }
                other => panic!("{other:?}"),
            }
            Ok(())
        }
    }

    fn read(sensors: &mut Tmp105s<&mut Bus>, channel: u8) -> Option<f32> {
        match pin!(sensors.read(channel)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reading) => reading,
            Poll::Pending => panic!("nobody waits here"),
        }
    }

    /// Places and numbers of four thermometers: on the bus, and on two branches at the same addresses.
    const CHANNELS: [u8; 5] = [0, 8 + 1, 8 + 2, 16 + 1, 16 + 2];

    #[test]
    fn the_same_addresses_on_two_branches_are_different_thermometers() {
        let mut bus = Bus::default();
        let mut sensors = Tmp105s::on(&mut bus);
        for _ in 0..2 {
            let all = CHANNELS.map(|channel| read(&mut sensors, channel).unwrap());
            assert_eq!(all, [0.0, 11.0, 12.0, 21.0, 22.0].map(|t| t + 0.0625));
        }
        assert_eq!(read(&mut sensors, 72), None);
        assert_eq!(read(&mut sensors, 255), None);
        // It is told when the branch changes, and they are when they are read for the first time.
        assert_eq!((bus.choices, bus.configured), (vec![1, 2, 1, 2], 5));
    }

    #[test]
    fn who_does_not_answer_has_its_branch_chosen_and_is_told_anew() {
        let mut bus = Bus::default();
        let mut sensors = Tmp105s::on(&mut bus);
        assert!(read(&mut sensors, 9).is_some());
        sensors.bus.off = Some((1, 2));
        assert_eq!(read(&mut sensors, 10), None);
        assert_eq!(read(&mut sensors, 10), None);
        sensors.bus.off = None;
        assert_eq!(read(&mut sensors, 10), Some(12.0625));
        assert_eq!(bus.choices, [1, 1, 1]);
        // The switch loses its power, and with it what it was told.
        let mut sensors = Tmp105s::on(&mut bus);
        assert!(read(&mut sensors, 17).is_some());
        sensors.bus.switch = 0;
        assert_eq!(read(&mut sensors, 17), None);
        assert_eq!(read(&mut sensors, 17), Some(21.0625));
    }
}
