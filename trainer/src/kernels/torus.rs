//! Equations on a square torus of 64 × 64 points, in Fourier modes.

use super::{Declaration, FieldKernel, Varying, no_kernels};
use crate::adjoint::physics::ks_2d::phi;
use problem::pde::ks_2d::Stages;
use problem::published::{ks_2d, turbulence_2d};
use problem::{NotImplemented, Problem};
use std::borrow::Cow;
use std::f64::consts::TAU;

/// Points along each axis (`SIDE` in the kernel).
const SIDE: usize = 64;
/// How far lines are from each other in the pool (`STRIDE` in the kernel).
const STRIDE: usize = 72;
/// Eight values each.
const THREADS: usize = SIDE * SIDE / 8;

/// The Kuramoto–Sivashinsky equation.
pub fn flame(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    fits(problem)?;
    Ok(Box::new(Flame::new(problem)))
}

/// Decaying turbulence.
pub fn vortices(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    fits(problem)?;
    let advection = turbulence_2d::equation(problem).advection;
    Ok(Box::new(Vortices { advection }))
}

/// Refuses grids of another size.
fn fits(problem: &Problem) -> Result<(), NotImplemented> {
    let grid = &problem.grid;
    let square = grid.points == [SIDE; 2] && grid.extent(0) == grid.extent(1);
    match square && *grid == problem.sensors {
        true => Ok(()),
        false => Err(no_kernels(problem)),
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
    fn new(problem: &Problem) -> Self {
        let (dt, _) = problem.solver_steps(1);
        let exponents: Vec<f64> = squares(problem).iter().map(|q| dt * (q - q * q)).collect();
        let table = |of: &dyn Fn(f64) -> f64| exponents.iter().map(|&c| of(c)).collect();
        Self {
            whole: table(&f64::exp),
            half: table(&|c| (0.5 * c).exp()),
            stage: match ks_2d::equation(problem).stages {
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

impl FieldKernel for Flame {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        concat!(
            include_str!("wgsl/torus.wgsl"),
            include_str!("wgsl/flame.wgsl")
        )
        .into()
    }

    fn keeps_field_in_pool(&self, _room: usize) -> bool {
        false
    }

    fn needs_threads(&self) -> Option<usize> {
        Some(THREADS)
    }

    fn placed(&self) -> usize {
        2 * SIDE
    }

    fn place(&self, problem: &Problem, place: [f64; 2]) -> Vec<f64> {
        actuator(problem, place)
    }

    fn declare(&self, shader: &mut Declaration) {
        declare(shader);
        shader.number("CARRIED", ((SIDE - 1) / 3) as f64);
        shader.table("WHOLE", &self.whole);
        shader.table("HALF", &self.half);
        shader.table("STAGE", &self.stage);
        for (k, weight) in self.weights.iter().enumerate() {
            shader.table(&format!("WEIGHT_{k}"), weight);
        }
    }
}

/// Turbulence on the unit torus.
#[derive(Debug, Clone, PartialEq)]
pub struct Vortices {
    /// Strength of the advection.
    pub advection: f64,
}

impl FieldKernel for Vortices {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        concat!(
            include_str!("wgsl/torus.wgsl"),
            include_str!("wgsl/vortices.wgsl")
        )
        .into()
    }

    fn keeps_field_in_pool(&self, _room: usize) -> bool {
        false
    }

    fn needs_threads(&self) -> Option<usize> {
        Some(THREADS)
    }

    fn placed(&self) -> usize {
        2 * SIDE
    }

    fn place(&self, problem: &Problem, place: [f64; 2]) -> Vec<f64> {
        actuator(problem, place)
    }

    /// ν |k|² per mode.
    fn varying(&self, form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        let viscosity = turbulence_2d::equation(form).viscosity;
        let damping = squares(form).iter().map(|q| viscosity * q).collect();
        Ok(vec![Varying::Table("damping", damping)])
    }

    fn declare(&self, shader: &mut Declaration) {
        declare(shader);
        shader.number("ADVECTION", self.advection);
    }
}

/// What both equations need.
fn declare(shader: &mut Declaration) {
    let problem = *shader.problem();
    let (agents, horizon, cells) = (shader.agents(), shader.horizon(), shader.cells());
    let (dt, substeps) = problem.solver_steps(1);
    shader.in_pool("WORK", SIDE * STRIDE);
    shader.count("SUBSTEPS", substeps);
    shader.number("SUBSTEP", dt);
    shader.number("WAVE_NUMBER", TAU / problem.grid.extent(0));
    let turns = (0..SIDE).map(|k| TAU * k as f64 / SIDE as f64);
    let twiddles: Vec<f64> = turns.flat_map(|turn| [turn.cos(), -turn.sin()]).collect();
    shader.table("TWIDDLES", &twiddles);
    for (name, size) in [
        ("G_FIELD", cells),
        ("LINES", agents * SIDE),
        ("TAPE", horizon * substeps * 4 * 2 * cells),
    ] {
        shader.in_scratch(name, size);
    }
}

/// The actuator of an agent that stays where it is: its factor along axis 0, then along axis 1.
fn actuator(problem: &Problem, place: [f64; 2]) -> Vec<f64> {
    let grid = &problem.grid;
    let falloff = 0.5 / problem.actuation.width.powi(2);
    let mut kernel = Vec::new();
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
        kernel.extend(factor.map(|value| value / peak));
    }
    kernel
}
