//! Policies by reinforcement learning, as `cargo xtask baselines` trained and scored them: `data/rl.csv`.
//!
//! A row is one training: the mean of its error over episodes of a condition, and one standard deviation
//! over them; several seeds of a method are several rows.

use super::method::{Condition, Method, Source};
use crate::paper::Row;
use crate::rows;
use anyhow::{Context, bail, ensure};

const MEASURED: &str = include_str!("../../../data/rl.csv");
const HEAD: &str = "problem,method,seed,condition,agents,episodes,error,deviation,agent_steps,seconds,\
                    updates,decision_us,bytes,machine,complete";

const CONDITIONS: [Condition; 5] = [
    Condition::Table,
    Condition::Fresh,
    Condition::Crash,
    Condition::Fourfold,
    Condition::Agents,
];

/// What one trained policy reaches.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The row of the results table, by name.
    pub row: String,
    /// Who trained it.
    pub method: &'static Method,
    /// Of its training.
    pub seed: u64,
    /// What it met.
    pub condition: Condition,
    /// How many agents.
    pub agents: usize,
    /// Episodes behind the error.
    pub episodes: usize,
    /// Mean error; infinite where a field blew up.
    pub error: f64,
    /// One standard deviation over the episodes.
    pub deviation: Option<f64>,
    /// Steps of all agents together in training.
    pub agent_steps: u64,
    /// Wall time of the training.
    pub seconds: f64,
    /// Steps of the optimiser.
    pub updates: u64,
    /// Microseconds a decision: of one agent that decides for itself, of all where one place does.
    pub decision_us: Option<f64>,
    /// Of its weights as 32-bit floats.
    pub bytes: Option<usize>,
    /// What it was trained on.
    pub machine: &'static str,
    /// Whether all of its budget is spent.
    pub complete: bool,
}

impl Trained {
    /// All of them.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(MEASURED).context("data/rl.csv")
    }

    fn is_same(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.row.clone(), it.method.name, it.seed, it.agents);
        key(self) == key(other) && self.condition == other.condition
    }
}

fn read(text: &'static str) -> anyhow::Result<Vec<Trained>> {
    let all = rows::read(text, HEAD, row)?;
    for (k, one) in all.iter().enumerate() {
        if all[..k].iter().any(|other| other.is_same(one)) {
            bail!(
                "{}, {}, seed {}, {}, {} agents stands there twice",
                one.row,
                one.method.name,
                one.seed,
                one.condition.name(),
                one.agents
            );
        }
    }
    Ok(all)
}

fn row(line: &'static str) -> anyhow::Result<Trained> {
    let columns: [&str; 15] = rows::columns(line)?;
    let [
        problem,
        method,
        seed,
        condition,
        agents,
        episodes,
        error,
        deviation,
        agent_steps,
        seconds,
        updates,
        decision_us,
        bytes,
        machine,
        complete,
    ] = columns;
    let place = Row::named(problem)?;
    let method = Method::of(Source::Rl, method)?;
    ensure!(
        method.takes_part(place.problem),
        "{} is not compared on {problem}",
        method.name
    );
    let condition = Condition::among(&CONDITIONS, condition)?;
    let agents = agents.parse().context("agents")?;
    condition.check(problem::published::by_name(place.problem)?, method, agents)?;
    ensure!(!machine.is_empty(), "nobody says on what machine");
    let episodes = episodes.parse().context("episodes")?;
    ensure!(episodes > 0, "no episodes");
    Ok(Trained {
        row: place.name(),
        method,
        seed: seed.parse().context("seed")?,
        condition,
        agents,
        episodes,
        error: rows::error(error)?,
        deviation: rows::positive_if_known(deviation, "deviation")?,
        agent_steps: agent_steps.parse().context("agent_steps")?,
        seconds: rows::positive(seconds, "seconds")?,
        updates: updates.parse().context("updates")?,
        decision_us: rows::positive_if_known(decision_us, "decision_us")?,
        bytes: match bytes {
            "" => None,
            bytes => Some(bytes.parse().context("bytes")?),
        },
        machine,
        complete: complete.parse().context("complete")?,
    })
}

#[cfg(test)]
pub(super) fn written(lines: &str) -> Vec<Trained> {
    read(format!("{HEAD}\n{lines}").leak()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_can_be_read() {
        Trained::all().unwrap();
    }

    const GOOD: &str =
        "heat-1d,mappo,1,table,8,50,1e-3,2e-3,5000000,600,100,12.5,90000,2 cores,true";

    #[test]
    fn a_row_is_what_it_says() {
        let [one] = &written(GOOD)[..] else {
            panic!("one row")
        };
        assert_eq!((one.row.as_str(), one.method.label), ("heat-1d", "MAPPO"));
        assert_eq!((one.error, one.deviation), (1e-3, Some(2e-3)));
        assert!(one.complete && one.bytes == Some(90_000));
        // What is not known stays empty, and a field that blew up has no mean.
        let unknown = GOOD.replace("1e-3,2e-3", "inf,").replace("12.5,90000", ",");
        let [one] = &written(&unknown)[..] else {
            panic!("one row")
        };
        assert_eq!((one.error, one.deviation), (f64::INFINITY, None));
        assert_eq!((one.decision_us, one.bytes), (None, None));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |from: &str, to: &str, why: &str| {
            let row = GOOD.replace(from, to);
            let said = rows::complaint(read, HEAD, &row);
            assert!(said.contains(&row) && said.contains(why), "{said}");
        };
        refused(",true", "", "14 columns");
        refused("heat-1d", "heat-3d", "heat-3d");
        refused("mappo", "sarsa", "no method 'sarsa' among ppo");
        refused("mappo", "nmpc", "no method");
        refused("mappo", "mappo-deeponet", "not compared on heat-1d");
        refused("table,", "paper-setting,", "no condition");
        refused("table,8", "table,9", "9 agents where table has 8");
        refused("mappo,1,table,8", "ppo,1,fourfold,32", "no others");
        refused("1e-3,", "-1e-3,", "error: ");
        refused("1e-3,2e-3", "1e-3,nan", "deviation: ");
        refused("5000000", "5e6", "agent_steps");
        refused("2 cores", "", "machine");
        refused("true", "yes", "complete");
        refused(",50,", ",0,", "no episodes");
        let said = rows::complaint(read, HEAD, &format!("{GOOD}\n{GOOD}"));
        assert!(
            said.contains("heat-1d, mappo, seed 1") && said.contains("twice"),
            "{said}"
        );
        assert!(read("problem,error\n").is_err());
    }
}
