//! The panic that does not link.

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Defined nowhere: the linker names it, and with it the function that could panic. Firmware
    /// that must run a library built without optimisation can define it.
    safe fn agent_core_would_panic_here() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    agent_core_would_panic_here()
}
