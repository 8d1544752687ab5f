//! Parsing: good blobs in place, bad ones refused by name, any bytes without a panic.

mod sample;

use agent_core::agent::Agent;
use agent_core::policy::{
    Activation, Channel, Dense, Disc, EncodeError, FORMAT, FieldName, Fusion, Header, Norm,
    PROLOGUE, Policy, PolicyError, WEIGHTS_ALIGN, encode,
};
use proptest::prelude::*;
use sample::{Shown, blob, bytes, header, layers, plane, plane_header, published};

/// The blob with its checksum made right again after a change.
fn resealed(mut words: Vec<u32>, length: usize) -> (Vec<u32>, usize) {
    let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..length];
    let mut digest = agent_core::message::CRC32.digest();
    digest.update(&bytes[..PROLOGUE - 4]);
    digest.update(&bytes[PROLOGUE..]);
    let crc = digest.finalize();
    words[7] = crc;
    (words, length)
}

fn refusal(words: &(Vec<u32>, usize)) -> PolicyError {
    Policy::parse(bytes(words)).unwrap_err()
}

#[test]
fn a_blob_is_read_in_place_and_says_what_it_is() {
    let blob = published(1);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let header = policy.header();
    assert_eq!(
        (header.problem, header.provenance.tool),
        ("heat-1d", "test")
    );
    // The problem's name is the blob's own bytes, not a copy.
    let range = bytes(&blob).as_ptr_range();
    assert!(range.contains(&header.problem.as_ptr()));
    // 10 cells, 64 + 32 branch and trunk outputs, twice the fused 96.
    assert_eq!(policy.workspace_len(), 10 + 96 + 2 * 96);
    assert_eq!(header.workspace as usize, policy.workspace_len());
    assert_eq!(
        policy.macs(),
        40 * 64 + 64 * 64 + 8 * 32 + 32 * 32 + 96 * 32 + 32 * 2
    );
}

#[test]
fn a_policy_of_the_plane_says_what_it_needs() {
    let blob = plane(1);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    // A window of 6 and its halo; 16 + 8 branch and trunk outputs, twice the 36 + 6 features.
    assert_eq!(policy.patch_len(), 8 * 8);
    assert_eq!(policy.workspace_len(), 64 + 24 + 2 * 42);
    assert_eq!(policy.macs(), 42 * 16 + 8 * 8 + 24 * 3);
    assert_eq!(policy.header().sensing.wide, Some([2, 3]));
    assert_eq!(policy.header().limits.keep_out[1].centre, [0.5, 0.5]);
}

/// The blob as format 1 has it: without the header's extension, which must be empty.
fn format_1(blob: &(Vec<u32>, usize)) -> (Vec<u32>, usize) {
    let from = bytes(blob);
    let word = |at: usize| u32::from_le_bytes(from[at..at + 4].try_into().unwrap()) as usize;
    let (header, weights_at) = (word(12), word(16));
    // No wide view, no discs.
    assert_eq!(from[PROLOGUE + header - 2..][..2], [0, 0]);
    let header = header - 2;
    let new_at = (PROLOGUE + header).next_multiple_of(WEIGHTS_ALIGN);
    let length = new_at + word(20);
    let mut words = vec![0u32; length / 4];
    let to: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    to[..PROLOGUE + header].copy_from_slice(&from[..PROLOGUE + header]);
    to[new_at..].copy_from_slice(&from[weights_at..]);
    words[2..7].copy_from_slice(&[1, header, new_at, word(20), length].map(|x| x as u32));
    resealed(words, length)
}

