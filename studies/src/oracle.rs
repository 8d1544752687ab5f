//! What plans with full knowledge reach, as measured by `trainer oracle`: `data/oracle.csv`.

use crate::rows;
use agent_sim::table::number;
use anyhow::{Context, ensure};

const MEASURED: &str = include_str!("../data/oracle.csv");
const HEAD: &str = "problem,agents,crash,foreseen,set,episodes,policy,error,converged,command";

/// The plans of one swarm.
#[derive(Debug, Clone, Copy)]
pub struct Oracle {
    /// The problem's name.
    pub problem: &'static str,
    /// How many agents there are.
    pub agents: usize,
    /// The share of them that falls silent half way, if any does.
    pub crash: Option<f64>,
    /// Whether the plans know from the start who will.
    pub foreseen: bool,
    /// Of the first so many episodes of this set.
    pub set: &'static str,
    /// See [`set`](Self::set).
    pub episodes: usize,
    /// The policy's error on the same episodes, as far as it was written down.
    pub policy: &'static str,
    /// Mean error of the best plans found.
    pub error: f64,
    /// In how many of the episodes the search came to rest.
    pub converged: usize,
    /// What measured it.
    pub command: &'static str,
}

impl Oracle {
    /// All that were measured.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(MEASURED).context("data/oracle.csv")
    }

    /// The error, of how many episodes, and how many of them were searched to the end.
    pub fn text(&self) -> String {
        let Self {
            episodes: n,
            converged,
            ..
        } = self;
        format!("{} (n = {n}, {converged} converged)", number(self.error))
    }
}

/// The plans for the problem's swarm of that size: where nobody fails, or where that share falls
/// silent half way. A plan that does not foresee it knows no more than an agent could, and comes
/// before one that does.
pub fn plan<'a>(
    all: &'a [Oracle],
    problem: &str,
    agents: usize,
    crash: Option<f64>,
) -> Option<&'a Oracle> {
    let of_swarm = all
        .iter()
        .filter(|plan| plan.problem == problem && plan.agents == agents);
    of_swarm
        .filter(|plan| plan.crash == crash)
        .min_by_key(|plan| plan.foreseen)
}

fn read(text: &'static str) -> anyhow::Result<Vec<Oracle>> {
    rows::read(text, HEAD, row)
}

fn row(line: &'static str) -> anyhow::Result<Oracle> {
    let columns: Vec<&str> = line.split(',').collect();
    let [
        problem,
        agents,
        crash,
        foreseen,
        set,
        episodes,
        policy,
        error,
        converged,
        command,
    ] = columns[..]
    else {
        anyhow::bail!("{} columns instead of ten", columns.len());
    };
    ensure!(
        matches!(foreseen, "" | "yes" | "no") && crash.is_empty() == foreseen.is_empty(),
        "foreseen is yes or no where agents crash, and empty elsewhere"
    );
    Ok(Oracle {
        problem: problem::published::by_name(problem)?.name,
        agents: agents.parse().context("agents")?,
        crash: match crash {
            "" => None,
            share => Some(share.parse().context("crash")?),
        },
        foreseen: foreseen == "yes",
        set,
        episodes: episodes.parse().context("episodes")?,
        policy,
        error: error.parse().context("error")?,
        converged: converged.parse().context("converged")?,
        command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_known_problems_and_their_commands() {
        for plan in Oracle::all().unwrap() {
            assert!(plan.agents > 0 && plan.error > 0.0, "{plan:?}");
            assert!(plan.converged <= plan.episodes, "{plan:?}");
            assert!(plan.command.contains(plan.problem), "{plan:?}");
            let published = problem::published::by_name(plan.problem).unwrap().agents;
            let said = plan.command.contains(&format!("--agents {}", plan.agents));
            assert!(said || plan.agents == published, "{plan:?}");
            assert_eq!(
                plan.command.contains("--crash"),
                plan.crash.is_some(),
                "{plan:?}"
            );
        }
    }

    const PLANS: &str = "problem,agents,crash,foreseen,set,episodes,policy,error,converged,command\n\
        heat-1d,8,,,table,16,,1e-6,0,trainer\n\
        heat-1d,8,0.3,yes,table,16,,2e-6,0,trainer\n\
        heat-1d,8,0.3,no,table,16,4e-5,3e-6,16,trainer\n\
        heat-2d,16,0.3,yes,table,16,,4e-6,0,trainer\n";

    #[test]
    fn plans_that_foresee_nothing_come_first() {
        let all = read(PLANS).unwrap();
        let error = |problem, agents, crash| plan(&all, problem, agents, crash).map(|p| p.error);
        assert_eq!(error("heat-1d", 8, None), Some(1e-6));
        assert_eq!(error("heat-1d", 8, Some(0.3)), Some(3e-6));
        assert_eq!(error("heat-2d", 16, Some(0.3)), Some(4e-6));
        assert_eq!(error("heat-2d", 16, None), None);
        assert_eq!(error("heat-1d", 16, None), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let said = |row: &str| {
            let text: &'static str = format!("{HEAD}\n{row}\n").leak();
            format!("{:#}", read(text).unwrap_err())
        };
        assert!(said("heat-1d,8").contains("2 columns"));
        assert!(said("heat-3d,8,,,table,16,,1e-6,0,trainer").contains("heat-3d"));
        assert!(said("heat-1d,8,,,table,16,,tiny,0,trainer").contains("error: "));
        assert!(said("heat-1d,8,0.3,,table,16,,1e-6,0,trainer").contains("foreseen"));
        assert!(said("heat-1d,8,,yes,table,16,,1e-6,0,trainer").contains("foreseen"));
        assert!(read("problem,error\n").is_err());
    }
}
