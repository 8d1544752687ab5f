//! Convolutions, which agent-core streams row by row, against the whole image at once.

use crate::sample;

use agent_core::agent::{AgentState, Mode, project};
use agent_core::message::Span;
use agent_core::policy::{Activation, Convolution, Dense, Fusion, Header, Norm, Policy};
use sample::{Layer, Random, Shown, blob, bytes, convolution, convolved_header, dense, layers_for};

fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Tanh => x.tanh(),
        Activation::Relu => x.max(0.0),
    }
}

fn soften(norm: Norm, values: &mut [f64]) {
    let length = values.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm == Norm::Soft {
        values.iter_mut().for_each(|x| *x /= length + 1.0);
    }
}

/// Errors and their slopes along both axes, for each cell of the window, all channels of a cell
/// after another: what lies beyond a wall is the cell at the wall.
fn image(window: usize, shown: &Shown) -> Vec<f64> {
    let side = window + 2;
    let error = |at: [usize; 2]| {
        let k = at[0] * side + at[1];
        f64::from(shown.field[k]) - f64::from(shown.target[k])
    };
    let mut image = Vec::new();
    for row in 1..=window {
        for column in 1..=window {
            let spans = shown
                .inside
                .map(|Span { first, last }| (usize::from(first), usize::from(last)));
            let at = [
                row.clamp(spans[0].0, spans[0].1),
                column.clamp(spans[1].0, spans[1].1),
            ];
            image.push(error(at));
            for axis in [0, 1] {
                let (mut before, mut after) = (at, at);
                before[axis] = (at[axis].max(1) - 1).max(spans[axis].0);
                after[axis] = (at[axis] + 1).min(spans[axis].1);
                // Two cells apart but at walls.
                let cells = (after[axis] - before[axis]).max(1) as f64;
                image.push((error(after) - error(before)) / cells);
            }
        }
    }
    image
}

/// All of one convolution's output.
fn convolve(layer: &Convolution, numbers: &Layer, image: &[f64], side: usize) -> Vec<f64> {
    let (inputs, outputs) = (usize::from(layer.inputs), usize::from(layer.outputs));
    let [stride, padding] = [layer.stride, layer.padding].map(isize::from);
    let mut result = Vec::new();
    let output_side = layer.side(side).unwrap() as isize;
    for row in 0..output_side {
        for column in 0..output_side {
            for o in 0..outputs {
                let mut sum = f64::from(numbers.bias[o]);
                for k in 0..9 {
                    let r = row * stride - padding + k / 3;
                    let c = column * stride - padding + k % 3;
                    let inside = |x: isize| (0..side as isize).contains(&x);
                    if !inside(r) || !inside(c) {
                        continue;
                    }
                    for i in 0..inputs {
                        let x = image[(r as usize * side + c as usize) * inputs + i];
                        let w = numbers.weights[(k as usize * inputs + i) * outputs + o];
                        sum += x * f64::from(w);
                    }
                }
                result.push(activate(layer.activation, sum));
            }
        }
    }
    result
}

fn run(layers: &[Dense], numbers: &mut std::slice::Iter<Layer>, mut x: Vec<f64>) -> Vec<f64> {
    for layer in layers {
        let numbers = numbers.next().unwrap();
        let outputs = numbers.bias.len();
        assert_eq!(x.len(), numbers.inputs);
        let sum = |o: usize| {
            let terms = x
                .iter()
                .zip(numbers.weights.iter().skip(o).step_by(outputs));
            f64::from(numbers.bias[o]) + terms.map(|(x, w)| x * f64::from(*w)).sum::<f64>()
        };
        let mut sums: Vec<f64> = (0..outputs).map(sum).collect();
        soften(layer.norm, &mut sums);
        x = sums
            .iter()
            .map(|x| activate(layer.activation, *x))
            .collect();
    }
    x
}