#[test]
fn the_format_does_not_change_by_accident() {
    // The first bytes are those of format 1.
    let blob = published(1);
    let old = format_1(&blob);
    let bytes = bytes(&old);
    assert_eq!(&bytes[..8], b"SWARMPOL");
    assert_eq!(bytes[8..12], 1u32.to_le_bytes());
    // "heat-1d", 1 axis, window 8, target, channels error and slope, 20 samples, limit 1e4.
    let mut head = vec![7];
    head.extend(b"heat-1d");
    head.extend([1, 8, 1, 2, 0, 1, 20]);
    head.extend(1e4f32.to_le_bytes());
    // Two branch layers: inputs, outputs (varints), soft norm, tanh.
    head.extend([2, 40, 64, 1, 1, 64, 64, 1, 1]);
    assert_eq!(&bytes[PROLOGUE..PROLOGUE + head.len()], head);
    // Biases of the first layer open the weight section, on a 16-byte boundary.
    let at = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    assert_eq!(at % 16, 0);
    let first = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(first, layers(20, 1)[0].bias[0]);
    assert_eq!((old.1, old.0[7]), GOLDEN_1);
    // Digests of all bytes: change them only together with FORMAT and docs/policy-format.md.
    assert_eq!((FORMAT, blob.1, blob.0[7]), (2, GOLDEN.0, GOLDEN.1));
    let plane = plane(1);
    assert_eq!((plane.1, plane.0[7]), GOLDEN_PLANE);
}

/// Length and CRC-32 of `published(1)` in format 1.
const GOLDEN_1: (usize, u32) = (46_128, 0x65a3_5069);
/// The same in format 2.
const GOLDEN: (usize, u32) = (46_144, 0x6d83_5414);
/// Those of `plane(1)`.
const GOLDEN_PLANE: (usize, u32) = (4_000, 0x2807_1922);

#[test]
fn the_extension_follows_the_header_of_format_1() {
    let blob = plane(1);
    let bytes = bytes(&blob);
    let end = PROLOGUE + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    // After the provenance: 2 × 3 cells of the whole, then two discs.
    let mut extension = vec![1, 2, 3, 2];
    for value in [0.3, 0.3, 0.06, 0.5, 0.5, 0.06f32] {
        extension.extend(value.to_le_bytes());
    }
    assert_eq!(&bytes[end - extension.len()..end], extension);
    assert_eq!(
        bytes[end - extension.len() - 2..][..2],
        [1, 0],
        "seed, steps"
    );
}

#[test]
fn a_blob_of_format_1_is_the_same_policy() {
    let new = published(1);
    let old = format_1(&new);
    let [old, new] = [&old, &new].map(|blob| Policy::parse(bytes(blob)).unwrap());
    assert_eq!(old.header(), new.header());
    let actions = [old, new].map(|policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let shown = Shown::all(&policy, 0.7);
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        agent.step(&shown.patch(), [0.4, 0.0], 1)
    });
    assert_eq!(actions[0], actions[1]);
}

#[test]
fn a_truncated_blob_names_the_missing_section() {
    for blob in [published(1), plane(1)] {
        truncate(bytes(&blob));
    }
    assert_eq!(Policy::parse(&[]).unwrap_err(), PolicyError::NotAPolicy);
}

fn truncate(bytes: &[u8]) {
    for length in 1..bytes.len() {
        let Err(PolicyError::Truncated { section, found, .. }) = Policy::parse(&bytes[..length])
        else {
            panic!("{length} bytes were not called truncated");
        };
        assert_eq!(found, length);
        let header_end = PROLOGUE + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let expected = match length {
            l if l < PROLOGUE => "prologue",
            l if l < header_end => "header",
            _ => "weights",
        };
        assert_eq!(section, expected, "{length} bytes");
    }
}

