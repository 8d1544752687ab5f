//! Observations that outlive their step.

use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::policy::Policy;

/// A copy of an observation, to be shown later, or one made by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedObservation {
    /// The host's time when it was made.
    pub now_us: u64,
    /// Where the agent was.
    pub position: [f32; 2],
    /// What it saw there: the cells around it, halo included, row-major.
    pub field: Vec<f32>,
    /// What it should have seen; nothing where its policy has no target.
    pub target: Vec<f32>,
    /// The cells that lie inside the domain.
    pub inside: [Span; 2],
    /// What it was told of the whole; nothing where its policy does not ask.
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
    /// Nothing but zeros, all inside the domain: as much of everything as the policy asks for.
    pub fn blank(policy: &Policy) -> Self {
        let sensing = &policy.header().sensing;
        let with_target = |cells| if sensing.target { cells } else { 0 };
        let whole = Span {
            first: 0,
            last: sensing.window + 1,
        };
        let (cells, wide) = (policy.patch_len(), sensing.wide_len());
        Self {
            now_us: 0,
            position: policy.header().limits.low,
            field: vec![0.0; cells],
            target: vec![0.0; with_target(cells)],
            inside: match sensing.axes {
                1 => [whole, Span::default()],
                _ => [whole; 2],
            },
            wide_field: vec![0.0; wide],
            wide_target: vec![0.0; with_target(wide)],
        }
    }

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
