//! From what is shown to the network's input.

use crate::message::{Observation, Patch, Span};
use crate::policy::{Channel, Policy, Sensing};
use core::ops::RangeInclusive;

/// Writes the policy's features for `observation` to `features`, with `errors` as room for the
/// patch.
///
/// Returns `None`, having written anything, if the observation is not of the policy's shape or a
/// value inside the domain is not finite.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(crate) fn features(
    policy: &Policy,
    observation: &Observation,
    errors: &mut [f32],
    features: &mut [f32],
) -> Option<()> {
    let sensing = &policy.header().sensing;
    let patch = &observation.patch;
    let wide = patch.wide;
    let wide_len = sensing.wide_len();
    let near = features.len().checked_sub(wide_len)?;
    let (near, far) = features.split_at_mut_checked(near)?;
    let target_len = if sensing.target { wide_len } else { 0 };
    if wide.field.len() != wide_len || wide.target.len() != target_len {
        return None;
    }
    match sensing.axes {
        1 => line(sensing, patch, errors, near)?,
        _ => plane(sensing, patch, errors, near)?,
    }
    clamped_errors(sensing, wide.field.words(), wide.target.words(), far).then_some(())
}

/// The features of a patch of a one-dimensional field.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn line(sensing: &Sensing, patch: &Patch, errors: &mut [f32], features: &mut [f32]) -> Option<()> {
    let inside = patch.inside[0];
    read_errors(sensing, patch, inside, errors)?;

    let line = Line { errors, inside };
    let window = usize::from(sensing.window);
    let samples = usize::from(sensing.samples);
    for (channel, output) in sensing
        .channels
        .iter()
        .zip(features.chunks_mut(samples.max(1)))
    {
        // The halo is not part of the window: cell k of the window is cell k + 1 of the patch.
        let value = |k: usize| match channel {
            Channel::Error => line.error(k + 1),
            Channel::Slope => line.slope(k + 1),
        };
        if samples == window {
            for (k, out) in output.iter_mut().enumerate() {
                *out = value(k);
            }
        } else {
            resample(value, window, output);
        }
    }
    Some(())
}

/// The features of a patch of a two-dimensional field: the errors of the window's cells, each moved
/// to the nearest cell inside the domain along each axis.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn plane(sensing: &Sensing, patch: &Patch, errors: &mut [f32], features: &mut [f32]) -> Option<()> {
    let window = usize::from(sensing.window);
    let side = window + 2;
    let target_len = if sensing.target { errors.len() } else { 0 };
    if patch.field.len() != errors.len() || patch.target.len() != target_len {
        return None;
    }
    let [rows, columns] = patch.inside.map(range);
    let centre = 1 + window / 2;
    if !(rows.contains(&centre) && columns.contains(&centre))
        || rows.end() >= &side
        || columns.end() >= &side
    {
        return None;
    }
    let (field, target) = (patch.field.words(), patch.target.words());
    for row in rows.clone() {
        let cells = row * side + columns.start()..row * side + columns.end() + 1;
        let target = match sensing.target {
            true => target.get(cells.clone())?,
            false => &[],
        };
        let (field, errors) = (field.get(cells.clone())?, errors.get_mut(cells)?);
        if !clamped_errors(sensing, field, target, errors) {
            return None;
        }
    }
    // The halo is not part of the window, whose first cell is the patch's second; along each axis
    // the window's cells from `near` to `far` are inside the domain.
    let near = [&rows, &columns].map(|inside| (*inside.start()).max(1));
    let far = [&rows, &columns].map(|inside| (*inside.end()).min(window));
    for (row, output) in features.chunks_mut(window.max(1)).enumerate() {
        // Fields go on beyond a wall with its value.
        let row = (row + 1).max(near[0]).min(far[0]) * side;
        let errors = errors.get(row + near[1]..=row + far[1])?;
        let (before, rest) = output.split_at_mut_checked(near[1] - 1)?;
        let (known, beyond) = rest.split_at_mut_checked(errors.len())?;
        known.copy_from_slice(errors);
        before.fill(*errors.first()?);
        beyond.fill(*errors.last()?);
    }
    Some(())
}

fn range(span: Span) -> RangeInclusive<usize> {
    usize::from(span.first)..=usize::from(span.last)
}

