//! Writing blobs: what the trainer's export does, and what a converter of foreign policies needs.

use super::header::{Extension4, Extension5};
use super::prologue::{Prologue, checksum};
use super::{
    Encoding, FORMAT, Header, MAX_CONVOLUTIONS, MAX_LAYERS, PROLOGUE, Policy, PolicyError, Probe,
    WEIGHTS_ALIGN,
};
use crate::int8;
use crate::message::Span;
use crate::net::{dense_len, pack_dense, unpack_dense};
use core::fmt;
use heapless::Vec;

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
#[non_exhaustive]
pub enum EncodeError {
    /// The header describes no runnable policy.
    Invalid(PolicyError),
    /// Not one [`DenseWeights`] per layer, or one of another shape than its layer.
    Shape {
        /// Index among all layers: convolutions, branch, trunk, head.
        layer: usize,
    },
    /// The buffer is too small.
    BufferTooSmall,
    /// The header has something that this format has no place for, or it is none of those that are written.
    Format {
        /// The format asked for.
        format: u16,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(e) => e.fmt(f),
            Self::Shape { layer } => {
                write!(f, "the weights of layer {layer} do not have its shape")
            }
            Self::BufferTooSmall => f.write_str("the buffer is too small for the policy"),
            Self::Format { format } => write!(
                f,
                "format {format} has no place for all of it, or is not one of {OLDEST} to {FORMAT}; write \
                 format {FORMAT}"
            ),
        }
    }
}

impl core::error::Error for EncodeError {}

impl From<PolicyError> for EncodeError {
    fn from(e: PolicyError) -> Self {
        Self::Invalid(e)
    }
}

/// Writes a blob into `buffer` and returns its bytes. `layers` are the convolutions (with a row of
/// weights for each cell and channel under the kernel: row, column, channel), then the layers of
/// branch, trunk and head, in this order; the header's `workspace` and `probe` are made here.
///
/// The buffer is words, not bytes, so that the blob in it is aligned for
/// [`Policy::parse`](super::Policy::parse). It needs room for the working memory too, in which the
/// probe is run.
pub fn encode<'b>(
    header: &Header,
    layers: &[DenseWeights],
    buffer: &'b mut [u32],
) -> Result<&'b [u8], EncodeError> {
    encode_as(FORMAT, header, layers, buffer)
}

/// The first format with a self-test: older ones are not written.
pub const OLDEST: u16 = 3;

/// The same in this format, [`OLDEST`] to [`FORMAT`]: what was written in it once comes out as it was.
pub fn encode_as<'b>(
    format: u16,
    header: &Header,
    layers: &[DenseWeights],
    buffer: &'b mut [u32],
) -> Result<&'b [u8], EncodeError> {
    let (_, _, fourth, fifth) = header.extensions();
    let lost = format < 4 && fourth != Extension4::default()
        || format < 5 && fifth != Extension5::default();
    if lost || !(OLDEST..=FORMAT).contains(&format) {
        return Err(EncodeError::Format { format });
    }
    let sizes = header.check().map_err(PolicyError::from)?;
    let inside = |window: u16| Span {
        first: 0,
        last: window + 1,
    };
    let axes = [true, header.sensing.axes > 1];
    let mut probe = Probe {
        position: header.limits.within(PROBE_PLACE),
        inside: axes.map(|there| match there {
            true => inside(header.sensing.window),
            false => Span::default(),
        }),
        expected: [[0; 4]; 3],
    };
    let workspace = sizes.workspace();
    let room = buffer.len().saturating_sub(workspace);
    let (blob, memory) = buffer.split_at_mut(room);
    let length = write(format, header, probe, layers, blob)?.len();
    let outputs = {
        let bytes: &[u8] = bytemuck::must_cast_slice(blob);
        let policy = Policy::parse(bytes.get(..length).unwrap_or_default())?;
        let memory: &mut [f32] = bytemuck::must_cast_slice_mut(memory);
        let observed = policy.probe().map(|(observation, _)| observation);
        observed.and_then(|observation| policy.probed(&observation, memory))
    };
    probe.expected = outputs
        .ok_or(EncodeError::BufferTooSmall)?
        .map(f32::to_le_bytes);
    write(format, header, probe, layers, blob)
}

/// Writes a policy with f32 weights anew, as the newest format has it and under a header that is its
/// own but for how weights are stored and for the limits. `scratch` takes the weights in between:
/// [`Policy::parameters_len`] floats.
pub fn recode<'b>(
    policy: &Policy,
    header: &Header,
    scratch: &mut [f32],
    buffer: &'b mut [u32],
) -> Result<&'b [u8], EncodeError> {
    let mut layers = Layers::new();
    policy.unpack(scratch, &mut layers)?;
    encode(header, &layers, buffer)
}

