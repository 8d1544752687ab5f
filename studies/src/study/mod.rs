//! The studies, one a file.

mod cardinality;
mod effort;
mod fidelity;
mod fov;
mod meanfield;
mod multiscale;
mod physics;

use crate::cell::{Cell, Outcomes};
use crate::findings::Findings;
use crate::study_policy::{Varied, varied};
use agent_sim::policy_file::PolicyFile;
use agent_sim::problem::Problem;
use anyhow::Context;
use std::path::PathBuf;
use std::sync::Arc;

/// All studies, in the order in which they are run and listed.
pub static ALL: &[&dyn Study] = &[
    &cardinality::Cardinality,
    &fov::FieldOfView,
    &physics::Physics,
    &fidelity::Fidelity,
    &effort::Effort,
    &meanfield::MeanField,
    &multiscale::MultiScale,
];

/// A question with a measured answer.
pub trait Study: Sync {
    /// On the command line and of its files.
    fn name(&self) -> &'static str;

    /// The heading of its page.
    fn title(&self) -> &'static str;

    /// All that has to be run.
    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>>;

    /// What the outcomes of these cells say.
    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings>;
}

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Few points and episodes: does it work at all.
    Quick,
    /// What is published.
    Full,
}

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What a run is about, as far as studies need to know.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How thorough it is.
    pub mode: Mode,
    /// Seed of fresh episodes and of faults.
    pub seed: u64,
    /// Revision of the source tree that results name.
    pub commit: String,
    policies: Option<PathBuf>,
}

impl Scope {
    /// A run with the policies `<problem>.policy` of a folder, or with those that are built in.
    pub fn new(mode: Mode, seed: u64, policies: Option<PathBuf>, commit: String) -> Self {
        Self {
            mode,
            seed,
            commit,
            policies,
        }
    }

    /// For the foot of a picture.
    pub fn foot(&self) -> String {
        format!(
            "agent-sim {} · commit {} · seed {} · {}",
            env!("CARGO_PKG_VERSION"),
            self.commit,
            self.seed,
            self.mode.name()
        )
    }

    /// One thing in a quick run, another in a full one.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        match self.mode {
            Mode::Quick => quick,
            Mode::Full => full,
        }
    }

    /// Fresh episodes a cell.
    pub fn episodes(&self) -> usize {
        self.pick(2, 50)
    }

    /// The policies `<prefix><value>.policy` that were trained for one study, by rising value; those
    /// that are there.
    pub fn study_policies(&self, problem: &Problem, prefix: &str) -> anyhow::Result<Vec<Varied>> {
        varied(self.policies.as_deref(), problem, prefix)
    }

    /// The problem's policy.
    pub fn policy(&self, problem: &Problem) -> anyhow::Result<Arc<PolicyFile>> {
        let file = match &self.policies {
            None => PolicyFile::shipped(problem)?,
            Some(folder) => {
                let path = folder.join(format!("{}.policy", problem.name));
                PolicyFile::read(&path).with_context(|| {
                    format!(
                        "--policies needs one for each problem: <problem>.policy in {}",
                        folder.display()
                    )
                })?
            }
        };
        file.policy(problem)?;
        Ok(Arc::new(file))
    }
}
