//! Which points of a space are tried.

use super::Space;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sobol::Sobol;
use sobol::params::JoeKuoD6;

/// How points are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// All combinations of all values.
    Grid,
    /// Evenly, whatever their number: a Sobol sequence, shifted by the seed.
    #[default]
    Sobol,
    /// By chance.
    Random,
}

/// The points of a campaign, in order.
pub struct Points<'s> {
    space: &'s Space,
    next: usize,
    sequence: Option<Sobol<f64>>,
    /// What the sequence is shifted by, on a circle.
    shift: Vec<f64>,
}

impl<'s> Points<'s> {
    /// From the point of that number on.
    pub fn from(space: &'s Space, first: usize) -> Self {
        let (dimensions, seed) = (space.coordinates, space.settings.seed);
        let sobol = space.settings.sampling == Sampling::Sobol && dimensions > 0;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::MAX);
        let mut sequence = sobol.then(|| Sobol::new(dimensions, &JoeKuoD6::minimal()));
        if let Some(sequence) = &mut sequence {
            // The first is the corner of the space. `nth` of the crate goes through all before.
            (0..=first).for_each(|_| drop(sequence.next()));
        }
        Self {
            space,
            next: first,
            sequence,
            shift: (0..dimensions).map(|_| rng.random()).collect(),
        }
    }
}

impl Iterator for Points<'_> {
    type Item = Vec<f64>;

    fn next(&mut self) -> Option<Vec<f64>> {
        let run = self.next;
        if run >= self.space.runs() {
            return None;
        }
        self.next += 1;
        match self.space.settings.sampling {
            Sampling::Grid => Some(self.space.grid_point(run)),
            Sampling::Random => {
                let mut rng = ChaCha8Rng::seed_from_u64(self.space.settings.seed);
                rng.set_stream(run as u64);
                Some((0..self.space.coordinates).map(|_| rng.random()).collect())
            }
            Sampling::Sobol => {
                let Some(sequence) = &mut self.sequence else {
                    return Some(Vec::new());
                };
                let point = sequence.next()?;
                let shifted = point
                    .iter()
                    .zip(&self.shift)
                    .map(|(x, by)| (x + by).fract());
                Some(shifted.collect())
            }
        }
    }
}
