//! How one policy fares in swarms of other sizes.

use super::sizes::{has_feedback, multiple, sizes};
use super::{Scope, Study, curve_of};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Findings, Picture, Table, share};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Reference, Sweep, SweepPanel, line, sweep_panels};
use agent_sim::table::number;
use problem::Problem;

/// Error against the number of agents.
pub struct Cardinality;

/// Numbers of agents, over the published one.
const MULTIPLES: [f64; 14] = [
    0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0,
];

/// The range in which the paper calls its policies stable (its zero-shot table; 1 to 5 episodes,
/// policies trained for it separately).
fn published(problem: &Problem) -> Option<[f64; 2]> {
    match problem.name {
        // 20 of 30: 14 are the fewest of 20 that are no smaller a part.
        "fkpp-1d" => Some([0.7, 5.0]),
        "heat-1d" => Some([0.5, 4.0]),
        "heat-2d" => Some([1.0, 16.0]),
        "ks-1d" => Some([0.5, 3.0]),
        "ks-2d" => Some([144.0 / 196.0, 256.0 / 196.0]),
        "turbulence-2d" => Some([36.0 / 64.0, 16.0]),
        "density-2d" => Some([0.25, 64.0]),
        _ => None,
    }
}

/// A row of the paper's zero-shot table whose swarm is another than that of its results table.
struct ZeroShot {
    problem: &'static str,
    /// Circumference, grid points and steps, where they differ too.
    circle: Option<(f64, usize, usize)>,
    /// The number that the paper trained with.
    trained: usize,
    /// The smallest and the largest that it calls stable.
    ends: [usize; 2],
    /// Its errors there, over that of the trained number.
    published: [f64; 2],
}

const ZERO_SHOT: [ZeroShot; 5] = [
    ZeroShot::new("fkpp-1d", 30, [20, 150], [1.1497, 1.2873]),
    ZeroShot::new("heat-1d", 30, [15, 120], [1.4565, 2.0786]),
    ZeroShot {
        circle: Some((32.0, 256, 400)),
        ..ZeroShot::new("ks-1d", 30, [15, 90], [0.9975, 1.1442])
    },
    ZeroShot::new("ks-2d", 196, [144, 256], [0.4502, 2.3010]),
    ZeroShot::new("density-2d", 16, [4, 1024], [1.4153, 0.8371]),
];

impl ZeroShot {
    const fn new(
        problem: &'static str,
        trained: usize,
        ends: [usize; 2],
        published: [f64; 2],
    ) -> Self {
        Self {
            problem,
            circle: None,
            trained,
            ends,
            published,
        }
    }

    fn cell(&self, agents: usize) -> String {
        format!("zero-shot, {}, {agents}", self.problem)
    }

    fn trial(&self, scope: &Scope, agents: usize) -> anyhow::Result<SwarmWork> {
        let problem = problem::published::by_name(self.problem)?;
        let policy = Controls::Policy(scope.policy(problem)?);
        let (setting, steps) = match self.circle {
            None => (Setting::of(problem), problem.horizon),
            Some((length, points, steps)) => {
                let setting = Setting::of(problem).physics(&[("length", length)])?;
                (setting.grid(points)?, steps)
            }
        };
        Ok(SwarmWork {
            agents,
            steps,
            ..SwarmWork::fresh(scope, setting, policy)
        })
    }

    fn row(&self, outcomes: &Outcomes) -> anyhow::Result<Vec<String>> {
        // Final errors, as in the paper's.
        let error = |agents| -> anyhow::Result<Figure> {
            Ok(outcomes.of(&self.cell(agents))?.figure("final"))
        };
        let home = error(self.trained)?;
        let mut row = vec![
            match self.circle {
                Some((length, ..)) => format!("`{}`, length {length}", self.problem),
                None => format!("`{}`", self.problem),
            },
            self.trained.to_string(),
            home.text(),
        ];
        for (agents, published) in self.ends.into_iter().zip(self.published) {
            let error = error(agents)?;
            row.extend([
                agents.to_string(),
                error.text(),
                share(error.mean / home.mean),
                share(published),
            ]);
        }
        Ok(row)
    }
}

/// The swarms of the paper's zero-shot table; a quick run leaves them out.
fn zero_shot(scope: &Scope) -> &'static [ZeroShot] {
    scope.pick(&[], &ZERO_SHOT)
}

