//! From what is shown to the network's input.
//!
//! What lies beyond the domain's walls is the observer's business: a patch says which of its cells
//! are inside, and here the nearest of those stands for each that is not. Where a domain has no
//! walls (it is periodic) the patch wraps around and all of its cells are inside.

use crate::message::{Patch, Span};
use crate::policy::{Channel, Policy, Sensing};
use core::ops::Range;

/// Writes the policy's features for `patch` to `features`, with `errors` as room for the patch: the
/// whole of the branch's input, or before convolutions the wide view alone, while the window is left
/// in `errors` for [`plane_row`].
///
/// Returns `None`, having written anything, if the patch is not of the policy's shape or a value that
/// the features depend on is not finite.
#[cfg_attr(target_arch = "x86_64", inline(always))]
pub(crate) fn features(
    policy: &Policy,
    patch: &Patch,
    errors: &mut [f32],
    features: &mut [f32],
) -> Option<()> {
    let sensing = &policy.header().sensing;
    let wide = patch.wide;
    let wide_len = sensing.wide_len();
    let near = features.len().checked_sub(wide_len)?;
    let (near, far) = features.split_at_mut_checked(near)?;
    let with_target = |length| if sensing.target { length } else { 0 };
    if patch.field.len() != errors.len()
        || patch.target.len() != with_target(errors.len())
        || wide.field.len() != wide_len
        || wide.target.len() != with_target(wide_len)
    {
        return None;
    }
    match sensing.axes {
        1 => line(sensing, patch, errors, near)?,
        _ if sensing.channels == [Channel::Error] && !near.is_empty() => {
            plane(sensing, patch, 1, near)?;
        }
        _ => {
            plane(sensing, patch, 0, errors)?;
            let row = usize::from(sensing.window) * sensing.channels.len();
            for (row, output) in near.chunks_mut(row.max(1)).enumerate() {
                plane_row(sensing, patch.inside, errors, row, output)?;
            }
        }
    }
    read_errors(sensing, wide.field.words(), wide.target.words(), far)
}

/// The features of a patch of a one-dimensional field.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn line(sensing: &Sensing, patch: &Patch, errors: &mut [f32], features: &mut [f32]) -> Option<()> {
    let inside = inside(sensing, patch.inside[0])?;
    let (field, target) = (patch.field.words(), patch.target.words());
    let target = target.get(inside.clone()).unwrap_or_default();
    let known = errors.get_mut(inside.clone())?;
    read_errors(sensing, field.get(inside.clone())?, target, known)?;
    extend(errors, &inside)?;

    let window = usize::from(sensing.window);
    let samples = usize::from(sensing.samples);
    let mut features = features;
    for channel in &sensing.channels {
        let output = features.split_off_mut(..samples)?;
        // The halo is not part of the window: cell k of the window is cell k + 1 of the patch.
        let value = |k: usize| match channel {
            Channel::Error => errors.get(k + 1).copied(),
            _ => slope(errors, 0, 1, &inside, k + 1),
        };
        if samples != window {
            resample(value, window, output)?;
            continue;
        }
        match channel {
            Channel::Error => {
                for (out, error) in output.iter_mut().zip(errors.get(1..)?) {
                    *out = *error;
                }
            }
            _ => {
                let after = errors.get(2..)?;
                for ((out, before), after) in output.iter_mut().zip(errors.iter()).zip(after) {
                    *out = (after - before) * 0.5;
                }
                // At the walls and beyond there is no cell on the other side.
                let before = 0..inside.start.min(window);
                for k in before.chain(inside.end.saturating_sub(2)..window) {
                    *output.get_mut(k)? = value(k)?;
                }
            }
        }
    }
    Some(())
}

/// The errors of a patch of the plane but for so wide a margin, each taken from the nearest cell
/// inside the domain along each axis. Without the halo they are all that a policy without slopes
/// needs.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn plane(sensing: &Sensing, patch: &Patch, margin: usize, errors: &mut [f32]) -> Option<()> {
    let side = usize::from(sensing.window) + 2;
    let rows = inside(sensing, patch.inside[0])?;
    let columns = inside(sensing, patch.inside[1])?;
    let (field, target) = (patch.field.words(), patch.target.words());
    // Of a row's cells that are wanted those from `near` to before `far` are inside the domain.
    let width = side - 2 * margin;
    let near = columns.start.max(margin);
    let far = columns.end.min(margin + width);
    for (row, output) in errors.chunks_mut(width.max(1)).enumerate() {
        let row = (row + margin).max(rows.start).min(rows.end - 1) * side;
        let cells = row + near..row + far;
        let target = target.get(cells.clone()).unwrap_or_default();
        let known = output.get_mut(near - margin..far - margin)?;
        read_errors(sensing, field.get(cells)?, target, known)?;
        extend(output, &(near - margin..far - margin))?;
    }
    Some(())
}

/// One row of the window, all channels of a cell after another, from the errors that [`features`]
/// left of a patch with these cells inside the domain.
pub(crate) fn plane_row(
    sensing: &Sensing,
    inside: [Span; 2],
    errors: &[f32],
    row: usize,
    output: &mut [f32],
) -> Option<()> {
    let side = usize::from(sensing.window) + 2;
    let [rows, columns] = inside.map(range);
    let row = row + 1;
    let cells = output.chunks_mut(sensing.channels.len().max(1));
    for (column, cell) in cells.enumerate() {
        let column = column + 1;
        for (channel, out) in sensing.channels.iter().zip(cell) {
            *out = match channel {
                Channel::Error => *errors.get(row * side + column)?,
                Channel::Slope => slope(errors, column, side, &rows, row)?,
                Channel::Across => slope(errors, row * side, 1, &columns, column)?,
            };
        }
    }
    Some(())
}

