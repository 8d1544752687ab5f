//! A good policy, shown anything: any patch, place and clock, in any order of calls.

#![no_main]

use agent_core_fuzz::blobs::SOUND;
use agent_core_fuzz::play::play;
use agent_core_fuzz::script::Script;
use libfuzzer_sys::fuzz_target;

/// Enough to act, hold, fail safe and come back.
const CALLS: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let policy = &SOUND[usize::from(script.u8()) % SOUND.len()];
    play(policy, CALLS, &mut script);
});
