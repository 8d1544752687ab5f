//! Observations that outlive their step.

use agent_core::message::{Observation, Overview, Patch, Samples, Span};

/// A copy of an observation, for wrappers that show it later.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedObservation {
    /// The host's time when it was made.
    pub now_us: u64,
    /// Where the agent was.
    pub position: [f32; 2],
    /// What it saw there.
    pub field: Vec<f32>,
    /// What it should have seen.
    pub target: Vec<f32>,
    /// The cells that lie inside the domain.
    pub inside: [Span; 2],
    /// What it was told of the whole.
    pub wide_field: Vec<f32>,
    /// What that should have been.
    pub wide_target: Vec<f32>,
}

impl From<&Observation<'_>> for OwnedObservation {
    fn from(observation: &Observation<'_>) -> Self {
        let Patch {
            field,
            target,
            inside,
            wide,
        } = observation.patch;
        Self {
            now_us: observation.now_us,
            position: observation.position,
            field: field.iter().collect(),
            target: target.iter().collect(),
            inside,
            wide_field: wide.field.iter().collect(),
            wide_target: wide.target.iter().collect(),
        }
    }
}

impl OwnedObservation {
    /// As it was sent.
    pub fn as_observation(&self) -> Observation<'_> {
        Observation {
            now_us: self.now_us,
            position: self.position,
            patch: self.patch(),
        }
    }

    /// As it arrives at `now_us`: an agent reads the time from its own clock, so an old patch comes
    /// with an old position but never with an old time.
    pub fn arriving(&self, now_us: u64) -> Observation<'_> {
        Observation {
            now_us,
            ..self.as_observation()
        }
    }

    /// What was seen.
    pub fn patch(&self) -> Patch<'_> {
        Patch {
            field: Samples::new(&self.field),
            target: Samples::new(&self.target),
            inside: self.inside,
            wide: Overview {
                field: Samples::new(&self.wide_field),
                target: Samples::new(&self.wide_target),
            },
        }
    }
}
