//! What a blob says about itself, and the sizes that follow from it.

use super::error::{Complaint, Fault, FieldName, field};
use super::{MAX_CONVOLUTIONS, MAX_DISCS, MAX_FREQUENCIES, MAX_LAYERS, MAX_MEMORY, MAX_WIDTH};
use crate::conv::{KERNEL, Plan};
use crate::int8;
use crate::message::Span;
use crate::net::dense_len;
use core::fmt;
use heapless::Vec;
use serde::{Deserialize, Serialize};

/// What a blob says about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Header<'a> {
    /// The control problem, e.g. `heat-1d`.
    #[serde(borrow)]
    pub problem: Text<'a>,
    /// What the agent must be shown.
    pub sensing: Sensing,
    /// From features and position to outputs in (−1, 1).
    pub network: Network,
    /// What the outputs mean and never exceed.
    pub limits: Limits,
    /// How often the agent acts and how long it goes on blind.
    pub timing: Timing,
    /// Floats of working memory a step needs; the reader recomputes and compares it.
    pub workspace: u32,
    /// Where the policy comes from.
    #[serde(borrow)]
    pub provenance: Provenance<'a>,
    /// What a node must reproduce before it acts; none in formats 1 and 2.
    #[serde(skip)]
    pub probe: Option<Probe>,
}

/// The self-test that a blob carries: an observation, whose samples follow the weights, and the bits
/// of the outputs it must give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Where the agent is.
    pub position: [f32; 2],
    /// The cells of the patch that lie inside the domain.
    pub inside: [Span; 2],
    /// The network's outputs before tanh, little-endian f32; those it does not have are 0.
    pub expected: [[u8; 4]; 3],
}

/// The observation: which cells, and what is computed from them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensing {
    /// Space dimensions: 1 or 2.
    pub axes: u8,
    /// Cells of the window per axis. With the agent in cell `c` it covers
    /// `c − window/2 .. c − window/2 + window`; the patch has one cell more on each side.
    pub window: u16,
    /// Whether patches carry a target; without one the target is zero.
    pub target: bool,
    /// The network's input: with one axis channel after channel, with two all channels of a cell
    /// after another.
    pub channels: Vec<Channel, 4>,
    /// Values per channel and axis that the window is resampled to; equal to `window` for none, as
    /// it must be with two axes.
    pub samples: u16,
    /// Errors are clamped to ± this before anything is computed from them.
    pub error_limit: f32,
    /// Cells per axis of a coarse picture of the whole domain, whose errors follow the window's in
    /// the network's input; none: there is no such picture. New in format 2.
    #[serde(skip)]
    pub wide: Option<[u8; 2]>,
}

impl Sensing {
    /// Cells of the coarse picture of the whole domain.
    pub fn wide_len(&self) -> usize {
        self.wide.map_or(0, |[rows, columns]| {
            usize::from(rows) * usize::from(columns)
        })
    }
}

/// One input channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// Field minus target.
    Error,
    /// Slope of the error per cell along the first axis: central differences, one-sided at the walls.
    Slope,
    /// The same along the second axis. New in format 3.
    Across,
}

/// Branch (what is seen) and trunk (where), fused, then the head.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// On the features.
    pub branch: Vec<Dense, MAX_LAYERS>,
    /// f of sin(π f s) and cos(π f s), with s the position along an axis scaled to 0..1: all sines,
    /// axis after axis, then all cosines. None: there is no trunk.
    pub frequencies: Vec<f32, MAX_FREQUENCIES>,
    /// On the Fourier features.
    pub trunk: Vec<Dense, MAX_LAYERS>,
    /// How branch and trunk come together.
    pub fusion: Fusion,
    /// From there to what changes the memory, if there is one, then to one output per force and velocity
    /// component, force first; tanh is applied to the last layer's outputs by the limits' stage, not by the
    /// layer.
    pub head: Vec<Dense, MAX_LAYERS>,
    /// Convolutions on the window of a plane, before the branch, whose first layer then reads their
    /// last one's outputs, cell after cell, and after those the wide view. New in format 3.
    #[serde(skip)]
    pub convolutions: Vec<Convolution, MAX_CONVOLUTIONS>,
    /// Applied to all of what the branch's first layer reads after convolutions. New in format 3.
    #[serde(skip)]
    pub flatten: Norm,
    /// How weights are stored. New in format 3.
    #[serde(skip)]
    pub encoding: Encoding,
    /// What an agent keeps from one step to the next, if anything. New in format 5.
    #[serde(skip)]
    pub memory: Option<Memory>,
}

