//! `agent-sim tune`: the gain of the proportional yardstick.

use super::eval::{evaluate, headline_name};
use super::{VERSION, print, use_threads};
use crate::controller::{Controller, Experiment};
use crate::table::{number, table};
use clap::Args;
use problem::test_set::EpisodeSet;
use problem::{ErrorSensing, Problems, Proportional};

/// Gains tried: a few to a decade, denser where heat-1d turns unstable.
const GAINS: [f64; 21] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0,
    600.0, 700.0, 800.0, 900.0, 1000.0,
];

#[derive(Args)]
pub struct TuneArgs {
    /// The problem, e.g. heat-1d
    problem: String,
    /// Number of fresh episodes; the published test set is not tuned on
    #[arg(long, default_value_t = 50, value_name = "N")]
    episodes: usize,
    /// Seed of the episodes
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn tune(args: &TuneArgs, problems: &Problems) -> anyhow::Result<()> {
    let problem = problems.by_name(&args.problem)?;
    use_threads(args.threads)?;
    let episodes = EpisodeSet::Fresh.episodes(problem, args.seed, Some(args.episodes.max(1)))?;
    let head = [
        "gain",
        "point: final",
        "time-mean",
        "kernel: final",
        "time-mean",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut best: Option<(f64, Proportional)> = None;
    for gain in GAINS {
        let mut row = vec![format!("{gain}")];
        for sensing in [ErrorSensing::Point, ErrorSensing::Kernel] {
            let law = Proportional { gain, sensing };
            let experiment = Experiment {
                problem,
                controller: Controller::Proportional(law),
                agents: problem.agents,
                steps: problem.horizon,
                faults: &[],
                seed: args.seed,
            };
            // Too high a gain may well be unstable: that is a result.
            let Ok(summary) = evaluate(&experiment, &episodes, "episodes") else {
                row.extend(["blew up", "blew up"].map(String::from));
                continue;
            };
            row.extend([summary.final_error.mean, summary.time_mean.mean].map(number));
            let error = summary.headline(problem.scoring).mean;
            if best.is_none_or(|(least, _)| error < least) {
                best = Some((error, law));
            }
        }
        rows.push(row);
    }
    let mut text = format!(
        "agent-sim {VERSION} · {} · seed {} · proportional feedback on {} fresh episodes\n\n{}",
        problem.name,
        args.seed,
        episodes.len(),
        table(&rows)
    );
    if let Some((error, law)) = best {
        let used = match problem.baseline {
            Some(used) => format!("gain {} and {:?}", used.gain, used.sensing),
            None => "none".to_owned(),
        };
        text += &format!(
            "\n  best {} error {} with gain {} and {:?} sensing; built in: {used}\n",
            headline_name(problem).replace('_', "-"),
            number(error),
            law.gain,
            law.sensing,
        );
    }
    print(&text)
}
