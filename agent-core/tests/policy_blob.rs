//! Parsing: good blobs in place, bad ones refused by name, any bytes without a panic.

use crate::sample;

use agent_core::agent::{Agent, AgentState};
use agent_core::message::Span;
use agent_core::policy::{
    Activation, Channel, Dense, Disc, EncodeError, Encoding, FORMAT, Fault, FieldName, Fusion,
    Governor, Header, Norm, PROLOGUE, Policy, PolicyError, Probe, WEIGHTS_ALIGN, encode, workspace,
};
use proptest::prelude::*;
use sample::{
    Shown, blob, bytes, convolution, convolved, convolved_header, header, int8_header, layers,
    layers_for, plane, plane_header, published, remembering, resealed,
};

fn refusal(words: &(Vec<u32>, usize)) -> PolicyError {
    Policy::parse(bytes(words)).unwrap_err()
}

#[test]
fn a_blob_is_read_in_place_and_says_what_it_is() {
    let blob = published(1);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let header = policy.header();
    assert_eq!(
        (header.problem.as_str(), header.provenance.tool.as_str()),
        ("heat-1d", "test")
    );
    // The problem's name is the blob's own bytes, not a copy.
    let range = bytes(&blob).as_ptr_range();
    assert!(range.contains(&header.problem.as_str().as_ptr()));
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

/// The blob as an older format has it: without the extensions of the header that came later, which
/// must be empty, and before format 3 without a probe.
fn older(blob: &(Vec<u32>, usize), format: usize) -> (Vec<u32>, usize) {
    let from = bytes(blob);
    let word = |at: usize| u32::from_le_bytes(from[at..at + 4].try_into().unwrap()) as usize;
    let (weights_at, weights) = (word(16), word(20));
    let policy = Policy::parse(from).unwrap();
    let header = policy.header();
    let extension = (header.sensing.wide, &header.limits.keep_out);
    let mut room = [0; 512];
    let first = postcard::to_slice(header, &mut room).unwrap().len();
    let mut room = [0; 512];
    let second = postcard::to_slice(&extension, &mut room).unwrap();
    let third = first + second.len();
    let fifth = word(12) - 5;
    assert_eq!(from[PROLOGUE + fifth..][..5], [0; 5], "no memory, no band");
    let fourth = fifth - 1;
    if format < 4 {
        assert_eq!(from[PROLOGUE + fourth], 0, "no governor");
    }
    if format < 3 {
        // No convolutions, no normalisation behind them, f32, no rates; then there is a probe.
        assert_eq!(from[PROLOGUE + third..][..6], [0, 0, 0, 0, 0, 1]);
    }
    let (header, end) = match format {
        1 => (first, weights_at + weights),
        2 => (third, weights_at + weights),
        3 => (fourth, from.len()),
        _ => (fifth, from.len()),
    };
    if format == 1 {
        assert_eq!(second, [0, 0]);
    }
    let sections = &from[weights_at..end];
    let new_at = (PROLOGUE + header).next_multiple_of(WEIGHTS_ALIGN);
    let length = new_at + sections.len();
    let mut words = vec![0u32; length / 4];
    let to: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    to[..PROLOGUE + header].copy_from_slice(&from[..PROLOGUE + header]);
    to[new_at..].copy_from_slice(sections);
    words[2..7].copy_from_slice(&[format, header, new_at, weights, length].map(|x| x as u32));
    resealed(words, length)
}

#[test]
fn the_format_does_not_change_by_accident() {
    // The first bytes are those of format 1.
    let blob = published(1);
    let old = older(&blob, 1);
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
    // Digests of all bytes: those of a format never change, those of the one that is written only
    // together with FORMAT and docs/policy-format.md.
    let digest = |blob: (Vec<u32>, usize)| (blob.1, blob.0[7]);
    assert_eq!(digest(old.clone()), (46_128, 0x65a3_5069));
    assert_eq!(digest(older(&blob, 2)), (46_144, 0x6d83_5414));
    assert_eq!(digest(older(&plane(1), 2)), (4_000, 0x2807_1922));
    let int8 = self::blob(&int8_header(20), &layers(20, 1));
    assert_eq!(digest(older(&blob, 3)), (46_240, 0xcf0b_b0bc));
    assert_eq!(digest(older(&plane(1), 3)), (4_592, 0xf4b1_1920));
    assert_eq!(digest(older(&convolved(1), 3)), (5_648, 0x2c5b_1e97));
    assert_eq!(digest(older(&int8, 3)), (13_240, 0x1395_1dbc));
    let governed = self::blob(&governed_header(), &layers(20, 1));
    let fourth = [&blob, &plane(1), &convolved(1), &int8, &governed];
    let expected = [
        (46_240, 0x83b1_d9b0),
        (4_592, 0x0281_9e54),
        (5_664, 0x9057_8da8),
        (13_240, 0x4bd3_91bd),
        (46_256, 0x35d9_137e),
    ];
    assert_eq!(fourth.map(|blob| digest(older(blob, 4))), expected);
    assert_eq!(FORMAT, 5);
    let remembering = remembering(header(20), 2);
    let remembering = self::blob(&remembering, &layers_for(&remembering, 1));
    let written = [blob, plane(1), convolved(1), int8, governed, remembering].map(digest);
    let expected = [
        (46_256, 0xf9f3_d79b),
        (4_592, 0x0a91_e855),
        (5_664, 0x0cab_7047),
        (13_256, 0x0e38_63fc),
        (46_256, 0x4720_e3cd),
        (46_768, 0x6d1d_d492),
    ];
    assert_eq!(written, expected, "{written:#x?}");
}

/// The published 1D policy with a governor.
fn governed_header() -> Header<'static> {
    let mut header = header(20);
    header.limits.governor = governor(1.5, 0.25, 0.0);
    header
}

