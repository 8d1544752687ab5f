//! The functions of the header, called as C would.

use agent_core::agent::Agent;
use agent_core::message::{Overview, Patch, Samples, Span};
use agent_core::policy::Policy;
use agent_core_c::layout::{AgentAction, AgentMemory, AgentPatch, AgentPolicy, AgentSpan};
use agent_core_c::status::Status;
use agent_core_c::{
    agent_idle, agent_init, agent_is_late, agent_policy_explain, agent_policy_query, agent_reset,
    agent_status_text, agent_step,
};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

/// A policy file, aligned for reading in place.
struct Blob {
    words: Vec<u32>,
    length: usize,
}

impl Blob {
    fn shipped(problem: &str) -> Self {
        let bytes = std::fs::read(policies().join(format!("{problem}.policy"))).unwrap();
        let mut words = vec![0; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let length = bytes.len();
        Self { words, length }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    fn facts(&self) -> AgentPolicy {
        let mut facts = MaybeUninit::uninit();
        let status = unsafe {
            agent_policy_query(self.words.as_ptr().cast(), self.length, facts.as_mut_ptr())
        };
        assert_eq!(status, Status::Ok);
        unsafe { facts.assume_init() }
    }

    fn init(&self, agent: *mut AgentMemory, workspace: &mut [f32]) -> Status {
        let policy = self.words.as_ptr().cast();
        let (start, length) = (workspace.as_mut_ptr(), workspace.len());
        unsafe { agent_init(agent, policy, self.length, start, length) }
    }
}

const EMPTY: AgentPatch = AgentPatch {
    field: null(),
    field_length: 0,
    target: null(),
    target_length: 0,
    wide_field: null(),
    wide_field_length: 0,
    wide_target: null(),
    wide_target_length: 0,
    inside: [AgentSpan { first: 0, last: 0 }; 2],
};

/// Something a caller must never see after a refusal.
const GARBAGE: AgentAction = AgentAction {
    force: 1e9,
    velocity: [1e9; 2],
    mode: 99,
};

/// No force, no motion, failed safe.
const NOTHING: AgentAction = AgentAction {
    force: 0.0,
    velocity: [0.0; 2],
    mode: 3,
};

fn bits(action: &AgentAction) -> ([u32; 3], i32) {
    let [x, y] = action.velocity;
    ([action.force, x, y].map(f32::to_bits), action.mode)
}

/// On lines and planes, with and without target and wide view.
#[test]
fn every_shipped_policy_acts_through_c_as_it_does_in_rust() {
    let policies = std::fs::read_dir(policies()).unwrap();
    let files = policies.map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|e| e == "policy"))
        .collect();
    assert_eq!(files.len(), 8);
    for file in files {
        let problem = file.file_stem().unwrap().to_str().unwrap();
        let blob = Blob::shipped(problem);
        let facts = blob.facts();
        let mut memory = AgentMemory::ZERO;
        let mut workspace = vec![0.0; facts.workspace_length];
        assert_eq!(blob.init(&mut memory, &mut workspace), Status::Ok);
        let policy = Policy::parse(blob.bytes()).unwrap();
        let mut own = vec![0.0; policy.workspace_len()];
        let mut in_rust = Agent::new(policy, &mut own).unwrap();

        let last = (facts.window + 1) as u16;
        let wave = |count: usize, phase: f32| -> Vec<f32> {
            (0..count).map(|k| (k as f32 * 0.7 + phase).sin()).collect()
        };
        let mut modes = Vec::new();
        for step in 0..20u32 {
            let now_us = u64::from(step) * u64::from(facts.period_us);
            let mut field = wave(facts.patch_cells, step as f32);
            let target = wave(facts.patch_cells * facts.target as usize, 1.0);
            let wide_field = wave(facts.wide_cells, step as f32);
            let wide_target = wave(facts.wide_cells * facts.target as usize, 2.0);
            if step % 5 == 4 {
                field.fill(f32::NAN);
            }
            let share = step as f32 / 20.0;
            let position = [0, 1].map(|k| facts.low[k] + share * (facts.high[k] - facts.low[k]));
            let inside = [AgentSpan { first: 1, last }; 2];
            let patch = AgentPatch {
                field: field.as_ptr(),
                field_length: field.len(),
                target: target.as_ptr(),
                target_length: target.len(),
                wide_field: wide_field.as_ptr(),
                wide_field_length: wide_field.len(),
                wide_target: wide_target.as_ptr(),
                wide_target_length: wide_target.len(),
                inside,
            };
            let mut action = GARBAGE;
            let status =
                unsafe { agent_step(&mut memory, &patch, position.as_ptr(), now_us, &mut action) };
            assert_eq!(status, Status::Ok);
            let expected = in_rust.step(
                &Patch {
                    field: Samples::new(&field),
                    target: Samples::new(&target),
                    inside: [Span { first: 1, last }; 2],
                    wide: Overview {
                        field: Samples::new(&wide_field),
                        target: Samples::new(&wide_target),
                    },
                },
                position,
                now_us,
            );
            let expected = AgentAction {
                force: expected.force,
                velocity: expected.velocity,
                mode: expected.mode as i32,
            };
            assert_eq!(bits(&action), bits(&expected), "{problem}, step {step}");
            modes.push(action.mode);
        }
        // Active, and holding after a broken sensor.
        assert!(modes.contains(&1) && modes.contains(&2), "{modes:?}");
    }
}

