//! The network of the paper's 1D problems with made-up weights, for tests.
#![allow(dead_code)] // each test file uses its part

use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Fusion, Header, Limits, Network, Norm, Provenance,
    Sensing, Timing, encode,
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
    let mut random = Random(seed);
    [
        (2 * samples, 64),
        (64, 64),
        (8, 32),
        (32, 32),
        (96, 32),
        (32, 2),
    ]
    .map(|(inputs, outputs)| {
        let scale = (3.0 / inputs as f32).sqrt();
        Layer {
            inputs,
            weights: (0..inputs * outputs)
                .map(|_| scale * random.next())
                .collect(),
            bias: (0..outputs).map(|_| 0.3 * random.next()).collect(),
        }
    })
    .into()
}

pub fn header(samples: usize) -> Header<'static> {
    let dense = |inputs: usize, outputs: usize, norm, activation| Dense {
        inputs: inputs as u16,
        outputs: outputs as u16,
        norm,
        activation,
    };
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
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(2.0),
            low: [0.0, 0.0],
            high: [1.0, 0.0],
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
