//! A session against nodes that misbehave, over a connection that is real.

use agent_core::message::{
    Command, Counters, FrameReader, Guard, Hello, History, Mishap, PROTOCOL, Report, ResetCause,
    Slot, SlotState, Status, UNASKED, decode_frame, encode_frame,
};
use node_link::{Offer, Session, SessionError, UploadLimit, tcp};
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

const HELLO: Hello = Hello {
    policy: None,
    reset: ResetCause::PowerOn,
    boots: 1,
    guard: Guard {
        link: false,
        policies: false,
    },
};

fn frame(number: u32, report: &Report) -> Vec<u8> {
    encode_frame(number, report, &mut [0; 256])
        .unwrap()
        .to_vec()
}

/// The line as a node sees it.
struct Line(TcpStream);

impl Line {
    fn put(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn answer(&mut self, number: u32, report: Report) {
        self.put(&frame(number, &report));
    }

    fn hang_up(&mut self) {
        self.0.shutdown(Shutdown::Both).unwrap();
    }
}

/// Where a node listens that does `act` with each command, one connection after the other.
fn node(mut act: impl FnMut(&mut Line, u32, Command) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut line = Line(stream.unwrap());
            let mut frames = FrameReader::<4096>::new();
            let mut byte = [0];
            while let Ok(1) = line.0.read(&mut byte) {
                let Some(frame) = frames.push(byte[0]) else {
                    continue;
                };
                let (number, command) = decode_frame(frame.unwrap()).unwrap();
                act(&mut line, number, command);
            }
        }
    });
    address
}

fn session(address: &str) -> Session {
    Session::new(tcp::connect(address).unwrap())
}

#[test]
fn an_answer_is_found_among_garbage() {
    let mut session = session(&node(|line, number, _| {
        let good = frame(number, &Report::Hello(HELLO));
        line.put(b"boot loader 1.0\r\n\0"); // damaged
        line.put(&good[..good.len() / 2]); // cut: damaged
        line.put(&[0, 0, 0]);
        line.put(&[1; 5000]); // longer than any report
        line.put(&[0]);
        line.put(&good);
    }));
    assert_eq!(session.hello(PATIENCE).unwrap(), HELLO);
    assert_eq!(session.counters().damaged, 3);
    assert_eq!(session.counters().received, 1);
}

#[test]
fn a_late_or_doubled_answer_is_never_taken_for_the_one_waited_for() {
    let mut session = session(&node(|line, number, command| match command {
        Command::Hello => line.answer(number, Report::Hello(HELLO)),
        _ => {
            line.answer(number - 1, Report::Stored { next: 7 });
            line.answer(number, Report::Stored { next: number });
            line.answer(number, Report::Stored { next: number });
        }
    }));
    session.hello(PATIENCE).unwrap();
    for asked in 2..=5 {
        let report = session.ask(&Command::Reset, PATIENCE).unwrap();
        assert_eq!(report, Report::Stored { next: asked });
    }
    // Before each of the four answers one of the question before, and from the second on also the
    // other half of the pair before it.
    assert_eq!(session.counters().late, 4 + 3);
}

#[test]
fn a_command_that_was_lost_is_sent_again_with_its_number() {
    let mut seen = Vec::new();
    let mut session = session(&node(move |line, number, _| {
        if seen.contains(&number) {
            line.answer(number, Report::Hello(HELLO));
        }
        seen.push(number);
    }));
    for _ in 0..3 {
        session.hello(PATIENCE).unwrap();
    }
    assert_eq!(session.counters().sent, 3);
    assert_eq!(session.counters().resent, 3);
}

#[test]
fn a_silent_node_is_given_up_on_in_time() {
    let mut session = session(&node(|_, _, _| ()));
    let patience = Duration::from_millis(200);
    let start = Instant::now();
    match session.hello(patience) {
        Err(SessionError::Timeout(waited)) => assert_eq!(waited, patience),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() >= patience);
    assert!(session.counters().resent > 0);
}

