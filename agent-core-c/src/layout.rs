//! The structures that cross, field by field as the header has them.

use crate::memory;
use crate::status::Status;
use agent_core::agent::Action;
use agent_core::message::{Overview, Patch, Samples, Span};
use agent_core::policy::Policy;

/// 8-byte words that hold an agent: `AGENT_WORDS` of the header.
pub const AGENT_WORDS: usize = 112;

/// `struct agent` of the header: memory of the caller's, in which an agent is made.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AgentMemory {
    pub(crate) words: [u64; AGENT_WORDS],
}

impl AgentMemory {
    /// As static memory starts.
    pub const ZERO: Self = Self {
        words: [0; AGENT_WORDS],
    };
}

/// `struct agent_span` of the header.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AgentSpan {
    /// Index of the first cell inside the domain.
    pub first: u16,
    /// Index of the last cell inside.
    pub last: u16,
}

/// `struct agent_patch` of the header.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AgentPatch {
    /// [`Patch::field`].
    pub field: *const f32,
    /// Floats of it.
    pub field_length: usize,
    /// [`Patch::target`].
    pub target: *const f32,
    /// Floats of it.
    pub target_length: usize,
    /// [`Overview::field`].
    pub wide_field: *const f32,
    /// Floats of it.
    pub wide_field_length: usize,
    /// [`Overview::target`].
    pub wide_target: *const f32,
    /// Floats of it.
    pub wide_target_length: usize,
    /// [`Patch::inside`].
    pub inside: [AgentSpan; 2],
}

impl AgentPatch {
    /// The patch, read where it lies.
    ///
    /// # Safety
    ///
    /// Each array can be read, and stays as it is, for as long as the patch is used.
    pub(crate) unsafe fn patch<'a>(&self) -> Result<Patch<'a>, Status> {
        let samples = |start, length| {
            // SAFETY: the caller's promise.
            unsafe { memory::slice(start, length).map(Samples::new) }
        };
        Ok(Patch {
            field: samples(self.field, self.field_length)?,
            target: samples(self.target, self.target_length)?,
            inside: self
                .inside
                .map(|AgentSpan { first, last }| Span { first, last }),
            wide: Overview {
                field: samples(self.wide_field, self.wide_field_length)?,
                target: samples(self.wide_target, self.wide_target_length)?,
            },
        })
    }
}

/// `struct agent_action` of the header.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentAction {
    /// [`Action::force`].
    pub force: f32,
    /// [`Action::velocity`].
    pub velocity: [f32; 2],
    /// [`Action::mode`], counted from 0 in the order of its variants.
    pub mode: i32,
}

impl AgentAction {
    pub(crate) fn of(action: &Action) -> Self {
        Self {
            force: action.force,
            velocity: action.velocity,
            mode: action.mode as i32,
        }
    }
}

/// `struct agent_policy` of the header.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentPolicy {
    /// Floats of working memory.
    pub workspace_length: usize,
    /// Cells of a patch, halo included.
    pub patch_cells: usize,
    /// Cells of the wide view.
    pub wide_cells: usize,
    /// Whether patches carry a target: 0 or 1.
    pub target: u32,
    /// Space dimensions.
    pub axes: u32,
    /// Cells of the window along an axis.
    pub window: u32,
    /// Nominal time between two observations.
    pub period_us: u32,
    /// Without valid input for longer than this the agent holds.
    pub late_us: u32,
    /// After this long it fails safe.
    pub fail_safe_us: u32,
    /// Largest force; 0: the agent has none.
    pub force_limit: f32,
    /// Largest velocity along an axis; 0: the agent does not move.
    pub velocity_limit: f32,
    /// Lowest coordinate per axis.
    pub low: [f32; 2],
    /// Highest coordinate per axis.
    pub high: [f32; 2],
    /// CRC-32 in the policy's prologue: names the policy.
    pub crc: u32,
}

impl AgentPolicy {
    pub(crate) fn of(policy: &Policy) -> Self {
        let header = policy.header();
        let (sensing, limits, timing) = (&header.sensing, &header.limits, &header.timing);
        Self {
            workspace_length: policy.workspace_len(),
            patch_cells: policy.patch_len(),
            wide_cells: sensing.wide_len(),
            target: sensing.target.into(),
            axes: sensing.axes.into(),
            window: sensing.window.into(),
            period_us: timing.period_us,
            late_us: timing.late_us,
            fail_safe_us: timing.fail_safe_us,
            force_limit: limits.force.unwrap_or(0.0),
            velocity_limit: limits.velocity.unwrap_or(0.0),
            low: limits.low,
            high: limits.high,
            crc: policy.checksum(),
        }
    }
}
