//! Whether grid and steps are fine enough, and what is conserved.

use super::{Finding, short};
use crate::controller::{Controller, Experiment};
use problem::grid::Edge;
use problem::test_set::EpisodeSet;
use problem::{Episode, ErrorSensing, Problem, Proportional};

/// Control intervals that runs are compared over.
const STEPS: usize = 60;
/// How far halving the grid's spacing, or the solver's step, may change a field.
const GRID_MAY: f64 = 0.05;
const STEP_MAY: f64 = 0.01;

pub fn findings(problem: &Problem) -> anyhow::Result<Vec<Finding>> {
    let episode = EpisodeSet::Fresh.episode(problem, 0, 0)?;
    let points = problem.grid.points;
    let doubled = [0, 1].map(|axis| match problem.grid.edges[axis] {
        _ if axis >= problem.grid.axes => 1,
        Edge::Wall => 2 * points[axis] - 1,
        Edge::Periodic => 2 * points[axis],
    });
    let mut findings = Vec::new();
    let finer = match problem.grid.axes {
        1 => problem.with_grid(doubled[0])?,
        _ => problem.with_grid(doubled)?,
    };
    for (what, gain) in [("left alone", None), ("controlled", Some(gain(problem)))] {
        let coarse = ends(problem, &episode, gain);
        let apart = match (&coarse, &ends(&finer, &episode, gain)) {
            (Some(coarse), Some(fine)) => difference(problem, coarse, &on_coarse(&finer, fine)),
            _ => f64::INFINITY,
        };
        findings.push(Finding::judged(
            "grid",
            format!("{what}, {STEPS} intervals on twice as fine a grid differ by {}", percent(apart)),
            apart <= GRID_MAY,
            || format!("take a finer grid, say grid = {:?}, or wider actuators and longer correlation lengths", &doubled[..problem.grid.axes]),
        ));
        let shorter = problem.with_substeps(2 * problem.substeps)?;
        let apart = match (&coarse, &ends(&shorter, &episode, gain)) {
            (Some(coarse), Some(fine)) => difference(problem, coarse, fine),
            _ => f64::INFINITY,
        };
        findings.push(Finding::judged(
            "solver's step",
            format!("{what}, half as long steps differ by {}", percent(apart)),
            apart <= STEP_MAY,
            || format!("say substeps = {} under [time]", 2 * problem.substeps),
        ));
    }
    findings.extend(conserved(problem, &episode));
    Ok(findings)
}

fn percent(share: f64) -> String {
    match share.is_finite() {
        true => format!("{:.2} %", 100.0 * share),
        false => "more than can be said: a field blows up".to_owned(),
    }
}

/// A gain at which agents work hard without the loop being unstable at once.
fn gain(problem: &Problem) -> f64 {
    let tuned = problem.baseline.map(|law| law.gain);
    let kit = problem.kit.expect("a description");
    let [low, high] = kit.described[kit.seen].range;
    tuned.unwrap_or(problem.actuation.force_max / (high - low))
}

/// The field that agents see at start and end; none if it blows up.
fn ends(problem: &Problem, episode: &Episode, gain: Option<f64>) -> Option<[Vec<f64>; 2]> {
    let experiment = Experiment {
        problem,
        controller: match gain {
            None => Controller::None,
            Some(gain) => Controller::Proportional(Proportional {
                gain,
                sensing: ErrorSensing::Kernel,
            }),
        },
        agents: problem.agents,
        steps: problem.horizon.min(STEPS),
        faults: &[],
        seed: 0,
        plant: None,
    };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let run = experiment.run(episode, &mut |snapshot| {
        if snapshot.step == 0 {
            first = snapshot.field.to_vec();
        }
        last = snapshot.field.to_vec();
    });
    run.ok().map(|_| [first, last])
}

/// The nodes that the coarse grid has too.
fn on_coarse(finer: &Problem, fields: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let [rows, columns] = finer.grid.points;
    let across = if finer.grid.axes == 2 { 2 } else { 1 };
    fields.each_ref().map(|field| {
        (0..rows)
            .step_by(2)
            .flat_map(|i| {
                (0..columns)
                    .step_by(across)
                    .map(move |j| field[i * columns + j])
            })
            .collect()
    })
}

/// How far apart two ends are, as a share of how far the field went or of how large it is.
fn difference(problem: &Problem, coarse: &[Vec<f64>; 2], fine: &[Vec<f64>; 2]) -> f64 {
    let domain = problem.kit.expect("a description").domain(&problem.grid);
    let norm = |value: &dyn Fn(usize) -> f64| {
        let nodes = (0..problem.grid.len()).filter(|&node| domain.wet(node));
        nodes.map(|node| value(node).powi(2)).sum::<f64>().sqrt()
    };
    let gap = norm(&|node| coarse[1][node] - fine[1][node]);
    let way = norm(&|node| fine[1][node] - fine[0][node]);
    let size = norm(&|node| fine[0][node]);
    gap / way.max(0.1 * size).max(f64::MIN_POSITIVE)
}

/// What becomes of the content of every field that is left alone.
fn conserved(problem: &Problem, episode: &Episode) -> Vec<Finding> {
    let kit = problem.kit.expect("a description");
    let (domain, nodes) = (kit.domain(&problem.grid), problem.grid.len());
    let content = |state: &[f64], k: usize| -> f64 {
        let field = &state[k * nodes..][..nodes];
        field.iter().zip(domain.volume()).map(|(z, v)| z * v).sum()
    };
    let mut state: Vec<f64> = episode.initial.iter().map(|z| f64::from(*z)).collect();
    let begun = state.clone();
    let mut stepper = (problem.stepper)(problem, 1);
    let rest = vec![0.0; state.len()];
    for _ in 0..problem.horizon.min(STEPS) {
        stepper.step(&mut state, &rest);
    }
    (kit.described.iter().enumerate())
        .map(|(k, field)| {
            let (before, after) = (content(&begun, k), content(&state, k));
            let size: f64 = begun[k * nodes..][..nodes].iter().map(|z| z.abs()).sum();
            let change = (after - before).abs() / size.max(f64::MIN_POSITIVE);
            let found = match change {
                change if change < 1e-9 => {
                    format!("left alone, the content of {} stays as it is", field.name)
                }
                _ => format!(
                    "left alone, the content of {} changes: its mean goes from {} to {}",
                    field.name,
                    short(before / domain.volume().iter().sum::<f64>()),
                    short(after / domain.volume().iter().sum::<f64>()),
                ),
            };
            Finding::well("content", found)
        })
        .collect()
}
