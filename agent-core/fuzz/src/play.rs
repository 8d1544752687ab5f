//! One agent's life, read from a script.

use crate::oracle::{self, Call};
use crate::sample::Shown;
use crate::script::Script;
use agent_core::agent::{Action, AgentState, Mode};
use agent_core::message::{Observation, Samples, Span};
use agent_core::policy::{Channel, Policy};

/// Floats beyond the working memory that must stay as they are.
const CANARY: [f32; 4] = [1.5, -2.5, 3.5, -4.5];

/// Most cells of a patch that are filled from a script.
const MOST_CELLS: usize = 4096;

/// Plays up to `calls` calls of the script and holds every answer against the oracle.
pub fn play(policy: &Policy, calls: usize, script: &mut Script) {
    // Working memory is not empty when a step begins.
    let mut memory = vec![f32::NAN; policy.workspace_len()];
    memory.extend(CANARY);
    if policy.patch_len() > MOST_CELLS {
        return;
    }
    let mut life = Life {
        policy,
        memory,
        state: AgentState::new(),
        last: Action::none(Mode::Waiting),
        placed: false,
        now_us: script.u64(),
    };
    for _ in 0..calls {
        if script.is_over() {
            break;
        }
        let kind = script.below(16);
        life.now_us = match script.below(8) {
            0..4 => life
                .now_us
                .wrapping_add(policy.header().timing.period_us.into()),
            4 | 5 => life.now_us.wrapping_add(script.u16().into()),
            6 => life.now_us.wrapping_add(script.u32().into()),
            _ => script.u64(),
        };
        match kind {
            0..10 => life.step(script),
            10..14 => life.idle(),
            14 => life.step_without_memory(script),
            _ => life.reset(),
        }
    }
    assert_eq!(life.memory[policy.workspace_len()..], CANARY);
}

struct Life<'p> {
    policy: &'p Policy<'p>,
    memory: Vec<f32>,
    state: AgentState,
    last: Action,
    /// It has been told where it is.
    placed: bool,
    now_us: u64,
}

impl Life<'_> {
    fn step(&mut self, script: &mut Script) {
        let (shown, position) = (shown(self.policy, script), place(self.policy, script));
        let observation = shown.at(position, self.now_us);
        let room = self.policy.workspace_len();
        let memory = &mut self.memory[..room];
        let action = self.state.step(self.policy, memory, &observation);
        let valid = is_valid(self.policy, &observation);
        self.answered(Call::Step, action);
        self.kept_its_place(position, &action);
        // Whatever parses gives numbers for all that is valid: the parser has proved it.
        assert_eq!(valid, action.mode == Mode::Active, "{observation:?}");
        if action.mode == Mode::Active {
            assert!(!self.state.is_late(self.policy, self.now_us));
        }
    }

    /// Valid or not, an observation that there is no room to compute on is no better than none.
    fn step_without_memory(&mut self, script: &mut Script) {
        let (shown, position) = (shown(self.policy, script), place(self.policy, script));
        let room = self.policy.workspace_len() - 1;
        let given = usize::from(script.u16()).min(room);
        let memory = &mut self.memory[..given];
        let observation = shown.at(position, self.now_us);
        let action = self.state.step(self.policy, memory, &observation);
        self.answered(Call::Idle, action);
        self.kept_its_place(position, &action);
    }

    fn idle(&mut self) {
        let action = self.state.idle(self.policy, self.now_us);
        self.answered(Call::Idle, action);
        // Nobody has told it where it is.
        assert!(self.placed || action.velocity == [0.0; 2], "{action:?}");
    }

    fn reset(&mut self) {
        self.state = AgentState::new();
        self.last = Action::none(Mode::Waiting);
        self.placed = false;
    }

    fn answered(&mut self, call: Call, action: Action) {
        oracle::within_limits(self.policy.header(), &action);
        oracle::legal(self.last.mode, call, action.mode);
        assert_eq!(self.state.mode(), action.mode);
        self.last = action;
    }

    fn kept_its_place(&mut self, position: [f32; 2], action: &Action) {
        let axes = usize::from(self.policy.header().sensing.axes);
        if position[..axes].iter().all(|x| x.is_finite()) {
            self.placed = true;
            oracle::keeps_its_place(self.policy.header(), position, action.velocity);
        }
    }
}

