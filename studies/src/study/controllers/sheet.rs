//! All that the page says about one row of the results table.

use super::entry::{Entry, Evidence, Found};
use super::method::{Condition, METHODS, Method, Site, Source};
use crate::cell::Outcomes;
use crate::findings::Table;
use crate::paper::{Cited, ROWS, Row};
use crate::study::Scope;
use agent_sim::table::number;
use problem::{Headline, Problem};

/// A row with everybody who takes part in it.
pub struct Sheet {
    pub row: &'static Row,
    pub problem: &'static Problem,
    pub lines: Vec<Line>,
}

/// A method on a row.
pub struct Line {
    pub method: &'static Method,
    /// As [`Condition::SHOWN`].
    pub entries: [Entry; 3],
    pub cited: Option<Cited>,
    /// Microseconds a decision.
    pub decision_us: Option<f64>,
    /// Flash and RAM of a node.
    pub needs: [String; 2],
}

/// The cell of a decision's time.
pub fn decision(problem: &Problem, method: &Method) -> String {
    format!("{}, {}, a decision", problem.name, method.label)
}

/// Whether the study times its decisions.
pub fn is_timed(method: &Method) -> bool {
    method.source == Source::Study && method.site != Site::Nowhere
}

/// One sheet a row.
pub fn sheets(
    scope: &Scope,
    evidence: &Evidence,
    outcomes: &Outcomes,
) -> anyhow::Result<Vec<Sheet>> {
    let sheet = |row: &'static Row| -> anyhow::Result<Sheet> {
        let problem = problem::published::by_name(row.problem)?;
        let mut lines = Vec::new();
        for method in METHODS.iter().filter(|m| m.takes_part(row.problem)) {
            let mut entries = Vec::new();
            for condition in Condition::SHOWN {
                entries.push(evidence.entry(outcomes, row, method, condition)?);
            }
            let entries: [Entry; 3] = entries.try_into().expect("one a condition");
            let impossible = matches!(entries[0], Entry::Word(_));
            let timed = is_timed(method) && !impossible;
            lines.push(Line {
                decision_us: match timed {
                    true => {
                        let outcome = outcomes.of(&decision(problem, method))?;
                        Some(outcome.figure("microseconds").mean)
                    }
                    false => entries.iter().find_map(|e| e.found()?.decision_us),
                },
                cited: row.figures.as_ref().and_then(|f| (method.cited)(f)),
                needs: needs(scope, problem, method, &entries)?,
                method,
                entries,
            });
        }
        Ok(Sheet {
            row,
            problem,
            lines,
        })
    };
    ROWS.iter().map(sheet).collect()
}

impl Entry {
    /// The figure, if there is one.
    pub fn found(&self) -> Option<&Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::Word(_) | Self::NotRun(_) => None,
        }
    }

    fn text(&self, figure: fn(&Found) -> String) -> String {
        match self {
            Self::Found(found) => figure(found),
            Self::Word(word) => (*word).to_owned(),
            Self::NotRun(_) => "not run".to_owned(),
        }
    }

    /// The same, with proportional feedback on the same episodes where they are not all.
    fn beside(&self, figure: fn(&Found) -> String) -> String {
        let beside = self.found().filter(|found| found.part.is_some());
        let beside = beside.and_then(|found| found.beside);
        let text = self.text(figure);
        match beside {
            None => text,
            Some(beside) => format!("{text}; proportional there {}", number(beside)),
        }
    }
}

/// What a node needs in flash and in RAM for the method alone, or what some host does.
fn needs(
    scope: &Scope,
    problem: &Problem,
    method: &Method,
    entries: &[Entry; 3],
) -> anyhow::Result<[String; 2]> {
    let dash = || "–".to_owned();
    let bytes = entries.iter().find_map(|entry| entry.found()?.bytes);
    Ok(match (method.site, method.source) {
        (Site::Nowhere, _) => [dash(), dash()],
        (Site::Nodes, Source::Study) if method.name == "ours" => {
            let file = scope.policy(problem)?;
            let room = 4 * file.policy(problem)?.workspace_len();
            [size(file.bytes().len()), size(room)]
        }
        (Site::Nodes, Source::Study) => ["a gain".to_owned(), dash()],
        (Site::Nodes, _) => [
            bytes.map_or(dash(), |bytes| format!("{} of weights", size(bytes))),
            dash(),
        ],
        (Site::Network, _) => {
            let host = bytes.map(|bytes| format!(": {} on a host", size(bytes)));
            let host = host.unwrap_or_default();
            [format!("not on a node{host}"), dash()]
        }
        (Site::Host, Source::Study) => ["a gain, and a host that sees all".to_owned(), dash()],
        (Site::Host, _) => ["not on a node: a host with the equation".to_owned(), dash()],
    })
}

fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b => format!("{:.1} MB", b / 1e6),
    }
}

/// Microseconds in their unit.
pub fn duration(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{} µs", digits(us)),
        us if us < 1e6 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} s", digits(us / 1e6)),
    }
}

