//! Nodes that come to grief in the emulated boards, and what they make of it.
//!
//! `cargo xtask test` builds the images, those that can be provoked among them, and says where they
//! are.

use super::{PATIENCE, started_again};
use agent_core::{
    agent::{Action, AgentState},
    message::{Command, Guard, Hello, History, Mishap, PolicyId, Report, ResetCause, UNASKED},
};
use endurance::observations::{Blob, Scene};
use node_link::{BoardOptions, EmulatedBoard, Machine, Session, device_log::Decoder};
use std::{
    env,
    io::{self, Write},
    path::Path,
    time::Instant,
};

/// A board of that kind and the line to it, or none where the image is not named in `variable`.
fn start(machine: Machine, variable: &str) -> Option<(EmulatedBoard, Session)> {
    let Some(image) = env::var_os(variable) else {
        // Not with eprintln!, which the test runner hides when the test passes.
        let message = format!("SKIPPED: {variable} is not set; `cargo xtask test` sets it\n");
        let _ = io::stderr().write_all(message.as_bytes());
        return None;
    };
    let options = BoardOptions {
        machine,
        ..BoardOptions::new(image)
    };
    Some(EmulatedBoard::start(&options).expect("the board boots"))
}

fn shipped() -> Blob {
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    Blob::read(&Path::new(policies).join("heat-1d.policy")).unwrap()
}

fn armed(node: &mut Session, blob: &Blob) -> PolicyId {
    let id = blob.offer().id;
    let hello = node.upload(&blob.offer(), &mut |_| ()).unwrap();
    assert_eq!(hello.policy, Some(id));
    id
}

fn bits(action: &Action) -> [u32; 3] {
    let [x, y] = action.velocity;
    [action.force, x, y].map(f32::to_bits)
}

