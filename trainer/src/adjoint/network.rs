//! The shared network for all agents of a few episodes at once, and its adjoint.
//!
//! ```text
//! window, memory ─ dense, soft norm, tanh ─ dense, soft norm, tanh ─┐
//!                                                                   ├─ dense, tanh ─ dense, tanh ─ output in (−1, 1)
//! position ─ Fourier ─ dense, tanh ─ dense, tanh ───────────────────┘
//! ```
//!
//! The two come together side by side or value by value, as [`Fusion`] says. Where one network decides for all
//! agents of an episode, a row is an episode: there are the positions of all in it, and the outputs of one after
//! the other.

use super::elementwise::{
    add, add_rows, product_adjoint, product_into, soft_norm, soft_norm_adjoint, squash,
    squash_adjoint, squash_into,
};
use super::matrix::{multiply, multiply_into, multiply_transposed, transpose};
use super::real::Real;
use crate::policy::Shape;
use agent_core::policy::Fusion;
use pulp::Arch;
use std::f64::consts::PI;

/// The weights in the layouts the products want.
#[derive(Debug, Clone)]
pub struct Network<T> {
    arch: Arch,
    shape: Shape,
    weights: Vec<T>,
    /// Every dense layer's weights transposed, at the same offsets.
    transposed: Vec<T>,
    layers: [Dense; 6],
}

/// Where a dense layer's parameters lie in the flat vector: weights [inputs, outputs], then bias.
#[derive(Debug, Clone, Copy)]
struct Dense {
    start: usize,
    inputs: usize,
    outputs: usize,
}

impl Dense {
    fn bias_start(&self) -> usize {
        self.start + self.inputs * self.outputs
    }
    fn end(&self) -> usize {
        self.bias_start() + self.outputs
    }
    fn weights<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[self.start..self.bias_start()]
    }
    fn bias<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[self.bias_start()..self.end()]
    }
    fn split_mut<'a, T>(&self, all: &'a mut [T]) -> (&'a mut [T], &'a mut [T]) {
        all[self.start..self.end()].split_at_mut(self.inputs * self.outputs)
    }
}

const BRANCH_1: usize = 0;
const BRANCH_2: usize = 1;
const TRUNK_1: usize = 2;
const TRUNK_2: usize = 3;
const FUSE: usize = 4;
const HEAD: usize = 5;

/// What the trunk makes of the agents' positions; all are [rows, width]. Agents that stay where they
/// are need this once per episode.
pub struct Places<S> {
    /// Fourier features of the positions.
    fourier: S,
    trunk_1: S,
    trunk_2: S,
    /// What the branch is met with: the trunk's half of the fusion layer's sums and its bias, or the
    /// trunk's outputs where they are multiplied.
    offer: S,
}

/// Values per agent in `Places::offer`.
pub fn offer_width(shape: &Shape) -> usize {
    match shape.fusion {
        Fusion::Concatenate => shape.fuse,
        Fusion::Multiply => shape.trunk[1],
    }
}

fn place_widths(shape: &Shape) -> [usize; 4] {
    let [t1, t2] = shape.trunk;
    [shape.fourier(), t1, t2, offer_width(shape)]
}

/// Values per agent in [`Places`].
pub fn place_width(shape: &Shape) -> usize {
    place_widths(shape).iter().sum()
}

/// Views a slab of `rows · place_width` values.
pub fn places<'a, T>(shape: &Shape, rows: usize, slab: &'a [T]) -> Places<&'a [T]> {
    let [fourier, trunk_1, trunk_2, offer] = parts(rows, place_widths(shape), slab);
    Places {
        fourier,
        trunk_1,
        trunk_2,
        offer,
    }
}

/// Views a slab of `rows · place_width` values for writing.
pub fn places_mut<'a, T>(shape: &Shape, rows: usize, slab: &'a mut [T]) -> Places<&'a mut [T]> {
    let [fourier, trunk_1, trunk_2, offer] = parts_mut(rows, place_widths(shape), slab);
    Places {
        fourier,
        trunk_1,
        trunk_2,
        offer,
    }
}

/// What one forward evaluation leaves for the backward one; all are [rows, width].
pub struct Activations<S> {
    /// The window's features, then the memory; written by the caller.
    pub input: S,
    /// Soft-normalised, before tanh.
    branch_1: S,
    norm_1: S,
    branch_2: S,
    norm_2: S,
    fuse: S,
    /// In (−1, 1): pushes and gates of the memory, then force, then velocity.
    pub output: S,
}

/// Widths of the parts of [`Activations`], in order.
fn widths(shape: &Shape) -> [usize; 7] {
    let [b1, b2] = shape.branch;
    [shape.inputs(), b1, 1, b2, 1, shape.fuse, shape.outputs()]
}

