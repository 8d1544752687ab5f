//! The node's own code on the host, through every kind of line that does not need a board.

use agent_core::{
    agent::AgentState,
    message::{Command, Report, ResetCause},
};
use endurance::{
    host_node::HostNode,
    observations::{Blob, Scene},
    soak::soak,
    torture::torture,
};
use firmware::keys::Keys;
use node_link::{Session, Transport, serial, tcp, unreliable::Faults};
use serialport::{SerialPort, TTYPort};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};
use trust::{LinkKey, Rights};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn shipped() -> Blob {
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    Blob::read(&Path::new(policies).join("heat-1d.policy")).unwrap()
}

fn node() -> (HostNode, Session) {
    let (node, line) = HostNode::start().unwrap();
    let mut session = Session::new(line);
    session.hello(PATIENCE).unwrap();
    (node, session)
}

/// Arms the node and takes a few steps with it and on the host.
fn acts_like_the_host(session: &mut Session) {
    let blob = shipped();
    let policy = blob.policy().unwrap();
    session.hello(PATIENCE).unwrap();
    let hello = session.upload(&blob.offer(), &mut |_| ()).unwrap();
    assert_eq!(hello.policy, Some(blob.offer().id));
    let mut host = AgentState::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    for step in 0..50 {
        let scene = Scene::new(&policy, step, 50);
        let expected = host.step(&policy, &mut workspace, &scene.observation());
        match session.ask(&Command::Observe(scene.observation()), PATIENCE) {
            Ok(Report::Action { action, .. }) => assert_eq!(action, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(session.status(PATIENCE).unwrap().counters.steps, 50);
}

/// Sealed frames over a line that loses, damages, doubles and reorders them.
#[test]
fn a_node_with_a_key_acts_like_the_host_over_any_line() {
    let key = LinkKey::new([3; 32]);
    let keys = Keys {
        link: Some(key.clone()),
        ..Keys::NONE
    };
    let (_node, line) = HostNode::with_keys(keys).unwrap();
    let mut session = Session::new(line).with_key(key.grant(Rights::ALL));
    acts_like_the_host(&mut session);
    session.ask(&Command::Reset, PATIENCE).unwrap();
    let soaked = soak(session, &shipped(), 20_000, Faults::each(0.01), &mut |_| ()).unwrap();
    assert_eq!(soaked.wrong, 0);
}

/// Carries what comes from a device to the node and back, until either is gone.
fn carry(mut line: Box<dyn Transport>, mut device: impl Read + Write) {
    let mut buffer = [0; 4096];
    loop {
        match device.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => line.send(&buffer[..length]).unwrap(),
            // Nothing came.
            Err(_) => {}
        }
        let moment = Instant::now() + Duration::from_millis(1);
        match line.receive(&mut buffer, moment) {
            Ok(length) if device.write_all(&buffer[..length]).is_ok() => {}
            _ => return,
        }
    }
}

#[test]
fn a_node_in_this_process_acts_like_the_host() {
    let (_node, mut session) = node();
    acts_like_the_host(&mut session);
}

#[test]
fn a_node_behind_a_network_acts_like_the_host() {
    let (_node, line) = HostNode::start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (device, _): (TcpStream, _) = listener.accept().unwrap();
        device.set_nodelay(true).unwrap();
        device
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        carry(line, device);
    });
    acts_like_the_host(&mut Session::new(tcp::connect(&address).unwrap()));
}

#[test]
fn a_node_at_a_serial_port_acts_like_the_host() {
    let (_node, line) = HostNode::start().unwrap();
    let (mut device, port) = TTYPort::pair().unwrap();
    let path = port.name().unwrap();
    device.set_timeout(Duration::from_millis(1)).unwrap();
    let transport = serial::open(&path, 115_200).unwrap();
    thread::spawn(move || carry(line, device));
    acts_like_the_host(&mut Session::new(transport));
}

#[test]
fn a_node_that_is_told_to_restart_says_so_and_has_its_policy() {
    let (_node, mut session) = node();
    acts_like_the_host(&mut session);
    let policy = session.hello(PATIENCE).unwrap().policy;
    match session.ask(&Command::Restart, PATIENCE).unwrap() {
        Report::Hello(hello) => {
            assert_eq!(hello.policy, policy);
            assert_eq!(hello.reset, ResetCause::Command);
            assert_eq!(hello.boots, 2);
        }
        other => panic!("{other:?}"),
    }
    // When it was switched on, and now.
    assert_eq!(session.counters().starts, 2);
    assert_eq!(session.status(PATIENCE).unwrap().counters.steps, 0);
}

/// `cargo xtask soak` is the same with a million frames.
#[test]
fn no_wrong_action_comes_over_a_bad_line() {
    let (_node, session) = node();
    let soaked = soak(session, &shipped(), 20_000, Faults::each(0.01), &mut |_| ()).unwrap();
    assert_eq!(soaked.wrong, 0);
    let befallen = soaked.befallen;
    // 200 expected of each with a deviation of 14: five of them.
    let counts = [
        befallen.dropped,
        befallen.corrupted,
        befallen.duplicated,
        befallen.reordered,
    ];
    assert!(counts.iter().all(|count| *count > 130), "{befallen:?}");
    // What was asked twice was not done twice.
    assert!(soaked.node.repeated > 0);
    assert_eq!(u64::from(soaked.node.steps), soaked.actions);
}

#[test]
fn a_bad_line_whose_node_is_gone_is_told_and_not_waited_for() {
    let (node, session) = node();
    drop(node);
    assert!(soak(session, &shipped(), 1_000, Faults::default(), &mut |_| ()).is_err());
}

/// `cargo xtask torture` is the same with a million frames and the image.
#[test]
fn malformed_frames_do_not_keep_a_node_from_answering() {
    let (_node, mut session) = node();
    let tortured = torture(&mut session, &shipped(), 20_000, &mut |_| ()).unwrap();
    assert_eq!(tortured.sent.iter().sum::<u64>(), 20_000);
    assert!(tortured.sent.iter().all(|count| *count > 0), "{tortured:?}");
    // Five kinds of six are no frames of this protocol, though some of them share one.
    let rejected = tortured.node.counters.rejected;
    assert!(rejected > 10_000, "{rejected}");
}
