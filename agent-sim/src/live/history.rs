//! What was shown, to go back to.

use super::Frame;
use std::sync::Arc;

/// Bytes of frames that are kept, about.
const ROOM: usize = 128 << 20;

/// The frames of a run so far; of a long one only some.
#[derive(Debug, Default)]
pub struct History {
    /// Every how many steps a frame is kept.
    stride: usize,
    frames: Vec<Arc<Frame>>,
    /// The newest, kept or not.
    newest: Option<Arc<Frame>>,
    /// Error and effort of every run after every step.
    pub figures: Vec<Vec<[f32; 2]>>,
}

impl History {
    /// For a run of so many steps.
    pub fn begin(&mut self, first: Arc<Frame>, steps: usize) {
        self.stride = (first.size() * (steps + 1)).div_ceil(ROOM).max(1);
        self.frames.clear();
        self.figures.clear();
        self.newest = None;
        self.push(first);
    }

    /// Keeps the next step.
    pub fn push(&mut self, frame: Arc<Frame>) {
        self.figures.push(frame.figures.clone());
        if frame.step.is_multiple_of(self.stride) {
            self.frames.push(Arc::clone(&frame));
        }
        self.newest = Some(frame);
    }

    /// Steps that were computed.
    pub fn head(&self) -> usize {
        self.newest.as_ref().map_or(0, |frame| frame.step)
    }

    /// The frame of a step, or the nearest that is kept before it.
    pub fn at(&self, step: usize) -> Option<Arc<Frame>> {
        if let Some(newest) = self.newest.as_ref().filter(|frame| frame.step <= step) {
            return Some(Arc::clone(newest));
        }
        self.frames.get(step / self.stride.max(1)).cloned()
    }
}
