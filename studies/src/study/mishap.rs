//! What becomes of agents half way through an episode.

use agent_sim::fault::{Fault, What, Who, actuator, life};
use problem::{Drives, Problem};

/// What happens to an agent.
#[derive(Clone, Copy, PartialEq)]
pub enum Mishap {
    Crash,
    Stuck,
    StuckAtMaximum,
}

impl Mishap {
    pub const ALL: [Self; 3] = [Self::Crash, Self::Stuck, Self::StuckAtMaximum];

    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Stuck => "stuck",
            Self::StuckAtMaximum => "stuck at maximum",
        }
    }

    fn what(self, problem: &Problem) -> What {
        let actuation = &problem.actuation;
        match self {
            Self::Crash => What::from(&life::CRASH),
            Self::Stuck => What::from(&actuator::STUCK),
            Self::StuckAtMaximum => match actuation.drives {
                Drives::Source => actuator::STUCK.with("value", actuation.force_max),
                Drives::Flow => actuator::STUCK.with("speed", actuation.velocity_max),
            },
        }
    }
}

/// Who is hit.
#[derive(Clone, Copy, PartialEq)]
pub enum Spread {
    Random,
    Clustered,
}

impl Spread {
    pub const ALL: [Self; 2] = [Self::Random, Self::Clustered];

    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Clustered => "clustered",
        }
    }
}

/// As many of the agents as the share comes to, at least one.
pub fn victims(agents: usize, share: f64) -> usize {
    ((share * agents as f64).round() as usize).max(1)
}

/// The mishap of that share of the agents, at half of the episode.
pub fn fault(
    problem: &Problem,
    agents: usize,
    mishap: Mishap,
    spread: Spread,
    share: f64,
) -> Fault {
    let share = victims(agents, share) as f64 / agents as f64;
    Fault {
        who: match spread {
            Spread::Random => Who::Fraction(share),
            Spread::Clustered => Who::Cluster(share),
        },
        at: 0.5,
        ..Fault::new(mishap.what(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_at_least_one_agent() {
        let counts = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7].map(|share| victims(8, share));
        assert_eq!(counts, [1, 1, 2, 2, 4, 6]);
        let heat = problem::published::by_name("heat-1d").unwrap();
        let fault = fault(heat, 8, Mishap::StuckAtMaximum, Spread::Clustered, 0.3);
        assert_eq!(fault.to_string(), "stuck,value=40,cluster=0.25,at=0.5");
    }
}
