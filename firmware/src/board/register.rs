//! Memory-mapped registers of emulated devices.

/// A memory-mapped register of this width.
#[derive(Clone, Copy)]
pub struct Register<T>(*mut T);

impl<T> Register<T> {
    /// # Safety
    /// `address` must be a readable and writable device register, and stay one.
    pub const unsafe fn at(address: usize) -> Self {
        Self(address as *mut T)
    }

    pub fn read(self) -> T {
        // SAFETY: `at` was promised a device register.
        unsafe { self.0.read_volatile() }
    }

    pub fn write(self, value: T) {
        // SAFETY: as above.
        unsafe { self.0.write_volatile(value) }
    }
}
