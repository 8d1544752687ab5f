//! The actuator of a board that has none: a lamp that is lit while the agent is active.
//!
//! The host takes the actions from the reports. Whoever has a heater or a valve on a pin drives it
//! here instead, from [`Action::force`], or beside it with [`firmware::pulse_width`].

use agent_core::agent::{Action, Mode};
use embedded_hal::digital::{OutputPin, PinState};
use firmware::hardware::Actuator;

/// A lamp on a pin.
pub struct Lamp<P> {
    pin: P,
    lit: PinState,
    mode: Mode,
}

impl<P: OutputPin> Lamp<P> {
    /// A dark lamp that `lit` switches on.
    pub fn new(mut pin: P, lit: PinState) -> Self {
        // The pins of these chips cannot fail, here and below.
        let _ = pin.set_state(!lit);
        Self {
            pin,
            lit,
            mode: Mode::Waiting,
        }
    }
}

impl<P: OutputPin> Actuator for Lamp<P> {
    fn apply(&mut self, action: &Action) {
        if action.mode == self.mode {
            return;
        }
        defmt::info!("{} -> {}", self.mode, action.mode);
        self.mode = action.mode;
        let _ = self.pin.set_state(match self.mode {
            Mode::Active => self.lit,
            _ => !self.lit,
        });
    }
}
