//! What somebody does on the way with their own hands: they heat a place, they want another profile, they
//! put one more agent down.

use problem::grid::Grid;
use problem::{Arrival, Change, Course, Drives, Episode, Problem};
use serde::{Deserialize, Serialize};

/// A bump that is put on the field or on its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// What is touched.
    pub what: Touched,
    /// From when on, as a share of the run.
    pub at: f64,
    /// Until when, as a share of the run; to its end if this is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// Its middle, a number for each axis.
    pub place: Vec<f64>,
    /// How far from there it is down to 61 % of its height.
    pub radius: f64,
    /// Its height in units of the field: of a push, what the field would rise by in that time if nothing
    /// else happened to it.
    pub amount: f64,
}

/// What is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Touched {
    /// The field is pushed.
    Push,
    /// Something else is wanted.
    Target,
}

/// An agent that is put down on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    /// When it begins to act, as a share of the run.
    pub at: f64,
    /// Where, a number for each axis.
    pub place: Vec<f64>,
}

/// Why something cannot be done by hand.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTouch {
    /// A place with more or fewer coordinates than the domain.
    #[error("its place has {given} coordinates, and {problem} has {axes}")]
    Axes {
        /// Name of the problem.
        problem: &'static str,
        /// Coordinates given.
        given: usize,
        /// Axes of the domain.
        axes: usize,
    },
    /// A place outside the domain.
    #[error("{coordinate} lies outside the domain, which reaches from {low} to {high}")]
    Outside {
        /// As given.
        coordinate: f64,
        /// Where the axis begins.
        low: f64,
        /// Where it ends.
        high: f64,
    },
    /// A time outside the run, or an end before the beginning.
    #[error(
        "it is from {at} to {until} of the run; give shares from 0 to 1, the first one smaller"
    )]
    Time {
        /// Its beginning.
        at: f64,
        /// Its end.
        until: f64,
    },
    /// A radius or a height that is none.
    #[error("{what} is {value}; give a number{}", if *.above { " above 0" } else { "" })]
    Number {
        /// Which.
        what: &'static str,
        /// As given.
        value: f64,
        /// Whether it has to be positive.
        above: bool,
    },
    /// The problem has nothing to push.
    #[error("what carries the field of {0} is its agents' flow, which nobody else can push")]
    Carried(&'static str),
    /// The problem has no target.
    #[error("the field of {0} is to be brought to zero, and agents see no other target")]
    NoTarget(&'static str),
}

/// The place on the domain that these numbers say.
fn placed(problem: &Problem, place: &[f64]) -> Result<[f64; 2], BadTouch> {
    let grid = &problem.grid;
    if place.len() != grid.axes {
        return Err(BadTouch::Axes {
            problem: problem.name,
            given: place.len(),
            axes: grid.axes,
        });
    }
    for (axis, &coordinate) in place.iter().enumerate() {
        let (low, high) = (grid.low[axis], grid.high[axis]);
        if !(low..=high).contains(&coordinate) {
            return Err(BadTouch::Outside {
                coordinate,
                low,
                high,
            });
        }
    }
    Ok(std::array::from_fn(|axis| {
        place.get(axis).copied().unwrap_or(0.0)
    }))
}

fn within_run(at: f64, until: f64) -> Result<(), BadTouch> {
    let share = 0.0..=1.0;
    match share.contains(&at) && share.contains(&until) && at < until {
        true => Ok(()),
        false => Err(BadTouch::Time { at, until }),
    }
}

impl Touch {
    /// Whether it can be done to this problem.
    pub fn check(&self, problem: &Problem) -> Result<(), BadTouch> {
        placed(problem, &self.place)?;
        within_run(self.at, self.until.unwrap_or(1.0))?;
        let number =
            |what, value: f64, above: bool| match value.is_finite() && (value > 0.0 || !above) {
                true => Ok(()),
                false => Err(BadTouch::Number { what, value, above }),
            };
        number("radius", self.radius, true)?;
        number("amount", self.amount, false)?;
        match self.what {
            Touched::Push if problem.actuation.drives == Drives::Flow => {
                Err(BadTouch::Carried(problem.name))
            }
            Touched::Target if !problem.tracking => Err(BadTouch::NoTarget(problem.name)),
            _ => Ok(()),
        }
    }

    /// Adds it to an episode of so many steps.
    fn add_to(&self, episode: &mut Episode, problem: &Problem, steps: usize) {
        let Ok(place) = placed(problem, &self.place) else {
            return;
        };
        let step = |share: f64| (share * steps as f64).round();
        let (from, until) = (step(self.at), step(self.until.unwrap_or(1.0)));
        let time = (until - from).max(1.0) * problem.control_interval;
        let (field, height) = match self.what {
            Touched::Push => (problem.driven_field(), self.amount / time),
            Touched::Target => (problem.seen_field(), self.amount),
        };
        let mut course = vec![(from, 0.0), (from, 1.0)];
        if self.until.is_some() {
            course.extend([(until, 1.0), (until, 0.0)]);
        }
        let mut values = vec![0.0; problem.fields() * problem.sensors.len()];
        let bump = bump(&problem.sensors, place, self.radius, height);
        values[field * bump.len()..][..bump.len()].copy_from_slice(&bump);
        let change = Change {
            field: values,
            course: Course(course),
        };
        match self.what {
            Touched::Push => episode.pushes.push(change),
            Touched::Target => episode.shifts.push(change),
        }
    }
}

/// A bell of that height around a place.
fn bump(grid: &Grid, place: [f64; 2], radius: f64, height: f64) -> Vec<f32> {
    let at = |j| grid.distance(grid.place(j), place) / radius;
    let points = 0..grid.len();
    let values = points.map(|j| height * libm::exp(-0.5 * at(j) * at(j)));
    values.map(|z| z as f32).collect()
}

impl Added {
    /// The agent as the run knows it.
    pub fn arrival(&self, problem: &Problem) -> Result<Arrival, BadTouch> {
        let place = placed(problem, &self.place)?;
        match (0.0..=1.0).contains(&self.at) {
            true => Ok(Arrival { at: self.at, place }),
            false => Err(BadTouch::Time {
                at: self.at,
                until: 1.0,
            }),
        }
    }
}

/// An episode of so many steps with what is done on the way.
pub fn touched(
    mut episode: Episode,
    problem: &Problem,
    steps: usize,
    touches: &[Touch],
    arrivals: &[Arrival],
) -> Episode {
    for touch in touches {
        touch.add_to(&mut episode, problem, steps);
    }
    episode.arrivals.extend(arrivals);
    episode
}
