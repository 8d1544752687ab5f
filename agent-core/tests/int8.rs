//! 8-bit weights against a plain model of what they mean, and against the floats they stand for.
#![cfg(not(miri))] // thousands of steps

use crate::sample;

use agent_core::agent::AgentState;
use agent_core::policy::{Activation, Dense, Encoding, Fusion, Header, Norm, Policy};
use agent_kernels::SUM_LIMIT;
use sample::{Layer, Random, Shown, blob, bytes, dense, header, layers_for, plane_header};

/// A layer as integers: weights `w` stand for `w · scale[output]`, and inputs of so many bits for
/// fractions.
struct Integers {
    bits: u32,
    weights: Vec<i64>,
    scale: Vec<f64>,
    bias: Vec<f64>,
}

impl Integers {
    /// The largest weight of each output is 127; inputs have as many bits, up to 14, as no sum can
    /// pass its limit with.
    fn new(layer: &Layer) -> Self {
        let outputs = layer.bias.len();
        let column = |o: usize| layer.weights.iter().skip(o).step_by(outputs);
        let scale: Vec<f32> = (0..outputs)
            .map(|o| column(o).fold(0.0f32, |m, w| m.max(w.abs())) / 127.0)
            .collect();
        let weights = layer.weights.iter().enumerate();
        let weights: Vec<i64> = weights
            .map(|(k, w)| (w / scale[k % outputs]).round() as i64)
            .collect();
        let sum = |o: usize| -> i64 {
            weights
                .iter()
                .skip(o)
                .step_by(outputs)
                .map(|w| w.abs())
                .sum()
        };
        let greatest = (0..outputs).map(sum).max().unwrap();
        let fits = |bits: &u32| greatest << bits <= i64::from(SUM_LIMIT);
        Self {
            bits: (0..=14).rev().find(fits).unwrap(),
            weights,
            scale: scale.iter().map(|s| f64::from(*s)).collect(),
            bias: layer.bias.iter().map(|b| f64::from(*b)).collect(),
        }
    }

    /// `gain` is what an input of 2^bits stands for.
    fn sums(&self, input: &[i64], gain: f64) -> Vec<f64> {
        let outputs = self.bias.len();
        assert_eq!(input.len() * outputs, self.weights.len());
        let one = f64::from(1 << self.bits);
        let sum = |o: usize| {
            let column = self.weights.iter().skip(o).step_by(outputs);
            let sum: i64 = column.zip(input).map(|(w, x)| w * x).sum();
            assert!(sum.unsigned_abs() <= u64::from(SUM_LIMIT));
            sum as f64 / one * self.scale[o] * gain + self.bias[o]
        };
        (0..outputs).map(sum).collect()
    }
}

fn soften(norm: Norm, values: &mut [f64]) {
    let length = values.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm == Norm::Soft {
        values.iter_mut().for_each(|x| *x /= length + 1.0);
    }
}

/// tanh as a table has it: 32 entries in 1, straight lines between them, in steps of 2⁻¹⁴, up to 4.
fn tanh(x: f64) -> f64 {
    let entry = |k: f64| (32767.0 * (k / 32.0).tanh()).round() / 32768.0;
    let steps = (x * 16_384.0).trunc().clamp(-65_536.0, 65_535.0);
    let at = (steps / 512.0).floor();
    let share = steps / 512.0 - at;
    entry(at) + (entry(at + 1.0) - entry(at)) * share
}

fn integer(fraction: f64, bits: u32) -> i64 {
    (fraction * f64::from(1 << bits) + 0.5).floor() as i64
}

/// Hidden layers: from integers to integers for who reads them with so many bits.
fn hidden(
    layers: &[Dense],
    numbers: &[Integers],
    mut input: Vec<i64>,
    mut gain: f64,
    last_bits: u32,
) -> Vec<i64> {
    for (k, layer) in layers.iter().enumerate() {
        let mut sums = numbers[k].sums(&input, gain);
        soften(layer.norm, &mut sums);
        let bits = numbers[k + 1..layers.len()]
            .first()
            .map_or(last_bits, |n| n.bits);
        input = sums.iter().map(|x| integer(tanh(*x), bits)).collect();
        gain = 1.0;
    }
    input
}

