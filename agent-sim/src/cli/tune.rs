//! `agent-sim tune`: the gain of the yardsticks that have one.

use super::eval::{EpisodeEnded, evaluate, headline_name};
use super::plant_args::{GivenPlant, on_plant};
use super::{VERSION, print, use_threads};
use crate::controller::{Controller, ControllerKind, Experiment, Takes};
use crate::coverage::Coverage;
use crate::table::{number, table};
use anyhow::bail;
use clap::Args;
use problem::test_set::EpisodeSet;
use problem::{ErrorSensing, Problem, Problems, Proportional};

/// Gains tried on problems in Rust: a few to a decade, denser where heat-1d turns unstable.
const GAINS: [f64; 21] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0,
    600.0, 700.0, 800.0, 900.0, 1000.0,
];
/// Decades of gains tried on described fields, three to each. The first pushes with all its force only where
/// the error is ten times the range of what agents see, the last wherever there is any.
const DECADES: std::ops::Range<i32> = -1..5;

/// The gains to try, in the problem's units.
fn gains(problem: &Problem) -> Vec<f64> {
    let Some(kit) = problem.kit else {
        return GAINS.to_vec();
    };
    let [low, high] = kit.described[kit.seen].range;
    let unit = problem.actuation.force_max / (high - low);
    // In two digits, to be written into files.
    let round = |gain: f64| format!("{gain:.1e}").parse().unwrap_or(gain);
    DECADES
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(decade)))
        .map(|multiple| round(multiple * unit))
        .collect()
}

#[derive(Args)]
pub struct TuneArgs {
    /// The problem, e.g. heat-1d
    problem: String,
    /// Whose gain: proportional or coverage
    #[arg(long, default_value = "proportional")]
    controller: ControllerKind,
    #[command(flatten)]
    plant: GivenPlant,
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
    let (kind, any) = (args.controller, Some(1.0));
    if kind.takes != Takes::Gain {
        bail!(
            "{} has no gain to be tuned; give --controller proportional or coverage",
            kind.name
        );
    }
    (kind.check)(problem, any)?;
    use_threads(args.threads)?;
    let episodes = EpisodeSet::Fresh.episodes(problem, args.seed, Some(args.episodes.max(1)))?;
    let plant = args.plant.open(problem)?;
    let head = [
        "gain",
        "point: final",
        "time-mean",
        "kernel: final",
        "time-mean",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut best: Option<(f64, Proportional)> = None;
    let mut gave_up: Option<EpisodeEnded> = None;
    'gains: for gain in gains(problem) {
        let mut row = vec![format!("{gain}")];
        for sensing in [ErrorSensing::Point, ErrorSensing::Kernel] {
            let law = Proportional { gain, sensing };
            let coverage = Coverage::new(problem, law).filter(|_| kind == ControllerKind::COVERAGE);
            let experiment = Experiment {
                problem,
                controller: match &coverage {
                    Some(coverage) => Controller::Guided(coverage),
                    None => Controller::Proportional(law),
                },
                agents: problem.agents,
                steps: problem.horizon,
                faults: &[],
                seed: args.seed,
                plant: plant.as_ref(),
            };
            let summary = match evaluate(&experiment, &episodes, "episodes") {
                Ok(summary) => summary,
                // Too high a gain may well be unstable: that is a result.
                Err(ended) if ended.is_blown_up() => {
                    row.extend(["blew up", "blew up"].map(String::from));
                    continue;
                }
                // A plant may not do the same again: the gains that were tried are shown.
                Err(ended) => {
                    gave_up = Some(ended);
                    row.resize(head.len(), "–".to_owned());
                    rows.push(row);
                    break 'gains;
                }
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
        "agent-sim {VERSION} · {} · seed {}{} · {} feedback on {} fresh episodes\n\n{}",
        problem.name,
        args.seed,
        on_plant(plant.as_ref()),
        kind.name,
        episodes.len(),
        table(&rows)
    );
    if let Some((error, law)) = best {
        let used = match kind == ControllerKind::COVERAGE {
            true => problem.coverage_for(problem.agents),
            false => problem.baseline,
        };
        let used = match used {
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
    match gave_up {
        None => print(&text),
        Some(ended) => bail!("{ended}\n\n{}", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Of a field in other units the gains are the same in those.
    #[test]
    fn gains_go_by_the_units_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plate.toml");
        fs::write(&file, include_str!("templates/heat-2d.toml")).unwrap();
        let plate = problem::kit::load(&file).unwrap();
        // 15 K/s over 60 K, in two digits.
        assert_eq!(gains(plate)[..4], [0.025, 0.05, 0.12, 0.25]);
        let mut weaker = *plate;
        weaker.actuation.force_max = 15e-6;
        assert_eq!(gains(&weaker)[..2], [2.5e-8, 5e-8]);
        assert_eq!(gains(&weaker).len(), gains(plate).len());
        assert_eq!(gains(&problem::published::heat_1d::PROBLEM), GAINS);
    }
}
