//! The layer set expresses the network of the paper's 1D problems exactly: an agent with a halo
//! patch computes what the published code computes from the whole field.

use crate::sample;

use agent_core::agent::{Agent, Mode};
use agent_core::message::{Patch, Span};
use agent_core::policy::Policy;
use sample::{Layer, Random, WINDOW, bytes, layers, published};

const GRID: usize = 100;
const SAMPLES: usize = 20;

/// The published pipeline on the full field, in f64, written from its description alone.
fn reference(layers: &[Layer], field: &[f32], target: &[f32], xi: f32) -> [f64; 2] {
    let error: Vec<f64> = field
        .iter()
        .zip(target)
        .map(|(z, t)| f64::from(*z) - f64::from(*t))
        .collect();
    let n = error.len();
    let slope: Vec<f64> = (0..n)
        .map(|j| match j {
            0 => error[1] - error[0],
            j if j == n - 1 => error[j] - error[j - 1],
            j => (error[j + 1] - error[j - 1]) / 2.0,
        })
        .collect();
    let centre = (xi.clamp(0.0, 1.0) * (n - 1) as f32).floor() as isize;
    let mut features = Vec::new();
    for channel in [&error, &slope] {
        let window: Vec<f64> = (0..WINDOW as isize)
            .map(|k| channel[(centre - 4 + k).clamp(0, n as isize - 1) as usize])
            .collect();
        features.extend((0..SAMPLES).map(|k| {
            let at = ((k as f64 + 0.5) * WINDOW as f64 / SAMPLES as f64 - 0.5)
                .clamp(0.0, WINDOW as f64 - 1.0);
            let left = at.floor() as usize;
            let right = (left + 1).min(WINDOW - 1);
            window[left] + (at - left as f64) * (window[right] - window[left])
        }));
    }
    let product = |layer: &Layer, x: &[f64]| -> Vec<f64> {
        let outputs = layer.bias.len();
        assert_eq!(x.len(), layer.inputs);
        (0..outputs)
            .map(|o| {
                let sum: f64 = x
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x * f64::from(layer.weights[i * outputs + o]))
                    .sum();
                sum + f64::from(layer.bias[o])
            })
            .collect()
    };
    let soft = |h: Vec<f64>| -> Vec<f64> {
        let norm = h.iter().map(|x| x * x).sum::<f64>().sqrt();
        h.iter().map(|x| (x / (norm + 1.0)).tanh()).collect()
    };
    let tanh = |h: Vec<f64>| -> Vec<f64> { h.iter().map(|x| x.tanh()).collect() };
    let mut fused = soft(product(&layers[1], &soft(product(&layers[0], &features))));
    let angles = sample::FREQUENCIES.map(|f| std::f64::consts::PI * f64::from(f) * f64::from(xi));
    let fourier: Vec<f64> = angles
        .iter()
        .map(|a| a.sin())
        .chain(angles.iter().map(|a| a.cos()))
        .collect();
    fused.extend(tanh(product(
        &layers[3],
        &tanh(product(&layers[2], &fourier)),
    )));
    let out = product(&layers[5], &tanh(product(&layers[4], &fused)));
    [40.0 * out[0].tanh(), 2.0 * out[1].tanh()]
}

/// What a sensor hands over: window and halo, and which of its cells exist.
fn cut(field: &[f32], xi: f32) -> (Vec<f32>, Span) {
    let n = field.len() as isize;
    let start = (xi * (n - 1) as f32) as isize - 5;
    let cells: Vec<isize> = (start..start + WINDOW as isize + 2).collect();
    let exists = |j: &isize| (0..n).contains(j);
    let span = Span {
        first: cells.iter().position(exists).unwrap() as u16,
        last: cells.iter().rposition(exists).unwrap() as u16,
    };
    // Cells beyond the wall hold garbage on purpose: an agent must not read them.
    let values = cells
        .iter()
        .map(|&j| {
            if exists(&j) {
                field[j as usize]
            } else {
                f32::NAN
            }
        })
        .collect();
    (values, span)
}

#[test]
fn an_agent_with_a_halo_patch_acts_as_the_published_net_on_the_full_field() {
    for seed in 0..20 {
        let layers = layers(SAMPLES, seed);
        let blob = published(seed);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        let mut random = Random(1000 + seed);
        let field: Vec<f32> = (0..GRID).map(|_| 2.0 * random.next()).collect();
        let target: Vec<f32> = (0..GRID).map(|_| random.next()).collect();
        for k in 0..=60 {
            let xi = k as f32 / 60.0;
            let (seen, span) = cut(&field, xi);
            let (wanted, _) = cut(&target, xi);
            let patch = Patch::line(&seen, &wanted, span);
            let action = agent.step(&patch, [xi, 0.0], 1);
            let [force, velocity] = reference(&layers, &field, &target, xi);
            assert_eq!(action.mode, Mode::Active);
            // Outputs are up to 40 and 2: both to 1e-5 of their limit. At the walls the agent
            // additionally refuses to leave.
            assert!(
                (f64::from(action.force) - force).abs() <= 4e-4,
                "{action:?} {force}"
            );
            let velocity = velocity.clamp(-f64::from(xi) * 1e3, (1.0 - f64::from(xi)) * 1e3);
            assert!((f64::from(action.velocity[0]) - velocity).abs() <= 2e-5);
        }
    }
}

#[test]
fn the_published_network_has_the_published_size() {
    let blob = published(0);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    let parameters: usize = policy
        .header()
        .network
        .layers()
        .map(|l| (usize::from(l.inputs) + 1) * usize::from(l.outputs))
        .sum();
    assert_eq!(parameters, 11_298);
}
