//! How often runs fail, in words.

use crate::campaign::Tally;

/// Between which probabilities, in percent.
pub fn share_text([low, high]: [f64; 2]) -> String {
    let percent = |share: f64| match 100.0 * share {
        0.0 => "0".to_owned(),
        p if p < 0.1 => format!("{p:.2}"),
        p if p < 10.0 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    };
    format!("{} to {} %", percent(low), percent(high))
}

/// What so many failures in so many runs mean.
pub fn passed(tally: &Tally) -> String {
    let Tally { failed, runs, .. } = tally;
    format!(
        "{failed} of {runs} runs fail, so a run fails with a probability of {} (95 % sure, for scenarios drawn as these were)",
        share_text(tally.probability)
    )
}