#[test]
fn damage_foreign_files_and_newer_formats_are_told_apart() {
    let (words, length) = published(1);
    let mut damaged = words.clone();
    damaged[length / 8] ^= 1;
    assert!(matches!(
        refusal(&(damaged, length)),
        PolicyError::Checksum { .. }
    ));

    let mut foreign = words.clone();
    foreign[0] = u32::from_le_bytes(*b"\x7fELF");
    assert_eq!(refusal(&(foreign, length)), PolicyError::NotAPolicy);

    let mut newer = words.clone();
    newer[2] = u32::from(FORMAT) + 1;
    let refused = refusal(&(newer, length));
    assert_eq!(refused, PolicyError::UnknownFormat { found: 3 });
    assert!(refused.to_string().contains("formats 1 to 2"), "{refused}");
    // An extension that format 1 does not know, and one that format 2 misses.
    let mut older = words.clone();
    older[2] = 1;
    assert!(matches!(
        refusal(&resealed(older, length)),
        PolicyError::Field {
            name: FieldName::HeaderLength,
            ..
        }
    ));
    let (mut bare, bare_length) = format_1(&(words.clone(), length));
    bare[2] = 2;
    assert_eq!(refusal(&resealed(bare, bare_length)), PolicyError::Header);
    assert!(
        refusal(&(words.clone(), length + 4))
            .to_string()
            .contains("bytes but")
    );

    let mut shifted = vec![0u8; length + 1];
    shifted[1..].copy_from_slice(bytes(&(words, length)));
    // One of two neighbouring addresses is odd.
    let odd = usize::from((shifted.as_ptr() as usize).is_multiple_of(2));
    shifted.copy_within(1.., odd);
    assert_eq!(
        Policy::parse(&shifted[odd..odd + length]).unwrap_err(),
        PolicyError::Misaligned
    );
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    let mut numbers = layers(20, 1);
    numbers[0].bias[3] = f32::NAN;
    assert_eq!(
        refusal(&blob(&header(20), &numbers)),
        PolicyError::Weight { index: 3 }
    );
}