fn range(span: Span) -> Range<usize> {
    usize::from(span.first)..usize::from(span.last) + 1
}

/// The cells inside along an axis, if the agent's own is among them and none is beyond the patch.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn inside(sensing: &Sensing, span: Span) -> Option<Range<usize>> {
    let window = usize::from(sensing.window);
    let inside = range(span);
    (inside.contains(&(1 + window / 2)) && inside.end <= window + 2).then_some(inside)
}

/// Field minus target, within the limit; none if one of them is not finite. An empty target is zero.
///
/// The plain loops of a node with hundreds of cells. While the squares add up to less than that of
/// the limit nobody is beyond it, nor anything but a number; only if they do not is there a second
/// look. A Cortex-M4F compares floats with four instructions, and x86-64 takes whole vectors only
/// without a way out in between.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn read_errors(
    sensing: &Sensing,
    field: &[[u8; 4]],
    target: &[[u8; 4]],
    errors: &mut [f32],
) -> Option<()> {
    let limit = sensing.error_limit;
    let mut squares = [0.0f32; 4];
    // Several at a time: a loop for each costs a node as much as its arithmetic.
    let (groups, rest) = errors.as_chunks_mut::<4>();
    let (fields, field) = split_groups(field, groups.len());
    let (targets, target) = split_groups(target, groups.len());
    let error = |field: &[u8; 4], target: &[u8; 4]| {
        f32::from_le_bytes(*field) - f32::from_le_bytes(*target)
    };
    if sensing.target {
        for ((errors, field), target) in groups.iter_mut().zip(fields).zip(targets) {
            let cells = errors.iter_mut().zip(field).zip(target);
            for (((to, field), target), sum) in cells.zip(&mut squares) {
                *to = error(field, target);
                *sum += *to * *to;
            }
        }
    } else {
        for (errors, field) in groups.iter_mut().zip(fields) {
            for ((to, field), sum) in errors.iter_mut().zip(field).zip(&mut squares) {
                // The sum keeps compilers from copying bytes first, which costs a node more than all
                // else.
                *to = f32::from_le_bytes(*field) + 0.0;
                *sum += *to * *to;
            }
        }
    }
    for (k, ((to, field), sum)) in rest.iter_mut().zip(field).zip(&mut squares).enumerate() {
        *to = error(field, target.get(k).unwrap_or(&[0; 4]));
        *sum += *to * *to;
    }
    // Rounding makes the sum of a thousand squares too small by less than a thousandth.
    if squares.iter().sum::<f32>() <= 0.99 * limit * limit {
        return Some(());
    }
    for error in errors {
        if !error.is_finite() {
            return None;
        }
        *error = match *error {
            e if e > limit => limit,
            e if e < -limit => -limit,
            e => e,
        };
    }
    Some(())
}

/// So many groups of samples, and what is left.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn split_groups(samples: &[[u8; 4]], groups: usize) -> (&[[[u8; 4]; 4]], &[[u8; 4]]) {
    let (whole, rest) = samples.split_at_checked(4 * groups).unwrap_or_default();
    (whole.as_chunks().0, rest)
}

/// Fields go on beyond a wall with its value.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn extend(errors: &mut [f32], inside: &Range<usize>) -> Option<()> {
    let first = *errors.get(inside.start)?;
    errors.get_mut(..inside.start)?.fill(first);
    let last = *errors.get(inside.end.checked_sub(1)?)?;
    errors.get_mut(inside.end..)?.fill(last);
    Some(())
}

/// Central difference per cell, one-sided at the first and last cell inside, at cell `k` of those
/// that start at `from` and lie `stride` apart.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn slope(
    errors: &[f32],
    from: usize,
    stride: usize,
    inside: &Range<usize>,
    k: usize,
) -> Option<f32> {
    let (first, last) = (inside.start, inside.end.saturating_sub(1));
    let k = k.max(first).min(last);
    let before = if k > first { k - 1 } else { k };
    let after = if k < last { k + 1 } else { k };
    let at = |k: usize| errors.get(from + k * stride).copied();
    let difference = at(after)? - at(before)?;
    Some(match after - before {
        2 => difference * 0.5,
        _ => difference,
    })
}

/// Linear interpolation of `window` values to `output.len()`, pixel centres aligned: output `j`
/// reads position (j + ½)·window/len − ½, clamped to the window.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn resample(value: impl Fn(usize) -> Option<f32>, window: usize, output: &mut [f32]) -> Option<()> {
    let ratio = window as f32 / output.len() as f32;
    let last = (window - 1) as f32;
    for (j, out) in output.iter_mut().enumerate() {
        let at = (j as f32 + 0.5) * ratio - 0.5;
        // Not `max` and `min`, which look for NaN too.
        let at = if at > 0.0 { at } else { 0.0 };
        let at = if at < last { at } else { last };
        let left = at as usize;
        let share = at - left as f32;
        let right = (left + 1).min(window - 1);
        *out = value(left)? * (1.0 - share) + value(right)? * share;
    }
    Some(())
}
