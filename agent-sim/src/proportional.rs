//! Saturated proportional feedback: the yardstick for every policy.

use crate::grid::Edge;
use crate::link::{Link, LinkError};
use crate::problem::{Drives, ErrorSensing, Problem, Proportional};
use crate::sense::{HALO, View};
use agent_core::agent::{Action, Mode};
use agent_core::message::{Observation, Patch};

/// Kernel-averaged sensing reaches this many kernel widths to each side; beyond, weights are below
/// 0.02 and the mean no longer changes.
const KERNEL_REACH: f64 = 3.0;

/// Control intervals over which an agent that hears nothing fades to rest, as policies do.
const FAIL_SAFE: f64 = 20.0;

/// A feedback law on a problem, shared by the agents that follow it.
#[derive(Debug, Clone)]
pub struct Law {
    problem: Problem,
    law: Proportional,
    window: usize,
    fail_safe_us: f64,
}

impl Law {
    /// The law for a problem's agents.
    pub fn new(problem: &Problem, law: Proportional) -> Self {
        let sensors = &problem.sensors;
        let kernel = || {
            (0..sensors.axes)
                .map(|axis| {
                    let reach = KERNEL_REACH * problem.actuation.width / sensors.spacing(axis);
                    let window = 2 * reach.ceil() as usize;
                    // Nobody sees the same cell of a torus twice.
                    match sensors.edge {
                        Edge::Wall => window,
                        Edge::Periodic => window.min((sensors.points[axis] - 2 * HALO) / 2 * 2),
                    }
                })
                .max()
                .unwrap_or(0)
        };
        Self {
            problem: *problem,
            law,
            window: match law.sensing {
                ErrorSensing::Point => problem.sensing.window,
                ErrorSensing::Kernel => kernel(),
            },
            fail_safe_us: FAIL_SAFE * problem.control_interval * 1e6,
        }
    }

    /// What an agent must be shown.
    pub fn view(&self) -> View {
        View {
            window: self.window,
            target: self.problem.tracking,
        }
    }

    /// What an agent does about what it sees.
    fn action(&self, observation: &Observation<'_>) -> Action {
        let actuation = &self.problem.actuation;
        let mut action = Action::none(Mode::Active);
        match actuation.drives {
            Drives::Source => {
                let [error] = self.averages(observation, |around| [around.error]);
                let force = -self.law.gain * error;
                action.force = force.clamp(-actuation.force_max, actuation.force_max) as f32;
            }
            Drives::Flow => {
                let spacing = [0, 1].map(|axis| self.problem.sensors.spacing(axis));
                let descent = self.averages(observation, |around| {
                    [0, 1].map(|axis| around.error * around.slope(axis) / spacing[axis])
                });
                action.velocity = descent.map(|d| {
                    let limit = actuation.velocity_max;
                    (self.law.gain * d).clamp(-limit, limit) as f32
                });
            }
        }
        action
    }

    /// The means of `figures` over the cells that this law goes by.
    fn averages<const N: usize>(
        &self,
        observation: &Observation<'_>,
        figures: impl Fn(&Around<'_>) -> [f64; N],
    ) -> [f64; N] {
        let cells = Cells::new(&observation.patch, self.problem.sensors.axes);
        // The agent's own cell stands half a window and the halo into the patch.
        let own = (self.window / 2 + HALO) as isize;
        if self.law.sensing == ErrorSensing::Point {
            return figures(&cells.around([own as usize, own as usize]));
        }
        let weights = [0, 1].map(|axis| self.weights(observation, axis, own));
        let (mut sums, mut total) = ([0.0; N], 0.0);
        for (row, down) in cells.inside(0).zip(&weights[0]) {
            for (column, along) in cells.inside(1).zip(&weights[1]) {
                let weight = down * along;
                let values = figures(&cells.around([row, column]));
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += weight * value;
                }
                total += weight;
            }
        }
        sums.map(|sum| sum / total)
    }

