//! Blobs that were written once and are read forever: one file of each format, and of formats 3 and 4
//! one for each thing that they brought.

use crate::sample;

use agent_core::agent::AgentState;
use agent_core::message::CRC32;
use agent_core::policy::{Activation, Channel, Encoding, FORMAT, Governor, Header, Norm, Policy};
use sample::{
    Random, Shown, blob, bytes, dense, header, int8_plane_header, layers_for, remembering, unpacked,
};

/// The digest of all actions on a fixed sequence of observations, most of them noise between walls,
/// some broken, some missing, with a silence now and then that is long enough to fail safe.
fn walk(policy: &Policy) -> u32 {
    let limits = &policy.header().limits;
    let mut workspace = vec![f32::NAN; policy.workspace_len()];
    let mut state = AgentState::new();
    let mut random = Random(2024);
    let mut digest = CRC32.digest();
    let mut now_us = 0;
    for step in 0..300 {
        let mut shown = Shown::noise(policy, 3.0, &mut random);
        if step % 13 == 5 {
            shown.field.fill(f32::NAN);
        }
        let mut place = |axis: usize| {
            let share = 0.5 + 0.5 * random.next();
            limits.low[axis] + share * (limits.high[axis] - limits.low[axis])
        };
        let position = [place(0), place(1)];
        now_us += match step % 50 {
            49 => 2 * u64::from(policy.header().timing.fail_safe_us),
            _ => u64::from(policy.header().timing.period_us),
        };
        let action = match step % 7 == 3 || step % 50 == 49 {
            true => state.idle(policy, now_us),
            false => state.step(policy, &mut workspace, &shown.at(position, now_us)),
        };
        let [vx, vy] = action.velocity;
        for value in [action.force, vx, vy] {
            digest.update(&value.to_bits().to_le_bytes());
        }
        digest.update(&[action.mode as u8]);
    }
    digest.finalize()
}

/// One file: what it stands for, and what comes of it.
struct Golden {
    name: &'static str,
    bytes: &'static [u8],
    stands_for: fn(&Header) -> bool,
    actions: u32,
}

macro_rules! golden {
    ($name:literal, $stands_for:expr, $actions:expr) => {
        Golden {
            name: $name,
            bytes: include_bytes!(concat!("golden/", $name)),
            stands_for: $stands_for,
            actions: $actions,
        }
    };
}

const FILES: [Golden; 10] = [
    // The policy that was shipped for heat in one dimension when there was nothing but format 1.
    golden!(
        "format-1.policy",
        |h| h.problem.as_str() == "heat-1d" && h.sensing.wide.is_none() && h.probe.is_none(),
        0xacfa_0299
    ),
    golden!(
        "format-2-plane.policy",
        |h| h.sensing.wide == Some([2, 3]) && h.limits.keep_out.len() == 2 && h.probe.is_none(),
        0x8a83_56b3
    ),
    golden!(
        "format-3-line.policy",
        |h| {
            (h.limits.force_rate, h.limits.velocity_rate) == (Some(4e3), Some(200.0))
                && h.probe.is_some()
        },
        0x3cc5_630e
    ),
    golden!(
        "format-3-convolutions.policy",
        |h| {
            h.sensing.channels == [Channel::Error, Channel::Slope, Channel::Across]
                && h.network.convolutions.len() == 2
                && h.network.flatten == Norm::Soft
                && h.sensing.wide.is_some()
                && h.probe.is_some()
        },
        0x73d7_1125
    ),
    golden!(
        "format-3-int8-line.policy",
        |h| h.sensing.axes == 1 && h.network.encoding == Encoding::Int8 && h.probe.is_some(),
        0x171f_56c1
    ),
    golden!(
        "format-3-int8-plane.policy",
        |h| {
            h.sensing.axes == 2
                && h.network.encoding == Encoding::Int8
                && h.limits.keep_out.len() == 2
                && h.probe.is_some()
        },
        0x1acc_094a
    ),
    golden!(
        "format-4-force.policy",
        |h| {
            h.limits.governor == GOVERNOR && h.limits.force.is_some() && h.limits.velocity.is_some()
        },
        0x7cf2_caf5
    ),
    golden!(
        "format-4-velocity.policy",
        |h| {
            h.limits.governor == GOVERNOR
                && h.limits.force.is_none()
                && h.limits.velocity.is_some()
                && h.sensing.axes == 2
        },
        0x8e50_d3ef
    ),
    golden!(
        "format-5-line.policy",
        |h| h.network.remembered() == 2 && h.limits.governor == BANDED,
        0x016d_3513
    ),
    golden!(
        "format-5-int8-plane.policy",
        |h| h.network.remembered() == 3 && h.network.encoding == Encoding::Int8,
        0x99f6_2e7e
    ),
];

