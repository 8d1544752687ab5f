//! A control problem: what the field does, what agents can do to it and see of it, how episodes are
//! drawn and how they are scored.

use crate::coefficient::{Coefficient, Coefficients};
use crate::grid::{Grid, Points};
use crate::kit::Kit;
use crate::limit::{self, TooMany};
use crate::pde::Stepper;
use rand_chacha::ChaCha8Rng;

/// Everything about a problem that is a number or a name.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// The name on the command line and in policy blobs.
    pub name: &'static str,
    /// One line for `--help` and reports.
    pub summary: &'static str,
    /// What the field is, for axes and legends.
    pub quantity: &'static str,
    /// The grid that the truth is computed on; the sensors' unless
    /// [`with_grid`](Self::with_grid) changed it.
    pub grid: Grid,
    /// The published grid, of as many points of the same spacing on a longer domain: episodes are
    /// stored on it, and what an agent sees of it has the same size everywhere.
    pub sensors: Grid,
    /// Names of the array axes.
    pub axis_names: [&'static str; 2],
    /// Time between two actions, in time units of the equation (read as seconds by agents).
    pub control_interval: f64,
    /// Steps of the solver in one control interval.
    pub substeps: usize,
    /// Actions in one episode.
    pub horizon: usize,
    /// Agents in the published experiment.
    pub agents: usize,
    /// The lowest and highest coordinates an agent can take, per axis.
    pub reach: [[f64; 2]; 2],
    /// What one agent does to the field.
    pub actuation: Actuation,
    /// What one agent sees of the field.
    pub sensing: Sensing,
    /// What the integral of the field over the domain is called, where runs are to report it: a mass
    /// that the equation conserves, or that it should. See [`Grid::integral`].
    pub integral: Option<&'static str>,
    /// Whether there is a target field; otherwise the field is to be brought to zero.
    pub tracking: bool,
    /// How runs are scored.
    pub scoring: Scoring,
    /// Places that agents must not enter.
    pub keep_out: &'static [Disc],
    /// Terms of the training loss.
    pub loss: LossWeights,
    /// Where `agents` agents start.
    pub placement: fn(&Problem, agents: usize) -> Vec<[f64; 2]>,
    /// Draws the initial field and the target of one episode, on the sensors' grid.
    pub draw: fn(&Problem, &mut ChaCha8Rng) -> Episode,
    /// The published test episodes, if there are any.
    pub test_set: Option<TestSet>,
    /// Builds the solver that is the truth of this problem, for one `parts`-th of a control interval.
    pub stepper: fn(&Problem, parts: usize) -> Box<dyn Stepper<f64>>,
    /// The longest solver step that the explicit parts of the scheme can bear on this grid;
    /// infinite where nothing is explicit.
    pub longest_step: fn(&Problem) -> f64,
    /// The feedback that every result is shown beside, tuned for the published number of agents, if
    /// somebody tuned it.
    pub baseline: Option<Proportional>,
    /// The feedback of agents that spread over the errors first, tuned likewise; the
    /// [`baseline`](Self::baseline)'s if there is none.
    pub coverage: Option<Proportional>,
    /// The policy that ships with the program, if one does.
    pub policy: Option<&'static [u8]>,
    /// The file that describes it, where one does; none for problems in Rust.
    pub kit: Option<&'static Kit>,
    /// The name of the [`Variant`] that this form of the problem is; none for the problem itself.
    pub form: Option<&'static str>,
    /// Other forms of the same problem.
    pub variants: &'static [Variant],
    /// What can be changed about the equation, with [`with_physics`](Self::with_physics).
    pub coefficients: &'static [Coefficient],
    /// The values of these, in their order; read them by [`coefficient`](Self::coefficient).
    pub physics: Coefficients,
}

/// Another form of a problem: the same task under other physics.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// Its name on the command line.
    pub name: &'static str,
    /// What differs and why it exists.
    pub summary: &'static str,
    /// What changes beside [`Problem::form`], which the solvers go by; [`NOTHING_ELSE`](crate::coefficient::NOTHING_ELSE)
    /// where that is all.
    pub apply: fn(Problem) -> Problem,
}

/// Stored episodes.
#[derive(Debug, Clone, Copy)]
pub struct TestSet {
    /// Where they come from, for messages.
    pub origin: &'static str,
    /// The `.npy` file, built in so that the program needs nothing beside itself.
    pub bytes: &'static [u8],
}

