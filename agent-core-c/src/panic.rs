//! The panic that does not link.

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Defined nowhere: an image in which a panic can be reached does not link, and the linker's
    /// message has this name in it. Firmware that is to run a library built without optimisation,
    /// where no panic has been optimised away, can define it.
    safe fn agent_core_would_panic_here() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    agent_core_would_panic_here()
}
