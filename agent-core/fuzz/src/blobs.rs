//! Good policies: the shipped ones that differ most, and small ones, with which a fuzzer is fast.

use crate::sample::{self, Layer, Random};
use agent_core::policy::{Header, Policy};
use std::sync::LazyLock;

/// Bytes where a policy can be read in place.
#[repr(C, align(16))]
struct Aligned<B: ?Sized>(B);

macro_rules! shipped {
    ($problem:literal) => {{
        static BLOB: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            "../../../policies/",
            $problem,
            ".policy"
        )));
        &BLOB.0
    }};
}

/// The smallest policies of each kind: in the plane with discs and a wide view, on the line with
/// resampling.
pub fn small_headers() -> [Header<'static>; 2] {
    [sample::plane_header(), line_header()]
}

/// The published network of the line, a tenth as wide.
const LINE_SAMPLES: usize = 10;
const LINE_SIZES: [(usize, usize); 4] = [(2 * LINE_SAMPLES, 9), (8, 5), (14, 7), (7, 2)];

fn line_header() -> Header<'static> {
    let mut header = sample::header(LINE_SAMPLES);
    let network = &mut header.network;
    network.branch.truncate(1);
    network.trunk.truncate(1);
    let layers = network.branch.iter_mut();
    let layers = layers.chain(&mut network.trunk).chain(&mut network.head);
    for (layer, (inputs, outputs)) in layers.zip(LINE_SIZES) {
        (layer.inputs, layer.outputs) = (inputs as u16, outputs as u16);
    }
    header
}

fn line_layers() -> Vec<Layer> {
    let mut random = Random(3);
    let mut numbers = |n: usize| (0..n).map(|_| random.next()).collect();
    let layer = |(inputs, outputs): (usize, usize)| Layer {
        inputs,
        weights: numbers(inputs * outputs),
        bias: numbers(outputs),
    };
    LINE_SIZES.map(layer).into()
}

/// Their blobs, as the format is written today, and one for each thing that a format has brought.
pub static SMALL: LazyLock<Vec<(Vec<u32>, usize)>> = LazyLock::new(|| {
    let golden = [
        &include_bytes!("../../tests/golden/format-2-plane.policy")[..],
        include_bytes!("../../tests/golden/format-3-line.policy"),
        include_bytes!("../../tests/golden/format-3-convolutions.policy"),
        include_bytes!("../../tests/golden/format-3-int8-line.policy"),
        include_bytes!("../../tests/golden/format-3-int8-plane.policy"),
        include_bytes!("../../tests/golden/format-4-force.policy"),
        include_bytes!("../../tests/golden/format-4-velocity.policy"),
        include_bytes!("../../tests/golden/format-5-line.policy"),
        include_bytes!("../../tests/golden/format-5-int8-plane.policy"),
    ];
    let mut small = vec![
        sample::plane(3),
        sample::blob(&line_header(), &line_layers()),
    ];
    small.extend(golden.iter().map(|bytes| {
        let mut words = vec![0u32; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        (words, bytes.len())
    }));
    small
});

/// Policies that take any valid input for what it is: none of them can overflow.
///
/// The small ones first; then, shipped, on the line moving agents and fixed ones, in the plane with
/// discs, and with a wide view and without force.
pub static SOUND: LazyLock<Vec<Policy<'static>>> = LazyLock::new(|| {
    let small = SMALL.iter().map(sample::bytes);
    let shipped = [
        shipped!("heat-1d"),
        shipped!("ks-1d"),
        shipped!("heat-2d-obstacles"),
        shipped!("density-2d"),
    ];
    let blobs = small.chain(shipped);
    let parse = |blob| Policy::parse(blob).expect("a good policy");
    blobs.map(parse).collect()
});
