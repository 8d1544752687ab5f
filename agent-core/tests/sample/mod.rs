//! The network of the paper's 1D problems and a small one for the plane, with made-up weights, for
//! tests.
#![allow(dead_code)] // each test file uses its part

use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::net::unpack_dense;
use agent_core::policy::{
    Activation, Channel, Convolution, Dense, DenseWeights, Disc, Encoding, Fusion, Header, Limits,
    Memory, Network, Norm, PROLOGUE, Policy, Provenance, Sensing, Text, Timing, encode,
};

pub const WINDOW: usize = 8;
pub const FREQUENCIES: [f32; 4] = [1.0, 2.0, 4.0, 8.0];

pub struct Layer {
    pub inputs: usize,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Layer {
    pub fn weights(&self) -> DenseWeights<'_> {
        DenseWeights {
            weights: &self.weights,
            bias: &self.bias,
        }
    }
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

/// Made-up layers of these sizes.
pub fn layers_of(sizes: &[(usize, usize)], seed: u64) -> Vec<Layer> {
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

pub fn dense(inputs: usize, outputs: usize, norm: Norm, activation: Activation) -> Dense {
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
        problem: Text::new("heat-1d"),
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
            tool: Text::new("test"),
            revision: Text::new("none"),
            seed: 1,
            steps: 0,
        },
        probe: None,
    }
}

/// A blob in words, so that it is aligned, and its length in bytes.
pub fn blob(header: &Header, layers: &[Layer]) -> (Vec<u32>, usize) {
    let numbers: Vec<DenseWeights> = layers.iter().map(Layer::weights).collect();
    // Packing pads outputs to eight, and the probe needs working memory.
    let weights: usize = layers.iter().map(|l| l.weights.len() + l.inputs * 8).sum();
    let mut buffer = vec![0; weights + (1 << 15)];
    let length = encode(header, &numbers, &mut buffer).unwrap().len();
    (buffer, length)
}

/// The blob with its checksum made right again after a change.
pub fn resealed(mut words: Vec<u32>, length: usize) -> (Vec<u32>, usize) {
    let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..length];
    let mut digest = agent_core::message::CRC32.digest();
    digest.update(&bytes[..PROLOGUE - 4]);
    digest.update(&bytes[PROLOGUE..]);
    let crc = digest.finalize();
    words[7] = crc;
    (words, length)
}

/// Bytes of a file as a blob.
pub fn read(bytes: &[u8]) -> (Vec<u32>, usize) {
    let mut words = vec![0u32; bytes.len().div_ceil(4)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    (words, bytes.len())
}

/// A policy's layers as they were before packing: those of f32 weights.
pub fn unpacked(policy: &Policy) -> Vec<Layer> {
    let layer = |(inputs, outputs, packed): (usize, usize, &[f32])| {
        let mut layer = Layer {
            inputs,
            weights: vec![0.0; inputs * outputs],
            bias: vec![0.0; outputs],
        };
        unpack_dense(packed, inputs, &mut layer.weights, &mut layer.bias);
        layer
    };
    policy.packed_layers().map(layer).collect()
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
        problem: Text::new("heat-2d"),
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

/// The published 1D policy with 8-bit weights.
pub fn int8_header(samples: usize) -> Header<'static> {
    let mut header = header(samples);
    header.network.encoding = Encoding::Int8;
    header
}

/// The policy for the plane with 8-bit weights.
pub fn int8_plane_header() -> Header<'static> {
    let mut header = plane_header();
    header.network.encoding = Encoding::Int8;
    header
}

pub fn convolution(
    inputs: usize,
    outputs: usize,
    [stride, padding]: [u8; 2],
    activation: Activation,
) -> Convolution {
    Convolution {
        inputs: inputs as u16,
        outputs: outputs as u16,
        stride,
        padding,
        activation,
    }
}

