//! The policy blob: the only thing that crosses from training to agents.
//!
//! `docs/policy-format.md` defines it byte by byte. In short: a fixed 32-byte prologue, a
//! [`Header`] in postcard, padding, then the weights as little-endian f32 on a 16-byte boundary.
//! [`Policy::parse`] checks everything once; afterwards running the policy cannot fail.

mod encode;
mod error;
mod header;
mod prologue;

pub use encode::{DenseWeights, EncodeError, encode};
pub use error::PolicyError;
pub use header::{
    Activation, Channel, Dense, Disc, Fusion, Header, Limits, Network, Norm, Provenance, Sensing,
    Timing,
};

use crate::message::{PolicyId, frame_room};
use crate::net::{self, dense_len};
use error::field;
use header::{Extension, Sizes};
use prologue::{Prologue, checksum};

#[cfg(target_endian = "big")]
compile_error!(
    "weights are read in place as little-endian floats: this needs a little-endian target"
);

/// First bytes of every blob.
pub const MAGIC: [u8; 8] = *b"SWARMPOL";
/// The format that is written; format 1, which lacks the header's extension, is read too.
pub const FORMAT: u16 = 2;
/// Bytes before the header.
pub const PROLOGUE: usize = 32;
/// Weights start on a multiple of this, counted from the blob's first byte.
pub const WEIGHTS_ALIGN: usize = 16;
/// Most layers in one part of a network.
pub const MAX_LAYERS: usize = 6;
/// Most inputs, outputs or samples of anything: keeps all sizes far from overflow on 32 bits.
pub const MAX_WIDTH: usize = 4096;
/// Most Fourier frequencies.
pub const MAX_FREQUENCIES: usize = 8;
/// Most places to keep out of.
pub const MAX_DISCS: usize = 4;

/// A policy whose every size, limit and weight has been checked, borrowed from its bytes.
#[derive(Debug, Clone)]
pub struct Policy<'a> {
    header: Header<'a>,
    weights: &'a [f32],
    pub(crate) sizes: Sizes,
    id: PolicyId,
}

impl<'a> Policy<'a> {
    /// Checks a blob and borrows its weights in place.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PolicyError> {
        let prologue = Prologue::read(bytes)?;
        let total = prologue.total as usize;
        if bytes.len() > total {
            return Err(PolicyError::TrailingBytes {
                stated: total,
                found: bytes.len(),
            });
        }
        let header_end = PROLOGUE.saturating_add(prologue.header as usize);
        let weights_at = prologue.weights_at as usize;
        let weights_end = weights_at.saturating_add(prologue.weights as usize);
        let cut = |needed, section| PolicyError::Truncated {
            needed,
            found: bytes.len(),
            section,
        };
        let header = bytes
            .get(PROLOGUE..header_end)
            .ok_or(cut(header_end, "header"))?;
        if header_end > weights_at || !weights_at.is_multiple_of(WEIGHTS_ALIGN) {
            return field(
                "weights offset",
                "overlaps the header or is not a multiple of 16",
            );
        }
        if weights_end != total {
            return field("total length", "is not where the weights end");
        }
        let weights = bytes
            .get(weights_at..weights_end)
            .ok_or(cut(weights_end, "weights"))?;
        let computed = checksum(bytes);
        if computed != prologue.crc {
            return Err(PolicyError::Checksum {
                stated: prologue.crc,
                computed,
            });
        }
        let (mut header, mut rest) =
            postcard::take_from_bytes::<Header<'a>>(header).map_err(|_| PolicyError::Header)?;
        if prologue.format > 1 {
            let (extension, left) =
                postcard::take_from_bytes::<Extension>(rest).map_err(|_| PolicyError::Header)?;
            header.extend(extension);
            rest = left;
        }
        if !rest.is_empty() {
            return field("header length", "is longer than the header");
        }
        let weights: &[f32] = bytemuck::try_cast_slice(weights).map_err(|e| match e {
            bytemuck::PodCastError::TargetAlignmentGreaterAndInputNotAligned => {
                PolicyError::Misaligned
            }
            _ => PolicyError::Field {
                name: "weights length",
                fault: "is not a multiple of 4",
            },
        })?;
        let sizes = header.check()?;
        if sizes.weights != weights.len() {
            return Err(PolicyError::WeightCount {
                needed: sizes.weights,
                found: weights.len(),
            });
        }
        if let Some(index) = weights.iter().position(|w| !w.is_finite()) {
            return Err(PolicyError::Weight { index });
        }
        if header.workspace as usize != sizes.workspace() {
            return field("workspace", "is not what the network needs");
        }
        Ok(Self {
            header,
            weights,
            sizes,
            id: PolicyId {
                length: prologue.total,
                crc: prologue.crc,
            },
        })
    }

    /// What the blob says about itself.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// Floats of working memory a step needs.
    pub fn workspace_len(&self) -> usize {
        self.sizes.workspace()
    }

    /// Values of the patch a step expects, halo included.
    pub fn patch_len(&self) -> usize {
        self.sizes.cells
    }

    /// Bytes that are enough for the frame of an observation of the shape a step expects.
    pub fn frame_room(&self) -> usize {
        let sensing = &self.header.sensing;
        let cells = self.sizes.cells + sensing.wide_len();
        frame_room(cells * (1 + usize::from(sensing.target)))
    }

    /// Length and checksum.
    pub fn id(&self) -> PolicyId {
        self.id
    }

    /// Multiply-accumulates of the layers in one step.
    pub fn macs(&self) -> usize {
        self.header
            .network
            .layers()
            .map(|l| usize::from(l.inputs) * usize::from(l.outputs))
            .sum()
    }

    /// From features (already in the workspace, see [`observe`](crate::observe)) and position,
    /// scaled along each axis, to the raw outputs, left at the start of the returned slice.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn infer<'w>(
        &self,
        scaled_position: &[f32],
        workspace: &'w mut [f32],
    ) -> Option<&'w [f32]> {
        let Sizes {
            cells,
            branch,
            trunk,
            fused,
            widest,
            features,
            ..
        } = self.sizes;
        let network = &self.header.network;
        let (_, rest) = workspace.split_at_mut_checked(cells)?;
        let (joint, rest) = rest.split_at_mut_checked(branch + trunk)?;
        let (mut a, mut b) = rest.split_at_mut_checked(widest)?;
        let mut weights = self.weights;
        let (seen, placed) = joint.split_at_mut_checked(branch)?;

        let length = layers(&network.branch, &mut weights, features, &mut a, &mut b)?;
        copy(a.get(..length)?, seen)?;

        let length = fourier(&network.frequencies, scaled_position, a);
        let length = layers(&network.trunk, &mut weights, length, &mut a, &mut b)?;
        copy(a.get(..length)?, placed)?;

        if network.fusion == Fusion::Multiply && trunk != 0 {
            for (x, y) in seen.iter_mut().zip(placed.iter()) {
                *x *= *y;
            }
        }
        copy(joint.get(..fused)?, a.get_mut(..fused)?)?;
        let length = layers(&network.head, &mut weights, fused, &mut a, &mut b)?;
        a.get(..length)
    }

    /// Where [`infer`](Self::infer) expects the errors of the patch and the features.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn split_workspace<'w>(
        &self,
        workspace: &'w mut [f32],
    ) -> Option<(&'w mut [f32], &'w mut [f32])> {
        let (cells, rest) = workspace.split_at_mut_checked(self.sizes.cells)?;
        let features = rest
            .get_mut(self.sizes.branch + self.sizes.trunk..)?
            .get_mut(..self.sizes.features)?;
        Some((cells, features))
    }
}

