//! What a study found out.

use crate::cell::Figure;
use agent_sim::table::number;
use std::fmt::Write;

/// The answer of a study, to be written down.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// What was measured and how, in paragraphs of Markdown.
    pub about: Vec<String>,
    /// What was promised, and whether it holds.
    pub bars: Vec<Bar>,
    /// What readers look at.
    pub tables: Vec<Table>,
    /// All figures: a head and rows.
    pub csv: Vec<Vec<String>>,
    /// To be shown after the tables.
    pub pictures: Vec<Picture>,
}

/// A picture of a study.
#[derive(Debug, Clone)]
pub struct Picture {
    /// `<study>-<name>.svg` is its file.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The picture, with [`Scope::foot`](crate::Scope::foot) at its foot.
    pub svg: String,
}

/// A table of Markdown.
#[derive(Debug, Clone)]
pub struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table under a title.
    pub fn new(title: impl Into<String>, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            title: title.into(),
            head: head.iter().map(|cell| (*cell).to_owned()).collect(),
            rows,
        }
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("### {}\n\n{}", self.title, line(&self.head));
        text += &line(&vec!["---".to_owned(); self.head.len()]);
        for row in &self.rows {
            text += &line(row);
        }
        text
    }
}

/// A promise.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Of what.
    pub what: String,
    /// The bar.
    pub bar: String,
    /// What was found.
    pub measured: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The likely reason, shown where the bar is missed.
    pub reason: Option<&'static str>,
}

/// Whether a promise holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Met,
    /// It does not, and by how much.
    Missed(String),
    /// It was not measured in this run, and why.
    LeftOut(String),
}

impl Bar {
    /// `measured` is to be at most `limit`.
    pub fn at_most(what: impl Into<String>, measured: f64, limit: f64) -> Self {
        Self::limit(what.into(), measured, limit, number)
    }

    /// `ratio` is to be at most `limit`, both shown in percent.
    pub fn at_most_share(what: impl Into<String>, ratio: f64, limit: f64) -> Self {
        Self::limit(what.into(), ratio, limit, share)
    }

    fn limit(what: String, measured: f64, limit: f64, text: fn(f64) -> String) -> Self {
        let verdict = match measured <= limit {
            true => Verdict::Met,
            false if measured.is_finite() => {
                let excess = 100.0 * (measured / limit - 1.0);
                Verdict::Missed(format!("missed by {} %", percent(excess)))
            }
            false => Verdict::Missed("missed: not finite".to_owned()),
        };
        Self {
            what,
            bar: format!("≤ {}", text(limit)),
            measured: text(measured),
            verdict,
            reason: None,
        }
    }

    /// A promise that is no upper limit.
    pub fn holds(
        what: impl Into<String>,
        bar: impl Into<String>,
        measured: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        Self {
            what: what.into(),
            bar: bar.into(),
            measured: measured.into(),
            verdict,
            reason: None,
        }
    }

    /// With the likely reason for missing it: an empty text says nothing.
    pub fn because(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason).filter(|reason| !reason.is_empty());
        self
    }
}

impl Findings {
    /// Begins the CSV: columns that say what a row is about, then those of a figure.
    pub fn csv_head(&mut self, labels: &[&str]) {
        let head = labels.iter().copied().chain(Figure::COLUMNS);
        self.csv.push(head.map(str::to_owned).collect());
    }

    /// A row of the CSV.
    pub fn csv_row(&mut self, labels: &[&str], figure: &Figure) {
        let mut row: Vec<String> = labels.iter().map(|cell| (*cell).to_owned()).collect();
        row.extend(figure.columns());
        self.csv.push(row);
    }

    /// The verdict in a sentence, for the index.
    pub fn verdict(&self) -> String {
        let count = |wanted: fn(&Verdict) -> bool| {
            let bars = self.bars.iter();
            bars.filter(|bar| wanted(&bar.verdict)).count()
        };
        let missed = count(|v| matches!(v, Verdict::Missed(_)));
        let left_out = count(|v| matches!(v, Verdict::LeftOut(_)));
        let judged = self.bars.len() - left_out;
        let mut text = match (judged, missed) {
            (0, _) => "no bar measured".to_owned(),
            (1, 0) => "the bar is met".to_owned(),
            (_, 0) => format!("all {judged} bars met"),
            _ => format!(
                "{} of {judged} bars met, **{missed} missed**",
                judged - missed
            ),
        };
        if left_out > 0 {
            let _ = write!(text, ", {left_out} left out");
        }
        text
    }

    /// The bars as Markdown.
    pub fn bars_markdown(&self) -> String {
        let mut text = String::from("| | bar | measured | |\n| --- | --- | --- | --- |\n");
        for bar in &self.bars {
            let verdict = match &bar.verdict {
                Verdict::Met => "met".to_owned(),
                Verdict::Missed(by) => format!("**{by}**"),
                Verdict::LeftOut(why) => format!("left out: {why}"),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {verdict} |",
                bar.what, bar.bar, bar.measured
            );
        }
        let missed = self.bars.iter();
        let missed = missed.filter(|bar| matches!(bar.verdict, Verdict::Missed(_)));
        for bar in missed {
            if let Some(reason) = bar.reason {
                let _ = writeln!(text, "\n{}: {reason}", bar.what);
            }
        }
        text
    }
}

/// A ratio in percent; a dash where there is none.
pub fn share(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{} %", percent(100.0 * ratio)),
        false => "–".to_owned(),
    }
}

/// [`share`], bold where it is above `limit`.
pub fn share_within(ratio: f64, limit: f64) -> String {
    match ratio <= limit {
        true => share(ratio),
        false => format!("**{}**", share(ratio)),
    }
}

/// At most three digits.
fn percent(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.1}"),
        v if v < 1e4 => format!("{v:.0}"),
        v => format!("{v:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(measured: f64, limit: f64) -> Verdict {
        Bar::at_most("x", measured, limit).verdict
    }

    #[test]
    fn a_bar_is_met_up_to_its_limit_and_missed_beyond() {
        assert_eq!(verdict(2.0, 2.0), Verdict::Met);
        assert_eq!(verdict(3.0, 2.0), Verdict::Missed("missed by 50 %".into()));
        assert!(matches!(verdict(2.001, 2.0), Verdict::Missed(_)));
        for lost in [f64::INFINITY, f64::NAN] {
            assert!(matches!(verdict(lost, 2.0), Verdict::Missed(_)));
        }
    }

    #[test]
    fn missed_bars_are_bold_and_say_why() {
        let findings = Findings {
            bars: vec![
                Bar::at_most("a", 1.0, 2.0).because("never shown"),
                Bar::at_most("b", 3.0, 2.0).because("too few agents"),
                Bar::holds("c", "bits", "–", Verdict::LeftOut("no emulator".into())),
            ],
            ..Findings::default()
        };
        assert_eq!(
            findings.verdict(),
            "1 of 2 bars met, **1 missed**, 1 left out"
        );
        let text = findings.bars_markdown();
        assert!(
            text.contains("| b | ≤ 2.000 | 3.000 | **missed by 50 %** |"),
            "{text}"
        );
        assert!(text.contains("b: too few agents") && !text.contains("never shown"));
    }
}
