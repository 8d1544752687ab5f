//! The questions of the published problems that can be put to any field: swarms of other sizes, agents that
//! die, noise. Of one problem, with its own policy and feedback, as far as it has them.

use super::mishap::{Mishap, Spread, fault, victims};
use super::sizes::{multiple, sizes};
use super::{Scope, Study, curve_of};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::fault::{Fault, actuator::ACTUATOR_NOISE, sensor::NOISE};
use agent_sim::report::{Reference, Sweep, line, sweep_picture};
use anyhow::{Context, bail};
use artifacts::policy_file::PolicyFile;
use problem::{Problem, input};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// A field of one's own and who acts on it.
#[derive(Clone)]
pub struct OwnField {
    setting: Setting,
    /// Who is compared: its policy, its feedback.
    contestants: Vec<Controls>,
}

/// One of the questions.
struct Question {
    field: OwnField,
    about: About,
}

#[derive(Clone, Copy, PartialEq)]
enum About {
    Cardinality,
    Failure,
    Noise,
}

/// One point: what it is called, where it stands, and what is run.
struct Point {
    label: String,
    x: f64,
    agents: usize,
    faults: Vec<Fault>,
}

impl OwnField {
    /// The field that a file describes, with a policy, or with that beside the file.
    pub fn read(path: &Path, policy: Option<&Path>) -> anyhow::Result<Self> {
        let shown = path.display();
        if !problem::kit::is_file(&path.to_string_lossy()) {
            bail!("'{shown}' is not the name of a description; give the path of a .toml file");
        }
        let problem = problem::kit::load(path)?;
        let mut contestants = Vec::new();
        let file = match policy {
            Some(policy) => Some(PolicyFile::read(policy)?),
            None => PolicyFile::shipped(problem).ok(),
        };
        if let Some(file) = file {
            file.policy(problem)?;
            contestants.push(Controls::Policy(Arc::new(file)));
        }
        contestants.extend(problem.baseline.map(|_| Controls::Proportional));
        if contestants.is_empty() {
            bail!(
                "{shown} has neither a policy nor a tuned feedback to study; give --policy, put {} beside it, or write what agent-sim tune finds as [feedback] into it",
                path.with_extension("policy").display()
            );
        }
        Ok(Self {
            setting: Setting {
                problem: *problem,
                form: fingerprint(path)?,
            },
            contestants,
        })
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.setting.problem
    }

    /// Its policy.
    pub fn policy(&self) -> Option<&PolicyFile> {
        self.contestants.iter().find_map(|controls| match controls {
            Controls::Policy(file) => Some(&**file),
            _ => None,
        })
    }

    /// The studies of these names that can be made of it, or all that can.
    pub fn studies(&self, asked: &[&str]) -> anyhow::Result<Vec<Box<dyn Study>>> {
        let all = [About::Cardinality, About::Failure, About::Noise];
        if let Some(other) = (asked.iter()).find(|name| !all.iter().any(|a| a.name() == **name)) {
            bail!(
                "the study '{other}' is about the published problems; with --problem there is: {}",
                all.map(About::name).join(", ")
            );
        }
        let sizes = self.problem().check_agents(self.problem().agents + 1);
        if asked.contains(&About::Cardinality.name()) {
            sizes.clone().context("cardinality")?;
        }
        let chosen = all.into_iter().filter(|about| match asked.is_empty() {
            true => *about != About::Cardinality || sizes.is_ok(),
            false => asked.contains(&about.name()),
        });
        Ok(chosen
            .map(|about| -> Box<dyn Study> {
                Box::new(Question {
                    field: self.clone(),
                    about,
                })
            })
            .collect())
    }
}