/// A form of a problem that a part of the program has no implementation of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} cannot do {form}; {remedy}")]
pub struct NotImplemented {
    /// Who cannot.
    pub part: &'static str,
    /// What it cannot do: the problem and what is special about it.
    pub form: String,
    /// What to do instead.
    pub remedy: &'static str,
}

/// Gaussian actuators, summed over agents.
#[derive(Debug, Clone, Copy)]
pub struct Actuation {
    /// What the kernels carry.
    pub drives: Drives,
    /// Standard deviation of the kernel.
    pub width: f64,
    /// Whether each kernel is divided by its largest value on the grid, rather than having its
    /// peak of 1 between grid points.
    pub peak_on_grid: bool,
    /// Largest |force|; 0 for agents without force.
    pub force_max: f64,
    /// Largest |velocity| of a mobile agent; 0 for fixed ones.
    pub velocity_max: f64,
}

/// What an agent's kernel carries into the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drives {
    /// Its force: a source of the field.
    Source,
    /// Its velocity: agents stir the medium that carries the field.
    Flow,
}

/// Saturated proportional feedback: `u = clip(−gain · e)` from agents that stay where they are;
/// where agents stir, `v = clip(gain · e ∇z)`, the direction in which the squared error falls
/// fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportional {
    /// Force per unit of error.
    pub gain: f64,
    /// Which error e each agent goes by.
    pub sensing: ErrorSensing,
}

/// The error a proportional agent goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSensing {
    /// The error in the agent's grid cell.
    Point,
    /// The mean error around the agent, weighted by its own actuation kernel.
    Kernel,
}

/// The window of the field around an agent.
#[derive(Debug, Clone, Copy)]
pub struct Sensing {
    /// Grid points in the window along each axis; it covers `c - window/2 .. c + window/2` around
    /// the agent's cell `c`.
    pub window: usize,
    /// Grid points from one of them to the next: 1 where it leaves out none.
    pub spacing: usize,
    /// How a position becomes a cell.
    pub cells: Cells,
}

impl Sensing {
    /// Grid points that a window of so many takes along an axis, with a halo of one at each end.
    pub fn span(&self, window: usize) -> usize {
        self.spacing * (window + 1) + 1
    }

    /// The widest window along an axis of so many points in which no cell is seen twice.
    pub fn widest(&self, points: usize) -> usize {
        (points.saturating_sub(1) / self.spacing).saturating_sub(1)
    }
}

/// How a position `s` in units of its axis' length becomes a grid index. The authors' code has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// floor(s (N − 1)).
    Intervals,
    /// floor(s N).
    Points,
}

/// How runs are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scoring {
    /// The figure of the published table.
    pub headline: Headline,
    /// Which states count.
    pub records: Records,
    /// The step from which on they count in means over time.
    pub from: usize,
}

/// The published final error, after every step.
pub const FINAL: Scoring = Scoring {
    headline: Headline::Final,
    records: Records::AfterAction,
    from: 0,
};

/// The figure that the published table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// The mean squared error of the last record.
    Final,
    /// Its mean over all records.
    TimeMean,
}

/// Which states of a run are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Those after each action; the initial one does not count.
    AfterAction,
    /// Those before each action: the initial one counts, the one after the last action does not.
    BeforeAction,
}

/// A round place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disc {
    /// Its centre.
    pub centre: [f64; 2],
    /// Its radius.
    pub radius: f64,
}

impl Disc {
    /// Whether it contains a point.
    pub fn contains(&self, [x, y]: [f64; 2]) -> bool {
        let [cx, cy] = self.centre;
        libm::hypot(x - cx, y - cy) < self.radius
    }
}

/// Weights of the loss; every term is a mean over time and space or agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossWeights {
    /// Squared error to the target, over the scored states.
    pub track: f64,
    /// Mean u² + `velocity_effort` · mean |v|².
    pub effort: f64,
    /// Share of |v|² in the effort.
    pub velocity_effort: f64,
    /// Squared excess beyond `margin` from the walls.
    pub bound: f64,
    /// Width of the band along the walls that `bound` keeps free.
    pub margin: f64,
    /// Squared shortfall of the distance between two agents below `safe_distance`, over all ordered pairs.
    pub collision: f64,
    /// Distance that `collision` asks for.
    pub safe_distance: f64,
    /// Squared shortfall of the distance to a keep-out zone's rim below `obstacle_margin`.
    pub obstacle: f64,
    /// Distance that `obstacle` asks for.
    pub obstacle_margin: f64,
    /// Squared change of velocity from one step to the next.
    pub acceleration: f64,
}

