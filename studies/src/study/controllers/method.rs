//! Who is compared, and under what conditions.

use crate::paper::{Cited, Figures};
use crate::plot::PALETTE;
use agent_sim::report::{RGBColor, line};
use anyhow::Context;
use problem::Problem;

/// A way to control a field, as a row of tables.
#[derive(Debug)]
pub struct Method {
    /// In files.
    pub name: &'static str,
    /// On the page.
    pub label: &'static str,
    /// In pictures.
    pub colour: RGBColor,
    /// Who measures it.
    pub source: Source,
    /// Where it decides.
    pub site: Site,
    /// The paper's figure for it.
    pub cited: fn(&Figures) -> Option<Cited>,
}

/// Who measures a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The study itself.
    Study,
    /// Campaigns of reinforcement learning: `data/rl.csv`.
    Rl,
    /// The trainer, which has derivatives: `data/central.csv`.
    Central,
    /// The trainer's plans for episodes that it knows: `data/oracle.csv`.
    Plans,
}

/// Where a method decides what agents do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// Nowhere: there are no agents, or what they do is known beforehand.
    Nowhere,
    /// On each node for itself.
    Nodes,
    /// In one place, in a network with an output for every agent of a number that was fixed in training.
    Network,
    /// In one place, for any number of agents.
    Host,
}

impl Method {
    /// The one of that name among those of that source.
    pub fn of(source: Source, name: &str) -> anyhow::Result<&'static Self> {
        let mut of = METHODS.iter().filter(|method| method.source == source);
        let names: Vec<&str> = of.clone().map(|method| method.name).collect();
        let found = of.find(|method| method.name == name);
        found.with_context(|| format!("no method '{name}' among {}", names.join(", ")))
    }

    /// The one of that name.
    pub fn named(name: &str) -> anyhow::Result<&'static Self> {
        let found = METHODS.iter().find(|method| method.name == name);
        found.with_context(|| format!("no method '{name}'"))
    }

    /// Whether it is one network of the paper's, trained by others' rules.
    pub fn is_ablation(&self) -> bool {
        self.name.ends_with("-deeponet")
    }

    /// Whether it is one of the four that the paper compares with.
    pub fn is_rl_column(&self) -> bool {
        self.source == Source::Rl && !self.is_ablation()
    }

    /// Whether it is part of the comparison on that problem.
    pub fn takes_part(&self, problem: &str) -> bool {
        !self.is_ablation() || problem == ABLATED
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The problem of the paper's ablation.
pub const ABLATED: &str = "turbulence-2d";

const fn method(
    name: &'static str,
    label: &'static str,
    colour: RGBColor,
    source: Source,
    site: Site,
    cited: fn(&Figures) -> Option<Cited>,
) -> Method {
    Method {
        name,
        label,
        colour,
        source,
        site,
        cited,
    }
}

/// All of them, in the order of tables.
#[rustfmt::skip]
pub static METHODS: [Method; 13] = [
    method("none", "no control", line::GREY, Source::Study, Site::Nowhere, |f| Some(f.none)),
    method("proportional", "proportional", line::ORANGE, Source::Study, Site::Nodes, |_| None),
    method("coverage", "coverage", line::GREEN, Source::Study, Site::Host, |_| None),
    method("nmpc", "NMPC", PALETTE[7], Source::Central, Site::Host, |_| None),
    method("ppo", "PPO", PALETTE[5], Source::Rl, Site::Network, |f| Some(f.ppo)),
    method("td3", "TD3", PALETTE[6], Source::Rl, Site::Network, |f| Some(f.td3)),
    method("mappo", "MAPPO", line::PURPLE, Source::Rl, Site::Nodes, |f| Some(f.mappo)),
    method("matd3", "MATD3", line::VERMILION, Source::Rl, Site::Nodes, |f| Some(f.matd3)),
    method("dpc", "DPC", RGBColor(0x20, 0x20, 0x20), Source::Central, Site::Network, |f| Some(f.dpc)),
    method("mappo-deeponet", "DeepONet by MAPPO", line::PURPLE, Source::Rl, Site::Nodes, |_| None),
    method("matd3-deeponet", "DeepONet by MATD3", line::VERMILION, Source::Rl, Site::Nodes, |_| None),
    method("ours", "ours", line::BLUE, Source::Study, Site::Nodes, |f| Some(f.cinoc)),
    method("bound", "bound", line::GREY, Source::Plans, Site::Nowhere, |_| None),
];

/// What swarms meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The published episodes.
    Table,
    /// Fresh ones.
    Fresh,
    /// The published ones, with [`CRASH`].
    Crash,
    /// The published ones, with four times the agents.
    Fourfold,
    /// The published ones, with as many agents as the row says.
    Agents,
    /// The setting in which the paper measured its planner.
    PaperSetting,
}

