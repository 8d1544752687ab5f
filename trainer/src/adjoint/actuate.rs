//! What agents do to the field: every agent's amplitude, spread by a Gaussian around it.
//!
//! Kernels are products over the axes, so a step needs exponentials for every agent and axis, not
//! for every agent and grid point, and the sum over agents is a matrix product.

use super::elementwise::{CHUNK, vectorised};
use super::matrix::{multiply, multiply_transposed, transpose};
use super::real::Real;
use problem::Problem;
use problem::grid::Edge;
use pulp::{Arch, Simd, WithSimd};

/// The actuators of a problem.
#[derive(Debug, Clone)]
pub struct Actuators<T> {
    arch: Arch,
    axes: usize,
    points: [usize; 2],
    /// Amplitudes per agent, each spread into a field of its own.
    components: usize,
    coordinates: [Vec<T>; 2],
    /// 1/σ²
    precision: T,
    /// Length of the ring, if it is one.
    period: [Option<T>; 2],
    peak_on_grid: bool,
    /// What each agent does instead, where that was measured, [agents, grid].
    maps: Option<Vec<T>>,
}

/// Buffers for the agents of one episode; [`Actuators::fit`] gives them their size.
#[derive(Debug, Clone)]
pub struct Kernels<T> {
    /// Per axis, [agents, points].
    values: [Vec<T>; 2],
    /// Distances, per axis, [agents, points].
    gaps: [Vec<T>; 2],
    /// One axis' kernels times an amplitude.
    weighted: Vec<T>,
    /// A gradient's sums over one axis, [agents, points].
    along: [Vec<T>; 2],
    turned: Vec<T>,
}

impl<T> Default for Kernels<T> {
    fn default() -> Self {
        Self {
            values: Default::default(),
            gaps: Default::default(),
            weighted: Vec::new(),
            along: Default::default(),
            turned: Vec::new(),
        }
    }
}

impl<T: Real> Actuators<T> {
    /// The actuators of a problem's agents.
    pub fn new(problem: &Problem) -> Self {
        let grid = &problem.grid;
        let axis = |a: usize| {
            (0..grid.points[a])
                .map(|j| T::of(grid.coordinate(a, j)))
                .collect()
        };
        let ring = |a: usize| (grid.edges[a] == Edge::Periodic).then(|| T::of(grid.extent(a)));
        Self {
            arch: Arch::new(),
            axes: grid.axes,
            points: grid.points,
            components: problem.components(),
            coordinates: [axis(0), axis(1)],
            precision: T::of(problem.actuation.width.powi(-2)),
            period: [ring(0), ring(1)],
            peak_on_grid: problem.actuation.peak_on_grid,
            maps: (problem.kit.and_then(|kit| kit.influence(problem)))
                .map(|maps| maps.into_iter().flatten().map(T::of).collect()),
        }
    }

    /// Makes room for the kernels of `agents` agents.
    pub fn fit(&self, kernels: &mut Kernels<T>, agents: usize) {
        let Kernels {
            values,
            gaps,
            weighted,
            along,
            turned,
        } = kernels;
        for both in [values, gaps, along] {
            for (axis, rows) in both.iter_mut().enumerate().take(self.axes) {
                rows.resize(agents * self.points[axis], T::ZERO);
            }
        }
        weighted.resize(agents * self.points[0], T::ZERO);
        if self.axes == 2 {
            turned.resize(self.points[0] * self.points[1], T::ZERO);
        }
    }

    /// Puts the kernels around `positions` [agents, axes].
    pub fn place(&self, positions: &[T], kernels: &mut Kernels<T>) {
        let (arch, axes) = (self.arch, self.axes);
        for axis in 0..axes {
            let points = self.points[axis];
            let rows = (kernels.values[axis].chunks_exact_mut(points))
                .zip(kernels.gaps[axis].chunks_exact_mut(points));
            for (at, (values, gaps)) in positions.chunks_exact(axes).zip(rows) {
                distances(arch, &self.coordinates[axis], at[axis], gaps);
                if let Some(period) = self.period[axis] {
                    nearest_image(gaps, period);
                }
                bell(arch, gaps, self.precision, values);
                if self.peak_on_grid {
                    let peak = values
                        .iter()
                        .fold(T::ZERO, |m, &v| if v > m { v } else { m });
                    values.iter_mut().for_each(|v| *v = *v / peak);
                }
            }
        }
    }

    /// `forcing` [components, grid] = Σ over agents of `amplitudes` [agents, components] · kernel.
    pub fn spread(&self, amplitudes: &[T], kernels: &mut Kernels<T>, forcing: &mut [T]) {
        let grid = self.points[0] * self.points[1];
        forcing.fill(T::ZERO);
        for (c, forcing) in forcing.chunks_exact_mut(grid).enumerate() {
            if self.axes == 1 || self.maps.is_some() {
                let kernels = self.maps.as_ref().unwrap_or(&kernels.values[0]);
                let kernels = kernels.chunks_exact(grid);
                let amplitudes = amplitudes[c..].iter().step_by(self.components);
                for (&u, kernel) in amplitudes.zip(kernels) {
                    add_scaled(self.arch, u, kernel, forcing);
                }
            } else {
                weigh(
                    &kernels.values[0],
                    amplitudes,
                    self.components,
                    c,
                    &mut kernels.weighted,
                );
                let [left, right] = [&kernels.weighted, &kernels.values[1]];
                multiply_transposed(self.arch, left, right, forcing, self.points[0]);
            }
        }
    }

