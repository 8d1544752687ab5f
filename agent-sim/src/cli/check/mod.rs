//! `agent-sim check`: what a description says, whether it is resolved, and what the rules of deployment
//! make of it.

mod modes;
mod picture;
mod resolved;
mod rules;

use super::{VERSION, print, use_threads};
use anyhow::{Context, bail};
use artifacts::output::{OutputFolder, tell};
use clap::Args;
use problem::Problem;
use problem::kit::Kit;
use std::path::PathBuf;

#[derive(Args)]
pub struct CheckArgs {
    /// The file that describes the field, e.g. my-plate.toml
    file: PathBuf,
    /// Folder for the picture [default: out/check-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// One line of what is found.
pub struct Finding {
    /// What was looked at.
    what: &'static str,
    /// What was found.
    found: String,
    /// What to do about it; nothing where it is well.
    remedy: Option<String>,
}

impl Finding {
    fn well(what: &'static str, found: String) -> Self {
        Self {
            what,
            found,
            remedy: None,
        }
    }

    fn judged(
        what: &'static str,
        found: String,
        well: bool,
        remedy: impl FnOnce() -> String,
    ) -> Self {
        Self {
            what,
            found,
            remedy: (!well).then(remedy),
        }
    }
}

pub fn check(args: &CheckArgs) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let shown = args.file.display();
    if !problem::kit::is_file(&args.file.to_string_lossy()) {
        bail!(
            "'{shown}' is not the name of a description; give the path of a .toml file (agent-sim new writes one)"
        );
    }
    let problem = problem::kit::load(&args.file)?;
    let kit = problem.kit.context("a file describes it")?;
    let mut text = format!(
        "agent-sim {VERSION} · {} · {}\n\n  {}\n\n",
        problem.name, shown, problem.summary
    );
    let mut last = String::new();
    for line in kit.told(problem) {
        let part = if line.part == last { "" } else { &line.part };
        text += &format!("  {part:<17}{}\n", line.what);
        last = line.part;
    }
    tell("solving it on finer grids and in shorter steps");
    let mut findings = resolved::findings(problem)?;
    findings.extend(rules::findings(problem, kit));
    text += "\n";
    let mut complaints = 0;
    for finding in &findings {
        let mark = if finding.remedy.is_none() { "ok" } else { "!!" };
        text += &format!("  {mark} {:<15}{}\n", finding.what, finding.found);
        if let Some(remedy) = &finding.remedy {
            text += &format!("     {:<15}{remedy}\n", "");
            complaints += 1;
        }
    }
    let usual = PathBuf::from(format!("out/check-{}", problem.name));
    let folder = OutputFolder::prepare(args.out.as_ref().unwrap_or(&usual))?;
    let picture = folder.write("domain.svg", picture::draw(problem, kit).as_bytes())?;
    text += &format!("\n  wrote {}\n", picture.display());
    text += &match complaints {
        0 => format!(
            "\n  Nothing to complain about. Next: trainer check {shown}, agent-sim tune {shown}, trainer train {shown}\n"
        ),
        count => format!(
            "\n  {count} to think about, marked !!; it runs all the same. Next: trainer check {shown}\n"
        ),
    };
    print(&text)
}

/// A number for people.
fn short(x: f64) -> String {
    crate::table::number(x)
}

/// Lengths of the axes that are there.
fn lengths(problem: &Problem) -> Vec<f64> {
    (0..problem.grid.axes)
        .map(|axis| problem.grid.extent(axis))
        .collect()
}

/// Area, or length, of the domain.
fn measure(problem: &Problem, kit: &Kit) -> f64 {
    let cell: f64 = (0..problem.grid.axes)
        .map(|axis| problem.grid.spacing(axis))
        .product();
    kit.domain(&problem.grid).volume().iter().sum::<f64>() * cell
}
