//! A good blob, edited and sealed again.

use crate::{Words, examine};
use agent_core::message::CRC32;
use agent_core::policy::{FORMAT, MAGIC, PROLOGUE, PolicyError, WEIGHTS_ALIGN};
use agent_core_fuzz::{blobs::SMALL, sample, script::Script};

/// Most weights that a blob is given when its layers ask for more than it has.
const MOST_WEIGHTS: usize = 1 << 11;

/// A blob taken apart.
struct Parts {
    format: u32,
    header: Vec<u8>,
    weights: Vec<u8>,
    probe: Vec<u8>,
}

/// Edits one of the small blobs as the script says, mends it and examines it.
pub fn try_edited(script: &mut Script) {
    let blob = &SMALL[usize::from(script.u8()) % SMALL.len()];
    let mut parts = Parts::of(sample::bytes(blob));
    for _ in 0..script.below(8) {
        parts.edit(script);
    }
    // One word of the prologue may stay wrong, but not those that lead past the magic bytes, nor
    // the checksum.
    let wrong = (script.rarely(8)).then(|| (3 + usize::from(script.below(4)), script.u32()));
    let sealed = parts.sealed(wrong);
    if let Err(PolicyError::WeightCount { needed, .. }) = examine(&sealed, &mut Script(script.0))
        && needed <= MOST_WEIGHTS
    {
        parts.fit(needed);
        let _ = examine(&parts.sealed(None), script);
    }
}

impl Parts {
    fn of(blob: &[u8]) -> Self {
        let word = |k: usize| {
            let bytes = blob[4 * k..].first_chunk().expect("a prologue");
            u32::from_le_bytes(*bytes) as usize
        };
        Self {
            format: word(2) as u32,
            header: blob[PROLOGUE..][..word(3)].to_vec(),
            weights: blob[word(4)..][..word(5)].to_vec(),
            probe: blob[word(4) + word(5)..].to_vec(),
        }
    }

    fn edit(&mut self, script: &mut Script) {
        let kind = script.below(8);
        let at = usize::from(script.u16()) % (self.header.len() + 1);
        match kind {
            0..3 => {
                let bytes = script.take(usize::from(kind) + 1);
                let end = self.header.len().min(at + bytes.len());
                self.header[at..end].copy_from_slice(&bytes[..end - at]);
            }
            3 => {
                let bytes = script.f32().to_le_bytes();
                let end = self.header.len().min(at + bytes.len());
                self.header[at..end].copy_from_slice(&bytes[..end - at]);
            }
            4 => {
                let bytes = script.take(4);
                self.header.splice(at..at, bytes.iter().copied());
            }
            5 => {
                let end = self.header.len().min(at + usize::from(script.below(8)));
                self.header.drain(at..end);
            }
            6 => {
                let words = self.weights.len() / 4;
                let at = 4 * (usize::from(script.u16()) % words);
                self.weights[at..at + 4].copy_from_slice(&script.f32().to_le_bytes());
            }
            _ => self.format = u32::from(script.below(FORMAT as u8 + 2)),
        }
    }

    /// Gives it the weights its layers need: its own, over and over.
    fn fit(&mut self, needed: usize) {
        let weights = self.weights.iter().copied();
        self.weights = weights.cycle().take(4 * needed).collect();
    }

    /// The blob, with lengths and checksum as they should be but for one word.
    fn sealed(&self, wrong: Option<(usize, u32)>) -> Words {
        let weights_at = (PROLOGUE + self.header.len()).next_multiple_of(WEIGHTS_ALIGN);
        let total = weights_at + self.weights.len() + self.probe.len();
        let sizes = [self.header.len(), weights_at, self.weights.len(), total];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.format.to_le_bytes());
        bytes.extend(sizes.iter().flat_map(|size| (*size as u32).to_le_bytes()));
        bytes.extend([0; 4]);
        bytes.extend(&self.header);
        bytes.resize(weights_at, 0);
        bytes.extend(&self.weights);
        bytes.extend(&self.probe);
        if let Some((word, value)) = wrong {
            bytes[4 * word..][..4].copy_from_slice(&value.to_le_bytes());
        }
        let mut digest = CRC32.digest();
        digest.update(&bytes[..PROLOGUE - 4]);
        digest.update(&bytes[PROLOGUE..]);
        bytes[PROLOGUE - 4..PROLOGUE].copy_from_slice(&digest.finalize().to_le_bytes());
        Words::of(&bytes)
    }
}
