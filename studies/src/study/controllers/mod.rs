//! Everybody who was ever proposed for these fields, side by side: the paper's table with all its columns, and
//! the columns that it does not have.

mod bars;
mod central;
mod decision;
mod deeponet;
mod entry;
mod learning;
mod method;
mod pictures;
mod rl;
mod sheet;
mod why;

use super::{Scope, Study};
use crate::cell::{Cell, Outcomes};
use crate::findings::{Findings, Table, share};
use crate::paper::{PLANNER, ROWS, Row, TURBULENCE_AMONG_1024};
use crate::swarm_work::{Controls, SwarmWork};
use agent_sim::table::number;
use decision::Decision;
use entry::{Evidence, Found, HALF, cell, impossible};
use method::{ABLATED, CRASH, Condition, METHODS, Method, Source};
use problem::Problem;
use sheet::{Sheet, decision, duration, is_timed};

/// All controllers on the published test episodes.
pub struct Controllers;

/// Who acts, where the study runs a method itself.
fn controls(scope: &Scope, problem: &Problem, method: &Method) -> anyhow::Result<Controls> {
    Ok(match method.name {
        "none" => Controls::Nobody,
        "proportional" => Controls::Proportional,
        "coverage" => Controls::Coverage,
        "ours" => Controls::Policy(scope.policy(problem)?),
        name => anyhow::bail!("{name} is measured elsewhere"),
    })
}

fn work(
    scope: &Scope,
    row: &Row,
    method: &Method,
    condition: Condition,
) -> anyhow::Result<SwarmWork> {
    let setting = row.setting()?;
    let controls = controls(scope, &setting.problem, method)?;
    let published = SwarmWork::table(scope, setting, controls)?;
    Ok(SwarmWork {
        agents: condition
            .agents(&published.setting.problem)
            .unwrap_or(published.agents),
        faults: match condition {
            Condition::Crash => vec![CRASH.parse()?],
            _ => Vec::new(),
        },
        // In a quick run, what the study `table` has anyway, and little besides.
        episodes: match condition {
            Condition::Table => published.episodes,
            _ => scope.pick(1, published.episodes),
        },
        ..published
    })
}

impl Study for Controllers {
    fn name(&self) -> &'static str {
        "controllers"
    }

    fn title(&self) -> &'static str {
        "All controllers: the paper's table with all its columns, and those it does not have"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for (row, method, condition) in entry::all() {
            let problem = problem::published::by_name(row.problem)?;
            if method.source != Source::Study || impossible(problem, method, condition).is_some() {
                continue;
            }
            let work = work(scope, row, method, condition)?;
            cells.push(Cell::new(cell(row, method, condition), work));
            if is_timed(method) && condition == Condition::Table && row.variant.is_none() {
                let controls = controls(scope, problem, method)?;
                let work = Decision::new(scope, problem, controls);
                cells.push(Cell::new(decision(problem, method), work));
            }
        }
        cells.extend(deeponet::cells(scope, &Evidence::read()?)?);
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let evidence = Evidence::read()?;
        let sheets = sheet::sheets(scope, &evidence, outcomes)?;
        let mut findings = Findings {
            about: about(scope, &evidence),
            bars: bars::bars(&sheets, &evidence),
            ..Findings::default()
        };
        findings.tables.push(sheet::overview(&sheets));
        findings.tables.extend(sheets.iter().map(Sheet::table));
        findings.tables.extend(sheet::not_run(&sheets));
        let deeponet = deeponet::Curves::new(scope, &evidence, outcomes)?;
        findings.tables.push(deeponet.table());
        findings.tables.extend(trainings(&evidence));
        findings.tables.push(elsewhere(&evidence));
        csv(&mut findings, &sheets, &evidence);
        deeponet.csv(&mut findings);
        findings.pictures.push(pictures::errors(scope, &sheets)?);
        findings.pictures.push(deeponet.picture(scope)?);
        findings
            .pictures
            .extend(pictures::learning(scope, &sheets, &evidence)?);
        Ok(findings)
    }
}

