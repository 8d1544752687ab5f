//! From a patch of field to the network's input.

use crate::message::{Patch, Span};
use crate::policy::{Channel, Policy, Sensing};

/// Writes the policy's features for `patch` to `features`, with `errors` as room for the patch.
///
/// Returns `None`, having written anything, if the patch is not of the policy's shape or a value
/// inside the domain is not finite.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(crate) fn features(
    policy: &Policy,
    patch: &Patch,
    errors: &mut [f32],
    features: &mut [f32],
) -> Option<()> {
    let sensing = &policy.header().sensing;
    let inside = patch.inside[0];
    read_errors(sensing, patch, inside, errors)?;

    let line = Line { errors, inside };
    let window = usize::from(sensing.window);
    let samples = usize::from(sensing.samples);
    for (channel, output) in sensing.channels.iter().zip(features.chunks_mut(samples)) {
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
