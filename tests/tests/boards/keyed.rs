//! The image with keys in the emulated board: signed manifests, sealed frames, and what outlives power.

use super::{PATIENCE, started_again};
use agent_core::message::{Command, Report};
use endurance::observations::{Blob, Scene};
use node_link::{
    BoardOptions, EmulatedBoard, Offer, Session, SessionError,
    keys::{PolicyKey, SignedManifest, parse_link_key, parse_whole_link_key},
};
use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};
use trust::{Grant, Manifest, Rights};

/// What `cargo xtask` builds such an image with.
const FLEET: &str = "throwaway";

struct Bench {
    image: PathBuf,
    keys: PathBuf,
}

impl Bench {
    fn new() -> Option<Self> {
        let variable = |name| env::var_os(name).map(PathBuf::from);
        let bench = variable("FIRMWARE_ELF_KEYED").zip(variable("THROWAWAY_KEYS"));
        if bench.is_none() {
            let message = b"SKIPPED: FIRMWARE_ELF_KEYED is not set; `cargo xtask test` sets it\n";
            let _ = io::stderr().write_all(message);
        }
        let (image, keys) = bench?;
        Some(Self { image, keys })
    }

    fn board(&self) -> (EmulatedBoard, Session) {
        EmulatedBoard::start(&BoardOptions::new(&self.image)).expect("the board boots")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.keys.join(name)).unwrap()
    }

    fn policy_key(&self, name: &str) -> PolicyKey {
        PolicyKey::parse(&self.read(name)).unwrap()
    }

    fn grant(&self, rights: Rights) -> Grant {
        let key = parse_whole_link_key(&self.read("link.key")).unwrap();
        key.grant(rights)
    }
}

fn shipped() -> Blob {
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    Blob::read(&Path::new(policies).join("heat-1d.policy")).unwrap()
}

fn says(blob: &Blob, counter: u64) -> Manifest<'static> {
    Manifest {
        fleet: FLEET,
        counter,
        ..Manifest::unsigned(blob.bytes(), "heat-1d")
    }
}

fn signed(key: &PolicyKey, blob: &Blob, manifest: &Manifest) -> Offer {
    let signed: SignedManifest = key.sign(manifest).unwrap();
    signed.offer(blob.bytes()).unwrap()
}

fn refusal(node: &mut Session, offer: &Offer) -> String {
    match node.upload(offer, &mut |_| ()) {
        Err(SessionError::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// Takes a control step.
fn observes(node: &mut Session, blob: &Blob) -> Result<(), String> {
    let policy = blob.policy().unwrap();
    let scene = Scene::new(&policy, 1, 10);
    match node.ask(&Command::Observe(scene.observation()), PATIENCE) {
        Ok(Report::Action { .. }) => Ok(()),
        Ok(Report::Rejected { reason }) => Err(reason.to_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_keyed_board_takes_what_is_signed_from_whom_it_knows_and_never_goes_back() {
    let Some(bench) = Bench::new() else { return };
    let (mut board, mut stranger) = bench.board();
    let hello = stranger.hello(PATIENCE).unwrap();
    assert!(hello.guard.link && hello.guard.policies);
    let blob = shipped();
    let key = bench.policy_key("policy.key");
    let offer = signed(&key, &blob, &says(&blob, 100));
    // Whoever is on the line without a key changes nothing.
    assert!(refusal(&mut stranger, &offer).contains("key of its link"));
    assert!(matches!(
        stranger.ask(&Command::Restart, Duration::from_secs(1)),
        Err(SessionError::Timeout(_)) | Ok(Report::Rejected { .. })
    ));

    let mut host = stranger.with_key(bench.grant(Rights::ALL));
    host.hello(PATIENCE).unwrap();
    assert!(refusal(&mut host, &blob.offer()).contains("signed"));
    let elsewhere = Manifest {
        fleet: "elsewhere",
        ..says(&blob, 100)
    };
    assert!(refusal(&mut host, &signed(&key, &blob, &elsewhere)).contains("fleet"));
    let armed = host.upload(&offer, &mut |_| ()).unwrap();
    assert_eq!(armed.policy, Some(offer.id));
    observes(&mut host, &blob).unwrap();
    assert!(refusal(&mut host, &offer).contains("to go back"));

    // With the power gone, sessions are, and what was taken is not.
    board.restart().unwrap();
    assert_eq!(started_again(&mut host).policy, Some(offer.id));
    assert!(refusal(&mut host, &offer).contains("has taken 100"));
    observes(&mut host, &blob).unwrap();
    assert_eq!(host.status(PATIENCE).unwrap().counter, 100);

    // One key takes over from the other.
    let other = bench.policy_key("policy-2.key");
    let takes_over = Manifest {
        revokes: Some(key.id()),
        ..says(&blob, 101)
    };
    host.upload(&signed(&other, &blob, &takes_over), &mut |_| ())
        .unwrap();
    let late = signed(&key, &blob, &says(&blob, 200));
    assert!(refusal(&mut host, &late).contains("revoked"));
    // Signatures take the most stack of all that a node does: some is left, and more was used than a
    // control step alone takes.
    let counters = host.status(PATIENCE).unwrap().counters;
    let (used, size) = (counters.stack_used, counters.stack_size);
    println!("{used} of {size} bytes of stack were used");
    assert!(
        size == 16 << 10 && (4 << 10..size - 1024).contains(&used),
        "{used} of {size}"
    );
    // It goes on: told by the node, after a restart that takes a right of its own.
    assert!(matches!(
        host.ask(&Command::Restart, PATIENCE),
        Ok(Report::Hello(_))
    ));
    assert!(refusal(&mut host, &late).contains("revoked"));
}

#[test]
fn a_board_tells_a_key_for_less_or_for_another_fleet() {
    let Some(bench) = Bench::new() else { return };
    let (_board, session) = bench.board();
    let mut observer = session.with_key(bench.grant(Rights::OBSERVE));
    observer.hello(PATIENCE).unwrap();
    let blob = shipped();
    assert!(refusal(&mut observer, &blob.offer()).contains("right"));
    // Of the right length, and not the link's.
    let grant = parse_link_key(&bench.read("policy.key")).unwrap();
    let mut wrong = observer.with_key(grant);
    let error = wrong.hello(Duration::from_secs(2)).unwrap_err();
    assert!(matches!(error, SessionError::WrongKey), "{error}");
}
