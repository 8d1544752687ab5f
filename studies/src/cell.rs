//! Pieces of work and what they give.

use crate::shelf::{Draw, Shelf};
use agent_sim::table::number;
use anyhow::Context;
use problem::metrics::Spread;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One point of a study.
pub struct Cell {
    /// By which the study finds its outcome; no two cells of a study share one.
    pub name: String,
    /// What is to be done.
    pub work: Box<dyn Work>,
}

impl Cell {
    /// A cell of that name.
    pub fn new(name: impl Into<String>, work: impl Work + 'static) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
        }
    }
}

/// Something that gives figures, in pieces that can be computed apart.
pub trait Work: Send + Sync {
    /// All that decides the figures, but for the simulator's sources.
    fn key(&self) -> serde_json::Value;

    /// How many pieces there are, e.g. episodes.
    fn pieces(&self) -> usize;

    /// About how long one piece takes, in nanoseconds: for the progress bar and the order of work.
    fn cost(&self) -> u64;

    /// Names of the figures that every piece gives.
    fn figures(&self) -> Vec<String>;

    /// Fresh episodes that have to be on the shelf.
    fn draw(&self) -> Option<Draw> {
        None
    }

    /// The figures of one piece; `None` where the field blew up, as which figures count that are
    /// not finite.
    fn run(&self, piece: usize, shelf: &Shelf) -> anyhow::Result<Option<Vec<f64>>>;
}

/// What a cell's work gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Names of the figures.
    pub figures: Vec<String>,
    /// One row a piece, in order; `None` where the field blew up.
    pub rows: Vec<Option<Vec<f64>>>,
}

impl Outcome {
    /// The figure of that name over all pieces.
    ///
    /// # Panics
    /// If the work gives no such figure.
    pub fn figure(&self, name: &str) -> Figure {
        let values = self.values(name);
        let blown = self.rows.len() - values.len();
        let mut spread = match values.is_empty() {
            true => Spread::of([f64::INFINITY]),
            false => Spread::of(values),
        };
        if blown > 0 {
            (spread.mean, spread.std, spread.worst) = (f64::INFINITY, f64::NAN, f64::INFINITY);
        }
        Figure {
            mean: spread.mean,
            std: spread.std,
            median: spread.median,
            p95: spread.p95,
            worst: spread.worst,
            pieces: self.rows.len(),
            blown,
        }
    }

    /// The values of the pieces that did not blow up, in order.
    ///
    /// # Panics
    /// If the work gives no such figure.
    pub fn values(&self, name: &str) -> Vec<f64> {
        let column = self.figures.iter().position(|figure| figure == name);
        let column = column.unwrap_or_else(|| panic!("no figure '{name}' in {:?}", self.figures));
        let rows = self.rows.iter().flatten();
        rows.map(|row| row[column]).collect()
    }
}

/// A figure over the pieces of a cell. Where one blew up, mean and worst are infinite: a swarm that
/// sometimes loses the field has no good mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Middle value of those that did not blow up.
    pub median: f64,
    /// Their 95th percentile.
    pub p95: f64,
    /// Largest value.
    pub worst: f64,
    /// Number of pieces.
    pub pieces: usize,
    /// How many of them blew up.
    pub blown: usize,
}

impl Figure {
    /// The mean for a table, or what stands in its way.
    pub fn text(&self) -> String {
        match self.blown {
            0 => number(self.mean),
            blown => format!("blew up in {blown} of {}", self.pieces),
        }
    }

    /// Heads of [`columns`](Self::columns) in a CSV.
    pub const COLUMNS: [&'static str; 7] =
        ["mean", "std", "median", "p95", "worst", "episodes", "blown"];

    /// All of it for a CSV.
    pub fn columns(&self) -> Vec<String> {
        let figures = [self.mean, self.std, self.median, self.p95, self.worst];
        let mut columns: Vec<String> = figures.iter().map(|f| format!("{f:e}")).collect();
        columns.extend([self.pieces.to_string(), self.blown.to_string()]);
        columns
    }
}

/// The outcomes of a study's cells.
#[derive(Default)]
pub struct Outcomes(HashMap<String, Outcome>);

impl Outcomes {
    /// Adds one.
    pub fn insert(&mut self, name: String, outcome: Outcome) {
        self.0.insert(name, outcome);
    }

    /// That of the cell of that name.
    pub fn of(&self, name: &str) -> anyhow::Result<&Outcome> {
        self.0
            .get(name)
            .with_context(|| format!("there is no cell called '{name}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rows: &[Option<f64>]) -> Outcome {
        Outcome {
            figures: vec!["effort".into(), "headline".into()],
            rows: rows.iter().map(|row| row.map(|v| vec![0.0, v])).collect(),
        }
    }

    #[test]
    fn figures_are_found_by_name() {
        let figure = outcome(&[Some(1.0), Some(3.0)]).figure("headline");
        assert_eq!((figure.mean, figure.std, figure.worst), (2.0, 1.0, 3.0));
        assert_eq!((figure.pieces, figure.blown), (2, 0));
    }

    #[test]
    fn one_lost_field_spoils_the_mean_and_is_counted() {
        let figure = outcome(&[Some(1.0), None, Some(3.0)]).figure("headline");
        assert_eq!((figure.mean, figure.median), (f64::INFINITY, 2.0));
        assert_eq!(figure.text(), "blew up in 1 of 3");
        let figure = outcome(&[None]).figure("headline");
        assert_eq!((figure.mean, figure.blown), (f64::INFINITY, 1));
    }
}
