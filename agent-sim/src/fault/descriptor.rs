//! All that is said about a fault: its [`Descriptor`] stands beside what it does, and everything
//! else (reading, writing, checking, planning, the list for people) is made of descriptors.

use super::board::BoardFault;
use super::life::Reset;
use super::{ALL, Clock, Fault, Parameter, Presence, Scope, What};
use crate::link::Link;
use rand_chacha::ChaCha8Rng;
use std::fmt;

/// A way in which things go wrong.
pub struct Descriptor {
    /// What people call it.
    pub name: &'static str,
    /// What breaks.
    pub group: Group,
    /// What it takes besides for whom and when.
    pub parameters: &'static [Parameter],
    /// For whom it can be meant.
    pub whom: Whom,
    /// When it can hold.
    pub when: When,
    /// What it does, in a line for people who choose one.
    pub help: &'static str,
    /// What becomes of those whom this fault hits, for captions: "crash", "see 2 steps late".
    pub caption: fn(&Fault) -> String,
    /// How it does that.
    pub act: Act,
}

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The agent itself.
    Agent,
    /// Its actuator.
    Actuator,
    /// Its sensor.
    Sensor,
    /// The line between it and the host.
    Line,
    /// A board.
    Board,
}

impl Group {
    fn heading(self) -> &'static str {
        match self {
            Self::Agent => "the agent",
            Self::Actuator => "its actuator",
            Self::Sensor => "its sensor",
            Self::Line => "the line to it",
            Self::Board => {
                "a board, for real (who: link=qemu, count=2 drawn by the seed, or ids=…)"
            }
        }
    }
}

/// For whom a fault can be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Any agents, or those in a region.
    Anyone,
    /// Any agents, wherever they go.
    Agents,
    /// Those in a region, which has to be given.
    Region,
    /// Boards.
    Boards,
    /// Agents that [sense by themselves](crate::standing).
    Standing,
}

impl Whom {
    /// The parameters that say it.
    pub fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Anyone => &["fraction", "cluster", "ids", "region"],
            Self::Agents | Self::Standing => &["fraction", "cluster", "ids"],
            Self::Region => &["region"],
            Self::Boards => &["link", "count", "ids"],
        }
    }
}

/// When a fault can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All the time.
    Always,
    /// From some time on.
    From,
    /// From some time on and until another.
    Between,
    /// Likewise, and its end is a restart: the agent comes back with its memory lost.
    UntilRestart,
}

impl When {
    /// The parameters that say it.
    pub fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Always => &[],
            Self::From => &["at", "announced"],
            Self::Between => &["at", "until", "announced"],
            Self::UntilRestart => &["at", "until", "restart", "announced"],
        }
    }
}

/// How a fault does what it does.
pub enum Act {
    /// It stands between the host and an agent.
    Link(Wrap),
    /// It gives an agent a clock of its own; where there are several, their rates are multiplied and
    /// their phases added.
    Clock(fn(&What, &mut ChaCha8Rng) -> Clock),
    /// It happens to a board or its cable, for real; the [`rig`](crate::rig) sees to it.
    Board(BoardFault),
}

/// Puts a fault over a link.
pub type Wrap = for<'l> fn(Box<dyn Link + 'l>, &Hit<'_>) -> Box<dyn Link + 'l>;

/// A fault that hits one agent: all that a wrapper is made with.
pub struct Hit<'p> {
    /// The fault with its values.
    pub what: &'p What,
    /// When and where it holds.
    pub scope: Scope,
    /// When what creeps in is there in full: at the fault's end, or at the run's.
    pub end_us: u64,
    /// Takes the agent's memory.
    pub reset: &'p Reset,
    /// Its own random numbers.
    pub rng: ChaCha8Rng,
}

impl Descriptor {
    /// The fault with one of its parameters set; see [`What::with`].
    pub fn with(&'static self, parameter: &str, value: impl ToString) -> What {
        What::from(self).with(parameter, value)
    }

    /// All parameters that it takes.
    pub fn takes(&self) -> Vec<&'static str> {
        let own = self.parameters.iter().map(|parameter| parameter.name);
        let general = [self.whom.takes(), self.when.takes()].concat();
        own.chain(general).collect()
    }

    /// How to write it, with all that is its own; in brackets what can be left out.
    pub fn usage(&self) -> String {
        let mut text = self.name.to_owned();
        for parameter in self.parameters {
            let (name, example) = (parameter.name, parameter.example);
            text += &match parameter.presence {
                Presence::Needed | Presence::OneOf(_) => format!(",{name}={example}"),
                Presence::Optional | Presence::Default(_) => format!("[,{name}={example}]"),
            };
        }
        if self.whom == Whom::Region {
            text += ",region=…";
        }
        text
    }

    /// A text that reads as this fault, likewise.
    pub fn example(&self) -> String {
        self.usage()
            .replace(['[', ']'], "")
            .replace('…', "0.2..0.6")
    }
}

/// No two faults share a name.
impl PartialEq for Descriptor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The names of all faults.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|kind| kind.name).collect()
}

/// All faults by what breaks, a line each, for people who choose one.
pub fn listing() -> String {
    let width = ALL.iter().map(|kind| kind.usage().chars().count()).max();
    let width = width.unwrap_or(0) + 2;
    let mut text = String::new();
    for group in ALL.chunk_by(|one, next| one.group == next.group) {
        text += &format!("  {}\n", group[0].group.heading());
        for kind in group {
            text += &format!("    {:width$}{}\n", kind.usage(), kind.help);
        }
    }
    text
}
