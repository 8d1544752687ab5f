//! Peers that are broken, or mean harm, at the end of a link.
//!
//! Whatever they do, a run waits for one of them no longer than patience and two seconds in all, and
//! the other agents do what they do when that one is silent, bit for bit.

mod stand_in;
mod support;

use agent_core::agent::{Action, Mode};
use agent_core::message::{
    COMMAND_FRAME, CRC32, Command, Counters, FrameReader, Guard, Hello, History, PROTOCOL,
    PolicyId, Report, ResetCause, Slot, SlotState, Status, UNASKED, decode_frame, encode_frame,
};
use agent_sim::rig::{Absent, Boards, Images, Pace, Rig, Rooms, Setup, State};
use agent_sim::swarm::Deed;
use stand_in::{SOUND, STEPS, events, node, payload, run, start, watched};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a sound node on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is almost too long.
const ALMOST: Duration = Duration::from_millis(800);

/// What a peer may cost beyond patience.
const GRACE: Duration = Duration::from_secs(2);

/// How many kinds are met at the same time: they cost time, and little else.
const AT_ONCE: usize = 4;

/// A peer's conduct, on all connections that it gets.
type Peer = fn(&TcpListener);

/// Those that keep a run from its agent, and try to keep it from others.
const KINDS: &[(&str, Peer)] = &[
    // Nothing comes.
    ("says nothing", |at| each(at, |_, _, _| true)),
    ("reads nothing", |at| {
        let _kept: Vec<_> = at.incoming().collect();
    }),
    ("hangs up at once", |at| at.incoming().for_each(drop)),
    ("hangs up when greeted", |at| each(at, |_, _, _| false)),
    ("hangs up at each observation", |at| {
        greets(at, |_, _| false);
    }),
    ("answers greetings alone", |at| greets(at, |_, _| true)),
    ("does not forget", |at| {
        each(at, |line, number, asked| match asked {
            Asked::Hello => line.say(number, &hello(armed())),
            _ => true,
        });
    }),
    // Too much comes, from the beginning,
    ("floods: zeros", |at| floods(at, &[0])),
    ("floods: a frame without end", |at| floods(at, &[7])),
    ("floods: noise", |at| floods(at, &noise())),
    ("floods: frames that are too long", |at| {
        let mut long = vec![7; 100_000];
        long.push(0);
        floods(at, &long);
    }),
    ("floods: damaged frames", |at| {
        let mut damaged = frame(1, &hello(armed()));
        damaged[3] ^= 1;
        floods(at, &damaged);
    }),
    ("floods: another protocol", |at| floods(at, &foreign())),
    ("floods: greetings", |at| {
        floods(at, &frame(1, &hello(armed())))
    }),
    ("floods: starts", |at| {
        floods(at, &frame(UNASKED, &hello(armed())))
    }),
    ("floods: starts without a policy", |at| {
        floods(at, &frame(UNASKED, &hello(None)));
    }),
    ("floods: answers to nothing", |at| {
        floods(at, &frame(99, &Report::Stored { next: 1 }));
    }),
    // or once it is one of the swarm.
    ("greets, then floods: zeros", |at| {
        greets(at, |line, _| line.flood(&[0]));
    }),
    ("greets, then floods: a frame without end", |at| {
        greets(at, |line, _| line.flood(&[7]));
    }),
    ("greets, then floods: noise", |at| {
        greets(at, |line, _| line.flood(&noise()));
    }),
    ("greets, then floods: another protocol", |at| {
        greets(at, |line, _| line.flood(&foreign()));
    }),
    ("greets, then floods: starts", |at| {
        greets(at, |line, _| line.flood(&frame(UNASKED, &hello(armed()))));
    }),
    ("greets, then floods: greetings", |at| {
        greets(at, |line, number| {
            line.flood(&frame(number, &hello(armed())))
        });
    }),
    ("greets, then floods: old answers", |at| {
        greets(at, |line, number| line.flood(&frame(number - 1, &act(1.0))));
    }),
    ("greets, then floods: answers to come", |at| {
        greets(at, |line, number| {
            line.flood(&frame(number + 1000, &act(1.0)))
        });
    }),
    // Too little comes.
    ("trickles its greeting", |at| {
        each(at, |line, number, _| {
            line.trickle(&frame(number, &hello(armed())))
        });
    }),
    ("trickles its action", |at| {
        greets(at, |line, number| line.trickle(&frame(number, &act(1.0))));
    }),
    ("trickles zeros", |at| {
        greets(at, |line, _| line.trickle(&[0; 1000]))
    }),
    ("half an action", |at| {
        greets(at, |line, number| {
            let whole = frame(number, &act(1.0));
            line.put(&whole[..whole.len() / 2])
        });
    }),
    // The wrong thing comes.
    ("answers under the number before", |at| {
        greets(at, |line, number| line.say(number - 1, &act(1.0)));
    }),
    ("answers under the number after", |at| {
        greets(at, |line, number| line.say(number + 1, &act(1.0)));
    }),
    ("answers something else", |at| {
        greets(at, |line, number| {
            line.say(number, &Report::Stored { next: 7 })
        });
    }),
    ("answers how it is, at length", |at| {
        each(at, |line, number, _| {
            line.say(number, &status(&"x".repeat(240)))
        });
    }),
    ("refuses each observation", |at| {
        greets(at, |line, number| {
            line.say(number, &Report::Rejected { reason: NASTY })
        });
    }),
    ("answers no numbers", |at| {
        greets(at, |line, number| line.say(number, &act(f32::NAN)));
    }),
    ("answers everything but how it is", |at| {
        each(at, |line, number, asked| match asked {
            Asked::Status => true,
            Asked::Observe => line.say(number, &act(0.0)),
            _ => line.say(number, &hello(armed())),
        });
    }),
    ("floods when asked how it is", |at| {
        each(at, |line, number, asked| match asked {
            Asked::Status => line.flood(&frame(number - 1, &act(0.0))),
            Asked::Observe => line.say(number, &act(0.0)),
            _ => line.say(number, &hello(armed())),
        });
    }),
    // Not quite too late, each time.
    ("refuses each observation, late", |at| {
        greets(at, |line, number| {
            thread::sleep(ALMOST);
            line.say(number, &Report::Rejected { reason: "no" })
        });
    }),
    ("starts at each observation, late", |at| {
        greets(at, |line, _| {
            thread::sleep(ALMOST);
            line.say(UNASKED, &hello(armed()))
        });
    }),
    ("hangs up at each observation, late", |at| {
        greets(at, |_, _| {
            thread::sleep(ALMOST);
            false
        });
    }),
    // It starts, and starts.
    ("starts at each observation", |at| {
        greets(at, |line, _| line.say(UNASKED, &hello(armed())));
    }),
    ("starts without its policy, and takes none", |at| {
        loses_its_policy(at, |_, _, _| true);
    }),
    ("starts without its policy, and refuses it", |at| {
        loses_its_policy(at, |line, number, _| line.say(number, &REFUSAL));
    }),
    ("starts without its policy, and takes it slowly", |at| {
        loses_its_policy(at, |line, number, asked| {
            thread::sleep(PATIENCE / 4);
            line.say(number, &asked.stored())
        });
    }),
    ("starts without its policy, takes it and has none", |at| {
        loses_its_policy(at, |line, number, asked| line.say(number, &asked.stored()));
    }),
];