impl LossWeights {
    /// No term at all.
    pub const NONE: Self = Self {
        track: 0.0,
        effort: 0.0,
        velocity_effort: 0.0,
        bound: 0.0,
        margin: 0.0,
        collision: 0.0,
        safe_distance: 0.0,
        obstacle: 0.0,
        obstacle_margin: 0.0,
        acceleration: 0.0,
    };
}

/// One control task: from this field to that one. Where there are several fields, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Episode {
    /// The field at time 0.
    pub initial: Vec<f32>,
    /// The field to reach and keep.
    pub target: Vec<f32>,
    /// Where the target goes in the course of the episode, one after the other; none if it stays.
    pub goals: Vec<Change>,
    /// What acts on the field besides the agents, added up.
    pub pushes: Vec<Change>,
    /// What is added to the target on the way, by hand.
    pub shifts: Vec<Change>,
    /// Agents that come on the way, besides those that are there from the beginning.
    pub arrivals: Vec<Arrival>,
}

/// An agent that comes on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// The share of the run after which it acts.
    pub at: f64,
    /// Where it stands until then; unused axes are 0.
    pub place: [f64; 2],
}

/// A field that comes and goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The field at full strength.
    pub field: Vec<f32>,
    /// How much of it is there when.
    pub course: Course,
}

/// A number over time: straight lines between (step, value), the first value before and the last one
/// after. Two values at one step are a jump, of which the second counts from that step on.
#[derive(Debug, Clone, PartialEq)]
pub struct Course(pub Vec<(f64, f64)>);

impl Course {
    /// The value in the control interval that begins with `step`.
    pub fn at(&self, step: usize) -> f64 {
        let (now, points) = (step as f64, &self.0);
        let after = points.partition_point(|&(step, _)| step <= now);
        match (after.checked_sub(1).map(|k| points[k]), points.get(after)) {
            (Some((t0, a)), Some(&(t1, b))) => a + (b - a) * (now - t0) / (t1 - t0),
            (Some((_, last)), None) => last,
            (None, Some(&(_, first))) => first,
            (None, None) => 0.0,
        }
    }
}

impl Episode {
    /// From one field to another, which stays, with nobody else about.
    pub fn between(initial: Vec<f32>, target: Vec<f32>) -> Self {
        Self {
            initial,
            target,
            ..Self::default()
        }
    }

    /// What all fields should be after so many steps.
    pub fn target_at(&self, step: usize) -> Vec<f32> {
        let mut target = self.target.clone();
        for goal in &self.goals {
            let share = goal.course.at(step) as f32;
            for (target, to) in target.iter_mut().zip(&goal.field) {
                *target += share * (to - *target);
            }
        }
        for shift in &self.shifts {
            let share = shift.course.at(step) as f32;
            for (target, shift) in target.iter_mut().zip(&shift.field) {
                *target += share * shift;
            }
        }
        target
    }

    /// Whether the target ever changes.
    pub fn has_one_target(&self) -> bool {
        self.goals.is_empty() && self.shifts.is_empty()
    }

    /// Whether anything beside the agents changes in its course.
    pub fn is_steady(&self) -> bool {
        self.has_one_target() && self.pushes.is_empty()
    }

    /// The same with every field in another form.
    pub fn mapped(&self, form: impl Fn(&[f32]) -> Vec<f32>) -> Self {
        let change = |change: &Change| Change {
            field: form(&change.field),
            course: change.course.clone(),
        };
        Self {
            initial: form(&self.initial),
            target: form(&self.target),
            goals: self.goals.iter().map(change).collect(),
            pushes: self.pushes.iter().map(change).collect(),
            shifts: self.shifts.iter().map(change).collect(),
            arrivals: self.arrivals.clone(),
        }
    }
}

