//! Power laws fitted to means over episodes, with intervals.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt;

/// Times that the episodes are drawn again.
const RESAMPLES: usize = 2000;

/// The exponent p of `mean ∝ xᵖ`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponent {
    /// By least squares on logarithms.
    pub value: f64,
    /// The middle 95 % of what other draws of the episodes would give.
    pub interval: [f64; 2],
    /// The largest factor by which a mean is off the fitted line. Where it is far above 1 there is
    /// no power law, whatever the interval says.
    pub misfit: f64,
}

impl Exponent {
    /// Fits rows of `(x, values)`, one value an episode, the same episodes in every row. The interval
    /// is a bootstrap's: episodes drawn with replacement, the same ones in every row, so that what
    /// they have in common does not widen it.
    ///
    /// `None` with fewer than two rows, or where a mean is not positive and finite.
    pub fn fit(rows: &[(f64, Vec<f64>)], seed: u64) -> Option<Self> {
        let episodes = rows.iter().map(|(_, values)| values.len()).min()?;
        let everyone: Vec<usize> = (0..episodes).collect();
        let (value, misfit) = line(rows, &everyone)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut slopes: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let chosen: Vec<usize> = (0..episodes)
                    .map(|_| rng.random_range(0..episodes))
                    .collect();
                line(rows, &chosen).map(|(slope, _)| slope)
            })
            .collect();
        slopes.sort_by(f64::total_cmp);
        let at = |share: f64| slopes[(share * (slopes.len() - 1) as f64).round() as usize];
        Some(Self {
            value,
            interval: [at(0.025), at(0.975)],
            misfit,
        })
    }

    /// Whether the interval contains it.
    pub fn allows(&self, exponent: f64) -> bool {
        (self.interval[0]..=self.interval[1]).contains(&exponent)
    }
}

impl fmt::Display for Exponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.interval;
        write!(f, "{:.2} ({low:.2} to {high:.2})", self.value)
    }
}

/// The slope of the line through the logarithms of the chosen episodes' means, and the largest factor
/// between a mean and the line.
fn line(rows: &[(f64, Vec<f64>)], chosen: &[usize]) -> Option<(f64, f64)> {
    if rows.len() < 2 || chosen.is_empty() {
        return None;
    }
    let points: Vec<[f64; 2]> = rows
        .iter()
        .map(|(x, values)| {
            let sum: f64 = chosen.iter().map(|&episode| values[episode]).sum();
            [x.ln(), (sum / chosen.len() as f64).ln()]
        })
        .collect();
    let mean = |axis: usize| points.iter().map(|p| p[axis]).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(0), mean(1));
    let covariance: f64 = points.iter().map(|p| (p[0] - x) * (p[1] - y)).sum();
    let variance: f64 = points.iter().map(|p| (p[0] - x).powi(2)).sum();
    let slope = covariance / variance;
    let off = |p: &[f64; 2]| (p[1] - y - slope * (p[0] - x)).abs();
    let misfit = points.iter().map(off).fold(0.0, f64::max).exp();
    slope.is_finite().then_some((slope, misfit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found_exactly_whatever_its_episodes_have_in_common() {
        let row = |x: f64| (x, [1.0, 5.0, 0.2].map(|c| c * x.powf(-0.7)).to_vec());
        let rows: Vec<_> = [15.0, 30.0, 60.0, 120.0].map(row).to_vec();
        let fitted = Exponent::fit(&rows, 1).unwrap();
        for found in [fitted.value, fitted.interval[0], fitted.interval[1]] {
            assert!((found + 0.7).abs() < 1e-12, "{fitted}");
        }
        assert!((fitted.misfit - 1.0).abs() < 1e-12);
        // Means of 1, 16 and 1: the line lies at the cube root of 16.
        let peak = [(1.0, vec![1.0]), (2.0, vec![16.0]), (4.0, vec![1.0])];
        let misfit = Exponent::fit(&peak, 1).unwrap().misfit;
        assert!((misfit - 16f64.powf(2.0 / 3.0)).abs() < 1e-9, "{misfit}");
    }

    #[test]
    fn scatter_widens_the_interval_and_the_seed_decides_it() {
        // Independent factors around x⁻¹.
        let rows: Vec<(f64, Vec<f64>)> = (0..5)
            .map(|k| {
                let x = 2f64.powi(k);
                let value = |j: i32| (1.0 + 0.5 * f64::from(7 * j * (k + 1)).sin()) / x;
                (x, (0..20).map(value).collect())
            })
            .collect();
        let fitted = Exponent::fit(&rows, 1).unwrap();
        assert!(fitted.allows(-1.0), "{fitted}");
        assert!(!fitted.allows(-0.5) && !fitted.allows(-1.5), "{fitted}");
        assert!(fitted.interval[0] < fitted.value && fitted.value < fitted.interval[1]);
        assert_eq!(Exponent::fit(&rows, 1), Some(fitted));
        assert_ne!(Exponent::fit(&rows, 2), Some(fitted));
    }

    #[test]
    fn nothing_is_fitted_to_too_little() {
        assert_eq!(Exponent::fit(&[], 1), None);
        assert_eq!(Exponent::fit(&[(1.0, vec![1.0])], 1), None);
        assert_eq!(
            Exponent::fit(&[(1.0, vec![1.0]), (2.0, vec![0.0])], 1),
            None
        );
    }
}
