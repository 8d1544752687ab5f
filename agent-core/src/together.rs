//! Many agents of one policy on one machine, several at a time.
//!
//! What an agent does is what [`AgentState::step`] does, bit for bit: each agent has a lane of its
//! own in everything that is computed, and no lane sees another.

use crate::agent::{Action, AgentState};
use crate::message::Observation;
use crate::net;
use crate::policy::{Outputs, Policy};
use crate::value::{PACK, Pack, Value};

/// Working memory for [`step`].
pub struct Room<'w> {
    /// [`Policy::workspace_len`] for several agents at once.
    pub packs: &'w mut [Pack],
    /// [`Policy::workspace_len`] for one.
    pub alone: &'w mut [f32],
}

/// One control step of each agent on its own observation. What is in `room` does not matter; with too
/// little of it all observations count as invalid.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub fn step(
    policy: &Policy,
    room: &mut Room,
    states: &mut [AgentState],
    observations: &[Observation],
    actions: &mut [Action],
) {
    let groups = states
        .chunks_mut(PACK)
        .zip(observations.chunks(PACK))
        .zip(actions.chunks_mut(PACK));
    for ((states, observations), actions) in groups {
        match policy.is_dense() {
            true => group(policy, room, states, observations, actions),
            false => {
                for ((state, observation), action) in
                    states.iter_mut().zip(observations).zip(actions)
                {
                    *action = state.step(policy, room.alone, observation);
                }
            }
        }
    }
}

#[cfg_attr(target_arch = "x86_64", inline(always))]
fn group(
    policy: &Policy,
    room: &mut Room,
    states: &mut [AgentState],
    observations: &[Observation],
    actions: &mut [Action],
) {
    let mut places = [Pack::splat(0.0); 2];
    let mut valid = [false; PACK];
    let agents = states.iter_mut().zip(observations).zip(&mut valid);
    for (lane, ((state, observation), valid)) in agents.enumerate() {
        *valid = state.place(policy, observation.now_us, observation.position)
            && see(policy, room, state, observation, lane).is_some();
        let scaled = policy.header().limits.scaled(observation.position);
        for (place, x) in places.iter_mut().zip(scaled) {
            place.set(lane, x);
        }
    }
    let axes = usize::from(policy.header().sensing.axes);
    // Not in a closure, which a compiler may leave in the baseline's instructions.
    let mut outputs = [Pack::splat(0.0); _];
    let run = match places.get(..axes) {
        Some(places) => policy.infer_lockstep(places, room.packs, &mut outputs),
        None => None,
    };
    if run.is_none() {
        valid = [false; PACK];
    }
    let shares = policy.driving(&outputs).map(net::share);
    let [first, second, third] = &shares;
    let remembered = 2 * policy.header().network.remembered();
    let agents = states.iter_mut().zip(observations).zip(actions).zip(valid);
    for (lane, (((state, observation), action), valid)) in agents.enumerate() {
        if valid && remembered > 0 {
            let mut own: Outputs = [0.0; _];
            for (own, pack) in own.iter_mut().zip(&outputs).take(remembered) {
                *own = pack.get(lane);
            }
            policy.remember(&own, state.recall(policy, observation.now_us));
        }
        let own = [first.get(lane), second.get(lane), third.get(lane)];
        *action = state.act(policy, observation.now_us, valid.then_some(own));
    }
}

/// Puts an agent's features and memory into its lane.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn see(
    policy: &Policy,
    room: &mut Room,
    state: &mut AgentState,
    observation: &Observation,
    lane: usize,
) -> Option<()> {
    let memory = state.recall(policy, observation.now_us);
    let inputs = policy.see(&observation.patch, memory, room.alone)?;
    let lanes = policy.inputs_of(room.packs)?;
    for (pack, x) in lanes.iter_mut().zip(inputs) {
        pack.set(lane, *x);
    }
    Some(())
}
