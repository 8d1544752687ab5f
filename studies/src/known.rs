//! The least errors that any policy is known to reach, cell by cell of the study `regret`:
//! `data/known.csv`. None of these policies is told the number of agents, but each may be made for its
//! cell alone. All figures are means over [`EPISODES`] fresh episodes of seed [`SEED`].
//!
//! To add a policy's, put it into a folder with those of the other problems and take over the rows in
//! which it is better; `by` is its file, or the command that makes it:
//!
//! ```text
//! reproduce --full regret --policies DIR --out OUT
//! awk -F, '$1 == "heat-1d" && $5 == "policy" { print $1","$2","$3","$4","$9",BY" }' OUT/regret.csv
//! ```

use crate::rows;
use anyhow::{Context, ensure};

const KNOWN: &str = include_str!("../data/known.csv");
const HEAD: &str = "problem,agents,loss,noise,error,by";

/// Fresh episodes behind each figure.
pub const EPISODES: usize = 50;
/// Their seed, and that of what goes wrong in them.
pub const SEED: u64 = 1;

/// What one policy reaches in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The problem's name.
    pub problem: &'static str,
    /// How many agents there are.
    pub agents: usize,
    /// What becomes of some of them half way.
    pub loss: &'static str,
    /// How noisy sensors and actuators are.
    pub noise: &'static str,
    /// Mean error.
    pub error: f64,
    /// The policy's file, or the command that made it.
    pub by: &'static str,
}

impl Known {
    /// All of them.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(KNOWN).context("data/known.csv")
    }
}

fn read(text: &'static str) -> anyhow::Result<Vec<Known>> {
    rows::read(text, HEAD, row)
}

fn row(line: &'static str) -> anyhow::Result<Known> {
    let columns: Vec<&str> = line.split(',').collect();
    let [problem, agents, loss, noise, error, by] = columns[..] else {
        anyhow::bail!("{} columns instead of six", columns.len());
    };
    let error: f64 = error.parse().context("error")?;
    ensure!(
        error.is_finite() && error > 0.0,
        "errors are finite and above zero"
    );
    ensure!(!by.is_empty(), "nobody is named who reached it");
    Ok(Known {
        problem: problem::published::by_name(problem)?.name,
        agents: agents.parse().context("agents")?,
        loss,
        noise,
        error,
        by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_can_be_read() {
        assert!(!Known::all().unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let said = |row: &str| {
            let text: &'static str = format!("{HEAD}\n{row}\n").leak();
            format!("{:#}", read(text).unwrap_err())
        };
        let said_of = |row: &str, what: &str| {
            let said = said(row);
            assert!(said.contains(row) && said.contains(what), "{said}");
        };
        said_of("heat-1d,8,none,none,1e-5", "5 columns");
        said_of("heat-3d,8,none,none,1e-5,x.policy", "no problem");
        said_of("heat-1d,many,none,none,1e-5,x.policy", "agents: ");
        said_of("heat-1d,8,none,none,small,x.policy", "error: ");
        said_of("heat-1d,8,none,none,inf,x.policy", "finite");
        said_of("heat-1d,8,none,none,1e-5,", "nobody");
        assert!(read("problem,error\n").is_err());
    }
}