/// Why a problem cannot be solved as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadProblem {
    /// Fewer grid points than an agent's patch has.
    #[error(
        "a grid of {points} points is too small: an agent of {problem} sees {needed} cells along \
         each axis, halo included; give --grid {needed} or more"
    )]
    GridTooSmall {
        /// Name of the problem.
        problem: &'static str,
        /// Points along the shorter axis.
        points: usize,
        /// Cells of a patch.
        needed: usize,
    },
    /// More points, solver steps or agents than programs take.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// A plane's grid for a line.
    #[error("{problem} is on a line; give --grid {first}, not {first}x{second}")]
    OneAxis {
        /// Name of the problem.
        problem: &'static str,
        /// Points along the first axis.
        first: usize,
        /// Points along the second, which is not there.
        second: usize,
    },
    /// A solver step beyond the stability of an explicit part.
    #[error(
        "a solver step of {step:.3e} is unstable for {problem} on a grid of {grid}: at most {longest:.3e}; \
         give --substeps {substeps} or more"
    )]
    Unstable {
        /// Name of the problem.
        problem: &'static str,
        /// The grid.
        grid: String,
        /// The step asked for.
        step: f64,
        /// The longest stable one.
        longest: f64,
        /// Solver steps per control interval that are enough.
        substeps: usize,
    },
    /// No such form of the problem.
    #[error("{problem} has no variant '{asked}'; {known}")]
    UnknownVariant {
        /// Name of the problem.
        problem: &'static str,
        /// What was asked for.
        asked: String,
        /// A clause that lists what there is.
        known: String,
    },
    /// No such coefficient.
    #[error("{problem} has no coefficient '{asked}'; {known}")]
    UnknownCoefficient {
        /// Name of the problem.
        problem: &'static str,
        /// What was asked for.
        asked: String,
        /// A clause that lists what there is.
        known: String,
    },
    /// Another number of agents than were measured.
    #[error(
        "{problem} knows what each of its {measured} actuators does by a map, and none for {agents} agents; \
         give --agents {measured}, or the file a width in place of influence"
    )]
    Unmeasured {
        /// Name of the problem.
        problem: &'static str,
        /// How many there are maps of.
        measured: usize,
        /// How many were asked for.
        agents: usize,
    },
    /// A value that makes no sense or that the solver is not made for.
    #[error("{name} ({meaning}) of {problem} can be from {low:e} to {high:e}, not {value}")]
    Coefficient {
        /// Name of the problem.
        problem: &'static str,
        /// Name of the coefficient.
        name: &'static str,
        /// What it is.
        meaning: &'static str,
        /// The value asked for.
        value: f64,
        /// The lowest value.
        low: f64,
        /// The highest.
        high: f64,
    },
}

impl Problem {
    /// The same problem with the truth computed on another grid: so many `points` along its first axis
    /// and in proportion along the second, or so many along each. Solver steps are added where
    /// stability asks for them.
    pub fn with_grid(&self, points: impl Into<Points>) -> Result<Self, BadProblem> {
        let published = self.sensors.points;
        let in_proportion =
            |first: usize| (first as f64 * published[1] as f64 / published[0] as f64).round();
        let points = match (points.into(), self.grid.axes) {
            (Points::First(first), 1) => [first, 1],
            (Points::First(first), _) => [first, in_proportion(first) as usize],
            (Points::Each([first, second]), 1) => {
                return Err(BadProblem::OneAxis {
                    problem: self.name,
                    first,
                    second,
                });
            }
            (Points::Each(points), _) => points,
        };
        limit::POINTS.check_product(points)?;
        let mut changed = *self;
        changed.grid.points = points;
        let shape = changed.grid.shape();
        let (few, needed) = (
            shape.iter().min().copied().unwrap_or(0),
            self.sensing.span(self.sensing.window),
        );
        if few < needed {
            return Err(BadProblem::GridTooSmall {
                problem: self.name,
                points: few,
                needed,
            });
        }
        changed.substeps = changed.substeps.max(changed.fewest_substeps());
        limit::SUBSTEPS.check(changed.substeps)?;
        Ok(changed)
    }

    /// The same problem with another number of solver steps per control interval.
    pub fn with_substeps(&self, substeps: usize) -> Result<Self, BadProblem> {
        limit::SUBSTEPS.check(substeps)?;
        let changed = Self { substeps, ..*self };
        let (step, longest) = (
            self.control_interval / substeps.max(1) as f64,
            (self.longest_step)(self),
        );
        if substeps == 0 || step > longest {
            return Err(BadProblem::Unstable {
                problem: self.name,
                grid: self.grid.to_string(),
                step: self.control_interval / substeps as f64,
                longest,
                substeps: self.fewest_substeps(),
            });
        }
        Ok(changed)
    }

