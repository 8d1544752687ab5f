//! Every way an agent can fail, as wrappers over its link.
//!
//! 1. A [`Fault`] says what goes wrong, for whom and when; people write it as `crash,fraction=0.3,at=0.5`
//!    on the command line or as a table in a file ([`text`]), and [`Fault::check`] refuses what makes
//!    no sense before anything runs ([`BadFault`]).
//! 2. A [`Plan`] settles once per run what the faults leave open: who is drawn, and the times in
//!    microseconds. [`Plan::stack`] then wraps an agent's link in the faults that address it.
//! 3. Faults of boards ([`BoardFault`]) are the [`rig`](crate::rig)'s business: there a process is
//!    killed or a cable pulled.
//! 4. The wrappers, by what breaks: the agent itself ([`life`]), its actuator ([`actuator`]), its
//!    sensor ([`sensor`]), or the line between it and the host ([`line`](mod@line)). Each works over any link
//!    and holds only within its [`Scope`].
//!
//! Two things hold for all of them. What a fault does to one agent depends on the run's seed, the
//! fault's place in the list and the agent's number, and on nothing else, so results do not depend
//! on threads or on other agents. And no fault tells an agent anything that its own sensors and its
//! own clock could not.
//!
//! ```
//! use agent_sim::fault::{Fault, Kind, Plan, Run, Who};
//!
//! let fault: Fault = "crash,fraction=0.25,at=0.5".parse()?;
//! assert_eq!(fault, Fault { who: Who::Fraction(0.25), at: 0.5, ..Fault::new(Kind::Crash) });
//! fault.check(8, 1, [0.0; 2], [1.0; 2])?;
//!
//! let problem = problem::published::by_name("heat-1d").unwrap();
//! let places = (problem.placement)(problem, 8);
//! let run = Run { grid: &problem.grid, places: &places, steps: 300, interval_us: 1000.0, seed: 1 };
//! let plan = Plan::new(&[fault], run);
//! assert_eq!(plan.victims(0).map(<[usize]>::len), Some(2));
//! # Ok::<_, agent_sim::fault::BadFault>(())
//! ```

pub mod actuator;
mod address;
mod board;
mod clock;
mod error;
pub mod life;
pub mod line;
mod owned;
mod plan;
#[cfg(test)]
mod probe;
mod scope;
pub mod sensor;
pub mod text;
mod written;

pub use address::{Ids, Region, Who};
pub use board::BoardFault;
pub use clock::{Clock, OwnTime};
pub use error::BadFault;
pub use life::Crash;
pub use owned::OwnedObservation;
pub(crate) use plan::draw_count;
pub use plan::{Plan, Run};
pub use scope::Scope;

/// Something that goes wrong in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: Kind,
    /// For whom.
    pub who: Who,
    /// From when on, as a share of the run.
    pub at: f64,
    /// Until when, as a share of the run; `None` for good.
    pub until: Option<f64>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// The agent is silent. If the fault ends, it comes back with its memory lost.
    Crash,
    /// The agent is not there before the fault's `at`.
    Join,
    /// Neither observations nor commands get through.
    Blackout,
    /// The actuator does what it did last, or applies this force, whatever it is told.
    Stuck {
        /// The force; `None` for that of the last command.
        value: Option<f64>,
        /// How fast it goes on in its last direction; `None` for as fast as it did.
        speed: Option<f64>,
    },
    /// Forces come out multiplied.
    Gain {
        /// By this.
        factor: f64,
        /// Reached steadily over the fault's time instead of at once.
        drift: bool,
    },
    /// Forces come out shifted.
    Bias {
        /// By this.
        value: f64,
        /// Reached steadily over the fault's time instead of at once.
        drift: bool,
    },
    /// Force and velocity come out with the wrong sign.
    Invert,
    /// Gaussian noise on every force.
    ActuatorNoise {
        /// Its standard deviation.
        std: f64,
    },
    /// Gaussian noise on every sensed cell.
    Noise {
        /// Its standard deviation.
        std: f64,
    },
    /// Every sensed cell is off by the same amount.
    SensorBias {
        /// The amount.
        value: f64,
    },
    /// Sensed cells read NaN: a dead sensor that says so.
    Dropout {
        /// Probability for each cell at each step.
        p: f64,
    },
    /// The sensor shows the patch that it had when the fault began.
    Freeze,
    /// Observations get lost.
    Loss {
        /// Probability for each.
        p: f64,
    },
    /// Observations come late.
    Delay {
        /// By this many sends,
        steps: u32,
        /// and by 0 to this many more, drawn for each.
        jitter: u32,
    },
    /// Observations arrive twice.
    Duplicate {
        /// Probability for each.
        p: f64,
    },
    /// Observations change places with the next one.
    Reorder {
        /// Probability for each.
        p: f64,
    },
    /// Bytes of an observation's frame are changed on the way.
    Corrupt {
        /// Probability for each frame.
        p: f64,
    },
    /// Agents' clocks are not synchronised; the swarm's schedule asks [`Plan::clock`] for them.
    Clock {
        /// Clocks run fast or slow by up to this share.
        rate: f64,
        /// Periods begin up to this share of a period late.
        phase: f64,
    },
    /// Something happens to a board or its cable, for real; the [`rig`](crate::rig) sees to it.
    Board(BoardFault),
}