impl Study for Cardinality {
    fn name(&self) -> &'static str {
        "cardinality"
    }

    fn title(&self) -> &'static str {
        "One policy in swarms of 1/8 to 128 times the published size"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let setting = Setting::of(problem);
            let nobody = SwarmWork::fresh(scope, setting.clone(), Controls::Nobody);
            cells.push(Cell::new(name(problem, &nobody.controls, 0), nobody));
            for agents in counts(scope, problem) {
                let mut both = vec![Controls::Policy(scope.policy(problem)?)];
                both.extend(has_feedback(problem, agents).then_some(Controls::Proportional));
                for controls in both {
                    let trial = SwarmWork {
                        agents,
                        ..SwarmWork::fresh(scope, setting.clone(), controls)
                    };
                    cells.push(Cell::new(name(problem, &trial.controls, agents), trial));
                }
            }
        }
        for row in zero_shot(scope) {
            for agents in [row.trained].into_iter().chain(row.ends) {
                cells.push(Cell::new(row.cell(agents), row.trial(scope, agents)?));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![format!(
                "The policies of the results table, unchanged, with other numbers of agents than the \
                 published one; {} fresh episodes each, the figure of the results table. On planes \
                 numbers are squares, because swarms start on square lattices. How far the errors are \
                 from the best known is shown by [regret](regret.md). The paper's ranges, in which it \
                 calls its policies stable, are of policies trained for that table alone, from 1 to 5 \
                 episodes.",
                scope.episodes(),
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "agents", "multiple", "controller"]);
        let mut swarms = Vec::new();
        let mut points = Vec::new();
        let mut curves = Vec::new();
        for problem in problem::published::measured() {
            let figure = |controls: &Controls, agents| -> anyhow::Result<Figure> {
                let outcome = outcomes.of(&name(problem, controls, agents))?;
                Ok(outcome.figure("headline"))
            };
            let policy = Controls::Policy(scope.policy(problem)?);
            let nobody = figure(&Controls::Nobody, 0)?;
            let mut curve = Vec::new();
            let mut feedback = Vec::new();
            for agents in counts(scope, problem) {
                let multiple = multiple(problem, agents);
                let ours = figure(&policy, agents)?;
                let theirs = match has_feedback(problem, agents) {
                    true => Some(figure(&Controls::Proportional, agents)?),
                    false => None,
                };
                for (name, figure) in [("policy", Some(ours)), ("proportional", theirs)] {
                    let Some(figure) = figure else { continue };
                    let [agents, multiple] = [agents.to_string(), format!("{multiple:.3}")];
                    findings.csv_row(&[problem.name, &agents, &multiple, name], &figure);
                }
                points.push(vec![
                    format!("`{}`", problem.name),
                    agents.to_string(),
                    format!("{multiple:.2}×"),
                    ours.text(),
                    theirs.map_or("–".to_owned(), |theirs| theirs.text()),
                ]);
                feedback.extend(theirs.map(|theirs| (multiple, theirs.mean)));
                curve.push((multiple, ours.mean));
            }
            swarms.push(vec![
                format!("`{}`", problem.name),
                problem.agents.to_string(),
                figure(&policy, problem.agents)?.text(),
                number(nobody.mean),
                published(problem).map_or("–".to_owned(), |paper| {
                    format!("{:.2}–{:.1}×", paper[0], paper[1])
                }),
            ]);
            let series = [
                curve_of("policy", line::BLUE, curve),
                curve_of("proportional", line::ORANGE, feedback),
            ];
            let reference = Reference {
                name: "no control".to_owned(),
                y: nobody.mean,
            };
            curves.push((problem, series, [reference]));
        }
        let head = ["", "agents", "error", "no control", "the paper works for"];
        let title = "Published swarms";
        findings.tables.push(Table::new(title, &head, swarms));
        let head = ["", "agents", "", "error", "proportional feedback"];
        findings
            .tables
            .push(Table::new("All points", &head, points));
        let rows = zero_shot(scope).iter().map(|row| row.row(outcomes));
        let rows: Vec<Vec<String>> = rows.collect::<anyhow::Result<_>>()?;
        if !rows.is_empty() {
            let head = [
                "",
                "the paper trained with",
                "error",
                "agents",
                "error",
                "over the first",
                "the paper",
                "agents",
                "error",
                "over the first",
                "the paper",
            ];
            let title = "The shipped policies in the swarms of the paper's zero-shot table, where those \
                         are not the ones above: final errors, and these over that with as many agents as \
                         the paper trained with, which is what the paper has";
            findings.tables.push(Table::new(title, &head, rows));
        }
        let panels: Vec<SweepPanel<'_>> = curves
            .iter()
            .map(|(problem, series, references)| SweepPanel {
                sweep: Sweep {
                    title: problem.name,
                    x_label: "agents, over the published number",
                    y_label: "error",
                    series,
                    references,
                    log_x: true,
                },
                shaded: published(problem),
            })
            .collect();
        findings.pictures.push(Picture {
            name: "panels".to_owned(),
            caption: "Error against the number of agents; shaded: where the paper's policies work"
                .to_owned(),
            svg: sweep_panels(&panels, &scope.foot())?,
        });
        Ok(findings)
    }
}

fn name(problem: &Problem, controls: &Controls, agents: usize) -> String {
    format!("{}, {}, {agents}", problem.name, controls.name())
}

/// Numbers of agents, rising; the published one is among them.
fn counts(scope: &Scope, problem: &Problem) -> Vec<usize> {
    let multiples = scope.pick(vec![0.5, 1.0, 2.0], MULTIPLES.to_vec());
    let ends = scope.pick(None, published(problem));
    sizes(
        problem,
        multiples.into_iter().chain(ends.into_iter().flatten()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    #[test]
    fn every_list_has_the_published_number() {
        for mode in [Mode::Quick, Mode::Full] {
            let scope = Scope::new(mode, 1, None, String::new());
            for problem in problem::published::measured() {
                let counts = counts(&scope, problem);
                assert!(counts.contains(&problem.agents), "{}", problem.name);
            }
        }
    }
}