    /// The variant of that name.
    pub fn with_variant(&self, name: &str) -> Result<Self, BadProblem> {
        let found = self.variants.iter().find(|v| v.name == name);
        let form = |variant: &Variant| {
            let mut changed = (variant.apply)(Self {
                form: Some(variant.name),
                ..*self
            });
            changed.substeps = changed.substeps.max(changed.fewest_substeps());
            changed
        };
        found.map(form).ok_or_else(|| {
            let names: Vec<&str> = self.variants.iter().map(|v| v.name).collect();
            BadProblem::UnknownVariant {
                problem: self.name,
                asked: name.to_owned(),
                known: match names.is_empty() {
                    true => "it has only one form".to_owned(),
                    false => format!("there is: {}", names.join(", ")),
                },
            }
        })
    }

    /// Solver steps per control interval that the explicit parts of the scheme need on this grid.
    pub fn fewest_substeps(&self) -> usize {
        let ratio = self.control_interval / (self.longest_step)(self);
        // Rounding must not ask for one step more.
        (ratio * (1.0 - 1e-12)).ceil().max(1.0) as usize
    }

    /// Length and number of the solver's steps in one `parts`-th of a control interval.
    pub fn solver_steps(&self, parts: usize) -> (f64, usize) {
        let each = self.substeps.div_ceil(parts);
        (self.control_interval / (parts * each) as f64, each)
    }

    /// The control interval as agents' clocks have it: one time unit of the equation is a second.
    pub fn period_us(&self) -> u32 {
        (self.control_interval * 1e6).round() as u32
    }

    /// Grid indices, among the sensors, of the cell that holds a position.
    ///
    /// In f32, like an agent's position: all implementations must cut the same window.
    #[inline]
    pub fn cell_of(&self, position: [f32; 2]) -> [usize; 2] {
        let grid = &self.sensors;
        let mut cell = [0; 2];
        for axis in 0..grid.axes {
            let (low, high) = (grid.low[axis] as f32, grid.high[axis] as f32);
            let unit = ((position[axis] - low) / (high - low)).clamp(0.0, 1.0);
            let points = grid.points[axis];
            let cells = match self.sensing.cells {
                Cells::Intervals => points - 1,
                Cells::Points => points,
            };
            cell[axis] = ((unit * cells as f32) as usize).min(points - 1);
        }
        cell
    }

    /// The tuned feedback for a swarm of another size than the published one: more agents overlap
    /// more, so each pushes less. (A designer may count them; an agent may not.)
    pub fn baseline_for(&self, agents: usize) -> Option<Proportional> {
        self.baseline.map(|tuned| self.shared(tuned, agents))
    }

    /// The same for agents that spread over the errors.
    pub fn coverage_for(&self, agents: usize) -> Option<Proportional> {
        let tuned = self.coverage.or(self.baseline);
        tuned.map(|tuned| self.shared(tuned, agents))
    }

    fn shared(&self, tuned: Proportional, agents: usize) -> Proportional {
        let share = self.agents as f64 / agents.max(1) as f64;
        Proportional {
            gain: tuned.gain * share.min(1.0),
            ..tuned
        }
    }

    /// Whether there can be so many agents: any number, unless what each does was measured.
    pub fn check_agents(&self, agents: usize) -> Result<(), BadProblem> {
        limit::AGENTS.check(agents)?;
        match self.kit.is_some_and(Kit::has_influence) && agents != self.agents {
            false => Ok(()),
            true => Err(BadProblem::Unmeasured {
                problem: self.name,
                measured: self.agents,
                agents,
            }),
        }
    }

    /// Largest change of a force in a control interval; infinite for instant actuators.
    pub fn force_change(&self) -> f64 {
        (self.kit).map_or(f64::INFINITY, |kit| kit.rate * self.control_interval)
    }

    /// What finds it again: its name, or the path of the file that describes it.
    pub fn address(&self) -> String {
        let path = self.kit.map(|kit| &kit.path);
        let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        path.map_or(self.name.to_owned(), |path| path.display().to_string())
    }

