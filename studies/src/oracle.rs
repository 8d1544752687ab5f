//! What plans with full knowledge reach, as measured by `trainer oracle`: `data/oracle.csv`.

use anyhow::Context;

const MEASURED: &str = include_str!("../data/oracle.csv");

/// The plans of one problem.
#[derive(Debug, Clone, Copy)]
pub struct Oracle {
    /// The problem's name.
    pub problem: &'static str,
    /// Mean error of the best plans found.
    pub error: &'static str,
    /// The same where three in ten agents fall silent half way and plans know beforehand who, if it
    /// was measured.
    pub crash: Option<&'static str>,
    /// The first so many published episodes.
    pub episodes: &'static str,
    /// What measured it; with `--crash 0.3` for the second figure.
    pub command: &'static str,
    /// Empty, or what to mind.
    pub note: &'static str,
}

impl Oracle {
    /// All that were measured.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        let parse = |line: &'static str| {
            let cells: Vec<&str> = line.split(',').collect();
            let [problem, error, crash, episodes, command, note] = cells[..] else {
                anyhow::bail!("data/oracle.csv: {line} has not six columns");
            };
            Ok(Self {
                problem,
                error,
                crash: (!crash.is_empty()).then_some(crash),
                episodes,
                command,
                note,
            })
        };
        MEASURED.lines().skip(1).map(parse).collect()
    }

    /// How much larger the error is where agents fall silent, if that was measured.
    pub fn crash_ratio(&self) -> anyhow::Result<Option<f64>> {
        let number = |text: &str| text.parse::<f64>().with_context(|| text.to_owned());
        let crash = self.crash.map(number).transpose()?;
        Ok(match crash {
            Some(crash) => Some(crash / number(self.error)?),
            None => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_numbers_of_known_problems() {
        for oracle in Oracle::all().unwrap() {
            problem::published::by_name(oracle.problem).unwrap();
            assert!(oracle.error.parse::<f64>().unwrap() > 0.0);
            assert!(oracle.episodes.parse::<usize>().unwrap() > 0);
            assert!(oracle.command.contains(oracle.problem));
            let ratio = oracle.crash_ratio().unwrap();
            assert!(ratio.is_none_or(|ratio| ratio >= 1.0));
        }
    }
}
