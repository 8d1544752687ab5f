//! The real firmware images in emulated boards against the same agent on the host, bit for bit.
//! `cargo xtask test` builds the images and names them in `FIRMWARE_ELF` (Cortex-M4F),
//! `FIRMWARE_ELF_AN500` (Cortex-M7), `FIRMWARE_ELF_AN505` (Cortex-M33) and `FIRMWARE_ELF_RV32` (RISC-V).

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::message::{Command, Observation, Overview, Patch, Report, Samples, Span};
use agent_core::policy::Encoding;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::ClosedLoop;
use agent_sim::link::{Link, LinkError};
use agent_sim::sense::View;
use agent_sim::swarm::Swarm;
use artifacts::policy_file::PolicyFile;
use node_link::{BoardOptions, EmulatedBoard, Machine, Offer, Session};
use problem::Problem;
use problem::published::by_name;
use problem::random_field::episode_rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Generous: on a busy machine a board is slow.
const PATIENCE: Duration = Duration::from_secs(20);

fn problem() -> &'static Problem {
    by_name("heat-1d").unwrap()
}

/// A booted Cortex-M4F board and the line to it, or nothing (loudly) where there is no image.
fn board() -> Option<(EmulatedBoard, Session)> {
    boot(Machine::An386, "FIRMWARE_ELF")
}

fn boot(machine: Machine, variable: &str) -> Option<(EmulatedBoard, Session)> {
    match std::env::var_os(variable) {
        Some(elf) => {
            let options = BoardOptions {
                machine,
                ..BoardOptions::new(elf)
            };
            Some(EmulatedBoard::start(&options).expect("the board boots"))
        }
        None if std::env::var("CI").is_ok_and(|v| v == "true") => {
            panic!("{variable} is not set: run the tests with `cargo xtask test`")
        }
        None => {
            // Written past the test runner, which hides what passing tests print.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: no {variable}; `cargo xtask test` builds the image and runs this"
            );
            None
        }
    }
}

fn bits(action: &Action) -> ([u32; 3], Mode) {
    let [x, y] = action.velocity;
    ([action.force, x, y].map(f32::to_bits), action.mode)
}

/// Mostly fields as they occur; then anything a float can be.
fn sample(rng: &mut ChaCha8Rng, wild: bool) -> f32 {
    const EXTREMES: [f32; 10] = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-40,
    ];
    match wild {
        false => rng.random_range(-4.0..4.0),
        true => match rng.random_range(0..4) {
            0 => EXTREMES[rng.random_range(0..EXTREMES.len())],
            1 => f32::from_bits(rng.next_u32()),
            _ => rng.random_range(-1e3..1e3),
        },
    }
}

/// How many patches each policy is tried on: 1,000, or as many as `BOARD_PATCHES` says, which `cargo xtask
/// test` sets to 300 where it is not set.
fn patches() -> u32 {
    let asked = std::env::var("BOARD_PATCHES").ok();
    asked.map_or(1_000, |n| n.parse().expect("BOARD_PATCHES is a number"))
}

/// Every published problem's policy, in both encodings, and policies that remember.
fn policies() -> impl Iterator<Item = PolicyFile> {
    macro_rules! golden {
        ($name:literal) => {{
            let bytes = include_bytes!(concat!("../../agent-core/tests/golden/", $name));
            PolicyFile::new(bytes, $name.to_owned())
        }};
    }
    let shipped = problem::published::measured().flat_map(|problem| {
        let shipped = PolicyFile::shipped(problem).unwrap();
        [Encoding::F32, Encoding::Int8].map(|encoding| shipped.recoded(encoding).unwrap())
    });
    shipped.chain([
        golden!("format-5-line.policy"),
        golden!("format-5-int8-plane.policy"),
    ])
}

#[test]
fn all_policies_give_the_same_bits_on_the_board_and_on_the_host() {
    // A board takes minutes for all of them, and one core: as many boards as there are cores.
    let boards = thread::available_parallelism().map_or(1, NonZero::get);
    let left = Mutex::new(policies());
    let next = || left.lock().unwrap().next();
    let on_a_board = || {
        let (_board, mut node) = board()?;
        let mut modes = BTreeSet::new();
        while let Some(file) = next() {
            compare(&mut node, &file, patches(), &mut modes);
        }
        Some(modes)
    };
    let modes: Option<Vec<_>> = thread::scope(|scope| {
        let boards: Vec<_> = (0..boards).map(|_| scope.spawn(on_a_board)).collect();
        boards
            .into_iter()
            .map(|board| board.join().unwrap())
            .collect()
    });
    let Some(modes) = modes else { return };
    let modes: BTreeSet<_> = modes.into_iter().flatten().collect();
    // The comparison went through every state an armed agent has.
    assert!(
        ["Active", "Holding", "FailedSafe"]
            .iter()
            .all(|m| modes.contains(*m)),
        "{modes:?}"
    );
}

/// A Cortex-M7 runs the M4F's instructions; a Cortex-M33 runs portable code, the host's; a core of RISC-V
/// without floats runs the same, and each operation on floats in integers. So a few
/// patches of each policy will do: together 800, of which one in twenty comes late.
#[test]
fn the_other_cores_give_the_same_bits_too() {
    for (machine, variable) in [
        (Machine::An500, "FIRMWARE_ELF_AN500"),
        (Machine::An505, "FIRMWARE_ELF_AN505"),
        (Machine::VirtRv32, "FIRMWARE_ELF_RV32"),
    ] {
        let Some((_board, mut node)) = boot(machine, variable) else {
            return;
        };
        assert_eq!(node.status(PATIENCE).unwrap().board, machine.name());
        let mut modes = BTreeSet::new();
        for file in policies() {
            compare(&mut node, &file, 50, &mut modes);
        }
        assert!(modes.contains("FailedSafe"), "{modes:?}");
    }
}