/// The numbers of all layers.
pub type Layers<'a> = Vec<DenseWeights<'a>, { MAX_CONVOLUTIONS + 3 * MAX_LAYERS }>;

impl Policy<'_> {
    /// The numbers of all layers, in the order in which [`encode`] takes them, which makes the same
    /// weight section of them; `scratch` has room for [`parameters_len`](Self::parameters_len) floats.
    ///
    /// Of int8 weights it is what the integers stand for, and the largest of each output is what this
    /// crate's encoder divides into the very scale. (A blob of another encoder may come out with
    /// other roundings.)
    pub fn unpack<'s>(
        &self,
        mut scratch: &'s mut [f32],
        layers: &mut Layers<'s>,
    ) -> Result<(), EncodeError> {
        let (length, unpack): (fn(_, _) -> _, fn(&_, _, &mut _, &mut _)) =
            match self.header.network.encoding {
                Encoding::F32 => (dense_len, unpack_dense),
                Encoding::Int8 => (int8::dense_len, int8::unpack_dense),
            };
        let mut section = self.weights;
        for (inputs, outputs) in self.header.network.shapes() {
            let packed = section.split_off(..length(inputs, outputs));
            let room = scratch.split_off_mut(..(inputs + 1) * outputs);
            let (weights, bias) = room
                .and_then(|room| room.split_at_mut_checked(inputs * outputs))
                .ok_or(EncodeError::BufferTooSmall)?;
            unpack(packed.unwrap_or_default(), inputs, weights, bias);
            // There is room for as many as a header can hold.
            let _ = layers.push(DenseWeights { weights, bias });
        }
        Ok(())
    }
}

/// Where the agent of the probe is, as a share of the domain along each axis: nowhere special.
const PROBE_PLACE: [f32; 2] = [0.37, 0.61];

fn write<'b>(
    format: u16,
    header: &Header,
    probe: Probe,
    layers: &[DenseWeights],
    buffer: &'b mut [u32],
) -> Result<&'b [u8], EncodeError> {
    let header = Header {
        probe: Some(probe),
        ..header.clone()
    };
    let sizes = header.check().map_err(PolicyError::from)?;
    let header = Header {
        workspace: sizes.workspace() as u32,
        ..header
    };
    let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(buffer);
    bytes.fill(0);
    let room = bytes.get_mut(PROLOGUE..).unwrap_or_default();
    let (second, third, fourth, fifth) = header.extensions();
    let written = match format {
        3 => postcard::to_slice(&(&header, second, third), room),
        4 => postcard::to_slice(&(&header, second, third, fourth), room),
        _ => postcard::to_slice(&(&header, second, third, fourth, fifth), room),
    };
    let header_len = written.map_err(|_| EncodeError::BufferTooSmall)?.len();
    let weights_at = (PROLOGUE + header_len).next_multiple_of(WEIGHTS_ALIGN);
    let probe_at = weights_at + 4 * sizes.weights;
    let total = probe_at + 4 * sizes.samples;
    let blob = bytes.get_mut(..total).ok_or(EncodeError::BufferTooSmall)?;
    let (start, sections) = blob.split_at_mut(weights_at);
    let sections: &mut [f32] = bytemuck::cast_slice_mut(sections);
    let (weights, samples) = sections.split_at_mut(sizes.weights);
    pack_all(&header, layers, weights)?;
    probe_samples(samples);

    let mut prologue = Prologue {
        format: format.into(),
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

/// What the agent of the probe is shown: values all over −1..1, with as many bits as a float has.
fn probe_samples(samples: &mut [f32]) {
    // A linear congruential generator modulo 2³² (Numerical Recipes' constants).
    let mut state = 1u32;
    for sample in samples {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *sample = (state >> 8) as f32 / 8_388_608.0 - 1.0;
    }
}

fn pack_all(
    header: &Header,
    layers: &[DenseWeights],
    mut section: &mut [f32],
) -> Result<(), EncodeError> {
    let network = &header.network;
    let (length, pack): (fn(_, _) -> _, fn(&_, &_, _, &mut _)) = match network.encoding {
        Encoding::F32 => (dense_len, pack_dense),
        Encoding::Int8 => (int8::dense_len, int8::pack_dense),
    };
    let mut given = layers.iter();
    for (layer, (inputs, outputs)) in network.shapes().enumerate() {
        let shape = EncodeError::Shape { layer };
        let numbers = given.next().ok_or(shape)?;
        if numbers.weights.len() != inputs * outputs || numbers.bias.len() != outputs {
            return Err(shape);
        }
        let (packed, rest) = section
            .split_at_mut_checked(length(inputs, outputs))
            .ok_or(shape)?;
        pack(numbers.weights, numbers.bias, inputs, packed);
        section = rest;
    }
    match given.next() {
        Some(_) => Err(EncodeError::Shape {
            layer: layers.len() - 1,
        }),
        None => Ok(()),
    }
}
