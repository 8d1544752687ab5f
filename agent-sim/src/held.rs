//! The last command of an agent without a policy, and what becomes of it when the agent hears nothing more.

use agent_core::agent::{Action, Mode};
use problem::Problem;

/// Control intervals over which an agent that hears nothing fades to rest, as policies do.
const FAIL_SAFE: f64 = 20.0;

/// A command that is held, fading, until the next.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    action: Action,
    since_us: u64,
    fresh: bool,
    fail_safe_us: f64,
}

impl Held {
    /// That of an agent that waits for its first.
    pub fn new(problem: &Problem) -> Self {
        Self {
            action: Action::none(Mode::Waiting),
            since_us: 0,
            fresh: false,
            fail_safe_us: FAIL_SAFE * problem.control_interval * 1e6,
        }
    }

    /// Takes a command, unless it is no number: what a broken sensor shows is as good as nothing.
    pub fn take(&mut self, action: Action, now_us: u64) {
        if action.force.is_finite() && action.velocity.iter().all(|v| v.is_finite()) {
            self.action = action;
            self.since_us = now_us;
            self.fresh = true;
        }
    }

    /// What the agent does from now on.
    pub fn answer(&mut self, now_us: u64) -> Action {
        if std::mem::take(&mut self.fresh) || self.action.mode == Mode::Waiting {
            return self.action;
        }
        let blind_us = now_us.saturating_sub(self.since_us) as f64;
        let fade = 1.0 - blind_us / self.fail_safe_us;
        if fade <= 0.0 {
            return Action::none(Mode::FailedSafe);
        }
        Action {
            force: self.action.force * fade as f32,
            velocity: self.action.velocity.map(|v| v * fade as f32),
            mode: Mode::Holding,
        }
    }
}