/// Force and velocity before walls and discs have their say.
fn reference(header: &Header, numbers: &[Layer], shown: &Shown, position: [f32; 2]) -> [f64; 3] {
    let network = &header.network;
    let mut numbers = numbers.iter();
    let mut side = usize::from(header.sensing.window);
    let mut x = image(side, shown);
    for layer in &network.convolutions {
        x = convolve(layer, numbers.next().unwrap(), &x, side);
        side = layer.side(side).unwrap();
    }
    let wide = shown.wide_field.iter().zip(&shown.wide_target);
    x.extend(wide.map(|(z, t)| f64::from(*z) - f64::from(*t)));
    soften(network.flatten, &mut x);
    let mut fused = run(&network.branch, &mut numbers, x);

    let scaled = [0, 1].map(|axis| {
        let (low, high) = (header.limits.low[axis], header.limits.high[axis]);
        f64::from(position[axis] - low) / f64::from(high - low)
    });
    let angles: Vec<f64> = scaled
        .iter()
        .flat_map(|s| network.frequencies.iter().map(move |f| s * f64::from(*f)))
        .map(|turns| std::f64::consts::PI * turns)
        .collect();
    let sines = angles.iter().map(|a| a.sin());
    let place = sines.chain(angles.iter().map(|a| a.cos())).collect();
    let placed = run(&network.trunk, &mut numbers, place);
    assert_eq!(network.fusion, Fusion::Concatenate);
    fused.extend(placed);
    let outputs = run(&network.head, &mut numbers, fused);
    let limits = [
        header.limits.force,
        header.limits.velocity,
        header.limits.velocity,
    ];
    [0, 1, 2].map(|k| f64::from(limits[k].unwrap()) * outputs[k].tanh())
}

/// A policy and its reference side by side; returns the share of the force limit that was used.
fn compare(header: &Header, numbers: &[Layer], shown: &[Shown]) -> f64 {
    let blob = blob(header, numbers);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let mut workspace = vec![f32::NAN; policy.workspace_len()];
    let mut used = 0.0f64;
    for (k, shown) in shown.iter().enumerate() {
        let position = [0.7 + 0.01 * (k % 20) as f32, 0.2 + 0.01 * (k % 17) as f32];
        let action = AgentState::new().step(&policy, &mut workspace, &shown.at(position, 1));
        assert_eq!(action.mode, Mode::Active);
        let [force, vx, vy] = reference(header, numbers, shown, position);
        // Each to 1e-5 of its limit.
        let off = (f64::from(action.force) - force).abs();
        assert!(off < 40.0 * 1e-5, "{action:?} {force} {:?}", header.network);
        let velocity = project(&header.limits, 2, 1e-3, position, [vx as f32, vy as f32]);
        for (found, expected) in action.velocity.iter().zip(velocity) {
            assert!((found - expected).abs() < 5e-5, "{action:?} {vx} {vy}");
        }
        used = used.max(force.abs() / 40.0);
    }
    used
}

/// One to four layers with all strides, paddings and activations in turn, and numbers of channels
/// that are not those of blocks.
fn stack(window: usize, depth: usize, turn: usize) -> Vec<Convolution> {
    use Activation::{Identity, Relu, Tanh};
    let (mut side, mut inputs) = (window, 3);
    let mut layers = Vec::new();
    for (at, outputs) in [5, 11, 8, 3].into_iter().enumerate().take(depth) {
        let [stride, mut padding] = [[1, 1], [2, 0], [1, 0], [2, 1]][(turn + at) % 4];
        // So little is left that a kernel needs its rim.
        if side < 3 {
            padding = 1;
        }
        let activation = [Relu, Tanh, Identity][(turn + at) % 3];
        let layer = convolution(inputs, outputs, [stride, padding], activation);
        side = layer.side(side).unwrap();
        inputs = outputs;
        layers.push(layer);
    }
    layers
}

const WINDOWS: [usize; 3] = [12, 16, 20];