impl Network {
    /// All dense layers in the order of their weights, which follow those of the convolutions:
    /// branch, trunk, head.
    pub fn layers(&self) -> impl Iterator<Item = &Dense> {
        self.branch.iter().chain(&self.trunk).chain(&self.head)
    }

    /// Inputs and outputs of all layers in the order of their weights; those of a convolution are the
    /// inputs of one output cell.
    pub fn shapes(&self) -> impl Iterator<Item = (usize, usize)> {
        let convolutions = self.convolutions.iter();
        let convolutions = convolutions.map(|c| (c.fan_in(), usize::from(c.outputs)));
        let dense = self.layers();
        convolutions.chain(dense.map(|l| (usize::from(l.inputs), usize::from(l.outputs))))
    }

    /// Numbers that an agent keeps from one step to the next.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub fn remembered(&self) -> usize {
        self.memory.map_or(0, |memory| memory.floats.into())
    }
}

/// A few numbers m of the agent's own, 0 to begin with, which the branch reads behind its features. The
/// head gives a push p and a gate g for each, pushes first, and after the step
///
/// `m ← m − leak · (1 + tanh(g)) · m + gain · tanh(p)`, cut to −1..1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// How many: 1 to [`MAX_MEMORY`].
    pub floats: u8,
    /// Half of the most that is forgotten of one in a step: 0 to ½.
    pub leak: f32,
    /// The most that is added to one in a step: 0 to 1.
    pub gain: f32,
}

/// `activation(x ∗ W + b)` with a 3 × 3 kernel; cells beyond the rim of its input are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Convolution {
    /// Channels of its input.
    pub inputs: u16,
    /// Channels of its output.
    pub outputs: u16,
    /// Cells of the input from one cell of the output to the next, along both axes: 1 or 2.
    pub stride: u8,
    /// Rows and columns of zeros around the input: 0 or 1.
    pub padding: u8,
    /// Applied last, value by value.
    pub activation: Activation,
}

impl Convolution {
    /// Cells of the output along an axis where the input has `side`; none without a single one.
    pub fn side(&self, side: usize) -> Option<usize> {
        let room = (side + 2 * usize::from(self.padding)).checked_sub(KERNEL)?;
        Some(room / usize::from(self.stride).max(1) + 1)
    }

    /// Inputs of one output cell.
    pub fn fan_in(&self) -> usize {
        KERNEL * KERNEL * usize::from(self.inputs)
    }
}

/// How weights are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As f32.
    #[default]
    F32,
    /// As 8-bit integers with a scale for each output; sums are taken in integers.
    Int8,
}

/// `activation(norm(x W + b))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Length of x.
    pub inputs: u16,
    /// Length of the result.
    pub outputs: u16,
    /// Applied to the sums.
    pub norm: Norm,
    /// Applied last, value by value.
    pub activation: Activation,
}

/// Normalisation after a layer's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// None.
    #[default]
    None,
    /// h / (‖h‖ + 1).
    Soft,
}

/// The non-linearity of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// None.
    Identity,
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0).
    Relu,
}

/// How branch and trunk outputs come together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Branch outputs, then trunk outputs.
    #[default]
    Concatenate,
    /// Value by value; both have the same length.
    Multiply,
}

