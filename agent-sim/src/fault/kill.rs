//! A crash in short: `1/3@0.5`.

use super::plan::draw;
use std::str::FromStr;

/// Who dies and when, as fractions of the swarm and of the episode.
///
/// ```
/// let kill: agent_sim::fault::Kill = "1/3@0.5".parse()?;
/// assert_eq!(kill.victims(9, 0).len(), 3);
/// assert_eq!(kill.step(300), 150);
/// # Ok::<_, agent_sim::fault::BadKill>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kill {
    /// Share of the agents.
    pub fraction: f64,
    /// Share of the episode that has passed.
    pub at: f64,
}

impl Kill {
    /// The agents that die, in ascending order: `fraction` of them, rounded, drawn by `seed`.
    pub fn victims(&self, agents: usize, seed: u64) -> Vec<usize> {
        draw(self.fraction, agents, seed, 0)
    }

    /// The first step, of `steps`, that the victims miss.
    pub fn step(&self, steps: usize) -> usize {
        (self.at * steps as f64).round() as usize
    }
}

/// A text that says no kill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not FRACTION@TIMEFRACTION with both between 0 and 1; \
     write for example 1/3@0.5 to kill a third of the agents half way"
)]
pub struct BadKill(String);

impl FromStr for Kill {
    type Err = BadKill;

    fn from_str(text: &str) -> Result<Self, BadKill> {
        let share = |part: &str| -> Option<f64> {
            let value = match part.split_once('/') {
                Some((a, b)) => a.parse::<f64>().ok()? / b.parse::<f64>().ok()?,
                None => part.parse().ok()?,
            };
            (0.0..=1.0).contains(&value).then_some(value)
        };
        text.split_once('@')
            .and_then(|(fraction, at)| {
                Some(Self {
                    fraction: share(fraction)?,
                    at: share(at)?,
                })
            })
            .ok_or_else(|| BadKill(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_kills_are_refused_with_an_example() {
        for text in [
            "", "0.3", "1.5@0.5", "0.3@2", "-1@0", "NaN@0.5", "1/0@0.5", "a@b",
        ] {
            let error = text.parse::<Kill>().unwrap_err().to_string();
            assert!(error.contains("1/3@0.5"), "{text}: {error}");
        }
    }

    #[test]
    fn victims_depend_on_the_seed_only() {
        let kill: Kill = "1/3@0.5".parse().unwrap();
        assert_eq!(kill.victims(8, 1), kill.victims(8, 1));
        assert_eq!(kill.victims(8, 1).len(), 3);
        assert_ne!(kill.victims(1000, 1), kill.victims(1000, 2));
    }
}
