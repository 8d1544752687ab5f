//! The usual work: a swarm against a field, episode by episode.

use crate::Scope;
use crate::cell::Work;
use crate::shelf::{Draw, Shelf};
use agent_core::policy::Policy;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::coverage::Coverage;
use agent_sim::episode::Snapshot;
use agent_sim::fault::Fault;
use agent_sim::scenario::fault_seed;
use artifacts::policy_file::PolicyFile;
use problem::metrics::Score;
use problem::test_set::EpisodeSet;
use problem::{Drives, Episode, Problem};
use serde_json::json;
use std::sync::Arc;

/// A problem, as it is or changed.
#[derive(Clone)]
pub struct Setting {
    /// The problem.
    pub problem: Problem,
    /// What was changed that the problem's grid, solver steps and horizon do not say, such as
    /// `viscosity 2e-4`; empty if nothing was. Two settings that differ in anything else must
    /// differ here.
    pub form: String,
}

impl Setting {
    /// The problem of that name, as it is.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        Ok(Self::of(problem::published::by_name(name)?))
    }

    /// A problem as it is.
    pub fn of(problem: &Problem) -> Self {
        Self {
            problem: *problem,
            form: String::new(),
        }
    }

    /// One of the problem's variants.
    pub fn variant(&self, name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            problem: self.problem.with_variant(name)?,
            form: name.to_owned(),
        })
    }

    /// With other coefficients; published values leave it as it is.
    pub fn physics(&self, values: &[(&str, f64)]) -> anyhow::Result<Self> {
        let problem = self.problem.with_physics(values.iter().copied())?;
        let changes = problem
            .changed_physics()
            .map(|(name, value)| format!("{name}={value}"));
        let forms: Vec<String> = [self.form.clone()].into_iter().chain(changes).collect();
        Ok(Self {
            problem,
            form: forms.join(" ").trim().to_owned(),
        })
    }

    /// On another grid.
    pub fn grid(&self, points: usize) -> anyhow::Result<Self> {
        Ok(Self {
            problem: self.problem.with_grid(points)?,
            form: self.form.clone(),
        })
    }
}

/// Who commands the actuators.
#[derive(Clone)]
pub enum Controls {
    /// Nobody.
    Nobody,
    /// Proportional feedback, with the gain for the number of agents.
    Proportional,
    /// Agents that share out the errors, with the gain for their number; for fields that agents push, not stir.
    Coverage,
    /// A policy.
    Policy(Arc<PolicyFile>),
}

impl Controls {
    /// For tables and names of cells.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nobody => "no control",
            Self::Proportional => "proportional",
            Self::Coverage => "coverage",
            Self::Policy(_) => "policy",
        }
    }
}

/// Many episodes of one swarm. Its figures are those of a [`Score`] and `headline`, the one of them
/// that the published table shows.
#[derive(Clone)]
pub struct SwarmWork {
    /// The field.
    pub setting: Setting,
    /// Who acts.
    pub controls: Controls,
    /// How many of them.
    pub agents: usize,
    /// For how many steps.
    pub steps: usize,
    /// What goes wrong; victims are drawn anew for each episode.
    pub faults: Vec<Fault>,
    /// Published or fresh episodes.
    pub set: EpisodeSet,
    /// How many.
    pub episodes: usize,
    /// Of fresh episodes and of faults.
    pub seed: u64,
}

impl SwarmWork {
    /// The published swarm on as many fresh episodes as the scope says, with nothing going wrong.
    pub fn fresh(scope: &Scope, setting: Setting, controls: Controls) -> Self {
        Self {
            agents: setting.problem.agents,
            steps: setting.problem.horizon,
            faults: Vec::new(),
            set: EpisodeSet::Fresh,
            episodes: scope.episodes(),
            seed: scope.seed,
            setting,
            controls,
        }
    }

    /// The same on the published test episodes: all of them, or a few.
    pub fn table(scope: &Scope, setting: Setting, controls: Controls) -> anyhow::Result<Self> {
        let all = EpisodeSet::Table.episodes(&setting.problem, 0, None)?;
        Ok(Self {
            set: EpisodeSet::Table,
            episodes: scope.pick(all.len().min(scope.episodes()), all.len()),
            ..Self::fresh(scope, setting, controls)
        })
    }

