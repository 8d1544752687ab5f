//! Matrices of the physics, computed in double precision.

use crate::adjoint::physics::ks_2d::phi;
use problem::Problem;
use problem::actuate::Kernel;
use problem::pde::density_2d::Transport;
use problem::pde::ks_2d::Stages;
use problem::published::{density_2d, fkpp_1d, heat_1d, heat_2d, ks_1d, ks_2d, turbulence_2d};
use std::f64::consts::TAU;

/// What a field does in one control interval.
#[derive(Debug, Clone, PartialEq)]
pub enum Physics {
    /// Diffusion on a line, with or without growth.
    Line(Line),
    /// The Kuramoto–Sivashinsky equation on a circle.
    Ring(Ring),
    /// Diffusion on a plate.
    Plate(Plate),
    /// A density in a room, carried by fans.
    Room(Transport),
    /// The Kuramoto–Sivashinsky equation on a torus.
    Flame(Flame),
    /// Turbulence on a torus.
    Vortices(Vortices),
}

impl Physics {
    /// Of a problem; none where there are no kernels for it: on other grids than the published one,
    /// and with several solver steps per action where the published scheme has one.
    pub fn of(problem: &Problem, agents: usize) -> Option<Self> {
        let on_torus = matches!(problem.name, "ks-2d" | "turbulence-2d");
        if problem.grid != problem.sensors || (problem.substeps > 1 && !on_torus) {
            return None;
        }
        Some(match problem.name {
            "heat-1d" => Self::Line(Line::heat(problem)),
            "fkpp-1d" => Self::Line(Line::fisher(problem)),
            "ks-1d" => Self::Ring(Ring::new(problem, agents)),
            "heat-2d" | "heat-2d-obstacles" => Self::Plate(Plate::new(problem)),
            "density-2d" => Self::Room(density_2d::transport(problem, problem.control_interval)),
            "ks-2d" => Self::Flame(Flame::new(problem)),
            "turbulence-2d" => Self::Vortices(Vortices::new(problem)),
            _ => return None,
        })
    }
}

/// What of an inverse's row is dropped beyond its band, relative to its diagonal: below what single
/// precision can tell.
const NEGLIGIBLE: f64 = 1e-9;

/// A diffusion step on a line, `z⁺ = A⁻¹ (z + q D z + …)`, A being `1 + 2p` on its diagonal and `−p`
/// beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// q, the explicit share of the diffusion.
    pub explicit_ratio: f64,
    /// ρ of the reaction ρ z (1 − z).
    pub growth: f64,
    /// Whether densities are cut to 0..1.
    pub clipped: bool,
    /// Cells to each side of the diagonal that count.
    pub band: usize,
    /// A⁻¹, [offset + band, cell], zero on the walls.
    pub inverse: Vec<f64>,
}

impl Line {
    /// Crank–Nicolson for the heat equation.
    pub fn heat(problem: &Problem) -> Self {
        let half = 0.5 * ratio(problem, heat_1d::DIFFUSIVITY);
        let (band, inverse) = banded_inverse(problem.grid.len(), half);
        Self {
            explicit_ratio: half,
            growth: 0.0,
            clipped: false,
            band,
            inverse,
        }
    }

    /// Backward Euler for the diffusion of Fisher's equation, forward Euler for the rest.
    pub fn fisher(problem: &Problem) -> Self {
        let whole = ratio(problem, fkpp_1d::DIFFUSIVITY);
        let (band, inverse) = banded_inverse(problem.grid.len(), whole);
        Self {
            explicit_ratio: 0.0,
            growth: fkpp_1d::GROWTH,
            clipped: true,
            band,
            inverse,
        }
    }
}

/// One step of the Kuramoto–Sivashinsky equation on a circle, `u⁺ = A u + B u² + Σ a_i R_i`: in
/// Fourier modes, Crank–Nicolson for the linear part and Euler for the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// The first column of A: what a unit in cell 0 does to every cell.
    pub linear: Vec<f64>,
    /// The first column of B.
    pub square: Vec<f64>,
    /// R, [agents, cells].
    pub responses: Vec<f64>,
}

