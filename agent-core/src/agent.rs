//! The control step and the state machine around it.
//!
//! ```text
//!            valid input                 invalid, or none for late_us
//! waiting ───────────────► active ─────────────────────────────────► holding
//!                            ▲                 valid input              │
//!                            ├──────────────────────────────────────────┤
//!                            │                              none for fail_safe_us
//!                            │ valid input                              ▼
//!                            └───────────────────────────────────── failed safe
//! ```
//!
//! A held action fades linearly and reaches zero when the agent fails safe. Whatever the agent is
//! shown, and whenever, the action is finite and within its limits: the parser has refused every
//! network that could give anything but finite outputs.

use crate::governor::Easing;
use crate::keep_out;
use crate::message::{Observation, Patch};
use crate::net;
use crate::policy::{Limits, MAX_MEMORY, Policy};
use core::fmt;
use serde::{Deserialize, Serialize};

/// What an agent does until its next step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Action {
    /// Amplitude of the agent's actuation kernel.
    pub force: f32,
    /// Velocity per axis; unused axes are 0.
    pub velocity: [f32; 2],
    /// The state the action comes from.
    pub mode: Mode,
}

impl Action {
    /// No force, no motion.
    pub const fn none(mode: Mode) -> Self {
        Self {
            force: 0.0,
            velocity: [0.0; 2],
            mode,
        }
    }
}

/// The agent's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mode {
    /// No valid patch yet: zero action.
    Waiting,
    /// Acting on a valid patch.
    Active,
    /// Input invalid or late: the last action, fading.
    Holding,
    /// Too long without valid input, or an internal check failed: zero action.
    FailedSafe,
}

/// An agent's memory between two steps, apart from the policy and the working memory, which many
/// agents can share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentState {
    /// The last action from valid input.
    held: Action,
    /// When that input came.
    valid_at_us: u64,
    /// Where the agent was last known or reckoned to be, and when.
    position: [f32; 2],
    position_at_us: u64,
    /// The velocity it has gone with since.
    velocity: [f32; 2],
    mode: Mode,
    /// The force it has acted with since.
    force: f32,
    /// Of the outputs that drive the field: the force, or both velocities.
    easings: [Easing; 2],
    /// What its policy keeps, see [`Memory`](crate::policy::Memory).
    memory: [f32; MAX_MEMORY],
}

impl Default for AgentState {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentState {
    /// Waiting for its first patch.
    pub const fn new() -> Self {
        Self {
            held: Action::none(Mode::Waiting),
            valid_at_us: 0,
            // Nowhere yet: in no disc that it would have to leave.
            position: [f32::INFINITY; 2],
            position_at_us: 0,
            velocity: [0.0; 2],
            mode: Mode::Waiting,
            force: 0.0,
            easings: [Easing::NONE; 2],
            memory: [0.0; MAX_MEMORY],
        }
    }

    /// The present state.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What it keeps from one step to the next, of its policy's.
    pub fn memory(&self, policy: &Policy) -> &[f32] {
        let floats = policy.header().network.remembered();
        self.memory.get(..floats).unwrap_or_default()
    }

