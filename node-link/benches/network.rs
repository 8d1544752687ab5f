//! How long messages take over a Zenoh network on loopback, there and back.
//!
//! ```text
//! cargo bench -p node-link --features zenoh --bench network
//! cargo bench -p node-link --features zenoh --bench network -- --smoke
//! ```
//!
//! The sizes are those that a field in double precision would have to carry between two hosts in every
//! step of its solver, if half of it were solved on each: a row on each side of the cut, or all of a half.

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let rounds = if smoke { 5 } else { 200 };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp/{}", listener.local_addr().expect("an address"));
    drop(listener);
    let near = session(&at, "[]");
    let far = session("", &format!("['{at}']"));
    let echo = far.clone();
    let _there = far
        .declare_subscriber("bench/there")
        .callback(move |sample| put(&echo, "bench/back", &sample.payload().to_bytes()))
        .wait()
        .expect("a subscriber");
    let (sender, back) = mpsc::channel();
    let _back = near
        .declare_subscriber("bench/back")
        .callback(move |sample| sender.send(sample.payload().len()).unwrap_or_default())
        .wait()
        .expect("a subscriber");
    // Until both know of each other, what is sent goes nowhere.
    let round_trip = |bytes: usize| -> Duration {
        let message = vec![1; bytes];
        loop {
            let began = Instant::now();
            put(&near, "bench/there", &message);
            if back.recv_timeout(Duration::from_secs(2)) == Ok(bytes) {
                return began.elapsed();
            }
        }
    };
    round_trip(8);
    println!("grid            message       bytes    there and back    MB/s");
    for points in [64, 256, 512, 1024_usize] {
        for (what, bytes) in [("a row", 8 * points), ("a half", 4 * points * points)] {
            let rounds = if bytes > 1 << 20 {
                rounds.min(20)
            } else {
                rounds
            };
            let mut times: Vec<_> = (0..rounds).map(|_| round_trip(bytes)).collect();
            times.sort();
            let median = times[times.len() / 2].as_secs_f64();
            println!(
                "{points:>4} × {points:<6}  {what:<8} {bytes:>10} {:>14.3} ms {:>7.0}",
                median * 1e3,
                2e-6 * bytes as f64 / median
            );
        }
    }
}

fn session(listen: &str, connect: &str) -> Session {
    let mut config = Config::default();
    let listen = match listen {
        "" => "[]".to_owned(),
        at => format!("['{at}']"),
    };
    for (key, value) in [
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", &listen),
        ("connect/endpoints", connect),
    ] {
        config.insert_json5(key, value).expect("a configuration");
    }
    zenoh::open(config).wait().expect("a session")
}

fn put(session: &Session, key: &str, bytes: &[u8]) {
    let put = session.put(key, bytes);
    let put = put
        .congestion_control(CongestionControl::Block)
        .express(true);
    put.wait().expect("sent");
}
