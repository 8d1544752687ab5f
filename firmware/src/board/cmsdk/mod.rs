//! Drivers for the peripherals of Arm's Cortex-M System Design Kit, which the
//! MPS2 and MPS3 boards carry in all their variants.

pub mod dual_timer;
#[cfg(feature = "standalone")]
pub mod two_wire;
pub mod uart;
pub mod watchdog;

/// A memory-mapped register.
#[derive(Clone, Copy)]
struct Register(*mut u32);

impl Register {
    /// # Safety
    /// `address` must be a readable and writable device register, and stay one.
    const unsafe fn at(address: usize) -> Self {
        Self(address as *mut u32)
    }

    fn read(self) -> u32 {
        // SAFETY: `at` was promised a device register.
        unsafe { self.0.read_volatile() }
    }

    fn write(self, value: u32) {
        // SAFETY: as above.
        unsafe { self.0.write_volatile(value) }
    }
}
