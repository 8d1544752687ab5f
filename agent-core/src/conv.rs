//! Convolutions on the window of a plane, streamed: of each layer's input only three rows exist at a
//! time, and the branch's first dense layer takes in the last layer's cells as they are made.
//!
//! A cell of a convolution's output is a dense layer on the 3 × 3 cells under it, so that is what
//! computes it, in the order row, column, channel.

use crate::net::{self, LANES, dense_len, padded};
use crate::policy::{
    Activation, Convolution, Dense, Encoding, Fault, FieldName, Header, MAX_CONVOLUTIONS,
    MAX_WIDTH, Norm,
};
use crate::policy::{Complaint, field};
use agent_kernels as kernels;
use heapless::Vec;

/// Cells of a kernel along an axis.
pub const KERNEL: usize = 3;

/// The convolutions of a header, checked, with the side of each one's input.
pub(crate) struct Plan {
    layers: Vec<Stage, MAX_CONVOLUTIONS>,
    /// Outputs of the dense layer behind them.
    outputs: usize,
    /// Values that the last one gives.
    pub(crate) flat: usize,
    /// Floats of their packed weights.
    pub(crate) weights: usize,
    /// Floats of three rows of each one's input.
    rows: usize,
    /// Most inputs of a cell.
    fan_in: usize,
    /// Most outputs of a cell.
    cell: usize,
}

/// One convolution and the sizes that follow.
#[derive(Clone, Copy)]
struct Stage {
    layer: Convolution,
    /// Cells of its input along an axis.
    side: usize,
    /// And of its output.
    output_side: usize,
}

impl Stage {
    /// Values in a row of its input with the zeros on both sides.
    fn row(&self) -> usize {
        (self.side + 2 * usize::from(self.layer.padding)) * usize::from(self.layer.inputs)
    }

    fn weights(&self) -> usize {
        dense_len(self.layer.fan_in(), usize::from(self.layer.outputs))
    }

    fn macs(&self) -> usize {
        self.output_side * self.output_side * self.layer.fan_in() * usize::from(self.layer.outputs)
    }
}

impl Plan {
    /// The plan of a header whose sensing is checked; none without convolutions.
    pub(crate) fn check(header: &Header) -> Result<Option<Self>, Complaint> {
        let name = FieldName::Convolutions;
        let (network, sensing) = (&header.network, &header.sensing);
        if network.convolutions.is_empty() {
            return match network.flatten {
                Norm::None => Ok(None),
                Norm::Soft => field(FieldName::Flatten, Fault::NeedsConvolutions),
            };
        }
        if sensing.axes != 2 {
            return field(name, Fault::NeedThePlane);
        }
        if network.encoding != Encoding::F32 {
            return field(name, Fault::NeedF32);
        }
        let Some(first) = network.branch.first() else {
            return field(name, Fault::NeedDense);
        };
        let mut plan = Self {
            layers: Vec::new(),
            outputs: usize::from(first.outputs).min(MAX_WIDTH),
            flat: 0,
            weights: 0,
            rows: 0,
            fan_in: 0,
            cell: 0,
        };
        let mut side = usize::from(sensing.window);
        let mut channels = sensing.channels.len();
        for layer in &network.convolutions {
            let (inputs, outputs) = (usize::from(layer.inputs), usize::from(layer.outputs));
            if inputs != channels {
                return field(name, Fault::ConvolutionInputs);
            }
            if !(1..=256).contains(&outputs) {
                return field(name, Fault::ConvolutionOutputs);
            }
            if !(1..=2).contains(&layer.stride) || layer.padding > 1 {
                return field(name, Fault::ConvolutionSteps);
            }
            let Some(output_side) = layer.side(side) else {
                return field(name, Fault::ConvolutionTooLarge);
            };
            let stage = Stage {
                layer: *layer,
                side,
                output_side,
            };
            // There is room for as many as a header can hold.
            let _ = plan.layers.push(stage);
            plan.weights += stage.weights();
            plan.rows += KERNEL * stage.row();
            plan.fan_in = plan.fan_in.max(layer.fan_in());
            plan.cell = plan.cell.max(outputs);
            (side, channels) = (output_side, outputs);
        }
        plan.flat = side * side * channels;
        Ok(Some(plan))
    }

