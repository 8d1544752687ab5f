//! A density carried by the wind of mobile fans, by the published semi-Lagrangian scheme:
//!
//! ```text
//! d = cap(coupling · w + drift),   m(x) = z(x − d(x)),   z⁺ = clip((1 − 4μ) m + μ Σ m(neighbours))
//! ```
//!
//! in cells, with m interpolated bilinearly and the two outermost rows and columns of z⁺ on each
//! side repeating the third. Those need m nowhere on the outermost ring, so no sample ever leaves
//! the grid.
//!
//! A displacement of at most one cell reaches the eight neighbours: choosing among shifted copies
//! of the field replaces a gather and, backwards, weighing them a scatter. Loops run over flat
//! fields, where a row's end is beside the next row's start; what they compute on the outermost
//! columns is overwritten or weighs zero. The adjoint finds the displacements anew from the wind, so
//! the tape holds only densities between solver steps.

use super::{Batch, Differentiable, FieldStep, Gradients, Interval, not_implemented};
use crate::adjoint::elementwise::{CHUNK, vectorised};
use crate::adjoint::real::Real;
use problem::pde::density_2d::Transport;
use problem::published::density_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use pulp::{Arch, Simd, WithSimd};

/// Step of the room; its forcing is the agents' wind.
#[derive(Debug, Clone)]
pub struct Density2d<T> {
    arch: Arch,
    points: [usize; 2],
    wind: Wind<T>,
    mixing: Mixing<T>,
    substeps: usize,
}

/// What the wind does to a cell in one step.
#[derive(Debug, Clone, Copy)]
pub struct Wind<T> {
    /// Points along a row.
    columns: usize,
    /// Cells per step per unit of the agents' velocity, along each axis.
    cells_per_velocity: [T; 2],
    /// Drift in cells per step.
    drift: [T; 2],
    /// Longest displacement in cells.
    longest: T,
}

/// What diffusion does to a cell in one step.
#[derive(Debug, Clone, Copy)]
pub struct Mixing<T> {
    /// Points along a row.
    columns: usize,
    /// Weight of the cell itself.
    stay: T,
    /// Weight of each neighbour.
    neighbour: T,
    /// Largest density.
    most: T,
}

impl<T: Real> Differentiable<T> for Density2d<T> {
    /// The published scheme, on rows of whole chunks, as those of the published grid are.
    fn new(problem: &Problem) -> Result<Self, NotImplemented> {
        let (dt, substeps) = problem.solver_steps(1);
        let [_, columns] = problem.grid.points;
        let Equation::Carried(rates) = equation(problem) else {
            return Err(not_implemented(problem));
        };
        // Cells of the published shape alone.
        if !columns.is_multiple_of(CHUNK) || (rates.aspect() - 1.0).abs() > 1e-12 {
            return Err(not_implemented(problem));
        }
        Ok(Self::carried(problem, rates.within(dt), substeps))
    }
}

impl<T: Real> Density2d<T> {
    /// What `transport` does in each of `substeps` steps, whatever the shape of the cells.
    fn carried(problem: &Problem, transport: Transport, substeps: usize) -> Self {
        let points = problem.grid.points;
        let [_, columns] = points;
        let cells_per_length = [0, 1].map(|axis| problem.grid.spacing(axis).recip());
        let along = |per_length: [f64; 2]| {
            [0, 1].map(|axis| T::of(cells_per_length[axis] * per_length[axis]))
        };
        Self {
            arch: Arch::new(),
            points,
            wind: Wind {
                columns,
                cells_per_velocity: along([transport.coupling; 2]),
                drift: along(transport.drift),
                longest: T::of(transport.displacement_max),
            },
            mixing: Mixing {
                columns,
                stay: T::of(1.0 - 4.0 * transport.mixing),
                neighbour: T::of(transport.mixing),
                most: T::of(transport.density_max),
            },
            substeps,
        }
    }

    fn grid(&self) -> usize {
        self.points[0] * self.points[1]
    }

    /// A field with a chunk before and after it.
    fn framed_len(&self) -> usize {
        self.grid() + 2 * CHUNK
    }

    /// One solver step of one episode.
    fn substep(&self, z: &[T], wind: &[T], next: &mut [T], scratch: &mut [T]) {
        let (framed, carried) = scratch.split_at_mut(self.framed_len());
        let carried = &mut carried[..self.grid()];
        frame(z, framed);
        carry(self.arch, self.wind, framed, wind, carried);
        mix(self.arch, self.mixing, carried, next);
        self.copy_to_walls(next);
    }