/// Those that attack an upload, with what is said of each.
const UPLOADERS: &[(&str, Peer, &str)] = &[
    (
        "never answers a piece",
        |at| takes(at, |_, _, _| true),
        "did not answer",
    ),
    (
        "asks for the beginning for ever",
        |at| {
            takes(at, |line, number, _| {
                line.say(number, &Report::Stored { next: 0 })
            })
        },
        "asked for again",
    ),
    (
        "has it all before anything was sent",
        |at| {
            takes(at, |line, number, _| {
                line.say(number, &Report::Stored { next: u32::MAX })
            })
        },
        "4294967295 bytes, of",
    ),
    (
        "skips a piece",
        |at| {
            takes(at, |line, number, asked| {
                let next = match asked {
                    Asked::Chunk { end } => end + 512,
                    _ => 0,
                };
                line.say(number, &Report::Stored { next })
            });
        },
        "1024 bytes, of 512",
    ),
    (
        "takes a byte of each piece",
        |at| {
            takes(at, |line, number, asked| {
                let next = match asked {
                    Asked::Chunk { end } => end - 511,
                    _ => 0,
                };
                line.say(number, &Report::Stored { next })
            });
        },
        "asked for again",
    ),
    (
        "refuses it",
        |at| takes(at, |line, number, _| line.say(number, &REFUSAL)),
        r"refused the policy: no\u{1b}[2J",
    ),
    (
        "restarts in the middle",
        |at| {
            takes(at, |line, number, asked| match asked {
                Asked::Chunk { end: 1024 } => line.say(UNASKED, &hello(None)),
                _ => line.say(number, &asked.stored()),
            });
        },
        "restarted",
    ),
    (
        "hangs up in the middle",
        |at| {
            takes(at, |line, number, asked| match asked {
                Asked::Chunk { end: 1024 } => false,
                _ => line.say(number, &asked.stored()),
            });
        },
        "closed the line",
    ),
    (
        "floods in the middle",
        |at| {
            takes(at, |line, number, asked| match asked {
                Asked::Chunk { end: 1024 } => line.flood(&frame(number - 1, &asked.stored())),
                _ => line.say(number, &asked.stored()),
            });
        },
        "did not answer",
    ),
    (
        "takes it all and has nothing",
        |at| {
            takes(at, |line, number, asked| match asked {
                Asked::Commit => line.say(number, &hello(None)),
                _ => line.say(number, &asked.stored()),
            });
        },
        "names another policy",
    ),
    (
        "takes it all and has it in no slot",
        |at| {
            takes(at, |line, number, asked| match asked {
                Asked::Commit => line.say(number, &hello(armed())),
                Asked::Status => line.say(number, &status("board")),
                _ => line.say(number, &asked.stored()),
            });
        },
        "slot holds another policy",
    ),
];