    /// The actuation kernel's factors along an axis at the patch's cells inside the domain.
    fn weights(&self, observation: &Observation<'_>, axis: usize, own: isize) -> Vec<f64> {
        let (problem, sensors) = (&self.problem, &self.problem.sensors);
        if axis >= sensors.axes {
            return vec![1.0];
        }
        let position = f64::from(observation.position[axis]);
        let cell = problem.cell_of(observation.position)[axis] as isize;
        let inside = observation.patch.inside[axis];
        (inside.first..=inside.last)
            .map(|k| {
                let steps = cell + k as isize - own;
                let x = sensors.low[axis] + sensors.spacing(axis) * steps as f64;
                let d = (x - position) / problem.actuation.width;
                (-0.5 * d * d).exp()
            })
            .collect()
    }
}

/// A patch as an array of errors.
struct Cells<'a> {
    patch: &'a Patch<'a>,
    columns: usize,
}

/// A cell of a patch and its neighbours.
struct Around<'a> {
    cells: &'a Cells<'a>,
    at: [usize; 2],
    error: f64,
}

impl<'a> Cells<'a> {
    fn new(patch: &'a Patch<'a>, axes: usize) -> Self {
        let columns = match axes {
            1 => 1,
            _ => patch.field.len().isqrt(),
        };
        Self { patch, columns }
    }

    fn inside(&self, axis: usize) -> std::ops::RangeInclusive<usize> {
        let span = self.patch.inside[axis];
        usize::from(span.first)..=usize::from(span.last)
    }

    fn around(&'a self, [row, column]: [usize; 2]) -> Around<'a> {
        let at = [row, if self.columns == 1 { 0 } else { column }];
        let target = f64::from(self.patch.target.get(self.index(at)).unwrap_or(0.0));
        Around {
            cells: self,
            at,
            error: self.field(at) - target,
        }
    }

    fn index(&self, [row, column]: [usize; 2]) -> usize {
        row * self.columns + column
    }

    fn field(&self, at: [usize; 2]) -> f64 {
        f64::from(self.patch.field.get(self.index(at)).unwrap_or(0.0))
    }
}

impl Around<'_> {
    /// Slope of the field per cell: central differences, one-sided at the patch's and domain's rims.
    fn slope(&self, axis: usize) -> f64 {
        let inside = self.cells.inside(axis);
        let neighbour = |k: usize| {
            let mut at = self.at;
            at[axis] = k.clamp(*inside.start(), *inside.end());
            (self.cells.field(at), at[axis])
        };
        let (low, from) = neighbour(self.at[axis].saturating_sub(1));
        let (high, to) = neighbour(self.at[axis] + 1);
        (high - low) / (to - from).max(1) as f64
    }
}

/// An agent that follows a law. Like a node with a policy it holds its last command, fading, when
/// it is shown nothing.
#[derive(Debug, Clone)]
pub struct ProportionalAgent<'l> {
    law: &'l Law,
    held: Action,
    seen_us: u64,
    fresh: bool,
}

impl<'l> ProportionalAgent<'l> {
    /// An agent that waits for its first patch.
    pub fn new(law: &'l Law) -> Self {
        Self {
            law,
            held: Action::none(Mode::Waiting),
            seen_us: 0,
            fresh: false,
        }
    }
}

impl Link for ProportionalAgent<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let action = self.law.action(observation);
        // What a broken sensor shows is as good as nothing.
        if action.force.is_finite() && action.velocity.iter().all(|v| v.is_finite()) {
            self.held = action;
            self.seen_us = observation.now_us;
            self.fresh = true;
        }
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        if std::mem::take(&mut self.fresh) || self.held.mode == Mode::Waiting {
            return Ok(Some(self.held));
        }
        let blind_us = now_us.saturating_sub(self.seen_us) as f64;
        let fade = 1.0 - blind_us / self.law.fail_safe_us;
        if fade <= 0.0 {
            return Ok(Some(Action::none(Mode::FailedSafe)));
        }
        Ok(Some(Action {
            force: self.held.force * fade as f32,
            velocity: self.held.velocity.map(|v| v * fade as f32),
            mode: Mode::Holding,
        }))
    }
}
