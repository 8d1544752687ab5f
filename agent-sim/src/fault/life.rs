//! Faults of the whole agent: it dies, has not come yet, or is out of reach.

use super::{Act, Descriptor, Group, Scope, When, Whom};
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The agent is silent. If the fault ends, it comes back with its memory lost.
pub static CRASH: Descriptor = Descriptor {
    name: "crash",
    group: Group::Agent,
    parameters: &[],
    whom: Whom::Anyone,
    when: When::UntilRestart,
    help: "falls silent; with until=… it comes back with its memory lost",
    caption: |fault| fault.lasting("crash", "crash and restart"),
    act: Act::Link(|link, hit| Box::new(Crash::within(link, hit.scope, hit.reset.clone()))),
};

/// A link to an agent that dies: nothing reaches it and nothing comes back, until the fault is over
/// and a fresh agent takes its place.
#[derive(Debug, Clone)]
pub struct Crash<L> {
    inner: L,
    scope: Scope,
    dead: bool,
    reset: Reset,
}

impl<L> Crash<L> {
    /// `inner`, silent from `at_us` on; `None` for an agent that lives.
    pub fn new(inner: L, at_us: Option<u64>) -> Self {
        let scope = Scope::new(at_us.unwrap_or(u64::MAX), None, None);
        Self::within(inner, scope, Reset::default())
    }

    /// `inner`, dead from the moment that `scope` first covers it until its end. `reset` is pressed
    /// when it comes back.
    pub fn within(inner: L, scope: Scope, reset: Reset) -> Self {
        Self {
            inner,
            scope,
            dead: false,
            reset,
        }
    }

    /// Dead or alive, now that the fault `holds` or not. A region kills whoever enters it, and
    /// nobody leaves it again: the dead do not move.
    fn is_dead(&mut self, holds: bool, now_us: u64) -> bool {
        if self.dead && self.scope.is_over(now_us) {
            self.dead = false;
            self.reset.press();
        }
        self.dead |= holds;
        self.dead
    }
}

impl<L: Link> Link for Crash<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let holds = self.scope.covers(observation);
        match self.is_dead(holds, observation.now_us) {
            true => Ok(()),
            false => self.inner.send(observation),
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let holds = self.scope.holds(now_us);
        match self.is_dead(holds, now_us) {
            true => Ok(None),
            false => self.inner.receive(now_us),
        }
    }
}

/// The reset button of a [`Restartable`] agent. Other faults may lie between it and the crash that
/// presses it; those keep their state, as a stuck actuator does when its processor reboots.
#[derive(Debug, Clone, Default)]
pub struct Reset(Arc<AtomicBool>);

impl Reset {
    fn press(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn was_pressed(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// An agent that loses its memory when its [`Reset`] is pressed.
pub struct Restartable<L, F> {
    agent: L,
    fresh: F,
    reset: Reset,
}

impl<L, F: Fn() -> L> Restartable<L, F> {
    /// The first of the agents that `fresh` makes.
    pub fn new(fresh: F, reset: Reset) -> Self {
        Self {
            agent: fresh(),
            fresh,
            reset,
        }
    }

    fn agent(&mut self) -> &mut L {
        if self.reset.was_pressed() {
            self.agent = (self.fresh)();
        }
        &mut self.agent
    }
}

impl<L: Link, F: Fn() -> L + Send> Link for Restartable<L, F> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.agent().send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.agent().receive(now_us)
    }
}

/// The agent is not there before the fault's `at`.
pub static JOIN: Descriptor = Descriptor {
    name: "join",
    group: Group::Agent,
    parameters: &[],
    whom: Whom::Anyone,
    when: When::From,
    help: "is not there before at=…",
    caption: |_| "join late".to_owned(),
    act: Act::Link(|link, hit| Box::new(Join::new(link, hit.scope.before()))),
};

/// An agent that is not there yet while `scope` holds.
pub struct Join<L> {
    inner: L,
    absence: Scope,
}

impl<L> Join<L> {
    /// `inner`, which comes when `absence` is over.
    pub fn new(inner: L, absence: Scope) -> Self {
        Self { inner, absence }
    }
}

impl<L: Link> Link for Join<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        match self.absence.covers(observation) {
            true => Ok(()),
            false => self.inner.send(observation),
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        match self.absence.holds(now_us) {
            true => Ok(None),
            false => self.inner.receive(now_us),
        }
    }
}