#[test]
fn extensions_follow_the_header_of_format_1() {
    let mut header = remembering(plane_header(), 2);
    header.limits.governor = governor(1.5, 0.25, 0.75);
    header.limits.force_rate = Some(3.0);
    let blob = blob(&header, &layers_for(&header, 1));
    let bytes = bytes(&blob);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let end = PROLOGUE + word(12) as usize;
    // After the provenance: 2 × 3 cells of the whole, then two discs.
    let mut extension = vec![1, 2, 3, 2];
    for value in [0.3, 0.3, 0.06, 0.5, 0.5, 0.06f32] {
        extension.extend(value.to_le_bytes());
    }
    // Format 3: no convolutions, nothing behind them, f32, a rate of the force, none of velocity.
    extension.extend([0, 0, 0, 1]);
    extension.extend(3.0f32.to_le_bytes());
    extension.push(0);
    // A probe: 37 % and 61 % of the way through a domain of 1 by 1.25; all of the 8 × 8 cells; the
    // three outputs, whatever they are.
    extension.push(1);
    for value in [0.37, 0.61 * 1.25f32] {
        extension.extend(value.to_le_bytes());
    }
    extension.extend([0, 7, 0, 7]);
    // Format 4: a governor.
    let mut fourth = vec![1];
    fourth.extend(1.5f32.to_le_bytes());
    fourth.extend(0.25f32.to_le_bytes());
    // Format 5: two numbers, half the leak, the gain; then the governor's band.
    let mut fifth = vec![1, 2];
    for value in [0.05, 0.3, 0.75f32] {
        fifth.extend(value.to_le_bytes());
    }
    let fourth_end = end - fifth.len();
    assert_eq!(bytes[fourth_end..end], fifth);
    let third_end = fourth_end - fourth.len();
    assert_eq!(bytes[third_end..fourth_end], fourth);
    let at = third_end - 12 - extension.len();
    assert_eq!(bytes[at..third_end - 12], extension);
    assert_eq!(bytes[at - 2..at], [1, 0], "seed, steps");
    // Its samples follow the weights: field and target of 64 cells, then of the 6 of the whole.
    let probe_at = (word(16) + word(20)) as usize;
    assert_eq!(bytes.len() - probe_at, 4 * 2 * (64 + 6));
    let (observation, probe) = Policy::parse(bytes).unwrap().probe().unwrap();
    let first = observation.patch.field.iter().next().unwrap();
    assert_eq!(first.to_le_bytes(), bytes[probe_at..probe_at + 4]);
    let expected = &bytes[third_end - 12..third_end];
    assert_eq!(probe.expected.as_flattened(), expected);
}