impl Ring {
    /// The published scheme with its actuators on their published places.
    pub fn new(problem: &Problem, agents: usize) -> Self {
        let (n, length, dt) = (problem.grid.len(), ks_1d::LENGTH, problem.control_interval);
        let wave_number = |k: usize| TAU * k as f64 / length;
        let half_rate = |k: usize| 0.5 * dt * (wave_number(k).powi(2) - wave_number(k).powi(4));
        // All but the mean and the shortest wave come in pairs.
        let share = |k: usize| (if k == 0 || 2 * k == n { 1.0 } else { 2.0 }) / n as f64;
        let angle = |k: usize, d: usize| TAU * (k * d % n) as f64 / n as f64;
        let even = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let value = |d: usize| {
                (0..=n / 2)
                    .map(|k| share(k) * of(k) * angle(k, d).cos())
                    .sum()
            };
            (0..n).map(value).collect()
        };
        let linear = even(&|k| (1.0 + half_rate(k)) / (1.0 - half_rate(k)));
        let filter = even(&|k| dt / (1.0 - half_rate(k)));
        // −½ ∂_x: the shortest wave has no slope on the grid.
        let slope = |d: usize, k: usize| {
            share(k) * 0.5 * dt * wave_number(k) / (1.0 - half_rate(k)) * angle(k, d).sin()
        };
        let square = (0..n)
            .map(|d| (1..n / 2).map(|k| slope(d, k)).sum())
            .collect();
        let mut responses = Vec::with_capacity(agents * n);
        for place in (problem.placement)(problem, agents) {
            let mut bump = vec![0.0; n];
            Kernel::new(problem).add(&mut bump, place, &[1.0]);
            let response = |j: usize| {
                (0..n)
                    .map(|i| filter[(j + n - i) % n] * bump[i])
                    .sum::<f64>()
            };
            responses.extend((0..n).map(response));
        }
        Self {
            linear,
            square,
            responses,
        }
    }
}

/// One step of the heat equation on a plate, `z⁺ = P (z P + W) + W` with `W = Δt/2 · f A⁻¹`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plate {
    /// Cells to each side of the diagonals that count.
    pub band: usize,
    /// P, [offset + band, point], zero on the edges.
    pub step: Vec<f64>,
    /// A⁻¹, likewise.
    pub inverse: Vec<f64>,
}

impl Plate {
    /// Peaceman–Rachford with the published spacing.
    pub fn new(problem: &Problem) -> Self {
        let n = problem.grid.points[1];
        let dx = heat_1d::scheme_spacing(n);
        let half = 0.5 * heat_2d::DIFFUSIVITY * problem.control_interval / (dx * dx);
        let (band, inverse) = banded_inverse(n, half);
        // A = 1 − q D and C = 1 + q D, so P = C A⁻¹ = 2 A⁻¹ − 1.
        let mut step: Vec<f64> = inverse.iter().map(|x| 2.0 * x).collect();
        for x in &mut step[band * n + 1..(band + 1) * n - 1] {
            *x -= 1.0;
        }
        Self {
            band,
            step,
            inverse,
        }
    }
}

/// Squares of the wave numbers of all modes of a square torus, [axis 0, axis 1].
fn squares(problem: &Problem) -> Vec<f64> {
    let [rows, columns] = problem.grid.points;
    let wave_number =
        |axis: usize, j: usize, n: usize| TAU * j.min(n - j) as f64 / problem.grid.extent(axis);
    (0..rows * columns)
        .map(|k| {
            let (i, j) = (k / columns, k % columns);
            wave_number(0, i, rows).powi(2) + wave_number(1, j, columns).powi(2)
        })
        .collect()
}

/// One substep of the Kuramoto–Sivashinsky equation on a torus, by exponential time differencing.
/// All tables are per mode, [axis 0, axis 1].
#[derive(Debug, Clone, PartialEq)]
pub struct Flame {
    /// exp c, c = Δt (q − q²).
    pub whole: Vec<f64>,
    /// exp(c/2).
    pub half: Vec<f64>,
    /// What a half step weighs the rest with.
    pub stage: Vec<f64>,
    /// What the whole step weighs the stages with: the first, the two between, the last.
    pub weights: [Vec<f64>; 3],
}

impl Flame {
    /// The scheme of the problem or its variant.
    pub fn new(problem: &Problem) -> Self {
        let (dt, _) = problem.solver_steps(1);
        let exponents: Vec<f64> = squares(problem).iter().map(|q| dt * (q - q * q)).collect();
        let table = |of: &dyn Fn(f64) -> f64| exponents.iter().map(|&c| of(c)).collect();
        Self {
            whole: table(&f64::exp),
            half: table(&|c| (0.5 * c).exp()),
            stage: match ks_2d::stages(problem) {
                Stages::Proper => table(&|c| 0.5 * dt * phi(0.5 * c)[0]),
                Stages::AsPublished => table(&|c| 0.5 * dt * phi(c)[0]),
            },
            weights: [[1.0, -3.0, 4.0], [0.0, 2.0, -4.0], [0.0, -1.0, 4.0]].map(|[x, y, z]| {
                table(&|c| {
                    let [p1, p2, p3] = phi(c);
                    dt * (x * p1 + y * p2 + z * p3)
                })
            }),
        }
    }
}

