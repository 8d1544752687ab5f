//! A header drawn field by field, and weights to go with it: what can be written can be read.

use crate::{Words, examine};
use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Disc, Encoding, Fusion, Governor, Header, Memory,
    Network, Norm, encode,
};
use agent_core_fuzz::{blobs, script::Script};

/// Bytes of the longest blob that is tried.
const LONGEST: usize = 1 << 13;

/// Draws a policy as the script says, writes it and examines what was written.
pub fn try_drawn(script: &mut Script) {
    let [plane, line] = blobs::small_headers();
    let mut header = match script.below(2) {
        0 => line,
        _ => plane,
    };
    let drawn = script.u16();
    let parts: [fn(&mut Header, &mut Script); 6] =
        [sensing, network, limits, timing, governor, memory];
    for (k, part) in parts.iter().enumerate() {
        if drawn >> k & 1 == 1 {
            part(&mut header, script);
        }
    }
    // Networks whose layers do not follow from one another are refused early.
    if !script.rarely(16) {
        connect(&mut header);
    }

    let pattern: Vec<f32> = (0..=script.below(8)).map(|_| script.f32()).collect();
    let mut numbers = pattern.iter().copied().cycle();
    let sizes = |layer: &Dense| (usize::from(layer.inputs), usize::from(layer.outputs));
    let floats: usize = header
        .network
        .layers()
        .map(|l| (sizes(l).0 + 1) * sizes(l).1)
        .sum();
    if 4 * floats > LONGEST {
        return;
    }
    let layers: Vec<[Vec<f32>; 2]> = header
        .network
        .layers()
        .map(|layer| {
            let (inputs, outputs) = sizes(layer);
            [inputs * outputs, outputs].map(|n| numbers.by_ref().take(n).collect())
        })
        .collect();
    let layers: Vec<DenseWeights> = layers
        .iter()
        .map(|[weights, bias]| DenseWeights { weights, bias })
        .collect();

    // Room for a header, for the probe of a small patch, and to run it.
    let mut buffer = vec![0; LONGEST / 4 + (1 << 13)];
    let Ok(blob) = encode(&header, &layers, &mut buffer) else {
        return;
    };
    let examined = examine(&Words::of(blob), script);
    assert_eq!(examined, Ok(()), "{header:?}");
}

fn sensing(header: &mut Header, script: &mut Script) {
    let sensing = &mut header.sensing;
    sensing.axes = match script.below(16) {
        0..7 => 1,
        7..14 => 2,
        _ => script.u8(),
    };
    sensing.window = size(script);
    sensing.samples = match script.below(4) {
        0 => size(script),
        _ => sensing.window,
    };
    sensing.target = script.u8() & 1 == 1;
    let channels = script.below(16) % 5;
    sensing.channels = (0..channels)
        .map(|_| match (sensing.axes, script.below(8)) {
            (2, 0..2) => Channel::Across,
            (_, 0..4) => Channel::Slope,
            (1, 7) if script.rarely(16) => Channel::Across,
            _ => Channel::Error,
        })
        .collect();
    sensing.error_limit = script.f32().abs();
    sensing.wide = match script.below(4) {
        0 | 1 => None,
        2 => Some([script.below(6), 1]),
        _ => Some([script.below(80), script.below(80)]),
    };
}

fn network(header: &mut Header, script: &mut Script) {
    let network = &mut header.network;
    for part in [&mut network.branch, &mut network.trunk, &mut network.head] {
        let layers = script.below(part.capacity() as u8 + 1);
        *part = (0..layers).map(|_| layer(script)).collect();
    }
    let frequencies = script.below(network.frequencies.capacity() as u8 + 1);
    network.frequencies = (0..frequencies).map(|_| script.f32()).collect();
    network.fusion = match script.below(2) {
        0 => Fusion::Concatenate,
        _ => Fusion::Multiply,
    };
    if script.below(4) == 0 {
        int8(network);
    }
}

