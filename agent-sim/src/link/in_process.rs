//! Agents inside the simulator's own process.

use super::{Link, LinkError};
use agent_core::agent::{Action, AgentState};
use agent_core::message::Observation;
use agent_core::policy::Policy;
use pulp::{Arch, Simd, WithSimd};
use std::cell::RefCell;

thread_local! {
    /// What the agents of one thread share, so that a million of them cost a million small states
    /// and no more.
    static DESK: RefCell<Desk> = RefCell::new(Desk {
        workspace: Vec::new(),
        arch: Arch::new(),
    });
}

/// Where control steps are computed.
struct Desk {
    /// Working memory for one step; agents keep nothing in it from one step to the next.
    workspace: Vec<f32>,
    /// The widest vectors of this machine.
    arch: Arch,
}

/// One control step, compiled for each width of vectors. The same operations in the same order give
/// the same bits with all of them, and on a node.
struct Step<'a, 'o> {
    state: &'a mut AgentState,
    policy: &'a Policy<'a>,
    workspace: &'a mut [f32],
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

/// An agent core in this process: exactly what a node runs, minus the node.
#[derive(Clone)]
pub struct InProcess<'p> {
    policy: &'p Policy<'p>,
    state: AgentState,
    pending: Option<Action>,
}

impl<'p> InProcess<'p> {
    /// An agent that waits for its first patch.
    pub fn new(policy: &'p Policy<'p>) -> Self {
        Self {
            policy,
            state: AgentState::new(),
            pending: None,
        }
    }

    /// What it remembers.
    pub fn memory(&self) -> &[f32] {
        self.state.memory(self.policy)
    }
}

impl Link for InProcess<'_> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let (policy, state) = (self.policy, &mut self.state);
        let action = DESK.with_borrow_mut(|Desk { workspace, arch }| {
            if workspace.len() < policy.workspace_len() {
                workspace.resize(policy.workspace_len(), 0.0);
            }
            arch.dispatch(Step {
                state,
                policy,
                workspace,
                observation,
            })
        });
        self.pending = Some(action);
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = match self.pending.take() {
            Some(action) => action,
            None => self.state.idle(self.policy, now_us),
        };
        Ok(Some(action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::agent::Mode;
    use agent_core::message::{Patch, Span};
    use artifacts::policy_file::PolicyFile;
    use problem::published::heat_1d::PROBLEM;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Numbers of all sizes: ordinary ones, any bits at all, denormals, those at the ends of the
    /// range, and some that are none.
    fn any_number(rng: &mut ChaCha8Rng) -> f32 {
        match rng.random_range(0..24) {
            0 => f32::NAN,
            1..4 => f32::from_bits(rng.random()),
            4..7 => f32::from_bits(rng.random_range(0..0x0080_0000)),
            7..10 => f32::MAX * rng.random_range(-1.0..1.0),
            10..12 => 0.0,
            _ => rng.random_range(-2.0..2.0),
        }
    }

    #[test]
    fn wider_vectors_change_no_bit() {
        let file = PolicyFile::shipped(&PROBLEM).unwrap();
        let policy = file.policy(&PROBLEM).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut link = InProcess::new(&policy);
        let mut state = AgentState::new();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let (mut active, mut held) = (0, 0);
        for step in 0..4000 {
            let wild = rng.random_bool(0.3);
            let mut number = || match wild {
                true => any_number(&mut rng),
                false => rng.random_range(-2.0..2.0),
            };
            let cells = policy.patch_len();
            let field: Vec<f32> = (0..cells).map(|_| number()).collect();
            let target: Vec<f32> = (0..cells).map(|_| number()).collect();
            let position = [number(), 0.0];
            let (centre, end) = (cells as u16 / 2, cells as u16 - 1);
            let first = rng.random_range(0..=centre);
            let last = rng.random_range(centre..=end);
            let patch = Patch::line(&field, &target, Span { first, last });
            let observation = Observation {
                now_us: 1000 * step,
                position,
                patch,
            };
            let expected = state.step(&policy, &mut workspace, &observation);
            link.send(&observation).unwrap();
            let found = link.receive(observation.now_us).unwrap().unwrap();
            let bits = |action: &Action| {
                let [v, w] = action.velocity.map(f32::to_bits);
                (action.force.to_bits(), v, w, action.mode)
            };
            assert_eq!(
                bits(&found),
                bits(&expected),
                "step {step}: {observation:?}"
            );
            match found.mode {
                Mode::Active => active += 1,
                _ => held += 1,
            }
        }
        // Of 4000 steps 1200 are wild, and some half of those has a NaN among its two dozen or so
        // values: both the network and the fail-safe have their say.
        assert!(active > 3000 && held > 300, "{active} {held}");
    }
}