/// What befalls agents: 30 % of them fall silent half way.
pub const CRASH: &str = "crash,fraction=0.3,at=0.5";
/// The same for plans of [`crate::oracle`].
pub const CRASHED: f64 = 0.3;

/// Agents of the larger swarms, over the published number.
const LARGER: usize = 4;

impl Condition {
    const ALL: [Self; 6] = [
        Self::Table,
        Self::Fresh,
        Self::Crash,
        Self::Fourfold,
        Self::Agents,
        Self::PaperSetting,
    ];

    /// Those that every method is measured in.
    pub const SHOWN: [Self; 3] = [Self::Table, Self::Crash, Self::Fourfold];

    /// In files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Fresh => "fresh",
            Self::Crash => "crash",
            Self::Fourfold => "fourfold",
            Self::Agents => "agents",
            Self::PaperSetting => "paper-setting",
        }
    }

    /// On the page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Table => "table episodes",
            Self::Fresh => "fresh episodes",
            Self::Crash => "30 % crashed",
            Self::Fourfold => "4 × the agents",
            Self::Agents => "other numbers of agents",
            Self::PaperSetting => "the paper's setting",
        }
    }

    /// The one of that name, if it is one of these.
    pub fn among(these: &[Self], name: &str) -> anyhow::Result<Self> {
        let found = these.iter().find(|condition| condition.name() == name);
        found.copied().with_context(|| {
            let names: Vec<&str> = these.iter().map(|condition| condition.name()).collect();
            format!("no condition '{name}' among {}", names.join(", "))
        })
    }

    /// The one of that name.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        Self::among(&Self::ALL, name)
    }

    /// How many agents there are, where that is not a row's to say.
    pub fn agents(self, problem: &Problem) -> Option<usize> {
        match self {
            Self::Table | Self::Fresh | Self::Crash | Self::PaperSetting => Some(problem.agents),
            Self::Fourfold => Some(LARGER * problem.agents),
            Self::Agents => None,
        }
    }

    /// Refuses rows about another number of agents than the condition has, or than a network has outputs for.
    pub fn check(self, problem: &Problem, method: &Method, agents: usize) -> anyhow::Result<()> {
        let number = self.agents(problem).unwrap_or(agents);
        anyhow::ensure!(
            agents == number,
            "{agents} agents where {} has {number}",
            self.name()
        );
        anyhow::ensure!(
            method.site != Site::Network || agents == problem.agents,
            "{} has outputs for {} agents and no others",
            method.name,
            problem.agents
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_find_their_own() {
        for method in &METHODS {
            assert_eq!(Method::named(method.name).unwrap(), method);
            assert_eq!(Method::of(method.source, method.name).unwrap(), method);
        }
        let names: HashSet<&str> = METHODS.iter().map(|method| method.label).collect();
        assert_eq!(names.len(), METHODS.len());
        for condition in Condition::ALL {
            assert_eq!(Condition::named(condition.name()).unwrap(), condition);
        }
    }
}