#[test]
fn time_without_patches_makes_an_agent_late_then_safe_and_a_reset_makes_it_wait() {
    let blob = Blob::shipped("heat-1d");
    let facts = blob.facts();
    let mut memory = AgentMemory::ZERO;
    let mut workspace = vec![0.0; facts.workspace_length];
    blob.init(&mut memory, &mut workspace);
    let cells = vec![0.5; facts.patch_cells];
    let patch = AgentPatch {
        field: cells.as_ptr(),
        field_length: cells.len(),
        target: cells.as_ptr(),
        target_length: cells.len() * facts.target as usize,
        inside: [AgentSpan {
            first: 0,
            last: facts.window as u16 + 1,
        }; 2],
        ..EMPTY
    };
    let mut action = GARBAGE;
    let (late, safe) = (u64::from(facts.late_us), u64::from(facts.fail_safe_us));
    unsafe {
        agent_step(&mut memory, &patch, [0.5f32, 0.0].as_ptr(), 0, &mut action);
        assert_eq!(action.mode, 1);
        assert!(!agent_is_late(&mut memory, late));
        assert!(agent_is_late(&mut memory, late + 1));
        assert_eq!(agent_idle(&mut memory, late + 1, &mut action), Status::Ok);
        assert_eq!(action.mode, 2);
        assert_eq!(agent_idle(&mut memory, safe, &mut action), Status::Ok);
        assert_eq!(action, NOTHING);
        assert_eq!(agent_reset(&mut memory), Status::Ok);
        assert_eq!(agent_idle(&mut memory, safe, &mut action), Status::Ok);
        assert_eq!(action.mode, 0);
    }
}

#[test]
fn null_is_refused_wherever_there_must_be_something() {
    let blob = Blob::shipped("heat-1d");
    let policy = blob.words.as_ptr().cast();
    let mut memory = AgentMemory::ZERO;
    let mut workspace = vec![0.0; 4096];
    let position = [0.5f32, 0.0];
    let mut action = GARBAGE;
    let empty = EMPTY;
    let holed = AgentPatch {
        field_length: 3,
        ..EMPTY
    };
    unsafe {
        let mut init = |memory: *mut AgentMemory, policy| {
            agent_init(memory, policy, 64, workspace.as_mut_ptr(), workspace.len())
        };
        assert_eq!(init(null_mut(), policy), Status::Null);
        assert_eq!(init(&mut memory, null()), Status::Null);
        let without = agent_init(&mut memory, policy, blob.length, null_mut(), 4096);
        assert_eq!(without, Status::Null);
        let nowhere = agent_policy_query(policy, blob.length, null_mut());
        assert_eq!(nowhere, Status::Null);

        assert_eq!(blob.init(&mut memory, &mut workspace), Status::Ok);
        let step = |agent: *mut AgentMemory, patch, position, action: *mut AgentAction| {
            agent_step(agent, patch, position, 0, action)
        };
        let (agent, position): (*mut _, _) = (&mut memory, position.as_ptr());
        assert_eq!(step(agent, &EMPTY, position, null_mut()), Status::Null);
        for (agent, patch, position) in [
            (null_mut(), &raw const empty, position),
            (agent, null(), position),
            (agent, &raw const empty, null()),
            (agent, &raw const holed, position),
        ] {
            action = GARBAGE;
            assert_eq!(step(agent, patch, position, &mut action), Status::Null);
            assert_eq!(action, NOTHING);
        }
        assert!(agent_is_late(null_mut(), 0));
        assert_eq!(agent_reset(null_mut()), Status::Null);
    }
    assert_eq!(action, NOTHING);
}

