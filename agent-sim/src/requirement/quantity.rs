//! What can be required: figures that a run has after every step.

use super::Requirement;
use crate::episode::Snapshot;
use crate::fault::{Ids, Region};
use crate::rig::{Rig, State};
use problem::Problem;
use std::fmt;

/// A figure of a run.
pub struct Quantity {
    /// What people call it.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Which of `region`, `ids` and `level` it takes.
    pub takes: &'static [&'static str],
    /// Why a run has no such figure, if it has none.
    pub lacking: fn(&Conditions<'_>) -> Option<String>,
    /// What reads it off a run.
    pub reader: fn(&Requirement, &Conditions<'_>) -> Reader,
}

/// Reads a figure off a run: before the first step and after each, in order.
pub type Reader = Box<dyn FnMut(&Moment<'_>) -> f64 + Send>;

/// A run between two steps.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The field and the agents.
    pub snapshot: &'a Snapshot<'a>,
    /// The boards, where there are any.
    pub rig: Option<&'a Rig>,
}

/// What is known of a run before it begins.
#[derive(Debug, Clone)]
pub struct Conditions<'a> {
    /// What is controlled.
    pub problem: &'a Problem,
    /// How many agents there are.
    pub agents: usize,
    /// How many of them are on boards.
    pub boards: usize,
    /// For how many steps.
    pub steps: usize,
    /// Steps in which faults begin.
    pub faults: Vec<usize>,
}