    /// Runs episode number `piece`; `watch` sees the state before the first step and after each.
    /// `None` where the field blew up.
    pub fn watched(
        &self,
        piece: usize,
        shelf: &Shelf,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> anyhow::Result<Option<Score>> {
        let problem = &self.setting.problem;
        let stored;
        let episode = match self.draw() {
            Some(draw) => shelf.get(&draw, piece)?,
            None => {
                stored = self.set.episode(problem, self.seed, piece)?;
                &stored
            }
        };
        let policy = match &self.controls {
            Controls::Policy(file) => Some(file.policy(problem)?),
            _ => None,
        };
        Ok(self.score(policy.as_ref(), episode, piece, watch))
    }

    /// The score of one episode with that policy, parsed.
    fn score(
        &self,
        policy: Option<&Policy<'_>>,
        episode: &Episode,
        index: usize,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Option<Score> {
        let problem = &self.setting.problem;
        let coverage = match &self.controls {
            Controls::Coverage => Some(Coverage::new(problem, problem.coverage_for(self.agents)?)?),
            _ => None,
        };
        let controller = match (&self.controls, policy) {
            (Controls::Policy(_), Some(policy)) => Controller::Policy(policy),
            (Controls::Proportional, _) => {
                Controller::Proportional(problem.baseline_for(self.agents)?)
            }
            _ => match &coverage {
                Some(coverage) => Controller::Guided(coverage),
                None => Controller::None,
            },
        };
        let experiment = Experiment {
            problem,
            controller,
            agents: self.agents,
            steps: self.steps,
            faults: &self.faults,
            seed: fault_seed(self.seed, index),
            plant: None,
        };
        experiment.run(episode, watch).ok()
    }
}

impl Work for SwarmWork {
    fn key(&self) -> serde_json::Value {
        let problem = &self.setting.problem;
        // Nobody is nobody, however many there are and whatever happens to them.
        let nobody = matches!(self.controls, Controls::Nobody);
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        json!({
            "problem": problem.name,
            "form": self.setting.form,
            "grid": problem.grid.points,
            "substeps": problem.substeps,
            "controls": self.controls.name(),
            "policy": match &self.controls {
                Controls::Policy(file) => Some(file.hash()),
                _ => None,
            },
            "agents": if nobody { 0 } else { self.agents },
            "steps": self.steps,
            "faults": if nobody { Vec::new() } else { faults },
            "set": self.set.to_string(),
            "seed": self.seed,
        })
    }

    fn pieces(&self) -> usize {
        self.episodes
    }

    fn cost(&self) -> u64 {
        let problem = &self.setting.problem;
        let field = 40 * problem.grid.len() * problem.substeps;
        let agent = match (&self.controls, problem.actuation.drives) {
            (Controls::Nobody, _) => 0,
            (Controls::Policy(file), _) => 300 + file.bytes().len() / 28,
            (Controls::Proportional, Drives::Source) => 2_000,
            // Each looks at the whole plane.
            (Controls::Proportional, Drives::Flow) => 150_000,
            // Somebody measures how far every place is from each.
            (Controls::Coverage, _) => 2_000 + 2 * problem.grid.len(),
        };
        (self.steps * (field + self.agents * agent)) as u64
    }

    fn figures(&self) -> Vec<String> {
        let names = [
            "headline",
            "final",
            "time_mean",
            "effort",
            "travel",
            "intrusion",
        ];
        names.map(str::to_owned).to_vec()
    }

    fn draw(&self) -> Option<Draw> {
        (self.set == EpisodeSet::Fresh).then(|| Draw {
            problem: self.setting.problem,
            form: self.setting.form.clone(),
            seed: self.seed,
            count: self.episodes,
        })
    }

    fn run(&self, piece: usize, shelf: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let scoring = self.setting.problem.scoring;
        let score = self.watched(piece, shelf, &mut |_| {})?;
        Ok(score.map(|score| {
            vec![
                score.headline(scoring),
                score.final_error,
                score.time_mean_error,
                score.effort,
                score.travel,
                score.intrusion,
            ]
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use crate::store::address;

    fn trial() -> SwarmWork {
        let scope = Scope::new(Mode::Quick, 1, None, String::new());
        let setting = Setting::named("heat-1d").unwrap();
        let policy = scope.policy(&setting.problem).unwrap();
        SwarmWork::fresh(&scope, setting, Controls::Policy(policy))
    }

    /// Everything a trial consists of, changed one at a time.
    #[test]
    fn all_that_decides_a_trial_is_in_its_address() {
        let plain = trial();
        let mut others: Vec<SwarmWork> = vec![plain.clone(); 12];
        others[0].setting.form = "warm".into();
        others[1].setting = plain.setting.grid(200).unwrap();
        others[2].setting = Setting::named("fkpp-1d").unwrap();
        others[3].controls = Controls::Proportional;
        let Controls::Policy(file) = &plain.controls else {
            unreachable!("made so above");
        };
        let int8 = file.recoded(agent_core::policy::Encoding::Int8).unwrap();
        others[4].controls = Controls::Policy(Arc::new(int8));
        others[5].agents += 1;
        others[6].steps -= 1;
        others[7].faults = vec!["crash,fraction=0.3,at=0.5".parse().unwrap()];
        others[8].set = EpisodeSet::Table;
        others[9].episodes += 1;
        others[10].seed += 1;
        others[11].controls = Controls::Coverage;
        let mut addresses: Vec<String> = others.iter().map(|trial| address(trial)).collect();
        addresses.push(address(&plain));
        assert_eq!(address(&trial()), address(&plain));
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 13);
    }

    #[test]
    fn nobody_is_the_same_in_any_number() {
        let nobody = SwarmWork {
            controls: Controls::Nobody,
            ..trial()
        };
        let many = SwarmWork {
            agents: 99,
            ..nobody.clone()
        };
        assert_eq!(address(&nobody), address(&many));
    }
}
