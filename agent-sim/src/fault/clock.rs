//! Clocks that differ from the host's.

use super::{Act, Descriptor, Group, Parameter, Presence, Range, Sort, When, Whom};
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use rand::RngExt;

/// Agents' clocks are not synchronised: they run fast or slow by up to a share, and their periods
/// begin up to a share of a period late. The swarm's schedule asks
/// [`Plan::clock`](super::Plan::clock) for them.
pub static CLOCK: Descriptor = Descriptor {
    name: "clock",
    group: Group::Agent,
    parameters: &[
        Parameter::new(
            "rate",
            Sort::Number(Range::BELOW_ONE),
            Presence::OneOf("0"),
            "0.02",
        ),
        Parameter::new(
            "phase",
            Sort::Number(Range::SHARE),
            Presence::OneOf("0"),
            "1",
        ),
    ],
    // An agent has one clock for the whole run, wherever it goes.
    whom: Whom::Agents,
    when: When::Always,
    help: "acts by its own clock: fast or slow by up to rate, up to phase periods late",
    caption: |_| "have clocks of their own".to_owned(),
    act: Act::Clock(|what, rng| {
        let off = what.number("rate") * (2.0 * rng.random::<f64>() - 1.0);
        Clock {
            rate: 1.0 + off,
            phase: what.number("phase") * rng.random::<f64>(),
        }
    }),
};

/// How one agent's clock differs from the host's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Its seconds per second of the host.
    pub rate: f64,
    /// How much later than the host's its first period begins, in periods.
    pub phase: f64,
}

impl Clock {
    /// The host's.
    pub const EXACT: Self = Self {
        rate: 1.0,
        phase: 0.0,
    };

    /// What it shows at the host's time.
    pub fn reading_us(&self, now_us: u64) -> u64 {
        (self.rate * now_us as f64) as u64
    }

    /// Whether the agent's period number `tick`, of `period_us` on its own clock, has begun.
    pub fn has_begun(&self, tick: u64, now_us: u64, period_us: f64) -> bool {
        // A millionth of a period: rounding must not cost an exact clock its tick.
        self.rate * now_us as f64 >= (self.phase + tick as f64 - 1e-6) * period_us
    }
}

/// An agent that reads its own clock: it cannot know the host's.
#[derive(Debug, Clone)]
pub struct OwnTime<L> {
    inner: L,
    clock: Clock,
}

impl<L> OwnTime<L> {
    /// `inner` with this clock.
    pub fn new(inner: L, clock: Clock) -> Self {
        Self { inner, clock }
    }
}

impl<L: Link> Link for OwnTime<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.inner.send(&Observation {
            now_us: self.clock.reading_us(observation.now_us),
            ..*observation
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(self.clock.reading_us(now_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that gains a tenth begins eleven periods in ten, from its own phase on:
    /// 1.1 t = 500, 1500, …, so t = 454.5, 1363.6, 2272.7, …, seen at the next hundred.
    #[test]
    fn a_fast_clock_ticks_more_often() {
        let clock = Clock {
            rate: 1.1,
            phase: 0.5,
        };
        let mut ticks = Vec::new();
        for now in (0..10_000).step_by(100) {
            if clock.has_begun(ticks.len() as u64, now, 1000.0) {
                ticks.push(now);
            }
        }
        assert_eq!(ticks[..3], [500, 1400, 2300]);
        assert_eq!(ticks.len(), 11);
    }
}
