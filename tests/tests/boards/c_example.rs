//! The example in C on the emulated board against the same agent on the host, bit for bit.
//!
//! `cargo xtask test` builds the example, small and fast, and says where they are.

use agent_core::{agent::Mode, policy::Policy};
use endurance::c_example::{self, ExampleError};
use std::{
    env, fs,
    io::{self, Write},
    path::PathBuf,
};

/// The images, or none (loudly) where there are none.
fn examples() -> Vec<PathBuf> {
    match env::var_os("C_EXAMPLE_ELFS") {
        Some(elfs) => env::split_paths(&elfs).collect(),
        None if env::var("CI").is_ok_and(|v| v == "true") => {
            panic!("C_EXAMPLE_ELFS is not set: run the tests with `cargo xtask test`")
        }
        None => {
            // Not with eprintln!, which the test runner hides when the test passes.
            let message = b"SKIPPED: C_EXAMPLE_ELFS is not set; `cargo xtask test` sets it\n";
            let _ = io::stderr().write_all(message);
            Vec::new()
        }
    }
}

/// The example's policy, aligned for reading in place.
fn with_policy(then: impl FnOnce(&Policy)) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/heat-1d.policy");
    let bytes = fs::read(file).unwrap();
    let mut words = vec![0u32; bytes.len().div_ceil(4)];
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    room[..bytes.len()].copy_from_slice(&bytes);
    then(&Policy::parse(&room[..bytes.len()]).unwrap());
}

#[test]
fn the_example_in_c_does_what_an_agent_on_the_host_does_bit_for_bit() {
    for elf in examples() {
        let written = c_example::run(&elf).unwrap();
        assert!(written.ends_with("done\n"), "{written}");
        with_policy(|policy| {
            let replay = c_example::replay(&written, policy).unwrap();
            assert!(replay.differing.is_empty(), "{:#?}", replay.differing);
            // 48 steps, and the idle moments between them.
            assert!(replay.actions > 48, "{replay:?}");
            // The comparison went through every state there is.
            let all = [Mode::Waiting, Mode::Active, Mode::Holding, Mode::FailedSafe];
            assert!(all.iter().all(|m| replay.modes.contains(m)), "{replay:?}");
        });
    }
}

#[test]
fn one_wrong_bit_in_an_action_is_found() {
    with_policy(|policy| {
        // An agent that waits does nothing: all bits are 0.
        let same = c_example::replay("idle 0 -> 0 0 0 0\n", policy).unwrap();
        assert!(same.differing.is_empty());
        let other = c_example::replay("idle 0 -> 0 80000000 0 0\n", policy).unwrap();
        assert_eq!(other.differing.len(), 1);
    });
}

#[test]
fn a_line_that_is_none_of_the_examples_is_named() {
    with_policy(|policy| {
        let error = c_example::replay("reset\nstep 1000 0\n", policy).unwrap_err();
        assert!(matches!(error, ExampleError::Line { number: 2, .. }));
    });
}