/// Turbulence on the unit torus.
#[derive(Debug, Clone, PartialEq)]
pub struct Vortices {
    /// Strength of the advection.
    pub advection: f64,
    /// ν |k|² per mode.
    pub damping: Vec<f64>,
}

impl Vortices {
    /// The scheme of the problem or its variant.
    pub fn new(problem: &Problem) -> Self {
        Self {
            advection: turbulence_2d::advection(problem),
            damping: squares(problem)
                .iter()
                .map(|q| turbulence_2d::VISCOSITY * q)
                .collect(),
        }
    }
}

/// The kernels of agents that stay on their published places on a torus: for each agent its factor
/// along axis 0, then along axis 1.
pub fn torus_kernels(problem: &Problem, agents: usize) -> Vec<f64> {
    let grid = &problem.grid;
    let falloff = 0.5 / problem.actuation.width.powi(2);
    let mut kernels = Vec::new();
    for place in (problem.placement)(problem, agents) {
        for (axis, &x) in place.iter().enumerate() {
            let gap = |j: usize| {
                let gap = (grid.coordinate(axis, j) - x).abs();
                gap.min(grid.extent(axis) - gap)
            };
            let factor = (0..grid.points[axis]).map(|j| (-falloff * gap(j).powi(2)).exp());
            let peak = match problem.actuation.peak_on_grid {
                true => factor.clone().fold(0.0, f64::max),
                false => 1.0,
            };
            kernels.extend(factor.map(|value| value / peak));
        }
    }
    kernels
}

/// ν Δt / Δx².
fn ratio(problem: &Problem, diffusivity: f64) -> f64 {
    let dx = heat_1d::scheme_spacing(problem.grid.points[0]);
    diffusivity * problem.control_interval / (dx * dx)
}

/// The inverse of the matrix with `1 + 2p` on the diagonal and `−p` beside it on the interior of a
/// line of `n` points, zero on its ends: how far from the diagonal it counts, and
/// [offset + band, cell] of it.
///
/// Its entries fall off by λ per cell, λ + 1/λ = (1 + 2p)/p.
pub fn banded_inverse(n: usize, p: f64) -> (usize, Vec<f64>) {
    let half = (1.0 + 2.0 * p) / (2.0 * p);
    let falloff = half - (half * half - 1.0).sqrt();
    let band = ((NEGLIGIBLE.ln() / falloff.ln()).ceil() as usize).min(n - 1);
    let mut table = vec![0.0; (2 * band + 1) * n];
    for unit in 1..n - 1 {
        for (j, value) in inverse_column(n, p, unit).into_iter().enumerate() {
            if j.abs_diff(unit) <= band {
                // Row j, column unit: the offset is unit − j.
                table[(unit + band - j) * n + j] = value;
            }
        }
    }
    (band, table)
}

/// Elimination for the unit vector of an interior point.
fn inverse_column(n: usize, p: f64, unit: usize) -> Vec<f64> {
    let (mut pivot, mut value) = (vec![0.0; n], vec![0.0; n]);
    for j in 1..n - 1 {
        let scale = 1.0 / (1.0 + 2.0 * p - p * pivot[j - 1]);
        pivot[j] = p * scale;
        value[j] = (f64::from(u8::from(j == unit)) + p * value[j - 1]) * scale;
    }
    for j in (1..n - 1).rev() {
        value[j] += pivot[j] * value[j + 1];
    }
    value[n - 1] = 0.0;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A A⁻¹ = 1 on the interior, for the two published ratios (heat: r/2 = 1, Fisher: 0.05).
    #[test]
    fn the_banded_inverse_inverts() {
        for p in [1.0, 0.05] {
            let (n, (band, table)) = (100, banded_inverse(100, p));
            let entry = |j: usize, k: usize| match j.abs_diff(k) <= band {
                true => table[(k + band - j) * n + j],
                false => 0.0,
            };
            for j in 1..n - 1 {
                for k in 1..n - 1 {
                    let product =
                        (1.0 + 2.0 * p) * entry(j, k) - p * (entry(j - 1, k) + entry(j + 1, k));
                    let unit = f64::from(u8::from(j == k));
                    assert!((product - unit).abs() < 4.0 * NEGLIGIBLE, "{p} {j} {k}");
                }
            }
            assert!((0..n).all(|k| entry(0, k) == 0.0 && entry(n - 1, k) == 0.0));
            assert!(band < n / 4, "{band}");
        }
    }
}
