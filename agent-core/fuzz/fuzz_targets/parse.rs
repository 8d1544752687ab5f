//! Bytes as a policy: as they are, as edits of a good blob whose lengths and checksum are mended
//! afterwards, or as the fields of a header. Nothing behind the checksum would be reached by the
//! first alone, and little behind the header's own checks by the second.
//!
//! What parses is run.

#![no_main]

mod parse {
    pub mod draw;
    pub mod splice;
}

use agent_core::agent::Agent;
use agent_core::policy::{Policy, PolicyError, stated_length};
use agent_core_fuzz::play::play;
use agent_core_fuzz::script::Script;
use libfuzzer_sys::fuzz_target;
use std::fmt::Write;

/// A policy is stepped this often at most.
const CALLS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    match script.below(4) {
        0 => {
            let _ = examine(&Words::of(script.0), &mut Script(bytes));
        }
        1 => parse::splice::try_edited(&mut script),
        _ => parse::draw::try_drawn(&mut script),
    }
});

/// Bytes on a 16-byte boundary.
struct Words {
    words: Vec<u128>,
    length: usize,
}

impl Words {
    fn of(bytes: &[u8]) -> Self {
        let mut words = vec![0; bytes.len().div_ceil(16)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self {
            words,
            length: bytes.len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }
}

/// Parses bytes, also where they cannot be read in place, and plays what is a policy.
fn examine(blob: &Words, script: &mut Script) -> Result<(), PolicyError> {
    let bytes = blob.bytes();
    let parsed = Policy::parse(bytes);
    elsewhere(bytes, 1 + usize::from(script.below(4)), &parsed);
    let policy = parsed.inspect_err(|error| {
        let mut sentence = String::new();
        write!(sentence, "{error}").expect("a sentence");
        assert!(!sentence.is_empty());
    })?;
    assert_eq!(stated_length(bytes), Ok(bytes.len()));
    assert_eq!(policy.length(), bytes.len());
    let header = policy.header();
    assert_eq!(header.workspace as usize, policy.workspace_len());
    let side = usize::from(header.sensing.window) + 2;
    assert_eq!(policy.patch_len(), side.pow(u32::from(header.sensing.axes)));
    assert!(policy.frame_room() > 4 * policy.patch_len());
    // Each weight is used once, but for those of convolutions.
    assert!(bytes.len() >= policy.macs() || !header.network.convolutions.is_empty());
    let cut = usize::from(script.u16()) % bytes.len();
    assert!(Policy::parse(&bytes[..cut]).is_err());

    let mut short = vec![0.0; policy.workspace_len() - 1];
    assert!(Agent::new(policy.clone(), &mut short).is_err());
    play(&policy, CALLS, script);
    Ok(())
}

/// So many bytes beyond a 16-byte boundary the answer is the same, or that floats cannot lie there.
fn elsewhere(bytes: &[u8], offset: usize, parsed: &Result<Policy, PolicyError>) {
    let mut room = Words::of(&[]);
    room.words.resize((offset + bytes.len()).div_ceil(16), 0);
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut room.words);
    let there = &mut room[offset..][..bytes.len()];
    there.copy_from_slice(bytes);
    let moved = Policy::parse(there);
    match (parsed, moved) {
        (_, Err(PolicyError::Misaligned)) => assert_ne!(offset % 4, 0),
        (Ok(policy), Ok(moved)) => assert_eq!(policy.checksum(), moved.checksum()),
        (parsed, moved) => assert_eq!(parsed.as_ref().err(), moved.as_ref().err()),
    }
}