/// Neither observations nor commands get through.
pub static BLACKOUT: Descriptor = Descriptor {
    name: "blackout",
    group: Group::Line,
    parameters: &[],
    whom: Whom::Region,
    when: When::Between,
    help: "nothing gets through, either way, inside a region",
    caption: |_| "lose contact".to_owned(),
    act: Act::Link(|link, hit| Box::new(Blackout::new(link, hit.scope))),
};

/// An agent that lives, but neither hears nor is heard.
pub struct Blackout<L> {
    inner: L,
    scope: Scope,
}

impl<L> Blackout<L> {
    /// `inner`, out of reach while `scope` holds.
    pub fn new(inner: L, scope: Scope) -> Self {
        Self { inner, scope }
    }
}

impl<L: Link> Link for Blackout<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        match self.scope.covers(observation) {
            true => Ok(()),
            false => self.inner.send(observation),
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let command = self.inner.receive(now_us)?;
        Ok(command.filter(|_| !self.scope.holds(now_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::probe::{INTERVAL_US, Log, drive, forces, observe};

    fn steps(from: u64, until: Option<u64>) -> Scope {
        Scope::new(from * INTERVAL_US, until.map(|k| k * INTERVAL_US), None)
    }

    #[test]
    fn a_crash_silences_both_ways_from_its_step_on() {
        let log = Log::default();
        let mut link = Crash::within(log.probe(), steps(2, None), Reset::default());
        assert_eq!(
            forces(&mut link, 5),
            [Some(0.0), Some(1.0), None, None, None]
        );
        assert_eq!(log.arrivals(), [(0, 0.0), (1, 1.0)]);
        let mut alive = Crash::new(log.probe(), None);
        assert!(forces(&mut alive, 5).iter().all(Option::is_some));
    }

    /// The probe's velocity counts what it was shown: the fifth step is the first of a new life.
    #[test]
    fn after_a_restart_the_agent_remembers_nothing() {
        let log = Log::default();
        let reset = Reset::default();
        let agent = Restartable::new(|| log.probe(), reset.clone());
        let mut link = Crash::within(agent, steps(2, Some(4)), reset);
        let shown: Vec<Option<f32>> = drive(&mut link, 6)
            .into_iter()
            .map(|action| action.map(|a| a.velocity[0]))
            .collect();
        assert_eq!(
            shown,
            [Some(1.0), Some(2.0), None, None, Some(1.0), Some(2.0)]
        );
    }

    #[test]
    fn whoever_enters_a_deadly_region_dies_for_good() {
        let log = Log::default();
        let region = "0.4..0.6".parse().unwrap();
        let scope = Scope::new(0, None, Some(region));
        let mut link = Crash::within(log.probe(), scope, Reset::default());
        let heard: Vec<bool> = [0.3, 0.5, 0.7]
            .into_iter()
            .map(|x| {
                link.send(&observe(0, x, &[x])).unwrap();
                link.receive(0).unwrap().is_some()
            })
            .collect();
        assert_eq!(heard, [true, false, false]);
        assert_eq!(log.arrivals(), [(0, 0.3)]);
    }

    #[test]
    fn who_joins_late_is_not_there_before() {
        let log = Log::default();
        let mut link = Join::new(log.probe(), steps(0, Some(2)));
        assert_eq!(forces(&mut link, 4), [None, None, Some(2.0), Some(3.0)]);
        assert_eq!(log.arrivals(), [(2, 2.0), (3, 3.0)]);
    }

    #[test]
    fn a_blackout_lasts_while_the_agent_is_in_its_region() {
        let log = Log::default();
        let region = "0.4..0.6".parse().unwrap();
        let mut link = Blackout::new(log.probe(), Scope::new(1000, Some(5000), Some(region)));
        let path = [0.5, 0.5, 0.7, 0.5, 0.5, 0.5];
        let heard: Vec<bool> = (0..)
            .zip(path)
            .map(|(step, x)| {
                link.send(&observe(step, x, &[x])).unwrap();
                link.receive(step * INTERVAL_US).unwrap().is_some()
            })
            .collect();
        // It has not begun at step 0, is left at step 2 and over at step 5.
        assert_eq!(heard, [true, false, true, false, false, true]);
        assert_eq!(log.arrivals(), [(0, 0.5), (2, 0.7), (5, 0.5)]);
    }
}
