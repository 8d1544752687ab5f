//! What must hold in a run, and by how much it does.
//!
//! 1. A [`Requirement`] says which [`Quantity`] must stay below or above which bound, and when; people
//!    write it as `error,below=0.01,when=at the end` on the command line or as a table in a file
//!    ([`text`]), and [`Requirement::check`] refuses what a run cannot have before anything runs.
//! 2. A [`Judge`] sees the run step by step and gives each requirement its [margin](Judged::margin):
//!    how far it was from failing, below 0 where it failed.
//!
//! To add a quantity, write its [`Quantity`] and add a line to [`ALL`].
//!
//! ```
//! use agent_sim::scenario::Scenario;
//!
//! let mut scenario = Scenario::from_toml(r#"problem = "heat-1d""#)?;
//! scenario.requirements.push("error,below=0.001,when=at the end".parse()?);
//! let team = scenario.team(&problem::Problems::published())?;
//! let (score, verdict) = team.judged(&scenario.episode(&team)?, None, &mut |_| {});
//! assert!(verdict.margin() > 0.0 && score?.final_error < 0.001);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod judge;
mod quantity;
pub mod text;

pub use judge::{Judge, Judged, Verdict};
pub use quantity::{ALL, Conditions, Moment, Quantity, Reader, listing};

use crate::fault::{BadFault, Ids, Region};
use problem::Problem;
use std::fmt;

/// Something that must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// Of what.
    pub quantity: &'static Quantity,
    /// Which side of what it has to be on.
    pub bound: Bound,
    /// Whether the bound is a share of what the quantity was at the start.
    pub of_start: bool,
    /// When it has to be.
    pub when: When,
    /// From when on, as a share of the run.
    pub from: f64,
    /// Until when, as a share of the run.
    pub until: f64,
    /// Where, of quantities of the field; everywhere if there is none.
    pub region: Option<Region>,
    /// Whose, of quantities of agents; all agents' if there are none.
    pub ids: Option<Ids>,
    /// The error that counts as recovered.
    pub level: Option<f64>,
}

/// The side of a bound that a quantity has to be on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At most this.
    Below(f64),
    /// At least this.
    Above(f64),
}

impl Bound {
    /// How far a value is from the wrong side, as a share of the bound (of 1, if that is 0).
    pub(crate) fn margin(self, value: f64) -> f64 {
        let (bound, way) = match self {
            Self::Below(bound) => (bound, bound - value),
            Self::Above(bound) => (bound, value - bound),
        };
        let margin = if bound == 0.0 { way } else { way / bound.abs() };
        // No number is on no side.
        if margin.is_nan() {
            f64::NEG_INFINITY
        } else {
            margin
        }
    }

    /// The same side of a share of something.
    pub(crate) fn of(self, whole: f64) -> Self {
        match self {
            Self::Below(share) => Self::Below(share * whole),
            Self::Above(share) => Self::Above(share * whole),
        }
    }

    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Below(value) | Self::Above(value) => value,
        }
    }
}

/// When something has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After every step.
    Always,
    /// After one step at least.
    Eventually,
    /// After the last step.
    AtTheEnd,
    /// After one at least of so many steps from the beginning of every fault on.
    AfterFaults(usize),
}

