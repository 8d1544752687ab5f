//! Observations to try a policy with: an agent that crosses its domain while the field around it
//! relaxes towards its target, with a broken sensor now and then.
//!
//! Not a simulation (agent-sim has those), only inputs of the right shape and size.

use agent_core::{
    message::{Observation, Patch, Span},
    policy::Policy,
};
use anyhow::{Context, Result, bail};
use std::{
    f32::consts::PI,
    fs,
    path::{Path, PathBuf},
};

/// Cells across the domain.
const CELLS: i32 = 100;

/// Every so many observations one cell reads NaN.
const BROKEN_EVERY: u32 = 12;

/// A policy blob, aligned for reading in place.
pub struct Blob {
    path: PathBuf,
    words: Vec<u32>,
    length: usize,
}

impl Blob {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut words = vec![0; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        Ok(Self {
            path: path.to_owned(),
            words,
            length: bytes.len(),
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    /// The policy in it.
    pub fn policy(&self) -> Result<Policy<'_>> {
        Policy::parse(self.bytes()).with_context(|| format!("cannot use {}", self.path.display()))
    }
}

/// What one observation holds; borrowed by [`Scene::observation`].
pub struct Scene {
    now_us: u64,
    position: [f32; 2],
    field: Vec<f32>,
    target: Vec<f32>,
    inside: Span,
}

impl Scene {
    /// The observation number `step` of `steps` for this policy.
    pub fn new(policy: &Policy, step: u32, steps: u32) -> Result<Self> {
        let header = policy.header();
        if header.sensing.axes != 1 {
            bail!("only policies for one-dimensional fields can be tried so far");
        }
        let progress = step as f32 / steps.max(1) as f32;
        let (low, high) = (header.limits.low[0], header.limits.high[0]);
        let first =
            (progress * (CELLS - 1) as f32) as i32 - i32::from(header.sensing.window) / 2 - 1;
        let cells = first..first + policy.patch_len() as i32;
        let place = |cell: i32| cell as f32 / (CELLS - 1) as f32;
        let target = |cell| (2.0 * PI * place(cell)).sin();
        let field = |cell| target(cell) + (1.0 - progress) * (5.0 * PI * place(cell) + 1.0).cos();
        let mut scene = Self {
            now_us: u64::from(step) * u64::from(header.timing.period_us),
            position: [low + progress * (high - low), 0.0],
            field: cells.clone().map(field).collect(),
            target: cells.clone().map(target).collect(),
            inside: Span {
                first: (-first).max(0) as u16,
                last: (CELLS - 1 - first).min(cells.len() as i32 - 1) as u16,
            },
        };
        if step % BROKEN_EVERY == BROKEN_EVERY - 1 {
            let middle = scene.field.len() / 2;
            scene.field[middle] = f32::NAN;
        }
        if !header.sensing.target {
            scene.target.clear();
        }
        Ok(scene)
    }

    /// As it is sent to a node.
    pub fn observation(&self) -> Observation<'_> {
        Observation {
            now_us: self.now_us,
            position: self.position,
            patch: Patch::line(&self.field, &self.target, self.inside),
        }
    }
}