/// What would steer a terminal.
const NASTY: &str = "no\u{1b}[2J\u{9b}31m\u{202e}\r\n";

const REFUSAL: Report<'static> = Report::PolicyRefused { reason: NASTY };

fn armed() -> Option<PolicyId> {
    static ID: LazyLock<PolicyId> = LazyLock::new(|| payload().offer.id);
    Some(*ID)
}

fn hello(policy: Option<PolicyId>) -> Report<'static> {
    Report::Hello(Hello {
        policy,
        reset: ResetCause::PowerOn,
        boots: 1,
        guard: Guard::default(),
    })
}

fn act(force: f32) -> Report<'static> {
    Report::Action {
        action: Action {
            force,
            velocity: [force; 2],
            mode: Mode::Active,
        },
        ticks: 0,
    }
}

fn status(text: &str) -> Report<'_> {
    let slot = Slot {
        policy: None,
        state: SlotState::Empty,
    };
    Report::Status(Status {
        board: text,
        firmware: text,
        fleet: text,
        active: Some(0),
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

fn frame(number: u32, report: &Report<'_>) -> Vec<u8> {
    encode_frame(number, report, &mut [0; 1024])
        .unwrap()
        .to_vec()
}

/// A good frame of the next protocol.
fn foreign() -> Vec<u8> {
    let mut plain = vec![PROTOCOL + 1, 1, 2, 3];
    plain.extend(CRC32.checksum(&plain).to_le_bytes());
    // No zeros in it: one block.
    assert!(!plain.contains(&0));
    let mut frame = vec![plain.len() as u8 + 1];
    frame.extend(plain);
    frame.push(0);
    frame
}

/// Bytes of all values, zeros among them.
fn noise() -> Vec<u8> {
    let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let numbers = std::iter::successors(Some(1), next);
    numbers.take(5000).map(|x| (x >> 24) as u8).collect()
}

/// What the host asks.
#[derive(Clone, Copy)]
enum Asked {
    Hello,
    Reset,
    Status,
    Observe,
    Begin,
    /// A piece of an upload that ends there.
    Chunk {
        end: u32,
    },
    Commit,
}

impl Asked {
    fn by(command: &Command<'_>) -> Option<Self> {
        Some(match command {
            Command::Hello => Self::Hello,
            Command::Reset => Self::Reset,
            Command::Status => Self::Status,
            Command::Observe(_) => Self::Observe,
            Command::PolicyBegin { .. } => Self::Begin,
            Command::PolicyChunk { offset, bytes } => Self::Chunk {
                end: offset + bytes.len() as u32,
            },
            Command::PolicyCommit => Self::Commit,
            _ => return None,
        })
    }

    fn is_upload(self) -> bool {
        matches!(self, Self::Begin | Self::Chunk { .. } | Self::Commit)
    }

    /// What a sound node says to a piece of an upload.
    fn stored(self) -> Report<'static> {
        let next = match self {
            Self::Chunk { end } => end,
            _ => 0,
        };
        Report::Stored { next }
    }
}

/// A connection as the peer has it. All calls are false when it is broken.
struct Line {
    stream: TcpStream,
    frames: FrameReader<COMMAND_FRAME>,
    /// The number of the last command.
    last: u32,
}

impl From<TcpStream> for Line {
    fn from(stream: TcpStream) -> Self {
        Self {
            stream,
            frames: FrameReader::new(),
            last: UNASKED,
        }
    }
}

impl Line {
    fn put(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    fn say(&mut self, number: u32, report: &Report<'_>) -> bool {
        self.put(&frame(number, report))
    }

    /// The same again and again, as fast as it goes.
    fn flood(&mut self, bytes: &[u8]) -> bool {
        let many = bytes.repeat(1 + 10_000 / bytes.len());
        while self.put(&many) {}
        false
    }

    /// A byte now and then.
    fn trickle(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| {
            thread::sleep(PATIENCE / 10);
            self.put(&[*byte])
        })
    }

    /// The next command; not one that is sent again.
    fn hear(&mut self) -> Option<(u32, Asked)> {
        let mut byte = [0];
        while let Ok(1) = self.stream.read(&mut byte) {
            if let Some(Ok(frame)) = self.frames.push(byte[0])
                && let Ok((number, command)) = decode_frame(frame)
                && number != std::mem::replace(&mut self.last, number)
                && let Some(asked) = Asked::by(&command)
            {
                return Some((number, asked));
            }
        }
        None
    }
}

/// Does `act` with every command, and hangs up when that is false.
fn each(at: &TcpListener, mut act: impl FnMut(&mut Line, u32, Asked) -> bool) {
    for stream in at.incoming() {
        let mut line = Line::from(stream.unwrap());
        while let Some((number, asked)) = line.hear() {
            if !act(&mut line, number, asked) {
                break;
            }
        }
    }
}

/// A sound node, but for observations.
fn greets(at: &TcpListener, mut observed: impl FnMut(&mut Line, u32) -> bool) {
    each(at, |line, number, asked| match asked {
        Asked::Observe => observed(line, number),
        _ => line.say(number, &hello(armed())),
    });
}

/// A sound node that starts without its policy at each observation, and does `upload` with pieces.
fn loses_its_policy(at: &TcpListener, mut upload: impl FnMut(&mut Line, u32, Asked) -> bool) {
    let mut has_it = true;
    each(at, |line, number, asked| match asked {
        Asked::Observe => {
            has_it = false;
            line.say(UNASKED, &hello(None))
        }
        _ if asked.is_upload() => upload(line, number, asked),
        _ => line.say(number, &hello(armed().filter(|_| has_it))),
    });
}

/// A node without a policy, that does `upload` with pieces of one and when asked how it is.
fn takes(at: &TcpListener, mut upload: impl FnMut(&mut Line, u32, Asked) -> bool) {
    each(at, |line, number, asked| match asked {
        Asked::Status => upload(line, number, asked),
        _ if asked.is_upload() => upload(line, number, asked),
        _ => line.say(number, &hello(None)),
    });
}

fn floods(at: &TcpListener, bytes: &[u8]) {
    for stream in at.incoming() {
        Line::from(stream.unwrap()).flood(bytes);
    }
}

/// Such a peer at an address of its own.
fn board(peer: impl FnOnce(&TcpListener) + Send + 'static) -> Boards {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || peer(&listener));
    Boards::Tcp { address }
}

/// Nobody, at an address that somebody had.
fn nobody() -> Boards {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    Boards::Tcp { address }
}

/// Time that passes, less that for which this thread could have run and the machine had no core for
/// it: what is measured is waiting, not how busy the machine is.
struct Stopwatch {
    began: Instant,
    queued: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            queued: Self::queued(),
        }
    }

    fn waited(&self) -> Duration {
        let queued = Self::queued().saturating_sub(self.queued);
        self.began.elapsed().saturating_sub(queued)
    }

    /// Nothing on systems that do not tell.
    fn queued() -> Duration {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = told.split_whitespace().nth(1).and_then(|n| n.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or(0))
    }
}