/// What the outputs mean: `limit · tanh(output)`, force first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Largest |force|; none: the agent has no force.
    pub force: Option<f32>,
    /// Largest |velocity| per axis; none: the agent does not move.
    pub velocity: Option<f32>,
    /// Lowest coordinate per axis.
    pub low: [f32; 2],
    /// Highest coordinate per axis.
    pub high: [f32; 2],
    /// Places of the plane that the agent never enters. New in format 2.
    #[serde(skip)]
    pub keep_out: Vec<Disc, MAX_DISCS>,
    /// Most that the force changes in a second, unless the agent fails safe. New in format 3.
    #[serde(skip)]
    pub force_rate: Option<f32>,
    /// Most that the velocity changes in a second along each axis, unless the agent fails safe or
    /// would otherwise leave its domain or enter a place it must not. New in format 3.
    #[serde(skip)]
    pub velocity_rate: Option<f32>,
    /// Eases off outputs that overshoot: the force, or of an agent without one the velocities. New in
    /// format 4.
    #[serde(skip)]
    pub governor: Option<Governor>,
}

/// How an agent eases off when its output changes sign from one step to the next, as it does where
/// so many act that together they overshoot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Governor {
    /// By what the ease grows with every step that does not overshoot, until nothing is eased: 1 to 2.
    pub growth: f32,
    /// The least share of an output that is left of it: above 0, at most 1.
    pub floor: f32,
    /// The share of the limit against which outputs are small that change sign without easing much: 0
    /// to 1. New in format 5.
    #[serde(skip)]
    pub band: f32,
}

/// A round place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disc {
    /// Its centre.
    pub centre: [f32; 2],
    /// Its radius.
    pub radius: f32,
}

/// What format 2 adds, after the header of format 1; a blob of format 1 has none of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Extension {
    /// [`Sensing::wide`].
    pub wide: Option<[u8; 2]>,
    /// [`Limits::keep_out`].
    pub keep_out: Vec<Disc, MAX_DISCS>,
}

/// What format 3 adds after that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Extension3 {
    /// [`Network::convolutions`].
    pub convolutions: Vec<Convolution, MAX_CONVOLUTIONS>,
    /// [`Network::flatten`].
    pub flatten: Norm,
    /// [`Network::encoding`].
    pub encoding: Encoding,
    /// [`Limits::force_rate`].
    pub force_rate: Option<f32>,
    /// [`Limits::velocity_rate`].
    pub velocity_rate: Option<f32>,
    /// [`Header::probe`].
    pub probe: Option<Probe>,
}

/// What format 4 adds after that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Extension4 {
    /// [`Limits::governor`].
    pub governor: Option<Governor>,
}

/// What format 5 adds after that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Extension5 {
    /// [`Network::memory`].
    pub memory: Option<Memory>,
    /// [`Governor::band`]; 0 without a governor.
    pub band: f32,
}

/// The agent's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Nominal time between two observations.
    pub period_us: u32,
    /// With no valid input for longer than this the agent holds.
    pub late_us: u32,
    /// After this long without valid input it fails safe; a held action fades to zero by then.
    pub fail_safe_us: u32,
}

/// Where a policy comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance<'a> {
    /// Program and version that wrote the blob.
    #[serde(borrow)]
    pub tool: Text<'a>,
    /// Source revision of that program.
    #[serde(borrow)]
    pub revision: Text<'a>,
    /// Random seed of the training.
    pub seed: u64,
    /// Optimiser steps taken.
    pub steps: u64,
}

