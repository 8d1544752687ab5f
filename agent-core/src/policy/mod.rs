//! The policy blob: the only thing that crosses from training to agents.
//!
//! `docs/policy-format.md` defines it byte by byte. In short: a fixed 32-byte prologue, a
//! [`Header`] in postcard, padding, the weights in little-endian words on a 16-byte boundary, then
//! the samples of the probe. [`Policy::parse`] checks everything once; afterwards running the policy
//! cannot fail.

mod encode;
mod error;
mod header;
mod prologue;
mod read;

pub use encode::{DenseWeights, EncodeError, Layers, OLDEST, encode, encode_as, recode};
pub(crate) use error::{Complaint, field};
pub use error::{Fault, FieldName, PolicyError};
pub use header::{
    Activation, Channel, Convolution, Dense, Disc, Encoding, Fusion, Governor, Header, Limits,
    Memory, Network, Norm, Probe, Provenance, Sensing, Text, Timing,
};

use crate::conv::Plan;
use crate::int8;
use crate::message::{Observation, Overview, Patch, Samples, Span, frame_room};
use crate::net::{self, dense_len};
use crate::observe;
use crate::value::Value;
use header::Sizes;
use prologue::{Prologue, checksum};
use read::Reader;

#[cfg(target_endian = "big")]
compile_error!(
    "weights are read in place as little-endian floats: this needs a little-endian target"
);

/// First bytes of every blob.
pub const MAGIC: [u8; 8] = *b"SWARMPOL";
/// The format that is written; those before it, which lack extensions of the header, are read too.
pub const FORMAT: u16 = 5;
/// Bytes before the header.
pub const PROLOGUE: usize = 32;
/// Weights start on a multiple of this, counted from the blob's first byte.
pub const WEIGHTS_ALIGN: usize = 16;
/// Most layers in one part of a network.
pub const MAX_LAYERS: usize = 6;
/// Most inputs, outputs or samples of anything: keeps all sizes far from overflow on 32 bits.
pub const MAX_WIDTH: usize = 4096;
/// Most Fourier frequencies.
pub const MAX_FREQUENCIES: usize = 8;
/// Most convolutions.
pub const MAX_CONVOLUTIONS: usize = 4;
/// Most places to keep out of.
pub const MAX_DISCS: usize = 4;
/// Most numbers that an agent keeps from one step to the next.
pub const MAX_MEMORY: usize = 16;

/// What a network can give: a push and a gate for each number of the memory, then force and velocities;
/// what there is none of is 0.
pub type Outputs<V = f32> = [V; 2 * MAX_MEMORY + 3];

/// Floats of working memory that a blob states and that its network needs: what the refusal of its
/// `workspace` leaves out, for people. None if its header is not valid.
pub fn workspace(bytes: &[u8]) -> Option<[usize; 2]> {
    let header = header_of(bytes)?;
    let sizes = header.check().ok()?;
    Some([header.workspace as usize, sizes.workspace()])
}

/// The problem that a blob says it is for, wherever in memory it lies and whatever else is wrong with it.
pub fn problem(bytes: &[u8]) -> Option<&str> {
    Some(header_of(bytes)?.problem.as_str())
}

/// The format that a blob says it is written in, if this reader knows it.
pub fn format(bytes: &[u8]) -> Option<u16> {
    Prologue::read(bytes).ok()?.format.try_into().ok()
}

fn header_of(bytes: &[u8]) -> Option<Header<'_>> {
    let prologue = Prologue::read(bytes).ok()?;
    let header = bytes.get(PROLOGUE..)?.get(..prologue.header as usize)?;
    let mut reader = Reader::new(header);
    let header = reader.header(prologue.format);
    reader.finish()?;
    Some(header)
}

/// A policy whose every size, limit and weight has been checked, borrowed from its bytes.
#[derive(Debug, Clone)]
pub struct Policy<'a> {
    header: Header<'a>,
    weights: &'a [f32],
    /// The probe's samples.
    probe: &'a [f32],
    pub(crate) sizes: Sizes,
    length: u32,
    checksum: u32,
}

