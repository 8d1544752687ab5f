//! Boards in the loop, without boards: nodes that answer at a network address.

mod stand_in;

use agent_core::message::PROTOCOL;
use agent_sim::rig::{Boards, Pace, Rig, State};
use stand_in::{Conduct, SOUND, events, node, run, start};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

fn states(rig: &Rig, node: usize) -> Vec<&'static str> {
    let stretches = rig.node(node).diary.stretches();
    stretches.iter().map(|(state, _, _)| state.name()).collect()
}

#[test]
fn agents_at_the_end_of_a_wire_do_what_those_in_this_process_do() {
    let (rig, absent) = start(&[node(SOUND), node(SOUND)], Pace::lock_step(PATIENCE));
    assert_eq!(absent, []);
    let (mixed, inside) = (run(Some(&rig)), run(None));
    assert_eq!(mixed.log, inside.log);
    assert_eq!(states(&rig, 1), ["active"]);
    assert_eq!(rig.node(1).diary.answered(), 30);
    assert!(rig.node(0).diary.percentiles().unwrap().is_sorted());
}

#[test]
fn a_node_that_hangs_up_is_silent_until_it_is_reached_again_and_the_others_go_on() {
    let hangs_up = Conduct {
        hangs_up_after: Some(10),
        ..SOUND
    };
    // The host looks for a silent node every quarter of a second: the run must last longer.
    let slow = Conduct {
        takes: Duration::from_millis(40),
        ..SOUND
    };
    let boards = [node(hangs_up), node(slow), node(hangs_up)];
    let (rig, _) = start(&boards, Pace::lock_step(PATIENCE));
    let run = run(Some(&rig));
    assert_eq!(run.log.len(), 31);
    assert_eq!(states(&rig, 1), ["active"]);
    for broken in [0, 2] {
        let told = events(&rig, broken);
        assert!(
            told.contains("9: silent: ") && told.contains("answers again"),
            "{told}"
        );
        assert_eq!(states(&rig, broken)[..2], ["active", "silent"], "{told}");
    }
}

#[test]
fn in_real_time_the_field_waits_for_nobody() {
    let slow = Conduct {
        takes: Duration::from_millis(60),
        ..SOUND
    };
    // A step of 1 ms at a fiftieth of real time lasts 50 ms.
    let (rig, _) = start(&[node(slow), node(SOUND)], Pace::lock_step(PATIENCE));
    let rig = rig.in_real_time(0.02, 1000.0);
    let began = std::time::Instant::now();
    run(Some(&rig));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(
        rig.node(0).diary.states.contains(&State::Late),
        "{}",
        events(&rig, 0)
    );
    assert!(rig.node(1).diary.answered() > rig.node(0).diary.answered());
}

#[test]
fn boards_that_are_not_there_are_named_with_what_to_do_and_the_rest_goes_on() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let boards = [
        "qemu=1".parse().unwrap(),
        "serial=/dev/no-such-port".parse().unwrap(),
        Boards::Tcp { address: nobody },
        node(SOUND),
    ];
    let (rig, absent) = start(&boards, Pace::lock_step(PATIENCE));
    let why = |name: &str| {
        let found = absent.iter().find(|absent| absent.name.contains(name));
        found.map_or("", |absent| absent.why.as_str())
    };
    assert_eq!(absent.len(), 3, "{absent:?}");
    assert!(
        why("an386").contains("cargo xtask firmware build"),
        "{absent:?}"
    );
    assert!(why("no-such-port").contains("plugged in"), "{absent:?}");
    assert!(why("127.0.0.1").contains("refused"), "{absent:?}");
    run(Some(&rig));
    assert_eq!(states(&rig, 0), ["silent"]);
    assert_eq!(states(&rig, 3), ["active"]);
}

#[test]
fn a_node_of_another_protocol_is_told_by_its_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        // A frame with the next version's number, and nothing else that we know of.
        let mut plain = vec![PROTOCOL + 1, 1, 2, 3];
        plain.extend(agent_core::message::CRC32.checksum(&plain).to_le_bytes());
        // No zeros in it: one block.
        assert!(!plain.contains(&0));
        let mut frame = vec![plain.len() as u8 + 1];
        frame.extend(plain);
        frame.push(0);
        stream.write_all(&frame).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (_, absent) = start(&[Boards::Tcp { address }], Pace::lock_step(PATIENCE));
    let theirs = format!("protocol {}", PROTOCOL + 1);
    assert!(absent[0].why.contains(&theirs), "{absent:?}");
    assert!(
        absent[0].why.contains("cargo xtask firmware build"),
        "{absent:?}"
    );
}