/// Where the peer is in the swarm: between two sound nodes; five agents more are in this process.
const HOSTILE: usize = 1;

/// Places and deeds of the others, by step.
type Others = Vec<Vec<([f64; 2], Deed)>>;

fn others(rig: &Rig) -> Others {
    let mut steps = Others::new();
    watched(Some(rig), |snapshot| {
        let agents = snapshot.positions.iter().zip(snapshot.deeds).enumerate();
        let others = agents.filter(|(agent, _)| *agent != HOSTILE);
        steps.push(others.map(|(_, (place, deed))| (*place, *deed)).collect());
    });
    steps
}

/// Has `meet` meet each of `kinds`, some at a time, and names those that ended badly.
fn meet_all<K: Sync>(kinds: &[K], meet: impl Fn(&K) -> Result<(), String> + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = meet(kind) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(what()),
    }
}

/// Nothing that a peer said may reach a reader as it was.
fn check_texts(name: &str, texts: &str) -> Result<(), String> {
    let bad = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    check(!texts.contains(bad), || format!("{name}: said {texts:?}"))
}

#[test]
fn in_lock_step_no_peer_costs_more_than_patience_and_two_seconds_or_touches_the_others() {
    let boards = |hostile| [node(SOUND), hostile, node(SOUND)];
    let pace = Pace::lock_step(PATIENCE);
    let (rig, absent) = start(&boards(nobody()), pace);
    assert_eq!(absent.len(), 1, "{absent:?}");
    let expected = others(&rig);
    let heard = |steps: &Others| steps[STEPS].iter().all(|(_, deed)| deed.heard());
    assert!(heard(&expected));

    assert!(KINDS.len() >= 25);
    meet_all(KINDS, |&(name, peer)| {
        let watch = Stopwatch::start();
        let (rig, _) = start(&boards(board(peer)), pace);
        let done = others(&rig);
        let statuses = rig.statuses();
        let waited = watch.waited();
        let told = events(&rig, HOSTILE);
        check(waited < PATIENCE + GRACE, || {
            format!("{name}: cost {waited:?}\n{told}")
        })?;
        check(done == expected, || {
            let others = [events(&rig, 0), events(&rig, 2)].concat();
            format!("{name}: the others do something else\n{told}{others}")
        })?;
        check_texts(name, &told)?;
        check_texts(name, &format!("{:?}", statuses[HOSTILE]))
    });
}

