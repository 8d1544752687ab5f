//! Bytes from a line: as they are, and as a message whose checksum and framing are mended.
//!
//! What decodes is said again and must be understood the same; an observation is acted on.

#![no_main]

use agent_core::agent::AgentState;
use agent_core::message::{
    CRC32, Command, FrameReader, PROTOCOL, Report, decode_frame, encode_frame,
};
use agent_core_fuzz::blobs::SOUND;
use agent_core_fuzz::oracle::{self, Call};
use agent_core_fuzz::script::Script;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;

/// Short enough that the fuzzer overruns it.
const LONGEST: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let mut line = Vec::new();
    match script.below(2) {
        0 => line.extend(script.0),
        _ => {
            // Each frame is the bytes it is told to take.
            while !script.is_over() {
                let length = usize::from(script.u8());
                line.extend(framed(script.take(length)));
            }
        }
    }
    let mut reader = FrameReader::<LONGEST>::new();
    let mut state = AgentState::new();
    for byte in line {
        let Some(Ok(frame)) = reader.push(byte) else {
            continue;
        };
        assert!(!frame.is_empty() && !frame.contains(&0));
        let mut copy = frame.to_vec();
        if let Ok((number, command)) = decode_frame::<Command>(frame) {
            let first = said(number, &command);
            let second = decode_frame::<Command>(&mut first.clone()).map(|(n, c)| said(n, &c));
            assert_eq!(second.as_ref(), Ok(&first), "{command:?}");
            obey(&mut state, &command);
        }
        if let Ok((number, report)) = decode_frame::<Report>(&mut copy) {
            let first = said(number, &report);
            let second = decode_frame::<Report>(&mut first.clone()).map(|(n, r)| said(n, &r));
            assert_eq!(second.as_ref(), Ok(&first), "{report:?}");
        }
    }
});

/// What a node does with an observation.
fn obey(state: &mut AgentState, command: &Command) {
    let Command::Observe(observation) = command else {
        return;
    };
    // The smallest.
    let policy = &SOUND[0];
    let mut workspace = vec![f32::NAN; policy.workspace_len()];
    let before = state.mode();
    let action = state.step(policy, &mut workspace, observation);
    oracle::within_limits(policy.header(), &action);
    oracle::legal(before, Call::Step, action.mode);
}

/// A frame of this protocol around these bytes, number and message.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut plain = vec![PROTOCOL];
    plain.extend(bytes);
    plain.extend(CRC32.checksum(&plain).to_le_bytes());
    let mut frame = vec![0; cobs::max_encoding_length(plain.len())];
    let length = cobs::encode(&plain, &mut frame);
    frame.truncate(length);
    frame.push(0);
    frame
}

/// A message's frame.
fn said(number: u32, message: &impl Serialize) -> Vec<u8> {
    let mut buffer = [0; 2 * LONGEST];
    encode_frame(number, message, &mut buffer)
        .expect("as long as what it was decoded from, or shorter")
        .to_vec()
}
