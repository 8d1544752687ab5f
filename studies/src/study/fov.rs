//! How far an agent has to see.

use super::{Scope, Study};
use crate::cell::{Cell, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::plot::{PALETTE, banded};
use crate::study_policy::missing;
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Sweep, sweep_picture};
use anyhow::ensure;
use artifacts::policy_file::PolicyFile;
use problem::published::fkpp_1d::{GRID, PROBLEM};
use std::sync::Arc;

/// Error against the window of agents.
pub struct FieldOfView;

/// How the names of policies trained with other windows begin.
const PREFIX: &str = "fkpp-1d-window-";
/// Cells of the window, of 100: the paper's range as far as the trainer's windows go.
const WINDOWS: [f64; 5] = [4.0, 8.0, 16.0, 32.0, 64.0];
const AGENTS: [usize; 5] = [20, 40, 60, 80, 100];

/// A policy and its window in cells.
struct Contender {
    window: usize,
    policy: Arc<PolicyFile>,
}

/// By rising window. The shipped policy is not among them: it was trained for other things too.
fn contenders(scope: &Scope) -> anyhow::Result<Vec<Contender>> {
    let mut all = Vec::new();
    for varied in scope.study_policies(&PROBLEM, PREFIX)? {
        let window = usize::from(varied.policy.policy(&PROBLEM)?.header().sensing.window);
        // A mistaken name would become a false result.
        ensure!(
            window as f64 == varied.value,
            "{} sees {window} cells, not {}; name it after its window",
            varied.policy.origin(),
            varied.value
        );
        all.push(Contender {
            window,
            policy: varied.policy,
        });
    }
    all.sort_by_key(|contender| contender.window);
    Ok(all)
}

fn agents(scope: &Scope) -> &'static [usize] {
    &AGENTS[..scope.pick(2, AGENTS.len())]
}

fn cell(window: usize, agents: usize) -> String {
    format!("{window}, {agents}")
}

/// The windows with the smallest and the largest error.
struct Trend {
    best: usize,
    smallest: usize,
    /// Error of the smallest window over that of the best.
    ratio: f64,
    /// The same for the widest.
    widest: usize,
    widest_ratio: f64,
}

impl Trend {
    /// Of `(window, error)` by rising window; none of fewer than three.
    fn of(errors: &[(usize, f64)]) -> Option<Self> {
        let (&(smallest, narrow), &(widest, wide)) = (errors.first()?, errors.last()?);
        let &(best, least) = errors.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        (errors.len() >= 3).then_some(Self {
            best,
            smallest,
            ratio: narrow / least,
            widest,
            widest_ratio: wide / least,
        })
    }

    fn text(&self) -> String {
        format!(
            "best with {} cells; with {} the error is {:.1} times as large, with {} {:.1} times",
            self.best, self.smallest, self.ratio, self.widest, self.widest_ratio
        )
    }
}

impl Study for FieldOfView {
    fn name(&self) -> &'static str {
        "fov"
    }

    fn title(&self) -> &'static str {
        "How far an agent has to see"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for contender in contenders(scope)? {
            for &agents in agents(scope) {
                let controls = Controls::Policy(contender.policy.clone());
                let trial = SwarmWork {
                    agents,
                    ..SwarmWork::fresh(scope, Setting::of(&PROBLEM), controls)
                };
                cells.push(Cell::new(cell(contender.window, agents), trial));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let contenders = contenders(scope)?;
        let there: Vec<f64> = contenders.iter().map(|c| c.window as f64).collect();
        let mut findings = Findings {
            about: vec![
                format!(
                    "`fkpp-1d`: policies that differ in the window that an agent sees, of {GRID} cells, \
                     in swarms of several sizes; {} fresh episodes each, no noise, final error. \
                     In the paper, of policies trained with 30 agents and noise, a window of 4 % has 3 \
                     to 8 times the error of one of 20 %, beyond which nothing is gained.",
                    scope.episodes()
                ),
                missing(&WINDOWS, &there, PREFIX, "--window "),
            ],
            ..Findings::default()
        };
        findings.about.retain(|text| !text.is_empty());
        findings.csv_head(&["window", "policy", "agents"]);
        let mut rows = Vec::new();
        for contender in &contenders {
            let hash = contender.policy.hash()[..12].to_owned();
            let mut row = vec![contender.window.to_string(), hash.clone()];
            for &agents in agents(scope) {
                let figure = outcomes
                    .of(&cell(contender.window, agents))?
                    .figure("final");
                let (window, agents) = (contender.window.to_string(), agents.to_string());
                findings.csv_row(&[&window, &hash, &agents], &figure);
                row.push(figure.text());
            }
            rows.push(row);
        }
        let mut series = Vec::new();
        for (index, &agents) in agents(scope).iter().enumerate() {
            let mut points = Vec::new();
            for contender in &contenders {
                let figure = outcomes
                    .of(&cell(contender.window, agents))?
                    .figure("final");
                points.push((contender.window, figure));
            }
            let errors: Vec<(usize, f64)> = points.iter().map(|(w, f)| (*w, f.mean)).collect();
            let (text, verdict) = match Trend::of(&errors) {
                Some(trend) if trend.best != trend.smallest => (trend.text(), Verdict::Met),
                Some(trend) => {
                    let why = "missed: the smallest window is the best".to_owned();
                    (trend.text(), Verdict::Missed(why))
                }
                None => {
                    let why = "fewer than three windows have policies".to_owned();
                    ("–".to_owned(), Verdict::LeftOut(why))
                }
            };
            let what = format!("{agents} agents");
            let bar = "a wider window is better than the smallest";
            findings.bars.push(Bar::holds(what, bar, text, verdict));
            let points = points.into_iter().map(|(window, f)| (window as f64, f));
            series.push(banded(format!("{agents} agents"), PALETTE[index], points));
        }
        let mut head = vec!["window".to_owned(), "policy".to_owned()];
        head.extend(agents(scope).iter().map(|n| format!("{n} agents")));
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        findings.tables.push(Table::new("Final error", &head, rows));
        let sweep = Sweep {
            title: "fkpp-1d: final error against the window",
            x_label: "cells that an agent sees, of 100",
            y_label: "final error, with one standard deviation",
            series: &series,
            references: &[],
            log_x: true,
        };
        findings.pictures.push(Picture {
            name: "window".to_owned(),
            caption: "Final error against the window that an agent sees".to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_named_after_another_window_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("studies")).unwrap();
        let shipped = PolicyFile::shipped(&PROBLEM).unwrap();
        let put = |name: &str| std::fs::write(folder.path().join(name), shipped.bytes()).unwrap();
        put("fkpp-1d.policy");
        put("studies/fkpp-1d-window-40.policy");
        let policies = Some(folder.path().to_owned());
        let scope = Scope::new(crate::Mode::Quick, 1, policies, String::new());
        assert_eq!(contenders(&scope).unwrap().len(), 1);
        put("studies/fkpp-1d-window-12.policy");
        let refused = contenders(&scope).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("sees 40 cells, not 12"), "{refused}");
    }

    #[test]
    fn the_trend_names_the_best_window_and_the_price_of_the_ends() {
        let trend = Trend::of(&[(4, 8.0), (20, 1.0), (100, 1.5)]).unwrap();
        assert_eq!(
            trend.text(),
            "best with 20 cells; with 4 the error is 8.0 times as large, with 100 1.5 times"
        );
        assert!(Trend::of(&[(4, 8.0), (20, 1.0)]).is_none());
    }
}