    /// Adjoint of [`Self::place`] and [`Self::spread`] for kernels that are in place: sets the
    /// gradient of the amplitudes, and adds to that of the positions where there is one.
    pub fn spread_adjoint(
        &self,
        g_forcing: &[T],
        amplitudes: &[T],
        kernels: &mut Kernels<T>,
        g_amplitudes: &mut [T],
        mut g_positions: Option<&mut [T]>,
    ) {
        let (arch, [n0, n1], axes) = (self.arch, self.points, self.axes);
        if let Some(maps) = &self.maps {
            // Who is measured stays: places have no gradient.
            for (c, g) in g_forcing.chunks_exact(n0 * n1).enumerate() {
                let pulls = g_amplitudes[c..].iter_mut().step_by(self.components);
                for (pull, map) in pulls.zip(maps.chunks_exact(n0 * n1)) {
                    *pull = felt(arch, g, map, map).0;
                }
            }
            return;
        }
        for (c, g) in g_forcing.chunks_exact(n0 * n1).enumerate() {
            let Kernels {
                values,
                gaps,
                along,
                turned,
                ..
            } = &mut *kernels;
            if axes == 1 {
                for row in along[0].chunks_exact_mut(n0) {
                    row.copy_from_slice(g);
                }
            } else {
                transpose(g, n0, turned);
                along[0].fill(T::ZERO);
                multiply(arch, &values[1], turned, &mut along[0], n1);
                if g_positions.is_some() {
                    along[1].fill(T::ZERO);
                    multiply(arch, &values[0], g, &mut along[1], n0);
                }
            }
            let count = values[0].len() / n0;
            for i in 0..count {
                let amplitude = amplitudes[i * self.components + c];
                let (felt, moment) = felt(
                    arch,
                    at(&along[0], i, n0),
                    at(&values[0], i, n0),
                    at(&gaps[0], i, n0),
                );
                g_amplitudes[i * self.components + c] = felt;
                let Some(g_positions) = g_positions.as_deref_mut() else {
                    continue;
                };
                let pull = amplitude * self.precision;
                g_positions[i * axes] += pull * moment;
                if axes == 2 {
                    let (_, moment) = self::felt(
                        arch,
                        at(&along[1], i, n1),
                        at(&values[1], i, n1),
                        at(&gaps[1], i, n1),
                    );
                    g_positions[i * axes + 1] += pull * moment;
                }
            }
        }
    }
}

/// Row `i` of rows of `n`.
fn at<T>(rows: &[T], i: usize, n: usize) -> &[T] {
    &rows[i * n..][..n]
}

/// `out` = kernels [agents, points], each times component `c` of its agent's amplitude.
fn weigh<T: Real>(kernels: &[T], amplitudes: &[T], components: usize, c: usize, out: &mut [T]) {
    let agents = amplitudes.len() / components;
    let points = kernels.len() / agents;
    let rows = kernels
        .chunks_exact(points)
        .zip(out.chunks_exact_mut(points));
    for (amplitude, (kernel, out)) in amplitudes.chunks_exact(components).zip(rows) {
        for (out, &k) in out.iter_mut().zip(kernel) {
            *out = amplitude[c] * k;
        }
    }
}

/// Distances on a ring are the shorter ones.
fn nearest_image<T: Real>(gaps: &mut [T], period: T) {
    let half = T::of(0.5) * period;
    for gap in gaps {
        if *gap > half {
            *gap -= period;
        } else if *gap < -half {
            *gap += period;
        }
    }
}

vectorised! {
    /// `gaps` = coordinates − position.
    pub fn distances<'a, T>(coordinates: &'a [T], position: T, gaps: &'a mut [T]) {
        for (gap, &x) in gaps.iter_mut().zip(coordinates) {
            *gap = x - position;
        }
    }
}

vectorised! {
    /// `values` = exp(−gap² precision / 2).
    pub fn bell<'a, T>(gaps: &'a [T], precision: T, values: &'a mut [T]) {
        let factor = T::of(-0.5) * precision;
        let ((from, rest), (to, out)) = (gaps.as_chunks::<CHUNK>(), values.as_chunks_mut::<CHUNK>());
        for (gap, value) in from.iter().zip(to) {
            for l in 0..CHUNK {
                value[l] = (factor * gap[l] * gap[l]).decay();
            }
        }
        for (&gap, value) in rest.iter().zip(out) {
            *value = (factor * gap * gap).decay();
        }
    }
}