#[test]
fn a_line_that_is_cut_in_mid_frame_works_again_once_reopened() {
    let mut first = true;
    let mut session = session(&node(move |line, number, _| {
        let good = frame(number, &Report::Hello(HELLO));
        if std::mem::take(&mut first) {
            line.put(&good[..4]);
            line.hang_up();
        } else {
            line.put(&good);
        }
    }));
    let error = session.hello(PATIENCE).unwrap_err();
    assert!(matches!(error, SessionError::Line(_)), "{error}");
    assert!(error.to_string().contains("closed the line"), "{error}");
    // Until it is opened again it stays broken, and says so at once.
    let error = session.hello(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("not connected"), "{error}");
    session.reopen().unwrap();
    assert_eq!(session.hello(PATIENCE).unwrap(), HELLO);
    assert_eq!(session.counters().reopened, 1);
    // The half frame of the old connection is not part of the new one's first.
    assert_eq!(session.counters().damaged, 0);
}

#[test]
fn nobody_to_reopen_to_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut session = session(&listener.local_addr().unwrap().to_string());
    drop(listener.accept());
    drop(listener);
    assert!(session.hello(PATIENCE).is_err());
    let start = Instant::now();
    let error = session.reopen().unwrap_err();
    assert!(error.to_string().contains("cannot reach"), "{error}");
    // Ten times what is promised: the machine may be busy.
    assert!(start.elapsed() < Duration::from_millis(500));
    assert_eq!(session.counters().reopened, 0);
}

#[test]
fn a_node_of_another_protocol_is_told_by_its_version() {
    let mut session = session(&node(|line, number, _| {
        let mut plain = vec![PROTOCOL + 1, number as u8, 0, 42];
        plain.extend(agent_core::message::CRC32.checksum(&plain).to_le_bytes());
        let mut coded = vec![0; cobs::max_encoding_length(plain.len())];
        let length = cobs::encode(&plain, &mut coded);
        line.put(&coded[..length]);
        line.put(&[0]);
    }));
    let error = session.hello(PATIENCE).unwrap_err();
    assert!(matches!(error, SessionError::Protocol { node: 6 }));
    let message = error.to_string();
    assert!(message.contains("protocol 6"), "{message}");
    assert!(message.contains("cargo xtask firmware build"), "{message}");
}

#[test]
fn a_start_nobody_asked_for_is_noticed_and_answers_a_restart() {
    let started = Hello {
        reset: ResetCause::Command,
        boots: 2,
        ..HELLO
    };
    let mut session = session(&node(move |line, number, command| match command {
        Command::Restart => line.answer(UNASKED, Report::Hello(started)),
        _ => line.answer(number, Report::Hello(HELLO)),
    }));
    session.hello(PATIENCE).unwrap();
    assert_eq!(session.last_start(), None);
    let report = session.ask(&Command::Restart, PATIENCE).unwrap();
    assert_eq!(report, Report::Hello(started));
    assert_eq!(session.last_start(), Some(started));
    assert_eq!(session.counters().starts, 1);
    // A second one would restart it again.
    assert_eq!(session.counters().resent, 0);
}

#[test]
fn a_node_that_starts_is_waited_for() {
    let mut session = session(&node(|line, number, _| {
        line.answer(number, Report::Hello(HELLO));
        line.answer(UNASKED, Report::Hello(HELLO));
    }));
    let moment = Duration::from_millis(20);
    let silent = session.wait_for_start(moment);
    assert!(matches!(silent, Err(SessionError::Timeout(waited)) if waited == moment));
    // The answer to a question is no start.
    session.send(&Command::Hello).unwrap();
    assert_eq!(session.wait_for_start(PATIENCE).unwrap(), HELLO);
    assert_eq!(session.counters().received, 2);
}

