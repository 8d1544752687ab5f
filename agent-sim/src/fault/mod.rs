//! Every way an agent can fail, as wrappers over its link.
//!
//! 1. A [`Fault`] says what goes wrong, for whom and when; people write it as `crash,fraction=0.3,at=0.5`
//!    on the command line or as a table in a file ([`text`]), and [`Fault::check`] refuses what makes
//!    no sense before anything runs ([`BadFault`]).
//! 2. A [`Plan`] settles once per run what the faults leave open: who is drawn, and the times in
//!    microseconds. [`Plan::stack`] then wraps an agent's link in the faults that address it.
//! 3. The wrappers, by what breaks: the agent itself ([`life`], [`clock`]), its actuator
//!    ([`actuator`]), its sensor ([`sensor`]), or the line between it and the host
//!    ([`line`](mod@line)). Each works over any link and holds only within its [`Scope`]. Faults of
//!    boards ([`board`](mod@board)) are the [`rig`](crate::rig)'s business: there a process is killed or
//!    a cable pulled.
//! 4. A [`Descriptor`] beside each says all that there is to say about it, and [`ALL`] lists them.
//!
//! To add a fault, write its wrapper and its descriptor, and add a line to [`ALL`]. One that belongs
//! to a crate of its own needs no line: [`Fault::new`] takes any descriptor, and [`text::read`] reads
//! texts with any list of them.
//!
//! Two things hold for all of them. What a fault does to one agent depends on the run's seed, the
//! fault's place in the list and the agent's number, and on nothing else, so results do not depend
//! on threads or on other agents. And no fault tells an agent anything that its own sensors and its
//! own clock could not.
//!
//! ```
//! use agent_sim::fault::{Fault, Plan, Run, Who, life::CRASH};
//!
//! let fault: Fault = "crash,fraction=0.25,at=0.5".parse()?;
//! assert_eq!(fault, Fault { who: Who::Fraction(0.25), at: 0.5, ..Fault::new(&CRASH) });
//! fault.check(8, 1, [0.0; 2], [1.0; 2])?;
//!
//! let problem = problem::published::by_name("heat-1d").unwrap();
//! let places = (problem.placement)(problem, 8);
//! let run = Run {
//!     grid: &problem.grid, places: &places, at_first: 8, steps: 300, interval_us: 1000.0, seed: 1,
//! };
//! let plan = Plan::new(&[fault], run);
//! assert_eq!(plan.victims(0).map(<[usize]>::len), Some(2));
//! # Ok::<_, agent_sim::fault::BadFault>(())
//! ```

pub mod actuator;
mod address;
pub mod board;
pub mod clock;
mod descriptor;
mod error;
pub mod life;
pub mod line;
mod parameter;
mod plan;
#[cfg(test)]
pub(crate) mod probe;
mod scope;
pub mod sensor;
pub mod text;
mod what;
mod written;

pub use address::{Ids, Region, Who};
pub use board::{BoardFault, Deed};
pub use clock::{Clock, OwnTime};
pub use descriptor::{Act, Descriptor, Group, Hit, When, Whom, Wrap, listing, names};
pub use error::BadFault;
pub use life::Crash;
pub use parameter::{Parameter, Presence, Range, Sort};
pub(crate) use plan::draw_count;
pub use plan::{Plan, Run};
pub use scope::Scope;
pub use what::What;

/// All faults, by what breaks.
pub static ALL: &[&Descriptor] = &[
    &life::CRASH,
    &life::JOIN,
    &clock::CLOCK,
    &actuator::STUCK,
    &actuator::GAIN,
    &actuator::BIAS,
    &actuator::INVERT,
    &actuator::ACTUATOR_NOISE,
    &sensor::NOISE,
    &sensor::SENSOR_BIAS,
    &sensor::DROPOUT,
    &sensor::FREEZE,
    &sensor::BUS_STUCK,
    &line::LOSS,
    &line::DELAY,
    &line::DUPLICATE,
    &line::REORDER,
    &line::CORRUPT,
    &life::BLACKOUT,
    &board::KILL,
    &board::HANG,
    &board::RESTART,
    &board::CUT,
    &board::FLOOD,
    &board::BROWNOUT,
    &board::FLASH,
];