/// Why something cannot be required.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequirement {
    /// There is no such quantity.
    #[error("there is no quantity '{given}'{}; agent-sim requirements lists all", did_you_mean(.nearest.as_deref()))]
    NoQuantity {
        /// As it was given.
        given: String,
        /// The most similar one.
        nearest: Option<String>,
    },
    /// The text is no requirement.
    #[error("{0}")]
    Unreadable(String),
    /// It makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// The problem or the run has no such quantity.
    #[error("{quantity} cannot be required here: {why}")]
    Lacking {
        /// Its name.
        quantity: &'static str,
        /// What is missing.
        why: String,
    },
    /// A place or an agent that there is not.
    #[error(transparent)]
    Address(#[from] BadFault),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

impl Requirement {
    /// That a quantity is always on the right side of a bound.
    pub fn new(quantity: &'static Quantity, bound: Bound) -> Self {
        Self {
            quantity,
            bound,
            of_start: false,
            when: When::Always,
            from: 0.0,
            until: 1.0,
            region: None,
            ids: None,
            level: None,
        }
    }

    /// Whether a run under these conditions can be held to it.
    pub fn check(&self, run: &Conditions<'_>) -> Result<(), BadRequirement> {
        self.check_values()?;
        let lacking = |why: String| BadRequirement::Lacking {
            quantity: self.quantity.name,
            why,
        };
        if let Some(why) = (self.quantity.lacking)(run) {
            return Err(lacking(why));
        }
        let grid = &run.problem.grid;
        if let Some(region) = &self.region {
            region.check(grid.axes, grid.low, grid.high)?;
            if !run.points_in(region).any(|inside| inside) {
                return Err(lacking(format!("no grid point lies in {region}")));
            }
        }
        if let Some(ids) = &self.ids {
            ids.check(run.agents)?;
        }
        if let When::AfterFaults(_) = self.when {
            let [from, until] = self.steps(run.steps);
            if !run.faults.iter().any(|step| (from..=until).contains(step)) {
                return Err(lacking("no fault begins in its time".to_owned()));
            }
        }
        Ok(())
    }

    /// What can be said against its values before the run is known.
    fn check_values(&self) -> Result<(), BadRequirement> {
        let senseless = |text: String| Err(BadRequirement::Senseless(text));
        let name = self.quantity.name;
        if !self.bound.value().is_finite() {
            return senseless(format!("{name} cannot be held to {}", self.bound.value()));
        }
        for (given, parameter) in [
            (self.region.is_some(), "region"),
            (self.ids.is_some(), "ids"),
            (self.level.is_some(), "level"),
        ] {
            let takes = self.quantity.takes.contains(&parameter);
            if given && !takes {
                return senseless(format!("{name} has no parameter '{parameter}'"));
            }
            if takes && !given && parameter == "level" {
                return senseless(format!(
                    "{name} needs the error that counts as recovered: level=0.01 or the like"
                ));
            }
        }
        if let Some(level) = self.level
            && !(level.is_finite() && level > 0.0)
        {
            return senseless(format!("level is {level} and must be above 0"));
        }
        for (parameter, share) in [("from", self.from), ("until", self.until)] {
            if !(0.0..=1.0).contains(&share) {
                return senseless(format!(
                    "{parameter} is {share} and must be a share of the run, between 0 and 1"
                ));
            }
        }
        if self.from > self.until {
            return senseless(format!(
                "it ends before it begins: from {} until {}",
                self.from, self.until
            ));
        }
        if self.when == When::AfterFaults(0) {
            return senseless(
                "within 0 steps of a fault nothing can happen; give 1 or more".into(),
            );
        }
        Ok(())
    }

    /// Whether it means the same in a run of fewer steps.
    pub fn is_of_any_run(&self) -> bool {
        let whole = self.from == 0.0 && self.until == 1.0;
        whole && matches!(self.when, When::Always | When::AfterFaults(_))
    }

    /// First and last step of its time.
    fn steps(&self, steps: usize) -> [usize; 2] {
        [self.from, self.until].map(|share| (share * steps as f64).round() as usize)
    }

    /// What any swarm is expected to do on a problem: the error falls to a tenth of what it was and never
    /// gets out of hand, and nobody enters where nobody may.
    pub fn built_in(problem: &Problem) -> Vec<Self> {
        let share = |share: f64, when: When| Self {
            of_start: true,
            when,
            ..Self::new(&quantity::ERROR, Bound::Below(share))
        };
        let mut all = vec![share(0.1, When::AtTheEnd), share(10.0, When::Always)];
        if !problem.keep_out.is_empty() {
            let never = Bound::Below(0.0);
            all.push(Self::new(&quantity::INTRUSION, never));
        }
        all
    }
}

/// What a scenario asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Require {
    /// What is expected of any swarm on the problem: [`Requirement::built_in`].
    BuiltIn,
    /// Something in particular.
    This(Requirement),
}

impl Require {
    /// The requirements that this comes to.
    pub fn on(&self, problem: &Problem) -> Vec<Requirement> {
        match self {
            Self::BuiltIn => Requirement::built_in(problem),
            Self::This(requirement) => vec![requirement.clone()],
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Eventually => f.write_str("eventually"),
            Self::AtTheEnd => f.write_str("at the end"),
            Self::AfterFaults(steps) => write!(f, "within {steps} steps of a fault"),
        }
    }
}
