//! Intel's 6300ESB watchdog in a PCI slot: the second time-out resets the machine. What it would do at the
//! first one, warn the core, the emulator leaves out.

use firmware::hardware::Watchdog;

use super::{Register, pci::Slot};

/// In the device's configuration.
const CONFIGURATION: usize = 0x60;
const LOCK: usize = 0x68;
/// No interrupt at the first time-out.
const SILENT: u16 = 0b11;
const ENABLE: u8 = 1 << 1;

/// In its memory.
const FIRST: usize = 0x00;
const SECOND: usize = 0x04;
const RELOAD: usize = 0x0c;
/// What must be written before anything else is taken.
const UNLOCK: [u16; 2] = [0x80, 0x86];
const RESTART: u16 = 1 << 8;
const TIMED_OUT: u16 = 1 << 9;

/// A clock of 33 MHz counts 2^15 cycles at a time, with the emulator's 30 ns for each.
const TICK_NS: u64 = 30 << 15;

/// A watchdog that runs.
pub struct I6300Esb {
    base: usize,
}

impl I6300Esb {
    /// Starts it, with its memory at `base`; whether it was what reset the machine.
    ///
    /// # Safety
    /// It must be in this slot, and nothing else at `base`.
    pub unsafe fn start(slot: Slot, base: u32, seconds: u32) -> (Self, bool) {
        slot.map_memory(base);
        let this = Self {
            base: base as usize,
        };
        let bitten = this.register::<u16>(RELOAD).read() & TIMED_OUT != 0;
        // Of which each stage is half.
        let ticks = u64::from(seconds) * 1_000_000_000 / TICK_NS / 2;
        for stage in [FIRST, SECOND] {
            this.unlock();
            this.register(stage).write(ticks as u32);
        }
        this.unlock();
        // The word that it bit is taken back by writing it.
        this.register(RELOAD).write(TIMED_OUT);
        slot.register(CONFIGURATION).write(SILENT);
        slot.register(LOCK).write(ENABLE);
        (this, bitten)
    }

    fn register<T>(&self, offset: usize) -> Register<T> {
        // SAFETY: `start` was promised a watchdog; every offset here is one of its registers.
        unsafe { Register::at(self.base + offset) }
    }

    fn unlock(&self) {
        for word in UNLOCK {
            self.register(RELOAD).write(word);
        }
    }
}

impl Watchdog for I6300Esb {
    fn feed(&mut self) {
        self.unlock();
        self.register(RELOAD).write(RESTART);
    }
}