/// A few words for people. Nodes have no use for them, nor room for what tells whether bytes are text: that
/// is looked at where they are read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// Those of a blob.
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Any.
    pub const fn new(words: &'a str) -> Self {
        Self(words.as_bytes())
    }

    /// The words; an empty one for bytes that are not UTF-8.
    pub fn as_str(self) -> &'a str {
        core::str::from_utf8(self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Sizes that follow from a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Cells of a patch, halo included.
    pub cells: usize,
    /// Values of an observation that are written down before the network runs: all features, or after
    /// convolutions the wide view alone.
    pub features: usize,
    /// Those and the memory.
    pub inputs: usize,
    /// Branch outputs.
    pub branch: usize,
    /// Trunk outputs.
    pub trunk: usize,
    /// Head inputs.
    pub fused: usize,
    /// Widest vector between two layers.
    pub widest: usize,
    /// Working memory of the convolutions.
    pub rows: usize,
    /// Words of the weight section.
    pub weights: usize,
    /// Samples of an observation: patch and wide view, field and target.
    pub samples: usize,
}

impl Sizes {
    /// Floats of working memory: the patch's errors, branch and trunk outputs, two vectors to go
    /// back and forth between, and the convolutions' rows.
    pub(crate) fn workspace(&self) -> usize {
        self.cells + self.branch + self.trunk + 2 * self.widest + self.rows
    }
}

impl Sensing {
    /// Checks every field; returns the cells of a patch and the length of the features.
    fn check(&self) -> Result<(usize, usize), Complaint> {
        let width = |x: usize| (1..=MAX_WIDTH).contains(&x);
        let (window, samples) = (usize::from(self.window), usize::from(self.samples));
        if !(1..=2).contains(&self.axes) {
            return field(FieldName::Axes, Fault::NotOneOrTwo);
        }
        if !width(window) {
            return field(FieldName::Window, Fault::Width);
        }
        if !width(samples) {
            return field(FieldName::Samples, Fault::Width);
        }
        if self.channels.is_empty() {
            return field(FieldName::Channels, Fault::NoChannel);
        }
        if !positive(self.error_limit) {
            return field(FieldName::ErrorLimit, Fault::NotPositive);
        }
        if self.axes == 1 && self.wide.is_some_and(|[_, columns]| columns != 1) {
            return field(FieldName::Wide, Fault::CellsAlongNoAxis);
        }
        if self.wide.is_some() && !width(self.wide_len()) {
            return field(FieldName::Wide, Fault::CellsInAll);
        }
        if self.axes == 1 {
            if self.channels.contains(&Channel::Across) {
                return field(FieldName::Channels, Fault::SlopeAlongNoAxis);
            }
            let features = samples * self.channels.len() + self.wide_len();
            return Ok((window + 2, features));
        }
        if !width(window * window) {
            return field(FieldName::Window, Fault::WidthInThePlane);
        }
        if samples != window {
            return field(FieldName::Samples, Fault::NotTheWindow);
        }
        let cells = (window + 2) * (window + 2);
        let features = window * window * self.channels.len() + self.wide_len();
        Ok((cells, features))
    }

    /// Samples of one observation: patch and wide view, field and target.
    fn samples(&self, cells: usize) -> usize {
        (cells + self.wide_len()) * (1 + usize::from(self.target))
    }
}

