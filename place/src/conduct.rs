//! How a node says that it gets on at its place.

use crate::neighbours::hearing::Heard;
use crate::sight::Doubts;
use agent_core::agent::Mode;
use serde::{Deserialize, Serialize};

/// Most bytes of what a node says: its longest reason, and the rest.
pub const CONDUCT: usize = 256;

/// How a node gets on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Conduct<'a> {
    /// It has no place, and acts on what a host shows it.
    Fed,
    /// It has a place that it cannot take, and acts on nothing.
    Refused {
        /// A sentence for a person.
        reason: &'a str,
    },
    /// It senses and acts by itself.
    Alone(Alone),
}

/// How a node gets on that senses and acts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Its number.
    pub node: u16,
    /// Where it is mounted.
    pub position: [f32; 2],
    /// The highest counter of a manifest of a place that it has taken.
    pub counter: u64,
    /// The state that its last action comes from,
    pub mode: Mode,
    /// and that action's force.
    pub force: f32,
    /// What the field should be in its own cell now; 0 of a policy that is shown no target.
    pub target: f32,
    /// Whether it was told so over its link, and not by its place.
    pub told: bool,
    /// The sensors whose last reading was not taken, a bit each in the order of their cells.
    pub blind: u16,
    /// How often readings were not taken.
    pub doubts: Doubts,
    /// How it keeps its time.
    pub timing: Timing,
    /// What became of what its neighbours said, if it hears any.
    pub heard: Option<Heard>,
}

/// How a node keeps its time, since it took its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// From one step to the next, as the policy says.
    pub period_us: u32,
    /// Steps that were due.
    pub steps: u32,
    /// By how much a step has begun too late at most.
    pub jitter_us: u32,
    /// From the first reading to the action, in the last step,
    pub latency_us: u32,
    /// and at most.
    pub longest_us: u32,
    /// Steps that were left out because the one before was not over.
    pub overruns: u32,
}

impl<'a> Conduct<'a> {
    /// Its bytes, in `buffer`; empty if a reason is longer than that.
    pub fn encode<'b>(&self, buffer: &'b mut [u8; CONDUCT]) -> &'b [u8] {
        match postcard::to_slice(self, buffer) {
            Ok(bytes) => bytes,
            Err(_) => &[],
        }
    }

    /// What these bytes say, if anything.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((conduct, [])) => Some(conduct),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The longest of everything.
    #[test]
    fn there_is_room_for_what_a_node_says() {
        let most = u32::MAX;
        let alone = Conduct::Alone(Alone {
            node: u16::MAX,
            position: [0.1; 2],
            counter: u64::MAX,
            mode: Mode::FailedSafe,
            force: 0.1,
            target: 0.1,
            told: true,
            blind: u16::MAX,
            doubts: Doubts {
                missing: most,
                out_of_range: most,
                implausible: most,
                frozen: most,
            },
            timing: Timing {
                period_us: most,
                steps: most,
                jitter_us: most,
                latency_us: most,
                longest_us: most,
                overruns: most,
            },
            heard: Some(Heard {
                deaf: u64::MAX,
                taken: most,
                damaged: most,
                elsewhere: most,
                again: most,
                late: most,
                implausible: most,
                rivals: most,
                introduced: most,
            }),
        });
        let mut buffer = [0; CONDUCT];
        let bytes = alone.encode(&mut buffer);
        assert_eq!(Conduct::read(bytes), Some(alone));
    }

    proptest! {
        #[test]
        fn any_bytes_say_something_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let _ = Conduct::read(&bytes);
        }
    }
}