#[test]
fn a_blob_of_format_1_is_the_same_policy() {
    let new = published(1);
    let old = older(&new, 1);
    let [old, new] = [&old, &new].map(|blob| Policy::parse(bytes(blob)).unwrap());
    let mut unprobed = new.header().clone();
    unprobed.probe = None;
    assert_eq!(*old.header(), unprobed);
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
    for blob in [published(1), plane(1), convolved(1), older(&plane(1), 2)] {
        truncate(bytes(&blob));
    }
    assert_eq!(Policy::parse(&[]).unwrap_err(), PolicyError::NotAPolicy);
}

fn truncate(bytes: &[u8]) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let header_end = PROLOGUE + word(12);
    let weights_end = word(16) + word(20);
    // All lengths take Miri too long.
    let step = if cfg!(miri) { 997 } else { 1 };
    for length in (1..bytes.len()).step_by(step) {
        let Err(PolicyError::Truncated { section, found, .. }) = Policy::parse(&bytes[..length])
        else {
            panic!("{length} bytes were not called truncated");
        };
        assert_eq!(found, length);
        let expected = match length {
            l if l < PROLOGUE => "prologue",
            l if l < header_end => "header",
            l if l < weights_end => "weights",
            _ => "probe",
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
    assert_eq!(refused, PolicyError::UnknownFormat { found: 6 });
    assert!(refused.to_string().contains("formats 1 to 5"), "{refused}");
    // A probe that formats 1 and 2 do not know, extensions that formats 1 and 3 do not, and those that
    // the next format misses.
    let named = |words: Vec<u32>, length| match refusal(&resealed(words, length)) {
        PolicyError::Field { name, .. } => name.as_str(),
        other => panic!("{other}"),
    };
    for format in [1, 2] {
        let mut probed = words.clone();
        probed[2] = format;
        assert_eq!(named(probed, length), "total length");
    }
    let (mut extended, extended_length) = older(&(words.clone(), length), 2);
    extended[2] = 1;
    assert_eq!(named(extended, extended_length), "header length");
    let (mut governed, governed_length) = (words.clone(), length);
    governed[2] = 3;
    assert_eq!(named(governed, governed_length), "header length");
    for format in [1, 2, 3, 4] {
        let (mut bare, bare_length) = older(&(words.clone(), length), format);
        bare[2] = format as u32 + 1;
        assert_eq!(refusal(&resealed(bare, bare_length)), PolicyError::Header);
    }
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
fn a_workspace_that_is_not_what_is_needed_is_refused() {
    let (mut words, length) = published(1);
    let needed = Policy::parse(bytes(&(words.clone(), length)))
        .unwrap()
        .workspace_len();
    // In seven bits a byte.
    let stated = [needed as u8 | 0x80, (needed >> 7) as u8];
    let header: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[PROLOGUE..400];
    let mut places = (0..header.len()).filter(|&k| header[k..].starts_with(&stated));
    let (place, other) = (places.next().unwrap(), places.next());
    assert_eq!(other, None);
    header[place] ^= 1;
    let forged = resealed(words, length);
    let (name, fault) = (FieldName::Workspace, Fault::NotWhatIsNeeded);
    assert_eq!(refusal(&forged), PolicyError::Field { name, fault });
    assert_eq!(workspace(bytes(&forged)), Some([needed ^ 1, needed]));
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    let mut numbers = layers(20, 1);
    numbers[0].bias[3] = f32::NAN;
    let mut buffer = vec![0; 1 << 15];
    let given: Vec<_> = numbers.iter().map(sample::Layer::weights).collect();
    let error = encode(&header(20), &given, &mut buffer).unwrap_err();
    assert_eq!(
        error,
        EncodeError::Invalid(PolicyError::Weight { index: 3 })
    );
    // One that is not in a blob's own words must not come out as a number either.
    numbers[0].bias[3] = 0.0;
    for bad in [f32::NAN, f32::INFINITY] {
        numbers[0].weights[70] = bad;
        let given: Vec<_> = numbers.iter().map(sample::Layer::weights).collect();
        let error = encode(&int8_header(20), &given, &mut buffer).err().unwrap();
        let (name, fault) = (FieldName::Network, Fault::Int8NotFinite);
        assert_eq!(
            error,
            EncodeError::Invalid(PolicyError::Field { name, fault })
        );
    }
}

/// A sum of `n` products of at most 2 · `error_limit` and `w` is at most 2 n w `error_limit`: here
/// 40 · 2e4 w.
#[test]
fn a_network_that_could_overflow_is_refused_by_name() {
    let refused = |error_limit: f32, layer: usize, weight: f32| {
        let mut numbers = layers(20, 1);
        numbers[layer].weights.fill(weight);
        numbers[layer].bias.fill(0.0);
        let numbers: Vec<_> = numbers.iter().map(sample::Layer::weights).collect();
        let mut buffer = vec![0; 1 << 15];
        let mut header = header(20);
        header.sensing.error_limit = error_limit;
        encode(&header, &numbers, &mut buffer).err()
    };
    let too_large = EncodeError::Invalid(PolicyError::Field {
        name: FieldName::Network,
        fault: Fault::SumsTooLarge,
    });
    assert_eq!(refused(1e4, 0, 1.24e10), None);
    assert_eq!(refused(1e4, 0, -1.26e10), Some(too_large));
    // The head reads 32 values of at most 1.
    assert_eq!(refused(1e4, 5, 3.1e14), None);
    assert_eq!(refused(1e4, 5, 3.2e14), Some(too_large));
    assert_eq!(refused(1e4, 5, f32::MAX), Some(too_large));
    // The square of an error of 1e-23 is none, so that the limit does not cut it.
    assert_eq!(refused(1e-30, 0, 3e38), Some(too_large));
    assert_eq!(refused(1e-30, 0, 1e30), None);
}

/// Errors so large that their squares are no numbers could not be told from infinite ones.
#[test]
fn an_error_limit_that_sums_could_not_bear_is_refused_with_any_encoding() {
    for mut header in [header(8), int8_header(8)] {
        header.sensing.error_limit = 6e15;
        // So small that no sum is the matter.
        let mut numbers = layers(8, 1);
        for weight in &mut numbers[0].weights {
            *weight *= 1e-6;
        }
        let numbers: Vec<_> = numbers.iter().map(sample::Layer::weights).collect();
        let mut buffer = vec![0; 1 << 15];
        let error = encode(&header, &numbers, &mut buffer).err().unwrap();
        let EncodeError::Invalid(PolicyError::Field { name, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(name, FieldName::ErrorLimit);
    }
}

#[test]
fn every_field_that_cannot_be_run_is_named() {
    type Change = fn(&mut Header<'static>);
    let on_the_line: &[(&str, Change)] = &[
        ("network.memory", |h| *h = remembering(h.clone(), 0)),
        ("network.memory", |h| *h = remembering(h.clone(), 17)),
        ("network.memory", |h| {
            *h = remembering(h.clone(), 2);
            h.network.memory.as_mut().unwrap().leak = 0.51;
        }),
        ("network.memory", |h| {
            *h = remembering(h.clone(), 2);
            h.network.memory.as_mut().unwrap().leak = -0.1;
        }),
        ("network.memory", |h| {
            *h = remembering(h.clone(), 2);
            h.network.memory.as_mut().unwrap().gain = f32::NAN;
        }),
        ("network.memory", |h| {
            *h = remembering(h.clone(), 2);
            h.network.memory.as_mut().unwrap().gain = 1.1;
        }),
        ("network.branch", |h| {
            *h = remembering(h.clone(), 2);
            h.network.branch[0].inputs -= 2;
        }),
        ("network.head", |h| {
            *h = remembering(h.clone(), 2);
            h.network.head[1].outputs -= 1;
        }),
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
        // A layer of nothing.
        ("network.trunk", |h| {
            h.network.frequencies.clear();
            h.network.trunk[0].inputs = 0;
        }),
        ("network.fusion", |h| h.network.fusion = Fusion::Multiply),
        ("network.head", |h| h.limits.velocity = None),
        ("sensing.channels", |h| {
            h.sensing.channels[1] = Channel::Across
        }),
        ("network.flatten", |h| h.network.flatten = Norm::Soft),
        ("network.convolutions", |h| {
            let layer = convolution(2, 4, [1, 1], Activation::Relu);
            h.network.convolutions = [layer].into_iter().collect();
        }),
        ("network.encoding", |h| {
            h.network.encoding = Encoding::Int8;
            h.network.branch[1].activation = Activation::Relu;
        }),
        ("network.encoding", |h| {
            h.network.encoding = Encoding::Int8;
            h.network.head[1].activation = Activation::Tanh;
        }),
        ("network.encoding", |h| {
            h.network.encoding = Encoding::Int8;
            h.network.head[1].activation = Activation::Relu;
        }),
        ("network.encoding", |h| {
            h.network.encoding = Encoding::Int8;
            h.network.branch[0].outputs = 62;
            h.network.branch[1].inputs = 62;
        }),
        // Without a trunk there is nothing to fuse.
        ("network.encoding", |h| {
            h.network.encoding = Encoding::Int8;
            h.network.frequencies.clear();
            h.network.trunk.clear();
            h.network.head[0].inputs = 64;
        }),
        ("limits.force_rate", |h| h.limits.force_rate = Some(-1.0)),
        ("limits.force_rate", |h| h.limits.force_rate = Some(0.0)),
        ("limits.velocity_rate", |h| {
            h.limits.velocity_rate = Some(f32::NAN)
        }),
        ("limits.governor.growth", |h| {
            h.limits.governor = governor(0.999, 0.5, 0.0)
        }),
        ("limits.governor.growth", |h| {
            h.limits.governor = governor(2.001, 0.5, 0.0)
        }),
        ("limits.governor.growth", |h| {
            h.limits.governor = governor(f32::NAN, 0.5, 0.0)
        }),
        ("limits.governor.floor", |h| {
            h.limits.governor = governor(1.0, 0.0, 0.0)
        }),
        ("limits.governor.floor", |h| {
            h.limits.governor = governor(2.0, 1.001, 0.0)
        }),
        ("limits.governor.floor", |h| {
            h.limits.governor = governor(1.5, f32::NAN, 0.0)
        }),
        ("limits.governor.band", |h| {
            h.limits.governor = governor(1.5, 0.5, -0.001)
        }),
        ("limits.governor.band", |h| {
            h.limits.governor = governor(1.5, 0.5, 1.001)
        }),
        ("limits.governor.band", |h| {
            h.limits.governor = governor(1.5, 0.5, f32::NAN)
        }),
        ("probe.position", |h| {
            h.probe = Some(Probe {
                position: [0.5, f32::NAN],
                inside: [Span::default(); 2],
                expected: [[0; 4]; 3],
            })
        }),
    ];
    let in_the_plane: &[(&str, Change)] = &[
        // In a world so small that squares of its lengths are no normal numbers.
        ("limits.keep_out", |h| {
            (h.limits.low, h.limits.high) = ([0.0; 2], [1e-15; 2]);
            h.limits.keep_out[0].radius = 5e-16;
        }),
        // A second channel doubles what the branch reads.
        ("network.branch", |h| {
            let _ = h.sensing.channels.push(Channel::Slope);
        }),
        ("sensing.samples", |h| h.sensing.samples = 5),
        ("sensing.window", |h| h.sensing.window = 65),
        ("sensing.wide", |h| h.sensing.wide = Some([0, 3])),
        ("sensing.wide", |h| h.sensing.wide = Some([65, 64])),
        ("limits.low, limits.high", |h| h.limits.high[1] = 0.0),
        ("limits.keep_out", |h| h.limits.keep_out[1] = disc(0.5, 0.0)),
        // Squares of such distances are no numbers.
        ("limits.keep_out", |h| {
            h.limits.keep_out[1] = disc(-1.1e18, 0.1)
        }),
        ("limits.keep_out", |h| {
            h.limits.high = [1.1e18, 1.0];
            h.limits
                .keep_out
                .iter_mut()
                .for_each(|disc| disc.radius = 1e17);
        }),
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
    let convolved: &[(&str, Change)] = &[
        ("network.convolutions", |h| {
            h.network.convolutions[0].inputs = 2
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[1].inputs = 5
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[1].outputs = 0
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[1].outputs = 257
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[0].stride = 0
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[0].stride = 3
        }),
        ("network.convolutions", |h| {
            h.network.convolutions[0].padding = 2
        }),
        // A window of 2 has no 3 × 3 cells.
        ("network.convolutions", |h| {
            (h.sensing.window, h.sensing.samples) = (2, 2);
            h.network.convolutions[0].padding = 0;
        }),
        ("network.convolutions", |h| {
            h.network.encoding = Encoding::Int8
        }),
        ("network.convolutions", |h| h.network.branch.clear()),
        // 2 × 2 cells of 5 channels, and 6 of the whole.
        ("network.branch", |h| h.network.branch[0].inputs = 25),
    ];
    let line = on_the_line.iter().map(|case| (header(20), case));
    let plane = in_the_plane.iter().map(|case| (plane_header(), case));
    let layers = [
        convolution(3, 4, [1, 1], Activation::Relu),
        convolution(4, 5, [2, 0], Activation::Tanh),
    ];
    let convolved = convolved
        .iter()
        .map(|case| (convolved_header(6, &layers), case));
    for (mut header, &(name, change)) in line.chain(plane).chain(convolved) {
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

fn governor(growth: f32, floor: f32, band: f32) -> Option<Governor> {
    Some(Governor {
        growth,
        floor,
        band,
    })
}

/// The last field of a header. Nobody can write one without a governor but by hand.
#[test]
fn a_band_is_read_from_0_to_1_and_refused_without_a_governor() {
    let banded = |blob: &(Vec<u32>, usize), band: f32| {
        let (mut words, length) = blob.clone();
        let end = PROLOGUE + words[3] as usize;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[end - 4..end].copy_from_slice(&band.to_le_bytes());
        resealed(words, length)
    };
    let read = |blob: &(Vec<u32>, usize)| {
        Policy::parse(bytes(blob)).map(|policy| policy.header().limits.governor)
    };
    let refused = Err(PolicyError::Field {
        name: FieldName::Band,
        fault: Fault::NotABand,
    });
    let governed = blob(&governed_header(), &layers(20, 1));
    let ungoverned = published(1);
    assert_eq!(read(&banded(&ungoverned, 0.0)), Ok(None));
    for band in [0.0, 1e-45, 0.2, 1.0] {
        assert_eq!(
            read(&banded(&governed, band)),
            Ok(governor(1.5, 0.25, band))
        );
    }
    for band in [1e-45, 0.2, 1.0, -0.0, f32::NAN] {
        assert_eq!(read(&banded(&ungoverned, band)), refused, "{band}");
    }
    for band in [-0.0, -0.2, 1.0001, f32::INFINITY, f32::NAN] {
        assert_eq!(read(&banded(&governed, band)), refused, "{band}");
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
    let numbers: Vec<_> = numbers.iter().map(sample::Layer::weights).collect();
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

/// One blob of each kind.
fn forgeable() -> [(Vec<u32>, usize); 5] {
    [
        published(1),
        plane(1),
        convolved(1),
        blob(&int8_header(8), &layers(8, 1)),
        blob(&governed_header(), &layers(20, 1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

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
        for (mut words, length) in forgeable() {
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
            // Not an agent, which the self-test may keep from acting: what parses must run.
            let mut state = AgentState::new();
            let action = state.step(&policy, &mut workspace, &shown.at([0.5, 0.0], 1));
            let limit = limits.velocity.unwrap_or(0.0);
            prop_assert!(action.force.abs() <= limits.force.unwrap_or(0.0));
            prop_assert!(action.velocity.iter().all(|v| v.abs() <= limit));
        }
    }
}
