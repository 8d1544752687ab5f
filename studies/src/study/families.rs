//! One policy on a family of fields, against policies that were trained for one field of it each.

use super::{Scope, Study};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Table};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use artifacts::policy_file::PolicyFile;
use problem::Problem;
use problem::published::{fkpp_1d, turbulence_2d};
use std::sync::Arc;

/// The error of a policy for all against that of policies for one.
pub struct Families;

/// How much more error than a specialist's a policy for the whole family may make.
const LIMIT: f64 = 2.0;

/// A problem, how far its coefficients reach, and both ends and the middle of that.
struct Family {
    problem: &'static Problem,
    reach: &'static str,
    members: [&'static [(&'static str, f64)]; 3],
}

const FAMILIES: [Family; 2] = [
    Family {
        problem: &fkpp_1d::PROBLEM,
        reach: "ν from 0.0025 to 0.01, ρ from 1.5 to 6",
        members: [
            &[("nu", 0.0025), ("rho", 1.5)],
            &[("nu", 0.005), ("rho", 3.0)],
            &[("nu", 0.01), ("rho", 6.0)],
        ],
    },
    Family {
        problem: &turbulence_2d::PROBLEM,
        reach: "ν from 0.00016 to 0.0016",
        members: [&[("nu", 0.00016)], &[("nu", 0.0005)], &[("nu", 0.0016)]],
    },
];

/// A field with the two policies that are compared on it.
struct Member {
    family: &'static Family,
    values: &'static [(&'static str, f64)],
    policies: [(&'static str, Arc<PolicyFile>); 2],
}

impl Member {
    fn name(&self, whose: &str) -> String {
        format!("{}, {}, {whose}", self.family.problem.name, self.physics())
    }

    fn physics(&self) -> String {
        let values: Vec<String> = self
            .values
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        values.join(" ")
    }
}

/// The policy for the family is `<problem>-family-<factor>`, a specialist's name says its ν; the shipped
/// policy is whichever of them has no file.
fn members(scope: &Scope) -> anyhow::Result<Vec<Member>> {
    let mut all = Vec::new();
    for family in &FAMILIES {
        let problem = family.problem;
        let shipped = scope.policy(problem)?;
        let trained =
            |what: &str| scope.study_policies(problem, &format!("{}-{what}-", problem.name));
        let general = trained("family")?.pop();
        let general = general.map_or(shipped.clone(), |found| found.policy);
        let special = trained("nu")?;
        for values in family.members {
            let found = special.iter().find(|found| found.value == values[0].1);
            let specialist = found.map_or(shipped.clone(), |found| found.policy.clone());
            all.push(Member {
                family,
                values,
                policies: [("for all", general.clone()), ("for this one", specialist)],
            });
        }
    }
    Ok(all)
}

impl Study for Families {
    fn name(&self) -> &'static str {
        "families"
    }

    fn title(&self) -> &'static str {
        "One policy for a family of fields"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for member in members(scope)? {
            let setting = Setting::of(member.family.problem).physics(member.values)?;
            for (whose, policy) in &member.policies {
                let controls = Controls::Policy(policy.clone());
                let trial = SwarmWork::fresh(scope, setting.clone(), controls);
                cells.push(Cell::new(member.name(whose), trial));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![format!(
                "A policy that was trained on fields with coefficients drawn for every episode \
                 (`trainer train --physics`), against one that was trained for just the field it is \
                 tried on, from the same start: both ends and the middle of the family, {} fresh \
                 episodes each, the published swarm.",
                scope.episodes()
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "physics", "policy"]);
        let mut rows = Vec::new();
        for member in members(scope)? {
            let name = member.family.problem.name;
            let figures = member.policies.iter().map(|(whose, _)| {
                let outcome = outcomes.of(&member.name(whose))?;
                anyhow::Ok(outcome.figure("headline"))
            });
            let figures: Vec<Figure> = figures.collect::<anyhow::Result<_>>()?;
            for ((whose, _), figure) in member.policies.iter().zip(&figures) {
                findings.csv_row(&[name, &member.physics(), whose], figure);
            }
            let ratio = figures[0].mean / figures[1].mean;
            rows.push(vec![
                format!("`{name}`, {}", member.family.reach),
                member.physics(),
                figures[0].text(),
                figures[1].text(),
                format!("{ratio:.2}"),
            ]);
            let what = format!("`{name}`, {}: for all over for this one", member.physics());
            findings.bars.push(Bar::at_most(what, ratio, LIMIT));
        }
        let head = [
            "family",
            "field",
            "policy for all",
            "policy for this one",
            "ratio",
        ];
        findings.tables.push(Table::new("Errors", &head, rows));
        Ok(findings)
    }
}
