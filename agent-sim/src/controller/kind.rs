//! All that is said about a way to control a field: a [`Kind`] stands for it on the command line, in files
//! and in pictures, and makes the [`Controller`] of a team.

use super::Controller;
use crate::centre::Guide;
use crate::coverage::Coverage;
use crate::report::{RGBColor, line};
use crate::scenario::{BadScenario, Team};
use agent_core::policy::Policy;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use problem::{Drives, Problem, Proportional};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A way to control a field.
pub struct Kind {
    /// As on the command line.
    pub name: &'static str,
    /// What it is, for people who choose one.
    pub help: &'static str,
    /// What its run is called beside others.
    pub run: &'static str,
    /// Its curve's colour.
    pub colour: RGBColor,
    /// Whether there are agents.
    pub has_agents: bool,
    /// What it is made of.
    pub takes: Takes,
    /// Whether it is for a problem; `gain` was given.
    pub check: fn(&Problem, gain: Option<f64>) -> Result<(), BadScenario>,
    /// Who decides, where it is done in one place; for a team that was [checked](Self::check).
    pub guide: fn(&Team) -> MadeGuide,
    /// Makes it for such a team, with the team's policy, parsed.
    pub make: for<'p> fn(&'p Team, Option<&'p Policy<'p>>) -> Controller<'p>,
    /// It as a yardstick for so many agents, where it needs nothing but the problem and what was tuned.
    pub yardstick: fn(&Problem, agents: usize) -> Option<Controller<'static>>,
}

/// Who decides in one place, or nobody does.
pub type MadeGuide = Result<Option<Arc<dyn Guide>>, BadScenario>;

/// What a controller is made of besides the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A policy.
    Policy,
    /// A gain.
    Gain,
    /// How far to look ahead, and how often.
    Planning,
    /// A network that decides for all agents.
    Network,
}

/// Which of the ways, by its name.
#[derive(Clone, Copy)]
pub struct ControllerKind(&'static Kind);

/// All of them.
static ALL: [ControllerKind; 6] = [
    ControllerKind::POLICY,
    ControllerKind::NONE,
    ControllerKind::PROPORTIONAL,
    ControllerKind::COVERAGE,
    ControllerKind::NMPC,
    ControllerKind::DPC,
];

/// What every result is shown beside.
pub const YARDSTICKS: [ControllerKind; 2] = [ControllerKind::NONE, ControllerKind::PROPORTIONAL];

impl ControllerKind {
    /// Agents that run a policy.
    pub const POLICY: Self = Self(&Kind {
        name: "policy",
        help: "A trained policy",
        run: "swarm",
        colour: line::BLUE,
        has_agents: true,
        takes: Takes::Policy,
        check: |_, _| Ok(()),
        guide: |_| Ok(None),
        make: |team, policy| match (policy, team.standing) {
            (None, _) => Controller::None,
            (Some(policy), None) => Controller::Policy(policy),
            (Some(policy), Some(second)) => Controller::Standing { policy, second },
        },
        yardstick: |_, _| None,
    });

    /// Nobody.
    pub const NONE: Self = Self(&Kind {
        name: "none",
        help: "Nobody: what the field does by itself",
        run: "no control",
        colour: line::GREY,
        has_agents: false,
        takes: Takes::Nothing,
        check: |_, _| Ok(()),
        guide: |_| Ok(None),
        make: |_, _| Controller::None,
        yardstick: |_, _| Some(Controller::None),
    });

    /// Agents that push against the error they see.
    pub const PROPORTIONAL: Self = Self(&Kind {
        name: "proportional",
        help: "Agents that push against the error they see",
        run: "proportional",
        colour: line::ORANGE,
        has_agents: true,
        takes: Takes::Gain,
        check: |problem, gain| tuned_or_given(problem, problem.baseline, gain, ""),
        guide: |_| Ok(None),
        make: |team, _| {
            let tuned = team.problem.baseline_for(team.agents);
            Controller::Proportional(team.law(tuned).expect("checked when set up"))
        },
        yardstick: |problem, agents| problem.baseline_for(agents).map(Controller::Proportional),
    });

    /// Agents that spread over the errors, and push where they stand.
    pub const COVERAGE: Self = Self(&Kind {
        name: "coverage",
        help: "Agents that share out the errors by who is nearest, go to the middle of what is theirs, and push",
        run: "coverage",
        colour: line::GREEN,
        has_agents: true,
        takes: Takes::Gain,
        check: |problem, gain| match problem.actuation.drives {
            Drives::Source => tuned_or_given(
                problem,
                problem.coverage_for(1),
                gain,
                " --controller coverage",
            ),
            Drives::Flow => Err(BadScenario::Senseless(format!(
                "the agents of {} stir: wherever they go they carry the field along, so they cannot \
                 first spread and then act; give --controller proportional",
                problem.name
            ))),
        },
        guide: |team| {
            let law = team.law(team.problem.coverage_for(team.agents));
            let coverage = law.and_then(|law| Coverage::new(&team.problem, law));
            Ok(coverage.map(|coverage| Arc::new(coverage) as Arc<dyn Guide>))
        },
        make: |team, _| team.guided(),
        yardstick: |_, _| None,
    });

    /// A plan for all agents, made anew as it goes; of another program, which has the derivatives.
    pub const NMPC: Self = Self(&Kind {
        name: "nmpc",
        help: "A plan for all agents, made anew every few steps: trainer run|eval … --controller nmpc",
        run: "nmpc",
        colour: line::VERMILION,
        has_agents: true,
        takes: Takes::Planning,
        check: |_, _| Ok(()),
        guide: |team| {
            Err(BadScenario::Senseless(format!(
                "nmpc plans through the derivatives of the field, which this command does not have; the \
                 trainer has run and eval with it: trainer eval {} --controller nmpc",
                team.problem.address()
            )))
        },
        make: |team, _| team.guided(),
        yardstick: |_, _| None,
    });

    /// A network that was trained to decide for all agents; of another program, which trains it.
    pub const DPC: Self = Self(&Kind {
        name: "dpc",
        help: "A network that decides for all agents (--network): trainer run|eval … --controller dpc",
        run: "dpc",
        colour: line::PURPLE,
        has_agents: true,
        takes: Takes::Network,
        check: |_, _| Ok(()),
        guide: |team| {
            Err(BadScenario::Senseless(format!(
                "this command does not read networks that decide for all agents; the trainer, which trains them, \
                 has run and eval with it: trainer eval {} --controller dpc --network …",
                team.problem.address()
            )))
        },
        make: |team, _| team.guided(),
        yardstick: |_, _| None,
    });

    /// All that there are.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|kind| kind.name == name)
    }

    /// The names of all.
    pub fn names() -> String {
        ALL.map(|kind| kind.name).join(", ")
    }
}

/// Refuses feedback of which nobody knows the gain.
fn tuned_or_given(
    problem: &Problem,
    tuned: Option<Proportional>,
    gain: Option<f64>,
    flag: &str,
) -> Result<(), BadScenario> {
    match tuned.is_some() || gain.is_some() {
        true => Ok(()),
        false => Err(BadScenario::Senseless(format!(
            "{} comes without a tuned feedback; give --gain (agent-sim tune {0}{flag} finds one)",
            problem.name
        ))),
    }
}

impl Deref for ControllerKind {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        self.0
    }
}

impl PartialEq for ControllerKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ControllerKind {}

impl fmt::Debug for ControllerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for ControllerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for ControllerKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let names = Self::names();
            D::Error::custom(format!(
                "there is no controller '{name}'; choose one of: {names}"
            ))
        })
    }
}

impl ValueEnum for ControllerKind {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}
