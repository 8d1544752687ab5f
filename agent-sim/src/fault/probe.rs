//! An agent for tests: it writes down what reaches it and answers with the time.

use crate::link::{Link, LinkError};
use agent_core::agent::{Action, Mode};
use agent_core::message::{Observation, Patch, Span};
use artifacts::observation::OwnedObservation;
use std::sync::{Arc, Mutex};

/// One control interval in these tests.
pub const INTERVAL_US: u64 = 1000;

/// Answers every step, whether or not it was shown anything; keeps count in its velocity of the
/// observations that it was shown in its life, so that a fresh one can be told.
#[derive(Default)]
pub struct Probe {
    log: Log,
    shown: u16,
}

/// What reached a probe and all that replaced it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<OwnedObservation>>>);

impl Log {
    pub fn probe(&self) -> Probe {
        Probe {
            log: self.clone(),
            shown: 0,
        }
    }

    pub fn all(&self) -> Vec<OwnedObservation> {
        self.0.lock().unwrap().clone()
    }

    /// Steps at which something arrived, and the first cell of what did.
    pub fn arrivals(&self) -> Vec<(u64, f32)> {
        let step = |seen: &OwnedObservation| (seen.now_us / INTERVAL_US, seen.field[0]);
        self.0.lock().unwrap().iter().map(step).collect()
    }
}

impl Link for Probe {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.shown += 1;
        self.log.0.lock().unwrap().push(observation.into());
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        Ok(Some(Action {
            force: (now_us / INTERVAL_US) as f32,
            velocity: [f32::from(self.shown), 0.0],
            mode: Mode::Active,
        }))
    }
}

/// An observation at `step` of an agent at `x`.
pub fn observe(step: u64, x: f32, field: &[f32]) -> Observation<'_> {
    let all = Span {
        first: 0,
        last: field.len().saturating_sub(1) as u16,
    };
    let patch = Patch::line(field, &[], all);
    Observation {
        now_us: step * INTERVAL_US,
        position: [x, 0.0],
        patch,
    }
}

/// Steps `0..steps` of an agent that stands at 0.5 and sees the number of the step in each of four
/// cells; returns what its actuator was told.
pub fn drive(link: &mut impl Link, steps: u64) -> Vec<Option<Action>> {
    (0..steps)
        .map(|step| {
            link.send(&observe(step, 0.5, &[step as f32; 4])).unwrap();
            link.receive(step * INTERVAL_US).unwrap()
        })
        .collect()
}

/// As [`drive`], but the forces only.
pub fn forces(link: &mut impl Link, steps: u64) -> Vec<Option<f32>> {
    let force = |action: Option<Action>| action.map(|a| a.force);
    drive(link, steps).into_iter().map(force).collect()
}
