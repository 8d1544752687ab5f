//! How large things may be. Every size that people give, on a command line or in a file, has an end
//! that is far beyond use and within what programs bear, and a refusal that names it.

use std::ops::RangeInclusive;

/// The most of something that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What is counted, in the plural.
    pub what: &'static str,
    /// The largest number of it.
    pub most: usize,
    /// What to do instead.
    pub instead: &'static str,
}

/// More of something than is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} {} are too many: at most {} are taken; {}", limit.what, limit.most, limit.instead)]
pub struct TooMany {
    /// As it was given.
    pub given: u128,
    /// What it passes.
    pub limit: Limit,
}

impl Limit {
    const fn new(what: &'static str, most: usize, instead: &'static str) -> Self {
        Self {
            what,
            most,
            instead,
        }
    }

    /// Refuses more.
    pub fn check(self, given: usize) -> Result<(), TooMany> {
        self.check_product([given, 1])
    }

    /// Refuses more where it is a product, which may be beyond what can be counted otherwise.
    pub fn check_product(self, factors: [usize; 2]) -> Result<(), TooMany> {
        let given = factors[0] as u128 * factors[1] as u128;
        match given <= self.most as u128 {
            true => Ok(()),
            false => Err(TooMany { given, limit: self }),
        }
    }
}

/// Agents of a swarm.
pub const AGENTS: Limit = Limit::new("agents", 1 << 20, "give --agents fewer");
/// Control steps of a run.
pub const STEPS: Limit = Limit::new(
    "steps",
    1_000_000,
    "give --steps fewer, or make several runs",
);
/// Points of a grid: beyond, a run would not fit in memory.
pub const POINTS: Limit = Limit::new("grid points", 1 << 22, "take a coarser grid");
/// Solver steps in a control interval.
pub const SUBSTEPS: Limit = Limit::new(
    "solver steps in a control interval",
    100_000,
    "give --substeps fewer, or take a coarser grid",
);
/// Episodes of a set, which are numbered below it too.
pub const EPISODES: Limit = Limit::new(
    "episodes",
    1_000_000,
    "give fewer, and other --seed for others",
);
/// Faults of a run.
pub const FAULTS: Limit = Limit::new(
    "faults",
    1000,
    "let one fault hit several agents with fraction= or ids=",
);
/// What is done in a run by hand.
pub const TOUCHES: Limit = Limit::new("touches", 1000, "do less by hand");
/// Requirements of a run.
pub const REQUIREMENTS: Limit = Limit::new("requirements", 100, "leave some out");
/// Runs of a campaign.
pub const RUNS: Limit = Limit::new(
    "runs of a campaign",
    10_000_000,
    "give a range fewer points, or sampling = \"sobol\" and runs",
);
/// What a campaign varies.
pub const VARIED: Limit = Limit::new("varied values", 100, "make several campaigns");
/// Boards of a run; an emulated one is a process.
pub const BOARDS: Limit = Limit::new("boards", 1024, "leave the others in the simulator");
/// Points of a sweep.
pub const SWEEP: Limit = Limit::new(
    "points of a sweep",
    1000,
    "give fewer numbers of agents or shares, or make several sweeps",
);
/// Threads of a program.
pub const THREADS: Limit = Limit::new(
    "threads",
    1024,
    "more than there are cores gain nothing: leave --threads out",
);
/// Programs that share a piece of work.
pub const SHARDS: Limit = Limit::new(
    "shards",
    10_000,
    "give fewer, and each of them more threads",
);
/// Optimiser steps of a training.
pub const TRAINING_STEPS: Limit = Limit::new("steps", 100_000_000, "give --steps fewer");
/// Episodes of a training step.
pub const BATCH: Limit = Limit::new("episodes of a training step", 1 << 16, "give --batch fewer");

/// Environments that are stepped side by side.
pub const ENVIRONMENTS: Limit =
    Limit::new("environments of a batch", 1 << 16, "take several batches");

/// How many times as fast as the wall clock a field can go: slower, a step would take hours, and
/// faster, no clock could tell steps apart.
pub const SPEEDS: RangeInclusive<f64> = 1e-4..=1e6;

/// Seconds that a board can be waited for.
pub const PATIENCE: RangeInclusive<f64> = 1e-3..=3600.0;

/// Something that would not fit into the memory of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} would take about {} of memory and this machine has {}; {instead}",
    bytes(*needed),
    bytes(*there)
)]
pub struct NoRoom {
    /// What it is.
    pub what: String,
    /// Bytes that it needs.
    pub needed: u64,
    /// Bytes that there are.
    pub there: u64,
    /// What to do instead.
    pub instead: &'static str,
}

/// Refuses what needs more bytes than this machine has; nothing is refused where that is not known.
pub fn check_memory(
    needed: u64,
    what: impl FnOnce() -> String,
    instead: &'static str,
) -> Result<(), NoRoom> {
    match memory() {
        Some(there) if needed > there => Err(NoRoom {
            what: what(),
            needed,
            there,
            instead,
        }),
        _ => Ok(()),
    }
}

/// Bytes of memory that this program can have at most: the machine's, or its container's. A page has
/// addresses for 4 GiB, and what it can have of that nobody says; half is likely.
fn memory() -> Option<u64> {
    if cfg!(target_family = "wasm") {
        return Some(2 << 30);
    }
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"));
    let total = total?.trim().parse::<u64>().ok()? * 1024;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    Some(total.min(container.unwrap_or(u64::MAX)))
}

/// A size in words.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut size = count as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_told_with_the_limit_and_the_remedy() {
        assert_eq!(FAULTS.check(1000), Ok(()));
        let said = FAULTS.check(200_000).unwrap_err().to_string();
        for fact in ["200000 faults", "at most 1000", "fraction="] {
            assert!(said.contains(fact), "{said}");
        }
    }

    #[test]
    fn sizes_are_told_in_units() {
        let said = [0, 1023, 1536, 1 << 30, 1 << 40, u64::MAX].map(bytes);
        let right = [
            "0 bytes",
            "1023 bytes",
            "1.5 KiB",
            "1.0 GiB",
            "1.0 TiB",
            "16384.0 PiB",
        ];
        assert_eq!(said, right);
    }

    #[test]
    fn no_machine_has_all_the_memory_that_can_be_counted() {
        let what = || "a run".to_owned();
        assert_eq!(check_memory(1 << 20, what, "take less"), Ok(()));
        if memory().is_some() {
            let refused = check_memory(u64::MAX, what, "take less").unwrap_err();
            let said = refused.to_string();
            assert!(
                said.starts_with("a run would take about 16384.0 PiB"),
                "{said}"
            );
        }
    }
}
