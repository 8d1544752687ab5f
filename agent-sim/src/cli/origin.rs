//! What results say of their origin, for other programs.

use super::VERSION;
use crate::plant::Shared;
use crate::scenario::{Scenario, Team};
use problem::test_set::Resampled;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names and values, in order.
pub type Entries = Vec<(&'static str, Value)>;

/// Everything that decides the results of a scenario, except which episode.
pub fn origin(
    scenario: &Scenario,
    team: &Team,
    resampled: Option<&Resampled>,
    plant: Option<&Shared>,
) -> Entries {
    let problem = &team.problem;
    let physics: BTreeMap<&str, f64> = problem.changed_physics().collect();
    let gain = (team.experiment(team.parsed_policy().as_ref()))
        .controller
        .gain();
    let faults: Vec<String> = team.faults.iter().map(ToString::to_string).collect();
    vec![
        ("problem", json!(problem.name)),
        ("variant", json!(problem.form)),
        ("physics", json!(physics)),
        ("grid", json!(problem.grid.shape())),
        ("substeps", json!(problem.substeps)),
        ("controller", json!(team.kind.name)),
        ("gain", json!(gain)),
        (
            "policy_hash",
            json!(team.policy.as_ref().map(|file| file.hash())),
        ),
        ("plant", json!(plant.map(Shared::name))),
        ("agents", json!(team.agents)),
        ("steps", json!(team.steps)),
        ("faults", json!(faults)),
        ("seed", json!(scenario.seed)),
        ("set", json!(scenario.set)),
        ("resampled", json!(resampled)),
        ("version", json!(VERSION)),
    ]
}

/// A JSON object of entries that are JSON already.
pub fn object<'a>(entries: impl IntoIterator<Item = (&'a str, String)>, separator: &str) -> String {
    let entries: Vec<String> = entries
        .into_iter()
        .map(|(name, value)| format!("{}: {value}", Value::from(name)))
        .collect();
    format!("{{{}}}", entries.join(separator))
}
