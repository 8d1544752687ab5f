//! The platform-level interrupt controller, which hands devices' interrupts to the one hart there is.

use super::Register;

const BASE: usize = 0x0c00_0000;
/// Of the first hart's machine mode.
const ENABLE: usize = BASE + 0x2000;
const THRESHOLD: usize = BASE + 0x20_0000;
const CLAIM: usize = BASE + 0x20_0004;

/// Lets a source's interrupts through.
///
/// # Safety
/// What they interrupt must be ready for them. To be called with all interrupts off.
pub unsafe fn enable(source: usize) {
    // SAFETY: the machine's address map.
    let register = |address| unsafe { Register::<u32>::at(address) };
    register(BASE + 4 * source).write(1);
    let word = register(ENABLE + source / 32 * 4);
    word.write(word.read() | 1 << (source % 32));
    register(THRESHOLD).write(0);
}

/// Which source interrupts, if one does; to be told when it has been seen to.
pub fn claimed(mut handle: impl FnMut(u32)) {
    // SAFETY: the machine's address map.
    let claim = unsafe { Register::<u32>::at(CLAIM) };
    let source = claim.read();
    if source != 0 {
        handle(source);
        claim.write(source);
    }
}