/// Field minus target, clamped; whether all of them are finite. An empty target is zero.
///
/// The plain loops of a node with hundreds of cells: no way out on the first bad value, which would
/// keep x86-64 from taking whole vectors, and no `max`, for which a Cortex-M4F calls a function.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn clamped_errors(
    sensing: &Sensing,
    field: &[[u8; 4]],
    target: &[[u8; 4]],
    errors: &mut [f32],
) -> bool {
    let limit = sensing.error_limit;
    let within = |error: f32| match error {
        e if e > limit => limit,
        e if e < -limit => -limit,
        e => e,
    };
    let mut carries = 0;
    let mut read = |value: &[u8; 4]| {
        let value = f32::from_le_bytes(*value);
        carries |= exponent_carry(value);
        value
    };
    if target.is_empty() {
        for (error, field) in errors.iter_mut().zip(field) {
            *error = within(read(field));
        }
    } else {
        for ((error, field), target) in errors.iter_mut().zip(field).zip(target) {
            *error = within(read(field) - read(target));
        }
    }
    carries >> 31 == 0
}

/// One added to the exponent: it carries into the topmost bit if the value is not finite.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn exponent_carry(value: f32) -> u32 {
    (value.to_bits() & 0x7fff_ffff) + 0x0080_0000
}

/// Field minus target, clamped, for every cell inside the domain; the rest is zero and never read.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn read_errors(sensing: &Sensing, patch: &Patch, inside: Span, errors: &mut [f32]) -> Option<()> {
    let (first, last) = (usize::from(inside.first), usize::from(inside.last));
    let centre = 1 + usize::from(sensing.window) / 2;
    let target_len = if sensing.target { errors.len() } else { 0 };
    if patch.field.len() != errors.len()
        || patch.target.len() != target_len
        || !(first..=last).contains(&centre)
        || last >= errors.len()
    {
        return None;
    }
    let limit = sensing.error_limit;
    let targets = patch.target.iter().chain(core::iter::repeat(0.0));
    for (k, ((error, field), target)) in errors
        .iter_mut()
        .zip(patch.field.iter())
        .zip(targets)
        .enumerate()
    {
        *error = 0.0;
        if (first..=last).contains(&k) {
            if !(field.is_finite() && target.is_finite()) {
                return None;
            }
            *error = (field - target).max(-limit).min(limit);
        }
    }
    Some(())
}

/// Errors along one axis, of which those inside the domain are known.
struct Line<'a> {
    errors: &'a [f32],
    inside: Span,
}

impl Line<'_> {
    /// The nearest cell inside the domain: fields go on beyond a wall with its value.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn inside(&self, k: usize) -> usize {
        k.max(usize::from(self.inside.first))
            .min(usize::from(self.inside.last))
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn at(&self, k: usize) -> f32 {
        self.errors.get(k).copied().unwrap_or(0.0)
    }

    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn error(&self, k: usize) -> f32 {
        self.at(self.inside(k))
    }

    /// Central difference per cell, one-sided at the first and last cell inside.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn slope(&self, k: usize) -> f32 {
        let k = self.inside(k);
        let (first, last) = (
            usize::from(self.inside.first),
            usize::from(self.inside.last),
        );
        match (k == first, k == last) {
            (true, true) => 0.0,
            (true, false) => self.at(k + 1) - self.at(k),
            (false, true) => self.at(k) - self.at(k - 1),
            (false, false) => (self.at(k + 1) - self.at(k - 1)) * 0.5,
        }
    }
}

/// Linear interpolation of `window` values to `output.len()`, pixel centres aligned: output `j`
/// reads position (j + ½)·window/len − ½, clamped to the window.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn resample(value: impl Fn(usize) -> f32, window: usize, output: &mut [f32]) {
    let ratio = window as f32 / output.len() as f32;
    for (j, out) in output.iter_mut().enumerate() {
        let at = ((j as f32 + 0.5) * ratio - 0.5)
            .max(0.0)
            .min((window - 1) as f32);
        let left = at as usize;
        let share = at - left as f32;
        let right = (left + 1).min(window - 1);
        *out = value(left) * (1.0 - share) + value(right) * share;
    }
}