fn about(scope: &Scope, evidence: &Evidence) -> Vec<String> {
    let mut about = vec![
        "Mean squared errors on the published test episodes, with the figure of the paper's table \
         (Table `tab:fused_results`) beside each; ± is two standard deviations over episodes, as the \
         paper has it. Its turbulence is that of the authors' solver, whose advection is too weak \
         (`as-published`). This study runs no control, proportional and coverage feedback and our \
         shipped policies. Reinforcement learning was trained and scored by `cargo xtask baselines` \
         (studies/data/rl.csv), DPC and NMPC by the trainer (studies/data/central.csv); the bound is the \
         [oracle's](table.md), which plans all actions of an episode that it knows beforehand. What each \
         is told: [baselines.md](../baselines.md)."
            .to_owned(),
        format!(
            "Bold is the least error of those measured on all episodes; n: measured on the first n \
             alone, beside proportional feedback on the same; {HALF}: half-trained, there is budget \
             left. Several trainings of a method are one figure, the mean over them, with the best and \
             the worst beside it."
        ),
        format!(
            "Then the same with 30 % of the agents crashed half way (`{CRASH}`), of which nobody is told \
             (seed {} draws who it is), and with four times the agents. PPO, TD3 and DPC are one network \
             each with an output for every agent, so that there they cannot run at all; proportional and \
             coverage feedback are told the number, nobody else is. The figure of `ks-1d` is a mean over \
             time, of which crashes see the second half.",
            scope.seed
        ),
        "A decision is one agent's where it decides for itself (proportional, MAPPO, MATD3, ours) and \
         all agents' where one place does: of coverage, its sharing out of the field. Those of the \
         study are medians of a hundred timings on this page's machine, those measured elsewhere are of \
         the machines that their rows name. Flash and RAM of a node are what the method adds to it: our blob's bytes and the \
         working memory that it states, others' weights as 32-bit floats; agent-core comes on top \
         ([boards.md](../boards.md))."
            .to_owned(),
    ];
    about.push(format!(
        "The paper trained its network by MAPPO and MATD3 too, on turbulence (DeepONet by MAPPO, by MATD3), \
         and shows in a picture without figures that they fare in larger swarms like its own, whose \
         enstrophy among 1,024 agents is {} of that among the 64 of its training.",
        share(TURBULENCE_AMONG_1024)
    ));
    if evidence.courses.is_empty() {
        about.push(
            "Learning curves (error against wall time and against agent-steps) are drawn of \
             studies/data/learning.csv, which has no trainings yet."
                .to_owned(),
        );
    }
    about
}

/// Budgets, seeds and machines of reinforcement learning; nothing without any.
fn trainings(evidence: &Evidence) -> Option<Table> {
    let mut rows = Vec::new();
    for (row, method) in ROWS
        .iter()
        .flat_map(|r| METHODS.iter().map(move |m| (r, m)))
    {
        let name = row.name();
        let scored = |condition| evidence.trainings(&name, method, condition);
        let all = match scored(Condition::Table) {
            all if all.is_empty() => continue,
            all => all,
        };
        let fresh = entry::together(&scored(Condition::Fresh));
        let least = |of: fn(&rl::Trained) -> f64| {
            let all = all.iter().map(|it| of(it));
            all.fold(f64::INFINITY, f64::min)
        };
        let half = all.iter().filter(|it| !it.complete).count();
        let mut seeds: Vec<String> = all.iter().map(|it| it.seed.to_string()).collect();
        if half > 0 {
            seeds.push(format!("{half} half-trained{HALF}"));
        }
        let mut machines: Vec<&str> = all.iter().map(|it| it.machine).collect();
        machines.dedup();
        rows.push(vec![
            format!("`{name}`"),
            method.label.to_owned(),
            seeds.join(", "),
            format!("{:.2e}", least(|it| it.agent_steps as f64)),
            format!("{:.0}", least(|it| it.seconds) / 60.0),
            format!("{:.2e}", least(|it| it.updates as f64)),
            fresh.map_or("–".to_owned(), |found| found.short()),
            machines.join("; "),
        ]);
    }
    let head = [
        "",
        "",
        "seeds",
        "agent-steps",
        "minutes",
        "updates",
        "fresh episodes",
        "machine",
    ];
    let title = "Trainings of reinforcement learning: what the least trained seed had";
    (!rows.is_empty()).then(|| Table::new(title, &head, rows))
}

