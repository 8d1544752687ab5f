//! A run kept so that it can be shown, and checked again bit for bit.

use crate::controller::Experiment;
use crate::episode::{RunError, Snapshot};
use crate::rig::Rig;
use crate::trajectory::Trajectory;
use problem::Episode;
use problem::metrics::Score;
use problem::resolution::TooCoarse;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// One run: what it looked like, its figures, and a fingerprint of every step.
#[derive(Debug, Clone)]
pub struct Recording {
    /// For pictures.
    pub trajectory: Trajectory,
    /// The verdict.
    pub score: Score,
    /// One for the start and for each step.
    pub log: Vec<StepLog>,
    /// The field's integral at the start and at the end, where the problem has a name for it.
    pub integral: Option<[f64; 2]>,
    /// Whether the grid is too coarse for the field at the end.
    pub too_coarse: Option<TooCoarse>,
}

/// A step, in figures.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLog {
    /// Steps taken.
    pub step: usize,
    /// Time of the equation.
    pub time: f64,
    /// Mean squared error to the target.
    pub error: f64,
    /// Mean squared force, or speed where agents stir, over the agents.
    pub effort: f64,
    /// Agents that answered.
    pub heard: usize,
    /// Of all bits of the field, of the agents' places and of their deeds.
    pub fingerprint: String,
}

impl Recording {
    /// Runs an episode, perhaps with boards; `tick` is called after every step.
    pub fn make(
        experiment: &Experiment<'_>,
        rig: Option<&Rig>,
        episode: &Episode,
        mut tick: impl FnMut(),
    ) -> Result<Self, RunError> {
        Self::watched(experiment, rig, episode, |_| tick()).map_err(|cut| cut.error)
    }

    /// The same; `watch` sees the state before the first step and after each. Of a run that ended before
    /// its time there is what it came to.
    pub fn watched(
        experiment: &Experiment<'_>,
        rig: Option<&Rig>,
        episode: &Episode,
        mut watch: impl FnMut(&Snapshot<'_>),
    ) -> Result<Self, Box<Cut>> {
        let problem = experiment.problem;
        let mut trajectory = Trajectory::new(problem, episode, experiment.steps);
        let mut log = Vec::with_capacity(experiment.steps + 1);
        let (mut integrals, mut too_coarse) = ([0.0; 2], None);
        let score = experiment.run_on(rig, episode, &mut |snapshot| {
            trajectory.push(snapshot);
            if snapshot.step == 0 {
                integrals[0] = problem.grid.integral(snapshot.field);
            }
            if snapshot.step == experiment.steps {
                integrals[1] = problem.grid.integral(snapshot.field);
                too_coarse = problem.too_coarse(snapshot.field);
            }
            let heard = snapshot.deeds.iter().filter(|deed| deed.heard()).count();
            log.push(StepLog {
                step: snapshot.step,
                time: snapshot.step as f64 * problem.control_interval,
                error: snapshot.error,
                effort: snapshot.cost.squared_effort / snapshot.deeds.len().max(1) as f64,
                heard,
                fingerprint: fingerprint(snapshot),
            });
            watch(snapshot);
        });
        let score = match score {
            Ok(score) => score,
            Err(error) => {
                return Err(Box::new(Cut {
                    error,
                    log,
                    trajectory,
                }));
            }
        };
        Ok(Self {
            trajectory,
            score,
            log,
            integral: problem.integral.map(|_| integrals),
            too_coarse,
        })
    }

    /// The log as CSV.
    pub fn csv(&self) -> String {
        csv(&self.log)
    }
}

/// What there is of a run that ended before its time.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct Cut {
    /// Why it ended.
    pub error: RunError,
    /// The start and the steps before; nothing if it did not even start.
    pub log: Vec<StepLog>,
    /// The same for pictures.
    pub trajectory: Trajectory,
}

/// A log as CSV. Numbers are written so that they read back to the same bits.
pub fn csv(log: &[StepLog]) -> String {
    let mut text = String::from(HEAD);
    for line in log {
        writeln!(
            text,
            "{},{},{:?},{:?},{},{}",
            line.step, line.time, line.error, line.effort, line.heard, line.fingerprint
        )
        .expect("to a string");
    }
    text
}

const HEAD: &str = "step,time,error,effort,heard,fingerprint\n";

/// The fingerprints of a log that [`csv`] wrote; `None` if it is no such log.
pub fn fingerprints(csv: &str) -> Option<Vec<&str>> {
    let lines = csv.strip_prefix(HEAD)?.lines();
    lines.map(|line| line.rsplit(',').next()).collect()
}

/// Of all bits of the field, of the agents' places and of their deeds.
pub fn fingerprint(snapshot: &Snapshot<'_>) -> String {
    let mut hash = Sha256::new();
    for z in snapshot.field {
        hash.update(z.to_le_bytes());
    }
    for place in snapshot.positions {
        hash.update(place[0].to_le_bytes());
        hash.update(place[1].to_le_bytes());
    }
    for deed in snapshot.deeds {
        hash.update(deed.force.to_le_bytes());
        hash.update(deed.velocity[0].to_le_bytes());
        hash.update(deed.velocity[1].to_le_bytes());
        hash.update([deed.mode.map_or(0, |mode| mode as u8 + 1)]);
    }
    hash.finalize()[..8]
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
