//! What the page's address asks for: `?problem=heat-2d&agents=64&seed=3&steps=50&paused`.

use agent_sim::scenario::Scenario;
use anyhow::{anyhow, bail};
use problem::published::{heat_1d, heat_2d, ks_1d, turbulence_2d};
use problem::{Problem, Problems};
use std::str::FromStr;

/// What the page can run: each comes with its policy, and all of it is loaded with the page.
pub static PROBLEMS: [&Problem; 4] = [&HEAT_1D, &HEAT_2D, &KS_1D, &TURBULENCE_2D];

static HEAT_1D: Problem = light(&heat_1d::PROBLEM);
static HEAT_2D: Problem = light(&heat_2d::PROBLEM);
static KS_1D: Problem = light(&ks_1d::PROBLEM);
static TURBULENCE_2D: Problem = light(&turbulence_2d::PROBLEM);

/// Without the episodes of the results table, which weigh twice as much as the policies: here all are fresh.
const fn light(problem: &Problem) -> Problem {
    Problem {
        test_set: None,
        ..*problem
    }
}

/// Most agents and steps: more run where a program has all of a machine.
const AGENTS: usize = 4096;
const STEPS: usize = 100_000;

/// A run that was asked for.
pub struct Asked {
    pub scenario: Scenario,
    /// Whether to begin at once.
    pub playing: bool,
}

/// The problems, as a list that the simulator takes.
pub fn problems() -> anyhow::Result<Problems> {
    Ok(Problems::new(&PROBLEMS)?)
}

/// Reads the names and values of an address. What is empty is as if it were left out, as in a form that
/// was not filled in.
pub fn read(pairs: &[(String, String)]) -> anyhow::Result<Asked> {
    let mut scenario = Scenario {
        problem: HEAT_2D.name.to_owned(),
        set: "fresh".to_owned(),
        ..Scenario::default()
    };
    let mut playing = true;
    for (name, value) in pairs {
        match name.as_str() {
            "paused" if value.is_empty() => playing = false,
            "paused" => bail!("'paused={value}' says nothing; write 'paused', or leave it out"),
            "problem" | "agents" | "steps" | "seed" if value.is_empty() => {}
            "problem" => scenario.problem.clone_from(value),
            "agents" => scenario.agents = Some(at_most(AGENTS, name, value)?),
            "steps" => scenario.steps = Some(at_most(STEPS, name, value)?),
            "seed" => scenario.seed = number(name, value)?,
            _ => bail!(
                "an address cannot ask for '{name}' here; it can say problem, agents, steps, seed and paused"
            ),
        }
    }
    // Not by the name of a file, of which there are none.
    if !PROBLEMS.iter().any(|known| known.name == scenario.problem) {
        bail!(
            "there is no problem called '{}' on this page; there are {}",
            scenario.problem,
            problems()?.names()
        );
    }
    Ok(Asked { scenario, playing })
}

fn number<T: FromStr>(name: &str, value: &str) -> anyhow::Result<T> {
    let bad =
        |_| anyhow!("'{name}={value}' is no whole number of 0 or more that can be counted to");
    value.parse().map_err(bad)
}

fn at_most(most: usize, name: &str, value: &str) -> anyhow::Result<usize> {
    let given = number(name, value)?;
    if given > most {
        bail!(
            "{given} {name} are too many for a page, which takes {most} at most; agent-sim takes more"
        );
    }
    Ok(given)
}