    /// The two outermost rows and columns repeat the third.
    fn copy_to_walls(&self, z: &mut [T]) {
        let [rows, columns] = self.points;
        for row in z.chunks_exact_mut(columns).take(rows - 2).skip(2) {
            let [first, last] = [row[2], row[columns - 3]];
            row[..2].fill(first);
            row[columns - 2..].fill(last);
        }
        for (wall, inner) in [(0, 2), (1, 2), (rows - 2, rows - 3), (rows - 1, rows - 3)] {
            z.copy_within(inner * columns..(inner + 1) * columns, wall * columns);
        }
    }

    /// Adjoint of [`Self::copy_to_walls`] and, before it, of the cut to possible densities, given
    /// their result: zero on the walls and where the density stands at an end of its range.
    fn inside_adjoint(&self, next: &[T], g_next: &[T], framed: &mut [T]) {
        let [rows, columns] = self.points;
        let walls = CHUNK + 2 * columns;
        framed[..walls].fill(T::ZERO);
        framed[self.framed_len() - walls..].fill(T::ZERO);
        let g_inside = &mut framed[CHUNK..][..self.grid()];
        let inside = 2 * columns..self.grid() - 2 * columns;
        g_inside[inside.clone()].copy_from_slice(&g_next[inside.clone()]);
        for (wall, inner) in [(0, 2), (1, 2), (rows - 2, rows - 3), (rows - 1, rows - 3)] {
            let copies = &g_next[wall * columns..][..columns];
            for (g, &copy) in g_inside[inner * columns..].iter_mut().zip(copies) {
                *g += copy;
            }
        }
        for row in g_inside[inside.clone()].chunks_exact_mut(columns) {
            for (wall, inner) in [
                (0, 2),
                (1, 2),
                (columns - 2, columns - 3),
                (columns - 1, columns - 3),
            ] {
                let copy = std::mem::take(&mut row[wall]);
                row[inner] += copy;
            }
        }
        let most = self.mixing.most;
        clip_adjoint(
            self.arch,
            most,
            &next[inside.clone()],
            &mut g_inside[inside],
        );
    }

    /// The rest of the adjoint of [`Self::substep`], from what [`Self::inside_adjoint`] left: sets
    /// the gradient of the density and adds to that of the wind.
    fn carried_adjoint(
        &self,
        (z, wind): (&[T], &[T]),
        g_mixed: &[T],
        g_z: &mut [T],
        g_wind: &mut [T],
        scratch: &mut [T],
    ) {
        let (framed, carried) = scratch.split_at_mut(self.framed_len());
        let carried = &mut carried[..3 * self.grid()];
        frame(z, framed);
        let mixed = (self.mixing, g_mixed);
        wind_adjoint(self.arch, self.wind, mixed, framed, wind, g_wind, carried);
        g_z.fill(T::ZERO);
        carry_adjoint(self.arch, self.points[1], carried, g_z);
    }
}

impl<T: Real> FieldStep<T> for Density2d<T> {
    /// The densities after every solver step but the last.
    fn tape_len(&self) -> usize {
        (self.substeps - 1) * self.grid()
    }

    fn scratch_len(&self) -> usize {
        2 * self.framed_len() + 3 * self.grid()
    }

    fn advance(
        &self,
        _: Batch,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        let n = self.grid();
        let mut from = fields;
        let between = tape.chunks_exact_mut(fields.len()).take(self.substeps - 1);
        for to in between.chain([next]) {
            let episodes = from.chunks_exact(n).zip(forcing.chunks_exact(2 * n));
            for ((z, wind), to) in episodes.zip(to.chunks_exact_mut(n)) {
                self.substep(z, wind, to, scratch);
            }
            from = to;
        }
    }

    fn adjoint(
        &self,
        Batch { episodes, .. }: Batch,
        at: Interval<T>,
        g: Gradients<T>,
        scratch: &mut [T],
    ) {
        let n = self.grid();
        let (g_mixed, scratch) = scratch.split_at_mut(self.framed_len());
        g.forcing.fill(T::ZERO);
        for step in (0..self.substeps).rev() {
            let before = at.state(step, self.substeps);
            let after = at.state(step + 1, self.substeps);
            for episode in 0..episodes {
                let cells = episode * n..(episode + 1) * n;
                let flow = 2 * episode * n..2 * (episode + 1) * n;
                let g_after = match step + 1 == self.substeps {
                    true => &g.next[cells.clone()],
                    false => &g.fields[cells.clone()],
                };
                self.inside_adjoint(&after[cells.clone()], g_after, g_mixed);
                self.carried_adjoint(
                    (&before[cells.clone()], &at.forcing[flow.clone()]),
                    g_mixed,
                    &mut g.fields[cells],
                    &mut g.forcing[flow],
                    scratch,
                );
            }
        }
    }
}