/// A node that has just started answers like an agent that has: the first steps of a run.
fn acts_like_the_host(node: &mut Session, blob: &Blob) {
    let policy = blob.policy().unwrap();
    let mut host = AgentState::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    for step in 0..5 {
        let scene = Scene::new(&policy, step, 5);
        let expected = host.step(&policy, &mut workspace, &scene.observation());
        match node.ask(&Command::Observe(scene.observation()), PATIENCE) {
            Ok(Report::Action { action, .. }) => {
                assert_eq!(bits(&action), bits(&expected));
                assert_eq!(action.mode, expected.mode);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What a node says when it has started.
fn next_start(node: &mut Session) -> Hello {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match node.receive(deadline).unwrap() {
            Some((UNASKED, Report::Hello(hello))) => return hello,
            Some(_) => {}
            None => panic!("the node did not start within {PATIENCE:?}"),
        }
    }
}

fn every_mishap(machine: Machine, variable: &str) {
    let Some((board, mut node)) = start(machine, variable) else {
        return;
    };
    let blob = shipped();
    let policy = Some(armed(&mut node, &blob));
    acts_like_the_host(&mut node, &blob);
    let mut history = History {
        reset: ResetCause::PowerOn,
        boots: 1,
        watchdog_bites: 0,
        panics: 0,
        faults: 0,
    };
    assert_eq!(node.status(PATIENCE).unwrap().history, history);
    // What its watchdog has to say, and what the log then ends with: where there is no warning before the
    // reset, the words before it stay.
    let [bitten, last_words] = match machine {
        Machine::VirtRv32 => ["fault at pc ", "last words: fault"],
        _ => ["watchdog at pc ", "last words: watchdog"],
    };
    for (mishap, words) in [
        (Mishap::Panic, "panic at firmware/src/board/mishap.rs:"),
        (Mishap::StackOverflow, "stack overflow"),
        (Mishap::Fault, "fault at pc "),
        (Mishap::Hang, bitten),
        // And again, from a state that has seen all of it.
        (Mishap::StackOverflow, "stack overflow"),
    ] {
        node.send(&Command::Provoke(mishap)).unwrap();
        let start = next_start(&mut node);
        let (cause, tally) = match mishap {
            Mishap::Panic => (ResetCause::Panic, &mut history.panics),
            Mishap::Hang => (ResetCause::Watchdog, &mut history.watchdog_bites),
            Mishap::StackOverflow | Mishap::Fault => (ResetCause::Fault, &mut history.faults),
        };
        *tally += 1;
        history.reset = cause;
        history.boots += 1;
        let expected = Hello {
            policy,
            reset: history.reset,
            boots: history.boots,
            guard: Guard::default(),
        };
        assert_eq!(start, expected, "after {mishap:?}");
        assert_eq!(node.hello(PATIENCE).unwrap(), expected);
        let status = node.status(PATIENCE).unwrap();
        assert_eq!(status.history, history, "after {mishap:?}");
        assert!(status.last_words.starts_with(words), "{status:?}");
        assert_eq!(status.board, machine.name());
        acts_like_the_host(&mut node, &blob);
    }
    // The bad address that was read is told, and the panic was logged before the reset.
    let log = Decoder::new(&board.options().image).unwrap();
    let log = log.lines(&board.log().unwrap());
    for told in ["address 0xb0000000", ": provoked", last_words] {
        assert!(log.iter().any(|line| line.contains(told)), "{log:#?}");
    }
}

#[test]
fn every_mishap_of_a_cortex_m4f_ends_in_a_restart_that_knows_why() {
    every_mishap(Machine::An386, "FIRMWARE_ELF_PROVOKE");
}

#[test]
fn every_mishap_of_a_cortex_m7_ends_in_a_restart_that_knows_why() {
    every_mishap(Machine::An500, "FIRMWARE_ELF_AN500_PROVOKE");
}

#[test]
fn every_mishap_of_a_cortex_m33_ends_in_a_restart_that_knows_why() {
    every_mishap(Machine::An505, "FIRMWARE_ELF_AN505_PROVOKE");
}

#[test]
fn every_mishap_of_a_risc_v_core_ends_in_a_restart_that_knows_why() {
    every_mishap(Machine::VirtRv32, "FIRMWARE_ELF_RV32_PROVOKE");
}

#[test]
fn a_node_tells_a_reset_pin_from_a_command_and_from_power_that_was_gone() {
    for (machine, variable) in [
        (Machine::An386, "FIRMWARE_ELF"),
        (Machine::An500, "FIRMWARE_ELF_AN500"),
        (Machine::An505, "FIRMWARE_ELF_AN505"),
        (Machine::VirtRv32, "FIRMWARE_ELF_RV32"),
    ] {
        let Some((mut board, mut node)) = start(machine, variable) else {
            return;
        };
        let blob = shipped();
        let policy = Some(armed(&mut node, &blob));
        let expected = |reset, boots| Hello {
            policy,
            reset,
            boots,
            guard: Guard::default(),
        };

        board.reset().unwrap();
        assert_eq!(next_start(&mut node), expected(ResetCause::External, 2));
        node.hello(PATIENCE).unwrap();
        match node.ask(&Command::Restart, PATIENCE).unwrap() {
            Report::Hello(hello) => assert_eq!(hello, expected(ResetCause::Command, 3)),
            other => panic!("{other:?}"),
        }

        board.restart().unwrap();
        let hello = started_again(&mut node);
        assert_eq!(hello, expected(ResetCause::PowerOn, 1), "{machine:?}");
        acts_like_the_host(&mut node, &blob);
    }
}

#[test]
fn an_image_that_is_flashed_cannot_be_provoked() {
    let Some((_board, mut node)) = start(Machine::An386, "FIRMWARE_ELF") else {
        return;
    };
    for mishap in [
        Mishap::Panic,
        Mishap::Hang,
        Mishap::StackOverflow,
        Mishap::Fault,
    ] {
        match node.ask(&Command::Provoke(mishap), PATIENCE).unwrap() {
            Report::Rejected { reason } => assert!(reason.contains("`provoke`"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(node.status(PATIENCE).unwrap().history.boots, 1);
}