    /// One control step on a new observation. `workspace` needs at least
    /// [`Policy::workspace_len`] floats; with fewer the step counts as invalid input.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub fn step(
        &mut self,
        policy: &Policy,
        workspace: &mut [f32],
        observation: &Observation,
    ) -> Action {
        let Observation {
            now_us, position, ..
        } = observation;
        if !self.place(policy, *now_us, *position) {
            return self.idle(policy, *now_us);
        }
        #[expect(
            clippy::manual_map,
            reason = "compilers may leave a closure in the baseline's instructions"
        )]
        let shares = match policy.outputs(observation, self.recall(policy, *now_us), workspace) {
            Some(outputs) => Some(outputs.map(net::share)),
            None => None,
        };
        self.act(policy, *now_us, shares)
    }

    /// What the agent remembers at `now_us`: nothing after so long without valid input that it has failed
    /// safe, or would have if anyone had asked it what to do.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn recall(&mut self, policy: &Policy, now_us: u64) -> &mut [f32; MAX_MEMORY] {
        let blind_us = now_us.saturating_sub(self.valid_at_us);
        if blind_us >= u64::from(policy.header().timing.fail_safe_us) {
            self.memory = [0.0; MAX_MEMORY];
        }
        &mut self.memory
    }

    /// Takes note of where the agent is; false if that is nowhere.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn place(&mut self, policy: &Policy, now_us: u64, position: [f32; 2]) -> bool {
        let axes = usize::from(policy.header().sensing.axes);
        if !position.iter().take(axes).all(|x| x.is_finite()) {
            return false;
        }
        self.position = position;
        self.position_at_us = now_us;
        true
    }

    /// What comes of the network's outputs, as shares of the limits; none: the observation was
    /// invalid.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn act(&mut self, policy: &Policy, now_us: u64, shares: Option<[f32; 3]>) -> Action {
        let Some(mut shares) = shares else {
            return self.idle(policy, now_us);
        };
        let limits = &policy.header().limits;
        if let Some(governor) = &limits.governor {
            // Where there is a force, moving is no part of the loop's gain.
            let driving = if limits.force.is_some() { 1 } else { 2 };
            let eased = shares.iter_mut().zip(&mut self.easings);
            for (share, easing) in eased.take(driving) {
                *share = easing.next(governor, *share);
            }
        }
        let action = scaled(limits, shares);
        self.valid_at_us = now_us;
        self.held = action;
        self.issue(policy, action)
    }

    /// What to do at `now_us` when no new observation is there.
    pub fn idle(&mut self, policy: &Policy, now_us: u64) -> Action {
        self.reckon(now_us);
        let timing = policy.header().timing;
        let blind_us = now_us.saturating_sub(self.valid_at_us);
        let mode = match self.mode {
            Mode::Waiting => Mode::Waiting,
            Mode::FailedSafe => Mode::FailedSafe,
            _ if blind_us >= u64::from(timing.fail_safe_us) => Mode::FailedSafe,
            _ => Mode::Holding,
        };
        if mode != Mode::Holding {
            return self.issue(policy, Action::none(mode));
        }
        // Less than `fail_safe_us`: it fits, and 32 bits are what the core converts by itself.
        let fade = 1.0 - blind_us as u32 as f32 / timing.fail_safe_us as f32;
        let held = Action {
            force: self.held.force * fade,
            velocity: self.held.velocity.map(|v| v * fade),
            mode,
        };
        self.issue(policy, held)
    }

    /// Whether the last valid input is so old that [`idle`](Self::idle) is due.
    pub fn is_late(&self, policy: &Policy, now_us: u64) -> bool {
        now_us.saturating_sub(self.valid_at_us) > u64::from(policy.header().timing.late_us)
    }

    /// Moves the reckoned position along the issued velocity up to now.
    fn reckon(&mut self, now_us: u64) {
        // Nobody goes on moving for an hour unseen.
        let elapsed_us = now_us.saturating_sub(self.position_at_us);
        let elapsed = elapsed_us.min(u32::MAX.into()) as u32 as f32 * 1e-6;
        for (x, v) in self.position.iter_mut().zip(self.velocity) {
            *x += v * elapsed;
        }
        self.position_at_us = self.position_at_us.max(now_us);
    }

    /// The last stage: whatever came before, the agent stays within its limits and rates, inside its
    /// domain and outside its keep-out discs.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn issue(&mut self, policy: &Policy, action: Action) -> Action {
        let header = policy.header();
        let limits = &header.limits;
        let period_s = header.timing.period_us as f32 * 1e-6;
        let Action {
            mut force,
            mut velocity,
            mode,
        } = action;
        // An agent that fails safe does so at once.
        if matches!(mode, Mode::Active | Mode::Holding) {
            if let Some(rate) = limits.force_rate {
                force = approach(self.force, force, rate * period_s);
            }
            if let Some(rate) = limits.velocity_rate {
                for (to, from) in velocity.iter_mut().zip(self.velocity) {
                    *to = approach(from, *to, rate * period_s);
                }
            }
        }
        let axes = usize::from(header.sensing.axes);
        velocity = project(limits, axes, period_s, self.position, velocity);
        self.velocity = velocity;
        self.force = force;
        self.mode = mode;
        Action {
            force,
            velocity,
            mode,
        }
    }
}

/// From one value towards another, by no more than a step.
fn approach(from: f32, to: f32, step: f32) -> f32 {
    match to - from {
        way if way > step => from + step,
        way if way < -step => from - step,
        _ => to,
    }
}