/// A copy of a field with a chunk of zeros before and after it, so that the whole of its inner rows
/// has neighbours on all sides.
fn frame<T: Real>(z: &[T], framed: &mut [T]) {
    framed[..CHUNK].fill(T::ZERO);
    framed[CHUNK..][..z.len()].copy_from_slice(z);
    framed[CHUNK + z.len()..].fill(T::ZERO);
}

#[inline(always)]
fn chunk<T: Real>(from: &[T], start: usize) -> &[T; CHUNK] {
    from[start..start + CHUNK]
        .try_into()
        .expect("a whole chunk")
}

/// A chunk of cells and their neighbours in a row, beginning with the one before the first.
type Row<T> = [T; CHUNK + 2];

/// The rows before, of and after a chunk of cells, from a framed field.
#[inline(always)]
fn neighbourhood<T: Real>(framed: &[T], columns: usize, k: usize) -> [&Row<T>; 3] {
    let at = CHUNK + k;
    [
        row(framed, at - columns),
        row(framed, at),
        row(framed, at + columns),
    ]
}

#[inline(always)]
fn row<T: Real>(from: &[T], at: usize) -> &Row<T> {
    from[at - 1..at + CHUNK + 1]
        .try_into()
        .expect("a chunk between two")
}

/// How far a cell's density comes, along each axis, and by what it was shortened.
#[derive(Clone, Copy)]
struct Displacement<T> {
    d0: T,
    d1: T,
    shortening: T,
    capped: bool,
}

impl<T: Real> Wind<T> {
    #[inline(always)]
    fn displacement(self, w0: T, w1: T) -> Displacement<T> {
        let d0 = self.cells_per_velocity[0].fused(w0, self.drift[0]);
        let d1 = self.cells_per_velocity[1].fused(w1, self.drift[1]);
        let (square, limit) = (d0.fused(d0, d1 * d1), self.longest * self.longest);
        let capped = square > limit;
        let shortening = self.longest / (if capped { square } else { limit }).root();
        Displacement {
            d0: d0 * shortening,
            d1: d1 * shortening,
            shortening,
            capped,
        }
    }
}

/// What a displacement finds: the density in its own row and in the other one it points back to,
/// each at its own column and how much more there is in the other. At rest it points to the next row
/// and column, as rounding down does in the authors' code.
#[derive(Clone, Copy)]
struct Corners<T> {
    own: T,
    own_rise: T,
    other: T,
    other_rise: T,
}

impl<T: Real> Corners<T> {
    #[inline(always)]
    fn at(near: [&Row<T>; 3], l: usize, d0: T, d1: T) -> Self {
        let (above, above_rise) = along_row(near[0], l, d1);
        let (own, own_rise) = along_row(near[1], l, d1);
        let (below, below_rise) = along_row(near[2], l, d1);
        let up = d0 > T::ZERO;
        Self {
            own,
            own_rise,
            other: if up { above } else { below },
            other_rise: if up { above_rise } else { below_rise },
        }
    }
}

/// The density in a cell and how much more there is in the one beside it that `d1` points back to.
#[inline(always)]
fn along_row<T: Real>(row: &Row<T>, l: usize, d1: T) -> (T, T) {
    // Read before the choice: a choice of places to read from would not vectorise.
    let (left, own, right) = (row[l], row[l + 1], row[l + 2]);
    (own, (if d1 > T::ZERO { left } else { right }) - own)
}

vectorised! {
    /// Inner rows of `carried` from a framed field and the wind, `[component, grid]`.
    pub fn carry<'a, T>(wind: Wind<T>, framed: &'a [T], velocity: &'a [T], carried: &'a mut [T]) {
        let (n, columns) = (carried.len(), wind.columns);
        for k in (columns..n - columns).step_by(CHUNK) {
            let near = neighbourhood(framed, columns, k);
            let (w0, w1) = (chunk(velocity, k), chunk(velocity, n + k));
            let mut out = [T::ZERO; CHUNK];
            for l in 0..CHUNK {
                let Displacement { d0, d1, .. } = wind.displacement(w0[l], w1[l]);
                let Corners { own, own_rise, other, other_rise } = Corners::at(near, l, d0, d1);
                let (a0, a1) = (d0.magnitude(), d1.magnitude());
                let own = a1.fused(own_rise, own);
                let other = a1.fused(other_rise, other);
                out[l] = a0.fused(other - own, own);
            }
            carried[k..k + CHUNK].copy_from_slice(&out);
        }
    }
}