/// What the trainer measured, with its commands.
fn elsewhere(evidence: &Evidence) -> Table {
    let optional = |value: Option<f64>, text: fn(f64) -> String| value.map_or("–".to_owned(), text);
    let row = |it: &central::Measured| {
        vec![
            format!("`{}`", it.row),
            it.method.label.to_owned(),
            it.condition.label().to_owned(),
            it.episodes.to_string(),
            number(it.error),
            optional(it.proportional, number),
            optional(it.decision_us, duration),
            format!("`{}`", it.by),
            it.machine.to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = evidence.central.iter().map(row).collect();
    let [mean, deviation] = PLANNER.error;
    let [decision, worst] = PLANNER.decision_ms;
    rows.push(vec![
        "`ks-1d`".to_owned(),
        "NMPC, the paper's".to_owned(),
        Condition::PaperSetting.label().to_owned(),
        "10".to_owned(),
        format!("{} ± {}", number(mean), number(2.0 * deviation)),
        "–".to_owned(),
        format!(
            "{}, at most {}",
            duration(1e3 * decision),
            duration(1e3 * worst)
        ),
        "CasADi with IPOPT, fifty times the forces".to_owned(),
        "not said".to_owned(),
    ]);
    let head = [
        "",
        "",
        "",
        "episodes",
        "error",
        "proportional",
        "a decision",
        "by",
        "machine",
    ];
    let title = "Controllers that decide in one place: how they were measured";
    Table::new(title, &head, rows)
}

/// Labels of the CSV besides those of a figure.
const LABELS: [&str; 9] = [
    "problem",
    "controller",
    "condition",
    "agents",
    "trainings",
    "complete",
    "decision_us",
    "bytes",
    "paper",
];

fn csv(findings: &mut Findings, sheets: &[Sheet], evidence: &Evidence) {
    findings.csv_head(&LABELS);
    for sheet in sheets {
        for line in &sheet.lines {
            for (condition, entry) in Condition::SHOWN.into_iter().zip(&line.entries) {
                let Some(found) = entry.found() else { continue };
                let cited = line.cited.filter(|_| condition == Condition::Table);
                let agents = condition.agents(sheet.problem);
                let found = Found {
                    decision_us: line.decision_us,
                    ..found.clone()
                };
                csv_row(
                    findings,
                    [&sheet.row.name(), line.method.name, condition.name()],
                    agents.unwrap_or(sheet.problem.agents),
                    &found,
                    cited.map_or("", |cited| cited.short()),
                );
            }
            let name = sheet.row.name();
            let fresh = evidence.trainings(&name, line.method, Condition::Fresh);
            if let Some(found) = entry::together(&fresh) {
                let labels = [&*name, line.method.name, Condition::Fresh.name()];
                csv_row(findings, labels, sheet.problem.agents, &found, "");
            }
        }
    }
}

fn csv_row(findings: &mut Findings, what: [&str; 3], agents: usize, found: &Found, paper: &str) {
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    let agents = agents.to_string();
    let trainings = found.seeds.len().to_string();
    let complete = (!found.half).to_string();
    let decision = or_empty(found.decision_us.map(|us| format!("{us:.3}")));
    let bytes = or_empty(found.bytes.map(|bytes| bytes.to_string()));
    let [problem, controller, condition] = what;
    let labels = [
        problem, controller, condition, &agents, &trainings, &complete, &decision, &bytes, paper,
    ];
    findings.csv_row(&labels, &found.figure);
}

/// The row of the ablation.
fn ablated() -> anyhow::Result<&'static Row> {
    Row::named(ABLATED)
}
