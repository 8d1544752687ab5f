//! What is left when agents die half way and nobody tells the others.

use super::mishap::{Mishap, Spread, fault, victims};
use super::{Scope, Study, figures, problems_picture};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Table, share};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::Sweep;
use agent_sim::table::number;
use problem::Problem;

/// Error against the share of agents that fail.
pub struct Failure;

/// Shares of the agents that fail.
const SHARES: [f64; 6] = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7];

/// The share that the table of ways is about.
const CRASH: f64 = 0.3;
/// The share of those stuck at their maximum that the field has to bear.
const STUCK: f64 = 0.05;

fn name(problem: &Problem, controls: &str, mishap: Mishap, spread: Spread, share: f64) -> String {
    format!(
        "{}, {controls}, {}, {}, {share}",
        problem.name,
        mishap.name(),
        spread.name()
    )
}

fn plain(problem: &Problem, controls: &str) -> String {
    format!("{}, {controls}", problem.name)
}

fn shares(scope: &Scope) -> Vec<f64> {
    scope.pick(vec![STUCK, CRASH], SHARES.to_vec())
}

impl Study for Failure {
    fn name(&self) -> &'static str {
        "failure"
    }

    fn title(&self) -> &'static str {
        "Agents that die or stick half way, without notice"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let setting = Setting::of(problem);
            let policy = Controls::Policy(scope.policy(problem)?);
            for controls in [Controls::Nobody, Controls::Proportional, policy.clone()] {
                let trial = SwarmWork::fresh(scope, setting.clone(), controls);
                cells.push(Cell::new(plain(problem, trial.controls.name()), trial));
            }
            let mut add = |controls: &Controls, mishap, spread, share| {
                let trial = SwarmWork {
                    faults: vec![fault(problem, problem.agents, mishap, spread, share)],
                    ..SwarmWork::fresh(scope, setting.clone(), controls.clone())
                };
                let name = name(problem, controls.name(), mishap, spread, share);
                cells.push(Cell::new(name, trial));
            };
            for share in shares(scope) {
                for spread in Spread::ALL {
                    for mishap in Mishap::ALL {
                        add(&policy, mishap, spread, share);
                    }
                }
                add(
                    &Controls::Proportional,
                    Mishap::Crash,
                    Spread::Random,
                    share,
                );
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let figure =
            |name: &str| -> anyhow::Result<Figure> { Ok(outcomes.of(name)?.figure("headline")) };
        let mut findings = Findings {
            about: vec![format!(
                "A share of the agents fails at half of the episode, and nobody tells the others. \
                 Agents that crash do nothing from then on; stuck ones repeat their last action for \
                 ever, or push with all they have (where agents stir: move at full speed). Either \
                 any agents are hit, or one and its neighbours; others in each of the {} fresh \
                 episodes. Shares are rounded to whole agents, at least one. How far the errors are from \
                 the best known, and from plans that know the episode, is shown by [regret](regret.md). The figure of `ks-1d` is the mean over the \
                 whole episode, of which faults see the second half; its final error stands beside it.",
                scope.episodes()
            )],
            ..Findings::default()
        };
        findings.csv_head(&[
            "problem",
            "controller",
            "figure",
            "mishap",
            "who",
            "share",
            "victims",
        ]);
        let shares = shares(scope);
        for problem in problem::published::measured() {
            for controls in ["no control", "proportional", "policy"] {
                let without = figure(&plain(problem, controls))?;
                let labels = [problem.name, controls, "headline", "none", "", "0", "0"];
                findings.csv_row(&labels, &without);
            }
            let stuck = name(
                problem,
                "policy",
                Mishap::StuckAtMaximum,
                Spread::Random,
                STUCK,
            );
            let nobody = figure(&plain(problem, "no control"))?;
            let what = format!(
                "`{}`, {} of {} stuck at maximum: below no control",
                problem.name,
                victims(problem.agents, STUCK),
                problem.agents
            );
            let bar = Bar::at_most(what, figure(&stuck)?.mean, nobody.mean);
            findings.bars.push(bar);
        }

        for mishap in Mishap::ALL {
            for spread in Spread::ALL {
                let mut rows = Vec::new();
                let mut curves = Vec::new();
                for (problem, which, label) in figures() {
                    let figure = |name: &str| -> anyhow::Result<Figure> {
                        Ok(outcomes.of(name)?.figure(which))
                    };
                    let without = figure(&plain(problem, "policy"))?;
                    let mut row = vec![label, without.text()];
                    let mut curve = vec![(0.0, without.mean)];
                    for &share in &shares {
                        let hit = figure(&name(problem, "policy", mishap, spread, share))?;
                        let count = victims(problem.agents, share).to_string();
                        let labels = [
                            problem.name,
                            "policy",
                            which,
                            mishap.name(),
                            spread.name(),
                            &share.to_string(),
                            &count,
                        ];
                        findings.csv_row(&labels, &hit);
                        row.push(hit.text());
                        curve.push((share, hit.mean));
                    }
                    rows.push(row);
                    if which == "headline" {
                        curves.push((problem.name, curve));
                    }
                }
                let title = format!("{}, {}", mishap.name(), spread.name());
                let mut head = vec![String::new(), "error without faults".to_owned()];
                head.extend(shares.iter().map(|share| format!("{:.0} %", 100.0 * share)));
                let head: Vec<&str> = head.iter().map(String::as_str).collect();
                findings.tables.push(Table::new(&title, &head, rows));
                let name = title.replace([',', ' '], "-").replace("--", "-");
                let sweep = Sweep {
                    title: &format!("Agents fail half way: {title}"),
                    x_label: "share of the agents",
                    y_label: "error",
                    ..Sweep::default()
                };
                let picture = problems_picture(scope, &name, &sweep, &curves)?;
                findings.pictures.push(picture);
            }
        }
        findings
            .tables
            .push(feedback(scope, outcomes, &mut findings.csv)?);
        findings.tables.push(reaction(outcomes)?);
        Ok(findings)
    }
}

