//! `agent-sim run`: one episode, scores and pictures.

use super::progress::Progress;
use super::table::{number, table};
use super::{ControlArgs, Kind, print, provenance};
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::{BlownUp, Trajectory};
use agent_sim::fault::Kill;
use agent_sim::metrics::Score;
use agent_sim::output::{OutputError, OutputFolder};
use agent_sim::problem::Episode;
use agent_sim::report::{self, Event, Shown, line};
use agent_sim::test_set::EpisodeSet;
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Seed of the episode and of who dies
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// Control steps [default: as published]
    #[arg(long, value_name = "T")]
    steps: Option<usize>,
    /// Kill this share of the agents after this share of the run, e.g. 1/3@0.5
    #[arg(long, value_name = "FRACTION@TIMEFRACTION")]
    kill: Option<Kill>,
    /// Where the episode is taken from: fresh (drawn by --seed), table (published) or a .npy file
    #[arg(long, default_value = "fresh", value_name = "SET")]
    set: EpisodeSet,
    /// Which episode of the set
    #[arg(long, default_value_t = 0, value_name = "I")]
    episode: usize,
    /// Folder for the pictures [default: out/run-<problem>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &RunArgs) -> anyhow::Result<()> {
    let problem = args.control.problem()?;
    let agents = args.control.agents(problem)?;
    let steps = args.steps.unwrap_or(problem.horizon);
    if steps == 0 {
        bail!("a run of 0 steps shows nothing; give --steps 1 or more");
    }
    args.control.use_threads()?;
    let file = args.control.policy_file(problem)?;
    let policy = file.as_ref().map(|f| f.policy(problem)).transpose()?;
    let controller = args.control.controller(problem, agents, policy.as_ref())?;
    let episode = args.set.episode(problem, args.seed, args.episode)?;
    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| format!("out/run-{}", problem.name).into());
    let folder = OutputFolder::prepare(&folder)?;

    let experiment = Experiment {
        problem,
        controller,
        agents,
        steps,
        kill: args.kill,
        seed: args.seed,
    };
    let (score, trajectory) = record(&experiment, &episode)?;
    let name = match args.control.controller {
        Kind::Policy => "swarm",
        Kind::None => "no control",
        Kind::Proportional => "proportional",
    };
    let mut yardsticks = Vec::new();
    if args.control.controller != Kind::None {
        yardsticks.push(("no control", Controller::None, line::GREY));
    }
    if args.control.controller != Kind::Proportional {
        let law = Controller::Proportional(problem.baseline_for(agents));
        yardsticks.push(("proportional", law, line::ORANGE));
    }
    let mut others = Vec::new();
    for (name, controller, colour) in yardsticks {
        // A yardstick loses nobody.
        let experiment = Experiment {
            controller,
            kill: None,
            ..experiment
        };
        others.push((name, record(&experiment, &episode)?, colour));
    }

    let source = provenance(problem, args.seed, file.as_ref());
    let events: Vec<Event> = args
        .kill
        .filter(|_| args.control.controller != Kind::None)
        .map(|kill| Event {
            step: kill.step(steps),
            name: format!(
                "{} of {agents} agents die",
                kill.victims(agents, args.seed).len()
            ),
        })
        .into_iter()
        .collect();
    let own = || Shown {
        name,
        trajectory: &trajectory,
        colour: line::BLUE,
    };
    let mut shown = vec![own()];
    for (name, (_, trajectory), colour) in &others {
        shown.push(Shown {
            name,
            trajectory,
            colour: *colour,
        });
    }
    let pictures = [
        (
            "field.svg",
            report::field_picture(problem, &episode, &own(), &source)?,
        ),
        (
            "error.svg",
            report::error_picture(problem, &shown, &events, &source)?,
        ),
    ];

    let mut rows = vec![score_head()];
    rows.push(score_row(name, &score));
    rows.extend(
        others
            .iter()
            .map(|(name, (score, _), _)| score_row(name, score)),
    );
    print(&format!(
        "{source} · {agents} agents · {steps} steps · episode {} of the {} set\n\n{}\n{}",
        args.episode,
        args.set,
        table(&rows),
        write_all(&folder, &pictures)?
    ))
}

/// Writes the pictures and says so.
pub fn write_all(
    folder: &OutputFolder,
    pictures: &[(&str, String)],
) -> Result<String, OutputError> {
    let mut text = String::new();
    for (name, picture) in pictures {
        let path = folder.write(name, picture.as_bytes())?;
        text += &format!("  wrote {}\n", path.display());
    }
    Ok(text)
}

/// Runs an episode and keeps what it looked like.
pub fn record(
    experiment: &Experiment<'_>,
    episode: &Episode,
) -> Result<(Score, Trajectory), BlownUp> {
    let progress = Progress::new(experiment.steps, "steps");
    let mut trajectory = Trajectory::default();
    let score = experiment.run(episode, &mut |snapshot| {
        trajectory.push(snapshot);
        progress.tick();
    })?;
    Ok((score, trajectory))
}

fn score_head() -> Vec<String> {
    ["", "final error", "time-mean error", "effort", "travel"]
        .map(String::from)
        .to_vec()
}

fn score_row(name: &str, score: &Score) -> Vec<String> {
    let figures = [
        score.final_error,
        score.time_mean_error,
        score.effort,
        score.travel,
    ];
    let mut row = vec![name.to_owned()];
    row.extend(figures.map(number));
    row
}