#[test]
#[cfg_attr(miri, ignore = "hundreds of networks")]
fn streamed_convolutions_give_what_the_whole_image_does() {
    let mut used = 0.0;
    let mut networks = 0;
    for window in WINDOWS {
        for depth in 1..=4 {
            // Four pairs of stride and padding and three activations meet in twelve turns.
            for turn in 0..12 {
                let mut header = convolved_header(window, &stack(window, depth, turn));
                if turn % 2 == 0 {
                    header.network.flatten = Norm::None;
                }
                let numbers = layers_for(&header, turn as u64);
                let blob = blob(&header, &numbers);
                let policy = Policy::parse(bytes(&blob)).unwrap();
                let mut random = Random(turn as u64);
                let shown = [0; 3].map(|_| Shown::noise(&policy, 2.0, &mut random));
                used += compare(&header, &numbers, &shown);
                networks += 1;
            }
        }
    }
    assert_eq!(networks, 144);
    // What was compared are neither zeros nor ones.
    let mean = used / f64::from(networks);
    assert!((0.2..0.95).contains(&mean), "{mean}");
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of images")]
fn walls_at_all_distances_are_seen_as_the_format_says() {
    for window in WINDOWS {
        let header = convolved_header(window, &stack(window, 2, 0));
        let numbers = layers_for(&header, 5);
        let blob = blob(&header, &numbers);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let (side, centre) = (window as u16 + 2, window as u16 / 2 + 1);
        let mut random = Random(window as u64);
        let mut shown = Vec::new();
        for first in 0..=centre {
            for last in centre..side {
                let mut one = Shown::noise(&policy, 2.0, &mut random);
                // Each pair of distances along one axis, with some other pair along the other.
                let there = Span { first, last };
                let across = Span {
                    first: (3 * first + last) % (centre + 1),
                    last: centre + (first + 5 * last) % (side - centre),
                };
                one.inside = match (first + last) % 2 {
                    0 => [there, across],
                    _ => [across, there],
                };
                for cells in [&mut one.field, &mut one.target] {
                    cells.fill_with(|| 2.0 * random.next());
                }
                shown.push(one);
            }
        }
        compare(&header, &numbers, &shown);
    }
}

/// The networks of the paper's 2D problems as the authors' code has them: same padding, no stride,
/// ReLU, soft normalisation, a dense layer of 32, a trunk of 32 and 32, a head of 64.
fn published(window: usize, channels: &[usize]) -> Header<'static> {
    use Activation::{Identity, Relu, Tanh};
    let mut inputs = 3;
    let mut convolutions = Vec::new();
    for &outputs in channels {
        convolutions.push(convolution(inputs, outputs, [1, 1], Relu));
        inputs = outputs;
    }
    let mut header = convolved_header(window, &convolutions);
    header.sensing.wide = None;
    let network = &mut header.network;
    network.frequencies = [1.0, 2.0, 4.0, 8.0].into_iter().collect();
    let flat = window * window * inputs;
    network.branch = [dense(flat, 32, Norm::None, Tanh)].into_iter().collect();
    network.trunk = [
        dense(16, 32, Norm::None, Tanh),
        dense(32, 32, Norm::None, Tanh),
    ]
    .into_iter()
    .collect();
    network.head = [
        dense(64, 64, Norm::None, Tanh),
        dense(64, 3, Norm::None, Identity),
    ]
    .into_iter()
    .collect();
    header
}

#[test]
#[cfg_attr(miri, ignore = "a million weights")]
fn the_published_networks_fit_in_32_kib_and_have_their_published_sizes() {
    // The authors' counts are those of their checkpoints: 158,531 for heat. Turbulence has a force
    // alone, 844,449 with a patch of 20, whose head lacks the two columns of 65 for the velocity.
    for (window, channels, parameters) in [
        (12, &[16, 32][..], Some(158_531)),
        (20, &[32, 64], Some(844_449 + 2 * 65)),
        (12, &[32, 32, 64], None),
        (20, &[32, 32, 64], None),
    ] {
        let header = published(window, channels);
        let numbers = layers_for(&header, 1);
        if let Some(expected) = parameters {
            let count = |l: &Layer| l.weights.len() + l.bias.len();
            assert_eq!(numbers.iter().map(count).sum::<usize>(), expected);
        }
        let blob = blob(&header, &numbers);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let memory = 4 * policy.workspace_len();
        assert!(memory <= 32 * 1024, "{channels:?} on {window}: {memory}");
        let shown = [Shown::noise(&policy, 2.0, &mut Random(3))];
        compare(&header, &numbers, &shown);
    }
}