/// Proportional feedback under the same crashes.
fn feedback(
    scope: &Scope,
    outcomes: &Outcomes,
    csv: &mut Vec<Vec<String>>,
) -> anyhow::Result<Table> {
    let shares = shares(scope);
    let mut rows = Vec::new();
    for problem in problem::published::measured() {
        let without = outcomes.of(&plain(problem, "proportional"))?;
        let mut row = vec![
            format!("`{}`", problem.name),
            without.figure("headline").text(),
        ];
        for &share in &shares {
            let name = name(
                problem,
                "proportional",
                Mishap::Crash,
                Spread::Random,
                share,
            );
            let hit = outcomes.of(&name)?.figure("headline");
            row.push(number(hit.mean));
            let labels = [
                problem.name,
                "proportional",
                "headline",
                "crash",
                "random",
                &share.to_string(),
                &victims(problem.agents, share).to_string(),
            ];
            let mut line = labels.map(str::to_owned).to_vec();
            line.extend(hit.columns());
            csv.push(line);
        }
        rows.push(row);
    }
    let mut head = vec![String::new(), "without faults".to_owned()];
    head.extend(shares.iter().map(|share| format!("{:.0} %", 100.0 * share)));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let title = "Proportional feedback: errors where agents crash at random";
    Ok(Table::new(title, &head, rows))
}

/// Whether agents that move do so more when others have crashed, and what the typical episode loses.
fn reaction(outcomes: &Outcomes) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for problem in problem::published::measured() {
        let without = outcomes.of(&plain(problem, "policy"))?;
        let crash = name(problem, "policy", Mishap::Crash, Spread::Random, CRASH);
        let crash = outcomes.of(&crash)?;
        let [way, errors] = ["travel", "headline"].map(|f| [without.figure(f), crash.figure(f)]);
        if way[0].mean == 0.0 {
            continue;
        }
        let stopped = victims(problem.agents, CRASH) as f64 / problem.agents as f64;
        rows.push(vec![
            format!("`{}`", problem.name),
            number(way[0].mean),
            share(way[1].mean / way[0].mean),
            share(1.0 - 0.5 * stopped),
            errors[0].text(),
            errors[1].text(),
            number(errors[0].median),
            number(errors[1].median),
        ]);
    }
    let head = [
        "",
        "way without faults",
        "30 % crash, over that",
        "if the others went on as before, all at an even pace",
        "mean error without faults",
        "30 % crash",
        "median error without faults",
        "30 % crash",
    ];
    let title = "How far agents go, and their errors";
    Ok(Table::new(title, &head, rows))
}
