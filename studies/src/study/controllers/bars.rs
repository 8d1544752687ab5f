//! What was promised of the columns.

use super::entry::{Entry, Evidence, HALF};
use super::method::{Condition, METHODS, Method, Source};
use super::sheet::{Line, Sheet};
use super::why;
use crate::findings::{Bar, Verdict};
use crate::study::counted;
use agent_sim::table::number;

/// How many times the paper's error a method of reinforcement learning may have on a line.
const LENIENCE: f64 = 2.0;
/// The planner in the paper's setting: error, and milliseconds a decision.
const PLANNER: (f64, f64) = (1.4e-4, 60.0);
/// Trainings on a line, and steps of all agents in each.
const ON_LINES: (usize, u64) = (3, 5_000_000);
/// Trainings in the plane, and seconds of each.
const ON_PLANES: (usize, f64) = (1, 600.0);

/// All of them.
pub fn bars(sheets: &[Sheet], evidence: &Evidence) -> Vec<Bar> {
    let mut bars = Vec::new();
    for sheet in sheets {
        let Some((line, cited)) = cited(sheet, "dpc") else {
            continue;
        };
        let what = format!("{}, DPC: the paper's", sheet.name());
        bars.push(at_most(evidence, sheet, line, what, cited));
    }
    for sheet in sheets.iter().filter(|sheet| is_line(sheet)) {
        for method in METHODS.iter().filter(|method| method.is_rl_column()) {
            let Some((line, cited)) = cited(sheet, method.name) else {
                continue;
            };
            let label = method.label;
            let what = format!("{}, {label}: {LENIENCE} × the paper's", sheet.name());
            bars.push(at_most(evidence, sheet, line, what, LENIENCE * cited));
        }
    }
    bars.extend(sheets.iter().filter_map(|sheet| planner(sheet, evidence)));
    bars.extend(paper_setting(evidence));
    let published = sheets.iter().filter(|sheet| sheet.row.variant.is_none());
    bars.extend(published.map(|sheet| trainings(sheet, evidence)));
    bars
}

fn is_line(sheet: &Sheet) -> bool {
    sheet.problem.grid.axes == 1
}

fn cited<'s>(sheet: &'s Sheet, method: &str) -> Option<(&'s Line, f64)> {
    let line = sheet.line(method)?;
    Some((line, line.cited?.mean()))
}

fn missing(what: String, bar: String) -> Bar {
    Bar::holds(
        what,
        bar,
        "–",
        Verdict::Missed("missed: not run".to_owned()),
    )
}

/// The error on the published episodes against a limit.
fn at_most(evidence: &Evidence, sheet: &Sheet, line: &Line, what: String, limit: f64) -> Bar {
    let Entry::Found(found) = &line.entries[0] else {
        return missing(what, format!("≤ {}", number(limit)));
    };
    let mut bar = Bar::at_most(what, found.figure.mean, limit);
    if found.half {
        bar.measured += HALF;
    }
    let why = why::missed(&evidence.whys, &sheet.row.name(), line.method);
    bar.because(why.unwrap_or_default())
}

/// The planner against feedback on the same episodes; the problem's variant it need not have.
fn planner(sheet: &Sheet, evidence: &Evidence) -> Option<Bar> {
    let line = sheet.line("nmpc")?;
    let table = line.entries[0].found();
    if sheet.row.variant.is_some() && table.is_none() {
        return None;
    }
    let name = sheet.name();
    let same = table.map_or("episodes".to_owned(), |found| {
        counted(found.figure.pieces, "episode")
    });
    let what = format!("{name}, NMPC: proportional feedback on the same {same}");
    let whole = table.is_some_and(|found| found.part.is_none());
    let all = sheet
        .line("proportional")
        .and_then(|it| it.entries[0].found());
    let all = all.filter(|_| whole).map(|found| found.figure.mean);
    let beside = table.and_then(|found| found.beside).or(all);
    Some(match beside {
        Some(beside) => at_most(evidence, sheet, line, what, beside),
        None => missing(what, "≤ proportional".to_owned()),
    })
}

/// Where the paper measured its planner.
fn paper_setting(evidence: &Evidence) -> [Bar; 2] {
    let mut rows = evidence.central.iter();
    let row =
        rows.find(|row| row.condition == Condition::PaperSetting && row.method.name == "nmpc");
    let (error, ms) = PLANNER;
    let episodes = row.map_or(String::new(), |row| {
        format!(", {}", counted(row.episodes, "episode"))
    });
    let what = |of: &str| format!("`ks-1d`, NMPC in the paper's setting{episodes}: {of}");
    let limits = [("error", error), ("milliseconds a decision", ms)];
    let measured = [
        row.map(|row| row.error),
        row.and_then(|row| row.decision_us).map(|us| us / 1e3),
    ];
    [0, 1].map(|k| {
        let (of, limit) = limits[k];
        match measured[k] {
            Some(figure) => Bar::at_most(what(of), figure, limit),
            None => missing(what(of), format!("≤ {}", number(limit))),
        }
    })
}