/// The network's outputs for these features and Fourier features.
fn model(header: &Header, layers: &[Layer], features: &[f64], fourier: &[f64]) -> Vec<f64> {
    let network = &header.network;
    let numbers: Vec<Integers> = layers.iter().map(Integers::new).collect();
    let (branch, rest) = numbers.split_at(network.branch.len());
    let (trunk, head) = rest.split_at(network.trunk.len());
    let gain = features.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let seen = features
        .iter()
        .map(|x| integer(x / gain, branch[0].bits))
        .collect();
    let mut fused = hidden(&network.branch, branch, seen, gain, head[0].bits);
    let placed = fourier.iter().map(|x| integer(*x, trunk[0].bits)).collect();
    let placed = hidden(&network.trunk, trunk, placed, 1.0, head[0].bits);
    match network.fusion {
        Fusion::Concatenate => fused.extend(placed),
        Fusion::Multiply => {
            let one = f64::from(1 << head[0].bits);
            for (x, y) in fused.iter_mut().zip(placed) {
                *x = integer((*x * y) as f64 / one / one, head[0].bits);
            }
        }
    }
    let (last, firsts) = network.head.split_last().unwrap();
    let input = hidden(firsts, head, fused, 1.0, head[firsts.len()].bits);
    let mut outputs = head[firsts.len()].sums(&input, 1.0);
    soften(last.norm, &mut outputs);
    outputs
}

/// Networks of a line and of the plane, with inputs that do not fill whole quads, with a product for
/// fusion, and with a soft normalisation of the outputs.
fn headers() -> Vec<Header<'static>> {
    let mut product = header(7);
    product.network.head[0].inputs = 64;
    product.network.trunk[1].outputs = 64;
    product.network.fusion = Fusion::Multiply;
    let mut soft = plane_header();
    soft.network.head = [
        dense(24, 12, Norm::Soft, Activation::Tanh),
        dense(12, 3, Norm::Soft, Activation::Identity),
    ]
    .into_iter()
    .collect();
    let mut headers = vec![header(8), header(20), product, plane_header(), soft];
    for header in &mut headers {
        // Slopes and samples between cells are the floats' business, and so is keeping out.
        header.sensing.channels.truncate(1);
        header.sensing.samples = header.sensing.window;
        let cells = usize::from(header.sensing.window).pow(u32::from(header.sensing.axes));
        header.network.branch[0].inputs = (cells + header.sensing.wide_len()) as u16;
        header.limits.keep_out.clear();
    }
    // 21 cells on the line.
    let wide = &mut headers[1];
    (wide.sensing.window, wide.sensing.samples) = (21, 21);
    wide.network.branch[0].inputs = 21;
    headers
}

/// Actions of a policy, as shares of their limits, on noise; and what the model says of them.
fn actions(header: &Header, seed: u64, steps: usize) -> Vec<[[f64; 3]; 2]> {
    let layers = layers_for(header, seed);
    let blob = blob(header, &layers);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![f32::NAN; policy.workspace_len()];
    let mut random = Random(seed);
    let axes = usize::from(header.sensing.axes);
    let (force, velocity) = (
        header.limits.force.unwrap(),
        header.limits.velocity.unwrap(),
    );
    let compared = (0..steps).map(|_| {
        // The middle of the domain, where no wall has a say; and no walls to be seen.
        let position = [0.5 + 0.3 * random.next(), 0.5 + 0.3 * random.next()];
        let mut shown = Shown::all(&policy, 0.0);
        let all = [
            &mut shown.field,
            &mut shown.target,
            &mut shown.wide_field,
            &mut shown.wide_target,
        ];
        for cells in all {
            cells.fill_with(|| 2.0 * random.next());
        }
        let action = AgentState::new().step(&policy, &mut workspace, &shown.at(position, 1));
        let [vx, vy] = action.velocity;
        let found = [action.force / force, vx / velocity, vy / velocity].map(f64::from);
        (found, outputs(header, &layers, &shown, position))
    });
    compared
        .map(|(found, outputs)| {
            let mut expected = [0.0; 3];
            for (to, x) in expected.iter_mut().zip(outputs).take(1 + axes) {
                *to = x.tanh();
            }
            [found, expected]
        })
        .collect()
}

