//! The cells in which policies are compared.

use crate::oracle::{Oracle, plan};
use crate::study::mishap::{Mishap, Spread, fault};
use crate::study::sizes::{multiple, nearest, sizes};
use crate::study::{Scope, noise};
use agent_sim::fault::Fault;
use problem::Problem;

/// Numbers of agents, over the published one.
pub const MULTIPLES: [f64; 9] = [0.25, 0.5, 0.7, 1.0, 2.0, 4.0, 16.0, 64.0, 128.0];

/// Numbers at which noise is tried where not all goes with all.
pub const NOISY: [f64; 3] = [0.5, 1.0, 4.0];

/// Up to here all losses and levels of noise are tried on lines: beyond, and on planes, that takes
/// hours. It is a rule of sizes rather than of times, so that all policies have the same cells.
const ALL_WITH_ALL: f64 = 16.0;

/// What becomes of some agents half way.
#[derive(Clone, Copy)]
pub struct Loss {
    /// In files.
    pub name: &'static str,
    /// In pictures.
    pub label: &'static str,
    hit: Option<(Mishap, Spread, f64)>,
}

const fn loss(name: &'static str, label: &'static str, hit: Option<(Mishap, Spread, f64)>) -> Loss {
    Loss { name, label, hit }
}

/// All losses, none first.
#[rustfmt::skip]
pub const LOSSES: [Loss; 6] = [
    loss("none", "no loss", None),
    loss("crash-0.1", "10 % crash", Some((Mishap::Crash, Spread::Random, 0.1))),
    loss("crash-0.3", "30 % crash", Some((Mishap::Crash, Spread::Random, 0.3))),
    loss("crash-0.5", "50 % crash", Some((Mishap::Crash, Spread::Random, 0.5))),
    loss("cluster-0.3", "30 % side by side", Some((Mishap::Crash, Spread::Clustered, 0.3))),
    loss("stuck-0.05", "5 % at maximum", Some((Mishap::StuckAtMaximum, Spread::Random, 0.05))),
];

/// A swarm and what it meets.
#[derive(Clone, Copy)]
pub struct Case {
    pub problem: &'static Problem,
    pub agents: usize,
    pub loss: Loss,
    pub noisy: bool,
}

impl Case {
    /// The level of noise, in files.
    pub fn noise(&self) -> &'static str {
        if self.noisy { "low" } else { "none" }
    }

    /// Problem, agents, loss and noise, as in files.
    pub fn labels(&self) -> [String; 4] {
        [
            self.problem.name.to_owned(),
            self.agents.to_string(),
            self.loss.name.to_owned(),
            self.noise().to_owned(),
        ]
    }

    /// Loss and noise, as in pictures.
    pub fn trouble(&self) -> String {
        let noise = if self.noisy { ", noise" } else { "" };
        format!("{}{noise}", self.loss.label)
    }

    /// How many times the published number of agents.
    pub fn multiple(&self) -> f64 {
        multiple(self.problem, self.agents)
    }

    /// All that goes wrong. The loss comes first: who is hit depends on its place in the list, and is
    /// to be the same with noise and without.
    pub fn faults(&self) -> Vec<Fault> {
        let hit = self
            .loss
            .hit
            .map(|(mishap, spread, share)| fault(self.problem, self.agents, mishap, spread, share));
        let noise = match self.noisy {
            true => noise::low(self.problem),
            false => Vec::new(),
        };
        hit.into_iter().chain(noise).collect()
    }

    /// The plans that bound what anybody can reach here, where some are known.
    pub fn bound<'a>(&self, plans: &'a [Oracle]) -> Option<&'a Oracle> {
        let crash = match self.loss.hit {
            _ if self.noisy => return None,
            None => None,
            Some((Mishap::Crash, Spread::Random, share)) => Some(share),
            Some(_) => return None,
        };
        plan(plans, self.problem.name, self.agents, crash)
    }

    fn is_at_home(&self) -> bool {
        self.agents == self.problem.agents
    }

    fn has_loss(&self) -> bool {
        self.loss.hit.is_some()
    }

    /// Whether at most one thing is other than published, or two where one is noise at a few sizes.
    fn is_on_an_axis(&self) -> bool {
        match (self.has_loss(), self.noisy) {
            (false, false) => true,
            (true, false) => self.is_at_home(),
            (false, true) => NOISY
                .map(|m| nearest(self.problem, m))
                .contains(&self.agents),
            (true, true) => false,
        }
    }

    fn is_in(&self, scope: &Scope) -> bool {
        let cheap = self.problem.grid.axes == 1 && self.multiple() <= ALL_WITH_ALL;
        let few = match self.loss.name {
            "none" => !self.noisy || self.is_at_home(),
            "crash-0.3" => !self.noisy && self.is_at_home(),
            _ => false,
        };
        scope.pick(few, self.is_on_an_axis() || cheap)
    }
}