impl<'a> Policy<'a> {
    /// Checks a blob and borrows its weights in place.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PolicyError> {
        let prologue = Prologue::read(bytes)?;
        let total = prologue.total as usize;
        if bytes.len() > total {
            return Err(PolicyError::TrailingBytes {
                stated: total,
                found: bytes.len(),
            });
        }
        let header_end = PROLOGUE.saturating_add(prologue.header as usize);
        let weights_at = prologue.weights_at as usize;
        let weights_end = weights_at.saturating_add(prologue.weights as usize);
        let cut = |needed, section| PolicyError::Truncated {
            needed,
            found: bytes.len(),
            section,
        };
        let header = bytes
            .get(PROLOGUE..header_end)
            .ok_or(cut(header_end, "header"))?;
        if header_end > weights_at || !weights_at.is_multiple_of(WEIGHTS_ALIGN) {
            return Err(PolicyError::field(
                FieldName::WeightsOffset,
                Fault::Misplaced,
            ));
        }
        if weights_end > total || prologue.format < 3 && weights_end != total {
            return Err(PolicyError::field(
                FieldName::TotalLength,
                Fault::NotWhereWeightsEnd,
            ));
        }
        let weights = bytes
            .get(weights_at..weights_end)
            .ok_or(cut(weights_end, "weights"))?;
        let probe = bytes.get(weights_end..total).ok_or(cut(total, "probe"))?;
        let computed = checksum(bytes);
        if computed != prologue.crc {
            return Err(PolicyError::Checksum {
                stated: prologue.crc,
                computed,
            });
        }
        let mut reader = Reader::new(header);
        let header = reader.header(prologue.format);
        let rest = reader.finish().ok_or(PolicyError::Header)?;
        if !rest.is_empty() {
            return Err(PolicyError::field(
                FieldName::HeaderLength,
                Fault::LongerThanHeader,
            ));
        }
        let weights = floats(weights, FieldName::WeightsLength)?;
        let probe = floats(probe, FieldName::ProbeLength)?;
        let sizes = header.check()?;
        if sizes.weights != weights.len() {
            return Err(PolicyError::WeightCount {
                needed: sizes.weights,
                found: weights.len(),
            });
        }
        let samples = header.probe.map_or(0, |_| sizes.samples);
        if samples != probe.len() {
            return Err(PolicyError::field(
                FieldName::TotalLength,
                Fault::NotWhereProbeEnds,
            ));
        }
        check_weights(&header, weights)?;
        if header.workspace as usize != sizes.workspace() {
            return Err(PolicyError::field(
                FieldName::Workspace,
                Fault::NotWhatIsNeeded,
            ));
        }
        Ok(Self {
            header,
            weights,
            probe,
            sizes,
            length: prologue.total,
            checksum: prologue.crc,
        })
    }

    /// What the blob says about itself.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// Floats of working memory a step needs.
    pub fn workspace_len(&self) -> usize {
        self.sizes.workspace()
    }

    /// Values of the patch a step expects, halo included.
    pub fn patch_len(&self) -> usize {
        self.sizes.cells
    }

    /// Bytes that are enough for the frame of an observation of the shape a step expects.
    pub fn frame_room(&self) -> usize {
        let sensing = &self.header.sensing;
        let cells = self.sizes.cells + sensing.wide_len();
        frame_room(cells * (1 + usize::from(sensing.target)))
    }

    /// Bytes of the blob.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The CRC-32 in its prologue: tells damage, and names nothing. Its name is the SHA-256 of its
    /// bytes ([`PolicyId`](crate::message::PolicyId)).
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Multiply-accumulates of the layers in one step.
    pub fn macs(&self) -> usize {
        let dense = self.header.network.layers();
        let dense = dense.map(|l| usize::from(l.inputs) * usize::from(l.outputs));
        self.convolutions().map_or(0, |plan| plan.macs()) + dense.sum::<usize>()
    }

    /// Inputs, outputs and packed numbers of each layer with f32 weights, convolutions first, for
    /// [`unpack_dense`](net::unpack_dense); none of a policy with others.
    pub fn packed_layers(&self) -> impl Iterator<Item = (usize, usize, &'a [f32])> {
        let network = &self.header.network;
        let mut weights = match network.encoding {
            Encoding::F32 => self.weights,
            Encoding::Int8 => &[],
        };
        network.shapes().map_while(move |(inputs, outputs)| {
            let (packed, rest) = weights.split_at_checked(dense_len(inputs, outputs))?;
            weights = rest;
            Some((inputs, outputs, packed))
        })
    }

    /// Weights and biases of all layers.
    pub fn parameters_len(&self) -> usize {
        let shapes = self.header.network.shapes();
        shapes.map(|(inputs, outputs)| (inputs + 1) * outputs).sum()
    }

    /// Words that are enough to write the policy anew, whatever way its weights are stored.
    pub fn recode_room(&self) -> usize {
        // A header of a few hundred bytes, weights padded to whole blocks, the probe and room to run.
        4096 + 2 * self.weights.len()
            + 8 * self.parameters_len() / 4
            + self.sizes.samples
            + 2 * self.sizes.workspace()
    }

    fn convolutions(&self) -> Option<Plan> {
        Plan::check(&self.header).ok().flatten()
    }

    /// The observation that the blob carries with its outputs, if it does.
    pub fn probe(&self) -> Option<(Observation<'a>, Probe)> {
        let probe = self.header.probe?;
        let sensing = &self.header.sensing;
        let (cells, wide) = (self.sizes.cells, sensing.wide_len());
        let with_target = |length| if sensing.target { length } else { 0 };
        let (field, rest) = self.probe.split_at_checked(cells)?;
        let (target, rest) = rest.split_at_checked(with_target(cells))?;
        let (wide_field, wide_target) = rest.split_at_checked(wide)?;
        let patch = Patch {
            field: Samples::new(field),
            target: Samples::new(target),
            inside: probe.inside,
            wide: Overview {
                field: Samples::new(wide_field),
                target: Samples::new(wide_target),
            },
        };
        let observation = Observation {
            now_us: 0,
            position: probe.position,
            patch,
        };
        Some((observation, probe))
    }

    /// Runs the probe in a working memory and compares bits: whether this machine computes as the one
    /// that wrote the blob. True for a blob without one.
    pub fn self_test(&self, workspace: &mut [f32]) -> bool {
        let Some((observation, probe)) = self.probe() else {
            return true;
        };
        let made = self.probed(&observation, workspace);
        made.is_some_and(|made| made.map(f32::to_le_bytes) == probe.expected)
    }

    /// What an agent makes of the probe's observation, before tanh, in the order force, velocities. One that
    /// remembers has its memory full.
    pub fn probed(&self, observation: &Observation, workspace: &mut [f32]) -> Option<[f32; 3]> {
        self.outputs(observation, &mut [1.0; MAX_MEMORY], workspace)
    }

    /// Features of one observation: the window's, then the wide view's.
    pub fn features_len(&self) -> usize {
        let sensing = &self.header.sensing;
        let samples = usize::from(sensing.samples).pow(sensing.axes.into());
        samples * sensing.channels.len() + sensing.wide_len()
    }

    /// Writes down all features of an observation, also those that convolutions take in row by row, for
    /// people to look at; none if it is not valid. `features` holds [`features_len`](Self::features_len).
    pub fn features(
        &self,
        patch: &Patch,
        workspace: &mut [f32],
        features: &mut [f32],
    ) -> Option<()> {
        if features.len() != self.features_len() {
            return None;
        }
        let written = self.see(patch, &[0.0; MAX_MEMORY], workspace)?;
        let written = written.get(..self.sizes.features)?;
        let near = features.len().checked_sub(written.len())?;
        let (near, far) = features.split_at_mut_checked(near)?;
        far.copy_from_slice(written);
        let sensing = &self.header.sensing;
        let errors = self.room(workspace)?.errors;
        let row = usize::from(sensing.window) * sensing.channels.len();
        let mut rows = near.chunks_mut(row.max(1)).enumerate();
        rows.try_for_each(|(row, to)| observe::plane_row(sensing, patch.inside, errors, row, to))
    }

    /// The network's outputs for an observation, before tanh, in the order force, velocities, 0 where
    /// there is none, and what becomes of the agent's memory; nothing if the observation is not valid.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub fn outputs(
        &self,
        observation: &Observation,
        memory: &mut [f32; MAX_MEMORY],
        workspace: &mut [f32],
    ) -> Option<[f32; 3]> {
        self.see(&observation.patch, memory, workspace)?;
        let scaled = self.header.limits.scaled(observation.position);
        let scaled = scaled.get(..usize::from(self.header.sensing.axes))?;
        let mut outputs = [0.0; _];
        self.infer(scaled, observation.patch.inside, workspace, &mut outputs)?;
        self.remember(&outputs, memory);
        Some(self.driving(&outputs))
    }

    /// From features (already in the workspace, see [`observe`]) and position, scaled along each axis,
    /// to the raw outputs.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn infer(
        &self,
        scaled_position: &[f32],
        inside: [Span; 2],
        workspace: &mut [f32],
        outputs: &mut Outputs,
    ) -> Option<()> {
        let network = &self.header.network;
        let Room {
            errors,
            joint,
            mut a,
            mut b,
            rows,
        } = self.room(workspace)?;
        let mut length = self.sizes.inputs;
        if network.encoding == Encoding::Int8 {
            let fourier = |to: &mut [f32]| fourier(&network.frequencies, scaled_position, to);
            return int8::infer(network, self.weights, fourier, joint, a, b, outputs);
        }
        let (mut weights, mut layers) = (self.weights, &network.branch[..]);
        if !network.convolutions.is_empty() {
            let (first, rest) = network.branch.split_first()?;
            let sums = b.get_mut(..usize::from(first.outputs))?;
            let wide = a.get(..length)?;
            let feature_row = |row, to: &mut [f32]| {
                observe::plane_row(&self.header.sensing, inside, errors, row, to)
            };
            self.convolutions()?.run(
                &mut weights,
                first,
                network.flatten,
                wide,
                rows,
                sums,
                feature_row,
            )?;
            net::finish(first.norm, first.activation, sums);
            length = sums.len();
            layers = rest;
            core::mem::swap(&mut a, &mut b);
        }
        run(
            network,
            weights,
            layers,
            length,
            self.sizes,
            scaled_position,
            joint,
            a,
            b,
            outputs,
        )
    }

    /// The same for a network of dense layers with f32 weights, and for several agents at once.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn infer_lockstep<V: Value>(
        &self,
        scaled_position: &[V],
        workspace: &mut [V],
        outputs: &mut Outputs<V>,
    ) -> Option<()> {
        let Room { joint, a, b, .. } = self.room(workspace)?;
        let network = &self.header.network;
        let (weights, layers) = (self.weights, &network.branch);
        run(
            network,
            weights,
            layers,
            self.sizes.inputs,
            self.sizes,
            scaled_position,
            joint,
            a,
            b,
            outputs,
        )
    }

    /// Whether [`infer_lockstep`](Self::infer_lockstep) can run it.
    pub(crate) fn is_dense(&self) -> bool {
        let network = &self.header.network;
        network.encoding == Encoding::F32 && network.convolutions.is_empty()
    }

    /// The parts of a workspace.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    fn room<'w, V>(&self, workspace: &'w mut [V]) -> Option<Room<'w, V>> {
        let sizes = &self.sizes;
        let (errors, rest) = workspace.split_at_mut_checked(sizes.cells)?;
        let (joint, rest) = rest.split_at_mut_checked(sizes.branch + sizes.trunk)?;
        let (a, rest) = rest.split_at_mut_checked(sizes.widest)?;
        let (b, rest) = rest.split_at_mut_checked(sizes.widest)?;
        let rows = rest.get_mut(..sizes.rows)?;
        Some(Room {
            errors,
            joint,
            a,
            b,
            rows,
        })
    }

    /// Writes the features of a patch, and behind them the memory, to where [`infer`](Self::infer) expects
    /// them; none if the patch is not valid.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn see<'w>(
        &self,
        patch: &Patch,
        memory: &[f32; MAX_MEMORY],
        workspace: &'w mut [f32],
    ) -> Option<&'w [f32]> {
        let Room { errors, a, .. } = self.room(workspace)?;
        let inputs = a.get_mut(..self.sizes.inputs)?;
        let (features, slots) = inputs.split_at_mut_checked(self.sizes.features)?;
        observe::features(self, patch, errors, features)?;
        for (slot, m) in slots.iter_mut().zip(memory) {
            *slot = *m;
        }
        Some(inputs)
    }

    /// That place.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn inputs_of<'w, V>(&self, workspace: &'w mut [V]) -> Option<&'w mut [V]> {
        self.room(workspace)?.a.get_mut(..self.sizes.inputs)
    }

    /// What a memory becomes by a step's outputs.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn remember(&self, outputs: &Outputs, memory: &mut [f32; MAX_MEMORY]) {
        let Some(Memory { floats, leak, gain }) = self.header.network.memory else {
            return;
        };
        let (pushes, gates) = outputs.split_at(usize::from(floats).min(MAX_MEMORY));
        for ((m, push), gate) in memory.iter_mut().zip(pushes).zip(gates) {
            let forgotten = leak * (1.0 + net::share(*gate)) * *m;
            *m = net::cut(*m - forgotten + gain * net::share(*push));
        }
    }

    /// Of a step's outputs those that drive the agent: force, velocities.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn driving<V: Value>(&self, outputs: &Outputs<V>) -> [V; 3] {
        let behind = outputs.get(2 * self.header.network.remembered()..);
        let three = behind.and_then(<[V]>::first_chunk);
        // There always are: the parser has refused a longer memory.
        three.copied().unwrap_or([V::splat(0.0); 3])
    }
}

