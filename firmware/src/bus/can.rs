//! CAN FD, by any controller that `embedded-can` has a driver for.
//!
//! Identifiers are no addresses here: each frame has one of its own, drawn from what it says, so that no node
//! always comes first and no two go on colliding. Nobody reads them.

use embassy_time::{Duration, Instant, Timer};
use embedded_can::{ExtendedId, Frame, nb::Can};

use super::lot;
use crate::hardware::{Bus, Busy, MTU};

/// The controller's frames hold 8 bytes: it, or its driver, is one of classic CAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassicCan;

impl core::fmt::Display for ClassicCan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(
            "this is a controller of classic CAN, whose frames hold 8 bytes: neighbours need CAN FD, whose \
             frames hold 64",
        )
    }
}

impl core::error::Error for ClassicCan {}

/// A CAN FD controller.
pub struct CanFd<C> {
    can: C,
    /// How often it is looked at: its driver wakes nobody.
    look: Duration,
}

impl<C: Can> CanFd<C> {
    /// This controller, which keeps more frames than come between two looks.
    pub fn new(can: C, look: Duration) -> Result<Self, ClassicCan> {
        match C::Frame::new(ExtendedId::ZERO, &[0; MTU]) {
            Some(_) => Ok(Self { can, look }),
            None => Err(ClassicCan),
        }
    }
}

impl<C: Can> Bus for CanFd<C> {
    async fn send(&mut self, frame: &[u8]) -> Result<(), Busy> {
        let id = ExtendedId::new(lot(frame) & ExtendedId::MAX.as_raw());
        let Some(frame) = id.and_then(|id| C::Frame::new(id, frame)) else {
            return Ok(());
        };
        match self.can.transmit(&frame) {
            // One that it replaced in the controller was older.
            Ok(_) => Ok(()),
            Err(_) => Err(Busy {
                until: Instant::now() + self.look,
            }),
        }
    }

    async fn receive(&mut self, frame: &mut [u8; MTU]) -> usize {
        loop {
            match self.can.receive() {
                Ok(heard) if heard.is_data_frame() => {
                    let data = heard.data();
                    if let Some(to) = frame.get_mut(..data.len()) {
                        to.copy_from_slice(data);
                        return data.len();
                    }
                }
                Ok(_) => {}
                Err(_) => Timer::after(self.look).await,
            }
        }
    }
}
