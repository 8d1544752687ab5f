//! What every result names: how it came about.

use crate::study::own_field::OwnField;
use crate::{Mode, Scope};
use std::process::Command;

/// Fingerprint of the sources that decide what a run gives.
pub const SOURCES: &str = env!("SIMULATOR_SOURCES");

/// How results came about. Without a date: the same run gives the same files.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// Seed of fresh episodes and of faults.
    pub seed: u64,
    /// Revision of the source tree, `-dirty` if it was changed.
    pub commit: String,
    /// Quick or full.
    pub mode: Mode,
    /// Processor and number of cores.
    pub machine: String,
    /// Problem and hash of its policy.
    pub policies: Vec<(&'static str, String)>,
    /// The file that results are about, where they are about one.
    pub file: Option<String>,
}

impl Provenance {
    /// That of a run on this machine.
    pub fn here(scope: &Scope) -> anyhow::Result<Self> {
        let mut policies = Vec::new();
        for problem in problem::published::measured() {
            policies.push((problem.name, scope.policy(problem)?.hash()));
        }
        Ok(Self {
            seed: scope.seed,
            commit: scope.commit.clone(),
            mode: scope.mode,
            machine: machine(),
            policies,
            file: None,
        })
    }

    /// That of a run about a field of one's own.
    pub fn of_file(scope: &Scope, file: &str, field: &OwnField) -> Self {
        let policy = field.policy().map(|policy| policy.hash());
        Self {
            seed: scope.seed,
            commit: scope.commit.clone(),
            mode: scope.mode,
            machine: machine(),
            policies: (policy.into_iter())
                .map(|hash| (field.problem().name, hash))
                .collect(),
            file: Some(file.to_owned()),
        }
    }

    /// In lines, for tables.
    pub fn lines(&self) -> Vec<String> {
        let policies = self.policies.iter();
        let policies = policies.map(|(problem, hash)| format!("{problem} {}", &hash[..12]));
        vec![
            format!("mode: {}", self.mode.name()),
            format!("seed: {}", self.seed),
            format!("commit: {}", self.commit),
            format!("machine: {}", self.machine),
            format!(
                "policies (SHA-256): {}",
                policies.collect::<Vec<_>>().join(", ")
            ),
        ]
    }
}

/// The revision of the tree that this program was built from, if that is still there.
pub fn revision() -> String {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-C", env!("CARGO_MANIFEST_DIR")]).args(args);
        git.output().ok().filter(|output| output.status.success())
    };
    let Some(output) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let mut revision = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // Results do not decide results: they may change under a run that goes on.
    let changed = [
        "diff",
        "--quiet",
        "HEAD",
        "--",
        ":/",
        ":(top,exclude)docs/results",
    ];
    if git(&changed).is_none() {
        revision += "-dirty";
    }
    revision
}

/// Processor and number of cores.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    format!("{model}, {cores} cores")
}