/// The parts of a workspace.
struct Room<'w, V> {
    /// Of the patch.
    errors: &'w mut [V],
    /// Branch and trunk outputs.
    joint: &'w mut [V],
    /// The features, and room to go back and forth between layers.
    a: &'w mut [V],
    /// The other side.
    b: &'w mut [V],
    /// The convolutions' memory.
    rows: &'w mut [V],
}

/// Reads a section in place.
fn floats(bytes: &[u8], name: FieldName) -> Result<&[f32], PolicyError> {
    bytemuck::try_cast_slice(bytes).map_err(|e| match e {
        bytemuck::PodCastError::TargetAlignmentGreaterAndInputNotAligned => PolicyError::Misaligned,
        _ => PolicyError::field(name, Fault::NotWords),
    })
}

/// Checks that every weight is finite and that no sum of the network can leave the finite numbers,
/// whatever it is shown.
fn check_weights(header: &Header, mut weights: &[f32]) -> Result<(), PolicyError> {
    let network = &header.network;
    // The slope between two cells is at most the sum of their errors. Errors whose squares are not
    // normal numbers may pass the limit: see [`observe`].
    let features = 2.0 * header.sensing.error_limit.max(1e-18);
    if features > net::LARGEST_SUM {
        return Err(PolicyError::field(
            FieldName::ErrorLimit,
            Fault::ErrorsTooLarge,
        ));
    }
    // A memory, at most 1, stands beside them.
    let features = match network.memory {
        Some(_) => features.max(1.0),
        None => features,
    };
    if network.encoding == Encoding::Int8 {
        let fault = int8::check_weights(network, weights, features);
        return fault.map_err(|fault| PolicyError::field(FieldName::Network, fault));
    }
    if let Some(index) = weights.iter().position(|w| !w.is_finite()) {
        return Err(PolicyError::Weight { index });
    }
    let large = || PolicyError::field(FieldName::Network, Fault::SumsTooLarge);
    let mut seen = features;
    if let Some(plan) = Plan::check(header)? {
        let made = plan.bound(&mut weights, seen).ok_or_else(large)?;
        // What follows reads the wide view beside the convolutions' cells.
        seen = if made > seen { made } else { seen };
    }
    let mut chain = |layers: &[Dense], mut bound: f32| {
        for layer in layers {
            let (inputs, outputs) = (usize::from(layer.inputs), usize::from(layer.outputs));
            let packed = weights.split_at_checked(dense_len(inputs, outputs));
            let (packed, rest) = packed.ok_or_else(large)?;
            weights = rest;
            bound = net::bound(packed, inputs, outputs, bound).ok_or_else(large)?;
            if layer.norm == Norm::Soft || layer.activation == Activation::Tanh {
                bound = 1.0;
            }
        }
        Ok::<_, PolicyError>(bound)
    };
    let seen = chain(&network.branch, seen)?;
    let placed = chain(&network.trunk, 1.0)?;
    let fused = match network.fusion {
        Fusion::Concatenate => seen.max(placed),
        Fusion::Multiply => seen * placed.max(1.0),
    };
    if fused > net::LARGEST_SUM {
        return Err(large());
    }
    chain(&network.head, fused).map(|_| ())
}