impl Limits {
    /// A position as a share of the domain along each axis; what an unused axis gives is not looked
    /// at.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn scaled(&self, position: [f32; 2]) -> [f32; 2] {
        let share = |x: f32, low: f32, high: f32| match (x - low) / (high - low) {
            s if s > 1.0 => 1.0,
            s if s > 0.0 => s,
            _ => 0.0,
        };
        let ([x, y], [west, south], [east, north]) = (position, self.low, self.high);
        [share(x, west, east), share(y, south, north)]
    }

    /// The reverse.
    pub(super) fn within(&self, share: [f32; 2]) -> [f32; 2] {
        let ([x, y], [west, south], [east, north]) = (share, self.low, self.high);
        [west + x * (east - west), south + y * (north - south)]
    }

    /// Gives the governor its band. One without a governor is not lost: [`check`](Self::check) refuses
    /// what becomes of it.
    pub(super) fn set_band(&mut self, band: f32) {
        match &mut self.governor {
            Some(governor) => governor.band = band,
            None if band.to_bits() == 0 => (),
            None => {
                self.governor = Some(Governor {
                    growth: 1.0,
                    floor: 1.0,
                    band: -1.0,
                });
            }
        }
    }

    /// Checks every field for an agent with so many axes.
    fn check(&self, axes: usize) -> Result<(), Complaint> {
        if self.force.is_some_and(|x| !positive(x)) {
            return field(FieldName::Force, Fault::NotPositive);
        }
        if self.velocity.is_some_and(|x| !positive(x)) {
            return field(FieldName::Velocity, Fault::NotPositive);
        }
        if self.force_rate.is_some_and(|x| !positive(x)) {
            return field(FieldName::ForceRate, Fault::NotPositive);
        }
        if self.velocity_rate.is_some_and(|x| !positive(x)) {
            return field(FieldName::VelocityRate, Fault::NotPositive);
        }
        if let Some(Governor {
            growth,
            floor,
            band,
        }) = self.governor
        {
            if !within(growth, 1.0, 2.0) {
                return field(FieldName::Growth, Fault::NotOneToTwo);
            }
            if !within(floor, SMALLEST, 1.0) {
                return field(FieldName::Floor, Fault::NotAShare);
            }
            if !within(band, 0.0, 1.0) {
                return field(FieldName::Band, Fault::NotABand);
            }
        }
        let mut farthest = 0.0f32;
        for (low, high) in self.low.iter().zip(self.high).take(axes) {
            if !(positive(high - low) && low.is_finite() && high.is_finite()) {
                return field(FieldName::Domain, Fault::NoDomain);
            }
            farthest = farthest.max(low.abs()).max(high.abs());
        }
        if axes == 1 && !self.keep_out.is_empty() {
            return field(FieldName::KeepOut, Fault::NeedsThePlane);
        }
        // A position in single precision is off by up to 6e-8 of the farthest coordinate, and a
        // disc is cleared by a few ten-thousandths of its radius: below this the one would exceed
        // the other.
        // Nor are squares of what is smaller than 1e-15 sure to be normal numbers, or of what is beyond
        // 1e18 to be numbers at all: who is infinitely far from a disc counts as clear of it.
        let large = |radius: f32| positive(radius) && radius >= (1e-3 * farthest).max(1e-15);
        let near = |x: f32| within(x.abs(), 0.0, 1e18);
        let clear = |disc: &Disc| {
            disc.centre.iter().all(|&x| near(x)) && large(disc.radius) && near(farthest)
        };
        if !self.keep_out.iter().all(clear) {
            return field(FieldName::KeepOut, Fault::UnusableDisc);
        }
        Ok(())
    }
}

/// And finite.
fn positive(x: f32) -> bool {
    within(x, SMALLEST, f32::MAX)
}

/// The smallest number above 0.
const SMALLEST: f32 = f32::from_bits(1);

/// Between bounds that are not negative: floats without sign are in the order of their bits.
fn within(x: f32, low: f32, high: f32) -> bool {
    (low.to_bits()..=high.to_bits()).contains(&x.to_bits())
}

