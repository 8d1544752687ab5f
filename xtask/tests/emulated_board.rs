//! The image in the emulated board, through the line it has in the field.
//!
//! `cargo xtask test` builds the image and says where it is.

use agent_core::message::{Command, Report, encode_frame};
use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};
use xtask::{
    device_log::Decoder,
    emulator::{Clock, Emulator, EmulatorError},
};

/// A node that has just started, or none on a machine without image.
fn node(clock: Clock) -> Option<(PathBuf, Emulator)> {
    let Some(image) = env::var_os("FIRMWARE_ELF").map(PathBuf::from) else {
        // Not with eprintln!, which the test runner hides when the test passes.
        let message = b"SKIPPED: FIRMWARE_ELF is not set; `cargo xtask test` sets it\n";
        let _ = io::stderr().write_all(message);
        return None;
    };
    let node = Emulator::start_with(&image, clock).expect("the board boots");
    Some((image, node))
}

fn is_alive(node: &mut Emulator) -> bool {
    matches!(node.ask(&Command::Hello), Ok(Report::Hello { .. }))
}

#[test]
fn a_node_takes_any_bytes_and_still_answers() {
    let Some((image, mut node)) = node(Clock::Wall) else {
        return;
    };
    let mut hello = [0; 64];
    let hello = encode_frame(&Command::Hello, &mut hello).unwrap();
    // Numerical Recipes' generator: any bytes will do, the same ones each time.
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for round in 0..50 {
        let mut garbage: Vec<u8> = (0..round * 8).map(|_| noise()).collect();
        // A frame that is cut, and one with a wrong bit.
        garbage.extend(&hello[..hello.len() / 2]);
        garbage.push(0);
        let mut damaged = hello.to_vec();
        damaged[1] ^= 1 << (round % 8);
        garbage.extend(damaged);
        node.send_bytes(&garbage).unwrap();
        assert!(is_alive(&mut node), "after round {round}");
    }
    // Longer than its frame buffer.
    node.send_bytes(&[1; 6000]).unwrap();
    node.send_bytes(&[0]).unwrap();
    assert!(is_alive(&mut node));
    let log = Decoder::new(&image).unwrap().lines(&node.log().unwrap());
    assert!(!log.iter().any(|line| line.contains("panic")), "{log:#?}");
}

#[test]
fn bytes_that_are_no_policy_are_refused_with_a_reason() {
    let Some((_, mut node)) = node(Clock::Wall) else {
        return;
    };
    match node.upload(b"certainly not a policy, but long enough to be asked") {
        Err(EmulatorError::Refused(reason)) => assert!(!reason.is_empty()),
        other => panic!("{other:?}"),
    }
    match node.upload(&vec![0; 300 * 1024]) {
        Err(EmulatorError::Refused(reason)) => assert!(reason.contains("slot"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(is_alive(&mut node));
}

#[test]
fn the_log_of_a_node_is_readable() {
    let Some((image, node)) = node(Clock::Wall) else {
        return;
    };
    let log = Decoder::new(&image).unwrap().lines(&node.log().unwrap());
    let version = concat!("firmware ", env!("CARGO_PKG_VERSION"));
    assert!(log.iter().any(|line| line.contains(version)), "{log:#?}");
}

#[test]
fn a_node_whose_clock_counts_instructions_works_the_same() {
    let Some((_, mut node)) = node(Clock::Instructions { shift: 10 }) else {
        return;
    };
    assert!(is_alive(&mut node));
}

#[test]
fn a_silent_node_is_given_up_on() {
    let Some((_, mut node)) = node(Clock::Wall) else {
        return;
    };
    let patience = Duration::from_millis(50);
    match node.receive(patience) {
        Err(EmulatorError::Timeout(waited)) => assert_eq!(waited, patience),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_image_that_is_not_there_is_named() {
    let error = Emulator::start("no/such/image".as_ref()).err().unwrap();
    assert!(error.to_string().contains("no/such/image"), "{error}");
}
