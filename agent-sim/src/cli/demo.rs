//! `agent-sim demo`: what a swarm can do, and that it survives losses.

use super::eval::{baseline_note, evaluate};
use super::run::record;
use super::table::{number, table};
use super::{provenance, use_threads};
use agent_sim::controller::{Controller, Experiment};
use agent_sim::fault::Kill;
use agent_sim::output::OutputFolder;
use agent_sim::policy_file::PolicyFile;
use agent_sim::problem::heat_1d;
use agent_sim::report::{self, Event, Shown, line};
use agent_sim::test_set::EpisodeSet;
use clap::Args;
use std::path::PathBuf;

/// The published episode in the pictures: its field and target differ much, in sign too.
const EPISODE: usize = 46;
/// Decides who dies.
const SEED: u64 = 1;
/// A third of the agents, half way.
const KILL: Kill = Kill {
    fraction: 1.0 / 3.0,
    at: 0.5,
};

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

pub fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let problem = &heat_1d::PROBLEM;
    use_threads(args.threads)?;
    let file = match &args.policy {
        Some(path) => PolicyFile::read(path)?,
        None => PolicyFile::shipped(problem)?,
    };
    let policy = file.policy(problem)?;
    let folder = OutputFolder::prepare(&args.out)?;
    let episodes = EpisodeSet::Table.episodes(problem, SEED, None)?;
    let agents = problem.agents;
    let dead = KILL.victims(agents, SEED).len();

    let swarm = Experiment {
        problem,
        controller: Controller::Policy(&policy),
        agents,
        steps: problem.horizon,
        kill: None,
        seed: SEED,
    };
    let with = |controller, kill| Experiment {
        controller,
        kill,
        ..swarm
    };
    let law = Controller::Proportional(problem.baseline);
    let killed = format!("{dead} of {agents} killed half way");
    let names = [
        "no control",
        &format!("swarm of {agents}"),
        &killed,
        "proportional",
    ];
    let contenders = [
        (with(Controller::None, None), line::GREY),
        (swarm, line::BLUE),
        (with(swarm.controller, Some(KILL)), line::VERMILION),
        (with(law, None), line::ORANGE),
    ];

    let mut rows = vec![
        [
            "",
            "final error",
            "worst",
            "time-mean error",
            "effort",
            "travel",
        ]
        .map(String::from)
        .to_vec(),
    ];
    let mut trajectories = Vec::new();
    for (name, (experiment, colour)) in names.iter().zip(&contenders) {
        let s = evaluate(experiment, &episodes, "demo")?;
        let mut row = vec![(*name).to_owned()];
        let figures = [
            s.final_error.mean,
            s.final_error.worst,
            s.time_mean.mean,
            s.effort.mean,
            s.travel.mean,
        ];
        row.extend(figures.map(number));
        rows.push(row);
        trajectories.push((name, record(experiment, &episodes[EPISODE])?.1, *colour));
    }
    let shown: Vec<Shown<'_>> = trajectories
        .iter()
        .map(|(name, trajectory, colour)| Shown {
            name,
            trajectory,
            colour: *colour,
        })
        .collect();
    let events = [Event {
        step: KILL.step(problem.horizon),
        name: format!("{dead} of {agents} agents die"),
    }];
    let source = provenance(problem, SEED, Some(&file));
    let episode = &episodes[EPISODE];
    let pictures = [
        (
            "demo.svg",
            report::story_picture(problem, episode, &shown, &events, &source)?,
        ),
        (
            "swarm.svg",
            report::field_picture(problem, episode, &shown[1], &source)?,
        ),
        (
            "killed.svg",
            report::field_picture(problem, episode, &shown[2], &source)?,
        ),
        (
            "error.svg",
            report::error_picture(problem, &shown, &events, &source)?,
        ),
    ];

    println!("{source}\n");
    println!(
        "{}; means over the {} published episodes:\n",
        problem.summary,
        episodes.len()
    );
    println!("{}", table(&rows));
    println!("  {}\n", baseline_note(problem, agents));
    for (name, picture) in pictures {
        println!(
            "  wrote {}",
            folder.write(name, picture.as_bytes())?.display()
        );
    }
    println!(
        "\nThe pictures show episode {EPISODE}; open {} first.",
        folder.path().join("demo.svg").display()
    );
    Ok(())
}
