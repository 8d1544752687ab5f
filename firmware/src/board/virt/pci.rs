//! Devices on PCI Express, found where the emulator was told to put them.

use super::Register;

/// Where the configuration of all devices is mapped.
const CONFIGURATION: usize = 0x3000_0000;
/// Where the bus's ports are mapped, which this core has no instructions for.
const PORTS: usize = 0x0300_0000;

const COMMAND: usize = 0x04;
const BASE_ADDRESS: usize = 0x10;
const COMMAND_PORTS: u16 = 1 << 0;
const COMMAND_MEMORY: u16 = 1 << 1;

/// A slot of the only bus.
#[derive(Clone, Copy)]
pub struct Slot(usize);

impl Slot {
    /// # Safety
    /// There must be a device in it that nothing else uses.
    pub const unsafe fn new(number: usize) -> Self {
        Self(CONFIGURATION + (number << 15))
    }

    /// A register of the device's configuration.
    pub fn register<T>(self, offset: usize) -> Register<T> {
        // SAFETY: `new` was promised a device, which has a page of them.
        unsafe { Register::at(self.0 + offset) }
    }

    /// Has the device answer at these ports; their address.
    pub fn map_ports(self, at: u16) -> usize {
        self.register(BASE_ADDRESS).write(u32::from(at));
        self.register(COMMAND).write(COMMAND_PORTS);
        PORTS + usize::from(at)
    }

    /// Has the device answer at this address.
    pub fn map_memory(self, at: u32) {
        self.register(BASE_ADDRESS).write(at);
        self.register(COMMAND).write(COMMAND_MEMORY);
    }
}