vectorised! {
    /// What the walls leave of `next`, from `carried`.
    pub fn mix<'a, T>(mixing: Mixing<T>, carried: &'a [T], next: &'a mut [T]) {
        let Mixing { columns, stay, neighbour, most } = mixing;
        for k in (2 * columns..carried.len() - 2 * columns).step_by(CHUNK) {
            let (above, below) = (chunk(carried, k - columns), chunk(carried, k + columns));
            let here = row(carried, k);
            let mut out = [T::ZERO; CHUNK];
            for l in 0..CHUNK {
                let sides = (above[l] + below[l]) + (here[l] + here[l + 2]);
                out[l] = stay.fused(here[l + 1], neighbour * sides).within(T::ZERO, most);
            }
            next[k..k + CHUNK].copy_from_slice(&out);
        }
    }
}

vectorised! {
    /// Adjoint of a cut to `0 ..= most`, given its result: zero where it stands at an end.
    pub fn clip_adjoint<'a, T>(most: T, clipped: &'a [T], g: &'a mut [T]) {
        for (g, &z) in g.iter_mut().zip(clipped) {
            *g = if z > T::ZERO && z < most { *g } else { T::ZERO };
        }
    }
}

vectorised! {
    /// From the gradient of what mixing made (framed) to that of what the wind carried, and from
    /// there to the wind's, which is added to.
    ///
    /// `carried` gets, at each cell, the gradient of what was carried there and its displacement.
    pub fn wind_adjoint<'a, T>(
        wind: Wind<T>,
        mixed: (Mixing<T>, &'a [T]),
        framed: &'a [T],
        velocity: &'a [T],
        g_velocity: &'a mut [T],
        carried: &'a mut [T],
    ) {
        let (Mixing { columns, stay, neighbour, .. }, g_mixed) = mixed;
        let n = carried.len() / 3;
        let (g_carried, displacement) = carried.split_at_mut(n);
        let (d0, d1) = displacement.split_at_mut(n);
        let (g_velocity_0, g_velocity_1) = g_velocity.split_at_mut(n);
        for rows in [&mut *g_carried, &mut *d0, &mut *d1] {
            rows[..columns].fill(T::ZERO);
            rows[n - columns..].fill(T::ZERO);
        }
        let per_square = T::ONE / (wind.longest * wind.longest);
        for k in (columns..n - columns).step_by(CHUNK) {
            let around = neighbourhood(g_mixed, columns, k);
            let near = neighbourhood(framed, columns, k);
            let (w0, w1) = (chunk(velocity, k), chunk(velocity, n + k));
            let (mut g0, mut g1) = (*chunk(g_velocity_0, k), *chunk(g_velocity_1, k));
            let mut out = [[T::ZERO; CHUNK]; 3];
            for l in 0..CHUNK {
                let sides = (around[0][l + 1] + around[2][l + 1]) + (around[1][l] + around[1][l + 2]);
                let g = stay.fused(around[1][l + 1], neighbour * sides);
                let Displacement { d0, d1, shortening, capped } = wind.displacement(w0[l], w1[l]);
                let Corners { own, own_rise, other, other_rise } = Corners::at(near, l, d0, d1);
                let twist = other_rise - own_rise;
                let ahead = d1.magnitude().fused(twist, other - own);
                let aside = d0.magnitude().fused(twist, own_rise);
                let slope0 = if d0 > T::ZERO { ahead } else { -ahead };
                let slope1 = if d1 > T::ZERO { aside } else { -aside };
                // A capped displacement only turns: what lies along it is lost.
                let along = d0.fused(slope0, d1 * slope1) * per_square;
                let along = if capped { along } else { T::ZERO };
                let g_free = g * shortening;
                let (turned0, turned1) = (slope0 - along * d0, slope1 - along * d1);
                g0[l] = (g_free * wind.cells_per_velocity[0]).fused(turned0, g0[l]);
                g1[l] = (g_free * wind.cells_per_velocity[1]).fused(turned1, g1[l]);
                out[0][l] = g;
                out[1][l] = d0;
                out[2][l] = d1;
            }
            g_velocity_0[k..k + CHUNK].copy_from_slice(&g0);
            g_velocity_1[k..k + CHUNK].copy_from_slice(&g1);
            g_carried[k..k + CHUNK].copy_from_slice(&out[0]);
            d0[k..k + CHUNK].copy_from_slice(&out[1]);
            d1[k..k + CHUNK].copy_from_slice(&out[2]);
        }
    }
}