#[test]
fn in_real_time_no_peer_keeps_the_field_or_the_others() {
    // A step is 1 ms of the field's time.
    const INTERVAL: Duration = Duration::from_millis(20);
    // As long as a frame to somebody who takes none keeps the host, once, and as much again.
    const STALL: Duration = Duration::from_millis(200);
    meet_all(KINDS, |&(name, peer)| {
        let boards = [node(SOUND), board(peer), node(SOUND)];
        let watch = Stopwatch::start();
        let (rig, _) = start(&boards, Pace::lock_step(PATIENCE));
        let rig = rig.in_real_time(0.05, 1000.0);
        let making_ready = watch.waited();
        // By how much each step was late, on the run's clock.
        let (mut watch, mut late) = (Stopwatch::start(), Duration::ZERO);
        let mut inside = true;
        watched(Some(&rig), |snapshot| match snapshot.step {
            0 => watch = Stopwatch::start(),
            step => {
                late = late.max(watch.waited().saturating_sub(INTERVAL * step as u32));
                inside &= snapshot.deeds[3..].iter().all(Deed::heard);
            }
        });
        let told = events(&rig, HOSTILE);
        check(making_ready < PATIENCE + GRACE, || {
            format!("{name}: cost {making_ready:?}\n{told}")
        })?;
        check(late < STALL, || {
            format!("{name}: a step was {late:?} late\n{told}")
        })?;
        check(inside, || {
            format!("{name}: agents in this process are silent")
        })
    });
}

/// As `agent-sim nodes` does it.
#[test]
fn no_peer_keeps_whoever_asks_how_it_is() {
    let setup = Setup {
        images: Images::in_folder("no/such/folder"),
        flash: None,
        rooms: Rooms::default(),
        link_key: None,
        payload: None,
        pace: Pace::lock_step(PATIENCE),
        bus: None,
        log: false,
        seed: 0,
    };
    meet_all(KINDS, |&(name, peer)| {
        let watch = Stopwatch::start();
        let (rig, absent) = Rig::start(&[board(peer)], &setup, &|| ());
        let statuses = rig.statuses();
        let waited = watch.waited();
        check(waited < PATIENCE + GRACE, || {
            format!("{name}: cost {waited:?}")
        })?;
        check_texts(name, &format!("{absent:?} {statuses:?}"))
    });
}