impl Header<'_> {
    /// What of it lies in the extensions.
    pub(super) fn extensions(&self) -> (Extension, Extension3, Extension4, Extension5) {
        let Network {
            convolutions,
            flatten,
            encoding,
            memory,
            ..
        } = &self.network;
        let second = Extension {
            wide: self.sensing.wide,
            keep_out: self.limits.keep_out.clone(),
        };
        let third = Extension3 {
            convolutions: convolutions.clone(),
            flatten: *flatten,
            encoding: *encoding,
            force_rate: self.limits.force_rate,
            velocity_rate: self.limits.velocity_rate,
            probe: self.probe,
        };
        let fourth = Extension4 {
            governor: self.limits.governor,
        };
        let fifth = Extension5 {
            memory: *memory,
            band: self.limits.governor.map_or(0.0, |governor| governor.band),
        };
        (second, third, fourth, fifth)
    }

    /// Checks every field and derives all sizes.
    pub(super) fn check(&self) -> Result<Sizes, Complaint> {
        let axes = usize::from(self.sensing.axes);
        let (cells, features) = self.sensing.check()?;
        self.limits.check(axes)?;

        let Timing {
            period_us,
            late_us,
            fail_safe_us,
        } = self.timing;
        if period_us == 0 {
            return field(FieldName::Period, Fault::Zero);
        }
        if late_us >= fail_safe_us {
            return field(FieldName::Late, Fault::NotBeforeFailSafe);
        }

        let network = &self.network;
        // Far within what sin_cos_pi can reduce.
        if !network.frequencies.iter().all(|f| f.abs() <= 1e6) {
            return field(FieldName::Frequencies, Fault::FrequencyTooHigh);
        }
        if let Some(Probe { position, .. }) = self.probe
            && !position.iter().all(|x| x.is_finite())
        {
            return field(FieldName::ProbePosition, Fault::NotFinite);
        }
        if let Some(Memory { floats, leak, gain }) = network.memory {
            let some = (1..=MAX_MEMORY).contains(&usize::from(floats));
            // Who forgot more than there is would swing.
            if !(some && within(leak, 0.0, 0.5) && within(gain, 0.0, 1.0)) {
                return field(FieldName::Memory, Fault::NoMemory);
            }
        }
        let remembered = network.remembered();
        let width = |x: u16| (1..=MAX_WIDTH).contains(&usize::from(x));
        let fourier = 2 * axes * network.frequencies.len();
        let convolved = Plan::check(self)?;
        // After convolutions only the wide view is written down beforehand.
        let written = match &convolved {
            Some(_) => self.sensing.wide_len(),
            None => features,
        };
        let features = match &convolved {
            Some(plan) => plan.flat + self.sensing.wide_len(),
            None => features,
        };
        let inputs = written + remembered;
        let mut widest = inputs.max(fourier);
        let mut weights = convolved.as_ref().map_or(0, |plan| plan.weights);
        let layer_len = match network.encoding {
            Encoding::F32 => dense_len,
            Encoding::Int8 => int8::dense_len,
        };
        let mut chain = |layers: &[Dense], mut length: usize, name| {
            for layer in layers {
                if !width(layer.outputs) {
                    return field(name, Fault::LayerWidth);
                }
                if usize::from(layer.inputs) != length {
                    return field(name, Fault::LayerInputs);
                }
                if length == 0 {
                    return field(name, Fault::NoInputs);
                }
                let outputs = usize::from(layer.outputs);
                weights += layer_len(length, outputs);
                length = outputs;
                widest = widest.max(length);
            }
            Ok(length)
        };
        let branch = chain(&network.branch, features + remembered, FieldName::Branch)?;
        let trunk = chain(&network.trunk, fourier, FieldName::Trunk)?;
        let fused = match network.fusion {
            Fusion::Concatenate => branch + trunk,
            Fusion::Multiply if trunk == branch || trunk == 0 => branch,
            Fusion::Multiply => {
                return field(FieldName::Fusion, Fault::UnequalFactors);
            }
        };
        let outputs = chain(&network.head, fused, FieldName::Head)?;
        let Limits {
            force, velocity, ..
        } = self.limits;
        let expected = usize::from(force.is_some()) + velocity.map_or(0, |_| axes);
        if expected == 0 {
            return field(FieldName::Limits, Fault::NothingToDo);
        }
        if outputs != 2 * remembered + expected {
            return field(FieldName::Head, Fault::HeadOutputs);
        }
        if network.encoding == Encoding::Int8 {
            int8::check(network)?;
            widest = int8::padded(widest.max(fused));
        }
        Ok(Sizes {
            cells,
            features: written,
            inputs,
            branch,
            trunk,
            fused,
            widest: widest.max(fused),
            rows: convolved.as_ref().map_or(0, Plan::memory),
            weights,
            samples: self.sensing.samples(cells),
        })
    }
}
