//! What is done to an emulated board from outside that the emulator cannot do: words of the memory that plays
//! flash, which whoever plays the plant shares with it and writes. The drivers of what it is done to look there.

use core::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    static _outside: [AtomicU32; 2];
}

fn words() -> &'static [AtomicU32; 2] {
    // SAFETY: memory.x reserves them for this alone; any bits are a value.
    unsafe { &_outside }
}

/// Whether somebody holds the data line of the thermometers' bus low.
pub fn holds_data() -> bool {
    let [data, _] = words();
    data.load(Ordering::Relaxed) != 0
}

/// By how many millionths the board's clock gains.
pub fn gain() -> i32 {
    let [_, gain] = words();
    gain.load(Ordering::Relaxed) as i32
}