#[test]
fn pointers_off_their_boundary_and_impossible_lengths_are_refused() {
    let blob = Blob::shipped("heat-1d");
    let mut memory = [AgentMemory::ZERO; 2];
    let mut workspace = vec![0.0f32; 4096];
    let mut action = GARBAGE;

    // One byte further the same policy is still whole, but not aligned.
    let mut shifted = vec![0u8; blob.length + 8];
    let odd = 5 - shifted.as_ptr().addr() % 4;
    shifted[odd..odd + blob.length].copy_from_slice(blob.bytes());
    let shifted = &shifted[odd..];
    let off = |start: *const f32| start.cast::<u8>().wrapping_add(1).cast::<f32>();
    unsafe {
        let start = workspace.as_mut_ptr();
        let agent = &raw mut memory[0];
        let misplaced = agent_init(agent, shifted.as_ptr().cast(), blob.length, start, 4096);
        assert_eq!(misplaced, Status::PolicyMisaligned);

        let policy = blob.words.as_ptr().cast();
        let beside = agent.cast::<u8>().wrapping_add(4).cast();
        let init = |agent, length, start, floats| agent_init(agent, policy, length, start, floats);
        let beyond = usize::MAX / 4;
        for (status, expected) in [
            (init(beside, blob.length, start, 4096), Status::Misaligned),
            (
                init(agent, blob.length, off(start).cast_mut(), 4000),
                Status::Misaligned,
            ),
            (init(agent, blob.length, start, beyond), Status::Length),
            (init(agent, usize::MAX, start, 4096), Status::Length),
            (
                init(agent, blob.length, start, 8),
                Status::WorkspaceTooSmall,
            ),
            (
                init(agent, blob.length, null_mut(), 0),
                Status::WorkspaceTooSmall,
            ),
        ] {
            assert_eq!(status, expected);
            // And there is no agent now.
            assert_eq!(agent_idle(agent, 0, &mut action), Status::NotReady);
        }

        assert_eq!(init(agent, blob.length, start, 4096), Status::Ok);
        let cells = [0.0f32; 64];
        let patch = AgentPatch {
            field: off(cells.as_ptr()),
            field_length: 22,
            ..EMPTY
        };
        let position = [0.5f32, 0.0];
        let step = agent_step(agent, &patch, position.as_ptr(), 0, &mut action);
        assert_eq!((step, action), (Status::Misaligned, NOTHING));
        let patch = AgentPatch {
            field: cells.as_ptr(),
            field_length: usize::MAX,
            ..EMPTY
        };
        let step = agent_step(agent, &patch, position.as_ptr(), 0, &mut action);
        assert_eq!((step, action), (Status::Length, NOTHING));
    }
}

#[test]
fn a_refused_policy_leaves_no_agent_behind() {
    let blob = Blob::shipped("heat-1d");
    let mut memory = AgentMemory::ZERO;
    let mut workspace = vec![0.0; 4096];
    let mut action = GARBAGE;
    assert_eq!(blob.init(&mut memory, &mut workspace), Status::Ok);
    let half = Blob {
        length: blob.length / 2,
        words: blob.words.clone(),
    };
    let status = half.init(&mut memory, &mut workspace);
    assert_eq!(status, Status::PolicyTruncated);
    let idle = unsafe { agent_idle(&mut memory, 0, &mut action) };
    assert_eq!((idle, action), (Status::NotReady, NOTHING));
}

fn explain(bytes: &[u8], room: usize) -> (Status, Vec<u8>) {
    // A guard behind the room: what is written stays within it.
    let mut text = vec![b'#'; room + 1];
    let policy = bytes.as_ptr().cast();
    let status =
        unsafe { agent_policy_explain(policy, bytes.len(), text.as_mut_ptr().cast(), room) };
    assert_eq!(text.pop(), Some(b'#'));
    (status, text)
}

#[test]
fn a_sentence_fits_its_room_and_ends_in_a_nul() {
    let sentence = Policy::parse(b"SWARMPOL").unwrap_err().to_string();
    let (status, text) = explain(b"SWARMPOL", 200);
    assert_eq!(status, Status::PolicyTruncated);
    let whole = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
    assert_eq!(whole, sentence);

    for room in 1..=sentence.len() + 1 {
        let (_, text) = explain(b"SWARMPOL", room);
        let cut = CStr::from_bytes_until_nul(&text).unwrap().to_bytes();
        assert_eq!(cut, &sentence.as_bytes()[..room - 1]);
    }
    assert_eq!(explain(b"SWARMPOL", 0).0, Status::PolicyTruncated);
    let nowhere = unsafe { agent_policy_explain(null(), 8, null_mut(), 8) };
    assert_eq!(nowhere, Status::Null);
    assert_eq!(explain(Blob::shipped("heat-1d").bytes(), 8).0, Status::Ok);
}

#[test]
fn every_number_has_a_sentence_and_every_status_its_own() {
    let text = |number| unsafe { CStr::from_ptr(agent_status_text(number)) };
    let mut seen = Vec::new();
    for number in -100..100 {
        let sentence = text(number).to_str().unwrap();
        assert!(!sentence.is_empty());
        if !sentence.contains("no status") {
            assert!(!seen.contains(&sentence), "{sentence}");
            seen.push(sentence);
        }
    }
    assert_eq!(seen.len(), Status::ALL.len());
}