/// Of a description and of all files that it names: what was run with others is run again.
fn fingerprint(path: &Path) -> anyhow::Result<String> {
    let text = input::read_text(path, input::DESCRIPTION)?;
    let mut hash = Sha256::new();
    hash.update(&text);
    let folder = path.parent().unwrap_or(Path::new(""));
    for name in text.split(['"', '\'', '\n']) {
        if [".npy", ".png"].iter().any(|end| name.ends_with(end))
            && let Ok(bytes) = input::read(&folder.join(name), input::MAP)
        {
            hash.update(bytes);
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

impl About {
    fn name(self) -> &'static str {
        match self {
            Self::Cardinality => "cardinality",
            Self::Failure => "failure",
            Self::Noise => "noise",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Cardinality => "agents, over the described number",
            Self::Failure => "share of the agents that crash half way",
            Self::Noise => "noise, as a share of the field's range and of the largest force",
        }
    }

    fn points(self, scope: &Scope, problem: &Problem) -> Vec<Point> {
        let same = |label: String, x: f64, faults: Vec<Fault>| Point {
            label,
            x,
            agents: problem.agents,
            faults,
        };
        match self {
            Self::Cardinality => {
                let all = [0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0];
                let multiples = scope.pick(vec![0.5, 1.0, 2.0], all.to_vec());
                let mut counts = sizes(problem, multiples);
                counts.push(problem.agents);
                counts.sort_unstable();
                counts.dedup();
                let point = |agents| Point {
                    label: format!("{agents} agents"),
                    x: multiple(problem, agents),
                    agents,
                    faults: Vec::new(),
                };
                counts.into_iter().map(point).collect()
            }
            Self::Failure => {
                let all = [0.1, 0.2, 0.3, 0.5, 0.7];
                let mut points = vec![same("none".to_owned(), 0.0, Vec::new())];
                points.extend(
                    scope
                        .pick(vec![0.3], all.to_vec())
                        .into_iter()
                        .map(|share| {
                            let agents = problem.agents;
                            let crash =
                                fault(problem, agents, Mishap::Crash, Spread::Random, share);
                            let count = victims(agents, share);
                            same(format!("{share}: {count} of {agents}"), share, vec![crash])
                        }),
                );
                points
            }
            Self::Noise => {
                let [low, high] = problem.kit.map_or([0.0, 1.0], |kit| {
                    let field = &kit.described[kit.seen];
                    field.range
                });
                let all = [0.003, 0.01, 0.03, 0.1];
                let mut points = vec![same("none".to_owned(), 0.0, Vec::new())];
                points.extend(scope.pick(vec![0.01], all.to_vec()).into_iter().map(|x| {
                    let [cell, force] = [x * (high - low), x * problem.actuation.force_max];
                    let noise = [NOISE.with("std", cell), ACTUATOR_NOISE.with("std", force)];
                    let label = format!("{x}: {cell:.3} on cells, {force:.3} on forces");
                    same(label, x, noise.map(Fault::new).to_vec())
                }));
                points
            }
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Cardinality => {
                "Swarms of other sizes than the file's; on planes squares, because lattices are. The gain of feedback is shared out where there are more."
            }
            Self::Failure => {
                "A share of the agents, others in each episode, does nothing from half of the episode on, and nobody tells the others."
            }
            Self::Noise => {
                "Gaussian noise on every sensed cell and on every force, anew in each step and for all agents, beside what the file's sensors have."
            }
        }
    }
}

impl Question {
    fn cell(&self, controls: &Controls, point: &Point) -> String {
        format!("{}, {}", controls.name(), point.label)
    }

    fn nobody(&self, scope: &Scope) -> SwarmWork {
        SwarmWork::fresh(scope, self.field.setting.clone(), Controls::Nobody)
    }
}

impl Study for Question {
    fn name(&self) -> &'static str {
        self.about.name()
    }

    fn title(&self) -> &'static str {
        match self.about {
            About::Cardinality => "Swarms of other sizes",
            About::Failure => "Agents that die half way, without notice",
            About::Noise => "Noise on sensors and actuators",
        }
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = vec![Cell::new("no control", self.nobody(scope))];
        for point in self.about.points(scope, self.field.problem()) {
            for controls in &self.field.contestants {
                let trial = SwarmWork {
                    agents: point.agents,
                    faults: point.faults.clone(),
                    ..SwarmWork::fresh(scope, self.field.setting.clone(), controls.clone())
                };
                cells.push(Cell::new(self.cell(controls, &point), trial));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let problem = self.field.problem();
        let figure =
            |name: &str| -> anyhow::Result<Figure> { Ok(outcomes.of(name)?.figure("headline")) };
        let nobody = figure("no control")?;
        let mut findings = Findings {
            about: vec![format!(
                "`{}`: {}. {} {} fresh episodes a point; errors are those that the file's score asks for. Without any control: {}.",
                problem.name,
                problem.summary,
                self.about.told(),
                scope.episodes(),
                nobody.text(),
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "controller", "point"]);
        findings.csv_row(&[problem.name, "no control", ""], &nobody);
        let points = self.about.points(scope, problem);
        let mut rows: Vec<Vec<String>> = (points.iter()).map(|p| vec![p.label.clone()]).collect();
        let mut series = Vec::new();
        let contestants = self.field.contestants.iter();
        for (controls, colour) in contestants.zip([line::BLUE, line::ORANGE]) {
            let mut curve = Vec::new();
            for (point, row) in points.iter().zip(&mut rows) {
                let error = figure(&self.cell(controls, point))?;
                findings.csv_row(&[problem.name, controls.name(), &point.label], &error);
                row.push(error.text());
                curve.push((point.x, error.mean));
                let what = format!("{}, {}: below no control", controls.name(), point.label);
                findings
                    .bars
                    .push(Bar::at_most(what, error.mean, nobody.mean));
            }
            series.push(curve_of(controls.name(), colour, curve));
        }
        let mut head = vec![""];
        head.extend(self.field.contestants.iter().map(Controls::name));
        findings.tables.push(Table::new("Errors", &head, rows));
        let title = format!("{}: {}", problem.name, self.title());
        let sweep = Sweep {
            title: &title,
            x_label: self.about.axis(),
            y_label: "error",
            series: &series,
            references: &[Reference {
                name: "no control".to_owned(),
                y: nobody.mean,
            }],
            log_x: self.about == About::Cardinality,
        };
        findings.pictures.push(Picture {
            name: "errors".to_owned(),
            caption: title.clone(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}
