//! Saturated proportional feedback: the yardstick for every policy.

use crate::held::Held;
use crate::link::{Link, LinkError};
use crate::sense::{HALO, View};
use agent_core::agent::{Action, Mode};
use agent_core::message::{Observation, Patch, Span};
use problem::grid::Edge;
use problem::{Drives, ErrorSensing, Problem, Proportional};
use std::cell::RefCell;

/// Kernel-averaged sensing reaches this many kernel widths to each side; beyond, weights are below
/// 0.02 and the mean no longer changes.
const KERNEL_REACH: f64 = 3.0;

/// A feedback law on a problem, shared by the agents that follow it.
#[derive(Debug, Clone)]
pub struct Law {
    problem: Problem,
    law: Proportional,
    window: usize,
    /// What each actuator does at the sensors' cells, where that was measured and counts.
    maps: Option<Vec<Vec<f64>>>,
}

impl Law {
    /// The law for a problem's agents.
    pub fn new(problem: &Problem, law: Proportional) -> Self {
        let sensors = &problem.sensors;
        let kernel = || {
            (0..sensors.axes)
                .map(|axis| {
                    let sensing = &problem.sensing;
                    let apart = sensing.spacing as f64 * sensors.spacing(axis);
                    let reach = KERNEL_REACH * problem.actuation.width / apart;
                    let window = 2 * reach.ceil() as usize;
                    // Nobody sees the same cell of a torus twice.
                    match sensors.edges[axis] {
                        Edge::Wall => window,
                        Edge::Periodic => window.min(sensing.widest(sensors.points[axis]) / 2 * 2),
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
            maps: (problem.kit.filter(|_| law.sensing == ErrorSensing::Kernel)).and_then(|kit| {
                kit.influence(&Problem {
                    grid: *sensors,
                    ..*problem
                })
            }),
        }
    }

    /// What an agent must be shown.
    pub fn view(&self) -> View {
        View {
            window: self.window,
            target: self.problem.tracking,
            wide: None,
        }
    }

    /// What an agent does about what it sees.
    pub(crate) fn action(&self, agent: usize, observation: &Observation<'_>) -> Action {
        let actuation = &self.problem.actuation;
        let mut action = Action::none(Mode::Active);
        if observation.patch.field.is_empty() {
            // Nothing was read: as blind as one whose cells are all dead.
            action.force = f32::NAN;
            action.velocity = [f32::NAN; 2];
            return action;
        }
        SCRATCH.with_borrow_mut(|seen| {
            seen.read(&observation.patch, self.problem.sensors.axes);
            match actuation.drives {
                Drives::Source => {
                    let error = |at| seen.error(at);
                    let [error] = match &self.maps {
                        None => self.averages(observation, seen, |at| [error(at)]),
                        Some(maps) => [self.mapped(&maps[agent], observation, seen, error)],
                    };
                    let force = -self.law.gain * error;
                    action.force = force.clamp(-actuation.force_max, actuation.force_max) as f32;
                }
                Drives::Flow => {
                    let spacing = [0, 1].map(|axis| self.apart(axis));
                    let descent = self.averages(observation, seen, |at| {
                        [0, 1].map(|axis| seen.error(at) * seen.slope(at, axis) / spacing[axis])
                    });
                    action.velocity = descent.map(|d| {
                        let limit = actuation.velocity_max;
                        (self.law.gain * d).clamp(-limit, limit) as f32
                    });
                }
            }
        });
        action
    }

    /// The means of `figures` over the cells that this law goes by.
    fn averages<const N: usize>(
        &self,
        observation: &Observation<'_>,
        seen: &Seen,
        figures: impl Fn([usize; 2]) -> [f64; N],
    ) -> [f64; N] {
        // The agent's own cell stands half a window and the halo into the patch.
        let own = self.window / 2 + HALO;
        if self.law.sensing == ErrorSensing::Point {
            let column = if seen.columns == 1 { 0 } else { own };
            return figures([own, column]);
        }
        let weights = [0, 1].map(|axis| self.weights(observation, axis, own as isize));
        let (mut sums, mut total) = ([0.0; N], 0.0);
        for (row, down) in seen.inside(0).zip(&weights[0]) {
            for (column, along) in seen.inside(1).zip(&weights[1]) {
                let weight = down * along;
                for (sum, value) in sums.iter_mut().zip(figures([row, column])) {
                    *sum += weight * value;
                }
                total += weight;
            }
        }
        sums.map(|sum| sum / total)
    }

    /// The mean error as far as an actuator's map says that its force would change it: what a force lowers
    /// where it is raised counts against it.
    fn mapped(
        &self,
        map: &[f64],
        observation: &Observation<'_>,
        seen: &Seen,
        error: impl Fn([usize; 2]) -> f64,
    ) -> f64 {
        let sensors = &self.problem.sensors;
        let cell = self.problem.cell_of(observation.position);
        let (own, spacing) = (self.window / 2 + HALO, self.problem.sensing.spacing);
        let at = |axis: usize, k: usize| {
            let points = sensors.points[axis];
            match axis < sensors.axes {
                // As many rounds more as keep it from going below zero.
                true => (cell[axis] + spacing * k + (points - 1) * spacing * own) % points,
                false => 0,
            }
        };
        let (mut sum, mut total) = (0.0, 0.0);
        for row in seen.inside(0) {
            for column in seen.inside(1) {
                let weight = map[at(0, row) * sensors.points[1] + at(1, column)];
                sum += weight * error([row, column]);
                total += weight.abs();
            }
        }
        if total > 0.0 { sum / total } else { 0.0 }
    }

    /// The distance of two cells beside each other along an axis.
    fn apart(&self, axis: usize) -> f64 {
        self.problem.sensing.spacing as f64 * self.problem.sensors.spacing(axis)
    }

    /// The actuation kernel's factors along an axis at the patch's cells inside the domain.
    fn weights(&self, observation: &Observation<'_>, axis: usize, own: isize) -> Vec<f64> {
        let (problem, sensors) = (&self.problem, &self.problem.sensors);
        if axis >= sensors.axes {
            return vec![1.0];
        }
        let position = f64::from(observation.position[axis]);
        let spacing = problem.sensing.spacing as isize;
        let cell = problem.cell_of(observation.position)[axis] as isize;
        let inside = observation.patch.inside[axis];
        (inside.first..=inside.last)
            .map(|k| {
                let steps = cell + spacing * (k as isize - own);
                let x = sensors.low[axis] + sensors.spacing(axis) * steps as f64;
                let d = (x - position) / problem.actuation.width;
                libm::exp(-0.5 * d * d)
            })
            .collect()
    }
}

thread_local! {
    /// What the agent at work sees; agents of one thread take turns.
    static SCRATCH: RefCell<Seen> = RefCell::default();
}

/// A patch, taken apart.
#[derive(Debug, Default)]
struct Seen {
    field: Vec<f32>,
    /// Empty where the target is zero.
    target: Vec<f32>,
    columns: usize,
    inside: [Span; 2],
}

impl Seen {
    fn read(&mut self, patch: &Patch<'_>, axes: usize) {
        self.field.clear();
        self.field.extend(patch.field.iter());
        self.target.clear();
        self.target.extend(patch.target.iter());
        self.inside = patch.inside;
        self.columns = match axes {
            1 => 1,
            _ => self.field.len().isqrt(),
        };
    }

    fn inside(&self, axis: usize) -> std::ops::RangeInclusive<usize> {
        let span = self.inside[axis];
        usize::from(span.first)..=usize::from(span.last)
    }

    fn field(&self, [row, column]: [usize; 2]) -> f64 {
        f64::from(self.field[row * self.columns + column])
    }

    fn error(&self, [row, column]: [usize; 2]) -> f64 {
        let index = row * self.columns + column;
        f64::from(self.field[index]) - self.target.get(index).map_or(0.0, |t| f64::from(*t))
    }

    /// Slope of the field per cell: central differences, one-sided at the rims of patch and domain.
    fn slope(&self, at: [usize; 2], axis: usize) -> f64 {
        let inside = self.inside(axis);
        let neighbour = |k: usize| {
            let mut next = at;
            next[axis] = k.clamp(*inside.start(), *inside.end());
            (self.field(next), next[axis])
        };
        let (low, from) = neighbour(at[axis].saturating_sub(1));
        let (high, to) = neighbour(at[axis] + 1);
        (high - low) / (to - from).max(1) as f64
    }
}

/// An agent that follows a law. Like a node with a policy it holds its last command, fading, when
/// it is shown nothing.
#[derive(Debug, Clone)]
pub struct ProportionalAgent<'l> {
    law: &'l Law,
    /// Which of the actuators is its own.
    actuator: usize,
    held: Held,
}

impl<'l> ProportionalAgent<'l> {
    /// An agent that waits for its first patch.
    pub fn new(law: &'l Law, actuator: usize) -> Self {
        Self {
            law,
            actuator,
            held: Held::new(&law.problem),
        }
    }
}

impl Link for ProportionalAgent<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let action = self.law.action(self.actuator, observation);
        self.held.take(action, observation.now_us);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        Ok(Some(self.held.answer(now_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sense::Eye;
    use problem::published::{density_2d, heat_1d::PROBLEM};

    fn shown(law: &Law, position: [f32; 2], field: &[f32], target: &[f32]) -> Action {
        let mut eye = Eye::new(law.view(), &law.problem);
        let patch = eye.look(&law.problem, field, target, position);
        let observation = Observation {
            now_us: 0,
            position,
            patch,
        };
        law.action(0, &observation)
    }

    /// With an error of −0.04 and gain 100 the command is 4; heat-1d's interval is 1000 µs, so it
    /// has faded after 20,000 µs.
    #[test]
    fn a_blind_proportional_agent_fades_and_rests() {
        for sensing in [ErrorSensing::Point, ErrorSensing::Kernel] {
            let law = Law::new(
                &PROBLEM,
                Proportional {
                    gain: 100.0,
                    sensing,
                },
            );
            let mut agent = ProportionalAgent::new(&law, 0);
            let mut answer = |now_us, error: Option<f32>| {
                if let Some(error) = error {
                    let mut eye = Eye::new(law.view(), &PROBLEM);
                    let (field, position) = ([error; 100], [0.5, 0.0]);
                    let patch = eye.look(&PROBLEM, &field, &[0.0; 100], position);
                    let observation = Observation {
                        now_us,
                        position,
                        patch,
                    };
                    agent.send(&observation).unwrap();
                }
                let action = agent.receive(now_us).unwrap().unwrap();
                ((1000.0 * action.force).round() / 1000.0, action.mode)
            };
            assert_eq!(answer(0, None), (0.0, Mode::Waiting));
            assert_eq!(answer(1_000, Some(-0.04)), (4.0, Mode::Active));
            assert_eq!(answer(6_000, None), (3.0, Mode::Holding));
            assert_eq!(answer(11_000, Some(f32::NAN)), (2.0, Mode::Holding));
            assert_eq!(answer(21_000, None), (0.0, Mode::FailedSafe));
            assert_eq!(answer(22_000, Some(0.04)), (-4.0, Mode::Active));
        }
    }

    /// A field that rises along axis 0 and is too high everywhere: carried up the slope, every
    /// place gets the lower density from below.
    #[test]
    fn stirrers_push_along_the_slope_where_there_is_too_much() {
        let problem = &density_2d::PROBLEM;
        let grid = &problem.sensors;
        let field: Vec<f32> = (0..grid.len()).map(|i| grid.place(i)[0] as f32).collect();
        for (target, towards) in [(-1.0, 1.0), (2.0, -1.0)] {
            let law = Law::new(problem, problem.baseline.unwrap());
            let action = shown(&law, [0.5, 0.6], &field, &vec![target; grid.len()]);
            assert!(action.velocity[0] * towards > 0.0, "{action:?}");
            assert!(
                action.velocity[1].abs() < 1e-4 && action.force == 0.0,
                "{action:?}"
            );
        }
    }
}