#[test]
fn an_upload_that_a_restart_has_interrupted_is_named_as_such() {
    let mut session = session(&node(|line, number, command| match command {
        Command::PolicyBegin { .. } => line.answer(number, Report::Stored { next: 0 }),
        Command::PolicyChunk { .. } => {
            line.answer(UNASKED, Report::Hello(HELLO));
            let reason = "no upload under way";
            line.answer(number, Report::Rejected { reason });
        }
        Command::PolicyCommit => {
            line.answer(UNASKED, Report::Hello(HELLO));
            line.answer(number, Report::Hello(HELLO));
        }
        _ => line.answer(number, Report::Hello(HELLO)),
    }));
    session.hello(PATIENCE).unwrap();
    // In the middle of it, and at its end.
    for policy in [&[1; 600][..], &[]] {
        let refused = session.upload(&Offer::unsigned(policy), &mut |_| ());
        assert!(matches!(refused, Err(SessionError::Restarted)));
    }
}

#[test]
fn an_upload_arrives_in_order_and_its_refusal_tells_the_nodes_reason() {
    let policy: Vec<u8> = (0..1300u32).map(|k| (k * 7) as u8).collect();
    let expected = policy.clone();
    let mut arrived: Vec<u8> = Vec::new();
    let mut session = session(&node(move |line, number, command| match command {
        Command::PolicyBegin {
            manifest,
            signature,
        } => {
            assert_eq!((manifest, signature), (&[8; 20][..], &[9; 64][..]));
            line.answer(number, Report::Stored { next: 0 });
        }
        Command::PolicyChunk { offset, bytes } => {
            assert_eq!(offset as usize, arrived.len());
            arrived.extend(bytes);
            let next = arrived.len() as u32;
            line.answer(number, Report::Stored { next });
        }
        Command::PolicyCommit => {
            assert_eq!(arrived, expected);
            let reason = "signed by somebody else";
            line.answer(number, Report::PolicyRefused { reason });
        }
        _ => line.answer(number, Report::Hello(HELLO)),
    }));
    session.hello(PATIENCE).unwrap();
    let mut progress = Vec::new();
    let refused = session.upload(&Offer::signed(&policy, &[8; 20], &[9; 64]), &mut |bytes| {
        progress.push(bytes)
    });
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("signed by somebody else"), "{message}");
    // Chunks of 512.
    assert_eq!(progress, [512, 1024, 1300]);
}