/// Values per agent in [`Activations`].
pub fn activation_width(shape: &Shape) -> usize {
    widths(shape).iter().sum()
}

/// Views a slab of `rows · activation_width` values.
pub fn activations<'a, T>(shape: &Shape, rows: usize, slab: &'a [T]) -> Activations<&'a [T]> {
    let [input, branch_1, norm_1, branch_2, norm_2, fuse, output] =
        parts(rows, widths(shape), slab);
    Activations {
        input,
        branch_1,
        norm_1,
        branch_2,
        norm_2,
        fuse,
        output,
    }
}

/// Views a slab of `rows · activation_width` values for writing.
pub fn activations_mut<'a, T>(
    shape: &Shape,
    rows: usize,
    slab: &'a mut [T],
) -> Activations<&'a mut [T]> {
    let [input, branch_1, norm_1, branch_2, norm_2, fuse, output] =
        parts_mut(rows, widths(shape), slab);
    Activations {
        input,
        branch_1,
        norm_1,
        branch_2,
        norm_2,
        fuse,
        output,
    }
}

/// A slab cut into parts of `rows · width`.
fn parts<T, const N: usize>(rows: usize, widths: [usize; N], slab: &[T]) -> [&[T]; N] {
    let mut rest = slab;
    widths.map(|width| {
        let (part, others) = rest.split_at(rows * width);
        rest = others;
        part
    })
}

/// [`parts`] for writing.
fn parts_mut<T, const N: usize>(rows: usize, widths: [usize; N], slab: &mut [T]) -> [&mut [T]; N] {
    let mut rest = slab;
    widths.map(|width| {
        let (part, others) = std::mem::take(&mut rest).split_at_mut(rows * width);
        rest = others;
        part
    })
}

/// Buffers that do not outlive an evaluation; [`Workspace::fit`] gives them their size.
#[derive(Debug, Clone)]
pub struct Workspace<T> {
    branch_1: Vec<T>,
    branch_2: Vec<T>,
    /// Branch times trunk, where they are multiplied.
    joint: Vec<T>,
    g_joint: Vec<T>,
    g_branch_1: Vec<T>,
    g_branch_2: Vec<T>,
    g_trunk_1: Vec<T>,
    g_trunk_2: Vec<T>,
    g_fuse: Vec<T>,
    g_fourier: Vec<T>,
    g_output: Vec<T>,
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        Self {
            branch_1: Vec::new(),
            branch_2: Vec::new(),
            joint: Vec::new(),
            g_joint: Vec::new(),
            g_branch_1: Vec::new(),
            g_branch_2: Vec::new(),
            g_trunk_1: Vec::new(),
            g_trunk_2: Vec::new(),
            g_fuse: Vec::new(),
            g_fourier: Vec::new(),
            g_output: Vec::new(),
        }
    }
}

impl<T: Real> Workspace<T> {
    /// Makes room for `rows` agents.
    pub fn fit(&mut self, shape: &Shape, rows: usize) {
        for (part, width) in [
            (&mut self.branch_1, shape.branch[0]),
            (&mut self.branch_2, shape.branch[1]),
            (&mut self.joint, shape.branch[1]),
            (&mut self.g_joint, shape.branch[1]),
            (&mut self.g_branch_1, shape.branch[0]),
            (&mut self.g_branch_2, shape.branch[1]),
            (&mut self.g_trunk_1, shape.trunk[0]),
            (&mut self.g_trunk_2, shape.trunk[1]),
            (&mut self.g_fuse, shape.fuse),
            (&mut self.g_fourier, shape.fourier()),
            (&mut self.g_output, shape.outputs()),
        ] {
            part.resize(rows * width, T::ZERO);
        }
    }
}

impl<T: Real> Network<T> {
    /// From the flat parameter vector, in [`Shape::layers`]' order.
    pub fn new(shape: &Shape, parameters: &[f32]) -> Self {
        assert_eq!(parameters.len(), shape.parameters());
        let weights: Vec<T> = parameters.iter().map(|&p| T::of(f64::from(p))).collect();
        let mut start = 0;
        let layers = shape.layers().map(|[inputs, outputs]| {
            let layer = Dense {
                start,
                inputs,
                outputs,
            };
            start = layer.end();
            layer
        });
        let mut transposed = vec![T::ZERO; weights.len()];
        for layer in &layers {
            let out = &mut transposed[layer.start..layer.bias_start()];
            transpose(layer.weights(&weights), layer.inputs, out);
        }
        if shape.fusion == Fusion::Concatenate {
            // The fusion layer reads branch and trunk from two places: transpose its halves apart.
            let fuse = layers[FUSE];
            let cut = shape.branch[1] * shape.fuse;
            let (branch, trunk) = fuse.weights(&weights).split_at(cut);
            let (to_branch, to_trunk) = transposed[fuse.start..fuse.bias_start()].split_at_mut(cut);
            transpose(branch, shape.branch[1], to_branch);
            transpose(trunk, shape.trunk[1], to_trunk);
        }
        Self {
            arch: Arch::new(),
            shape: shape.clone(),
            weights,
            transposed,
            layers,
        }
    }

