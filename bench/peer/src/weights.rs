//! A blob's weights as the library wants them; `docs/policy-format.md` says how they are packed.

use agent_core::policy::Dense;

use crate::tflm::Layer;

/// Outputs of one block of packed weights.
const BLOCK: usize = 8;

/// Takes a policy's layers out of its blob, one after the other.
pub struct Layers<'b> {
    packed: &'b [[u8; 4]],
    room: &'static mut [f32],
}

impl<'b> Layers<'b> {
    /// The layers of a valid blob, to be written to `room`.
    pub fn new(blob: &'b [u8], room: &'static mut [f32]) -> Self {
        let (words, _) = blob.as_chunks();
        let weights_at = u32::from_le_bytes(words[4]) as usize;
        Self {
            packed: &words[weights_at / 4..],
            room,
        }
    }

    /// The next layer, which has this shape.
    pub fn next(&mut self, dense: &Dense) -> Layer {
        let (inputs, outputs) = (usize::from(dense.inputs), usize::from(dense.outputs));
        let blocks = outputs.div_ceil(BLOCK);
        let (packed, rest) = self.packed.split_at(blocks * BLOCK * (inputs + 1));
        self.packed = rest;
        let (packed_bias, packed) = packed.split_at(blocks * BLOCK);

        let bias = self.take(outputs);
        for (to, from) in bias.iter_mut().zip(packed_bias) {
            *to = f32::from_le_bytes(*from);
        }
        let weights = self.take(outputs * inputs);
        for (output, row) in weights.chunks_mut(inputs).enumerate() {
            let block = &packed[output / BLOCK * inputs * BLOCK..];
            for (to, from) in row.iter_mut().zip(block.chunks(BLOCK)) {
                *to = f32::from_le_bytes(from[output % BLOCK]);
            }
        }
        Layer::new(dense, weights, bias)
    }

    fn take(&mut self, length: usize) -> &'static mut [f32] {
        self.room
            .split_off_mut(..length)
            .expect("room for a node's policy")
    }
}