/// Branch (from `layers` on, on the first `length` values of `a`), trunk and head.
#[expect(
    clippy::too_many_arguments,
    reason = "parts of two structures, borrowed differently"
)]
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn run<'w, V: Value>(
    network: &Network,
    mut weights: &[f32],
    layers: &[Dense],
    length: usize,
    sizes: Sizes,
    scaled_position: &[V],
    joint: &mut [V],
    mut a: &'w mut [V],
    mut b: &'w mut [V],
    outputs: &mut [V],
) -> Option<()> {
    let mut length = length;
    for (part, layers) in [layers, &network.trunk, &network.head]
        .into_iter()
        .enumerate()
    {
        if part == 1 {
            length = fourier(&network.frequencies, scaled_position, a);
        }
        if part == 2 {
            let (seen, placed) = joint.split_at_mut_checked(sizes.branch)?;
            if network.fusion == Fusion::Multiply {
                for (x, y) in seen.iter_mut().zip(placed.iter()) {
                    *x = *x * *y;
                }
            }
            length = sizes.fused;
        }
        if layers.is_empty() {
            let (from, to): (&[V], &mut [V]) = match part {
                0 => (a, joint),
                1 => (a, joint.get_mut(sizes.branch..)?),
                _ => (joint, outputs),
            };
            for (to, from) in to.iter_mut().zip(from.get(..length)?) {
                *to = *from;
            }
        }
        // One place where a layer is run: a host's compiler makes more of it than of several.
        for (index, dense) in layers.iter().enumerate() {
            let n = usize::from(dense.outputs);
            let last = index + 1 == layers.len();
            let (input, output): (&[V], &mut [V]) = match (part, index == 0, last) {
                (0, _, true) => (a, joint),
                (1, _, true) => (a, joint.get_mut(sizes.branch..)?),
                (2, true, true) => (joint, outputs),
                (2, true, false) => (joint, b),
                (2, false, true) => (a, outputs),
                _ => (a, b),
            };
            let (input, output) = (input.get(..length)?, output.get_mut(..n)?);
            let (packed, rest) = weights.split_at_checked(dense_len(length, n))?;
            weights = rest;
            V::dense(packed, input, output);
            net::finish(dense.norm, dense.activation, output);
            length = n;
            core::mem::swap(&mut a, &mut b);
        }
    }
    Some(())
}

/// All sines, axis after axis, then all cosines; returns how many values that is.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn fourier<V: Value>(frequencies: &[f32], scaled_position: &[V], output: &mut [V]) -> usize {
    let n = frequencies.len() * scaled_position.len();
    let Some((sines, cosines)) = output.split_at_mut_checked(n) else {
        return 0;
    };
    let mut pairs = sines.iter_mut().zip(cosines);
    for s in scaled_position {
        for (f, (sine, cosine)) in frequencies.iter().zip(&mut pairs) {
            (*sine, *cosine) = (V::splat(*f) * *s).map_pair(net::sin_cos_pi);
        }
    }
    2 * n
}

/// Bytes of the blob that starts here, as its prologue states: finds its end in a flash slot.
pub fn stated_length(bytes: &[u8]) -> Result<usize, PolicyError> {
    Prologue::read(bytes).map(|p| p.total as usize)
}
