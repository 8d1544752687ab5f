//! Observations to try a policy with: an agent that crosses its domain, in the plane from corner to
//! corner, while the field around it relaxes towards its target, with a broken sensor now and then.
//!
//! Not a simulation (agent-sim has those), only inputs of the right shape and size.

use agent_core::{
    message::{Observation, Overview, Patch, Samples, Span},
    policy::{Encoding, Policy, recode},
};
use anyhow::{Context, Result};
use node_link::Offer;
use problem::input;
use std::{
    f32::consts::PI,
    path::{Path, PathBuf},
};

/// Cells across the domain, along each axis.
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
        let bytes = input::read(path, input::POLICY)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut words = vec![0; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        Ok(Self {
            path: path.to_owned(),
            words,
            length: bytes.len(),
        })
    }

    /// The same policy with its weights stored in another way; none if they cannot be.
    pub fn recoded(&self, encoding: Encoding) -> Option<Self> {
        let policy = self.policy().ok()?;
        let mut header = policy.header().clone();
        header.network.encoding = encoding;
        let mut scratch = vec![0.0; policy.parameters_len()];
        let mut words = vec![0; policy.recode_room()];
        let length = recode(&policy, &header, &mut scratch, &mut words)
            .ok()?
            .len();
        Some(Self {
            path: self.path.clone(),
            words,
            length,
        })
    }

    /// As nodes are offered it, whom it is nobody's business to vouch for.
    pub fn offer(&self) -> Offer {
        Offer::unsigned(self.bytes())
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

/// What one observation holds; borrowed by [`Scene::observation`]. (`artifacts` has such a type, and with it
/// all problems, which nothing here needs.)
pub struct Scene {
    now_us: u64,
    position: [f32; 2],
    field: Vec<f32>,
    target: Vec<f32>,
    inside: [Span; 2],
    wide_field: Vec<f32>,
    wide_target: Vec<f32>,
}

impl Scene {
    /// The observation number `step` of `steps` for this policy.
    pub fn new(policy: &Policy, step: u32, steps: u32) -> Self {
        let header = policy.header();
        let (sensing, limits) = (&header.sensing, &header.limits);
        let progress = step as f32 / steps.max(1) as f32;
        let target = |[x, y]: [f32; 2]| (2.0 * PI * x).sin() * (PI * y).cos();
        let field = |[x, y]: [f32; 2]| {
            let error = (5.0 * PI * x + 1.0).cos() * (3.0 * PI * y).cos();
            target([x, y]) + (1.0 - progress) * error
        };

        let first = (progress * (CELLS - 1) as f32) as i32 - i32::from(sensing.window) / 2 - 1;
        let side = first..first + i32::from(sensing.window) + 2;
        let span = Span {
            first: (-first).max(0) as u16,
            last: (CELLS - 1 - first).min(side.len() as i32 - 1) as u16,
        };
        let (columns, inside, axes) = match sensing.axes {
            1 => (0..1, [span, Span::default()], 1),
            _ => (side.clone(), [span; 2], 2),
        };
        let place = |cell: i32| cell as f32 / (CELLS - 1) as f32;
        let near = grid(side.map(place), columns.map(place));
        let [rows, columns] = sensing.wide.unwrap_or([0; 2]);
        let middle = |count: u8| (0..count).map(move |k| (f32::from(k) + 0.5) / f32::from(count));
        let far = grid(middle(rows), middle(columns));

        let mut position = [0.0; 2];
        let domain = limits.low.iter().zip(limits.high).take(axes);
        for (x, (low, high)) in position.iter_mut().zip(domain) {
            *x = low + progress * (high - low);
        }
        let all = |from: &dyn Fn([f32; 2]) -> f32, places: &[[f32; 2]]| -> Vec<f32> {
            places.iter().map(|place| from(*place)).collect()
        };
        let mut scene = Self {
            now_us: u64::from(step) * u64::from(header.timing.period_us),
            position,
            field: all(&field, &near),
            target: all(&target, &near),
            inside,
            wide_field: all(&field, &far),
            wide_target: all(&target, &far),
        };
        if step % BROKEN_EVERY == BROKEN_EVERY - 1 {
            // The agent's own, which is inside the domain everywhere.
            let own = usize::from(sensing.window) / 2 + 1;
            let cell = own * near.len().isqrt() * (axes - 1) + own;
            scene.field[cell] = f32::NAN;
        }
        if !sensing.target {
            scene.target.clear();
            scene.wide_target.clear();
        }
        scene
    }

    /// As it is sent to a node.
    pub fn observation(&self) -> Observation<'_> {
        Observation {
            now_us: self.now_us,
            position: self.position,
            patch: Patch {
                field: Samples::new(&self.field),
                target: Samples::new(&self.target),
                inside: self.inside,
                wide: Overview {
                    field: Samples::new(&self.wide_field),
                    target: Samples::new(&self.wide_target),
                },
            },
        }
    }
}

/// All pairs, row-major.
fn grid(
    rows: impl Iterator<Item = f32>,
    columns: impl Iterator<Item = f32> + Clone,
) -> Vec<[f32; 2]> {
    rows.flat_map(|x| columns.clone().map(move |y| [x, y]))
        .collect()
}
