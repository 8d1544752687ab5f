//! What is done to an emulated board from outside that the emulator cannot do: words of the memory that plays
//! flash, which whoever plays the plant shares with it and writes. The drivers of what it is done to look there.

use core::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    static _outside: [AtomicU32; 1];
}

/// Whether somebody holds the data line of the thermometers' bus low.
pub fn holds_data() -> bool {
    // SAFETY: memory.x reserves them for this alone; any bits are a value.
    let [data] = unsafe { &_outside };
    data.load(Ordering::Relaxed) != 0
}