/// The model on what is shown.
fn outputs(header: &Header, layers: &[Layer], shown: &Shown, position: [f32; 2]) -> Vec<f64> {
    let (window, axes) = (
        usize::from(header.sensing.window),
        usize::from(header.sensing.axes),
    );
    let difference = |(z, t): (&f32, &f32)| f64::from(z - t);
    let errors: Vec<f64> = shown
        .field
        .iter()
        .zip(&shown.target)
        .map(difference)
        .collect();
    let inner = |k: &usize| (1..=window).contains(k);
    let mut features: Vec<f64> = match axes {
        1 => errors[1..=window].to_vec(),
        _ => (0..errors.len())
            .filter(|k| inner(&(k / (window + 2))) && inner(&(k % (window + 2))))
            .map(|k| errors[k])
            .collect(),
    };
    features.extend(
        shown
            .wide_field
            .iter()
            .zip(&shown.wide_target)
            .map(difference),
    );
    let mut angles = Vec::new();
    for (x, high) in position.iter().zip(header.limits.high).take(axes) {
        let share = f64::from(x / high);
        let turns = header
            .network
            .frequencies
            .iter()
            .map(|f| f64::from(*f) * share);
        angles.extend(turns.map(|t| t * std::f64::consts::PI));
    }
    let sines = angles.iter().map(|a| a.sin());
    let fourier: Vec<f64> = sines.chain(angles.iter().map(|a| a.cos())).collect();
    model(header, layers, &features, &fourier)
}

/// Where a float is within rounding of the middle between two integers the model may take the other
/// one. An output then moves by a step of an input, which has at least 10 bits, times a weight, which
/// is at most ½: by 5e-4. That is rare, and all the rest agrees as floats do.
#[test]
fn an_agent_with_8_bit_weights_computes_what_they_mean() {
    let (mut far, mut all, mut worst) = (0, 0, 0.0f64);
    for mut header in headers() {
        header.network.encoding = Encoding::Int8;
        for seed in 0..10 {
            for [found, expected] in actions(&header, seed, 40) {
                for (a, b) in found.iter().zip(expected) {
                    let off = (a - b).abs();
                    far += usize::from(off > 1e-5);
                    all += 1;
                    worst = worst.max(off);
                }
            }
        }
    }
    assert!(worst < 5e-4 && 400 * far < all, "{worst}, {far} of {all}");
}

/// What 8 bits cost: at most a hundredth of the limits, and a five-hundredth in the mean square.
#[test]
fn an_agent_with_8_bit_weights_acts_nearly_as_with_floats() {
    let (mut worst, mut squares, mut all) = (0.0f64, 0.0f64, 0.0);
    for plain in headers() {
        let mut small = plain.clone();
        small.network.encoding = Encoding::Int8;
        for seed in 0..10 {
            let both = actions(&plain, seed, 40)
                .into_iter()
                .zip(actions(&small, seed, 40));
            for ([float, _], [int8, _]) in both {
                for (a, b) in float.iter().zip(int8) {
                    worst = worst.max((a - b).abs());
                    squares += (a - b).powi(2);
                    all += 1.0;
                }
            }
        }
    }
    let mean = (squares / all).sqrt();
    assert!(worst < 1e-2 && mean < 2e-3, "{worst} {mean}");
}