    /// Halves of the fusion layer's weights: rows fed by the branch, rows fed by the trunk.
    fn fuse_halves<'a>(&self, all: &'a [T]) -> (&'a [T], &'a [T]) {
        self.layers[FUSE]
            .weights(all)
            .split_at(self.shape.branch[1] * self.shape.fuse)
    }

    /// Fills `y` with the bias in every row, then adds `x · w`.
    fn dense(&self, layer: usize, x: &[T], y: &mut [T]) {
        let layer = &self.layers[layer];
        for row in y.chunks_exact_mut(layer.outputs) {
            row.copy_from_slice(layer.bias(&self.weights));
        }
        multiply(self.arch, x, layer.weights(&self.weights), y, layer.inputs);
    }

    /// Evaluates the trunk at `positions`, scaled to 0..1, [rows, coordinates].
    pub fn place(&self, positions: &[T], p: &mut Places<&mut [T]>) {
        self.fourier(positions, p.fourier);
        self.dense(TRUNK_1, p.fourier, p.trunk_1);
        squash(self.arch, p.trunk_1);
        self.dense(TRUNK_2, p.trunk_1, p.trunk_2);
        squash(self.arch, p.trunk_2);
        match self.shape.fusion {
            Fusion::Concatenate => {
                let fuse = &self.layers[FUSE];
                for row in p.offer.chunks_exact_mut(fuse.outputs) {
                    row.copy_from_slice(fuse.bias(&self.weights));
                }
                let (_, from_trunk) = self.fuse_halves(&self.weights);
                let trunk = self.shape.trunk[1];
                multiply(self.arch, p.trunk_2, from_trunk, p.offer, trunk);
            }
            Fusion::Multiply => p.offer.copy_from_slice(p.trunk_2),
        }
    }

    /// Evaluates the agents whose inputs stand in `a.input`; fills the rest of `a`.
    pub fn forward(
        &self,
        p: &Places<&[T]>,
        a: &mut Activations<&mut [T]>,
        work: &mut Workspace<T>,
    ) {
        self.dense(BRANCH_1, a.input, a.branch_1);
        soft_norm(self.arch, a.branch_1, a.norm_1, self.shape.branch[0]);
        squash_into(self.arch, a.branch_1, &mut work.branch_1);
        self.dense(BRANCH_2, &work.branch_1, a.branch_2);
        soft_norm(self.arch, a.branch_2, a.norm_2, self.shape.branch[1]);
        squash_into(self.arch, a.branch_2, &mut work.branch_2);
        match self.shape.fusion {
            Fusion::Concatenate => {
                a.fuse.copy_from_slice(p.offer);
                let (from_branch, _) = self.fuse_halves(&self.weights);
                let branch = self.shape.branch[1];
                multiply(self.arch, &work.branch_2, from_branch, a.fuse, branch);
            }
            Fusion::Multiply => {
                product_into(&work.branch_2, p.offer, &mut work.joint);
                self.dense(FUSE, &work.joint, a.fuse);
            }
        }
        squash(self.arch, a.fuse);
        self.dense(HEAD, a.fuse, a.output);
        squash(self.arch, a.output);
    }

    /// Adjoint of [`Self::forward`]: from the gradient of the outputs, adds to those of the
    /// parameters and of the trunk's offer, and sets that of the inputs.
    pub fn backward(
        &self,
        g_output: &[T],
        (p, a): (&Places<&[T]>, &Activations<&[T]>),
        work: &mut Workspace<T>,
        g_parameters: &mut [T],
        g_offer: &mut [T],
        g_input: &mut [T],
    ) {
        let arch = self.arch;
        let [b1, b2] = self.shape.branch;
        squash_into(arch, a.branch_1, &mut work.branch_1);
        squash_into(arch, a.branch_2, &mut work.branch_2);

        work.g_output.copy_from_slice(g_output);
        squash_adjoint(arch, a.output, &mut work.g_output);
        self.dense_adjoint(HEAD, a.fuse, &work.g_output, g_parameters, &mut work.g_fuse);
        squash_adjoint(arch, a.fuse, &mut work.g_fuse);

        match self.shape.fusion {
            Fusion::Concatenate => {
                add(&work.g_fuse, g_offer);
                let (weights, _) = self.layers[FUSE].split_mut(g_parameters);
                let (g_from_branch, _) = weights.split_at_mut(b2 * self.shape.fuse);
                multiply_transposed(arch, &work.branch_2, &work.g_fuse, g_from_branch, b2);
                let (to_branch, _) = self.fuse_halves(&self.transposed);
                let fuse = self.shape.fuse;
                multiply_into(arch, &work.g_fuse, to_branch, &mut work.g_branch_2, fuse);
            }
            Fusion::Multiply => {
                product_into(&work.branch_2, p.offer, &mut work.joint);
                self.dense_adjoint(
                    FUSE,
                    &work.joint,
                    &work.g_fuse,
                    g_parameters,
                    &mut work.g_joint,
                );
                product_adjoint(
                    &work.g_joint,
                    (&work.branch_2, p.offer),
                    (&mut work.g_branch_2, g_offer),
                );
            }
        }

        squash_adjoint(arch, &work.branch_2, &mut work.g_branch_2);
        soft_norm_adjoint(arch, a.branch_2, a.norm_2, &mut work.g_branch_2, b2);
        self.dense_adjoint(
            BRANCH_2,
            &work.branch_1,
            &work.g_branch_2,
            g_parameters,
            &mut work.g_branch_1,
        );
        squash_adjoint(arch, &work.branch_1, &mut work.g_branch_1);
        soft_norm_adjoint(arch, a.branch_1, a.norm_1, &mut work.g_branch_1, b1);
        self.dense_adjoint(BRANCH_1, a.input, &work.g_branch_1, g_parameters, g_input);
    }

    /// Adjoint of [`Self::place`]: from the gradient of the trunk's offer, adds to those of the
    /// parameters and the positions.
    pub fn place_adjoint(
        &self,
        g_offer: &[T],
        p: &Places<&[T]>,
        work: &mut Workspace<T>,
        g_parameters: &mut [T],
        g_positions: &mut [T],
    ) {
        let (arch, trunk) = (self.arch, self.shape.trunk[1]);
        match self.shape.fusion {
            Fusion::Concatenate => {
                let (weights, bias) = self.layers[FUSE].split_mut(g_parameters);
                let cut = self.shape.branch[1] * self.shape.fuse;
                let (_, g_from_trunk) = weights.split_at_mut(cut);
                multiply_transposed(arch, p.trunk_2, g_offer, g_from_trunk, trunk);
                add_rows(g_offer, bias);
                let (_, to_trunk) = self.fuse_halves(&self.transposed);
                let fuse = self.shape.fuse;
                multiply_into(arch, g_offer, to_trunk, &mut work.g_trunk_2, fuse);
            }
            Fusion::Multiply => work.g_trunk_2.copy_from_slice(g_offer),
        }
        squash_adjoint(arch, p.trunk_2, &mut work.g_trunk_2);
        self.dense_adjoint(
            TRUNK_2,
            p.trunk_1,
            &work.g_trunk_2,
            g_parameters,
            &mut work.g_trunk_1,
        );
        squash_adjoint(arch, p.trunk_1, &mut work.g_trunk_1);
        self.dense_adjoint(
            TRUNK_1,
            p.fourier,
            &work.g_trunk_1,
            g_parameters,
            &mut work.g_fourier,
        );
        self.fourier_adjoint(p.fourier, &work.g_fourier, g_positions);
    }

    /// Adjoint of [`Self::dense`]: adds to the layer's gradients, sets `g_x`.
    fn dense_adjoint(
        &self,
        layer: usize,
        x: &[T],
        g_y: &[T],
        g_parameters: &mut [T],
        g_x: &mut [T],
    ) {
        let layer = &self.layers[layer];
        let (weights, bias) = layer.split_mut(g_parameters);
        multiply_transposed(self.arch, x, g_y, weights, layer.inputs);
        add_rows(g_y, bias);
        let transposed = layer.weights(&self.transposed);
        multiply_into(self.arch, g_y, transposed, g_x, layer.outputs);
    }

    /// Sines, then cosines of π f s; within each, axis by axis.
    fn fourier(&self, positions: &[T], features: &mut [T]) {
        let (axes, waves) = (self.shape.coordinates(), self.shape.frequencies.len());
        let rows = features.chunks_exact_mut(self.shape.fourier());
        for (at, row) in positions.chunks_exact(axes).zip(rows) {
            let (sines, cosines) = row.split_at_mut(axes * waves);
            for (axis, &x) in at.iter().enumerate() {
                for (k, f) in self.shape.frequencies.iter().enumerate() {
                    let turn = (T::of(PI * f) * x).sine_cosine();
                    (sines[axis * waves + k], cosines[axis * waves + k]) = turn;
                }
            }
        }
    }

    /// Adjoint of [`Self::fourier`]: adds to `g_positions`.
    fn fourier_adjoint(&self, features: &[T], g: &[T], g_positions: &mut [T]) {
        let (axes, waves) = (self.shape.coordinates(), self.shape.frequencies.len());
        let (count, width) = (axes * waves, self.shape.fourier());
        let rows = features.chunks_exact(width).zip(g.chunks_exact(width));
        for ((row, g), g_at) in rows.zip(g_positions.chunks_exact_mut(axes)) {
            for (axis, g_position) in g_at.iter_mut().enumerate() {
                for (k, f) in self.shape.frequencies.iter().enumerate() {
                    let k = axis * waves + k;
                    let turn = g[k] * row[count + k] - g[count + k] * row[k];
                    *g_position += T::of(PI * f) * turn;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};

    fn small(axes: usize, fusion: Fusion) -> Shape {
        Shape {
            features: 6,
            memory: 2,
            branch: [7, 5],
            axes,
            frequencies: vec![1.0, 2.0],
            trunk: [4, 5],
            fusion,
            rests: false,
            fuse: 6,
            actions: 1 + axes,
            seats: None,
        }
    }

    /// Over windows, positions and (f32-representable) parameters together.
    #[test]
    fn the_network_has_the_adjoint_it_claims() {
        check(small(1, Fusion::Concatenate));
        check(small(2, Fusion::Concatenate));
        check(small(2, Fusion::Multiply));
        check(Shape {
            memory: 0,
            seats: Some(3),
            ..small(2, Fusion::Concatenate)
        });
    }

    fn check(shape: Shape) {
        let rows = 5;
        let windows = rows * shape.inputs();
        let mut point = wave(windows, 0.37, 1.0);
        point.extend((0..rows * shape.coordinates()).map(|k| 0.05 + 0.09 * k as f64));
        let weight = wave(rows * shape.outputs(), 0.9, 1.0);
        let parameters = wave(shape.parameters(), 0.61, 0.8);
        let network = |parameters: &[f64]| {
            let zeros = vec![0.0f32; shape.parameters()];
            let mut network = Network::<f64>::new(&shape, &zeros);
            let rounded: Vec<f32> = parameters.iter().map(|&p| p as f32).collect();
            let layouts = Network::<f64>::new(&shape, &rounded);
            network.weights.copy_from_slice(parameters);
            network.transposed = layouts.transposed;
            network
        };
        let forward = |network: &Network<f64>, point: &[f64], slabs: &mut [Vec<f64>; 2]| {
            let mut work = Workspace::default();
            work.fit(&shape, rows);
            let [placed, slab] = slabs;
            let mut p = places_mut(&shape, rows, placed);
            network.place(&point[windows..], &mut p);
            let mut a = activations_mut(&shape, rows, slab);
            a.input.copy_from_slice(&point[..windows]);
            network.forward(&places(&shape, rows, placed), &mut a, &mut work);
            a.output
                .iter()
                .zip(&weight)
                .map(|(a, w)| a * w)
                .sum::<f64>()
        };
        let slab = || [place_width(&shape), activation_width(&shape)].map(|w| vec![0.0; rows * w]);

        let rounded: Vec<f64> = parameters.iter().map(|&p| f64::from(p as f32)).collect();
        let net = network(&rounded);
        let mut kept = slab();
        forward(&net, &point, &mut kept);
        let mut g_parameters = vec![0.0; shape.parameters()];
        let mut g_point = vec![0.0; point.len()];
        let (g_input, g_positions) = g_point.split_at_mut(windows);
        let mut work = Workspace::default();
        work.fit(&shape, rows);
        let mut g_offer = vec![0.0; rows * offer_width(&shape)];
        let p = places(&shape, rows, &kept[0]);
        let a = activations(&shape, rows, &kept[1]);
        net.backward(
            &weight,
            (&p, &a),
            &mut work,
            &mut g_parameters,
            &mut g_offer,
            g_input,
        );
        net.place_adjoint(&g_offer, &p, &mut work, &mut g_parameters, g_positions);
        assert_gradient(|p| forward(&net, p, &mut slab()), &point, &g_point, 1e-7);
        assert_gradient(
            |p| forward(&network(p), &point, &mut slab()),
            &rounded,
            &g_parameters,
            1e-7,
        );
    }
}