/// Something that goes wrong in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What.
    pub what: What,
    /// For whom.
    pub who: Who,
    /// From when on, as a share of the run.
    pub at: f64,
    /// Until when, as a share of the run; `None` for good.
    pub until: Option<f64>,
    /// How many steps after it began the others are told; `None` where nobody is. What agents see says
    /// nothing of it, because no policy is trained to hear it: it is for reports.
    pub announced: Option<u32>,
}

impl Fault {
    /// A fault of all agents over the whole run.
    pub fn new(what: impl Into<What>) -> Self {
        Self {
            what: what.into(),
            who: Who::All,
            at: 0.0,
            until: None,
            announced: None,
        }
    }

    /// The step with which it begins, in a run of so many.
    pub fn begins(&self, steps: usize) -> usize {
        (self.at * steps as f64).round() as usize
    }

    /// The step in which the others are told, in a run of so many, if they are before it ends.
    pub fn told(&self, steps: usize) -> Option<usize> {
        let after = usize::try_from(self.announced?).ok()?;
        let told = self.begins(steps).saturating_add(after);
        (told <= steps).then_some(told)
    }

    /// Whether this fault makes sense for `agents` agents in a domain with `axes` axes that reaches
    /// from `low` to `high`.
    pub fn check(
        &self,
        agents: usize,
        axes: usize,
        low: [f64; 2],
        high: [f64; 2],
    ) -> Result<(), BadFault> {
        self.check_values()?;
        match &self.who {
            Who::Ids(ids) => ids.check(agents),
            Who::Region(region) => region.check(axes, low, high),
            Who::All | Who::Fraction(_) | Who::Cluster(_) | Who::Boards { .. } => Ok(()),
        }
    }

    /// What can be said against the fault's numbers before the problem is known.
    fn check_values(&self) -> Result<(), BadFault> {
        let kind = self.what.kind;
        let takes = kind.takes();
        let written = self.written().into_iter().map(|(parameter, _)| parameter);
        if let Some(given) = written.into_iter().find(|name| !takes.contains(name)) {
            return Err(BadFault::UnknownParameter {
                kind,
                given: given.to_owned(),
                nearest: None,
            });
        }
        self.what.check_given()?;
        self.what.check_ranges()?;
        if kind.whom == Whom::Region && !matches!(self.who, Who::Region(_)) {
            return Err(BadFault::Missing {
                kind,
                parameter: "region".to_owned(),
            });
        }
        match self.who {
            Who::Fraction(fraction) => Range::SHARE.check("fraction", fraction)?,
            Who::Cluster(fraction) => Range::SHARE.check("cluster", fraction)?,
            _ => {}
        }
        Range::SHARE.check("at", self.at)?;
        if let Some(until) = self.until {
            Range::SHARE.check("until", until)?;
            if self.at >= until {
                return Err(BadFault::EndsBeforeItBegins { at: self.at, until });
            }
        }
        Ok(())
    }

    /// What it does to boards, if it is boards that it happens to.
    pub fn on_board(&self) -> Option<&'static BoardFault> {
        match &self.what.kind.act {
            Act::Board(fault) => Some(fault),
            Act::Link(_) | Act::Clock(_) => None,
        }
    }

    /// Whether it happens to agents that sense by themselves, and to no others.
    pub fn is_of_standing(&self) -> bool {
        self.what.kind.whom == Whom::Standing
    }

    /// Whether it gives agents clocks of their own.
    pub fn is_of_clocks(&self) -> bool {
        matches!(self.what.kind.act, Act::Clock(_))
    }

    /// The fault in a few words, for the caption of a picture that shows its time otherwise.
    ///
    /// ```
    /// let fault: agent_sim::fault::Fault = "crash,fraction=0.3,at=0.5".parse()?;
    /// assert_eq!(fault.describe(8), "30 % of the agents crash");
    /// # Ok::<_, agent_sim::fault::BadFault>(())
    /// ```
    pub fn describe(&self, agents: usize) -> String {
        let who = match &self.who {
            Who::All => "all agents".to_owned(),
            Who::Fraction(fraction) => format!("{} % of the agents", percent(*fraction)),
            Who::Cluster(fraction) => {
                format!("{} % of the agents, side by side,", percent(*fraction))
            }
            Who::Ids(ids) => format!("{} of {agents} agents", ids.within(agents).len()),
            Who::Region(region) => format!("agents within {region}"),
            Who::Boards { link, count } => {
                let link = link.map_or(String::new(), |link| format!("{link} "));
                match count {
                    Some(count) => {
                        format!("{count} {link}board{}", if *count == 1 { "" } else { "s" })
                    }
                    None => format!("all {link}boards"),
                }
            }
        };
        format!("{who} {}", (self.what.kind.caption)(self))
    }

    /// The first text for a fault that is there for good, the second for one that ends.
    fn lasting(&self, for_good: &str, for_a_while: &str) -> String {
        match self.until {
            None => for_good.to_owned(),
            Some(_) => for_a_while.to_owned(),
        }
    }
}

