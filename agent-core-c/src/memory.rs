//! Pointers of the caller's become references, or a reason why not.
//!
//! What can be told from a pointer is checked here: null, alignment, a length beyond the address
//! space. That the memory is there and is what the header asks for, only the caller can know.

use crate::layout::AgentMemory;
use crate::status::Status;
use agent_core::agent::Agent;
use core::mem::MaybeUninit;
use core::slice;

/// What an agent's memory holds.
#[repr(C)]
pub(crate) struct Slot {
    /// [`READY`] once there is an agent.
    ready: u32,
    agent: MaybeUninit<Agent<'static, 'static>>,
}

/// "AGNT": not what erased or forgotten memory holds.
const READY: u32 = u32::from_le_bytes(*b"AGNT");

const _: () = assert!(
    size_of::<Slot>() <= size_of::<AgentMemory>(),
    "AGENT_WORDS is too small for an agent: raise it, in the header too"
);
const _: () = assert!(align_of::<Slot>() <= align_of::<AgentMemory>());

impl Slot {
    pub(crate) fn clear(&mut self) {
        self.ready = 0;
    }

    pub(crate) fn fill(&mut self, agent: Agent<'static, 'static>) {
        self.agent.write(agent);
        self.ready = READY;
    }
}

/// The slot in an agent's memory, whatever it holds.
///
/// # Safety
///
/// `memory` is null or memory for an agent that nobody else uses meanwhile.
pub(crate) unsafe fn slot<'a>(memory: *mut AgentMemory) -> Result<&'a mut Slot, Status> {
    check(memory)?;
    // SAFETY: not null, aligned, large enough for a slot, and all bytes of a slot may hold anything.
    Ok(unsafe { &mut *memory.cast::<Slot>() })
}

/// The agent in its memory.
///
/// # Safety
///
/// As for [`slot`]; and memory that `agent_init` was never called on is zero.
pub(crate) unsafe fn agent<'a>(
    memory: *mut AgentMemory,
) -> Result<&'a mut Agent<'static, 'static>, Status> {
    // SAFETY: the caller's promise.
    let slot = unsafe { slot(memory)? };
    match slot.ready {
        // SAFETY: only `fill` leaves this word behind, and it writes the agent first.
        READY => Ok(unsafe { slot.agent.assume_init_mut() }),
        _ => Err(Status::NotReady),
    }
}

/// A value to read.
///
/// # Safety
///
/// `value` is null or can be read as what any bits are valid for, and does not change meanwhile.
pub(crate) unsafe fn input<'a, T>(value: *const T) -> Result<&'a T, Status> {
    check(value)?;
    // SAFETY: not null, aligned, and the caller's promise.
    Ok(unsafe { &*value })
}

/// A value to write.
///
/// # Safety
///
/// `value` is null or can be written, and nobody else uses it meanwhile.
pub(crate) unsafe fn output<'a, T>(value: *mut T) -> Result<&'a mut MaybeUninit<T>, Status> {
    check(value)?;
    // SAFETY: not null, aligned, and the caller's promise; nothing is assumed of what is there.
    Ok(unsafe { &mut *value.cast() })
}

/// An array to read; an empty one may be null.
///
/// # Safety
///
/// `start` is null or can be read for `length` elements that do not change meanwhile.
pub(crate) unsafe fn slice<'a, T: Number>(
    start: *const T,
    length: usize,
) -> Result<&'a [T], Status> {
    if length == 0 {
        return Ok(&[]);
    }
    check_array(start, length)?;
    // SAFETY: not null, aligned, not longer than memory, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(start, length) })
}

/// An array to work in; an empty one may be null.
///
/// # Safety
///
/// `start` is null or can be read and written for `length` elements that nobody else uses meanwhile.
pub(crate) unsafe fn slice_mut<'a, T: Number>(
    start: *mut T,
    length: usize,
) -> Result<&'a mut [T], Status> {
    if length == 0 {
        return Ok(&mut []);
    }
    check_array(start, length)?;
    // SAFETY: not null, aligned, not longer than memory, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(start, length) })
}

/// What any bits are valid for.
pub(crate) trait Number: Copy {}
impl Number for u8 {}
impl Number for f32 {}

fn check<T>(pointer: *const T) -> Result<(), Status> {
    match pointer {
        p if p.is_null() => Err(Status::Null),
        p if !p.is_aligned() => Err(Status::Misaligned),
        _ => Ok(()),
    }
}

fn check_array<T>(start: *const T, length: usize) -> Result<(), Status> {
    check(start)?;
    // No object is larger than half the address space, nor does it run over its end.
    let size = length
        .checked_mul(size_of::<T>())
        .filter(|size| *size <= isize::MAX as usize)
        .ok_or(Status::Length)?;
    match start.addr().checked_add(size) {
        Some(_) => Ok(()),
        None => Err(Status::Length),
    }
}