impl Conditions<'_> {
    /// Of every grid point, whether it lies in a region.
    pub(super) fn points_in(&self, region: &Region) -> impl Iterator<Item = bool> {
        let grid = &self.problem.grid;
        (0..grid.len()).map(move |j| region.contains(grid.place(j).map(|x| x as f32)))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All quantities.
pub static ALL: &[&Quantity] = &[
    &ERROR,
    &MEAN_ERROR,
    &HIGHEST,
    &LOWEST,
    &RECOVERY,
    &FORCE,
    &SPEED,
    &DISTANCE,
    &INTRUSION,
    &ENERGY,
    &MASS,
    &SILENT,
    &LATE,
    &RESETS,
    &LOST_POLICIES,
    &STACK,
];

/// A line for each of them, for people.
pub fn listing() -> String {
    let line = |quantity: &&Quantity| {
        let takes = match quantity.takes {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!("  {:<15}{}{takes}\n", quantity.name, quantity.help)
    };
    ALL.iter().map(line).collect()
}

fn always_there(_: &Conditions<'_>) -> Option<String> {
    None
}

/// Numbers of the grid points that a requirement is about.
fn points(requirement: &Requirement, run: &Conditions<'_>) -> Vec<usize> {
    match &requirement.region {
        None => (0..run.problem.grid.len()).collect(),
        Some(region) => {
            let inside = run.points_in(region).enumerate();
            inside
                .filter_map(|(j, inside)| inside.then_some(j))
                .collect()
        }
    }
}

/// Mean squared error to the target.
pub static ERROR: Quantity = Quantity {
    name: "error",
    help: "mean squared error to the target, everywhere or in a region",
    takes: &["region"],
    lacking: always_there,
    reader: |requirement, run| {
        if requirement.region.is_none() {
            return Box::new(|now| now.snapshot.error);
        }
        let points = points(requirement, run);
        Box::new(move |now| {
            let Snapshot { field, target, .. } = now.snapshot;
            let squared = |&j: &usize| (field[j] - f64::from(target[j])).powi(2);
            points.iter().map(squared).sum::<f64>() / points.len() as f64
        })
    },
};

/// The mean of that over the steps so far.
pub static MEAN_ERROR: Quantity = Quantity {
    name: "mean-error",
    help: "mean of the errors after each step so far, of those that the problem scores",
    takes: &[],
    lacking: always_there,
    reader: |_, run| {
        let from = run.problem.scoring.from;
        let (mut sum, mut count) = (0.0, 0.0);
        Box::new(move |now| {
            if now.snapshot.step > from {
                sum += now.snapshot.error;
                count += 1.0;
            }
            if count > 0.0 {
                sum / count
            } else {
                now.snapshot.error
            }
        })
    },
};

fn extreme(
    requirement: &Requirement,
    run: &Conditions<'_>,
    more: fn(f64, f64) -> f64,
    least: f64,
) -> Reader {
    let points = points(requirement, run);
    Box::new(move |now| {
        points
            .iter()
            .map(|&j| now.snapshot.field[j])
            .fold(least, more)
    })
}

/// The largest value of the field.
pub static HIGHEST: Quantity = Quantity {
    name: "highest",
    help: "largest value of the field that agents see, everywhere or in a region",
    takes: &["region"],
    lacking: always_there,
    reader: |requirement, run| extreme(requirement, run, f64::max, f64::NEG_INFINITY),
};

/// The smallest value of the field.
pub static LOWEST: Quantity = Quantity {
    name: "lowest",
    help: "smallest value of the field that agents see, everywhere or in a region",
    takes: &["region"],
    lacking: always_there,
    reader: |requirement, run| extreme(requirement, run, f64::min, f64::INFINITY),
};

/// How long it takes until the error is small for good.
pub static RECOVERY: Quantity = Quantity {
    name: "recovery",
    help: "steps from the beginning of the last fault so far to the last error above a level",
    takes: &["level"],
    lacking: |run| {
        let none = "there is no fault to recover from";
        run.faults.is_empty().then(|| none.to_owned())
    },
    reader: |requirement, run| {
        let (level, faults) = (
            requirement.level.unwrap_or(f64::INFINITY),
            run.faults.clone(),
        );
        let mut last_above = 0;
        Box::new(move |now| {
            let step = now.snapshot.step;
            if now.snapshot.error > level {
                last_above = step;
            }
            let begun = faults.iter().copied().filter(|fault| *fault <= step).max();
            begun.map_or(0.0, |fault| last_above.saturating_sub(fault) as f64)
        })
    },
};

/// Numbers of the agents that a requirement is about.
fn meant(ids: Option<&Ids>, agents: usize) -> Vec<usize> {
    ids.map_or_else(|| (0..agents).collect(), |ids| ids.within(agents))
}

/// The strongest force.
pub static FORCE: Quantity = Quantity {
    name: "force",
    help: "largest size of an agent's force, of all or of some",
    takes: &["ids"],
    lacking: |run| {
        let none = run.problem.actuation.force_max <= 0.0;
        none.then(|| "agents of this problem have no forces".to_owned())
    },
    reader: |requirement, run| {
        let meant = meant(requirement.ids.as_ref(), run.agents);
        Box::new(move |now| {
            let force = |&i: &usize| now.snapshot.deeds.get(i).map_or(0.0, |deed| deed.force);
            meant
                .iter()
                .map(force)
                .map(|f| f64::from(f.abs()))
                .fold(0.0, f64::max)
        })
    },
};

/// The highest speed.
pub static SPEED: Quantity = Quantity {
    name: "speed",
    help: "largest speed of an agent, of all or of some",
    takes: &["ids"],
    lacking: |run| {
        let none = run.problem.actuation.velocity_max <= 0.0;
        none.then(|| "agents of this problem do not move".to_owned())
    },
    reader: |requirement, run| {
        let meant = meant(requirement.ids.as_ref(), run.agents);
        Box::new(move |now| {
            let speed = |&i: &usize| {
                let [x, y] = now
                    .snapshot
                    .deeds
                    .get(i)
                    .map_or([0.0; 2], |deed| deed.velocity);
                libm::hypot(f64::from(x), f64::from(y))
            };
            meant.iter().map(speed).fold(0.0, f64::max)
        })
    },
};

/// How near agents come to each other.
pub static DISTANCE: Quantity = Quantity {
    name: "distance",
    help: "smallest distance between two agents, of all or of some",
    takes: &["ids"],
    lacking: |run| (run.agents < 2).then(|| "one agent is near nobody".to_owned()),
    reader: |requirement, run| {
        let (grid, meant) = (
            run.problem.grid,
            meant(requirement.ids.as_ref(), run.agents),
        );
        Box::new(move |now| {
            let places = now.snapshot.positions;
            let pairs = meant.iter().enumerate().flat_map(|(k, &i)| {
                let others = meant.get(k + 1..).unwrap_or_default();
                others.iter().map(move |&j| (i, j))
            });
            let apart = |(i, j): (usize, usize)| match (places.get(i), places.get(j)) {
                (Some(a), Some(b)) => grid.distance(*a, *b),
                _ => f64::INFINITY,
            };
            pairs.map(apart).fold(f64::INFINITY, f64::min)
        })
    },
};

/// How long agents were where they may not be.
pub static INTRUSION: Quantity = Quantity {
    name: "intrusion",
    help: "time that agents have spent in keep-out zones, summed over agents",
    takes: &[],
    lacking: |run| {
        let none = run.problem.keep_out.is_empty();
        none.then(|| "this problem has no keep-out zones".to_owned())
    },
    reader: |_, run| {
        let (interval, mut time) = (run.problem.control_interval, 0.0);
        Box::new(move |now| {
            time += interval * now.snapshot.cost.intruders as f64;
            time
        })
    },
};

/// What the forces have cost.
pub static ENERGY: Quantity = Quantity {
    name: "energy",
    help: "∫ Σ u² dt so far, or of squared speeds where agents stir",
    takes: &[],
    lacking: always_there,
    reader: |_, run| {
        let (interval, mut energy) = (run.problem.control_interval, 0.0);
        Box::new(move |now| {
            energy += interval * now.snapshot.cost.squared_effort;
            energy
        })
    },
};

/// What is lost or won of what the field is a density of.
pub static MASS: Quantity = Quantity {
    name: "mass",
    help: "change of the field's integral since the start, as a share of it",
    takes: &[],
    lacking: |run| {
        let none = run.problem.integral.is_none();
        none.then(|| "the field's integral means nothing in this problem".to_owned())
    },
    reader: |_, run| {
        let grid = run.problem.grid;
        let mut first = None;
        Box::new(move |now| {
            let integral = grid.integral(now.snapshot.field);
            let first = *first.get_or_insert(integral);
            (integral - first).abs() / first.abs().max(f64::MIN_POSITIVE)
        })
    },
};

/// How many do not answer.
pub static SILENT: Quantity = Quantity {
    name: "silent",
    help: "agents that did not answer in the last step",
    takes: &[],
    lacking: always_there,
    reader: |_, _| {
        Box::new(|now| match now.snapshot.step {
            0 => 0.0,
            _ => now
                .snapshot
                .deeds
                .iter()
                .filter(|deed| !deed.heard())
                .count() as f64,
        })
    },
};

fn without_boards(run: &Conditions<'_>) -> Option<String> {
    let none = run.boards == 0;
    none.then(|| "no agent is on a board; give the run a link".to_owned())
}

/// A figure summed over boards.
fn of_boards(figure: fn(&crate::rig::Diary) -> usize) -> Reader {
    Box::new(move |now| {
        let rig = now.rig.into_iter();
        let boards = rig.flat_map(|rig| (0..rig.len()).map(|index| figure(&rig.node(index).diary)));
        boards.sum::<usize>() as f64
    })
}

/// Answers of boards that came too late.
pub static LATE: Quantity = Quantity {
    name: "late",
    help: "answers of boards so far that did not come in time",
    takes: &[],
    lacking: without_boards,
    reader: |_, _| {
        of_boards(|diary| {
            let late = |state: &&State| matches!(state, State::Late);
            diary.states.iter().filter(late).count()
        })
    },
};

/// Boards that started again.
pub static RESETS: Quantity = Quantity {
    name: "resets",
    help: "starts of boards since the run began",
    takes: &[],
    lacking: without_boards,
    reader: |_, _| of_boards(|diary| diary.restarts),
};

/// Boards whose flash did not keep what it was given.
pub static LOST_POLICIES: Quantity = Quantity {
    name: "lost-policies",
    help: "starts of boards that had lost the policy they were given",
    takes: &[],
    lacking: without_boards,
    reader: |_, _| of_boards(|diary| diary.lost_policies),
};

/// How near boards came to running out of memory.
pub static STACK: Quantity = Quantity {
    name: "stack",
    help: "largest share of its stack that a board has used, as those tell that answer at the end",
    takes: &[],
    lacking: without_boards,
    reader: |_, run| {
        let last = run.steps;
        Box::new(move |now| {
            // Boards are asked once: in between they have better things to do.
            let Some(rig) = now.rig.filter(|_| now.snapshot.step == last) else {
                return 0.0;
            };
            rig.stack_shares().into_iter().fold(0.0, f64::max)
        })
    },
};
