//! Controllers that decide in one place through the derivatives of the field, as the trainer measured
//! them: `data/central.csv`.

use super::method::{Condition, Method, Source};
use crate::paper::Row;
use crate::rows;
use anyhow::{Context, bail, ensure};

const MEASURED: &str = include_str!("../../../data/central.csv");
const HEAD: &str = "problem,method,condition,agents,episodes,error,deviation,decision_us,bytes,\
                    proportional,machine,by";

const CONDITIONS: [Condition; 4] = [
    Condition::Table,
    Condition::Crash,
    Condition::Fourfold,
    Condition::PaperSetting,
];

/// Draws the victims that the study draws.
const SEEDED: &str = "--seed 1";

/// What one controller reaches.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The row of the results table, by name.
    pub row: String,
    /// Which.
    pub method: &'static Method,
    /// What it met.
    pub condition: Condition,
    /// Episodes behind the error: the first of the set.
    pub episodes: usize,
    /// Mean error; infinite where a field blew up.
    pub error: f64,
    /// One standard deviation over the episodes, where it was written down.
    pub deviation: Option<f64>,
    /// Microseconds a decision for all agents.
    pub decision_us: Option<f64>,
    /// Of the network's weights as 32-bit floats.
    pub bytes: Option<usize>,
    /// The error of proportional feedback on the same episodes.
    pub proportional: Option<f64>,
    /// What it ran on.
    pub machine: &'static str,
    /// The command.
    pub by: &'static str,
}

impl Measured {
    /// All of them.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(MEASURED).context("data/central.csv")
    }
}

fn read(text: &'static str) -> anyhow::Result<Vec<Measured>> {
    let all = rows::read(text, HEAD, row)?;
    for (k, one) in all.iter().enumerate() {
        let same = |other: &Measured| {
            (&other.row, other.method, other.condition) == (&one.row, one.method, one.condition)
        };
        if all[..k].iter().any(same) {
            let (method, condition) = (one.method.name, one.condition.name());
            bail!("{}, {method}, {condition} stands there twice", one.row);
        }
    }
    Ok(all)
}

fn row(line: &'static str) -> anyhow::Result<Measured> {
    let columns: [&str; 12] = rows::columns(line)?;
    let [
        problem,
        method,
        condition,
        agents,
        episodes,
        error,
        deviation,
        decision_us,
        bytes,
        proportional,
        machine,
        by,
    ] = columns;
    let place = Row::named(problem)?;
    let method = Method::of(Source::Central, method)?;
    let condition = Condition::among(&CONDITIONS, condition)?;
    condition.check(
        problem::published::by_name(place.problem)?,
        method,
        agents.parse().context("agents")?,
    )?;
    ensure!(!machine.is_empty(), "nobody says on what machine");
    ensure!(
        by.contains(place.problem),
        "by: the command does not name the problem"
    );
    ensure!(
        condition != Condition::Crash || by.contains(SEEDED),
        "by: victims are those of the study where the command has {SEEDED}"
    );
    let episodes = episodes.parse().context("episodes")?;
    ensure!(episodes > 0, "no episodes");
    Ok(Measured {
        row: place.name(),
        method,
        condition,
        episodes,
        error: rows::error(error)?,
        deviation: rows::positive_if_known(deviation, "deviation")?,
        decision_us: rows::positive_if_known(decision_us, "decision_us")?,
        bytes: match bytes {
            "" => None,
            bytes => Some(bytes.parse().context("bytes")?),
        },
        proportional: rows::positive_if_known(proportional, "proportional")?,
        machine,
        by,
    })
}

#[cfg(test)]
pub(super) fn written(lines: &str) -> Vec<Measured> {
    read(format!("{HEAD}\n{lines}").leak()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_can_be_read() {
        assert!(!Measured::all().unwrap().is_empty());
    }

    const GOOD: &str = "heat-1d,nmpc,crash,8,10,2.4e-3,,100000,,,2 cores,trainer eval heat-1d --seed 1 --fault crash,fraction=0.3,at=0.5";

    #[test]
    fn commands_may_have_commas() {
        let [one] = &written(GOOD)[..] else {
            panic!("one row")
        };
        assert!(one.by.ends_with("crash,fraction=0.3,at=0.5"));
        assert_eq!((one.decision_us, one.proportional), (Some(1e5), None));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |from: &str, to: &str, why: &str| {
            let row = GOOD.replacen(from, to, 1);
            let said = rows::complaint(read, HEAD, &row);
            assert!(said.contains(&row) && said.contains(why), "{said}");
        };
        refused(
            ",trainer eval heat-1d --seed 1 --fault crash,fraction=0.3,at=0.5",
            "",
            "11 columns",
        );
        refused("heat-1d", "heat-3d", "heat-3d");
        refused("nmpc", "ppo", "no method 'ppo' among nmpc, dpc");
        refused("crash", "fresh", "no condition");
        refused(",8,", ",16,", "16 agents where crash has 8");
        refused("2.4e-3", "0", "error: ");
        refused("100000", "quick", "decision_us");
        refused(",,,2 cores", ",,0,2 cores", "proportional: ");
        refused("2 cores", "", "machine");
        refused("eval heat-1d", "eval fkpp-1d", "does not name the problem");
        refused("--seed 1", "--seed 2", "victims");
        let said = rows::complaint(read, HEAD, &format!("{GOOD}\n{GOOD}"));
        assert!(
            said.contains("heat-1d, nmpc, crash stands there twice"),
            "{said}"
        );
    }
}