    /// Multiply-accumulates.
    pub(crate) fn macs(&self) -> usize {
        self.layers.iter().map(Stage::macs).sum()
    }

    /// Floats of working memory: three rows of each layer's input, the inputs and outputs of one
    /// cell, and the sums of the dense layer.
    pub(crate) fn memory(&self) -> usize {
        self.rows + self.fan_in + self.cell + padded(self.outputs)
    }

    /// The greatest magnitude that each stage's sums can have, given that of the input; see
    /// [`net::bound`].
    pub(crate) fn bound(&self, weights: &mut &[f32], mut bound: f32) -> Option<f32> {
        for stage in &self.layers {
            let (packed, rest) = weights.split_at_checked(stage.weights())?;
            *weights = rest;
            let outputs = usize::from(stage.layer.outputs);
            bound = net::bound(packed, stage.layer.fan_in(), outputs, bound)?;
            if stage.layer.activation == Activation::Tanh {
                bound = 1.0;
            }
        }
        Some(bound)
    }

    /// Runs the convolutions on rows that `feature_row` writes, and the dense layer behind them, whose
    /// sums come out in `output`. `wide` is what follows the convolutions' cells in its input.
    #[expect(
        clippy::too_many_arguments,
        reason = "memory and weights borrowed from different places"
    )]
    pub(crate) fn run<'a>(
        &self,
        weights: &mut &'a [f32],
        dense: &Dense,
        flatten: Norm,
        wide: &[f32],
        memory: &'a mut [f32],
        output: &mut [f32],
        feature_row: impl Fn(usize, &mut [f32]) -> Option<()>,
    ) -> Option<()> {
        let mut stream = Stream::new(self, weights, memory)?;
        let (packed, rest) =
            weights.split_at_checked(dense_len(usize::from(dense.inputs), output.len()))?;
        *weights = rest;
        let (bias, rows) = packed.split_at_checked(padded(output.len()))?;
        let (rows, _) = rows.as_chunks::<LANES>();
        let mut tail = Tail {
            rows,
            inputs: usize::from(dense.inputs),
            taken: 0,
            squares: 0.0,
        };
        let window = self.layers.first()?.side;
        for row in 0..window {
            let first = stream.rings.first_mut()?;
            let values = window * usize::from(first.stage.layer.inputs);
            feature_row(row, first.next_row(0)?.get_mut(..values)?)?;
            first.made += 1;
            // The deepest layer that can go on does: nobody's three rows are overwritten unread.
            while let Some(at) = stream.rings.iter().rposition(Ring::is_ready) {
                stream.make_row(at, &mut tail)?;
            }
        }
        tail.take(wide, stream.sums);
        let scale = match flatten {
            Norm::None => 1.0,
            Norm::Soft => 1.0 / (agent_kernels::sqrt(tail.squares) + 1.0),
        };
        let sums = stream.sums.as_flattened();
        for ((out, sum), bias) in output.iter_mut().zip(sums).zip(bias) {
            *out = sum * scale + bias;
        }
        Some(())
    }
}

/// The dense layer behind the convolutions, which takes its input in pieces.
struct Tail<'a> {
    rows: &'a [[f32; LANES]],
    inputs: usize,
    /// How many it has had.
    taken: usize,
    /// The sum of their squares.
    squares: f32,
}

impl Tail<'_> {
    fn take(&mut self, input: &[f32], sums: &mut [[f32; LANES]]) {
        let mut from = self.taken;
        for sums in sums {
            let start = [*sums];
            let rows = self.rows.get(from..).unwrap_or_default();
            from += self.inputs;
            kernels::dense(&start, rows, input, core::slice::from_mut(sums));
        }
        for x in input {
            self.squares += x * x;
        }
        self.taken += input.len();
    }
}

