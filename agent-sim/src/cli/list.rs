//! `agent-sim problems` and `agent-sim faults`: what there is.

use super::print;
use crate::table::table;
use crate::{fault, requirement};
use artifacts::policy_file::PolicyFile;
use problem::Problems;

pub fn problems(problems: &Problems) -> anyhow::Result<()> {
    let head = [
        "problem", "grid", "agents", "steps", "interval", "policy", "the task",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut variants = String::new();
    let mut physics = String::new();
    for problem in problems.iter() {
        rows.push(vec![
            problem.name.to_owned(),
            problem.grid.to_string(),
            problem.agents.to_string(),
            problem.horizon.to_string(),
            format!("{}", problem.control_interval),
            match PolicyFile::shipped(problem) {
                Ok(_) => "shipped".to_owned(),
                Err(_) => "–".to_owned(),
            },
            problem.summary.to_owned(),
        ]);
        for variant in problem.variants {
            variants += &format!(
                "  {} --variant {}: {}\n",
                problem.name, variant.name, variant.summary
            );
        }
        for (coefficient, published) in problem.coefficients.iter().zip(problem.physics) {
            let [low, high] = coefficient.range;
            physics += &format!(
                "  {} --physics {}={published}: {}, from {low} to {high}\n",
                problem.name, coefficient.name, coefficient.meaning
            );
        }
    }
    print(&format!(
        "{}\nVariants:\n{variants}\nPhysics that can be changed, as published:\n{physics}",
        table(&rows)
    ))
}

const FAULTS: &str = "\
A fault is KIND,PARAMETER=VALUE,…; give --fault several times to combine them. The first is nearest to
the agent. In a scenario file: [[fault]] kind = \"crash\" fraction = 0.3 at = 0.5.
";

const WHO_AND_WHEN: &str = "  \
  who    fraction=0.3 (drawn by the seed), cluster=0.3 (one drawn by the seed and those that start
         nearest to it), ids=0+3+10..20, region=0.2..0.6 or 0.2..0.6x0.1..0.4 (where agents are at
         the time); otherwise everybody
  when   at=0.5, until=0.8: shares of the run; otherwise all of it
  told   announced=10: to the others, 10 steps after it began, for reports; otherwise nobody is told
";

const REQUIREMENTS: &str = "\
A requirement is QUANTITY,below=BOUND or QUANTITY,above=BOUND, and when; give --require several times to
combine them. In a scenario file: [[require]] what = \"error\" below = 0.01 when = \"at the end\".
";

const WHEN: &str = "  \
  when   always (unless something else is said), eventually, at the end, within 50 steps of a fault
         from=0.5, until=0.8: shares of the run; otherwise all of it
  of     of=start: the bound is a share of what the quantity was at the start
  where  region=0.2..0.6 or 0.2..0.6x0.1..0.4, of quantities of the field
  whose  ids=0+3+10..20, of quantities of agents
  level  of recovery: the error that counts as recovered

  built-in alone stands for what is expected of any swarm: an error that falls to a tenth of what it was
  and never gets out of hand, and nobody in keep-out zones.
";

pub fn requirements() -> anyhow::Result<()> {
    print(&format!(
        "{REQUIREMENTS}\n{}\n{WHEN}",
        requirement::listing()
    ))
}

pub fn faults() -> anyhow::Result<()> {
    print(&format!("{FAULTS}\n{}\n{WHO_AND_WHEN}", fault::listing()))
}