/// As `agent-sim flash` does it.
#[test]
fn no_peer_takes_an_upload_for_ever_or_only_says_that_it_has() {
    meet_all(UPLOADERS, |&(name, peer, expected)| {
        let watch = Stopwatch::start();
        let (_, absent) = start(&[board(peer)], Pace::lock_step(PATIENCE));
        let waited = watch.waited();
        check(waited < PATIENCE + GRACE, || {
            format!("{name}: cost {waited:?}")
        })?;
        let [Absent { why, .. }] = &absent[..] else {
            return Err(format!("{name}: believed"));
        };
        check(why.contains(expected), || format!("{name}: {why}"))?;
        check_texts(name, why)
    });
}

#[test]
fn a_policy_that_was_refused_is_not_offered_again() {
    let offers = Arc::new(AtomicUsize::new(0));
    let counted = offers.clone();
    let refuses = board(move |at| {
        takes(at, |line, number, asked| {
            counted.fetch_add(usize::from(asked.is_upload()), Ordering::Relaxed);
            line.say(number, &REFUSAL)
        });
    });
    // The host looks for a silent node every quarter of a second: the run must last longer.
    let slow = node(stand_in::Conduct {
        takes: Duration::from_millis(40),
        ..SOUND
    });
    let (rig, absent) = start(&[slow, refuses], Pace::lock_step(PATIENCE));
    assert!(absent[0].why.contains("refused the policy"), "{absent:?}");
    run(Some(&rig));
    let told = events(&rig, 1);
    assert_eq!(offers.load(Ordering::Relaxed), 1, "{told}");
    assert!(told.contains("refused the policy"), "{told}");
    assert!(rig.node(1).diary.states.iter().all(|s| *s == State::Silent));
}

#[test]
fn in_real_time_an_old_answer_is_as_old_as_what_it_answers() {
    let mut first = None;
    let replays = board(move |at| {
        greets(at, move |line, number| {
            let answer = first
                .get_or_insert_with(|| frame(number, &act(1.0)))
                .clone();
            line.put(&answer)
        });
    });
    let (rig, absent) = start(&[replays], Pace::lock_step(PATIENCE));
    assert_eq!(absent, []);
    // A step of 1 ms lasts 100 ms, so that also on a busy machine the first answer is good for a while.
    let rig = rig.in_real_time(0.01, 1000.0);
    let run = run(Some(&rig));
    let modes = &run.trajectory.paths[0].modes;
    // The first is of the time before the first step.
    let heard = modes[1..].iter().filter(|mode| mode.is_some()).count() as u64;
    // It is good for so long, and was given in the first step.
    let good_for = 1 + payload().late_us / 1000;
    assert!((1..=good_for).contains(&heard), "{heard}: {modes:?}");
}

/// A node that names the policy before anything was sent, and has it nowhere.
fn says_that_it_has_it(text: &'static str) -> Boards {
    board(move |at| {
        each(at, |line, number, asked| match asked {
            Asked::Status => line.say(number, &status(text)),
            _ => line.say(number, &hello(armed())),
        });
    })
}

#[test]
fn flash_fails_unless_the_slot_holds_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/heat-1d.policy");
    let boards = says_that_it_has_it("board");
    let output = support::agent_sim(folder.path(), &format!("flash {policy} --link {boards}"));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        errors.contains("1 of 1 boards do not run the policy"),
        "{errors}"
    );
}

#[test]
fn what_a_node_says_is_printed_spelt_out() {
    let folder = tempfile::tempdir().unwrap();
    let boards = says_that_it_has_it(NASTY);
    let shown = support::stdout(folder.path(), &format!("nodes --link {boards}"));
    assert!(
        shown.contains(r"no\u{1b}[2J\u{9b}31m\u{202e}\r\n"),
        "{shown}"
    );
    check_texts("nodes", &shown).unwrap();
}

#[test]
fn a_scenario_file_writes_to_no_real_board_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let link = format!("tcp={}", listener.local_addr().unwrap());
    let text = format!("problem = \"heat-1d\"\nlink = [\"{link}\"]\n");
    std::fs::write(folder.path().join("theirs.toml"), text).unwrap();
    let run = "run --scenario theirs.toml --steps 2 --alone --patience 0.1 --out out";
    support::refused(folder.path(), run, &[&link, "--write-boards"]);
    assert!(listener.accept().is_err(), "it was connected to");
    support::stdout(folder.path(), &format!("{run} --write-boards"));
    assert!(listener.accept().is_ok());
    // Whoever names boards on the command line means them.
    support::stdout(folder.path(), &format!("{run} --link {link}"));
    assert!(listener.accept().is_ok());
}
