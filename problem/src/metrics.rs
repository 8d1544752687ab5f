//! Scores of one run and their statistics over many.

use crate::{Headline, Scoring};
use serde::{Deserialize, Serialize};

/// What one closed-loop run is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Mean squared error to the target in the last record.
    pub final_error: f64,
    /// The same, averaged over all records.
    pub time_mean_error: f64,
    /// Mean u² over steps and agents; mean |v|² where agents stir.
    pub effort: f64,
    /// Mean length of an agent's path.
    pub travel: f64,
    /// Share of agents' steps that ended inside a keep-out zone.
    pub intrusion: f64,
}

impl Score {
    /// The figure of the published table.
    pub fn headline(&self, scoring: Scoring) -> f64 {
        match scoring.headline {
            Headline::Final => self.final_error,
            Headline::TimeMean => self.time_mean_error,
        }
    }
}

/// How a figure is spread over episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation (the published ± is twice this).
    pub std: f64,
    /// Middle value.
    pub median: f64,
    /// 95th percentile, interpolated linearly between ranks.
    pub p95: f64,
    /// Largest value.
    pub worst: f64,
}

impl Spread {
    /// The spread of at least one value.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        assert!(!sorted.is_empty(), "a spread needs at least one value");
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        sorted.sort_by(f64::total_cmp);
        Self {
            mean,
            std: variance.sqrt(),
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            worst: sorted[sorted.len() - 1],
        }
    }
}

/// Linear interpolation between the two nearest ranks, as NumPy does by default.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = q * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (rank - below as f64) * (sorted[above] - sorted[below])
}

/// All scores of a set of episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Spread of [`Score::final_error`].
    #[serde(rename = "final")]
    pub final_error: Spread,
    /// Spread of [`Score::time_mean_error`].
    pub time_mean: Spread,
    /// Spread of [`Score::effort`].
    pub effort: Spread,
    /// Spread of [`Score::travel`].
    pub travel: Spread,
    /// Spread of [`Score::intrusion`].
    pub intrusion: Spread,
}

impl Summary {
    /// The spreads of at least one score.
    pub fn of(scores: &[Score]) -> Self {
        let spread = |figure: fn(&Score) -> f64| Spread::of(scores.iter().map(figure));
        Self {
            final_error: spread(|s| s.final_error),
            time_mean: spread(|s| s.time_mean_error),
            effort: spread(|s| s.effort),
            travel: spread(|s| s.travel),
            intrusion: spread(|s| s.intrusion),
        }
    }

    /// Spread of the figure of the published table.
    pub fn headline(&self, scoring: Scoring) -> &Spread {
        match scoring.headline {
            Headline::Final => &self.final_error,
            Headline::TimeMean => &self.time_mean,
        }
    }
}

/// Mean squared difference of a state and its target, every value counting as much as its weight says
/// (see [`Problem::weights`](crate::Problem::weights)).
pub fn mean_squared_error(state: &[f64], target: &[f32], weights: Option<&[f64]>) -> f64 {
    let squares = (state.iter().zip(target)).map(|(z, t)| (z - f64::from(*t)).powi(2));
    let sum: f64 = match weights {
        None => squares.sum(),
        Some(weights) => squares.zip(weights).map(|(e, w)| e * w).sum(),
    };
    sum / state.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_agree_with_numpy() {
        // numpy: mean, std, median, percentile(…, 95) of [3, 1, 4, 1, 5]; rank 3.8 lies between 4 and 5.
        let spread = Spread::of([3.0, 1.0, 4.0, 1.0, 5.0]);
        let expected = [2.8, 1.6, 3.0, 4.8, 5.0];
        let found = [
            spread.mean,
            spread.std,
            spread.median,
            spread.p95,
            spread.worst,
        ];
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn one_value_is_its_own_spread() {
        let spread = Spread::of([2.0]);
        assert_eq!((spread.mean, spread.std, spread.p95), (2.0, 0.0, 2.0));
    }
}