/// `copy_from_slice` that gives no answer where that panics: on different lengths.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn copy(from: &[f32], to: &mut [f32]) -> Option<()> {
    (from.len() == to.len()).then(|| to.copy_from_slice(from))
}

/// Runs layers over `a`, going back and forth with `b`; the result ends in `a`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn layers<'w>(
    layers: &[Dense],
    weights: &mut &[f32],
    mut length: usize,
    a: &mut &'w mut [f32],
    b: &mut &'w mut [f32],
) -> Option<usize> {
    for layer in layers {
        let outputs = usize::from(layer.outputs);
        let (packed, rest) = weights.split_at_checked(dense_len(length, outputs))?;
        *weights = rest;
        let output = b.get_mut(..outputs)?;
        net::dense(packed, a.get(..length)?, output);
        if layer.norm == Norm::Soft {
            net::soft_normalise(output);
        }
        match layer.activation {
            Activation::Identity => {}
            Activation::Tanh => {
                for x in output {
                    *x = net::tanh(*x);
                }
            }
            Activation::Relu => {
                for x in output {
                    *x = x.max(0.0);
                }
            }
        }
        core::mem::swap(a, b);
        length = outputs;
    }
    Some(length)
}

/// All sines, axis after axis, then all cosines; returns how many values that is.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn fourier(frequencies: &[f32], scaled_position: &[f32], output: &mut [f32]) -> usize {
    let n = frequencies.len() * scaled_position.len();
    let Some((sines, cosines)) = output.split_at_mut_checked(n) else {
        return 0;
    };
    let axis = frequencies.len().max(1);
    for ((s, sines), cosines) in scaled_position
        .iter()
        .zip(sines.chunks_mut(axis))
        .zip(cosines.chunks_mut(axis))
    {
        for ((f, sine), cosine) in frequencies.iter().zip(sines).zip(cosines) {
            (*sine, *cosine) = net::sin_cos_pi(f * s);
        }
    }
    2 * n
}

/// Bytes of the blob that starts here, as its prologue states: finds its end in a flash slot.
pub fn stated_length(bytes: &[u8]) -> Result<usize, PolicyError> {
    Prologue::read(bytes).map(|p| p.total as usize)
}