#[test]
fn a_command_that_a_node_cannot_obey_gives_its_reason() {
    let mut session = session(&node(|line, number, _| {
        let reason = "not in this image";
        line.answer(number, Report::Rejected { reason });
    }));
    let provoked = session.ask(&Command::Provoke(Mishap::Panic), PATIENCE);
    let reason = "not in this image";
    assert_eq!(provoked.unwrap(), Report::Rejected { reason });
    let error = session.status(PATIENCE).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn an_address_without_a_node_is_named() {
    // Bound and given up again: nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let error = tcp::connect(&address).err().unwrap().to_string();
    assert!(error.contains(&address), "{error}");
    let error = tcp::connect("nonsense").err().unwrap().to_string();
    assert!(error.contains("host:port"), "{error}");
}

/// What of an upload's answers a node gets wrong, and what is then said.
fn upload_to(answer: impl Fn(&Command) -> Report<'static> + Send + 'static) -> (String, u64) {
    let mut session = session(&node(move |line, number, command| {
        line.answer(number, answer(&command));
    }));
    let error = session
        .upload(&Offer::unsigned(&[7; 20_000]), &mut |_| ())
        .unwrap_err();
    (error.to_string(), session.counters().sent)
}

#[test]
fn an_upload_without_progress_is_given_up() {
    let (error, sent) = upload_to(|_| Report::Stored { next: 0 });
    assert!(error.contains("17 pieces were asked for again"), "{error}");
    // The beginning, and those pieces.
    assert_eq!(sent, 18);
    // Nor does a byte a piece get it anywhere.
    let (error, sent) = upload_to(|command| Report::Stored {
        next: match command {
            Command::PolicyChunk { offset, .. } => offset + 1,
            _ => 0,
        },
    });
    assert!(error.contains("asked for again"), "{error}");
    assert_eq!(sent, 18);
}

#[test]
fn a_node_cannot_have_more_of_an_upload_than_was_sent() {
    // A node may have a part of it from before, but not more than there is.
    for next in [20_001, u32::MAX] {
        let (error, sent) = upload_to(move |_| Report::Stored { next });
        assert!(
            error.contains(&format!("{next} bytes, of 20000")),
            "{error}"
        );
        assert_eq!(sent, 1);
    }
    let (error, sent) = upload_to(move |command| Report::Stored {
        next: match command {
            Command::PolicyBegin { .. } => 0,
            _ => 513,
        },
    });
    assert!(error.contains("513 bytes, of 512"), "{error}");
    assert_eq!(sent, 2);
}

#[test]
fn the_end_of_an_upload_is_believed_only_of_a_node_that_then_has_the_policy() {
    let (error, _) = upload_to(|command| match command {
        Command::PolicyBegin { .. } => Report::Stored { next: 0 },
        Command::PolicyChunk { offset, bytes } => Report::Stored {
            next: offset + bytes.len() as u32,
        },
        _ => Report::Hello(HELLO),
    });
    assert!(error.contains("names another policy"), "{error}");
}

#[test]
fn an_upload_is_bounded_as_a_whole() {
    let mut session = session(&node(|line, number, command| {
        thread::sleep(Duration::from_millis(20));
        let next = match command {
            Command::PolicyChunk { offset, bytes } => offset + bytes.len() as u32,
            _ => 0,
        };
        line.answer(number, Report::Stored { next });
    }));
    let limit = UploadLimit {
        piece: PATIENCE,
        whole: Duration::from_millis(100),
    };
    let policy = [7; 100_000];
    let start = Instant::now();
    let error = session.upload_within(limit, &Offer::unsigned(&policy), &mut |_| ());
    // The time ran out between two pieces, or while one was waited for.
    let error = error.unwrap_err();
    assert!(
        matches!(error, SessionError::Upload(_) | SessionError::Timeout(_)),
        "{error}"
    );
    // All pieces together would take 4 s.
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn whoever_never_stops_sending_is_given_up_on_in_time() {
    let start_notice = frame(UNASKED, &Report::Hello(HELLO));
    let late_answer = frame(9, &Report::Stored { next: 1 });
    let flood = |with: Vec<u8>| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let many = with.repeat(1 + 10_000 / with.len());
            while stream.write_all(&many).is_ok() {}
        });
        session(&address)
    };
    let patience = Duration::from_millis(200);
    for bytes in [vec![0], vec![1], start_notice, late_answer] {
        let mut session = flood(bytes);
        let start = Instant::now();
        let given_up = session.hello(patience);
        assert!(
            matches!(given_up, Err(SessionError::Timeout(_))),
            "{given_up:?}"
        );
        assert!(start.elapsed() < patience + Duration::from_secs(2));
        // A glance reads what has come, not what comes.
        let start = Instant::now();
        for _ in 0..100 {
            session.receive(Instant::now()).unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn what_a_node_says_cannot_steer_a_terminal() {
    let nasty = "\u{1b}]0;pwned\u{7}\u{9b}2J\u{202e}\r\n";
    let mut session = session(&node(move |line, number, command| match command {
        Command::Hello => line.answer(number, Report::Rejected { reason: nasty }),
        _ => line.answer(number, status(nasty)),
    }));
    let plain = r"\u{1b}]0;pwned\u{7}\u{9b}2J\u{202e}\r\n";
    let error = session.hello(PATIENCE).unwrap_err().to_string();
    assert!(error.ends_with(plain), "{error}");
    let status = session.status(PATIENCE).unwrap();
    let texts = [status.board, status.firmware, status.last_words];
    assert_eq!(texts, [plain; 3]);
}

/// The status of a node that has only this to say.
fn status(text: &str) -> Report<'_> {
    let slot = Slot {
        policy: None,
        state: SlotState::Empty,
    };
    Report::Status(Status {
        board: text,
        firmware: text,
        fleet: "",
        active: None,
        slots: [slot; 2],
        counter: 0,
        history: History {
            reset: ResetCause::PowerOn,
            boots: 1,
            watchdog_bites: 0,
            panics: 0,
            faults: 0,
        },
        last_words: text,
        counters: Counters::default(),
    })
}