/// A patch of the policy's shape, or nearly.
fn shown(policy: &Policy, script: &mut Script) -> Shown {
    let sensing = &policy.header().sensing;
    let mut shown = Shown::all(policy, 0.0);
    for cells in [
        &mut shown.field,
        &mut shown.target,
        &mut shown.wide_field,
        &mut shown.wide_target,
    ] {
        tile(cells, script);
    }
    for span in &mut shown.inside {
        let side = sensing.window.saturating_add(2);
        match script.below(16) {
            0..6 => {}
            // At a wall, perhaps beyond the agent's own cell.
            6..10 => span.first = script.u16() % side,
            10..14 => span.last = script.u16() % side,
            _ => {
                (span.first, span.last) = (script.u16(), script.u16());
            }
        }
    }
    match script.u8() {
        0..240 => {}
        240..243 => drop(shown.field.pop()),
        243..246 => drop(shown.target.pop()),
        246..249 => drop(shown.wide_field.pop()),
        249..252 => shown.target.clear(),
        252.. => shown.wide_target.push(0.0),
    }
    shown
}

/// Fills cells with a few numbers over and over, then changes a few of them.
fn tile(cells: &mut [f32], script: &mut Script) {
    if cells.is_empty() {
        return;
    }
    let pattern: Vec<f32> = (0..=script.below(24)).map(|_| script.f32()).collect();
    for (cell, value) in cells.iter_mut().zip(pattern.iter().cycle()) {
        *cell = *value;
    }
    for _ in 0..script.below(4) {
        let at = usize::from(script.u16()) % cells.len();
        cells[at] = script.f32();
    }
}

/// Somewhere in the domain, near a disc, or anywhere.
fn place(policy: &Policy, script: &mut Script) -> [f32; 2] {
    let limits = &policy.header().limits;
    let near = script.below(16);
    [0, 1].map(|axis| match near {
        0..8 => {
            let share = f32::from(script.u16()) / f32::from(u16::MAX);
            limits.low[axis] + share * (limits.high[axis] - limits.low[axis])
        }
        8..12 => match limits.keep_out.get(usize::from(near - 8)) {
            Some(disc) => disc.centre[axis] + disc.radius * script.f32(),
            None => limits.high[axis],
        },
        12 => limits.low[axis],
        _ => script.f32(),
    })
}

/// Whether an observation is one that an agent must act on, written from docs/policy-format.md.
fn is_valid(policy: &Policy, observation: &Observation) -> bool {
    let sensing = &policy.header().sensing;
    let axes = usize::from(sensing.axes);
    let patch = &observation.patch;
    let side = usize::from(sensing.window) + 2;
    let own = 1 + sensing.window / 2;
    let known =
        |span: &Span| (span.first..=span.last).contains(&own) && usize::from(span.last) < side;
    let with_target = |cells: usize| if sensing.target { cells } else { 0 };
    let wide = sensing.wide_len();
    let shape = patch.field.len() == side.pow(axes as u32)
        && patch.target.len() == with_target(side.pow(axes as u32))
        && patch.wide.field.len() == wide
        && patch.wide.target.len() == with_target(wide);
    if !shape || !patch.inside[..axes].iter().all(known) {
        return false;
    }
    // A policy of the plane without slopes looks at no cell beyond its window.
    let halo = axes == 1 || sensing.channels != [Channel::Error];
    let looked_at = |span: Span, k: usize| {
        let window = 1..=usize::from(sensing.window);
        (span.first.into()..=span.last.into()).contains(&k) && (halo || window.contains(&k))
    };
    let seen = |cell: usize| match axes {
        1 => looked_at(patch.inside[0], cell),
        _ => looked_at(patch.inside[0], cell / side) && looked_at(patch.inside[1], cell % side),
    };
    // What counts is the error: the difference of numbers may be none.
    let errors = |field: Samples, target: Samples| {
        let target: Vec<f32> = target
            .iter()
            .chain(std::iter::repeat(0.0))
            .take(field.len())
            .collect();
        field
            .iter()
            .zip(target)
            .map(|(z, t)| z - t)
            .collect::<Vec<f32>>()
    };
    let near = errors(patch.field, patch.target);
    let near = near
        .iter()
        .enumerate()
        .all(|(k, e)| e.is_finite() || !seen(k));
    let far = errors(patch.wide.field, patch.wide.target);
    let far = far.iter().all(|e| e.is_finite());
    let placed = observation.position[..axes].iter().all(|x| x.is_finite());
    near && far && placed
}