/// Makes a network one that 8-bit weights can be had for.
fn int8(network: &mut Network) {
    network.encoding = Encoding::Int8;
    for part in [&mut network.branch, &mut network.trunk, &mut network.head] {
        for layer in part {
            layer.activation = Activation::Tanh;
            layer.outputs = (layer.outputs & !3).max(4);
        }
    }
    if let Some(last) = network.head.last_mut() {
        last.activation = Activation::Identity;
    }
}

fn layer(script: &mut Script) -> Dense {
    Dense {
        inputs: script.u8().into(),
        outputs: size(script),
        norm: match script.below(2) {
            0 => Norm::None,
            _ => Norm::Soft,
        },
        activation: match script.below(3) {
            0 => Activation::Identity,
            1 => Activation::Tanh,
            _ => Activation::Relu,
        },
    }
}

fn limits(header: &mut Header, script: &mut Script) {
    let limits = &mut header.limits;
    limits.force = (!script.rarely(4)).then(|| script.f32().abs());
    limits.velocity = (!script.rarely(4)).then(|| script.f32().abs());
    for axis in 0..2 {
        limits.low[axis] = script.f32();
        limits.high[axis] = limits.low[axis] + script.f32().abs();
    }
    limits.force_rate = script.rarely(4).then(|| script.f32().abs());
    limits.velocity_rate = script.rarely(4).then(|| script.f32().abs());
    let discs = script.below(limits.keep_out.capacity() as u8 + 1);
    limits.keep_out = (0..discs)
        .map(|_| Disc {
            centre: [script.f32(), script.f32()],
            radius: script.f32().abs(),
        })
        .collect();
}

fn timing(header: &mut Header, script: &mut Script) {
    let timing = &mut header.timing;
    timing.period_us = match script.below(2) {
        0 => script.u16().into(),
        _ => script.u32(),
    };
    timing.late_us = script.u32();
    timing.fail_safe_us = timing.late_us.wrapping_add(script.u16().into());
}

fn governor(header: &mut Header, script: &mut Script) {
    let mut share = || match script.rarely(8) {
        true => script.f32(),
        false => f32::from(script.u16()) / f32::from(u16::MAX),
    };
    header.limits.governor = Some(Governor {
        growth: 1.0 + share(),
        floor: share(),
        band: share(),
    });
}

fn memory(header: &mut Header, script: &mut Script) {
    let mut share = || match script.rarely(8) {
        true => script.f32(),
        false => f32::from(script.u16()) / f32::from(u16::MAX),
    };
    let (leak, gain) = (0.5 * share(), share());
    header.network.memory = Some(Memory {
        floats: script.below(20),
        leak,
        gain,
    });
}

/// Small, or now and then any.
fn size(script: &mut Script) -> u16 {
    match script.below(32) {
        0..31 => 1 + u16::from(script.below(20)),
        _ => script.u16(),
    }
}

/// Gives every layer the inputs that come before it, and the last as many outputs as there are
/// things to do.
fn connect(header: &mut Header) {
    let (sensing, limits) = (&header.sensing, &header.limits);
    let axes = usize::from(sensing.axes);
    let features = match axes {
        1 => usize::from(sensing.samples) * sensing.channels.len(),
        _ => usize::from(sensing.window).pow(2) * sensing.channels.len(),
    } + sensing.wide_len();
    let outputs = usize::from(limits.force.is_some()) + limits.velocity.map_or(0, |_| axes);
    let network = &mut header.network;
    let remembered = network.remembered();
    let fourier = 2 * axes * network.frequencies.len();
    let chain = |layers: &mut [Dense], mut length: usize| {
        for layer in layers {
            layer.inputs = length as u16;
            length = layer.outputs.into();
        }
        length
    };
    let seen = chain(&mut network.branch, features + remembered);
    // Only equal lengths can be multiplied.
    if let (Fusion::Multiply, Some(last)) = (network.fusion, network.trunk.last_mut()) {
        last.outputs = seen as u16;
    }
    let placed = chain(&mut network.trunk, fourier);
    let fused = match network.fusion {
        Fusion::Concatenate => seen + placed,
        Fusion::Multiply => seen,
    };
    if let Some(last) = network.head.last_mut() {
        last.outputs = (2 * remembered + outputs) as u16;
    }
    chain(&mut network.head, fused);
}
