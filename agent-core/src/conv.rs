//! Convolutions on the window of a plane, streamed: of each layer's input only three rows exist at a
//! time, and the branch's first dense layer takes in the last layer's cells as they are made.
//!
//! A cell of a convolution's output is a dense layer on the 3 × 3 cells under it, so that is what
//! computes it, in the order row, column, channel.

use crate::net::{self, LANES, dense_len, padded};
use crate::policy::field;
use crate::policy::{
    Activation, Convolution, Dense, Encoding, Fault, FieldName, Header, MAX_CONVOLUTIONS,
    MAX_WIDTH, Norm, PolicyError,
};
use agent_kernels as kernels;
use heapless::Vec;

/// Cells of a kernel along an axis.
pub const KERNEL: usize = 3;

/// The convolutions of a header, checked, with the side of each one's input.
pub(crate) struct Plan {
    layers: Vec<Stage, MAX_CONVOLUTIONS>,
    /// Outputs of the dense layer behind them.
    outputs: usize,
    /// Cells of the last one's output along an axis.
    side: usize,
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
    pub(crate) fn check(header: &Header) -> Result<Option<Self>, PolicyError> {
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
        let mut layers = Vec::new();
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
            let _ = layers.push(stage);
            (side, channels) = (output_side, outputs);
        }
        let plan = Self {
            layers,
            outputs: usize::from(first.outputs).min(MAX_WIDTH),
            side,
        };
        Ok(Some(plan))
    }

    /// Values that the last convolution gives.
    pub(crate) fn flat(&self) -> usize {
        self.side * self.side * self.channels()
    }

    fn channels(&self) -> usize {
        self.layers
            .last()
            .map_or(0, |s| usize::from(s.layer.outputs))
    }

    /// Floats of their packed weights.
    pub(crate) fn weights(&self) -> usize {
        self.layers.iter().map(Stage::weights).sum()
    }

    /// Multiply-accumulates.
    pub(crate) fn macs(&self) -> usize {
        self.layers.iter().map(Stage::macs).sum()
    }

    /// Most inputs of a cell.
    fn fan_in(&self) -> usize {
        self.layers
            .iter()
            .map(|s| s.layer.fan_in())
            .max()
            .unwrap_or(0)
    }

    /// Most outputs of a cell.
    fn cell(&self) -> usize {
        let outputs = self.layers.iter().map(|s| usize::from(s.layer.outputs));
        outputs.max().unwrap_or(0)
    }

    /// Floats of working memory: three rows of each layer's input, the inputs and outputs of one
    /// cell, and the sums of the dense layer.
    pub(crate) fn memory(&self) -> usize {
        let rows: usize = self.layers.iter().map(|s| KERNEL * s.row()).sum();
        rows + self.fan_in() + self.cell() + padded(self.outputs)
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
        let first = self.layers.first()?;
        for row in 0..first.side {
            let window = stream.next_row(0, first)?;
            feature_row(row, window)?;
            stream.rings.first_mut()?.made += 1;
            // The deepest layer that can go on does: nobody's three rows are overwritten unread.
            while let Some(at) = stream.ready(self) {
                stream.make_row(self, at, &mut tail)?;
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

/// The rows of one layer's input that are there.
struct Ring<'a> {
    rows: &'a mut [f32],
    /// Rows written so far; the last three of them are there.
    made: usize,
    /// Rows of the layer's output made from them.
    used: usize,
}

/// Everything between the first layer's input and the last one's output.
struct Stream<'a> {
    rings: Vec<Ring<'a>, MAX_CONVOLUTIONS>,
    weights: Vec<&'a [f32], MAX_CONVOLUTIONS>,
    /// The cells under one kernel.
    under: &'a mut [f32],
    /// One cell of output.
    cell: &'a mut [f32],
    sums: &'a mut [[f32; LANES]],
}

impl<'a> Stream<'a> {
    fn new(plan: &Plan, weights: &mut &'a [f32], memory: &'a mut [f32]) -> Option<Self> {
        let mut rings = Vec::new();
        let mut packed = Vec::new();
        let mut memory = memory;
        for stage in &plan.layers {
            let (of_stage, rest) = weights.split_at_checked(stage.weights())?;
            *weights = rest;
            packed.push(of_stage).ok()?;
            let (rows, rest) = memory.split_at_mut_checked(KERNEL * stage.row())?;
            memory = rest;
            // The zeros at both ends of each row stay.
            rows.fill(0.0);
            let ring = Ring {
                rows,
                made: 0,
                used: 0,
            };
            rings.push(ring).ok()?;
        }
        let (under, memory) = memory.split_at_mut_checked(plan.fan_in())?;
        let (cell, memory) = memory.split_at_mut_checked(plan.cell())?;
        let sums = memory.get_mut(..padded(plan.outputs))?;
        sums.fill(0.0);
        let (sums, _) = sums.as_chunks_mut();
        Some(Self {
            rings,
            weights: packed,
            under,
            cell,
            sums,
        })
    }

    /// Where the next row of a layer's input goes, without the zeros at its ends.
    fn next_row(&mut self, at: usize, stage: &Stage) -> Option<&mut [f32]> {
        let ring = self.rings.get_mut(at)?;
        let start = ring.made % KERNEL * stage.row()
            + usize::from(stage.layer.padding) * usize::from(stage.layer.inputs);
        ring.rows
            .get_mut(start..start + stage.side * usize::from(stage.layer.inputs))
    }

    /// The deepest layer with all the input there that its next row of output needs.
    fn ready(&self, plan: &Plan) -> Option<usize> {
        let layers = plan.layers.iter().zip(&self.rings);
        layers.enumerate().rev().find_map(|(at, (stage, ring))| {
            let Convolution {
                stride, padding, ..
            } = stage.layer;
            // One past the last row under the kernel; beyond the rim there is none to wait for.
            let end = (ring.used * usize::from(stride) + KERNEL)
                .saturating_sub(usize::from(padding))
                .min(stage.side);
            (ring.used < stage.output_side && end <= ring.made).then_some(at)
        })
    }

    /// Makes one row of a layer's output, cell by cell.
    fn make_row(&mut self, plan: &Plan, at: usize, tail: &mut Tail) -> Option<()> {
        let stage = plan.layers.get(at)?;
        let Convolution {
            inputs,
            outputs,
            stride,
            padding,
            activation,
        } = stage.layer;
        let (inputs, outputs) = (usize::from(inputs), usize::from(outputs));
        let (stride, padding) = (usize::from(stride), usize::from(padding));
        let row = self.rings.get(at)?.used;
        let packed = *self.weights.get(at)?;
        let next = plan.layers.get(at + 1);
        for column in 0..stage.output_side {
            let under = self.under.get_mut(..stage.layer.fan_in())?;
            let ring = self.rings.get(at)?;
            for (k, under) in under.chunks_mut((KERNEL * inputs).max(1)).enumerate() {
                // Counted with the rows of zeros above.
                let r = row * stride + k;
                if r < padding || r >= stage.side + padding {
                    under.fill(0.0);
                    continue;
                }
                let from = (r - padding) % KERNEL * stage.row() + column * stride * inputs;
                let cells = ring.rows.get(from..)?;
                for (to, x) in under.iter_mut().zip(cells) {
                    *to = *x;
                }
            }
            let cell = self.cell.get_mut(..outputs)?;
            net::dense(packed, under, cell);
            net::finish(Norm::None, activation, cell);
            match next {
                None => tail.take(cell, self.sums),
                Some(next) => {
                    let ring = self.rings.get_mut(at + 1)?;
                    let start = ring.made % KERNEL * next.row()
                        + (column + usize::from(next.layer.padding)) * outputs;
                    for (to, x) in ring.rows.get_mut(start..)?.iter_mut().zip(cell.iter()) {
                        *to = *x;
                    }
                }
            }
        }
        self.rings.get_mut(at)?.used += 1;
        if next.is_some() {
            self.rings.get_mut(at + 1)?.made += 1;
        }
        Some(())
    }
}