/// The share that a displacement takes from the cell before (0), the own (1) or the next (2).
#[inline(always)]
fn share<T: Real>(displacement: T, from: usize) -> T {
    match from {
        0 if displacement > T::ZERO => displacement,
        1 => T::ONE - displacement.magnitude(),
        2 if displacement < T::ZERO => -displacement,
        _ => T::ZERO,
    }
}

vectorised! {
    /// From what [`wind_adjoint`] left to the gradient of the field, which is added to: every cell
    /// collects from the neighbours that took from it.
    pub fn carry_adjoint<'a, T>(columns: usize, carried: &'a [T], g: &'a mut [T]) {
        let n = g.len();
        let (g_carried, displacement) = carried.split_at(n);
        let (d0, d1) = displacement.split_at(n);
        for k in (columns..n - columns).step_by(CHUNK) {
            // The gradients of the row before these cells, of their own and of the next.
            let mut sums = [*chunk(g, k - columns), *chunk(g, k), *chunk(g, k + columns)];
            for taken in 0..3 {
                // The cell before was taken by the next one, the next by the one before.
                let by = k + 1 - taken;
                let (felt, d0, d1) = (chunk(g_carried, by), chunk(d0, by), chunk(d1, by));
                for l in 0..CHUNK {
                    let felt = felt[l] * share(d1[l], taken);
                    let [before, own, next] = [share(d0[l], 0), share(d0[l], 1), share(d0[l], 2)];
                    sums[0][l] = felt.fused(before, sums[0][l]);
                    sums[1][l] = felt.fused(own, sums[1][l]);
                    sums[2][l] = felt.fused(next, sums[2][l]);
                }
            }
            g[k - columns..][..CHUNK].copy_from_slice(&sums[0]);
            g[k..][..CHUNK].copy_from_slice(&sums[1]);
            g[k + columns..][..CHUNK].copy_from_slice(&sums[2]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::wave;
    use crate::adjoint::physics::agreement::{assert_adjoint, assert_follows_simulator};
    use problem::grid::{Edge, Grid};
    use problem::published::density_2d::{EXTENT, PROBLEM};

    /// A wind of 0.05 is worth 0.95 cells per step: it reaches the cap of half a cell and falls
    /// short of it.
    const BREEZE: f64 = 0.05;

    #[test]
    fn the_density_is_the_simulators() {
        for problem in [PROBLEM, PROBLEM.with_substeps(3).unwrap()] {
            let (wide, narrow) = (
                Density2d::new(&problem).unwrap(),
                Density2d::new(&problem).unwrap(),
            );
            assert_follows_simulator(&problem, &wide, &narrow, BREEZE);
        }
    }

    /// In a coarser room, with densities that are cut at either end.
    ///
    /// There, a difference of 1e-5 in the wind is worth 7.4e-5 cells, 8.5e-4 of the longest
    /// displacement. The square of that, 7e-7, is what central differences make of the cap.
    #[test]
    fn the_adjoint_is_the_derivative() {
        for substeps in [1, 3] {
            let room = Problem {
                grid: Grid::plane([12, 32], EXTENT, Edge::Wall),
                substeps,
                ..PROBLEM
            };
            let Equation::Carried(rates) = equation(&room) else {
                panic!("the published scheme")
            };
            let (dt, _) = room.solver_steps(1);
            let density = Density2d::carried(&room, rates.within(dt), substeps);
            let fields: Vec<f64> = (wave(2 * 384, 0.2, 3.0).iter()).map(|z| z + 2.5).collect();
            let forcing = wave(4 * 384, 0.7, 0.02);
            let capped = (forcing.chunks_exact(384).step_by(2))
                .flatten()
                .zip(forcing.chunks_exact(384).skip(1).step_by(2).flatten())
                .filter(|(w0, w1)| density.wind.displacement(**w0, **w1).capped)
                .count();
            assert!(
                (100..668).contains(&capped),
                "{capped} of 768 displacements"
            );
            assert_adjoint(&density, &fields, &forcing, 1e-6);
        }
    }
}
