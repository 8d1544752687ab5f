//! The network of the paper's 1D problems and a small one for the plane, with made-up weights, for
//! tests.
#![allow(dead_code)] // each test file uses its part

use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Disc, Fusion, Header, Limits, Network, Norm, Policy,
    Provenance, Sensing, Timing, encode,
};

pub const WINDOW: usize = 8;
pub const FREQUENCIES: [f32; 4] = [1.0, 2.0, 4.0, 8.0];

pub struct Layer {
    pub inputs: usize,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Branch, branch, trunk, trunk, fusion, heads.
pub fn layers(samples: usize, seed: u64) -> Vec<Layer> {
    let sizes = [
        (2 * samples, 64),
        (64, 64),
        (8, 32),
        (32, 32),
        (96, 32),
        (32, 2),
    ];
    layers_of(&sizes, seed)
}

fn layers_of(sizes: &[(usize, usize)], seed: u64) -> Vec<Layer> {
    let mut random = Random(seed);
    let layer = |&(inputs, outputs): &(usize, usize)| {
        let scale = (3.0 / inputs as f32).sqrt();
        Layer {
            inputs,
            weights: (0..inputs * outputs)
                .map(|_| scale * random.next())
                .collect(),
            bias: (0..outputs).map(|_| 0.3 * random.next()).collect(),
        }
    };
    sizes.iter().map(layer).collect()
}

fn dense(inputs: usize, outputs: usize, norm: Norm, activation: Activation) -> Dense {
    Dense {
        inputs: inputs as u16,
        outputs: outputs as u16,
        norm,
        activation,
    }
}

pub fn header(samples: usize) -> Header<'static> {
    use Activation::{Identity, Tanh};
    Header {
        problem: "heat-1d",
        sensing: Sensing {
            axes: 1,
            window: WINDOW as u16,
            target: true,
            channels: [Channel::Error, Channel::Slope].into_iter().collect(),
            samples: samples as u16,
            error_limit: 1e4,
            wide: None,
        },
        network: Network {
            branch: [
                dense(2 * samples, 64, Norm::Soft, Tanh),
                dense(64, 64, Norm::Soft, Tanh),
            ]
            .into_iter()
            .collect(),
            frequencies: FREQUENCIES.into_iter().collect(),
            trunk: [
                dense(8, 32, Norm::None, Tanh),
                dense(32, 32, Norm::None, Tanh),
            ]
            .into_iter()
            .collect(),
            fusion: Fusion::Concatenate,
            head: [
                dense(96, 32, Norm::None, Tanh),
                dense(32, 2, Norm::None, Identity),
            ]
            .into_iter()
            .collect(),
            ..Network::default()
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(2.0),
            low: [0.0, 0.0],
            high: [1.0, 0.0],
            keep_out: Default::default(),
            ..Limits::default()
        },
        timing: Timing {
            period_us: 1_000,
            late_us: 2_000,
            fail_safe_us: 20_000,
        },
        workspace: 0,
        provenance: Provenance {
            tool: "test",
            revision: "none",
            seed: 1,
            steps: 0,
        },
        probe: None,
    }
}

/// A blob in words, so that it is aligned, and its length in bytes.
pub fn blob(header: &Header, layers: &[Layer]) -> (Vec<u32>, usize) {
    let numbers: Vec<DenseWeights> = layers
        .iter()
        .map(|l| DenseWeights {
            weights: &l.weights,
            bias: &l.bias,
        })
        .collect();
    let mut buffer = vec![0; 1 << 15];
    let length = encode(header, &numbers, &mut buffer).unwrap().len();
    (buffer, length)
}

pub fn bytes(blob: &(Vec<u32>, usize)) -> &[u8] {
    &bytemuck::cast_slice(&blob.0)[..blob.1]
}

/// The published 1D policy with window resampling to 20 points.
pub fn published(seed: u64) -> (Vec<u32>, usize) {
    blob(&header(20), &layers(20, seed))
}

pub const PLANE_WINDOW: usize = 6;
pub const PLANE_WIDE: [u8; 2] = [2, 3];
pub const PLANE_FREQUENCIES: [f32; 2] = [1.0, 2.0];
/// 36 cells of the window and 6 of the whole; two frequencies along two axes; force and velocity.
pub const PLANE_SIZES: [(usize, usize); 3] = [(42, 16), (8, 8), (24, 3)];

/// A policy for the plane with a wide view and two places to keep out of.
pub fn plane_header() -> Header<'static> {
    use Activation::{Identity, Tanh};
    let [branch, trunk, head] = PLANE_SIZES;
    let disc = |x, y, radius| Disc {
        centre: [x, y],
        radius,
    };
    Header {
        problem: "heat-2d",
        sensing: Sensing {
            axes: 2,
            window: PLANE_WINDOW as u16,
            target: true,
            channels: [Channel::Error].into_iter().collect(),
            samples: PLANE_WINDOW as u16,
            error_limit: 1e3,
            wide: Some(PLANE_WIDE),
        },
        network: Network {
            branch: [dense(branch.0, branch.1, Norm::Soft, Tanh)]
                .into_iter()
                .collect(),
            frequencies: PLANE_FREQUENCIES.into_iter().collect(),
            trunk: [dense(trunk.0, trunk.1, Norm::None, Tanh)]
                .into_iter()
                .collect(),
            fusion: Fusion::Concatenate,
            head: [dense(head.0, head.1, Norm::None, Identity)]
                .into_iter()
                .collect(),
            ..Network::default()
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(5.0),
            low: [0.0, 0.0],
            high: [1.0, 1.25],
            keep_out: [disc(0.3, 0.3, 0.06), disc(0.5, 0.5, 0.06)]
                .into_iter()
                .collect(),
            ..Limits::default()
        },
        ..header(WINDOW)
    }
}

/// That policy's blob.
pub fn plane(seed: u64) -> (Vec<u32>, usize) {
    blob(&plane_header(), &layers_of(&PLANE_SIZES, seed))
}

/// That policy's layers.
pub fn plane_layers(seed: u64) -> Vec<Layer> {
    layers_of(&PLANE_SIZES, seed)
}

/// What an agent is shown, owned; by default as much of everything as its policy asks for.
pub struct Shown {
    pub field: Vec<f32>,
    pub target: Vec<f32>,
    pub inside: [Span; 2],
    pub wide_field: Vec<f32>,
    pub wide_target: Vec<f32>,
}

impl Shown {
    /// `value` in every cell, all of them inside the domain.
    pub fn all(policy: &Policy, value: f32) -> Self {
        let sensing = &policy.header().sensing;
        let with_target = |cells| if sensing.target { cells } else { 0 };
        let side = Span {
            first: 0,
            last: sensing.window + 1,
        };
        let wide = sensing.wide_len();
        Self {
            field: vec![value; policy.patch_len()],
            target: vec![0.0; with_target(policy.patch_len())],
            inside: match sensing.axes {
                1 => [side, Span::default()],
                _ => [side; 2],
            },
            wide_field: vec![value; wide],
            wide_target: vec![0.0; with_target(wide)],
        }
    }

    pub fn patch(&self) -> Patch<'_> {
        Patch {
            field: Samples::new(&self.field),
            target: Samples::new(&self.target),
            inside: self.inside,
            wide: Overview {
                field: Samples::new(&self.wide_field),
                target: Samples::new(&self.wide_target),
            },
        }
    }

    pub fn at(&self, position: [f32; 2], now_us: u64) -> Observation<'_> {
        Observation {
            now_us,
            position,
            patch: self.patch(),
        }
    }
}

/// A small generator (SplitMix64); uniform in −1..1.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}