/// How long was trained.
fn trainings(sheet: &Sheet, evidence: &Evidence) -> Bar {
    let name = sheet.row.name();
    let (wanted, budget) = match is_line(sheet) {
        true => (
            ON_LINES.0,
            format!("{} million agent-steps", ON_LINES.1 / 1_000_000),
        ),
        false => (ON_PLANES.0, format!("{:.0} minutes", ON_PLANES.1 / 60.0)),
    };
    let count = |method: &Method| {
        let trainings = evidence.trainings(&name, method, Condition::Table);
        let spent = trainings.iter().filter(|it| match is_line(sheet) {
            true => it.agent_steps >= ON_LINES.1,
            false => it.seconds >= ON_PLANES.1,
        });
        spent.filter(|it| it.complete).count()
    };
    let methods = METHODS
        .iter()
        .filter(|method| method.source == Source::Rl && method.takes_part(sheet.problem.name));
    let counts: Vec<(&str, usize)> = methods
        .map(|method| (method.label, count(method)))
        .collect();
    let least = counts.iter().map(|(_, count)| *count).min().unwrap_or(0);
    let short = counts.iter().filter(|(_, count)| *count < wanted).count();
    let said = counts
        .iter()
        .map(|(label, count)| format!("{label} {count}"));
    Bar::holds(
        format!("{}: trainings of ≥ {budget}, of each method", sheet.name()),
        format!("≥ {wanted}"),
        said.collect::<Vec<_>>().join(", "),
        match (least >= wanted, counts.iter().all(|(_, count)| *count == 0)) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::Missed("missed: not run".to_owned()),
            (false, false) => {
                Verdict::Missed(format!("missed by {short} of {} methods", counts.len()))
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Row;
    use crate::study::controllers::{central, entry, rl};

    fn evidence(trained: &str) -> Evidence {
        Evidence {
            trained: rl::written(trained),
            central: central::written(
                "heat-1d,nmpc,table,8,10,2e-4,,,,1e-4,2 cores,trainer eval heat-1d",
            ),
            ..Evidence::read().unwrap()
        }
    }

    /// A sheet of what was measured elsewhere.
    fn sheet(evidence: &Evidence) -> Sheet {
        let row = Row::named("heat-1d").unwrap();
        let elsewhere = METHODS.iter().filter(|it| it.source != Source::Study);
        let line = |method: &'static Method| Line {
            method,
            entries: Condition::SHOWN.map(|condition| {
                let none = Default::default();
                evidence.entry(&none, row, method, condition).unwrap()
            }),
            cited: (method.cited)(row.figures.as_ref().unwrap()),
            decision_us: None,
            needs: Default::default(),
        };
        let lines = elsewhere.filter(|it| it.takes_part("heat-1d")).map(line);
        Sheet {
            row,
            problem: problem::published::by_name("heat-1d").unwrap(),
            lines: lines.collect(),
        }
    }

    #[test]
    fn what_was_not_run_misses_its_bar_and_what_is_half_trained_is_marked() {
        let evidence = evidence(
            "heat-1d,mappo,1,table,8,50,1.5e-3,,5000000,600,9,,,2 cores,true\n\
             heat-1d,td3,1,table,8,50,0.018,,1000,6,9,,,2 cores,false",
        );
        let all = bars(&[sheet(&evidence)], &evidence);
        let bar = |what: &str| {
            let found = all.iter().find(|bar| bar.what.contains(what));
            found.unwrap_or_else(|| panic!("{what}: {all:?}"))
        };
        let not_run = Verdict::Missed("missed: not run".to_owned());
        assert_eq!(bar("DPC").verdict, not_run);
        assert_eq!(bar(" PPO").verdict, not_run);
        assert_eq!(bar("in the paper's setting").verdict, not_run);
        assert_eq!(bar("MAPPO").verdict, Verdict::Met);
        let td3 = bar("TD3: 2 ×");
        assert_eq!(td3.measured, format!("0.018{}", entry::HALF));
        assert_eq!(td3.verdict, Verdict::Missed("missed by 50 %".into()));
        let planner = bar("the same 10 episodes");
        assert_eq!(planner.verdict, Verdict::Missed("missed by 100 %".into()));
        let trainings = bar("trainings of ≥ 5 million");
        assert_eq!(trainings.measured, "PPO 0, TD3 0, MAPPO 1, MATD3 0");
        assert_eq!(
            trainings.verdict,
            Verdict::Missed("missed by 4 of 4 methods".into())
        );
    }
}