    /// What policies for it say that they are for: its name and, where their cells are no neighbours on the
    /// grid, how far apart they are. A blob has no other place for that, and agents need not know.
    pub fn seen_as(&self) -> &'static str {
        self.kit.map_or(self.name, |kit| kit.seen_as)
    }

    /// Number of fields; files may describe several.
    pub fn fields(&self) -> usize {
        self.kit.map_or(1, Kit::fields)
    }

    /// Values of the whole state: all fields, one after the other.
    pub fn state_len(&self) -> usize {
        self.fields() * self.grid.len()
    }

    /// The part of such values that stands for the field which agents see.
    #[inline]
    pub fn seen<'a, T>(&self, state: &'a [T]) -> &'a [T] {
        let points = state.len() / self.fields();
        &state[self.seen_field() * points..][..points]
    }

    /// Which of the fields agents see.
    pub fn seen_field(&self) -> usize {
        self.kit.map_or(0, |kit| kit.seen)
    }

    /// Which of the fields they see besides, through windows of the same cells. Policies read these in the
    /// place of a coarse picture of the whole.
    pub fn also_seen(&self) -> &'static [usize] {
        self.kit.map_or(&[], |kit| &kit.also_seen)
    }

    /// The parts of such values that stand for the fields which agents see, in the order in which they do.
    pub fn all_seen<'a, T>(&self, state: &'a [T]) -> impl Iterator<Item = &'a [T]> {
        let points = state.len() / self.fields();
        let fields = std::iter::once(self.seen_field()).chain(self.also_seen().iter().copied());
        fields.map(move |field| &state[field * points..][..points])
    }

    /// How policies are told the windows on fields that are seen besides: rows of all of them, one after the
    /// other, and columns. None where there are no such fields.
    pub fn other_windows(&self, window: usize) -> Option<[usize; 2]> {
        let columns = if self.grid.axes == 1 { 1 } else { window };
        match self.also_seen().len() {
            0 => None,
            others => Some([others * window, columns]),
        }
    }

    /// Which of the forcing's components an agent's force goes to.
    pub fn driven_field(&self) -> usize {
        self.kit.map_or(0, |kit| kit.driven)
    }

    /// Values per grid point of what acts on the field: one for each field, or the components of a wind
    /// that carries it.
    pub fn components(&self) -> usize {
        match self.actuation.drives {
            Drives::Source => self.fields(),
            Drives::Flow => 2,
        }
    }

    /// How much every value of the state counts in errors, one on average; none where all count alike.
    pub fn weights(&self) -> Option<Vec<f64>> {
        self.kit.and_then(|kit| kit.weights(&self.grid))
    }

    /// Actions until the last state that is scored.
    pub fn scored_steps(&self) -> usize {
        match self.scoring.records {
            Records::AfterAction => self.horizon,
            Records::BeforeAction => self.horizon - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::published::ALL;

    #[test]
    fn every_problem_can_be_solved_on_coarser_and_finer_grids() {
        for problem in ALL {
            for (numerator, denominator) in [(1, 2), (3, 2), (2, 1), (4, 1)] {
                let points = problem.sensors.points[0] * numerator / denominator;
                let changed = problem.with_grid(points).unwrap();
                let grid = &changed.grid;
                let mut field = vec![0.1; grid.len()];
                let components = problem.components();
                let force = vec![0.0; components * grid.len()];
                for parts in [1, 8] {
                    (changed.stepper)(&changed, parts).step(&mut field, &force);
                }
                assert!(
                    field.iter().all(|z| z.is_finite()),
                    "{} {grid}",
                    problem.name
                );
            }
        }
    }

    /// Neither square nor even, on walls and on tori; a line has one axis.
    #[test]
    fn grids_need_be_neither_square_nor_even() {
        for problem in ALL {
            let Ok(changed) = problem.with_grid([33, 46]) else {
                let text = problem.with_grid([33, 46]).unwrap_err().to_string();
                assert!(text.contains("on a line; give --grid 33"), "{text}");
                continue;
            };
            assert_eq!(changed.grid.points, [33, 46]);
            let mut field: Vec<f64> = (0..changed.grid.len())
                .map(|at| changed.grid.place(at))
                .map(|[x, y]| 0.1 + 0.05 * (x + 2.0 * y).sin())
                .collect();
            let components = problem.components();
            (changed.stepper)(&changed, 1).step(&mut field, &vec![0.1; components * 33 * 46]);
            assert!(field.iter().all(|z| z.is_finite()), "{}", problem.name);
        }
    }

    #[test]
    fn variants_can_be_solved_too() {
        for problem in ALL {
            for variant in problem.variants {
                let changed = problem.with_variant(variant.name).unwrap();
                changed.with_substeps(changed.substeps).unwrap();
            }
        }
    }

    #[test]
    fn table_episodes_have_the_shape_of_their_problem() {
        for problem in ALL {
            let episodes = crate::test_set::EpisodeSet::Table;
            let all = episodes.episodes(problem, 0, None).unwrap();
            assert!(all.len() >= 20, "{}", problem.name);
            assert_eq!(
                (problem.placement)(problem, problem.agents).len(),
                problem.agents
            );
        }
    }
}