impl Fault {
    /// A fault of all agents over the whole run.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            who: Who::All,
            at: 0.0,
            until: None,
        }
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
        let kind = self.kind.name();
        let takes = text::takes(kind);
        if let Some((given, _)) = (self.parameters().into_iter()).find(|(p, _)| !takes.contains(p))
        {
            return Err(BadFault::UnknownParameter {
                kind,
                given: given.to_owned(),
                nearest: None,
            });
        }
        let within = |parameter, value: f64, allowed: bool, range| match allowed {
            true => Ok(()),
            false => Err(BadFault::OutOfRange {
                parameter,
                value,
                range,
            }),
        };
        let share = |parameter, value: f64| {
            let allowed = (0.0..=1.0).contains(&value);
            within(parameter, value, allowed, "between 0 and 1")
        };
        let finite =
            |parameter, value: f64| within(parameter, value, value.is_finite(), "a finite number");
        match self.kind {
            Kind::Stuck { value, speed } => {
                finite("value", value.unwrap_or(0.0))?;
                let speed = speed.unwrap_or(0.0);
                let allowed = speed.is_finite() && speed >= 0.0;
                within("speed", speed, allowed, "finite and not below 0")?;
            }
            Kind::Bias { value, .. } | Kind::SensorBias { value } => finite("value", value)?,
            Kind::Gain { factor, .. } => finite("factor", factor)?,
            Kind::Noise { std } | Kind::ActuatorNoise { std } => {
                let allowed = std.is_finite() && std >= 0.0;
                within("std", std, allowed, "finite and not below 0")?;
            }
            Kind::Dropout { p }
            | Kind::Loss { p }
            | Kind::Duplicate { p }
            | Kind::Reorder { p }
            | Kind::Corrupt { p } => share("p", p)?,
            Kind::Clock { rate, phase } => {
                let allowed = (0.0..1.0).contains(&rate);
                within("rate", rate, allowed, "at least 0 and below 1")?;
                share("phase", phase)?;
            }
            Kind::Blackout if !matches!(self.who, Who::Region(_)) => {
                return Err(BadFault::Missing {
                    kind,
                    parameter: "region",
                });
            }
            Kind::Crash
            | Kind::Join
            | Kind::Blackout
            | Kind::Invert
            | Kind::Freeze
            | Kind::Delay { .. }
            | Kind::Board(_) => {}
        }
        match self.who {
            Who::Fraction(fraction) => share("fraction", fraction)?,
            Who::Cluster(fraction) => share("cluster", fraction)?,
            _ => {}
        }
        share("at", self.at)?;
        if let Some(until) = self.until {
            share("until", until)?;
            if self.at >= until {
                return Err(BadFault::EndsBeforeItBegins { at: self.at, until });
            }
        }
        Ok(())
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
        let what = match self.kind {
            Kind::Crash if self.until.is_some() => "crash and restart".to_owned(),
            Kind::Crash => "crash".to_owned(),
            Kind::Join => "join late".to_owned(),
            Kind::Blackout => "lose contact".to_owned(),
            Kind::Stuck { value, speed } => {
                let at = [("force", value), ("speed", speed)].into_iter();
                let at = at.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
                match at.collect::<Vec<_>>().join(" and ").as_str() {
                    "" => "are stuck".to_owned(),
                    at => format!("are stuck at {at}"),
                }
            }
            Kind::Gain { factor, drift } => {
                format!("{} {factor} times their force", verb("apply", drift))
            }
            Kind::Bias { value, drift } => {
                format!("{} {value:+} of force", verb("add", drift))
            }
            Kind::Invert => "act with the wrong sign".to_owned(),
            Kind::ActuatorNoise { std } => format!("act with noise of {std}"),
            Kind::Noise { std } => format!("sense with noise of {std}"),
            Kind::SensorBias { value } => format!("sense with an offset of {value:+}"),
            Kind::Dropout { p } => format!("lose {} % of their cells", percent(p)),
            Kind::Freeze => "sense a frozen patch".to_owned(),
            Kind::Loss { p } => format!("lose {} % of their observations", percent(p)),
            Kind::Delay { steps, jitter: 0 } => format!("see {steps} steps late"),
            Kind::Delay { steps, jitter } => {
                let most = u64::from(steps) + u64::from(jitter);
                format!("see {steps} to {most} steps late")
            }
            Kind::Duplicate { p } => format!("get {} % of observations twice", percent(p)),
            Kind::Reorder { p } => format!("get {} % of observations swapped", percent(p)),
            Kind::Corrupt { p } => format!("get {} % of frames damaged", percent(p)),
            Kind::Clock { .. } => "have clocks of their own".to_owned(),
            Kind::Board(fault) => fault.describe(self.until.is_some()).to_owned(),
        };
        format!("{who} {what}")
    }
}

fn verb(verb: &str, drift: bool) -> String {
    match drift {
        true => format!("come to {verb}"),
        false => verb.to_owned(),
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
        let crash = Fault::new(Kind::Crash);
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
            (Fault::new(Kind::Loss { p: 2.0 }), &["p is 2", "between 0"]),
            (Fault::new(Kind::Noise { std: -0.1 }), &["-0.1", "below 0"]),
            (
                Fault::new(Kind::Gain {
                    factor: f64::INFINITY,
                    drift: false,
                }),
                &["inf", "finite"],
            ),
            (
                Fault::new(Kind::Clock {
                    rate: 1.0,
                    phase: 0.0,
                }),
                &["rate is 1", "below 1"],
            ),
            (Fault::new(Kind::Blackout), &["blackout", "region"]),
            (
                Fault {
                    until: Some(0.5),
                    ..Fault::new(Kind::Join)
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
