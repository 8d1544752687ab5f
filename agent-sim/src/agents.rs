//! Agents that are shown things by whoever holds them, all at once: for programs that have a field of
//! their own. In runs each is at the end of a [link](crate::link).

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::policy::Policy;
use agent_core::together::{self, Room};
use agent_core::value::{PACK, Pack};
use pulp::{Arch, Simd, WithSimd};

/// What all of them are shown at one moment: one agent after the other, as much for each as
/// [`Agents::cells`] says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Time on the clocks of all.
    pub now_us: u64,
    /// Where each is; unused axes are 0.
    pub position: Vec<[f32; 2]>,
    /// The patches, halo included.
    pub field: Vec<f32>,
    /// What the field should be there; nothing for a policy without target.
    pub target: Vec<f32>,
    /// The cells of each patch that lie inside the domain.
    pub inside: Vec<[Span; 2]>,
    /// The coarse picture of the whole; nothing for a policy that asks for none.
    pub wide_field: Vec<f32>,
    /// What it should be.
    pub wide_target: Vec<f32>,
}

/// Agents of one policy, with all that they keep from one step to the next.
#[derive(Debug, Clone)]
pub struct Agents {
    states: Vec<AgentState>,
    actions: Vec<Action>,
}

/// One control step of each, compiled for each width of vectors, see [`crate::link::InProcess`].
struct Step<'a, 'o> {
    policy: &'a Policy<'a>,
    room: Room<'a>,
    states: &'a mut [AgentState],
    observations: &'a [Observation<'o>],
    actions: &'a mut [Action],
}

impl WithSimd for Step<'_, '_> {
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

/// One control step of each on its own observation.
fn step(
    policy: &Policy,
    states: &mut [AgentState],
    observations: &[Observation<'_>],
    actions: &mut [Action],
) {
    let mut packs = vec![Pack([0.0; PACK]); policy.workspace_len()];
    let mut alone = vec![0.0; policy.workspace_len()];
    Arch::new().dispatch(Step {
        policy,
        room: Room {
            packs: &mut packs,
            alone: &mut alone,
        },
        states,
        observations,
        actions,
    });
}

impl Agents {
    /// So many that wait for their first patch.
    pub fn new(agents: usize) -> Self {
        Self {
            states: vec![AgentState::new(); agents],
            actions: vec![Action::none(Mode::Waiting); agents],
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What each does since it was last asked.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Values of the patch and of the coarse picture that the policy wants for each agent.
    pub fn cells(policy: &Policy) -> [usize; 2] {
        [policy.patch_len(), policy.header().sensing.wide_len()]
    }

    /// One control step of those that are shown something, each once and in ascending order. What each
    /// does is in [`actions`](Self::actions).
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn step_some(&mut self, policy: &Policy, shown: &[(usize, Observation<'_>)]) {
        let mut states: Vec<_> = shown.iter().map(|(a, _)| self.states[*a]).collect();
        let mut actions: Vec<_> = shown.iter().map(|(a, _)| self.actions[*a]).collect();
        let observations: Vec<_> = shown.iter().map(|(_, seen)| *seen).collect();
        step(policy, &mut states, &observations, &mut actions);
        for ((agent, _), (state, action)) in shown.iter().zip(states.into_iter().zip(actions)) {
            self.states[*agent] = state;
            self.actions[*agent] = action;
        }
    }

    /// An agent begins anew.
    pub fn reset(&mut self, agent: usize) {
        self.states[agent] = AgentState::new();
        self.actions[agent] = Action::none(Mode::Waiting);
    }

    /// One control step of each. What is too short for an agent is no valid input to it.
    pub fn step(&mut self, policy: &Policy, shown: &Shown) -> &[Action] {
        let [cells, wide] = Self::cells(policy);
        fn samples(values: &[f32], cells: usize, agent: usize) -> Samples<'_> {
            let own = values.get(agent * cells..(agent + 1) * cells);
            Samples::new(own.unwrap_or_default())
        }
        let observations: Vec<Observation> = (0..self.len())
            .map(|agent| Observation {
                now_us: shown.now_us,
                position: shown.position.get(agent).copied().unwrap_or([f32::NAN; 2]),
                patch: Patch {
                    field: samples(&shown.field, cells, agent),
                    target: samples(&shown.target, cells, agent),
                    inside: shown.inside.get(agent).copied().unwrap_or_default(),
                    wide: Overview {
                        field: samples(&shown.wide_field, wide, agent),
                        target: samples(&shown.wide_target, wide, agent),
                    },
                },
            })
            .collect();
        step(policy, &mut self.states, &observations, &mut self.actions);
        &self.actions
    }

    /// What each does at `now_us` without a new patch: holds on, fading, then fails safe.
    pub fn idle(&mut self, policy: &Policy, now_us: u64) -> &[Action] {
        for (state, action) in self.states.iter_mut().zip(&mut self.actions) {
            *action = state.idle(policy, now_us);
        }
        &self.actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{InProcess, Link};
    use artifacts::observation::OwnedObservation;
    use artifacts::policy_file::PolicyFile;
    use problem::published;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn they_do_what_a_runs_agents_do_bit_for_bit() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for problem in published::measured() {
            let file = PolicyFile::shipped(problem).unwrap();
            let policy = file.policy(problem).unwrap();
            let mut agents = Agents::new(19);
            let mut links = vec![InProcess::new(&policy); agents.len()];
            for step in 1..=8 {
                let now_us = step * u64::from(policy.header().timing.period_us);
                let blank = OwnedObservation::blank(&policy);
                let each: Vec<OwnedObservation> = (0..agents.len())
                    .map(|agent| {
                        let mut seen = blank.clone();
                        let values = [
                            &mut seen.field,
                            &mut seen.target,
                            &mut seen.wide_field,
                            &mut seen.wide_target,
                        ];
                        for value in values.into_iter().flatten() {
                            *value = rng.random_range(-2.0..2.0);
                        }
                        if agent == 3 && step % 2 == 0 {
                            seen.field.fill(f32::NAN);
                        }
                        seen.position = [rng.random_range(0.1..0.9), rng.random_range(0.1..0.9)];
                        seen
                    })
                    .collect();
                let all = |of: fn(&OwnedObservation) -> &[f32]| each.iter().flat_map(of).copied();
                let shown = Shown {
                    now_us,
                    position: each.iter().map(|seen| seen.position).collect(),
                    field: all(|seen| &seen.field).collect(),
                    target: all(|seen| &seen.target).collect(),
                    inside: each.iter().map(|seen| seen.inside).collect(),
                    wide_field: all(|seen| &seen.wide_field).collect(),
                    wide_target: all(|seen| &seen.wide_target).collect(),
                };
                let actions = agents.step(&policy, &shown).to_vec();
                for ((link, seen), action) in links.iter_mut().zip(&each).zip(actions) {
                    link.send(&seen.arriving(now_us)).unwrap();
                    let expected = link.receive(now_us).unwrap().unwrap();
                    let bits = |a: &Action| (a.force.to_bits(), a.velocity.map(f32::to_bits));
                    assert_eq!(bits(&action), bits(&expected), "{}", problem.name);
                    assert_eq!(action.mode, expected.mode);
                }
            }
            assert_eq!(agents.actions()[3].mode, Mode::Holding);
        }
    }

    #[test]
    fn who_is_shown_too_little_waits() {
        let problem = published::by_name("heat-1d").unwrap();
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let mut agents = Agents::new(2);
        let actions = agents.step(&policy, &Shown::default());
        assert_eq!(actions, [Action::none(Mode::Waiting); 2]);
    }
}