#[test]
fn every_field_that_cannot_be_run_is_named() {
    type Change = fn(&mut Header<'static>);
    let on_the_line: &[(&str, Change)] = &[
        ("sensing.axes", |h| h.sensing.axes = 3),
        ("sensing.axes", |h| h.sensing.axes = 0),
        ("sensing.wide", |h| h.sensing.wide = Some([2, 3])),
        ("limits.keep_out", |h| {
            h.limits.keep_out = plane_header().limits.keep_out
        }),
        ("sensing.window", |h| h.sensing.window = 0),
        ("sensing.samples", |h| h.sensing.samples = 5000),
        ("sensing.channels", |h| h.sensing.channels.clear()),
        ("sensing.error_limit", |h| {
            h.sensing.error_limit = f32::INFINITY
        }),
        ("limits.force", |h| h.limits.force = Some(-1.0)),
        ("limits.velocity", |h| h.limits.velocity = Some(f32::NAN)),
        ("limits.low, limits.high", |h| h.limits.high = h.limits.low),
        ("timing.period_us", |h| h.timing.period_us = 0),
        ("timing.late_us", |h| {
            h.timing.late_us = h.timing.fail_safe_us
        }),
        ("network.frequencies", |h| {
            h.network.frequencies[0] = f32::NAN
        }),
        ("network.trunk", |h| h.network.trunk[1].inputs = 31),
        ("network.fusion", |h| h.network.fusion = Fusion::Multiply),
        ("network.head", |h| h.limits.velocity = None),
    ];
    let in_the_plane: &[(&str, Change)] = &[
        // Slopes are the network's own business there.
        ("sensing.channels", |h| {
            let _ = h.sensing.channels.push(Channel::Slope);
        }),
        ("sensing.channels", |h| {
            h.sensing.channels[0] = Channel::Slope
        }),
        ("sensing.samples", |h| h.sensing.samples = 5),
        ("sensing.window", |h| h.sensing.window = 65),
        ("sensing.wide", |h| h.sensing.wide = Some([0, 3])),
        ("sensing.wide", |h| h.sensing.wide = Some([65, 64])),
        ("limits.low, limits.high", |h| h.limits.high[1] = 0.0),
        ("limits.keep_out", |h| h.limits.keep_out[1] = disc(0.5, 0.0)),
        ("limits.keep_out", |h| {
            h.limits.keep_out[1] = disc(f32::NAN, 0.1)
        }),
        // The domain reaches to 1.25.
        ("limits.keep_out", |h| {
            h.limits.keep_out[0] = disc(0.5, 1.2e-3)
        }),
        ("network.branch", |h| h.sensing.wide = None),
        // Two sines and two cosines are those of one axis.
        ("network.trunk", |h| h.network.trunk[0].inputs = 4),
        // Force and one velocity.
        ("network.head", |h| h.network.head[0].outputs = 2),
    ];
    let line = on_the_line.iter().map(|case| (header(20), case));
    let plane = in_the_plane.iter().map(|case| (plane_header(), case));
    for (mut header, &(name, change)) in line.chain(plane) {
        change(&mut header);
        let mut buffer = [0; 64];
        let Err(EncodeError::Invalid(PolicyError::Field { name: named, .. })) =
            encode(&header, &[], &mut buffer)
        else {
            panic!("{name} was not refused");
        };
        assert_eq!(named.as_str(), name);
    }
}

fn disc(x: f32, radius: f32) -> Disc {
    Disc {
        centre: [x, 0.5],
        radius,
    }
}

#[test]
fn a_layer_of_the_wrong_shape_is_not_written() {
    let mut numbers = layers(20, 1);
    numbers[2].bias.pop();
    let numbers: Vec<_> = numbers
        .iter()
        .map(|l| agent_core::policy::DenseWeights {
            weights: &l.weights,
            bias: &l.bias,
        })
        .collect();
    let mut buffer = vec![0; 1 << 15];
    let error = encode(&header(20), &numbers, &mut buffer).unwrap_err();
    assert_eq!(error, EncodeError::Shape { layer: 2 });
    let error = encode(&header(20), &numbers[..2], &mut buffer).unwrap_err();
    assert_eq!(error, EncodeError::Shape { layer: 2 });
}

#[test]
fn product_fusion_and_a_policy_without_a_trunk_are_runnable() {
    let dense = |inputs, outputs| Dense {
        inputs,
        outputs,
        norm: Norm::None,
        activation: Activation::Relu,
    };
    let mut h = header(8);
    h.network.branch = [dense(16, 32)].into_iter().collect();
    h.network.trunk = [dense(8, 32)].into_iter().collect();
    h.network.fusion = Fusion::Multiply;
    h.network.head = [dense(32, 2)].into_iter().collect();
    let layer = |inputs: usize, outputs: usize| sample::Layer {
        inputs,
        weights: vec![0.1; inputs * outputs],
        bias: vec![0.0; outputs],
    };
    let words = blob(&h, &[layer(16, 32), layer(8, 32), layer(32, 2)]);
    assert!(Policy::parse(bytes(&words)).is_ok());
    h.network.frequencies.clear();
    h.network.trunk.clear();
    let words = blob(&h, &[layer(16, 32), layer(32, 2)]);
    assert!(Policy::parse(bytes(&words)).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_parse_or_are_refused(noise in proptest::collection::vec(any::<u32>(), 0..200)) {
        let _ = Policy::parse(bytemuck::cast_slice(&noise));
    }

    /// Past the checksum, where a deliberate forger would be.
    #[test]
    fn forged_blobs_parse_or_are_refused_and_what_parses_runs_within_its_limits(
        changes in proptest::collection::vec((2usize..64, any::<u32>()), 1..4),
        shift in 0u32..32,
    ) {
        for (mut words, length) in [published(1), plane(1)] {
            for (at, value) in &changes {
                // Mostly single bits and bytes: whole random words rarely get past the first check.
                words[*at] ^= (value & 0xff) << (shift % 25);
            }
            let forged = resealed(words, length);
            let Ok(policy) = Policy::parse(bytes(&forged)) else {
                continue;
            };
            let limits = policy.header().limits.clone();
            let mut workspace = vec![0.0; policy.workspace_len()];
            let shown = Shown::all(&policy, 1.0);
            let mut agent = Agent::new(policy, &mut workspace).unwrap();
            let action = agent.step(&shown.patch(), [0.5, 0.0], 1);
            let limit = limits.velocity.unwrap_or(0.0);
            prop_assert!(action.force.abs() <= limits.force.unwrap_or(0.0));
            prop_assert!(action.velocity.iter().all(|v| v.abs() <= limit));
        }
    }
}