/// The cells of a problem, by size, then loss, then noise.
pub fn cases(scope: &Scope, problem: &'static Problem) -> Vec<Case> {
    let multiples = scope.pick(vec![0.5, 1.0, 2.0], MULTIPLES.to_vec());
    let mut cases = Vec::new();
    for agents in sizes(problem, multiples) {
        for loss in LOSSES {
            cases.extend([false, true].map(|noisy| Case {
                problem,
                agents,
                loss,
                noisy,
            }));
        }
    }
    cases.retain(|case| case.is_in(scope));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use crate::known::Known;
    use std::collections::HashSet;

    fn full() -> Vec<Case> {
        let scope = Scope::new(Mode::Full, 1, None, String::new());
        problem::published::measured()
            .flat_map(|problem| cases(&scope, problem))
            .collect()
    }

    #[test]
    fn each_cell_is_there_once() {
        let full = full();
        let labels: HashSet<[String; 4]> = full.iter().map(Case::labels).collect();
        assert_eq!(labels.len(), full.len());
    }

    #[test]
    fn every_problem_has_all_sizes_losses_and_noise_and_lines_have_all_with_all() {
        let labels: HashSet<[String; 4]> = full().iter().map(Case::labels).collect();
        for problem in problem::published::measured() {
            let has = |multiple, loss: &Loss, noise: &str| {
                let agents = nearest(problem, multiple).to_string();
                let cell = [problem.name, &agents, loss.name, noise].map(str::to_owned);
                assert!(labels.contains(&cell), "{cell:?}");
            };
            for multiple in MULTIPLES {
                has(multiple, &LOSSES[0], "none");
                if problem.grid.axes > 1 || multiple > 16.0 {
                    continue;
                }
                for loss in &LOSSES {
                    has(multiple, loss, "none");
                    has(multiple, loss, "low");
                }
            }
            for loss in &LOSSES {
                has(1.0, loss, "none");
            }
            for multiple in NOISY {
                has(multiple, &LOSSES[0], "low");
            }
        }
    }

    #[test]
    fn what_is_known_is_known_of_these_cells_and_once_by_each() {
        let labels: HashSet<[String; 4]> = full().iter().map(Case::labels).collect();
        let mut seen = HashSet::new();
        for known in Known::all().unwrap() {
            let agents = known.agents.to_string();
            let cell = [known.problem, &agents, known.loss, known.noise].map(str::to_owned);
            assert!(
                labels.contains(&cell),
                "known.csv: there is no cell {cell:?}"
            );
            assert!(seen.insert((cell, known.by)), "known.csv: twice: {known:?}");
        }
    }

    #[test]
    fn shares_are_of_the_agents_that_there_are_and_noise_changes_nobodys_fate() {
        let ks = problem::published::by_name("ks-1d").unwrap();
        let case = |noisy| Case {
            problem: ks,
            agents: 128,
            loss: LOSSES[2],
            noisy,
        };
        let faults = |noisy| {
            let faults = case(noisy).faults();
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        // 38 of 128.
        let crash = "crash,fraction=0.296875,at=0.5";
        assert_eq!(faults(false), [crash]);
        let noise = ["noise,std=0.025", "actuator-noise,std=0.05"];
        assert_eq!(faults(true), [crash, noise[0], noise[1]]);
    }
}
