//! Writing blobs: what the trainer's export does, and what a converter of foreign policies needs.

use super::prologue::{Prologue, checksum};
use super::{Dense, FORMAT, Header, PROLOGUE, PolicyError, WEIGHTS_ALIGN};
use crate::net::{dense_len, pack_dense};
use core::fmt;

/// The trained numbers of one dense layer.
#[derive(Debug, Clone, Copy)]
pub struct DenseWeights<'a> {
    /// Row-major `[inputs][outputs]`.
    pub weights: &'a [f32],
    /// One per output.
    pub bias: &'a [f32],
}

/// Why a policy cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// The header describes no runnable policy.
    Invalid(PolicyError),
    /// Not one [`DenseWeights`] per layer, or one of another shape than its layer.
    Shape {
        /// Index among all layers: branch, trunk, head.
        layer: usize,
    },
    /// The buffer is too small.
    BufferTooSmall,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(e) => e.fmt(f),
            Self::Shape { layer } => {
                write!(f, "the weights of layer {layer} do not have its shape")
            }
            Self::BufferTooSmall => f.write_str("the buffer is too small for the policy"),
        }
    }
}

impl core::error::Error for EncodeError {}

impl From<PolicyError> for EncodeError {
    fn from(e: PolicyError) -> Self {
        Self::Invalid(e)
    }
}

/// Writes a blob into `buffer` and returns its bytes. `layers` are those of branch, trunk and head,
/// in this order; the header's `workspace` is computed here.
///
/// The buffer is words, not bytes, so that the blob in it is aligned for
/// [`Policy::parse`](super::Policy::parse).
pub fn encode<'b>(
    header: &Header,
    layers: &[DenseWeights],
    buffer: &'b mut [u32],
) -> Result<&'b [u8], EncodeError> {
    let sizes = header.check()?;
    let header = Header {
        workspace: sizes.workspace() as u32,
        ..header.clone()
    };
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(buffer);
    bytes.fill(0);
    let room = bytes.get_mut(PROLOGUE..).unwrap_or_default();
    let header_len = postcard::to_slice(&(&header, header.extension()), room)
        .map_err(|_| EncodeError::BufferTooSmall)?
        .len();
    let weights_at = (PROLOGUE + header_len).next_multiple_of(WEIGHTS_ALIGN);
    let total = weights_at + 4 * sizes.weights;
    let blob = bytes.get_mut(..total).ok_or(EncodeError::BufferTooSmall)?;
    let (start, weights) = blob.split_at_mut(weights_at);
    pack_all(&header, layers, bytemuck::cast_slice_mut(weights))?;

    let mut prologue = Prologue {
        format: FORMAT.into(),
        header: header_len as u32,
        weights_at: weights_at as u32,
        weights: 4 * sizes.weights as u32,
        total: total as u32,
        crc: 0,
    };
    if let Some(to) = start.first_chunk_mut() {
        *to = prologue.write();
    }
    prologue.crc = checksum(blob);
    if let Some(to) = blob.first_chunk_mut() {
        *to = prologue.write();
    }
    Ok(blob)
}

fn pack_all(
    header: &Header,
    layers: &[DenseWeights],
    mut section: &mut [f32],
) -> Result<(), EncodeError> {
    let mut given = layers.iter();
    for (layer, dense) in header.network.layers().enumerate() {
        let Dense {
            inputs, outputs, ..
        } = *dense;
        let (inputs, outputs) = (usize::from(inputs), usize::from(outputs));
        let shape = EncodeError::Shape { layer };
        let numbers = given.next().ok_or(shape)?;
        if numbers.weights.len() != inputs * outputs || numbers.bias.len() != outputs {
            return Err(shape);
        }
        let (packed, rest) = section
            .split_at_mut_checked(dense_len(inputs, outputs))
            .ok_or(shape)?;
        pack_dense(numbers.weights, numbers.bias, inputs, packed);
        section = rest;
    }
    match given.next() {
        Some(_) => Err(EncodeError::Shape {
            layer: layers.len() - 1,
        }),
        None => Ok(()),
    }
}
