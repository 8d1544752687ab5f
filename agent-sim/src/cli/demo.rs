//! `agent-sim demo`: what a swarm can do, and that it survives losses.

use super::eval::{evaluate, notes};
use super::run::{events, write_all};
use super::{print, provenance, use_threads};
use crate::controller::{Controller, Experiment};
use crate::fault::{Fault, Who, life::CRASH};
use crate::recording::Recording;
use crate::report::{self, Event, RGBColor, Shown, line};
use crate::table::{number, table};
use agent_core::policy::Policy;
use artifacts::output::OutputFolder;
use artifacts::policy_file::PolicyFile;
use clap::Args;
use problem::published::heat_1d;
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The published episode in the pictures: its field and target differ much, in sign too.
const EPISODE: usize = 46;
/// Decides who dies.
const SEED: u64 = 1;
/// A third of the agents dies half way.
fn kill() -> Fault {
    Fault {
        who: Who::Fraction(1.0 / 3.0),
        at: 0.5,
        ..Fault::new(&CRASH)
    }
}

#[derive(Args)]
pub struct DemoArgs {
    /// Policy blob [default: the shipped one]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Folder for the pictures
    #[arg(long, default_value = "out/demo", value_name = "DIR")]
    out: PathBuf,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self {
            policy: None,
            out: "out/demo".into(),
            threads: None,
        }
    }
}

/// A row of the table and, with a colour, a curve in the pictures.
struct Contender<'p> {
    name: String,
    experiment: Experiment<'p>,
    colour: Option<RGBColor>,
}

pub fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let problem = &heat_1d::PROBLEM;
    use_threads(args.threads)?;
    let file = match &args.policy {
        Some(path) => PolicyFile::read(path)?,
        None => PolicyFile::shipped(problem)?,
    };
    let policy = file.policy(problem)?;
    let folder = OutputFolder::claim(&args.out)?;
    let episodes = EpisodeSet::Table.episodes(problem, SEED, None)?;

    let contenders = contenders(problem, &policy);
    let source = provenance(problem, SEED, Some(&file));
    let scores = score_table(&contenders, &episodes)?;
    let pictures = pictures(problem, &contenders, &episodes[EPISODE], &source)?;
    print(&format!(
        "{source}\n\nThe task: {}. Means over the {} published episodes:\n\n{scores}\n{}\n{}\n\
         The pictures show episode {EPISODE}; open {} first.\n",
        problem.summary,
        episodes.len(),
        notes(problem, problem.agents),
        write_all(&folder, &pictures)?,
        folder.path().join("demo.svg").display()
    ))
}

fn contenders<'p>(problem: &'static Problem, policy: &'p Policy<'p>) -> Vec<Contender<'p>> {
    let agents = problem.agents;
    let dead = (agents as f64 / 3.0).round();
    static LOSSES: LazyLock<[Fault; 1]> = LazyLock::new(|| [kill()]);
    let losses: &[Fault] = &*LOSSES;
    let feedback = problem
        .baseline
        .map_or(Controller::None, Controller::Proportional);
    let swarm = Controller::Policy(policy);
    let contender = |name: String, controller, faults, colour| Contender {
        name,
        experiment: Experiment {
            problem,
            controller,
            agents,
            steps: problem.horizon,
            faults,
            seed: SEED,
            plant: None,
        },
        colour,
    };
    let killed = format!("{dead} of {agents} killed half way");
    vec![
        contender("no control".into(), Controller::None, &[], Some(line::GREY)),
        contender(format!("swarm of {agents}"), swarm, &[], Some(line::BLUE)),
        contender(killed.clone(), swarm, losses, Some(line::VERMILION)),
        contender("proportional".into(), feedback, &[], Some(line::ORANGE)),
        contender(format!("proportional, {killed}"), feedback, losses, None),
    ]
}

fn score_table(contenders: &[Contender<'_>], episodes: &[Episode]) -> anyhow::Result<String> {
    let head = [
        "",
        "final error",
        "worst",
        "time-mean error",
        "effort",
        "travel",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for contender in contenders {
        let s = evaluate(&contender.experiment, episodes, "demo")?;
        let figures = [
            s.final_error.mean,
            s.final_error.worst,
            s.time_mean.mean,
            s.effort.mean,
            s.travel.mean,
        ];
        let mut row = vec![contender.name.clone()];
        row.extend(figures.map(number));
        rows.push(row);
    }
    Ok(table(&rows))
}

/// File names and contents.
fn pictures(
    problem: &Problem,
    contenders: &[Contender<'_>],
    episode: &Episode,
    source: &str,
) -> anyhow::Result<[(&'static str, String); 4]> {
    let mut runs = Vec::new();
    for contender in contenders {
        if let Some(colour) = contender.colour {
            let recording = Recording::make(&contender.experiment, None, episode, || ())?;
            let trajectory = recording.trajectory;
            runs.push((&contender.name, trajectory, colour));
        }
    }
    let shown: Vec<Shown<'_>> = runs
        .iter()
        .map(|(name, trajectory, colour)| Shown {
            name,
            trajectory,
            colour: *colour,
        })
        .collect();
    let events: Vec<Event> = contenders
        .iter()
        .find_map(|contender| events(&contender.experiment).pop())
        .into_iter()
        .collect();
    Ok([
        (
            "demo.svg",
            report::story_picture(problem, episode, &shown, &events, source)?,
        ),
        (
            "swarm.svg",
            report::field_picture(problem, episode, &shown[1], source)?,
        ),
        (
            "killed.svg",
            report::field_picture(problem, episode, &shown[2], source)?,
        ),
        (
            "error.svg",
            report::error_picture(problem, &shown, &events, source)?,
        ),
    ])
}
