//! One training episode: the task, and what befalls the swarm on the way.

use problem::coefficient::Coefficients;
use problem::kit::sensor::Sensor;
use problem::{Episode, Problem};
use std::ops::Range;

/// An episode and the conditions it is run under.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The task.
    pub episode: Episode,
    /// Coefficients of the equation.
    pub physics: Coefficients,
    /// Where agents start.
    pub start: Vec<[f64; 2]>,
    /// For every agent the step from which on it does nothing; at or beyond the horizon, never.
    pub dies_at: Vec<usize>,
    /// Steps between an observation and the action that it leads to.
    pub delay: usize,
    /// Standard deviation of the noise on every value of the field that agents see.
    pub sensor_noise: f64,
    /// Standard deviation of the noise on every force.
    pub actuator_noise: f64,
    /// What that noise is drawn from.
    pub noise_seed: u64,
    /// Where agents see by themselves ([`crate::adjoint::standing`]): for each sensor the steps in which it
    /// reads nothing. None where they are shown the field.
    pub by_themselves: Option<Vec<Range<usize>>>,
}

impl Trial {
    /// An episode in which nothing befalls anyone.
    pub fn plain(problem: &Problem, agents: usize, episode: Episode) -> Self {
        Self {
            episode,
            physics: problem.physics,
            start: (problem.placement)(problem, agents),
            dies_at: vec![usize::MAX; agents],
            delay: 0,
            sensor_noise: 0.0,
            actuator_noise: 0.0,
            noise_seed: 0,
            by_themselves: None,
        }
    }

    /// How many agents there are.
    pub fn agents(&self) -> usize {
        self.start.len()
    }
}

/// A nearly normal number of mean 0 and variance 1 for each `index`, the same on every machine: four
/// uniform ones added up.
pub(crate) fn noise(seed: u64, index: u64) -> f64 {
    // The finaliser of SplitMix64.
    let mut bits = seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    let sum: u64 = (0..4).map(|k| (bits >> (16 * k)) & 0xffff).sum();
    // Each has mean (2¹⁶ − 1)/2 and a variance of 2³²/12.
    (sum as f64 - 2.0 * 65535.0) / (65536.0 / 3f64.sqrt())
}

/// The noise on a field that is seen besides the first.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OtherNoise {
    /// The same in every episode, where there is none on the first.
    Always(f64),
    /// So many times that on the first, which episodes draw.
    Times(f64),
}

impl OtherNoise {
    /// Of each such field.
    pub(crate) fn of(problem: &Problem) -> Vec<Self> {
        let sensors = problem.kit.map_or(&[][..], |kit| &kit.sensors);
        let Some((first, others)) = sensors.split_first() else {
            return Vec::new();
        };
        let of = |sensor: &Sensor| match first.noise {
            0.0 => Self::Always(sensor.noise),
            first => Self::Times(sensor.noise / first),
        };
        others.iter().map(of).collect()
    }

    /// Its standard deviation in an episode.
    pub(crate) fn in_trial(self, trial: &Trial) -> f64 {
        match self {
            Self::Always(deviation) => deviation,
            Self::Times(share) => share * trial.sensor_noise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over 1e5 numbers the mean is within 4/√1e5 and the variance within 4·√(1.4/1e5) of theirs.
    #[test]
    fn noise_has_mean_zero_and_variance_one() {
        let values: Vec<f64> = (0..100_000).map(|k| noise(7, k)).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.0127, "{mean}");
        assert!((variance - 1.0).abs() < 0.015, "{variance}");
        assert_ne!(noise(7, 1), noise(8, 1));
    }
}