/// A policy for the plane that looks at errors and both their slopes through convolutions, beside
/// them at the whole, and then is as the paper's are: soft normalisation of all that was found, a
/// dense layer, a trunk, a head.
pub fn convolved_header(window: usize, convolutions: &[Convolution]) -> Header<'static> {
    use Activation::{Identity, Tanh};
    let mut header = plane_header();
    header.sensing.window = window as u16;
    header.sensing.samples = window as u16;
    header.sensing.channels = [Channel::Error, Channel::Slope, Channel::Across]
        .into_iter()
        .collect();
    header.network.convolutions = convolutions.iter().copied().collect();
    header.network.flatten = Norm::Soft;
    let side = convolutions
        .iter()
        .fold(window, |side, layer| layer.side(side).unwrap());
    let channels = usize::from(convolutions.last().unwrap().outputs);
    let flat = side * side * channels + header.sensing.wide_len();
    header.network.branch = [dense(flat, 16, Norm::None, Tanh)].into_iter().collect();
    header.network.trunk = [dense(8, 8, Norm::None, Tanh)].into_iter().collect();
    header.network.head = [dense(24, 3, Norm::None, Identity)].into_iter().collect();
    header
}

/// Made-up layers for a header, convolutions first.
/// With a memory of so many numbers, which the branch reads and the head writes.
pub fn remembering(mut header: Header, floats: u8) -> Header {
    let network = &mut header.network;
    network.memory = Some(Memory {
        floats,
        leak: 0.05,
        gain: 0.3,
    });
    network.branch[0].inputs += u16::from(floats);
    let head = network.head.last_mut().unwrap();
    head.outputs += 2 * u16::from(floats);
    header
}

pub fn layers_for(header: &Header, seed: u64) -> Vec<Layer> {
    let network = &header.network;
    let convolutions = network.convolutions.iter();
    let convolutions = convolutions.map(|c| (c.fan_in(), usize::from(c.outputs)));
    let dense = network.layers();
    let dense = dense.map(|l| (usize::from(l.inputs), usize::from(l.outputs)));
    layers_of(&convolutions.chain(dense).collect::<Vec<_>>(), seed)
}

/// Two convolutions on a window of 6: small, and one of each stride and padding.
pub fn convolved(seed: u64) -> (Vec<u32>, usize) {
    use Activation::{Relu, Tanh};
    let header = convolved_header(
        6,
        &[
            convolution(3, 4, [1, 1], Relu),
            convolution(4, 5, [2, 0], Tanh),
        ],
    );
    blob(&header, &layers_for(&header, seed))
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

    /// Noise in every cell, up to `scale`, with the walls somewhere on each side of the agent's own;
    /// what lies beyond them is NaN, because nobody may look at it. Digests in tests depend on it.
    pub fn noise(policy: &Policy, scale: f32, random: &mut Random) -> Self {
        let mut shown = Self::all(policy, 0.0);
        let sensing = &policy.header().sensing;
        let (side, centre) = (sensing.window + 2, 1 + sensing.window / 2);
        let axes = usize::from(sensing.axes);
        for span in shown.inside.iter_mut().take(axes) {
            // The walls are where they are seen half the time.
            let mut near = |room: u16| random.below(2 * u32::from(room) + 2) as u16;
            span.first = near(centre).min(centre);
            span.last = centre + near(side - 1 - centre).min(side - 1 - centre);
        }
        let [rows, columns] = shown.inside;
        let beyond = |k: usize| {
            let along =
                |span: Span, at: usize| at < usize::from(span.first) || at > usize::from(span.last);
            match axes {
                1 => along(rows, k),
                _ => {
                    let side = usize::from(side);
                    along(rows, k / side) || along(columns, k % side)
                }
            }
        };
        for cells in [&mut shown.field, &mut shown.target] {
            for (k, cell) in cells.iter_mut().enumerate() {
                let noise = scale * random.next();
                *cell = if beyond(k) { f32::NAN } else { noise };
            }
        }
        for cells in [&mut shown.wide_field, &mut shown.wide_target] {
            cells.fill_with(|| scale * random.next());
        }
        shown
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
    /// Uniform in 0..`end`, but for a bias of `end` in 2⁶⁴.
    pub fn below(&mut self, end: u32) -> u32 {
        (self.bits() % u64::from(end)) as u32
    }

    pub fn next(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
