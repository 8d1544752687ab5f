//! Why something was not run, or did not reach its bar: `data/why.csv`.
//!
//! `any` stands for every problem, method or condition; the first row that fits counts. The condition `bar`
//! is that of a bar which was missed by a figure.

use super::method::{Condition, Method};
use crate::paper::Row;
use crate::rows;
use anyhow::{Context, ensure};

const GIVEN: &str = include_str!("../../../data/why.csv");
const HEAD: &str = "problem,method,condition,why";
const ANY: &str = "any";
/// The condition of missed bars.
const BAR: &str = "bar";

/// One reason.
#[derive(Debug)]
pub struct Why {
    problem: &'static str,
    method: &'static str,
    condition: &'static str,
    why: &'static str,
}

impl Why {
    /// All of them.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(GIVEN).context("data/why.csv")
    }

    fn fits(&self, problem: &str, method: &str, condition: &str) -> bool {
        let fits = |said: &str, asked: &str| said == ANY || said == asked;
        fits(self.problem, problem)
            && fits(self.method, method)
            && (fits(self.condition, condition) && (self.condition == BAR) == (condition == BAR))
    }
}

/// Why there is no figure of that method there, if somebody said so.
pub fn not_run(
    all: &[Why],
    row: &str,
    method: &Method,
    condition: Condition,
) -> Option<&'static str> {
    find(all, row, method, condition.name())
}

/// Why the method missed its bar on that row, if somebody said so.
pub fn missed(all: &[Why], row: &str, method: &Method) -> Option<&'static str> {
    find(all, row, method, BAR)
}

fn find(all: &[Why], row: &str, method: &Method, condition: &str) -> Option<&'static str> {
    let mut all = all.iter();
    let found = all.find(|why| why.fits(row, method.name, condition));
    found.map(|why| why.why)
}

fn read(text: &'static str) -> anyhow::Result<Vec<Why>> {
    rows::read(text, HEAD, row)
}

fn row(line: &'static str) -> anyhow::Result<Why> {
    let [problem, method, condition, why] = rows::columns(line)?;
    if problem != ANY {
        Row::named(problem)?;
    }
    if method != ANY {
        Method::named(method)?;
    }
    if ![ANY, BAR].contains(&condition) {
        Condition::named(condition)?;
    }
    ensure!(!why.is_empty(), "no reason");
    Ok(Why {
        problem,
        method,
        condition,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_can_be_read() {
        Why::all().unwrap();
    }

    #[test]
    fn the_first_that_fits_counts_and_bars_have_their_own() {
        let text = "problem,method,condition,why\nheat-1d,ppo,any,no time, yet\n\
                    any,ppo,bar,it diverges\nany,ppo,any,later\n";
        let all = read(text).unwrap();
        let ppo = Method::named("ppo").unwrap();
        let of = |row| not_run(&all, row, ppo, Condition::Table);
        assert_eq!(of("heat-1d"), Some("no time, yet"));
        assert_eq!(of("heat-2d"), Some("later"));
        assert_eq!(missed(&all, "heat-1d", ppo), Some("it diverges"));
        let td3 = Method::named("td3").unwrap();
        assert_eq!(not_run(&all, "heat-1d", td3, Condition::Table), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |row: &str, why: &str| {
            let said = rows::complaint(read, HEAD, row);
            assert!(said.contains(row) && said.contains(why), "{said}");
        };
        refused("heat-1d,ppo,any", "3 columns");
        refused("heat-3d,ppo,any,x", "no row");
        refused("any,sarsa,any,x", "no method");
        refused("any,any,sunshine,x", "no condition");
        refused("any,any,any,", "no reason");
    }
}
