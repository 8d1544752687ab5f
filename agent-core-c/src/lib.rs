//! [`agent_core`] for firmware in C.
//!
//! `include/agent_core.h` is the documentation for those who call it. Here is the other side of it,
//! and all the `unsafe` of that boundary: agent-core itself has none.
//!
//! 1. [`layout`]: the structures that cross, field by field as the header has them.
//! 2. `memory`: pointers of the caller's become references, or a reason why not.
//! 3. [`status`]: what a call returns.
//! 4. The functions of the header, below.
//!
//! Nothing here panics, and the linker is the witness: the panic handler calls a function that is
//! defined nowhere, so an image with a reachable panic does not link.

#![no_std]

pub mod layout;
mod memory;
#[cfg(target_os = "none")]
mod panic;
pub mod status;
mod text;

use agent_core::agent::{Action, Agent, Mode};
use agent_core::policy::Policy;
use core::ffi::{c_char, c_void};
use layout::{AgentAction, AgentMemory, AgentPatch, AgentPolicy};
use status::Status;

/// What a policy asks of its caller, and what it promises.
///
/// # Safety
///
/// As for [`agent_init`]'s policy; `facts` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_policy_query(
    policy: *const c_void,
    length: usize,
    facts: *mut AgentPolicy,
) -> Status {
    // SAFETY: the caller's promise.
    let (policy, facts) = unsafe { (parse(policy, length), memory::output(facts)) };
    let answer = policy.and_then(|policy| {
        facts?.write(AgentPolicy::of(&policy));
        Ok(())
    });
    Status::of(answer)
}

/// Why a policy is refused, as a sentence.
///
/// # Safety
///
/// As for [`agent_init`]'s policy; `text` is null or can be written for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_policy_explain(
    policy: *const c_void,
    length: usize,
    text: *mut c_char,
    room: usize,
) -> Status {
    // SAFETY: the caller's promise.
    let (policy, text) = unsafe {
        (
            memory::slice(policy.cast(), length),
            memory::slice_mut(text.cast(), room),
        )
    };
    let text = match text {
        Ok(text) => text,
        Err(status) => return status,
    };
    let status = match policy.map(Policy::parse) {
        Ok(Ok(_)) => Status::Ok,
        Ok(Err(error)) => {
            text::write(text, &error);
            return error.into();
        }
        Err(status) => status,
    };
    text::write(text, &status);
    status
}

/// What a status means.
#[unsafe(no_mangle)]
pub extern "C" fn agent_status_text(status: i32) -> *const c_char {
    Status::sentence(status).as_ptr().cast()
}

/// Checks a policy and makes an agent that waits for its first patch.
///
/// # Safety
///
/// `policy` is null or can be read for `length` bytes, `workspace` for as many floats, which nobody
/// else uses; both, unchanged, for as long as the agent is. `agent` is null or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_init(
    agent: *mut AgentMemory,
    policy: *const c_void,
    length: usize,
    workspace: *mut f32,
    workspace_length: usize,
) -> Status {
    // SAFETY: the caller's promise.
    let (slot, policy, workspace) = unsafe {
        (
            memory::slot(agent),
            parse(policy, length),
            memory::slice_mut(workspace, workspace_length),
        )
    };
    let slot = match slot {
        Ok(slot) => slot,
        Err(status) => return status,
    };
    // Whatever was there is no agent of ours any more, also if this one is refused.
    slot.clear();
    let armed = policy.and_then(|policy| {
        slot.fill(Agent::new(policy, workspace?).map_err(Status::from)?);
        Ok(())
    });
    Status::of(armed)
}

/// One control step.
///
/// # Safety
///
/// `agent` is null or memory that [`agent_init`] was called on, or zeroed; `patch` and `position`
/// are null or can be read, as can the patch's arrays; `action` is null or can be written. None of
/// them overlap the agent's working memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_step(
    agent: *mut AgentMemory,
    patch: *const AgentPatch,
    position: *const f32,
    now_us: u64,
    action: *mut AgentAction,
) -> Status {
    // SAFETY: the caller's promise.
    let step = unsafe {
        memory::agent(agent).and_then(|agent| {
            let patch = memory::input(patch)?.patch()?;
            let position = memory::input(position.cast::<[f32; 2]>())?;
            Ok(agent.step(&patch, *position, now_us))
        })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(step, action) }
}

/// What to do when no patch came.
///
/// # Safety
///
/// As for [`agent_step`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_idle(
    agent: *mut AgentMemory,
    now_us: u64,
    action: *mut AgentAction,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let idle = memory::agent(agent).map(|agent| agent.idle(now_us));
        answer(idle, action)
    }
}

/// Whether the last valid patch is so old that [`agent_idle`] is due; also for what is no agent.
///
/// # Safety
///
/// As for [`agent_step`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_is_late(agent: *mut AgentMemory, now_us: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { memory::agent(agent).map_or(true, |agent| agent.is_late(now_us)) }
}

/// Forgets everything but the policy.
///
/// # Safety
///
/// As for [`agent_step`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn agent_reset(agent: *mut AgentMemory) -> Status {
    // SAFETY: the caller's promise.
    unsafe { Status::of(memory::agent(agent).map(Agent::reset)) }
}

/// The policy at a pointer of the caller's.
///
/// # Safety
///
/// As for [`agent_init`]'s policy.
unsafe fn parse<'a>(policy: *const c_void, length: usize) -> Result<Policy<'a>, Status> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { memory::slice(policy.cast(), length)? };
    Ok(Policy::parse(bytes)?)
}

/// Hands an action out. Who is refused and does not look at the status gets no force, no motion.
///
/// # Safety
///
/// `action` is null or can be written.
unsafe fn answer(result: Result<Action, Status>, action: *mut AgentAction) -> Status {
    // SAFETY: the caller's promise.
    let action = match unsafe { memory::output(action) } {
        Ok(action) => action,
        Err(status) => return status,
    };
    let given = result.unwrap_or(Action::none(Mode::FailedSafe));
    action.write(AgentAction::of(&given));
    Status::of(result.map(drop))
}