/// The velocity nearest to the one asked for with which an agent at `position` is, one period from
/// now, where its limits allow it to be: inside the domain and, in the plane, in no keep-out disc
/// that it is not in already. An agent in a disc leaves it radially at the speed limit instead.
///
/// It is the point after the period that counts: who is faster than a disc is wide can pass it.
/// Any input gives numbers.
pub fn project(
    limits: &Limits,
    axes: usize,
    period_s: f32,
    position: [f32; 2],
    velocity: [f32; 2],
) -> [f32; 2] {
    let velocity = velocity.map(|v| if v.is_nan() { 0.0 } else { v });
    match axes {
        2 if !limits.keep_out.is_empty() => keep_out::project(limits, period_s, position, velocity),
        _ => confine(limits, axes, period_s, position, velocity),
    }
}

/// The velocity cut so that the agent stays inside the domain for a period, then to its limit.
pub(crate) fn confine(
    limits: &Limits,
    axes: usize,
    period_s: f32,
    position: [f32; 2],
    velocity: [f32; 2],
) -> [f32; 2] {
    let Limits { low, high, .. } = limits;
    let limit = limits.velocity.unwrap_or(0.0);
    let mut confined = [0.0; 2];
    let domain = low.iter().zip(high);
    let asked = position.iter().zip(velocity);
    let each = confined.iter_mut().zip(domain).zip(asked);
    for ((confined, (low, high)), (x, velocity)) in each.take(axes) {
        let to_low = ((low - x) / period_s).min(0.0);
        let to_high = ((high - x) / period_s).max(0.0);
        // Not `clamp`, which panics on bounds it cannot know to be in order.
        let cut = velocity.max(to_low).min(to_high).max(-limit).min(limit);
        // Only limits that no policy has let an infinity through.
        *confined = if cut.is_finite() { cut } else { 0.0 };
    }
    confined
}

/// Shares of the limits, force first.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn scaled(limits: &Limits, [first, second, third]: [f32; 3]) -> Action {
    let mut action = Action::none(Mode::Active);
    let mut moves = [first, second];
    if let Some(limit) = limits.force {
        action.force = limit * first;
        moves = [second, third];
    }
    if let Some(limit) = limits.velocity {
        action.velocity = moves.map(|x| limit * x);
    }
    action
}

/// One agent with its own policy and working memory: what a node runs.
pub struct Agent<'p, 'w> {
    policy: Policy<'p>,
    workspace: &'w mut [f32],
    state: AgentState,
}

impl<'p, 'w> Agent<'p, 'w> {
    /// An agent waiting for its first patch. It has run the policy's probe: one that does not compute
    /// as the policy's maker did is refused.
    pub fn new(policy: Policy<'p>, workspace: &'w mut [f32]) -> Result<Self, ArmError> {
        let needed = policy.workspace_len();
        if workspace.len() < needed {
            return Err(ArmError::Workspace {
                needed,
                given: workspace.len(),
            });
        }
        if !policy.self_test(workspace) {
            return Err(ArmError::SelfTest);
        }
        Ok(Self {
            policy,
            workspace,
            state: AgentState::new(),
        })
    }

    /// One control step at `now_us` on the agent's clock, on what it sees at `position` (unused axes
    /// are 0); see [`AgentState::step`].
    pub fn step(&mut self, patch: &Patch, position: [f32; 2], now_us: u64) -> Action {
        let observation = Observation {
            now_us,
            position,
            patch: *patch,
        };
        self.state.step(&self.policy, self.workspace, &observation)
    }

    /// What to do when no observation came; see [`AgentState::idle`].
    pub fn idle(&mut self, now_us: u64) -> Action {
        self.state.idle(&self.policy, now_us)
    }

    /// Whether the last valid input is older than the policy allows.
    pub fn is_late(&self, now_us: u64) -> bool {
        self.state.is_late(&self.policy, now_us)
    }

    /// Forgets everything but the policy.
    pub fn reset(&mut self) {
        self.state = AgentState::new();
    }

    /// The policy it runs.
    pub fn policy(&self) -> &Policy<'p> {
        &self.policy
    }
}

/// Why an agent cannot act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ArmError {
    /// The caller's working memory does not hold a step of this policy.
    Workspace {
        /// Floats the policy needs.
        needed: usize,
        /// Floats given.
        given: usize,
    },
    /// The policy's probe gave other bits here than where the policy was made.
    SelfTest,
}

impl fmt::Display for ArmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace { needed, given } => write!(
                f,
                "the policy needs {needed} floats of working memory and {given} were given"
            ),
            Self::SelfTest => f.write_str(
                "the self-test failed: this machine does not compute what the policy's maker did",
            ),
        }
    }
}

impl core::error::Error for ArmError {}
