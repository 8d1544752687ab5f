//! Parsing: good blobs in place, bad ones refused by name, any bytes without a panic.

mod sample;

use agent_core::policy::{
    Activation, Dense, EncodeError, FORMAT, Fusion, Header, Norm, PROLOGUE, Policy, PolicyError,
    encode,
};
use proptest::prelude::*;
use sample::{blob, bytes, header, layers, published};

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
fn the_format_does_not_change_by_accident() {
    let blob = published(1);
    let bytes = bytes(&blob);
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
    // A digest of all bytes: change it only together with FORMAT and docs/policy-format.md.
    assert_eq!((FORMAT, blob.1, blob.0[7]), (1, GOLDEN.0, GOLDEN.1));
}

/// Length and CRC-32 of `published(1)`.
const GOLDEN: (usize, u32) = (46_128, 0x65a3_5069);

#[test]
fn a_truncated_blob_names_the_missing_section() {
    let blob = published(1);
    let bytes = bytes(&blob);
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
    assert_eq!(Policy::parse(&[]).unwrap_err(), PolicyError::NotAPolicy);
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
    assert_eq!(
        refusal(&(newer, length)),
        PolicyError::UnknownFormat { found: 2 }
    );
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
    let cases: [(&str, Change); 14] = [
        ("sensing.axes", |h| h.sensing.axes = 2),
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
    for (name, change) in cases {
        let mut header = header(20);
        change(&mut header);
        let mut buffer = [0; 64];
        let Err(EncodeError::Invalid(PolicyError::Field { name: named, .. })) =
            encode(&header, &[], &mut buffer)
        else {
            panic!("{name} was not refused");
        };
        assert_eq!(named, name);
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
        let (mut words, length) = published(1);
        for (at, value) in changes {
            // Mostly single bits and bytes: whole random words rarely get past the first check.
            words[at] ^= (value & 0xff) << (shift % 25);
        }
        let forged = resealed(words, length);
        if let Ok(policy) = Policy::parse(bytes(&forged)) {
            let limits = policy.header().limits;
            let mut workspace = vec![0.0; policy.workspace_len()];
            let cells = policy.patch_len();
            let field = vec![1.0; cells];
            let target = vec![0.0; if policy.header().sensing.target { cells } else { 0 }];
            let span = agent_core::message::Span { first: 0, last: cells as u16 - 1 };
            let patch = agent_core::message::Patch::line(&field, &target, span);
            let mut agent = agent_core::agent::Agent::new(policy, &mut workspace).unwrap();
            let action = agent.step(&patch, [0.5, 0.0], 1);
            prop_assert!(action.force.abs() <= limits.force.unwrap_or(0.0));
            prop_assert!(action.velocity[0].abs() <= limits.velocity.unwrap_or(0.0));
        }
    }
}
