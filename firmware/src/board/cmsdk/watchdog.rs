//! The CMSDK watchdog: the first time-out warns the core with an NMI, the second resets the board.

use firmware::hardware::Watchdog;

use super::Register;

const UNLOCK: u32 = 0x1acc_e551;
const CONTROL_WARN: u32 = 1 << 0;
const CONTROL_RESET: u32 = 1 << 1;

/// A watchdog that runs.
pub struct CmsdkWatchdog {
    base: usize,
}

impl CmsdkWatchdog {
    /// Starts it, with a time-out of so many cycles of its clock.
    ///
    /// # Safety
    /// `base` must be the address of a CMSDK watchdog that nothing else uses.
    pub unsafe fn start(base: usize, cycles: u32) -> Self {
        let this = Self { base };
        this.register(0xc00).write(UNLOCK);
        this.register(0x00).write(cycles);
        this.register(0x08).write(CONTROL_WARN | CONTROL_RESET);
        this.register(0xc00).write(0);
        this
    }

    fn register(&self, offset: usize) -> Register {
        // SAFETY: `start` was promised a watchdog; every offset here is one of its registers.
        unsafe { Register::at(self.base + offset) }
    }
}

impl Watchdog for CmsdkWatchdog {
    fn feed(&mut self) {
        // The time is up, and the warning on its way: an emulator that was stopped may let the core
        // go on before its timers have rung. Its count then stands at 1, having been rounded up.
        if self.register(0x04).read() <= 1 {
            return;
        }
        self.register(0xc00).write(UNLOCK);
        // Clearing the warning, also one that was not given, starts the count again.
        self.register(0x0c).write(1);
        self.register(0xc00).write(0);
    }
}
