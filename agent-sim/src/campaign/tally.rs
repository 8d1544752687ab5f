//! What the runs of a campaign come to.

use super::Record;
use crate::requirement::Requirement;
use serde::Serialize;

/// Standard deviations that 95 % of a normal distribution lie within.
const SIGMAS: f64 = 1.959_963_984_540_054;

/// Between which probabilities of failure `failed` of `runs` failures are no surprise: Wilson's bounds,
/// 95 %. Also after no failure at all the upper one is above 0.
///
/// ```
/// let [low, high] = agent_sim::campaign::wilson(0, 2000);
/// assert!(low == 0.0 && (high - 0.0019).abs() < 1e-4);
/// ```
pub fn wilson(failed: usize, runs: usize) -> [f64; 2] {
    if runs == 0 {
        return [0.0, 1.0];
    }
    let (n, p, z2) = (runs as f64, failed as f64 / runs as f64, SIGMAS * SIGMAS);
    let centre = p + z2 / (2.0 * n);
    let spread = SIGMAS * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let bound = |end: f64| (end / (1.0 + z2 / n)).clamp(0.0, 1.0);
    // Rounding must not keep them from what they are exactly.
    let low = if failed == 0 {
        0.0
    } else {
        bound(centre - spread)
    };
    let high = if failed == runs {
        1.0
    } else {
        bound(centre + spread)
    };
    [low, high]
}

/// How often something failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// What; "all" for anything.
    pub requirement: String,
    /// Runs.
    pub runs: usize,
    /// Those that failed.
    pub failed: usize,
    /// The probability of failure: between these, 95 % sure.
    pub probability: [f64; 2],
    /// The smallest margin.
    pub worst_margin: f64,
    /// The run that has it.
    pub worst_run: usize,
    /// The margin in the middle.
    pub median_margin: f64,
}

impl Tally {
    /// Of all requirements together, then of each.
    pub fn all(records: &[Record], requirements: &[Requirement]) -> Vec<Self> {
        let whole: Vec<f64> = records.iter().map(Record::margin).collect();
        let mut tallies = vec![Self::of("all".to_owned(), &whole)];
        for (k, requirement) in requirements.iter().enumerate() {
            let margin = |record: &Record| {
                let judged = record.judged.get(k);
                judged.map_or_else(|| record.margin(), |judged| judged.margin)
            };
            let margins: Vec<f64> = records.iter().map(margin).collect();
            tallies.push(Self::of(requirement.to_string(), &margins));
        }
        tallies
    }

    /// Of margins, one a run.
    pub fn of(requirement: String, margins: &[f64]) -> Self {
        let failed = margins.iter().filter(|margin| **margin < 0.0).count();
        let mut order: Vec<usize> = (0..margins.len()).collect();
        order.sort_by(|a, b| margins[*a].total_cmp(&margins[*b]));
        let at = |rank: usize| order.get(rank).map_or(f64::NAN, |run| margins[*run]);
        Self {
            requirement,
            runs: margins.len(),
            failed,
            probability: wilson(failed, margins.len()),
            worst_margin: at(0),
            worst_run: order.first().copied().unwrap_or(0),
            median_margin: at(margins.len() / 2),
        }
    }
}
