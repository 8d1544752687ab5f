//! The actuator of an emulated board, on which there is nothing to move: the host that simulates the
//! field takes actions from the reports. Where the node acts by itself, three words of the memory that plays
//! flash are the registers of a converter, which the emulator can share with whoever plays the plant.

#[cfg(feature = "standalone")]
use core::sync::atomic::{AtomicU32, Ordering};

use agent_core::agent::{Action, Mode};
use firmware::hardware::Actuator;

/// The actuator. The log tells when the agent changes its mind about how well it is.
pub struct Reported {
    mode: Mode,
    #[cfg(feature = "standalone")]
    registers: &'static [AtomicU32; 3],
}

impl Reported {
    /// The board's.
    ///
    /// # Safety
    /// To be called once: nobody else writes to its registers.
    pub unsafe fn new() -> Self {
        Self {
            mode: Mode::Waiting,
            // SAFETY: as the caller says.
            #[cfg(feature = "standalone")]
            registers: unsafe { actuator() },
        }
    }
}

impl Actuator for Reported {
    fn apply(&mut self, action: &Action) {
        #[cfg(feature = "standalone")]
        {
            let [force, mode, count] = self.registers;
            force.store(action.force.to_bits(), Ordering::Release);
            let word = match action.mode {
                Mode::Waiting => 0,
                Mode::Active => 1,
                Mode::Holding => 2,
                Mode::FailedSafe => 3,
            };
            mode.store(word, Ordering::Release);
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Release,
            );
        }
        if action.mode != self.mode {
            defmt::info!("{} -> {}", self.mode, action.mode);
            self.mode = action.mode;
        }
    }
}

/// The registers of what plays the actuator: the force's bits, the agent's mode, and how often they
/// were set.
///
/// # Safety
/// As of [`Reported::new`].
#[cfg(feature = "standalone")]
unsafe fn actuator() -> &'static [AtomicU32; 3] {
    unsafe extern "C" {
        static _actuator: [AtomicU32; 3];
    }
    // SAFETY: memory.x reserves them for this alone; any bits are a value.
    unsafe { &_actuator }
}