/// One agent on the board and on the host, shown the same.
fn compare(node: &mut Session, file: &PolicyFile, patches: u32, modes: &mut BTreeSet<String>) {
    let policy = file.parse().unwrap();
    let hello = node
        .upload(&Offer::unsigned(file.bytes()), &mut |_| ())
        .unwrap();
    assert_eq!(hello.policy, Some(trust::policy_id(file.bytes())));
    let header = policy.header();
    let (sensing, limits) = (&header.sensing, &header.limits);
    let with_target = |cells| if sensing.target { cells } else { 0 };
    let sizes = [
        policy.patch_len(),
        with_target(policy.patch_len()),
        sensing.wide_len(),
        with_target(sensing.wide_len()),
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut host = AgentState::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut now_us = 0;
    for step in 0..patches {
        // Now and then anything in every cell, or in one of them.
        let wild = step % 4 == 2;
        let one = step % 4 == 3;
        let mut values = sizes.map(|n| (0..n).map(|_| sample(&mut rng, wild)).collect::<Vec<_>>());
        if one {
            let at = rng.random_range(0..values[0].len());
            values[0][at] = sample(&mut rng, true);
        }
        let [field, target, wide_field, wide_target] = &values;
        let mut place = [0.0; 2];
        let domain = limits.low.iter().zip(limits.high);
        let axes = place.iter_mut().zip(domain).take(sensing.axes.into());
        for (x, (low, high)) in axes {
            *x = match step % 16 == 2 {
                true => sample(&mut rng, true),
                false => rng.random_range(*low..=high),
            };
        }
        let last = sensing.window + 1;
        let mut span = || Span {
            first: rng.random_range(0..=last / 2),
            last: rng.random_range(1 + last / 2..=last),
        };
        let inside = [span(), span()];
        // Gaps long enough to hold, and now and then to fail safe.
        let period = u64::from(header.timing.period_us);
        now_us += period * if rng.random_bool(0.05) { 50 } else { 1 };
        let observation = Observation {
            now_us,
            position: place,
            patch: Patch {
                field: Samples::new(field),
                target: Samples::new(target),
                inside,
                wide: Overview {
                    field: Samples::new(wide_field),
                    target: Samples::new(wide_target),
                },
            },
        };
        let expected = host.step(&policy, &mut workspace, &observation);
        modes.insert(format!("{:?}", expected.mode));
        match node.ask(&Command::Observe(observation), PATIENCE).unwrap() {
            Report::Action { action, .. } => {
                let name = file.origin();
                assert_eq!(bits(&action), bits(&expected), "{name}: {observation:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// An agent on the board, as the swarm sees it.
struct OnBoard(Session, Option<Action>);

impl Link for OnBoard {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        match self.0.ask(&Command::Observe(*observation), PATIENCE) {
            Ok(Report::Action { action, .. }) => self.1 = Some(action),
            other => return Err(LinkError::Closed(format!("{other:?}"))),
        }
        Ok(())
    }

    fn receive(&mut self, _: u64) -> Result<Option<Action>, LinkError> {
        Ok(self.1.take())
    }
}

#[test]
fn a_closed_loop_over_the_board_is_the_in_process_one_bit_for_bit() {
    let Some((_board, mut node)) = board() else {
        return;
    };
    let file = PolicyFile::shipped(problem()).unwrap();
    let policy = file.policy(problem()).unwrap();
    node.upload(&Offer::unsigned(file.bytes()), &mut |_| ())
        .unwrap();
    let episode = (problem().draw)(problem(), &mut episode_rng(3, 0));
    let steps = 100;

    let mut in_process = Vec::new();
    Experiment {
        problem: problem(),
        controller: Controller::Policy(&policy),
        agents: 1,
        steps,
        faults: &[],
        seed: 0,
        plant: None,
    }
    .run(&episode, &mut |now| in_process.push(now.field.to_vec()))
    .unwrap();

    let swarm = Swarm::new(
        problem(),
        View::of(&policy),
        vec![OnBoard(node, None)],
        vec![[0.5, 0.0]],
    );
    let mut run = ClosedLoop::new(problem(), &episode, swarm);
    for expected in in_process.iter().skip(1) {
        run.advance().unwrap();
        assert!(run.swarm().lost().is_empty(), "{:?}", run.swarm().lost());
        assert!(run.snapshot().field == expected);
    }
}

#[test]
fn a_board_refuses_damaged_policies_and_survives_garbage() {
    let Some((_board, mut node)) = board() else {
        return;
    };
    let file = PolicyFile::shipped(problem()).unwrap();
    let mut damaged = file.bytes().to_vec();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let mut refusal = |bytes: &[u8]| {
        let refused = node.upload(&Offer::unsigned(bytes), &mut |_| ());
        refused.unwrap_err().to_string()
    };
    let error = refusal(&damaged);
    assert!(error.contains("damaged"), "{error}");
    let error = refusal(&file.bytes()[..middle]);
    assert!(error.contains("cut off"), "{error}");

    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut garbage = vec![0u8; 20_000];
    rng.fill_bytes(&mut garbage);
    // No zero-free run is a valid frame: its CRC would have to fit.
    node.send_bytes(&garbage).unwrap();
    let hello = node
        .upload(&Offer::unsigned(file.bytes()), &mut |_| ())
        .unwrap();
    assert_eq!(hello.policy, Some(trust::policy_id(file.bytes())));
}