/// That of the files of format 4.
const GOVERNOR: Option<Governor> = Some(Governor {
    growth: 1.01,
    floor: 0.125,
    band: 0.0,
});

/// That of the file of format 5.
const BANDED: Option<Governor> = Some(Governor {
    growth: 1.01,
    floor: 0.125,
    band: 0.25,
});

#[test]
fn every_format_is_read_forever() {
    for golden in &FILES {
        let blob = sample::read(golden.bytes);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        assert!((golden.stands_for)(policy.header()), "{}", golden.name);
        let mut workspace = vec![f32::NAN; policy.workspace_len()];
        assert!(policy.self_test(&mut workspace), "{}", golden.name);
    }
}

/// The format fixes the arithmetic: these never change.
#[test]
#[cfg_attr(miri, ignore = "thousands of steps")]
fn the_actions_of_a_blob_are_the_same_bits_forever() {
    let found = FILES.each_ref().map(|golden| {
        let blob = sample::read(golden.bytes);
        walk(&Policy::parse(bytes(&blob)).unwrap())
    });
    let expected = FILES.each_ref().map(|golden| golden.actions);
    assert_eq!(found, expected, "{found:#010x?}");
}

#[test]
fn what_was_read_is_written_again_to_the_byte() {
    let newest = |g: &&Golden| u16::from(g.bytes[8]) == FORMAT;
    let mut compared = 0;
    for golden in FILES.iter().filter(newest) {
        let read = sample::read(golden.bytes);
        let policy = Policy::parse(bytes(&read)).unwrap();
        if policy.header().network.encoding == Encoding::Int8 {
            continue; // from which nobody can tell the weights they were made of
        }
        let written = blob(policy.header(), &unpacked(&policy));
        assert!(bytes(&written) == golden.bytes, "{}", golden.name);
        compared += 1;
    }
    assert_eq!(compared, 1);
}

/// Otherwise their actions would say nothing about it, nor about their bands.
#[test]
fn the_governors_of_the_files_have_something_to_do() {
    let mut compared = [0; 2];
    for golden in &FILES {
        let read = sample::read(golden.bytes);
        let policy = Policy::parse(bytes(&read)).unwrap();
        let Some(governor) = policy.header().limits.governor else {
            continue;
        };
        let other = |governor| {
            let mut header = policy.header().clone();
            header.limits.governor = governor;
            let other = blob(&header, &unpacked(&policy));
            walk(&Policy::parse(bytes(&other)).unwrap())
        };
        assert_ne!(other(None), golden.actions, "{}", golden.name);
        compared[0] += 1;
        if governor.band > 0.0 {
            let bandless = Governor {
                band: 0.0,
                ..governor
            };
            assert_ne!(other(Some(bandless)), golden.actions, "{}", golden.name);
            compared[1] += 1;
        }
    }
    assert_eq!(compared, [3, 1]);
}

/// A line with a small network.
fn small_line() -> Header<'static> {
    use Activation::{Identity, Tanh};
    let mut header = header(8);
    let network = &mut header.network;
    network.branch = [
        dense(16, 8, Norm::Soft, Tanh),
        dense(8, 8, Norm::Soft, Tanh),
    ]
    .into_iter()
    .collect();
    network.trunk = [dense(8, 4, Norm::None, Tanh)].into_iter().collect();
    network.head = [dense(12, 2, Norm::None, Identity)].into_iter().collect();
    header
}

/// Writes the files of format 5. They are there: run this for a new format only, and then let it
/// write that one's files beside these.
#[test]
#[ignore = "writes files that must never change"]
fn write_the_files_of_format_5() {
    assert_eq!(FORMAT, 5);
    let mut line = remembering(small_line(), 2);
    line.limits.governor = BANDED;
    let int8_plane = remembering(int8_plane_header(), 3);
    for (name, header) in [("line", line), ("int8-plane", int8_plane)] {
        let blob = blob(&header, &layers_for(&header, 3));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
        std::fs::write(format!("{folder}/format-5-{name}.policy"), bytes(&blob)).unwrap();
    }
}
