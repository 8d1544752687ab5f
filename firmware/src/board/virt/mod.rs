//! Drivers for the devices of QEMU's `virt` for RISC-V, those in PCI slots among them.

pub mod i6300esb;
pub mod machine_timer;
pub mod ns16550;
pub mod pci;
pub mod plic;

use super::register::Register;

/// SiFive's test device, whose third command resets the machine.
const TEST: usize = 0x0010_0000;
const RESET: u32 = 0x7777;

/// Starts the machine afresh; its memory stays.
pub fn reset() -> ! {
    // SAFETY: the machine's address map.
    unsafe { Register::<u32>::at(TEST) }.write(RESET);
    // The emulator may take a moment.
    loop {
        core::hint::spin_loop();
    }
}
