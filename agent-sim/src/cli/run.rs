//! `agent-sim run`: one episode, scores and pictures.

use super::progress::Progress;
use super::table::{number, table};
use super::{ControlArgs, Kind, print, provenance};
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::BlownUp;
use agent_sim::fault::Kill;
use agent_sim::metrics::Score;
use agent_sim::output::{OutputError, OutputFolder};
use agent_sim::problem::Episode;
use agent_sim::report::{self, Event, RGBColor, Shown, line};
use agent_sim::test_set::EpisodeSet;
use agent_sim::trajectory::Trajectory;
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
    let mut made = vec![Made::new(
        match args.control.controller {
            Kind::Policy => "swarm",
            Kind::None => "no control",
            Kind::Proportional => "proportional",
        },
        &experiment,
        &episode,
        line::BLUE,
    )?];
    // The yardsticks lose nobody.
    let beside = |controller| Experiment {
        controller,
        kill: None,
        ..experiment
    };
    if args.control.controller != Kind::None {
        let nobody = beside(Controller::None);
        made.push(Made::new("no control", &nobody, &episode, line::GREY)?);
    }
    if args.control.controller != Kind::Proportional {
        let law = beside(Controller::Proportional(problem.baseline_for(agents)));
        made.push(Made::new("proportional", &law, &episode, line::ORANGE)?);
    }

    let source = provenance(problem, args.seed, file.as_ref());
    let shown: Vec<Shown<'_>> = made.iter().map(Made::shown).collect();
    let events = events(&experiment);
    let pictures = [
        (
            "field.svg",
            report::field_picture(problem, &episode, &shown[0], &source)?,
        ),
        (
            "error.svg",
            report::error_picture(problem, &shown, &events, &source)?,
        ),
    ];
    print(&format!(
        "{source} · {agents} agents · {steps} steps · episode {} of the {} set\n\n{}\n{}",
        args.episode,
        args.set,
        score_table(&made),
        write_all(&folder, &pictures)?
    ))
}

/// A run that was made.
struct Made {
    name: &'static str,
    score: Score,
    trajectory: Trajectory,
    colour: RGBColor,
}

impl Made {
    fn new(
        name: &'static str,
        experiment: &Experiment<'_>,
        episode: &Episode,
        colour: RGBColor,
    ) -> Result<Self, BlownUp> {
        let (score, trajectory) = record(experiment, episode)?;
        Ok(Self {
            name,
            score,
            trajectory,
            colour,
        })
    }

    fn shown(&self) -> Shown<'_> {
        Shown {
            name: self.name,
            trajectory: &self.trajectory,
            colour: self.colour,
        }
    }
}

/// What happens to the agents on the way.
pub fn events(experiment: &Experiment<'_>) -> Vec<Event> {
    let Some(kill) = experiment.kill else {
        return Vec::new();
    };
    let agents = match experiment.controller {
        Controller::None => return Vec::new(),
        _ => experiment.agents,
    };
    let dead = kill.victims(agents, experiment.seed).len();
    vec![Event {
        step: kill.step(experiment.steps),
        name: format!("{dead} of {agents} agents die"),
    }]
}

fn score_table(made: &[Made]) -> String {
    let head = ["", "final error", "time-mean error", "effort", "travel"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for Made { name, score, .. } in made {
        let figures = [
            score.final_error,
            score.time_mean_error,
            score.effort,
            score.travel,
        ];
        let mut row = vec![(*name).to_owned()];
        row.extend(figures.map(number));
        rows.push(row);
    }
    table(&rows)
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
    let mut trajectory = Trajectory::new(experiment.problem, episode, experiment.steps);
    let score = experiment.run(episode, &mut |snapshot| {
        trajectory.push(snapshot);
        progress.tick();
    })?;
    Ok((score, trajectory))
}
