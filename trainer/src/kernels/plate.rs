//! Diffusion on a square plate.

use super::banded::banded_inverse;
use super::{Declaration, FieldKernel, no_kernels, one_step};
use problem::published::heat_2d::{Equation, equation};
use problem::{NotImplemented, Problem};

/// The heat equation, on a grid that is the same along both axes.
pub fn heat(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    let ([rows, columns], Equation { spacing, .. }) = (problem.grid.points, equation(problem));
    if rows != columns || spacing[0] != spacing[1] {
        return Err(no_kernels(problem));
    }
    Ok(Box::new(Plate::new(problem)))
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
    fn new(problem: &Problem) -> Self {
        let n = problem.grid.points[1];
        let Equation {
            diffusivity,
            spacing: [_, dx],
        } = equation(problem);
        let half = 0.5 * diffusivity * problem.control_interval / (dx * dx);
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

impl FieldKernel for Plate {
    fn source(&self) -> &'static str {
        include_str!("wgsl/plate.wgsl")
    }

    fn declare(&self, shader: &mut Declaration) {
        let cells = shader.cells();
        shader.in_pool("WORK", cells);
        shader.count("BAND", self.band);
        shader.table("STEP", &self.step);
        shader.table("INVERSE", &self.inverse);
        shader.in_pool("FORCING", cells);
        shader.in_pool("PULLED", cells);
        let side = shader.agents() * shader.problem().grid.points[1];
        shader.in_scratch("ACROSS", side);
        shader.in_scratch("ALONG", side);
        shader.in_scratch("SPREAD", 3 * side);
    }
}