/// One layer, and the rows of its input that are there.
struct Ring<'a> {
    stage: Stage,
    packed: &'a [f32],
    rows: &'a mut [f32],
    /// Rows written so far; the last three of them are there.
    made: usize,
    /// Rows of the layer's output made from them.
    used: usize,
}

impl Ring<'_> {
    /// Where the next row of the input goes, from a column on.
    fn next_row(&mut self, column: usize) -> Option<&mut [f32]> {
        let Convolution {
            inputs, padding, ..
        } = self.stage.layer;
        let start = self.made % KERNEL * self.stage.row()
            + (column + usize::from(padding)) * usize::from(inputs);
        self.rows.get_mut(start..)
    }

    /// Whether all the input is there that the next row of output needs.
    fn is_ready(&self) -> bool {
        let Convolution {
            stride, padding, ..
        } = self.stage.layer;
        // One past the last row under the kernel; beyond the rim there is none to wait for.
        let end = (self.used * usize::from(stride) + KERNEL)
            .saturating_sub(usize::from(padding))
            .min(self.stage.side);
        self.used < self.stage.output_side && end <= self.made
    }

    /// Copies the cells under the kernel for a column of the next row of output.
    fn gather(&self, column: usize, under: &mut [f32]) -> Option<()> {
        let Convolution {
            inputs,
            stride,
            padding,
            ..
        } = self.stage.layer;
        let (inputs, stride) = (usize::from(inputs), usize::from(stride));
        let padding = usize::from(padding);
        for (k, under) in under.chunks_mut((KERNEL * inputs).max(1)).enumerate() {
            // Counted with the rows of zeros above.
            let r = self.used * stride + k;
            if r < padding || r >= self.stage.side + padding {
                under.fill(0.0);
                continue;
            }
            let from = (r - padding) % KERNEL * self.stage.row() + column * stride * inputs;
            copy(self.rows.get(from..)?, under);
        }
        Some(())
    }
}

/// As many values as both have.
fn copy(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Everything between the first layer's input and the last one's output.
struct Stream<'a> {
    rings: Vec<Ring<'a>, MAX_CONVOLUTIONS>,
    /// The cells under one kernel.
    under: &'a mut [f32],
    /// One cell of output.
    cell: &'a mut [f32],
    sums: &'a mut [[f32; LANES]],
}

impl<'a> Stream<'a> {
    fn new(plan: &Plan, weights: &mut &'a [f32], memory: &'a mut [f32]) -> Option<Self> {
        // The zeros at both ends of each row stay, and sums start from zero.
        memory.fill(0.0);
        let mut rings = Vec::new();
        let mut memory = memory;
        for stage in &plan.layers {
            let ring = Ring {
                stage: *stage,
                packed: weights.split_off(..stage.weights())?,
                rows: memory.split_off_mut(..KERNEL * stage.row())?,
                made: 0,
                used: 0,
            };
            rings.push(ring).ok()?;
        }
        Some(Self {
            rings,
            under: memory.split_off_mut(..plan.fan_in)?,
            cell: memory.split_off_mut(..plan.cell)?,
            sums: memory.get_mut(..padded(plan.outputs))?.as_chunks_mut().0,
        })
    }

    /// Makes one row of a layer's output, cell by cell.
    fn make_row(&mut self, at: usize, tail: &mut Tail) -> Option<()> {
        let (rings, behind) = self.rings.split_at_mut_checked(at + 1)?;
        let ring = rings.last_mut()?;
        let mut next = behind.first_mut();
        let layer = ring.stage.layer;
        let under = self.under.get_mut(..layer.fan_in())?;
        let cell = self.cell.get_mut(..usize::from(layer.outputs))?;
        for column in 0..ring.stage.output_side {
            ring.gather(column, under)?;
            net::dense(ring.packed, under, cell);
            net::finish(Norm::None, layer.activation, cell);
            match &mut next {
                None => tail.take(cell, self.sums),
                Some(next) => copy(cell, next.next_row(column)?),
            }
        }
        ring.used += 1;
        if let Some(next) = next {
            next.made += 1;
        }
        Some(())
    }
}
