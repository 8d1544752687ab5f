//! A run, written down: a TOML file or flags, checked as a whole before anything runs.
//!
//! ```
//! use agent_sim::scenario::Scenario;
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     problem = "heat-1d"
//!     agents = 16
//!     controller = "proportional"
//!
//!     [[fault]]
//!     kind = "crash"
//!     fraction = 0.25
//!     at = 0.5
//!     "#,
//! )?;
//! let team = scenario.team(&problem::Problems::published())?;
//! let episode = scenario.episode(&team)?;
//! let score = team.experiment(None).run(&episode, &mut |_| {})?;
//! assert!(score.final_error.is_finite());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use crate::centre::{Bring, Guide};
use crate::controller::{Controller, ControllerKind, Experiment, Takes, places};
use crate::episode::{RunError, Snapshot};
use crate::fault::{BadFault, Fault, Plan, Run, Who};
use crate::plant::Address;
use crate::requirement::{
    BadRequirement, Conditions, Judge, Moment, Require, Requirement, Verdict,
};
use crate::rig::{Boards, LinkKind, Rig};
use crate::standing::{BadStand, Stand, stands};
use crate::touch::{Added, BadTouch, Touch, touched};
use agent_core::policy::Policy;
use artifacts::policy_file::{PolicyFile, PolicyFileError};
use problem::grid::Points;
use problem::limit::{self, NoRoom, TooMany};
use problem::metrics::Score;
use problem::test_set::{EpisodeSet, Resampled, TestSetError};
use problem::{
    Arrival, BadProblem, Episode, ErrorSensing, NoProblem, Problem, Problems, Proportional,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything that decides a run. What is left out is as published.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the problem.
    pub problem: String,
    /// Another form of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Coefficients of the equation that are not the published ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub physics: BTreeMap<String, f64>,
    /// Grid points of the truth: a number along the first axis, or "48x80".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Points>,
    /// Solver steps per control interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substeps: Option<usize>,
    /// Who commands the actuators; a policy if there is one, else proportional feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerKind>,
    /// Gain of proportional or coverage feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Steps that a controller that plans looks ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<usize>,
    /// Steps after which it plans anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replan: Option<usize>,
    /// Most times that it runs a plan, forwards and backwards, in one decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_runs: Option<usize>,
    /// File of the network, of a controller that decides for all agents by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<PathBuf>,
    /// File of the policy; the shipped one if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PathBuf>,
    /// Number of agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<usize>,
    /// Control steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Seed of fresh episodes and of faults.
    #[serde(default)]
    pub seed: u64,
    /// Where episodes are taken from: `fresh`, `table` or a `.npy` file.
    #[serde(default = "fresh")]
    pub set: String,
    /// Which episode of the set.
    #[serde(default)]
    pub episode: usize,
    /// Where the boards of the first agents are; all other agents are in the simulator's process.
    #[serde(default, rename = "link", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Boards>,
    /// Whether agents [sense by themselves](crate::standing), where they are mounted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standalone: bool,
    /// The boards of the first of them: their sensors and actuators are the field's, and nobody shows them
    /// anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plant_io: Vec<Boards>,
    /// How many times as fast as the wall clock the field goes; in lock-step with the agents if this
    /// is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realtime: Option<f64>,
    /// What computes the field; the problem's own solver if this is left out. It is opened by whoever
    /// runs the scenario, [`plant::open`](crate::plant::open), and handed to the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plant: Option<Address>,
    /// What goes wrong.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What is done to the field and to its target by hand.
    #[serde(default, rename = "touch", skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
    /// Agents that are put down on the way, besides those of the beginning; their numbers follow.
    #[serde(default, rename = "add", skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Added>,
    /// What must hold.
    #[serde(default, rename = "require", skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Require>,
}