vectorised! {
    /// `sum += factor · values`.
    pub fn add_scaled<'a, T>(factor: T, values: &'a [T], sum: &'a mut [T]) {
        for (sum, &v) in sum.iter_mut().zip(values) {
            *sum = v.fused(factor, *sum);
        }
    }
}

/// Σ g · value and Σ g · value · gap: what a gradient makes of an amplitude and of a position.
fn felt<T: Real>(arch: Arch, g: &[T], values: &[T], gaps: &[T]) -> (T, T) {
    let mut sums = [T::ZERO; 2];
    felt_into(arch, g, values, gaps, &mut sums);
    (sums[0], sums[1])
}

vectorised! {
    /// See `felt`.
    pub fn felt_into<'a, T>(g: &'a [T], values: &'a [T], gaps: &'a [T], sums: &'a mut [T; 2]) {
        let (mut level, mut moment) = ([T::ZERO; CHUNK], [T::ZERO; CHUNK]);
        let ((g, g_rest), (v, v_rest)) = (g.as_chunks::<CHUNK>(), values.as_chunks::<CHUNK>());
        let (d, d_rest) = gaps.as_chunks::<CHUNK>();
        for ((g, v), d) in g.iter().zip(v).zip(d) {
            for l in 0..CHUNK {
                let felt = g[l] * v[l];
                level[l] += felt;
                moment[l] = felt.fused(d[l], moment[l]);
            }
        }
        let (mut a, mut b) = (level.into_iter().sum::<T>(), moment.into_iter().sum::<T>());
        for ((&g, &v), &d) in g_rest.iter().zip(v_rest).zip(d_rest) {
            a += g * v;
            b += g * v * d;
        }
        *sums = [a, b];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use problem::actuate::Kernel;
    use problem::published::{ALL, density_2d, heat_1d, heat_2d};

    fn weighted(values: &[f64], weights: &[f64]) -> f64 {
        values.iter().zip(weights).map(|(v, w)| v * w).sum()
    }

    fn forcing(actuators: &Actuators<f64>, positions: &[f64], amplitudes: &[f64]) -> Vec<f64> {
        let agents = positions.len() / actuators.axes;
        let mut kernels = Kernels::default();
        actuators.fit(&mut kernels, agents);
        let grid = actuators.points[0] * actuators.points[1];
        let mut out = vec![0.0; actuators.components * grid];
        actuators.place(positions, &mut kernels);
        actuators.spread(amplitudes, &mut kernels, &mut out);
        out
    }

    #[test]
    fn agents_act_as_in_the_simulator() {
        for problem in ALL {
            let actuators = Actuators::<f64>::new(problem);
            let components = actuators.components;
            let at = (problem.placement)(problem, 5);
            let positions: Vec<f64> = (at.iter())
                .flat_map(|p| p[..problem.grid.axes].to_vec())
                .collect();
            let amplitudes = wave(at.len() * components, 0.7, 3.0);
            let got = forcing(&actuators, &positions, &amplitudes);
            let mut want = vec![0.0; got.len()];
            let mut kernel = Kernel::new(problem);
            for (position, amplitude) in at.iter().zip(amplitudes.chunks_exact(components)) {
                kernel.add(&mut want, *position, amplitude);
            }
            for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(
                    (got - want).abs() < 1e-12,
                    "{} at {k}: {got} {want}",
                    problem.name
                );
            }
        }
    }

    #[test]
    fn actuation_has_the_adjoint_it_claims() {
        let cases: [(&Problem, &[f64]); 3] = [
            (&heat_1d::PROBLEM, &[0.2, 0.35, 0.99]),
            (&heat_2d::PROBLEM, &[0.2, 0.35, 0.99, 0.5, 0.4, 0.6]),
            (&density_2d::PROBLEM, &[0.2, 0.35, 0.8, 1.1]),
        ];
        for (problem, positions) in cases {
            let actuators = Actuators::<f64>::new(problem);
            let agents = positions.len() / problem.grid.axes;
            let count = agents * actuators.components;
            let mut inputs = positions.to_vec();
            inputs.extend(wave(count, 0.7, 3.0));
            let weight = wave(problem.grid.len() * actuators.components, 0.4, 1.0);
            let value = |inputs: &[f64]| {
                let (positions, amplitudes) = inputs.split_at(positions.len());
                weighted(&forcing(&actuators, positions, amplitudes), &weight)
            };
            let mut g = vec![0.0; inputs.len()];
            let (g_positions, g_amplitudes) = g.split_at_mut(positions.len());
            let mut kernels = Kernels::default();
            actuators.fit(&mut kernels, agents);
            actuators.place(positions, &mut kernels);
            let amplitudes = &inputs[positions.len()..];
            actuators.spread_adjoint(
                &weight,
                amplitudes,
                &mut kernels,
                g_amplitudes,
                Some(g_positions),
            );
            assert_gradient(value, &inputs, &g, 1e-6);
        }
    }
}