fn digits(value: f64) -> String {
    match value {
        v if v < 9.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

impl Sheet {
    /// Its name, as in Markdown.
    pub fn name(&self) -> String {
        format!("`{}`", self.row.name())
    }

    /// The line of a method that takes part.
    pub fn line(&self, method: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.method.name == method)
    }

    /// The least error of all that was measured on all episodes and could be known to whoever acts.
    fn best(&self) -> f64 {
        let table = self
            .lines
            .iter()
            .map(|line| (line.method, &line.entries[0]));
        let found = table.filter(|(method, _)| method.source != Source::Plans);
        let found = found.filter_map(|(_, entry)| entry.found());
        let whole = found.filter(|found| found.part.is_none());
        whole
            .map(|found| found.figure.mean)
            .fold(f64::INFINITY, f64::min)
    }

    /// Its row of the table of all problems.
    fn overview(&self) -> Vec<String> {
        let best = self.best();
        let cell = |method: &Method| {
            let Some(line) = self.line(method.name) else {
                return "–".to_owned();
            };
            let mut text = line.entries[0].text(Found::short);
            let found = line.entries[0].found();
            if found.is_some_and(|f| f.part.is_none() && f.figure.mean == best) {
                text = format!("**{text}**");
            }
            match &line.cited {
                Some(cited) => format!("{text}<br><sub>paper {}</sub>", cited.short()),
                None => text,
            }
        };
        let cells = METHODS.iter().map(cell);
        [self.name()].into_iter().chain(cells).collect()
    }

    /// The table of everybody on it.
    pub fn table(&self) -> Table {
        let rows = self.lines.iter().map(|line| {
            let [table, crash, fourfold] = &line.entries;
            let mut row = vec![
                line.method.label.to_owned(),
                table.beside(Found::long),
                line.cited.map_or("–".to_owned(), |cited| cited.text()),
                table.found().map_or("–".to_owned(), Found::seeds),
                crash.beside(Found::short),
                fourfold.beside(Found::short),
                line.decision_us.map_or("–".to_owned(), duration),
            ];
            row.extend(line.needs.clone());
            row
        });
        let error = match self.problem.scoring.headline {
            Headline::Final => "final error",
            Headline::TimeMean => "mean error over time",
        };
        let agents = self.problem.agents;
        let larger = Condition::Fourfold.agents(self.problem).unwrap_or(agents);
        let larger = format!("{larger} agents");
        let head = [
            "",
            "table episodes",
            "the paper",
            "trainings",
            "30 % crashed",
            &larger,
            "a decision",
            "flash on a node",
            "RAM on a node",
        ];
        let title = format!("{}: {error}, {agents} agents", self.name());
        Table::new(title, &head, rows.collect())
    }
}

/// All problems and all methods.
pub fn overview(sheets: &[Sheet]) -> Table {
    let labels = METHODS.iter().map(|method| method.label);
    let head: Vec<&str> = [""].into_iter().chain(labels).collect();
    let rows = sheets.iter().map(Sheet::overview).collect();
    let title = "Mean errors on the published episodes, and the paper's";
    Table::new(title, &head, rows)
}

/// What nobody measured of a method for one reason.
struct Gap {
    method: &'static Method,
    why: &'static str,
    /// In which condition which rows.
    places: Vec<(usize, Vec<String>)>,
}

impl Gap {
    fn add(&mut self, condition: usize, row: String) {
        match self.places.iter_mut().find(|(c, _)| *c == condition) {
            Some((_, rows)) => rows.push(row),
            None => self.places.push((condition, vec![row])),
        }
    }
}

fn gaps(sheets: &[Sheet]) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for method in &METHODS {
        for sheet in sheets {
            let entries = sheet.line(method.name).map(|line| &line.entries);
            for (condition, entry) in entries.into_iter().flatten().enumerate() {
                let Entry::NotRun(why) = *entry else { continue };
                let known = |gap: &Gap| gap.method == method && gap.why == why;
                let k = gaps.iter().position(known).unwrap_or_else(|| {
                    gaps.push(Gap {
                        method,
                        why,
                        places: Vec::new(),
                    });
                    gaps.len() - 1
                });
                gaps[k].add(condition, sheet.name());
            }
        }
    }
    gaps
}

/// What nobody measured, and why; nothing where all was.
pub fn not_run(sheets: &[Sheet]) -> Option<Table> {
    let rows = gaps(sheets).into_iter().map(|gap| {
        let Gap {
            method,
            why,
            mut places,
        } = gap;
        places.sort_by_key(|(condition, _)| *condition);
        let all = sheets.iter().filter(|s| s.line(method.name).is_some());
        let all = all.count();
        let mut said: Vec<(String, Vec<String>)> = Vec::new();
        for (condition, rows) in places {
            let label = Condition::SHOWN[condition].label();
            match said.iter_mut().find(|(_, other)| *other == rows) {
                Some((labels, _)) => *labels += &format!(", {label}"),
                None => said.push((label.to_owned(), rows)),
            }
        }
        let said = said.into_iter().map(|(labels, rows)| {
            let rows = match rows.len() == all && all > 2 {
                true => "all problems".to_owned(),
                false => rows.join(", "),
            };
            format!("{labels}: {rows}")
        });
        let said: Vec<String> = said.collect();
        vec![method.label.to_owned(), said.join("; "), why.to_owned()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| Table::new("Not run", &["", "where", "why"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        let said = [0.52, 12.34, 15_000.0, 1.3e7].map(duration);
        assert_eq!(said, ["0.5 µs", "12 µs", "15 ms", "13 s"]);
        assert_eq!([size(92_160), size(2_500_000)], ["92.2 kB", "2.5 MB"]);
    }
}