/// A share in percent with at most one decimal.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(fault: &Fault) -> String {
        fault
            .check(8, 1, [0.0; 2], [1.0; 2])
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn refusals_name_the_value_and_what_is_allowed() {
        let crash = Fault::new(&life::CRASH);
        let with = |who| Fault {
            who,
            ..crash.clone()
        };
        let region = |text: &str| with(Who::Region(text.parse().unwrap()));
        for (fault, said) in [
            (with(Who::Fraction(1.5)), &["1.5", "between 0 and 1"][..]),
            (with(Who::Fraction(f64::NAN)), &["NaN", "between 0 and 1"]),
            (
                with(Who::Cluster(-1.0)),
                &["cluster is -1", "between 0 and 1"],
            ),
            (
                Fault::new(line::LOSS.with("p", 2.0)),
                &["p is 2", "between 0"],
            ),
            (
                Fault::new(sensor::NOISE.with("std", -0.1)),
                &["-0.1", "below 0"],
            ),
            (
                Fault::new(actuator::GAIN.with("factor", f64::INFINITY)),
                &["inf", "finite"],
            ),
            (
                Fault::new(clock::CLOCK.with("rate", 1)),
                &["rate is 1", "below 1"],
            ),
            (Fault::new(&life::BLACKOUT), &["blackout", "region"]),
            (
                Fault {
                    until: Some(0.5),
                    ..Fault::new(&life::JOIN)
                },
                &["join has no parameter 'until'"],
            ),
            (
                with(Who::Ids("3+8".parse().unwrap())),
                &["agent 8", "0 to 7"],
            ),
            (region("0.2..1.2"), &["0.2..1.2", "0..1"]),
            (region("0..1x0..1"), &["2 axes", "has 1"]),
            (
                Fault {
                    at: -0.1,
                    ..crash.clone()
                },
                &["at is -0.1"],
            ),
            (
                Fault {
                    at: 0.5,
                    until: Some(0.5),
                    ..crash.clone()
                },
                &["0.5", "before"],
            ),
        ] {
            let message = refusal(&fault);
            assert!(
                said.iter().all(|part| message.contains(part)),
                "{fault:?}: {message}"
            );
        }
    }

    #[test]
    fn sensible_faults_pass() {
        for text in [
            "crash",
            "crash,fraction=1,at=1",
            "loss,p=0",
            "noise,std=0.1,ids=0+7",
            "blackout,region=0..1",
            "delay,steps=0",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.check(8, 1, [0.0; 2], [1.0; 2]), Ok(()), "{text}");
        }
    }

    #[test]
    fn captions_say_who_and_what() {
        let said = |text: &str| text.parse::<Fault>().unwrap().describe(50);
        assert_eq!(said("noise,std=0.1"), "all agents sense with noise of 0.1");
        // 0, 3 and 10 to 20 are thirteen agents.
        assert_eq!(
            said("stuck,value=-5,ids=0+3+10..20"),
            "13 of 50 agents are stuck at force -5"
        );
        assert_eq!(
            said("stuck,speed=2,cluster=0.1"),
            "10 % of the agents, side by side, are stuck at speed 2"
        );
        assert_eq!(
            said("blackout,region=0.2..0.6x0.1..0.4"),
            "agents within 0.2..0.6x0.1..0.4 lose contact"
        );
        assert_eq!(
            said("crash,fraction=0.333333,until=0.5"),
            "33.3 % of the agents crash and restart"
        );
        assert_eq!(
            said("bias,value=5,drift=true"),
            "all agents come to add +5 of force"
        );
    }
}