fn fresh() -> String {
    "fresh".to_owned()
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadScenario {
    /// No problem is named.
    #[error("no problem is named; give one of: {0}")]
    NoProblem(String),
    /// It is none of the problems.
    #[error(transparent)]
    Problem(#[from] NoProblem),
    /// The problem cannot be solved as asked.
    #[error(transparent)]
    Solver(#[from] BadProblem),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The episode is not there.
    #[error(transparent)]
    Episode(#[from] TestSetError),
    /// Agents cannot sense by themselves.
    #[error(transparent)]
    Stand(#[from] BadStand),
    /// A fault makes no sense.
    #[error("the fault '{fault}' is impossible: {source}")]
    Fault {
        /// As it was given.
        fault: String,
        /// What is wrong with it.
        source: BadFault,
    },
    /// Something cannot be done by hand.
    #[error("what is done by hand {} of the run is impossible: {source}", share_text(*.at))]
    Touch {
        /// When, as a share of the run.
        at: f64,
        /// What is wrong with it.
        source: BadTouch,
    },
    /// Something is required that the run cannot have.
    #[error("'{requirement}' cannot be required: {source}")]
    Requirement {
        /// As it was given.
        requirement: String,
        /// What is wrong with it.
        source: BadRequirement,
    },
    /// There is more of something than programs take.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// It would not fit into memory.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Something else makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// The text is no scenario.
    #[error("the scenario cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
}

/// Seconds of a step of emulated boards that keep their own time, for each of them and in all at least: so many
/// on two cores keep up with it.
const BOARD_PERIOD: [f64; 2] = [0.00625, 0.05];

/// A share of a run, in words.
fn share_text(share: f64) -> String {
    format!("after {} %", 100.0 * share)
}

impl Scenario {
    /// Reads a scenario.
    pub fn from_toml(text: &str) -> Result<Self, BadScenario> {
        Ok(toml::from_str(text)?)
    }

    /// Writes it down.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario holds nothing that TOML lacks")
    }

    /// The same with nothing that goes wrong.
    pub fn without_faults(&self) -> Self {
        Self {
            faults: Vec::new(),
            ..self.clone()
        }
    }

    /// The episode of the scenario, for a team of it.
    pub fn episode(&self, team: &Team) -> Result<Episode, BadScenario> {
        Ok(self.touched(team, self.drawn(&team.problem)?))
    }

    /// The same before anything is done by hand.
    pub fn drawn(&self, problem: &Problem) -> Result<Episode, BadScenario> {
        Ok(self.source().episode(problem, self.seed, self.episode)?)
    }

    /// An episode with what is done by hand.
    pub fn touched(&self, team: &Team, episode: Episode) -> Episode {
        touched(
            episode,
            &team.problem,
            team.steps,
            &self.touches,
            &team.arrivals,
        )
    }

    /// The first `count` episodes of the set, or all of a stored one.
    pub fn episodes(&self, team: &Team, count: Option<usize>) -> Result<Vec<Episode>, BadScenario> {
        if count == Some(0) {
            let text = "there is nothing to learn from 0 episodes; give --episodes 1 or more";
            return Err(BadScenario::Senseless(text.to_owned()));
        }
        let drawn = self.source().episodes(&team.problem, self.seed, count)?;
        let touched = |episode| self.touched(team, episode);
        Ok(drawn.into_iter().map(touched).collect())
    }

    /// What was done to the fields of the set if they came on another grid.
    pub fn resampled(&self, team: &Team) -> Result<Option<Resampled>, BadScenario> {
        Ok(self.source().resampled(&team.problem)?)
    }

    fn source(&self) -> EpisodeSet {
        self.set.parse().unwrap_or_else(|never| match never {})
    }

    /// The problem, in the form, with the equation and on the grid that are asked for.
    pub fn solved(&self, problems: &Problems) -> Result<Problem, BadScenario> {
        if self.problem.is_empty() {
            return Err(BadScenario::NoProblem(problems.names()));
        }
        let mut problem = *problems.by_name(&self.problem)?;
        if let Some(variant) = &self.variant {
            problem = problem.with_variant(variant)?;
        }
        let physics = self
            .physics
            .iter()
            .map(|(name, value)| (name.as_str(), *value));
        problem = problem.with_physics(physics)?;
        if let Some(points) = self.grid {
            problem = problem.with_grid(points)?;
        }
        if let Some(substeps) = self.substeps {
            problem = problem.with_substeps(substeps)?;
        }
        Ok(problem)
    }

    /// Checks everything but the episode, and gathers what the run needs.
    pub fn team(&self, problems: &Problems) -> Result<Team, BadScenario> {
        self.team_with(problems, &[])
    }

    /// The same with controllers besides that others bring.
    pub fn team_with(
        &self,
        problems: &Problems,
        others: &[&dyn Bring],
    ) -> Result<Team, BadScenario> {
        let problem = self.solved(problems)?;
        let senseless = |text: &str| Err(BadScenario::Senseless(text.to_owned()));
        let touch = |at: f64, bad: Result<(), BadTouch>| {
            bad.map_err(|source| BadScenario::Touch { at, source })
        };
        limit::TOUCHES.check(self.touches.len())?;
        for given in &self.touches {
            touch(given.at, given.check(&problem))?;
        }
        let mut arrivals = Vec::new();
        for given in &self.added {
            let arrival = given
                .arrival(&problem)
                .map(|arrival| arrivals.push(arrival));
            touch(given.at, arrival)?;
        }
        let at_first = self.agents.unwrap_or(problem.agents);
        let agents = at_first.saturating_add(arrivals.len());
        let steps = self.steps.unwrap_or(problem.horizon);
        if at_first == 0 {
            return senseless(
                "a swarm of 0 agents controls nothing; give --agents 1 or more, or --controller none",
            );
        }
        problem.check_agents(agents)?;
        if steps == 0 {
            return senseless("a run of 0 steps shows nothing; give --steps 1 or more");
        }
        limit::STEPS.check(steps)?;
        limit::FAULTS.check(self.faults.len())?;
        check_memory(&problem, agents, steps, self.faults.len())?;
        for fault in &self.faults {
            let (low, high) = (problem.grid.low, problem.grid.high);
            fault
                .check(agents, problem.grid.axes, low, high)
                .map_err(|source| BadScenario::Fault {
                    fault: fault.to_string(),
                    source,
                })?;
            if fault.is_of_standing() && !self.standalone {
                return Err(BadScenario::Senseless(format!(
                    "the fault '{fault}' is impossible: it is of the bus of agents that sense by themselves; \
                     give --standalone"
                )));
            }
        }

        let shipped = PolicyFile::shipped(&problem);
        let kind = match self.controller {
            Some(kind) => kind,
            None if self.policy.is_some() || shipped.is_ok() => ControllerKind::POLICY,
            None if self.gain.is_some() || problem.baseline.is_some() => {
                ControllerKind::PROPORTIONAL
            }
            None => {
                return Err(BadScenario::Senseless(format!(
                    "{} comes with neither a policy nor a tuned feedback; give --policy, --gain or \
                     --controller none (agent-sim tune {0} finds a gain)",
                    problem.name
                )));
            }
        };
        (kind.check)(&problem, self.gain)?;
        if self.policy.is_some() && kind.takes != Takes::Policy {
            return senseless("--policy belongs to --controller policy");
        }
        if self.gain.is_some() && kind.takes != Takes::Gain {
            return senseless("--gain belongs to --controller proportional or coverage");
        }
        if self.network.is_some() && kind.takes != Takes::Network {
            return senseless("--network belongs to --controller dpc");
        }
        let policy = match (kind.takes, &self.policy) {
            (Takes::Policy, Some(path)) => Some(PolicyFile::read(path)?),
            (Takes::Policy, None) => Some(shipped?),
            _ => None,
        };
        if let Some(file) = &policy {
            file.policy(&problem)?;
        }
        self.check_boards(kind, agents)?;
        let mut brought = BTreeMap::new();
        for name in self.faults.iter().filter_map(|fault| fault.what.file()) {
            let file = PolicyFile::read(Path::new(name))?;
            file.policy(&problem)?;
            brought.insert(name.to_owned(), file);
        }
        if let Some(gain) = self.gain
            && !(gain.is_finite() && gain >= 0.0)
        {
            return Err(BadScenario::Senseless(format!(
                "--gain {gain} is not a number of at least 0"
            )));
        }
        limit::REQUIREMENTS.check(self.requirements.len())?;
        let wanted = |require: &Require| require.on(&problem);
        let mut team = Team {
            kind,
            guide: None,
            planning: self.planning(kind, steps)?,
            gain: self.gain,
            network: self.network.clone(),
            policy,
            brought,
            agents,
            arrivals,
            steps,
            seed: fault_seed(self.seed, self.episode),
            faults: self.faults.clone(),
            links: [&self.links[..], &self.plant_io].concat(),
            standing: None,
            realtime: self.realtime,
            requirements: self.requirements.iter().flat_map(wanted).collect(),
            problem,
        };
        let bring = others.iter().find(|bring| bring.kind() == kind);
        team.guide = match bring {
            Some(bring) => Some(bring.bring(&team)?),
            None => (kind.guide)(&team)?,
        };
        if self.standalone {
            self.stand(&mut team)?;
        }
        let conditions = team.conditions();
        for requirement in &team.requirements {
            let bad = |source| BadScenario::Requirement {
                requirement: requirement.to_string(),
                source,
            };
            requirement.check(&conditions).map_err(bad)?;
        }
        Ok(team)
    }
}

impl Scenario {
    /// How far is looked ahead in a run of so many steps.
    fn planning(&self, kind: ControllerKind, steps: usize) -> Result<Planning, BadScenario> {
        let senseless = |text: String| Err(BadScenario::Senseless(text));
        let Planning {
            steps: usual,
            replan,
            runs,
        } = Planning::USUAL;
        let asked = [self.plan, self.replan, self.plan_runs];
        if kind.takes != Takes::Planning && asked.iter().any(Option::is_some) {
            return senseless(
                "--plan, --replan and --plan-runs belong to --controller nmpc".to_owned(),
            );
        }
        let plan = self.plan.unwrap_or(usual.min(steps));
        if plan == 0 || plan > steps {
            return senseless(format!(
                "--plan {plan} does not fit a run of {steps} steps; give 1 to {steps}"
            ));
        }
        let replan = self.replan.unwrap_or(replan.min(plan));
        if replan == 0 || replan > plan {
            return senseless(format!(
                "--replan {replan} does not fit plans of {plan} steps; give 1 to {plan}"
            ));
        }
        let runs = self.plan_runs.unwrap_or(runs);
        if runs == 0 || runs > Planning::MOST_RUNS {
            return senseless(format!(
                "--plan-runs {runs} is no number of runs that a decision can take; give 1 to {}",
                Planning::MOST_RUNS
            ));
        }
        Ok(Planning {
            steps: plan,
            replan,
            runs,
        })
    }

    /// Has the team's agents sense by themselves. Boards that do so keep their own time, so the field goes
    /// with the wall clock, as slowly as they need.
    fn stand(&self, team: &mut Team) -> Result<(), BadScenario> {
        let Some(policy) = team.parsed_policy() else {
            let text = "--standalone is for agents that run a policy";
            return Err(BadScenario::Senseless(text.to_owned()));
        };
        let boards: usize = self.plant_io.iter().map(Boards::count).sum();
        let realtime = match boards {
            0 => self.realtime,
            _ => Some(self.realtime.unwrap_or_else(|| {
                let [each, least] = BOARD_PERIOD;
                team.problem.control_interval / (each * boards as f64).max(least)
            })),
        };
        let second = realtime.map_or(1.0, |speed| 1.0 / speed);
        let episode = self.episode(team)?;
        let stands = stands(&team.problem, &policy, &team.places(), &episode, second)?;
        if stands.iter().any(Stand::hears) && boards > 0 && boards < team.agents {
            return Err(BadScenario::Senseless(format!(
                "the {} agents of a plane hear each other, and those in this process hear no board: let all be \
                 boards with --plant-io qemu={}, or none",
                team.agents, team.agents
            )));
        }
        drop(policy);
        (team.standing, team.realtime) = (Some(second), realtime);
        Ok(())
    }

    /// Whether the boards fit the run, and the faults the boards.
    fn check_boards(&self, kind: ControllerKind, agents: usize) -> Result<(), BadScenario> {
        let senseless = |text: String| Err(BadScenario::Senseless(text));
        if !self.plant_io.is_empty() && !self.standalone {
            return senseless(
                "--plant-io is for boards that act by themselves; give --standalone too, or --link for \
                 boards that are shown the field"
                    .to_owned(),
            );
        }
        if !self.links.is_empty() && self.standalone {
            return senseless(
                "--link is for boards that are shown the field, and agents with --standalone are not; \
                 give --plant-io"
                    .to_owned(),
            );
        }
        if let Some(boards) = self.plant_io.iter().find(|boards| !boards.can_be_wired()) {
            return senseless(format!(
                "--plant-io {boards} has no sensors that a simulated field reaches; give qemu=N"
            ));
        }
        let links = [&self.links[..], &self.plant_io].concat();
        let boards: usize = links.iter().map(Boards::count).sum();
        limit::BOARDS.check(boards)?;
        if boards > agents {
            return senseless(format!(
                "--link names {boards} boards for {agents} agents; give --agents {boards} or more"
            ));
        }
        if boards > 0 && kind != ControllerKind::POLICY {
            return senseless(
                "boards run policies; leave --link out, or give --controller policy".to_owned(),
            );
        }
        if let Some(speed) = self.realtime
            && !limit::SPEEDS.contains(&speed)
        {
            let (slowest, fastest) = (limit::SPEEDS.start(), limit::SPEEDS.end());
            return senseless(format!(
                "--realtime {speed:?} is not a speed above 0 that can be kept; give {slowest} to {fastest} \
                 times the wall clock's"
            ));
        }
        for fault in &self.faults {
            let Some(mishap) = fault.on_board() else {
                continue;
            };
            let of_kind = |link: Option<LinkKind>| {
                let meant = links.iter().filter(|b| link.is_none_or(|k| b.kind() == k));
                meant.map(Boards::count).sum::<usize>()
            };
            // How many of them there are is known when they have been found.
            let are_found = links.iter().any(Boards::are_found);
            let emulated = of_kind(Some(LinkKind::Qemu));
            let (meant, wanted) = match &fault.who {
                Who::Boards { link, count } => (of_kind(*link), count.unwrap_or(0)),
                Who::Ids(ids) => (boards, ids.within(agents).last().map_or(0, |last| last + 1)),
                _ => (boards, 0),
            };
            if meant == 0 || (wanted > meant && !are_found) {
                return senseless(format!(
                    "the fault '{fault}' is impossible: it is for {} boards and the run has {meant} \
                     such; give --link qemu={} or the like",
                    wanted.max(1),
                    wanted.max(1)
                ));
            }
            if mishap.needs_emulator && meant > emulated {
                return senseless(format!(
                    "the fault '{fault}' is impossible: only emulated boards can be killed, stopped \
                     and reset from here; add link=qemu"
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a run that this machine has no room for.
fn check_memory(
    problem: &Problem,
    agents: usize,
    steps: usize,
    faults: usize,
) -> Result<(), NoRoom> {
    limit::check_memory(
        run_memory(problem, agents, steps, faults),
        || {
            format!(
                "a run of {agents} agents with {faults} faults over {steps} steps on a grid of {}",
                problem.grid
            )
        },
        "take less of it",
    )
}

/// Bytes that the largest parts of a run take.
pub(crate) fn run_memory(problem: &Problem, agents: usize, steps: usize, faults: usize) -> u64 {
    /// Bytes of a value on the grid, with all that a solver keeps for it; of an agent; of a fault
    /// around an agent's link; and of a step in the logs of a run and its yardsticks.
    const POINT: u64 = 512;
    const AGENT: u64 = 128;
    const FAULT: u64 = 256;
    const STEP: u64 = 1024;
    let [points, agents, steps, faults] =
        [problem.state_len(), agents, steps, faults].map(|count| count as u64);
    POINT * points + agents * (AGENT + FAULT * faults) + STEP * steps
}

/// How far a controller that plans looks ahead, and what it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planning {
    /// Steps of a plan.
    pub steps: usize,
    /// Steps of it that are followed.
    pub replan: usize,
    /// Most times that a plan is run, forwards and backwards, in one decision.
    pub runs: usize,
}

impl Planning {
    /// Unless something else is asked for.
    pub const USUAL: Self = Self {
        steps: 30,
        replan: 5,
        runs: 20,
    };
    /// Most runs of a decision: beyond, a plan gains nothing.
    pub const MOST_RUNS: usize = 10_000;
}

/// Feedback of that gain for a problem that nobody tuned one for.
fn plain(gain: f64) -> Proportional {
    Proportional {
        gain,
        sensing: ErrorSensing::Kernel,
    }
}

/// The seed of the faults of an episode: no two episodes of a set lose the same agents.
pub fn fault_seed(seed: u64, episode: usize) -> u64 {
    // The golden ratio's odd multiple of 2⁻⁶⁴ spreads neighbours; episode 0 keeps the seed.
    seed.wrapping_add((episode as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A scenario that can be run.
#[derive(Debug, Clone)]
pub struct Team {
    /// What is controlled.
    pub problem: Problem,
    /// By whom.
    pub kind: ControllerKind,
    /// Who decides for all agents, where that is done in one place.
    pub guide: Option<Arc<dyn Guide>>,
    /// How far it looks ahead, if it does.
    pub planning: Planning,
    /// With which gain, where one was given.
    pub gain: Option<f64>,
    /// With which network, where one was given.
    pub network: Option<PathBuf>,
    /// With which policy.
    pub policy: Option<PolicyFile>,
    /// Policies that boards are given on the way, by the names that faults call them.
    pub brought: BTreeMap<String, PolicyFile>,
    /// How many agents there are, those that come on the way included.
    pub agents: usize,
    /// Those that come on the way: the last ones.
    pub arrivals: Vec<Arrival>,
    /// For how many steps.
    pub steps: usize,
    /// Decides what the faults leave to chance.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Where the boards of the first agents are.
    pub links: Vec<Boards>,
    /// How many seconds one of the policy's takes at agents' places, if they sense by themselves.
    pub standing: Option<f64>,
    /// How many times as fast as the wall clock the field goes; none in lock-step.
    pub realtime: Option<f64>,
    /// What must hold.
    pub requirements: Vec<Requirement>,
}

impl Team {
    /// What is known of the run before it begins.
    pub fn conditions(&self) -> Conditions<'_> {
        let begins = |fault: &Fault| fault.begins(self.steps);
        Conditions {
            problem: &self.problem,
            agents: self.agents,
            boards: self.links.iter().map(Boards::count).sum(),
            steps: self.steps,
            faults: self.faults.iter().map(begins).collect(),
        }
    }

    /// How many agents there are from the beginning.
    pub fn at_first(&self) -> usize {
        self.agents - self.arrivals.len()
    }

    /// Where each agent starts.
    pub fn places(&self) -> Vec<[f64; 2]> {
        places(&self.problem, self.at_first(), &self.arrivals)
    }

    /// Whom its faults hit, where that is settled before the run.
    pub fn plan(&self) -> Plan {
        let problem = &self.problem;
        let run = Run {
            grid: &problem.grid,
            places: &self.places(),
            at_first: self.at_first(),
            steps: self.steps,
            interval_us: problem.control_interval * 1e6,
            seed: self.seed,
        };
        Plan::new(&self.faults, run)
    }

    /// Runs an episode and holds it to what is required; `watch` sees the state before the first step and
    /// after each.
    pub fn judged(
        &self,
        episode: &Episode,
        rig: Option<&Rig>,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> (Result<Score, RunError>, Verdict) {
        let policy = self.parsed_policy();
        let mut judge = Judge::new(&self.requirements, &self.conditions());
        let score = self
            .experiment(policy.as_ref())
            .run_on(rig, episode, &mut |snapshot| {
                judge.see(&Moment { snapshot, rig });
                watch(snapshot);
            });
        let cut = score.as_ref().err().map(ToString::to_string);
        (score, judge.verdict(cut))
    }

    /// The policy, parsed.
    ///
    /// # Panics
    /// Never for a team that a scenario set up: it was checked then.
    pub fn parsed_policy(&self) -> Option<Policy<'_>> {
        let file = self.policy.as_ref()?;
        Some(file.policy(&self.problem).expect("checked when set up"))
    }

    /// Its scenario with what that left to defaults.
    pub fn explicit(&self, scenario: &Scenario) -> Scenario {
        let plans = |figure: usize| (self.kind.takes == Takes::Planning).then_some(figure);
        Scenario {
            plan: plans(self.planning.steps),
            replan: plans(self.planning.replan),
            plan_runs: plans(self.planning.runs),
            problem: self.problem.address(),
            controller: Some(self.kind),
            agents: Some(self.at_first()),
            steps: Some(self.steps),
            realtime: self.realtime,
            ..scenario.clone()
        }
    }

    /// A feedback law with the gain that was given, or the tuned one.
    pub fn law(&self, tuned: Option<Proportional>) -> Option<Proportional> {
        match self.gain {
            Some(gain) => Some(tuned.map_or(plain(gain), |tuned| Proportional { gain, ..tuned })),
            None => tuned,
        }
    }

    /// The controller that decides in one place.
    ///
    /// # Panics
    /// If it does not.
    pub fn guided(&self) -> Controller<'_> {
        Controller::Guided(self.guide.as_deref().expect("made when set up"))
    }

    /// The experiment; `policy` is [`parsed_policy`](Self::parsed_policy).
    pub fn experiment<'p>(&'p self, policy: Option<&'p Policy<'p>>) -> Experiment<'p> {
        let controller = (self.kind.make)(self, policy);
        Experiment {
            problem: &self.problem,
            controller,
            agents: self.at_first(),
            steps: self.steps,
            faults: &self.faults,
            seed: self.seed,
            plant: None,
        }
    }
}
