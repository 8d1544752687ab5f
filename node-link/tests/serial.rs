//! Serial ports as pseudo-terminals: opened, taken, unplugged.

use agent_core::message::{
    Command, FrameReader, Guard, Hello, Report, ResetCause, decode_frame, encode_frame,
};
use node_link::{
    Session, SessionError,
    serial::{self, SerialError},
};
use serialport::{SerialPort, TTYPort};
use std::{
    io::{Read, Write},
    thread,
    time::{Duration, Instant},
};

const BAUD: u32 = 115_200;
const PATIENCE: Duration = Duration::from_secs(10);

const HELLO: Hello = Hello {
    policy: None,
    reset: ResetCause::External,
    boots: 3,
    guard: Guard {
        link: false,
        policies: false,
    },
};

/// A port and the end at which the board would be.
fn port() -> (String, TTYPort) {
    let (board, host) = TTYPort::pair().unwrap();
    (host.name().unwrap(), board)
}

#[test]
fn a_node_at_a_serial_port_answers() {
    let (path, mut board) = port();
    board.set_timeout(PATIENCE).unwrap();
    let mut session = Session::new(serial::open(&path, BAUD).unwrap());
    let node = thread::spawn(move || {
        let mut frames = FrameReader::<256>::new();
        let mut byte = [0];
        loop {
            board.read_exact(&mut byte).unwrap();
            if let Some(Ok(frame)) = frames.push(byte[0]) {
                let (number, command) = decode_frame::<Command>(frame).unwrap();
                assert_eq!(command, Command::Hello);
                let mut buffer = [0; 64];
                let answer = encode_frame(number, &Report::Hello(HELLO), &mut buffer).unwrap();
                board.write_all(answer).unwrap();
                return board;
            }
        }
    });
    assert_eq!(session.hello(PATIENCE).unwrap(), HELLO);
    node.join().unwrap();
}

#[test]
fn a_port_that_is_not_there_is_named() {
    let error = serial::open("/dev/ttyNOWHERE", BAUD).err().unwrap();
    assert!(matches!(error, SerialError::Missing(_)), "{error}");
    assert!(error.to_string().contains("/dev/ttyNOWHERE"), "{error}");
}

#[test]
fn a_port_that_somebody_has_is_busy_until_it_is_given_up() {
    let (path, _board) = port();
    let first = serial::open(&path, BAUD).unwrap();
    let error = serial::open(&path, BAUD).err().unwrap();
    assert!(matches!(error, SerialError::Busy(_)), "{error}");
    drop(first);
    assert!(serial::open(&path, BAUD).is_ok());
}

#[test]
fn a_port_that_vanishes_is_named_and_cannot_be_reopened() {
    let (path, board) = port();
    let mut session = Session::new(serial::open(&path, BAUD).unwrap());
    drop(board);
    let error = session.hello(PATIENCE).unwrap_err();
    assert!(matches!(error, SessionError::Line(_)), "{error}");
    assert!(error.to_string().contains("vanished"), "{error}");
    assert!(error.to_string().contains(&path), "{error}");
    assert!(session.reopen().is_err());
}

#[test]
fn a_port_with_nobody_behind_it_is_silent() {
    let (path, _board) = port();
    let mut session = Session::new(serial::open(&path, BAUD).unwrap());
    let silent = session.hello(Duration::from_millis(50));
    assert!(matches!(silent, Err(SessionError::Timeout(_))));
}

#[test]
fn a_port_that_never_falls_silent_is_given_up_on_in_time() {
    let (path, mut board) = port();
    let mut session = Session::new(serial::open(&path, BAUD).unwrap());
    // Ends when the port is closed.
    thread::spawn(move || while board.write_all(&[0; 256]).is_ok() {});
    let patience = Duration::from_millis(200);
    let start = Instant::now();
    let flooded = session.hello(patience);
    assert!(matches!(flooded, Err(SessionError::Timeout(_))));
    assert!(start.elapsed() < patience + Duration::from_secs(2));
}
