//! One page that tells what was done and how it went, in one file that needs nothing beside it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use problem::Problem;
use std::fmt::Write;

/// Light and dark by the reader's choice; pictures are on white either way. Prints without broken
/// figures.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1c1c;--paper:#fcfcfb;--faint:#6b6b6b;--rule:#d9d9d6}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e3;--paper:#191a1c;--faint:#9a9a96;--rule:#3a3b3e}}
body{max-width:76rem;margin:2.5rem auto;padding:0 1.5rem;color:var(--ink);background:var(--paper);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}
h1{font-size:1.8rem;line-height:1.2;margin:0 0 .6rem}
h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p{max-width:48rem}
.provenance,figcaption{color:var(--faint);font-size:.88rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .9rem;text-align:right;border-bottom:1px solid var(--rule)}
th{font-weight:600}
th:first-child,td:first-child{text-align:left;padding-left:0}
figure{margin:1.6rem 0;break-inside:avoid}
figure svg,figure img{display:block;max-width:100%;height:auto;background:#fff;border-radius:4px}
figcaption{margin-top:.5rem;max-width:48rem}
pre{overflow-x:auto;padding:.8rem 1rem;border:1px solid var(--rule);border-radius:4px;font-size:.85rem}
summary{cursor:pointer}
@media print{body{margin:0;max-width:none;color:#000;background:#fff}details{display:none}}
";

/// A page about a run or a comparison.
///
/// ```
/// use agent_sim::report::html::Page;
///
/// let page = Page::new("Eight heaters", "Half of them fail; the field is held.")
///     .provenance("Fieldswarm 0.1.0 · heat-1d · seed 1")
///     .scores(vec![
///         vec!["run".into(), "final error".into()],
///         vec!["swarm".into(), "8.7e-5".into()],
///     ])
///     .fault("agents 1, 4, 6: dead from step 150")
///     .html();
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    summary: String,
    provenance: String,
    scores: Vec<Vec<String>>,
    note: String,
    tables: Vec<Table>,
    faults: Vec<String>,
    figures: Vec<Figure>,
    scenario: Option<String>,
}

#[derive(Debug, Clone)]
struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Figure {
    caption: String,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Svg(String),
    Gif(Vec<u8>),
}

/// The first sentence of a page about one run: the task, by whom, for how long, under which control.
pub fn summary(problem: &Problem, agents: usize, steps: usize, controller: &str) -> String {
    let end = steps as f64 * problem.control_interval;
    format!(
        "The task: {}. {agents} agents, {steps} steps of {} time units (up to time {}), controlled by: \
         {controller}.",
        problem.summary,
        problem.control_interval,
        (end * 1e6).round() / 1e6
    )
}

impl Page {
    /// A page with that title and opening paragraph.
    pub fn new(title: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// Where the figures come from: version, problem, seed, policy.
    pub fn provenance(mut self, line: impl Into<String>) -> Self {
        self.provenance = line.into();
        self
    }

    /// A table of scores; the first row is its head, the first column names the rows.
    pub fn scores(mut self, rows: Vec<Vec<String>>) -> Self {
        self.scores = rows;
        self
    }

    /// What the scores' columns mean, below the table.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds another table, below the scores; the first row is its head.
    pub fn table(mut self, title: impl Into<String>, rows: Vec<Vec<String>>) -> Self {
        let title = title.into();
        self.tables.push(Table { title, rows });
        self
    }

    /// Adds a fault: who, what, when.
    pub fn fault(mut self, text: impl Into<String>) -> Self {
        self.faults.push(text.into());
        self
    }

    /// Adds a picture: the text of an SVG file.
    pub fn picture(mut self, caption: impl Into<String>, svg: impl Into<String>) -> Self {
        self.figures.push(Figure {
            caption: caption.into(),
            content: Content::Svg(svg.into()),
        });
        self
    }

    /// Adds a film: the bytes of a GIF file.
    pub fn film(mut self, caption: impl Into<String>, gif: impl Into<Vec<u8>>) -> Self {
        self.figures.push(Figure {
            caption: caption.into(),
            content: Content::Gif(gif.into()),
        });
        self
    }

    /// The scenario's file as it was given, folded away.
    pub fn scenario(mut self, text: impl Into<String>) -> Self {
        self.scenario = Some(text.into());
        self
    }

    /// The page: one file without references to others, readable without scripts.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        if !self.summary.is_empty() {
            let _ = writeln!(page, "<p>{}</p>", escape(&self.summary));
        }
        if !self.provenance.is_empty() {
            let line = escape(&self.provenance);
            let _ = writeln!(page, "<p class=\"provenance\">{line}</p>");
        }
        table(&mut page, "Scores", &self.scores);
        if !self.note.is_empty() {
            let note = escape(&self.note);
            let _ = writeln!(page, "<p class=\"provenance\">{note}</p>");
        }
        if !self.faults.is_empty() {
            page += "<h2>Faults</h2>\n<ul>\n";
            for fault in &self.faults {
                let _ = writeln!(page, "<li>{}</li>", escape(fault));
            }
            page += "</ul>\n";
        }
        for (index, figure) in self.figures.iter().enumerate() {
            figure.write(&mut page, index);
        }
        for Table { title, rows } in &self.tables {
            table(&mut page, title, rows);
        }
        if let Some(text) = &self.scenario {
            let text = escape(text);
            let _ = writeln!(
                page,
                "<details><summary>Scenario</summary><pre>{text}</pre></details>"
            );
        }
        page + "</body>\n</html>\n"
    }
}

/// A table with its title; the first of the rows is its head.
fn table(page: &mut String, title: &str, rows: &[Vec<String>]) {
    let Some((head, rows)) = rows.split_first() else {
        return;
    };
    let title = escape(title);
    let _ = writeln!(
        page,
        "<h2>{title}</h2>\n<div class=\"scroll\"><table>\n<thead>"
    );
    row(page, head, "th");
    *page += "</thead>\n<tbody>\n";
    for cells in rows {
        row(page, cells, "td");
    }
    *page += "</tbody>\n</table></div>\n";
}

fn row(page: &mut String, cells: &[String], tag: &str) {
    *page += "<tr>";
    for cell in cells {
        let _ = write!(page, "<{tag}>{}</{tag}>", escape(cell));
    }
    *page += "</tr>\n";
}

impl Figure {
    fn write(&self, page: &mut String, index: usize) {
        let caption = escape(&self.caption);
        let _ = match &self.content {
            Content::Svg(svg) => writeln!(page, "<figure>\n{}", inlined(svg, index).trim_end()),
            Content::Gif(gif) => writeln!(
                page,
                "<figure>\n<img alt=\"{caption}\" src=\"data:image/gif;base64,{}\">",
                BASE64.encode(gif)
            ),
        };
        let _ = writeln!(page, "<figcaption>{caption}</figcaption>\n</figure>");
    }
}

/// A picture as part of a page: without an XML prologue, and with names of its own, for two pictures
/// may both have an `a`.
fn inlined(svg: &str, index: usize) -> String {
    let svg = svg.find("<svg").map_or(svg, |start| &svg[start..]);
    [" id=\"", "href=\"#", "url(#"]
        .into_iter()
        .fold(svg.to_owned(), |text, before| {
            text.replace(before, &format!("{before}p{index}-"))
        })
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    const EVIL: &str = "<script>alert(\"1\" & '2')</script>";

    fn page() -> String {
        Page::new(EVIL, EVIL)
            .provenance(EVIL)
            .scores(vec![vec![EVIL.into()], vec![EVIL.into()]])
            .note(EVIL)
            .fault(EVIL)
            .picture(
                EVIL,
                "<?xml version=\"1.0\"?><svg id=\"a\"><use href=\"#a\"/></svg>",
            )
            .picture("two", "<svg id=\"a\" fill=\"url(#a)\"></svg>")
            .film(EVIL, *b"GIF89a")
            .scenario(EVIL)
            .html()
    }

    #[test]
    fn all_text_is_escaped() {
        let page = page();
        assert!(!page.contains("<script") && !page.contains("\"1\""));
        // Title twice, summary, provenance, two cells, note, fault, picture, film twice, scenario.
        let escaped = "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;";
        assert_eq!(page.matches(escaped).count(), 12);
    }

    #[test]
    fn names_inside_pictures_do_not_clash() {
        let page = page();
        assert!(page.contains("<svg id=\"p0-a\"><use href=\"#p0-a\"/>"));
        assert!(page.contains("<svg id=\"p1-a\" fill=\"url(#p1-a)\">"));
        assert!(!page.contains("<?xml"));
    }

    #[test]
    fn the_page_needs_nothing_beside_it() {
        let page = page();
        for outside in ["http:", "https:", "<link", "@import", "src=\"/"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // "GIF89a" in base64.
        assert!(page.contains("src=\"data:image/gif;base64,R0lGODlh\""));
        assert_eq!(page, self::page(), "same input, same bytes");
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = Page::new("nothing", "").html();
        assert!(page.contains("<h1>nothing</h1>\n</body>"));
    }

    #[test]
    fn the_summary_names_task_swarm_and_time() {
        let text = summary(&PROBLEM, 8, 300, "policy dd81");
        assert!(text.contains("mobile heaters") && text.contains("8 agents, 300 steps of 0.001"));
        assert!(text.contains("(up to time 0.3)") && text.ends_with("policy dd81."));
    }
}
