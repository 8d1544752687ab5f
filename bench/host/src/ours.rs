//! The shipped policy in agent-core, as the simulator's in-process agents run it.

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::message::{Observation, Patch, Span};
use agent_core::policy::Policy;
use agent_core::together::{self, Room};
use agent_core::value::{Pack, Value};
use anyhow::{Result, ensure};
use pulp::{Arch, Simd, WithSimd};

/// Bytes where a policy can be read in place.
#[repr(C, align(16))]
struct Aligned<B: ?Sized>(B);

static HEAT_1D: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../policies/heat-1d.policy"));

/// The shipped blob.
pub struct Blob(&'static [u8]);

impl Blob {
    pub fn shipped() -> Self {
        Self(&HEAT_1D.0)
    }

    /// The policy in it, which must be of the shape that [`Scene::features`] computes.
    pub fn policy(&self) -> Result<Policy<'static>> {
        let policy = Policy::parse(self.0)?;
        let sensing = &policy.header().sensing;
        ensure!(
            sensing.axes == 1 && sensing.samples == sensing.window && sensing.wide.is_none(),
            "heat-1d is resampled or has a wide view: tract would be given other features"
        );
        Ok(policy)
    }

    /// The weights: where the prologue says.
    pub fn weights(&self) -> &'static [f32] {
        let words: &[u32] = bytemuck::cast_slice(&self.0[..32]);
        bytemuck::cast_slice(&self.0[words[4] as usize..][..words[5] as usize])
    }
}

/// What an agent sees, well inside the domain, and what its network is given for it.
pub struct Scene {
    field: Vec<f32>,
    target: Vec<f32>,
    position: [f32; 2],
    now_us: u64,
    /// Errors of the window, then their slopes, then what an agent that has just begun remembers: nothing.
    pub features: Vec<f32>,
    /// Sines of the position, then cosines.
    pub fourier: Vec<f32>,
}

impl Scene {
    /// Waves, other ones for each `k`.
    pub fn new(policy: &Policy, k: usize) -> Self {
        let header = policy.header();
        let phase = k as f32;
        let wave = |pace: f32| {
            let cells = 0..policy.patch_len();
            let values = cells.map(|cell| (pace * cell as f32 + phase).sin());
            values.collect::<Vec<f32>>()
        };
        let (field, target) = (wave(0.37), wave(0.21));
        let errors: Vec<f32> = field.iter().zip(&target).map(|(z, t)| z - t).collect();
        let slopes = errors.windows(3).map(|e| 0.5 * (e[2] - e[0]));
        let window = &errors[1..errors.len() - 1];
        let share = 0.3 + 0.02 * phase;
        let [low, high] = [header.limits.low[0], header.limits.high[0]];
        let frequencies = header.network.frequencies.iter();
        let angles: Vec<f32> = frequencies
            .map(|f| std::f32::consts::PI * f * share)
            .collect();
        Self {
            position: [low + share * (high - low), 0.0],
            now_us: k as u64,
            features: (window.iter().copied().chain(slopes))
                .chain(std::iter::repeat_n(0.0, header.network.remembered()))
                .collect(),
            fourier: angles
                .iter()
                .map(|a| a.sin())
                .chain(angles.iter().map(|a| a.cos()))
                .collect(),
            field,
            target,
        }
    }

    /// As an agent is shown it.
    pub fn observation(&self) -> Observation<'_> {
        let inside = Span {
            first: 0,
            last: self.field.len() as u16 - 1,
        };
        Observation {
            now_us: self.now_us,
            position: self.position,
            patch: Patch::line(&self.field, &self.target, inside),
        }
    }
}

/// Where steps are computed.
pub struct Desk<'p> {
    policy: &'p Policy<'p>,
    workspace: Vec<f32>,
    packs: Vec<Pack>,
    actions: Vec<Action>,
    state: AgentState,
    arch: Arch,
}

impl<'p> Desk<'p> {
    pub fn new(policy: &'p Policy<'p>) -> Self {
        Self {
            policy,
            workspace: vec![0.0; policy.workspace_len()],
            packs: vec![Pack::splat(0.0); policy.workspace_len()],
            actions: Vec::new(),
            state: AgentState::new(),
            arch: Arch::new(),
        }
    }

    /// The vectors that steps are compiled for.
    pub fn vectors(&self) -> &'static str {
        match self.arch {
            Arch::Scalar => "the baseline's vectors",
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => "AVX2",
            _ => "wider vectors than AVX2",
        }
    }

    /// The action of an agent that has just started: what its network says. One that has acted before
    /// remembers its outputs, and its governor eases off those that change their sign.
    pub fn first_step(&mut self, scene: &Scene) -> Action {
        self.state = AgentState::new();
        self.step(scene)
    }

    /// One step of one agent.
    pub fn step(&mut self, scene: &Scene) -> Action {
        self.arch.dispatch(Step {
            policy: self.policy,
            workspace: &mut self.workspace,
            state: &mut self.state,
            observation: &scene.observation(),
        })
    }

    /// One step of every agent, several at a time.
    pub fn step_all(&mut self, states: &mut [AgentState], observations: &[Observation]) {
        self.actions
            .resize(states.len(), Action::none(Mode::Waiting));
        self.arch.dispatch(StepAll {
            policy: self.policy,
            room: Room {
                packs: &mut self.packs,
                alone: &mut self.workspace,
            },
            states,
            observations,
            actions: &mut self.actions,
        });
    }
}

struct StepAll<'a, 'o> {
    policy: &'a Policy<'a>,
    room: Room<'a>,
    states: &'a mut [AgentState],
    observations: &'a [Observation<'o>],
    actions: &'a mut [Action],
}

impl WithSimd for StepAll<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        together::step(
            self.policy,
            &mut self.room,
            self.states,
            self.observations,
            self.actions,
        );
    }
}

struct Step<'a, 'o> {
    policy: &'a Policy<'a>,
    workspace: &'a mut [f32],
    state: &'a mut AgentState,
    observation: &'a Observation<'o>,
}

impl WithSimd for Step<'_, '_> {
    type Output = Action;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Action {
        self.state
            .step(self.policy, self.workspace, self.observation)
    }
}

/// The network's outputs that an action comes from, in −1 to 1.
pub fn as_outputs(policy: &Policy, action: &Action) -> Vec<f32> {
    let limits = &policy.header().limits;
    let force = limits.force.map(|limit| action.force / limit);
    let velocity = limits.velocity.map(|limit| action.velocity[0] / limit);
    force.into_iter().chain(velocity).collect()
}
